//! Monotonic time, as an argument: tests turn it by hand.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A clock that never goes back. Clones show the same time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl Clock {
    /// A clock that shows what `now` returns, which must never go back.
    pub fn new(now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Clock(Arc::new(now))
    }

    /// The time since some moment in the past.
    pub fn now(&self) -> Duration {
        (self.0)()
    }
}

impl Default for Clock {
    /// The system's monotonic clock.
    fn default() -> Self {
        let begin = Instant::now();
        Clock::new(move || begin.elapsed())
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}
