//! The threads of this process that wait for servers.

use std::future::Future;
use std::io;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

/// Threads that drive requests.
const WORKER_THREADS: usize = 2;
/// Most threads that look for the addresses of names.
const MAX_BLOCKING_THREADS: usize = 4;

/// Starts work on the one runtime of the process. Its threads start with the first request, and end with the process. Whoever
/// waits for the work waits on a channel, so the caller may be a thread of another runtime.
///
/// # Errors
/// If there are no threads.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> io::Result<AbortHandle> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let start = || {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(WORKER_THREADS).max_blocking_threads(MAX_BLOCKING_THREADS);
        builder.thread_name("h5live-served").enable_io().enable_time().build().map_err(|error| error.to_string())
    };
    match RUNTIME.get_or_init(start) {
        Ok(runtime) => Ok(runtime.spawn(work).abort_handle()),
        Err(error) => Err(io::Error::other(format!("there are no threads: {error}"))),
    }
}
