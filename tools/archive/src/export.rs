//! From a file of HDF5 back to the archive: the same bytes.

use std::io::{self, Write};

use h5live::archive::layout::{ArchiveRow, EntryRow, NO_SAMPLE};

use crate::error::{Error, Result, UnsuitableFileReason};
use crate::reader::{CONTENT_PIECE_BYTES, ImportedTar};
use crate::sparse::SparseSegment;

/// Writes an archive as it was before its import, without compression.
///
/// # Errors
/// [`Error::UnsuitableFile`] if the tables contradict each other, or no import ended; [`Error::Io`] of `out`.
pub fn export(tar: &ImportedTar, archive: &ArchiveRow, out: &mut dyn Write) -> Result<()> {
    let write = |out: &mut dyn Write, bytes: &[u8]| out.write_all(bytes).map_err(Error::io("the archive"));
    let wrong = || tar.inconsistent_tables_error("an archive has other entries than there are");
    let (first, last) = (archive.first_entry, archive.first_entry.checked_add(archive.entries).ok_or_else(wrong)?);
    let rows = usize::try_from(first).ok().zip(usize::try_from(last).ok());
    let rows = rows.and_then(|(first, last)| tar.rows().get(first..last)).ok_or_else(wrong)?;
    // Records are read for many entries at once.
    let mut records = RecordReader { tar, buffer: Vec::new(), start: archive.header_start, end: archive.header_end };
    let mut at = archive.header_start;
    for (number, row) in (first..).zip(rows) {
        let end = at.checked_add(row.header_length).filter(|end| *end <= archive.header_end);
        let end = end.filter(|_| row.header_offset == at);
        let end = end.ok_or_else(|| tar.inconsistent_tables_error("the records of an entry are not in order"))?;
        records.copy(at..end, &mut |bytes| write(out, bytes))?;
        if row.sample != NO_SAMPLE {
            write_contents(tar, number, row, &mut |bytes| write(out, bytes))?;
        }
        at = end;
    }
    // The end of the archive.
    records.copy(at..archive.header_end, &mut |bytes| write(out, bytes))?;
    out.flush().map_err(|error: io::Error| Error::io("the archive")(error))
}

/// Reads records in large pieces.
struct RecordReader<'a> {
    tar: &'a ImportedTar,
    buffer: Vec<u8>,
    /// Where the buffer begins.
    start: u64,
    /// Where the records of the archive end.
    end: u64,
}

impl RecordReader<'_> {
    fn copy(&mut self, range: std::ops::Range<u64>, write: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            let read_to = self.start + self.buffer.len() as u64;
            if at >= read_to || at < self.start {
                let end = self.end.max(range.end).min(at.saturating_add(CONTENT_PIECE_BYTES));
                self.buffer = self.tar.read_headers_and_padding(at..end)?;
                self.start = at;
                if self.buffer.is_empty() {
                    return Err(self.tar.inconsistent_tables_error("records of an entry are missing"));
                }
            }
            let part = &self.buffer[(at - self.start) as usize..];
            let part = &part[..part.len().min((range.end - at) as usize)];
            write(part)?;
            at += part.len() as u64;
        }
        Ok(())
    }
}

/// The contents of an entry as its archive has them: without the holes of a sparse file.
fn write_contents(
    tar: &ImportedTar,
    entry: u64,
    row: &EntryRow,
    write: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let Some(segments) = tar.sparse_segments(entry) else {
        return tar.for_each_piece_then_verify(row, &mut |_, piece| write(piece));
    };
    let mut ranges = Vec::new();
    for SparseSegment { offset, length } in segments {
        let end = offset.checked_add(length).filter(|end| *end <= row.size);
        let end = end.ok_or_else(|| tar.inconsistent_tables_error("a segment of a sparse file lies beyond it"))?;
        if ranges.last().is_some_and(|last: &std::ops::Range<u64>| offset < last.end) {
            return Err(tar.inconsistent_tables_error("the segments of a sparse file are not in order"));
        }
        ranges.push(offset..end);
    }
    // Of the holes, too, a digest was made.
    tar.for_each_piece_then_verify(row, &mut |at, piece| {
        let end = at + piece.len() as u64;
        let first = ranges.partition_point(|range| range.end <= at);
        for range in ranges[first..].iter().take_while(|range| range.start < end) {
            let part = range.start.max(at) - at..range.end.min(end) - at;
            write(&piece[part.start as usize..part.end as usize])?;
        }
        Ok(())
    })
}

/// The archive that is meant: the only one, or the one of a number.
///
/// # Errors
/// [`Error::UnsuitableFile`].
pub fn choose_archive(tar: &ImportedTar, number: Option<u64>) -> Result<&ArchiveRow> {
    let archives = tar.archives();
    if tar.has_only_names_and_contents() {
        return Err(Error::unsuitable_file(tar.file(), UnsuitableFileReason::NoTables));
    }
    if archives.is_empty() {
        return Err(Error::unsuitable_file(tar.file(), UnsuitableFileReason::UnfinishedImport));
    }
    match number {
        None if archives.len() > 1 => Err(Error::unsuitable_file(
            tar.file(),
            UnsuitableFileReason::NeedsArchiveNumberBelow(archives.len() as u64),
        )),
        number => {
            let found = usize::try_from(number.unwrap_or(0)).ok().and_then(|number| archives.get(number));
            found.ok_or_else(|| {
                Error::unsuitable_file(tar.file(), UnsuitableFileReason::NeedsArchiveNumberBelow(archives.len() as u64))
            })
        }
    }
}
