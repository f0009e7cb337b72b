//! Objects of global heaps: variable-length data, mappings of virtual datasets, regions.

use h5live_cache::{EdgeKind, Owner, SpaceKind};
use h5live_format::{Addr, GlobalHeapCollection, GlobalHeapId, decode};

use super::NativeSession;
use crate::header::CachedHeader;
use crate::{Error, Result};

/// Most bytes of one global heap collection.
const MAX_COLLECTION_BYTES: u64 = 1 << 32;

/// A new collection is twice as large as the one before, up to this (bytes).
const MAX_NEW_COLLECTION_BYTES: u64 = 64 << 10;

impl NativeSession {
    /// Puts `bytes` into a global heap.
    ///
    /// # Errors
    /// If there is no space.
    pub fn write_global_heap(&self, bytes: &[u8]) -> Result<GlobalHeapId> {
        let widths = self.cache.widths();
        let mut writer = self.heap.lock();
        if let Some(collection) = &writer.current
            && let Some(index) = collection.update(|collection| collection.insert(bytes, widths))
        {
            let collection = collection.clone();
            let place = GlobalHeapId { collection: collection.addr(), index: index.into() };
            writer.mark(collection);
            return Ok(place);
        }
        let before = writer.current.as_ref().map_or(0, |collection| collection.read().size());
        let needed = GlobalHeapCollection::size_for(bytes.len() as u64, widths);
        let size = needed.max((before.saturating_mul(2)).min(MAX_NEW_COLLECTION_BYTES));
        let mut collection = GlobalHeapCollection::new(size, widths);
        let index = collection.insert(bytes, widths);
        let at = self.cache.space().alloc(size, SpaceKind::Metadata)?;
        let index =
            index.ok_or(Error::Object { header: at, rule: "a new collection has room for its first object" })?;
        let room = collection.free(widths) > 0;
        let collection = self.cache.insert(at, Owner::new(at), collection);
        writer.mark(collection.clone());
        if room || writer.current.is_none() {
            writer.current = Some(collection);
        }
        Ok(GlobalHeapId { collection: at, index: index.into() })
    }

    /// The bytes of an object of a global heap.
    ///
    /// # Errors
    /// If the collection cannot be read, or has no such object.
    pub fn read_global_heap(&self, place: GlobalHeapId) -> Result<Vec<u8>> {
        let mut found = Vec::new();
        self.with_global_heap(place, &mut |bytes| found = bytes.to_vec())?;
        Ok(found)
    }

    /// Calls `each` once with the bytes of an object of a global heap. A collection may be locked meanwhile: `each`
    /// must not use the file.
    ///
    /// # Errors
    /// If the collection cannot be read, or has no such object.
    pub fn with_global_heap(&self, place: GlobalHeapId, each: &mut dyn FnMut(&[u8])) -> Result<()> {
        let at = place.collection;
        let gone = || Error::Object { header: at, rule: "a collection of a global heap has what is referred to" };
        if self.is_follower() {
            let collection = self.retry.retry(|| {
                let collection = self.heap_reader.get(at, || self.read_collection(at))?;
                if collection.get(place.index).is_none() {
                    self.heap_reader.evict(at);
                    return Err(gone());
                }
                Ok(collection)
            })?;
            // Once, however often it was read.
            collection.get(place.index).map(each).ok_or_else(gone)
        } else {
            let collection = self.retry.retry(|| {
                let collection = self.cache.load(at, Owner::new(at), || self.read_collection(at))?;
                let is_there = collection.read().get(place.index).is_some();
                if is_there { Ok(collection) } else { Err(gone()) }
            })?;
            let collection = collection.read();
            collection.get(place.index).map(each).ok_or_else(gone)
        }
    }

    fn read_collection(&self, at: Addr) -> h5live_cache::Result<GlobalHeapCollection> {
        let widths = self.cache.widths();
        let wrong = |source| h5live_cache::Error::Decode { at, source };
        let start = self.cache.read_block(at, GlobalHeapCollection::PREFIX_BYTES)?;
        let size = GlobalHeapCollection::stated_size(&start, widths).map_err(wrong)?;
        let wanted = usize::try_from(size.min(MAX_COLLECTION_BYTES)).unwrap_or(usize::MAX);
        let bytes = self.cache.read_block(at, wanted)?;
        decode(&bytes, widths).map_err(wrong)
    }
}

impl CachedHeader {
    /// Makes every chunk of this header wait for the heap objects that were written lately, because its attributes or
    /// elements may lead to them.
    ///
    /// # Errors
    /// If the dependency would close a circle.
    pub fn depend_on_heap(&self, session: &NativeSession) -> Result<()> {
        let heap = session.heap.lock();
        self.chunk_nodes().try_for_each(|node| heap.add_parent(&session.cache, node, EdgeKind::MetadataHeap))
    }
}
