//! The datasets of a file that are open, and what is known of others. Nothing here knows the session.

use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use h5live_format::Addr;
use h5live_model::ChunkCoord;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;

use super::preallocated_append_rows::PreallocatedAppendRows;
use super::repeated_append::FastAppendState;
use super::spec_cache::{SpecCache, SpecMessageCache};
use super::state::{DatasetState, NewDataset};
use crate::Result;
use crate::object_headers::ObjectHeaders;

/// An open dataset, as all its handles share it.
#[derive(Debug)]
pub(crate) struct OpenDataset {
    /// Its header.
    pub header_addr: Addr,
    pub(super) state: RwLock<Arc<DatasetState>>,
    pub(super) fast_append: Mutex<FastAppendState>,
    /// Held by the one that writes a batch: an index is changed by one thread at a time.
    pub(super) writer_lock: Mutex<()>,
    /// Held while a reader reads the state again.
    pub(super) refresh_lock: Mutex<()>,
    /// The extent without an index for which a reader has waited in vain; held while it waits.
    pub(super) missed_chunks: Mutex<Vec<u64>>,
    is_deleted: AtomicBool,
    registry: Arc<DatasetRegistry>,
}

/// What a session keeps of the datasets of its file. There is one [`OpenDataset`] for each dataset that somebody has
/// open.
#[derive(Debug, Default)]
pub(crate) struct DatasetRegistry {
    open_datasets: Mutex<FxHashMap<Addr, Weak<OpenDataset>>>,
    /// The dataset that was created last, kept until it is opened.
    newest_dataset: Mutex<Option<NewDataset>>,
    /// Rows of chunks of datasets that were made ready for appends last. They outlive the handles.
    preallocated: Mutex<FxHashMap<Addr, PreallocatedAppendRows>>,
    /// How the dataset that was read last is described.
    pub(super) spec_cache: SpecCache,
    /// How the dataset that was created last is described.
    pub(super) spec_messages: SpecMessageCache,
}

impl OpenDataset {
    /// The dataset as it was read last.
    pub(super) fn state(&self) -> Arc<DatasetState> {
        self.state.read().clone()
    }

    /// Whether the dataset has been deleted.
    pub fn is_deleted(&self) -> bool {
        self.is_deleted.load(Ordering::Acquire)
    }

    /// The dataset is deleted.
    pub fn mark_deleted(&self) {
        self.is_deleted.store(true, Ordering::Release);
        self.forget_preallocated_rows();
    }

    /// Gives back the space of the chunk index: the dataset is deleted.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn mark_deleted_and_free_index(&self) -> Result<()> {
        self.mark_deleted();
        self.state().layout.delete_index()
    }

    /// The address of a preallocated chunk, and whether the extent `dims` has nothing of it: it is still unused then.
    pub(super) fn preallocated_chunk(&self, coord: &ChunkCoord, dims: &[u64]) -> Option<(Addr, bool)> {
        let preallocated = self.registry.preallocated.lock();
        let rows = preallocated.get(&self.header_addr)?;
        Some((rows.chunk_addr(coord)?, rows.is_chunk_beyond_extent(coord, dims)))
    }

    /// Keeps the rows of chunks that were preallocated last.
    pub(super) fn keep_preallocated_rows(&self, rows: PreallocatedAppendRows) {
        self.registry.preallocated.lock().insert(self.header_addr, rows);
    }

    /// Forgets the preallocated rows of chunks: they will be dropped with everything outside of the extent.
    pub(super) fn forget_preallocated_rows(&self) {
        self.registry.preallocated.lock().remove(&self.header_addr);
    }

    /// Hashes everything that is kept of the dataset, apart from what a file without generations shows by itself.
    pub fn hash_state(&self, state: &mut impl Hasher) {
        let now = self.state();
        (self.header_addr, now.header_len, now.spec.dataspace.dims()).hash(state);
        match now.layout.header() {
            Some(header) => header.hash_state(state),
            None => format!("{:?}", now.spec).hash(state),
        }
    }
}

impl Drop for OpenDataset {
    fn drop(&mut self) {
        let mut open = self.registry.open_datasets.lock();
        // It may have been opened again since nobody had this one.
        if let Entry::Occupied(known) = open.entry(self.header_addr)
            && known.get().strong_count() == 0
        {
            known.remove();
        }
    }
}

impl DatasetRegistry {
    /// The dataset with its header at `addr`, whose state `read` reads if nobody has it open.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn get_or_open(
        self: &Arc<Self>,
        addr: Addr,
        read: impl FnOnce() -> Result<DatasetState>,
    ) -> Result<Arc<OpenDataset>> {
        let mut open = self.open_datasets.lock();
        let entry = open.entry(addr);
        if let Entry::Occupied(known) = &entry
            && let Some(dataset) = known.get().upgrade()
        {
            return Ok(dataset);
        }
        let made = self.newest_dataset.lock().take_if(|made| made.addr == addr);
        let state = made.map_or_else(read, |made| Ok(made.state))?;
        let dataset = Arc::new(OpenDataset {
            header_addr: addr,
            state: RwLock::new(Arc::new(state)),
            fast_append: Mutex::default(),
            writer_lock: Mutex::default(),
            refresh_lock: Mutex::default(),
            missed_chunks: Mutex::default(),
            is_deleted: AtomicBool::new(false),
            registry: self.clone(),
        });
        entry.insert_entry(Arc::downgrade(&dataset));
        Ok(dataset)
    }

    /// The dataset with its header at `addr`, if somebody has it open.
    pub fn find_open(&self, addr: Addr) -> Option<Arc<OpenDataset>> {
        self.open_datasets.lock().get(&addr).and_then(Weak::upgrade)
    }

    /// All datasets that somebody has open.
    pub fn all_open(&self) -> Vec<Arc<OpenDataset>> {
        self.open_datasets.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// As [`all_open`](Self::all_open); `None` while one is being opened.
    pub fn try_all_open(&self) -> Option<Vec<Arc<OpenDataset>>> {
        self.open_datasets.try_lock().map(|open| open.values().filter_map(Weak::upgrade).collect())
    }

    /// Keeps the state of a dataset that was created, until it is opened or another one is created.
    #[inline]
    pub fn cache_new_dataset_state(&self, made: NewDataset) {
        *self.newest_dataset.lock() = Some(made);
    }

    /// Forgets the dataset that was created last: another object may come to be where it is.
    pub fn drop_cached_new_dataset(&self) {
        *self.newest_dataset.lock() = None;
    }

    /// The dataset with its header at `addr` is gone from the file. Those who have it open keep it.
    pub fn forget_dataset(&self, addr: Addr) {
        self.open_datasets.lock().remove(&addr);
    }

    /// Gives back the chunks that were made ready and never used; says whether there were some.
    ///
    /// # Errors
    /// If the header or the index of a dataset cannot be read or changed.
    pub fn free_unused_preallocated_chunks(&self, headers: &ObjectHeaders) -> Result<bool> {
        let mut ready = self.preallocated.lock();
        let mut any = false;
        while let Some((addr, rows)) = ready.iter().next() {
            let addr = *addr;
            any |= rows.free_unused_chunks(addr, headers)?;
            ready.remove(&addr);
        }
        Ok(any)
    }
}

#[cfg(test)]
mod tests {
    use h5live_cache::MemoryStorage;
    use h5live_model::{DatasetSpec, Name, NewObject, Store, StoreWriter};

    use crate::dataset::NativeDataset;
    use crate::{Mode, NativeFile, OpenOptions};

    use super::*;

    #[test]
    fn all_handles_of_a_dataset_share_its_state_until_the_last_of_them_goes() {
        let options = OpenOptions { mode: Mode::Create, ..OpenOptions::default() };
        let file = NativeFile::open_storage(Arc::new(MemoryStorage::new()), &options).unwrap();
        let (name, spec) = (Name::from("data"), DatasetSpec::default().into());
        let id = file.create(&NewObject::linked(file.session().root, &name, &spec)).unwrap();
        let (session, addr) = (&file.0, file.0.header_addr_of(id).unwrap());
        let [first, second] = [(); 2].map(|()| NativeDataset::open(session, addr).unwrap().into_shared());
        assert!(Arc::ptr_eq(&first, &second));
        drop(first);
        assert!(Arc::ptr_eq(&second, &session.datasets.find_open(addr).unwrap()));
        drop(second);
        assert!(session.datasets.find_open(addr).is_none());
        assert!(session.datasets.open_datasets.lock().is_empty(), "nothing is kept of a dataset that nobody has open");
    }
}
