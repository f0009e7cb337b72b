//! The part of a dataset's state that stores: how its chunks are handed over, and what the store has of them.

use parking_lot::Mutex;

use super::growing_chunks::GrowingChunks;
use super::part_writes::PartWrites;
use crate::superseded_blobs::StoredBlob;

/// How chunks are handed to the store, and what it has of them.
#[derive(Debug)]
pub(crate) struct StoreState {
    /// How a part of a chunk is handed to the store.
    pub(crate) part_writes: PartWrites,
    /// Chunks with filters that are not full yet, of a live dataset.
    pub(crate) growing: GrowingChunks,
    /// Variable-length elements that were overwritten. The store is told of them when it has what was written over them.
    pub(super) superseded: Mutex<Vec<StoredBlob>>,
}

impl StoreState {
    pub(crate) fn new(part_writes: PartWrites) -> Self {
        StoreState { part_writes, growing: GrowingChunks::default(), superseded: Mutex::default() }
    }

    /// Whether any part of a chunk is handed to the store as a run of bytes.
    pub(crate) fn takes_runs(&self) -> bool {
        self.part_writes == PartWrites::Runs
    }
}
