//! Files that appear when they are complete.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use h5live_swmr::ReplacementLock;

use crate::error::{Error, Result};
use crate::signals;
use crate::unfinished::{check_parent, register_unfinished_path, remove_stale_temps};

/// A file that is being written, and removed unless it takes its place.
#[derive(Debug)]
pub struct TempOutputFile {
    path: PathBuf,
    place: PathBuf,
    replaces_file: bool,
    /// The file that will be replaced. No writer can open it meanwhile.
    replaced: Option<ReplacementLock>,
}

impl TempOutputFile {
    /// A new file in the folder of another file, which it replaces if `replaces_file` says so.
    ///
    /// # Errors
    /// [`Error::Create`] if that folder does not exist, or `path` is a folder; [`Error::Exists`], or [`Error::FileNotReplaceable`] if a
    /// process writes the file that would be replaced.
    pub fn reserve_for(path: &Path, replaces_file: bool) -> Result<Self> {
        let folder = check_parent(path)?;
        if path.is_dir() {
            return Err(Error::Create { path: path.to_owned(), source: io::ErrorKind::IsADirectory.into() });
        }
        let replaced = claim_existing_file(path, replaces_file)?;
        remove_stale_temps(folder);
        Ok(TempOutputFile { path: register_unfinished_path(path), place: path.to_owned(), replaces_file, replaced })
    }

    /// Its present path.
    pub fn temp_path(&self) -> &Path {
        &self.path
    }

    /// Moves the file to its final path.
    ///
    /// # Errors
    /// [`Error::Persist`]; as [`TempOutputFile::reserve_for`], if there is a file now that was not there before.
    pub fn persist(mut self) -> Result<()> {
        let failed = |source| Error::Persist { path: self.place.clone(), source };
        fs::File::open(&self.path).and_then(|file| file.sync_all()).map_err(failed)?;
        if self.replaced.is_none() {
            // Unlike a rename, a link replaces nothing that has come to be there.
            match fs::hard_link(&self.path, &self.place) {
                Ok(()) => return Ok(()),
                Err(_) => self.replaced = claim_existing_file(&self.place, self.replaces_file)?,
            }
        }
        if let Some(replaced) = &self.replaced {
            replaced
                .check_still_replaceable()
                .map_err(|source| Error::FileNotReplaceable { path: self.place.clone(), source: Box::new(source) })?;
        }
        fs::rename(&self.path, &self.place).map_err(failed)
    }
}

impl Drop for TempOutputFile {
    fn drop(&mut self) {
        // It may have been moved to its place.
        let _ = fs::remove_file(&self.path);
        signals::cancel_remove_on_signal(&self.path);
    }
}

/// Claims the file at `path`, if there is one and it may be replaced.
///
/// # Errors
/// [`Error::Exists`], [`Error::FileNotReplaceable`]; [`Error::Create`] if it is no file.
pub fn claim_existing_file(path: &Path, replaces_file: bool) -> Result<Option<ReplacementLock>> {
    let held = |source| Error::FileNotReplaceable { path: path.to_owned(), source: Box::new(source) };
    match (fs::symlink_metadata(path), replaces_file) {
        (Err(_), _) => Ok(None),
        (Ok(_), false) => Err(Error::Exists { path: path.to_owned() }),
        (Ok(_), true) if fs::metadata(path).is_ok_and(|found| !found.is_file()) => {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "this is no regular file");
            Err(Error::Create { path: path.to_owned(), source })
        }
        (Ok(_), true) => ReplacementLock::acquire_if_exists(path).map_err(held),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn what_does_not_take_its_place_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let unfinished = TempOutputFile::reserve_for(&folder.path().join("new.h5"), false).unwrap();
        fs::write(unfinished.temp_path(), "half").unwrap();
        drop(unfinished);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_file_that_came_meanwhile_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("new.h5");
        let unfinished = TempOutputFile::reserve_for(&place, false).unwrap();
        fs::write(unfinished.temp_path(), "new").unwrap();
        fs::write(&place, "of somebody else").unwrap();
        assert!(matches!(unfinished.persist(), Err(Error::Exists { .. })));
        assert_eq!(fs::read(&place).unwrap(), b"of somebody else");
        assert_eq!(names(folder.path()), ["new.h5"]);
        assert!(matches!(TempOutputFile::reserve_for(&place, false), Err(Error::Exists { .. })));

        let unfinished = TempOutputFile::reserve_for(&place, true).unwrap();
        fs::write(unfinished.temp_path(), "new").unwrap();
        unfinished.persist().unwrap();
        assert_eq!((fs::read(&place).unwrap(), names(folder.path())), (b"new".to_vec(), vec!["new.h5".to_owned()]));
    }

    #[test]
    fn a_name_of_any_length_has_an_unfinished_form() {
        let folder = tempfile::tempdir().unwrap();
        let unfinished = TempOutputFile::reserve_for(&folder.path().join("ü".repeat(125)), false).unwrap();
        fs::write(unfinished.temp_path(), "").unwrap();
        unfinished.persist().unwrap();
        assert_eq!(names(folder.path()), ["ü".repeat(125)]);
    }
}
