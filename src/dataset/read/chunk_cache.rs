//! Decoded chunks, kept for reads of their other parts.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use h5live_model::{ChunkCoord, ObjectId};

use super::primitive::{AtomicU64, Mutex};

type CacheKey = (ObjectId, ChunkCoord);

/// Decoded chunks within a budget of bytes; the one not used for longest goes first.
#[derive(Debug)]
pub(crate) struct ChunkCache {
    budget_bytes: usize,
    /// The chunks, which may be those of several files.
    state: Arc<Mutex<ChunkCacheState>>,
    /// Chunks that were there when they were needed.
    pub(crate) hits: AtomicU64,
    /// Chunks that were not.
    pub(crate) misses: AtomicU64,
    /// Chunks of a live file, one after the other, that did not decode however long it was waited for their writer.
    waits_in_vain: AtomicU64,
}

/// At most this many chunks are waited for in one file, 51 milliseconds each. A damaged chunk stays damaged.
const WAITED_FOR: u64 = 16;

#[derive(Debug, Default)]
struct ChunkCacheState {
    chunks: HashMap<CacheKey, CachedChunk>,
    /// Keys by the time of their last use.
    ages: BTreeMap<u64, CacheKey>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct CachedChunk {
    bytes: Arc<Vec<u8>>,
    age: u64,
}

impl ChunkCache {
    pub(crate) fn new(budget: usize) -> Self {
        let [hits, misses, vain] = [0; 3].map(AtomicU64::new);
        ChunkCache {
            budget_bytes: budget,
            state: Arc::new(Mutex::new(ChunkCacheState::default())),
            hits,
            misses,
            waits_in_vain: vain,
        }
    }

    /// A cache with the same chunks, for another file: as many bytes of them as this one may have, and `budget`.
    pub(crate) fn with_same_chunks(&self, budget: usize) -> Self {
        ChunkCache { state: self.state.clone(), ..ChunkCache::new(budget.min(self.budget_bytes)) }
    }

    /// Bytes of the chunks, those of other files among them.
    pub(crate) fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// Whether a chunk that does not decode may do so later.
    pub(crate) fn is_worth_waiting(&self) -> bool {
        self.waits_in_vain.load(Ordering::Relaxed) < WAITED_FOR
    }

    /// Notes that a chunk was waited for this many times, and whether it could be decoded then.
    pub(crate) fn record_waits(&self, waits: u32, is_decoded: bool) {
        match (waits, is_decoded) {
            (0, _) => {}
            (_, true) => self.waits_in_vain.store(0, Ordering::Relaxed),
            (_, false) => {
                self.waits_in_vain.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Whether a chunk of this many bytes may be kept.
    pub(crate) fn fits_budget(&self, bytes: usize) -> bool {
        bytes <= self.budget_bytes / 2
    }

    pub(crate) fn get(&self, id: ObjectId, coord: &ChunkCoord) -> Option<Arc<Vec<u8>>> {
        let found = self.find_uncounted(id, coord);
        let count = if found.is_some() { &self.hits } else { &self.misses };
        count.fetch_add(1, Ordering::Relaxed);
        found
    }

    fn find_uncounted(&self, id: ObjectId, coord: &ChunkCoord) -> Option<Arc<Vec<u8>>> {
        let mut state = self.state.lock();
        let state = &mut *state;
        if state.chunks.is_empty() {
            return None;
        }
        let key = (id, coord.clone());
        let entry = state.chunks.get_mut(&key)?;
        state.ages.remove(&entry.age);
        state.clock += 1;
        entry.age = state.clock;
        state.ages.insert(entry.age, key);
        Some(entry.bytes.clone())
    }

    /// Keeps a chunk, unless `is_old` says that it was changed since it was read. A writer of a chunk makes `is_old`
    /// return `true` before it removes the chunk from here. So nobody reads the old contents.
    pub(crate) fn insert(&self, id: ObjectId, coord: &ChunkCoord, bytes: Arc<Vec<u8>>, is_old: impl FnOnce() -> bool) {
        if !self.fits_budget(bytes.len()) {
            return;
        }
        let mut state = self.state.lock();
        if is_old() {
            return;
        }
        state.remove(&(id, coord.clone()));
        state.clock += 1;
        let age = state.clock;
        state.bytes += bytes.len();
        state.ages.insert(age, (id, coord.clone()));
        state.chunks.insert((id, coord.clone()), CachedChunk { bytes, age });
        while state.bytes > self.budget_bytes {
            let Some((_, oldest)) = state.ages.pop_first() else { break };
            if let Some(entry) = state.chunks.remove(&oldest) {
                state.bytes -= entry.bytes.len();
            }
        }
    }

    pub(crate) fn remove(&self, id: ObjectId, coord: &ChunkCoord) {
        let mut state = self.state.lock();
        if !state.chunks.is_empty() {
            state.remove(&(id, coord.clone()));
        }
    }

    /// Forgets every chunk of a dataset.
    pub(crate) fn forget_dataset(&self, id: ObjectId) {
        let mut state = self.state.lock();
        let keys: Vec<CacheKey> = state.chunks.keys().filter(|(of, _)| *of == id).cloned().collect();
        keys.iter().for_each(|key| state.remove(key));
    }
}

impl ChunkCacheState {
    fn remove(&mut self, key: &CacheKey) {
        if let Some(entry) = self.chunks.remove(key) {
            self.ages.remove(&entry.age);
            self.bytes -= entry.bytes.len();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn chunks_that_never_decode_are_waited_for_until_there_were_many() {
        let cache = ChunkCache::new(30);
        for _ in 0..2 {
            for _ in 0..WAITED_FOR {
                assert!(cache.is_worth_waiting());
                cache.record_waits(8, false);
            }
            assert!(!cache.is_worth_waiting());
            cache.record_waits(0, true);
            assert!(!cache.is_worth_waiting(), "that says nothing of waiting");
            cache.record_waits(1, true);
        }
        assert!(cache.is_worth_waiting());
    }

    #[test]
    fn the_oldest_goes_first_and_the_budget_holds() {
        let cache = ChunkCache::new(30);
        let at = |i: u64| ChunkCoord::new(&[i]);
        let id = ObjectId(1);
        for i in 0..3 {
            cache.insert(id, &at(i), Arc::new(vec![i as u8; 10]), || false);
        }
        assert!(cache.get(id, &at(0)).is_some());
        cache.insert(id, &at(3), Arc::new(vec![3; 10]), || false);
        assert!(cache.get(id, &at(1)).is_none(), "used before the others");
        assert_eq!(*cache.get(id, &at(0)).unwrap(), [0; 10]);
        cache.insert(id, &at(4), Arc::new(vec![4; 16]), || false);
        assert!(cache.get(id, &at(4)).is_none(), "larger than half the budget");
        cache.insert(id, &at(5), Arc::new(vec![5; 1]), || true);
        assert!(cache.get(id, &at(5)).is_none(), "changed since it was read");
        cache.forget_dataset(id);
        assert!(cache.get(id, &at(0)).is_none());
        assert_eq!(cache.state.lock().bytes, 0);
    }
}
