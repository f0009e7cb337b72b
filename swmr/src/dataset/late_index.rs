//! Waiting for an index of chunks whose extent is there already.
//!
//! libhdf5 writes the chunks of an object header from the last to the first. If the dataspace is in a later one than
//! the layout, because the first one is full, the extent comes before the address of the index that the first append
//! has made: in between the dataset seems to have never been written. So does it to who reads the first chunk of the
//! header before that append, and the other one after it. A dataset that has an extent and no index for good looks
//! alike; so it is waited for a while only, and once for each extent.

use h5live_format::messages::MessageType;
use h5live_model::ChunkCoord;

use super::{DatasetState, NativeDataset};
use crate::Result;
use crate::header::CachedHeader;

impl DatasetState {
    /// Whether a chunk has elements below the extent, and there is no index in which it could be.
    pub(super) fn lacks_index_at(&self, coord: &ChunkCoord) -> bool {
        if !self.layout.lacks_index() {
            return false;
        }
        let Some(grid) = self.spec.grid() else { return false };
        let begins = coord.scaled().iter().zip(grid.dims()).map(|(at, side)| at.saturating_mul(*side));
        begins.zip(self.spec.dataspace.dims()).all(|(begin, end)| begin < *end)
    }

    /// Whether there is no index, and the extent may be newer than what the header says of that.
    fn may_lag(&self) -> bool {
        let is_split = |header: &CachedHeader| header.may_precede(MessageType::DATASPACE, MessageType::LAYOUT);
        let has_elements = self.spec.dataspace.elements() != Some(0);
        self.layout.lacks_index() && has_elements && self.layout.header().is_some_and(is_split)
    }
}

impl NativeDataset {
    /// Waits for the index where one may be on its way, and says whether there is one now.
    ///
    /// # Errors
    /// If the header cannot be read.
    pub(super) fn has_late_index(&self) -> Result<bool> {
        if !self.session.is_follower() {
            return Ok(false);
        }
        // Who finds another one waiting waits with it.
        let mut missed = self.missed.lock();
        let dims = |state: &DatasetState| state.spec.dataspace.dims().to_vec();
        let before = self.state();
        if !before.may_lag() || *missed == dims(&before) {
            return Ok(!before.layout.lacks_index());
        }
        self.session.retry.look_for(|| {
            let is_last = !self.session.may_be_written()?;
            self.reload()?;
            Ok(is_last || !self.state().may_lag())
        })?;
        let now = self.state();
        if now.may_lag() {
            *missed = dims(&now);
        }
        Ok(!now.layout.lacks_index())
    }
}
