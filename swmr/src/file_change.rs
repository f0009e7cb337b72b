//! Changes that other programs make to an open file: they delete, replace or truncate it.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5live_cache::Storage;

use crate::error::RetryableError;
use crate::locking::LockHandle;
use crate::superblock::read_superblock;
use crate::{Error, Result};

/// The file that was opened, for comparison with the file that is there now.
#[derive(Debug)]
pub struct ForeignFileChangeDetector {
    lock: Arc<LockHandle>,
    /// Its path, with all links resolved.
    opened_path: PathBuf,
    /// Begins at the base address.
    storage: Arc<dyn Storage>,
    /// In bytes from the start of the file.
    base_addr: u64,
    /// The most bytes that the storage was seen to have since its writer cut it last.
    max_seen_len: AtomicU64,
}

impl ForeignFileChangeDetector {
    /// The file that was opened at `path`. `storage` has its bytes from `base` on.
    pub fn new(lock: Arc<LockHandle>, path: &Path, storage: Arc<dyn Storage>, base: u64) -> Self {
        let longest = storage.len().unwrap_or(0).into();
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        ForeignFileChangeDetector { lock, opened_path: path, storage, base_addr: base, max_seen_len: longest }
    }

    /// Refuses a file that is not at its path any more, or has less than `min_len_from_base` bytes from the base address on. A file
    /// that has moved to where nothing was is the same file.
    ///
    /// # Errors
    /// [`Error::Replaced`], [`Error::Deleted`], [`Error::Truncated`].
    pub fn check_path_and_len(&self, min_len_from_base: u64) -> Result<()> {
        let Some(here) = self.check_path()? else { return Ok(()) };
        let stated = self.base_addr.saturating_add(min_len_from_base);
        if here.len() < stated { Err(Error::Truncated { len: here.len(), stated }) } else { Ok(()) }
    }

    /// The metadata of the file from the system, if it is a file.
    fn check_path(&self) -> Result<Option<Metadata>> {
        let Some(here) = self.lock.any_open_file().and_then(|file| file.metadata().ok()) else { return Ok(None) };
        match fs::metadata(&self.opened_path) {
            Ok(there) if is_same_file(&here, &there) => {}
            Ok(_) => return Err(Error::Replaced),
            Err(error) if error.kind() == io::ErrorKind::NotFound && has_no_name(&here) => return Err(Error::Deleted),
            // If the system does not tell, this is no reason to stop.
            Err(_) => {}
        }
        Ok(Some(here))
    }

    /// As [`ForeignFileChangeDetector::check_path_and_len`], for a reader: the file is not shorter than before, and not shorter than its superblock
    /// announces. A writer that truncates the file announces the new end first. libhdf5 also announces an end before
    /// the file is so long.
    ///
    /// # Errors
    /// As [`ForeignFileChangeDetector::check_path_and_len`].
    pub fn check_path_and_not_truncated(&self) -> Result<()> {
        self.check_path()?;
        self.check_not_truncated()
    }

    /// Refuses a file that was truncated by a process that is not its writer.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    pub fn check_not_truncated(&self) -> Result<()> {
        // In this order: an end that is announced after the length was seen is at least as new.
        let Ok(len) = self.storage.len() else { return Ok(()) };
        let longest = self.max_seen_len.fetch_max(len, Ordering::AcqRel);
        if len >= longest {
            return Ok(());
        }
        if let Ok(superblock) = read_superblock(&*self.storage, 0) {
            let announced = superblock.end_of_file.get().zip(superblock.base.get());
            let announced = announced.map_or(u64::MAX, |(end, base)| end.saturating_sub(base));
            if len >= announced {
                self.max_seen_len.store(len, Ordering::Release);
                return Ok(());
            }
        }
        let bytes = |from_base: u64| self.base_addr.saturating_add(from_base);
        Err(Error::Truncated { len: bytes(len), stated: bytes(longest) })
    }

    /// Returns why reading failed: `error`, unless the file was truncated.
    pub fn truncation_or<E: RetryableError>(&self, error: E) -> E {
        match error.may_be_truncated() {
            false => error,
            true => self.check_not_truncated().err().map_or(error, E::from),
        }
    }
}

/// Whether another file is at `path` than the one of the handle.
pub(crate) fn is_different_file(lock: &LockHandle, path: &Path) -> bool {
    let here = lock.any_open_file().and_then(|file| file.metadata().ok());
    here.zip(fs::metadata(path).ok()).is_some_and(|(here, there)| !is_same_file(&here, &there))
}

#[cfg(unix)]
fn is_same_file(here: &Metadata, there: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (here.dev(), here.ino()) == (there.dev(), there.ino())
}

#[cfg(not(unix))]
fn is_same_file(_: &Metadata, _: &Metadata) -> bool {
    true
}

#[cfg(unix)]
fn has_no_name(file: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.nlink() == 0
}

#[cfg(not(unix))]
fn has_no_name(_: &Metadata) -> bool {
    false
}
