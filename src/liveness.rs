//! Checks whether the file of a follower is still being written.

use std::time::{Duration, Instant};

use crate::{Error, Result};

/// The longest time between two checks.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(1);

/// The checks of one follower.
#[derive(Debug, Default)]
pub(crate) struct LivenessCheck {
    /// The next time at which to check that the file is still the one that is being written.
    check_at: Option<Instant>,
    /// The error that follows the last items, if the file was deleted, replaced or truncated.
    pub ending: Option<Error>,
}

impl LivenessCheck {
    /// Whether a writer may still be at work, by the answer of the file at the path. A file that was deleted, replaced
    /// or truncated is not being written; the error that says so is kept for the end.
    pub fn update(&mut self, is_live: Result<bool>) -> Result<bool> {
        let (live, ending) = match is_live {
            Err(error) if error.file_change().is_some() => (Ok(false), Some(error)),
            live => (live, None),
        };
        self.ending = ending;
        live
    }

    /// Whether it is time for a check. A follower that always finds something new does it, too.
    pub fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.ending.is_some() || self.check_at.is_some_and(|at| now >= at);
        if is_due || self.check_at.is_none() {
            self.check_at = Some(now + MAX_WAIT);
        }
        is_due
    }
}
