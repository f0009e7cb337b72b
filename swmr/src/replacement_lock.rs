//! Replacing a file by a new one that is written beside it.

use std::io;
use std::path::{Path, PathBuf};

use crate::access::refuse_if_written;
use crate::error::OpenConflict;
use crate::file_change::is_different_file;
use crate::locking::{LockAttempt, LockHandle, LockKind};
use crate::{Error, LockPolicy, Result};

/// A file that a new one will replace. Until this is dropped, no writer can open it; readers may go on.
#[derive(Debug)]
pub struct ReplacementLock {
    path: PathBuf,
    lock: LockHandle,
}

impl ReplacementLock {
    /// Claims the file at `path`; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::InUse`] if a process writes it, or if it is not known whether one does; [`Error::Io`] if it cannot be
    /// read.
    pub fn acquire_if_exists(path: &Path) -> Result<Option<Self>> {
        let locking = LockPolicy::from_environment().unwrap_or_default();
        let lock = match LockHandle::open(path, locking) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            lock => lock.map_err(Error::io("open the file"))?,
        };
        // Writers want the lock for themselves.
        let taken = lock.try_flock(LockKind::Shared).map_err(Error::io("lock the file"))?;
        refuse_if_written(path, &lock)?;
        match taken {
            LockAttempt::Conflict => Err(Error::InUse { reason: OpenConflict::Lock, holders: lock.flock_holders() }),
            LockAttempt::AcquiredOrOff => Ok(Some(ReplacementLock { path: path.to_owned(), lock })),
        }
    }

    /// Looks once more: a writer that continues a dead one's file under its readers does not heed the lock.
    ///
    /// # Errors
    /// As [`ReplacementLock::acquire_if_exists`]; [`Error::ChangedDuringRead`] if another file has been put there meanwhile.
    pub fn check_still_replaceable(&self) -> Result<()> {
        if is_different_file(&self.lock, &self.path) {
            return Err(Error::ChangedDuringRead);
        }
        refuse_if_written(&self.path, &self.lock)
    }
}
