//! What one call asks of many chunks, and what it finds.

use std::ops::Range;

use crate::{ChunkCoord, Result, StoredChunk};

/// What is wanted of a chunk, for [`ChunkStore::read_many`](crate::ChunkStore::read_many).
#[derive(Debug, Clone)]
pub struct ChunkReadRequest<'a> {
    /// The chunk.
    pub coord: &'a ChunkCoord,
    /// Its stored bytes from here to there; `None` for all.
    pub byte_range: Option<Range<u64>>,
}

/// What was found of a chunk.
#[derive(Debug, Clone, Copy)]
pub struct ChunkBytes<'a> {
    /// The chunk.
    pub chunk: &'a StoredChunk,
    /// The bytes that were wanted.
    pub bytes: &'a [u8],
}

/// Takes what [`ChunkStore::read_many`](crate::ChunkStore::read_many) finds: the number in the list of what was wanted, and the bytes, or `None` for a
/// chunk that nobody wrote. It may call the store.
pub type ChunkSink<'a> = dyn Fn(usize, Option<ChunkBytes<'_>>) -> Result<()> + Sync + 'a;
