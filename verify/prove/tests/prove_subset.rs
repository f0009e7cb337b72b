//! A small part of what `make prove` goes through.

use std::sync::Arc;

use h5live_cache::DependencyKind;
use h5live_checker::crash::{
    CrashExploreBounds, CrashKind, CrashedStorage, ExpectedPrefixRange, PowerFailureSampling, explore_crashes,
};
use h5live_checker::schedule::{AllowedTears, Counterexample, CounterexampleLog, ExploreBounds};
use h5live_model::CreationOrder;
use h5live_prove::entry_changes::{self, EntryChange, EntryChanges, change_entries};
use h5live_prove::suite::changes::EXCHANGED;
use h5live_prove::suite::{ReaderKind, page_tears, small_tears};
use h5live_prove::{CrashRecovery, ReadStrategy, Series, SeriesKind, Workload, WriterSetup, mutants, workloads};

const ROWS: ReaderKind = ReaderKind::Rows(ReadStrategy::Rows);
const INDEX_FIRST: ReaderKind = ReaderKind::Rows(ReadStrategy::IndexFirst);

fn explore(workload: &Workload, reader: ReaderKind, passes: usize, tearing: AllowedTears) -> u64 {
    let bounds = ExploreBounds { tearing, ..ExploreBounds::default() };
    let explored = reader.explore(workload, passes, &bounds);
    assert!(explored.is_exhaustive);
    assert_eq!(explored.violations, []);
    explored.schedule_count
}

/// The shortest counterexample for a writer without the dependencies of one kind.
fn found(
    kind: DependencyKind,
    record: impl Fn(WriterSetup) -> Workload,
    reader: ReaderKind,
) -> (Workload, Counterexample) {
    let workload = record(WriterSetup::without(kind));
    let (found, _) =
        reader.shortest(&workload, 2, &ExploreBounds { max_writer_moves: Some(2), ..ExploreBounds::default() });
    (workload, found.unwrap_or_else(|| panic!("{kind:?} is not missed")))
}

#[test]
fn readers_of_an_extensible_array_are_right_in_every_schedule() {
    let workload = workloads::append_to_extensible_array(WriterSetup::default(), 0, 6, 1);
    for reader in [ROWS, INDEX_FIRST, ReaderKind::Rows(ReadStrategy::BeyondExtent)] {
        // Where schedules meet, all but one of them end.
        let merged = explore(&workload, reader, 2, AllowedTears::NONE);
        let all = reader.explore(&workload, 2, &ExploreBounds { merges_schedules: false, ..ExploreBounds::default() });
        assert!(
            all.is_exhaustive && all.schedule_count > 1000 && merged < all.schedule_count,
            "{merged} of {}",
            all.schedule_count
        );
        assert_eq!(all.violations, []);
    }
    explore(&workloads::append_to_extensible_array(WriterSetup::default(), 2, 1, 1), ROWS, 1, small_tears());
}

#[test]
fn readers_of_a_fixed_array_are_right_in_every_schedule() {
    let workload = workloads::append_to_fixed_array(WriterSetup::default(), 20, 0, 3, 2);
    explore(&workload, ROWS, 2, AllowedTears::NONE);
    explore(&workload, INDEX_FIRST, 2, AllowedTears::NONE);
}

#[test]
fn readers_of_a_chunk_that_moves_are_right_in_every_schedule_of_torn_writes() {
    let workload = workloads::rewrite_dataset(WriterSetup::default(), SeriesKind::Filtered { rows: 2 }, 2, 2);
    explore(&workload, ROWS, 2, small_tears());
}

#[test]
fn readers_of_what_is_rewritten_in_its_place_find_the_old_or_the_new() {
    for contiguous in [false, true] {
        explore(
            &workloads::rewrite_chunks_in_place(WriterSetup::default(), contiguous, 3, 1),
            ROWS,
            1,
            AllowedTears::NONE,
        );
        found(
            DependencyKind::RawOverwriteRedo,
            |setup| workloads::rewrite_chunks_in_place(setup, contiguous, 3, 1),
            ROWS,
        );
    }
    // A reader once took the change after the next one for the next one.
    let bounds = ExploreBounds { tearing: small_tears(), max_writer_moves: Some(2), ..ExploreBounds::default() };
    assert_eq!(
        ROWS.explore(&workloads::rewrite_chunks_in_place(WriterSetup::default(), true, 3, 2), 1, &bounds).violations,
        []
    );
}

#[test]
fn readers_of_attributes_and_links_are_right_in_every_schedule() {
    explore(&workloads::add_attributes(WriterSetup::default(), 0, 5), ReaderKind::Attributes, 2, AllowedTears::NONE);
    explore(&workloads::add_linked_datasets(WriterSetup::default(), 0, 2), ReaderKind::Links, 2, AllowedTears::NONE);
    explore(
        &workloads::add_linked_datasets(WriterSetup::default(), 0, 2),
        ReaderKind::EndOfFile,
        1,
        AllowedTears::NONE,
    );
}

#[test]
fn readers_notice_missing_dependencies() {
    let array = |setup| workloads::append_to_extensible_array(setup, 3, 3, 1);
    found(DependencyKind::ObjectHeaderIndex, array, ROWS);
    found(DependencyKind::ExtensibleArrayDataBlock, array, INDEX_FIRST);
    found(DependencyKind::LayoutRaw, |setup| workloads::append_to_extensible_array(setup, 0, 2, 3), ROWS);
    found(DependencyKind::Continuation, |setup| workloads::add_attributes(setup, 0, 6), ReaderKind::Attributes);
    found(DependencyKind::Link, |setup| workloads::add_linked_datasets(setup, 0, 1), ReaderKind::Links);
    let sparse = SeriesKind::Sparse { rows: 12, order: &[3, 1], part: 2, fixed: false };
    found(DependencyKind::ExtensibleArrayChunk, |setup| workloads::rewrite_dataset(setup, sparse, 3, 2), INDEX_FIRST);
}

#[test]
fn readers_of_old_files_go_by_generations() {
    let split = |setup: WriterSetup| workloads::append_to_extensible_array(setup.with_old_format(), 121, 3, 1);
    found(DependencyKind::Generation, split, ROWS);
    let bounds = ExploreBounds { max_writer_moves: Some(2), ..ExploreBounds::default() };
    assert_eq!(ROWS.shortest(&split(WriterSetup::default()), 1, &bounds).0, None);
}

#[test]
fn a_counterexample_is_told_by_structures_and_fields() {
    let array = |setup| workloads::append_to_extensible_array(setup, 0, 2, 1);
    let (workload, found) = found(DependencyKind::ObjectHeaderIndex, array, ROWS);
    let story = CounterexampleLog::new(&workload.trace, &found).to_string();
    for part in ["object header at 0x", "dimension: 0 -> 1", "reads object header", &found.fault] {
        assert!(story.contains(part), "{part}\n{story}");
    }
}

#[test]
fn what_was_flushed_outlasts_the_death_of_the_writer() {
    for workload in [
        workloads::append_to_extensible_array(WriterSetup::default(), 2, 3, 1),
        workloads::append_to_fixed_array(WriterSetup::default(), 20, 0, 3, 2),
        workloads::append_and_reopen(WriterSetup::default(), 2),
        workloads::append_and_take_over(WriterSetup::default(), 2),
        workloads::append_to_fixed_array(WriterSetup::default(), 3000, 1020, 2, 1),
        workloads::rewrite_chunks_in_place(WriterSetup::default(), false, 3, 2),
        // Chunks that the dead writer's index does not count, or that it was about to cut off, do not come back.
        workloads::append_batches(WriterSetup::default(), 2, 3, 1),
        workloads::shrink_and_append_again(WriterSetup::default().exclusive(), Some(30), 1, 2),
        workloads::create_delete_and_reopen(WriterSetup::default().with_persistent_space(), 2),
    ] {
        let bounds = mutants::death_bounds(2, std::time::Duration::from_secs(60));
        let bounds = CrashExploreBounds { start_prefix: workload.start, ..bounds };
        let survivor = CrashRecovery::for_process_death(&workload);
        let crashed =
            explore_crashes(&workload.trace, &bounds, &|disk: &Arc<CrashedStorage>, expected: &ExpectedPrefixRange| {
                survivor.recover(disk, expected)
            });
        assert!(crashed.is_exhaustive && crashed.checked_state_count > 20);
        assert_eq!(crashed.violations, []);
    }
}

/// A live writer once left heaps that counted one object too many, and indexes of which one was ahead of the other.
#[test]
fn entries_that_come_and_go_agree_after_the_death_of_the_writer() {
    const CHANGES: &[EntryChange] = &[
        EntryChange::Put(20, 1),
        EntryChange::Flush,
        EntryChange::Remove(20),
        EntryChange::Remove(3),
        EntryChange::Put(21, 3),
        EntryChange::Flush,
    ];
    for kind in [entry_changes::EntryKind::Attributes, entry_changes::EntryKind::Links] {
        for order in [CreationOrder::Untracked, CreationOrder::Indexed] {
            let wrong = |without_recount| {
                let setup = WriterSetup { without_recount, ..WriterSetup::default() };
                let workload = change_entries(setup, EntryChanges { kind, order, start_count: 12, changes: CHANGES });
                let bounds = mutants::death_bounds(2, std::time::Duration::from_secs(60));
                let bounds = CrashExploreBounds { start_prefix: workload.start, ..bounds };
                let survivor = CrashRecovery::for_process_death(&workload);
                let recover =
                    |disk: &Arc<CrashedStorage>, expected: &ExpectedPrefixRange| survivor.recover(disk, expected);
                let crashed = explore_crashes(&workload.trace, &bounds, &recover);
                assert!(crashed.is_exhaustive && crashed.checked_state_count > 20);
                crashed.violations
            };
            assert_eq!(wrong(false), []);
            assert_ne!(wrong(true), []);
        }
    }
}

/// One attribute goes from the first chunk of a header to the second one, another the other way, in one flush. Neither
/// chunk can be written first: without the new one, an attribute was in neither between the two writes.
#[test]
fn attributes_that_exchange_chunks_of_a_header_are_there_after_the_death_of_the_writer() {
    let names_of = EntryChanges {
        kind: entry_changes::EntryKind::Attributes,
        order: CreationOrder::Untracked,
        start_count: 6,
        changes: EXCHANGED,
    };
    let workload = change_entries(WriterSetup::default(), names_of);
    let bounds = mutants::death_bounds(2, std::time::Duration::from_secs(60));
    let bounds = CrashExploreBounds { start_prefix: workload.start, ..bounds };
    let survivor = CrashRecovery::for_process_death(&workload);
    let recover = |disk: &Arc<CrashedStorage>, expected: &ExpectedPrefixRange| survivor.recover(disk, expected);
    let crashed = explore_crashes(&workload.trace, &bounds, &recover);
    assert!(crashed.is_exhaustive && crashed.checked_state_count > 20);
    assert_eq!(crashed.violations, []);
}

#[test]
fn what_was_durable_outlasts_a_power_failure() {
    let wrong = |setup: WriterSetup, record: fn(WriterSetup) -> Workload, unit: u32| {
        let workload = record(setup);
        let tearing = AllowedTears { max_torn_positions_per_run: 1, ..AllowedTears::cut_at_multiples_of(unit) };
        let tearing = if unit == 0 { AllowedTears::NONE } else { tearing };
        let bounds = CrashExploreBounds {
            start_prefix: workload.start,
            tearing,
            crash_kind: CrashKind::Power(PowerFailureSampling::default()),
            max_recovery_crashes: 0,
            ..mutants::death_bounds(2, std::time::Duration::from_secs(60))
        };
        let survivor = CrashRecovery::for_power_failure(&workload);
        let crashed =
            explore_crashes(&workload.trace, &bounds, &|disk: &Arc<CrashedStorage>, expected: &ExpectedPrefixRange| {
                survivor.recover(disk, expected)
            });
        assert!(crashed.is_exhaustive && crashed.checked_state_count > 20, "{crashed:?}");
        crashed.violation_count
    };
    for record in [
        |setup| workloads::append_to_extensible_array(setup, 2, 4, 1),
        |setup| workloads::append_to_fixed_array(setup, 20, 0, 4, 2),
        |setup| workloads::append_to_btree2(setup, 82, 4, 1),
        |setup| workloads::append_and_reopen(setup, 2),
    ] as [fn(WriterSetup) -> Workload; 4]
    {
        assert_eq!(wrong(WriterSetup::durable(), record, 0), 0);
        assert_eq!(wrong(WriterSetup::durable(), record, 4096), 0);
        assert_eq!(wrong(WriterSetup::durable(), record, 512), 0);
    }
    let without_intents = WriterSetup { disable_redo: true, ..WriterSetup::durable() };
    assert!(wrong(without_intents, |setup| workloads::append_to_fixed_array(setup, 3000, 1020, 4, 1), 512) > 0);
    let without_barriers = WriterSetup { disable_barriers: true, ..WriterSetup::durable() };
    assert!(wrong(without_barriers, |setup| workloads::append_to_btree2(setup, 82, 4, 1), 0) > 0);
}

/// A writer may die between two pages of one write: what follows it, and what it leads to, is found all the same.
#[test]
fn readers_find_the_whole_of_what_a_dead_writer_left_half_written() {
    let workload = workloads::append_to_fixed_array(WriterSetup::default(), 3000, 1022, 2, 1);
    for reader in [ROWS, INDEX_FIRST] {
        explore(&workload, reader, 2, page_tears());
    }
    // A reader once forgot what it had found there when it began an operation within another.
    let workload = workloads::append_to_extensible_array(WriterSetup::default(), 131_059, 2, 1);
    let bounds = ExploreBounds { tearing: page_tears(), max_writer_moves: Some(2), ..ExploreBounds::default() };
    assert_eq!(ROWS.explore(&workload, 1, &bounds).violations, []);
}

/// What was found once is found again, in what the writer did then.
#[test]
fn kept_counterexamples_are_still_found() {
    let rows = |chunk| vec![Series::rows("d", chunk)];
    let two_dimensional = || vec![Series { is_two_dimensional: true, ..Series::rows("d", 1) }];
    let kept: [(&str, ReaderKind, Vec<Series>); 5] = [
        ("ObjectHeaderIndex", ROWS, rows(1)),
        ("LayoutRaw", ROWS, rows(3)),
        ("BTree2Shadow", ROWS, two_dimensional()),
        ("Continuation", ReaderKind::Attributes, rows(1)),
        ("Link", ReaderKind::Links, Vec::new()),
    ];
    for (name, reader, series) in kept {
        let path = format!("{}/tests/data/{name}.h5trace", env!("CARGO_MANIFEST_DIR"));
        let file = std::fs::File::open(&path).unwrap();
        let (trace, kept) = Counterexample::load(std::io::BufReader::new(file)).unwrap();
        let start = kept.queries[0].position.prefix as usize;
        let svg = CounterexampleLog::new(&trace, &kept).to_svg();
        assert!(svg.contains("object header at 0x"), "{name}");
        let workload = Workload {
            trace,
            start,
            series,
            names: None,
            without_recount: false,
            is_exclusive: false,
            has_no_write_mark: false,
        };
        let (found, _) =
            reader.shortest(&workload, 2, &ExploreBounds { max_writer_moves: Some(2), ..ExploreBounds::default() });
        let found = found.unwrap_or_else(|| panic!("{name} is not found any more"));
        assert_eq!(found.writer_move_count(), 1, "{name}: {}", found.fault);
    }
}

/// A writer once took space for zeros in which a redo record had been written.
#[test]
fn readers_find_nothing_in_those_parts_of_chunks_that_were_never_written() {
    for (fixed, is_two_dimensional) in [(true, false), (false, false), (false, true)] {
        let setup = if fixed { WriterSetup::default() } else { WriterSetup::durable() };
        let workload = workloads::write_sparse_rows(setup, fixed, is_two_dimensional);
        let bounds = ExploreBounds { max_writer_moves: Some(1), ..ExploreBounds::default() };
        assert_eq!(ROWS.explore(&workload, 1, &bounds).violations, []);
    }
    assert!(mutants::ProtocolMutant::TrustedZeros.find_killer(2, std::time::Duration::from_secs(60)).is_some());
}

#[test]
fn readers_of_datasets_that_come_and_go_are_right_in_every_schedule() {
    explore(
        &workloads::create_and_delete_datasets(WriterSetup::default(), 2, 0),
        ReaderKind::Transient,
        2,
        AllowedTears::NONE,
    );
}

#[test]
fn space_is_used_again_under_readers_that_look_at_the_time() {
    let workload = workloads::rewrite_filtered_chunks(WriterSetup::default(), 4, 2, 4, 2500);
    explore(&workload, ROWS, 2, AllowedTears::NONE);
    assert!(mutants::ProtocolMutant::NoReadDeadline.find_killer(2, std::time::Duration::from_secs(60)).is_some());
}

#[test]
fn datasets_are_published_in_their_order() {
    for workload in [
        workloads::append_in_publish_order(WriterSetup::default(), 2),
        workloads::append_in_transactions(WriterSetup::default(), 2),
    ] {
        explore(&workload, ReaderKind::Ordered, 2, AllowedTears::NONE);
    }
    found(DependencyKind::PublishAfter, |setup| workloads::append_in_publish_order(setup, 2), ReaderKind::Ordered);
}
