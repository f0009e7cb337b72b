//! Prediction of the next change from the times of the last ones.

use std::time::Duration;

/// Times between changes for which it is worth being awake when one is due. Below, a sleep is short anyway. Above, too
/// much time would be lost.
const PREDICTABLE_GAPS: std::ops::RangeInclusive<Duration> = Duration::from_micros(500)..=Duration::from_millis(50);
/// At most this fraction of the time between changes is spent awake, and never more than this long.
const MAX_SPIN_FRACTION: u32 = 5;
const MAX_SPIN: Duration = Duration::from_micros(250);
/// Changes that came when they were due before the next one is relied upon, and those that are remembered.
const MIN_REGULAR_CHANGES: u32 = 4;
const MAX_REGULAR_CHANGES: u32 = 16;

/// The times of changes, as far as they are regular.
#[derive(Debug)]
pub struct ChangePredictor {
    last: Duration,
    gap: Duration,
    /// How many changes came when they were due, less those that did not.
    steady: u32,
    /// How late a sleeper wakes up.
    late: Duration,
}

impl ChangePredictor {
    pub fn new(now: Duration) -> Self {
        ChangePredictor { last: now, gap: Duration::MAX, steady: 0, late: Duration::ZERO }
    }

    /// When there was the last change.
    pub fn last_change_time(&self) -> Duration {
        self.last
    }

    /// There is a change.
    pub fn record_change(&mut self, now: Duration) {
        let gap = now.saturating_sub(std::mem::replace(&mut self.last, now));
        if gap.abs_diff(self.gap) <= self.gap / 4 {
            self.steady = (self.steady + 1).min(MAX_REGULAR_CHANGES);
            self.gap = (self.gap * 3 + gap) / 4;
        } else {
            self.steady /= 2;
            self.gap = if self.steady < MIN_REGULAR_CHANGES { gap } else { self.gap };
        }
    }

    /// Records that a sleeper woke up this much after the time at which the next change was due.
    pub fn record_wakeup(&mut self, late: Duration) {
        self.late = (self.late * 3 + late.min(MAX_SPIN)) / 4;
    }

    /// The time span in which it is worth being awake for the next change. The time to sleep takes into account that a
    /// sleeper wakes up late.
    pub fn next_wake_window(&self) -> Option<(Duration, Duration)> {
        if self.steady < MIN_REGULAR_CHANGES || !PREDICTABLE_GAPS.contains(&self.gap) {
            return None;
        }
        let (due, awake) = (self.last + self.gap, (self.gap / MAX_SPIN_FRACTION).min(MAX_SPIN));
        let from = due - awake / 2;
        Some((from.saturating_sub(self.late).max(self.last), due + awake / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(gaps: impl IntoIterator<Item = u64>) -> ChangePredictor {
        let mut rhythm = ChangePredictor::new(Duration::ZERO);
        let mut now = 0;
        for gap in gaps {
            now += gap;
            rhythm.record_change(Duration::from_micros(now));
        }
        rhythm
    }

    #[test]
    fn what_comes_regularly_is_due_a_little_after_one_is_awake() {
        let rhythm = after([1000, 1010, 990, 1005, 1000, 1000]);
        let (from, until) = rhythm.next_wake_window().unwrap();
        let due = rhythm.last_change_time() + Duration::from_millis(1);
        assert!(from < due && due < until, "{from:?} {until:?}");
        assert!(until - from <= Duration::from_micros(201));
    }

    #[test]
    fn what_does_not_come_regularly_is_not_due() {
        assert_eq!(after([1000, 300, 5000, 40, 2000, 100, 900]).next_wake_window(), None);
        assert_eq!(after([]).next_wake_window(), None);
        assert_eq!(after([1000]).next_wake_window(), None);
    }

    #[test]
    fn very_fast_and_very_slow_rhythms_are_slept_through() {
        assert_eq!(after([100; 20]).next_wake_window(), None);
        assert_eq!(after([1_000_000; 20]).next_wake_window(), None);
    }

    #[test]
    fn one_that_is_late_does_not_spoil_the_rhythm_and_a_new_one_is_learnt() {
        let late = after([1000; 20].into_iter().chain([7000]));
        assert!(late.next_wake_window().is_some());
        let other = after([1000; 20].into_iter().chain([3000; 12]));
        let (from, until) = other.next_wake_window().unwrap();
        let due = other.last_change_time() + Duration::from_millis(3);
        assert!(from < due && due < until, "{from:?} {until:?}");
    }
}
