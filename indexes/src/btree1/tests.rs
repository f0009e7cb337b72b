use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use h5live_cache::{
    Cache, CacheOptions, DependencyKind, DependencyKinds, FlushScope, MemoryStorage, RecordingStorage,
    replay_operations,
};
use h5live_format::{Addr, Btree1ChunkKey, Btree1ChunkRank, Btree1Node, ChunkIndexEntry, Widths, decode_with, encode};
use h5live_model::{ChunkCoord, ChunkGrid};
use proptest::prelude::*;

use crate::tests::{NoSuperblock, OWNER, Root, root};
use crate::{ChunkBtree1, ChunkIndex, IndexAddrSlot, ObjectMetadataAccess};

type Model = BTreeMap<ChunkCoord, ChunkIndexEntry>;

fn index(cache: Arc<Cache>, root: Arc<Root>, k: u16) -> ChunkBtree1 {
    let grid = ChunkGrid::new(&[10, 5]).unwrap();
    ChunkBtree1::new(ObjectMetadataAccess::new(cache, OWNER), root, grid, 4, k)
}

fn coord(row: u64) -> ChunkCoord {
    ChunkCoord::new(&[row / 7, row % 7])
}

/// A reader of the bytes of a tree that checks all that must hold of them.
struct Walk<'a> {
    bytes: &'a [u8],
    k: u16,
    seen: HashSet<Addr>,
    /// By level, the nodes from left to right, with the neighbours that they state.
    levels: BTreeMap<u8, Vec<(Addr, Addr, Addr)>>,
    found: Vec<(Vec<u64>, ChunkIndexEntry)>,
}

impl Walk<'_> {
    fn over(bytes: &[u8], root: Addr, k: u16) -> Model {
        let mut walk = Walk { bytes, k, seen: HashSet::new(), levels: BTreeMap::new(), found: Vec::new() };
        if root.is_defined() {
            walk.node(root, None, None);
        }
        for nodes in walk.levels.values() {
            let undefined = [Addr::UNDEFINED];
            let stated = |side: fn(&(Addr, Addr, Addr)) -> Addr| nodes.iter().map(side);
            assert!(stated(|node| node.1).eq(undefined.into_iter().chain(stated(|node| node.0)).take(nodes.len())));
            assert!(stated(|node| node.2).eq(stated(|node| node.0).skip(1).chain(undefined)));
        }
        assert!(walk.found.windows(2).all(|pair| pair[0].0 < pair[1].0), "chunks are sorted");
        let scaled = |start: &[u64]| ChunkCoord::new(&[start[0] / 10, start[1] / 5]);
        walk.found.iter().map(|(start, element)| (scaled(start), *element)).collect()
    }

    fn node(&mut self, addr: Addr, level: Option<u8>, bounds: Option<(Btree1ChunkKey, Btree1ChunkKey)>) {
        assert!(self.seen.insert(addr), "a node has one parent");
        let empty = Btree1Node::<Btree1ChunkKey>::empty(self.k, Btree1ChunkRank(2), Widths::default());
        let bytes = &self.bytes[addr.get().unwrap() as usize..][..empty.node_size()];
        let node = decode_with(empty, bytes, Widths::default()).unwrap();
        assert!(level.is_none_or(|level| level == node.level));
        assert!(level.is_none() || !node.is_empty(), "only the root is empty");
        self.levels.entry(node.level).or_default().push((addr, node.left_sibling, node.right_sibling));
        let key = |index| node.key(index).unwrap();
        if let Some((first, last)) = bounds {
            assert_eq!((first, last), (key(0), key(node.len())));
        }
        for at in 0..node.len() {
            let (key, next, child) = (key(at), key(at + 1), node.child(at).unwrap());
            assert!((&key.start, key.offset_in_element) < (&next.start, next.offset_in_element), "keys are sorted");
            if node.level > 0 {
                self.node(child, Some(node.level - 1), Some((key, next)));
            } else {
                let element =
                    ChunkIndexEntry { addr: child, stored_size: key.stored_size.into(), filter_mask: key.filter_mask };
                self.found.push((key.start.to_vec(), element));
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Set(u64, u64),
    Remove(u64),
    Clear(u64, u64),
    Fill(u64, u64),
    Flush,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..500u64, 1..9999u64).prop_map(|(row, value)| Step::Set(row, value)),
        4 => (0..500u64).prop_map(Step::Remove),
        1 => (0..500u64, 1..150u64).prop_map(|(row, len)| Step::Clear(row, len)),
        1 => (0..500u64, 1..150u64).prop_map(|(row, len)| Step::Fill(row, len)),
        2 => Just(Step::Flush),
    ];
    prop::collection::vec(step, 1..60)
}

/// A tree, and what it should hold.
struct Pair {
    cache: Arc<Cache>,
    index: ChunkBtree1,
    model: Model,
    /// What was removed since the last flush, if only for some time.
    removed: HashSet<ChunkCoord>,
}

impl Pair {
    fn set(&mut self, row: u64, value: u64) {
        let _operation = self.cache.begin_atomic_change();
        let element =
            ChunkIndexEntry { addr: Addr::new(1 << 30 | row << 16 | value), stored_size: value, filter_mask: 1 };
        self.index.set_chunk_entry(&coord(row), element, None).unwrap();
        self.model.insert(coord(row), element);
    }

    fn remove(&mut self, row: u64) {
        let _operation = self.cache.begin_atomic_change();
        self.removed.insert(coord(row));
        assert_eq!(self.index.remove_chunk_entry(&coord(row)).unwrap(), self.model.remove(&coord(row)));
    }

    /// Takes a step; `true` if it is a flush, which is left to the caller.
    fn take(&mut self, step: &Step) -> bool {
        match *step {
            Step::Set(row, value) => self.set(row, value),
            Step::Remove(row) => self.remove(row),
            Step::Clear(row, len) => (row..row + len).for_each(|row| self.remove(row)),
            Step::Fill(row, len) => (row..row + len).for_each(|row| self.set(row, row + 1)),
            Step::Flush => return true,
        }
        false
    }
}

fn listed(index: &ChunkBtree1) -> Vec<(ChunkCoord, ChunkIndexEntry)> {
    let mut all = Vec::new();
    index
        .for_each_chunk(&mut |coord, element| {
            all.push((coord, element));
            true
        })
        .unwrap();
    all
}

/// Nothing that is the same in `old` and `new` may be missed, and nothing else be seen.
fn check_between(bytes: &[u8], place: &Arc<Root>, k: u16, old: &Model, pair: &Pair) {
    let new = &pair.model;
    let cache = Cache::new_read_only(Arc::new(MemoryStorage::from(bytes.to_vec())), CacheOptions::default());
    let index = index(Arc::new(cache), place.clone(), k);
    for coord in old.keys().chain(new.keys()) {
        let found = index.get_chunk_entry(coord).unwrap();
        let right = found.as_ref() == old.get(coord) || found.as_ref() == new.get(coord);
        assert!(right || found.is_none() && pair.removed.contains(coord), "{coord:?}: {found:?}");
    }
    let all = listed(&index);
    assert!(all.windows(2).all(|pair| pair[0].0 < pair[1].0), "each chunk is seen once");
    let all: Model = all.into_iter().collect();
    let kept = |(coord, element): &(&ChunkCoord, &ChunkIndexEntry)| {
        new.get(*coord) == Some(*element) && !pair.removed.contains(*coord)
    };
    for (coord, element) in old.iter().filter(kept) {
        assert_eq!(all.get(coord), Some(element));
    }
    assert!(all.iter().all(|(coord, element)| [old, new].iter().any(|map| map.get(coord) == Some(element))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn trees_keep_their_shape(steps in steps(), k in prop_oneof![Just(2u16), Just(3), Just(8)]) {
        let storage = MemoryStorage::default();
        let cache = Cache::new_writable(Arc::new(storage.clone()), CacheOptions::default(), 4096, Arc::new(NoSuperblock));
        let cache = Arc::new(cache);
        let place = root(Addr::UNDEFINED);
        let mut pair = Pair { index: index(cache.clone(), place.clone(), k), cache, model: Model::new(), removed: HashSet::new() };
        for step in steps.iter().chain([&Step::Flush]) {
            if pair.take(step) {
                pair.cache.flush(FlushScope::All).unwrap();
                assert_eq!(Walk::over(&storage.to_vec(), place.addr(), k), pair.model);
            }
            assert!(listed(&pair.index).into_iter().eq(pair.model.clone()));
        }
    }

    #[test]
    fn nothing_is_lost_by_a_writer_that_dies(steps in steps(), k in 2u16..5) {
        check_dying(&steps, k);
    }
}

/// Takes steps, and looks at the file after each write.
fn check_dying(steps: &[Step], k: u16) {
    let memory = MemoryStorage::default();
    let recording = RecordingStorage::new(memory.clone());
    let cache = Cache::new_writable(Arc::new(recording.clone()), CacheOptions::default(), 4096, Arc::new(NoSuperblock));
    let cache = Arc::new(cache);
    let place = root(Addr::UNDEFINED);
    let mut pair =
        Pair { index: index(cache.clone(), place.clone(), k), cache, model: Model::new(), removed: HashSet::new() };
    pair.set(250, 1);
    pair.cache.flush(FlushScope::All).unwrap();
    let (mut image, mut old) = (memory.to_vec(), pair.model.clone());
    recording.take_log();
    for step in steps {
        if pair.take(step) {
            pair.cache.flush(FlushScope::All).unwrap();
            for write in recording.take_log() {
                replay_operations(&mut image, [&write]).unwrap();
                check_between(&image, &place, k, &old, &pair);
            }
            old = pair.model.clone();
            pair.removed.clear();
        }
    }
}

#[test]
fn a_leaf_that_moves_to_other_keys_is_listed_once() {
    // The last leaf is emptied and filled again in one flush; its old parent is the last to be written.
    let moving = [Step::Set(473, 1), Step::Clear(290, 3), Step::Fill(398, 82), Step::Flush];
    let steps: Vec<_> = [Step::Fill(153, 140), Step::Flush].into_iter().chain(moving).collect();
    check_dying(&steps, 2);
}

#[test]
fn nodes_that_lead_to_the_same_are_not_gone_through_without_end() {
    let empty = Btree1Node::<Btree1ChunkKey>::empty(2, Btree1ChunkRank(2), Widths::default());
    let size = empty.node_size() as u64;
    let key = |row: u64| Btree1ChunkKey {
        stored_size: 8,
        filter_mask: 0,
        start: [row * 10, 0].as_slice().into(),
        offset_in_element: 0,
    };
    for rows in [[0, 9, 0, 9, 0], [0, 3, 6, 9, 12], [5, 5, 5, 5, 5], [9, 7, 5, 3, 1]] {
        let mut bytes = Vec::new();
        for level in 0..=255u8 {
            let below = u64::from(level).saturating_sub(1) * size;
            let mut node = empty.clone();
            node.level = level;
            assert!(node.set_entries(&rows.map(key), &[Addr::new(below); 4]));
            bytes.extend(encode(&node, Widths::default()).unwrap());
        }
        let cache = Cache::new_read_only(Arc::new(MemoryStorage::from(bytes)), CacheOptions::default());
        let index = index(Arc::new(cache), root(Addr::new(255 * size)), 2);
        let all = listed(&index);
        assert!(all.windows(2).all(|pair| pair[0].0 <= pair[1].0) && all.len() <= 4, "{rows:?}: {all:?}");
    }
}

/// Whether every node that a flush writes leads to chunks that are there.
fn chunks_come_first(disabled: DependencyKinds) -> bool {
    let mut settings = CacheOptions::default();
    settings.mutant.violated_edges = disabled;
    let recording = RecordingStorage::new(MemoryStorage::default());
    let cache = Arc::new(Cache::new_writable(Arc::new(recording.clone()), settings, 4096, Arc::new(NoSuperblock)));
    let place = root(Addr::UNDEFINED);
    let tree = index(cache.clone(), place.clone(), 2);
    for row in 0..60 {
        let addr = cache.space().alloc(8, h5live_cache::SpaceKind::Raw).unwrap();
        let proxy = cache.enqueue_raw_write(OWNER, addr, 0, vec![row as u8 + 1; 8]);
        tree.set_chunk_entry(&coord(row), ChunkIndexEntry { addr, stored_size: 8, filter_mask: 0 }, Some(&proxy))
            .unwrap();
    }
    cache.flush(FlushScope::All).unwrap();
    let mut image = Vec::new();
    recording.take_log().into_iter().all(|write| {
        replay_operations(&mut image, [&write]).unwrap();
        let there = |at: u64| image.get(at as usize..at as usize + 8).is_some_and(|bytes| bytes != [0; 8]);
        let node = |at: usize| image.get(at..at + 4) == Some(b"TREE".as_slice());
        (4096..image.len()).step_by(8).filter(|at| node(*at)).all(|at| {
            let empty = Btree1Node::<Btree1ChunkKey>::empty(2, Btree1ChunkRank(2), Widths::default());
            let node = decode_with(empty.clone(), &image[at..at + empty.node_size()], Widths::default()).unwrap();
            node.level > 0 || (0..node.len()).all(|index| there(node.child(index).unwrap().get().unwrap()))
        })
    })
}

#[test]
fn chunks_reach_the_file_before_every_node_that_leads_to_them() {
    assert!(chunks_come_first(DependencyKinds::NONE));
    assert!(!chunks_come_first(DependencyKinds::only(DependencyKind::BTree1Chunk)));
}

#[test]
fn a_tree_that_finds_no_room_stays_as_it_was() {
    let mut settings = CacheOptions::default();
    settings.widths.offset = h5live_format::Width::TWO;
    let cache = Cache::new_writable(Arc::new(MemoryStorage::default()), settings, 4096, Arc::new(NoSuperblock));
    let cache = Arc::new(cache);
    let mut pair = Pair {
        index: index(cache.clone(), root(Addr::UNDEFINED), 4),
        cache,
        model: Model::new(),
        removed: HashSet::new(),
    };
    let mut failed = 0;
    for row in (0..3000).map(|n| n * 1237 % 3000) {
        let element = ChunkIndexEntry { addr: Addr::new(row + 8), stored_size: 1, filter_mask: 0 };
        match pair.index.set_chunk_entry(&coord(row), element, None) {
            Ok(()) => {
                pair.model.insert(coord(row), element);
            }
            Err(_) => failed += 1,
        }
    }
    assert!(failed > 0 && pair.model.len() > 500);
    assert!(listed(&pair.index).into_iter().eq(pair.model));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn damaged_trees_are_refused_or_changed(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..8usize), 1..12),
        rows in prop::collection::vec((0..400u64, any::<bool>()), 1..60),
    ) {
        let storage = MemoryStorage::default();
        let cache = Cache::new_writable(Arc::new(storage.clone()), CacheOptions::default(), 4096, Arc::new(NoSuperblock));
        let place = root(Addr::UNDEFINED);
        let cache = Arc::new(cache);
        let sound = index(cache.clone(), place.clone(), 2);
        for row in (0..300).map(|n| n * 37 % 300) {
            let element = ChunkIndexEntry { addr: Addr::new(8), stored_size: 8, filter_mask: 0 };
            sound.set_chunk_entry(&coord(row), element, None).unwrap();
        }
        cache.flush(FlushScope::All).unwrap();
        let mut bytes = storage.to_vec();
        let nodes: Vec<usize> =
            (4096..bytes.len()).step_by(8).filter(|at| bytes.get(*at..*at + 4) == Some(b"TREE".as_slice())).collect();
        for (index, value, field) in damage {
            // level, count, left, right, the first keys and children
            let at = index.get(&nodes) + [5, 6, 8, 16, 32, 40, 56, 96][field];
            bytes[at] = value;
            if value % 3 == 0 {
                let other = (*index.get(&nodes) as u64).to_le_bytes();
                bytes[at / 8 * 8..at / 8 * 8 + 8].copy_from_slice(&other);
            }
        }
        let end = bytes.len() as u64;
        let storage = MemoryStorage::from(bytes);
        let cache = Arc::new(Cache::new_writable(Arc::new(storage), CacheOptions::default(), end, Arc::new(NoSuperblock)));
        let damaged = index(cache.clone(), place, 2);
        for (row, set) in rows {
            let element = ChunkIndexEntry { addr: Addr::new(16), stored_size: 8, filter_mask: 0 };
            let _ = if set { damaged.set_chunk_entry(&coord(row), element, None) } else { damaged.remove_chunk_entry(&coord(row)).map(|_| ()) };
        }
        let _ = damaged.for_each_chunk(&mut |_, _| true);
        let _ = damaged.delete_index();
        let _ = cache.flush(FlushScope::All);
    }
}

/// Says, when it goes, that a thread is to end.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn nothing_is_lost_of_a_tree_that_changes_while_it_is_flushed() {
    let memory = MemoryStorage::default();
    let recording = RecordingStorage::new(memory.clone());
    let mut settings = CacheOptions::default();
    settings.dirty_metadata_budget_bytes = 8000;
    let cache = Arc::new(Cache::new_writable(Arc::new(recording.clone()), settings, 4096, Arc::new(NoSuperblock)));
    let place = root(Addr::UNDEFINED);
    let mut pair = Pair {
        index: index(cache.clone(), place.clone(), 2),
        cache: cache.clone(),
        model: Model::new(),
        removed: HashSet::new(),
    };
    (0..60).for_each(|row| pair.set(row * 10, 1));
    cache.flush(FlushScope::All).unwrap();
    recording.take_log();
    let mut image = memory.to_vec();
    let kept = pair.model.clone();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                cache.flush_over_budget().unwrap();
                cache.flush_over_budget().unwrap();
                cache.flush(FlushScope::All).unwrap();
            }
        });
        // Also if a change panics, which is to end the test.
        let _done = Done(&done);
        for _ in 0..20 {
            (0..300).for_each(|n| pair.set(n * 37 % 600 / 10 * 10 + 1 + n % 9, n + 1));
            (0..300).for_each(|n| pair.remove(n * 41 % 600 / 10 * 10 + 1 + n % 9));
        }
    });
    cache.flush(FlushScope::All).unwrap();
    for write in recording.take_log() {
        replay_operations(&mut image, [&write]).unwrap();
        let reading = Cache::new_read_only(Arc::new(MemoryStorage::from(image.clone())), CacheOptions::default());
        let found = index(Arc::new(reading), place.clone(), 2);
        for (coord, element) in &kept {
            assert_eq!(found.get_chunk_entry(coord).unwrap(), Some(*element), "{coord:?}");
        }
    }
    assert_eq!(Walk::over(&memory.to_vec(), place.addr(), 2), pair.model);
}
