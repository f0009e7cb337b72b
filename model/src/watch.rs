//! Waiting for what a writer publishes.

use std::fmt;
use std::time::Duration;

use crate::Result;

/// Why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEvent {
    /// Something that is watched may have changed.
    Changed,
    /// The writer may have ended: [`Objects::is_live`](crate::Objects::is_live) says whether it has.
    Ended,
    /// The time is over.
    Timeout,
}

/// Waits for changes of some objects, made by [`Objects::watch`](crate::Objects::watch).
///
/// Nothing is missed by who makes the watch first and then looks at the objects: what has changed since the watch was
/// made, or since it last woke up, ends the next wait at once. It may wake up for nothing.
pub trait Watch: Send + fmt::Debug {
    /// Waits until something may have changed, or the writer may have ended, at most so long.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if the objects cannot be watched any more.
    fn wait(&mut self, timeout: Duration) -> Result<WatchEvent>;
}
