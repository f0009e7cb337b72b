//! The flush of a chain: a few new entries, and a few changed ones, each of which waits for the one before. Nothing
//! else must be written. It does the same as a plan, in less time. Most flushes of a growing object are chains.

use std::{cmp::Reverse, sync::Arc};

use smallvec::SmallVec;

use super::flush_order::FlushScope;
use super::graph::{DependencyGraph, NodeContent};
use super::redo::is_within_page;
use crate::{
    cache::Cache,
    cache_counters::add_to_counter,
    entry_header::{AnySlot, EntryHeader},
    entry_id::{EntryId, Owner},
    error::{Error, Result, StorageAction},
    raw_data::MergedWrites,
    reentry::{ReentryScope, enter_scope},
};

/// Entries of the longest chain.
const MAX_CHAIN_ENTRIES: usize = 8;

/// Entries in the order in which they are written.
type EntryChain = SmallVec<[Arc<dyn AnySlot>; MAX_CHAIN_ENTRIES]>;

impl DependencyGraph {
    /// Takes the dirty entries of `owner` if they are a chain: no entry of another owner is below them, and each stored
    /// entry but the last has an edge to the next one. So there is only one order. New entries come first, by address;
    /// they wait for nothing. `is_whole` says of each entry and its length (bytes; 0 if not known) whether one write is
    /// enough. The taken entries are in flight.
    pub(super) fn take_chain(
        &mut self,
        owner: Owner,
        is_whole: impl Fn(&EntryHeader, u64) -> bool,
    ) -> Option<EntryChain> {
        if self.owner_deps.has_children(owner) {
            return None;
        }
        let list = self.dirty_entries.get_mut(&owner)?;
        let (mut left, mut new) = (EntryChain::new(), EntryChain::new());
        for node in list.iter().filter_map(|id| self.nodes.get(id)).filter(|node| node.is_dirty) {
            match &node.content {
                NodeContent::Entry(Some(slot)) if left.len() + new.len() < MAX_CHAIN_ENTRIES => {
                    match slot.entry_header().is_stored() {
                        true if !is_whole(slot.entry_header(), slot.entry_header().stored_len()) => return None,
                        true => left.push(Arc::clone(slot)),
                        false if node.child_count == 0 => new.push(Arc::clone(slot)),
                        false => return None,
                    }
                }
                _ => return None,
            }
        }
        // The last one first: whatever nothing that is left waits for, and is next to the one before.
        let mut chain = EntryChain::new();
        while !left.is_empty() {
            let is_awaited = |slot: &Arc<dyn AnySlot>, by: EntryId| {
                self.nodes
                    .get(&slot.entry_header().id)
                    .is_some_and(|node| node.parents.as_slice().iter().any(|edge| edge.parent == by))
            };
            let next = left.iter().position(|slot| {
                let follows = chain.last().is_none_or(|above| is_awaited(slot, above.entry_header().id));
                follows && !left.iter().any(|above| is_awaited(slot, above.entry_header().id))
            })?;
            chain.push(left.swap_remove(next));
        }
        new.sort_unstable_by_key(|slot| Reverse(slot.entry_header().addr));
        chain.append(&mut new);
        chain.reverse();
        list.clear();
        for slot in &chain {
            if let Some(node) = self.nodes.get_mut(&slot.entry_header().id) {
                node.is_dirty = false;
                node.is_in_flight = true;
                self.dirty_weight -= node.dirty_bytes();
            }
        }
        (!chain.is_empty()).then_some(chain)
    }
}

/// A chain that is being written. Entries that are not written when it is dropped are dirty again.
struct ChainWrite<'a> {
    cache: &'a Cache,
    chain: EntryChain,
    entries_written: usize,
    /// Raw data of the write buffer that is being written with it.
    buffered: Option<Arc<MergedWrites>>,
    /// Whether the snapshot was taken: the flush has begun for the space too.
    has_begun: bool,
}

impl Cache {
    /// Flushes `owner`, and the new raw data in the write buffer before it, if the dirty entries are a chain. Returns
    /// whether they were.
    ///
    /// # Errors
    /// As [`Cache::flush`].
    pub(super) fn flush_chain(&self, owner: Owner) -> Result<bool> {
        let _inside = enter_scope(self, ReentryScope::Flush, &[ReentryScope::Operation, ReentryScope::Flush]);
        let _only = self.flush_lock.lock();
        let (mut chain_write, images) = {
            let _gate = self.operation_gate.write();
            if self.needs_protocol_steps() || self.space.needs_superblock_eof() {
                return Ok(false);
            }
            let is_whole = |head: &EntryHeader, len| is_within_page(self.options.base_addr, head.addr, len);
            let Some(chain) = self.shared_graph.graph.lock().take_chain(owner, is_whole) else { return Ok(false) };
            let mut chain_write =
                ChainWrite { cache: self, chain, entries_written: 0, buffered: None, has_begun: false };
            let Some(images) = chain_write.images() else { return Ok(false) };
            self.space.begin_flush(FlushScope::Owner(owner));
            chain_write.has_begun = true;
            chain_write.buffered = self.write_buffer.begin_write();
            (chain_write, images)
        };
        add_to_counter(&self.counters.flushes, 1);
        chain_write.write(&images)?;
        Ok(true)
    }
}

impl ChainWrite<'_> {
    /// The encoded entries; `None` if one cannot be encoded, or needs more than one write.
    fn images(&self) -> Option<SmallVec<[Vec<u8>; MAX_CHAIN_ENTRIES]>> {
        let settings = &self.cache.options;
        let image = |slot: &Arc<dyn AnySlot>| {
            let image = slot.take_dirty_image(settings.widths).ok()?;
            let head = slot.entry_header();
            let is_whole = !head.is_stored() || is_within_page(settings.base_addr, head.addr, image.len() as u64);
            is_whole.then_some(image)
        };
        self.chain.iter().map(image).collect()
    }

    fn write(&mut self, images: &[Vec<u8>]) -> Result<()> {
        self.cache.write_buffer.wait_for_writers();
        if let Some(pieces) = &self.buffered {
            self.cache.write_buffered(pieces)?;
        }
        if let Some(pieces) = self.buffered.take() {
            self.cache.write_buffer.end_write(pieces, true);
        }
        while let Some(slot) = self.chain.get(self.entries_written) {
            let (head, name) = (slot.entry_header(), slot.type_name());
            let neighbours = self.adjacent_entry_count(&images[self.entries_written..]);
            let joined;
            let image = match neighbours {
                1 => &images[self.entries_written],
                _ => {
                    joined = images[self.entries_written..][..neighbours].concat();
                    &joined
                }
            };
            self.write_entries(StorageAction::WriteEntry(name), head, image)?;
            self.entries_written += neighbours;
        }
        Ok(())
    }

    /// Writes an entry, or new ones side by side, by the shortest way.
    fn write_entries(&self, action: StorageAction, head: &EntryHeader, image: &[u8]) -> Result<()> {
        let Cache { storage, space, .. } = self.cache;
        let at = head.addr.get().ok_or(Error::Undefined)?;
        let is_done = match head.is_stored() {
            true => storage.store_diff_atomic(image, at),
            // Nothing leads there yet, so that it may come piece by piece. New pages of a mapping cost more than a
            // call.
            false => space.ensure_prefilled(at, storage) && storage.store_mapped(image, at),
        };
        if is_done {
            self.cache.count_written_bytes(image.len());
            return Ok(());
        }
        self.cache.write_counted(action, head.addr, image)
    }

    /// How many of the next entries one write takes: several if they are new and lie side by side.
    fn adjacent_entry_count(&self, images: &[Vec<u8>]) -> usize {
        let is_new = |slot: &&Arc<dyn AnySlot>| !slot.entry_header().is_stored();
        let new = self.chain[self.entries_written..].iter().take_while(is_new).zip(images);
        let mut end = None;
        let beside = new.take_while(|(slot, image)| {
            let start = slot.entry_header().addr;
            end.replace(start.checked_add(image.len() as u64)).is_none_or(|end| end == Some(start))
        });
        beside.count().max(1)
    }
}

impl Drop for ChainWrite<'_> {
    fn drop(&mut self) {
        let Cache { shared_graph: ledger, write_buffer, space, .. } = self.cache;
        if let Some(pieces) = self.buffered.take() {
            write_buffer.end_write(pieces, false);
        }
        let mut graph = ledger.graph.lock();
        for (n, slot) in self.chain.iter().enumerate() {
            match n < self.entries_written {
                true => graph.complete_write(slot.entry_header().id),
                false => graph.fail_write(slot.entry_header().id),
            }
        }
        drop(graph);
        if self.has_begun {
            space.end_flush(self.entries_written == self.chain.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use h5live_format::Addr;

    use super::super::tests::Block;
    use super::*;
    use crate::test_superblock::EofOnlySuperblock;
    use crate::{
        CacheOptions, DependencyKind, FaultyStorage, Handle, MemoryStorage, RecordingStorage, SpaceKind, WriteFailure,
    };

    const OWNER: Owner = Owner::new(Addr::new(8));
    const OTHER: Owner = Owner::new(Addr::new(16));
    const KIND: DependencyKind = DependencyKind::ObjectHeaderIndex;

    struct File {
        memory: MemoryStorage,
        storage: Arc<FaultyStorage<MemoryStorage>>,
        cache: Cache,
        /// Each waits for the one after it.
        blocks: Vec<Handle<Block>>,
    }

    /// A flushed file with this many entries.
    fn prepared(entries: usize) -> File {
        let memory = MemoryStorage::new();
        let storage = Arc::new(FaultyStorage::new(memory.clone()));
        let cache = Cache::new_writable(storage.clone(), CacheOptions::default(), 8, Arc::new(EofOnlySuperblock));
        let blocks: Vec<_> = (0..entries).map(|_| add(&cache, OWNER, 4)).collect();
        for pair in blocks.windows(2) {
            cache.add_dependency(&pair[0], &pair[1], KIND).unwrap();
        }
        cache.flush(FlushScope::All).unwrap();
        File { memory, storage, cache, blocks }
    }

    fn add(cache: &Cache, owner: Owner, len: usize) -> Handle<Block> {
        let at = cache.space().alloc(len as u64, SpaceKind::Metadata).unwrap();
        cache.insert_entry(at, owner, Block(vec![0; len]))
    }

    impl File {
        fn change(&self, to: u8) {
            self.blocks.iter().for_each(|block| block.update(|block| block.0.fill(to)));
        }

        /// The bytes of each entry in the file.
        fn stored(&self) -> Vec<u8> {
            let bytes = self.memory.to_vec();
            let at = |block: &Handle<Block>| block.addr().get().unwrap() as usize;
            self.blocks.iter().map(|block| bytes[at(block)]).collect()
        }

        fn takes_chain(&self) -> bool {
            self.cache.flush_chain(OWNER).unwrap()
        }
    }

    #[test]
    fn each_entry_is_written_before_what_waits_for_it_whichever_was_changed_first() {
        for (backwards, failing) in [false, true].into_iter().flat_map(|order| (0..3).map(move |n| (order, n))) {
            let mut file = prepared(3);
            if backwards {
                file.blocks.reverse();
                file.change(1);
                file.blocks.reverse();
            } else {
                file.change(1);
            }
            file.storage.fail_after(failing, WriteFailure::Full, false);
            assert!(file.cache.flush_chain(OWNER).is_err());
            let expected: Vec<u8> = (0..3).map(|n| u8::from(n + failing as usize >= 3)).collect();
            assert_eq!(file.stored(), expected);
            file.change(2);
            assert!(file.takes_chain());
            assert_eq!(file.stored(), [2; 3]);
            assert!(!file.cache.is_dirty() && !file.takes_chain());
        }
    }

    #[test]
    fn what_is_new_comes_first_and_neighbours_in_one_write() {
        let file = prepared(2);
        file.change(1);
        let (a, b) = (add(&file.cache, OWNER, 8), add(&file.cache, OWNER, 8));
        let apart = file.cache.space().alloc(8, SpaceKind::Metadata).unwrap();
        let c = add(&file.cache, OWNER, 8);
        for new in [&c, &a, &b] {
            new.update(|block| block.0.fill(7));
            file.cache.add_dependency(&file.blocks[1], new, KIND).unwrap();
        }
        let at = |addr: Addr| addr.get().unwrap() as usize;
        assert_eq!((at(b.addr()), at(c.addr())), (at(a.addr()) + 8, at(apart) + 8));
        let writes = file.cache.stats().writes;
        file.storage.fail_after(2, WriteFailure::Full, false);
        assert!(file.cache.flush_chain(OWNER).is_err());
        assert_eq!(file.cache.stats().writes - writes, 2);
        let bytes = file.memory.to_vec();
        for new in [&a, &b, &c] {
            assert_eq!(bytes[at(new.addr())..][..8], [7; 8]);
        }
        assert_eq!(file.stored(), [0, 0]);
        assert!(file.takes_chain());
        assert_eq!(file.stored(), [1, 1]);
    }

    #[test]
    fn of_what_the_file_leads_to_only_what_has_changed_is_stored() {
        let storage = RecordingStorage::new(MemoryStorage::new());
        let cache =
            Cache::new_writable(Arc::new(storage.clone()), CacheOptions::default(), 8, Arc::new(EofOnlySuperblock));
        let root = add(&cache, OWNER, 40);
        cache.flush(FlushScope::All).unwrap();
        let new = add(&cache, OWNER, 3000);
        cache.add_dependency(&root, &new, KIND).unwrap();
        root.update(|root| root.0[20..30].fill(1));
        storage.take_log();
        assert!(cache.flush_chain(OWNER).unwrap());
        let write = |block: &Handle<Block>, from: u64, bytes: Vec<u8>| {
            let at = block.addr().get().unwrap() + from;
            crate::storage::StorageOp::Write { at, bytes }
        };
        assert_eq!(storage.take_log(), [write(&new, 0, vec![0; 3000]), write(&root, 20, vec![1; 10])]);
        // Where nothing has changed, all of it is.
        root.mark_dirty();
        assert!(cache.flush_chain(OWNER).unwrap());
        assert_eq!(storage.take_log(), [write(&root, 0, root.read().0.clone())]);
    }

    #[test]
    fn gathered_raw_data_comes_first() {
        let file = prepared(1);
        let chunk = file.cache.space().alloc(4, SpaceKind::Raw).unwrap();
        assert_eq!(file.cache.write_raw_through(OWNER, chunk, 0, &[9; 4]).unwrap(), None);
        file.change(1);
        file.storage.fail_after(0, WriteFailure::Full, false);
        assert!(file.cache.flush_chain(OWNER).is_err());
        assert_eq!(file.stored(), [0]);
        assert!(file.takes_chain());
        let at = chunk.get().unwrap() as usize;
        assert_eq!((file.stored(), &file.memory.to_vec()[at..at + 4]), (vec![1], &[9; 4][..]));
    }

    #[test]
    fn what_is_no_chain_is_left_to_a_plan() {
        type Spoil = fn(&File);
        let spoils: [(&str, Spoil); 8] = [
            ("an entry that no edge joins", |file| {
                let other = add(&file.cache, OWNER, 4);
                file.cache.flush(FlushScope::All).unwrap();
                other.mark_dirty();
            }),
            ("edges by way of what is clean", |file| {
                let (between, last) = (add(&file.cache, OWNER, 4), add(&file.cache, OWNER, 4));
                file.cache.add_dependency(&file.blocks[1], &between, KIND).unwrap();
                file.cache.add_dependency(&between, &last, KIND).unwrap();
                file.cache.flush(FlushScope::All).unwrap();
                last.mark_dirty();
            }),
            ("two that wait for the same", |file| {
                let other = add(&file.cache, OWNER, 4);
                file.cache.add_dependency(&other, &file.blocks[1], KIND).unwrap();
                file.cache.flush(FlushScope::All).unwrap();
                other.mark_dirty();
            }),
            ("something of another object", |file| {
                file.cache.add_dependency(&file.blocks[1], &add(&file.cache, OTHER, 4), KIND).unwrap();
            }),
            ("raw data that is waited for", |file| {
                let chunk = file.cache.space().alloc(4, SpaceKind::Raw).unwrap();
                let proxy = file.cache.write_raw(OWNER, chunk, 0, vec![1; 4]);
                file.cache.add_dependency(&file.blocks[1], &proxy, DependencyKind::ExtensibleArrayChunk).unwrap();
            }),
            ("something new that waits", |file| {
                let new = add(&file.cache, OWNER, 4);
                file.cache.add_dependency(&new, &file.blocks[1], KIND).unwrap();
            }),
            ("a new end to announce", |file| {
                file.cache.space().alloc(1 << 20, SpaceKind::Raw).unwrap();
            }),
            ("an entry of two pages", |file| {
                let large = add(&file.cache, OWNER, 6000);
                file.cache.add_dependency(&file.blocks[1], &large, KIND).unwrap();
                file.cache.flush(FlushScope::All).unwrap();
                large.mark_dirty();
            }),
        ];
        for (what, spoil) in spoils {
            let file = prepared(2);
            file.change(1);
            spoil(&file);
            file.change(2);
            assert!(!file.takes_chain(), "{what}");
            assert!(file.cache.is_dirty(), "{what}");
            file.cache.flush(FlushScope::Owner(OWNER)).unwrap();
            assert_eq!(file.stored(), [2; 2], "{what}");
        }
    }
}
