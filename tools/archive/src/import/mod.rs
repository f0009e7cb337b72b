//! From a tar archive to a file of HDF5.

mod links_before;
mod object_placer;
mod objects;
mod options;
mod resume;
mod shredder;
mod trial;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5live::archive::layout::{ARCHIVE, ArchiveRow, LAYOUT_ATTRIBUTE, TABLE_GROUP};
use h5live::{File, LibVer, Options};

use self::object_placer::PathError;
pub use self::object_placer::{resolve_symlink_target, split_path as object_names, unusable_path_reason};
use self::objects::DatasetPerFileWriter;
pub use self::objects::hex;
pub use self::options::{
    ContentsFilter, ImportCollisionPolicy, ImportOptions, MAX_COMPACT_BYTES, TarLayout, UnknownName,
};
pub use self::shredder::SampleIndex;
use self::shredder::ShredderWriter;
pub use self::trial::choose_filter;
use crate::contents::EntryContents;
use crate::count_with_examples::CountWithExamples;
use crate::entry::TarEntry;
use crate::error::{Error, InvalidFileReason, Result, TarFault};
use crate::scanner::TarScanner;
use crate::source::TarSource;
use crate::tables::{CommittedCounts, ImportState, ImportTablesWriter};

/// The datasets of a layout.
#[derive(Debug)]
enum LayoutWriter {
    Shredder(Box<ShredderWriter>),
    Objects(Box<DatasetPerFileWriter>),
}

/// Imports archives into a file.
#[derive(Debug)]
pub struct Importer {
    file: File,
    options: ImportOptions,
    tables: ImportTablesWriter,
    contents: LayoutWriter,
    /// What the file had when it was opened.
    committed: CommittedCounts,
}

/// How far an import is.
#[derive(Debug, Clone, Copy)]
pub struct ImportProgress {
    /// Entries of all archives.
    pub entries: u64,
    /// Bytes that were read of the archive's file.
    pub bytes_read: u64,
}

/// What an import has done.
#[derive(Debug)]
pub struct ImportReport {
    /// Entries of this archive.
    pub entries: u64,
    /// Files with contents in all archives of the file.
    pub samples: u64,
    /// Bytes of their contents.
    pub content_bytes: u64,
    /// Why the rest of the archive is missing ([`ImportOptions::salvage`]).
    pub fault: Option<Error>,
    /// Where another archive begins behind the end of this one, whose entries were not imported (byte).
    pub next_archive: Option<u64>,
    /// Entries of this archive that have no object under their path ([`ImportOptions::on_collision`]).
    pub moved: CountWithExamples,
}

/// What was taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollbackReport {
    /// Entries that were dropped.
    pub entries: u64,
    /// Archives that the file has.
    pub archives: u64,
    /// Links that were removed, of the layouts with objects: all that were made since the import began.
    pub links: CountWithExamples,
}

/// Options for a new file: of the versions that the original programs wrote, which HDF5 1.8 can read.
pub fn with_libver_v18(options: Options) -> Options {
    options.libver(LibVer::V18)
}

/// The name of a file until its tables are there.
fn unfinished_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.importing", std::process::id()));
    path.with_file_name(name)
}

impl Importer {
    /// Makes a new file at a path, in place of one that is there, and opens it so that others can follow. The file appears
    /// with its tables complete, so that an import that is killed can be continued from the first moment.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Io`].
    pub fn create_file_for_swmr(path: &Path, open_options: Options, options: ImportOptions) -> Result<Self> {
        let unfinished = unfinished_path(path);
        let make = || -> Result<()> {
            let file = with_libver_v18(open_options.clone()).create().open(&*unfinished)?;
            drop(Importer::create(&file, options)?);
            file.close()?;
            std::fs::rename(&unfinished, path).map_err(Error::io(path))
        };
        make().inspect_err(|_| drop(std::fs::remove_file(&unfinished)))?;
        let file = open_options.write().open(path)?;
        file.start_swmr()?;
        Importer::open(&file, options)
    }

    /// Makes the datasets of an import in an empty file.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn create(file: &File, options: ImportOptions) -> Result<Self> {
        if options.filter.is_some() && options.layout != TarLayout::Shredder {
            return Err(Error::invalid_file(file, InvalidFileReason::NotCompressed(options.layout.name())));
        }
        let contents = match options.layout {
            TarLayout::Shredder => {
                LayoutWriter::Shredder(Box::new(ShredderWriter::create(file, options.sentinel, options.filter)?))
            }
            TarLayout::Compactor | TarLayout::Digest => {
                // The group of the tables comes first.
                file.create_group(TABLE_GROUP)?;
                LayoutWriter::Objects(Box::new(DatasetPerFileWriter::create(file, options)?))
            }
        };
        let tables = ImportTablesWriter::create(file, options.layout.name(), options.digest)?;
        file.flush()?;
        Ok(Importer { file: file.clone(), options, tables, contents, committed: CommittedCounts::default() })
    }

    /// Opens a file of an earlier import, to add to it. Its layout and digests stay what they are.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] if the file is none.
    pub fn open(file: &File, options: ImportOptions) -> Result<Self> {
        let layout = import_layout_kind(file)?;
        let (tables, committed) = ImportTablesWriter::open_existing(file)?;
        let options = ImportOptions { layout, digest: tables.algorithm, ..options };
        let contents = match layout {
            TarLayout::Shredder => LayoutWriter::Shredder(Box::new(ShredderWriter::open(file)?)),
            _ => LayoutWriter::Objects(Box::new(DatasetPerFileWriter::open(file, options)?)),
        };
        Ok(Importer { file: file.clone(), options, tables, contents, committed })
    }

    /// Imports an archive behind what the file has.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] if an import into the file was interrupted; [`Error::Archive`], [`Error::File`]. What came before
    /// the fault is in the file then.
    pub fn import(self, source: TarSource, progress: &mut dyn FnMut(ImportProgress)) -> Result<ImportReport> {
        if has_unfinished_import(&self.file)? && self.committed.entries > 0 {
            return Err(Error::invalid_file(&self.file, InvalidFileReason::Interrupted));
        }
        if let LayoutWriter::Objects(_) = &self.contents {
            links_before::save_links_before_import(&self.file)?;
        }
        self.tables.set_state(ImportState::Entries)?;
        let scanner = TarScanner::new(source.input, &source.name).ignore_zeros(self.options.ignores_zeros);
        let (first, header_start) = self.tables.next_archive_start();
        self.run(scanner, &source.name, &source.bytes_read, (first, header_start), progress)
    }

    /// Continues an import of this archive that was interrupted.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] if none was; [`TarFault::OtherArchive`] if it was another archive; as [`Importer::import`].
    pub fn resume(mut self, source: TarSource, progress: &mut dyn FnMut(ImportProgress)) -> Result<ImportReport> {
        match ImportState::of(&self.file)? {
            ImportState::Done => return Err(Error::invalid_file(&self.file, InvalidFileReason::NothingToResume)),
            ImportState::Entries => {}
            ImportState::Archive => self.tables.undo_archive_row()?,
        }
        let mut scanner = TarScanner::new(source.input, &source.name).ignore_zeros(self.options.ignores_zeros);
        let (start, header_end) = resume::skip_and_verify_committed(&self.file, &mut scanner, self.committed.entries)?;
        self.tables.truncate_to_entries(header_end)?;
        match &mut self.contents {
            LayoutWriter::Shredder(shredder) => shredder.truncate(&self.committed)?,
            LayoutWriter::Objects(objects) => {
                objects.truncate_references(self.committed.samples)?;
                objects.set_committed(resume::committed_paths(&self.file)?)?;
            }
        }
        self.run(scanner, &source.name, &source.bytes_read, start, progress)
    }

    /// Takes back the import that did not end. The archives that were imported before it stay as they are.
    ///
    /// # Errors
    /// [`Error::InvalidFile`] if none was interrupted; [`Error::File`].
    pub fn roll_back(mut self) -> Result<RollbackReport> {
        match ImportState::of(&self.file)? {
            ImportState::Done => return Err(Error::invalid_file(&self.file, InvalidFileReason::NothingToResume)),
            ImportState::Entries => {}
            ImportState::Archive => self.tables.undo_archive_row()?,
        }
        let rows: Vec<ArchiveRow> = self.file.dataset(ARCHIVE)?.read()?;
        let archives = rows.len() as u64;
        let (kept, header_end) =
            rows.last().map_or((0, 0), |row| (row.first_entry.saturating_add(row.entries), row.header_end));
        if kept > self.committed.entries {
            return Err(Error::invalid_file(
                &self.file,
                InvalidFileReason::Tables("an archive has more entries than there are"),
            ));
        }
        let committed = self.tables.truncate_entries(kept)?;
        let links = match &mut self.contents {
            LayoutWriter::Shredder(shredder) => {
                shredder.truncate(&committed)?;
                shredder.commit()?;
                CountWithExamples::default()
            }
            LayoutWriter::Objects(objects) => {
                objects.truncate_references(committed.samples)?;
                objects.commit()?;
                links_before::remove_new_links(&self.file, archives)?
            }
        };
        self.tables.truncate_to_entries(header_end)?;
        self.tables.write_index_and_finish()?;
        links_before::delete_saved_links(&self.file)?;
        self.file.flush()?;
        Ok(RollbackReport { entries: self.committed.entries - kept, archives, links })
    }

    /// Imports the rest of an archive. `start`: its first entry, and where its records begin.
    fn run<R: Read>(
        mut self,
        mut scanner: TarScanner<R>,
        name: &str,
        bytes_read: &Arc<AtomicU64>,
        (first_entry, header_start): (u64, u64),
        progress: &mut dyn FnMut(ImportProgress),
    ) -> Result<ImportReport> {
        let mut uncommitted = 0;
        let fault = loop {
            match self.import_entry(&mut scanner) {
                Ok(Some(bytes)) => uncommitted += bytes,
                Ok(None) => break None,
                Err(error @ Error::Archive { .. }) if self.options.salvage => break Some(error),
                Err(error) => {
                    // What is complete stays, and the import can be continued.
                    let _ = self.commit();
                    return Err(error);
                }
            }
            if uncommitted >= self.options.commit_bytes {
                self.commit()?;
                uncommitted = 0;
            }
            progress(ImportProgress { entries: self.tables.entries(), bytes_read: bytes_read.load(Ordering::Relaxed) });
        };
        self.commit()?;
        if fault.is_some()
            && let LayoutWriter::Shredder(shredder) = &mut self.contents
        {
            shredder.drop_partial(self.tables.content_bytes())?;
        }
        let (entries, header_end) = self.tables.next_archive_start();
        let entries = entries - first_entry;
        // An import that dies behind the row would else be taken for one of a second archive.
        if header_end > header_start {
            self.tables.set_state(ImportState::Archive)?;
        }
        self.tables.push_archive(ArchiveRow {
            first_entry,
            entries,
            header_start,
            header_end,
            name: name.to_owned(),
        })?;
        self.tables.write_index_and_finish()?;
        links_before::delete_saved_links(&self.file)?;
        self.file.flush()?;
        let (samples, content_bytes) = (self.tables.samples(), self.tables.content_bytes());
        let moved = match &self.contents {
            LayoutWriter::Objects(objects) => objects.entries_without_object().clone(),
            LayoutWriter::Shredder(_) => CountWithExamples::default(),
        };
        Ok(ImportReport { entries, samples, content_bytes, fault, next_archive: scanner.next_archive(), moved })
    }

    /// Imports the next entry. Returns the bytes of its contents; `None` at the end of the archive.
    fn import_entry<R: Read>(&mut self, scanner: &mut TarScanner<R>) -> Result<Option<u64>> {
        let Some(entry) = scanner.next_entry(&mut self.tables)? else { return Ok(None) };
        if !entry.has_file_contents() {
            if let LayoutWriter::Objects(objects) = &mut self.contents {
                objects.add_entry_without_contents(&entry).map_err(|error| path_error(scanner, error))?;
            }
            self.tables.push(&entry, None)?;
            return Ok(Some(0));
        }
        let bytes = self.tables.content_bytes().saturating_add(entry.size);
        if bytes > self.options.max_bytes {
            return Err(scanner.error(TarFault::TooLarge { bytes, limit: self.options.max_bytes }));
        }
        let digest = self.store(scanner, &entry)?;
        self.tables.push(&entry, Some(&digest))?;
        Ok(Some(entry.size))
    }

    fn store<R: Read>(&mut self, scanner: &mut TarScanner<R>, entry: &TarEntry) -> Result<Vec<u8>> {
        let hasher = self.tables.algorithm.hasher();
        let mut contents = EntryContents::new(scanner, entry, hasher);
        match &mut self.contents {
            LayoutWriter::Shredder(shredder) => {
                shredder.add_file(entry, &mut contents)?;
                Ok(contents.digest())
            }
            LayoutWriter::Objects(objects) => {
                let stored = objects.add_file(entry, self.tables.samples(), contents);
                stored.map_err(|error| path_error(scanner, error))
            }
        }
    }

    /// Publishes what is complete: contents first, and the rows of entries last.
    fn commit(&mut self) -> Result<()> {
        match &mut self.contents {
            LayoutWriter::Shredder(shredder) => shredder.commit()?,
            LayoutWriter::Objects(objects) => objects.commit()?,
        }
        self.tables.commit()
    }
}

fn path_error<R: Read>(scanner: &TarScanner<R>, error: PathError) -> Error {
    match error {
        PathError::Failed(error) => error,
        PathError::Fault(fault) => scanner.error(fault),
    }
}

/// The layout of a file.
///
/// # Errors
/// [`Error::InvalidFile`] if it has no tables of an import.
pub fn import_layout_kind(file: &File) -> Result<TarLayout> {
    let group = match file.group(TABLE_GROUP) {
        Err(error) if error.is_not_found() => return Err(Error::invalid_file(file, InvalidFileReason::NoTables)),
        group => group?,
    };
    let name: String = group.attribute(LAYOUT_ATTRIBUTE)?.read_scalar()?;
    name.parse().map_err(|_| Error::invalid_file(file, InvalidFileReason::Tables("the layout is unknown")))
}

/// Whether an import into a file is under way, or was interrupted.
///
/// # Errors
/// [`Error::File`].
pub fn has_unfinished_import(file: &File) -> Result<bool> {
    Ok(ImportState::of(file)? != ImportState::Done)
}
