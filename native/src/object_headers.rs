//! The way to the objects of a file: reading their headers, and changing each by one thread at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use h5live_cache::{Cache, Owner};
use h5live_format::Addr;
use h5live_indexes::ObjectMetadataAccess;
use h5live_model::{Error as ModelError, ObjectId};
use h5live_swmr::{ReaderSideCache, RetryPolicy};
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashSet;

use crate::global_heap::GlobalHeapReader;
use crate::header::CachedHeader;
use crate::{Error, Mode, Result};

const HEADER_LOCKS: usize = 64;

/// The object headers of an open file. Nothing is read once the file is closed.
#[derive(Debug)]
pub(crate) struct ObjectHeaders {
    cache: Arc<Cache>,
    mode: Mode,
    retry: RetryPolicy,
    heap_reader: Arc<GlobalHeapReader>,
    /// Taken to change an object header; which one is a matter of its address.
    locks: Vec<Mutex<()>>,
    is_closed: AtomicBool,
    /// Headers that this session has freed, and that are not used for new ones. The file may still have their bytes.
    deleted: Mutex<FxHashSet<Addr>>,
    has_deleted: AtomicBool,
}

impl ObjectHeaders {
    /// The headers in the file of `cache`. `heap_reader` forgets what it has read with each header.
    pub fn new(cache: Arc<Cache>, mode: Mode, retry: RetryPolicy, heap_reader: Arc<GlobalHeapReader>) -> Self {
        let locks = (0..HEADER_LOCKS).map(|_| Mutex::new(())).collect();
        ObjectHeaders {
            cache,
            mode,
            retry,
            heap_reader,
            locks,
            is_closed: AtomicBool::new(false),
            deleted: Mutex::default(),
            has_deleted: AtomicBool::new(false),
        }
    }

    /// The header at `addr` is freed: whoever still has the address finds no object there.
    pub fn mark_deleted(&self, addr: Addr) {
        self.deleted.lock().insert(addr);
        self.has_deleted.store(true, Ordering::Release);
    }

    /// There is a new header at `addr`.
    pub fn unmark_deleted(&self, addr: Addr) {
        if self.has_deleted.load(Ordering::Acquire) {
            self.deleted.lock().remove(&addr);
        }
    }

    fn is_deleted(&self, addr: Addr) -> bool {
        self.has_deleted.load(Ordering::Acquire) && self.deleted.lock().contains(&addr)
    }

    /// The cache of the file.
    pub fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }

    /// The file is closed: no header is read from here on.
    pub fn mark_closed(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Whether the file is closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Refuses to use a closed file.
    pub fn check_open(&self) -> Result<()> {
        if self.is_closed() { Err(Error::Model(ModelError::Closed)) } else { Ok(()) }
    }

    /// The structures of the object with its header at `addr`.
    pub fn object_metadata(&self, addr: Addr) -> ObjectMetadataAccess {
        ObjectMetadataAccess::new(self.cache.clone(), Owner::new(addr))
    }

    /// Keeps others from changing the header at `addr`.
    pub fn lock_header(&self, addr: Addr) -> MutexGuard<'_, ()> {
        let number = addr.get().unwrap_or(0) / 8 % HEADER_LOCKS as u64;
        self.locks[number as usize].lock()
    }

    /// Reads the current header of an object.
    ///
    /// # Errors
    /// If it cannot be read, or the object was deleted.
    pub fn load_header(&self, addr: Addr) -> Result<CachedHeader> {
        self.check_open()?;
        if !addr.is_defined() {
            return Err(Error::DamagedObject { header: addr, rule: "its address is defined" });
        }
        if self.is_deleted(addr) {
            return Err(no_object_error(addr));
        }
        self.retry.retry(|| {
            if self.mode == Mode::SwmrRead {
                self.cache.evict_or_revalidate_on_load(Owner::new(addr));
            }
            let header = CachedHeader::load_header(&self.object_metadata(addr), self.mode.writes())?;
            self.heap_reader.forget_all();
            // Its last link went while it was followed.
            if header.is_tombstone() { Err(no_object_error(addr)) } else { Ok(header) }
        })
    }
}

/// The error of an object that was deleted.
pub(crate) fn no_object_error(addr: Addr) -> Error {
    Error::Model(ModelError::NoObject(ObjectId(addr.get().unwrap_or(u64::MAX).into())))
}

#[cfg(test)]
mod tests {
    use h5live_cache::MemoryStorage;
    use h5live_model::Store;

    use super::*;
    use crate::{NativeFile, OpenOptions};

    #[test]
    fn no_header_is_read_once_the_file_is_closed() {
        let options = OpenOptions { mode: Mode::Create, ..OpenOptions::default() };
        let file = NativeFile::open_storage(Arc::new(MemoryStorage::new()), &options).unwrap();
        let root = file.native_session().superblock.root.header();
        let headers = file.native_session().headers.clone();
        assert!(headers.load_header(root).is_ok());
        file.close().unwrap();
        assert!(matches!(headers.load_header(root), Err(Error::Model(ModelError::Closed))));
    }
}
