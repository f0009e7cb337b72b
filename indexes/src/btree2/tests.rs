mod walk;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use h5live_cache::{AtomicChangeGuard, Cache, CacheOptions, FlushScope, MemoryStorage, RecordingStorage, Storage};
use h5live_format::{
    Addr, AttributeOrderRecord, Btree2Geometry, Btree2Header, Btree2Record, ChunkRecord, FilteredChunkRecord,
    HugeDirectRecord, LinkNameRecord, Width, Widths, decode, decode_with,
};
use h5live_model::ChunkCoord;
use proptest::prelude::*;

use self::walk::{Walk, block, nodes};
use super::Btree2;
use crate::tests::{NoSuperblock, OWNER};
use crate::{Error, ObjectMetadataAccess};

/// A type of record, and how a number becomes one and comes back.
trait Kind: Btree2Record + PartialEq + std::fmt::Debug + 'static {
    fn blank() -> Self;
    fn of(key: u64, value: u64) -> Self;
    fn key(&self) -> u64;
}

impl Kind for ChunkRecord {
    fn blank() -> Self {
        ChunkRecord::blank(2)
    }

    fn of(key: u64, value: u64) -> Self {
        ChunkRecord { addr: Addr::new(value), coord: ChunkCoord::new(&[key / 10, key % 10]) }
    }

    fn key(&self) -> u64 {
        self.coord.scaled()[0] * 10 + self.coord.scaled()[1]
    }
}

impl Kind for FilteredChunkRecord {
    fn blank() -> Self {
        FilteredChunkRecord::blank(1, Width::new(3).unwrap())
    }

    fn of(key: u64, value: u64) -> Self {
        let (size, filter_mask) = (value % 1000, value as u32 % 3);
        let (size_width, addr, coord) = (Width::new(3).unwrap(), Addr::new(value), ChunkCoord::new(&[key]));
        FilteredChunkRecord { stored_size_width: size_width, addr, stored_size: size, filter_mask, coord }
    }

    fn key(&self) -> u64 {
        self.coord.scaled()[0]
    }
}

impl Kind for LinkNameRecord {
    fn blank() -> Self {
        LinkNameRecord::default()
    }

    fn of(key: u64, value: u64) -> Self {
        LinkNameRecord { hash: key as u32, heap_id: [value as u8; 7] }
    }

    fn key(&self) -> u64 {
        self.hash.into()
    }
}

impl Kind for AttributeOrderRecord {
    fn blank() -> Self {
        AttributeOrderRecord::default()
    }

    fn of(key: u64, value: u64) -> Self {
        AttributeOrderRecord { heap_id: [value as u8; 8], message_flags: value as u8, creation_order: key as u32 }
    }

    fn key(&self) -> u64 {
        self.creation_order.into()
    }
}

impl Kind for HugeDirectRecord {
    fn blank() -> Self {
        HugeDirectRecord::default()
    }

    fn of(key: u64, value: u64) -> Self {
        HugeDirectRecord { addr: Addr::new(key), length: value }
    }

    fn key(&self) -> u64 {
        self.addr.get().unwrap()
    }
}

fn cache(storage: Arc<dyn Storage>) -> Arc<Cache> {
    Arc::new(Cache::new_writable(storage, CacheOptions::default(), 4096, Arc::new(NoSuperblock)))
}

fn metadata(cache: &Arc<Cache>) -> ObjectMetadataAccess {
    ObjectMetadataAccess::new(cache.clone(), OWNER)
}

/// A tree, and what it should hold.
struct Pair<R> {
    cache: Arc<Cache>,
    tree: Btree2<R>,
    model: BTreeMap<u64, R>,
}

impl<R: Kind> Pair<R> {
    fn new(storage: Arc<dyn Storage>, node_size: u32) -> Self {
        let cache = cache(storage);
        let tree = Btree2::create(metadata(&cache), R::blank(), node_size).unwrap();
        Pair { cache, tree, model: BTreeMap::new() }
    }

    fn operation(&self) -> AtomicChangeGuard<'_> {
        self.cache.begin_atomic_change()
    }

    fn put(&mut self, key: u64, value: u64) {
        let record = R::of(key, value);
        let operation = self.operation();
        let old = self
            .tree
            .insert_or_overwrite(&record, |_| std::cmp::Ordering::Equal, |found| Ok::<_, Error>(found.key().cmp(&key)))
            .unwrap();
        drop(operation);
        assert_eq!(old, self.model.insert(key, record));
    }

    fn remove(&mut self, key: u64) {
        let operation = self.operation();
        let old = self.tree.remove(|found| Ok::<_, Error>(found.key().cmp(&key))).unwrap();
        drop(operation);
        assert_eq!(old, self.model.remove(&key));
    }

    fn find(&self, key: u64) -> Option<R> {
        self.tree.find(|found| Ok::<_, Error>(found.key().cmp(&key))).unwrap()
    }

    fn records(&self) -> Vec<R> {
        self.records_from(0)
    }

    fn records_from(&self, key: u64) -> Vec<R> {
        let mut records = Vec::new();
        let mut each = |record| {
            records.push(record);
            Ok::<_, Error>(true)
        };
        self.tree.for_each_from(&mut |record| Ok(record.key() < key), &mut each).unwrap();
        records
    }

    /// All records, as pieces have them.
    fn pieces(tree: &Btree2<R>) -> Result<Vec<R>, Error> {
        let mut records = Vec::new();
        tree.for_each_batch_unordered(&mut |piece| {
            records.extend(piece);
            Ok::<_, Error>(true)
        })?;
        records.sort_by_key(R::key);
        Ok(records)
    }

    fn flush(&self) {
        self.cache.flush(FlushScope::All).unwrap();
    }

    /// What the storage holds, by a walk that knows nothing of the tree's code.
    fn stored(&self, storage: &MemoryStorage) -> Vec<R> {
        Walk::over(&storage.to_vec(), self.tree.addr())
    }

    fn expected(&self) -> Vec<R> {
        self.model.values().cloned().collect()
    }
}

#[derive(Debug, Clone)]
enum Step {
    Put(u64, u64),
    Remove(u64),
    /// Removes so many records from here on.
    Clear(u64, u64),
    /// Adds so many records from here on.
    Fill(u64, u64),
    Flush,
    /// Flushes, and moves nodes from here on to what is free.
    Pack(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..400u64, any::<u32>()).prop_map(|(key, value)| Step::Put(key, value.into())),
        4 => (0..400u64).prop_map(Step::Remove),
        1 => (0..400u64, 1..150u64).prop_map(|(key, len)| Step::Clear(key, len)),
        1 => (0..400u64, 1..150u64).prop_map(|(key, len)| Step::Fill(key, len)),
        2 => Just(Step::Flush),
        1 => (4096..30_000u64).prop_map(Step::Pack),
    ];
    prop::collection::vec(step, 1..80)
}

fn check<R: Kind>(steps: &[Step], node_size: u32) {
    let storage = Arc::new(MemoryStorage::default());
    let mut pair = Pair::<R>::new(storage.clone(), node_size);
    for step in steps {
        match *step {
            Step::Put(key, value) => pair.put(key, value),
            Step::Remove(key) => pair.remove(key),
            Step::Clear(key, len) => (key..key + len).for_each(|key| pair.remove(key)),
            Step::Fill(key, len) => (key..key + len).for_each(|key| pair.put(key, key + 7)),
            Step::Pack(limit) => {
                pair.flush();
                pair.tree.move_nodes_before(limit).unwrap();
                assert_eq!(pair.stored(&storage), pair.expected());
            }
            Step::Flush => {
                pair.flush();
                assert_eq!(pair.stored(&storage), pair.expected());
            }
        }
        assert_eq!(pair.records(), pair.expected());
        assert_eq!(pair.tree.len().unwrap(), pair.model.len() as u64);
    }
    for key in (0..550).step_by(7) {
        assert_eq!(pair.find(key).as_ref(), pair.model.get(&key));
        let rest: Vec<_> = pair.model.range(key..).map(|(_, record)| record.clone()).collect();
        assert_eq!(pair.records_from(key), rest);
    }
    pair.flush();
    assert_eq!(pair.stored(&storage), pair.expected());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn trees_agree_with_a_map(steps in steps(), kind in 0..5usize) {
        match kind {
            0 => check::<ChunkRecord>(&steps, 160),
            1 => check::<FilteredChunkRecord>(&steps, 128),
            2 => check::<LinkNameRecord>(&steps, 128),
            3 => check::<AttributeOrderRecord>(&steps, 512),
            _ => check::<HugeDirectRecord>(&steps, 140),
        }
    }

    #[test]
    fn a_tree_is_the_old_or_the_new_one_after_every_write(steps in steps()) {
        let memory = Arc::new(MemoryStorage::default());
        let recording = RecordingStorage::new(memory.clone());
        let mut pair = Pair::<ChunkRecord>::new(Arc::new(recording.clone()), 160);
        pair.flush();
        let mut old = Vec::new();
        let mut replayed = memory.to_vec();
        recording.take_log();
        for step in steps {
            match step {
                Step::Put(key, value) => pair.put(key, value),
                Step::Remove(key) => pair.remove(key),
                Step::Clear(key, len) => (key..key + len).for_each(|key| pair.remove(key)),
                Step::Fill(key, len) => (key..key + len).for_each(|key| pair.put(key, key + 7)),
                Step::Flush | Step::Pack(_) => {
                    pair.flush();
                    let new = pair.expected();
                    if let Step::Pack(limit) = step {
                        pair.tree.move_nodes_before(limit).unwrap();
                        pair.flush();
                    }
                    for write in recording.take_log() {
                        h5live_cache::replay_operations(&mut replayed, [&write]).unwrap();
                        let stored = Walk::<ChunkRecord>::over(&replayed, pair.tree.addr());
                        assert!(stored == old || stored == new);
                    }
                    assert_eq!(pair.stored(&memory), new);
                    old = new;
                }
            }
        }
    }
}

#[test]
fn records_added_in_order_fill_their_nodes() {
    let storage = Arc::new(MemoryStorage::default());
    let mut pair = Pair::<ChunkRecord>::new(storage.clone(), 2048);
    (0..20_000).for_each(|key| pair.put(key, key));
    pair.flush();
    assert_eq!(pair.stored(&storage), pair.expected());
    let header: Btree2Header = decode(block(&storage.to_vec(), pair.tree.addr(), 38), Widths::default()).unwrap();
    assert_eq!(header.depth, 2);
    let full = 20_000 / 85 * 2048;
    assert!(pair.cache.space().allocated_end() < full * 21 / 20, "{}", pair.cache.space().allocated_end());
}

#[test]
fn pieces_have_each_record_once_as_it_is_now() {
    let storage = Arc::new(MemoryStorage::default());
    let mut pair = Pair::<LinkNameRecord>::new(storage.clone(), 512);
    (0..30_000).for_each(|key| pair.put(key * 7919 % 30_000, key));
    pair.flush();
    let other = Btree2::new(metadata(&cache(storage.clone())), pair.tree.addr(), LinkNameRecord::blank());
    assert!(Pair::pieces(&other).unwrap() == pair.expected(), "read from the file");
    (0..100).for_each(|key| pair.put(key * 250, key + 1));
    (0..100).for_each(|key| pair.remove(key * 250 + 3));
    assert!(Pair::pieces(&pair.tree).unwrap() == pair.expected(), "what is only in the cache");
    let bytes = storage.to_vec();
    for leaf in bytes.windows(4).enumerate().filter(|(_, bytes)| bytes == b"BTLF").map(|(at, _)| at).step_by(97) {
        storage.write_at(&[bytes[leaf + 9] ^ 1], leaf as u64 + 9).unwrap();
        let other = Btree2::new(metadata(&cache(storage.clone())), pair.tree.addr(), LinkNameRecord::blank());
        assert_eq!(Pair::pieces(&other).is_err(), other.for_each(&mut |_| Ok::<_, Error>(true)).is_err(), "{leaf}");
        storage.write_at(&bytes[leaf + 9..][..1], leaf as u64 + 9).unwrap();
    }
}

#[test]
fn a_node_moves_once_between_two_flushes() {
    let storage = Arc::new(MemoryStorage::default());
    let mut pair = Pair::<ChunkRecord>::new(storage.clone(), 2048);
    (0..2000).for_each(|key| pair.put(key * 2, key));
    pair.flush();
    let end = pair.cache.space().allocated_end();
    (0..20).for_each(|key| pair.put(key * 2 + 1, key));
    assert!(pair.cache.space().allocated_end() <= end + 6 * 2048);
    (0..20).for_each(|key| pair.put(key * 2 + 1, key + 1));
    assert!(pair.cache.space().allocated_end() <= end + 6 * 2048);
}

#[test]
fn space_of_former_nodes_is_used_again() {
    let storage = Arc::new(MemoryStorage::default());
    let mut pair = Pair::<ChunkRecord>::new(storage.clone(), 512);
    (0..1000).for_each(|key| pair.put(key, key));
    pair.flush();
    let end = pair.cache.space().allocated_end();
    for round in 0..200 {
        pair.put(round * 5 % 1000, round);
        pair.flush();
    }
    assert!(pair.cache.space().allocated_end() < end + 20 * 512);
    assert_eq!(pair.stored(&storage), pair.expected());
}

/// The mark of a deleted object stays in the cache when its space is free.
#[test]
fn a_node_is_made_where_another_structure_is_cached_whose_space_is_free() {
    let storage = Arc::new(MemoryStorage::default());
    let mut pair = Pair::<LinkNameRecord>::new(storage.clone(), 512);
    let operation = pair.operation();
    let deleted = metadata(&pair.cache).create(512, Btree2Header::default()).unwrap();
    drop(operation);
    pair.flush();
    pair.cache.space().free_metadata_after_full_flush(deleted.addr(), 512);
    pair.flush();
    (0..5).for_each(|key| pair.put(key, key));
    assert!(deleted.is_invalidated(), "its space is used again");
    pair.flush();
    assert_eq!(pair.stored(&storage), pair.expected());
}

#[test]
fn deletion_gives_all_space_back() {
    let storage = Arc::new(MemoryStorage::default());
    let mut pair = Pair::<LinkNameRecord>::new(storage, 512);
    let begin = 4096;
    (0..5000).for_each(|key| pair.put(key * 7919 % 5000, key));
    pair.flush();
    let end = pair.cache.space().allocated_end();
    pair.tree.delete_tree().unwrap();
    pair.flush();
    assert_eq!(pair.cache.space().free_bytes(), end - begin);
    assert!(pair.cache.begin_flush(FlushScope::All).unwrap().steps().is_empty());
}

#[test]
fn a_change_that_finds_no_room_leaves_the_tree_as_it_was() {
    let storage = Arc::new(MemoryStorage::default());
    let widths = Widths { offset: Width::TWO, length: Width::EIGHT };
    let mut settings = CacheOptions::default();
    settings.widths = widths;
    let cache = Arc::new(Cache::new_writable(storage, settings, 4096, Arc::new(NoSuperblock)));
    let tree = Btree2::create(metadata(&cache), ChunkRecord::blank(2), 512).unwrap();
    let mut pair = Pair { cache, tree, model: BTreeMap::new() };
    let mut failed = 0;
    for key in (0..4000).map(|n| n * 1237 % 4000) {
        let record = ChunkRecord::of(key, key);
        match pair.tree.insert_or_overwrite(
            &record,
            |_| std::cmp::Ordering::Equal,
            |found| Ok::<_, Error>(found.key().cmp(&key)),
        ) {
            Ok(_) => {
                pair.model.insert(key, record);
            }
            Err(error) => {
                assert!(matches!(error, Error::Cache(h5live_cache::Error::AddressSpaceFull { .. })));
                failed += 1;
            }
        }
    }
    assert!(failed > 0 && pair.model.len() > 1000);
    assert_eq!(pair.records(), pair.expected());
}

#[test]
fn a_reader_beside_the_writer_sees_whole_trees() {
    let mut pair = Pair::<ChunkRecord>::new(Arc::new(MemoryStorage::default()), 160);
    (0..200).for_each(|key| pair.put(key * 2, key));
    let tree = pair.tree.clone();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            for _ in 0..300 {
                let mut even = 0;
                tree.for_each(&mut |record: ChunkRecord| {
                    even += u64::from(record.key().is_multiple_of(2));
                    Ok::<_, Error>(true)
                })
                .unwrap();
                assert_eq!(even, 200);
            }
        });
        for round in 0..20 {
            (0..200).for_each(|key| pair.put(key * 2 + 1, round));
            pair.flush();
            (0..200).for_each(|key| pair.remove(key * 2 + 1));
        }
        reader.join().unwrap();
    });
}

#[test]
fn refuses_nodes_that_cannot_be_split() {
    let cache = cache(Arc::new(MemoryStorage::default()));
    let small = Btree2::create(metadata(&cache), ChunkRecord::blank(2), 60);
    assert!(matches!(small, Err(Error::Unsupported(_))));
    let mut pair = Pair::<ChunkRecord>::new(Arc::new(MemoryStorage::default()), 84);
    (0..3).for_each(|key| pair.put(key, key));
    let fourth = pair.tree.insert_or_overwrite(
        &ChunkRecord::of(4, 4),
        |_| std::cmp::Ordering::Equal,
        |found| Ok::<_, Error>(found.key().cmp(&4)),
    );
    assert!(matches!(fourth, Err(Error::Unsupported(_))));
    assert_eq!(pair.records(), pair.expected());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn damaged_trees_are_refused_or_changed(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..6),
        keys in prop::collection::vec((0..400u64, any::<bool>()), 1..60),
    ) {
        let storage = Arc::new(MemoryStorage::default());
        let mut pair = Pair::<HugeDirectRecord>::new(storage.clone(), 160);
        (0..400).for_each(|key| pair.put(key * 37 % 400, key));
        pair.flush();
        let mut bytes = storage.to_vec();
        let all = nodes(&bytes, pair.tree.addr());
        for (which, other, how) in damage {
            let widths = Widths::default();
            let header: Btree2Header = decode(block(&bytes, pair.tree.addr(), Btree2Header::size(widths)), widths).unwrap();
            let geometry = Btree2Geometry::from_header(&header, widths).unwrap();
            let internal: Vec<_> = all.iter().filter(|node| node.1 > 0).collect();
            let (addr, depth, records) = **which.get(&internal);
            let at = addr.get().unwrap() as usize;
            let size = geometry.node_size() as usize;
            let Ok(mut node) = decode_with(geometry.blank_internal(depth, records), &bytes[at..at + size], widths) else { continue };
            let len = node.children.len();
            let child = &mut node.children[other.index(len)];
            match how % 4 {
                0 => child.addr = other.get(&all).0,
                1 => child.record_count = other.get(&all).2,
                2 => child.subtree_record_count = u64::from(how) << (how % 16),
                _ => node.children.swap(0, other.index(len)),
            }
            if let Ok(image) = h5live_format::encode(&node, widths) {
                bytes[at..at + image.len()].copy_from_slice(&image);
            }
        }
        let end = bytes.len() as u64;
        let storage = Arc::new(MemoryStorage::from(bytes));
        let cache = Arc::new(Cache::new_writable(storage, CacheOptions::default(), end, Arc::new(NoSuperblock)));
        let tree = Btree2::new(metadata(&cache), pair.tree.addr(), HugeDirectRecord::default());
        for (key, put) in keys {
            let compare = |found: &HugeDirectRecord| Ok::<_, Error>(found.key().cmp(&key));
            let _ = if put { tree.insert_or_overwrite(&HugeDirectRecord::of(key, 1), |_| std::cmp::Ordering::Equal, compare) } else { tree.remove(compare) };
        }
        let _ = tree.for_each(&mut |_| Ok::<_, Error>(true));
        let _ = tree.delete_tree();
        cache.flush(FlushScope::All).unwrap();
    }
}

#[test]
fn a_tree_that_changes_while_it_is_flushed_is_whole_after_every_write() {
    let memory = MemoryStorage::default();
    let recording = RecordingStorage::new(memory.clone());
    let mut settings = CacheOptions::default();
    settings.dirty_metadata_budget_bytes = 8000;
    let cache = Arc::new(Cache::new_writable(Arc::new(recording.clone()), settings, 4096, Arc::new(NoSuperblock)));
    let tree = Btree2::create(metadata(&cache), ChunkRecord::blank(2), 160).unwrap();
    let mut pair = Pair { cache: cache.clone(), tree, model: BTreeMap::new() };
    (0..100).for_each(|key| pair.put(key * 10, 1));
    pair.flush();
    recording.take_log();
    let mut image = memory.to_vec();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let done = &done;
        scope.spawn(move || {
            while !done.load(Relaxed) {
                cache.flush_over_budget().unwrap();
                cache.flush_over_budget().unwrap();
                cache.flush(FlushScope::All).unwrap();
            }
        });
        for _ in 0..20 {
            (0..500).for_each(|n| pair.put(n * 37 % 1000 / 10 * 10 + 1 + n % 9, n));
            (0..500).for_each(|n| pair.remove(n * 41 % 1000 / 10 * 10 + 1 + n % 9));
        }
        done.store(true, Relaxed);
    });
    pair.flush();
    for write in recording.take_log() {
        h5live_cache::replay_operations(&mut image, [&write]).unwrap();
        let stored = Walk::<ChunkRecord>::over(&image, pair.tree.addr());
        assert_eq!(stored.iter().filter(|record| record.key() % 10 == 0).count(), 100);
    }
    assert_eq!(pair.stored(&memory), pair.expected());
}

#[test]
fn packed_nodes_leave_nothing_but_the_end_free() {
    let storage = Arc::new(MemoryStorage::default());
    let mut pair = Pair::<LinkNameRecord>::new(storage.clone(), 512);
    for key in 0..5000 {
        pair.put(key * 7919 % 5003, key);
        if key % 100 == 0 {
            pair.flush();
        }
    }
    pair.flush();
    let space = pair.cache.space();
    let (end, free) = (space.allocated_end(), space.free_bytes());
    assert!(free > 0);
    assert!(pair.tree.move_nodes_before(end - free).unwrap());
    assert_eq!(pair.records(), pair.expected());
    pair.flush();
    assert_eq!(pair.stored(&storage), pair.expected());
    space.shrink_allocated_end();
    assert!(space.free_bytes() < 2 * 512, "{:?}", space.free_sections());
    space.set_reuse_policy(h5live_cache::ReusePolicy::Never);
    assert!(!pair.tree.move_nodes_before(0).unwrap(), "others may read");
}
