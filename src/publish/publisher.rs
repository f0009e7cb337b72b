//! What a session needs to publish: locks, the counter, the timer, and errors of the background.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::publication_counter::PublicationCounter;
use super::shared_run::SharedRun;
use super::timer::PublishTimer;
use crate::{Error, Result};

/// The part of a session that publishes.
#[derive(Debug, Default)]
pub(crate) struct Publisher {
    /// Held by the flush or the transaction that is under way.
    publish_lock: Mutex<()>,
    /// The counter of publications, if the options ask for one.
    pub(super) counter: OnceLock<PublicationCounter>,
    pub(super) durable_flushes: SharedRun,
    pub(crate) syncs: SharedRun,
    pub(super) ticker: Mutex<Option<PublishTimer>>,
    /// The error of a flush in the background.
    deferred_error: Mutex<Option<Error>>,
    pub(super) is_closed: AtomicBool,
}

impl Publisher {
    pub(crate) fn lock_publishing(&self) -> MutexGuard<'_, ()> {
        self.publish_lock.lock()
    }

    /// Ends what goes on in the background; whether the session was still open.
    pub(crate) fn close(&self) -> bool {
        *self.ticker.lock() = None;
        !self.is_closed.swap(true, Ordering::AcqRel)
    }

    pub(super) fn defer_error(&self, error: Error) {
        self.deferred_error.lock().get_or_insert(error);
    }

    /// The error that something in the background has met since the last call.
    pub(crate) fn take_deferred_error(&self) -> Result<()> {
        self.deferred_error.lock().take().map_or(Ok(()), Err)
    }
}
