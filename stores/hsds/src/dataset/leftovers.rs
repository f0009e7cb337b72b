//! What a writer that died has left beyond the extent of a dataset: chunks there, and elements in chunks at its edge.
//!
//! Nobody sees them before the dataset grows. Where a batch makes it grow and does not write, they are cleared first, once
//! in a session. A dataset that the session has made has none. A chunk that the session has written is as it was written.

use std::collections::BTreeSet;
use std::sync::Arc;

use h5live_model::{ChunkCoord, ChunkWrite, DatasetSpec, Error as ModelError, Result};
use parking_lot::Mutex;

use super::HsdsDataset;
use crate::engine::ObjectEngine;

/// Chunks at an edge that are read in one wave.
const CHUNKS_AT_ONCE: usize = 64;

/// Whether a chunk lies at least in part outside of the extent.
fn reaches_beyond(spec: &DatasetSpec, coord: &ChunkCoord) -> bool {
    spec.grid_or_single_chunk().is_some_and(|grid| grid.chunk_exceeds_extent(coord, spec.dataspace.dims()))
}

/// Makes the elements of a chunk that lie outside of the extent fill values, and says whether some were others.
fn fill_beyond(spec: &DatasetSpec, coord: &ChunkCoord, elements: &mut [u8]) -> bool {
    let Some(grid) = spec.grid_or_single_chunk() else { return false };
    let (start, extent, size) = (grid.start_of(coord), spec.dataspace.dims(), spec.datatype.size() as usize);
    // How many elements of each dimension lie inside.
    let inside: Vec<usize> = (start.iter().zip(extent).zip(grid.chunk_dims()))
        .map(|((start, end), whole)| end.saturating_sub(*start).min(*whole) as usize)
        .collect();
    let (Some(row), Some(row_inside)) = (grid.chunk_dims().last(), inside.last()) else { return false };
    let row_bytes = *row as usize * size;
    let (fill, mut has_changed) = (spec.repeated_fill_value(row_bytes), false);
    for (mut number, elements) in elements.chunks_mut(row_bytes.max(1)).enumerate() {
        let mut is_inside = true;
        for (dim, inside) in grid.chunk_dims().iter().zip(&inside).rev().skip(1) {
            is_inside &= number % (*dim as usize) < *inside;
            number /= *dim as usize;
        }
        let kept = if is_inside { row_inside * size } else { 0 };
        if let (Some(outside), Some(fill)) = (elements.get_mut(kept..), fill.get(kept..))
            && outside.len() == fill.len()
            && outside != fill
        {
            outside.copy_from_slice(fill);
            has_changed = true;
        }
    }
    has_changed
}

impl HsdsDataset {
    /// Whether there may be something beyond the extent that this session has not written.
    fn may_have_leftovers(&self) -> bool {
        self.session.session_info.mode.writes() && !self.session.state().datasets_without_leftovers.contains(&self.id)
    }

    fn is_written_beyond(&self, coord: &ChunkCoord) -> bool {
        let state = self.session.state();
        state.written_beyond_extent.get(&self.id).is_some_and(|written| written.contains(coord))
    }

    /// Notes chunks that were written: what they have outside of the extent is of this session.
    pub(super) fn note_written_beyond<'a>(&self, coords: impl Iterator<Item = &'a ChunkCoord>) {
        if self.may_have_leftovers() {
            let spec = self.seen.read().clone();
            let beyond = coords.filter(|coord| reaches_beyond(&spec, coord)).cloned();
            self.session.state.write().written_beyond_extent.entry(self.id).or_default().extend(beyond);
        }
    }

    /// Forgets chunks that lie within the extent now.
    pub(super) fn forget_written_within(&self, spec: &DatasetSpec) {
        if let Some(written) = self.session.state.write().written_beyond_extent.get_mut(&self.id) {
            written.retain(|coord| reaches_beyond(spec, coord));
        }
    }

    /// Clears what others have left beyond the extent, before it grows to where these writes do not reach.
    ///
    /// # Errors
    /// Those of the engine.
    pub(super) fn clear_leftovers(&self, grown: &DatasetSpec, writes: &[ChunkWrite<'_>]) -> Result<()> {
        let spec = self.seen.read().clone();
        if !self.may_have_leftovers() || self.writes_all_growth(&spec, grown, writes) {
            return Ok(());
        }
        let counts =
            spec.grid_or_single_chunk().map(|grid| grid.chunk_counts(spec.dataspace.dims())).unwrap_or_default();
        let is_outside = |coord: &ChunkCoord| coord.scaled().iter().zip(&counts).any(|(at, count)| at >= count);
        // A chunk of an extent that became smaller goes when that is committed.
        let is_foreign = |coord: &ChunkCoord| !self.is_written_beyond(coord) && !self.is_dropped(coord);
        let stored = self.stored_coords()?.into_iter().filter(is_foreign);
        let (outside, inside): (Vec<ChunkCoord>, Vec<_>) = stored.partition(is_outside);
        if !outside.is_empty() {
            let keys: Vec<String> = outside.iter().map(|coord| self.key(coord)).collect();
            self.session.engine.delete_many(&keys)?;
        }
        let edges: Vec<ChunkCoord> = inside.into_iter().filter(|coord| reaches_beyond(&spec, coord)).collect();
        edges.chunks(CHUNKS_AT_ONCE).try_for_each(|coords| self.clear_edges(&spec, coords))?;
        let mut state = self.session.state.write();
        state.datasets_without_leftovers.insert(self.id);
        state.written_beyond_extent.remove(&self.id);
        Ok(())
    }

    fn clear_edges(&self, spec: &DatasetSpec, coords: &[ChunkCoord]) -> Result<()> {
        let keys: Vec<String> = coords.iter().map(|coord| self.key(coord)).collect();
        let seen: Vec<u32> = coords.iter().map(|coord| self.version(coord)).collect();
        let cleared = Mutex::new(Vec::new());
        self.session.engine.get_many(&keys, &|place, found| {
            if let (Some(coord), Some(found)) = (coords.get(place), found) {
                let mut elements = match self.decode(coord, seen.get(place).copied().unwrap_or_default(), &found)? {
                    Some(elements) => elements,
                    None => Arc::unwrap_or_clone(self.fetch(coord)?.ok_or(ModelError::Moved)?),
                };
                if fill_beyond(spec, coord, &mut elements) {
                    cleared.lock().push((coord.clone(), elements));
                }
            }
            Ok(())
        })?;
        let cleared = cleared.into_inner();
        let write = |(coord, bytes)| ChunkWrite::Whole { coord, filter_mask: 0, bytes };
        let writes: Vec<ChunkWrite<'_>> =
            cleared.iter().map(|(coord, bytes)| write((coord, bytes.as_slice()))).collect();
        if writes.is_empty() { Ok(()) } else { self.put_chunks(&writes) }
    }

    /// Whether chunks are written wherever the extent grows, by these writes or earlier ones of this session.
    fn writes_all_growth(&self, old: &DatasetSpec, new: &DatasetSpec, writes: &[ChunkWrite<'_>]) -> bool {
        let (Some(grid), old, new) = (old.grid_or_single_chunk(), old.dataspace.dims(), new.dataspace.dims()) else {
            return true;
        };
        if old.iter().zip(new).all(|(old, new)| new <= old) {
            return true;
        }
        let state = self.session.state();
        let earlier = state.written_beyond_extent.get(&self.id).into_iter().flatten().cloned();
        let written: BTreeSet<ChunkCoord> =
            self.chunks_of(writes).into_iter().map(|(coord, _)| coord).chain(earlier).collect();
        let counts = grid.chunk_counts(new);
        let grows = |(axis, at): (usize, &u64)| {
            let (Some(old), Some(new), Some(dim)) = (old.get(axis), new.get(axis), grid.chunk_dims().get(axis)) else {
                return false;
            };
            new > old && at.saturating_add(1).saturating_mul(*dim) > *old
        };
        let is_grown = |coord: &&ChunkCoord| {
            let is_inside = coord.scaled().iter().zip(&counts).all(|(at, count)| at < count);
            is_inside && coord.scaled().iter().enumerate().any(grows)
        };
        // Chunks of the new extent, without those that lie wholly in the old one.
        let product =
            |counts: &mut dyn Iterator<Item = u64>| counts.fold(1u128, |all, count| all.saturating_mul(count.into()));
        let whole =
            old.iter().zip(new).zip(grid.chunk_dims()).zip(&counts).map(|(((old, new), dim), count)| match new > old {
                true => old / dim,
                false => *count,
            });
        let grown = product(&mut counts.iter().copied()) - product(&mut whole.into_iter());
        written.iter().filter(is_grown).count() as u128 >= grown
    }
}
