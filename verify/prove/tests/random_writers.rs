//! Writers that do anything, in any order. What is found is shrunk: the writer's steps by proptest, and for each of
//! them the schedule to the one with the fewest moves.

use std::sync::Arc;
use std::time::Duration;

use h5live_checker::crash::{CrashExploreBounds, CrashedStorage, ExpectedPrefixRange, explore_crashes};
use h5live_checker::schedule::{AllowedTears, CounterexampleLog, ExploreBounds};
use h5live_prove::suite::{ReaderKind, small_tears};
use h5live_prove::workloads::{WriterStep, run_writer_steps};
use h5live_prove::{CrashRecovery, ReadStrategy, WriterSetup, mutants};
use proptest::prelude::*;

fn step() -> impl Strategy<Value = WriterStep> {
    prop_oneof![
        4 => (1u64..5).prop_map(WriterStep::Append),
        4 => Just(WriterStep::Flush),
        1 => Just(WriterStep::Reopen),
        1 => Just(WriterStep::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn readers_are_right_whatever_the_writer_does(
        (max_rows, is_two_dimensional) in prop_oneof![Just((None, false)), Just((Some(60), false)), Just((None, true))],
        chunk in 1u64..4,
        durable in any::<bool>(),
        taken in prop::collection::vec(step(), 1..9),
    ) {
        let setup = WriterSetup { durable, ..WriterSetup::default() };
        let workload = run_writer_steps(setup, max_rows, is_two_dimensional, chunk, &taken);
        for (look, tearing) in [
            (ReadStrategy::Rows, AllowedTears::NONE),
            (ReadStrategy::IndexFirst, AllowedTears::NONE),
            (ReadStrategy::BeyondExtent, small_tears()),
        ] {
            let moves = Some(if tearing == AllowedTears::NONE { 3 } else { 1 });
            let bounds = ExploreBounds { tearing, max_writer_moves: moves, threads: 1, max_runs: Some(2000), ..ExploreBounds::default() };
            let (found, _) = ReaderKind::Rows(look).shortest(&workload, 2, &bounds);
            if let Some(found) = found {
                prop_assert!(false, "{look:?}: {}", CounterexampleLog::new(&workload.trace, &found));
            }
        }
        let bounds = CrashExploreBounds { start_prefix: workload.start, max_recovery_crashes: 0, ..mutants::death_bounds(1, Duration::from_secs(60)) };
        let survivor = CrashRecovery::for_process_death(&workload);
        let recover = |disk: &Arc<CrashedStorage>, expected: &ExpectedPrefixRange| survivor.recover(disk, expected);
        let crashed = explore_crashes(&workload.trace, &bounds, &recover);
        prop_assert_eq!(crashed.violations, []);
    }
}
