//! From a tar archive to a file of HDF5.

mod entry_writer;
mod links_before;
mod object_placer;
mod objects;
mod options;
mod report;
mod resume;
mod run;
mod shredder;
mod trial;

use std::io::Read;
use std::path::{Path, PathBuf};

use h5live::archive::layout::{ARCHIVE_TABLE, ArchiveRow, LAYOUT_ATTRIBUTE, TABLE_GROUP};
use h5live::{File, LibVer, Options};

use self::entry_writer::BackgroundEntryWriter;
pub use self::object_placer::{resolve_symlink_target, split_path as object_names, unusable_path_reason};
use self::objects::EntryObjectWriter;
pub use self::objects::hex;
pub use self::options::{
    ContentsFilter, ImportCollisionPolicy, ImportOptions, MAX_COMPACT_BYTES, NoneOfAllowedNames, TarLayout,
};
pub use self::report::{ImportProgress, ImportReport, RollbackReport};
use self::run::ImportRun;
pub use self::shredder::SampleIndexWriter;
use self::shredder::ShredderWriter;
pub use self::trial::choose_zstd_if_compressible;
use crate::count_with_examples::CountWithExamples;
use crate::error::{Error, Result, UnsuitableFileReason};
use crate::scanner::TarScanner;
use crate::source::TarSource;
use crate::tables::{CommittedCounts, ImportState, ImportTablesWriter};

/// Imports archives into a file.
#[derive(Debug)]
pub struct Importer {
    file: File,
    options: ImportOptions,
    tables: ImportTablesWriter,
    datasets: LayoutDatasets,
    /// What the file had when it was opened.
    committed: CommittedCounts,
}

/// The datasets of a layout: all contents in one, or one for each.
#[derive(Debug)]
enum LayoutDatasets {
    Shredder(Box<ShredderWriter>),
    PerFile(Box<EntryObjectWriter>),
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
            return Err(Error::unsuitable_file(file, UnsuitableFileReason::LayoutWithoutFilter(options.layout.name())));
        }
        let datasets = match options.layout {
            TarLayout::Shredder => LayoutDatasets::Shredder(Box::new(ShredderWriter::create(
                file,
                options.offsets_have_sentinel,
                options.filter,
            )?)),
            TarLayout::Compactor | TarLayout::Digest => {
                // The group of the tables comes first.
                file.create_group(TABLE_GROUP)?;
                LayoutDatasets::PerFile(Box::new(EntryObjectWriter::create(file, options)?))
            }
        };
        let tables = ImportTablesWriter::create(file, options.layout.name(), options.digest)?;
        file.flush()?;
        Ok(Importer { file: file.clone(), options, tables, datasets, committed: CommittedCounts::default() })
    }

    /// Opens a file of an earlier import, to add to it. Its layout and digests stay what they are.
    ///
    /// # Errors
    /// [`Error::UnsuitableFile`] if the file is none.
    pub fn open(file: &File, options: ImportOptions) -> Result<Self> {
        let layout = import_layout_kind(file)?;
        let (tables, committed) = ImportTablesWriter::open_existing(file)?;
        let options = ImportOptions { layout, digest: tables.algorithm, ..options };
        let datasets = match layout {
            TarLayout::Shredder => LayoutDatasets::Shredder(Box::new(ShredderWriter::open(file)?)),
            _ => LayoutDatasets::PerFile(Box::new(EntryObjectWriter::open(file, options)?)),
        };
        Ok(Importer { file: file.clone(), options, tables, datasets, committed })
    }

    /// Imports an archive behind what the file has.
    ///
    /// # Errors
    /// [`Error::UnsuitableFile`] if an import into the file was interrupted; [`Error::Archive`], [`Error::File`]. What came before
    /// the fault is in the file then.
    pub fn import(self, source: TarSource, progress: &mut dyn FnMut(ImportProgress)) -> Result<ImportReport> {
        if has_unfinished_import(&self.file)? && self.committed.entries > 0 {
            return Err(Error::unsuitable_file(&self.file, UnsuitableFileReason::UnfinishedImport));
        }
        if let LayoutDatasets::PerFile(_) = &self.datasets {
            links_before::save_link_hashes_before_import(&self.file)?;
        }
        self.tables.write_state_and_flush(ImportState::AddingEntries)?;
        let scanner = TarScanner::new(source.decompressed, &source.name).ignore_zeros(self.options.ignores_zeros);
        let start = self.tables.next_archive_start();
        self.into_run(scanner, &source.name).run(&source.file_bytes_read, start, progress)
    }

    /// Continues an import of this archive that was interrupted.
    ///
    /// # Errors
    /// [`Error::UnsuitableFile`] if none was; [`ResumedArchiveDiffersAtEntry`](crate::TarFault::ResumedArchiveDiffersAtEntry) if it was another archive; as [`Importer::import`].
    pub fn resume(mut self, source: TarSource, progress: &mut dyn FnMut(ImportProgress)) -> Result<ImportReport> {
        match ImportState::of(&self.file)? {
            ImportState::Done => {
                return Err(Error::unsuitable_file(&self.file, UnsuitableFileReason::NoUnfinishedImport));
            }
            ImportState::AddingEntries => {}
            ImportState::AddingArchiveRow => self.tables.undo_adding_archive_row()?,
        }
        let mut scanner = TarScanner::new(source.decompressed, &source.name).ignore_zeros(self.options.ignores_zeros);
        let (start, header_end) =
            resume::skip_committed_and_compare_headers(&self.file, &mut scanner, self.committed.entries)?;
        self.tables.truncate_tables_to_entry_rows(header_end)?;
        match &mut self.datasets {
            LayoutDatasets::Shredder(shredder) => shredder.truncate(&self.committed)?,
            LayoutDatasets::PerFile(objects) => {
                objects.truncate_references(self.committed.samples)?;
                objects.allow_replacing_uncommitted(resume::committed_paths(&self.file)?)?;
            }
        }
        self.into_run(scanner, &source.name).run(&source.file_bytes_read, start, progress)
    }

    /// Takes back the import that did not end. The archives that were imported before it stay as they are.
    ///
    /// # Errors
    /// [`Error::UnsuitableFile`] if none was interrupted; [`Error::File`].
    pub fn roll_back(mut self) -> Result<RollbackReport> {
        match ImportState::of(&self.file)? {
            ImportState::Done => {
                return Err(Error::unsuitable_file(&self.file, UnsuitableFileReason::NoUnfinishedImport));
            }
            ImportState::AddingEntries => {}
            ImportState::AddingArchiveRow => self.tables.undo_adding_archive_row()?,
        }
        let rows: Vec<ArchiveRow> = self.file.dataset(ARCHIVE_TABLE)?.read()?;
        let archives = rows.len() as u64;
        let (kept, header_end) =
            rows.last().map_or((0, 0), |row| (row.first_entry.saturating_add(row.entries), row.header_end));
        if kept > self.committed.entries {
            return Err(Error::unsuitable_file(
                &self.file,
                UnsuitableFileReason::InconsistentTables("an archive has more entries than there are"),
            ));
        }
        let committed = self.tables.truncate_entry_rows(kept)?;
        let links = match &mut self.datasets {
            LayoutDatasets::Shredder(shredder) => {
                shredder.truncate(&committed)?;
                shredder.commit()?;
                CountWithExamples::default()
            }
            LayoutDatasets::PerFile(objects) => {
                objects.truncate_references(committed.samples)?;
                objects.commit()?;
                links_before::remove_new_links(&self.file, archives)?
            }
        };
        self.tables.truncate_tables_to_entry_rows(header_end)?;
        self.tables.write_name_index_and_finish()?;
        links_before::delete_saved_link_hashes(&self.file)?;
        self.file.flush()?;
        Ok(RollbackReport {
            removed_entries: self.committed.entries - kept,
            kept_archives: archives,
            removed_links: links,
        })
    }

    fn into_run<R: Read>(self, scanner: TarScanner<R>, archive: &str) -> ImportRun<R> {
        let (shredder, objects) = match self.datasets {
            LayoutDatasets::Shredder(shredder) => (Some(shredder), None),
            LayoutDatasets::PerFile(objects) => (None, Some(objects)),
        };
        ImportRun {
            file: self.file,
            options: self.options,
            scanner,
            archive_name: archive.to_owned(),
            shredder,
            entries_in_all_archives: self.tables.entry_count(),
            content_bytes_in_all_archives: self.tables.content_bytes(),
            entry_writer: BackgroundEntryWriter::new(self.tables, objects, archive),
        }
    }
}

/// The layout of a file.
///
/// # Errors
/// [`Error::UnsuitableFile`] if it has no tables of an import.
pub fn import_layout_kind(file: &File) -> Result<TarLayout> {
    let group = match file.group(TABLE_GROUP) {
        Err(error) if error.is_not_found_in_file() => {
            return Err(Error::unsuitable_file(file, UnsuitableFileReason::NoTables));
        }
        group => group?,
    };
    let name: String = group.attribute(LAYOUT_ATTRIBUTE)?.read_scalar()?;
    name.parse()
        .map_err(|_| Error::unsuitable_file(file, UnsuitableFileReason::InconsistentTables("the layout is unknown")))
}

/// Whether an import into a file is under way, or was interrupted.
///
/// # Errors
/// [`Error::File`].
pub fn has_unfinished_import(file: &File) -> Result<bool> {
    Ok(ImportState::of(file)? != ImportState::Done)
}
