//! The writer of a dataset: how chunks and the extent get to the store.

use h5live_model::{ChunkBatch, ChunkCoord, ChunkGrid, ChunkWrite, Selection, Store};
use parking_lot::MutexGuard;

use super::chunk_forms::ChunkForms;
use super::encode_pipeline::{self, EncodeBuffers};
use super::growing_chunks::{ChunkStoreForm, GrowingChunk, is_worth_filtering};
use super::part_writes::PartWrites;
use super::stored_rows::{RowsToStore, store_rows};
use crate::dataset::core::DatasetCore;
use crate::dataset::error::DatasetError;
use crate::dataset::read::{ChunkCache, DatasetReader};
use crate::dataset::spec_snapshot::SpecSnapshot;
use crate::dataset::stage::{StagedChunk, StagedData};
use crate::dims::CoreDims;

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

impl<'a> DatasetWriter<'a> {
    /// Waits until nobody else changes the dataset.
    pub(crate) fn begin(
        core: &'a DatasetCore,
        store: &'a dyn Store,
        cache: &'a ChunkCache,
    ) -> Result<Self, DatasetError> {
        let alone = core.stage.lock_writer();
        let view = core.spec_snapshot()?;
        core.check_allocation(view.size)?;
        Ok(DatasetWriter { core, store, cache, view, _alone: alone })
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
        store_rows(self.core, RowsToStore::All)?;
        let mut stage = self.core.stage.lock();
        chunks.iter().for_each(|chunk| drop(stage.chunks.take_chunk(chunk.first_coord())));
        drop(stage);
        self.store_many(chunks)
    }

    /// Stores everything staged, and tells the store the extent.
    pub(crate) fn store_staged(&self) -> Result<(), DatasetError> {
        if store_rows(self.core, RowsToStore::AllWithExtent(None))?.is_some() {
            return Ok(());
        }
        let grid = self.view.grid()?;
        if let Some((grid, bytes)) = &grid {
            self.store_staged_chunks(grid, *bytes, |_| true)?;
        }
        let extent = {
            let mut stage = self.core.stage.lock();
            if let Some((grid, _)) = &grid {
                self.drop_stored_chunks(&mut stage, grid);
            }
            stage.extent.clone()
        };
        if let Some(extent) = extent {
            self.core.chunks.set_extent(&extent)?;
            self.core.stage.lock().extent = None;
        }
        Ok(())
    }

    /// Stores all staged chunks, and no longer stages them.
    pub(crate) fn store_all_chunks(&self, grid: &ChunkGrid, chunk_bytes: usize) -> Result<(), DatasetError> {
        self.store_staged_chunks(grid, chunk_bytes, |_| true)?;
        self.drop_stored_chunks(&mut self.core.stage.lock(), grid);
        Ok(())
    }

    /// No longer stages chunks that the store has, all of them. The chunk of the next rows is kept, so that it need not
    /// be decoded again.
    fn drop_stored_chunks(&self, stage: &mut StagedData, grid: &ChunkGrid) {
        let max_bytes = self.core.stage.allowed_bytes() / 2;
        stage.drop_stored_chunks(|coord| grid.chunk_exceeds_extent(coord, &self.view.extent), max_bytes);
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
        let forms = ChunkForms { core: self.core, view: &self.view, grid };
        let encode = |(coord, staged, form): &(ChunkCoord, StagedChunk, ChunkStoreForm), memory: &mut EncodeBuffers| {
            if *form != ChunkStoreForm::Unfiltered {
                let mask = self.encode_chunk(&self.view, grid, coord, &staged.bytes, &mut memory.stored)?;
                let is_kept = match *form {
                    ChunkStoreForm::FilteredIfWorth { rows, chunk_rows } => {
                        is_worth_filtering(chunk_bytes, memory.stored.len(), rows, chunk_rows)
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
        let store = |(coord, ..): &(ChunkCoord, StagedChunk, ChunkStoreForm), mask: u32, bytes: &[u8]| {
            self.store_encoded(coord, mask, bytes)?;
            let encoded_bytes = (mask != unfiltered).then_some(bytes.len());
            forms.note_stored(coord, encoded_bytes);
            self.core.stage.lock().mark_stored(coord, true);
            Ok(())
        };
        encode_pipeline::encode_and_store(&dirty, self.core.chunks_per_batch(chunk_bytes), encode, store)
    }

    /// Stores the rest of growing chunks, and returns the others.
    fn store_rests(
        &self,
        grid: &ChunkGrid,
        dirty: Vec<(ChunkCoord, StagedChunk)>,
    ) -> Result<Vec<(ChunkCoord, StagedChunk, ChunkStoreForm)>, DatasetError> {
        let forms = ChunkForms { core: self.core, view: &self.view, grid };
        let mut others = Vec::with_capacity(dirty.len());
        for (coord, staged) in dirty {
            match forms.form_of(&coord, &staged)? {
                ChunkStoreForm::UnfilteredTail(range) => {
                    let bytes = staged.bytes.get(range.clone()).unwrap_or_default();
                    if !bytes.is_empty() {
                        self.store_part(&coord, range.start, bytes)?;
                    }
                    forms.note_stored(&coord, None);
                    self.core.stage.lock().mark_stored(&coord, true);
                }
                form => others.push((coord, staged, form)),
            }
        }
        Ok(others)
    }

    /// The mask of a chunk that goes through none of the filters.
    fn unfiltered_mask(&self) -> u32 {
        u32::MAX.checked_shr(u32::BITS.saturating_sub(self.view.spec.filters.len() as u32)).unwrap_or(0)
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
        written.map_err(|error| DatasetError::in_chunk(first.first_coord(), error))?;
        self.core.count_change();
        for write in writes {
            self.cache.remove(self.core.cache_id(), write.first_coord());
            self.core.store.growing.forget_chunk(write.first_coord());
        }
        Ok(())
    }

    pub(crate) fn store_part(&self, coord: &ChunkCoord, at: usize, bytes: &[u8]) -> Result<(), DatasetError> {
        self.core.chunks.write_byte_range(coord, at as u64, bytes).map_err(|error| DatasetError::in_chunk(coord, error))
    }

    /// Puts the growing chunks that are stored without filters through them. Nothing else is staged.
    pub(crate) fn filter_growing_chunks(&self) -> Result<(), DatasetError> {
        store_rows(self.core, RowsToStore::All)?;
        let Some((grid, bytes)) = self.view.grid()? else { return Ok(()) };
        for coord in self.core.store.growing.unfiltered() {
            let filter = || -> Result<(), DatasetError> {
                let whole = self.reader().read_chunk(&grid, bytes, &coord)?;
                let mut stored = Vec::new();
                let mask = self.encode_chunk(&self.view, &grid, &coord, &whole, &mut stored)?;
                self.store_encoded(&coord, mask, &stored)
            };
            filter().map_err(|failure| failure.with_chunk(&coord))?;
            self.core.store.growing.forget_chunk(&coord);
        }
        Ok(())
    }

    /// Finds the growing chunks that a session has left without filters, and puts them through them. Returns their
    /// number.
    pub(crate) fn filter_leftover_chunks(&self) -> Result<usize, DatasetError> {
        let (core, view) = (self.core, &self.view);
        let Some((grid, _)) = view.grid()?.filter(|_| !core.filters.is_empty()) else { return Ok(0) };
        let (Some(extent), Some(side)) = (view.extent.first().copied(), grid.chunk_dims().first().copied()) else {
            return Ok(0);
        };
        // The rows of the last chunks, if those are not full.
        let (mut start, mut count) = (CoreDims::from_elem(0, view.extent.len()), view.extent.clone());
        (start[0], count[0]) = (extent - extent % side, extent % side);
        let rows = Selection::block(&start, &count).bind(&view.extent)?;
        let mut found = 0;
        for coord in rows.split_by_chunks(&grid).chunks() {
            let stored = core.chunks.locate(&coord)?;
            let is_left = stored.is_some_and(|stored| core.filters.is_identity(stored.filter_mask));
            if is_left && !view.is_unfiltered_edge(&grid, &coord) {
                core.store.growing.insert(coord, GrowingChunk { rows: 0, encoded_bytes: None });
                found += 1;
            }
        }
        self.filter_growing_chunks()?;
        Ok(found)
    }
}
