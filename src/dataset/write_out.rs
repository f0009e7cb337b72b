//! Handing staged elements to the store.

use std::sync::atomic::Ordering;

use h5live_model::{ChunkBatch, ChunkWrite, Publish};

use super::core::{CoreDims, DatasetCore, DatasetError};
use crate::file::FileShared;

impl DatasetCore {
    /// Stores everything staged, and tells the store the extent.
    pub(crate) fn write_out(&self, shared: &FileShared) -> Result<(), DatasetError> {
        if !self.has_staged() {
            return Ok(());
        }
        // Nothing is appended to this dataset while those are written out whose rows were appended before.
        let writer = self.writer(&*shared.store, &shared.cache)?;
        self.write_out_earlier(shared)?;
        self.unpublished.store(0, Ordering::Release);
        writer.write_out()
    }

    /// Publishes the staged elements by one batch, if they are one run of rows. Returns whether they were.
    pub(super) fn publish_run(&self) -> Result<bool, DatasetError> {
        if !self.filters.is_empty() || !self.published_after.lock().is_empty() {
            return Ok(false);
        }
        // Nothing is appended meanwhile.
        let _alone = self.writer.lock();
        let stage = self.stage.lock();
        let Some((coord, staged, extent)) = stage.single_run() else { return Ok(false) };
        let (coord, at, bytes, extent) = (coord.clone(), staged.at, staged.bytes.clone(), CoreDims::from_slice(extent));
        drop(stage);
        let batch = ChunkBatch {
            writes: &[ChunkWrite::Part { coord: &coord, at: at as u64, bytes: &bytes }],
            extent: Some(&extent),
            after: &[],
            publish: Some(Publish::Visible),
        };
        self.chunks.write(&batch).map_err(|error| DatasetError::in_chunk(&coord, error))?;
        self.unpublished.store(0, Ordering::Release);
        drop(bytes);
        self.stage.lock().clear();
        Ok(true)
    }

    /// Writes out the datasets whose rows are seen before those of this one, and has the store keep that order.
    pub(super) fn write_out_earlier(&self, shared: &FileShared) -> Result<(), DatasetError> {
        for earlier in self.earlier() {
            if !earlier.is_deleted() {
                earlier.write_out(shared)?;
                self.chunks.come_after(&[earlier.chunks.id()])?;
            }
        }
        Ok(())
    }

    /// As [`DatasetCore::write_out`]. Drops the staged elements of a deleted dataset.
    pub(crate) fn write_out_if_exists(&self, shared: &FileShared) -> Result<(), DatasetError> {
        self.unlist_staged();
        if !self.has_staged() || self.is_deleted() {
            return Ok(());
        }
        let written = self.write_out(shared);
        if written.is_err() {
            self.list_staged();
        }
        written
    }
}
