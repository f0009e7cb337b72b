//! The global heap of a file: variable-length data, mappings of virtual datasets, regions.

mod removed_objects;

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use h5live_cache::{Cache, DependencyKind, DependencyNode, EntryId, Handle, Owner, SpaceKind};
use h5live_format::{Addr, GlobalHeapCollection, GlobalHeapId, Widths, decode};
use h5live_swmr::{ReaderSideCache, RetryPolicy};
use parking_lot::Mutex;

use self::removed_objects::GlobalHeapRemovals;
use crate::header::CachedHeader;
use crate::{Error, Mode, Result};

/// Most bytes of one global heap collection.
const MAX_COLLECTION_BYTES: u64 = 1 << 32;

/// A new collection is twice as large as the one that was filled before it since a flush, up to this (bytes).
const MAX_NEW_COLLECTION_BYTES: u64 = 64 << 10;

/// Most collections of which it is known that they have room.
const MAX_COLLECTIONS_WITH_ROOM: usize = 16;

/// The global heap of an open file.
#[derive(Debug)]
pub(crate) struct GlobalHeap {
    cache: Arc<Cache>,
    retry: RetryPolicy,
    /// Whether another process may be changing the file.
    is_follower: bool,
    writer: Mutex<GlobalHeapWriter>,
    reader: Arc<GlobalHeapReader>,
}

/// The collections into which this session writes.
#[derive(Debug, Default)]
struct GlobalHeapWriter {
    /// The one that may have room.
    current_collection: Option<Handle<GlobalHeapCollection>>,
    /// The flush after which it was made.
    current_since: u64,
    /// Those that may not have been flushed since they changed, and in which generation they did.
    changed_collections: BTreeMap<EntryId, (u64, Handle<GlobalHeapCollection>)>,
    /// Grows with each flush.
    flush_number: u64,
    /// Objects to which no element leads any more.
    removed: GlobalHeapRemovals,
    /// Those that have room, because objects were removed.
    collections_with_room: Vec<Handle<GlobalHeapCollection>>,
}

/// Bytes of a new collection that takes `objects`, or the first of them, after one of `before` bytes was filled at once.
fn collection_bytes(objects: &[&[u8]], before: u64, widths: Widths) -> u64 {
    let first = objects.first().map_or(0, |bytes| bytes.len() as u64);
    let mut together = GlobalHeapCollection::object_space_bytes(0, widths);
    for bytes in objects {
        together = together.saturating_add(GlobalHeapCollection::object_space_bytes(bytes.len() as u64, widths));
        if together >= MAX_NEW_COLLECTION_BYTES {
            break;
        }
    }
    let wanted = if objects.len() > 1 { together } else { 0 };
    let wanted = wanted.max(before.saturating_mul(2)).min(MAX_NEW_COLLECTION_BYTES);
    GlobalHeapCollection::collection_size_for(first, widths).max(wanted)
}

/// Puts `objects` into the collection at `at`, as far as they fit, and adds their places. Returns how many there are.
fn fill_collection(
    collection: &mut GlobalHeapCollection,
    at: Addr,
    objects: &[&[u8]],
    widths: Widths,
    places: &mut Vec<GlobalHeapId>,
) -> usize {
    let before = places.len();
    let mut add = |index: u16| places.push(GlobalHeapId { collection: at, index: index.into() });
    collection.insert_objects_while_room(objects.iter().copied(), widths, &mut add);
    places.len().saturating_sub(before)
}

impl GlobalHeap {
    /// The heap in the file of `cache`; `reader` keeps what a follower has read of it.
    pub fn new(cache: Arc<Cache>, retry: RetryPolicy, mode: Mode, reader: Arc<GlobalHeapReader>) -> Self {
        GlobalHeap { cache, retry, is_follower: mode == Mode::SwmrRead, writer: Mutex::default(), reader }
    }

    /// Puts `bytes` into a global heap.
    ///
    /// # Errors
    /// If there is no space.
    pub fn write_object(&self, bytes: &[u8]) -> Result<GlobalHeapId> {
        let place = self.write_objects(&[bytes])?.first().copied();
        place.ok_or(Error::DamagedObject { header: Addr::UNDEFINED, rule: "an object of a global heap has a place" })
    }

    /// Puts objects into a global heap, and returns the place of each. New collections are filled before the cache has them.
    ///
    /// # Errors
    /// If there is no space.
    pub fn write_objects(&self, objects: &[&[u8]]) -> Result<Vec<GlobalHeapId>> {
        let widths = self.cache.widths();
        let mut writer = self.writer.lock();
        self.reclaim_objects(&mut writer);
        let mut places = Vec::with_capacity(objects.len());
        while let Some(left) = objects.get(places.len()..).filter(|left| !left.is_empty()) {
            if writer.insert_objects(left, widths, &mut places) == 0 {
                self.write_collection(&mut writer, left, &mut places)?;
            }
        }
        Ok(places)
    }

    /// Makes a collection of as many of `objects` as it has room for, and adds their places.
    fn write_collection(
        &self,
        writer: &mut GlobalHeapWriter,
        objects: &[&[u8]],
        places: &mut Vec<GlobalHeapId>,
    ) -> Result<()> {
        let widths = self.cache.widths();
        // A flush writes a collection as a whole, so those that are filled over many flushes stay small.
        let full = writer.current_collection.as_ref().filter(|_| writer.current_since == writer.flush_number);
        let before = full.map_or(0, |collection| collection.read().size());
        let size = collection_bytes(objects, before, widths);
        let mut collection = GlobalHeapCollection::new(size, widths);
        let at = self.cache.space().alloc(size, SpaceKind::Metadata)?;
        if fill_collection(&mut collection, at, objects, widths, places) == 0 {
            return Err(Error::DamagedObject { header: at, rule: "a new collection has room for its first object" });
        }
        let room = collection.free_bytes_at_end() > 0;
        let collection = self.cache.insert_entry(at, Owner::new(at), collection);
        writer.mark_changed(&collection);
        if room || writer.current_collection.is_none() {
            writer.current_collection = Some(collection);
            writer.current_since = writer.flush_number;
        }
        Ok(())
    }

    /// The bytes of an object of a global heap.
    ///
    /// # Errors
    /// If the collection cannot be read, or has no such object.
    pub fn read_object(&self, place: GlobalHeapId) -> Result<Vec<u8>> {
        let mut found = Vec::new();
        self.with_object(place, &mut |bytes| found = bytes.to_vec())?;
        Ok(found)
    }

    /// Calls `each` once with the bytes of an object of a global heap. A collection may be locked meanwhile: `each`
    /// must not use the file.
    ///
    /// # Errors
    /// If the collection cannot be read, or has no such object.
    pub fn with_object(&self, place: GlobalHeapId, each: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.with_collection_of(place, |collection| collection.object_bytes(place.index).map(each))
    }

    /// Calls `each` once with the number and the bytes of each of the `places`; there are none of those that are nowhere.
    /// Objects of one collection that come one after the other are found by one look for it. As
    /// [`GlobalHeap::with_object`], `each` must not use the file.
    ///
    /// # Errors
    /// As [`GlobalHeap::with_object`].
    pub fn with_objects(&self, places: &[GlobalHeapId], each: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        let mut number = 0;
        while let Some(place) = places.get(number) {
            if !place.is_defined() {
                each(number, &[]);
                number += 1;
                continue;
            }
            self.with_collection_of(*place, |collection| {
                let begin = number;
                let in_it = places.iter().skip(begin).take_while(|next| next.collection == place.collection);
                for bytes in in_it.map_while(|next| collection.object_bytes(next.index)) {
                    each(number, bytes);
                    number += 1;
                }
                (number > begin).then_some(())
            })?;
        }
        Ok(())
    }

    /// Calls `look` once with the collection of an object, which has the object. `look` must not use the file.
    fn with_collection_of<T>(
        &self,
        place: GlobalHeapId,
        look: impl FnOnce(&GlobalHeapCollection) -> Option<T>,
    ) -> Result<T> {
        let at = place.collection;
        let gone =
            || Error::DamagedObject { header: at, rule: "a collection of a global heap has what is referred to" };
        if self.is_follower {
            let collection = self.retry.retry(|| {
                let collection = self.reader.get_or_read_collection(at, || self.read_collection(at))?;
                if collection.object_bytes(place.index).is_none() {
                    self.reader.forget_collection(at);
                    return Err(gone());
                }
                Ok(collection)
            })?;
            // Once, however often it was read.
            look(&collection).ok_or_else(gone)
        } else {
            let collection = self.retry.retry(|| {
                let collection = self.cache.load(at, Owner::new(at), || self.read_collection(at))?;
                let is_there = collection.read().object_bytes(place.index).is_some();
                if is_there { Ok(collection) } else { Err(gone()) }
            })?;
            let collection = collection.read();
            look(&collection).ok_or_else(gone)
        }
    }

    /// Notes objects to which no element leads any more: what was written over the elements is in the cache. Does
    /// nothing after [`GlobalHeap::disable_object_removal`].
    pub fn queue_object_removals(&self, objects: impl IntoIterator<Item = GlobalHeapId>) {
        self.writer.lock().removed.add(self.cache.space().current_epoch(), objects);
    }

    /// From now on, objects stay: others may be reading. Those that are removed are so with the next flush.
    pub fn disable_object_removal(&self) {
        self.writer.lock().removed = GlobalHeapRemovals::Kept;
    }

    /// How many objects wait to be removed.
    pub fn pending_removal_count(&self) -> usize {
        self.writer.lock().removed.count()
    }

    /// Removes the objects that wait for nothing. Returns whether there were any.
    pub fn reclaim_removed_objects(&self) -> bool {
        self.reclaim_objects(&mut self.writer.lock())
    }

    /// Removes the objects to which nothing leads in the file, since a flush. Collections without objects are freed.
    fn reclaim_objects(&self, writer: &mut GlobalHeapWriter) -> bool {
        let settled = writer.removed.take_removable_objects(|epoch| self.cache.space().is_reclaimable(epoch));
        for (at, indexes) in &settled {
            // Elements that do not lead to a collection are damaged, and nothing is to be had there.
            let loaded = self.cache.load(*at, Owner::new(*at), || self.read_collection(*at));
            let Ok::<Handle<GlobalHeapCollection>, h5live_cache::Error>(collection) = loaded else { continue };
            let is_removed = |index: u32| indexes.contains(&index);
            if !collection.read().objects().any(|object| is_removed(object.index.into())) {
                continue;
            }
            let widths = self.cache.widths();
            collection.update(|collection| collection.remove_objects(is_removed, widths));
            if collection.read().is_empty() {
                writer.forget_collection(&collection);
                let size = collection.read().size();
                self.cache.free_structure(*at, size);
            } else {
                writer.add_room(collection);
            }
        }
        !settled.is_empty()
    }

    fn read_collection(&self, at: Addr) -> h5live_cache::Result<GlobalHeapCollection> {
        let widths = self.cache.widths();
        let wrong = |source| h5live_cache::Error::Decode { at, source };
        // No collection is smaller, and those of libhdf5 are not larger, unless an object is.
        let start = self.cache.read_uncached_to_eof(at, GlobalHeapCollection::MIN_SIZE as usize)?;
        if start.len() < GlobalHeapCollection::PREFIX_BYTES {
            let (wanted, found) = (GlobalHeapCollection::PREFIX_BYTES as u64, start.len() as u64);
            return Err(h5live_cache::Error::PastEnd { at, wanted, found });
        }
        let size = GlobalHeapCollection::stated_size(&start, widths).map_err(wrong)?;
        if size == start.len() as u64 {
            return decode(&start, widths).map_err(wrong);
        }
        let wanted = usize::try_from(size.min(MAX_COLLECTION_BYTES)).unwrap_or(usize::MAX);
        let bytes = self.cache.read_block_uncached(at, wanted)?;
        decode(&bytes, widths).map_err(wrong)
    }

    /// A follower has read something that may lead to newer objects.
    pub fn forget_read_collections(&self) {
        self.reader.forget_all();
    }

    /// Collections with objects that were written lately.
    pub fn changed_collections(&self) -> Vec<Handle<GlobalHeapCollection>> {
        let writer = self.writer.lock();
        let changed = writer.changed_collections.values().map(|(_, collection)| collection);
        changed.filter(|collection| self.cache.is_unwritten(*collection)).cloned().collect()
    }

    /// Makes `parent`, which may hold elements that lead to heap objects, wait for the objects that were written
    /// lately.
    ///
    /// # Errors
    /// If the dependency would close a circle.
    pub fn add_flush_parent(&self, parent: &dyn DependencyNode, kind: DependencyKind) -> Result<()> {
        self.writer.lock().add_flush_parent(&self.cache, parent, kind)
    }

    /// Makes every chunk of a header wait for the heap objects that were written lately, because its attributes or
    /// elements may lead to them.
    ///
    /// # Errors
    /// If the dependency would close a circle.
    pub fn add_header_as_flush_parent(&self, header: &CachedHeader) -> Result<()> {
        let writer = self.writer.lock();
        header
            .chunk_nodes()
            .try_for_each(|node| writer.add_flush_parent(&self.cache, node, DependencyKind::MetadataGlobalHeap))
    }

    /// A flush of the whole file begins, or of a part of it. Returns what [`end_flush`](Self::end_flush) takes.
    pub fn begin_flush(&self) -> u64 {
        self.writer.lock().begin_flush()
    }

    /// Ends the flush that began as `flush_number`.
    pub fn end_flush(&self, flush_number: u64) {
        self.writer.lock().end_flush(&self.cache, flush_number);
    }
}

impl GlobalHeapWriter {
    /// Makes `parent`, which may hold elements that lead to heap objects, wait for the objects that were written
    /// lately.
    ///
    /// # Errors
    /// If the dependency would close a circle.
    fn add_flush_parent(&self, cache: &Cache, parent: &dyn DependencyNode, kind: DependencyKind) -> Result<()> {
        for (_, collection) in self.changed_collections.values().filter(|(_, changed)| cache.is_unwritten(changed)) {
            cache.add_dependency_until_clean(parent, collection, kind).map_err(h5live_cache::Error::from)?;
        }
        Ok(())
    }

    /// A flush of the whole file begins. Returns what `end_flush` takes.
    fn begin_flush(&mut self) -> u64 {
        self.flush_number += 1;
        self.flush_number
    }

    /// Ends the flush that began as `generation`: it has written everything that was put into heaps before it, or what
    /// those led to that it wrote.
    fn end_flush(&mut self, cache: &Cache, generation: u64) {
        self.changed_collections.retain(|_, (changed, heap)| *changed >= generation || cache.is_unwritten(heap));
    }

    /// Puts the first of `objects` into a collection that has room, and those behind it as far as they fit there. Adds
    /// their places, and returns how many there are: 0 if no collection is known that has room for the first.
    fn insert_objects(&mut self, objects: &[&[u8]], widths: Widths, places: &mut Vec<GlobalHeapId>) -> usize {
        let first = objects.first().map_or(0, |bytes| bytes.len() as u64);
        let mut candidates = self.current_collection.iter().chain(&self.collections_with_room);
        let Some(collection) = candidates.find(|known| known.read().has_room_for(first, widths)).cloned() else {
            return 0;
        };
        let at = collection.addr();
        let count = collection.update(|collection| fill_collection(collection, at, objects, widths, places));
        self.mark_changed(&collection);
        count
    }

    /// Objects were removed from this collection.
    fn add_room(&mut self, collection: Handle<GlobalHeapCollection>) {
        let is_known = |known: &Handle<GlobalHeapCollection>| known.addr() == collection.addr();
        if self.current_collection.iter().chain(&self.collections_with_room).any(is_known) {
            return;
        }
        if self.collections_with_room.len() == MAX_COLLECTIONS_WITH_ROOM {
            let free = |collection: &Handle<GlobalHeapCollection>| collection.read().free_bytes_at_end();
            let fullest = (0..).zip(&self.collections_with_room).min_by_key(|(_, known)| free(known));
            if let Some((fullest, _)) = fullest {
                self.collections_with_room.swap_remove(fullest);
            }
        }
        self.collections_with_room.push(collection);
    }

    /// This collection is no more.
    fn forget_collection(&mut self, collection: &Handle<GlobalHeapCollection>) {
        let at = collection.addr();
        self.current_collection.take_if(|current| current.addr() == at);
        self.collections_with_room.retain(|known| known.addr() != at);
        self.changed_collections.remove(&DependencyNode::id(collection));
    }

    /// An object was put into this collection.
    fn mark_changed(&mut self, collection: &Handle<GlobalHeapCollection>) {
        let id = DependencyNode::id(collection);
        if self.changed_collections.get(&id).is_none_or(|(changed, _)| *changed != self.flush_number) {
            self.changed_collections.insert(id, (self.flush_number, collection.clone()));
        }
    }
}

/// Most collections that a follower keeps.
const MAX_CACHED_COLLECTIONS: usize = 16;

/// The collections that a follower has read since it last read anything that leads to them. So their contents are as
/// new as the pointers to them. Nothing else says when they must be read again.
#[derive(Debug, Default)]
pub(crate) struct GlobalHeapReader(Mutex<CachedCollections>);

#[derive(Debug, Default)]
struct CachedCollections {
    /// Grows with everything that is read and may lead to objects.
    valid_epoch: u64,
    collections: Vec<(Addr, Arc<GlobalHeapCollection>)>,
}

impl ReaderSideCache for GlobalHeapReader {
    fn forget_all(&self) {
        let mut kept = self.0.lock();
        kept.valid_epoch += 1;
        kept.collections.clear();
    }

    fn hash_state(&self, mut state: &mut dyn Hasher) {
        self.0.lock().collections.iter().for_each(|collection| format!("{collection:?}").hash(&mut state));
    }
}

impl GlobalHeapReader {
    /// The collection at `at`, which `read` reads if it is not kept.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn get_or_read_collection(
        &self,
        at: Addr,
        read: impl FnOnce() -> h5live_cache::Result<GlobalHeapCollection>,
    ) -> h5live_cache::Result<Arc<GlobalHeapCollection>> {
        let moment = {
            let kept = self.0.lock();
            if let Some((_, collection)) = kept.collections.iter().find(|(addr, _)| *addr == at) {
                return Ok(collection.clone());
            }
            kept.valid_epoch
        };
        let collection = Arc::new(read()?);
        let mut kept = self.0.lock();
        // Pointers that another thread has read in between may lead to newer objects.
        if kept.valid_epoch == moment {
            if kept.collections.len() == MAX_CACHED_COLLECTIONS {
                kept.collections.remove(0);
            }
            kept.collections.push((at, collection.clone()));
        }
        Ok(collection)
    }

    /// Drops a collection, so that it is read again the next time.
    pub fn forget_collection(&self, at: Addr) {
        self.0.lock().collections.retain(|(addr, _)| *addr != at);
    }
}
