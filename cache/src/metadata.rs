//! Entries by address: loading, adding, removing, evicting; and the joints between them.

mod dirty_entries;
mod entry_images;
mod entry_shard;
mod flush;
mod flush_order;
mod flush_step;
mod generation;
mod generation_state;
mod graph;
mod id_hasher;
mod in_place_publish;
mod mutant_violated_edges;
mod owner_deps;
mod parent_edges;
mod redo;
mod redo_state;
mod revalidate;

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use h5live_format::Addr;

use self::entry_shard::EntryLookup;
use self::parent_edges::EdgeLifetime;
pub(crate) use self::{
    entry_images::EntryImages,
    entry_shard::{EntryShard, shard_for},
    generation_state::GenerationPublisher,
    graph::SharedGraph,
    redo_state::RedoState,
    revalidate::ReadOrigin,
};
pub use self::{
    entry_images::ImageRange,
    flush::PendingFlush,
    flush_order::FlushScope,
    flush_step::FlushStep,
    in_place_publish::{EntryPatch, UnpublishedChunkData},
};
use crate::{
    cache::Cache,
    cache_counters::add_to_counter,
    dependency_kind::DependencyKind,
    dependency_node::DependencyNode,
    entry::{Entry, Handle},
    entry_header::AnySlot,
    entry_id::{EntryId, Owner},
    error::{DependencyCycle, Error},
    primitive::atomic::{
        Ordering::{Release, SeqCst},
        fence,
    },
    reentry::{ReentryScope, assert_not_inside, enter_scope},
};

impl Cache {
    /// The entry at `addr`, which belongs to `owner`. If it is not cached, `read` reads and decodes it. If several
    /// threads miss the same entry, one reads, and the others wait for it. No lock is held while `read` runs. `read`
    /// must not load other entries: two that load each other would wait for ever.
    ///
    /// # Errors
    /// The error of `read`, after which the entry is not cached; [`Error::WrongEntryType`] if the address is cached as
    /// another type.
    pub fn load<T: Entry, E: From<Error>>(
        &self,
        addr: Addr,
        owner: Owner,
        read: impl FnOnce() -> Result<T, E>,
    ) -> Result<Handle<T>, E> {
        self.load_revalidated(addr, owner, |_| false, || Ok((read()?, None)))
    }

    /// As [`Cache::load`], of a structure that `decode` makes of the `len` bytes at `addr`. If it was
    /// [doubted](Cache::revalidate_owner_on_load), and the file has the same bytes there, it is not made again.
    ///
    /// # Errors
    /// As [`Cache::load`]; those of [`Cache::read_block_uncached`].
    pub fn load_block<T: Entry, E: From<Error>>(
        &self,
        addr: Addr,
        owner: Owner,
        len: usize,
        decode: impl FnOnce(&[u8]) -> Result<T, E>,
    ) -> Result<Handle<T>, E> {
        let read = || {
            let bytes = self.read_block_uncached(addr, len)?;
            let value = decode(&bytes)?;
            Ok((value, self.shared_graph.stale_owners.is_tracked(owner).then(|| bytes.into_boxed_slice())))
        };
        self.load_revalidated(addr, owner, |slot| self.has_same_bytes(slot, len), read)
    }

    /// As [`Cache::load`], of an entry that is good also if `confirm` says so; `read` may return the bytes to be kept
    /// for that.
    fn load_revalidated<T: Entry, E: From<Error>>(
        &self,
        addr: Addr,
        owner: Owner,
        confirm: impl FnOnce(&dyn AnySlot) -> bool,
        read: impl FnOnce() -> Result<(T, Option<Box<[u8]>>), E>,
    ) -> Result<Handle<T>, E> {
        let shard = self.shard_of(addr);
        assert_not_inside(self, ReentryScope::Load, &[ReentryScope::Load]);
        match shard.get_slot(addr) {
            Some(slot) if self.is_valid_for(&*slot, owner) || slot.entry_header().owner == owner && confirm(&*slot) => {
                add_to_counter(&shard.hits, 1);
                Ok(downcast_handle(addr, slot)?)
            }
            _ => self.load_missing(shard, (addr, owner), read),
        }
    }

    /// As [`Cache::load`], of an entry that was not there just now.
    fn load_missing<T: Entry, E: From<Error>>(
        &self,
        shard: &EntryShard,
        (addr, owner): (Addr, Owner),
        read: impl FnOnce() -> Result<(T, Option<Box<[u8]>>), E>,
    ) -> Result<Handle<T>, E> {
        loop {
            match shard.find_or_begin_load(addr, owner) {
                EntryLookup::Cached(slot) if !self.is_valid_for(&*slot, owner) => {
                    if let Some(old) = shard.remove_slot(addr) {
                        self.invalidate_slot(&old);
                    }
                }
                EntryLookup::Cached(slot) => {
                    add_to_counter(&shard.hits, 1);
                    return Ok(downcast_handle(addr, slot)?);
                }
                EntryLookup::Retry => {}
                EntryLookup::Missing(ticket) => {
                    add_to_counter(&shard.misses, 1);
                    let since = self.is_read_only().then(|| self.shared_graph.stale_owners.current_epoch());
                    let (value, bytes) = {
                        let _inside = enter_scope(self, ReentryScope::Load, &[]);
                        read()?
                    };
                    let origin = since.map_or_else(ReadOrigin::exclusive, |since| ReadOrigin::from_file(since, bytes));
                    let handle = self.new_handle(addr, owner, value, origin);
                    if !ticket.deliver(handle.as_any_slot()) {
                        handle.entry_header().is_invalidated.store(true, Release);
                    }
                    self.evict_excess(shard);
                    return Ok(handle);
                }
            }
        }
    }

    /// Whether the cached entry is the structure that `owner` has there. While others write the file, space may come to
    /// belong to another object.
    #[inline]
    fn is_valid_for(&self, slot: &dyn AnySlot, owner: Owner) -> bool {
        let head = slot.entry_header();
        !self.is_read_only() || head.owner == owner && !self.shared_graph.stale_owners.is_stale(owner, &head.origin)
    }

    /// Whether the file has the `len` bytes that an entry was made of, which may be old.
    fn has_same_bytes(&self, slot: &dyn AnySlot, len: usize) -> bool {
        let head = slot.entry_header();
        let Some(before) = head.origin.bytes(len) else { return false };
        let since = self.shared_graph.stale_owners.current_epoch();
        let is_same = self.read_block_uncached(head.addr, len).is_ok_and(|bytes| bytes == before);
        if is_same {
            head.origin.set_read_epoch(since);
        }
        is_same
    }

    /// The entry at `addr`, if it is cached, and not [doubted](Cache::revalidate_owner_on_load).
    ///
    /// # Errors
    /// [`Error::WrongEntryType`] if it is of another type.
    pub fn get_cached<T: Entry>(&self, addr: Addr) -> Result<Option<Handle<T>>, Error> {
        let good =
            self.shard_of(addr).get_slot(addr).filter(|slot| self.is_valid_for(&**slot, slot.entry_header().owner));
        good.map(|slot| downcast_handle(addr, slot)).transpose()
    }

    /// Adds a new, dirty structure. An entry that was cached at this address is forgotten, written or not.
    pub fn insert_entry<T: Entry>(&self, addr: Addr, owner: Owner, value: T) -> Handle<T> {
        let handle = self.new_handle(addr, owner, value, ReadOrigin::exclusive());
        handle.entry_header().set_new();
        let shard = self.shard_of(addr);
        if let Some(old) = shard.insert_slot(handle.as_any_slot()) {
            self.invalidate_slot(&old);
        }
        handle.mark_dirty();
        self.evict_excess(shard);
        handle
    }

    /// Adds what `take` takes out of an entry at another address, and forgets the entry: a structure that moves is not
    /// copied. Handles to it are left with what `take` leaves there.
    pub fn relocate_entry<T: Entry>(&self, entry: &Handle<T>, to: Addr, take: impl FnOnce(&mut T) -> T) -> Handle<T> {
        let value = entry.take_value(take);
        self.forget_entry(entry.addr());
        self.insert_entry(to, entry.owner(), value)
    }

    /// Forgets the entry at `addr`, written or not, with its flush dependencies: the structure is no more.
    pub fn forget_entry(&self, addr: Addr) {
        if let Some(old) = self.shard_of(addr).remove_slot(addr) {
            self.invalidate_slot(&old);
        }
    }

    /// As [`Cache::forget_entry`], for a structure of `len` bytes whose space is freed: at once, if no flush has ever taken
    /// the structure.
    pub fn free_structure(&self, addr: Addr, len: u64) {
        let old = self.shard_of(addr).remove_slot(addr);
        let unwritten = old.as_ref().is_some_and(|old| old.entry_header().is_new());
        old.iter().for_each(|old| self.invalidate_slot(old));
        if unwritten {
            self.space.free_unwritten(addr, len);
        } else {
            self.space.free_metadata_after_full_flush(addr, len);
        }
    }

    /// Forgets all clean entries of `owner`, and the results of loads under way. Later loads read from the file.
    /// Handles to the entries stay valid, with their old values.
    ///
    /// If the cache is open for writing, entries with handles and loads under way are kept. They may be about to
    /// change, and nobody else writes the file.
    pub fn evict_owner(&self, owner: Owner) {
        self.evict_entries(Some(owner));
    }

    /// As [`Cache::evict_owner`], for the entries of all objects.
    pub fn evict_all(&self) {
        self.evict_entries(None);
    }

    /// As [`Cache::evict_owner`], for a reader that expects few changes. Later loads give the present state of the
    /// file, but [`Cache::load_block`] keeps an entry whose bytes in the file are unchanged. From then on, these bytes
    /// are kept, too, and count as memory of the entry.
    pub fn revalidate_owner_on_load(&self, owner: Owner) {
        match self.is_read_only() {
            true => self.shared_graph.stale_owners.mark_stale(owner),
            false => self.evict_owner(owner),
        }
    }

    /// As [`Cache::revalidate_owner_on_load`] if the header of `owner` is cached, and as [`Cache::evict_owner`] otherwise: of
    /// objects that are looked at once, nothing is kept.
    pub fn evict_or_revalidate_on_load(&self, owner: Owner) {
        match self.shard_of(owner.object_header_addr()).get_slot(owner.object_header_addr()) {
            Some(_) => self.revalidate_owner_on_load(owner),
            None => self.evict_owner(owner),
        }
    }

    fn evict_entries(&self, owner: Option<Owner>) {
        let held_too = self.is_read_only();
        let of_header = owner.map(|owner| self.shard_of(owner.object_header_addr()));
        // What the caller has seen of the file comes before the look at what is empty.
        fence(SeqCst);
        // Evicting a child lets go of its parent, so there may be more to evict then.
        let mut found = true;
        while found {
            found = false;
            for shard in self.shards.iter().filter(|shard| !shard.is_empty()) {
                let has_header = of_header.is_some_and(|of_header| std::ptr::eq(shard, of_header));
                let may_go = |slot: &_| Arc::strong_count(slot) == 1 || held_too && self.is_evictable(slot);
                let evicted = shard.evict_matching((owner, has_header), held_too, may_go);
                found |= !evicted.is_empty() && !held_too;
                evicted.iter().for_each(|slot| self.invalidate_slot(slot));
            }
        }
    }

    fn is_evictable(&self, slot: &Arc<dyn AnySlot>) -> bool {
        self.shared_graph.graph.lock().is_idle(slot.entry_header().id)
    }

    /// Makes `parent` wait for `child`: while the child, or anything below it, is dirty, the parent is not written. A
    /// parent stays in memory.
    ///
    /// The edge lasts until [`Cache::remove_dependencies`], or until the child is removed or evicted (a clean child may
    /// be evicted at any time). So an operation that changes an entry adds, in the same operation, all edges on the way
    /// from it to the topmost entry that must wait. Adding an edge again costs little.
    ///
    /// # Errors
    /// [`DependencyCycle`] if the child already waits for the parent, or is the parent.
    pub fn add_dependency<P, C>(&self, parent: &P, child: &C, kind: DependencyKind) -> Result<(), DependencyCycle>
    where
        P: DependencyNode + ?Sized,
        C: DependencyNode + ?Sized,
    {
        self.add_edge(parent, child, kind, EdgeLifetime::Removed)
    }

    /// As [`Cache::add_dependency`], but the edge ends as soon as a flush has written the present state of the child.
    /// So the parent waits for one change of the child, not for later ones. A change that will be made is announced
    /// before by [`Handle::mark_dirty`](crate::Handle::mark_dirty), because a flush that is under way may end in between.
    ///
    /// # Errors
    /// As [`Cache::add_dependency`].
    pub fn add_dependency_until_clean<P, C>(
        &self,
        parent: &P,
        child: &C,
        kind: DependencyKind,
    ) -> Result<(), DependencyCycle>
    where
        P: DependencyNode + ?Sized,
        C: DependencyNode + ?Sized,
    {
        self.add_edge(parent, child, kind, EdgeLifetime::Written)
    }

    /// As [`Cache::add_dependency`], but the edge ends as soon as a flush has written the child, which is new, in any
    /// state. The parent only leads to it.
    ///
    /// # Errors
    /// As [`Cache::add_dependency`].
    pub fn add_dependency_until_first_write<P, C>(
        &self,
        parent: &P,
        child: &C,
        kind: DependencyKind,
    ) -> Result<(), DependencyCycle>
    where
        P: DependencyNode + ?Sized,
        C: DependencyNode + ?Sized,
    {
        self.add_edge(parent, child, kind, EdgeLifetime::Stored)
    }

    fn add_edge<P, C>(
        &self,
        parent: &P,
        child: &C,
        kind: DependencyKind,
        until: EdgeLifetime,
    ) -> Result<(), DependencyCycle>
    where
        P: DependencyNode + ?Sized,
        C: DependencyNode + ?Sized,
    {
        let mut graph = self.shared_graph.graph.lock();
        match graph.extend_edge(parent.id(), child.id(), kind, until) {
            true => Ok(()),
            false => graph.add_edge(&parent.node_ref(), &child.node_ref(), kind, until),
        }
    }

    /// Removes the flush dependencies between `parent` and `child`, if there are any.
    pub fn remove_dependencies<P: DependencyNode + ?Sized, C: DependencyNode + ?Sized>(&self, parent: &P, child: &C) {
        self.shared_graph.graph.lock().remove_edges(parent.id(), child.id());
    }

    /// Keeps an entry in memory until as many calls of [`Cache::unpin_entry`].
    pub fn pin_entry<T: Entry>(&self, entry: &Handle<T>) {
        self.shared_graph.graph.lock().pin_entry(&entry.as_any_slot());
    }

    /// Undoes one [`Cache::pin_entry`].
    pub fn unpin_entry(&self, entry: EntryId) {
        self.shared_graph.graph.lock().unpin_entry(entry);
    }

    /// Hashes everything that is cached. For the model checker.
    #[doc(hidden)]
    pub fn hash_state(&self, state: &mut impl Hasher) {
        let is_good = |slot: &Arc<dyn AnySlot>| self.is_valid_for(&**slot, slot.entry_header().owner);
        // What is doubted is as good as not cached: it is what would be made of the bytes that are found, or nothing.
        let mut slots: Vec<_> = self.shards.iter().flat_map(EntryShard::all_slots).filter(is_good).collect();
        slots.sort_unstable_by_key(|slot| slot.entry_header().addr);
        for slot in slots {
            let image = slot.encode_image(self.options.widths).ok();
            (slot.entry_header().addr, slot.entry_header().owner, slot.type_name(), image).hash(state);
        }
    }

    /// Bytes in memory of all cached entries.
    pub fn metadata_memory_bytes(&self) -> usize {
        self.shards.iter().map(EntryShard::memory_bytes).sum()
    }

    fn new_handle<T: Entry>(&self, addr: Addr, owner: Owner, value: T, origin: ReadOrigin) -> Handle<T> {
        Handle::new(self.shared_graph.next_id(), addr, owner, Arc::clone(&self.shared_graph), (value, origin))
    }

    fn shard_of(&self, addr: Addr) -> &EntryShard {
        shard_for(&self.shards, addr)
    }

    fn invalidate_slot(&self, slot: &Arc<dyn AnySlot>) {
        let mut graph = self.shared_graph.graph.lock();
        slot.entry_header().is_invalidated.store(true, Release);
        graph.remove_node(slot.entry_header().id);
    }

    fn evict_excess(&self, shard: &EntryShard) {
        let evicted = shard.evict_to_budget(self.options.metadata_budget_bytes / self.shards.len());
        add_to_counter(&self.counters.evictions, evicted.len() as u64);
        evicted.iter().for_each(|slot| self.invalidate_slot(slot));
    }

    /// Forgets those entries at `addrs` that nobody has used since they were created. They were written because there
    /// were many, and new entries take their memory.
    fn evict_unused(&self, addrs: impl Iterator<Item = Addr>) {
        for slot in addrs.filter_map(|addr| self.shard_of(addr).take_unused(addr)) {
            add_to_counter(&self.counters.evictions, 1);
            self.invalidate_slot(&slot);
        }
    }
}

fn downcast_handle<T: Entry>(at: Addr, slot: Arc<dyn AnySlot>) -> Result<Handle<T>, Error> {
    match Handle::<T>::downcast(slot) {
        Ok(handle) => {
            handle.entry_header().mark_used();
            Ok(handle)
        }
        Err(cached) => Err(Error::WrongEntryType { at, cached, wanted: std::any::type_name::<T>() }),
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
