//! Files: sessions on a store.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5live_model::{
    Datatype, FileSpaceSettings, ObjectId, ObjectScope, ReferenceType, Referent, SessionInfo, Stats, Store,
    VlenAndReferenceSizes, WriterLiveness,
};

use crate::change_gate::OngoingWriteGuard;
use crate::dataset::DatasetCore;
use crate::error::ErrorKind;
use crate::file_shared::{FileHandle, FileShared};
use crate::types::ConversionContext;
use crate::{Error, Result};

/// An open file. Clones share one session; the last one that is dropped closes it.
///
/// ```
/// use h5live::File;
///
/// let file = File::in_memory();
/// let frames = file.new_dataset::<u16>().unlimited_rows(&[2, 3]).deflate(4).create("detector/frames")?;
/// frames.append(&[1, 2, 3, 4, 5, 6])?;
/// frames.append(&[7, 8, 9, 10, 11, 12])?;
/// file.flush()?;
/// assert_eq!(frames.shape()?, [2, 2, 3]);
/// assert_eq!(frames.read_slice::<f64>((1, .., 0..2))?, [7.0, 8.0, 10.0, 11.0]);
/// # Ok::<(), h5live::Error>(())
/// ```
#[derive(Clone)]
pub struct File {
    handle: FileHandle,
}

impl File {
    pub(crate) fn from_shared(shared: Arc<FileShared>) -> File {
        File { handle: FileHandle::new(shared) }
    }

    pub(crate) fn shared(&self) -> &Arc<FileShared> {
        self.handle.shared()
    }

    /// The store under the file, for what the other methods do not say: names that are no text, objects by identity.
    pub fn store(&self) -> &dyn Store {
        &*self.shared().store
    }

    /// What changes the store under the file, for what the other methods do not say. Whoever closes the
    /// file waits until it is dropped, so drop it before you do.
    ///
    /// # Errors
    /// [`model::Error::ReadOnly`](h5live_model::Error::ReadOnly),
    /// [`model::Error::Closed`](h5live_model::Error::Closed).
    pub fn writer(&self) -> h5live_model::Result<OngoingWriteGuard<'_>> {
        self.shared().changes.begin_write(self.store())
    }

    /// The stored form of a reference ([`Store::encode_reference`](h5live_model::Store::encode_reference)): many can be made without
    /// writing.
    pub(crate) fn encode_reference(&self, form: &ReferenceType, to: &Referent) -> h5live_model::Result<Vec<u8>> {
        let _change = match self.writer() {
            Err(h5live_model::Error::ReadOnly) => None,
            writer => Some(writer?),
        };
        self.store().encode_reference(form, to)
    }

    pub(crate) fn context(&self) -> ConversionContext<'_> {
        ConversionContext::new(self.store()).with_conversion(self.shared().options.conversion)
    }

    /// A type as elements of this file have it.
    pub(crate) fn stored_type(&self, datatype: &Datatype) -> Datatype {
        datatype
            .with_vlen_and_reference_sizes(VlenAndReferenceSizes::default(), self.session().vlen_and_reference_sizes)
    }

    pub(crate) fn error(&self, object: Option<&str>, kind: impl Into<ErrorKind>) -> Error {
        Error::new(&self.shared().name, object, kind)
    }

    /// The shared state of a dataset.
    pub(crate) fn core(&self, id: ObjectId) -> Result<Arc<DatasetCore>, ErrorKind> {
        let found = self.shared().dataset_cache.lock().get_for_open(id);
        if let Some(core) = found {
            if !core.is_deleted() {
                return Ok(core);
            }
            // Its staged elements are gone, too; another dataset may have its identity now.
            let _gone = self.shared().dataset_cache.lock().remove(id);
        }
        // Not under the lock, because it reads. A second thread takes the state that the first one made.
        let core = DatasetCore::open(
            self.shared().store.dataset(id)?,
            &self.session().capabilities,
            &self.shared().options,
            self.shared().staged.clone(),
            self.shared().blobs.clone(),
        )?;
        let (core, _gone) = self.shared().dataset_cache.lock().add(id, core);
        Ok(core)
    }

    /// The name under which the file was opened.
    pub fn name(&self) -> &str {
        &self.shared().name
    }

    /// The session on the store, with its capabilities.
    pub fn session(&self) -> &SessionInfo {
        self.store().session()
    }

    /// How an HDF5 file allocates its space. The defaults, if the file is not one.
    pub fn file_space(&self) -> FileSpaceSettings {
        FileSpaceSettings::from_settings(&self.session().creation_settings)
    }

    /// Bytes of an address in an HDF5 file. 8, if the file is not one.
    pub fn offset_size(&self) -> u32 {
        self.session().creation_settings.get("offset_size").and_then(|size| size.parse().ok()).unwrap_or(8)
    }

    /// Whether another process may be changing the file, as far as anybody can tell. If its writer has died, and
    /// [`Options::recover`](crate::Options::recover) says so, the file is brought into order.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if that cannot be found out; if the file was deleted, replaced or cut while it was being
    /// written, [`Error::file_change`] says so.
    pub fn is_live(&self) -> Result<bool> {
        let live = self.store().liveness().map_err(|error| self.error(None, error))? != WriterLiveness::AtRest;
        let FileShared { options, location, is_recovered, found_live, .. } = &**self.shared();
        if live {
            found_live.mark_now();
        } else if options.recover
            && options.mode == crate::Mode::SwmrRead
            && let Some(location) = location
            && !is_recovered.swap(true, Ordering::AcqRel)
        {
            crate::recovery::try_recover(location, options);
        }
        Ok(live)
    }

    /// Takes up what a writer has published since, of all objects at once. In a store that is read as of one moment, such
    /// as a key-value store, nothing that was published together is seen in part then.
    ///
    /// Virtual datasets take up what their sources in other files have when they are refreshed themselves.
    ///
    /// # Errors
    /// [`ErrorKind::Store`](crate::ErrorKind::Store) if an object cannot be read any more.
    pub fn refresh(&self) -> Result<()> {
        self.shared().refreshes.fetch_add(1, Ordering::Relaxed);
        // Rows that were appended are counted on from the extents that were known.
        self.shared().write_out()?;
        self.store().refresh(ObjectScope::All).map_err(|error| self.error(None, error))?;
        let cached = self.shared().dataset_cache().cached_datasets();
        for core in cached {
            core.count_change();
            self.shared().cache.forget_dataset(core.cache_id());
        }
        Ok(())
    }

    /// Statistics of this session: reads and writes, hits of the caches, torn reads that were repeated, flushes and
    /// their time.
    ///
    /// ```
    /// # let file = h5live::File::in_memory();
    /// # let log = file.new_dataset::<f64>().unlimited_rows(&[]).create("log")?;
    /// let before = file.stats();
    /// log.refresh()?;
    /// assert_eq!(file.stats().refreshes, before.refreshes + 1);
    /// # Ok::<(), h5live::Error>(())
    /// ```
    pub fn stats(&self) -> Stats {
        let mut stats = self.store().stats();
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        stats.refreshes = count(&self.shared().refreshes);
        stats.chunk_hits = count(&self.shared().cache.hits);
        stats.chunk_misses = count(&self.shared().cache.misses);
        stats.chunk_cache_bytes = self.shared().cache.bytes() as u64;
        if let Some(budget) = &self.shared().staged.budget {
            (stats.staged_bytes, stats.early_stores) = (budget.staged_bytes() as u64, budget.early_store_count());
        }
        stats
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("File").field(&self.shared().name).finish()
    }
}
