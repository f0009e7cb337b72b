//! The threads of this process that wait for object stores.

use std::future::Future;
use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::sync_channel;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::AbortHandle;

/// Threads that drive requests.
const WORKER_THREADS: usize = 2;
/// Most threads that wait for files.
const MAX_BLOCKING_THREADS: usize = 16;

/// The one runtime of the process. Its threads start with the first request, and end with the process.
fn handle() -> io::Result<&'static Handle> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let start = || {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(WORKER_THREADS).max_blocking_threads(MAX_BLOCKING_THREADS);
        builder.thread_name("h5live-objects").enable_all().build().map_err(|error| error.to_string())
    };
    match RUNTIME.get_or_init(start) {
        Ok(runtime) => Ok(runtime.handle()),
        Err(error) => Err(io::Error::other(format!("there are no threads: {error}"))),
    }
}

/// Runs work to its end on the runtime's threads, and waits for it on a channel. So the caller may be a thread of
/// another runtime.
///
/// # Errors
/// If there are no threads, or the work has panicked.
pub fn spawn_and_wait<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
    let (sender, receiver) = sync_channel(1);
    spawn(async move {
        let _ = sender.send(work.await);
    })?;
    receiver.recv().map_err(|_| io::Error::other("a request has ended without a result"))
}

/// Starts work that nobody waits for here.
///
/// # Errors
/// If there are no threads.
pub fn spawn(work: impl Future<Output = ()> + Send + 'static) -> io::Result<AbortHandle> {
    Ok(handle()?.spawn(work).abort_handle())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_inside_another_runtime_may_wait() {
        let outer = Builder::new_current_thread().build().unwrap();
        assert_eq!(outer.block_on(async { spawn_and_wait(async { 7 }).unwrap() }), 7);
    }

    #[test]
    fn work_that_panics_is_an_error() {
        let is_none = || false;
        assert!(spawn_and_wait(async move { assert!(is_none(), "as it must") }).is_err());
    }
}
