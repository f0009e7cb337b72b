//! The reader's retry policy: a torn read is repeated, a bounded number of times.

use std::fmt;
use std::hash::DefaultHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use h5live_cache::{Clock, ReusePolicy};
use h5live_format::Addr;
use parking_lot::Mutex;

use crate::error::RetryableError;
use crate::file_change::ForeignFileChangeDetector;
use crate::generation::GenerationReader;
use crate::locking::LockHandle;
use crate::redo::RedoReader;
use crate::{Error, Result};

/// Attempts after which it is looked up what the writer was about to write, in case it is dead.
const ATTEMPTS_BEFORE_REDO: u32 = 8;

/// The first attempt after which there is a wait. Before that it is asked whether there is anybody to wait for.
const FIRST_WAIT: u32 = 4;

/// The attempt from which on the waits do not grow.
const LONGEST_WAIT_FROM: u32 = 15;

/// This part of the passing time may be spent waiting again for structures that stay torn.
const WAITING_PART: u32 = 8;

/// Most looks for something that may never come. They take about an eighth of a second.
const LOOKS: u32 = 20;

/// The longest time for which a reader may trust an address that it has read. No writer uses space again earlier than
/// this after the flush that made it unreachable.
const MAX_READ_AGE: Duration = ReusePolicy::MIN_GRACE;

/// How often, and at which intervals, a reader tries again when it meets a structure in the middle of its write.
///
/// The first attempts do not wait. Then the waits double from 10 microseconds to 20 milliseconds. 60 attempts take
/// about a second. So an operation on a structure that its writer left half-written ends in an error after that time.
/// If the system says that no process has the file open for writing, there is no wait at all, but one more attempt.
///
/// Time that was waited in vain is not waited again. The waits of all operations of a session come from one
/// [budget](RetryPolicy::with_wait_budget). Waits that were of use go back to it, and so does an eighth of the passing time.
#[derive(Clone)]
pub struct RetryPolicy {
    max_attempts: u32,
    sleep: Arc<dyn Fn(Duration) + Send + Sync>,
    redo_reader: Option<Arc<RedoReader>>,
    generations: Option<Arc<GenerationReader>>,
    clock: Clock,
    counters: Arc<RetryCounters>,
    event_hook: Option<Arc<GenerationReadHook>>,
    wait_budget: Option<Arc<WaitBudget>>,
    lock: Option<Arc<LockHandle>>,
    opened_file: Option<Arc<ForeignFileChangeDetector>>,
}

/// The time that may be waited in vain.
#[derive(Debug)]
struct WaitBudget {
    total: Duration,
    left: Mutex<RemainingTime>,
}

#[derive(Debug)]
struct RemainingTime {
    time: Duration,
    /// When it was that much, by the clock.
    since: Option<Duration>,
}

/// How an operation goes that meets something torn.
#[derive(Debug, Default)]
struct RetryProgress {
    /// The time that it has taken from the budget.
    time_taken: Duration,
    /// The torn address of the last attempt, once it is known that there is no writer to wait for.
    abandoned_at: Option<Option<Addr>>,
}

impl WaitBudget {
    fn new(total: Duration) -> Self {
        WaitBudget { total, left: Mutex::new(RemainingTime { time: total, since: None }) }
    }

    /// Takes `wait` from the budget. Returns whether there was enough.
    fn take_wait(&self, wait: Duration, now: Duration) -> bool {
        let left = &mut *self.left.lock();
        let gone = left.since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        left.since = Some(now);
        left.time = left.time.saturating_add(gone / WAITING_PART).min(self.total);
        match left.time.checked_sub(wait) {
            Some(rest) => {
                left.time = rest;
                true
            }
            None => false,
        }
    }

    fn return_wait(&self, waited: Duration) {
        let left = &mut *self.left.lock();
        left.time = left.time.saturating_add(waited).min(self.total);
    }
}

/// Gets [`GenerationReadEvent`]s.
type GenerationReadHook = dyn Fn(GenerationReadEvent<'_>) + Send + Sync;

/// An event of an operation, most of them on a file whose writer shows generations. For the model checker.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum GenerationReadEvent<'a> {
    /// An attempt begins, the first one or a later one. The function hashes the kept state.
    AttemptStarted(u32, &'a dyn Fn(&mut DefaultHasher)),
    /// A read begins: the number of the generation. The function hashes the kept state.
    ReadStarted(Option<u64>, &'a dyn Fn(&mut DefaultHasher)),
    /// All has been read.
    ReadFinished,
    /// All that was read counts.
    ReadValidated,
    /// The awaited change has not come.
    PollTimedOut,
}

/// Counts of torn reads, for statistics.
#[derive(Debug, Default)]
pub struct RetryCounters {
    /// Operations that were repeated.
    pub retried_operations: AtomicU64,
    /// How often they were.
    pub retries: AtomicU64,
}

impl fmt::Debug for RetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy").field("attempts", &self.max_attempts).finish_non_exhaustive()
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy::with_attempts(Self::DEFAULT_ATTEMPTS)
    }
}

impl RetryPolicy {
    /// The default number of attempts at a structure.
    pub const DEFAULT_ATTEMPTS: u32 = 60;

    /// A policy with this many attempts. All operations of a session together wait in vain no longer than one of them
    /// would, plus an eighth of the passing time.
    pub fn with_attempts(attempts: u32) -> Self {
        let waits = attempts.saturating_sub(1);
        let shorter: Duration = (1..LONGEST_WAIT_FROM.min(attempts)).map(Self::backoff_delay).sum();
        let longest = waits.saturating_sub(LONGEST_WAIT_FROM - 1);
        let budget = shorter.saturating_add(Self::backoff_delay(LONGEST_WAIT_FROM).saturating_mul(longest));
        RetryPolicy::new(attempts, std::thread::sleep).with_wait_budget(budget)
    }

    /// A policy with this many attempts. `sleep` waits between them.
    pub fn new(attempts: u32, sleep: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        RetryPolicy {
            max_attempts: attempts.max(1),
            sleep: Arc::new(sleep),
            redo_reader: None,
            generations: None,
            clock: Clock::default(),
            counters: Arc::default(),
            event_hook: None,
            wait_budget: None,
            lock: None,
            opened_file: None,
        }
    }

    /// Limits the waiting: all operations of a session together wait in vain no longer than `total`, plus an eighth of
    /// the passing time. Each operation makes at least eight attempts, which take less than a millisecond.
    #[must_use]
    pub fn with_wait_budget(self, total: Duration) -> Self {
        RetryPolicy { wait_budget: Some(Arc::new(WaitBudget::new(total))), ..self }
    }

    /// The same policy for a new session. It measures time by `clock`, and asks `lock` whether the file has a writer.
    pub fn for_session(&self, clock: Clock, lock: Arc<LockHandle>) -> Self {
        let budget = self.wait_budget.as_ref().map(|budget| Arc::new(WaitBudget::new(budget.total)));
        RetryPolicy { clock, wait_budget: budget, lock: Some(lock), counters: Arc::default(), ..self.clone() }
    }

    /// The same policy. Errors say whether another program has changed the file.
    pub fn with_truncation_check(self, file: Arc<ForeignFileChangeDetector>) -> Self {
        RetryPolicy { opened_file: Some(file), ..self }
    }

    /// The same policy, which reports its events to `hook`.
    #[doc(hidden)]
    #[must_use]
    pub fn with_hook(self, hook: impl Fn(GenerationReadEvent<'_>) + Send + Sync + 'static) -> Self {
        RetryPolicy { event_hook: Some(Arc::new(hook)), ..self }
    }

    /// The same policy, which reads structures that stay torn from redo records.
    pub fn with_redo_reader(self, reader: RedoReader) -> Self {
        RetryPolicy { redo_reader: Some(Arc::new(reader)), ..self }
    }

    /// The same policy, for a file whose writer shows generations.
    pub fn with_generation_reader(self, generations: GenerationReader) -> Self {
        RetryPolicy { generations: Some(Arc::new(generations)), ..self }
    }

    /// The reader of redo records, if the file may have one.
    pub fn redo_reader(&self) -> Option<&RedoReader> {
        self.redo_reader.as_deref()
    }

    /// The reader of generations, if the file shows them.
    pub fn generation_reader(&self) -> Option<&GenerationReader> {
        self.generations.as_deref()
    }

    /// The same policy, which measures by `clock` how long an address may be trusted.
    #[cfg(test)]
    fn with_clock(self, clock: Clock) -> Self {
        RetryPolicy { clock, ..self }
    }

    /// Counts of torn reads.
    pub fn counters(&self) -> &RetryCounters {
        &self.counters
    }

    /// No retries: the first error counts. For files that nobody writes.
    pub fn no_retries() -> Self {
        RetryPolicy::new(1, |_| ())
    }

    /// Runs `operation`, again and again from its start, until it meets nothing torn and was fast enough that no writer
    /// can have used again the space that it has read.
    ///
    /// # Errors
    /// Errors that a repetition cannot mend, and [`RetryableError::into_torn_after_attempts`] when there are no attempts left.
    pub fn retry<T, E: RetryableError>(&self, mut operation: impl FnMut() -> Result<T, E>) -> Result<T, E> {
        self.retry_with_start_time(|_| operation())
    }

    /// As [`RetryPolicy::retry`]. `operation` sets the time at which its first pointer was read, if that was before its
    /// start.
    ///
    /// This is the reader's half of the protocol for the reuse of space. Everything that follows a pointer which a
    /// writer may change is done in here.
    ///
    /// # Errors
    /// As [`RetryPolicy::retry`].
    pub fn retry_with_start_time<T, E: RetryableError>(
        &self,
        mut operation: impl FnMut(&mut Duration) -> Result<T, E>,
    ) -> Result<T, E> {
        if self.generations.as_deref().is_some_and(GenerationReader::is_reading) {
            // The caller that began the read repeats it.
            return self.attempt_within_grace(&mut operation);
        }
        let _begun = self.redo_reader.as_deref().map(RedoReader::begin_operation);
        match self.attempt_in_generation(1, &mut operation) {
            Err(error) => self.retry_after_error(error, operation),
            done => done,
        }
    }

    /// Does the operation again that ended in `error` the first time.
    #[cold]
    fn retry_after_error<T, E: RetryableError>(
        &self,
        mut error: E,
        mut operation: impl FnMut(&mut Duration) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut progress = RetryProgress::default();
        for attempt in 1.. {
            if !error.may_be_torn() || self.max_attempts == 1 {
                self.return_wait_to_budget(&progress);
                return Err(self.truncation_or(error));
            }
            let wait = if attempt < self.max_attempts { self.wait_after(attempt, &error, &mut progress) } else { None };
            let Some(wait) = wait else {
                return Err(self.truncation_or(error.into_torn_after_attempts(attempt)));
            };
            self.counters.retried_operations.fetch_add(u64::from(attempt == 1), Ordering::Relaxed);
            self.counters.retries.fetch_add(1, Ordering::Relaxed);
            let is_time = attempt >= ATTEMPTS_BEFORE_REDO.min(self.max_attempts - 1) || progress.abandoned_at.is_some();
            if let (Some(redo_reader), Some(at), true) = (&self.redo_reader, error.addr(), is_time) {
                redo_reader.overlay_structure_at(at);
            }
            (self.sleep)(wait);
            error = match self.attempt_in_generation(attempt + 1, &mut operation) {
                Err(error) => error,
                Ok(done) => {
                    self.return_wait_to_budget(&progress);
                    return Ok(done);
                }
            };
        }
        unreachable!("attempts are counted")
    }

    /// The time to wait after this number of attempts, the last of which ended in `error`; `None` if another one is in
    /// vain.
    fn wait_after(&self, attempt: u32, error: &impl RetryableError, progress: &mut RetryProgress) -> Option<Duration> {
        if let Some(before) = &mut progress.abandoned_at {
            // The structure may be complete now. The second time, it stays torn.
            let at = error.addr();
            return (std::mem::replace(before, at) != at).then_some(Duration::ZERO);
        }
        // A structure that changes during the read is being written.
        let may_be_left = !error.is_overtaken();
        let is_left = || self.lock.as_ref().is_some_and(|lock| !lock.may_have_writer());
        if attempt >= FIRST_WAIT && may_be_left && is_left() {
            // A writer that was at work a moment ago may have finished since.
            progress.abandoned_at = Some(error.addr());
            return Some(Duration::ZERO);
        }
        let wait = Self::backoff_delay(attempt);
        if let Some(budget) = self.wait_budget.as_ref().filter(|_| attempt >= ATTEMPTS_BEFORE_REDO) {
            if !budget.take_wait(wait, self.clock.now()) {
                return None;
            }
            progress.time_taken += wait;
        }
        Some(wait)
    }

    /// Returns the waited time to the budget, because the waiting was not in vain.
    fn return_wait_to_budget(&self, progress: &RetryProgress) {
        if let Some(budget) = self.wait_budget.as_ref().filter(|_| !progress.time_taken.is_zero()) {
            budget.return_wait(progress.time_taken);
        }
    }

    fn truncation_or<E: RetryableError>(&self, error: E) -> E {
        match &self.opened_file {
            Some(file) => file.truncation_or(error),
            None => error,
        }
    }

    /// Calls `look` until it returns that there is no more to wait for, for at most about an eighth of a second. What
    /// is awaited may never come.
    ///
    /// # Errors
    /// Errors of `look`.
    pub fn poll_briefly<E>(&self, mut look: impl FnMut() -> Result<bool, E>) -> Result<(), E> {
        let (max_attempts, mut progress) = (self.max_attempts.min(LOOKS), RetryProgress::default());
        for attempt in 1..=max_attempts {
            if look()? {
                self.return_wait_to_budget(&progress);
                return Ok(());
            }
            let wait = Self::backoff_delay(attempt);
            if let Some(budget) = self.wait_budget.as_ref().filter(|_| attempt >= ATTEMPTS_BEFORE_REDO) {
                if !budget.take_wait(wait, self.clock.now()) {
                    break;
                }
                progress.time_taken += wait;
            }
            if attempt < max_attempts {
                (self.sleep)(wait);
            }
        }
        self.event_hook.iter().for_each(|hook| hook(GenerationReadEvent::PollTimedOut));
        Ok(())
    }

    fn attempt_in_generation<T, E: RetryableError>(
        &self,
        attempt: u32,
        operation: &mut impl FnMut(&mut Duration) -> Result<T, E>,
    ) -> Result<T, E> {
        let Some(generations) = &self.generations else { return self.attempt_within_grace(operation) };
        let note = |event: GenerationReadEvent<'_>| self.event_hook.iter().for_each(|hook| hook(event));
        let hash = |state: &mut DefaultHasher| generations.hash_state(state);
        note(GenerationReadEvent::AttemptStarted(attempt, &hash));
        let look = generations.begin_read(attempt >= ATTEMPTS_BEFORE_REDO.min(self.max_attempts - 1))?;
        note(GenerationReadEvent::ReadStarted(look.generation_number(), &hash));
        let done = self.attempt_within_grace(operation);
        note(GenerationReadEvent::ReadFinished);
        if look.is_valid() {
            note(GenerationReadEvent::ReadValidated);
            return done;
        }
        look.invalidate_caches();
        Err(Error::ChangedDuringRead.into())
    }

    fn attempt_within_grace<T, E: RetryableError>(
        &self,
        operation: &mut impl FnMut(&mut Duration) -> Result<T, E>,
    ) -> Result<T, E> {
        if self.max_attempts == 1 {
            let mut now = Duration::ZERO;
            return operation(&mut now);
        }
        let mut since = self.clock.now();
        let done = operation(&mut since);
        let took = self.clock.now().saturating_sub(since);
        if took > MAX_READ_AGE { Err(Error::ReadTookTooLong { took }.into()) } else { done }
    }

    /// Now, for [`RetryPolicy::retry_with_start_time`].
    pub fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Whether something that was read at `since` is so old that an operation should read it again first.
    pub fn should_reread(&self, since: Duration) -> bool {
        self.max_attempts > 1 && self.clock.now().saturating_sub(since) > MAX_READ_AGE / 2
    }

    fn backoff_delay(attempt: u32) -> Duration {
        match attempt.checked_sub(4) {
            None => Duration::ZERO,
            Some(doublings) => Duration::from_micros(10 << doublings.min(11)),
        }
    }
}

#[cfg(test)]
mod tests;
