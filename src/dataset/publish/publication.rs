//! Publishing one dataset, and which of its rows were not.

use std::sync::atomic::Ordering;

use h5live_model::{ObjectId, Publish};

use super::publish_order::PublishOrder;
use crate::dataset::Dataset;
use crate::dataset::core::DatasetCore;
use crate::dataset::error::DatasetError;
use crate::error::{ErrorKind, UnpublishedRows};
use crate::{Error, Result};

impl DatasetCore {
    /// The rows of the extent that the store knows.
    pub(crate) fn stored_row_count(&self) -> std::result::Result<u64, ErrorKind> {
        Ok(self.chunks.spec()?.dataspace.dims().first().copied().unwrap_or(0))
    }

    /// Takes a dataset that nobody writes any more out of the order of publications.
    pub(crate) fn leave_publish_order(&self) {
        PublishOrder::leave(self);
    }

    /// Notes that the first `rows` rows are published.
    pub(crate) fn raise_published_end(&self, rows: u64) {
        self.published_end.fetch_max(rows, Ordering::AcqRel);
    }

    /// The rows that were appended, or are being appended, and are not published; `None` if all are, or if the dataset
    /// cannot be read any more.
    pub(crate) fn unpublished_rows(&self) -> Option<UnpublishedRows> {
        let end = *self.spec_snapshot().ok()?.extent.first()?;
        let rows = self.published_end.load(Ordering::Acquire)..end;
        (!rows.is_empty())
            .then(|| UnpublishedRows { dataset: self.path().as_deref().unwrap_or_default().to_owned(), rows })
    }
}

impl Dataset {
    /// As [`Dataset::with_error_path`]. If the store fails, the error says which rows it does not have for good.
    pub(crate) fn with_append_error<T>(
        &self,
        action: impl FnOnce() -> std::result::Result<T, DatasetError>,
    ) -> Result<T> {
        self.with_error_path(action).map_err(|error| self.with_unpublished_rows(error))
    }

    #[cold]
    fn with_unpublished_rows(&self, error: Error) -> Error {
        error.with_unpublished(|| self.core.unpublished_rows())
    }

    /// Writes out and publishes; the caller holds [`Publisher::lock_publishing`](crate::publish::Publisher::lock_publishing).
    pub(crate) fn publish(&self) -> Result<()> {
        self.with_append_error(|| {
            if self.core.publish_rows()? {
                return Ok(());
            }
            self.core.write_out(self.file.shared())?;
            self.core.chunks.publish(Publish::Visible)?;
            self.core.raise_published_end(self.core.stored_row_count()?);
            Ok(())
        })
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
        match PublishOrder::put_before(&earlier.core, &self.core) {
            true => Ok(()),
            false => {
                Err(self.file.error(Some(&self.path), ErrorKind::PublishOrder("it is itself published after this one")))
            }
        }
    }

    /// Orders publications: elements that are written out from now on are seen after those of another dataset that were
    /// written out before.
    pub(crate) fn order_commit_after(&self, earlier: ObjectId) -> Result<()> {
        self.with_error_path(|| Ok(self.core.chunks.come_after(&[earlier])?))
    }

    /// Counts appended rows, and flushes when they are as many as the options say.
    pub(crate) fn count_rows(&self, values: u64) -> Result<()> {
        let Some(max_rows) = self.file.shared().options.publish_rows else { return Ok(()) };
        let rows = values / self.elements_per_row()?.max(1);
        if self.core.rows_since_write_out.fetch_add(rows, Ordering::AcqRel).saturating_add(rows) < max_rows {
            return Ok(());
        }
        self.flush()
    }

    /// Elements of a row: of one step along the dimension along which the dataset grows.
    fn elements_per_row(&self) -> Result<u64> {
        self.with_error_path(|| {
            let writer = self.writer()?;
            Ok(writer.elements_per_row()?)
        })
    }
}
