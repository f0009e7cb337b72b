//! The part of a dataset's state that reads: how its chunks are read, and whether kept ones are outdated.

use std::sync::atomic::{AtomicU64, Ordering};

use h5live_model::ChunkReadStrategy;

/// Most bytes that are read at once to be converted. So many are still in a near cache of the processor.
const MAX_CONVERSION_BYTES: usize = 48 << 10;

/// How chunks are read, and whether kept ones are outdated.
#[derive(Debug)]
pub(crate) struct ReadState {
    /// How chunks are read.
    pub(crate) reads: ChunkReadStrategy,
    /// Bytes of a run that are read at once to be converted, from a multiple of this many on.
    pub(super) max_read_bytes: usize,
    /// Counts changes that may make a decoded chunk outdated.
    change_count: AtomicU64,
}

/// Most bytes of a run that are read at once. At least as many as a writer changes at once while this session reads.
fn max_read_bytes(reads: ChunkReadStrategy) -> usize {
    match reads {
        ChunkReadStrategy::Direct { atomic_read_bytes: atomic } => {
            usize::try_from(atomic).unwrap_or(usize::MAX).max(MAX_CONVERSION_BYTES)
        }
        ChunkReadStrategy::ElementBlocks | ChunkReadStrategy::Batched { .. } => MAX_CONVERSION_BYTES,
    }
}

impl ReadState {
    pub(crate) fn new(reads: ChunkReadStrategy) -> Self {
        ReadState { reads, max_read_bytes: max_read_bytes(reads), change_count: AtomicU64::new(0) }
    }

    /// Notes that decoded chunks may be outdated.
    pub(crate) fn count_change(&self) {
        self.change_count.fetch_add(1, Ordering::AcqRel);
    }

    /// The number of changes up to now.
    pub(super) fn changes(&self) -> u64 {
        self.change_count.load(Ordering::Acquire)
    }
}
