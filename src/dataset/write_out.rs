//! Handing staged elements to the store.

use std::sync::atomic::Ordering;

use h5live_model::Publish;

use super::append_rows::StoredRows;
use super::core::DatasetCore;
use super::error::DatasetError;
use crate::file_shared::FileShared;

impl DatasetCore {
    /// Stores everything staged, and tells the store the extent.
    pub(crate) fn write_out(&self, shared: &FileShared) -> Result<(), DatasetError> {
        if !self.has_staged() {
            return Ok(());
        }
        // Nothing is appended to this dataset while those are written out whose rows were appended before.
        let writer = self.writer(&*shared.store, &shared.cache)?;
        self.write_out_earlier(shared)?;
        self.rows_since_write_out.store(0, Ordering::Release);
        writer.write_out()?;
        writer.remove_superseded()?;
        shared.keep_stored_rows(self.chunks.id(), self.stored_row_count()?);
        Ok(())
    }

    /// Publishes the staged rows by one batch. Returns whether it could: only appended rows are staged, and no other
    /// dataset must be published before them.
    pub(super) fn publish_rows(&self) -> Result<bool, DatasetError> {
        // Nothing is appended meanwhile.
        let _alone = self.writer_lock.lock();
        if !self.published_after.lock().is_empty() {
            return Ok(false);
        }
        let is_done =
            self.store_rows(StoredRows::AllWithExtent(Some(Publish::Visible)))? || self.publish_growing_chunk()?;
        if is_done {
            self.rows_since_write_out.store(0, Ordering::Release);
        }
        Ok(is_done)
    }

    /// Writes out the datasets whose rows are seen before those of this one, and makes the store keep that order.
    pub(super) fn write_out_earlier(&self, shared: &FileShared) -> Result<(), DatasetError> {
        for earlier in self.earlier_datasets() {
            if !earlier.is_deleted() {
                earlier.unless_deleted(earlier.write_out(shared))?;
                earlier.unless_deleted(self.chunks.come_after(&[earlier.chunks.id()]))?;
            }
        }
        Ok(())
    }

    /// As [`DatasetCore::write_out`]. Drops the staged elements of a deleted dataset.
    pub(crate) fn write_out_if_exists(&self, shared: &FileShared) -> Result<(), DatasetError> {
        self.unregister_staged();
        if !self.has_staged() || self.is_deleted() {
            return Ok(());
        }
        let written = self.unless_deleted(self.write_out(shared));
        if written.is_err() {
            self.register_staged();
        }
        written
    }
}
