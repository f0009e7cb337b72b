//! The file of a recording, which other processes may read.

use std::path::PathBuf;

use h5live::{File, Location, StoreErrorKind};
use h5live_log::local_multi_writer_files::has_multi_writer_files;
use h5live_recorder::{NoRowsDatasetOutcome, RecordSummary};

use crate::error::Result;
use crate::temp_output;

/// The file of a recording, open for appending.
#[derive(Debug)]
pub struct RecordedFile {
    file: File,
    location: Location,
    /// Whether it was not there before.
    is_new: bool,
}

/// What became of the output of a recording without rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoRowsOutcome {
    /// The file was there before, or somebody else has opened it.
    #[error("no rows were recorded; the file stays as it is")]
    FileKept,
    /// The file had been made for the recording.
    #[error("no rows were recorded; the new file, which would be empty, was removed")]
    FileRemoved,
    /// The dataset had been made for the recording.
    #[error("no rows were recorded; the new dataset, which would be empty, was removed")]
    DatasetRemoved,
    /// The dataset is there.
    #[error("no rows were recorded; the dataset has no more than before")]
    DatasetKept,
}

/// A file that is closed.
#[derive(Debug)]
pub struct CloseReport {
    /// How many rows it has got.
    pub kept_rows: u64,
    /// What became of a dataset or file without rows.
    pub no_rows_outcome: Option<NoRowsOutcome>,
    /// [`Error::File`](crate::error::Error::File) if not all was stored.
    pub close_result: Result<()>,
}

impl RecordedFile {
    /// Opens the file, and makes it at once if it is not there.
    ///
    /// # Errors
    /// [`Error::File`](crate::error::Error::File).
    pub fn open_or_create(location: &Location) -> Result<Self> {
        temp_output::remove_stale_temps_beside(location)?;
        let mut is_new = false;
        let file = match crate::open::command_line_options().swmr_write().open(location) {
            Err(error) if error.store_error_kind() == Some(&StoreErrorKind::NotFound) => {
                let file = crate::open::command_line_options().create_new().open(location)?;
                is_new = true;
                if let Err(error) = file.start_swmr() {
                    // The same cause as of the error may keep the file from being removed.
                    let _ = RecordedFile { file, location: location.clone(), is_new }.close_and_remove_if_new();
                    return Err(error.into());
                }
                file
            }
            opened => opened?,
        };
        Ok(RecordedFile { file, location: location.clone(), is_new })
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Closes the file after a recording. It is removed if it was made for it and nothing came in.
    pub fn close_and_remove_if_unused(self, recorded: &RecordSummary) -> CloseReport {
        let unused = match recorded.no_rows_outcome {
            Some(NoRowsDatasetOutcome::NotOpened) => NoRowsOutcome::FileKept,
            Some(NoRowsDatasetOutcome::Removed) => NoRowsOutcome::DatasetRemoved,
            Some(NoRowsDatasetOutcome::Kept) | None => {
                let closed = self.file.close();
                let kept = if closed.is_ok() { recorded.dataset_row_growth } else { recorded.flushed_rows };
                let unused = recorded.no_rows_outcome.map(|_| NoRowsOutcome::DatasetKept);
                return CloseReport {
                    kept_rows: kept,
                    no_rows_outcome: unused,
                    close_result: closed.map_err(Into::into),
                };
            }
        };
        match self.close_and_remove_if_new() {
            Ok(true) => {
                CloseReport { kept_rows: 0, no_rows_outcome: Some(NoRowsOutcome::FileRemoved), close_result: Ok(()) }
            }
            closed => CloseReport { kept_rows: 0, no_rows_outcome: Some(unused), close_result: closed.map(drop) },
        }
    }

    /// Closes the file, in which nothing was recorded. Removes it if it was not there before; whether it has.
    ///
    /// # Errors
    /// [`Error::File`](crate::error::Error::File).
    pub fn close_and_remove_if_new(self) -> Result<bool> {
        let is_empty = self.file.root().names().is_ok_and(|names| names.is_empty());
        self.file.close()?;
        let path = if self.is_new && is_empty { crate::open::any_file_path(&self.location)? } else { None };
        // Others may have joined a log.
        let path = path.filter(|path| !has_multi_writer_files(path));
        // If somebody else has opened it meanwhile, it stays.
        let claim = |path: PathBuf| Some((h5live_output::claim_existing_file(&path, true).ok()??, path));
        Ok(path.and_then(claim).is_some_and(|(_claimed, path)| std::fs::remove_file(path).is_ok()))
    }
}
