//! The mappings of a virtual dataset, which lie in a global heap (format specification 4.0, III.F).

use std::collections::HashMap;
use std::sync::Arc;

use h5live_model::Name;

use crate::{Fault, LibVer, Record, Result, StoredSelection, Width, Widths, Wire, encoded_len};

/// A piece of a virtual dataset, and the piece of another dataset that it shows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct VirtualMapping {
    /// The file of the other dataset; `.` for the same file. `%b` stands for a number that counts blocks, `%%` for `%`.
    pub file: Arc<Name>,
    /// The path of the other dataset in its file, with `%b` and `%%` as in `file`. Mappings that share a name share its
    /// memory.
    pub dataset: Arc<Name>,
    /// The selected elements of the source dataset.
    pub source: StoredSelection,
    /// Their place in the virtual dataset.
    pub target: StoredSelection,
}

/// All mappings of a virtual dataset.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct VirtualLayout {
    /// 0 or 1; version 1 writes names once.
    pub version: u8,
    /// The mappings.
    pub mappings: Vec<VirtualMapping>,
}

const FILE_SHARED: u8 = 0x01;
const DATASET_SHARED: u8 = 0x02;
const SAME_FILE: u8 = 0x04;

impl VirtualLayout {
    /// The mappings in the version in which a file of this profile holds them: version 1 from HDF5 2.0 on, if it is not
    /// larger.
    pub fn new(profile: LibVer, mappings: Vec<VirtualMapping>, widths: Widths) -> Self {
        let mut layout = VirtualLayout { version: 0, mappings };
        if profile >= LibVer::V200 {
            let plain = encoded_len(&layout, widths);
            layout.version = 1;
            if plain.is_ok_and(|plain| encoded_len(&layout, widths).is_ok_and(|len| len > plain)) {
                layout.version = 0;
            }
        }
        layout
    }
}

/// The index at which a name was first written.
type FirstUses = HashMap<Arc<Name>, usize>;

/// The index of the mapping that has the same name, if referring to it takes no more bytes than the name.
fn first_use_to_share(name: &Name, length: Width, first: &FirstUses) -> Option<usize> {
    let long = name.as_bytes().len().saturating_add(1) >= length.bytes();
    first.get(name).copied().filter(|_| long)
}

/// A name, or the index of a mapping before this one that has it.
fn wire_shared_name(
    w: &mut impl Wire,
    field: &'static str,
    name: &mut Arc<Name>,
    is_shared: bool,
    origin: Option<usize>,
    named: impl Fn(usize) -> Option<Arc<Name>>,
) -> Result<()> {
    if !is_shared {
        return w.nul_terminated_name(field, Arc::make_mut(name));
    }
    let index = w.derived_uint(field, w.widths().length, origin.unwrap_or(0) as u64)?;
    let fault = Fault::InvalidValue { found: index, rule: "the index of a mapping before this one" };
    let found = usize::try_from(index).ok().and_then(named);
    *name = found.ok_or_else(|| w.fault(field, fault))?;
    Ok(())
}

impl Record for VirtualLayout {
    const NAME: &'static str = "virtual dataset mappings";

    fn wire(&mut self, w: &mut impl Wire) -> Result<()> {
        w.version(0..=1, &mut self.version)?;
        let count = w.derived_uint("mappings", w.widths().length, self.mappings.len() as u64)?;
        let count = w.bounded_count("mappings", count, 33)?;
        let mut done: Vec<VirtualMapping> = Vec::with_capacity(count);
        let mut left = std::mem::take(&mut self.mappings).into_iter();
        let (mut files, mut datasets) = (FirstUses::new(), FirstUses::new());
        for index in 0..count {
            let mut mapping = left.next().unwrap_or_default();
            let (file, dataset) = if w.is_decoding() {
                (None, None)
            } else {
                let length = w.widths().length;
                (
                    first_use_to_share(&mapping.file, length, &files),
                    first_use_to_share(&mapping.dataset, length, &datasets),
                )
            };
            let mut flags = 0;
            if self.version == 1 {
                let same = *mapping.file == ".";
                let file = if same {
                    SAME_FILE
                } else if file.is_some() {
                    FILE_SHARED
                } else {
                    0
                };
                let dataset = if dataset.is_some() { DATASET_SHARED } else { 0 };
                flags = w.derived_u8("flags", file | dataset)?;
                w.require("flags", flags & !0x07 == 0, flags.into(), "only the flags 1, 2 and 4 exist")?;
            }
            if flags & SAME_FILE != 0 {
                mapping.file = Arc::new(".".into());
            } else {
                let named = |i: usize| done.get(i).map(|mapping| mapping.file.clone());
                wire_shared_name(w, "source file", &mut mapping.file, flags & FILE_SHARED != 0, file, named)?;
            }
            let named = |i: usize| done.get(i).map(|mapping| mapping.dataset.clone());
            wire_shared_name(w, "source dataset", &mut mapping.dataset, flags & DATASET_SHARED != 0, dataset, named)?;
            w.record(&mut mapping.source)?;
            w.record(&mut mapping.target)?;
            if !w.is_decoding() {
                files.entry(mapping.file.clone()).or_insert(index);
                datasets.entry(mapping.dataset.clone()).or_insert(index);
            }
            done.push(mapping);
        }
        self.mappings = done;
        w.checksum()
    }
}

#[cfg(test)]
mod tests {
    use h5live_model::Selection;

    use super::*;
    use crate::{decode, encode};

    fn mappings(names: &[(&str, &str)]) -> Vec<VirtualMapping> {
        let selection = |at: u64| StoredSelection::new(LibVer::V110, 1, Selection::block(&[at], &[10]));
        let mapping = |(i, (file, dataset)): (usize, &(&str, &str))| VirtualMapping {
            file: Arc::new((*file).into()),
            dataset: Arc::new((*dataset).into()),
            source: StoredSelection::default(),
            target: selection(i as u64 * 10),
        };
        names.iter().enumerate().map(mapping).collect()
    }

    #[test]
    fn comes_back_from_bytes_in_every_version() {
        let names = [
            ("a-%b.h5", "/data"),
            (".", "/entry/data"),
            ("longer.h5", "/entry/data"),
            ("longer.h5", "/x"),
            (".", "/data"),
        ];
        for version in [0, 1] {
            let layout = VirtualLayout { version, mappings: mappings(&names) };
            let bytes = encode(&layout, Widths::default()).unwrap();
            assert_eq!(decode::<VirtualLayout>(&bytes, Widths::default()).unwrap(), layout);
        }
    }

    #[test]
    fn writes_names_once_if_that_is_shorter() {
        let version = |profile, names: &[_]| VirtualLayout::new(profile, mappings(names), Widths::default()).version;
        let many = [("longer name.h5", "/data"); 3];
        assert_eq!(version(LibVer::V200, &many), 1);
        assert_eq!(version(LibVer::V114, &many), 0);
        assert_eq!(version(LibVer::V200, &[("a.h5", "/data"), ("b.h5", "/data")]), 0);
        assert_eq!(version(LibVer::V200, &[(".", "/data"); 2]), 1);
    }

    #[test]
    fn refuses_a_name_of_a_mapping_that_does_not_come_before() {
        let layout =
            VirtualLayout { version: 1, mappings: mappings(&[("longer name.h5", "/a"), ("longer name.h5", "/b")]) };
        let bytes = encode(&layout, Widths::default()).unwrap();
        let sum = bytes.len() - 4;
        let place = bytes.windows(11).position(|w| w == [1, 0, 0, 0, 0, 0, 0, 0, 0, b'/', b'b']).unwrap();
        let mut broken = bytes.clone();
        broken[place + 1] = 1;
        let checksum = crate::lookup3(&broken[..sum], 0).to_le_bytes();
        broken[sum..].copy_from_slice(&checksum);
        assert_eq!(decode::<VirtualLayout>(&broken, Widths::default()).unwrap_err().field, "source file");
    }
}
