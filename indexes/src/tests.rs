use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5live_cache::{
    Cache, CacheOptions, DependencyNode, EntryId, FlushScope, MemoryStorage, Owner, RecordingStorage, SuperblockEncoder,
};
use h5live_format::{Addr, ChunkEntryFormat, ChunkIndexEntry, EncodeError, ExtensibleArrayParameters, Width};
use h5live_model::{ChunkCoord, ChunkGrid, UNLIMITED};
use proptest::prelude::*;

use crate::{
    Btree2Parameters, ChunkBtree1, ChunkBtree2, ChunkIndex, ExtensibleArray, FixedArray, IndexAddrSlot,
    LinearChunkOrder, ObjectMetadataAccess, Result,
};

#[derive(Debug)]
pub(crate) struct NoSuperblock;

impl SuperblockEncoder for NoSuperblock {
    fn encode_with_eof(&self, _end: u64) -> std::result::Result<(Addr, Vec<u8>), EncodeError> {
        Ok((Addr::new(0), vec![0; 8]))
    }
}

#[derive(Debug)]
pub(crate) struct Root(AtomicU64);

impl IndexAddrSlot for Root {
    fn addr(&self) -> Addr {
        Addr::new(self.0.load(Ordering::Acquire))
    }

    fn set_addr(&self, addr: Addr) -> Result<()> {
        self.0.store(addr.get().unwrap_or(u64::MAX), Ordering::Release);
        Ok(())
    }

    fn flush_parent_ids(&self) -> [Option<EntryId>; 2] {
        [None; 2]
    }

    fn depend_on(&self, _child: &dyn DependencyNode) -> Result<()> {
        Ok(())
    }
}

pub(crate) const OWNER: Owner = Owner::new(Addr::new(48));

pub(crate) fn cache(storage: &MemoryStorage) -> Arc<Cache> {
    cache_from(storage, 4096)
}

/// A cache for a file whose space is allocated up to `end`.
pub(crate) fn cache_from(storage: &MemoryStorage, end: u64) -> Arc<Cache> {
    let storage = Arc::new(storage.clone());
    Arc::new(Cache::new_writable(storage, CacheOptions::default(), end, Arc::new(NoSuperblock)))
}

pub(crate) fn root(addr: Addr) -> Arc<Root> {
    Arc::new(Root(AtomicU64::new(addr.get().unwrap_or(u64::MAX))))
}

fn extensible(cache: &Arc<Cache>, root: Arc<Root>, format: ChunkEntryFormat) -> ExtensibleArray {
    let grid = ChunkGrid::new(&[10, 5]).unwrap();
    let line = LinearChunkOrder::new(&grid, &[UNLIMITED, 10]).unwrap();
    let metadata = ObjectMetadataAccess::new(cache.clone(), OWNER);
    ExtensibleArray::new(metadata, root, line, format, ExtensibleArrayParameters::default()).unwrap()
}

fn fixed(cache: &Arc<Cache>, root: Arc<Root>, format: ChunkEntryFormat, rows: u64) -> FixedArray {
    let grid = ChunkGrid::new(&[10, 5]).unwrap();
    let line = LinearChunkOrder::new(&grid, &[rows * 10, 10]).unwrap();
    FixedArray::new(ObjectMetadataAccess::new(cache.clone(), OWNER), root, line, format, 10).unwrap()
}

fn btree2(cache: &Arc<Cache>, root: Arc<Root>, format: ChunkEntryFormat) -> ChunkBtree2 {
    ChunkBtree2::new(ObjectMetadataAccess::new(cache.clone(), OWNER), root, 2, format, Btree2Parameters::CHUNKS)
}

#[test]
fn refuses_tables_that_take_more_memory_than_may_be_allocated() {
    let too_large = |index: &dyn ChunkIndex, coord: &[u64]| {
        let element = ChunkIndexEntry::unfiltered(Addr::new(4096));
        let error = index.set_chunk_entry(&ChunkCoord::new(coord), element, None).unwrap_err();
        let is_allocation = matches!(error, crate::Error::Cache(h5live_cache::Error::MemoryAllocation { .. }));
        assert!(is_allocation, "{error}");
    };
    let unfiltered = ChunkEntryFormat::Unfiltered;
    let grid = ChunkGrid::new(&[1]).unwrap();
    let metadata = || ObjectMetadataAccess::new(cache(&MemoryStorage::new()), OWNER);
    // All elements are in the data block, or a page has very many.
    for elements in [1 << 30, 1 << 34] {
        let line = LinearChunkOrder::new(&grid, &[elements]).unwrap();
        let array = FixedArray::new(metadata(), root(Addr::UNDEFINED), line, unfiltered, 31).unwrap();
        too_large(&array, &[7]);
    }
    let parameters = ExtensibleArrayParameters { element_index_bits: 63, ..Default::default() };
    let line = || LinearChunkOrder::new(&grid, &[UNLIMITED]).unwrap();
    let array = ExtensibleArray::new(metadata(), root(Addr::UNDEFINED), line(), unfiltered, parameters).unwrap();
    too_large(&array, &[1 << 62]);
    let shape = Btree2Parameters { node_size: u32::MAX, ..Btree2Parameters::CHUNKS };
    let tree = ChunkBtree2::new(metadata(), root(Addr::UNDEFINED), 1, unfiltered, shape);
    too_large(&tree, &[7]);
}

/// Of chunks of one 4-byte element each, so that the sizes of unfiltered chunks are known.
fn btree1(cache: &Arc<Cache>, root: Arc<Root>, k: u16) -> ChunkBtree1 {
    let grid = ChunkGrid::new(&[10, 5]).unwrap();
    ChunkBtree1::new(ObjectMetadataAccess::new(cache.clone(), OWNER), root, grid, 4, k)
}

fn element(seed: u64, format: ChunkEntryFormat) -> ChunkIndexEntry {
    let (size, filter_mask) =
        if format == ChunkEntryFormat::Unfiltered { (0, 0) } else { (seed % 999 + 1, seed as u32 % 4) };
    ChunkIndexEntry { addr: Addr::new(seed * 8 + 8), stored_size: size, filter_mask }
}

type Make<'a> = &'a dyn Fn(&Arc<Cache>, Arc<Root>) -> Box<dyn ChunkIndex>;

/// Sets chunks, removes every fifth, flushes, and finds what is left, and only that, in a second cache over the same
/// bytes. At last deletes the index.
fn check(rows: &[u64], format: ChunkEntryFormat, make: Make<'_>) {
    let storage = MemoryStorage::default();
    let first = cache(&storage);
    let place = root(Addr::UNDEFINED);
    let index = make(&first, place.clone());
    let mut model = BTreeMap::new();
    for (n, row) in rows.iter().enumerate() {
        let coord = ChunkCoord::new(&[row / 2, row % 2]);
        let value = element(n as u64, format);
        let operation = first.begin_atomic_change();
        let old = index.replace_chunk_entry(&coord, value, None).unwrap();
        drop(operation);
        assert_eq!(old, model.insert(coord, value));
    }
    first.flush(FlushScope::All).unwrap();
    for row in rows.iter().step_by(5) {
        let coord = ChunkCoord::new(&[row / 2, row % 2]);
        let operation = first.begin_atomic_change();
        assert_eq!(index.remove_chunk_entry(&coord).unwrap(), model.remove(&coord));
        drop(operation);
    }
    first.flush(FlushScope::All).unwrap();
    let second = Arc::new(Cache::new_read_only(Arc::new(storage.clone()), CacheOptions::default()));
    let made = index;
    let index = make(&second, place);
    for (coord, value) in &model {
        assert_eq!(index.get_chunk_entry(coord).unwrap(), Some(*value), "{coord:?}");
        let next = ChunkCoord::new(&[coord.scaled()[0] + 1, coord.scaled()[1]]);
        assert_eq!(index.get_chunk_entry(&next).unwrap(), model.get(&next).copied());
    }
    let mut found = BTreeMap::new();
    index
        .for_each_chunk(&mut |coord, value| {
            assert!(found.insert(coord, value).is_none());
            true
        })
        .unwrap();
    assert_eq!(found, model);
    let operation = first.begin_atomic_change();
    made.delete_index().unwrap();
    drop(operation);
    first.flush(FlushScope::All).unwrap();
    assert_eq!(first.space().free_bytes(), first.space().allocated_end() - 4096);
}

fn check_extensible(rows: &[u64], format: ChunkEntryFormat) {
    check(rows, format, &|cache, root| Box::new(extensible(cache, root, format)));
}

fn check_btree2(rows: &[u64], format: ChunkEntryFormat) {
    check(rows, format, &|cache, root| Box::new(btree2(cache, root, format)));
}

fn check_btree1(rows: &[u64], k: u16) {
    check(rows, FILTERED, &|cache, root| Box::new(btree1(cache, root, k)));
}

fn check_fixed(rows: &[u64], format: ChunkEntryFormat, limit: u64) {
    check(rows, format, &|cache, root| Box::new(fixed(cache, root, format, limit)));
}

const FILTERED: ChunkEntryFormat = ChunkEntryFormat::Filtered(match Width::new(3) {
    Some(width) => width,
    None => Width::EIGHT,
});

#[test]
fn extensible_arrays_hold_elements_in_every_kind_of_block() {
    // the index block, direct data blocks, super blocks, paged data blocks
    let rows = [0, 3, 4, 19, 20, 51, 52, 114, 115, 240, 500, 1000, 70_000, 140_000, 140_001, 300_000, 2_000_000];
    check_extensible(&rows, ChunkEntryFormat::Unfiltered);
    check_extensible(&rows, FILTERED);
}

#[test]
fn extensible_arrays_grow_one_by_one() {
    check_extensible(&(0..3000).collect::<Vec<_>>(), FILTERED);
}

#[test]
fn trees_of_chunks_grow_in_any_order() {
    let rows: Vec<u64> = (0..12_000).map(|n| n * 7919 % 12_000).collect();
    check_btree2(&rows, ChunkEntryFormat::Unfiltered);
    check_btree2(&rows, FILTERED);
}

#[test]
fn old_trees_of_chunks_grow_in_any_order() {
    check_btree1(&(0..5000).collect::<Vec<_>>(), 32);
    check_btree1(&(0..5000).rev().collect::<Vec<_>>(), 32);
    let rows: Vec<u64> = (0..5000).map(|n| n * 1237 % 5000).collect();
    check_btree1(&rows, 32);
    check_btree1(&rows, 2);
}

#[test]
fn chunks_may_be_removed_while_all_are_visited() {
    let cache = cache(&MemoryStorage::default());
    let tree = btree2(&cache, root(Addr::UNDEFINED), FILTERED);
    for row in 0..5000 {
        tree.set_chunk_entry(&ChunkCoord::new(&[row, 1]), element(row, FILTERED), None).unwrap();
    }
    let mut visited = 0;
    tree.for_each_chunk(&mut |coord, element| {
        assert_eq!(tree.remove_chunk_entry(&coord).unwrap(), Some(element));
        visited += 1;
        true
    })
    .unwrap();
    assert_eq!(visited, 5000);
    assert_eq!(tree.get_chunk_entry(&ChunkCoord::new(&[0, 1])).unwrap(), None);
}

#[test]
fn fixed_arrays_hold_elements_with_and_without_pages() {
    check_fixed(&[0, 1, 5, 19], FILTERED, 10);
    check_fixed(&[0, 1023, 1024, 2047, 4999], ChunkEntryFormat::Unfiltered, 2500);
    check_fixed(&(0..2200).collect::<Vec<_>>(), FILTERED, 1100);
}

#[test]
fn who_reads_a_fixed_array_finds_what_was_published_since_as_soon_as_it_lets_go_of_the_old() {
    for rows in [40, 2000] {
        let storage = MemoryStorage::default();
        let (first, place) = (cache(&storage), root(Addr::UNDEFINED));
        let second = Arc::new(Cache::new_read_only(Arc::new(storage.clone()), CacheOptions::default()));
        let (written, read) = (fixed(&first, place.clone(), FILTERED, rows), fixed(&second, place, FILTERED, rows));
        let (a, b) = (ChunkCoord::new(&[3, 0]), ChunkCoord::new(&[rows - 1, 1]));
        assert_eq!(read.get_chunk_entry(&a).unwrap(), None);
        for n in 1..4 {
            let (old, new) = (element(n, FILTERED), element(n + 1, FILTERED));
            written.set_chunk_entry(&a, old, None).unwrap();
            first.flush(FlushScope::All).unwrap();
            second.evict_owner(OWNER);
            assert_eq!(read.get_chunk_entry(&a).unwrap(), Some(old));
            written.set_chunk_entry(&a, new, None).unwrap();
            written.set_chunk_entry(&b, old, None).unwrap();
            first.flush(FlushScope::All).unwrap();
            assert_eq!(read.get_chunk_entry(&a).unwrap(), Some(old), "what was read is kept");
            second.evict_owner(OWNER);
            assert_eq!(read.get_chunk_entry(&b).unwrap(), Some(old));
            assert_eq!(
                (read.get_chunk_entry(&a).unwrap(), written.get_chunk_entry(&a).unwrap()),
                (Some(new), Some(new))
            );
        }
    }
}

#[test]
fn what_lies_outside_is_refused() {
    let cache = cache(&MemoryStorage::default());
    let array = fixed(&cache, root(Addr::UNDEFINED), FILTERED, 3);
    let value = element(1, FILTERED);
    assert!(array.set_chunk_entry(&ChunkCoord::new(&[3, 0]), value, None).is_err());
    assert!(array.set_chunk_entry(&ChunkCoord::new(&[0]), value, None).is_err());
    let large = ChunkIndexEntry { stored_size: 1 << 24, ..value };
    assert!(array.set_chunk_entry(&ChunkCoord::new(&[0, 0]), large, None).is_err());
    assert_eq!(array.get_chunk_entry(&ChunkCoord::new(&[9, 0])).unwrap(), None);
}

#[test]
fn children_reach_the_file_before_what_points_to_them() {
    let recording = RecordingStorage::new(Arc::new(MemoryStorage::default()));
    let cache = Cache::new_writable(Arc::new(recording.clone()), CacheOptions::default(), 4096, Arc::new(NoSuperblock));
    let cache = Arc::new(cache);
    let array = extensible(&cache, root(Addr::UNDEFINED), ChunkEntryFormat::Unfiltered);
    array.set_chunk_entry(&ChunkCoord::new(&[150_000, 1]), element(1, ChunkEntryFormat::Unfiltered), None).unwrap();
    let plan = cache.begin_flush(FlushScope::All).unwrap();
    let order: Vec<_> = plan
        .steps()
        .iter()
        .filter_map(|step| match step {
            h5live_cache::FlushStep::Entry { name, .. } => name.rsplit("::").next(),
            _ => None,
        })
        .collect();
    let place = |name| order.iter().position(|found| *found == name).unwrap();
    assert!(place("ArrayDataBlockPage") < place("ExtensibleArraySuperBlock"));
    assert!(place("ExtensibleArrayDataBlock") < place("ExtensibleArraySuperBlock"));
    assert!(place("ExtensibleArraySuperBlock") < place("ExtensibleArrayIndexBlock"));
    assert!(place("ExtensibleArrayIndexBlock") < place("ExtensibleArrayHeader"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn extensible_arrays_agree_with_a_map(rows in prop::collection::vec(0u64..200_000, 1..60), filtered: bool) {
        check_extensible(&rows, if filtered { FILTERED } else { ChunkEntryFormat::Unfiltered });
    }

    #[test]
    fn trees_of_chunks_agree_with_a_map(rows in prop::collection::vec(0u64..4000, 1..300), filtered: bool) {
        check_btree2(&rows, if filtered { FILTERED } else { ChunkEntryFormat::Unfiltered });
    }

    #[test]
    fn old_trees_of_chunks_agree_with_a_map(rows in prop::collection::vec(0u64..4000, 1..300), k in 2u16..5) {
        check_btree1(&rows, k);
    }

    #[test]
    fn fixed_arrays_agree_with_a_map(rows in prop::collection::vec(0u64..4000, 1..60), filtered: bool) {
        check_fixed(&rows, if filtered { FILTERED } else { ChunkEntryFormat::Unfiltered }, 2000);
    }
}
