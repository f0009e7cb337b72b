use std::sync::Arc;
use std::sync::atomic::Ordering;

use h5live_format::{Addr, EncodeError, RedoRecord, SeqlockCounter, Widths, decode};

use crate::test_superblock::EofOnlySuperblock;
use crate::{
    BarrierKind, Cache, CacheOptions, DependencyKind, Entry, Error, FaultyStorage, FlushScope, FlushStep,
    InjectedFailure, MemoryStorage, Owner, ReplacedBytesVisibility, SpaceKind,
};

#[derive(Debug)]
pub(super) struct Block(pub(super) Vec<u8>);

impl Entry for Block {
    fn encode_image(&self, _: Widths) -> Result<Vec<u8>, EncodeError> {
        Ok(self.0.clone())
    }

    fn weight(&self) -> usize {
        self.0.len()
    }
}

fn cache(storage: &MemoryStorage) -> Cache {
    Cache::new_writable(Arc::new(storage.clone()), CacheOptions::default(), 8, Arc::new(EofOnlySuperblock))
}

const OWNER: Owner = Owner::new(Addr::new(8));

fn add(cache: &Cache, owner: Owner, bytes: &[u8]) -> crate::Handle<Block> {
    let at = cache.space().alloc(bytes.len() as u64, SpaceKind::Metadata).unwrap();
    cache.insert_entry(at, owner, Block(bytes.to_vec()))
}

#[test]
fn children_are_written_before_parents_and_raw_data_first() {
    let storage = MemoryStorage::new();
    let cache = cache(&storage);
    let parent = add(&cache, OWNER, b"parent");
    let child = add(&cache, OWNER, b"child");
    let chunk = cache.space().alloc(3, SpaceKind::Raw).unwrap();
    let proxy = cache.enqueue_raw_write(OWNER, chunk, 0, b"raw".to_vec());
    cache.add_dependency(&parent, &child, DependencyKind::ObjectHeaderIndex).unwrap();
    cache.add_dependency(&child, &proxy, DependencyKind::ExtensibleArrayChunk).unwrap();
    assert!(cache.add_dependency(&child, &parent, DependencyKind::Link).is_err());
    let plan = cache.begin_flush(FlushScope::All).unwrap();
    let [FlushStep::ExtendTo(len), FlushStep::Raw(_), FlushStep::Superblock { end, .. }, first, last] = plan.steps()
    else {
        panic!("{plan:?}")
    };
    assert!(len == end && *end > cache.space().allocated_end());
    assert!(matches!(first, FlushStep::Entry { id, .. } if *id == child.id()));
    assert!(matches!(last, FlushStep::Entry { id, .. } if *id == parent.id()));
    plan.write_steps().unwrap();
    let mut read = [0; 3];
    cache.read_raw(chunk, 0, &mut read).unwrap();
    assert_eq!(&read, b"raw");
    assert!(cache.begin_flush(FlushScope::All).unwrap().steps().is_empty());
    cache.finalize_and_truncate(true).unwrap();
    assert_eq!(storage.to_vec().len() as u64, cache.space().allocated_end());
}

#[test]
fn what_was_never_written_goes_with_the_cache() {
    let cache = cache(&MemoryStorage::new());
    drop(add(&cache, OWNER, &[9; 16]));
    assert!(cache.is_dirty());
    let graph = Arc::downgrade(&cache.shared_graph);
    drop(cache);
    assert!(graph.upgrade().is_none());
}

#[test]
fn a_trim_writes_what_waits_for_nothing_and_forgets_what_nobody_has_used() {
    let storage = MemoryStorage::new();
    let settings = CacheOptions { dirty_metadata_budget_bytes: 64, ..CacheOptions::default() };
    let cache = Cache::new_writable(Arc::new(storage.clone()), settings, 8, Arc::new(EofOnlySuperblock));
    let parent = add(&cache, OWNER, &[9; 16]);
    let children = [1, 2, 3, 4, 5, 6].map(|n| {
        let child = add(&cache, OWNER, &[n; 16]);
        cache.add_dependency_until_first_write(&parent, &child, DependencyKind::Link).unwrap();
        child.addr()
    });
    let is_cached = |child: usize| cache.get_cached::<Block>(children[child]).unwrap().is_some();
    assert!(is_cached(0));
    cache.flush_over_budget().unwrap();
    let there = |storage: &MemoryStorage, at: Addr, n| {
        storage.to_vec().get(at.get().unwrap() as usize..).map(|b| b[0]) == Some(n)
    };
    assert!((1..).zip(&children[..5]).all(|(n, child)| there(&storage, *child, n)));
    assert_eq!(cache.shared_graph.graph.lock().dirty_count(), 2);
    assert!(!there(&storage, parent.addr(), 9));
    assert_eq!([0, 1, 4, 5].map(is_cached), [true, false, false, true]);
    cache.flush(FlushScope::All).unwrap();
    assert!(there(&storage, parent.addr(), 9) && there(&storage, children[5], 6));
}

#[test]
fn new_neighbours_that_wait_for_nothing_are_written_in_one_call() {
    let storage = MemoryStorage::new();
    let cache = cache(&storage);
    // Where each begins, and the writes that a flush of them takes beside those of the superblock.
    let flushed = |parent: Option<usize>| {
        let blocks: Vec<_> = (1..=4).map(|n| add(&cache, OWNER, &[n; 16])).collect();
        if let Some(parent) = parent {
            cache.add_dependency(&blocks[parent], &blocks[0], DependencyKind::ObjectHeaderIndex).unwrap();
        }
        let announces = u64::from(cache.space().allocated_end() > cache.space().superblock_eof());
        let before = cache.stats().writes;
        cache.flush(FlushScope::All).unwrap();
        let bytes = storage.to_vec();
        for (n, block) in (1..).zip(&blocks) {
            let at = block.addr().get().unwrap() as usize;
            assert_eq!(bytes[at..at + 16], [n; 16]);
        }
        cache.stats().writes - before - announces
    };
    assert_eq!(flushed(None), 1);
    assert!(flushed(Some(3)) > 1, "the last waits for the first");
}

#[test]
fn an_address_has_one_type() {
    #[derive(Debug)]
    struct Other;

    impl Entry for Other {
        fn encode_image(&self, _: Widths) -> Result<Vec<u8>, EncodeError> {
            Ok(Vec::new())
        }

        fn weight(&self) -> usize {
            0
        }
    }

    let cache = cache(&MemoryStorage::new());
    let block = add(&cache, OWNER, b"block");
    let wrong = cache.load(block.addr(), OWNER, || Ok::<_, Error>(Other));
    assert!(matches!(wrong, Err(Error::WrongEntryType { .. })));
}

#[test]
fn an_object_is_flushed_with_what_it_waits_for_in_other_objects() {
    let storage = MemoryStorage::new();
    let cache = cache(&storage);
    let [first, second, third] = [8, 16, 24].map(|header| Owner::new(Addr::new(header)));
    let top = add(&cache, first, b"top");
    let middle = add(&cache, second, b"middle");
    let low = add(&cache, third, b"low");
    let beside = add(&cache, second, b"beside");
    cache.add_dependency(&top, &middle, DependencyKind::PublishAfter).unwrap();
    cache.add_dependency(&middle, &low, DependencyKind::PublishAfter).unwrap();
    let written = |plan: &crate::PendingFlush<'_>| -> Vec<crate::EntryId> {
        let entries = plan.steps().iter().filter_map(|step| match step {
            FlushStep::Entry { id, .. } => Some(*id),
            _ => None,
        });
        entries.collect()
    };
    let plan = cache.begin_flush(FlushScope::Owner(first)).unwrap();
    assert_eq!(written(&plan), [low.id(), middle.id(), top.id()]);
    drop(plan);
    // What lies between is clean, but the order holds across it.
    cache.flush(FlushScope::All).unwrap();
    low.mark_dirty();
    beside.mark_dirty();
    top.mark_dirty();
    let plan = cache.begin_flush(FlushScope::Owner(first)).unwrap();
    assert_eq!(written(&plan), [low.id(), top.id()]);
    plan.write_steps().unwrap();
    assert_eq!(written(&cache.begin_flush(FlushScope::All).unwrap()), [beside.id()]);
}

#[test]
fn unused_entries_are_evicted_to_stay_in_the_budget() {
    let storage = MemoryStorage::from(vec![1; 1 << 20]);
    let settings = CacheOptions { metadata_budget_bytes: 64 * 1000, ..CacheOptions::default() };
    let cache = Cache::new_read_only(Arc::new(storage), settings);
    let load = |n: u64| {
        let at = Addr::new(n * 100);
        cache.load(at, OWNER, || cache.read_block_uncached(at, 100).map(Block)).unwrap()
    };
    let held = load(0);
    for n in 1..5000 {
        load(n);
        load(1);
    }
    assert!(cache.metadata_memory_bytes() <= 64 * 1000, "{}", cache.metadata_memory_bytes());
    assert_eq!(load(0).id(), held.id(), "what is held stays");
    let totals = cache.stats();
    assert_eq!(totals.misses, 5000, "what is used often stays");
    assert_eq!(totals.evictions + cache.metadata_memory_bytes() as u64 / 100, totals.misses);
}

#[test]
fn what_cannot_be_evicted_is_looked_at_a_limited_number_of_times() {
    let settings = CacheOptions { metadata_budget_bytes: 1000, shard_count: 1, ..CacheOptions::default() };
    let steps = |count: u64| {
        let storage = Arc::new(MemoryStorage::new());
        let cache = Cache::new_writable(storage, settings.clone(), 8, Arc::new(EofOnlySuperblock));
        (0..count).for_each(|_| drop(add(&cache, OWNER, &[1; 100])));
        assert_eq!(cache.stats().evictions, 0, "all is dirty");
        cache.shards[0].eviction_steps.load(Ordering::Relaxed)
    };
    let (few, many) = (steps(5_000), steps(10_000));
    assert!(few > 0 && many <= few * 21 / 10, "twice as many entries, {few} steps and then {many}");
}

#[test]
fn what_was_held_is_evicted_once_it_may_go() {
    let storage = MemoryStorage::from(vec![1; 1 << 20]);
    let settings = CacheOptions { metadata_budget_bytes: 64_000, shard_count: 1, ..CacheOptions::default() };
    let cache = Cache::new_read_only(Arc::new(storage), settings);
    let load = |n: u64| {
        let at = Addr::new(n * 100);
        cache.load(at, OWNER, || cache.read_block_uncached(at, 100).map(Block)).unwrap()
    };
    let held: Vec<_> = (0..6000).map(load).collect();
    assert_eq!(cache.metadata_memory_bytes(), 600_000);
    drop(held);
    (6000..9000).for_each(|n| drop(load(n)));
    assert!(cache.metadata_memory_bytes() <= 64_000, "{}", cache.metadata_memory_bytes());
}

#[test]
fn what_is_dirty_or_pinned_or_a_parent_is_not_evicted() {
    let storage = MemoryStorage::new();
    let cache = cache(&storage);
    let [parent, child, pinned, free] = [(); 4].map(|()| add(&cache, OWNER, b"block"));
    cache.add_dependency(&parent, &child, DependencyKind::DenseStorage).unwrap();
    cache.pin_entry(&pinned);
    let ids = [&parent, &pinned, &free].map(|handle| (handle.addr(), handle.id()));
    cache.flush(FlushScope::All).unwrap();
    child.mark_dirty();
    drop((parent, child, pinned, free));
    cache.evict_owner(OWNER);
    let there = ids.map(|(addr, _)| cache.get_cached::<Block>(addr).unwrap().is_some());
    assert_eq!(there, [true, true, false]);
    cache.unpin_entry(ids[1].1);
    cache.flush(FlushScope::All).unwrap();
    cache.evict_owner(OWNER);
    assert_eq!(cache.metadata_memory_bytes(), 0);
}

#[test]
fn a_refreshed_reader_reads_again_and_old_handles_stay_as_they_are() {
    let storage = MemoryStorage::from(b"old".to_vec());
    let cache = Cache::new_read_only(Arc::new(storage.clone()), CacheOptions::default());
    let load = || cache.load(Addr::new(0), OWNER, || cache.read_block_uncached(Addr::new(0), 3).map(Block)).unwrap();
    let old = load();
    crate::Storage::write_at(&storage, b"new", 0).unwrap();
    assert_eq!(load().read().0, b"old");
    cache.evict_owner(Owner::FILE);
    assert_eq!(load().read().0, b"old");
    cache.evict_owner(OWNER);
    assert_eq!(load().read().0, b"new");
    assert!(old.is_invalidated() && old.read().0 == b"old");
}

#[test]
fn an_entry_that_cannot_be_encoded_stays_dirty_and_is_named() {
    #[derive(Debug)]
    struct Unfit;

    impl Entry for Unfit {
        fn encode_image(&self, _: Widths) -> Result<Vec<u8>, EncodeError> {
            Err(EncodeError { record: "unfit", field: "size", value: 300, limit: 255 })
        }

        fn weight(&self) -> usize {
            1
        }
    }

    let storage = MemoryStorage::new();
    let cache = cache(&storage);
    add(&cache, OWNER, b"sound");
    let at = cache.space().alloc(1, SpaceKind::Metadata).unwrap();
    cache.insert_entry(at, OWNER, Unfit);
    let chunk = cache.space().alloc(1, SpaceKind::Raw).unwrap();
    cache.enqueue_raw_write(OWNER, chunk, 0, vec![1]);
    for _ in 0..2 {
        assert!(matches!(cache.flush(FlushScope::All), Err(Error::Encode { at: where_, .. }) if where_ == at));
    }
    assert!(matches!(cache.finalize_and_truncate(false), Err(Error::UnflushedEntries(3))));
    assert!(storage.to_vec().is_empty());
    cache.forget_entry(at);
    cache.flush(FlushScope::All).unwrap();
    cache.finalize_and_truncate(false).unwrap();
}

#[test]
fn a_claimed_size_is_not_trusted() {
    let cache = Cache::new_read_only(Arc::new(MemoryStorage::from(vec![0; 10])), CacheOptions::default());
    let huge = cache.read_block_uncached(Addr::new(4), usize::MAX);
    assert!(matches!(huge, Err(Error::PastEnd { found: 6, .. })));
    assert!(matches!(cache.read_block_uncached(Addr::new(u64::MAX - 1), 1), Err(Error::PastEnd { found: 0, .. })));
    assert!(matches!(cache.read_block_uncached(Addr::UNDEFINED, 1), Err(Error::UndefinedAddr)));
    assert!(matches!(cache.flush(FlushScope::All), Err(Error::ReadOnly)));
}

#[test]
fn an_end_may_be_announced_far_ahead() {
    let storage = MemoryStorage::new();
    let cache = cache(&storage);
    cache.preextend_file_and_eof(1 << 20).unwrap();
    assert_eq!(storage.to_vec().len(), 8 + (1 << 20));
    add(&cache, OWNER, b"block");
    let plan = cache.begin_flush(FlushScope::All).unwrap();
    assert!(matches!(plan.steps(), [FlushStep::Entry { .. }]));
    plan.write_steps().unwrap();
    cache.finalize_and_truncate(false).unwrap();
    assert_eq!(storage.to_vec().len() as u64, cache.space().allocated_end());
}

#[test]
#[cfg(debug_assertions)]
fn a_flush_within_an_operation_is_refused() {
    let cache = cache(&MemoryStorage::new());
    let flush = std::panic::AssertUnwindSafe(|| {
        let _operation = cache.begin_atomic_change();
        let _ = cache.flush(FlushScope::All);
    });
    assert!(std::panic::catch_unwind(flush).is_err());
    cache.flush(FlushScope::All).unwrap();
}

#[test]
fn a_cache_is_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Cache>();
    shared::<crate::Handle<Block>>();
}

fn order(cache: &Cache) -> Vec<crate::EntryId> {
    let plan = cache.begin_flush(FlushScope::All).unwrap();
    let entries = |step: &FlushStep| match step {
        FlushStep::Entry { id, .. } => Some(*id),
        _ => None,
    };
    let order = plan.steps().iter().filter_map(entries).collect();
    plan.write_steps().unwrap();
    order
}

#[test]
fn a_parent_waits_once_for_a_change_of_its_child() {
    let cache = cache(&MemoryStorage::new());
    let upper = add(&cache, OWNER, b"upper");
    let lower = add(&cache, OWNER, b"lower");
    cache.add_dependency_until_clean(&upper, &lower, DependencyKind::BTree1Node).unwrap();
    assert!(cache.add_dependency_until_clean(&lower, &upper, DependencyKind::BTree1Node).is_err());
    assert_eq!(order(&cache), [lower.id(), upper.id()]);
    upper.mark_dirty();
    lower.mark_dirty();
    cache.add_dependency_until_clean(&lower, &upper, DependencyKind::BTree1Node).unwrap();
    assert_eq!(order(&cache), [upper.id(), lower.id()]);
}

#[test]
fn a_change_made_during_a_flush_is_waited_for_in_the_next() {
    let cache = cache(&MemoryStorage::new());
    let upper = add(&cache, OWNER, b"upper");
    let lower = add(&cache, OWNER, b"lower");
    let plan = cache.begin_flush(FlushScope::All).unwrap();
    lower.mark_dirty();
    upper.mark_dirty();
    cache.add_dependency_until_clean(&upper, &lower, DependencyKind::BTree1Node).unwrap();
    plan.write_steps().unwrap();
    assert_eq!(order(&cache), [lower.id(), upper.id()]);
}

#[test]
fn what_leads_to_a_new_entry_waits_for_it_until_it_is_there() {
    for is_written in [true, false] {
        let cache = cache(&MemoryStorage::new());
        let upper = add(&cache, OWNER, b"upper");
        let lower = add(&cache, OWNER, b"lower");
        cache.add_dependency_until_first_write(&upper, &lower, DependencyKind::BTree1Node).unwrap();
        assert!(cache.add_dependency_until_clean(&lower, &upper, DependencyKind::BTree1Symbols).is_err());
        let plan = cache.begin_flush(FlushScope::All).unwrap();
        lower.mark_dirty();
        upper.mark_dirty();
        // It is on its way: what is written of it later may wait for what leads to it.
        cache.add_dependency_until_clean(&lower, &upper, DependencyKind::BTree1Symbols).unwrap();
        if is_written {
            plan.write_steps().unwrap();
        } else {
            drop(plan);
        }
        assert_eq!(order(&cache), [upper.id(), lower.id()]);
        cache.flush(FlushScope::All).unwrap();
        assert!(!cache.is_dirty());
    }
}

#[test]
fn an_entry_is_new_until_a_flush_has_taken_it() {
    let cache = cache(&MemoryStorage::new());
    let entry = add(&cache, OWNER, b"entry");
    assert!(entry.is_new());
    let plan = cache.begin_flush(FlushScope::All).unwrap();
    assert!(!entry.is_new());
    drop(plan);
    assert!(entry.is_new());
    cache.flush(FlushScope::All).unwrap();
    entry.mark_dirty();
    drop(cache.begin_flush(FlushScope::All).unwrap());
    assert!(!entry.is_new());
    let at = entry.addr();
    drop(entry);
    cache.evict_all();
    cache.flush(FlushScope::All).unwrap();
    cache.evict_all();
    let loaded = cache.load(at, OWNER, || Ok::<_, Error>(Block(Vec::new()))).unwrap();
    assert!(!loaded.is_new());
}

#[test]
fn proxies_stand_for_raw_data_that_waits_or_is_under_way() {
    let cache = cache(&MemoryStorage::new());
    let chunk = cache.space().alloc(3, SpaceKind::Raw).unwrap();
    assert!(cache.chunk_proxies(chunk).is_empty());
    let first = cache.enqueue_raw_write(OWNER, chunk, 0, b"raw".to_vec());
    assert_eq!(cache.chunk_proxies(chunk)[..], [first]);
    let plan = cache.begin_flush(FlushScope::All).unwrap();
    assert_eq!(cache.chunk_proxies(chunk)[..], [first]);
    let second = cache.enqueue_raw_write(OWNER, chunk, 0, b"new".to_vec());
    assert_eq!(cache.chunk_proxies(chunk)[..], [second, first]);
    plan.write_steps().unwrap();
    assert_eq!(cache.chunk_proxies(chunk)[..], [second]);
}

#[test]
fn what_is_new_is_durable_before_what_leads_to_it_is_changed() {
    let storage = MemoryStorage::new();
    let settings = CacheOptions { has_barriers: true, ..CacheOptions::default() };
    let cache = Cache::new_writable(Arc::new(storage.clone()), settings, 8, Arc::new(EofOnlySuperblock));
    let root = add(&cache, OWNER, b"root");
    cache.flush(FlushScope::All).unwrap();
    let stored = add(&cache, OWNER, b"leaf");
    cache.flush(FlushScope::All).unwrap();
    stored.update(|block| block.0[0] = b'L');
    let new = add(&cache, OWNER, b"node");
    cache.add_dependency(&new, &stored, DependencyKind::BTree2HeaderToNode).unwrap();
    root.update(|block| block.0[0] = b'R');
    cache.add_dependency(&root, &new, DependencyKind::BTree2Root).unwrap();
    let plan = cache.begin_flush(FlushScope::All).unwrap();
    let [
        FlushStep::Entry { id: first, .. },
        FlushStep::Barrier(BarrierKind::NewData),
        FlushStep::WriteRedo { record, .. },
        FlushStep::Barrier(BarrierKind::Redo),
        FlushStep::Entry { id: second, .. },
        FlushStep::Entry { id: last, .. },
    ] = plan.steps()
    else {
        panic!("{plan:?}")
    };
    assert_eq!([*first, *second, *last], [new.id(), stored.id(), root.id()]);
    let writes: Vec<_> = record.writes.iter().map(|write| (write.at, &write.bytes[..])).collect();
    assert_eq!(writes, [(stored.addr(), &b"Leaf"[..]), (root.addr(), b"Root")]);
}

#[test]
fn what_lies_in_two_pages_is_written_down_before_it_is_changed() {
    let storage = MemoryStorage::new();
    let cache = cache(&storage);
    let (large, small) = (add(&cache, OWNER, &[1; 5000]), add(&cache, OWNER, b"small"));
    let steps = cache.begin_flush(FlushScope::All).unwrap();
    assert!(!steps.steps().iter().any(|step| matches!(step, FlushStep::WriteRedo { .. })), "nothing leads to it yet");
    steps.write_steps().unwrap();
    large.update(|block| block.0[0] = 2);
    small.mark_dirty();
    cache.add_dependency(&large, &small, DependencyKind::Link).unwrap();
    let plan = cache.begin_flush(FlushScope::All).unwrap();
    let [FlushStep::Entry { id, .. }, FlushStep::WriteRedo { record, .. }, FlushStep::Entry { id: last, .. }] =
        plan.steps()
    else {
        panic!("{plan:?}")
    };
    assert_eq!([*id, *last], [small.id(), large.id()]);
    let at = record.addr;
    assert_eq!(Some(at), SeqlockCounter::word_addr(Addr::new(cache.space().superblock_eof())));
    plan.write_steps().unwrap();
    let valid =
        |storage: &MemoryStorage| storage.to_vec()[at.get().unwrap() as usize..].starts_with(&RedoRecord::SIGNATURE);
    assert!(valid(&storage));
    small.mark_dirty();
    let plan = cache.begin_flush(FlushScope::All).unwrap();
    assert!(
        matches!(plan.steps(), [FlushStep::InvalidateEarlierRedo(forgotten), FlushStep::Entry { .. }] if *forgotten == at),
        "{plan:?}"
    );
    plan.write_steps().unwrap();
    assert!(!valid(&storage));
    small.mark_dirty();
    assert!(matches!(cache.begin_flush(FlushScope::All).unwrap().steps(), [FlushStep::Entry { .. }]));
}

#[test]
fn what_belongs_together_is_there_whole_or_not_at_all() {
    for (fails_after, beneath) in
        (0..14).flat_map(|n| [(n, ReplacedBytesVisibility::BeyondExtent), (n, ReplacedBytesVisibility::Visible)])
    {
        let memory = MemoryStorage::new();
        let storage = FaultyStorage::new(memory.clone());
        let cache =
            Cache::new_writable(Arc::new(storage.clone()), CacheOptions::default(), 8, Arc::new(EofOnlySuperblock));
        let (one, other) = (add(&cache, OWNER, b"old"), add(&cache, OWNER, b"old"));
        let raw = cache.space().alloc(3, SpaceKind::Raw).unwrap();
        cache.enqueue_raw_write(OWNER, raw, 0, b"old".into());
        cache.flush(FlushScope::All).unwrap();
        let new = add(&cache, OWNER, b"new");
        for block in [&one, &other] {
            block.update(|block| block.0.copy_from_slice(b"new"));
            cache.add_dependency(block, &new, DependencyKind::Link).unwrap();
        }
        cache.enqueue_chunk_overwrite(OWNER, raw, [(0, b"new"[..].into())], beneath);
        cache.make_next_flush_atomic();
        storage.fail_after(fails_after, InjectedFailure::StorageFull, true);
        let flushed = cache.flush(FlushScope::Owner(Owner::new(Addr::new(1)))).is_ok();
        let record = SeqlockCounter::word_addr(Addr::new(cache.space().superblock_eof())).unwrap();
        let at = |addr| found(&memory, addr, 3, record);
        let state = at(one.addr());
        assert!(at(other.addr()) == state && at(raw) == state, "{fails_after}, {beneath:?}");
        assert!(state == b"new" || !flushed && state == b"old", "{fails_after}, {beneath:?}");
        storage.clear_fault();
        cache.flush(FlushScope::Owner(OWNER)).unwrap();
        assert_eq!([one.addr(), other.addr(), new.addr(), raw].map(at), [b"new"; 4], "{fails_after}, {beneath:?}");
    }
}

#[test]
fn pages_begin_with_the_file_and_not_behind_its_user_block() {
    for (base, cut) in [(0, false), (512, true)] {
        let settings = CacheOptions { base_addr: base, ..CacheOptions::default() };
        let cache = Cache::new_writable(Arc::new(MemoryStorage::new()), settings, 4096, Arc::new(EofOnlySuperblock));
        let block = add(&cache, OWNER, &[1; 4000]);
        assert_eq!(block.addr(), Addr::new(4096));
        cache.flush(FlushScope::All).unwrap();
        block.mark_dirty();
        let plan = cache.begin_flush(FlushScope::All).unwrap();
        assert_eq!(plan.steps().iter().any(|step| matches!(step, FlushStep::WriteRedo { .. })), cut);
    }
}

/// The bytes at `at` for a process that opens the file now, and replays a valid redo record at `record`.
fn found(storage: &MemoryStorage, at: Addr, len: usize, record: Addr) -> Vec<u8> {
    let mut file = storage.to_vec();
    let beyond = &file[(record.get().unwrap() as usize).min(file.len())..];
    let size = beyond.get(..RedoRecord::HEAD_BYTES).and_then(RedoRecord::stated_size).unwrap_or(0) as usize;
    let writes = beyond.get(..size).and_then(|bytes| decode::<RedoRecord>(bytes, Widths::default()).ok());
    for write in writes.into_iter().flat_map(|record| record.writes) {
        let start = write.at.get().unwrap() as usize;
        file[start..start + write.bytes.len()].copy_from_slice(&write.bytes);
    }
    let start = at.get().unwrap() as usize;
    file[start..start + len].to_vec()
}

#[test]
fn what_a_failed_flush_has_torn_is_whole_at_every_moment_of_the_next_one() {
    let whole = |bytes: &[u8]| bytes.iter().all(|byte| *byte == bytes[0]).then_some(bytes[0]);
    let cases = (0..6).flat_map(|fails| (0..8).map(move |dies| (fails, dies)));
    for (barriers, (fails_after, dies_after)) in cases.flat_map(|case| [(false, case), (true, case)]) {
        let memory = MemoryStorage::new();
        let storage = FaultyStorage::new(memory.clone());
        let settings = CacheOptions { has_barriers: barriers, ..CacheOptions::default() };
        let cache = Cache::new_writable(Arc::new(storage.clone()), settings, 8, Arc::new(EofOnlySuperblock));
        let large = add(&cache, OWNER, &[1; 9000]);
        cache.flush(FlushScope::All).unwrap();
        let announced = SeqlockCounter::word_addr(Addr::new(cache.space().superblock_eof())).unwrap();
        large.update(|block| block.0.fill(2));
        storage.fail_after(fails_after, InjectedFailure::PartialWrite(4096), false);
        let flushed = cache.flush(FlushScope::All).is_ok();
        let bytes = |memory: &MemoryStorage| whole(&found(memory, large.addr(), 9000, announced));
        let left = bytes(&memory);
        assert!(left == Some(2) || !flushed && left == Some(1), "{barriers} {fails_after}: {left:?}");
        // The writer goes on, and is killed after so many more changes.
        large.update(|block| block.0.fill(3));
        storage.fail_after(dies_after, InjectedFailure::PartialWrite(4096), true);
        let flushed = cache.flush(FlushScope::All).is_ok();
        let after = bytes(&memory);
        assert!(
            after == Some(3) || !flushed && after >= left && after.is_some(),
            "{barriers} {fails_after} {dies_after}: {left:?}, then {after:?}"
        );
    }
}
