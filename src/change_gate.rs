//! Changes that are under way when their file closes.

use std::fmt;
use std::ops::Deref;

use h5live_model::{Error as ModelError, Result as ModelResult, Store, StoreWriter};
use parking_lot::{RwLock, RwLockReadGuard};

/// Lets changes run beside each other, and ends before the file does: what was accepted until then is in the file, and what
/// comes later is refused.
#[derive(Debug, Default)]
pub(crate) struct WriterGate {
    is_closed: RwLock<bool>,
}

/// A change of the store under a file, which is under way until this is dropped.
pub struct OngoingWriteGuard<'a> {
    writer: &'a dyn StoreWriter,
    _open: RwLockReadGuard<'a, bool>,
}

impl WriterGate {
    /// Begins a change. One may be part of another one.
    pub fn begin_write<'a>(&'a self, store: &'a dyn Store) -> ModelResult<OngoingWriteGuard<'a>> {
        let open = self.is_closed.read_recursive();
        if *open { Err(ModelError::Closed) } else { Ok(OngoingWriteGuard { writer: store.writer()?, _open: open }) }
    }

    /// Waits for the changes that are under way, and refuses others.
    pub fn drain_and_close(&self) {
        *self.is_closed.write() = true;
    }
}

impl<'a> Deref for OngoingWriteGuard<'a> {
    type Target = dyn StoreWriter + 'a;

    fn deref(&self) -> &Self::Target {
        self.writer
    }
}

impl fmt::Debug for OngoingWriteGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OngoingWriteGuard").finish_non_exhaustive()
    }
}
