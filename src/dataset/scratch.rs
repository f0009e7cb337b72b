//! Memory for one read, used again for the next one.

use std::cell::RefCell;

use super::spec_snapshot::SpecSnapshot;
use crate::error::ErrorKind;

/// Bytes that a thread keeps for its next read in one buffer...
const MAX_KEPT_BUFFER_BYTES: usize = 2 << 20;
/// ...and the buffers: for the stored bytes of a chunk, and for conversion.
const MAX_KEPT_BUFFERS: usize = 2;

thread_local! {
    static SCRATCH: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` with memory that the thread keeps. If it comes here again itself, it gets other memory.
pub(super) fn with_scratch<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let mut scratch = SCRATCH.with_borrow_mut(Vec::pop).unwrap_or_default();
    let result = work(&mut scratch);
    SCRATCH.with_borrow_mut(|kept| {
        if scratch.capacity() <= MAX_KEPT_BUFFER_BYTES && kept.len() < MAX_KEPT_BUFFERS {
            kept.push(scratch);
        }
    });
    result
}

/// The first `len` bytes of a buffer, with any contents.
pub(super) fn resize_scratch(scratch: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if scratch.len() < len {
        scratch.resize(len, 0);
    }
    &mut scratch[..len]
}

/// A buffer of zeros, if there is memory for it.
pub(super) fn zeroed_buffer(bytes: usize) -> Result<Vec<u8>, ErrorKind> {
    bytemuck::allocation::try_zeroed_vec(bytes).map_err(|()| ErrorKind::OutOfMemory(bytes as u64))
}

/// Elements with their fill values, into which the caller's values are written.
pub(super) fn filled_buffer(view: &SpecSnapshot, elements: usize) -> Result<Vec<u8>, ErrorKind> {
    let mut bytes = zeroed_buffer(elements.saturating_mul(view.size))?;
    view.spec.fill_into(0, &mut bytes);
    Ok(bytes)
}
