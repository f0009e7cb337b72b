use std::collections::BTreeSet;

use h5live_cache::Storage;
use parking_lot::Mutex;
use proptest::prelude::*;

use super::timeline::Timeline;
use super::*;
use crate::trace::{StorageOp, Trace};

fn write(at: u64, bytes: &[u8]) -> StorageOp {
    StorageOp::Write { at, bytes: bytes.to_vec() }
}

fn one_thread(tearing: AllowedTears) -> ExploreBounds {
    ExploreBounds { tearing, threads: 1, ..ExploreBounds::default() }
}

fn byte(view: &ReaderView, at: u64) -> u8 {
    let mut byte = [0];
    view.read_at(&mut byte, at).unwrap();
    byte[0]
}

/// Cell 0 points to a cell that must hold 9.
fn follow_pointer(view: &std::sync::Arc<ReaderView>) -> Verdict {
    match byte(view, 0) {
        0 => Ok(()),
        at => match byte(view, at.into()) {
            9 => Ok(()),
            other => Err(format!("cell {at} holds {other}")),
        },
    }
}

#[test]
fn passes_a_writer_that_writes_what_is_pointed_to_first() {
    let trace = Trace::new(vec![0; 4], vec![write(1, &[9]), write(0, &[1]), write(2, &[9]), write(0, &[2])]);
    let explored = explore_schedules(&trace, &ExploreBounds::default(), &follow_pointer);
    assert_eq!((explored.schedule_count, explored.violation_count, explored.is_exhaustive), (3, 0, true));
}

#[test]
fn finds_a_pointer_that_is_written_too_early() {
    let trace = Trace::new(vec![0; 4], vec![write(1, &[9]), write(0, &[1]), write(0, &[2]), write(2, &[9])]);
    let explored = explore_schedules(&trace, &ExploreBounds::default(), &follow_pointer);
    assert_eq!(explored.violation_count, 1);
    let (found, _) = find_counterexample_with_fewest_moves(&trace, &ExploreBounds::default(), &follow_pointer);
    let found = found.unwrap();
    assert_eq!((found.fault.as_str(), found.writer_move_count()), ("cell 2 holds 0", 0));
    let (verdict, seen) = replay_reader(&trace, &ExploreBounds::default(), &found.queries, &follow_pointer);
    assert_eq!((verdict, seen), (Err(found.fault.clone()), found.queries.clone()));
}

#[test]
fn finds_a_write_that_is_seen_in_part() {
    let trace = Trace::new(vec![0; 16], vec![write(0, &[1; 16])]);
    let reader = |view: &std::sync::Arc<ReaderView>| {
        let mut bytes = [0; 16];
        view.read_at(&mut bytes, 0).unwrap();
        if bytes.iter().all(|byte| *byte == bytes[0]) { Ok(()) } else { Err("torn".into()) }
    };
    assert_eq!(explore_schedules(&trace, &one_thread(AllowedTears::NONE), &reader).violation_count, 0);
    assert_eq!(
        explore_schedules(&trace, &one_thread(AllowedTears::cut_at_multiples_of(8)), &reader).violation_count,
        1
    );
    assert_eq!(
        explore_schedules(&trace, &one_thread(AllowedTears::cut_at_multiples_of(512)), &reader).violation_count,
        0
    );
    let found =
        explore_schedules(&trace, &one_thread(AllowedTears::cut_at_multiples_of(8)), &reader).violations.remove(0);
    assert_eq!(found.queries[0].position, WriterPosition { prefix: 0, tear: Tear::Cut(8) });
}

#[test]
fn pages_appear_in_any_order() {
    let trace = Trace::new(vec![0; 3 * 4096], vec![write(100, &[1; 2 * 4096])]);
    let seen = Mutex::new(BTreeSet::new());
    let reader = |view: &std::sync::Arc<ReaderView>| {
        let cells = [100, 4096, 8192].map(|at| byte(view, at));
        seen.lock().insert(cells);
        Ok(())
    };
    let explored = explore_schedules(
        &trace,
        &one_thread(AllowedTears { max_torn_positions_per_run: 9, ..AllowedTears::pages_in_any_order() }),
        &reader,
    );
    assert!(explored.is_exhaustive);
    assert_eq!(seen.lock().len(), 8);
}

#[test]
fn a_reader_that_is_not_deterministic_is_told() {
    let trace = Trace::new(vec![0; 4], vec![write(0, &[1]), write(1, &[1])]);
    let runs = Mutex::new(0);
    let explored = explore_schedules(&trace, &one_thread(AllowedTears::NONE), &|view: &std::sync::Arc<ReaderView>| {
        *runs.lock() += 1;
        let at = *runs.lock() % 2;
        byte(view, at);
        byte(view, 1 - at);
        Ok(())
    });
    assert!(explored.violations.iter().any(|found| found.fault.contains("does not do the same")));
}

#[test]
fn a_reader_that_never_ends_is_told() {
    let trace = Trace::new(vec![0; 4], vec![write(0, &[1])]);
    let bounds = ExploreBounds { max_queries_per_run: 50, ..one_thread(AllowedTears::NONE) };
    let explored = explore_schedules(&trace, &bounds, &|view: &std::sync::Arc<ReaderView>| {
        let mut byte = [0];
        while view.read_at(&mut byte, 2).is_ok() {}
        Ok(())
    });
    assert!(explored.violations[0].fault.contains("goes on after"));
}

#[test]
fn two_threads_explore_what_one_does() {
    let operations = (0..8).flat_map(|n| [write(n + 1, &[9]), write(0, &[n as u8 + 1])]).collect();
    let trace = Trace::new(vec![0; 16], operations);
    let reader = |view: &std::sync::Arc<ReaderView>| (0..6).try_for_each(|_| follow_pointer(view));
    let one = explore_schedules(&trace, &one_thread(AllowedTears::NONE), &reader);
    let two = explore_schedules(&trace, &ExploreBounds { threads: 2, ..ExploreBounds::default() }, &reader);
    assert_eq!((one.schedule_count, one.state_count), (two.schedule_count, two.state_count));
    assert!(one.schedule_count > 1000 && one.is_exhaustive && two.is_exhaustive);
}

#[test]
fn rest_is_when_nothing_is_torn_or_changes() {
    let trace = Trace::new(vec![0; 4], vec![write(0, &[1])]);
    let rests = Mutex::new(Vec::new());
    explore_schedules(&trace, &one_thread(AllowedTears::NONE), &|view: &std::sync::Arc<ReaderView>| {
        byte(view, 0);
        let before = view.operation_must_succeed();
        view.mark_operation_restart();
        byte(view, 0);
        rests.lock().push((before, view.operation_must_succeed()));
        Ok(())
    });
    assert_eq!(*rests.lock(), [(true, true), (true, false), (false, true)]);
}

/// What a reader of three ranges sees, the second one where the first says.
type Outcome = [Vec<u8>; 3];

fn ranges(first: &[u8]) -> (u64, usize) {
    (u64::from(first.first().copied().unwrap_or(3) % 8), 3)
}

/// All outcomes, found by trying every position for every read.
fn all_outcomes(trace: &Trace, positions: &[WriterPosition]) -> BTreeSet<Outcome> {
    let timeline = Timeline::new(trace.clone());
    let reaches = |from: WriterPosition, to: WriterPosition| match (from.tear, to.tear) {
        _ if from.prefix != to.prefix => from.prefix < to.prefix,
        (Tear::None, _) => true,
        (Tear::Cut(from), Tear::Cut(to)) => from <= to,
        (Tear::PageMask(from), Tear::PageMask(to)) => from & !to == 0,
        _ => false,
    };
    let mut outcomes = BTreeSet::new();
    for one in positions {
        let first = timeline.read_at_position(*one, 0, 4);
        let (at, len) = ranges(&first);
        for two in positions.iter().filter(|two| reaches(*one, **two)) {
            let second = timeline.read_at_position(*two, at, len);
            for three in positions.iter().filter(|three| reaches(*two, **three)) {
                let length = timeline.file_len_at(*three).to_le_bytes().to_vec();
                outcomes.insert([first.clone(), second.clone(), length]);
            }
        }
    }
    outcomes
}

fn positions(trace: &Trace, unit: u32) -> Vec<WriterPosition> {
    let mut positions = Vec::new();
    for (n, operation) in trace.operations().iter().enumerate() {
        positions.push(WriterPosition::after(n));
        if let (StorageOp::Write { at, bytes }, true) = (operation, unit > 0) {
            let cuts = (1..bytes.len() as u32).filter(|cut| (*at as u32 + cut).is_multiple_of(unit));
            positions.extend(cuts.map(|cut| WriterPosition { prefix: n as u32, tear: Tear::Cut(cut) }));
        }
    }
    positions.push(WriterPosition::after(trace.len()));
    positions
}

fn operation() -> impl Strategy<Value = StorageOp> {
    prop_oneof![
        4 => (0u64..8, prop::collection::vec(0u8..3, 0..7)).prop_map(|(at, bytes)| StorageOp::Write { at, bytes }),
        1 => (0u64..10).prop_map(StorageOp::SetLen),
        1 => Just(StorageOp::Sync),
    ]
}

proptest! {
    #[test]
    fn no_outcome_is_missed_and_none_is_invented(
        base in prop::collection::vec(0u8..3, 0..8),
        operations in prop::collection::vec(operation(), 0..7),
        unit in 0u32..4,
    ) {
        let trace = Trace::new(base, operations);
        let found = Mutex::new(BTreeSet::new());
        let reader = |view: &std::sync::Arc<ReaderView>| {
            let mut first = vec![0; 4];
            let n = view.read_at(&mut first, 0).unwrap();
            first.truncate(n);
            let (at, len) = ranges(&first);
            let mut second = vec![0; len];
            let n = view.read_at(&mut second, at).unwrap();
            second.truncate(n);
            let length = view.len().unwrap().to_le_bytes().to_vec();
            found.lock().insert([first, second, length]);
            Ok(())
        };
        let tearing = if unit == 0 { AllowedTears::NONE } else { AllowedTears { max_torn_positions_per_run: 9, ..AllowedTears::cut_at_multiples_of(unit) } };
        let explored = explore_schedules(&trace, &one_thread(tearing), &reader);
        prop_assert_eq!(explored.violation_count, 0);
        prop_assert_eq!(&*found.lock(), &all_outcomes(&trace, &positions(&trace, unit)));
    }

    #[test]
    fn the_timeline_shows_the_images_of_the_trace(
        base in prop::collection::vec(any::<u8>(), 0..8),
        operations in prop::collection::vec(operation(), 0..9),
        at in 0u64..12,
        len in 0usize..12,
    ) {
        let trace = Trace::new(base, operations);
        let timeline = Timeline::new(trace.clone());
        for prefix in 0..=trace.len() {
            let image = trace.image_after(prefix).unwrap();
            prop_assert_eq!(timeline.file_len_at(WriterPosition::after(prefix)), image.len() as u64);
            let part: Vec<u8> = image.iter().skip(at as usize).take(len).copied().collect();
            prop_assert_eq!(timeline.read_at_position(WriterPosition::after(prefix), at, len), part);
        }
    }
}

#[test]
fn schedules_that_meet_at_a_checkpoint_go_on_once() {
    let operations = (0..6).flat_map(|n| [write(n + 1, &[9]), write(0, &[n as u8 + 1])]).collect::<Vec<_>>();
    let early = StorageOp::Write { at: 0, bytes: vec![9] };
    let wrong: Vec<_> = operations.iter().cloned().chain([early]).collect();
    let forgetful = |merge: bool| {
        move |view: &std::sync::Arc<ReaderView>| {
            for pass in 0..3 {
                follow_pointer(view)?;
                view.replace_history(ReaderHistory::NONE);
                if merge && !view.try_enter_checkpoint(pass) {
                    return Ok(());
                }
            }
            Ok(())
        }
    };
    for threads in [1, 2] {
        let bounds = ExploreBounds { threads, ..ExploreBounds::default() };
        let sound = Trace::new(vec![0; 16], operations.clone());
        let all = explore_schedules(&sound, &bounds, &forgetful(false));
        let merged = explore_schedules(&sound, &bounds, &forgetful(true));
        assert_eq!((all.merged_schedule_count, all.violation_count, merged.violation_count), (0, 0, 0));
        assert!(merged.merged_schedule_count > 0 && merged.schedule_count < all.schedule_count && merged.is_exhaustive);
        let broken = Trace::new(vec![0; 16], wrong.clone());
        assert!(explore_schedules(&broken, &bounds, &forgetful(true)).violation_count > 0);
    }
}

#[test]
fn counterexamples_come_back_from_files_with_what_the_writer_did() {
    let trace = Trace::new(vec![0; 4], vec![write(1, &[9]), write(0, &[1]), write(0, &[2]), write(2, &[9])]);
    let (found, _) = find_counterexample_with_fewest_moves(&trace, &ExploreBounds::default(), &follow_pointer);
    let mut found = found.unwrap();
    found.queries.push(QueryAtPosition {
        query: ReaderQuery::Length,
        position: WriterPosition { prefix: 2, tear: Tear::PageMask(3) },
    });
    let mut file = Vec::new();
    found.save(&trace, &mut file).unwrap();
    let (kept, again) = Counterexample::load(&*file).unwrap();
    assert_eq!((&again, &kept), (&found, &trace.truncated(4)));
    for len in 0..file.len() {
        assert!(Counterexample::load(&file[..len]).is_err());
    }
}

#[test]
fn a_story_names_what_was_written_and_read() {
    let superblock = h5live_format::Superblock { version: 3, ..Default::default() };
    let image = |end: u64| {
        let end_of_file = h5live_format::Addr::new(end);
        let superblock = h5live_format::Superblock { end_of_file, ..superblock.clone() };
        h5live_format::encode(&superblock, superblock.widths).unwrap()
    };
    let operations = vec![write(0, &image(200)), StorageOp::Mark("d.flushed 2".into()), StorageOp::SetLen(50)];
    let trace = Trace::new(image(100), operations);
    let query = ReaderQuery::Bytes { at: 0, len: 48 };
    let seen = |prefix| QueryAtPosition { query, position: WriterPosition::after(prefix) };
    let length = QueryAtPosition { query: ReaderQuery::Length, position: WriterPosition::after(3) };
    let found = Counterexample { fault: "the end is beyond the end".into(), queries: vec![seen(0), seen(1), length] };
    let story = CounterexampleLog::new(&trace, &found).to_string();
    for part in [
        "0 superblock at 0x0, 48 bytes",
        "end of file",
        "(d.flushed 2)",
        "the file has 50 bytes",
        "| reads superblock at 0x0, 48 bytes",
        "| asks for the length: 50",
        "| the end is beyond the end",
    ] {
        assert!(story.contains(part), "{part}\n{story}");
    }
}
