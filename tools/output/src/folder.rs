//! Key-value stores that appear in their folder when they are complete.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use h5live_kv::WriterLock;

use crate::error::{Error, Result};
use crate::signals;
use crate::unfinished::{check_parent, register_unfinished_path, remove_stale_temps};

/// A store in a folder that is being written, and removed unless it takes its place.
#[derive(Debug)]
pub struct TempStoreFolder {
    path: PathBuf,
    place: PathBuf,
    replaces_store: bool,
    /// The store that will be replaced. No writer can open it meanwhile.
    replaced: Option<WriterLock>,
}

impl TempStoreFolder {
    /// A new folder beside another one, which it replaces if `replaces_store` says so.
    ///
    /// # Errors
    /// [`Error::Create`] if there is no folder for it; [`Error::Exists`]; [`Error::StoreNotReplaceable`] if a process writes the store
    /// that would be replaced, or what is there is no store.
    pub fn reserve_for(place: &Path, replaces_store: bool) -> Result<Self> {
        // A link to a folder stays.
        let place = &*place.canonicalize().unwrap_or_else(|_| place.to_owned());
        let parent = check_parent(place)?;
        let replaced = claim(place, replaces_store)?;
        remove_stale_temps(parent);
        let path = register_unfinished_path(place);
        Ok(TempStoreFolder { path, place: place.to_owned(), replaces_store, replaced })
    }

    /// Its present path.
    pub fn temp_path(&self) -> &Path {
        &self.path
    }

    /// Moves the folder to its final path.
    ///
    /// # Errors
    /// [`Error::Persist`]; as [`TempStoreFolder::reserve_for`], if there is a store now that was not there before.
    pub fn persist(mut self) -> Result<()> {
        let failed = |source| Error::Persist { path: self.place.clone(), source };
        if self.replaced.is_none() {
            // An empty folder is replaced, and no other one.
            match fs::rename(&self.path, &self.place) {
                Ok(()) => return Ok(()),
                Err(_) => self.replaced = claim(&self.place, self.replaces_store)?,
            }
        }
        exchange(&self.path, &self.place).map_err(failed)
    }
}

impl Drop for TempStoreFolder {
    fn drop(&mut self) {
        // What was replaced is here now.
        let _ = fs::remove_dir_all(&self.path);
        signals::cancel_remove_on_signal(&self.path);
    }
}

/// Claims the store in a folder, if there is one and it may be replaced.
fn claim(place: &Path, replaces_store: bool) -> Result<Option<WriterLock>> {
    let is_empty = |folder: &Path| fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    match (fs::symlink_metadata(place), replaces_store) {
        (Err(_), _) => Ok(None),
        (Ok(_), _) if is_empty(place) => Ok(None),
        (Ok(_), false) => Err(Error::Exists { path: place.to_owned() }),
        (Ok(_), true) => {
            let claimed = WriterLock::acquire(place).map(Some);
            claimed.map_err(|source| Error::StoreNotReplaceable {
                path: place.to_owned(),
                source: Box::new(h5live::model::Error::from(source).into()),
            })
        }
    }
}

/// Makes two folders change places, at once where the system can.
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
        if renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE).is_ok() {
            return Ok(());
        }
    }
    let aside = one.with_extension("aside");
    fs::rename(other, &aside)?;
    match fs::rename(one, other) {
        Ok(()) => fs::rename(&aside, one),
        Err(error) => fs::rename(&aside, other).and(Err(error)),
    }
}
