//! What becomes of rows that cannot be stored.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use h5live::{Options, StoreErrorKind};

use super::error::{Error, RefusedRow, Result};
use super::input::InputRow;
use super::observer::RecordObserver;
use super::row_error::RowError;

/// What to do with a row that cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum OnError {
    /// Stop reading.
    #[default]
    Stop,
    /// Leave it out.
    Skip,
    /// Append it to a file.
    RejectTo(PathBuf),
}

/// The rows that could not be stored.
#[derive(Debug)]
pub struct RefusedRowHandler {
    action: OnError,
    /// The header line, to be written before the first rejected row of a file.
    header: Vec<u8>,
    file: Option<File>,
    count: u64,
}

impl RefusedRowHandler {
    /// None so far.
    pub fn new(action: OnError) -> Self {
        RefusedRowHandler { action, header: Vec::new(), file: None, count: 0 }
    }

    /// Whether rows are needed as they came in.
    pub fn needs_raw_text(&self) -> bool {
        matches!(self.action, OnError::RejectTo(_))
    }

    /// Checks whether rows can be appended to the file for rejected rows, before there is one.
    ///
    /// # Errors
    /// [`Error::RejectFileIsHdf5`] if it is an HDF5 file, [`Error::RejectFile`] if it is a folder, cannot be read, or its folder
    /// does not exist.
    pub fn check_reject_file(&self) -> Result<()> {
        let OnError::RejectTo(path) = &self.action else { return Ok(()) };
        let fault = |source| Error::RejectFile { path: path.clone(), source };
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(fault(io::ErrorKind::IsADirectory.into())),
            Ok(found) if found.is_file() => {
                OpenOptions::new().read(true).append(true).open(path).map_err(fault)?;
                match Options::default().read().open(path) {
                    Err(error) if error.store_error_kind() == Some(&StoreErrorKind::NotThisFormat) => Ok(()),
                    _ => Err(Error::RejectFileIsHdf5 { path: path.clone() }),
                }
            }
            // A pipe or a terminal.
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
                fs::metadata(folder).map(drop).map_err(fault)
            }
            Err(error) => Err(fault(error)),
        }
    }

    /// Whether the first odd row ends the recording.
    pub fn stops_at_first(&self) -> bool {
        self.action == OnError::Stop
    }

    /// Notes the header line.
    pub fn set_header(&mut self, header: Vec<u8>) {
        self.header = header;
    }

    /// How many there are, without the one at which reading stopped.
    pub fn skipped_or_rejected_rows(&self) -> u64 {
        self.count
    }

    /// Takes a row that has no cells.
    ///
    /// # Errors
    /// As [`RefusedRowHandler::handle_refused_row`].
    pub fn handle_unparsed_row(&mut self, row: InputRow, observer: &mut dyn RecordObserver) -> Result<()> {
        let InputRow { row_number: number, cells, raw_text_if_kept: text, .. } = row;
        cells.map_or_else(|error| self.handle_refused_row(number, error, &text, observer), |_| Ok(()))
    }

    /// Takes a row (counted from one) that came in as `text`.
    ///
    /// # Errors
    /// [`Error::Row`] if reading is to stop, [`Error::RejectFile`] if the row cannot be kept.
    pub fn handle_refused_row(
        &mut self,
        row_number: u64,
        source: RowError,
        text: &[u8],
        observer: &mut dyn RecordObserver,
    ) -> Result<()> {
        let unreadable = matches!(source, RowError::RestOfJsonArrayUnreadable(_));
        let refused = RefusedRow { row_number, source };
        if self.action == OnError::Stop || unreadable {
            return Err(refused.into());
        }
        self.count += 1;
        observer.row_skipped_or_rejected(&refused);
        match self.action.clone() {
            OnError::RejectTo(path) => self.keep(&path, text).map_err(|source| Error::RejectFile { path, source }),
            _ => Ok(()),
        }
    }

    fn keep(&mut self, path: &Path, text: &[u8]) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => {
                let mut file = OpenOptions::new().create(true).append(true).open(path)?;
                if file.metadata()?.len() == 0 {
                    file.write_all(&self.header)?;
                }
                file
            }
        };
        file.write_all(text)?;
        self.file = Some(file);
        Ok(())
    }
}
