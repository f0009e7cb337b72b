//! Growing chunks: chunks of a live dataset with filters that are not full yet.
//!
//! A chunk that went through filters cannot be appended to, so each flush would store all of it anew, and readers keep
//! the space of each earlier form from being used again. So from its second flush on, a growing chunk is stored without
//! filters, with all bits of its filter mask set, and rows are written behind those that it has. When it is full, it goes
//! through the filters, and is stored elsewhere. What is not full when the file is closed goes through them then.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use h5live_model::{ChunkBatch, ChunkCoord, ChunkGrid, ChunkWrite, Publish, Selection};
use parking_lot::Mutex;

use super::append_rows::StoredRows;
use super::core::DatasetCore;
use super::error::DatasetError;
use super::spec_snapshot::SpecSnapshot;
use super::staged_chunks::StagedChunk;
use super::writer::DatasetWriter;
use crate::dims::CoreDims;

/// What the store has of a growing chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct GrowingChunk {
    /// Rows.
    rows: u64,
    /// Bytes, if it went through filters; `None` if it did not.
    encoded_bytes: Option<usize>,
}

/// The growing chunks of a dataset.
#[derive(Debug, Default)]
pub(super) struct GrowingChunks(Mutex<BTreeMap<ChunkCoord, GrowingChunk>>);

/// The form in which a staged chunk of a dataset with filters is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChunkForm {
    /// Through the filters.
    Filtered,
    /// Through the filters, unless that makes it no shorter.
    FilteredIfShorter,
    /// All of it, without filters.
    Unfiltered,
    /// These bytes, which come after those that the store has without filters.
    Rest(Range<usize>),
}

impl GrowingChunks {
    /// Whether some chunk is stored without filters.
    pub(super) fn has_unfiltered(&self) -> bool {
        self.0.lock().values().any(|chunk| chunk.encoded_bytes.is_none())
    }

    /// Forgets a chunk: what the store has of it may have changed.
    pub(super) fn forget_chunk(&self, coord: &ChunkCoord) {
        let mut chunks = self.0.lock();
        if !chunks.is_empty() {
            chunks.remove(coord);
        }
    }

    pub(super) fn forget_all(&self) {
        self.0.lock().clear();
    }

    fn unfiltered(&self) -> Vec<ChunkCoord> {
        let chunks = self.0.lock();
        chunks.iter().filter(|(_, chunk)| chunk.encoded_bytes.is_none()).map(|(coord, _)| coord.clone()).collect()
    }
}

/// Whether a growing chunk of `chunk_bytes` bytes is stored without filters from now on. It is if the stored forms that
/// are still to come, until it is full, would take more bytes than it has. `encoded` are the bytes of its last stored
/// form, which had `stored` of its `rows` rows; with each flush come as many rows as now, and its stored form is longer by
/// as much.
fn is_worth_unfiltered(chunk_bytes: usize, encoded: usize, stored: u64, filled: u64, rows: u64) -> bool {
    let (stored, step) = (stored.max(1), filled.saturating_sub(stored).max(1));
    // Of these, each has one step more than the one before.
    let forms = u128::from(rows.saturating_sub(stored).saturating_sub(1) / step);
    let row_sum = u128::from(stored) * forms + u128::from(step) * forms * (forms + 1) / 2;
    (encoded as u128).saturating_mul(row_sum) / u128::from(stored) > chunk_bytes as u128
}

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
            None => ChunkForm::FilteredIfShorter,
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
        if let Some(known) = self.growing.0.lock().get(coord) {
            return Ok(Some(*known));
        }
        let Some(stored) = self.chunks.locate(coord)? else { return Ok(None) };
        let before = SpecSnapshot { extent: self.chunks.spec()?.dataspace.dims().into(), ..view.clone() };
        let is_unfiltered = self.filters.is_identity(stored.filter_mask);
        let found = GrowingChunk {
            rows: self.growing_rows(&before, grid, coord).unwrap_or(0),
            encoded_bytes: (!is_unfiltered).then_some(stored.size as usize),
        };
        self.growing.0.lock().insert(coord.clone(), found);
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
                self.growing.0.lock().insert(coord.clone(), GrowingChunk { rows, encoded_bytes });
            }
            _ => self.growing.forget_chunk(coord),
        }
    }

    /// Publishes rows that were appended to one growing chunk, by one batch. Returns whether it could: nothing else is
    /// staged. The caller holds the writer's lock.
    pub(super) fn publish_growing_chunk(&self) -> Result<bool, DatasetError> {
        if self.filters.is_empty() || !self.chunks.fills_unfiltered_chunks() {
            return Ok(false);
        }
        let (coord, staged, extent) = {
            let stage = self.staged_data.lock();
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
        let mut stage = self.staged_data.lock();
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
                    self.core.staged_data.lock().mark_stored(&coord, true);
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
        for coord in self.core.growing.unfiltered() {
            let filter = || -> Result<(), DatasetError> {
                let whole = self.reader().read_chunk(&grid, bytes, &coord)?;
                let mut stored = Vec::new();
                let mask = self.encode_chunk(&self.view, &grid, &coord, &whole, &mut stored)?;
                self.store_encoded(&coord, mask, &stored)
            };
            filter().map_err(|failure| failure.with_chunk(&coord))?;
            self.core.growing.forget_chunk(&coord);
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
                core.growing.0.lock().insert(coord, GrowingChunk { rows: 0, encoded_bytes: None });
                found += 1;
            }
        }
        self.filter_growing_chunks()?;
        Ok(found)
    }
}

/// A staged chunk, and whether elements are changed that the store has.
pub(super) fn staged_whole(bytes: Vec<u8>, is_rewritten: bool) -> StagedChunk {
    StagedChunk { offset: 0, bytes: Arc::new(bytes), is_dirty: true, is_rewritten }
}

#[cfg(test)]
mod tests {
    use super::is_worth_unfiltered;

    #[test]
    fn a_chunk_is_stored_unfiltered_if_its_filtered_forms_would_take_more() {
        // 8,000 bytes, a thousand rows of a counter that is hard to compress, one flush for each row, and for ten.
        assert!(is_worth_unfiltered(8000, 30, 1, 2, 1000));
        assert!(is_worth_unfiltered(8000, 800, 100, 200, 1000), "ten flushes in a chunk that does not get shorter");
        assert!(!is_worth_unfiltered(8000, 80, 100, 200, 1000), "ten flushes of what gets a tenth as long");
        assert!(!is_worth_unfiltered(8000, 2600, 334, 668, 1000), "one more flush will fill it");
        assert!(!is_worth_unfiltered(8000, 4000, 500, 1000, 1000));
        assert!(!is_worth_unfiltered(0, 0, 0, 0, 0));
        let _no_overflow = is_worth_unfiltered(usize::MAX, usize::MAX, u64::MAX, u64::MAX, u64::MAX);
        assert!(is_worth_unfiltered(usize::MAX, usize::MAX, 1, 2, u64::MAX));
    }
}
