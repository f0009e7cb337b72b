//! How growing chunks are written: in which form, and which part of them.

use h5live_model::{ChunkBatch, ChunkCoord, ChunkGrid, ChunkWrite, Publish, Selection};

use super::append_rows::StoredRows;
use super::growing_chunks::{ChunkForm, GrowingChunk, is_worth_unfiltered};
use super::writer::DatasetWriter;
use crate::dataset::core::DatasetCore;
use crate::dataset::error::DatasetError;
use crate::dataset::spec_snapshot::SpecSnapshot;
use crate::dataset::stage::StagedChunk;
use crate::dims::CoreDims;

impl DatasetCore {
    /// The rows of a chunk that the extent has, if it is not full: along the first dimension, rows come behind each other.
    fn growing_rows(&self, view: &SpecSnapshot, grid: &ChunkGrid, coord: &ChunkCoord) -> Option<u64> {
        let (extent, max) = (view.extent.first()?, view.spec.dataspace.max().first()?);
        let (start, side) = (coord.scaled().first()?.checked_mul(*grid.dims().first()?)?, grid.dims().first()?);
        let end = start.checked_add(*side)?.min(*max);
        (start < *extent && *extent < end).then(|| extent - start)
    }

    /// The form in which a staged chunk is stored now.
    pub(super) fn chunk_form(
        &self,
        view: &SpecSnapshot,
        grid: &ChunkGrid,
        (coord, staged): (&ChunkCoord, &StagedChunk),
    ) -> Result<ChunkForm, DatasetError> {
        if !self.chunks.fills_unfiltered_chunks() || view.is_unfiltered_edge(grid, coord) {
            return Ok(ChunkForm::Filtered);
        }
        let Some(rows) = self.growing_rows(view, grid, coord) else { return Ok(ChunkForm::Filtered) };
        let chunk_rows = grid.dims().first().copied().unwrap_or(1);
        let row_bytes = staged.bytes.len() / usize::try_from(chunk_rows).unwrap_or(usize::MAX);
        Ok(match self.growing_chunk(view, grid, coord)? {
            None => ChunkForm::FilteredIfShort { rows, chunk_rows },
            Some(_) if staged.is_rewritten => ChunkForm::Filtered,
            Some(GrowingChunk { rows: stored, encoded_bytes: None }) => {
                ChunkForm::Rest(stored.min(rows) as usize * row_bytes..rows as usize * row_bytes)
            }
            Some(GrowingChunk { rows: stored, encoded_bytes: Some(encoded) }) => {
                match is_worth_unfiltered(staged.bytes.len(), encoded, stored, rows, chunk_rows) {
                    true => ChunkForm::Unfiltered,
                    false => ChunkForm::Filtered,
                }
            }
        })
    }

    /// What the store has of a growing chunk; `None` if it has nothing.
    fn growing_chunk(
        &self,
        view: &SpecSnapshot,
        grid: &ChunkGrid,
        coord: &ChunkCoord,
    ) -> Result<Option<GrowingChunk>, DatasetError> {
        if let Some(known) = self.store.growing.get(coord) {
            return Ok(Some(known));
        }
        let Some(stored) = self.chunks.locate(coord)? else { return Ok(None) };
        let before = SpecSnapshot { extent: self.chunks.spec()?.dataspace.dims().into(), ..view.clone() };
        let is_unfiltered = self.filters.is_identity(stored.filter_mask);
        let found = GrowingChunk {
            rows: self.growing_rows(&before, grid, coord).unwrap_or(0),
            encoded_bytes: (!is_unfiltered).then_some(stored.size as usize),
        };
        self.store.growing.insert(coord.clone(), found);
        Ok(Some(found))
    }

    /// Notes in which form the store has a staged chunk now: through filters, in so many bytes, or without.
    pub(super) fn note_stored_form(
        &self,
        view: &SpecSnapshot,
        grid: &ChunkGrid,
        coord: &ChunkCoord,
        encoded_bytes: Option<usize>,
    ) {
        match self.growing_rows(view, grid, coord) {
            Some(rows) if self.chunks.fills_unfiltered_chunks() => {
                self.store.growing.insert(coord.clone(), GrowingChunk { rows, encoded_bytes });
            }
            _ => self.store.growing.forget_chunk(coord),
        }
    }

    /// Publishes rows that were appended to one growing chunk, by one batch. Returns whether it could: nothing else is
    /// staged. The caller holds the writer's lock.
    pub(crate) fn publish_growing_chunk(&self) -> Result<bool, DatasetError> {
        if self.filters.is_empty() || !self.chunks.fills_unfiltered_chunks() {
            return Ok(false);
        }
        let (coord, staged, extent) = {
            let stage = self.stage.lock();
            let mut dirty = stage.chunks.iter().filter(|(_, staged)| staged.is_dirty);
            match (dirty.next(), dirty.next(), &stage.extent) {
                (Some((coord, staged)), None, Some(extent)) if !stage.has_rows() => {
                    (coord.clone(), staged.clone(), extent.clone())
                }
                _ => return Ok(false),
            }
        };
        let view = self.spec_snapshot()?;
        let Some((grid, _)) = view.grid()? else { return Ok(false) };
        let ChunkForm::Rest(range) = self.chunk_form(&view, &grid, (&coord, &staged))? else { return Ok(false) };
        let Some(bytes) = staged.bytes.get(range.clone()) else { return Ok(false) };
        let writes = [ChunkWrite::Part { coord: &coord, at: range.start as u64, bytes, unseen: false }];
        let batch = ChunkBatch { writes: &writes, extent: Some(&extent), after: &[], publish: Some(Publish::Visible) };
        self.chunks.write(&batch).map_err(|error| DatasetError::in_chunk(&coord, error))?;
        self.note_stored_form(&view, &grid, &coord, None);
        let mut stage = self.stage.lock();
        stage.mark_stored(&coord, true);
        stage.extent = None;
        drop(stage);
        self.raise_published_end(extent.first().copied().unwrap_or(0));
        Ok(true)
    }
}

impl DatasetWriter<'_> {
    /// Stores the rest of growing chunks, and returns the others.
    pub(super) fn store_rests(
        &self,
        grid: &ChunkGrid,
        dirty: Vec<(ChunkCoord, StagedChunk)>,
    ) -> Result<Vec<(ChunkCoord, StagedChunk, ChunkForm)>, DatasetError> {
        let mut others = Vec::with_capacity(dirty.len());
        for (coord, staged) in dirty {
            match self.core.chunk_form(&self.view, grid, (&coord, &staged))? {
                ChunkForm::Rest(range) => {
                    let bytes = staged.bytes.get(range.clone()).unwrap_or_default();
                    if !bytes.is_empty() {
                        self.store_part(&coord, range.start, bytes)?;
                    }
                    self.core.note_stored_form(&self.view, grid, &coord, None);
                    self.core.stage.lock().mark_stored(&coord, true);
                }
                form => others.push((coord, staged, form)),
            }
        }
        Ok(others)
    }

    /// The mask of a chunk that goes through none of the filters.
    pub(super) fn unfiltered_mask(&self) -> u32 {
        u32::MAX.checked_shr(u32::BITS.saturating_sub(self.view.spec.filters.len() as u32)).unwrap_or(0)
    }

    /// Puts the growing chunks that are stored without filters through them. Nothing else is staged.
    pub(crate) fn filter_growing_chunks(&self) -> Result<(), DatasetError> {
        self.core.store_rows(StoredRows::All)?;
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
        let (Some(extent), Some(side)) = (view.extent.first().copied(), grid.dims().first().copied()) else {
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
