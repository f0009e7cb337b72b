//! Runs the model checker over h5live's writer and readers, and prints what it has seen.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use h5live_cache::{EdgeKind, EdgeKinds};
use h5live_checker::crash::{CrashBounds, Crashed, Loss, crash};
use h5live_checker::schedule::{Bounds, Explored, PAGE, Tearing};
use h5live_prove::Survivor;
use h5live_prove::suite::{CASES, Case, Reader, small_tears};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let only = arguments.iter().find(|argument| !argument.starts_with("--"));
    let has = |part: &str| {
        !arguments.iter().any(|argument| argument.starts_with("--only-"))
            || arguments.iter().any(|argument| argument == &format!("--only-{part}"))
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let began = Instant::now();
    let mut sound = true;
    let chosen = || CASES.iter().filter(|case| only.is_none_or(|name| case.name.contains(name.as_str())));
    let limit = Duration::from_secs(if quick { 5 } else { 90 });
    if has("readers") {
        println!(
            "{:<38} {:<18} {:>6} {:>10} {:>10} {:>8} {:>7} {:>10} {:>9}",
            "workload", "reader", "writes", "schedules", "states", "longest", "wrong", "exhausted", "per s"
        );
        for case in chosen() {
            let workload = (case.record)(EdgeKinds::NONE);
            for reader in case.readers {
                let bounds = Bounds { threads, time: Some(limit), ..Bounds::default() };
                let explored = reader.explore(&workload, case.passes, &bounds);
                sound &= show(case, *reader, "", workload.trace.len(), &explored);
            }
            if let Some((record, passes)) = case.torn {
                let workload = record(EdgeKinds::NONE);
                for reader in case.readers {
                    let bounds = Bounds { threads, time: Some(limit), tearing: small_tears(), ..Bounds::default() };
                    let explored = reader.explore(&workload, passes, &bounds);
                    sound &= show(case, *reader, ", torn", workload.trace.len(), &explored);
                }
            }
        }
    }
    if has("deaths") {
        println!(
            "\n{:<38} {:>10} {:>10} {:>7} {:>10}",
            "workload, the writer dies", "crashes", "states", "wrong", "exhausted"
        );
        for case in chosen().filter(|case| matches!(case.readers, [Reader::Rows(_), ..])) {
            let workload = (case.record)(EdgeKinds::NONE);
            let survivor = Survivor::of_death(&workload);
            let bounds = CrashBounds {
                start: 0,
                tearing: Tearing::at(512),
                loss: Loss::Process,
                again: 1,
                time: Some(limit),
                threads,
            };
            let crashed = crash(&workload.trace, &bounds, &|disk: &_, expected: &_| survivor.recover(disk, expected));
            sound &= show_crash(case.name, &crashed);
        }
    }
    if has("mutants") {
        sound &= mutants(threads, limit);
    }
    println!("\n{:.0} s", began.elapsed().as_secs_f64());
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn show(case: &Case, reader: Reader, how: &str, writes: usize, explored: &Explored) -> bool {
    println!(
        "{:<38} {:<18} {:>6} {:>10} {:>10} {:>8} {:>7} {:>10} {:>9.0}",
        format!("{}{how}", case.name),
        reader.name(),
        writes,
        explored.schedules,
        explored.states,
        explored.longest,
        explored.wrong,
        if explored.exhausted { "yes" } else { "no" },
        explored.schedules as f64 / explored.elapsed.as_secs_f64()
    );
    for found in &explored.violations {
        println!("    {} ({} moves)", found.fault, found.moves());
    }
    explored.wrong == 0
}

fn show_crash(name: &str, crashed: &Crashed) -> bool {
    let exhausted = if crashed.exhausted { "yes" } else { "no" };
    println!("{name:<38} {:>10} {:>10} {:>7} {exhausted:>10}", crashed.crashes, crashed.states, crashed.wrong);
    for bad in crashed.violations.iter().take(4) {
        println!("    {} ({:?}, {:?}, {:?})", bad.fault, bad.survivors, bad.expected, bad.recoveries);
    }
    crashed.wrong == 0
}

/// Breaks each kind of flush dependency in turn.
fn mutants(threads: usize, limit: Duration) -> bool {
    println!("\n{:<28} {:<38} {:<18} {:>6} moves", "without", "workload", "reader", "");
    let mut sound = true;
    for kind in EdgeKind::ALL {
        let disabled = EdgeKinds::only(kind);
        let mut used = false;
        let mut killed = None;
        'cases: for case in CASES {
            let (with, without) = ((case.record)(EdgeKinds::NONE), (case.record)(disabled));
            if with.trace == without.trace {
                continue;
            }
            used = true;
            for reader in case.readers {
                let bounds = Bounds { threads, time: Some(limit), ..Bounds::default() };
                if let (Some(found), _) = reader.shortest(&without, case.passes.min(2), &bounds) {
                    killed = Some((case.name, reader.name(), found));
                    break 'cases;
                }
            }
        }
        match killed {
            Some((case, reader, found)) => {
                println!(
                    "{:<28} {case:<38} {reader:<18} killed {}: {}",
                    format!("{kind:?}"),
                    found.moves(),
                    found.fault
                );
            }
            None if used => {
                println!("{:<28} ALIVE", format!("{kind:?}"));
                sound = false;
            }
            None => println!("{:<28} no workload has it", format!("{kind:?}")),
        }
    }
    sound
}
