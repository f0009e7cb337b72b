//! Appended rows on their way: into the append buffer if they are few, and by one batch to the store.

use h5live_model::{ChunkBatch, ChunkWrite, DatasetSpec, Publish};
use parking_lot::MutexGuard;
use smallvec::SmallVec;

use crate::dataset::core::DatasetCore;
use crate::dataset::error::DatasetError;
use crate::dataset::stage::RowPiece;
use crate::dataset::stage::StagedData;
use crate::dims::CoreDims;

/// Appends up to this length are buffered (bytes). Longer ones are stored at once.
pub(crate) const MAX_BUFFERED_APPEND_BYTES: usize = 64 << 10;

/// How many of the buffered rows are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredRows {
    All,
    /// Those of chunks that are full.
    OfWholeChunks,
    /// All, and the extent with them. A publication may follow at once.
    AllWithExtent(Option<Publish>),
}

impl DatasetCore {
    /// Appends rows, as `stored` gives them, if they come right after rows that were appended before. Returns `false`
    /// if not, and nothing was done.
    pub(crate) fn append_rows<'a>(
        &self,
        stored: impl FnOnce(&DatasetSpec) -> Option<&'a [u8]>,
    ) -> Result<bool, DatasetError> {
        let _alone = self.stage.lock_writer();
        self.stage.check_accepts_elements()?;
        let stage = self.stage.lock();
        if stage.rows.is_none() {
            return Ok(false);
        }
        let spec = self.chunks.spec()?;
        let Some(rows) = stored(&spec) else { return Ok(false) };
        let done = self.push_rows(stage, spec.dataspace.dims(), rows);
        self.register_staged();
        done
    }

    /// Buffers rows if they are short, and stores them if not; `stored_extent` is the extent that the store knows. Returns
    /// `false` if they do not come after the buffered ones, and nothing was done. The caller holds the writer's lock.
    pub(crate) fn push_rows<'a>(
        &'a self,
        mut stage: MutexGuard<'a, StagedData>,
        stored_extent: &[u64],
        rows: &[u8],
    ) -> Result<bool, DatasetError> {
        let StagedData { rows: Some(buffer), extent, chunks } = &*stage else { return Ok(false) };
        let extent = extent.as_deref().unwrap_or(stored_extent);
        let Some(count) = buffer.rows_that_fit(extent, rows.len()).filter(|_| chunks.is_empty()) else {
            return Ok(false);
        };
        let limit = buffer.buffer_limit_bytes(self.stage.append_buffer_bytes);
        let is_direct = rows.len() > limit.min(MAX_BUFFERED_APPEND_BYTES);
        if is_direct || buffer.bytes().len() + rows.len() > limit {
            drop(stage);
            self.make_room(if is_direct { 0 } else { limit - rows.len() })?;
            if is_direct {
                self.store_direct(rows)?;
            }
            stage = self.stage.lock();
        }
        let StagedData { rows: Some(buffer), extent, .. } = &mut *stage else { return Ok(false) };
        if is_direct {
            buffer.skip_rows(count)
        } else {
            buffer.push_rows(rows, count)
        }
        match extent {
            Some(extent) => extent[0] += count,
            None => *extent = Some(CoreDims::from_slice(buffer.extent())),
        }
        Ok(true)
    }

    /// Stores buffered rows until no more than `max_bytes` bytes are left: those of whole chunks, and if need be all.
    #[cold]
    fn make_room(&self, max_bytes: usize) -> Result<(), DatasetError> {
        let len = || self.stage.lock().rows.as_ref().map_or(0, |buffer| buffer.bytes().len());
        for which in [StoredRows::OfWholeChunks, StoredRows::All] {
            if len() > max_bytes {
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
        let (pieces, chunk_bytes) = (buffer.chunk_pieces(rows), buffer.chunk_bytes());
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
    pub(crate) fn store_rows(&self, which: StoredRows) -> Result<bool, DatasetError> {
        let stage = self.stage.lock();
        let StagedData { rows: Some(buffer), extent, .. } = &*stage else { return Ok(false) };
        let len = if which == StoredRows::OfWholeChunks { buffer.whole_chunk_bytes() } else { buffer.bytes().len() };
        if len == 0 {
            return Ok(false);
        }
        let (bytes, chunk_bytes) = (buffer.bytes().clone(), buffer.chunk_bytes());
        let pieces = buffer.chunk_pieces(bytes.get(..len).unwrap_or_default());
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
        if let Some(extent) = &extent {
            stage.extent = None;
            if publish.is_some() {
                self.raise_published_end(extent[0]);
            }
        }
        if let Some(buffer) = &mut stage.rows {
            buffer.remove_bytes(len);
        }
        Ok(true)
    }
}
