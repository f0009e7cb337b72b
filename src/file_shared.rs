//! The state of an open file that all its handles share, and the files to which it led.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Weak};

use h5live_model::{ObjectId, ResolvedLocation, Store, StoreIdentity};
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;

use crate::Options;
use crate::change_gate::WriterGate;
use crate::dataset::{ChunkCache, DatasetCore, StagedDatasets};
use crate::dataset_cache::DatasetCache;
use crate::error::UnpublishedRows;
use crate::liveness_check::LastFoundLive;
use crate::publish::{HandleGate, Publisher};
use crate::superseded_blobs::BlobUses;

/// An open file, shared by every handle.
pub(crate) struct FileShared {
    /// Shared while a link is added; held alone while groups are made on the way to one.
    pub(crate) new_groups: parking_lot::RwLock<()>,
    pub(crate) changes: WriterGate,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) name: String,
    pub(crate) options: Options,
    pub(crate) cache: ChunkCache,
    /// Where the file is, if it was opened at a location.
    pub(crate) location: Option<ResolvedLocation>,
    pub(crate) linked_files: Arc<LinkedFiles>,
    /// Files to which this one led. They stay open as long as it does.
    pub(crate) kept_open: Mutex<Vec<FileHandle>>,
    /// Other files in which elements of virtual datasets of this one were written, and that were not flushed since.
    pub(crate) written_files: Mutex<Vec<FileHandle>>,
    pub(crate) publisher: Publisher,
    /// Counts the handles.
    pub(crate) handle_gate: Arc<HandleGate>,
    /// Looks at what a writer has published since.
    pub(crate) refreshes: AtomicU64,
    /// Whether the file was brought into order when its writer was found to be dead, or need not be.
    pub(crate) is_recovered: AtomicBool,
    /// When it was last found that a writer may be at work.
    pub(crate) found_live: LastFoundLive,
    pub(crate) dataset_cache: Mutex<DatasetCache>,
    pub(crate) staged: StagedDatasets,
    /// Who uses the variable-length data of the file.
    pub(crate) blobs: Arc<BlobUses>,
    /// Where the rows of datasets end that the store has got since the last publication of the file.
    pub(crate) stored_rows: Mutex<FxHashMap<ObjectId, u64>>,
}

/// What a user has of an open file, or another file that led to it. As long as there is one, the file may publish by itself.
pub(crate) struct FileHandle(Arc<FileShared>);

impl FileHandle {
    /// One more.
    pub(crate) fn new(shared: Arc<FileShared>) -> Self {
        shared.handle_gate.add();
        FileHandle(shared)
    }

    /// The file.
    pub(crate) fn shared(&self) -> &Arc<FileShared> {
        &self.0
    }
}

impl Clone for FileHandle {
    fn clone(&self) -> Self {
        FileHandle::new(self.0.clone())
    }
}

impl Drop for FileHandle {
    fn drop(&mut self) {
        self.0.handle_gate.remove();
    }
}

impl FileShared {
    /// The datasets that were opened.
    pub(crate) fn dataset_cache(&self) -> MutexGuard<'_, DatasetCache> {
        self.dataset_cache.lock()
    }

    /// The dataset of this identity, if it was opened.
    pub(crate) fn cached_core(&self, id: ObjectId) -> Option<Arc<DatasetCore>> {
        self.dataset_cache.lock().get_for_open(id)
    }

    /// Calls `each` for the datasets with staged elements, until it fails. The rest stay in the list.
    pub(crate) fn for_each_staged<E>(&self, mut each: impl FnMut(&DatasetCore) -> Result<(), E>) -> Result<(), E> {
        let mut listed = std::mem::take(&mut *self.staged.lock()).into_iter();
        let done = listed.try_for_each(|id| self.cached_core(id).map_or(Ok(()), |core| each(&core)));
        self.staged.lock().extend(listed);
        done
    }

    /// Notes that elements of a virtual dataset of this file were written in another one.
    pub(crate) fn add_written_file(&self, other: &Arc<FileShared>) {
        let mut written = self.written_files.lock();
        if !written.iter().any(|known| Arc::ptr_eq(known.shared(), other)) {
            written.push(FileHandle::new(other.clone()));
        }
    }

    /// Notes that the store has the first `rows` rows of a dataset, which may not be published.
    pub(crate) fn keep_stored_rows(&self, id: ObjectId, rows: u64) {
        self.stored_rows.lock().insert(id, rows);
    }

    /// Notes that all rows are published that the store had, as [`FileShared::keep_stored_rows`] says.
    pub(crate) fn mark_all_published(&self) {
        for (id, rows) in self.stored_rows.lock().drain() {
            self.cached_core(id).iter().for_each(|core| core.raise_published_end(rows));
        }
    }

    /// The rows of all open datasets that are not published.
    #[cold]
    pub(crate) fn unpublished_rows(&self) -> Vec<UnpublishedRows> {
        let cached = self.dataset_cache.lock().cached_datasets();
        let mut rows: Vec<_> = cached.iter().filter_map(|core| core.unpublished_rows()).collect();
        rows.sort_by(|a, b| a.dataset.cmp(&b.dataset));
        rows
    }

    /// Whether something is staged that the store does not have.
    pub(crate) fn has_staged(&self) -> bool {
        let listed = self.staged.lock().clone();
        listed.into_iter().filter_map(|id| self.cached_core(id)).any(|core| core.has_staged())
    }
}

/// What identifies a store in this process.
pub(crate) type StoreKey = (&'static str, StoreIdentity);

/// Every file that was opened on the way from one file to others, so that none is opened twice.
#[derive(Debug, Default)]
pub(crate) struct LinkedFiles {
    files: Mutex<HashMap<StoreKey, Weak<FileShared>>>,
    /// The files that are kept open by those that led to them, which come first in each pair; the oldest pair first.
    pub(crate) kept: Mutex<VecDeque<(Weak<FileShared>, Weak<FileShared>)>>,
    /// Held by the thread that opens one of the files.
    pub(crate) opening: Mutex<()>,
}

impl LinkedFiles {
    /// Takes a file in.
    pub(crate) fn add(&self, at: &ResolvedLocation, shared: &Arc<FileShared>) {
        let Some(key) = key_of(at) else { return };
        let mut files = self.files.lock();
        if files.len() >= shared.options.max_linked_files.saturating_mul(2).max(16) {
            files.retain(|_, file| file.strong_count() > 0);
        }
        files.insert(key, Arc::downgrade(shared));
    }

    /// A file that is open.
    pub(crate) fn find(&self, key: &StoreKey) -> Option<Arc<FileShared>> {
        self.files.lock().get(key).and_then(Weak::upgrade)
    }
}

/// What identifies the store at a location; `None` if nobody else can be led there.
pub(crate) fn key_of(at: &ResolvedLocation) -> Option<StoreKey> {
    Some((at.connector().name(), at.identity()?))
}
