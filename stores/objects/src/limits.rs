//! How often and how long requests are tried.

use std::time::Duration;

/// What bounds the requests of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// How often a request is made at most, the first time included.
    pub max_attempts: u32,
    /// The longest time of one attempt.
    pub attempt_timeout: Duration,
    /// The longest time from the first attempt to the beginning of the last one.
    pub retry_timeout: Duration,
    /// The pause before the second attempt. Each later pause is twice as long at most, and random within its half.
    pub first_pause: Duration,
    /// The longest pause.
    pub max_pause: Duration,
    /// Most requests of the client at a time.
    pub max_in_flight: usize,
    /// Most bytes of an object that is read whole.
    pub max_get_bytes: u64,
}

impl Default for RequestLimits {
    fn default() -> Self {
        RequestLimits {
            max_attempts: 7,
            attempt_timeout: Duration::from_secs(30),
            retry_timeout: Duration::from_secs(60),
            first_pause: Duration::from_millis(50),
            max_pause: Duration::from_secs(5),
            max_in_flight: 64,
            max_get_bytes: 4 << 30,
        }
    }
}

impl RequestLimits {
    /// The pause after so many attempts (one or more).
    pub(crate) fn pause(&self, attempts: u32) -> Duration {
        let longest = self.first_pause.saturating_mul(1 << attempts.saturating_sub(1).min(20)).min(self.max_pause);
        longest.mul_f64(0.5 + 0.5 * fastrand::f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_bounded() {
        let limits = RequestLimits::default();
        let bounds = |attempts, low, high| {
            (0..200).all(|_| (low..=high).contains(&(limits.pause(attempts).as_secs_f64() * 1000.0)))
        };
        assert!(bounds(1, 25.0, 50.0) && bounds(2, 50.0, 100.0) && bounds(3, 100.0, 200.0));
        assert!(bounds(30, 2500.0, 5000.0) && bounds(u32::MAX, 2500.0, 5000.0));
    }
}
