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

/// Brings a file whose writer died into the state in which a writer that closes it leaves it: what was never published
/// is cut off, what it was about to change together agrees, the end that the superblock announces is where the file
/// ends, and nobody is said to write. This is never needed to go on with the file in h5live, which does the same when
/// it next writes it. But other programs may refuse to open the file before. It also does for files of libhdf5 what
/// `h5clear` does.
///
/// A file that is in order is left alone.
///
/// # Errors
/// [`ErrorKind::Open`](crate::ErrorKind::Open) if a process has the file open, or if structures are missing.
pub fn repair(location: impl AsRef<Path>) -> Result<Repair> {
    let location = location.as_ref();
    let done = open::repair(location, &Options::default());
    done.map_err(|error| crate::Error::new(&location.display().to_string(), None, error))
}

/// What is known of the writer of a file.
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
