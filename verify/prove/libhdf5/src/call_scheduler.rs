//! Threads that use one file of the system, the locks on it included: their calls are made one at a time, in an order
//! that is given, and written down.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

/// How the path of the file ends.
pub const NAME: &str = "stepped.h5";

pub const OPEN: &str = "open";
pub const OPEN_TO_WRITE: &str = "open to write";
pub const LOCK: &str = "lock";
pub const LOCK_SHARED: &str = "lock with others";
pub const UNLOCK: &str = "unlock";
pub const LEASE: &str = "ask for a lease";
pub const LIVENESS_LOCK: &str = "beacon";
pub const READ: &str = "read";
pub const WRITE: &str = "write";
pub const CLOSE: &str = "close";

/// The thread has opened a file.
pub const OPENED: &str = "has opened";
/// It is about to be closed.
pub const CLOSING: &str = "is closing";
pub const BEGAN: &str = "begins";
pub const ENDED: &str = "ends";
/// Notes that are no calls.
pub const NOTES: [&str; 4] = [BEGAN, OPENED, CLOSING, ENDED];

/// The longest time for which a thread waits for its turn.
const HANG_TIMEOUT: Duration = Duration::from_secs(60);

static INODE: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static ME: RefCell<Option<Arc<ThreadTurn>>> = const { RefCell::new(None) };
}

/// A step of one of the threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallStep {
    /// Which of them.
    pub thread: usize,
    pub call: &'static str,
    /// Whether the system did it.
    pub succeeded: bool,
}

/// The steps, in order.
#[derive(Debug, Clone, Default)]
pub struct CallLog(Arc<Mutex<Vec<CallStep>>>);

impl CallLog {
    /// The steps so far.
    pub fn steps(&self) -> Vec<CallStep> {
        lock_ignoring_poison(&self.0).clone()
    }

    fn add(&self, step: CallStep) {
        lock_ignoring_poison(&self.0).push(step);
    }
}

fn lock_ignoring_poison<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct ThreadTurn {
    who: usize,
    log: CallLog,
    calls: Mutex<CallBudget>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, Default)]
struct CallBudget {
    calls_made: u64,
    /// The number of calls that may be made.
    calls_allowed: u64,
    is_waiting: bool,
    ended: bool,
}

/// From now on calls that concern this file are steps.
pub fn watch_inode(inode: u64) {
    INODE.store(inode, Relaxed);
}

/// Whether it is the file that is watched.
pub fn is_watched_inode(inode: u64) -> bool {
    INODE.load(Relaxed) == inode
}

fn current_turn() -> Option<Arc<ThreadTurn>> {
    ME.try_with(|me| me.try_borrow().ok().and_then(|me| me.clone())).ok().flatten()
}

/// Whether calls of this thread are steps.
pub fn is_stepped_thread() -> bool {
    ME.try_with(|me| me.try_borrow().is_ok_and(|me| me.is_some())).unwrap_or(false)
}

/// Waits until this thread may make a call.
pub fn wait_for_permit() {
    let Some(thread_turn) = current_turn() else { return };
    let mut calls = lock_ignoring_poison(&thread_turn.calls);
    while calls.calls_made >= calls.calls_allowed {
        calls.is_waiting = true;
        thread_turn.changed.notify_all();
        calls = thread_turn.changed.wait(calls).unwrap_or_else(PoisonError::into_inner);
    }
    calls.is_waiting = false;
    calls.calls_made += 1;
}

/// Writes down what this thread did.
pub fn log_step(what: &'static str, done: bool) {
    if let Some(thread_turn) = current_turn() {
        thread_turn.log.add(CallStep { thread: thread_turn.who, call: what, succeeded: done });
    }
}

/// A thread whose calls are steps. It makes none until it is told to.
pub struct SteppedThread<'s, R> {
    thread_turn: Arc<ThreadTurn>,
    thread: ScopedJoinHandle<'s, std::thread::Result<R>>,
}

impl<'s, R: Send + 's> SteppedThread<'s, R> {
    /// Starts a thread that does `act`.
    pub fn start<'e>(scope: &'s Scope<'s, 'e>, who: usize, log: &CallLog, act: impl FnOnce() -> R + Send + 's) -> Self {
        let (calls, changed) = (Mutex::default(), Condvar::new());
        let thread_turn = Arc::new(ThreadTurn { who, log: log.clone(), calls, changed });
        let own = thread_turn.clone();
        let thread = scope.spawn(move || {
            ME.set(Some(own.clone()));
            let done = catch_unwind(AssertUnwindSafe(act));
            log_step(ENDED, true);
            ME.set(None);
            lock_ignoring_poison(&own.calls).ended = true;
            own.changed.notify_all();
            done
        });
        SteppedThread { thread_turn, thread }
    }

    /// Lets it make all calls up to that one; returns whether it has ended before.
    pub fn run_up_to_calls(&self, calls: u64) -> bool {
        let mut state = lock_ignoring_poison(&self.thread_turn.calls);
        if state.calls_made == 0 && calls > 0 {
            self.thread_turn.log.add(CallStep { thread: self.thread_turn.who, call: BEGAN, succeeded: true });
        }
        state.calls_allowed = calls;
        self.thread_turn.changed.notify_all();
        while !(state.ended || state.is_waiting && state.calls_made >= state.calls_allowed) {
            let (next, waited) =
                self.thread_turn.changed.wait_timeout(state, HANG_TIMEOUT).unwrap_or_else(PoisonError::into_inner);
            state = next;
            if waited.timed_out() {
                println!("{} hangs after {:#?}", self.thread_turn.who, self.thread_turn.log.steps());
                // What hangs in the system cannot be ended otherwise.
                std::process::exit(1);
            }
        }
        state.ended
    }

    /// Lets it go on to its end.
    pub fn finish(self) -> std::thread::Result<R> {
        self.run_up_to_calls(u64::MAX);
        self.thread.join().flatten()
    }
}
