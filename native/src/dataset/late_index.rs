//! Waiting for a chunk index that libhdf5 writes after the extent.
//!
//! libhdf5 writes the chunks of an object header from the last to the first. If the first chunk is full, the dataspace
//! may be in a later chunk than the layout. Then the first append writes the extent before the address of the index.
//! Between the two writes, the dataset looks like one that was never written. It looks the same to a reader that reads
//! the first chunk of the header before that append, and the other chunk after it. A dataset may also have an extent
//! and no index for good, so a reader waits for a limited time only, and once for each extent.

use h5live_format::messages::MessageType;
use h5live_model::ChunkCoord;

use super::NativeDataset;
use super::state::DatasetState;
use crate::Error;
use crate::Result;
use crate::header::CachedHeader;

impl DatasetState {
    /// Whether a chunk has elements below the extent, and there is no index in which it could be.
    pub(super) fn lacks_index_at(&self, coord: &ChunkCoord) -> bool {
        if !self.layout.lacks_chunk_index_yet() {
            return false;
        }
        let Some(grid) = self.spec.grid_or_single_chunk() else { return false };
        let begins = coord.scaled().iter().zip(grid.chunk_dims()).map(|(at, side)| at.saturating_mul(*side));
        begins.zip(self.spec.dataspace.dims()).all(|(begin, end)| begin < *end)
    }

    /// Whether there is no index, and the extent may be newer than what the header says of that.
    fn may_lack_published_index(&self) -> bool {
        let is_split =
            |header: &CachedHeader| header.may_be_written_before(MessageType::DATASPACE, MessageType::LAYOUT);
        let has_elements = self.spec.dataspace.element_count() != Some(0);
        self.layout.lacks_chunk_index_yet() && has_elements && self.layout.header().is_some_and(is_split)
    }
}

impl NativeDataset {
    /// Waits for the index where one may be on its way, and says whether there is one now.
    ///
    /// # Errors
    /// If the header cannot be read.
    pub(super) fn wait_for_late_index(&self) -> Result<bool> {
        if !self.session.is_follower() {
            return Ok(false);
        }
        // A thread that finds another one waiting waits with it.
        let mut missed = self.shared.missed_chunks.lock();
        let dims = |state: &DatasetState| state.spec.dataspace.dims().to_vec();
        let before = self.state();
        if !before.may_lack_published_index() || *missed == dims(&before) {
            return Ok(!before.layout.lacks_chunk_index_yet());
        }
        self.session.retry.poll_briefly(|| {
            let is_last = !self.session.may_have_live_writer()?;
            self.reload_header()?;
            Ok::<_, Error>(is_last || !self.state().may_lack_published_index())
        })?;
        let now = self.state();
        if now.may_lack_published_index() {
            *missed = dims(&now);
        }
        Ok(!now.layout.lacks_chunk_index_yet())
    }
}
