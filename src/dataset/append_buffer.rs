//! Elements that were written and that the store does not have yet.
//!
//! A chunk with filters is kept whole and decoded, so that small writes do not filter it again each time. Of a chunk
//! without filters, one run of bytes is kept; neighbouring writes are added to it.

use h5live_model::ChunkCoord;

use super::append_cursor::AppendCursor;
use super::core::CoreDims;
use super::staged_chunks::{StagedChunk, StagedChunks};

/// The staged elements and extent of a dataset.
#[derive(Debug, Default)]
pub(crate) struct AppendBuffer {
    /// The extent that the store has not been told.
    pub(super) extent: Option<CoreDims>,
    pub(super) chunks: StagedChunks,
    /// Where rows go that directly follow the last ones.
    pub(super) cursor: Option<AppendCursor>,
}

impl AppendBuffer {
    pub(super) fn is_dirty(&self) -> bool {
        self.extent.is_some() || self.chunks.row().is_some() || self.chunks.iter().any(|(_, staged)| staged.dirty)
    }

    /// The chunks that the store lacks, but for those in a row.
    pub(super) fn dirty_chunks(&self) -> Vec<(ChunkCoord, StagedChunk)> {
        let dirty = self.chunks.iter().filter(|(_, staged)| staged.dirty);
        dirty.map(|(coord, staged)| (coord.clone(), staged.clone())).collect()
    }

    /// The staged elements and their new extent, if the elements are one run.
    pub(super) fn single_run(&self) -> Option<(&ChunkCoord, &StagedChunk, &CoreDims)> {
        let (coord, staged) = self.chunks.single().filter(|(_, staged)| staged.dirty)?;
        Some((coord, staged, self.extent.as_ref()?))
    }

    /// Forgets everything: the store has it.
    pub(super) fn clear(&mut self) {
        self.extent = None;
        self.chunks.clear();
    }

    /// Keeps what the store has now of the chunk that was staged so; a part is no longer needed.
    pub(super) fn mark_stored(&mut self, coord: &ChunkCoord, keep: bool) {
        match self.chunks.get_mut(coord) {
            Some(staged) if keep => staged.dirty = false,
            _ => drop(self.chunks.take(coord)),
        }
    }
}
