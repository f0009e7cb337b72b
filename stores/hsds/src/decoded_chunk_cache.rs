//! Decoded chunks of a session that were read last: whoever looks one up often reads it next.

use std::sync::Arc;

use h5live_model::{ChunkCoord, ObjectId};
use parking_lot::Mutex;

use crate::byte_bounded_fifo_cache::ByteBoundedFifoCache;

/// A decoded chunk; `None` if nobody wrote it.
pub type DecodedChunk = Option<Arc<Vec<u8>>>;

/// The chunks of all datasets of a session, within a number of bytes.
#[derive(Debug)]
pub struct DecodedChunkCache(Mutex<RecentState>);

#[derive(Debug)]
struct RecentState {
    chunks: ByteBoundedFifoCache<(ObjectId, ChunkCoord), DecodedChunk>,
    /// Counts what was forgotten, so that nothing older than that is kept.
    changes: u64,
}

/// What [`DecodedChunkCache::find`] found.
pub enum ChunkLookup {
    Hit(DecodedChunk),
    /// Nothing: it is to be read, and kept with this number.
    MissAtChangeCount(u64),
}

impl DecodedChunkCache {
    /// For at most so many bytes, but always one chunk.
    pub fn new(max_bytes: usize) -> Self {
        DecodedChunkCache(Mutex::new(RecentState { chunks: ByteBoundedFifoCache::new(max_bytes), changes: 0 }))
    }

    /// A chunk of a dataset.
    pub fn find(&self, dataset: ObjectId, coord: &ChunkCoord) -> ChunkLookup {
        let state = self.0.lock();
        match state.chunks.get(&(dataset, coord.clone())) {
            Some(chunk) => ChunkLookup::Hit(chunk.clone()),
            None => ChunkLookup::MissAtChangeCount(state.changes),
        }
    }

    /// Keeps a chunk that was read, unless something was forgotten since [`DecodedChunkCache::find`] gave this number.
    pub fn insert_if_unchanged(&self, dataset: ObjectId, coord: &ChunkCoord, chunk: DecodedChunk, seen_changes: u64) {
        let mut state = self.0.lock();
        if state.changes == seen_changes {
            let bytes = chunk.as_ref().map_or(0, |chunk| chunk.len()) + size_of::<(ObjectId, ChunkCoord)>();
            state.chunks.insert((dataset, coord.clone()), chunk, bytes);
        }
    }

    /// Forgets the chunks of a dataset: they may be others now.
    pub fn invalidate_dataset(&self, dataset: ObjectId) {
        let mut state = self.0.lock();
        state.changes += 1;
        let first = (dataset, ChunkCoord::new(&[]));
        match dataset.0.checked_add(1) {
            Some(next) => state.chunks.remove_range(first..(ObjectId(next), ChunkCoord::new(&[]))),
            None => state.chunks.remove_range(first..),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_known(recent: &DecodedChunkCache, dataset: u128, at: u64) -> bool {
        matches!(recent.find(ObjectId(dataset), &ChunkCoord::new(&[at])), ChunkLookup::Hit(_))
    }

    #[test]
    fn datasets_share_the_bytes_and_each_forgets_its_own() {
        let recent = DecodedChunkCache::new(10_000);
        for at in 0..4 {
            for dataset in [1, 2, u128::MAX] {
                recent.insert_if_unchanged(
                    ObjectId(dataset),
                    &ChunkCoord::new(&[at]),
                    Some(Arc::new(vec![0; 1_000])),
                    0,
                );
            }
        }
        let count = [1, 2, u128::MAX].iter().flat_map(|dataset| (0..4).map(|at| is_known(&recent, *dataset, at)));
        assert!((5..10).contains(&count.filter(|known| *known).count()));
        recent.invalidate_dataset(ObjectId(2));
        assert!(!is_known(&recent, 2, 3) && is_known(&recent, 1, 3) && is_known(&recent, u128::MAX, 3));
        recent.invalidate_dataset(ObjectId(u128::MAX));
        assert!(!is_known(&recent, u128::MAX, 3) && is_known(&recent, 1, 3));
    }

    #[test]
    fn what_was_read_before_a_change_is_not_kept() {
        let recent = DecodedChunkCache::new(10_000);
        recent.invalidate_dataset(ObjectId(1));
        recent.insert_if_unchanged(ObjectId(1), &ChunkCoord::new(&[0]), None, 0);
        assert!(!is_known(&recent, 1, 0));
    }
}
