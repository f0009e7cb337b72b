//! Chunks outside of an extent that became smaller: they are deleted when that extent is committed.

use std::collections::BTreeSet;

use h5live_model::{ChunkCoord, DatasetSpec, Result};

use super::HsdsDataset;

impl HsdsDataset {
    pub(super) fn is_dropped(&self, coord: &ChunkCoord) -> bool {
        self.session.state().dropped_chunks.get(&self.id).is_some_and(|dropped| dropped.contains_key(coord))
    }

    /// The chunks that lie outside of an extent.
    pub(super) fn chunks_outside(&self, spec: &DatasetSpec) -> Result<BTreeSet<ChunkCoord>> {
        let counts =
            spec.grid_or_single_chunk().map(|grid| grid.chunk_counts(spec.dataspace.dims())).unwrap_or_default();
        let is_outside = |coord: &ChunkCoord| coord.scaled().iter().zip(&counts).any(|(at, count)| at >= count);
        Ok(self.stored_coords()?.into_iter().filter(is_outside).collect())
    }

    /// Marks chunks to be deleted by the commit of the extent.
    pub(super) fn add_dropped(&self, coords: BTreeSet<ChunkCoord>) {
        if !coords.is_empty() {
            let keyed = coords.into_iter().map(|coord| (coord.clone(), self.key(&coord)));
            self.session.state.write().dropped_chunks.entry(self.id).or_default().extend(keyed);
        }
    }

    /// Takes back the mark of those chunks among `coords` that have it. A commit that is under way, and deletes them, has ended
    /// then: so this comes before they are written anew.
    pub(super) fn take_dropped(&self, coords: &[ChunkCoord]) -> BTreeSet<ChunkCoord> {
        if !self.session.state().dropped_chunks.contains_key(&self.id) {
            return BTreeSet::new();
        }
        let mut state = self.session.state.write();
        let Some(dropped) = state.dropped_chunks.get_mut(&self.id) else { return BTreeSet::new() };
        coords.iter().filter(|coord| dropped.remove(*coord).is_some()).cloned().collect()
    }
}
