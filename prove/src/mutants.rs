//! Writers that break one kind of flush dependency each: every one must be found out.

use std::sync::Arc;
use std::time::Duration;

use h5live_cache::EdgeKind;
use h5live_checker::crash::{CrashBounds, Disk, Expected, Loss, Power, crash};
use h5live_checker::schedule::{Bounds, Counterexample, PAGE, Tearing, View, shortest};
use h5live_checker::trace::{Operation, Trace};
use h5live_format::trial::blind as blind_reader;

use crate::suite::{CASES, Case, Reader, small_tears};
use crate::{Setup, Survivor, Workload};

/// What became of a mutant.
#[derive(Debug, Clone)]
pub enum Fate {
    /// A reader found it out.
    Killed {
        /// The workload.
        case: &'static Case,
        /// The reader.
        reader: Reader,
        /// The schedule with the fewest moves.
        found: Counterexample,
        /// What the writer did.
        trace: Trace,
    },
    /// It was found out after the writer's death.
    KilledByDeath {
        /// The workload.
        case: &'static Case,
        /// What was wrong.
        fault: String,
    },
    /// Nobody can find it out, and why.
    Redundant(&'static str),
    /// Nobody found it out; whether all there is was looked at.
    Alive {
        /// Whether every schedule was explored.
        exhausted: bool,
    },
    /// No workload has such a dependency.
    Unused,
}

/// Why some kinds make no difference to any reader, as long as the others hold.
const REDUNDANT: &[(EdgeKind, &str)] = &[
    (
        EdgeKind::ExtensibleArrayIndexBlock,
        "the index block is made together with the header, and nothing leads to the header before the object header, \
         which waits for both; later the header is only ahead in its counts, and elements not yet set read as missing",
    ),
    (
        EdgeKind::FixedArrayDataBlock,
        "the header is written once, with the data block, and nothing leads to it before the object header, which \
         waits for both",
    ),
];

/// A workload as it should be, and as the mutant has it.
struct Pair {
    case: &'static Case,
    without: Workload,
}

/// Looks for someone who finds out that dependencies of `kind` are missing.
pub fn judge(kind: EdgeKind, sound: &[Workload], threads: usize, limit: Duration) -> Fate {
    let pairs: Vec<Pair> = CASES
        .iter()
        .zip(sound)
        .map(|(case, with)| (with, Pair { case, without: (case.record)(Setup::without(kind)) }))
        .filter(|(with, pair)| with.trace != pair.without.trace)
        .map(|(_, pair)| pair)
        .collect();
    if pairs.is_empty() {
        return Fate::Unused;
    }
    let mut exhausted = true;
    // Two moves are nearly always enough, and soon looked through.
    for moves in [Some(2), None] {
        exhausted = true;
        for Pair { case, without } in &pairs {
            for reader in case.readers {
                let bounds = Bounds { threads, moves, time: Some(limit), ..Bounds::default() };
                let (found, explored) = reader.shortest(without, case.passes.min(2), &bounds);
                if let Some(found) = found {
                    return Fate::Killed { case, reader: *reader, found, trace: without.trace.clone() };
                }
                exhausted &= explored.exhausted;
            }
        }
        if let (Some(_), Some(fate)) = (moves, by_death(&pairs, threads, limit)) {
            return fate;
        }
        if let Some((_, why)) = REDUNDANT.iter().find(|(redundant, _)| *redundant == kind) {
            return Fate::Redundant(why);
        }
    }
    Fate::Alive { exhausted }
}

fn by_death(pairs: &[Pair], threads: usize, limit: Duration) -> Option<Fate> {
    for Pair { case, without } in pairs.iter().filter(|pair| pair.case.may_crash()) {
        let survivor = Survivor::of_death(without);
        let bounds = CrashBounds { start: without.start, tearing: Tearing::NONE, again: 0, ..death(threads, limit) };
        let recover = |disk: &Arc<Disk>, expected: &Expected| survivor.recover(disk, expected);
        if let Some(bad) = crash(&without.trace, &bounds, &recover).violations.into_iter().next() {
            return Some(Fate::KilledByDeath { case, fault: bad.fault });
        }
    }
    None
}

/// What else is broken, beside dependencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    /// Readers take every checksum for right.
    Checksums,
    /// Readers do not look at the time.
    Grace,
    /// Durable flushes have no barriers.
    Barriers,
    /// What is changed in place is not written down first, and the process dies.
    IntentsAtDeath,
    /// What is changed in place is not written down first, and the power fails.
    IntentsAtPowerFailure,
    /// Who opens the file of a dead writer does not count anew what that was about to change together.
    Recount,
    /// Writers take all space that was never allocated for zeros, though intents were written there.
    Zeros,
}

impl Other {
    /// All of them.
    pub const ALL: [Other; 7] = [
        Other::Checksums,
        Other::Grace,
        Other::Barriers,
        Other::IntentsAtDeath,
        Other::IntentsAtPowerFailure,
        Other::Recount,
        Other::Zeros,
    ];

    /// Who finds it out: the case, and what was wrong.
    pub fn found(self, threads: usize, limit: Duration) -> Option<(&'static Case, String)> {
        let without_intents = Setup { without_intents: true, ..Setup::default() };
        CASES.iter().filter(|case| case.may_crash()).find_map(|case| {
            let fault = match self {
                Other::Checksums => blind(case, threads, limit),
                Other::Grace => timeless(case, threads, limit),
                Other::Barriers => {
                    let setup = Setup { without_barriers: true, ..Setup::durable() };
                    after_power_failure(case, setup, Tearing::NONE, threads, limit)
                }
                Other::IntentsAtDeath => {
                    let workload = (case.record)(without_intents);
                    after(&Survivor::of_death(&workload), &workload, death(threads, limit))
                }
                Other::IntentsAtPowerFailure => {
                    let tearing = Tearing { observations: 1, ..Tearing::at(512) };
                    after_power_failure(case, Setup { durable: true, ..without_intents }, tearing, threads, limit)
                }
                Other::Recount => uncounted(case, threads, limit),
                Other::Zeros => trusting(case, threads, limit),
            };
            fault.map(|fault| (case, fault))
        })
    }
}

fn blind(case: &Case, threads: usize, limit: Duration) -> Option<String> {
    let (record, passes) = case.torn?;
    let workload = record(Setup::default());
    let bounds = Bounds { start: workload.start, threads, time: Some(limit), moves: Some(2), ..Bounds::default() };
    let bounds = Bounds { tearing: small_tears(), ..bounds };
    case.readers.iter().find_map(|reader| {
        let (found, _) = reader.with(&workload, passes, |reader| {
            shortest(&workload.trace, &bounds, &|view: &Arc<View>| blind_reader(|| reader(view)))
        });
        found.map(|found| format!("{}: {}", reader.name(), found.fault))
    })
}

fn timeless(case: &Case, threads: usize, limit: Duration) -> Option<String> {
    let mut workload = (case.record)(Setup::default());
    let is_time = |operation: &Operation| matches!(operation, Operation::Mark(text) if text.starts_with("time "));
    if !workload.trace.operations().iter().any(is_time) {
        return None;
    }
    let operations = workload.trace.operations().iter().filter(|operation| !is_time(operation));
    workload.trace = Trace::new(workload.trace.base().to_vec(), operations.cloned().collect());
    let bounds = Bounds { threads, time: Some(limit), moves: Some(2), ..Bounds::default() };
    case.readers.iter().find_map(|reader| {
        let (found, _) = reader.shortest(&workload, case.passes, &bounds);
        found.map(|found| format!("{}: {}", reader.name(), found.fault))
    })
}

fn trusting(case: &Case, threads: usize, limit: Duration) -> Option<String> {
    let workload = (case.record)(Setup { trusts_zeros: true, ..Setup::default() });
    if workload.trace == (case.record)(Setup::default()).trace {
        return None;
    }
    let bounds = Bounds { threads, time: Some(limit), moves: Some(2), ..Bounds::default() };
    case.readers.iter().find_map(|reader| {
        let (found, _) = reader.shortest(&workload, case.passes, &bounds);
        found.map(|found| format!("{}: {}", reader.name(), found.fault))
    })
}

fn uncounted(case: &Case, threads: usize, limit: Duration) -> Option<String> {
    let workload = (case.record)(Setup { without_recount: true, ..Setup::default() });
    workload.names?;
    let bounds = CrashBounds { tearing: Tearing::NONE, again: 0, ..death(threads, limit) };
    after(&Survivor::of_death(&workload), &workload, bounds)
}

fn after_power_failure(case: &Case, setup: Setup, tearing: Tearing, threads: usize, limit: Duration) -> Option<String> {
    let workload = (case.record)(setup);
    after(&Survivor::of_power_failure(&workload), &workload, power(tearing, threads, limit))
}

fn after(survivor: &Survivor, workload: &Workload, bounds: CrashBounds) -> Option<String> {
    let recover = |disk: &Arc<Disk>, expected: &Expected| survivor.recover(disk, expected);
    let bounds = CrashBounds { start: workload.start, ..bounds };
    crash(&workload.trace, &bounds, &recover).violations.into_iter().next().map(|bad| bad.fault)
}

/// Power failures: whatever is not durable is there or not, and parts of one write. Who recovers may be killed, too, but
/// that tears no pages.
pub fn power(tearing: Tearing, threads: usize, limit: Duration) -> CrashBounds {
    let again = tearing.cut.is_none_or(|unit| u64::from(unit.get()) >= PAGE).into();
    CrashBounds { start: 0, tearing, loss: Loss::Power(Power::default()), again, time: Some(limit), threads }
}

/// The death of a process: the system copies a page at once, so a write within one page is whole or not there.
pub fn death(threads: usize, limit: Duration) -> CrashBounds {
    let tearing = Tearing { observations: 1, ..Tearing::at(PAGE as u32) };
    CrashBounds { start: 0, tearing, loss: Loss::Process, again: 1, time: Some(limit), threads }
}
