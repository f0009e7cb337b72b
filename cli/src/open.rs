//! Opening files for commands that only read.

use std::path::Path;

use h5live::File;

use crate::error::Result;

/// Opens a file for a look at what it holds now, whether another process is writing it or not.
///
/// # Errors
/// [`crate::error::Error::File`] that names the file and the reason.
pub fn for_reading(path: &Path) -> Result<File> {
    match File::open(path) {
        Err(error) if error.is_in_use() => for_following(path),
        opened => Ok(opened?),
    }
}

/// Opens a file that another process may be writing, to follow it.
///
/// # Errors
/// [`crate::error::Error::File`] that names the file and the reason.
pub fn for_following(path: &Path) -> Result<File> {
    Ok(File::options().swmr_read().open(path)?)
}
