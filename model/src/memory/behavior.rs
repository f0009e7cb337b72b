//! The ways in which a file in memory can behave.

use crate::{ChunkEncodedBy, ChunkReadStrategy, PartialWrites, SmallWritesStagedBy};

/// Bytes that a reader need not read more than at once, though each read is atomic.
const ATOMIC_READ_BYTES: u64 = 8 << 20;

/// How a file in memory takes and gives chunks. Each way is one that another store has, so that the facade can be tried
/// with all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimulatedChunkCapabilities {
    /// The parts of an unfiltered chunk that can be written by themselves.
    pub partial_writes: PartialWrites,
    /// Who gathers small writes until the commit. If it is the store, readers see no write before its commit.
    pub staging: SmallWritesStagedBy,
    /// Whether chunks cross the seam as filters left them.
    pub encoding: ChunkEncodedBy,
    /// How chunks are best read. Batched reads are answered by several threads, the last chunk first.
    pub reads: ChunkReadStrategy,
}

impl Default for SimulatedChunkCapabilities {
    fn default() -> Self {
        SimulatedChunkCapabilities {
            partial_writes: PartialWrites::Bytes { multiple_of: 1 },
            staging: SmallWritesStagedBy::Caller,
            encoding: ChunkEncodedBy::Pipeline,
            reads: ChunkReadStrategy::Direct { atomic_read_bytes: ATOMIC_READ_BYTES },
        }
    }
}

impl SimulatedChunkCapabilities {
    /// How chunks are best read by a session that writes, or does not.
    pub(super) fn reads_of(self, writable: bool) -> ChunkReadStrategy {
        match self.reads {
            ChunkReadStrategy::Direct { .. } if writable => ChunkReadStrategy::Direct { atomic_read_bytes: 0 },
            reads => reads,
        }
    }
}
