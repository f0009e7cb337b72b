//! Where an import that was interrupted goes on.

use std::io::Read;

use h5live::archive::layout::{ARCHIVE_TABLE, ArchiveRow, ENTRY_TABLE, HEADERS_AND_PADDING, PATH_AND_LINK_TARGET};
use h5live::{Dataset, File};

use super::object_placer::KeptObjects;
use crate::error::{Error, Result, TarFault, UnsuitableFileReason};
use crate::scanner::{NonContentSink, TarScanner};
use crate::tables::{ArchiveStartInTables, for_each_row, read_bytes};

/// Bytes of stored records that are read at once.
const RECORDS_AT_ONCE: u64 = 256 << 10;

/// Compares the records of an archive with those that a file has.
struct StoredRecords {
    dataset: Dataset,
    /// The next record's place (bytes), and how many bytes there are.
    at: u64,
    len: u64,
    /// Records that were read, from `start` on.
    buffer: Vec<u8>,
    start: u64,
    is_other: bool,
}

impl StoredRecords {
    fn next(&mut self, limit: usize) -> Result<&[u8]> {
        let end = self.start + self.buffer.len() as u64;
        if self.at >= end {
            let end = self.len.min(self.at + RECORDS_AT_ONCE);
            self.buffer = if self.at < end { self.dataset.read_slice(self.at..end)? } else { Vec::new() };
            self.start = self.at;
        }
        let rest = &self.buffer[(self.at - self.start) as usize..];
        Ok(&rest[..rest.len().min(limit)])
    }
}

impl NonContentSink for StoredRecords {
    fn push_non_content(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() && !self.is_other {
            let stored = self.next(bytes.len())?;
            let len = stored.len();
            self.is_other = len == 0 || *stored != bytes[..len];
            self.at += len as u64;
            bytes = &bytes[len..];
        }
        Ok(())
    }
}

/// Passes over the entries of an archive that are in the file, and checks that they are the same. Returns where the
/// archive begins, and where the records of the last entry end.
///
/// # Errors
/// [`TarFault::ResumedArchiveDiffersAtEntry`], [`Error::File`].
pub fn skip_committed_and_compare_headers<R: Read>(
    file: &File,
    scanner: &mut TarScanner<R>,
    committed_entries_in_all_archives: u64,
) -> Result<(ArchiveStartInTables, u64)> {
    let archives: Vec<ArchiveRow> = file.dataset(ARCHIVE_TABLE)?.read()?;
    let start = archives.last().map_or(ArchiveStartInTables::default(), |row| ArchiveStartInTables {
        first_entry: row.first_entry.saturating_add(row.entries),
        header_start: row.header_end,
    });
    if start.first_entry > committed_entries_in_all_archives {
        return Err(Error::unsuitable_file(
            file,
            UnsuitableFileReason::InconsistentTables("an archive has more entries than there are"),
        ));
    }
    let dataset = file.dataset(HEADERS_AND_PADDING)?;
    let len = dataset.shape()?.first().copied().unwrap_or(0);
    let mut stored = StoredRecords {
        dataset,
        at: start.header_start,
        len,
        buffer: Vec::new(),
        start: start.header_start,
        is_other: false,
    };
    for entry in start.first_entry..committed_entries_in_all_archives {
        let found = scanner.next_entry(&mut stored)?;
        if found.is_none() || stored.is_other {
            return Err(scanner.error(TarFault::ResumedArchiveDiffersAtEntry(entry - start.first_entry)));
        }
    }
    Ok((start, stored.at))
}

/// The paths of all entries that are committed.
///
/// # Errors
/// [`Error::File`].
pub fn committed_paths(file: &File) -> Result<KeptObjects> {
    let bytes = read_bytes(&file.dataset(PATH_AND_LINK_TARGET)?)?;
    let mut committed = KeptObjects::default();
    for_each_row(&file.dataset(ENTRY_TABLE)?, |row| {
        let range = row.path_offset as usize..row.path_offset as usize + row.path_length as usize;
        bytes.get(range).into_iter().for_each(|path| committed.add_path(path));
        Ok(())
    })?;
    Ok(committed)
}
