//! How deep virtual datasets that read virtual datasets lie in each other.

use std::cell::Cell;

use crate::MAX_SYMBOLIC_LINKS_PER_PATH;
use crate::error::ErrorKind;

thread_local! {
    /// Virtual datasets that this thread is reading, one inside the other.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Counts a layer of virtual datasets as long as it lives.
pub(super) struct VirtualDepthGuard;

impl VirtualDepthGuard {
    pub(super) fn enter() -> Result<VirtualDepthGuard, ErrorKind> {
        let depth = DEPTH.get();
        if depth == MAX_SYMBOLIC_LINKS_PER_PATH {
            return Err(ErrorKind::TooManyVirtualLayers);
        }
        DEPTH.set(depth + 1);
        Ok(VirtualDepthGuard)
    }
}

impl Drop for VirtualDepthGuard {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}
