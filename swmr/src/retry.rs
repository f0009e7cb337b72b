//! The reader's patience: what is torn is read again, a bounded number of times.

use std::fmt;
use std::hash::DefaultHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use h5live_cache::{Clock, Reuse};

use crate::generation::Generations;
use crate::intent::Mender;
use crate::{Error, Result};

/// Attempts after which it is looked up what the writer was about to write, in case it is dead.
const SOON: u32 = 8;

/// So long after it has read where something is may a reader take what it finds there for it: no writer uses space again
/// earlier than that after the flush that made it unreachable.
const VALID: Duration = Reuse::SHORTEST_GRACE;

/// How often, and how far apart, a reader tries again when it meets a structure in the middle of being written.
///
/// The waits double from 10 microseconds to 20 milliseconds, after a few attempts without any; 60 attempts take about
/// a second, so that an operation on a structure that its writer left half-written ends in an error after that.
#[derive(Clone)]
pub struct Patience {
    attempts: u32,
    sleep: Arc<dyn Fn(Duration) + Send + Sync>,
    mender: Option<Arc<Mender>>,
    generations: Option<Arc<Generations>>,
    clock: Clock,
    counts: Arc<Counts>,
    watch: Option<Arc<Watch>>,
}

/// Who is told of [`Moment`]s.
type Watch = dyn Fn(Moment<'_>) + Send + Sync;

/// A moment of an operation on a file whose writer shows generations, for those who put readers to the proof.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Moment<'a> {
    /// An attempt begins, the first one or a later one; what was kept of the file before.
    Begins(u32, &'a dyn Fn(&mut DefaultHasher)),
    /// A look begins: the number of the generation, and what is kept of it.
    Looks(Option<u64>, &'a dyn Fn(&mut DefaultHasher)),
    /// All has been read.
    Read,
    /// All that was read counts.
    Holds,
}

/// What was torn so far, for people to know.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Operations that were begun anew.
    pub torn: AtomicU64,
    /// How often they were.
    pub retries: AtomicU64,
}

impl fmt::Debug for Patience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patience").field("attempts", &self.attempts).finish_non_exhaustive()
    }
}

impl Default for Patience {
    fn default() -> Self {
        Patience::new(60, std::thread::sleep)
    }
}

impl Patience {
    /// Patience for so many attempts, with `sleep` to wait between them.
    pub fn new(attempts: u32, sleep: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        Patience {
            attempts: attempts.max(1),
            sleep: Arc::new(sleep),
            mender: None,
            generations: None,
            clock: Clock::default(),
            counts: Arc::default(),
            watch: None,
        }
    }

    /// The same patience, which tells `watch` how it goes.
    #[doc(hidden)]
    #[must_use]
    pub fn watched(self, watch: impl Fn(Moment<'_>) + Send + Sync + 'static) -> Self {
        Patience { watch: Some(Arc::new(watch)), ..self }
    }

    /// The same patience, and a remedy for what does not become whole by itself.
    pub(crate) fn with(self, mender: Mender) -> Self {
        Patience { mender: Some(Arc::new(mender)), ..self }
    }

    /// The same patience, with a file whose writer shows generations.
    pub(crate) fn by_generations(self, generations: Generations) -> Self {
        Patience { generations: Some(Arc::new(generations)), ..self }
    }

    /// What knows what a writer is about to change, if there may be one.
    pub(crate) fn mender(&self) -> Option<&Mender> {
        self.mender.as_deref()
    }

    /// What tells the generations of the file, if its readers go by them.
    pub(crate) fn generations(&self) -> Option<&Generations> {
        self.generations.as_deref()
    }

    /// The same patience, that measures by `clock` how long what was read is valid.
    pub(crate) fn by(self, clock: Clock) -> Self {
        Patience { clock, ..self }
    }

    /// What was torn so far.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// No patience: the first error counts. For files that nobody writes.
    pub fn none() -> Self {
        Patience::new(1, |_| ())
    }

    /// Does `operation`, from its start, until it meets nothing torn, and was not so slow that a writer may have used
    /// space again to which it was led.
    ///
    /// # Errors
    /// Errors of the operation that reading again cannot mend, and [`Error::Torn`] when patience is at its end.
    pub fn retry<T>(&self, mut operation: impl FnMut() -> Result<T>) -> Result<T> {
        self.retry_since(|_| operation())
    }

    /// As [`Patience::retry`], of an `operation` that sets the time before what it goes out from was read, if that was
    /// before its start.
    ///
    /// This is the reader's half of the protocol by which space is used again: everything that follows a pointer which
    /// a writer may change is done in here.
    ///
    /// # Errors
    /// As [`Patience::retry`].
    pub fn retry_since<T>(&self, mut operation: impl FnMut(&mut Duration) -> Result<T>) -> Result<T> {
        if self.generations.as_deref().is_some_and(Generations::are_looked_at) {
            // Whoever took the look takes it again.
            return self.in_time(&mut operation);
        }
        let _begun = self.mender.as_deref().map(Mender::begin);
        for attempt in 1.. {
            match self.in_generation(attempt, &mut operation) {
                Err(error) if error.may_be_torn() && attempt < self.attempts => {
                    self.counts.torn.fetch_add(u64::from(attempt == 1), Ordering::Relaxed);
                    self.counts.retries.fetch_add(1, Ordering::Relaxed);
                    if let (Some(mender), Some(at), true) =
                        (&self.mender, error.place(), attempt >= SOON.min(self.attempts - 1))
                    {
                        mender.mend_at(at);
                    }
                    (self.sleep)(Self::wait(attempt));
                }
                Err(error) if error.may_be_torn() && self.attempts > 1 => {
                    return Err(Error::Torn { attempts: attempt, source: Box::new(error) });
                }
                done => return done,
            }
        }
        unreachable!("attempts are counted")
    }

    fn in_generation<T>(&self, attempt: u32, operation: &mut impl FnMut(&mut Duration) -> Result<T>) -> Result<T> {
        let Some(generations) = &self.generations else { return self.in_time(operation) };
        let note = |moment: Moment<'_>| self.watch.iter().for_each(|watch| watch(moment));
        let tell = |state: &mut DefaultHasher| generations.tell(state);
        note(Moment::Begins(attempt, &tell));
        let look = generations.look(attempt >= SOON.min(self.attempts - 1))?;
        note(Moment::Looks(look.number(), &tell));
        let done = self.in_time(operation);
        note(Moment::Read);
        if look.holds() {
            note(Moment::Holds);
            return done;
        }
        look.forget();
        Err(Error::Overtaken)
    }

    fn in_time<T>(&self, operation: &mut impl FnMut(&mut Duration) -> Result<T>) -> Result<T> {
        if self.attempts == 1 {
            let mut now = Duration::ZERO;
            return operation(&mut now);
        }
        let mut since = self.clock.now();
        let done = operation(&mut since);
        let took = self.clock.now().saturating_sub(since);
        if took > VALID { Err(Error::Late { took }) } else { done }
    }

    /// Now, for [`Patience::retry_since`].
    pub fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Whether what was read at `since` is so old that an operation had better not begin with it.
    pub fn is_old(&self, since: Duration) -> bool {
        self.attempts > 1 && self.clock.now().saturating_sub(since) > VALID / 2
    }

    fn wait(attempt: u32) -> Duration {
        match attempt.checked_sub(4) {
            None => Duration::ZERO,
            Some(doublings) => Duration::from_micros(10 << doublings.min(11)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::NotLive;

    fn torn() -> Error {
        Error::Object { header: h5live_format::Addr::new(1), rule: "whole" }
    }

    #[test]
    fn goes_on_until_the_tear_is_mended() {
        let mut left = 5;
        let patience = Patience::new(10, |_| ());
        let done = patience.retry(|| {
            left -= 1;
            if left > 0 { Err(torn()) } else { Ok(7) }
        });
        assert_eq!(done.unwrap(), 7);
    }

    #[test]
    fn ends_after_its_attempts() {
        let mut tries = 0;
        let done: Result<()> = Patience::new(10, |_| ()).retry(|| {
            tries += 1;
            Err(torn())
        });
        assert!(matches!(done, Err(Error::Torn { attempts: 10, .. })));
        assert_eq!(tries, 10);
    }

    #[test]
    fn does_not_repeat_what_cannot_be_mended() {
        let mut tries = 0;
        let done: Result<()> = Patience::default().retry(|| {
            tries += 1;
            Err(Error::NotLive(NotLive::ReadOnly))
        });
        assert!(done.is_err());
        assert_eq!(tries, 1);
    }

    #[test]
    fn what_took_too_long_is_done_again() {
        let time = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let shown = time.clone();
        let clock = Clock::new(move || Duration::from_millis(shown.load(std::sync::atomic::Ordering::Relaxed)));
        let patience = Patience::new(10, |_| ()).by(clock);
        let mut pace = [5000, 1001, 1000, 0].into_iter();
        let mut tries = 0;
        let done = patience.retry(|| {
            tries += 1;
            time.fetch_add(pace.next().unwrap(), std::sync::atomic::Ordering::Relaxed);
            Ok(7)
        });
        assert_eq!((done.unwrap(), tries), (7, 3));
        let early = Duration::from_secs(1);
        let late = patience.retry_since(|since| {
            *since = early;
            Ok(())
        });
        assert!(matches!(late, Err(Error::Torn { attempts: 10, .. })), "{late:?}");
        assert!(Patience::none().retry(|| Ok(())).is_ok());
    }

    #[test]
    fn waits_about_a_second_in_all() {
        let total: Duration = (1..60).map(Patience::wait).sum();
        assert!(total > Duration::from_millis(500) && total < Duration::from_secs(2), "{total:?}");
    }
}
