//! When a reader looks at the file again: often while things happen, seldom while nothing does.

use std::time::Duration;

use h5live_model::Wake;

use super::rhythm::Rhythm;
use crate::Result;

/// The shortest rest between two looks. The system adds some tens of microseconds.
const SHORTEST: Duration = Duration::from_micros(20);
/// The longest rest where the system does not tell of changes.
const LONGEST: Duration = Duration::from_millis(50);
/// The rests where it does: looking by oneself is only a precaution then.
const TOLD: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));
/// The longest rest from changes that were told of but are none of what is watched.
const LONGEST_RESPITE: Duration = Duration::from_millis(5);
/// Changes told of in vain before there are such rests. A flush is some writes, of which the last counts.
const IN_VAIN: u32 = 16;
/// So long it is looked again and again after a write was heard, before resting: the last write of a flush is near, and to
/// be woken up once more takes longer than to wait for it.
const LINGER: Duration = Duration::from_micros(40);
/// Changes in a row that the system did not tell of before it is not relied upon.
const UNTOLD: u32 = 3;
/// What comes late is noticed late by at most this part of the time since the last change.
const PART: u32 = 8;

/// What ended a rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// The time is over.
    Nothing,
    /// The file was written.
    Write,
    /// A process that had the file open for writing has let go of it, or somebody has changed its attributes, as who takes a
    /// name from it does.
    Close,
}

/// A clock, and ears.
pub trait Senses: Send {
    /// The time since some moment.
    fn now(&self) -> Duration;

    /// Rests so long, or until something is heard that was not heard before.
    fn listen(&mut self, rest: Duration) -> Heard;

    /// Whether anything may be heard at all.
    fn can_hear(&self) -> bool;

    /// Rests so long, and hears nothing.
    fn sleep(&mut self, rest: Duration);

    /// Lets others go first, for no time at all if there are none.
    fn yield_now(&mut self);
}

/// What a look at the file shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// What is watched is as it was.
    Same,
    /// It is not.
    Changed,
    /// The writer says that it has ended.
    Ended,
}

/// Decides when to look.
#[derive(Debug)]
pub struct Attention<S> {
    senses: S,
    rhythm: Rhythm,
    /// Changes heard of since the last one that was seen.
    in_vain: u32,
    /// Changes that were not heard of since one that was; `None` before the first change.
    untold: Option<u32>,
    /// Something may be heard that has been seen.
    is_behind: bool,
}

impl<S: Senses> Attention<S> {
    pub fn new(senses: S) -> Self {
        Attention { rhythm: Rhythm::new(senses.now()), senses, in_vain: 0, untold: None, is_behind: false }
    }

    /// Looks until there is something to see, at most so long.
    ///
    /// # Errors
    /// Those of `look`.
    pub fn wait(&mut self, timeout: Duration, mut look: impl FnMut() -> Result<Look>) -> Result<Wake> {
        let deadline = self.senses.now().saturating_add(timeout);
        let mut heard = None;
        if std::mem::take(&mut self.is_behind) {
            // What was heard before a look is seen by it.
            heard = Some(self.senses.listen(Duration::ZERO)).filter(|heard| *heard == Heard::Close);
        }
        let mut lingers_until = Duration::ZERO;
        loop {
            match look()? {
                Look::Same if self.senses.now() < lingers_until.min(deadline) => {
                    self.senses.yield_now();
                    continue;
                }
                Look::Same => {}
                Look::Changed => {
                    self.has_changed(heard);
                    return Ok(Wake::Changed);
                }
                Look::Ended => return Ok(Wake::Ended),
            }
            if heard == Some(Heard::Close) {
                return Ok(Wake::Ended);
            }
            let left = deadline.saturating_sub(self.senses.now());
            if left.is_zero() {
                return Ok(Wake::Timeout);
            }
            (heard, lingers_until) = self.rest(left);
        }
    }

    /// The shortest and the longest rest.
    fn rests(&self) -> (Duration, Duration) {
        match self.untold {
            Some(untold) if untold < UNTOLD => TOLD,
            None if self.senses.can_hear() => (SHORTEST, TOLD.1),
            _ => (SHORTEST, LONGEST),
        }
    }

    /// Rests; returns what ended that, unless it is that something is due, and how long to look again and again then.
    fn rest(&mut self, left: Duration) -> (Option<Heard>, Duration) {
        let now = self.senses.now();
        let due = self.rhythm.due().filter(|(_, until)| now < *until);
        let heard = match due {
            Some((from, _)) => {
                let rest = from.saturating_sub(now).min(left);
                let heard = self.listen(rest);
                let late = self.senses.now().checked_sub(now + rest).filter(|_| !rest.is_zero());
                late.into_iter().for_each(|late| self.rhythm.woke(late));
                heard
            }
            None => {
                let idle = now.saturating_sub(self.rhythm.last()) / PART;
                if self.in_vain >= IN_VAIN {
                    self.senses.sleep(idle.clamp(SHORTEST, LONGEST_RESPITE).min(left));
                }
                let (shortest, longest) = self.rests();
                self.senses.listen(idle.clamp(shortest, longest).min(left))
            }
        };
        self.in_vain += u32::from(heard == Heard::Write);
        match (heard, due) {
            (Heard::Nothing, Some((_, until))) => (None, until),
            (Heard::Write, _) if self.in_vain < IN_VAIN => (Some(heard), self.senses.now() + LINGER),
            _ => (Some(heard), Duration::ZERO),
        }
    }

    /// Rests until something is due.
    fn listen(&mut self, rest: Duration) -> Heard {
        match rest {
            Duration::ZERO => Heard::Nothing,
            _ if self.in_vain < IN_VAIN => self.senses.listen(rest),
            _ => {
                self.senses.sleep(rest);
                Heard::Nothing
            }
        }
    }

    /// `heard` says what led to the look; `None` if it was the first one of a wait, or was due.
    fn has_changed(&mut self, heard: Option<Heard>) {
        self.rhythm.beat(self.senses.now());
        self.is_behind = self.senses.can_hear();
        self.in_vain = 0;
        match (heard, &mut self.untold) {
            (Some(Heard::Write), untold) => *untold = Some(0),
            (Some(Heard::Nothing), Some(untold)) => *untold = untold.saturating_add(1),
            (Some(Heard::Nothing), untold) => *untold = Some(UNTOLD),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
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

    impl Senses for Scripted {
        fn now(&self) -> Duration {
            Duration::from_micros(self.now.load(Ordering::Relaxed))
        }

        fn listen(&mut self, rest: Duration) -> Heard {
            let until = (self.now() + rest).as_micros() as u64;
            let now = self.now().as_micros() as u64;
            let next = self.writes.iter().copied().find(|at| *at > self.heard && *at <= until);
            self.now.store(next.map_or(until, |at| at.max(now)), Ordering::Relaxed);
            self.heard = self.now.load(Ordering::Relaxed);
            if next.is_some() { Heard::Write } else { Heard::Nothing }
        }

        fn can_hear(&self) -> bool {
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
    fn follow(told: bool, changes: &[u64], other_writes: &[u64], end: u64) -> (Vec<u64>, u64) {
        let mut writes = if told { [changes, other_writes].concat() } else { Vec::new() };
        writes.sort_unstable();
        let (senses, now) = Scripted::new(&writes);
        let (looks, seen, mut late) = (Cell::new(0), Cell::new(0), Vec::new());
        let mut attention = Attention::new(senses);
        loop {
            let there = || changes.iter().filter(|at| **at <= now.load(Ordering::Relaxed)).count();
            let look = || {
                looks.set(looks.get() + 1);
                Ok(if there() > seen.replace(there()) { Look::Changed } else { Look::Same })
            };
            let left = end.saturating_sub(now.load(Ordering::Relaxed));
            if attention.wait(Duration::from_micros(left), look).unwrap() == Wake::Timeout {
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
        let mut attention = Attention::new(senses);
        let look = || Ok(if now.load(Ordering::Relaxed) >= 1020 { Look::Changed } else { Look::Same });
        assert_eq!(attention.wait(Duration::from_secs(1), look).unwrap(), Wake::Changed);
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
        let mut attention = Attention::new(senses);
        let mut late = Vec::new();
        for after in [10 * SECOND, 10 * SECOND] {
            let at = now.load(Ordering::Relaxed) + after;
            let look = || Ok(if now.load(Ordering::Relaxed) >= at { Look::Changed } else { Look::Same });
            assert_eq!(attention.wait(Duration::MAX, look).unwrap(), Wake::Changed);
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
        let mut attention = Attention::new(senses);
        let mut seen_late = Vec::new();
        for after in [1000, 2 * SECOND, 2 * SECOND, 2 * SECOND, 1000, 1000] {
            let at = now.load(Ordering::Relaxed) + after;
            let look = || Ok(if now.load(Ordering::Relaxed) >= at { Look::Changed } else { Look::Same });
            assert_eq!(attention.wait(Duration::MAX, look).unwrap(), Wake::Changed);
            seen_late.push(now.load(Ordering::Relaxed) - at);
        }
        assert!(seen_late[4] <= 1000 / 7 && seen_late[5] <= 1000 / 7, "{seen_late:?}");
    }
}
