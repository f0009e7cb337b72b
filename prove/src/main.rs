//! Runs the model checker over h5live's writer and reader.

use std::time::Duration;

use h5live_cache::EdgeKinds;
use h5live_checker::schedule::{Bounds, Tearing, explore};
use h5live_prove::{Follower, Look, workloads};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().unwrap_or(0));
    let mut next = |default| arguments.next().unwrap_or(default);
    let (start, appends, passes, unit, threads) = (next(0), next(3), next(2), next(0), next(1));
    let workload = workloads::extensible_array(EdgeKinds::NONE, start, appends, 1);
    println!("{} operations", workload.trace.len());
    for operation in workload.trace.operations() {
        println!(
            "{}",
            match operation {
                h5live_checker::trace::Operation::Write { at, bytes } =>
                    format!("write {at} {} {:?}", bytes.len(), String::from_utf8_lossy(&bytes[..4.min(bytes.len())])),
                other => format!("{other:?}"),
            }
        );
    }
    for look in [Look::Rows, Look::IndexFirst, Look::Beyond] {
        let follower = Follower::new(&workload, look, passes as usize);
        let tearing = if unit > 0 { Tearing::at(unit as u32) } else { Tearing::NONE };
        let bounds =
            Bounds { tearing, threads: threads as usize, time: Some(Duration::from_secs(60)), ..Bounds::default() };
        let explored = explore(&workload.trace, &bounds, &|view: &std::sync::Arc<_>| follower.run(view));
        println!(
            "{look:?}: {} schedules ({} merged), {} states, {} queries, longest {}, exhausted {}, wrong {}, {:?}, {:.0}/s",
            explored.schedules,
            explored.merged,
            explored.states,
            explored.queries,
            explored.longest,
            explored.exhausted,
            explored.wrong,
            explored.elapsed,
            explored.schedules as f64 / explored.elapsed.as_secs_f64()
        );
        for found in &explored.violations {
            println!("  {} ({} moves)", found.fault, found.moves());
        }
    }
}
