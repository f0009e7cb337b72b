//! Asynchronous work on threads of its own, for callers that wait.

use std::future::Future;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

/// Threads that drive asynchronous work.
const WORKER_THREADS: usize = 2;
/// Most threads that wait for files.
const MAX_BLOCKING_THREADS: usize = 16;

/// The threads on which all asynchronous work of one engine runs.
///
/// The caller may itself be a thread of another runtime: it waits on a channel and not inside this runtime.
#[derive(Debug)]
pub struct SlateRuntime(Option<Runtime>);

impl SlateRuntime {
    /// Starts the threads.
    ///
    /// # Errors
    /// Those of the system, if there are no threads.
    pub fn start() -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(WORKER_THREADS).max_blocking_threads(MAX_BLOCKING_THREADS);
        builder.thread_name("h5live-slate").enable_all().build().map(|runtime| SlateRuntime(Some(runtime)))
    }

    /// Runs work to its end, and waits for it at most so long.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`]; [`io::ErrorKind::Other`] if the work has panicked.
    pub fn block_on<T: Send + 'static>(
        &self,
        timeout: Duration,
        work: impl Future<Output = T> + Send + 'static,
    ) -> io::Result<T> {
        let (sender, receiver) = sync_channel(1);
        let running = self.spawn(async move {
            // The caller may have stopped waiting.
            let _ = sender.send(work.await);
        });
        receiver.recv_timeout(timeout).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                running.inspect(AbortHandle::abort);
                io::Error::new(io::ErrorKind::TimedOut, format!("no answer in {} s", timeout.as_secs()))
            }
            RecvTimeoutError::Disconnected => io::Error::other("the work has ended without a result"),
        })
    }

    /// Starts work that nobody waits for.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Option<AbortHandle> {
        self.0.as_ref().map(|runtime| runtime.spawn(work).abort_handle())
    }
}

impl Drop for SlateRuntime {
    fn drop(&mut self) {
        // Waiting here is not allowed on threads of another runtime.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_inside_another_runtime_may_wait_and_drop() {
        let outer = Builder::new_current_thread().build().unwrap();
        let found = outer.block_on(async {
            let runtime = SlateRuntime::start().unwrap();
            runtime.block_on(Duration::from_secs(60), async { 7 }).unwrap()
        });
        assert_eq!(found, 7);
    }

    #[test]
    fn work_that_hangs_or_panics_is_an_error() {
        let runtime = SlateRuntime::start().unwrap();
        let hung = runtime.block_on(Duration::from_millis(1), std::future::pending::<()>()).unwrap_err();
        assert_eq!(hung.kind(), io::ErrorKind::TimedOut);
        let panicked = runtime.block_on(Duration::from_secs(60), async { assert!(runtime_is_none(), "as it must") });
        assert_eq!(panicked.unwrap_err().kind(), io::ErrorKind::Other);
    }

    fn runtime_is_none() -> bool {
        false
    }
}
