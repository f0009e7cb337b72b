//! How often an operation is repeated, and how long it waits.

use super::*;
use crate::error::SwmrUnsupportedReason;

type Result<T> = std::result::Result<T, TestError>;

/// The error of an operation.
#[derive(Debug)]
enum TestError {
    /// The structure at this address is torn.
    Torn(Addr),
    /// It stayed torn.
    Exhausted { attempts: u32 },
    /// An error of the protocol.
    Swmr(Error),
}

impl From<Error> for TestError {
    fn from(error: Error) -> Self {
        TestError::Swmr(error)
    }
}

impl RetryableError for TestError {
    fn may_be_torn(&self) -> bool {
        match self {
            TestError::Torn(_) => true,
            TestError::Exhausted { .. } => false,
            TestError::Swmr(error) => error.may_be_torn(),
        }
    }

    fn is_overtaken(&self) -> bool {
        matches!(self, TestError::Swmr(error) if error.is_overtaken())
    }

    fn addr(&self) -> Option<Addr> {
        if let TestError::Torn(at) = self { Some(*at) } else { None }
    }

    fn may_be_truncated(&self) -> bool {
        true
    }

    fn into_torn_after_attempts(self, attempts: u32) -> Self {
        TestError::Exhausted { attempts }
    }
}

fn torn() -> TestError {
    TestError::Torn(Addr::new(1))
}

#[test]
fn goes_on_until_the_tear_is_mended() {
    let mut left = 5;
    let policy = RetryPolicy::new(10, |_| ());
    let done: Result<_> = policy.retry(|| {
        left -= 1;
        if left > 0 { Err(torn()) } else { Ok(7) }
    });
    assert_eq!(done.unwrap(), 7);
}

#[test]
fn ends_after_its_attempts() {
    let mut tries = 0;
    let done: Result<()> = RetryPolicy::new(10, |_| ()).retry(|| {
        tries += 1;
        Err(torn())
    });
    assert!(matches!(done, Err(TestError::Exhausted { attempts: 10 })));
    assert_eq!(tries, 10);
}

#[test]
fn does_not_repeat_what_cannot_be_mended() {
    let mut tries = 0;
    let done: Result<()> = RetryPolicy::default().retry(|| {
        tries += 1;
        Err(Error::SwmrUnsupported(SwmrUnsupportedReason::ReadOnly).into())
    });
    assert!(done.is_err());
    assert_eq!(tries, 1);
}

#[test]
fn what_took_too_long_is_done_again() {
    let time = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let shown = time.clone();
    let clock = Clock::new(move || Duration::from_millis(shown.load(std::sync::atomic::Ordering::Relaxed)));
    let policy = RetryPolicy::new(10, |_| ()).with_clock(clock);
    let mut pace = [5000, 1001, 1000, 0].into_iter();
    let mut tries = 0;
    let done: Result<_> = policy.retry(|| {
        tries += 1;
        time.fetch_add(pace.next().unwrap(), std::sync::atomic::Ordering::Relaxed);
        Ok(7)
    });
    assert_eq!((done.unwrap(), tries), (7, 3));
    let early = Duration::from_secs(1);
    let late = policy.retry_with_start_time(|since| {
        *since = early;
        Ok(())
    });
    assert!(matches!(late, Err(TestError::Exhausted { attempts: 10 })), "{late:?}");
    assert!(RetryPolicy::no_retries().retry(|| Ok::<_, TestError>(())).is_ok());
}

/// Waits of an operation that never becomes whole, and its attempts.
fn waits_in_vain(policy: &RetryPolicy, waits: &AtomicU64) -> (u64, u32) {
    let before = waits.load(Ordering::Relaxed);
    let done: Result<()> = policy.retry(|| Err(torn()));
    let Err(TestError::Exhausted { attempts }) = done else { panic!("{done:?}") };
    (waits.load(Ordering::Relaxed) - before, attempts)
}

fn counting(waits: &Arc<AtomicU64>) -> impl Fn(Duration) + Send + Sync + 'static {
    let waits = waits.clone();
    move |wait| {
        waits.fetch_add(u64::from(!wait.is_zero()), Ordering::Relaxed);
    }
}

#[test]
fn a_session_waits_once_in_vain_and_not_once_for_each_damaged_structure() {
    let time = Arc::new(AtomicU64::new(0));
    let shown = time.clone();
    let clock = Clock::new(move || Duration::from_millis(shown.load(Ordering::Relaxed)));
    let waits = Arc::default();
    let total: Duration = (1..20).map(RetryPolicy::backoff_delay).sum();
    let budget = total - (1..ATTEMPTS_BEFORE_REDO).map(RetryPolicy::backoff_delay).sum::<Duration>();
    let policy = RetryPolicy::new(20, counting(&waits)).with_wait_budget(budget).with_clock(clock);
    let all = (1..20).filter(|attempt| !RetryPolicy::backoff_delay(*attempt).is_zero()).count() as u64;
    assert_eq!(waits_in_vain(&policy, &waits), (all, 20));
    for _ in 0..1000 {
        assert_eq!(
            waits_in_vain(&policy, &waits),
            (u64::from(ATTEMPTS_BEFORE_REDO - FIRST_WAIT), ATTEMPTS_BEFORE_REDO)
        );
    }
    // An eighth of the time that goes by may be waited again.
    time.store(u64::try_from((budget * WAITING_PART).as_millis()).unwrap() + 1, Ordering::Relaxed);
    assert_eq!(waits_in_vain(&policy, &waits), (all, 20));
    assert_eq!(waits_in_vain(&policy, &waits).1, ATTEMPTS_BEFORE_REDO);
}

#[test]
fn what_was_not_waited_in_vain_may_be_waited_again() {
    let waits = Arc::default();
    let total = (ATTEMPTS_BEFORE_REDO..20).map(RetryPolicy::backoff_delay).sum();
    let policy =
        RetryPolicy::new(20, counting(&waits)).with_wait_budget(total).with_clock(Clock::new(|| Duration::ZERO));
    for _ in 0..1000 {
        let mut left = 19;
        let done: Result<_> = policy.retry(|| {
            left -= 1;
            if left > 0 { Err(torn()) } else { Ok(()) }
        });
        done.unwrap();
    }
    assert_eq!(waits_in_vain(&policy, &waits).1, 20);
}

#[test]
fn nobody_waits_for_a_writer_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("left.h5");
    let writer = std::fs::File::create(&path).unwrap();
    let lock = Arc::new(LockHandle::open(&path, crate::LockPolicy::On).unwrap());
    let waits = Arc::default();
    let policy = RetryPolicy::new(20, counting(&waits)).for_session(Clock::default(), lock.clone());
    assert!(waits_in_vain(&policy, &waits).0 > 0, "somebody has it open for writing");
    drop(writer);
    // Where the system does not tell, the lock keeps writers out.
    lock.try_flock(crate::locking::LockKind::Shared).unwrap();
    assert_eq!(waits_in_vain(&policy, &waits), (0, FIRST_WAIT + 1));
    // Several places may be torn, each of which is mended once it has been met.
    let mut at = 0;
    let done: Result<()> = policy.retry(|| {
        at += 1;
        Err(TestError::Torn(Addr::new(at)))
    });
    assert!(matches!(done, Err(TestError::Exhausted { attempts: 20 })), "{done:?}");
}

#[test]
fn what_may_never_come_is_looked_for_for_a_while() {
    let slept = Arc::new(AtomicU64::new(0));
    let slept_micros = slept.clone();
    let policy = RetryPolicy::new(60, move |time| {
        slept_micros.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
    });
    let mut looks = 0;
    let mut look_until = |last: u32| {
        looks = 0;
        policy.poll_briefly(|| {
            looks += 1;
            Ok::<_, TestError>(looks == last)
        })?;
        Ok::<_, TestError>(looks)
    };
    assert_eq!(look_until(3).unwrap(), 3);
    assert_eq!(slept.load(Ordering::Relaxed), 0, "the first few looks are taken without a pause");
    assert_eq!(look_until(u32::MAX).unwrap(), LOOKS);
    let slept = Duration::from_micros(slept.load(Ordering::Relaxed));
    assert!(slept > Duration::from_millis(100) && slept < Duration::from_millis(150), "{slept:?}");
}

#[test]
fn waits_about_a_second_in_all() {
    let total: Duration = (1..60).map(RetryPolicy::backoff_delay).sum();
    assert!(total > Duration::from_millis(500) && total < Duration::from_secs(2), "{total:?}");
}
