//! Variable-length elements that a write replaces, or that a smaller extent leaves out.

use std::collections::HashSet;

use h5live_model::{BoundSelection, ChunkCoord, ChunkGrid};

use super::writer::DatasetWriter;
use crate::dataset::error::DatasetError;
use crate::dataset::scratch::zeroed_buffer;
use crate::dataset::transfer::{ElementSource, RawSink};
use crate::dataset::write::fill_outside_extent;
use crate::superseded_blobs::{StoredBlob, blobs_in};

/// With more overwritten elements than these, the staged ones are stored, so that the room of the old ones can be used
/// again.
const MAX_SUPERSEDED: usize = 4096;

impl DatasetWriter<'_> {
    /// Overwrites the elements of a selection by new ones, and gives up the variable-length data of the old ones.
    pub(crate) fn overwrite_selection(
        &self,
        selected: &BoundSelection,
        source: &impl ElementSource,
    ) -> Result<(), DatasetError> {
        if self.core.blobs.is_untold(&self.view.spec.datatype) {
            return self.write_selection(selected, source);
        }
        let elements = usize::try_from(selected.elements()).unwrap_or(usize::MAX);
        let mut bytes = zeroed_buffer(elements.saturating_mul(self.view.size))?;
        self.reader().read(selected, RawSink { bytes: &mut bytes, size: self.view.size })?;
        let old = self.blobs_in(&bytes);
        self.write_selection(selected, source)?;
        self.give_up(old)
    }

    /// The variable-length elements in `bytes`, without those of the fill value; none if it is not known who else leads
    /// to them.
    pub(crate) fn blobs_in(&self, bytes: &[u8]) -> HashSet<StoredBlob> {
        let datatype = &self.view.spec.datatype;
        if self.core.blobs.is_untold(datatype) {
            return HashSet::new();
        }
        let mut found = blobs_in(datatype, bytes, self.store());
        if !found.is_empty() {
            let fill = blobs_in(datatype, &self.view.spec.fill_element(), self.store());
            found.retain(|blob| !fill.contains(blob));
        }
        found
    }

    /// The variable-length elements of a chunk that lie outside of an extent.
    pub(crate) fn blobs_outside(
        &self,
        grid: &ChunkGrid,
        chunk_bytes: usize,
        coord: &ChunkCoord,
        dims: &[u64],
    ) -> Result<HashSet<StoredBlob>, DatasetError> {
        if self.core.blobs.is_untold(&self.view.spec.datatype) {
            return Ok(HashSet::new());
        }
        let bytes = self.reader().read_chunk(grid, chunk_bytes, coord)?;
        let smaller = crate::dataset::spec_snapshot::SpecSnapshot { extent: dims.into(), ..self.view.clone() };
        let mut outside = self.blobs_in(&bytes);
        for kept in self.blobs_in(&fill_outside_extent(&smaller, grid, coord, &bytes)) {
            outside.remove(&kept);
        }
        Ok(outside)
    }

    /// Gives up variable-length data to which no element leads any more: as soon as the store has the elements that were
    /// written over the old ones.
    pub(crate) fn give_up(&self, old: HashSet<StoredBlob>) -> Result<(), DatasetError> {
        let superseded = {
            let mut superseded = self.core.store.superseded.lock();
            superseded.extend(old);
            superseded.len()
        };
        if superseded > MAX_SUPERSEDED && self.core.has_staged() {
            self.write_out()?;
        }
        self.remove_superseded()
    }

    /// Tells the store what [`DatasetWriter::give_up`] was told, if nothing is staged.
    pub(crate) fn remove_superseded(&self) -> Result<(), DatasetError> {
        if self.core.has_staged() {
            return Ok(());
        }
        let superseded = std::mem::take(&mut *self.core.store.superseded.lock());
        if superseded.is_empty() {
            return Ok(());
        }
        Ok(self.core.blobs.remove(self.store(), superseded)?)
    }
}
