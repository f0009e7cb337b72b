//! Entries by address: loading, adding, removing, evicting; and the joints between them.

mod broken_edges;
mod chain_flush;
mod dirty;
mod flush;
mod flush_order;
mod flush_step;
mod generation;
mod generation_state;
mod graph;
mod id_hasher;
mod in_place_publish;
mod owner_deps;
mod redo;
mod redo_state;
mod revalidate;
mod shard;

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use h5live_format::Addr;

use self::graph::EdgeLifetime;
use self::shard::EntryLookup;
pub use self::{
    flush::FlushPlan,
    flush_order::FlushScope,
    flush_step::FlushStep,
    in_place_publish::{EntryPatch, UnpublishedPart},
};
pub(crate) use self::{
    generation_state::GenerationPublisher,
    graph::SharedGraph,
    redo_state::RedoState,
    revalidate::ReadOrigin,
    shard::{EntryShard, shard_for},
};
use crate::{
    cache::Cache,
    dependency_node::DependencyNode,
    edge_kind::EdgeKind,
    entry::{Entry, Handle},
    entry_header::AnySlot,
    error::{DependencyCycle, Error},
    identity::{EntryId, Owner},
    primitive::atomic::{
        Ordering::{Release, SeqCst},
        fence,
    },
    reentry::{ReentryScope, enter, refuse},
    stats::count,
};

impl Cache {
    /// The entry at `addr`, which belongs to `owner`. If it is not cached, `read` reads and decodes it. If several
    /// threads miss the same entry, one reads, and the others wait for it. No lock is held while `read` runs. `read`
    /// must not load other entries: two that load each other would wait for ever.
    ///
    /// # Errors
    /// The error of `read`, after which the entry is not cached; [`Error::WrongType`] if the address is cached as
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
    /// [doubted](Cache::mark_owner_stale), and the file has the same bytes there, it is not made again.
    ///
    /// # Errors
    /// As [`Cache::load`]; those of [`Cache::read_block`].
    pub fn load_block<T: Entry, E: From<Error>>(
        &self,
        addr: Addr,
        owner: Owner,
        len: usize,
        decode: impl FnOnce(&[u8]) -> Result<T, E>,
    ) -> Result<Handle<T>, E> {
        let read = || {
            let bytes = self.read_block(addr, len)?;
            let value = decode(&bytes)?;
            Ok((value, self.ledger.doubts.is_tracked(owner).then(|| bytes.into_boxed_slice())))
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
        let shard = self.shard(addr);
        refuse(self, ReentryScope::Load, &[ReentryScope::Load]);
        match shard.get(addr) {
            Some(slot) if self.is_valid_for(&*slot, owner) || slot.head().owner == owner && confirm(&*slot) => {
                count(&shard.hits, 1);
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
            match shard.find(addr, owner) {
                EntryLookup::Cached(slot) if !self.is_valid_for(&*slot, owner) => {
                    if let Some(old) = shard.remove(addr) {
                        self.invalidate(&old);
                    }
                }
                EntryLookup::Cached(slot) => {
                    count(&shard.hits, 1);
                    return Ok(downcast_handle(addr, slot)?);
                }
                EntryLookup::Retry => {}
                EntryLookup::Missing(ticket) => {
                    count(&shard.misses, 1);
                    let since = self.is_read_only().then(|| self.ledger.doubts.now());
                    let (value, bytes) = {
                        let _inside = enter(self, ReentryScope::Load, &[]);
                        read()?
                    };
                    let origin = since.map_or_else(ReadOrigin::exclusive, |since| ReadOrigin::new(since, bytes));
                    let handle = self.new_handle(addr, owner, value, origin);
                    if !ticket.deliver(handle.as_any_slot()) {
                        handle.entry_header().invalidated.store(true, Release);
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
        let head = slot.head();
        !self.is_read_only() || head.owner == owner && !self.ledger.doubts.is_stale(owner, &head.origin)
    }

    /// Whether the file has the `len` bytes that an entry was made of, which may be old.
    fn has_same_bytes(&self, slot: &dyn AnySlot, len: usize) -> bool {
        let head = slot.head();
        let Some(before) = head.origin.bytes(len) else { return false };
        let since = self.ledger.doubts.now();
        let is_same = self.read_block(head.addr, len).is_ok_and(|bytes| bytes == before);
        if is_same {
            head.origin.revalidate(since);
        }
        is_same
    }

    /// The entry at `addr`, if it is cached, and not [doubted](Cache::mark_owner_stale).
    ///
    /// # Errors
    /// [`Error::WrongType`] if it is of another type.
    pub fn peek<T: Entry>(&self, addr: Addr) -> Result<Option<Handle<T>>, Error> {
        let good = self.shard(addr).get(addr).filter(|slot| self.is_valid_for(&**slot, slot.head().owner));
        good.map(|slot| downcast_handle(addr, slot)).transpose()
    }

    /// Adds a new, dirty structure. An entry that was cached at this address is forgotten, written or not.
    pub fn insert<T: Entry>(&self, addr: Addr, owner: Owner, value: T) -> Handle<T> {
        let handle = self.new_handle(addr, owner, value, ReadOrigin::exclusive());
        handle.entry_header().set_new();
        let shard = self.shard(addr);
        if let Some(old) = shard.put(handle.as_any_slot()) {
            self.invalidate(&old);
        }
        handle.touch();
        self.evict_excess(shard);
        handle
    }

    /// Adds what `take` takes out of an entry at another address, and forgets the entry: a structure that moves is not
    /// copied. Handles to it are left with what `take` leaves there.
    pub fn relocate<T: Entry>(&self, entry: &Handle<T>, to: Addr, take: impl FnOnce(&mut T) -> T) -> Handle<T> {
        let value = entry.take_value(take);
        self.remove(entry.addr());
        self.insert(to, entry.owner(), value)
    }

    /// Forgets the entry at `addr`, written or not, with its flush dependencies: the structure is no more.
    pub fn remove(&self, addr: Addr) {
        if let Some(old) = self.shard(addr).remove(addr) {
            self.invalidate(&old);
        }
    }

    /// As [`Cache::remove`], for a structure of `len` bytes whose space is freed: at once, if no flush has ever taken
    /// the structure.
    pub fn free(&self, addr: Addr, len: u64) {
        let old = self.shard(addr).remove(addr);
        let unwritten = old.as_ref().is_some_and(|old| old.head().is_new());
        old.iter().for_each(|old| self.invalidate(old));
        if unwritten {
            self.space.free_unwritten(addr, len);
        } else {
            self.space.free(addr, len);
        }
    }

    /// Forgets all clean entries of `owner`, and the results of loads under way. Later loads read from the file.
    /// Handles to the entries stay valid, with their old values.
    ///
    /// If the cache is open for writing, entries with handles and loads under way are kept. They may be about to
    /// change, and nobody else writes the file.
    pub fn evict_owner(&self, owner: Owner) {
        self.evict(Some(owner));
    }

    /// As [`Cache::evict_owner`], for the entries of all objects.
    pub fn evict_all(&self) {
        self.evict(None);
    }

    /// As [`Cache::evict_owner`], for a reader that expects few changes. Later loads give the present state of the
    /// file, but [`Cache::load_block`] keeps an entry whose bytes in the file are unchanged. From then on, these bytes
    /// are kept, too, and count as memory of the entry.
    pub fn mark_owner_stale(&self, owner: Owner) {
        match self.is_read_only() {
            true => self.ledger.doubts.mark_stale(owner),
            false => self.evict_owner(owner),
        }
    }

    fn evict(&self, owner: Option<Owner>) {
        let held_too = self.is_read_only();
        let of_header = owner.map(|owner| self.shard(owner.header()));
        // What the caller has seen of the file comes before the look at what is empty.
        fence(SeqCst);
        // Evicting a child lets go of its parent, so there may be more to evict then.
        let mut found = true;
        while found {
            found = false;
            for shard in self.shards.iter().filter(|shard| !shard.is_empty()) {
                let has_header = of_header.is_some_and(|of_header| std::ptr::eq(shard, of_header));
                let may_go = |slot: &_| Arc::strong_count(slot) == 1 || held_too && self.is_idle(slot);
                let evicted = shard.evict((owner, has_header), held_too, may_go);
                found |= !evicted.is_empty() && !held_too;
                evicted.iter().for_each(|slot| self.invalidate(slot));
            }
        }
    }

    fn is_idle(&self, slot: &Arc<dyn AnySlot>) -> bool {
        self.ledger.graph.lock().is_idle(slot.head().id)
    }

    /// Makes `parent` wait for `child`: while the child, or anything below it, is dirty, the parent is not written. A
    /// parent stays in memory.
    ///
    /// The edge lasts until [`Cache::remove_dependency`], or until the child is removed or evicted (a clean child may
    /// be evicted at any time). So an operation that changes an entry adds, in the same operation, all edges on the way
    /// from it to the topmost entry that must wait. Adding an edge again costs little.
    ///
    /// # Errors
    /// [`DependencyCycle`] if the child already waits for the parent, or is the parent.
    pub fn add_dependency<P, C>(&self, parent: &P, child: &C, kind: EdgeKind) -> Result<(), DependencyCycle>
    where
        P: DependencyNode + ?Sized,
        C: DependencyNode + ?Sized,
    {
        self.add_edge(parent, child, kind, EdgeLifetime::Removed)
    }

    /// As [`Cache::add_dependency`], but the edge ends as soon as a flush has written the present state of the child.
    /// So the parent waits for one change of the child, not for later ones. A change that will be made is announced
    /// before by [`Handle::touch`](crate::Handle::touch), because a flush that is under way may end in between.
    ///
    /// # Errors
    /// As [`Cache::add_dependency`].
    pub fn add_dependency_once<P, C>(&self, parent: &P, child: &C, kind: EdgeKind) -> Result<(), DependencyCycle>
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
    pub fn add_dependency_until_stored<P, C>(
        &self,
        parent: &P,
        child: &C,
        kind: EdgeKind,
    ) -> Result<(), DependencyCycle>
    where
        P: DependencyNode + ?Sized,
        C: DependencyNode + ?Sized,
    {
        self.add_edge(parent, child, kind, EdgeLifetime::Stored)
    }

    fn add_edge<P, C>(&self, parent: &P, child: &C, kind: EdgeKind, until: EdgeLifetime) -> Result<(), DependencyCycle>
    where
        P: DependencyNode + ?Sized,
        C: DependencyNode + ?Sized,
    {
        let mut graph = self.ledger.graph.lock();
        match graph.extend_edge(parent.id(), child.id(), kind, until) {
            true => Ok(()),
            false => graph.add_edge(&parent.node_ref(), &child.node_ref(), kind, until),
        }
    }

    /// Removes the flush dependencies between `parent` and `child`, if there are any.
    pub fn remove_dependency<P: DependencyNode + ?Sized, C: DependencyNode + ?Sized>(&self, parent: &P, child: &C) {
        self.ledger.graph.lock().remove_edges(parent.id(), child.id());
    }

    /// Keeps an entry in memory until as many calls of [`Cache::unpin`].
    pub fn pin<T: Entry>(&self, entry: &Handle<T>) {
        self.ledger.graph.lock().pin(&entry.as_any_slot());
    }

    /// Undoes one [`Cache::pin`].
    pub fn unpin(&self, entry: EntryId) {
        self.ledger.graph.lock().unpin(entry);
    }

    /// Hashes everything that is cached. For the model checker.
    #[doc(hidden)]
    pub fn hash_state(&self, state: &mut impl Hasher) {
        let is_good = |slot: &Arc<dyn AnySlot>| self.is_valid_for(&**slot, slot.head().owner);
        // What is doubted is as good as not cached: it is what would be made of the bytes that are found, or nothing.
        let mut slots: Vec<_> = self.shards.iter().flat_map(EntryShard::slots).filter(is_good).collect();
        slots.sort_unstable_by_key(|slot| slot.head().addr);
        for slot in slots {
            let image = slot.image(self.settings.widths).ok();
            (slot.head().addr, slot.head().owner, slot.type_name(), image).hash(state);
        }
    }

    /// Bytes in memory of all cached entries.
    pub fn weight(&self) -> usize {
        self.shards.iter().map(EntryShard::weight).sum()
    }

    fn new_handle<T: Entry>(&self, addr: Addr, owner: Owner, value: T, origin: ReadOrigin) -> Handle<T> {
        Handle::new(self.ledger.next_id(), addr, owner, Arc::clone(&self.ledger), (value, origin))
    }

    fn shard(&self, addr: Addr) -> &EntryShard {
        shard_for(&self.shards, addr)
    }

    fn invalidate(&self, slot: &Arc<dyn AnySlot>) {
        let mut graph = self.ledger.graph.lock();
        slot.head().invalidated.store(true, Release);
        graph.remove_node(slot.head().id);
    }

    fn evict_excess(&self, shard: &EntryShard) {
        let evicted = shard.sweep(self.settings.metadata_budget / self.shards.len());
        count(&self.stats.evictions, evicted.len() as u64);
        evicted.iter().for_each(|slot| self.invalidate(slot));
    }

    /// Forgets those entries at `addrs` that nobody has used since they were created. They were written because there
    /// were many, and new entries take their memory.
    fn evict_unused(&self, addrs: impl Iterator<Item = Addr>) {
        for slot in addrs.filter_map(|addr| self.shard(addr).take_unused(addr)) {
            count(&self.stats.evictions, 1);
            self.invalidate(&slot);
        }
    }
}

fn downcast_handle<T: Entry>(at: Addr, slot: Arc<dyn AnySlot>) -> Result<Handle<T>, Error> {
    match Handle::<T>::downcast(slot) {
        Ok(handle) => {
            handle.entry_header().mark_used();
            Ok(handle)
        }
        Err(cached) => Err(Error::WrongType { at, cached, wanted: std::any::type_name::<T>() }),
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
