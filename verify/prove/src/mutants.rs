//! Writers that break one kind of flush dependency each: every one must be found out.

use std::sync::Arc;
use std::time::Duration;

use h5live_cache::{BarrierKind, DependencyKind};
use h5live_checker::crash::{
    CrashExploreBounds, CrashKind, CrashedStorage, ExpectedPrefixRange, PowerFailureSampling, explore_crashes,
};
use h5live_checker::schedule::{
    AllowedTears, Counterexample, ExploreBounds, OS_PAGE_BYTES, ReaderView, find_counterexample_with_fewest_moves,
};
use h5live_checker::trace::{StorageOp, Trace};
use h5live_format::checksum_override::ignoring_checksums as blind_reader;

use crate::suite::{Case, ReaderKind, all_cases, small_tears};
use crate::{CrashRecovery, Workload, WriterSetup};

/// The result of a mutant.
#[derive(Debug, Clone)]
pub enum MutantResult {
    /// A reader found it out.
    Killed {
        /// The workload.
        case: &'static Case,
        /// The reader.
        reader: ReaderKind,
        /// The schedule with the fewest moves.
        found: Counterexample,
        /// The trace of the writer.
        trace: Trace,
    },
    /// It was found out after the writer's death.
    KilledByDeath {
        /// The workload.
        case: &'static Case,
        /// The fault.
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
const REDUNDANT: &[(DependencyKind, &str)] = &[
    (
        DependencyKind::ExtensibleArrayIndexBlock,
        "the index block is made together with the header, and nothing leads to the header before the object header, \
         which waits for both; later the header is only ahead in its counts, and elements not yet set read as missing",
    ),
    (
        DependencyKind::FixedArrayDataBlock,
        "the header is written once, with the data block, and nothing leads to it before the object header, which \
         waits for both",
    ),
];

/// Why nobody can find out that dependencies of `kind` are missing, if that is so.
pub fn why_redundant(kind: DependencyKind) -> Option<&'static str> {
    REDUNDANT.iter().find(|(redundant, _)| *redundant == kind).map(|(_, why)| *why)
}

/// Kinds that only the death of a writer finds out soon: a death is looked for first, readers after it.
const FOUND_BY_DEATH: [DependencyKind; 5] = [
    DependencyKind::BTree1Node,
    DependencyKind::BTree1Symbols,
    DependencyKind::BTree1Chunk,
    DependencyKind::FreeSpaceSections,
    DependencyKind::SymbolTable,
];

/// A workload as it should be, and as the mutant has it.
struct WorkloadPair {
    case: &'static Case,
    without: Workload,
}

/// Searches a reader or recovery that finds that dependencies of `kind` are missing.
pub fn judge_missing_edges(kind: DependencyKind, sound: &[Workload], threads: usize, limit: Duration) -> MutantResult {
    let pairs: Vec<WorkloadPair> = all_cases()
        .zip(sound)
        .map(|(case, with)| (with, WorkloadPair { case, without: (case.record)(WriterSetup::without(kind)) }))
        .filter(|(with, pair)| with.trace != pair.without.trace)
        .map(|(_, pair)| pair)
        .collect();
    if pairs.is_empty() {
        return MutantResult::Unused;
    }
    let died = || killed_by_process_death(&pairs, threads, limit);
    let death_first = FOUND_BY_DEATH.contains(&kind);
    if let Some(fate) = death_first.then(died).flatten() {
        return fate;
    }
    let mut exhausted = true;
    // Two moves are nearly always enough, and soon looked through.
    for moves in [Some(2), None] {
        exhausted = true;
        for WorkloadPair { case, without } in &pairs {
            for reader in case.readers {
                let bounds = ExploreBounds {
                    threads,
                    max_writer_moves: moves,
                    time_limit: Some(limit),
                    ..ExploreBounds::default()
                };
                let (found, explored) = reader.shortest(without, case.passes.min(2), &bounds);
                if let Some(found) = found {
                    return MutantResult::Killed { case, reader: *reader, found, trace: without.trace.clone() };
                }
                exhausted &= explored.is_exhaustive;
            }
        }
        let dies_next = moves.is_some() && !death_first;
        if let Some(fate) = dies_next.then(died).flatten() {
            return fate;
        }
        if let Some(why) = why_redundant(kind) {
            return MutantResult::Redundant(why);
        }
    }
    MutantResult::Alive { exhausted }
}

fn killed_by_process_death(pairs: &[WorkloadPair], threads: usize, limit: Duration) -> Option<MutantResult> {
    for WorkloadPair { case, without } in pairs.iter().filter(|pair| pair.case.may_crash()) {
        let survivor = CrashRecovery::for_process_death(without);
        let bounds = CrashExploreBounds {
            start_prefix: without.start,
            tearing: AllowedTears::NONE,
            max_recovery_crashes: 0,
            ..death_bounds(threads, limit)
        };
        let recover = |disk: &Arc<CrashedStorage>, expected: &ExpectedPrefixRange| survivor.recover(disk, expected);
        if let Some(bad) = explore_crashes(&without.trace, &bounds, &recover).violations.into_iter().next() {
            return Some(MutantResult::KilledByDeath { case, fault: bad.fault });
        }
    }
    None
}

/// Protections other than flush dependencies that a mutant lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolMutant {
    /// Readers take every checksum for right.
    NoChecksums,
    /// Readers do not look at the time.
    NoReadDeadline,
    /// Durable flushes have no barriers, and no redo record for all of their changes.
    NoBarriers,
    /// Durable flushes lack the barriers of one kind.
    NoBarrier(BarrierKind),
    /// Changes in place have no redo record, and the process dies.
    NoRedoAtProcessDeath,
    /// Changes in place have no redo record, and the power fails.
    NoRedoAtPowerFailure,
    /// Redo records have no serial numbers, and the process dies.
    NoRedoSerials,
    /// The next writer does not recount and correct the structures of a dead writer.
    NoRecount,
    /// Writers take all space that was never allocated for zeros, though redo records were written there.
    TrustedZeros,
}

impl ProtocolMutant {
    /// All of them.
    pub fn all() -> impl Iterator<Item = ProtocolMutant> {
        let barriers = BarrierKind::ALL.iter().copied().map(ProtocolMutant::NoBarrier);
        ProtocolMutant::OTHERS.into_iter().chain(barriers)
    }

    /// All but those that lack barriers of one kind.
    const OTHERS: [ProtocolMutant; 8] = [
        ProtocolMutant::NoChecksums,
        ProtocolMutant::NoReadDeadline,
        ProtocolMutant::NoBarriers,
        ProtocolMutant::NoRedoAtProcessDeath,
        ProtocolMutant::NoRedoAtPowerFailure,
        ProtocolMutant::NoRedoSerials,
        ProtocolMutant::NoRecount,
        ProtocolMutant::TrustedZeros,
    ];

    /// Whether the case finds the mutant where most cases look long for it in vain.
    fn is_found_soonest_by(self, case: &Case) -> bool {
        self == ProtocolMutant::NoRedoSerials && case.name == "old file, names beyond a page"
    }

    /// The case that finds the mutant, and the fault.
    pub fn find_killer(self, threads: usize, limit: Duration) -> Option<(&'static Case, String)> {
        let without_intents = WriterSetup { disable_redo: true, ..WriterSetup::default() };
        let (soonest, others): (Vec<_>, Vec<_>) =
            all_cases().filter(|case| case.may_crash()).partition(|case| self.is_found_soonest_by(case));
        soonest.into_iter().chain(others).find_map(|case| {
            let fault = match self {
                ProtocolMutant::NoChecksums => fault_without_checksums(case, threads, limit),
                ProtocolMutant::NoReadDeadline => fault_without_clock(case, threads, limit),
                ProtocolMutant::NoBarriers => {
                    let setup = WriterSetup { disable_barriers: true, ..WriterSetup::durable() };
                    fault_after_power_failure(case, setup, AllowedTears::NONE, threads, limit)
                }
                ProtocolMutant::NoBarrier(kind) => fault_without_barrier(kind, case, threads, limit),
                ProtocolMutant::NoRedoAtProcessDeath => {
                    fault_after_process_death(case, without_intents, threads, limit)
                }
                ProtocolMutant::NoRedoAtPowerFailure => {
                    let tearing =
                        AllowedTears { max_torn_positions_per_run: 1, ..AllowedTears::cut_at_multiples_of(512) };
                    fault_after_power_failure(
                        case,
                        WriterSetup { durable: true, ..without_intents },
                        tearing,
                        threads,
                        limit,
                    )
                }
                ProtocolMutant::NoRedoSerials => {
                    let setup = WriterSetup { disable_redo_serials: true, ..WriterSetup::default() };
                    fault_after_process_death(case, setup, threads, limit)
                }
                ProtocolMutant::NoRecount => fault_without_recount(case, threads, limit),
                ProtocolMutant::TrustedZeros => fault_without_zero_fill(case, threads, limit),
            };
            fault.map(|fault| (case, fault))
        })
    }
}

fn fault_without_barrier(kind: BarrierKind, case: &Case, threads: usize, limit: Duration) -> Option<String> {
    let setup = WriterSetup { disabled_barrier: Some(kind), ..WriterSetup::durable() };
    if (case.record)(setup).trace == (case.record)(WriterSetup::durable()).trace {
        return None;
    }
    fault_after_power_failure(case, setup, AllowedTears::NONE, threads, limit)
}

fn fault_after_process_death(case: &Case, setup: WriterSetup, threads: usize, limit: Duration) -> Option<String> {
    let workload = (case.record)(setup);
    first_recovery_fault(&CrashRecovery::for_process_death(&workload), &workload, death_bounds(threads, limit))
}

fn fault_without_checksums(case: &Case, threads: usize, limit: Duration) -> Option<String> {
    let (record, passes) = case.torn?;
    let workload = record(WriterSetup::default());
    let bounds = ExploreBounds {
        start_prefix: workload.start,
        threads,
        time_limit: Some(limit),
        max_writer_moves: Some(2),
        ..ExploreBounds::default()
    };
    let bounds = ExploreBounds { tearing: small_tears(), ..bounds };
    case.readers.iter().find_map(|reader| {
        let (found, _) = reader.with_reader(&workload, passes, |reader| {
            find_counterexample_with_fewest_moves(&workload.trace, &bounds, &|view: &Arc<ReaderView>| {
                blind_reader(|| reader(view))
            })
        });
        found.map(|found| format!("{}: {}", reader.name(), found.fault))
    })
}

fn fault_without_clock(case: &Case, threads: usize, limit: Duration) -> Option<String> {
    let mut workload = (case.record)(WriterSetup::default());
    let is_time = |operation: &StorageOp| matches!(operation, StorageOp::Mark(text) if text.starts_with("time "));
    if !workload.trace.operations().iter().any(is_time) {
        return None;
    }
    let operations = workload.trace.operations().iter().filter(|operation| !is_time(operation));
    workload.trace = Trace::new(workload.trace.base().to_vec(), operations.cloned().collect());
    let bounds =
        ExploreBounds { threads, time_limit: Some(limit), max_writer_moves: Some(2), ..ExploreBounds::default() };
    case.readers.iter().find_map(|reader| {
        let (found, _) = reader.shortest(&workload, case.passes, &bounds);
        found.map(|found| format!("{}: {}", reader.name(), found.fault))
    })
}

fn fault_without_zero_fill(case: &Case, threads: usize, limit: Duration) -> Option<String> {
    let workload = (case.record)(WriterSetup { trusts_zeros: true, ..WriterSetup::default() });
    if workload.trace == (case.record)(WriterSetup::default()).trace {
        return None;
    }
    let bounds =
        ExploreBounds { threads, time_limit: Some(limit), max_writer_moves: Some(2), ..ExploreBounds::default() };
    case.readers.iter().find_map(|reader| {
        let (found, _) = reader.shortest(&workload, case.passes, &bounds);
        found.map(|found| format!("{}: {}", reader.name(), found.fault))
    })
}

fn fault_without_recount(case: &Case, threads: usize, limit: Duration) -> Option<String> {
    let workload = (case.record)(WriterSetup { without_recount: true, ..WriterSetup::default() });
    workload.names?;
    let bounds =
        CrashExploreBounds { tearing: AllowedTears::NONE, max_recovery_crashes: 0, ..death_bounds(threads, limit) };
    first_recovery_fault(&CrashRecovery::for_process_death(&workload), &workload, bounds)
}

fn fault_after_power_failure(
    case: &Case,
    setup: WriterSetup,
    tearing: AllowedTears,
    threads: usize,
    limit: Duration,
) -> Option<String> {
    let workload = (case.record)(setup);
    first_recovery_fault(
        &CrashRecovery::for_power_failure(&workload),
        &workload,
        power_failure_bounds(tearing, threads, limit),
    )
}

fn first_recovery_fault(survivor: &CrashRecovery, workload: &Workload, bounds: CrashExploreBounds) -> Option<String> {
    let recover = |disk: &Arc<CrashedStorage>, expected: &ExpectedPrefixRange| survivor.recover(disk, expected);
    let bounds = CrashExploreBounds { start_prefix: workload.start, ..bounds };
    explore_crashes(&workload.trace, &bounds, &recover).violations.into_iter().next().map(|bad| bad.fault)
}

/// Power failures: writes that are not durable are there or not, and one write in part. The recovery may be killed,
/// too, but that tears no pages.
pub fn power_failure_bounds(tearing: AllowedTears, threads: usize, limit: Duration) -> CrashExploreBounds {
    let again = tearing.cut_unit_bytes.is_none_or(|unit| u64::from(unit.get()) >= OS_PAGE_BYTES).into();
    CrashExploreBounds {
        start_prefix: 0,
        tearing,
        crash_kind: CrashKind::Power(PowerFailureSampling::default()),
        max_recovery_crashes: again,
        time_limit: Some(limit),
        threads,
    }
}

/// The death of a process: the system copies a page at once, so a write within one page is whole or not there.
pub fn death_bounds(threads: usize, limit: Duration) -> CrashExploreBounds {
    let tearing =
        AllowedTears { max_torn_positions_per_run: 1, ..AllowedTears::cut_at_multiples_of(OS_PAGE_BYTES as u32) };
    CrashExploreBounds {
        start_prefix: 0,
        tearing,
        crash_kind: CrashKind::Process,
        max_recovery_crashes: 1,
        time_limit: Some(limit),
        threads,
    }
}
