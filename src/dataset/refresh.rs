//! Taking up what a writer has published.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use h5live_model::DatasetSpec;

use super::Dataset;
use crate::Result;

impl Dataset {
    /// A handle for one who follows a virtual dataset. A source whose writer lets nobody read it yet has no rows so far;
    /// for others, it is an error ([`Error::is_in_use`](crate::Error::is_in_use)) as soon as the extent depends on it.
    /// Reading elements of such a source is an error for both. [`Dataset::follow`] waits for them.
    pub fn await_sources(mut self) -> Self {
        self.awaits_sources = true;
        self
    }

    /// The description as it is stored: the extent of a virtual dataset may be another one.
    pub(crate) fn stored_spec(&self) -> Result<Arc<DatasetSpec>> {
        self.with_error_path(|| Ok(self.core.chunks.spec()?))
    }

    /// Reads what the writer of a live file has published since the last refresh. Returns whether the extent has
    /// changed.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if the dataset cannot be read any more.
    pub fn refresh(&self) -> Result<bool> {
        self.with_error_path(|| {
            self.file.shared().refreshes.fetch_add(1, Ordering::Relaxed);
            // Rows that were appended are counted on from the extent that was known.
            self.core.write_out_if_exists(self.file.shared())?;
            let changed = self.core.chunks.refresh()?;
            self.core.count_change();
            self.file.shared().cache.forget_dataset(self.core.cache_id());
            let extent = || self.core.sources.as_ref().and_then(|sources| sources.extent.lock().dims().cloned());
            let before = extent();
            self.refresh_sources()?;
            self.forget_virtual_extent();
            self.resolved_snapshot()?;
            Ok(changed || extent() != before)
        })
    }
}
