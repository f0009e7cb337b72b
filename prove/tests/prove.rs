//! A small part of what `make prove` goes through.

use std::sync::Arc;

use h5live_cache::EdgeKind;
use h5live_checker::crash::{CrashBounds, Disk, Expected, Loss, Power, crash};
use h5live_checker::schedule::{Bounds, Counterexample, Story, Tearing};
use h5live_model::CreationOrder;
use h5live_prove::names::{self, Change, Names, names};
use h5live_prove::suite::{Reader, page_tears, small_tears};
use h5live_prove::{Kind, Look, Series, Setup, Survivor, Workload, mutants, workloads};

const ROWS: Reader = Reader::Rows(Look::Rows);
const INDEX_FIRST: Reader = Reader::Rows(Look::IndexFirst);

fn explore(workload: &Workload, reader: Reader, passes: usize, tearing: Tearing) -> u64 {
    let bounds = Bounds { tearing, ..Bounds::default() };
    let explored = reader.explore(workload, passes, &bounds);
    assert!(explored.exhausted);
    assert_eq!(explored.violations, []);
    explored.schedules
}

/// The shortest counterexample for a writer without the dependencies of one kind.
fn found(kind: EdgeKind, record: impl Fn(Setup) -> Workload, reader: Reader) -> (Workload, Counterexample) {
    let workload = record(Setup::without(kind));
    let (found, _) = reader.shortest(&workload, 2, &Bounds { moves: Some(2), ..Bounds::default() });
    (workload, found.unwrap_or_else(|| panic!("{kind:?} is not missed")))
}

#[test]
fn readers_of_an_extensible_array_are_right_in_every_schedule() {
    let workload = workloads::extensible_array(Setup::default(), 0, 6, 1);
    for reader in [ROWS, INDEX_FIRST, Reader::Rows(Look::Beyond)] {
        // Where schedules meet, all but one of them end.
        let merged = explore(&workload, reader, 2, Tearing::NONE);
        let all = reader.explore(&workload, 2, &Bounds { merge: false, ..Bounds::default() });
        assert!(all.exhausted && all.schedules > 1000 && merged < all.schedules, "{merged} of {}", all.schedules);
        assert_eq!(all.violations, []);
    }
    explore(&workloads::extensible_array(Setup::default(), 2, 1, 1), ROWS, 1, small_tears());
}

#[test]
fn readers_of_a_fixed_array_are_right_in_every_schedule() {
    let workload = workloads::fixed_array(Setup::default(), 20, 0, 3, 2);
    explore(&workload, ROWS, 2, Tearing::NONE);
    explore(&workload, INDEX_FIRST, 2, Tearing::NONE);
}

#[test]
fn readers_of_a_chunk_that_moves_are_right_in_every_schedule_of_torn_writes() {
    let workload = workloads::rewrite(Setup::default(), Kind::Filtered { rows: 2 }, 2, 2);
    explore(&workload, ROWS, 2, small_tears());
}

#[test]
fn readers_of_what_is_rewritten_in_its_place_find_the_old_or_the_new() {
    for contiguous in [false, true] {
        explore(&workloads::in_place(Setup::default(), contiguous, 3, 1), ROWS, 1, Tearing::NONE);
        found(EdgeKind::RawInPlace, |setup| workloads::in_place(setup, contiguous, 3, 1), ROWS);
    }
    // A reader once took the change after the next one for the next one.
    let bounds = Bounds { tearing: small_tears(), moves: Some(2), ..Bounds::default() };
    assert_eq!(ROWS.explore(&workloads::in_place(Setup::default(), true, 3, 2), 1, &bounds).violations, []);
}

#[test]
fn readers_of_attributes_and_links_are_right_in_every_schedule() {
    explore(&workloads::attributes(Setup::default(), 0, 5), Reader::Attributes, 2, Tearing::NONE);
    explore(&workloads::links(Setup::default(), 0, 2), Reader::Links, 2, Tearing::NONE);
    explore(&workloads::links(Setup::default(), 0, 2), Reader::Announced, 1, Tearing::NONE);
}

#[test]
fn readers_notice_missing_dependencies() {
    let array = |setup| workloads::extensible_array(setup, 3, 3, 1);
    found(EdgeKind::ObjectHeaderIndex, array, ROWS);
    found(EdgeKind::ExtensibleArrayDataBlock, array, INDEX_FIRST);
    found(EdgeKind::LayoutRaw, |setup| workloads::extensible_array(setup, 0, 2, 3), ROWS);
    found(EdgeKind::Continuation, |setup| workloads::attributes(setup, 0, 6), Reader::Attributes);
    found(EdgeKind::Link, |setup| workloads::links(setup, 0, 1), Reader::Links);
    let sparse = Kind::Sparse { rows: 12, order: &[3, 1], part: 2, fixed: false };
    found(EdgeKind::ExtensibleArrayChunk, |setup| workloads::rewrite(setup, sparse, 3, 2), INDEX_FIRST);
}

#[test]
fn readers_of_old_files_go_by_generations() {
    let split = |setup: Setup| workloads::extensible_array(setup.of_old_files(), 121, 3, 1);
    found(EdgeKind::Generation, split, ROWS);
    let bounds = Bounds { moves: Some(2), ..Bounds::default() };
    assert_eq!(ROWS.shortest(&split(Setup::default()), 1, &bounds).0, None);
}

#[test]
fn a_counterexample_is_told_by_structures_and_fields() {
    let array = |setup| workloads::extensible_array(setup, 0, 2, 1);
    let (workload, found) = found(EdgeKind::ObjectHeaderIndex, array, ROWS);
    let story = Story::new(&workload.trace, &found).to_string();
    for part in ["object header at 0x", "dimension: 0 -> 1", "reads object header", &found.fault] {
        assert!(story.contains(part), "{part}\n{story}");
    }
}

#[test]
fn what_was_flushed_outlasts_the_death_of_the_writer() {
    for workload in [
        workloads::extensible_array(Setup::default(), 2, 3, 1),
        workloads::fixed_array(Setup::default(), 20, 0, 3, 2),
        workloads::reopen(Setup::default(), 2),
        workloads::takeover(Setup::default(), 2),
        workloads::fixed_array(Setup::default(), 3000, 1020, 2, 1),
        workloads::in_place(Setup::default(), false, 3, 2),
        // Chunks that the dead writer's index does not count, or that it was about to cut off, do not come back.
        workloads::batches(Setup::default(), 2, 3, 1),
        workloads::shrink(Setup::default().alone(), Some(30), 1, 2),
        workloads::delete_and_close(Setup::default().that_keeps_space(), 2),
    ] {
        let bounds = mutants::death(2, std::time::Duration::from_secs(60));
        let bounds = CrashBounds { start: workload.start, ..bounds };
        let survivor = Survivor::of_death(&workload);
        let crashed =
            crash(&workload.trace, &bounds, &|disk: &Arc<Disk>, expected: &Expected| survivor.recover(disk, expected));
        assert!(crashed.exhausted && crashed.states > 20);
        assert_eq!(crashed.violations, []);
    }
}

/// A live writer once left heaps that counted one object too many, and indexes of which one was ahead of the other.
#[test]
fn entries_that_come_and_go_agree_after_the_death_of_the_writer() {
    const CHANGES: &[Change] =
        &[Change::Put(20, 1), Change::Flush, Change::Remove(20), Change::Remove(3), Change::Put(21, 3), Change::Flush];
    for kind in [names::Kind::Attributes, names::Kind::Links] {
        for order in [CreationOrder::Untracked, CreationOrder::Indexed] {
            let wrong = |without_recount| {
                let setup = Setup { without_recount, ..Setup::default() };
                let workload = names(setup, Names { kind, order, start: 12, changes: CHANGES });
                let bounds = mutants::death(2, std::time::Duration::from_secs(60));
                let bounds = CrashBounds { start: workload.start, ..bounds };
                let survivor = Survivor::of_death(&workload);
                let recover = |disk: &Arc<Disk>, expected: &Expected| survivor.recover(disk, expected);
                let crashed = crash(&workload.trace, &bounds, &recover);
                assert!(crashed.exhausted && crashed.states > 20);
                crashed.violations
            };
            assert_eq!(wrong(false), []);
            assert_ne!(wrong(true), []);
        }
    }
}

#[test]
fn what_was_durable_outlasts_a_power_failure() {
    let wrong = |setup: Setup, record: fn(Setup) -> Workload, unit: u32| {
        let workload = record(setup);
        let tearing = Tearing { observations: 1, ..Tearing::at(unit) };
        let tearing = if unit == 0 { Tearing::NONE } else { tearing };
        let bounds = CrashBounds {
            start: workload.start,
            tearing,
            loss: Loss::Power(Power::default()),
            again: 0,
            ..mutants::death(2, std::time::Duration::from_secs(60))
        };
        let survivor = Survivor::of_power_failure(&workload);
        let crashed =
            crash(&workload.trace, &bounds, &|disk: &Arc<Disk>, expected: &Expected| survivor.recover(disk, expected));
        assert!(crashed.exhausted && crashed.states > 20, "{crashed:?}");
        crashed.wrong
    };
    for record in [
        |setup| workloads::extensible_array(setup, 2, 4, 1),
        |setup| workloads::fixed_array(setup, 20, 0, 4, 2),
        |setup| workloads::btree2(setup, 82, 4, 1),
        |setup| workloads::reopen(setup, 2),
    ] as [fn(Setup) -> Workload; 4]
    {
        assert_eq!(wrong(Setup::durable(), record, 0), 0);
        assert_eq!(wrong(Setup::durable(), record, 4096), 0);
        assert_eq!(wrong(Setup::durable(), record, 512), 0);
    }
    let without_intents = Setup { without_intents: true, ..Setup::durable() };
    assert!(wrong(without_intents, |setup| workloads::fixed_array(setup, 3000, 1020, 4, 1), 512) > 0);
    let without_barriers = Setup { without_barriers: true, ..Setup::durable() };
    assert!(wrong(without_barriers, |setup| workloads::btree2(setup, 82, 4, 1), 0) > 0);
}

/// A writer may die between two pages of one write: what follows it, and what it leads to, is found all the same.
#[test]
fn readers_find_the_whole_of_what_a_dead_writer_left_half_written() {
    let workload = workloads::fixed_array(Setup::default(), 3000, 1022, 2, 1);
    for reader in [ROWS, INDEX_FIRST] {
        explore(&workload, reader, 2, page_tears());
    }
    // A reader once forgot what it had found there when it began an operation within another.
    let workload = workloads::extensible_array(Setup::default(), 131_059, 2, 1);
    let bounds = Bounds { tearing: page_tears(), moves: Some(2), ..Bounds::default() };
    assert_eq!(ROWS.explore(&workload, 1, &bounds).violations, []);
}

/// What was found once is found again, in what the writer did then.
#[test]
fn kept_counterexamples_are_still_found() {
    let rows = |chunk| vec![Series::rows("d", chunk)];
    let wide = || vec![Series { wide: true, ..Series::rows("d", 1) }];
    let kept: [(&str, Reader, Vec<Series>); 5] = [
        ("ObjectHeaderIndex", ROWS, rows(1)),
        ("LayoutRaw", ROWS, rows(3)),
        ("BTree2Shadow", ROWS, wide()),
        ("Continuation", Reader::Attributes, rows(1)),
        ("Link", Reader::Links, Vec::new()),
    ];
    for (name, reader, series) in kept {
        let path = format!("{}/tests/data/{name}.h5trace", env!("CARGO_MANIFEST_DIR"));
        let file = std::fs::File::open(&path).unwrap();
        let (trace, kept) = Counterexample::load(std::io::BufReader::new(file)).unwrap();
        let start = kept.seen[0].position.prefix as usize;
        let svg = Story::new(&trace, &kept).svg();
        assert!(svg.contains("object header at 0x"), "{name}");
        let workload =
            Workload { trace, start, series, names: None, without_recount: false, alone: false, unmarked: false };
        let (found, _) = reader.shortest(&workload, 2, &Bounds { moves: Some(2), ..Bounds::default() });
        let found = found.unwrap_or_else(|| panic!("{name} is not found any more"));
        assert_eq!(found.moves(), 1, "{name}: {}", found.fault);
    }
}

/// A writer once took space for zeros in which an intent had been written.
#[test]
fn readers_find_nothing_in_those_parts_of_chunks_that_were_never_written() {
    for (fixed, wide) in [(true, false), (false, false), (false, true)] {
        let setup = if fixed { Setup::default() } else { Setup::durable() };
        let workload = workloads::parts(setup, fixed, wide);
        let bounds = Bounds { moves: Some(1), ..Bounds::default() };
        assert_eq!(ROWS.explore(&workload, 1, &bounds).violations, []);
    }
    assert!(mutants::Other::Zeros.found(2, std::time::Duration::from_secs(60)).is_some());
}

#[test]
fn readers_of_datasets_that_come_and_go_are_right_in_every_schedule() {
    explore(&workloads::delete(Setup::default(), 2, 0), Reader::Passing, 2, Tearing::NONE);
}

#[test]
fn space_is_used_again_under_readers_that_look_at_the_time() {
    let workload = workloads::reuse(Setup::default(), 4, 2, 4, 2500);
    explore(&workload, ROWS, 2, Tearing::NONE);
    assert!(mutants::Other::Grace.found(2, std::time::Duration::from_secs(60)).is_some());
}

#[test]
fn datasets_are_published_in_their_order() {
    for workload in [workloads::ordered(Setup::default(), 2), workloads::transactions(Setup::default(), 2)] {
        explore(&workload, Reader::Ordered, 2, Tearing::NONE);
    }
    found(EdgeKind::PublishAfter, |setup| workloads::ordered(setup, 2), Reader::Ordered);
}
