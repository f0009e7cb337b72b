//! Small pieces of new raw data on their way to the storage: gathered, so that neighbours are written in one call.
//!
//! Nothing may lead to them before they are written, and nothing waits for them: each flush writes them before all else.

use std::sync::Arc;

use super::pieces::{Gaps, Pieces, overlay};
use crate::primitive::{
    Mutex, MutexGuard,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

/// Bytes that wait at most.
#[cfg(not(loom))]
const MOST: usize = 1 << 20;
#[cfg(loom)]
const MOST: usize = 1;

/// Pieces by address (bytes from the base address).
#[derive(Debug, Default)]
pub(crate) struct Early {
    state: Mutex<State>,
    /// Held by the one who writes between flushes.
    writing: Mutex<()>,
    /// Bytes that wait or are being written. While there are none, reads go straight to the storage.
    present: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    waiting: Pieces,
    in_flight: Vec<Arc<Pieces>>,
    /// The memory of what was written last, for what comes next.
    spare: Vec<u8>,
}

impl Early {
    /// Takes bytes for new space. Returns whether too many wait now.
    pub(super) fn put(&self, at: u64, bytes: &[u8]) -> bool {
        let mut state = self.state.lock();
        let State { waiting, spare, .. } = &mut *state;
        waiting.append(at, bytes, spare);
        self.present.fetch_add(bytes.len(), SeqCst);
        state.waiting.weight() >= MOST
    }

    /// Takes into flight what waits.
    pub(crate) fn take(&self) -> Option<Arc<Pieces>> {
        let mut state = self.state.lock();
        if state.waiting.weight() == 0 {
            return None;
        }
        let pieces = Arc::new(std::mem::take(&mut state.waiting));
        state.in_flight.push(Arc::clone(&pieces));
        Some(pieces)
    }

    /// Keeps flushes from writing over what is written between them.
    pub(super) fn begin_writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock()
    }

    /// Returns when nobody writes between flushes what was put before.
    pub(crate) fn await_others(&self) {
        drop(self.writing.lock());
    }

    /// Ends a flight. What was not `written` waits again.
    pub(crate) fn land(&self, pieces: Arc<Pieces>, written: bool) {
        let mut state = self.state.lock();
        state.in_flight.retain(|other| !Arc::ptr_eq(other, &pieces));
        if written {
            self.present.fetch_sub(pieces.weight(), SeqCst);
            let memory = Arc::into_inner(pieces).and_then(Pieces::into_memory);
            state.spare = memory.filter(|memory| memory.capacity() <= 2 * MOST).unwrap_or_default();
            return;
        }
        let newer = std::mem::take(&mut state.waiting);
        let before = newer.weight() + pieces.weight();
        let mut all = Arc::unwrap_or_clone(pieces);
        newer.into_iter().for_each(|(at, bytes)| all.put(at, bytes));
        // Space that was given back meanwhile may have been filled anew.
        self.present.fetch_sub(before - all.weight(), SeqCst);
        state.waiting = all;
    }

    /// Fills `into`, which begins at `at`, from what is not on the storage yet; returns what is.
    pub(super) fn overlay(&self, at: u64, into: &mut [u8]) -> Option<Gaps> {
        if self.present.load(SeqCst) == 0 {
            return None;
        }
        let state = self.state.lock();
        let layers = std::iter::once(&state.waiting).chain(state.in_flight.iter().rev().map(|pieces| &**pieces));
        Some(overlay(layers, at, into))
    }
}
