use std::collections::BTreeMap;
use std::sync::Arc;

use h5live_cache::{Cache, FlushScope, MemoryStorage, Owner};
use h5live_model::{FilterResult, FilterSpec, NoFilters};
use proptest::{prelude::*, test_runner::RngSeed};

use super::*;
use crate::tests::cache;

const OWNER: Owner = Owner::new(Addr::new(48));

fn create(cache: &Arc<Cache>, parameters: HeapParameters) -> FractalHeap {
    let metadata = ObjectMetadataAccess::new(cache.clone(), OWNER);
    FractalHeap::create(metadata, Arc::new(NoFilters), &parameters, None, Arc::default()).unwrap()
}

/// A filter that leaves out zeros at the end.
#[derive(Debug)]
struct Short;

impl FilterEngine for Short {
    fn unfilter(
        &self,
        filters: &[FilterSpec],
        _: u32,
        mut bytes: Vec<u8>,
        size: u64,
    ) -> std::result::Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        if !filters.is_empty() {
            bytes.resize(size as usize, 0);
        }
        Ok(bytes)
    }

    fn filter(&self, _: &[FilterSpec], bytes: &[u8]) -> FilterResult {
        Ok((bytes[..bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)].to_vec(), 0))
    }
}

fn short(parameters: HeapParameters, cache: &Arc<Cache>) -> FractalHeap {
    let spec = FilterSpec { id: 300, optional: false, name: None, params: [].into() };
    let filters = FilterPipelineMessage { version: 2, filters: vec![spec] };
    let metadata = ObjectMetadataAccess::new(cache.clone(), OWNER);
    FractalHeap::create(metadata, Arc::new(Short), &parameters, Some(filters), Arc::default()).unwrap()
}

/// The heap as another session finds it.
fn reopened(storage: &MemoryStorage, addr: Addr) -> FractalHeap {
    let metadata = ObjectMetadataAccess::new(cache(storage), OWNER);
    FractalHeap::new(metadata, addr, Arc::new(Short), Arc::default())
}

fn object(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (number * 31 + at * 7) as u8).collect()
}

/// What must hold of a heap's statistics, whatever was done to it.
fn check(heap: &FractalHeap, objects: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let header = heap.header().unwrap().read().clone();
    let bytes: u64 = objects.values().map(|object| object.len() as u64).sum();
    assert_eq!(header.managed_object_count, objects.len() as u64);
    let (mut allocated, mut last) = (0, 0);
    heap.for_each_block(&header, &mut |block| {
        if block.addr.is_defined() && block.slot.size > 0 {
            allocated += block.slot.size;
            last = last.max(block.slot.end());
        }
    })
    .unwrap();
    assert_eq!(header.allocated_space, allocated);
    let overhead = header.direct_block_overhead(heap.metadata.widths()) as u64;
    let space = match header.root_rows {
        0 if header.root.is_defined() => header.table.start_block_bytes - overhead,
        rows => header.table.object_space(rows, overhead),
    };
    assert_eq!(header.free_bytes + bytes, space);
    if header.root_rows > 0 {
        assert_eq!(header.next_block_offset, last);
        assert_eq!(header.managed_space, header.table.row_offset_in_parent(header.root_rows).unwrap());
    }
    for (id, bytes) in objects {
        assert_eq!(heap.read_object(id).unwrap(), *bytes);
    }
    let mut read = Vec::new();
    let mut look = |object: &[u8]| {
        read.push(object.to_vec());
        Ok::<_, Error>(true)
    };
    assert!(heap.bulk_reader().unwrap().for_each_object_unordered(objects.keys(), &mut look).unwrap());
    let mut all: Vec<_> = objects.values().cloned().collect();
    read.sort();
    all.sort();
    assert!(read == all, "many at once are the same as one after the other");
}

#[test]
fn objects_are_found_again_by_their_ids() {
    let storage = MemoryStorage::default();
    let cache = cache(&storage);
    let heap = create(&cache, HeapParameters::LINKS);
    let mut objects = BTreeMap::new();
    // Enough for indirect blocks below the root.
    for number in 0..4000 {
        let object = object(number, 7 + number % 900);
        objects.insert(heap.insert_object(&object, &[]).unwrap(), object);
    }
    check(&heap, &objects);
    assert!(heap.header().unwrap().read().root_rows > 9);
    cache.flush(FlushScope::All).unwrap();
    check(&reopened(&storage, heap.addr()), &objects);
}

#[test]
fn begins_with_a_single_block() {
    let cache = cache(&MemoryStorage::default());
    let heap = create(&cache, HeapParameters::LINKS);
    heap.insert_object(&object(0, 40), &[]).unwrap();
    let header = heap.header().unwrap().read().clone();
    assert_eq!((header.root_rows, header.managed_space, header.next_block_offset), (0, 512, 0));
    assert_eq!(header.free_bytes, 512 - 21 - 40);
    heap.insert_object(&object(0, 2000), &[]).unwrap();
    let header = heap.header().unwrap().read().clone();
    // Rows 0 to 2 have too small blocks, row 3 is the first of 2048 bytes: a third row is skipped.
    assert_eq!((header.root_rows, header.managed_space), (4, 16_384));
    assert_eq!((header.allocated_space, header.next_block_offset), (512 + 2048, 8192 + 2048));
}

#[test]
fn what_was_removed_is_used_again_after_a_flush_and_not_before() {
    let cache = cache(&MemoryStorage::default());
    let heap = create(&cache, HeapParameters::LINKS);
    let ids: Vec<_> = (0..8).map(|number| heap.insert_object(&object(number, 50), &[]).unwrap()).collect();
    heap.remove_object(&ids[3]).unwrap();
    let other = heap.insert_object(&object(9, 50), &[]).unwrap();
    assert!(!ids.contains(&other));
    cache.flush(FlushScope::All).unwrap();
    assert_eq!(heap.insert_object(&object(10, 50), &[]).unwrap(), ids[3]);
}

#[test]
fn blocks_without_objects_are_given_up() {
    let storage = MemoryStorage::default();
    let cache = cache(&storage);
    let heap = create(&cache, HeapParameters::LINKS);
    let ids: Vec<_> = (0..3000).map(|number| heap.insert_object(&object(number, 300), &[]).unwrap()).collect();
    cache.flush(FlushScope::All).unwrap();
    let whole = heap.header().unwrap().read().allocated_space;
    for id in &ids[1000..] {
        heap.remove_object(id).unwrap();
    }
    cache.flush(FlushScope::All).unwrap();
    heap.remove_object(&ids[0]).unwrap();
    let objects = ids[1..1000].iter().enumerate().map(|(at, id)| (id.clone(), object(at + 1, 300))).collect();
    check(&heap, &objects);
    assert!(heap.header().unwrap().read().allocated_space < whole / 2);
    for id in &ids[1..1000] {
        heap.remove_object(id).unwrap();
    }
    cache.flush(FlushScope::All).unwrap();
    let id = heap.insert_object(&object(1, 30), &[]).unwrap();
    heap.remove_object(&id).unwrap();
    check(&heap, &BTreeMap::new());
    assert_eq!(heap.header().unwrap().read().managed_space, 512);
}

#[test]
fn a_deleted_heap_gives_all_its_space_back() {
    let storage = MemoryStorage::default();
    let cache = cache(&storage);
    let before = cache.space().allocated_end();
    let heap = create(&cache, HeapParameters::ATTRIBUTES);
    for number in 0..2000 {
        heap.insert_object(&object(number, 100 + number), &[]).unwrap();
    }
    cache.flush(FlushScope::All).unwrap();
    heap.delete_heap().unwrap();
    cache.flush(FlushScope::All).unwrap();
    assert_eq!(cache.space().free_bytes(), cache.space().allocated_end() - before);
}

#[test]
fn an_object_of_the_same_length_stays_where_it_is() {
    let cache = cache(&MemoryStorage::default());
    let heap = create(&cache, HeapParameters::LINKS);
    let id = heap.insert_object(&object(1, 50), &[]).unwrap();
    assert_eq!(heap.replace_object(&id, &object(2, 50), &[]).unwrap(), id);
    assert_eq!(heap.read_object(&id).unwrap(), object(2, 50));
    let new = heap.replace_object(&id, &object(3, 51), &[]).unwrap();
    assert_ne!(new, id);
    assert_eq!(heap.read_object(&new).unwrap(), object(3, 51));
}

#[test]
fn tiny_objects_lie_in_their_ids() {
    let cache = cache(&MemoryStorage::default());
    let heap = create(&cache, HeapParameters::LINKS);
    let id = heap.insert_object(b"tiny", &[]).unwrap();
    assert_eq!(heap.read_object(&id).unwrap(), b"tiny");
    assert_eq!(heap.header().unwrap().read().tiny_object_count, 1);
    heap.remove_object(&id).unwrap();
    assert_eq!(heap.header().unwrap().read().tiny_bytes, 0);
}

#[test]
fn huge_objects_lie_outside_of_the_blocks() {
    check_huge(create);
    check_huge(|cache, parameters| short(parameters, cache));
}

fn check_huge(create: impl Fn(&Arc<Cache>, HeapParameters) -> FractalHeap) {
    let storage = MemoryStorage::default();
    let cache = cache(&storage);
    let before = cache.space().allocated_end();
    let heap = create(&cache, HeapParameters::ATTRIBUTES);
    let ids: Vec<_> = (0..50).map(|number| heap.insert_object(&object(number, 5000 + number), &[]).unwrap()).collect();
    assert_eq!(heap.read_object(&ids[7]).unwrap(), object(7, 5007));
    cache.flush(FlushScope::All).unwrap();
    let again = reopened(&storage, heap.addr());
    assert_eq!(again.read_object(&ids[49]).unwrap(), object(49, 5049));
    heap.remove_object(&ids[3]).unwrap();
    let new = heap.replace_object(&ids[4], &object(4, 7000), &[]).unwrap();
    assert_eq!(heap.read_object(&new).unwrap(), object(4, 7000));
    cache.flush(FlushScope::All).unwrap();
    assert!(heap.reclaim_space().unwrap() && !heap.reclaim_space().unwrap());
    assert!(heap.read_object(&ids[3]).is_err() && heap.read_object(&ids[4]).is_err());
    let header = heap.header().unwrap().read().clone();
    assert_eq!((header.huge_object_count, header.next_huge_id), (49, 51));
    assert_eq!(header.huge_bytes, (0..50).map(|n| 5000 + n).sum::<u64>() - 5003 - 5004 + 7000);
    cache.flush(FlushScope::All).unwrap();
    assert!(reopened(&storage, heap.addr()).read_object(&ids[3]).is_err());
    heap.delete_heap().unwrap();
    cache.flush(FlushScope::All).unwrap();
    assert_eq!(cache.space().free_bytes(), cache.space().allocated_end() - before);
}

#[test]
fn ids_that_are_long_enough_hold_where_a_huge_object_is() {
    let cache = cache(&MemoryStorage::default());
    let heap = create(&cache, HeapParameters { id_len: 17, ..HeapParameters::ATTRIBUTES });
    check_long_id(&cache, &heap);
    check_long_id(&cache, &short(HeapParameters { id_len: 29, ..HeapParameters::ATTRIBUTES }, &cache));
}

fn check_long_id(cache: &Cache, heap: &FractalHeap) {
    let id = heap.insert_object(&object(1, 9000), &[]).unwrap();
    assert_eq!(id[0], 0x10);
    assert_eq!(heap.read_object(&id).unwrap(), object(1, 9000));
    heap.remove_object(&id).unwrap();
    cache.flush(FlushScope::All).unwrap();
    heap.reclaim_space().unwrap();
    assert_eq!(heap.header().unwrap().read().huge_object_count, 0);
}

#[test]
fn refuses_ids_that_lead_nowhere() {
    let cache = cache(&MemoryStorage::default());
    let heap = create(&cache, HeapParameters::LINKS);
    let id = heap.insert_object(&object(1, 50), &[]).unwrap();
    for (at, value) in [(1, 0), (2, 2), (4, 1), (6, 255)] {
        let mut wrong = id.clone();
        wrong[at] = value;
        assert!(heap.remove_object(&wrong).is_err(), "{wrong:?}");
    }
    heap.remove_object(&id).unwrap();
}

#[derive(Debug, Clone)]
enum Step {
    Insert(usize),
    Remove(usize),
    Replace(usize, usize),
    Flush,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![8usize..60, 60usize..600, 600usize..4097];
    let step = prop_oneof![
        6 => len.clone().prop_map(Step::Insert),
        3 => any::<usize>().prop_map(Step::Remove),
        1 => (any::<usize>(), len).prop_map(|(at, len)| Step::Replace(at, len)),
        1 => Just(Step::Flush),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40, failure_persistence: None, rng_seed: RngSeed::Fixed(0x5eed), ..ProptestConfig::default()
    })]

    #[test]
    fn holds_what_a_map_holds(steps in steps(), attributes in any::<bool>(), filtered in any::<bool>()) {
        let storage = MemoryStorage::default();
        let mut open = cache(&storage);
        let parameters = if attributes { HeapParameters::ATTRIBUTES } else { HeapParameters::LINKS };
        let mut heap = if filtered { short(parameters, &open) } else { create(&open, parameters) };
        let mut objects = BTreeMap::new();
        for (number, step) in steps.into_iter().enumerate() {
            let chosen = |at: usize| objects.keys().nth(at.checked_rem(objects.len()).unwrap_or(0)).cloned();
            match step {
                Step::Insert(len) => {
                    let object = object(number, len);
                    let id = heap.insert_object(&object, &[]).unwrap();
                    prop_assert!(objects.insert(id, object).is_none());
                }
                Step::Remove(at) => if let Some(id) = chosen(at) {
                    heap.remove_object(&id).unwrap();
                    objects.remove(&id);
                },
                Step::Replace(at, len) => if let Some(id) = chosen(at) {
                    let object = object(number, len);
                    let new = heap.replace_object(&id, &object, &[]).unwrap();
                    objects.remove(&id);
                    objects.insert(new, object);
                },
                Step::Flush => open.flush(FlushScope::All).unwrap(),
                Step::Reopen => {
                    open.flush(FlushScope::All).unwrap();
                    let end = open.space().allocated_end();
                    open = crate::tests::cache_from(&storage, end);
                    let metadata = ObjectMetadataAccess::new(open.clone(), OWNER);
                    heap = FractalHeap::new(metadata, heap.addr(), Arc::new(Short), Arc::default());
                    heap.init_free_space(|each| {
                        objects.keys().for_each(|id| each(id));
                        Ok::<_, Error>(())
                    }).unwrap();
                }
            }
            check(&heap, &objects);
        }
        open.flush(FlushScope::All).unwrap();
        check(&reopened(&storage, heap.addr()), &objects);
    }
}

#[test]
fn a_heap_is_set_right_that_counts_objects_to_which_nothing_leads() {
    for (filtered, id_len) in [(false, 8), (false, 17), (true, 8), (true, 29)] {
        let storage = MemoryStorage::default();
        let cache = cache(&storage);
        let parameters = HeapParameters { id_len, ..HeapParameters::ATTRIBUTES };
        let heap = if filtered { short(parameters, &cache) } else { create(&cache, parameters) };
        let lens = (0..60).map(|number| match number % 6 {
            0 => 4,
            1 => 5000 + number,
            _ => 20 + number * 30,
        });
        let objects: Vec<_> = lens.enumerate().map(|(number, len)| object(number, len)).collect();
        let ids: Vec<_> = objects.iter().map(|object| heap.insert_object(object, &[]).unwrap()).collect();
        let recount = |held: usize| {
            let count = |each: &mut dyn FnMut(&[u8])| {
                ids[..held].iter().for_each(|id| each(id));
                Ok::<_, Error>(())
            };
            heap.recount_contents(count).unwrap()
        };
        assert!(recount(60).is_consistent());
        for held in [59, 30, 1, 0] {
            let lost = recount(held);
            assert!(!lost.is_consistent(), "{held}");
            heap.apply_recount_and_free_lost(&lost).unwrap();
            assert!(recount(held).is_consistent(), "{held}");
            for (id, object) in ids.iter().zip(&objects).take(held) {
                assert_eq!(heap.read_object(id).unwrap(), *object);
            }
        }
        let header = heap.header().unwrap().read().clone();
        assert_eq!((header.managed_object_count, header.tiny_object_count, header.huge_object_count), (0, 0, 0));
        assert!(!header.huge_index.is_defined());
    }
}
