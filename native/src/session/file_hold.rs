//! The hold of a session on its file: it is still the file that was opened, and others are kept out as the mode says.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use h5live_cache::{Clock, Storage};
use h5live_model::{Mode, WriterLiveness};
use h5live_swmr::{
    Error as SwmrError, ForeignFileChangeDetector, LockAttempt, LockHandle, LockKind, LockYieldRegistration,
    RetryPolicy, RetryableError, read_superblock,
};

use super::flush_times::nanos;
use crate::{Error, Result};

/// There was no look yet, or it found that others are not kept out.
const NEVER_CHECKED: u64 = u64::MAX;

/// The time for which a look at the hold is valid...
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(1);
/// ...and this long for a flush that is followed by another look. So the look delays nobody who waits for the flush.
pub(super) const FLUSH_CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// What a session holds of its file: its path, its lock, and how it was when it was opened.
#[derive(Debug)]
pub(crate) struct FileHold {
    path: PathBuf,
    lock: Arc<LockHandle>,
    opened_file: Arc<ForeignFileChangeDetector>,
    /// Whether the record lock that stands for a live writer was taken.
    has_liveness_lock: bool,
    /// The clock of the session.
    pub(super) clock: Clock,
    /// When it was last seen that others are kept out (nanoseconds of the clock).
    checked_at: AtomicU64,
    /// Of a follower, once it has kept others out: it lets SWMR writers through.
    lock_yield: OnceLock<Option<LockYieldRegistration>>,
}

impl FileHold {
    /// The hold of a session of this mode on the file at `path`, which was opened and locked.
    pub fn new(
        path: &Path,
        lock: Arc<LockHandle>,
        change_detector: Arc<ForeignFileChangeDetector>,
        mode: Mode,
        clock: Clock,
    ) -> Self {
        let has_liveness_lock = mode.writes() && lock.is_liveness_locked();
        let (checked_at, lock_yield) = (AtomicU64::new(NEVER_CHECKED), OnceLock::new());
        FileHold {
            path: path.to_owned(),
            lock,
            opened_file: change_detector,
            has_liveness_lock,
            clock,
            checked_at,
            lock_yield,
        }
    }

    /// The path under which the file was opened; empty for a storage that is no file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The handle through which the file is locked.
    pub fn lock_handle(&self) -> &Arc<LockHandle> {
        &self.lock
    }

    /// The error, or the change of the file by another program that explains it.
    pub fn truncation_or<E: RetryableError>(&self, error: E) -> E {
        self.opened_file.truncation_or(error)
    }

    /// Refuses to write on where nobody reads it, or where others may write too, as far as was seen at most `max_age` ago.
    /// The file must have `min_file_len` bytes.
    ///
    /// # Errors
    /// If the file was replaced, deleted or cut, or the lock was lost.
    #[inline]
    pub fn check_held_with_max_age(
        &self,
        min_file_len: impl FnOnce() -> u64,
        now: Duration,
        max_age: Duration,
    ) -> Result<()> {
        let looked = self.checked_at.load(Ordering::Relaxed);
        if looked != NEVER_CHECKED && nanos(now).saturating_sub(looked) < nanos(max_age) {
            return Ok(());
        }
        self.check_held_uncached(min_file_len(), now)
    }

    /// As [`check_held_with_max_age`](Self::check_held_with_max_age), as of now: nothing is promised to last that does not.
    ///
    /// # Errors
    /// As [`check_held_with_max_age`](Self::check_held_with_max_age).
    pub fn check_held_now(&self, min_file_len: u64) -> Result<()> {
        self.check_held_uncached(min_file_len, self.clock.now())
    }

    fn check_held_uncached(&self, min_file_len: u64, now: Duration) -> Result<()> {
        self.checked_at.store(NEVER_CHECKED, Ordering::Relaxed);
        self.opened_file.check_path_and_len(min_file_len)?;
        if self.has_liveness_lock && !self.lock.is_liveness_locked() {
            return Err(SwmrError::LivenessLockLost.into());
        }
        self.checked_at.store(nanos(now), Ordering::Relaxed);
        Ok(())
    }

    /// Lets readers in, now that the superblock says that they can follow. A file with generations keeps its lock,
    /// because writers of other programs ignore the flags of such a superblock.
    ///
    /// # Errors
    /// If the system does not release the lock, or has no lock that shows a live writer.
    pub fn let_readers_in(&self, has_generations: bool) -> Result<()> {
        match has_generations {
            true => self.lock.announce_generation_writer().map_err(Error::io("show readers that they can follow")),
            false => self.lock.release_flock_close_if_local().map_err(Error::io("unlock the file")),
        }
    }

    /// Whether a writer may still be at work, for a reader that follows it. Once it is gone, plain writers are kept out
    /// again.
    ///
    /// # Errors
    /// If the superblock cannot be read, the file was replaced or cut, or it cannot be locked.
    pub fn writer_liveness_with_relock(&self, storage: &dyn Storage, retry: &RetryPolicy) -> Result<WriterLiveness> {
        let superblock = retry.retry(|| read_superblock(storage, 0))?;
        if superblock.status.allows_concurrent_readers() {
            self.opened_file.check_path_and_not_truncated()?;
            return Ok(self.lock.probe_writer_liveness());
        }
        self.lock.forget_seen_liveness_lock();
        self.opened_file.check_not_truncated()?;
        self.keep_plain_writers_out(superblock.version)?;
        Ok(WriterLiveness::AtRest)
    }

    /// Keeps plain writers out of a file at rest that is followed. A reader of a file with a superblock before `version` 3
    /// relies on its lock as long as it holds it, so it does not let SWMR writers through either.
    fn keep_plain_writers_out(&self, version: u8) -> Result<()> {
        if self.lock.is_writer_waiting() {
            return Ok(());
        }
        let locked = self.lock.try_flock(LockKind::Shared).map_err(Error::io("lock the file"))?;
        if locked == LockAttempt::AcquiredOrOff && version >= 3 {
            self.start_yielding_to_swmr_writers();
        }
        Ok(())
    }

    /// Releases the lock that this session holds as a follower when a SWMR writer waits for it.
    pub fn start_yielding_to_swmr_writers(&self) {
        if self.lock_yield.get_or_init(|| LockYieldRegistration::new(&self.lock)).is_some() {
            self.lock.announce_willing_to_yield();
        }
    }

    /// As [`writer_liveness_with_relock`](Self::writer_liveness_with_relock), without other checks. For a storage that is no file, the superblock decides.
    ///
    /// # Errors
    /// If the superblock cannot be read.
    pub fn may_have_live_writer(&self, storage: &dyn Storage, retry: &RetryPolicy) -> Result<bool> {
        let superblock = retry.retry(|| read_superblock(storage, 0))?;
        Ok(superblock.status.allows_concurrent_readers() && self.lock.may_have_writer())
    }

    /// Gives up the file, after its storage was closed.
    ///
    /// # Errors
    /// If it cannot be unlocked.
    pub fn release_file(&self, has_generation_lock: bool) -> Result<()> {
        self.lock.release_liveness_lock_and_close();
        if has_generation_lock {
            self.lock.withdraw_generation_writer().map_err(Error::io("unlock the file"))?;
        }
        self.lock.release_flock_and_close().map_err(Error::io("unlock the file"))
    }
}
