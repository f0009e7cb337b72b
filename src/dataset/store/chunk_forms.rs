//! In which form chunks of a dataset with filters are stored, and which part of a growing one.

use h5live_model::{ChunkCoord, ChunkGrid};

use super::growing_chunks::{ChunkStoreForm, GrowingChunk, is_worth_unfiltered};
use crate::dataset::core::DatasetCore;
use crate::dataset::error::DatasetError;
use crate::dataset::spec_snapshot::SpecSnapshot;
use crate::dataset::stage::StagedChunk;

/// Finds the forms of the chunks of one dataset.
pub(crate) struct ChunkForms<'a> {
    pub(crate) core: &'a DatasetCore,
    pub(crate) view: &'a SpecSnapshot,
    pub(crate) grid: &'a ChunkGrid,
}

impl ChunkForms<'_> {
    /// The rows of a chunk that the extent has, if it is not full: along the first dimension, rows come behind each other.
    fn growing_rows(&self, extent: &[u64], coord: &ChunkCoord) -> Option<u64> {
        let (extent, max) = (extent.first()?, self.view.spec.dataspace.max_dims().first()?);
        let (start, side) =
            (coord.scaled().first()?.checked_mul(*self.grid.chunk_dims().first()?)?, self.grid.chunk_dims().first()?);
        let end = start.checked_add(*side)?.min(*max);
        (start < *extent && *extent < end).then(|| extent - start)
    }

    /// The form in which a staged chunk is stored now.
    pub(crate) fn form_of(&self, coord: &ChunkCoord, staged: &StagedChunk) -> Result<ChunkStoreForm, DatasetError> {
        if !self.core.chunks.prefers_unfiltered_until_full() || self.view.is_unfiltered_edge(self.grid, coord) {
            return Ok(ChunkStoreForm::Filtered);
        }
        let Some(rows) = self.growing_rows(&self.view.extent, coord) else { return Ok(ChunkStoreForm::Filtered) };
        let chunk_rows = self.grid.chunk_dims().first().copied().unwrap_or(1);
        let row_bytes = staged.bytes.len() / usize::try_from(chunk_rows).unwrap_or(usize::MAX);
        Ok(match self.growing_chunk(coord)? {
            None => ChunkStoreForm::FilteredIfWorth { rows, chunk_rows },
            Some(_) if staged.is_rewritten => ChunkStoreForm::Filtered,
            Some(GrowingChunk { rows: stored, encoded_bytes: None }) => {
                ChunkStoreForm::UnfilteredTail(stored.min(rows) as usize * row_bytes..rows as usize * row_bytes)
            }
            Some(GrowingChunk { rows: stored, encoded_bytes: Some(encoded) }) => {
                match is_worth_unfiltered(staged.bytes.len(), encoded, stored, rows, chunk_rows) {
                    true => ChunkStoreForm::Unfiltered,
                    false => ChunkStoreForm::Filtered,
                }
            }
        })
    }

    /// What the store has of a growing chunk; `None` if it has nothing.
    fn growing_chunk(&self, coord: &ChunkCoord) -> Result<Option<GrowingChunk>, DatasetError> {
        if let Some(known) = self.core.store.growing.get(coord) {
            return Ok(Some(known));
        }
        let Some(stored) = self.core.chunks.locate(coord)? else { return Ok(None) };
        let spec = self.core.chunks.spec()?;
        let is_unfiltered = self.core.filters.is_identity(stored.filter_mask);
        let found = GrowingChunk {
            rows: self.growing_rows(spec.dataspace.dims(), coord).unwrap_or(0),
            encoded_bytes: (!is_unfiltered).then_some(stored.size as usize),
        };
        self.core.store.growing.insert(coord.clone(), found);
        Ok(Some(found))
    }

    /// Notes in which form the store has a staged chunk now: through filters, in so many bytes, or without.
    pub(crate) fn note_stored(&self, coord: &ChunkCoord, encoded_bytes: Option<usize>) {
        match self.growing_rows(&self.view.extent, coord) {
            Some(rows) if self.core.chunks.prefers_unfiltered_until_full() => {
                self.core.store.growing.insert(coord.clone(), GrowingChunk { rows, encoded_bytes });
            }
            _ => self.core.store.growing.forget_chunk(coord),
        }
    }
}
