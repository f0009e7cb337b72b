//! An archive on its way into a file, from its first entry to its last. One thread reads, others write.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5live::File;
use h5live::archive::layout::ArchiveRow;

use super::entry_writer::{BackgroundEntryWriter, FileContents};
use super::links_before;
use super::object_placer::PlacementError;
use super::options::{ImportOptions, MAX_COMPACT_BYTES};
use super::report::{ImportProgress, ImportReport};
use super::shredder::ShredderWriter;
use crate::contents::EntryContents;
use crate::count_with_examples::CountWithExamples;
use crate::entry::TarEntry;
use crate::error::{Error, Result, TarFault};
use crate::scanner::TarScanner;
use crate::tables::{ArchiveStartInTables, ImportState};

/// An import that is under way.
pub struct ImportRun<R> {
    pub file: File,
    pub options: ImportOptions,
    pub scanner: TarScanner<R>,
    /// What errors call the archive.
    pub archive_name: String,
    /// The contents, in the layout `shredder`.
    pub shredder: Option<Box<ShredderWriter>>,
    /// Everything else.
    pub entry_writer: BackgroundEntryWriter,
    /// Entries that were read, of all archives, and bytes of contents of them.
    pub entries_in_all_archives: u64,
    pub content_bytes_in_all_archives: u64,
}

impl<R: Read> ImportRun<R> {
    /// Imports the rest of the archive. `start`: its first entry, and where its records begin.
    pub fn run(
        mut self,
        bytes_read: &Arc<AtomicU64>,
        start: ArchiveStartInTables,
        progress: &mut dyn FnMut(ImportProgress),
    ) -> Result<ImportReport> {
        let mut uncommitted = 0;
        let fault = loop {
            match self.read_entry() {
                Ok(Some(bytes)) => uncommitted += bytes,
                Ok(None) => break None,
                Err(error @ Error::Archive { .. }) if self.options.finishes_import_at_fault => break Some(error),
                Err(error) => return Err(self.end_with(error)),
            }
            if uncommitted >= self.options.commit_bytes {
                self.commit_later().map_err(|error| self.end_with(error))?;
                uncommitted = 0;
            }
            progress(ImportProgress {
                entries_so_far_all_archives: self.entries_in_all_archives,
                file_bytes_read: bytes_read.load(Ordering::Relaxed),
            });
        };
        self.commit()?;
        self.end_archive(start, fault)
    }

    /// What is complete stays, and the import can be continued. Returns the error.
    fn end_with(&mut self, error: Error) -> Error {
        // The first error says why the import ends.
        let _committed = self.commit();
        error
    }

    /// Adds the row of the archive, and ends the import.
    fn end_archive(mut self, start: ArchiveStartInTables, fault: Option<Error>) -> Result<ImportReport> {
        let writer = self.entry_writer.flush_to_writer()?;
        let tables = &mut writer.tables;
        if fault.is_some()
            && let Some(shredder) = &mut self.shredder
        {
            shredder.drop_partial_contents(tables.content_bytes())?;
        }
        let ArchiveStartInTables { first_entry, header_start } = start;
        let next = tables.next_archive_start();
        let (entries, header_end) = (next.first_entry - first_entry, next.header_start);
        // An import that dies behind the row would else be taken for one of a second archive.
        if header_end > header_start {
            tables.write_state_and_flush(ImportState::AddingArchiveRow)?;
        }
        tables.push_archive(ArchiveRow { first_entry, entries, header_start, header_end, name: self.archive_name })?;
        tables.write_name_index_and_finish()?;
        links_before::delete_saved_link_hashes(&self.file)?;
        self.file.flush()?;
        let (samples, content_bytes) = (tables.sample_count(), tables.content_bytes());
        let moved = writer.objects.as_ref().map(|objects| objects.files_denied_own_path().clone());
        let moved = moved.unwrap_or_else(CountWithExamples::default);
        Ok(ImportReport {
            entries_in_this_archive: entries,
            samples_in_all_archives: samples,
            content_bytes_in_all_archives: content_bytes,
            fault,
            unread_archive_offset: self.scanner.unread_archive_offset(),
            files_denied_own_path: moved,
        })
    }

    /// Reads the next entry, and sees to it that it is written. Returns the bytes of its contents; `None` at the end of the
    /// archive, when all is written.
    fn read_entry(&mut self) -> Result<Option<u64>> {
        let read = self.try_read_entry();
        if let Ok(Some(_)) = read {
            return read;
        }
        // What failed of earlier entries failed first.
        self.entry_writer.flush_to_writer()?;
        read
    }

    fn try_read_entry(&mut self) -> Result<Option<u64>> {
        let Some(entry) = self.scanner.next_entry(&mut self.entry_writer)? else { return Ok(None) };
        let (size, mut contents) = (entry.size, None);
        if entry.has_file_contents() {
            let bytes = self.content_bytes_in_all_archives.saturating_add(size);
            if bytes > self.options.max_total_content_bytes {
                return Err(self.scanner.error(TarFault::TotalContentLimitExceeded {
                    bytes,
                    limit: self.options.max_total_content_bytes,
                }));
            }
            contents = Some(self.read_contents(&entry)?);
            self.content_bytes_in_all_archives = bytes;
        }
        let is_file = contents.is_some();
        self.entry_writer.push(entry, contents, self.scanner.position())?;
        self.entries_in_all_archives += 1;
        Ok(Some(if is_file { size } else { 0 }))
    }

    fn read_contents(&mut self, entry: &TarEntry) -> Result<FileContents> {
        let mut contents = EntryContents::new(&mut self.scanner, entry, self.options.digest.hasher());
        if let Some(shredder) = &mut self.shredder {
            shredder.add_file(entry, &mut contents)?;
            return Ok(FileContents::StoredWithDigest(contents.into_digest_of_read()));
        }
        let bytes = contents.size();
        if bytes <= self.options.compact_limit.min(MAX_COMPACT_BYTES) {
            contents.read_all(self.entry_writer.reserve_contents(bytes as usize))?;
            return Ok(self.entry_writer.claim_reserved_contents(bytes as usize, contents.into_digest_of_read()));
        }
        match self.entry_writer.flush_to_writer()?.add_large_object_return_digest(entry, contents) {
            Ok(digest) => Ok(FileContents::StoredWithDigest(digest)),
            Err(PlacementError::Failed(error)) => Err(error),
            Err(PlacementError::PathFault(fault)) => Err(self.scanner.error(fault)),
        }
    }

    /// Publishes what is complete, as far as this thread writes it; the rest follows.
    fn commit_later(&mut self) -> Result<()> {
        if let Some(shredder) = &mut self.shredder {
            shredder.commit()?;
        }
        self.entry_writer.commit_in_background()
    }

    /// Publishes what is complete: contents first, and the rows of entries last.
    fn commit(&mut self) -> Result<()> {
        self.entry_writer.flush_to_writer()?;
        if let Some(shredder) = &mut self.shredder {
            shredder.commit()?;
        }
        self.entry_writer.flush_to_writer()?.commit()
    }
}
