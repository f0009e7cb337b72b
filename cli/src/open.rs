//! Opening files.

use std::path::Path;
use std::sync::OnceLock;

use h5live::{Dataset, File, Options};

use crate::error::{Error, Result};
use crate::model::AllocationLimit;
use crate::value::Value;

/// The limit of the command line.
static MAX_ALLOCATION: OnceLock<u64> = OnceLock::new();

/// Sets the most bytes that are allocated at once for a length that a file states.
pub fn set_max_allocation(bytes: u64) {
    let _ = MAX_ALLOCATION.set(bytes);
}

/// Options with what the command line says of all files.
pub fn options() -> Options {
    match MAX_ALLOCATION.get() {
        Some(bytes) => Options::default().max_allocation(*bytes),
        None => Options::default(),
    }
}

/// Refuses to read this many elements of a dataset if their values need more memory than may be allocated at once.
///
/// # Errors
/// [`Error::Store`] that names the file and the dataset.
pub fn check_values(dataset: &Dataset, elements: u64) -> Result<()> {
    check_bytes(dataset, elements.saturating_mul(size_of::<Value>() as u64))
}

/// Refuses to read this many bytes of a dataset if they are more than may be allocated at once.
///
/// # Errors
/// [`Error::Store`] that names the file and the dataset.
pub fn check_bytes(dataset: &Dataset, bytes: u64) -> Result<()> {
    let checked = AllocationLimit::new(options().get_max_allocation()).check(bytes);
    checked.map(drop).map_err(|error| Error::Store {
        file: dataset.file().name().into(),
        path: dataset.path().into(),
        source: error.into(),
    })
}

/// Opens a file to read its present contents, whether another process is writing it or not.
///
/// # Errors
/// [`crate::error::Error::File`] that names the file and the reason.
pub fn for_reading(path: &Path) -> Result<File> {
    match options().read().open(path) {
        Err(error) if error.is_in_use() => for_following(path),
        opened => Ok(opened?),
    }
}

/// Opens a file that another process may be writing, to follow it.
///
/// # Errors
/// [`crate::error::Error::File`] that names the file and the reason.
pub fn for_following(path: &Path) -> Result<File> {
    Ok(options().swmr_read().open(path)?)
}
