use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use h5live_format::{GenerationWord, Width};
use proptest::{prelude::*, test_runner::RngSeed};

use super::*;
use crate::{FaultyStorage, MemoryStorage};

fn space(end: u64) -> FileSpaceAllocator {
    FileSpaceAllocator::new(end, Width::EIGHT, Clock::default(), false)
}

#[test]
fn small_metadata_does_not_cross_a_page() {
    let space = space(4000);
    assert_eq!(space.alloc(100, SpaceKind::Metadata).unwrap(), Addr::new(4096));
    assert_eq!(space.alloc(96, SpaceKind::Metadata).unwrap(), Addr::new(4000), "the gap is used");
    assert_eq!(space.alloc(5000, SpaceKind::Metadata).unwrap(), Addr::new(4200), "larger blocks cross anyway");
    assert_eq!(space.alloc(1, SpaceKind::Raw).unwrap(), Addr::new(4196), "raw data fills what alignment left");
}

#[test]
fn raw_data_is_aligned_only_if_that_costs_nothing_in_the_long_run() {
    let space = space(100);
    assert_eq!(space.alloc(4097, SpaceKind::Raw).unwrap(), Addr::new(100));
    assert_eq!(space.alloc(8192, SpaceKind::Raw).unwrap(), Addr::new(8192));
    assert_eq!(space.alloc(4096, SpaceKind::Raw).unwrap(), Addr::new(16384));
    assert_eq!(space.allocated_end(), 20480);

    let space = self::space(4197);
    assert_eq!(space.alloc(80, SpaceKind::Raw).unwrap(), Addr::new(4197));
    assert_eq!(space.alloc(4104, SpaceKind::Raw).unwrap(), Addr::new(4280), "much raw data");
}

#[test]
fn an_address_must_fit_the_width_of_the_file() {
    let space = FileSpaceAllocator::new(60_000, Width::TWO, Clock::default(), false);
    assert!(space.alloc(5000, SpaceKind::Raw).is_ok());
    assert!(matches!(space.alloc(1000, SpaceKind::Raw), Err(Error::AddressSpaceFull { wanted: 1000, .. })));
    assert!(space.alloc(u64::MAX, SpaceKind::Metadata).is_err());
    assert!(space.alloc(500, SpaceKind::Raw).is_ok());
    let end = space.next_superblock_eof().unwrap();
    assert_eq!(end, 0xffef);
    // What is written down behind the end has an address, too.
    assert!(GenerationWord::redo_record_addr(Addr::new(end)).unwrap().get() <= Some(0xffff));
}

#[test]
fn a_new_end_is_announced_in_steps() {
    let space = space(48);
    assert_eq!(space.next_superblock_eof(), None);
    space.alloc(1000, SpaceKind::Raw).unwrap();
    let end = space.next_superblock_eof().unwrap();
    assert_eq!(end, 1048 + (64 << 10));
    space.set_superblock_eof(end);
    space.alloc(60_000, SpaceKind::Raw).unwrap();
    assert_eq!(space.next_superblock_eof(), None);
    space.alloc(1 << 30, SpaceKind::Raw).unwrap();
    assert_eq!(space.next_superblock_eof(), Some(space.allocated_end() + (16 << 20)));
}

#[test]
fn reaching_never_cuts() {
    let storage = FaultyStorage::new(MemoryStorage::from(vec![1; 100]));
    let space = space(0);
    space.ensure_len(50, &storage).unwrap();
    assert_eq!(storage.attempted_change_count(), 0);
    space.ensure_len_ahead(101, &storage).unwrap();
    let len = storage.len().unwrap();
    assert!(len >= 101 + (64 << 10));
    space.ensure_len_ahead(len, &storage).unwrap();
    assert_eq!(storage.attempted_change_count(), 1);
}

#[test]
fn freed_space_waits_for_a_flush_that_began_later_and_succeeded() {
    let space = space(0);
    let at = space.alloc(64, SpaceKind::Metadata).unwrap();
    space.begin_flush(FlushScope::All);
    space.free_metadata_after_full_flush(at, 64);
    space.end_flush(true);
    assert_eq!(space.free_bytes(), 0);
    space.begin_flush(FlushScope::All);
    space.end_flush(false);
    assert_eq!(space.free_bytes(), 0);
    space.begin_flush(FlushScope::All);
    space.end_flush(true);
    assert_eq!(space.free_bytes(), 64);
    assert_eq!(space.alloc(64, SpaceKind::Metadata).unwrap(), at);
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 300,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0x5eed),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_given_out_never_overlaps_and_is_never_lost(
        begin in prop::sample::select(vec![48, 4 << 20, 100 << 20]),
        acts in prop::collection::vec((any::<bool>(), 1u64..9000, 0usize..50), 1..200)
    ) {
        let space = space(begin);
        let mut held: BTreeMap<u64, u64> = BTreeMap::new();
        for (allocate, len, n) in acts {
            if allocate || held.is_empty() {
                let kind = if n % 2 == 0 { SpaceKind::Raw } else { SpaceKind::Metadata };
                let at = space.alloc(len, kind).unwrap().get().unwrap();
                let before = held.range(..at + len).next_back();
                prop_assert!(at >= begin && before.is_none_or(|(other, size)| other + size <= at));
                prop_assert!(kind == SpaceKind::Raw || len > OS_PAGE_BYTES || at / OS_PAGE_BYTES == (at + len - 1) / OS_PAGE_BYTES);
                prop_assert!(at + len <= space.allocated_end());
                held.insert(at, len);
            } else {
                let (&at, &len) = held.iter().nth(n % held.len()).unwrap();
                held.remove(&at);
                space.free_metadata_after_full_flush(Addr::new(at), len);
                space.begin_flush(FlushScope::All);
                space.end_flush(true);
            }
            prop_assert_eq!(space.free_bytes() + held.values().sum::<u64>(), space.allocated_end() - begin);
        }
    }
}

#[test]
fn what_is_given_up_inside_a_structure_is_settled_by_the_next_whole_flush_that_succeeds() {
    let space = FileSpaceAllocator::new(0, Width::EIGHT, Clock::default(), false);
    let moment = space.current_epoch();
    assert!(!space.is_reclaimable(moment));
    space.begin_flush(FlushScope::All);
    let during = space.current_epoch();
    space.end_flush(false);
    assert!(!space.is_reclaimable(moment));
    space.begin_flush(FlushScope::All);
    space.end_flush(true);
    assert!(
        space.is_reclaimable(moment) && space.is_reclaimable(during) && !space.is_reclaimable(space.current_epoch())
    );
    space.set_reuse_policy(ReusePolicy::Never);
    assert!(!space.is_reclaimable(moment));
}

#[test]
fn pages_hold_one_kind_each_and_nothing_small_crosses_a_border() {
    let space = FileSpaceAllocator::new(100, Width::EIGHT, Clock::default(), false);
    space.set_page_size_and_align_end(4096).unwrap();
    assert_eq!(space.allocated_end(), 4096);
    let metadata = space.alloc(1000, SpaceKind::Metadata).unwrap();
    assert_eq!(metadata.get(), Some(104), "what is left of the first page is for structures");
    let raw = space.alloc(3000, SpaceKind::Raw).unwrap();
    assert_eq!(raw.get(), Some(4096));
    assert_eq!(space.alloc(2000, SpaceKind::Raw).unwrap().get(), Some(8192));
    assert_eq!(
        space.alloc(1000, SpaceKind::Raw).unwrap().get(),
        Some(7096),
        "what fits goes into a page that is there"
    );
    let large = space.alloc(5000, SpaceKind::Raw).unwrap();
    assert_eq!((large.get(), space.allocated_end()), (Some(12288), 20480));
    assert_eq!(space.alloc(4000, SpaceKind::Metadata).unwrap().get(), Some(20480));
    space.free_raw_after_full_flush(raw, 3000);
    space.free_raw_after_full_flush(Addr::new(7096), 1000);
    space.free_raw_after_full_flush(large, 5000);
    assert_eq!(space.freed_bytes_awaiting_flush(), 9000);
    space.begin_flush(FlushScope::All);
    space.end_flush(true);
    assert_eq!(space.freed_bytes_awaiting_flush(), 0);
    assert_eq!(
        space.alloc(3000, SpaceKind::Metadata).unwrap().get(),
        Some(4096),
        "a page that is empty is for anything"
    );
    assert_eq!(space.alloc(8192, SpaceKind::Raw).unwrap().get(), Some(12288));
}

#[test]
fn pages_of_large_blocks_are_given_back_whole_wherever_they_begin() {
    let space = FileSpaceAllocator::new(0, Width::EIGHT, Clock::default(), false);
    space.set_page_size_and_align_end(512).unwrap();
    let large = space.alloc(998, SpaceKind::Metadata).unwrap();
    let next = space.alloc(512, SpaceKind::Metadata).unwrap();
    let last = space.alloc(20, SpaceKind::Metadata).unwrap();
    assert_eq!([large, next, last].map(|at| at.get()), [Some(0), Some(1024), Some(1536)]);
    space.adopt_unreachable_range(998, 26 + 512, SpaceKind::Metadata);
    assert_eq!(space.free_sections(), [(1556, 492, Some(SpaceKind::Metadata)), (998, 538, None)]);
    space.adopt_unreachable_range(0, 998, SpaceKind::Metadata);
    assert_eq!(space.free_sections().last(), Some(&(0, 1536, None)));
    space.free_metadata_after_full_flush(last, 20);
    flush(&space, FlushScope::All);
    space.shrink_allocated_end();
    assert_eq!((space.allocated_end(), space.free_sections().len()), (0, 0));
    space.alloc(1000, SpaceKind::Raw).unwrap();
    space.adopt_unreachable_range(600, 424, SpaceKind::Raw);
    space.adopt_unreachable_range(1000, 24, SpaceKind::Raw);
    space.shrink_allocated_end();
    assert_eq!(space.allocated_end(), 1024, "the file ends with a page");
}

#[test]
fn ends_where_the_last_allocated_space_does() {
    let space = FileSpaceAllocator::new(0, Width::EIGHT, Clock::default(), false);
    let first = space.alloc(100, SpaceKind::Metadata).unwrap();
    let second = space.alloc(100, SpaceKind::Metadata).unwrap();
    space.free_metadata_after_full_flush(second, 100);
    space.begin_flush(FlushScope::All);
    space.end_flush(true);
    space.shrink_allocated_end();
    assert_eq!(space.allocated_end(), 100);
    space.adopt_unreachable_range(first.get().unwrap(), 100, SpaceKind::Metadata);
    assert_eq!(space.free_sections(), [(0, 100, None)]);
    assert_eq!(space.alloc_at_end(10).unwrap().get(), Some(104));
}

/// A space whose grace is measured by milliseconds that a test counts.
fn timed(reuse: ReusePolicy, durable: bool) -> (FileSpaceAllocator, Arc<AtomicU64>) {
    let time = Arc::new(AtomicU64::new(0));
    let shown = time.clone();
    let clock = Clock::new(move || Duration::from_millis(shown.load(Relaxed)));
    let space = FileSpaceAllocator::new(0, Width::EIGHT, clock, durable);
    space.set_reuse_policy(reuse);
    (space, time)
}

fn flush(space: &FileSpaceAllocator, scope: FlushScope) {
    space.begin_flush(scope);
    space.end_flush(true);
}

#[test]
fn freed_space_rests_for_the_grace_after_the_flush() {
    let (space, time) = timed(ReusePolicy::AfterGrace(Duration::from_secs(5)), false);
    let at = space.alloc(64, SpaceKind::Metadata).unwrap();
    let moment = space.current_epoch();
    space.free_metadata_after_full_flush(at, 64);
    time.store(60_000, Relaxed);
    assert_ne!(space.alloc(64, SpaceKind::Metadata).unwrap(), at, "no flush has come");
    flush(&space, FlushScope::All);
    time.store(64_999, Relaxed);
    assert_ne!(space.alloc(64, SpaceKind::Metadata).unwrap(), at);
    assert!(!space.is_reclaimable(moment));
    time.store(65_200, Relaxed);
    assert_eq!(space.alloc(64, SpaceKind::Metadata).unwrap(), at);
    assert!(space.is_reclaimable(moment));
}

#[test]
fn no_grace_is_shorter_than_what_readers_count_on() {
    let (space, time) = timed(ReusePolicy::AfterGrace(Duration::ZERO), false);
    let at = space.alloc(64, SpaceKind::Metadata).unwrap();
    space.free_metadata_after_full_flush(at, 64);
    flush(&space, FlushScope::All);
    time.store(999, Relaxed);
    assert_ne!(space.alloc(64, SpaceKind::Metadata).unwrap(), at);
    time.store(1100, Relaxed);
    assert_eq!(space.alloc(64, SpaceKind::Metadata).unwrap(), at);
}

#[test]
fn the_longest_grace_never_ends() {
    let (space, time) = timed(ReusePolicy::AfterGrace(Duration::MAX), false);
    let at = space.alloc(64, SpaceKind::Metadata).unwrap();
    space.free_metadata_after_full_flush(at, 64);
    flush(&space, FlushScope::All);
    time.store(u64::MAX, Relaxed);
    assert_ne!(space.alloc(64, SpaceKind::Metadata).unwrap(), at);
}

#[test]
fn time_alone_frees_nothing_that_rests_until_nobody_has_the_file_open() {
    let (space, time) = timed(ReusePolicy::WhenExclusive, false);
    let [at, other] = std::array::from_fn(|_| space.alloc(64 << 10, SpaceKind::Raw).unwrap());
    let moment = space.current_epoch();
    space.free_raw_after_full_flush(at, 64 << 10);
    flush(&space, FlushScope::All);
    time.store(1_000_000_000, Relaxed);
    assert_ne!(space.alloc(64 << 10, SpaceKind::Raw).unwrap(), at);
    assert!(!space.is_reclaimable(moment));
    space.begin_min_grace_if_exclusive(true, || false);
    assert_eq!(space.quarantine_stats().unreachable_bytes, 64 << 10);
    space.begin_min_grace_if_exclusive(true, || true);
    assert!(!space.is_reclaimable(moment), "a moment more, for those that have the file open only now and then");
    space.free_raw_after_full_flush(other, 64 << 10);
    flush(&space, FlushScope::All);
    time.store(1_000_001_100, Relaxed);
    assert!(space.is_reclaimable(moment));
    assert_eq!(space.alloc(64 << 10, SpaceKind::Raw).unwrap(), at);
    assert_eq!(
        space.quarantine_stats().unreachable_bytes,
        64 << 10,
        "what became unreachable later waits for the next answer"
    );
    space.release_all_unreachable();
    assert_eq!((space.quarantine_stats().unreachable_bytes, space.free_bytes()), (0, 64 << 10));
}

#[test]
fn what_is_wanted_inside_structures_is_worth_the_question_whether_anybody_has_the_file_open() {
    let (space, _) = timed(ReusePolicy::WhenExclusive, false);
    let asked = std::cell::Cell::new(0);
    let ask = || asked.set(asked.get() + 1);
    let moment = space.current_epoch();
    flush(&space, FlushScope::All);
    space.begin_min_grace_if_exclusive(false, || {
        ask();
        true
    });
    assert_eq!(asked.get(), 0);
    assert!(!space.is_reclaimable(moment));
    space.begin_min_grace_if_exclusive(false, || {
        ask();
        true
    });
    assert_eq!(asked.get(), 1);
    space.begin_min_grace_if_exclusive(false, || {
        ask();
        true
    });
    assert_eq!(asked.get(), 1, "the answer holds for all that was given back before");
}

#[test]
fn merged_sections_are_given_back_within_the_borders_of_pages_and_blocks() {
    let (space, _) = timed(ReusePolicy::WhenExclusive, false);
    space.set_page_size_and_align_end(4096).unwrap();
    let pieces: Vec<Addr> = (0..6).map(|_| space.alloc(2000, SpaceKind::Raw).unwrap()).collect();
    let large = space.alloc(5000, SpaceKind::Raw).unwrap();
    let kept = space.alloc(2000, SpaceKind::Raw).unwrap();
    pieces.iter().for_each(|at| space.free_raw_after_full_flush(*at, 2000));
    space.free_raw_after_full_flush(large, 5000);
    flush(&space, FlushScope::All);
    space.release_all_unreachable();
    let (kept, end) = (kept.get().unwrap(), space.allocated_end());
    let free = space.free_sections();
    assert!(free.iter().all(|(at, len, _)| at + len <= kept || *at >= kept + 2000), "{free:?}");
    assert_eq!(space.free_bytes() + 2000, end - end % 4096, "nothing is lost: {free:?}");
}

#[test]
fn a_flush_of_one_object_frees_what_only_that_object_led_to() {
    let (space, time) = timed(ReusePolicy::AfterGrace(Duration::from_secs(1)), false);
    let [own, others, shared] = std::array::from_fn(|_| space.alloc(64, SpaceKind::Metadata).unwrap());
    let [owner, other] = [1, 2].map(|at| Owner::new(Addr::new(at)));
    space.free_metadata_after_owner_flush(owner, own, 64);
    space.free_metadata_after_owner_flush(other, others, 64);
    space.free_metadata_after_full_flush(shared, 64);
    flush(&space, FlushScope::Owner(owner));
    time.store(2000, Relaxed);
    assert_eq!(space.alloc(64, SpaceKind::Metadata).unwrap(), own);
    let fresh = space.alloc(64, SpaceKind::Metadata).unwrap();
    assert!(fresh > shared);
    space.require_full_flush_for_owner(other);
    flush(&space, FlushScope::Owner(other));
    time.store(4000, Relaxed);
    assert!(space.alloc(64, SpaceKind::Metadata).unwrap() > fresh, "others led to it");
    flush(&space, FlushScope::All);
    time.store(6000, Relaxed);
    assert_eq!(space.alloc(64, SpaceKind::Metadata).unwrap(), others);
    assert_eq!(space.alloc(64, SpaceKind::Metadata).unwrap(), shared);
}

#[test]
fn a_durable_file_waits_for_the_barrier_after_the_flush() {
    for reuse in [ReusePolicy::AfterFlush, ReusePolicy::AfterGrace(Duration::from_secs(1))] {
        let (space, time) = timed(reuse, true);
        let [first, second] = std::array::from_fn(|_| space.alloc(64, SpaceKind::Metadata).unwrap());
        space.free_metadata_after_full_flush(first, 64);
        flush(&space, FlushScope::All);
        let flushed = space.flush_mark();
        space.free_metadata_after_full_flush(second, 64);
        flush(&space, FlushScope::All);
        space.end_sync(flushed);
        space.end_sync(flushed);
        time.store(2000, Relaxed);
        assert_eq!(space.alloc(64, SpaceKind::Metadata).unwrap(), first);
        assert!(space.alloc(64, SpaceKind::Metadata).unwrap() > second);
        space.end_sync(space.flush_mark());
        time.store(4000, Relaxed);
        assert_eq!(space.alloc(64, SpaceKind::Metadata).unwrap(), second);
    }
}

#[test]
fn zeros_are_where_nothing_was_and_no_intent_will_be() {
    let zeros = |space: &FileSpaceAllocator, len| {
        let (at, zeros) = space.alloc_with_zero_tail_offset(len, SpaceKind::Raw).unwrap();
        (at.get().unwrap(), zeros)
    };
    let storage = MemoryStorage::from(vec![0xaa; 300]);
    let space = FileSpaceAllocator::new(200, Width::EIGHT, Clock::default(), false);
    space.set_superblock_eof(1000);
    assert_eq!(zeros(&space, 50), (200, 50), "the length of the storage is not known");
    space.ensure_len(1000, &storage).unwrap();
    assert_eq!(zeros(&space, 50), (250, 50), "who died has left something there");
    assert_eq!(zeros(&space, 100), (300, 0));
    space.shrink_allocated_end();
    assert_eq!(zeros(&space, 600), (400, 0));
    assert_eq!(zeros(&space, 1), (1000, 1), "a redo record may come to be where the end is announced");
    space.raise_used_end_for_redo(1500);
    space.set_superblock_eof(4000);
    assert_eq!(zeros(&space, 499), (1001, 499), "a redo record was there");
    assert_eq!(zeros(&space, 64), (1500, 0));
    space.free_unwritten(Addr::new(1500), 64);
    space.shrink_allocated_end();
    assert_eq!(zeros(&space, 64), (1500, 64), "it was in use before");
    space.raise_used_end_for_redo(1600);
    assert_eq!(zeros(&space, 400), (1564, 36), "a redo record was at the begin of it");
}

/// As [`MemoryStorage`], but it likes to be filled ahead, and notes for what it is to find a place.
#[derive(Debug, Default)]
struct Eager(MemoryStorage, Mutex<Vec<Range<u64>>>, Option<io::ErrorKind>);

impl Storage for Eager {
    fn read_at(&self, into: &mut [u8], at: u64) -> std::io::Result<usize> {
        self.0.read_at(into, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> std::io::Result<()> {
        self.0.write_at(bytes, at)
    }

    fn len(&self) -> std::io::Result<u64> {
        self.0.len()
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> std::io::Result<()> {
        self.0.sync()
    }

    fn preferred_prefill_len(&self) -> usize {
        100
    }

    fn reserve(&self, at: u64, len: u64) -> io::Result<()> {
        self.1.lock().push(at..at + len);
        self.2.map_or(Ok(()), |kind| Err(kind.into()))
    }
}

#[test]
fn only_what_nobody_was_given_is_filled_ahead() {
    let storage = Eager::default();
    let space = space(0);
    storage.set_len(1000).unwrap();
    storage.write_at(&[7; 1000], 0).unwrap();
    space.ensure_len(1000, &storage).unwrap();
    space.set_superblock_eof(420);
    let mut bytes = [0; 1000];
    let mut fill = |end: u64, expected: Range<u64>| {
        assert_eq!(space.prefill(end, &storage), expected.end - expected.start);
        storage.read_at(&mut bytes, 0).unwrap();
        let is_zero = |at: u64| bytes[at as usize] == 0;
        assert!(expected.clone().all(is_zero), "{expected:?}");
        bytes[..200].iter().all(|byte| *byte == 7)
    };
    space.alloc(200, SpaceKind::Raw).unwrap();
    assert!(fill(10, 200..300), "behind all that is given out, though the write was before it");
    assert!(fill(250, 0..0), "that is filled");
    space.alloc(150, SpaceKind::Raw).unwrap();
    assert!(fill(350, 350..420), "no further than is announced");
    assert!(fill(421, 0..0), "nothing is left to be filled");
    storage.read_at(&mut bytes, 0).unwrap();
    assert_eq!((bytes[349], bytes[420]), (7, 7), "what was given out since was not filled again");
}

const MIB: u64 = 1 << 20;

/// What a storage was asked to find a place for when raw data was written, after as much had been allocated as is said
/// with each.
fn reserved(storage: &Eager, writes: &[(u64, Range<u64>)]) -> Vec<Range<u64>> {
    let space = space(0);
    for (allocated, write) in writes {
        space.alloc(allocated - space.allocated_end(), SpaceKind::Raw).unwrap();
        space.ensure_len_ahead(space.allocated_end(), storage).unwrap();
        space.reserve_ahead(write.start, write.end, storage);
    }
    std::mem::take(&mut *storage.1.lock())
}

#[test]
fn a_place_is_found_for_what_comes_behind_the_data_of_a_large_file() {
    let large = 16 * MIB;
    let storage = Eager::default();
    let found = reserved(
        &storage,
        &[
            (MIB, 0..MIB),
            (large, 0..MIB),
            (large, large - MIB..large),
            (large + MIB, large..large + MIB),
            (large + 3 * MIB, large + MIB..large + 3 * MIB),
        ],
    );
    let reached = large + 2 * MIB;
    assert_eq!(found.len(), 2, "neither in a small file, nor far before the end, nor again: {found:?}");
    assert_eq!(found[0], large - MIB..reached);
    assert_eq!(found[1].start, reached, "what it has found a place for is left out");
    assert!(found[1].end <= storage.len().unwrap());
}

#[test]
fn a_storage_that_finds_no_places_is_asked_once_and_a_full_one_further_on() {
    let storage = |kind| Eager(MemoryStorage::default(), Mutex::default(), Some(kind));
    let writes: Vec<_> = (16..32).map(|n| (n * MIB, (n - 1) * MIB..n * MIB)).collect();
    assert_eq!(reserved(&storage(io::ErrorKind::Unsupported), &writes).len(), 1);
    let found = reserved(&storage(io::ErrorKind::StorageFull), &writes);
    assert!((3..16).contains(&found.len()), "{found:?}");
    assert!(found.windows(2).all(|pair| pair[0].end == pair[1].start), "{found:?}");
}

#[test]
fn what_a_damaged_file_gives_back_beyond_its_end_overflows_nothing_and_is_never_given_out() {
    for page in [4096, 1 << 63, (1 << 63) + 1, u64::MAX - 100] {
        let space = space(5000);
        space.set_page_size_and_align_end(page).unwrap();
        let end = space.allocated_end();
        for (at, len) in [(end + 5, 50), (u64::MAX - 10, 5), (u64::MAX - 10, u64::MAX), (7, u64::MAX), (0, u64::MAX)] {
            for kind in [SpaceKind::Metadata, SpaceKind::Raw] {
                space.adopt_unreachable_range(at, len, kind);
                space.free_raw_after_full_flush(Addr::new(at), len);
                space.free_metadata_after_full_flush(Addr::new(at), len);
                space.free_unwritten(Addr::new(at), len);
            }
        }
        let free = space.free_bytes();
        flush(&space, FlushScope::All);
        assert_eq!(space.free_bytes(), free, "nothing of it is free");
        space.shrink_allocated_end();
        // Of the largest pages there may be no second one.
        let _ = space.alloc(40, SpaceKind::Raw);
        assert!(space.free_sections().iter().all(|(at, len, _)| at + len <= space.allocated_end()));
    }
}
