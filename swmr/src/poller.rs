//! When a reader looks at the file again: often while things happen, seldom while nothing does.

use std::time::Duration;

use h5live_model::WatchEvent;

mod change_predictor;

use self::change_predictor::ChangePredictor;

/// The shortest rest between two looks. The system adds some tens of microseconds.
const MIN_POLL_INTERVAL: Duration = Duration::from_micros(20);
/// The longest sleep if the system does not report changes.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The rests where it does: looking by oneself is only a precaution then.
const NOTIFIED_POLL_INTERVALS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));
/// The longest pause after reports of changes that concern nothing that is watched.
const MAX_UNRELATED_BACKOFF: Duration = Duration::from_millis(5);
/// Reports of unrelated changes before there are such pauses. A flush is several writes, and the last one counts.
const UNRELATED_EVENTS_BEFORE_BACKOFF: u32 = 16;
/// The time for which the poller looks again and again after a report, before it sleeps. The last write of a flush is
/// near, and a wake-up takes longer than waiting for it.
const SPIN_TIME: Duration = Duration::from_micros(40);
/// Successive changes without a report after which reports are no longer relied on.
const MISSED_EVENTS_BEFORE_FALLBACK: u32 = 3;
/// A late change is noticed later by at most this part of the time since the last change.
const LATENCY_FRACTION: u32 = 8;

/// The event that ended a sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileEvent {
    /// The time is over.
    Timeout,
    /// The file was written.
    Write,
    /// A process has closed a handle for writing, or the attributes of the file have changed, as when one of its names
    /// is removed.
    CloseOrAttributeChange,
}

/// A clock, and ears.
pub trait WakeSource: Send {
    /// The time since some moment.
    fn now(&self) -> Duration;

    /// Sleeps for `rest`, or until a new event is reported.
    fn wait_event(&mut self, rest: Duration) -> FileEvent;

    /// Whether anything may be heard at all.
    fn can_report_events(&self) -> bool;

    /// Sleeps for `rest`, and takes no events.
    fn sleep(&mut self, rest: Duration);

    /// Lets others go first, for no time at all if there are none.
    fn yield_now(&mut self);
}

/// The result of a look at the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeResult {
    /// The watched bytes are unchanged.
    Same,
    /// It is not.
    Changed,
    /// The writer says that it has ended.
    Ended,
}

/// Decides when to look.
#[derive(Debug)]
pub struct Poller<S> {
    source: S,
    predictor: ChangePredictor,
    /// Changes heard of since the last one that was seen.
    unrelated_events: u32,
    /// Changes that were not heard of since one that was; `None` before the first change.
    missed_events: Option<u32>,
    /// Something may be heard that has been seen.
    is_behind: bool,
}

impl<S: WakeSource> Poller<S> {
    /// A poller that sleeps by `source`.
    pub fn new(source: S) -> Self {
        Poller {
            predictor: ChangePredictor::new(source.now()),
            source,
            unrelated_events: 0,
            missed_events: None,
            is_behind: false,
        }
    }

    /// Calls `look` until it sees a change, for at most `timeout`.
    ///
    /// # Errors
    /// Errors of `look`.
    pub fn wait<E>(
        &mut self,
        timeout: Duration,
        mut look: impl FnMut() -> Result<ProbeResult, E>,
    ) -> Result<WatchEvent, E> {
        let deadline = self.source.now().saturating_add(timeout);
        let mut heard = None;
        if std::mem::take(&mut self.is_behind) {
            // A look sees all writes that were reported before it.
            heard = Some(self.source.wait_event(Duration::ZERO))
                .filter(|heard| *heard == FileEvent::CloseOrAttributeChange);
        }
        let mut lingers_until = Duration::ZERO;
        loop {
            match look()? {
                ProbeResult::Same if self.source.now() < lingers_until.min(deadline) => {
                    self.source.yield_now();
                    continue;
                }
                ProbeResult::Same => {}
                ProbeResult::Changed => {
                    self.record_change(heard);
                    return Ok(WatchEvent::Changed);
                }
                ProbeResult::Ended => return Ok(WatchEvent::Ended),
            }
            if heard == Some(FileEvent::CloseOrAttributeChange) {
                return Ok(WatchEvent::Ended);
            }
            let left = deadline.saturating_sub(self.source.now());
            if left.is_zero() {
                return Ok(WatchEvent::Timeout);
            }
            (heard, lingers_until) = self.wait_next(left);
        }
    }

    /// The shortest and the longest rest.
    fn poll_intervals(&self) -> (Duration, Duration) {
        match self.missed_events {
            Some(missed_events) if missed_events < MISSED_EVENTS_BEFORE_FALLBACK => NOTIFIED_POLL_INTERVALS,
            None if self.source.can_report_events() => (MIN_POLL_INTERVAL, NOTIFIED_POLL_INTERVALS.1),
            _ => (MIN_POLL_INTERVAL, MAX_POLL_INTERVAL),
        }
    }

    /// Rests; returns what ended that, unless it is that something is due, and how long to look again and again then.
    fn wait_next(&mut self, left: Duration) -> (Option<FileEvent>, Duration) {
        let now = self.source.now();
        let due = self.predictor.next_wake_window().filter(|(_, until)| now < *until);
        let heard = match due {
            Some((from, _)) => {
                let rest = from.saturating_sub(now).min(left);
                let heard = self.wait_due(rest);
                let late = self.source.now().checked_sub(now + rest).filter(|_| !rest.is_zero());
                late.into_iter().for_each(|late| self.predictor.record_wakeup(late));
                heard
            }
            None => {
                let idle = now.saturating_sub(self.predictor.last_change_time()) / LATENCY_FRACTION;
                if self.unrelated_events >= UNRELATED_EVENTS_BEFORE_BACKOFF {
                    self.source.sleep(idle.clamp(MIN_POLL_INTERVAL, MAX_UNRELATED_BACKOFF).min(left));
                }
                let (shortest, longest) = self.poll_intervals();
                self.source.wait_event(idle.clamp(shortest, longest).min(left))
            }
        };
        self.unrelated_events += u32::from(heard == FileEvent::Write);
        match (heard, due) {
            (FileEvent::Timeout, Some((_, until))) => (None, until),
            (FileEvent::Write, _) if self.unrelated_events < UNRELATED_EVENTS_BEFORE_BACKOFF => {
                (Some(heard), self.source.now() + SPIN_TIME)
            }
            _ => (Some(heard), Duration::ZERO),
        }
    }

    /// Rests until something is due.
    fn wait_due(&mut self, rest: Duration) -> FileEvent {
        match rest {
            Duration::ZERO => FileEvent::Timeout,
            _ if self.unrelated_events < UNRELATED_EVENTS_BEFORE_BACKOFF => self.source.wait_event(rest),
            _ => {
                self.source.sleep(rest);
                FileEvent::Timeout
            }
        }
    }

    /// Records a change. `heard` is the event that led to the look; `None` if it was the first look of a wait, or was
    /// due.
    fn record_change(&mut self, heard: Option<FileEvent>) {
        self.predictor.record_change(self.source.now());
        self.is_behind = self.source.can_report_events();
        self.unrelated_events = 0;
        match (heard, &mut self.missed_events) {
            (Some(FileEvent::Write), missed_events) => *missed_events = Some(0),
            (Some(FileEvent::Timeout), Some(missed_events)) => *missed_events = missed_events.saturating_add(1),
            (Some(FileEvent::Timeout), missed_events) => *missed_events = Some(MISSED_EVENTS_BEFORE_FALLBACK),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A clock that only goes on while somebody rests, and a file that changes at some times.
    struct Scripted {
        /// Microseconds.
        now: Arc<AtomicU64>,
        /// When the file is written, in order (µs), if the system tells of it.
        writes: Vec<u64>,
        heard: u64,
        deaf: bool,
    }

    impl Scripted {
        fn new(writes: &[u64]) -> (Self, Arc<AtomicU64>) {
            let now = Arc::new(AtomicU64::new(0));
            (Scripted { now: now.clone(), writes: writes.to_vec(), heard: 0, deaf: writes.is_empty() }, now)
        }
    }

    impl WakeSource for Scripted {
        fn now(&self) -> Duration {
            Duration::from_micros(self.now.load(Ordering::Relaxed))
        }

        fn wait_event(&mut self, rest: Duration) -> FileEvent {
            let until = (self.now() + rest).as_micros() as u64;
            let now = self.now().as_micros() as u64;
            let next = self.writes.iter().copied().find(|at| *at > self.heard && *at <= until);
            self.now.store(next.map_or(until, |at| at.max(now)), Ordering::Relaxed);
            self.heard = self.now.load(Ordering::Relaxed);
            if next.is_some() { FileEvent::Write } else { FileEvent::Timeout }
        }

        fn can_report_events(&self) -> bool {
            !self.deaf
        }

        fn yield_now(&mut self) {
            self.now.fetch_add(1, Ordering::Relaxed);
        }

        fn sleep(&mut self, rest: Duration) {
            self.now.fetch_add(rest.as_micros() as u64, Ordering::Relaxed);
        }
    }

    /// Follows changes at the times `changes` (µs) until `end`: how late each is seen (µs), and the number of looks.
    fn follow(is_notified: bool, changes: &[u64], other_writes: &[u64], end: u64) -> (Vec<u64>, u64) {
        let mut writes = if is_notified { [changes, other_writes].concat() } else { Vec::new() };
        writes.sort_unstable();
        let (senses, now) = Scripted::new(&writes);
        let (looks, seen, mut late) = (Cell::new(0), Cell::new(0), Vec::new());
        let mut attention = Poller::new(senses);
        loop {
            let there = || changes.iter().filter(|at| **at <= now.load(Ordering::Relaxed)).count();
            let look = || {
                looks.set(looks.get() + 1);
                Ok::<_, Infallible>(if there() > seen.replace(there()) {
                    ProbeResult::Changed
                } else {
                    ProbeResult::Same
                })
            };
            let left = end.saturating_sub(now.load(Ordering::Relaxed));
            if attention.wait(Duration::from_micros(left), look).unwrap() == WatchEvent::Timeout {
                return (late, looks.get());
            }
            late.push(now.load(Ordering::Relaxed) - changes[seen.get() - 1]);
        }
    }

    const SECOND: u64 = 1_000_000;

    #[test]
    fn sees_what_it_is_told_of_at_once_and_sleeps_between() {
        let irregular: Vec<u64> = (1..=1000).map(|n| n * 1000 + (n * n * 7919) % 900).collect();
        let (late, looks) = follow(true, &irregular, &[], SECOND + 1000);
        assert_eq!((late.len(), late.iter().max()), (1000, Some(&0)));
        // Two for each: the one that sees it, and the one that finds nothing more. Now and then there is a rhythm.
        assert!(looks < 2 * 1000 + 5000, "{looks}");
    }

    #[test]
    fn is_awake_a_fifth_of_the_time_when_what_comes_regularly_is_due() {
        let every_ms: Vec<u64> = (1..=1000).map(|n| n * 1000).collect();
        let (late, looks) = follow(true, &every_ms, &[], SECOND + 1);
        assert_eq!((late.len(), late.iter().max()), (1000, Some(&0)));
        // Each look takes a microsecond.
        assert!(looks < SECOND / 5, "{looks}");
        // So it is where nothing is told.
        let (late, looks) = follow(false, &every_ms, &[], SECOND + 1);
        assert!(late.len() == 1000 && late[20..].iter().all(|late| *late <= 1), "{late:?}");
        assert!(looks < SECOND / 5, "{looks}");
    }

    #[test]
    fn looks_again_at_once_for_what_comes_soon_after_a_write_that_it_was_told_of() {
        // Where nothing else tells of the change itself.
        let (senses, now) = Scripted::new(&[1000]);
        let mut attention = Poller::new(senses);
        let look = || {
            Ok::<_, Infallible>(if now.load(Ordering::Relaxed) >= 1020 {
                ProbeResult::Changed
            } else {
                ProbeResult::Same
            })
        };
        assert_eq!(attention.wait(Duration::from_secs(1), look).unwrap(), WatchEvent::Changed);
        assert_eq!(now.load(Ordering::Relaxed), 1020);
    }

    #[test]
    fn an_idle_follower_that_is_told_wakes_up_once_a_second() {
        let (_, before) = follow(true, &[1000, 2000], &[], 10 * SECOND);
        let (_, after) = follow(true, &[1000, 2000], &[], 110 * SECOND);
        assert!(after - before <= 101, "{before} {after}");
    }

    #[test]
    fn an_idle_follower_that_has_heard_nothing_yet_wakes_up_once_a_second_until_it_was_not_told() {
        let (_, before) = follow(true, &[], &[500 * SECOND], 10 * SECOND);
        let (_, after) = follow(true, &[], &[500 * SECOND], 110 * SECOND);
        assert!(after - before <= 101, "{before} {after}");
        let (mut senses, now) = Scripted::new(&[]);
        senses.deaf = false;
        let mut attention = Poller::new(senses);
        let mut late = Vec::new();
        for after in [10 * SECOND, 10 * SECOND] {
            let at = now.load(Ordering::Relaxed) + after;
            let look = || {
                Ok::<_, Infallible>(if now.load(Ordering::Relaxed) >= at {
                    ProbeResult::Changed
                } else {
                    ProbeResult::Same
                })
            };
            assert_eq!(attention.wait(Duration::MAX, look).unwrap(), WatchEvent::Changed);
            late.push(now.load(Ordering::Relaxed) - at);
        }
        assert!(late[0] <= SECOND && late[1] <= 50_000, "{late:?}");
    }

    #[test]
    fn an_idle_follower_that_is_not_told_wakes_up_twenty_times_a_second() {
        let (_, before) = follow(false, &[1000, 2000], &[], 10 * SECOND);
        let (_, after) = follow(false, &[1000, 2000], &[], 110 * SECOND);
        assert!(after - before <= 2001, "{before} {after}");
    }

    #[test]
    fn sees_what_it_is_not_told_of_with_a_delay_that_grows_with_the_time_since_the_last() {
        let times: Vec<u64> = (1..=200).map(|n| n * 1000).chain((1..=10).map(|n| n * SECOND)).collect();
        let (late, _) = follow(false, &times, &[], 11 * SECOND);
        assert_eq!(late.len(), times.len());
        assert!(late[..200].iter().all(|late| *late <= 1000 / 7), "{late:?}");
        assert!(late[200..].iter().all(|late| *late <= 50_000), "{late:?}");
    }

    #[test]
    fn writes_of_other_things_wake_it_less_often_than_they_come() {
        let noise: Vec<u64> = (0..100_000).map(|n| n * 100 + 7).collect();
        let (late, looks) = follow(true, &[1000, 9 * SECOND], &noise, 10 * SECOND);
        assert!(late.iter().all(|late| *late <= 5_100), "{late:?}");
        assert!(looks < 4_000, "{looks}");
    }

    #[test]
    fn ears_that_have_gone_deaf_are_not_relied_upon() {
        let (senses, now) = Scripted::new(&[1000]);
        let mut attention = Poller::new(senses);
        let mut seen_late = Vec::new();
        for after in [1000, 2 * SECOND, 2 * SECOND, 2 * SECOND, 1000, 1000] {
            let at = now.load(Ordering::Relaxed) + after;
            let look = || {
                Ok::<_, Infallible>(if now.load(Ordering::Relaxed) >= at {
                    ProbeResult::Changed
                } else {
                    ProbeResult::Same
                })
            };
            assert_eq!(attention.wait(Duration::MAX, look).unwrap(), WatchEvent::Changed);
            seen_late.push(now.load(Ordering::Relaxed) - at);
        }
        assert!(seen_late[4] <= 1000 / 7 && seen_late[5] <= 1000 / 7, "{seen_late:?}");
    }
}
