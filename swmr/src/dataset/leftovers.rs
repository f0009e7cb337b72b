//! What a writer that died has left beyond the extent: it was never published, and must not be seen when another writer
//! extends the dataset.

use h5live_cache::Owner;
use h5live_format::{Addr, ElementFormat};
use h5live_model::{ChunkCoord, StoredChunk};

use super::NativeDataset;
use super::State;
use super::place::Place;
use crate::Result;

impl NativeDataset {
    /// Drops chunks beyond the extent, also those that the index does not count; what lies beyond it in other chunks
    /// becomes fill values, unless filters have gone over it.
    ///
    /// # Errors
    /// If the index or a chunk cannot be read.
    pub(crate) fn drop_left(&self) -> Result<()> {
        let state = self.state();
        let (Some(grid), Place::Chunked(..)) = (state.spec.grid(), &*state.place) else { return Ok(()) };
        let dims = state.spec.dataspace.dims();
        let (mut outside, mut edges) = (Vec::new(), Vec::new());
        state.place.for_each_left(dims.len(), &mut |coord, element| {
            let starts = coord.scaled().iter().zip(grid.dims()).map(|(at, size)| (at.saturating_mul(*size), *size));
            let mut sides = starts.zip(dims);
            if sides.clone().any(|((start, _), end)| start >= *end) {
                outside.push(self.stored(&state, &coord, element));
            } else if sides.any(|((start, size), end)| start.saturating_add(size) > *end) {
                edges.push(self.stored(&state, &coord, element));
            }
            true
        })?;
        let (cache, owner) = (&self.session.cache, Owner::new(self.addr));
        let is_plain = !matches!(state.place.format(), Some(ElementFormat::Filtered(_)));
        for chunk in outside {
            let _operation = cache.operation();
            if state.place.remove_left(&chunk.coord)? {
                let offset = chunk.offset.map_or(Addr::UNDEFINED, Addr::new);
                cache.discard_raw(offset);
                cache.space().free_raw_of(owner, offset, chunk.size);
            } else if is_plain {
                self.empty(&state, &chunk, grid.dims(), &[])?;
            }
        }
        if is_plain {
            edges.iter().try_for_each(|chunk| self.empty(&state, chunk, grid.dims(), dims))?;
        }
        Ok(())
    }

    /// Makes fill values of the elements of a chunk of these sides that lie outside of `extent`; of all, if that is empty.
    fn empty(&self, state: &State, chunk: &StoredChunk, sides: &[u64], extent: &[u64]) -> Result<()> {
        let Some(offset) = chunk.offset.map(Addr::new) else { return Ok(()) };
        let (cache, fill) = (&self.session.cache, state.spec.fill_element());
        let mut bytes = vec![0; usize::try_from(chunk.size).unwrap_or(0)];
        cache.read_raw_padded(offset, 0, &mut bytes)?;
        let mut changed = false;
        for (number, element) in (0..).zip(bytes.chunks_exact_mut(fill.len().max(1))) {
            if is_within(&chunk.coord, sides, number, extent) || element == fill {
                continue;
            }
            element.copy_from_slice(&fill);
            changed = true;
        }
        if changed {
            let proxy = cache.write_raw(Owner::new(self.addr), offset, 0, bytes);
            state.place.depend(&proxy)?;
        }
        Ok(())
    }
}

/// Whether element `number` of a chunk, in row-major order, lies in an extent.
fn is_within(coord: &ChunkCoord, sides: &[u64], number: u64, extent: &[u64]) -> bool {
    let mut rest = number;
    let dims = coord.scaled().iter().zip(sides).zip(extent).rev();
    !extent.is_empty()
        && dims.fold(true, |is_within, ((at, side), end)| {
            let within = rest.checked_rem(*side).unwrap_or(0);
            rest = rest.checked_div(*side).unwrap_or(0);
            is_within && at.saturating_mul(*side).saturating_add(within) < *end
        })
}
