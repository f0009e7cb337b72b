//! The append buffer: appended rows that the store does not have yet.
//!
//! In a dataset without filters whose chunks are as wide as it is, rows follow each other in a chunk and across chunks.
//! So all appended rows are one piece of memory, and go to the store as one batch: the rest of a chunk, whole chunks,
//! and the beginning of the next one.

use std::sync::Arc;

use h5live_model::{ChunkBatch, ChunkCoord, ChunkWrite, DatasetSpec, Layout, Publish};
use parking_lot::MutexGuard;
use smallvec::SmallVec;

use super::core::{CoreDims, DatasetCore, DatasetError, SpecSnapshot};
use super::staged_chunks::{StagedBytes, StagedData};

/// Appends up to this length are buffered (bytes). Longer ones are stored at once.
pub(super) const MAX_BUFFERED_APPEND_BYTES: usize = 64 << 10;
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
pub(super) struct AppendBuffer {
    /// The rows. Readers in this process may share them.
    bytes: Arc<Vec<u8>>,
    /// The number of the first row.
    first: u64,
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
struct RowPiece<'a> {
    /// The first chunk.
    coord: ChunkCoord,
    /// Where the rows begin in it (bytes).
    at: usize,
    bytes: &'a [u8],
}

impl AppendBuffer {
    /// A buffer for rows that come after the extent of the dataset; `None` if rows do not follow each other in chunks.
    pub(super) fn new(view: &SpecSnapshot) -> Option<Self> {
        let (sides, chunk_bytes) = view.chunk_shape_bytes().ok()??;
        if !matches!(view.spec.layout, Layout::Chunked(_)) {
            return None;
        }
        let (chunk_rows, max_rows) = (*sides.first()?, *view.spec.dataspace.max().first()?);
        let row_bytes = chunk_bytes / usize::try_from(chunk_rows).ok()?;
        (sides.get(1..) == view.extent.get(1..)).then(|| AppendBuffer {
            bytes: Arc::default(),
            first: view.extent[0],
            extent: view.extent.clone(),
            max_rows,
            row_bytes,
            chunk_rows,
            chunk_bytes,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether the rows of another buffer, which is empty, come right after those of this one.
    pub(super) fn is_continued_by(&self, other: &AppendBuffer) -> bool {
        let shape = |buffer: &Self| (buffer.row_bytes, buffer.chunk_rows, buffer.max_rows);
        self.extent == other.extent && shape(self) == shape(other)
    }

    /// The number of rows in these bytes, if they directly follow an extent and the dataset may have so many.
    fn count(&self, extent: &[u64], bytes: usize) -> Option<u64> {
        let is_next = bytes > 0 && bytes.is_multiple_of(self.row_bytes) && *extent == *self.extent;
        let count = (bytes / self.row_bytes) as u64;
        (is_next && count <= self.max_rows.saturating_sub(self.extent[0])).then_some(count)
    }

    /// How much may be buffered (bytes), of so much that the options allow.
    fn limit(&self, allowed: usize) -> usize {
        let awaited = if self.chunk_bytes <= MAX_AWAITED_CHUNK_BYTES { self.chunk_bytes } else { 0 };
        MAX_BUFFERED_BYTES.max(awaited).min(allowed)
    }

    /// Bytes from the first row on to the end of the last chunk that is full.
    fn whole_bytes(&self) -> usize {
        let past_chunk = (self.extent[0] % self.chunk_rows) as usize * self.row_bytes;
        self.bytes.len().saturating_sub(past_chunk)
    }

    /// Buffers rows.
    fn push(&mut self, bytes: &[u8], count: u64) {
        Arc::make_mut(&mut self.bytes).extend_from_slice(bytes);
        self.extent[0] += count;
    }

    /// Rows come next that the store has already.
    fn skip(&mut self, count: u64) {
        self.extent[0] += count;
        self.first = self.extent[0];
    }

    /// Drops the first `bytes` bytes of rows, which the store has now.
    fn remove(&mut self, bytes: usize) {
        self.first += (bytes / self.row_bytes) as u64;
        match Arc::get_mut(&mut self.bytes) {
            Some(kept) if bytes < kept.len() => drop(kept.drain(..bytes)),
            Some(kept) if kept.capacity() <= MAX_SPARE_BYTES => kept.clear(),
            _ => self.bytes = Arc::new(self.bytes.get(bytes..).unwrap_or_default().to_vec()),
        }
    }

    /// The rows of a chunk.
    pub(super) fn get(&self, coord: &ChunkCoord) -> Option<StagedBytes> {
        let (chunk, others) = coord.scaled().split_first()?;
        let start = chunk.checked_mul(self.chunk_rows)?;
        let rows = self.first.max(start)..self.extent[0].min(start.saturating_add(self.chunk_rows));
        if self.is_empty() || rows.is_empty() || others.iter().any(|at| *at != 0) {
            return None;
        }
        let bytes = |row: u64, from: u64| (row - from) as usize * self.row_bytes;
        let range = bytes(rows.start, self.first)..bytes(rows.end, self.first);
        Some(StagedBytes::new(bytes(rows.start, start), self.bytes.clone(), range))
    }

    /// The pieces of the first rows, which are `bytes`.
    fn pieces<'a>(&self, bytes: &'a [u8]) -> SmallVec<[RowPiece<'a>; 3]> {
        let (mut chunk, mut rest) = (self.first / self.chunk_rows, bytes);
        let mut at = (self.first % self.chunk_rows) as usize * self.row_bytes;
        let mut pieces = SmallVec::new();
        while !rest.is_empty() {
            let most = (MAX_BUFFERED_BYTES / self.chunk_bytes).clamp(1, MAX_ROW_CHUNKS);
            let whole = (rest.len() / self.chunk_bytes).min(most);
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

impl RowPiece<'_> {
    fn as_write(&self, chunk_bytes: usize) -> ChunkWrite<'_> {
        let RowPiece { coord, at, bytes } = self;
        match bytes.len() / chunk_bytes {
            0 => ChunkWrite::Part { coord, at: *at as u64, bytes },
            1 => ChunkWrite::Whole { coord, filter_mask: 0, bytes },
            _ => ChunkWrite::Row { first: coord, size: chunk_bytes, bytes },
        }
    }
}

/// How many of the buffered rows are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredRows {
    All,
    /// Those of chunks that are full.
    OfWholeChunks,
    /// All, and the extent with them. A publication may follow at once.
    AllWithExtent(Option<Publish>),
}

impl DatasetCore {
    /// Appends rows, as `stored` gives them, if they come right after rows that were appended before. Returns `false`
    /// if not, and nothing was done.
    pub(super) fn append_rows<'a>(
        &self,
        stored: impl FnOnce(&DatasetSpec) -> Option<&'a [u8]>,
    ) -> Result<bool, DatasetError> {
        let _alone = self.writer.lock();
        let stage = self.stage.lock();
        if stage.rows.is_none() {
            return Ok(false);
        }
        let spec = self.chunks.spec()?;
        let Some(rows) = stored(&spec) else { return Ok(false) };
        let done = self.push_rows(stage, spec.dataspace.dims(), rows);
        self.list_staged();
        done
    }

    /// Buffers rows if they are short, and stores them if not; `told` is the extent that the store knows. Returns
    /// `false` if they do not come after the buffered ones, and nothing was done. The caller holds the writer's lock.
    pub(super) fn push_rows<'a>(
        &'a self,
        mut stage: MutexGuard<'a, StagedData>,
        told: &[u64],
        rows: &[u8],
    ) -> Result<bool, DatasetError> {
        let StagedData { rows: Some(buffer), extent, chunks } = &*stage else { return Ok(false) };
        let extent = extent.as_deref().unwrap_or(told);
        let Some(count) = buffer.count(extent, rows.len()).filter(|_| chunks.is_empty()) else { return Ok(false) };
        let limit = buffer.limit(self.staging);
        let is_direct = rows.len() > limit.min(MAX_BUFFERED_APPEND_BYTES);
        if is_direct || buffer.bytes.len() + rows.len() > limit {
            drop(stage);
            self.make_room(if is_direct { 0 } else { limit - rows.len() })?;
            if is_direct {
                self.store_direct(rows)?;
            }
            stage = self.stage.lock();
        }
        let StagedData { rows: Some(buffer), extent, .. } = &mut *stage else { return Ok(false) };
        if is_direct {
            buffer.skip(count)
        } else {
            buffer.push(rows, count)
        }
        match extent {
            Some(extent) => extent[0] += count,
            None => *extent = Some(CoreDims::from_slice(&buffer.extent)),
        }
        Ok(true)
    }

    /// Stores buffered rows until no more than `most` bytes are left: those of whole chunks, and if need be all.
    #[cold]
    fn make_room(&self, most: usize) -> Result<(), DatasetError> {
        let len = || self.stage.lock().rows.as_ref().map_or(0, |buffer| buffer.bytes.len());
        for which in [StoredRows::OfWholeChunks, StoredRows::All] {
            if len() > most {
                self.store_rows(which)?;
            }
        }
        Ok(())
    }

    /// Stores rows that come after all others. None are buffered.
    #[cold]
    fn store_direct(&self, rows: &[u8]) -> Result<(), DatasetError> {
        let stage = self.stage.lock();
        let Some(buffer) = &stage.rows else { return Ok(()) };
        let (pieces, chunk_bytes) = (buffer.pieces(rows), buffer.chunk_bytes);
        drop(stage);
        self.store_pieces(&pieces, chunk_bytes, ChunkBatch::default())
    }

    /// Stores pieces, and what else a batch says.
    fn store_pieces(
        &self,
        pieces: &[RowPiece<'_>],
        chunk_bytes: usize,
        batch: ChunkBatch<'_>,
    ) -> Result<(), DatasetError> {
        let store = |writes: &[ChunkWrite<'_>]| self.chunks.write(&ChunkBatch { writes, ..batch });
        let stored = match pieces {
            [piece] => store(&[piece.as_write(chunk_bytes)]),
            _ => store(&pieces.iter().map(|piece| piece.as_write(chunk_bytes)).collect::<SmallVec<[_; 3]>>()),
        };
        stored.map_err(|error| match pieces {
            [piece, ..] => DatasetError::in_chunk(&piece.coord, error),
            [] => error.into(),
        })
    }

    /// Stores buffered rows by one batch. Returns `false` if there are none of those. After an error all are still
    /// buffered. The caller holds the writer's lock.
    pub(super) fn store_rows(&self, which: StoredRows) -> Result<bool, DatasetError> {
        let stage = self.stage.lock();
        let StagedData { rows: Some(buffer), extent, .. } = &*stage else { return Ok(false) };
        let len = if which == StoredRows::OfWholeChunks { buffer.whole_bytes() } else { buffer.bytes.len() };
        if len == 0 {
            return Ok(false);
        }
        let (bytes, chunk_bytes) = (buffer.bytes.clone(), buffer.chunk_bytes);
        let pieces = buffer.pieces(bytes.get(..len).unwrap_or_default());
        let (extent, publish) = match which {
            StoredRows::AllWithExtent(publish) => (extent.as_deref().map(CoreDims::from_slice), publish),
            _ => (None, None),
        };
        drop(stage);
        let batch = ChunkBatch { writes: &[], extent: extent.as_deref(), after: &[], publish };
        self.store_pieces(&pieces, chunk_bytes, batch)?;
        drop(pieces);
        drop(bytes);
        let mut stage = self.stage.lock();
        if extent.is_some() {
            stage.extent = None;
        }
        if let Some(buffer) = &mut stage.rows {
            buffer.remove(len);
        }
        Ok(true)
    }
}
