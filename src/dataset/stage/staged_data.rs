//! What is staged of a dataset: appended rows, chunks that were written to, and the extent.

use h5live_model::ChunkCoord;

use super::append_buffer::AppendBuffer;
use super::staged_chunks::{StagedBytes, StagedChunk, StagedChunks};
use crate::dims::CoreDims;

/// The staged elements and extent of a dataset.
#[derive(Debug, Default)]
pub(crate) struct StagedData {
    /// The extent that the store has not been told (`[rank]`, elements).
    pub(crate) extent: Option<CoreDims>,
    /// Chunks that were written to. There are none while rows are buffered.
    pub(crate) chunks: StagedChunks,
    /// Rows that were appended. Without any it says where the next ones go.
    pub(crate) rows: Option<AppendBuffer>,
}

impl StagedData {
    pub(crate) fn is_dirty(&self) -> bool {
        self.extent.is_some() || self.has_rows() || self.chunks.iter().any(|(_, staged)| staged.is_dirty)
    }

    pub(crate) fn has_rows(&self) -> bool {
        self.rows.as_ref().is_some_and(|rows| !rows.is_empty())
    }

    /// The staged bytes of a chunk.
    pub(crate) fn staged_bytes_of(&self, coord: &ChunkCoord) -> Option<StagedBytes> {
        let of_rows = self.rows.as_ref().and_then(|rows| rows.staged_bytes_of(coord));
        of_rows.or_else(|| self.chunks.get(coord).map(StagedBytes::from))
    }

    /// The chunks that the store lacks.
    pub(crate) fn dirty_chunks(&self) -> Vec<(ChunkCoord, StagedChunk)> {
        let dirty = self.chunks.iter().filter(|(_, staged)| staged.is_dirty);
        dirty.map(|(coord, staged)| (coord.clone(), staged.clone())).collect()
    }

    /// Keeps what the store has now of the chunk that was staged so; a part is no longer needed.
    pub(crate) fn mark_stored(&mut self, coord: &ChunkCoord, keep: bool) {
        match self.chunks.get_mut(coord) {
            Some(staged) if keep => (staged.is_dirty, staged.is_rewritten) = (false, false),
            _ => drop(self.chunks.take_chunk(coord)),
        }
    }
}
