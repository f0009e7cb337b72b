//! Work that is done by several threads.

use std::num::NonZero;
use std::sync::OnceLock;
use std::thread;

use parking_lot::Mutex;

use crate::error::Result;

/// Calls `each` with every item, on at most so many threads. After an error, items that no thread has begun are left out.
///
/// # Errors
/// One of those of `each`.
pub fn for_each_in_parallel<T: Send>(
    items: Vec<T>,
    max_threads: usize,
    each: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    let max_threads = max_threads.min(items.len());
    if max_threads < 2 {
        return items.into_iter().try_for_each(each);
    }
    let (items, result) = (Mutex::new(items.into_iter()), Mutex::new(Ok(())));
    let work = || loop {
        let Some(item) = items.lock().next() else { return };
        if let Err(error) = each(item) {
            *result.lock() = Err(error);
            // The others find no more.
            return items.lock().by_ref().for_each(drop);
        }
    };
    thread::scope(|scope| {
        (1..max_threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    result.into_inner()
}

/// How many threads run at once. To ask the system takes many times as long as to read a block.
pub fn available_threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}
