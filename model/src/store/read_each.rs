//! Reading many chunks where each read is cheap.

use super::reads::{ChunkBytes, ChunkReadRequest, ChunkSink};
use crate::{AllocationLimit, ChunkStore, Result};

/// [`ChunkStore::read_many`] for a store that reads chunks one by one: in their order, on this thread.
///
/// # Errors
/// As [`ChunkStore::read_many`].
pub fn read_chunks_sequentially(
    chunks: &dyn ChunkStore,
    wanted: &[ChunkReadRequest<'_>],
    budget: usize,
    each: &ChunkSink<'_>,
) -> Result<()> {
    let limit = AllocationLimit::new(budget as u64);
    let mut memory: Vec<u8> = Vec::new();
    for (number, wanted) in wanted.iter().enumerate() {
        let Some(chunk) = chunks.locate(wanted.coord)? else {
            each(number, None)?;
            continue;
        };
        let part = wanted.byte_range.clone().unwrap_or(0..chunk.size);
        let len = part.end.saturating_sub(part.start);
        if (memory.len() as u64) < len {
            // The old memory goes first.
            drop(std::mem::take(&mut memory));
            memory = limit.zeroed(len)?;
        }
        let bytes = memory.get_mut(..len as usize).unwrap_or_default();
        chunks.read(&chunk, part.start, bytes)?;
        each(number, Some(ChunkBytes { chunk: &chunk, bytes }))?;
    }
    Ok(())
}
