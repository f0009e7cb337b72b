//! Intermediate results, in memory that each thread keeps.

use std::cell::RefCell;
use std::num::NonZero;
use std::sync::LazyLock;

use crate::FilterFault;

/// Bytes that all threads together keep between chunks, in each kind of buffer, unless they are very many.
const MAX_KEPT_BYTES_TOTAL: usize = 32 << 20;
/// Bytes that each thread may keep in any case.
const MIN_KEPT_BYTES_PER_THREAD: usize = 1 << 20;

/// Bytes that a thread keeps between chunks, in each of its buffers.
static KEPT_BYTES_PER_THREAD: LazyLock<usize> = LazyLock::new(|| {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    (MAX_KEPT_BYTES_TOTAL / threads).max(MIN_KEPT_BYTES_PER_THREAD)
});

/// The buffers of a thread. Those for decoding stay initialised at their full length, so that a filter can
/// be given any part of them as a slice without clearing it first.
#[derive(Default)]
pub(crate) struct Scratch {
    /// The output of the last decoding step.
    pub decoded: Vec<u8>,
    /// Room for the next decoding step.
    pub room: Vec<u8>,
    /// The output of the last encoding step.
    pub encoded: Vec<u8>,
    /// Room for the next encoding step.
    pub next: Vec<u8>,
}

thread_local! {
    static FREE: RefCell<Vec<Scratch>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` with buffers of this thread. If `work` itself comes here again, it gets others.
pub(crate) fn with<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    let mut scratch = FREE.with_borrow_mut(Vec::pop).unwrap_or_default();
    let result = work(&mut scratch);
    for buffer in [&mut scratch.decoded, &mut scratch.room, &mut scratch.encoded, &mut scratch.next] {
        if buffer.capacity() > *KEPT_BYTES_PER_THREAD {
            *buffer = Vec::new();
        }
    }
    FREE.with_borrow_mut(|free| free.push(scratch));
    result
}

/// The first `bytes` bytes of a buffer, which is made larger if need be.
pub(crate) fn resize_buffer(buffer: &mut Vec<u8>, bytes: usize) -> Result<&mut [u8], FilterFault> {
    if buffer.len() < bytes {
        *buffer = Vec::new();
        *buffer = zeroed(bytes).ok_or(FilterFault::OutOfMemory(bytes))?;
    }
    buffer.get_mut(..bytes).ok_or(FilterFault::OutOfMemory(bytes))
}

/// `bytes` zeros, or `None` if there is not enough memory.
pub(crate) fn zeroed(bytes: usize) -> Option<Vec<u8>> {
    // `vec!` gets pages that are zero already, which costs nothing until they are written, but ends the
    // process when there are none. Asking first turns that into an error.
    Vec::<u8>::new().try_reserve_exact(bytes).ok()?;
    Some(vec![0; bytes])
}
