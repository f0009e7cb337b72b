use std::borrow::Cow;
use std::sync::Arc;

use h5live_format::{EncodeError, Widths};
use proptest::{prelude::*, test_runner::RngSeed};

use super::*;
use crate::test_superblock::EofOnlySuperblock;
use crate::{CacheOptions, Entry, FlushScope, MemoryStorage, RecordingStorage, SpaceKind, StorageOp};

fn cache() -> (RecordingStorage<MemoryStorage>, Cache) {
    let storage = RecordingStorage::new(MemoryStorage::new());
    let cache = Cache::new_writable(Arc::new(storage.clone()), CacheOptions::default(), 8, Arc::new(EofOnlySuperblock));
    (storage, cache)
}

fn writes(storage: &RecordingStorage<MemoryStorage>) -> Vec<(u64, usize)> {
    let writes = storage.take_log().into_iter().filter_map(|operation| match operation {
        StorageOp::Write { at, bytes } if at > 0 => Some((at, bytes.len())),
        _ => None,
    });
    writes.collect()
}

#[test]
fn what_waits_is_read_also_past_the_end_of_the_file() {
    let (_, cache) = cache();
    let chunk = cache.space().alloc(10, SpaceKind::Raw).unwrap();
    cache.enqueue_raw_write(Owner::FILE, chunk, 4, vec![7; 2]);
    let mut read = [9; 10];
    cache.read_raw_zero_padded(chunk, 0, &mut read).unwrap();
    assert_eq!(read, [0, 0, 0, 0, 7, 7, 0, 0, 0, 0]);
    assert!(cache.read_raw(chunk, 0, &mut read).is_err());
}

#[test]
fn adjacent_chunks_are_written_in_one_call() {
    let (storage, cache) = cache();
    let chunks: Vec<Addr> = (0..8).map(|_| cache.space().alloc(100, SpaceKind::Raw).unwrap()).collect();
    for (n, chunk) in chunks.iter().enumerate().rev().filter(|(n, _)| *n != 5) {
        cache.enqueue_raw_write(Owner::FILE, *chunk, 0, vec![n as u8; 100]);
    }
    assert_eq!(cache.dirty_raw_data.waiting_bytes(), 7 * (100 + 64), "with the memory of each piece");
    cache.flush(FlushScope::All).unwrap();
    assert_eq!(writes(&storage), [(8, 500), (608, 200)]);
    assert_eq!((cache.dirty_raw_data.waiting_bytes(), cache.dirty_raw_data.chunk_count.load(SeqCst)), (0, 0));
    let bytes = storage.inner().to_vec();
    assert!((0..8).filter(|n| *n != 5).all(|n| bytes[8 + n * 100..][..100] == [n as u8; 100]));
}

#[test]
fn large_pieces_are_not_copied_together() {
    let (storage, cache) = cache();
    let at = cache.space().alloc(1 << 20, SpaceKind::Raw).unwrap();
    let next = cache.space().alloc(10, SpaceKind::Raw).unwrap();
    cache.enqueue_raw_write(Owner::FILE, at, 0, vec![1; 1 << 20]);
    cache.enqueue_raw_write(Owner::FILE, next, 0, vec![2; 10]);
    cache.flush(FlushScope::All).unwrap();
    assert_eq!(writes(&storage).len(), 2);
}

#[test]
fn a_large_write_through_is_on_the_storage_at_once() {
    let (storage, cache) = cache();
    let chunk = cache.space().alloc(70 << 10, SpaceKind::Raw).unwrap();
    assert_eq!(cache.write_or_enqueue_new_raw(Owner::FILE, chunk, 0, &[1; 70 << 10]).unwrap(), None);
    assert_eq!(writes(&storage), [(8, 70 << 10)]);
}

#[test]
fn small_write_throughs_are_gathered_until_there_are_many() {
    let (storage, cache) = cache();
    let chunks: Vec<Addr> = (0..64).map(|_| cache.space().alloc(16 << 10, SpaceKind::Raw).unwrap()).collect();
    for (n, chunk) in chunks.iter().enumerate() {
        assert_eq!(writes(&storage), []);
        cache.write_or_enqueue_new_raw(Owner::FILE, *chunk, 0, &[n as u8; 16 << 10]).unwrap();
    }
    assert_eq!(writes(&storage), [(chunks[0].get().unwrap(), 1 << 20)]);
    let mut read = [0; 2];
    cache.read_raw(chunks[63], 5, &mut read).unwrap();
    assert_eq!(read, [63; 2]);
}

#[test]
fn a_small_write_through_comes_before_what_is_written_over_it() {
    let (storage, cache) = cache();
    let chunk = cache.space().alloc(4, SpaceKind::Raw).unwrap();
    assert_eq!(cache.write_or_enqueue_new_raw(Owner::FILE, chunk, 0, &[1; 4]).unwrap(), None);
    assert_eq!(writes(&storage), []);
    let waits = cache.enqueue_raw_write(Owner::FILE, chunk, 0, vec![2; 2]);
    assert_eq!(cache.write_or_enqueue_new_raw(Owner::FILE, chunk, 2, &[3; 2]).unwrap(), Some(waits));
    assert_eq!(writes(&storage), []);
    let mut read = [0; 4];
    cache.read_raw(chunk, 0, &mut read).unwrap();
    assert_eq!(read, [2, 2, 3, 3]);
    cache.flush(FlushScope::All).unwrap();
    assert_eq!(writes(&storage)[..2], [(8, 4), (8, 4)]);
    cache.read_raw(chunk, 0, &mut read).unwrap();
    assert_eq!(read, [2, 2, 3, 3]);
}

#[test]
fn discarded_raw_data_is_not_written() {
    let (storage, cache) = cache();
    let chunk = cache.space().alloc(4, SpaceKind::Raw).unwrap();
    cache.enqueue_raw_write(Owner::FILE, chunk, 0, vec![1; 4]);
    cache.discard_raw(chunk);
    cache.flush(FlushScope::All).unwrap();
    assert_eq!(writes(&storage), []);
    cache.finalize_and_truncate(false).unwrap();
}

#[test]
fn excess_raw_data_is_written_by_a_trim() {
    #[derive(Debug)]
    struct Heap;

    impl Entry for Heap {
        fn encode_image(&self, _: Widths) -> std::result::Result<Vec<u8>, EncodeError> {
            Ok(vec![7])
        }

        fn weight(&self) -> usize {
            1
        }
    }

    let storage = RecordingStorage::new(MemoryStorage::new());
    let settings = CacheOptions { dirty_raw_budget_bytes: 10, ..CacheOptions::default() };
    let cache = Cache::new_writable(Arc::new(storage.clone()), settings, 8, Arc::new(EofOnlySuperblock));
    let [one, two] = [(); 2].map(|()| cache.space().alloc(20, SpaceKind::Raw).unwrap());
    let heap = cache.insert_entry(cache.space().alloc(1, SpaceKind::Metadata).unwrap(), Owner::FILE, Heap);
    let free = cache.enqueue_raw_write(Owner::FILE, one, 0, vec![1; 20]);
    cache.flush_over_budget().unwrap();
    assert_eq!(writes(&storage), [(8, 20)]);
    let waits = cache.enqueue_raw_write(Owner::FILE, two, 0, vec![1; 20]);
    cache.add_dependency(&waits, &heap, crate::DependencyKind::ChunkGlobalHeap).unwrap();
    cache.add_dependency(&free, &heap, crate::DependencyKind::ChunkGlobalHeap).unwrap();
    cache.flush_over_budget().unwrap();
    assert_eq!(writes(&storage), [(48, 1), (28, 20)]);
}

#[test]
fn bytes_beyond_the_end_of_the_file_are_missed() {
    let (_, cache) = cache();
    cache.enqueue_raw_write(Owner::FILE, Addr::new(8), 10, vec![1; 10]);
    let mut read = [0; 20];
    assert!(matches!(cache.read_raw(Addr::new(8), 0, &mut read), Err(Error::PastEnd { wanted: 10, found: 0, .. })));
    assert!(matches!(cache.read_raw(Addr::UNDEFINED, 0, &mut read), Err(Error::UndefinedAddr)));
}

#[test]
fn a_read_at_the_end_of_all_addresses_finds_no_writes() {
    let mut writes = MergedWrites::default();
    writes.insert_bytes(10, vec![1; 4]);
    let mut read = [0; 8];
    let gaps = merged_writes::overlay_layers(std::iter::once(&writes), u64::MAX - 3, &mut read);
    assert_eq!((gaps.len(), gaps.first()), (1, Some(&(0..8))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, rng_seed: RngSeed::Fixed(0x5eed), ..ProptestConfig::default() })]

    #[test]
    fn pieces_are_what_was_put_last(
        puts in prop::collection::vec((0usize..2, 0usize..60, 0usize..30, 1u8..), 0..30),
        from in 0usize..90,
        len in 0usize..90,
    ) {
        let mut layers = [MergedWrites::default(), MergedWrites::default()];
        let mut plain = [[0u8; 180]; 2];
        for (layer, offset, len, byte) in puts {
            layers[layer].insert_bytes(offset as u64, vec![byte; len]);
            plain[layer][offset..offset + len].fill(byte);
            let there: Vec<(u64, &[u8])> = layers[layer].iter().collect();
            prop_assert!(there.windows(2).all(|two| two[0].0 + (two[0].1.len() as u64) < two[1].0));
            prop_assert_eq!(layers[layer].byte_count(), plain[layer].iter().filter(|byte| **byte > 0).count());
        }
        let mut read = vec![0; len];
        let gaps = merged_writes::overlay_layers(layers.iter(), from as u64, &mut read);
        for (n, byte) in read.iter().enumerate() {
            let newest = if plain[0][from + n] > 0 { plain[0][from + n] } else { plain[1][from + n] };
            prop_assert_eq!(*byte, newest);
            prop_assert_eq!(gaps.iter().any(|gap| gap.contains(&n)), newest == 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, rng_seed: RngSeed::Fixed(0x5eed), ..ProptestConfig::default() })]

    #[test]
    fn parts_put_together_are_as_parts_put_one_by_one(
        batches in prop::collection::vec((prop::collection::vec((0u64..120, 0usize..6, 1u8..), 0..20), any::<bool>()), 0..6),
    ) {
        let (mut together, mut single) = (MergedWrites::default(), MergedWrites::default());
        for (mut parts, is_in_order) in batches {
            if is_in_order {
                parts.sort_by_key(|(offset, ..)| *offset);
            }
            let parts: Vec<_> = parts.into_iter().map(|(offset, len, byte)| (offset, vec![byte; len])).collect();
            together.insert_parts(parts.iter().map(|(offset, bytes)| (*offset, Cow::from(bytes))));
            parts.into_iter().for_each(|(offset, bytes)| single.insert_bytes(offset, bytes));
            prop_assert!(together.iter().eq(single.iter()));
            prop_assert_eq!(together.byte_count(), single.byte_count());
        }
    }
}

#[test]
fn short_pieces_near_to_each_other_are_written_by_one_call_where_nobody_follows() {
    for (beneath, few) in [
        (ReplacedBytesVisibility::NoFollowers, true),
        (ReplacedBytesVisibility::BeyondExtent, false),
        (ReplacedBytesVisibility::Visible, false),
    ] {
        let (storage, cache) = cache();
        let chunk = cache.space().alloc(100_000, SpaceKind::Raw).unwrap();
        let mut want: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
        cache.enqueue_raw_write(Owner::FILE, chunk, 0, want.clone());
        cache.flush(FlushScope::All).unwrap();
        storage.take_log();
        // Fifty pieces that are near to each other, two that are long, three that are far from all others.
        let near = (0..50).map(|n| (1000 + 100 * n, 8));
        let parts: Vec<(u64, usize)> =
            near.chain([(6000, 5000), (11_500, 5000), (30_000, 8), (30_100, 8), (30_200, 8)]).collect();
        let bytes = |len| Cow::Owned(vec![0xEE; len]);
        cache.enqueue_chunk_overwrite(
            Owner::FILE,
            chunk,
            parts.iter().map(|(at, len)| (*at, bytes(*len))).collect::<Vec<_>>(),
            beneath,
        );
        parts.iter().for_each(|(at, len)| want[*at as usize..][..*len].fill(0xEE));
        cache.flush(FlushScope::All).unwrap();
        let base = chunk.get().unwrap();
        let of_chunk = writes(&storage).into_iter().filter(|(at, _)| (base..base + 100_000).contains(at));
        let found: Vec<_> = of_chunk.map(|(at, len)| (at - base, len)).collect();
        match few {
            true => assert_eq!(found[0], (1000, 49 * 100 + 8)),
            false => assert_eq!(found.len(), parts.len(), "{beneath:?}"),
        }
        assert_eq!(found.len(), if few { 6 } else { 55 }, "{beneath:?}");
        let mut read = vec![0; 100_000];
        cache.read_raw(chunk, 0, &mut read).unwrap();
        assert!(read == want, "{beneath:?}");
    }
}

#[test]
fn many_short_pieces_are_written_before_their_memory_exceeds_the_budget() {
    let storage = RecordingStorage::new(MemoryStorage::new());
    let settings = CacheOptions { dirty_raw_budget_bytes: 6400, ..CacheOptions::default() };
    let cache = Cache::new_writable(Arc::new(storage.clone()), settings, 8, Arc::new(EofOnlySuperblock));
    let chunk = cache.space().alloc(4000, SpaceKind::Raw).unwrap();
    for n in 0..100 {
        cache.enqueue_raw_write(Owner::FILE, chunk, n * 2, vec![1]);
        cache.flush_over_budget().unwrap();
    }
    assert_eq!(writes(&storage).len(), 99, "of 65 bytes of memory each");
    // Those that become one take less.
    cache.enqueue_raw_write(Owner::FILE, chunk, 200, vec![1]);
    cache.enqueue_raw_write(Owner::FILE, chunk, 199, vec![1]);
    assert_eq!(cache.dirty_raw_data.waiting_bytes(), 67);
    cache.flush(FlushScope::All).unwrap();
    assert_eq!(cache.dirty_raw_data.waiting_bytes(), 0);
}

#[test]
fn a_read_is_told_that_waiting_bytes_were_discarded() {
    let (_, cache) = cache();
    let chunk = cache.space().alloc(1, SpaceKind::Raw).unwrap();
    cache.enqueue_raw_write(Owner::FILE, chunk, 0, vec![7]);
    let reading = cache.space().begin_raw_read();
    assert!(!reading.was_any_chunk_ever_freed() && !reading.unwritten_discarded_since_start());
    cache.free_raw(None, chunk, 1);
    assert!(reading.was_any_chunk_ever_freed() && reading.unwritten_discarded_since_start());
    let reading = cache.space().begin_raw_read();
    cache.free_raw(None, chunk, 1);
    assert!(reading.was_any_chunk_ever_freed() && !reading.unwritten_discarded_since_start(), "nothing of it waited");
}
