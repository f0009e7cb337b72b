//! This process, and what a fork leaves of it: a child has the memory of its parent, and only one of its threads.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Counts the forks between the process that loaded this module and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The threads of a child, and the number of its forks: those of its parent are not in it.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// So long a lock is waited for. In a child, a thread may have had it that is not there.
const MAX_WAIT_FOR_LOCK: Duration = Duration::from_secs(10);

/// What Python calls in each child.
#[pyfunction]
pub(crate) fn after_fork_in_child() {
    FORKS.fetch_add(1, Ordering::AcqRel);
}

/// The number of forks that led to this process.
pub(crate) fn forks() -> u32 {
    FORKS.load(Ordering::Acquire)
}

/// Takes a lock that a thread of the parent may have had when it forked. This does not wait in the way that locks do.
pub(crate) fn lock_after_fork<T>(lock: &Mutex<T>) -> PyResult<MutexGuard<'_, T>> {
    let begin = Instant::now();
    loop {
        if let Some(guard) = lock.try_lock() {
            return Ok(guard);
        }
        if begin.elapsed() > MAX_WAIT_FOR_LOCK {
            return Err(PyRuntimeError::new_err("the process was forked while another thread used this"));
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// The threads of this process, if it is a child. A parent uses those of the whole process.
fn pool_of_child() -> PyResult<Option<Arc<ThreadPool>>> {
    let forks = forks();
    if forks == 0 {
        return Ok(None);
    }
    let mut pool = lock_after_fork(&POOL)?;
    if let Some((_, pool)) = pool.as_ref().filter(|(of, _)| *of == forks) {
        return Ok(Some(pool.clone()));
    }
    let made = ThreadPoolBuilder::new().build().map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let made = Arc::new(made);
    // Nobody drops the threads of the parent: they are not here.
    mem::forget(pool.replace((forks, made.clone())));
    Ok(Some(made))
}

/// Runs what may touch data, while other threads of Python go on.
pub(crate) fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    match pool_of_child()? {
        None => Ok(py.detach(work)),
        Some(pool) => Ok(py.detach(|| pool.install(work))),
    }
}
