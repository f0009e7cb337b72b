//! What a writer does for those who may follow its file.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use h5live_cache::{Cache, ReusePolicy, Space};
use h5live_swmr::LockHandle;

use crate::open_options::OpenOptions;
use crate::{Mode, Result};

/// Whether others may follow what a session writes, and what it does for them: it announces space ahead, and lets space
/// rest that became unreachable.
#[derive(Debug)]
pub(crate) struct FollowerPolicy {
    may_follow: AtomicBool,
    /// Bytes beyond its end that the file announces once others may follow.
    headroom: u64,
    /// How long space that became unreachable rests while others follow.
    grace: Duration,
    /// Whether freed space rests only while another process has the file open.
    reuse_unread: bool,
    /// Whether the file stays live when the session ends, for the next of several writers that take turns.
    leaves_live: bool,
    /// Whether it is one of those that take turns with the file: the next turn goes on behind what is there.
    takes_turns: bool,
}

impl FollowerPolicy {
    /// The policy that the options ask for. Others may follow from the beginning in [`Mode::SwmrWrite`].
    pub fn new(options: &OpenOptions) -> Self {
        FollowerPolicy {
            may_follow: AtomicBool::new(options.mode == Mode::SwmrWrite),
            headroom: options.headroom,
            grace: options.grace,
            reuse_unread: options.reuse_unread,
            leaves_live: options.leaves_live,
            takes_turns: options.takes_turns,
        }
    }

    /// Whether other processes may read what this one writes.
    #[inline]
    pub fn has_followers(&self) -> bool {
        self.may_follow.load(Ordering::Acquire)
    }

    /// Whether others go on following when the session has ended.
    pub fn leaves_live(&self) -> bool {
        self.leaves_live && self.has_followers()
    }

    /// Whether the space behind the end is given back when the file stays live: it may be long until the next writer comes.
    pub fn cuts_when_left(&self) -> bool {
        !self.takes_turns
    }

    /// Others may follow from here on: everything that they need is in the file.
    pub fn set_followed(&self) {
        self.may_follow.store(true, Ordering::Release);
    }

    /// Lets the space rest that becomes unreachable from here on, because others are about to follow.
    pub fn protect_freed_space(&self, space: &Space) {
        space.set_reuse_policy(ReusePolicy::AfterGrace(self.grace));
    }

    /// Writes the superblock, which announces as much headroom as was asked for.
    ///
    /// # Errors
    /// If it cannot be written, or the file system has no files of that length.
    pub fn announce_headroom(&self, cache: &Cache) -> Result<()> {
        match self.headroom {
            0 => cache.write_superblock()?,
            headroom => cache.announce_eof_ahead(headroom)?,
        }
        Ok(())
    }

    /// Uses freed space again at once, if that was asked for and nobody else has the file open.
    #[inline]
    pub fn reclaim_if_unread(&self, space: &Space, lock: &LockHandle) {
        if self.reuse_unread && self.has_followers() {
            space.reclaim_if(|| lock.is_sole_handle());
        }
    }
}
