//! Checks whether the file of a follower is still being written.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::{Error, Result};

/// The longest time between two checks.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(1);

/// The checks of one follower.
#[derive(Debug, Default)]
pub(crate) struct LivenessCheck {
    /// The next time at which to check that the file is still the one that is being written.
    next_check: Option<Instant>,
    /// The error that follows the last items, if the file was deleted, replaced or truncated.
    pub pending_error: Option<Error>,
}

impl LivenessCheck {
    /// Whether a writer may still be at work, by the answer of the file at the path. A file that was deleted, replaced
    /// or truncated is not being written; the error that says so is kept for the end.
    pub fn defer_file_change_error(&mut self, is_live: Result<bool>) -> Result<bool> {
        let (live, ending) = match is_live {
            Err(error) if error.file_change().is_some() => (Ok(false), Some(error)),
            live => (live, None),
        };
        self.pending_error = ending;
        live
    }

    /// Whether it is time for a check. A follower that always finds something new does it, too, unless another of this
    /// file has just done so.
    pub fn claim_due_check(&mut self, found_live: &LastFoundLive) -> bool {
        let now = Instant::now();
        let is_due = self.pending_error.is_some() || self.next_check.is_some_and(|at| now >= at);
        if is_due || self.next_check.is_none() {
            self.next_check = Some(now + MAX_WAIT);
        }
        is_due && !(self.pending_error.is_none() && found_live.is_within(MAX_WAIT))
    }
}

/// When a file was last found to be written.
#[derive(Debug, Default)]
pub(crate) struct LastFoundLive(Mutex<Option<Instant>>);

impl LastFoundLive {
    /// It was, just now.
    pub fn mark_now(&self) {
        *self.0.lock() = Some(Instant::now());
    }

    fn is_within(&self, time: Duration) -> bool {
        self.0.lock().is_some_and(|found| found.elapsed() < time)
    }
}
