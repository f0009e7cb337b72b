//! The state of a file, and bringing one into order whose writer died.

use std::path::Path;

use crate::{Diagnosis, FileCondition, Options, Repair, Result, open};

/// Finds out what state the file at a location is in (closed, being written, or left by a writer that died), without
/// changing it.
///
/// # Errors
/// [`ErrorKind::Open`](crate::ErrorKind::Open) if it cannot be read, or is no HDF5 file.
pub fn diagnose(location: impl AsRef<Path>) -> Result<Diagnosis> {
    let location = location.as_ref();
    open::diagnose(location).map_err(|error| crate::Error::new(&location.display().to_string(), None, error))
}

/// Repairs a file whose writer has died. Afterwards the file is as if its writer had closed it: data that was never
/// published is cut off, changes that belong together agree, the superblock announces the real end of the file, and its
/// flags name no writer. h5live does not need this, because it does the same when it next writes the file. But other
/// programs may refuse the file until then. For files of libhdf5 it also does the work of `h5clear`.
///
/// A file that needs no repair is left unchanged.
///
/// # Errors
/// [`ErrorKind::Open`](crate::ErrorKind::Open) if a process has the file open, or if structures are missing.
pub fn repair(location: impl AsRef<Path>) -> Result<Repair> {
    let location = location.as_ref();
    let done = open::repair(location, &Options::default());
    done.map_err(|error| crate::Error::new(&location.display().to_string(), None, error))
}

/// The known state of the writer of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriterState {
    /// It is at work, and others may follow it.
    Live,
    /// There is none, or none that can be followed.
    Other,
}

/// Brings a file into order whose writer has died, if that is possible.
pub(crate) fn recover(location: &Path) -> WriterState {
    match diagnose(location).map(|found| found.condition) {
        Ok(FileCondition::OpenForWriting { live: true, .. }) => WriterState::Live,
        Ok(FileCondition::Abandoned { .. }) => {
            // Who reads it does without; it may be somebody else who just does the same.
            let _ = repair(location);
            WriterState::Other
        }
        // Whoever opens it meets the same error.
        _ => WriterState::Other,
    }
}
