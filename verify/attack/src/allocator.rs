//! An allocator with a budget, which notes what asks for more.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes that one allocation may have.
pub const MAX_ALLOCATION_BYTES: usize = 256 << 20;
/// Bytes that all allocations together may have.
pub const MAX_LIVE_BYTES: usize = 1 << 30;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static LARGEST: AtomicUsize = AtomicUsize::new(0);
static REFUSED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Whether this thread is showing where a refused request comes from, which allocates too.
    static REPORTING: Cell<bool> = const { Cell::new(false) };
}

/// The system's allocator. It refuses single requests over [`MAX_ALLOCATION_BYTES`], and what would bring the sum over
/// [`MAX_LIVE_BYTES`].
struct Budget;

#[global_allocator]
static ALLOCATOR: Budget = Budget;

/// The largest request and the largest refused one (bytes; 0: none) since the last call.
pub fn take_largest() -> (usize, usize) {
    (LARGEST.swap(0, Relaxed), REFUSED.swap(0, Relaxed))
}

/// Counts a request of `size` bytes that makes the sum larger by `more` bytes. Whether it is within the budget.
fn admit(size: usize, more: usize) -> bool {
    LARGEST.fetch_max(size, Relaxed);
    let live = LIVE.fetch_add(more, Relaxed).saturating_add(more);
    if size <= MAX_ALLOCATION_BYTES && live <= MAX_LIVE_BYTES {
        return true;
    }
    LIVE.fetch_sub(more, Relaxed);
    REFUSED.fetch_max(size, Relaxed);
    REPORTING.with(|reporting| {
        if !reporting.replace(true) {
            eprintln!("refused: {size} bytes, {live} in all\n{}", Backtrace::force_capture());
            reporting.set(false);
        }
    });
    false
}

// SAFETY: every method either hands its arguments to the system's allocator as they are, or returns null, which says
// that nothing was allocated. What it counts in atomics changes no memory that it gives out.
#[allow(unsafe_code, reason = "an allocator is unsafe to implement")]
unsafe impl GlobalAlloc for Budget {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !admit(layout.size(), layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the contract of this same method.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !admit(layout.size(), layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the contract of this same method.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !admit(size, size.saturating_sub(layout.size())) {
            return std::ptr::null_mut();
        }
        LIVE.fetch_sub(layout.size().saturating_sub(size), Relaxed);
        // SAFETY: the caller keeps the contract of this same method.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of this same method.
        unsafe { System.dealloc(block, layout) }
    }
}
