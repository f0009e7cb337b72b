//! The superblock of an open file: its status flags, and the end of file that it announces.

use h5live_cache::SuperblockEncoder;
use h5live_format::{Addr, EncodeError, StatusFlags, Superblock, encode};
use parking_lot::Mutex;

/// The superblock that is written next.
#[derive(Debug)]
pub struct PendingSuperblock(Mutex<Superblock>);

impl PendingSuperblock {
    /// The superblock that is written next, to begin with this one.
    pub fn new(superblock: Superblock) -> Self {
        PendingSuperblock(Mutex::new(superblock))
    }

    /// Sets the status flags.
    pub fn set_flags(&self, flags: StatusFlags) {
        self.0.lock().status = flags;
    }

    /// Changes anything else in the superblock.
    pub fn change_superblock(&self, change: impl FnOnce(&mut Superblock)) {
        change(&mut self.0.lock());
    }
}

impl SuperblockEncoder for PendingSuperblock {
    fn encode_with_eof(&self, end: u64) -> Result<(Addr, Vec<u8>), EncodeError> {
        let mut superblock = self.0.lock();
        let base = superblock.base.get().unwrap_or(0);
        superblock.end_of_file = Addr::new(base.saturating_add(end));
        Ok((Addr::new(0), encode(&*superblock, superblock.widths)?))
    }
}
