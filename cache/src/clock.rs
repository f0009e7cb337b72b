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
    /// The system's monotonic clock. On Linux, the time during which the machine sleeps counts, too: a reader that slept
    /// has old pointers.
    fn default() -> Self {
        #[cfg(target_os = "linux")]
        if let Some(begin) = since_boot() {
            return Clock::new(move || since_boot().unwrap_or(begin).saturating_sub(begin));
        }
        let begin = Instant::now();
        Clock::new(move || begin.elapsed())
    }
}

/// The time since the machine was started.
#[cfg(target_os = "linux")]
fn since_boot() -> Option<Duration> {
    use nix::time::{ClockId, clock_gettime};

    clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from).ok()
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}
