//! The append buffer: appended rows that the store does not have yet.
//!
//! In a dataset without filters whose chunks are as wide as it is, rows follow each other in a chunk and across chunks.
//! So all appended rows are one piece of memory, and go to the store as one batch: the rest of a chunk, whole chunks,
//! and the beginning of the next one.

use std::sync::Arc;

use h5live_model::{ChunkCoord, Layout};
use smallvec::SmallVec;

use super::staged_chunks::StagedBytes;
use crate::dataset::spec_snapshot::SpecSnapshot;
use crate::dims::CoreDims;

/// Appends up to this length are buffered (bytes). Longer ones are stored at once.
pub(crate) const MAX_BUFFERED_APPEND_BYTES: usize = 64 << 10;
/// The buffer is stored when it would be longer than this (bytes). It is still in a near cache of the processor then...
const MAX_BUFFERED_BYTES: usize = 256 << 10;
/// ...unless a chunk is longer, and no longer than this (bytes). A part of a new chunk is stored with fill values
/// behind it, over which the next part is written.
const MAX_AWAITED_CHUNK_BYTES: usize = 1 << 20;
/// So many whole chunks are given to the store in one row at most. The nodes of version 1 B-trees are less full the longer
/// the rows are.
const MAX_ROW_CHUNKS: usize = 256;
/// Memory up to this size is kept when nothing is buffered (bytes): many datasets may be open.
const MAX_SPARE_BYTES: usize = 4 << 10;

/// The rows, and where they go.
#[derive(Debug)]
pub(crate) struct AppendBuffer {
    /// The rows. Readers in this process may share them.
    bytes: Arc<Vec<u8>>,
    /// The number of the first row.
    first_row: u64,
    /// The extent with all rows (`[rank]`, elements). The first dimension grows.
    extent: CoreDims,
    /// Rows of the largest extent.
    max_rows: u64,
    /// Bytes of a row.
    row_bytes: usize,
    /// Rows of a chunk.
    chunk_rows: u64,
    /// Bytes of a chunk.
    chunk_bytes: usize,
}

/// Rows of one chunk, or of several whole chunks.
pub(crate) struct RowPiece<'a> {
    /// The first chunk.
    pub(crate) coord: ChunkCoord,
    /// Where the rows begin in it (bytes).
    pub(crate) at: usize,
    pub(crate) bytes: &'a [u8],
}

impl AppendBuffer {
    /// A buffer for rows that come after the extent of the dataset; `None` if rows do not follow each other in chunks.
    pub(crate) fn new(view: &SpecSnapshot) -> Option<Self> {
        let (sides, chunk_bytes) = view.chunk_shape_bytes().ok()??;
        if !matches!(view.spec.layout, Layout::Chunked(_)) {
            return None;
        }
        let (chunk_rows, max_rows) = (*sides.first()?, *view.spec.dataspace.max_dims().first()?);
        let row_bytes = chunk_bytes / usize::try_from(chunk_rows).ok()?;
        (sides.get(1..) == view.extent.get(1..)).then(|| AppendBuffer {
            bytes: Arc::default(),
            first_row: view.extent[0],
            extent: view.extent.clone(),
            max_rows,
            row_bytes,
            chunk_rows,
            chunk_bytes,
        })
    }

    /// The rows.
    #[inline]
    pub(crate) fn bytes(&self) -> &Arc<Vec<u8>> {
        &self.bytes
    }

    /// The extent with all rows.
    #[inline]
    pub(crate) fn extent(&self) -> &[u64] {
        &self.extent
    }

    /// Bytes of a chunk.
    pub(crate) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether the rows of another buffer, which is empty, come right after those of this one.
    pub(crate) fn is_continued_by(&self, other: &AppendBuffer) -> bool {
        let shape = |buffer: &Self| (buffer.row_bytes, buffer.chunk_rows, buffer.max_rows);
        self.extent == other.extent && shape(self) == shape(other)
    }

    /// The number of rows in these bytes, if they directly follow an extent and the dataset may have so many.
    #[inline]
    pub(crate) fn rows_that_fit(&self, extent: &[u64], bytes: usize) -> Option<u64> {
        let is_next = bytes > 0 && bytes.is_multiple_of(self.row_bytes) && *extent == *self.extent;
        let count = (bytes / self.row_bytes) as u64;
        (is_next && count <= self.max_rows.saturating_sub(self.extent[0])).then_some(count)
    }

    /// How much may be buffered (bytes), of so much that the options allow.
    #[inline]
    pub(crate) fn buffer_limit_bytes(&self, allowed: usize) -> usize {
        let awaited = if self.chunk_bytes <= MAX_AWAITED_CHUNK_BYTES { self.chunk_bytes } else { 0 };
        MAX_BUFFERED_BYTES.max(awaited).min(allowed)
    }

    /// Bytes from the first row on to the end of the last chunk that is full.
    pub(crate) fn whole_chunk_bytes(&self) -> usize {
        let past_chunk = (self.extent[0] % self.chunk_rows) as usize * self.row_bytes;
        self.bytes.len().saturating_sub(past_chunk)
    }

    /// Buffers rows.
    #[inline]
    pub(crate) fn push_rows(&mut self, bytes: &[u8], count: u64) {
        Arc::make_mut(&mut self.bytes).extend_from_slice(bytes);
        self.extent[0] += count;
    }

    /// Rows come next that the store has already.
    pub(crate) fn skip_rows(&mut self, count: u64) {
        self.extent[0] += count;
        self.first_row = self.extent[0];
    }

    /// Drops the first `bytes` bytes of rows, which the store has now.
    pub(crate) fn remove_bytes(&mut self, bytes: usize) {
        self.first_row += (bytes / self.row_bytes) as u64;
        match Arc::get_mut(&mut self.bytes) {
            Some(kept) if bytes < kept.len() => drop(kept.drain(..bytes)),
            Some(kept) if kept.capacity() <= MAX_SPARE_BYTES => kept.clear(),
            _ => self.bytes = Arc::new(self.bytes.get(bytes..).unwrap_or_default().to_vec()),
        }
    }

    /// The rows of a chunk.
    pub(crate) fn staged_bytes_of(&self, coord: &ChunkCoord) -> Option<StagedBytes> {
        let (chunk, others) = coord.scaled().split_first()?;
        let start = chunk.checked_mul(self.chunk_rows)?;
        let rows = self.first_row.max(start)..self.extent[0].min(start.saturating_add(self.chunk_rows));
        if self.is_empty() || rows.is_empty() || others.iter().any(|at| *at != 0) {
            return None;
        }
        let bytes = |row: u64, from: u64| (row - from) as usize * self.row_bytes;
        let range = bytes(rows.start, self.first_row)..bytes(rows.end, self.first_row);
        Some(StagedBytes::new(bytes(rows.start, start), self.bytes.clone(), range))
    }

    /// The pieces of the first rows, which are `bytes`.
    pub(crate) fn chunk_pieces<'a>(&self, bytes: &'a [u8]) -> SmallVec<[RowPiece<'a>; 3]> {
        let (mut chunk, mut rest) = (self.first_row / self.chunk_rows, bytes);
        let mut at = (self.first_row % self.chunk_rows) as usize * self.row_bytes;
        let mut pieces = SmallVec::new();
        while !rest.is_empty() {
            let max_chunks = (MAX_BUFFERED_BYTES / self.chunk_bytes).clamp(1, MAX_ROW_CHUNKS);
            let whole = (rest.len() / self.chunk_bytes).min(max_chunks);
            let (number, len) = match at {
                0 if rest.len() >= self.chunk_bytes => (whole, whole * self.chunk_bytes),
                _ => (1, rest.len().min(self.chunk_bytes - at)),
            };
            let (bytes, after) = rest.split_at(len);
            pieces.push(RowPiece { coord: ChunkCoord::origin(self.extent.len()).with_index(0, chunk), at, bytes });
            (chunk, at, rest) = (chunk + number as u64, 0, after);
        }
        pieces
    }
}
