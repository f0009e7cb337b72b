//! What becomes of rows that cannot be stored.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use h5live_cache::FileStorage;
use h5live_swmr::locate_superblock;

use super::input::InputRow;
use super::row::RowError;
use crate::counted::counted;
use crate::error::{Error, Result};
use crate::output::tell;

/// Rows that are named one by one; of the rest only the number is told.
const MAX_NAMED_ROWS: u64 = 10;

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

impl FromStr for OnError {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match (text, text.strip_prefix("reject-to")) {
            ("stop", _) => Ok(OnError::Stop),
            ("skip", _) => Ok(OnError::Skip),
            (_, Some(file)) if file.len() > 1 && file.starts_with(['=', ' ']) => {
                Ok(OnError::RejectTo(file[1..].into()))
            }
            _ => Err("allowed are stop, skip and reject-to FILE"),
        }
    }
}

/// Puts the two words `reject-to FILE` of a command line into one, since an option has one value.
pub fn join_words(words: impl Iterator<Item = std::ffi::OsString>) -> Vec<std::ffi::OsString> {
    let mut joined: Vec<std::ffi::OsString> = Vec::new();
    for word in words {
        let is_reject = |word: &std::ffi::OsString| *word == "reject-to" || *word == "--on-error=reject-to";
        let before = joined.len().checked_sub(2).and_then(|at| joined.get(at)).is_some_and(|word| word == "--on-error");
        match joined.last_mut() {
            Some(last) if is_reject(last) && (before || *last != "reject-to") => {
                last.push("=");
                last.push(word);
            }
            _ => joined.push(word),
        }
    }
    joined
}

/// The rows that could not be stored.
#[derive(Debug)]
pub struct OddRows {
    action: OnError,
    /// The header line, to be written before the first rejected row of a file.
    header: Vec<u8>,
    file: Option<File>,
    count: u64,
    stopped_at: Option<u64>,
}

impl OddRows {
    /// None so far.
    pub fn new(action: OnError) -> Self {
        OddRows { action, header: Vec::new(), file: None, count: 0, stopped_at: None }
    }

    /// Whether rows are needed as they came in.
    pub fn need_text(&self) -> bool {
        matches!(self.action, OnError::RejectTo(_))
    }

    /// Checks whether rows can be appended to the file for rejected rows, before there is one.
    ///
    /// # Errors
    /// [`Error::RejectToHdf5`] if it is an HDF5 file, [`Error::Path`] if it is a folder, cannot be read, or its folder
    /// does not exist.
    pub fn check_file(&self) -> Result<()> {
        let OnError::RejectTo(path) = &self.action else { return Ok(()) };
        let fault = |source| Error::Path { path: path.clone(), source };
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(fault(io::ErrorKind::IsADirectory.into())),
            Ok(found) if found.is_file() => {
                let storage = FileStorage::new(OpenOptions::new().read(true).append(true).open(path).map_err(fault)?);
                match locate_superblock(&storage) {
                    Err(h5live_swmr::Error::NotHdf5) => Ok(()),
                    _ => Err(Error::RejectToHdf5 { path: path.clone() }),
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
    pub fn stops(&self) -> bool {
        self.action == OnError::Stop
    }

    /// Takes a row that has no cells.
    ///
    /// # Errors
    /// As [`OddRows::take`].
    pub fn take_row(&mut self, row: InputRow) -> Result<()> {
        row.cells.map_or_else(|error| self.take(row.number, error, &row.text), |_| Ok(()))
    }

    /// Notes the header line.
    pub fn set_header(&mut self, header: Vec<u8>) {
        self.header = header;
    }

    /// Takes a row (counted from one) that came in as `text`.
    ///
    /// # Errors
    /// [`Error::Row`] if reading is to stop, [`Error::Path`] if the row cannot be kept.
    pub fn take(&mut self, row: u64, source: RowError, text: &[u8]) -> Result<()> {
        let unreadable = matches!(source, RowError::JsonArray(_));
        let error = Error::Row { row, source };
        if self.action == OnError::Stop || unreadable {
            self.stopped_at = Some(row);
            return Err(error);
        }
        self.count += 1;
        if self.count <= MAX_NAMED_ROWS {
            tell(&error);
        }
        match self.action.clone() {
            OnError::RejectTo(path) => self.keep(&path, text).map_err(|source| Error::Path { path, source }),
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

    /// The summary for programs.
    pub fn add_to(&self, summary: &mut serde_json::Map<String, serde_json::Value>) {
        let name = if self.need_text() { "rejected" } else { "skipped" };
        if self.count > 0 {
            summary.insert(name.to_owned(), self.count.into());
        }
        if let Some(row) = self.stopped_at {
            summary.insert("stopped_at".to_owned(), row.into());
        }
    }

    /// The summary for people; `None` if all rows were stored.
    pub fn summary(&self, stored: u64) -> Option<String> {
        let rows = |n: u64| counted(n, "row");
        let left = match &self.action {
            OnError::RejectTo(path) if self.count > 0 => {
                format!(", {} rejected to {}", rows(self.count), path.display())
            }
            _ if self.count > 0 => format!(", {} skipped", rows(self.count)),
            _ => String::new(),
        };
        let stopped = self.stopped_at.map(|row| format!(", stopped at row {row}")).unwrap_or_default();
        (self.count > 0 || self.stopped_at.is_some()).then(|| format!("{} stored{left}{stopped}", rows(stored)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(words: &[&str]) -> Vec<String> {
        let words = words.iter().map(std::ffi::OsString::from);
        join_words(words).into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn the_file_for_rejected_rows_may_be_a_word_of_its_own() {
        assert_eq!(
            joined(&["record", "--on-error", "reject-to", "x", "f"]),
            ["record", "--on-error", "reject-to=x", "f"]
        );
        assert_eq!(joined(&["--on-error=reject-to", "x", "f"]), ["--on-error=reject-to=x", "f"]);
        assert_eq!(joined(&["--on-error", "reject-to=x", "f"]), ["--on-error", "reject-to=x", "f"]);
        assert_eq!(joined(&["set", "reject-to", "x"]), ["set", "reject-to", "x"]);
        assert_eq!("reject-to=x".parse(), Ok(OnError::RejectTo("x".into())));
        assert!("reject-to".parse::<OnError>().is_err() && "halt".parse::<OnError>().is_err());
    }
}
