//! Variable-length elements that a write replaces, or that a smaller extent leaves out.

use std::collections::HashSet;

use super::writer::DatasetWriter;
use crate::dataset::error::DatasetError;
use crate::superseded_blobs::{StoredBlob, blobs_in};

/// With more overwritten elements than these, the staged ones are stored, so that the room of the old ones can be used
/// again.
const MAX_SUPERSEDED: usize = 4096;

impl DatasetWriter<'_> {
    /// The variable-length elements in `bytes`, without those of the fill value; none if it is not known who else leads
    /// to them.
    pub(crate) fn blobs_in(&self, bytes: &[u8]) -> HashSet<StoredBlob> {
        let datatype = &self.view.spec.datatype;
        if self.core.blobs.cannot_reclaim(datatype) {
            return HashSet::new();
        }
        let mut found = blobs_in(datatype, bytes, self.store());
        if !found.is_empty() {
            let fill = blobs_in(datatype, &self.view.spec.fill_value_or_zeros(), self.store());
            found.retain(|blob| !fill.contains(blob));
        }
        found
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
            self.store_staged()?;
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
