//! Files of the program Log VOL 1.4.0, which are read. Their log is in the groups `_LOG` of the file, or of subfiles
//! beside it.

use std::sync::Arc;

use h5live_model::{
    ByteOrder, ChunkCoord, DatasetSpec, Dataspace, Datatype, Error, Layout, LinkTarget, Name, ObjectId, ObjectKind,
    Shape, Sign, Store, UNLIMITED,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::entry::{Dims, EntryChange, EntryHead};
use crate::entry_index::EntryIndex;
use crate::error::{LogError, Result};
use crate::index_table::TableRow;
use crate::log_datasets::{LogDatasets, hard_target};
use crate::log_vol_entry::{LogVolEntry, decode_entries};
use crate::names;
use crate::position::LogPosition;

/// The attribute of the root group with counters and the configuration.
const COUNTERS: &str = "_int_att";
/// The bit of the configuration that says that the log is in subfiles.
const SUBFILES: i64 = 0x200;
/// The registered number of deflate.
const DEFLATE: i32 = 1;
/// Attributes of anchors: number, extent, largest extent.
const ID: &str = "_ID";
const DIMS: &str = "_dims";
const MAX_DIMS: &str = "_mdims";

/// What the root group says of the log.
#[derive(Debug, Clone, Copy)]
pub struct LogVolCounters {
    configuration: i64,
    /// How many subfiles there are, if the log is in subfiles.
    groups: i64,
}

/// The log of such a file.
#[derive(Debug)]
pub struct LogVolLog {
    /// Where the data is.
    pub data: LogDatasets,
    /// The index of each dataset, by its number.
    pub datasets: FxHashMap<u64, EntryIndex>,
}

fn damaged(attribute: &'static str) -> Error {
    LogError::Attribute { attribute, of: "a file of Log VOL" }.into()
}

/// The integers of an attribute, of four or eight bytes; `None` if there is none.
fn integers(store: &dyn Store, id: ObjectId, name: &'static str) -> Result<Option<Vec<i64>>> {
    let Some(found) = store.attribute(id, &Name::from(name))? else { return Ok(None) };
    let is = |size: u32| found.datatype == Datatype::integer(size, ByteOrder::Little, Sign::Signed);
    Ok(Some(match () {
        () if is(8) => found.value.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect(),
        () if is(4) => found.value.as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes).into()).collect(),
        () => return Err(damaged(name)),
    }))
}

impl LogVolCounters {
    /// Those of a file; `None` if it is no file of Log VOL.
    ///
    /// # Errors
    /// If they have another form; errors of the store beneath.
    pub fn read(store: &dyn Store) -> Result<Option<Self>> {
        let Some(found) = integers(store, store.session().root, COUNTERS)? else { return Ok(None) };
        let [_, _, _, configuration, groups] = found[..] else { return Err(damaged(COUNTERS)) };
        Ok(Some(LogVolCounters { configuration, groups }))
    }

    /// How many subfiles have the log; 0 if it is in the file itself.
    pub fn subfiles(&self) -> usize {
        if self.configuration & SUBFILES == 0 { 0 } else { usize::try_from(self.groups).unwrap_or(0) }
    }
}

/// The number of an anchor and the dataset that it stands for; `None` if the object is no anchor.
///
/// # Errors
/// If its attributes contradict each other; errors of the store beneath.
pub fn read_anchor(store: &dyn Store, at: ObjectId) -> Result<Option<(u64, DatasetSpec)>> {
    let Some(id) = integers(store, at, ID)? else { return Ok(None) };
    let [id] = id[..] else { return Err(damaged(ID)) };
    let list = |name| integers(store, at, name)?.ok_or_else(|| damaged(name));
    let dims: Vec<u64> = list(DIMS)?.into_iter().map(i64::cast_unsigned).collect();
    let max: Vec<u64> = list(MAX_DIMS)?.into_iter().map(i64::cast_unsigned).collect();
    let mut spec = DatasetSpec::clone(&*store.dataset(at)?.spec()?);
    if dims == max {
        spec.dataspace = if dims.is_empty() { Dataspace::Scalar } else { Dataspace::Simple(Shape::fixed(&dims)) };
        spec.layout = Layout::Contiguous;
    } else {
        spec.dataspace = Dataspace::Simple(Shape::with_max(&dims, &max).ok_or_else(|| damaged(MAX_DIMS))?);
        // The program keeps no shape of chunks.
        let side = |(dim, max): (&u64, &u64)| if *max == UNLIMITED { 1 } else { (*dim).max(1) };
        spec.layout = Layout::Chunked(dims.iter().zip(&max).map(side).collect());
    }
    spec.filters.clear();
    spec.check()?;
    Ok(Some((id.cast_unsigned(), spec)))
}

/// All anchors of a file, by their numbers.
fn anchors(store: &dyn Store) -> Result<FxHashMap<u64, DatasetSpec>> {
    let mut found = FxHashMap::default();
    let (mut seen, mut groups) = (FxHashSet::default(), vec![store.session().root]);
    while let Some(group) = groups.pop() {
        if !seen.insert(group) {
            continue;
        }
        let mut below = Vec::new();
        store.for_each_link(group, &mut |link| {
            if let LinkTarget::Hard(id) = link.target {
                below.push(id);
            }
            true
        })?;
        for id in below {
            match store.kind(id)? {
                ObjectKind::Group => groups.push(id),
                ObjectKind::Dataset => found.extend(read_anchor(store, id)?),
                _ => {}
            }
        }
    }
    Ok(found)
}

impl LogVolLog {
    /// The log in a file, or in its subfiles.
    ///
    /// # Errors
    /// If it is damaged; errors of the stores.
    pub fn open(main: &dyn Store, files: &[Arc<dyn Store>]) -> Result<Self> {
        let anchors = anchors(main)?;
        let mut log = LogVolLog { data: LogDatasets::without_datasets(), datasets: FxHashMap::default() };
        for file in files {
            log.add_file(&**file, &anchors)?;
        }
        Ok(log)
    }

    fn add_file(&mut self, file: &dyn Store, anchors: &FxHashMap<u64, DatasetSpec>) -> Result<()> {
        let group = hard_target(file.link(file.session().root, &Name::from(names::LOG_GROUP))?);
        let Some(group) = group else { return Ok(()) };
        let member = |kind: &str, number: usize| -> Result<Option<ObjectId>> {
            Ok(hard_target(file.link(group, &Name::from(format!("_{kind}_{number}")))?))
        };
        // Where data of the file begins and ends that has a position in the log, and that position.
        let mut places = Vec::new();
        for number in 0.. {
            let Some(id) = member("ld", number)? else { break };
            places.push(self.data.add_whole(file, id)?);
        }
        for number in 0.. {
            let Some(id) = member("md", number)? else { break };
            let chunks = file.dataset(id)?;
            let Some(chunk) = chunks.locate(&ChunkCoord::origin(1))? else { continue };
            let mut bytes = h5live_model::AllocationLimit::default().zeroed(chunk.size)?;
            chunks.read(&chunk, 0, &mut bytes)?;
            let rank = |dataset: u64| anchors.get(&dataset).map(|spec| spec.dataspace.rank());
            let entries = decode_entries(&bytes, rank).map_err(|(at, source)| {
                let at = LogPosition::new(0, at.min(LogPosition::MAX_LOG_BYTES - 1));
                LogError::Entry { at, source }
            })?;
            for entry in entries {
                let is_in = |(begin, end, _): &&(u64, u64, u64)| {
                    *begin <= entry.offset && entry.offset.checked_add(entry.data_len).is_some_and(|last| last <= *end)
                };
                let place = places
                    .iter()
                    .find(is_in)
                    .ok_or(LogError::Misfit { dataset: entry.dataset, rule: "leads outside of the log" })?;
                self.add_entry(&entry, place.2 + (entry.offset - place.0), anchors)?;
            }
        }
        Ok(())
    }

    /// Puts an entry whose data is at a position of the log into the index.
    fn add_entry(&mut self, entry: &LogVolEntry, at: u64, anchors: &FxHashMap<u64, DatasetSpec>) -> Result<()> {
        let LogVolEntry { dataset, data_len, .. } = *entry;
        let misfit = |rule| LogError::Misfit { dataset, rule };
        let spec = anchors.get(&dataset).ok_or_else(|| misfit("leads to no anchor"))?;
        let size = u64::from(spec.datatype.size());
        let bytes = |count: &Dims| count.iter().try_fold(size, |n, side| n.checked_mul(*side));
        let all = entry.blocks.iter().try_fold(0u64, |sum, (_, count)| sum.checked_add(bytes(count)?));
        let all = all.ok_or_else(|| misfit("has too many elements"))?;
        // Nothing but the number of bytes tells that data went through deflate.
        let filter = if all == data_len { 0 } else { DEFLATE };
        if filter != 0 && entry.blocks.len() != 1 {
            return Err(misfit("has deflated data of several blocks").into());
        }
        let index = self.datasets.entry(dataset).or_insert_with(|| EntryIndex::new(spec.dataspace.rank()));
        let mut at = at;
        for (start, count) in &entry.blocks {
            let len = if filter == 0 { bytes(count).unwrap_or(0) } else { data_len };
            let change = EntryChange::Block { start: start.clone(), count: count.clone() };
            let head = EntryHead { batch: 0, file: 0, dataset, change, filter, data_len: len, data_crc: 0 };
            let at_position = LogPosition::new(0, at.min(LogPosition::MAX_LOG_BYTES - 1));
            index.push_without_checksum(&TableRow { head, order: 0, at: at_position });
            at += len;
        }
        Ok(())
    }
}
