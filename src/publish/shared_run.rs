//! Shared runs, as of a group commit: one run of some work serves all threads that ask for it at the same time.

use parking_lot::{Condvar, Mutex};

/// Work that several threads share. Each run serves all threads that asked before it began.
#[derive(Debug, Default)]
pub(crate) struct SharedRun {
    state: Mutex<SharedRunState>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct SharedRunState {
    last_request: u64,
    /// The number of threads that had asked when the last successful run began.
    last_served_request: u64,
    is_running: bool,
}

impl SharedRun {
    /// Waits until a run of `work` that began after this call has succeeded. This thread runs it itself if no other
    /// thread does.
    ///
    /// # Errors
    /// Errors of its own run. A failed run of another thread serves nobody.
    pub(crate) fn run_shared<E>(&self, work: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let mut state = self.state.lock();
        state.last_request += 1;
        let mine = state.last_request;
        while state.is_running {
            self.ended.wait(&mut state);
            if state.last_served_request >= mine {
                return Ok(());
            }
        }
        let serves = state.last_request;
        state.is_running = true;
        drop(state);
        let _end = SharedRunGuard { work: self };
        work()?;
        self.state.lock().last_served_request = serves;
        Ok(())
    }
}

/// Ends a run, also one that panics.
struct SharedRunGuard<'a> {
    work: &'a SharedRun,
}

impl Drop for SharedRunGuard<'_> {
    fn drop(&mut self) {
        self.work.state.lock().is_running = false;
        self.work.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn those_who_ask_during_a_run_share_the_next_one() {
        let (work, runs) = (SharedRun::default(), AtomicU32::new(0));
        let (begun, go) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let run = || {
                    begun.wait();
                    go.wait();
                    Ok::<(), ()>(())
                };
                work.run_shared(run).unwrap();
            });
            begun.wait();
            for _ in 0..5 {
                scope.spawn(|| {
                    let run = || {
                        runs.fetch_add(1, Ordering::Relaxed);
                        Ok::<(), ()>(())
                    };
                    work.run_shared(run).unwrap();
                });
            }
            while work.state.lock().last_request < 6 {
                thread::yield_now();
            }
            go.wait();
        });
        assert_eq!(runs.into_inner(), 1);
    }

    #[test]
    fn who_waited_for_a_run_that_failed_runs_it_again() {
        let work = SharedRun::default();
        assert_eq!(work.run_shared(|| Err("broken")), Err("broken"));
        let mut ran = false;
        work.run_shared(|| {
            ran = true;
            Ok::<(), ()>(())
        })
        .unwrap();
        assert!(ran);
    }
}
