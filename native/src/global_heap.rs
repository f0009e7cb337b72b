//! What a session keeps of global heaps: the collections into which it writes, and those that a follower has read.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use h5live_cache::{Cache, DependencyNode, EdgeKind, EntryId, Handle};
use h5live_format::{Addr, GlobalHeapCollection};
use h5live_swmr::ReaderMemory;
use parking_lot::Mutex;

use crate::Result;

/// The collections into which this session writes.
#[derive(Debug, Default)]
pub(crate) struct GlobalHeapWriter {
    /// The one that may have room.
    pub current: Option<Handle<GlobalHeapCollection>>,
    /// Those that may not have been flushed since they changed, and in which generation they did.
    changed: BTreeMap<EntryId, (u64, Handle<GlobalHeapCollection>)>,
    /// Grows with each flush of the whole file.
    generation: u64,
}

impl GlobalHeapWriter {
    /// Makes `parent`, which may hold elements that lead to heap objects, wait for the objects that were written
    /// lately.
    ///
    /// # Errors
    /// If the dependency would close a circle.
    pub fn add_parent(&self, cache: &Cache, parent: &dyn DependencyNode, kind: EdgeKind) -> Result<()> {
        for (_, collection) in self.changed.values() {
            cache.add_dependency(parent, collection, kind).map_err(h5live_cache::Error::from)?;
        }
        Ok(())
    }

    /// Collections with objects that were written lately.
    pub fn changed(&self) -> Vec<Handle<GlobalHeapCollection>> {
        self.changed.values().map(|(_, collection)| collection.clone()).collect()
    }

    /// A flush of the whole file begins. Returns what [`GlobalHeapWriter::end_flush`] takes.
    pub fn begin_flush(&mut self) -> u64 {
        self.generation += 1;
        self.generation
    }

    /// Ends the flush that began as `generation`: it has written everything that was put into heaps before it.
    pub fn end_flush(&mut self, generation: u64) {
        self.changed.retain(|_, (changed, _)| *changed >= generation);
    }

    /// An object was put into this collection.
    pub fn mark(&mut self, collection: Handle<GlobalHeapCollection>) {
        self.changed.insert(DependencyNode::id(&collection), (self.generation, collection));
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
    moment: u64,
    collections: Vec<(Addr, Arc<GlobalHeapCollection>)>,
}

impl ReaderMemory for GlobalHeapReader {
    fn forget(&self) {
        let mut kept = self.0.lock();
        kept.moment += 1;
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
    pub fn get(
        &self,
        at: Addr,
        read: impl FnOnce() -> h5live_cache::Result<GlobalHeapCollection>,
    ) -> h5live_cache::Result<Arc<GlobalHeapCollection>> {
        let moment = {
            let kept = self.0.lock();
            if let Some((_, collection)) = kept.collections.iter().find(|(addr, _)| *addr == at) {
                return Ok(collection.clone());
            }
            kept.moment
        };
        let collection = Arc::new(read()?);
        let mut kept = self.0.lock();
        // Pointers that another thread has read in between may lead to newer objects.
        if kept.moment == moment {
            if kept.collections.len() == MAX_CACHED_COLLECTIONS {
                kept.collections.remove(0);
            }
            kept.collections.push((at, collection.clone()));
        }
        Ok(collection)
    }

    /// Drops a collection, so that it is read again the next time.
    pub fn evict(&self, at: Addr) {
        self.0.lock().collections.retain(|(addr, _)| *addr != at);
    }
}
