//! What a dataset offers to those who publish it. Each flush of one dataset begins here.

use std::sync::Arc;

use h5live_model::{ObjectId, ObjectScope, PublishLevel};

use super::publish_order::PublishOrder;
use crate::dataset::Dataset;
use crate::error::ErrorKind;
use crate::{File, Result};

impl Dataset {
    /// Writes the elements that were appended and written to this dataset, and makes them visible to other processes:
    /// elements first, then the structures that lead to them, then the extent. Everything that was flushed of datasets
    /// that this one is [published after](Dataset::publish_after) comes before it.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) or [`ErrorKind::Filter`](crate::ErrorKind::Filter) if a write
    /// fails; what was flushed before stays readable.
    pub fn flush(&self) -> Result<()> {
        let shared = self.file().shared();
        self.flush_sources(File::flush)?;
        shared.publisher.take_deferred_error()?;
        let _only = shared.publisher.lock_publishing();
        self.publish()?;
        shared.count_publication()
    }

    /// As [`Dataset::flush`], and returns when all of it will outlast a power failure, as [`File::flush_durable`] does
    /// for everything. A new dataset is found after a power failure once its group is durable: after the file was.
    ///
    /// # Errors
    /// As [`Dataset::flush`].
    pub fn flush_durable(&self) -> Result<()> {
        self.flush_sources(File::flush_durable)?;
        self.flush()?;
        let shared = self.file().shared();
        let sync = || shared.commit(ObjectScope::Objects(&[self.id()]), PublishLevel::Durable);
        shared.publisher.syncs.run_shared(sync)
    }

    /// Orders publications: rows of this dataset are seen only after everything that was appended to `earlier` before
    /// them. Use it for time stamps, for example, after the frames to which they belong. The order holds as long as the
    /// file is open, at each moment, and after the death of this process.
    ///
    /// A reader that follows both looks at this dataset first ([`Dataset::refresh`], or a batch of
    /// [`Dataset::follow`]), and then at `earlier`. Then `earlier` has all rows that belong to it, and maybe more.
    ///
    /// ```
    /// # let file = h5live::File::in_memory();
    /// let frames = file.new_dataset::<u16>().unlimited_rows(&[2, 2]).create("frames")?;
    /// let times = file.new_dataset::<f64>().unlimited_rows(&[]).create("times")?;
    /// times.publish_after(&frames)?;
    /// frames.append(&[1u16, 2, 3, 4])?;
    /// times.append(&[0.1])?;
    /// times.flush()?; // the frame is there now, too
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidPublishOrder`](crate::ErrorKind::InvalidPublishOrder) if `earlier` is itself published after this dataset,
    /// or is of another file.
    pub fn publish_after(&self, earlier: &Dataset) -> Result<()> {
        if !Arc::ptr_eq(self.file().shared(), earlier.file().shared()) {
            return Err(self
                .file()
                .error(Some(self.path()), ErrorKind::InvalidPublishOrder("they are in different files")));
        }
        self.add_earlier_dataset(earlier)
    }

    /// Writes out and publishes; the caller holds [`Publisher::lock_publishing`](crate::publish::Publisher::lock_publishing).
    pub(crate) fn publish(&self) -> Result<()> {
        self.with_append_error(|| self.core.publish_staged(self.file.shared()))
    }

    /// Puts the chunks through the filters that a session has left without, because they were not full. Returns their
    /// number.
    pub(crate) fn filter_leftover_chunks(&self) -> Result<usize> {
        self.with_error_path(|| self.writer()?.filter_leftover_chunks())
    }

    /// Hands staged elements to the store.
    pub(crate) fn write_out(&self) -> Result<()> {
        self.with_error_path(|| self.core.write_out(self.file.shared()))
    }

    pub(crate) fn add_earlier_dataset(&self, earlier: &Dataset) -> Result<()> {
        match PublishOrder::try_put_before(&earlier.core, &self.core) {
            true => Ok(()),
            false => Err(self
                .file
                .error(Some(&self.path), ErrorKind::InvalidPublishOrder("it is itself published after this one"))),
        }
    }

    /// Orders publications: elements that are written out from now on are seen after those of another dataset that were
    /// written out before.
    pub(crate) fn order_commit_after(&self, earlier: ObjectId) -> Result<()> {
        self.with_error_path(|| Ok(self.core.chunks.add_publish_dependencies(&[earlier])?))
    }
}
