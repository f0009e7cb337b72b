//! Writers that do anything, in any order. What is found is shrunk: the writer's steps by proptest, and for each of them the
//! schedule to the one with the fewest moves.

use std::sync::Arc;
use std::time::Duration;

use h5live_checker::crash::{CrashBounds, Disk, Expected, crash};
use h5live_checker::schedule::{Bounds, Story, Tearing};
use h5live_prove::suite::{Reader, small_tears};
use h5live_prove::workloads::{Step, steps};
use h5live_prove::{Look, Setup, Survivor, mutants};
use proptest::prelude::*;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u64..5).prop_map(Step::Append),
        4 => Just(Step::Flush),
        1 => Just(Step::Reopen),
        1 => Just(Step::Die),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn readers_are_right_whatever_the_writer_does(
        (most, wide) in prop_oneof![Just((None, false)), Just((Some(60), false)), Just((None, true))],
        chunk in 1u64..4,
        durable in any::<bool>(),
        taken in prop::collection::vec(step(), 1..9),
    ) {
        let setup = Setup { durable, ..Setup::default() };
        let workload = steps(setup, most, wide, chunk, &taken);
        for (look, tearing) in [
            (Look::Rows, Tearing::NONE),
            (Look::IndexFirst, Tearing::NONE),
            (Look::Beyond, small_tears()),
        ] {
            let moves = Some(if tearing == Tearing::NONE { 3 } else { 1 });
            let bounds = Bounds { tearing, moves, threads: 1, runs: Some(2000), ..Bounds::default() };
            let (found, _) = Reader::Rows(look).shortest(&workload, 2, &bounds);
            if let Some(found) = found {
                prop_assert!(false, "{look:?}: {}", Story::new(&workload.trace, &found));
            }
        }
        let bounds = CrashBounds { start: workload.start, again: 0, ..mutants::death(1, Duration::from_secs(60)) };
        let survivor = Survivor::of_death(&workload);
        let recover = |disk: &Arc<Disk>, expected: &Expected| survivor.recover(disk, expected);
        let crashed = crash(&workload.trace, &bounds, &recover);
        prop_assert_eq!(crashed.violations, []);
    }
}
