//! Explorations of the log store: one writer, and two that have joined.

mod reader;
pub mod regions;
mod workloads;

use std::sync::Arc;
use std::time::Duration;

use h5live_checker::crash::{CrashBounds, CrashReport, CrashedDisk, ExpectedPrefix, explore_crashes};
use h5live_checker::schedule::{ExploreBounds, ExploreReport, ReaderView, Tearing, explore};
use h5live_log::LogMutant;

use crate::mutants::{death_bounds, power_failure_bounds};
use reader::{Looks, Sight, follow, recover};
pub use workloads::{LogWorkload, WriterPlan, joined_writers, one_writer};

/// The mutants.
pub const MUTANTS: [LogMutant; 4] =
    [LogMutant::EndBeforeEntries, LogMutant::TableBeforeEntries, LogMutant::IgnoredOrders, LogMutant::UnorderedAnchors];

/// What was found of a workload, or of several that belong together.
#[derive(Debug, Default)]
pub struct LogReport {
    /// The writers, and what happens to them.
    pub name: String,
    /// How many workloads: interleavings of the writers.
    pub workloads: usize,
    /// Writes of one of them.
    pub writes: usize,
    /// Schedules of a reader, or states after a crash.
    pub states: u64,
    /// How many of them were wrong.
    pub wrong: u64,
    /// Of how many workloads all there are were looked at.
    pub exhausted: usize,
    /// The first fault.
    pub fault: Option<String>,
}

impl LogReport {
    fn new(name: &str, writes: usize) -> Self {
        LogReport { name: name.to_owned(), writes, ..LogReport::default() }
    }

    fn add(&mut self, states: u64, wrong: u64, exhausted: bool, fault: Option<String>) {
        self.workloads += 1;
        self.states += states;
        self.wrong += wrong;
        self.exhausted += usize::from(exhausted);
        self.fault = self.fault.take().or(fault);
    }

    fn add_schedules(&mut self, found: ExploreReport) {
        let fault = found.violations.first().map(|bad| format!("after {} moves: {}", bad.moves(), bad.fault));
        self.add(found.schedules, found.wrong, found.exhausted, fault);
    }

    fn add_crashes(&mut self, found: CrashReport) {
        let fault = found.violations.first().map(|bad| format!("{} ({:?})", bad.fault, bad.survivors));
        self.add(found.states, found.wrong, found.exhausted, fault);
    }
}

/// Most time for states after a crash where nothing else is said.
const CRASH_TIME: Duration = Duration::from_secs(3600);
/// Runs of a reader in which a mutant of one workload is found out, or not at all.
const MUTANT_RUNS: u64 = 2000;
/// How often a reader opens the log.
const PASSES: usize = 2;
/// Writes of a workload that is looked at once.
const MANY_WRITES: usize = 15;
/// How often the writer comes further, by any number of writes, while a reader of a small workload looks, where all such
/// schedules are explored.
const MAX_MOVES: u32 = 2;

/// How much is explored of a workload.
#[derive(Debug, Clone, Copy)]
struct Effort {
    threads: usize,
    /// Most time.
    time: Option<Duration>,
    /// Most runs of a reader.
    runs: Option<u64>,
    /// Most times that the writer comes further while a reader looks.
    moves: Option<u32>,
}

fn schedules(
    workload: &LogWorkload,
    (looks, sight): (Looks, Sight),
    tearing: Tearing,
    effort: Effort,
) -> ExploreReport {
    let Effort { threads, time, runs, moves } = effort;
    let bounds =
        ExploreBounds { start: workload.start, threads, time, runs, moves, tearing, ..ExploreBounds::default() };
    explore(&workload.trace, &bounds, &|view: &Arc<ReaderView>| follow(workload, view, looks, sight))
}

fn crashes(workload: &LogWorkload, bounds: CrashBounds) -> CrashReport {
    let bounds = CrashBounds { start: workload.start, recrashes: 0, ..bounds };
    let recovery = |disk: &Arc<CrashedDisk>, expected: &ExpectedPrefix| recover(workload, disk, expected);
    explore_crashes(&workload.trace, &bounds, &recovery)
}

/// The parts of the exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LogPart {
    OneWriterOpened { moves: Option<u32> },
    OneWriterFollowed { moves: Option<u32> },
    OneWriter,
    OneWriterTorn,
    OneWriterDies,
    PowerFails,
    TwoWritersOpened { moves: Option<u32> },
    TwoWritersFollowed { moves: Option<u32> },
    TwoWriters,
    TwoWritersDie,
}

impl LogPart {
    const ALL: [LogPart; 14] = [
        LogPart::OneWriterOpened { moves: Some(MAX_MOVES) },
        LogPart::OneWriterFollowed { moves: Some(MAX_MOVES) },
        LogPart::OneWriterOpened { moves: None },
        LogPart::OneWriterFollowed { moves: None },
        LogPart::OneWriter,
        LogPart::OneWriterTorn,
        LogPart::OneWriterDies,
        LogPart::PowerFails,
        LogPart::TwoWritersOpened { moves: Some(MAX_MOVES) },
        LogPart::TwoWritersFollowed { moves: Some(MAX_MOVES) },
        LogPart::TwoWritersOpened { moves: None },
        LogPart::TwoWritersFollowed { moves: None },
        LogPart::TwoWriters,
        LogPart::TwoWritersDie,
    ];

    fn name(self) -> String {
        let name = match self {
            LogPart::OneWriterOpened { .. } => "one writer, the log is opened",
            LogPart::OneWriterFollowed { .. } => "one writer, the log is refreshed",
            LogPart::OneWriter => "one writer, one after the other",
            LogPart::OneWriterTorn => "one writer, entries torn",
            LogPart::OneWriterDies => "one writer dies",
            LogPart::PowerFails => "one writer, the power fails",
            LogPart::TwoWritersOpened { .. } => "two writers, the log is opened",
            LogPart::TwoWritersFollowed { .. } => "two writers, the log is refreshed",
            LogPart::TwoWriters => "two writers, one after the other",
            LogPart::TwoWritersDie => "two writers die",
        };
        match self.moves() {
            Some(moves) => format!("{name}, {moves} moves"),
            None => name.to_owned(),
        }
    }

    /// Most times that the writer comes further while a reader looks.
    fn moves(self) -> Option<u32> {
        match self {
            LogPart::OneWriterOpened { moves }
            | LogPart::OneWriterFollowed { moves }
            | LogPart::TwoWritersOpened { moves }
            | LogPart::TwoWritersFollowed { moves } => moves,
            _ => None,
        }
    }

    /// The workloads, each explored by itself.
    fn workloads(self, mutant: LogMutant) -> Vec<LogWorkload> {
        let parts = |plan: WriterPlan| one_writer(mutant, plan).parts().unwrap_or_default();
        match self {
            LogPart::OneWriterOpened { .. } | LogPart::OneWriterFollowed { .. } => {
                WriterPlan::SMALL.into_iter().flat_map(parts).collect()
            }
            LogPart::OneWriter => parts(WriterPlan::ALL),
            LogPart::OneWriterTorn => {
                parts(WriterPlan::ALL).into_iter().filter(|part| part.writes() < MANY_WRITES).collect()
            }
            LogPart::OneWriterDies => vec![one_writer(mutant, WriterPlan::ALL)],
            LogPart::PowerFails => vec![one_writer(mutant, WriterPlan { durable: true, ..WriterPlan::ALL })],
            LogPart::TwoWritersOpened { .. }
            | LogPart::TwoWritersFollowed { .. }
            | LogPart::TwoWriters
            | LogPart::TwoWritersDie => joined_writers(mutant),
        }
    }

    fn explore(self, workload: &LogWorkload, effort: Effort, report: &mut LogReport) {
        let effort = Effort { moves: self.moves(), ..effort };
        // The states after a crash are few: time is no bound.
        let (threads, limit) = (effort.threads, effort.time.unwrap_or(CRASH_TIME));
        let torn = Tearing { observations: 1, ..Tearing::at(512) };
        let mut look_at_little = |looks: Looks| {
            let sights = Sight::small(workload);
            let effort = Effort { time: effort.time.map(|time| time / sights.len() as u32), ..effort };
            for sight in sights {
                report.add_schedules(schedules(workload, (looks, *sight), Tearing::NONE, effort));
            }
        };
        match self {
            LogPart::OneWriterOpened { .. } | LogPart::TwoWritersOpened { .. } => look_at_little(Looks::AfterOpening),
            LogPart::OneWriterFollowed { .. } | LogPart::TwoWritersFollowed { .. } => {
                look_at_little(Looks::AfterRefresh)
            }
            LogPart::OneWriter | LogPart::TwoWriters => {
                // More writes multiply what there is to see.
                let times = if workload.writes() < MANY_WRITES { PASSES } else { 1 };
                report.add_schedules(schedules(workload, (Looks::Each { times }, Sight::ALL), Tearing::NONE, effort));
            }
            LogPart::OneWriterTorn => {
                let tears = crate::suite::small_tears();
                report.add_schedules(schedules(workload, (Looks::Each { times: 1 }, Sight::ALL), tears, effort));
            }
            LogPart::OneWriterDies | LogPart::TwoWritersDie => {
                report.add_crashes(crashes(workload, death_bounds(threads, limit)));
            }
            LogPart::PowerFails => report.add_crashes(crashes(workload, power_failure_bounds(torn, threads, limit))),
        }
    }
}

/// Explores everything of the log store, part by part. `limit` is the most time for a part.
pub fn explore_all(threads: usize, limit: Duration) -> impl Iterator<Item = LogReport> {
    LogPart::ALL.into_iter().map(move |part| {
        let workloads = part.workloads(LogMutant::None);
        let mut report = LogReport::new(&part.name(), workloads.iter().map(LogWorkload::writes).max().unwrap_or(0));
        let time = Some(limit / workloads.len().max(1) as u32);
        let effort = Effort { threads, time, runs: None, moves: None };
        workloads.iter().for_each(|workload| part.explore(workload, effort, &mut report));
        report
    })
}

/// The fault by which a mutant is found out, and the part that has found it. Deaths are soonest looked through.
pub fn find_killer(mutant: LogMutant, threads: usize) -> Option<(String, String)> {
    let parts = [LogPart::OneWriterDies, LogPart::TwoWritersDie, LogPart::OneWriter, LogPart::TwoWriters];
    parts.into_iter().find_map(|part| {
        let workloads = part.workloads(mutant);
        workloads.iter().find_map(|workload| {
            let mut report = LogReport::default();
            part.explore(workload, Effort { threads, time: None, runs: Some(MUTANT_RUNS), moves: None }, &mut report);
            Some((part.name(), report.fault?))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mutant_is_found_out() {
        for mutant in MUTANTS {
            let found = find_killer(mutant, 2);
            println!("{mutant:?}: {found:?}");
            assert!(found.is_some(), "{mutant:?}");
        }
    }
}
