//! What a writer does for those who may follow its file.

use std::sync::atomic::{AtomicBool, Ordering};

use h5live_cache::{Cache, FileSpaceAllocator, ReusePolicy};
use h5live_format::StatusFlags;
use h5live_swmr::{Error as SwmrError, LockHandle, OtherHandlePresence};

use crate::open_options::{AllowedReaders, OpenOptions};
use crate::{Mode, Result};

/// Whether others may follow what a session writes, and what it does for them: it announces space ahead, and lets space
/// rest that became unreachable.
#[derive(Debug)]
pub(crate) struct FollowerPolicy {
    may_follow: AtomicBool,
    /// Bytes beyond its end that the file announces once others may follow.
    headroom: u64,
    /// What becomes of space that became unreachable while others follow.
    reuse_policy: ReusePolicy,
    /// Most bytes of such space.
    max_resting_bytes: u64,
    /// Who follows.
    readers: AllowedReaders,
    /// Whether the file stays live when the session ends, for the next of several writers that take turns.
    leaves_live: bool,
    /// Whether it is one of those that take turns with the file: the next turn goes on behind what is there.
    takes_turns: bool,
}

impl FollowerPolicy {
    /// The policy that the options ask for. Others may follow from the beginning in [`Mode::SwmrWrite`].
    pub fn new(options: &OpenOptions, has_generations: bool) -> Self {
        FollowerPolicy {
            may_follow: AtomicBool::new(options.mode == Mode::SwmrWrite),
            headroom: options.eof_headroom_bytes,
            reuse_policy: options.reuse_policy(has_generations),
            max_resting_bytes: options.max_bytes_awaiting_no_readers,
            readers: options.readers,
            leaves_live: options.leaves_live,
            takes_turns: options.ignores_other_writers,
        }
    }

    /// Whether other processes may read what this one writes.
    #[inline]
    pub fn may_be_followed(&self) -> bool {
        self.may_follow.load(Ordering::Acquire)
    }

    /// Whether others go on following when the session has ended.
    pub fn leaves_live(&self) -> bool {
        self.leaves_live && self.may_be_followed()
    }

    /// Whether the space behind the end is given back when the file stays live: it may be long until the next writer comes.
    pub fn truncates_when_left_live(&self) -> bool {
        !self.takes_turns
    }

    /// Others may follow from here on: everything that they need is in the file.
    pub fn set_may_be_followed(&self) {
        self.may_follow.store(true, Ordering::Release);
    }

    /// What becomes of freed space while others follow.
    pub fn reuse_policy(&self) -> ReusePolicy {
        self.reuse_policy
    }

    /// Lets the space rest that becomes unreachable from here on, because others are about to follow.
    pub fn apply_reuse_policy(&self, space: &FileSpaceAllocator) {
        space.set_reuse_policy(self.reuse_policy);
    }

    /// Whether what rests is free only when nobody else has the file open.
    pub fn reuses_only_when_exclusive(&self) -> bool {
        self.reuse_policy == ReusePolicy::WhenExclusive
    }

    /// The status flags of a live file.
    pub fn live_flags(&self, has_generations: bool) -> StatusFlags {
        match self.readers {
            AllowedReaders::H5live if !has_generations => StatusFlags::LIVE_FOR_H5LIVE,
            _ => StatusFlags::WRITE | StatusFlags::SWMR,
        }
    }

    /// Writes the superblock, which announces as much headroom as was asked for.
    ///
    /// # Errors
    /// If it cannot be written, or the file system has no files of that length.
    pub fn write_superblock_with_headroom(&self, cache: &Cache) -> Result<()> {
        match self.headroom {
            0 => cache.write_superblock()?,
            headroom => cache.preextend_file_and_eof(headroom)?,
        }
        Ok(())
    }

    /// Finds out whether freed space may be used again because nobody else has the file open, if enough rests.
    ///
    /// # Errors
    /// [`SwmrError::TooMuchUnreclaimed`] if more rests than the options allow.
    #[inline]
    pub fn begin_grace_and_check_limit(&self, space: &FileSpaceAllocator, lock: &LockHandle) -> Result<()> {
        if self.reuse_policy != ReusePolicy::WhenExclusive || !self.may_be_followed() {
            return Ok(());
        }
        space.begin_min_grace_if_exclusive(false, || lock.is_writing_handle_sole());
        if self.max_resting_bytes == u64::MAX { Ok(()) } else { self.check_resting(space, lock) }
    }

    #[cold]
    fn check_resting(&self, space: &FileSpaceAllocator, lock: &LockHandle) -> Result<()> {
        let limit = self.max_resting_bytes;
        if space.quarantine_stats().unreachable_bytes > limit {
            space.begin_min_grace_if_exclusive(true, || lock.is_writing_handle_sole());
        }
        match space.bytes_awaiting_no_readers() {
            bytes if bytes > limit => {
                Err(SwmrError::TooMuchUnreclaimed { bytes, limit, openers: lock.other_openers() }.into())
            }
            _ => Ok(()),
        }
    }

    /// The session ends. What rests is free if nobody else has the file open.
    pub fn release_quarantined_if_exclusive(&self, space: &FileSpaceAllocator, lock: &LockHandle) {
        if self.may_be_followed() && lock.is_writing_handle_sole() {
            space.release_all_unreachable();
        }
    }
}

/// What becomes of freed space in a session that lets no readers in: others may still have the file open that followed
/// an earlier session.
pub(crate) fn reuse_policy_without_followers(others: OtherHandlePresence, was_live: bool) -> ReusePolicy {
    match others {
        OtherHandlePresence::None => ReusePolicy::AfterFlush,
        OtherHandlePresence::Unknown if !was_live => ReusePolicy::AfterFlush,
        _ => ReusePolicy::WhenExclusive,
    }
}
