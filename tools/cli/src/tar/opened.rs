//! Files with the entries of archives, opened for the commands that read them.

use h5live::Location;
use h5live_archive::ImportedTar;

use crate::error::Result;
use crate::open;

/// The tables of a file.
pub fn read(location: &Location) -> Result<ImportedTar> {
    Ok(ImportedTar::open(&open::for_reading(location.clone())?)?)
}

/// Whether a path matches a pattern, if there is one.
pub fn is_match(glob: Option<&str>, path: &[u8]) -> bool {
    glob.is_none_or(|pattern| h5live::archive::is_glob_match(pattern, path))
}
