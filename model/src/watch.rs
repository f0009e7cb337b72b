//! Waiting for what a writer publishes.

use std::fmt;
use std::time::Duration;

use crate::Result;

/// Why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEvent {
    /// Something that is watched may have changed.
    Changed,
    /// The writer may have ended: [`Store::liveness`](crate::Store::liveness) says whether it has.
    Ended,
    /// The time is over.
    Timeout,
}

/// Waits for changes of some objects. [`Store::watch`](crate::Store::watch) makes it.
///
/// Make the watch first, and then look at the objects; then no change is missed. A change since the watch was made, or
/// since the last wait ended, ends the next wait at once. A wait may also end without a change.
pub trait Watch: Send + fmt::Debug {
    /// Waits until something may have changed, or the writer may have ended, at most so long.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if the objects cannot be watched any more.
    fn wait(&mut self, timeout: Duration) -> Result<WatchEvent>;
}
