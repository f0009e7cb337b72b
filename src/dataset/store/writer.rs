//! The writer of a dataset: how chunks and the extent get to the store.

use h5live_model::{ChunkBatch, ChunkCoord, ChunkGrid, ChunkWrite, Store};
use parking_lot::MutexGuard;

use super::append_rows::StoredRows;
use super::encode_pipeline::{self, EncodeBuffers};
use super::growing_chunks::{ChunkForm, is_short};
use super::part_writes::PartWrites;
use crate::dataset::core::DatasetCore;
use crate::dataset::error::DatasetError;
use crate::dataset::read::ChunkCache;
use crate::dataset::read::DatasetReader;
use crate::dataset::spec_snapshot::SpecSnapshot;
use crate::dataset::stage::StagedChunk;

/// The one that changes elements or the extent of a dataset.
pub(crate) struct DatasetWriter<'a> {
    pub(crate) core: &'a DatasetCore,
    store: &'a dyn Store,
    pub(crate) cache: &'a ChunkCache,
    pub(crate) view: SpecSnapshot,
    _alone: MutexGuard<'a, ()>,
}

impl Drop for DatasetWriter<'_> {
    fn drop(&mut self) {
        self.core.register_staged();
    }
}

impl DatasetCore {
    pub(crate) fn writer<'a>(
        &'a self,
        store: &'a dyn Store,
        cache: &'a ChunkCache,
    ) -> Result<DatasetWriter<'a>, DatasetError> {
        let alone = self.stage.lock_writer();
        let view = self.spec_snapshot()?;
        self.check_allocation(view.size)?;
        Ok(DatasetWriter { core: self, store, cache, view, _alone: alone })
    }
}

impl<'a> DatasetWriter<'a> {
    pub(crate) fn spec_snapshot(&self) -> &SpecSnapshot {
        &self.view
    }

    pub(super) fn store(&self) -> &dyn Store {
        self.store
    }

    pub(crate) fn reader(&self) -> DatasetReader<'_> {
        DatasetReader { core: self.core, view: &self.view, store: self.store, cache: self.cache }
    }

    /// Stores chunks as given, by one call, and replaces their stored and staged contents.
    pub(crate) fn write_stored(&self, chunks: &[ChunkWrite<'_>]) -> Result<(), DatasetError> {
        self.core.blobs.note_stored_elements(&self.view.spec.datatype);
        self.core.store_rows(StoredRows::All)?;
        let mut stage = self.core.stage.lock();
        chunks.iter().for_each(|chunk| drop(stage.chunks.take_chunk(chunk.coord())));
        drop(stage);
        self.store_many(chunks)
    }

    /// Stores everything staged, and tells the store the extent.
    pub(crate) fn write_out(&self) -> Result<(), DatasetError> {
        if self.core.store_rows(StoredRows::AllWithExtent(None))? {
            return Ok(());
        }
        if let Some((grid, bytes)) = self.view.grid()? {
            self.store_staged_chunks(&grid, bytes, |_| true)?;
            self.drop_stored_chunks(&grid);
        }
        let extent = self.core.stage.lock().extent.clone();
        if let Some(byte_range_of_runs) = extent {
            self.core.chunks.set_extent(&byte_range_of_runs)?;
            self.core.stage.lock().extent = None;
        }
        Ok(())
    }

    /// No longer stages chunks that the store has, all of them. The chunk of the next rows is kept, so that it need not
    /// be decoded again.
    pub(crate) fn drop_stored_chunks(&self, grid: &ChunkGrid) {
        let mut stage = self.core.stage.lock();
        stage.chunks.retain(|coord, _| grid.is_partial(coord, &self.view.extent));
        if stage.chunks.total_bytes() > self.core.stage.append_buffer_bytes / 2 {
            stage.chunks.retain(|_, _| false);
        }
    }

    /// Stores the staged chunks that `which` picks.
    pub(crate) fn store_staged_chunks(
        &self,
        grid: &ChunkGrid,
        chunk_bytes: usize,
        which: impl Fn(&ChunkCoord) -> bool,
    ) -> Result<(), DatasetError> {
        let mut dirty = self.core.stage.lock().dirty_chunks();
        dirty.retain(|(coord, _)| which(coord));
        if self.core.filters.is_empty() {
            return self.store_unfiltered(&dirty, chunk_bytes);
        }
        let dirty = self.store_rests(grid, dirty)?;
        let unfiltered = self.unfiltered_mask();
        let encode = |(coord, staged, form): &(ChunkCoord, StagedChunk, ChunkForm), memory: &mut EncodeBuffers| {
            if *form != ChunkForm::Unfiltered {
                let mask = self.encode_chunk(&self.view, grid, coord, &staged.bytes, &mut memory.stored)?;
                let is_kept = match *form {
                    ChunkForm::FilteredIfShort { rows, chunk_rows } => {
                        is_short(chunk_bytes, memory.stored.len(), rows, chunk_rows)
                    }
                    _ => true,
                };
                if is_kept {
                    return Ok(mask);
                }
            }
            memory.stored.clear();
            memory.stored.extend_from_slice(&staged.bytes);
            Ok(unfiltered)
        };
        let store = |(coord, ..): &(ChunkCoord, StagedChunk, ChunkForm), mask: u32, bytes: &[u8]| {
            self.store_encoded(coord, mask, bytes)?;
            let encoded_bytes = (mask != unfiltered).then_some(bytes.len());
            self.core.note_stored_form(&self.view, grid, coord, encoded_bytes);
            self.core.stage.lock().mark_stored(coord, true);
            Ok(())
        };
        encode_pipeline::encode_and_store(&dirty, self.core.chunks_per_batch(chunk_bytes), encode, store)
    }

    /// Stores staged chunks that go through no filters here: whole ones as many at once as the store takes best.
    fn store_unfiltered(&self, staged: &[(ChunkCoord, StagedChunk)], chunk_bytes: usize) -> Result<(), DatasetError> {
        let keep = self.core.store.part_writes == PartWrites::Never;
        let (whole, parts): (Vec<_>, Vec<_>) = staged.iter().partition(|(_, staged)| staged.bytes.len() == chunk_bytes);
        for chunks in whole.chunks(self.core.chunks_per_write(chunk_bytes)) {
            let writes = chunks.iter();
            let writes =
                writes.map(|(coord, staged)| ChunkWrite::Whole { coord, filter_mask: 0, bytes: &staged.bytes });
            self.store_many(&writes.collect::<Vec<_>>())?;
            let mut stage = self.core.stage.lock();
            chunks.iter().for_each(|(coord, _)| stage.mark_stored(coord, keep));
        }
        for (coord, staged) in parts {
            self.store_part(coord, staged.offset, &staged.bytes)?;
            self.core.stage.lock().mark_stored(coord, keep);
        }
        Ok(())
    }

    /// Encodes a chunk of a dataset with filters into `stored`, and returns the mask.
    pub(crate) fn encode_chunk(
        &self,
        view: &SpecSnapshot,
        grid: &ChunkGrid,
        coord: &ChunkCoord,
        bytes: &[u8],
        stored: &mut Vec<u8>,
    ) -> Result<u32, DatasetError> {
        if view.is_unfiltered_edge(grid, coord) {
            stored.clear();
            stored.extend_from_slice(bytes);
            return Ok(0);
        }
        self.core.filters.encode_into(bytes, stored).map_err(|error| DatasetError::in_chunk(coord, error))
    }

    pub(crate) fn store_chunk(
        &self,
        view: &SpecSnapshot,
        grid: &ChunkGrid,
        coord: &ChunkCoord,
        bytes: &[u8],
    ) -> Result<(), DatasetError> {
        if self.core.filters.is_empty() {
            return self.store_encoded(coord, 0, bytes);
        }
        let mut stored = Vec::new();
        let mask = self.encode_chunk(view, grid, coord, bytes, &mut stored)?;
        self.store_encoded(coord, mask, &stored)
    }

    pub(crate) fn store_encoded(&self, coord: &ChunkCoord, mask: u32, bytes: &[u8]) -> Result<(), DatasetError> {
        self.store_many(&[ChunkWrite::Whole { coord, filter_mask: mask, bytes }])
    }

    /// Stores whole chunks by one call.
    pub(crate) fn store_many(&self, writes: &[ChunkWrite<'_>]) -> Result<(), DatasetError> {
        let Some(first) = writes.first() else { return Ok(()) };
        let written = self.core.chunks.write(&ChunkBatch { writes, ..ChunkBatch::default() });
        written.map_err(|error| DatasetError::in_chunk(first.coord(), error))?;
        self.core.count_change();
        for write in writes {
            self.cache.remove(self.core.cache_id(), write.coord());
            self.core.store.growing.forget_chunk(write.coord());
        }
        Ok(())
    }

    pub(crate) fn store_part(&self, coord: &ChunkCoord, at: usize, bytes: &[u8]) -> Result<(), DatasetError> {
        self.core.chunks.write_part(coord, at as u64, bytes).map_err(|error| DatasetError::in_chunk(coord, error))
    }
}
