//! A file in memory, and the access of a session to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::behavior::SimulatedChunkCapabilities;
use super::state::MemoryState;
use crate::{AllocationLimit, Error, Result, StoreErrorKind, Watch, WatchEvent};

/// The scheme, and the connector's name.
pub(super) const SCHEME: &str = "mem";

#[derive(Debug, Default)]
pub(super) struct MemoryFile {
    /// Most bytes of a chunk that is made for a part of it.
    pub(super) max_allocation: AllocationLimit,
    pub(super) behavior: SimulatedChunkCapabilities,
    pub(super) state: Mutex<MemoryState>,
    pub(super) flushed: Condvar,
    /// Changes of datasets that succeed before all fail, if they are to fail.
    pub(super) changes_before_failure: Mutex<Option<u64>>,
}

impl MemoryFile {
    /// Fails if this change is one that is to fail.
    pub(super) fn count_change_or_fail(&self) -> Result<()> {
        match &mut *self.changes_before_failure.lock() {
            Some(0) => {
                Err(Error::store(StoreErrorKind::StorageFull, std::io::Error::from(std::io::ErrorKind::StorageFull)))
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// The access of a session to a file, until the session is closed.
#[derive(Debug)]
pub(super) struct MemoryAccess {
    pub(super) file: Arc<MemoryFile>,
    pub(super) writable: bool,
    closed: AtomicBool,
}

impl MemoryAccess {
    pub(super) fn new(file: Arc<MemoryFile>, writable: bool) -> Self {
        MemoryAccess { file, writable, closed: AtomicBool::new(false) }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// The contents of the file, to be read.
    pub(super) fn lock_to_read(&self) -> Result<MutexGuard<'_, MemoryState>> {
        if self.is_closed() { Err(Error::Closed) } else { Ok(self.file.state.lock()) }
    }

    /// The contents of the file, to be changed.
    pub(super) fn lock_to_write(&self) -> Result<MutexGuard<'_, MemoryState>> {
        let state = self.lock_to_read()?;
        if self.writable { Ok(state) } else { Err(Error::ReadOnly) }
    }
}

/// Wakes up at each flush.
#[derive(Debug)]
pub(super) struct MemoryWatch {
    file: Arc<MemoryFile>,
    /// Flushes as of the last wake-up.
    generation: u64,
}

impl MemoryWatch {
    pub(super) fn new(file: Arc<MemoryFile>, generation: u64) -> Self {
        MemoryWatch { file, generation }
    }
}

impl Watch for MemoryWatch {
    fn wait(&mut self, timeout: Duration) -> Result<WatchEvent> {
        let until = Instant::now().checked_add(timeout);
        let mut state = self.file.state.lock();
        loop {
            if std::mem::replace(&mut self.generation, state.generation) != state.generation {
                return Ok(WatchEvent::Changed);
            }
            if !state.has_writer {
                return Ok(WatchEvent::Ended);
            }
            match until {
                Some(until) if self.file.flushed.wait_until(&mut state, until).timed_out() => {
                    return Ok(WatchEvent::Timeout);
                }
                Some(_) => {}
                None => self.file.flushed.wait(&mut state),
            }
        }
    }
}
