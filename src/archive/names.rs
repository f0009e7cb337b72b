//! Names of samples, and samples of names.

use std::ops::Range;

use super::contents::find_dataset;
use super::fault::ArchiveFault;
use super::layout::{
    ENTRY_TABLE, EntryRow, INDEXED_ENTRY_COUNT_ATTRIBUTE, NAME_INDEX, NO_SAMPLE, PATH_AND_LINK_TARGET, SAMPLE_NAME,
    SAMPLE_NAME_OFFSET,
};
use super::name_index::{NameIndex, normalized_path};
use crate::{Dataset, File, Result};

/// Rows of a table that are read at once.
const ROWS_AT_ONCE: u64 = 1 << 16;

/// Bytes of names that are read at once.
const BYTES_AT_ONCE: u64 = 16 << 20;

/// How many hard links may lead to each other.
const MAX_HARD_LINKS: usize = 16;

/// What is known of an entry.
#[derive(Debug, Clone, Copy)]
struct NamedEntry {
    /// Where its path begins, and its length (bytes).
    path: u64,
    path_length: u32,
    link_length: u32,
    sample: u64,
    kind: u8,
}

/// The names of all entries, and a table to find them.
#[derive(Debug)]
pub(super) struct Names {
    paths: Vec<u8>,
    entries: Vec<NamedEntry>,
    /// The entry of each sample.
    of_samples: Vec<u64>,
    index: NameIndex,
}

impl Names {
    pub(super) fn read(file: &File, samples: u64) -> Result<Names> {
        let (paths, entries) = match (find_dataset(file, ENTRY_TABLE)?, find_dataset(file, PATH_AND_LINK_TARGET)?) {
            (Some(rows), Some(paths)) => entries_of_table(&rows, &paths)?,
            _ => entries_of_names(file, samples)?,
        };
        let mut of_samples = vec![NO_SAMPLE; usize::try_from(samples).unwrap_or(0)];
        for (number, entry) in (0..).zip(&entries) {
            if let Some(place) = usize::try_from(entry.sample).ok().and_then(|sample| of_samples.get_mut(sample)) {
                *place = number;
            }
        }
        let mut names = Names { paths, entries, of_samples, index: NameIndex::from_slots(Vec::new()) };
        names.index = match names.stored_index(file)? {
            Some(index) => index,
            None => {
                let index = NameIndex::build(names.entries.len() as u64, |entry| names.of_entry(entry));
                index.ok_or_else(|| {
                    file.error(None, ArchiveFault::InconsistentTables("more entries than can be found by name"))
                })?
            }
        };
        Ok(names)
    }

    /// The table that the file has, if it was made for these entries.
    fn stored_index(&self, file: &File) -> Result<Option<NameIndex>> {
        let Some(found) = find_dataset(file, NAME_INDEX)? else { return Ok(None) };
        let entries: u64 = found.attribute(INDEXED_ENTRY_COUNT_ATTRIBUTE)?.read_scalar()?;
        if entries != self.entries.len() as u64 {
            return Ok(None);
        }
        Ok(Some(NameIndex::from_slots(found.read()?)))
    }

    fn bytes(&self, range: Range<u64>) -> &[u8] {
        let range = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        range.and_then(|(start, end)| self.paths.get(start..end)).unwrap_or_default()
    }

    /// The path of an entry; nothing if there is no such entry.
    fn of_entry(&self, entry: u64) -> &[u8] {
        let entry = usize::try_from(entry).ok().and_then(|entry| self.entries.get(entry));
        entry.map_or(b"", |entry| self.bytes(entry.path..entry.path + u64::from(entry.path_length)))
    }

    pub(super) fn of_sample(&self, sample: u64) -> Result<&[u8], ArchiveFault> {
        let entry = usize::try_from(sample).ok().and_then(|sample| self.of_samples.get(sample));
        let samples = self.of_samples.len() as u64;
        match entry.ok_or(ArchiveFault::SampleOutOfRange { sample, samples })? {
            &NO_SAMPLE => Err(ArchiveFault::InconsistentTables("a sample has no entry")),
            entry => Ok(self.of_entry(*entry)),
        }
    }

    /// The sample with a path.
    pub(super) fn find(&self, name: &[u8]) -> Option<u64> {
        self.find_file(name).flatten()
    }

    /// The sample of the file with a path, which a hard link may lead to: `Some(None)` for a file without contents.
    pub(super) fn find_file(&self, name: &[u8]) -> Option<Option<u64>> {
        let mut name = name;
        for _ in 0..MAX_HARD_LINKS {
            let key = normalized_path(name);
            let found = self.index.find_entry(key, |entry| {
                usize::try_from(entry).is_ok_and(|at| at < self.entries.len())
                    && normalized_path(self.of_entry(entry)) == key
            })?;
            let entry = self.entries.get(usize::try_from(found).ok()?)?;
            match (entry.sample, entry.kind) {
                (NO_SAMPLE, b'1') => {
                    let start = entry.path + u64::from(entry.path_length) + 1;
                    name = self.bytes(start..start + u64::from(entry.link_length));
                }
                (NO_SAMPLE, b'0' | 0 | b'7' | b'S') if !self.of_entry(found).ends_with(b"/") => return Some(None),
                (NO_SAMPLE, _) => return None,
                (sample, _) => return Some(Some(sample)),
            }
        }
        None
    }
}

/// All bytes of a dataset that may be larger than what is allocated for one read.
fn read_bytes(dataset: &Dataset) -> Result<Vec<u8>> {
    let len = dataset.shape()?.first().copied().unwrap_or(0);
    let mut bytes = Vec::new();
    let mut at = 0;
    while at < len {
        let end = len.min(at + BYTES_AT_ONCE);
        bytes.extend_from_slice(&dataset.read_slice::<u8>(at..end)?);
        at = end;
    }
    Ok(bytes)
}

/// The entries that the table of an import has.
fn entries_of_table(rows: &Dataset, paths: &Dataset) -> Result<(Vec<u8>, Vec<NamedEntry>)> {
    let count = rows.shape()?.first().copied().unwrap_or(0);
    let mut entries = Vec::new();
    let mut at = 0;
    while at < count {
        let end = count.min(at + ROWS_AT_ONCE);
        entries.extend(rows.read_slice::<EntryRow>(at..end)?.iter().map(|row| NamedEntry {
            path: row.path_offset,
            path_length: row.path_length,
            link_length: row.link_length,
            sample: row.sample,
            kind: row.kind,
        }));
        at = end;
    }
    // An import publishes the paths before the rows.
    paths.refresh()?;
    let paths_read = read_bytes(paths)?;
    let len = paths_read.len() as u64;
    let is_inside = |entry: &NamedEntry| {
        let end = entry.path.checked_add(u64::from(entry.path_length) + u64::from(entry.link_length) + 1);
        end.is_some_and(|end| end <= len)
    };
    if !entries.iter().all(is_inside) {
        return Err(paths
            .file()
            .error(Some(rows.path()), ArchiveFault::InconsistentTables("a path lies beyond the paths")));
    }
    Ok((paths_read, entries))
}

/// The entries that the names of a shredded archive tell: all of them have contents.
fn entries_of_names(file: &File, samples: u64) -> Result<(Vec<u8>, Vec<NamedEntry>)> {
    let (Some(names), Some(offsets)) = (find_dataset(file, SAMPLE_NAME)?, find_dataset(file, SAMPLE_NAME_OFFSET)?)
    else {
        return Ok((Vec::new(), Vec::new()));
    };
    let paths = read_bytes(&names)?;
    let offsets: Vec<u64> = offsets.read()?;
    let mut entries = Vec::new();
    for (sample, start) in (0..samples).zip(&offsets) {
        let rest = usize::try_from(*start).ok().and_then(|start| paths.get(start..)).unwrap_or_default();
        let length = rest.iter().position(|byte| *byte == 0).and_then(|length| u32::try_from(length).ok());
        let Some(path_length) = length else {
            let fault = ArchiveFault::InconsistentTables("a name lies beyond the names");
            return Err(file.error(Some(SAMPLE_NAME_OFFSET), fault));
        };
        entries.push(NamedEntry { path: *start, path_length, link_length: 0, sample, kind: b'0' });
    }
    Ok((paths, entries))
}
