//! From what is staged to the store.

use std::sync::atomic::Ordering;

use h5live_model::{ChunkBatch, ChunkWrite, Publish};

use super::core::{Core, Dims, Failure};
use crate::file::Shared;

impl Core {
    /// Stores everything staged, and tells the store the extent.
    pub(crate) fn write_out(&self, shared: &Shared) -> Result<(), Failure> {
        if !self.has_staged() {
            return Ok(());
        }
        // Nothing is appended to this dataset while those are written out whose rows were appended before.
        let writer = self.writer(&*shared.store, &shared.cache)?;
        self.write_out_earlier(shared)?;
        self.unpublished.store(0, Ordering::Release);
        writer.write_out()
    }

    /// Publishes what is staged by one batch if it is one run of rows, and says whether it was.
    pub(super) fn publish_run(&self) -> Result<bool, Failure> {
        if !self.filters.is_empty() || !self.after.lock().is_empty() {
            return Ok(false);
        }
        // Nothing is appended meanwhile.
        let _alone = self.writer.lock();
        let stage = self.stage.lock();
        let Some((coord, staged, extent)) = stage.one_run() else { return Ok(false) };
        let (coord, at, bytes, extent) = (coord.clone(), staged.at, staged.bytes.clone(), Dims::from_slice(extent));
        drop(stage);
        let batch = ChunkBatch {
            writes: &[ChunkWrite::Part { coord: &coord, at: at as u64, bytes: &bytes }],
            extent: Some(&extent),
            after: &[],
            publish: Some(Publish::Visible),
        };
        self.chunks.write(&batch).map_err(|error| Failure::in_chunk(&coord, error))?;
        self.unpublished.store(0, Ordering::Release);
        drop(bytes);
        self.stage.lock().clear();
        Ok(true)
    }

    /// Writes out the datasets whose rows are seen before those of this one, and has the store keep that order.
    pub(super) fn write_out_earlier(&self, shared: &Shared) -> Result<(), Failure> {
        for earlier in self.earlier() {
            if !earlier.is_gone() {
                earlier.write_out(shared)?;
                self.chunks.come_after(&[earlier.chunks.id()])?;
            }
        }
        Ok(())
    }

    /// As [`Core::write_out`]; what is staged for a dataset that has been deleted is forgotten.
    pub(crate) fn write_out_if_there(&self, shared: &Shared) -> Result<(), Failure> {
        self.unlist();
        if !self.has_staged() || self.is_gone() {
            return Ok(());
        }
        let written = self.write_out(shared);
        if written.is_err() {
            self.list_staged();
        }
        written
    }
}
