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
    #[inline]
    pub(crate) fn is_dirty(&self) -> bool {
        self.extent.is_some() || self.has_rows() || self.chunks.iter().any(|(_, staged)| staged.is_dirty)
    }

    /// Bytes that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.chunks.total_bytes() + self.rows.as_ref().map_or(0, |rows| rows.bytes().capacity())
    }

    #[inline]
    pub(crate) fn has_rows(&self) -> bool {
        self.rows.as_ref().is_some_and(|rows| !rows.is_empty())
    }

    /// The append buffer, and the number of rows that `bytes` bytes are, if these rows come right after those that were
    /// appended before. `stored_extent` is the extent that the store knows.
    #[inline]
    pub(crate) fn buffer_for(&self, stored_extent: &[u64], bytes: usize) -> Option<(&AppendBuffer, u64)> {
        let extent = self.extent.as_deref().unwrap_or(stored_extent);
        let buffer = self.rows.as_ref()?;
        let count = buffer.rows_that_fit(extent, bytes).filter(|_| self.chunks.is_empty())?;
        Some((buffer, count))
    }

    /// Buffers `count` rows. Without `rows`, the store has them already. Returns `false` if there is no buffer.
    #[inline]
    pub(crate) fn try_append_rows(&mut self, count: u64, rows: Option<&[u8]>) -> bool {
        let Some(buffer) = &mut self.rows else { return false };
        match rows {
            Some(rows) => buffer.push_rows(rows, count),
            None => buffer.skip_rows(count),
        }
        match &mut self.extent {
            Some(extent) => extent[0] += count,
            None => self.extent = Some(CoreDims::from_slice(buffer.extent())),
        }
        true
    }

    /// The staged bytes of a chunk.
    pub(crate) fn staged_bytes_of(&self, coord: &ChunkCoord) -> Option<StagedBytes> {
        let of_rows = self.rows.as_ref().and_then(|rows| rows.staged_bytes_of(coord));
        of_rows.or_else(|| self.chunks.get(coord).map(StagedBytes::from))
    }

    /// No longer stages chunks, all of which the store has. Those that `keep` picks stay, unless they are more than
    /// `max_bytes` bytes.
    pub(crate) fn drop_stored_chunks(&mut self, keep: impl Fn(&ChunkCoord) -> bool, max_bytes: usize) {
        self.chunks.retain(|coord, _| keep(coord));
        if self.chunks.total_bytes() > max_bytes {
            self.chunks.retain(|_, _| false);
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = StagedData::default();
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
