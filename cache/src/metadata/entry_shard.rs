//! A part of the map from addresses to entries, with its own lock and its own clock hand.

use std::{
    collections::hash_map,
    hash::Hasher,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use h5live_format::Addr;
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use crate::{
    entry_header::AnySlot,
    entry_id::Owner,
    primitive::{
        Condvar, Mutex, RwLock,
        atomic::{AtomicBool, Ordering::SeqCst, fence},
    },
};

/// The one of several shards that is responsible for `addr`.
pub(crate) fn shard_for<S>(shards: &[S], addr: Addr) -> &S {
    let mut hasher = FxHasher::default();
    std::hash::Hash::hash(&addr, &mut hasher);
    // The top bits as a fraction of the number of shards.
    &shards[(((hasher.finish() >> 32) * shards.len() as u64) >> 32) as usize]
}

/// Entries that the clock hand may pass for each entry that is put in. If all may go, it passes each twice.
const EVICTION_STEPS_PER_ENTRY: usize = 8;

pub(crate) struct EntryShard {
    state: RwLock<EntryShardState>,
    /// Whether nothing is in it, nor about to be.
    is_empty: AtomicBool,
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
    /// Entries that the clock hand has passed.
    pub(super) eviction_steps: AtomicU64,
}

#[derive(Default)]
struct EntryShardState {
    entries: FxHashMap<Addr, EntryMapSlot>,
    /// The addresses of the entries that are ready.
    clock_ring: Vec<Addr>,
    clock_hand: usize,
    /// Entries that the clock hand may pass now. What cannot go, because it is dirty or held, is so looked at a limited
    /// number of times, however much of it there is.
    eviction_steps_left: usize,
    /// The addresses of those that are not at the address of their owner, by owner.
    addrs_by_owner: FxHashMap<Owner, SmallVec<[Addr; 2]>>,
    /// The addresses of loads under way, few at any time.
    loading: Vec<(Addr, Owner)>,
    weight: usize,
}

enum EntryMapSlot {
    Ready(CachedEntry),
    Loading(Arc<PendingLoad>),
}

struct CachedEntry {
    slot: Arc<dyn AnySlot>,
    /// Its part of the weight of the shard.
    weight: u32,
    /// Its place among those of its owner, if it is among them.
    owner_list_index: u32,
    /// Its place in the clock.
    ring_index: usize,
}

/// A load under way. Its result is cached only if the load is still in the map then.
struct PendingLoad {
    is_done: Mutex<bool>,
    changed: Condvar,
}

pub(super) enum EntryLookup<'a> {
    /// The entry is cached.
    Cached(Arc<dyn AnySlot>),
    /// Another thread's load has ended just now: look again.
    Retry,
    /// This thread is to load it.
    Missing(LoadTicket<'a>),
}

/// The right, and the duty, to load an entry. If it is dropped before the entry is there, other threads may try.
pub(super) struct LoadTicket<'a> {
    shard: &'a EntryShard,
    addr: Addr,
    pending: Arc<PendingLoad>,
    is_delivered: bool,
}

impl LoadTicket<'_> {
    /// Puts the entry into the map; returns whether the load still counts: meanwhile, the entry may have been
    /// replaced, removed or refreshed.
    pub(super) fn deliver(mut self, slot: Arc<dyn AnySlot>) -> bool {
        self.is_delivered = true;
        self.shard.complete_load(self.addr, &self.pending, Some(slot))
    }
}

impl Drop for LoadTicket<'_> {
    fn drop(&mut self) {
        if !self.is_delivered {
            self.shard.complete_load(self.addr, &self.pending, None);
        }
        *self.pending.is_done.lock() = true;
        self.pending.changed.notify_all();
    }
}

fn slot_memory_bytes(slot: &Arc<dyn AnySlot>) -> u32 {
    u32::try_from(slot.entry_header().weight.load(Relaxed)).unwrap_or(u32::MAX)
}

impl EntryShard {
    pub(crate) fn new() -> Self {
        EntryShard {
            state: RwLock::new(EntryShardState::default()),
            is_empty: AtomicBool::new(true),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            eviction_steps: AtomicU64::new(0),
        }
    }

    /// Changes the state, and makes known whether anything is left.
    fn with_state<R>(&self, change: impl FnOnce(&mut EntryShardState) -> R) -> R {
        let mut state = self.state.write();
        let done = change(&mut state);
        self.update_is_empty(&state);
        done
    }

    fn update_is_empty(&self, state: &EntryShardState) {
        self.is_empty.store(state.entries.is_empty(), Relaxed);
    }

    pub(super) fn get_slot(&self, addr: Addr) -> Option<Arc<dyn AnySlot>> {
        self.state.read().slot(addr).map(Arc::clone)
    }

    /// All entries that are ready.
    pub(super) fn all_slots(&self) -> Vec<Arc<dyn AnySlot>> {
        let state = self.state.read();
        state.clock_ring.iter().filter_map(|addr| state.slot(*addr)).map(Arc::clone).collect()
    }

    pub(super) fn find_or_begin_load(&self, addr: Addr, owner: Owner) -> EntryLookup<'_> {
        if let Some(slot) = self.get_slot(addr) {
            return EntryLookup::Cached(slot);
        }
        let mut state = self.state.write();
        let EntryShardState { entries, loading, .. } = &mut *state;
        let pending = match entries.entry(addr) {
            hash_map::Entry::Occupied(there) => match there.get() {
                EntryMapSlot::Ready(ready) => return EntryLookup::Cached(Arc::clone(&ready.slot)),
                EntryMapSlot::Loading(pending) => Arc::clone(pending),
            },
            hash_map::Entry::Vacant(free) => {
                let pending = Arc::new(PendingLoad { is_done: Mutex::new(false), changed: Condvar::new() });
                free.insert(EntryMapSlot::Loading(Arc::clone(&pending)));
                loading.push((addr, owner));
                self.is_empty.store(false, Relaxed);
                // A thread that finds the shard empty, after a fence, has seen nothing newer before than this thread
                // will read.
                fence(SeqCst);
                return EntryLookup::Missing(LoadTicket { shard: self, addr, pending, is_delivered: false });
            }
        };
        drop(state);
        let mut is_done = pending.is_done.lock();
        while !*is_done {
            pending.changed.wait(&mut is_done);
        }
        EntryLookup::Retry
    }

    fn complete_load(&self, addr: Addr, pending: &Arc<PendingLoad>, slot: Option<Arc<dyn AnySlot>>) -> bool {
        self.with_state(|state| {
            let expected =
                matches!(state.entries.get(&addr), Some(EntryMapSlot::Loading(f)) if Arc::ptr_eq(f, pending));
            match slot {
                Some(slot) if expected => {
                    state.loading.retain(|(at, _)| *at != addr);
                    state.insert_slot(slot);
                }
                None if expected => drop(state.remove_ready(addr)),
                _ => {}
            }
            expected
        })
    }

    /// Puts an entry in; returns the one that was there.
    pub(super) fn insert_slot(&self, slot: Arc<dyn AnySlot>) -> Option<Arc<dyn AnySlot>> {
        self.with_state(|state| {
            let old = state.remove_ready(slot.entry_header().addr);
            state.insert_slot(slot);
            old
        })
    }

    pub(super) fn remove_slot(&self, addr: Addr) -> Option<Arc<dyn AnySlot>> {
        self.with_state(|state| state.remove_ready(addr))
    }

    /// Takes out an entry that nobody holds and that has not been used.
    pub(super) fn take_unused(&self, addr: Addr) -> Option<Arc<dyn AnySlot>> {
        let is_unused = |slot: &Arc<dyn AnySlot>| Arc::strong_count(slot) == 1 && !slot.entry_header().is_used();
        self.with_state(|state| if state.slot(addr).is_some_and(is_unused) { state.remove_ready(addr) } else { None })
    }

    /// Whether nothing is in it, nor about to be that may have been read before a [fence] that came before this.
    pub(super) fn is_empty(&self) -> bool {
        self.is_empty.load(Relaxed)
    }

    /// Takes out the entries of `owner`, or of all, that `may_go`. If `loads_too`, what loads under way will bring
    /// does not count either. `has_header` says whether this is the shard of the owner's own address.
    pub(super) fn evict_matching(
        &self,
        (owner, has_header): (Option<Owner>, bool),
        loads_too: bool,
        may_go: impl Fn(&Arc<dyn AnySlot>) -> bool,
    ) -> Vec<Arc<dyn AnySlot>> {
        let mut state = self.state.write();
        let of_owner = |of: &Owner| owner.is_none_or(|owner| *of == owner);
        let loading: Vec<Addr> =
            state.loading.iter().filter(|(_, of)| loads_too && of_owner(of)).map(|(at, _)| *at).collect();
        loading.into_iter().for_each(|addr| drop(state.remove_ready(addr)));
        let mut chosen = Vec::new();
        match owner {
            None => chosen.extend_from_slice(&state.clock_ring),
            Some(owner) => {
                if has_header
                    && state.slot(owner.object_header_addr()).is_some_and(|slot| slot.entry_header().owner == owner)
                {
                    chosen.push(owner.object_header_addr());
                }
                state.addrs_by_owner.get(&owner).into_iter().for_each(|owned| chosen.extend_from_slice(owned));
            }
        }
        if chosen.is_empty() {
            self.update_is_empty(&state);
            return Vec::new();
        }
        let goes = |state: &EntryShardState, addr: &Addr| state.slot(*addr).is_some_and(&may_go);
        let gone = chosen
            .into_iter()
            .filter_map(|addr| goes(&state, &addr).then(|| state.remove_ready(addr)).flatten())
            .collect();
        self.update_is_empty(&state);
        gone
    }

    /// Takes out entries that nobody holds and that have not been used lately, until the rest fits `budget` bytes. It
    /// looks at [`EVICTION_STEPS_PER_ENTRY`] entries for each one that was put in: where most could not go until now,
    /// several calls reach the budget.
    pub(super) fn evict_to_budget(&self, budget: usize) -> Vec<Arc<dyn AnySlot>> {
        if self.state.read().weight <= budget {
            return Vec::new();
        }
        let mut state = self.state.write();
        let mut evicted = Vec::new();
        let steps_before = state.eviction_steps_left;
        while state.weight > budget && state.eviction_steps_left > 0 && !state.clock_ring.is_empty() {
            state.eviction_steps_left -= 1;
            let hand = if state.clock_hand < state.clock_ring.len() { state.clock_hand } else { 0 };
            state.clock_hand = hand + 1;
            let addr = state.clock_ring[hand];
            if state.age_entry(addr) {
                evicted.extend(state.remove_ready(addr));
                state.clock_hand = hand;
            }
        }
        self.eviction_steps.fetch_add((steps_before - state.eviction_steps_left) as u64, Relaxed);
        self.update_is_empty(&state);
        evicted
    }

    /// Loads that found the entry, and loads that had to read.
    pub(crate) fn hit_and_miss_counts(&self) -> (u64, u64) {
        (self.hits.load(Relaxed), self.misses.load(Relaxed))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.state.read().weight
    }
}

impl EntryShardState {
    fn slot(&self, addr: Addr) -> Option<&Arc<dyn AnySlot>> {
        match self.entries.get(&addr) {
            Some(EntryMapSlot::Ready(ready)) => Some(&ready.slot),
            _ => None,
        }
    }

    fn ready_entry_mut(&mut self, addr: Addr) -> Option<&mut CachedEntry> {
        match self.entries.get_mut(&addr) {
            Some(EntryMapSlot::Ready(ready)) => Some(ready),
            _ => None,
        }
    }

    fn insert_slot(&mut self, slot: Arc<dyn AnySlot>) {
        let (addr, owner, weight) = (slot.entry_header().addr, slot.entry_header().owner, slot_memory_bytes(&slot));
        self.weight += weight as usize;
        let mut owner_list_index = 0;
        if is_owned(addr, owner) {
            let owned = self.addrs_by_owner.entry(owner).or_default();
            owner_list_index = owned.len() as u32;
            owned.push(addr);
        }
        let ring_index = self.clock_ring.len();
        self.clock_ring.push(addr);
        self.eviction_steps_left = (self.eviction_steps_left + EVICTION_STEPS_PER_ENTRY).min(2 * self.clock_ring.len());
        self.entries.insert(addr, EntryMapSlot::Ready(CachedEntry { slot, weight, ring_index, owner_list_index }));
    }

    /// Empties an address; returns the entry that was ready there.
    fn remove_ready(&mut self, addr: Addr) -> Option<Arc<dyn AnySlot>> {
        let ready = match self.entries.remove(&addr)? {
            EntryMapSlot::Ready(ready) => ready,
            EntryMapSlot::Loading(_) => {
                self.loading.retain(|(at, _)| *at != addr);
                return None;
            }
        };
        let CachedEntry { slot, weight, ring_index, owner_list_index } = ready;
        self.clock_ring.swap_remove(ring_index);
        self.weight -= weight as usize;
        if let Some(moved) = self.clock_ring.get(ring_index).copied()
            && let Some(moved) = self.ready_entry_mut(moved)
        {
            moved.ring_index = ring_index;
        }
        let owner = slot.entry_header().owner;
        if is_owned(addr, owner)
            && let hash_map::Entry::Occupied(mut owned) = self.addrs_by_owner.entry(owner)
        {
            owned.get_mut().swap_remove(owner_list_index as usize);
            let moved = owned.get().get(owner_list_index as usize).and_then(|at| self.entries.get_mut(at));
            if let Some(EntryMapSlot::Ready(moved)) = moved {
                moved.owner_list_index = owner_list_index;
            }
            if owned.get().is_empty() {
                owned.remove();
            }
        }
        Some(slot)
    }

    /// The clock hand passes an entry: its weight is computed again, and it is marked as not used lately. Returns
    /// whether it was marked already, and nobody holds it.
    fn age_entry(&mut self, addr: Addr) -> bool {
        let EntryShardState { entries, weight, .. } = self;
        let Some(EntryMapSlot::Ready(ready)) = entries.get_mut(&addr) else { return false };
        let now = slot_memory_bytes(&ready.slot);
        *weight = *weight - ready.weight as usize + now as usize;
        ready.weight = now;
        !ready.slot.entry_header().take_used_flag() && Arc::strong_count(&ready.slot) == 1
    }
}

/// Whether an entry is found by its owner alone in a list: the header is where its owner says.
fn is_owned(addr: Addr, owner: Owner) -> bool {
    owner.object_header_addr() != addr
}
