//! Small pieces of new raw data on their way to the storage: gathered, so that neighbours are written in one call.
//!
//! Nothing may lead to them before they are written, and nothing waits for them: each flush writes them before all
//! else.

use std::sync::Arc;

use smallvec::SmallVec;

use super::merged_writes::{MergedWrites, MissingRanges, overlay_layers};
use crate::primitive::{
    Mutex, MutexGuard,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

/// Bytes that wait at most.
#[cfg(not(loom))]
const MAX_BUFFERED_BYTES: usize = 1 << 20;
#[cfg(loom)]
const MAX_BUFFERED_BYTES: usize = 1;

/// Most pieces whose memory is kept.
const MAX_SPARE_BUFFERS: usize = 2;

/// Pieces by address (bytes from the base address).
#[derive(Debug, Default)]
pub(crate) struct WriteBuffer {
    state: Mutex<WriteBufferState>,
    /// Held by a thread that writes between flushes.
    writer_lock: Mutex<()>,
    /// Bytes that wait or are being written. While there are none, reads go straight to the storage.
    unwritten_bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct WriteBufferState {
    waiting: MergedWrites,
    in_flight: Vec<Arc<MergedWrites>>,
    /// Memory of the last pieces, for the next ones; the largest is last.
    spare_buffers: SmallVec<[Vec<u8>; MAX_SPARE_BUFFERS + 1]>,
}

impl WriteBufferState {
    /// Keeps the largest buffers of the spare ones and of `memory`, up to a size.
    fn recycle_buffers(&mut self, memory: impl Iterator<Item = Vec<u8>>) {
        for mut memory in memory.filter(|memory| memory.capacity() <= 2 * MAX_BUFFERED_BYTES) {
            memory.clear();
            let at = self.spare_buffers.partition_point(|other| other.capacity() < memory.capacity());
            self.spare_buffers.insert(at, memory);
            if self.spare_buffers.len() > MAX_SPARE_BUFFERS {
                self.spare_buffers.remove(0);
            }
        }
    }
}

impl WriteBuffer {
    /// Takes bytes for new space. Returns whether too many wait now.
    pub(super) fn buffer_bytes(&self, at: u64, bytes: &[u8]) -> bool {
        let mut state = self.state.lock();
        let WriteBufferState { waiting, spare_buffers: spare, .. } = &mut *state;
        waiting.append_bytes(at, bytes, || spare.pop().unwrap_or_default());
        self.unwritten_bytes.fetch_add(bytes.len(), SeqCst);
        state.waiting.byte_count() >= MAX_BUFFERED_BYTES
    }

    /// Takes the waiting pieces into flight.
    pub(crate) fn begin_write(&self) -> Option<Arc<MergedWrites>> {
        let mut state = self.state.lock();
        if state.waiting.byte_count() == 0 {
            return None;
        }
        let pieces = Arc::new(std::mem::take(&mut state.waiting));
        state.in_flight.push(Arc::clone(&pieces));
        Some(pieces)
    }

    /// Keeps flushes from writing over bytes that are written between flushes.
    pub(super) fn lock_out_flushes(&self) -> MutexGuard<'_, ()> {
        self.writer_lock.lock()
    }

    /// Waits until no thread writes earlier pieces between flushes.
    pub(crate) fn wait_for_writers(&self) {
        drop(self.writer_lock.lock());
    }

    /// Ends a flight. Pieces that were not `written` wait again.
    pub(crate) fn end_write(&self, pieces: Arc<MergedWrites>, written: bool) {
        let mut state = self.state.lock();
        state.in_flight.retain(|other| !Arc::ptr_eq(other, &pieces));
        if written {
            self.unwritten_bytes.fetch_sub(pieces.byte_count(), SeqCst);
            state.recycle_buffers(
                Arc::into_inner(pieces).into_iter().flat_map(MergedWrites::into_iter).map(|(_, memory)| memory),
            );
            return;
        }
        let newer = std::mem::take(&mut state.waiting);
        let before = newer.byte_count() + pieces.byte_count();
        let mut all = Arc::unwrap_or_clone(pieces);
        newer.into_iter().for_each(|(at, bytes)| all.insert_bytes(at, bytes));
        // Space that was freed meanwhile may have new contents.
        self.unwritten_bytes.fetch_sub(before - all.byte_count(), SeqCst);
        state.waiting = all;
    }

    /// Fills `into`, which begins at `at`, with the bytes that are not on the storage yet. Returns the other ranges.
    pub(super) fn read_overlay(&self, at: u64, into: &mut [u8]) -> Option<MissingRanges> {
        if self.unwritten_bytes.load(SeqCst) == 0 {
            return None;
        }
        let state = self.state.lock();
        let layers = std::iter::once(&state.waiting).chain(state.in_flight.iter().rev().map(|pieces| &**pieces));
        Some(overlay_layers(layers, at, into))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_largest_memory_of_what_was_written_is_taken_first() {
        let write_buffer = WriteBuffer::default();
        let put = |at, len| write_buffer.buffer_bytes(at, &vec![1; len]);
        for (at, len) in [(0, 100), (1000, 3000), (9000, 500), (20_000, 2 * MAX_BUFFERED_BYTES + 1)] {
            put(at, len);
        }
        let pieces = write_buffer.begin_write().unwrap();
        write_buffer.end_write(pieces, true);
        let spare = || {
            write_buffer
                .state
                .lock()
                .spare_buffers
                .iter()
                .map(|memory| (memory.len(), memory.capacity()))
                .collect::<Vec<_>>()
        };
        assert!(matches!(spare()[..], [(0, 500..3000), (0, 3000..)]), "{:?}", spare());
        put(0, 1);
        assert!(matches!(spare()[..], [(0, 500..3000)]), "{:?}", spare());
        let mut byte = [9; 2];
        assert!(write_buffer.read_overlay(0, &mut byte).is_some());
        assert_eq!(byte, [1, 9], "nothing of what was in that memory");
    }
}
