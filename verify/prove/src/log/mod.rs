//! Explorations of the log store: one writer, and two that have joined.

mod reader;
pub mod regions;
mod workloads;

use std::sync::Arc;
use std::time::{Duration, Instant};

use h5live_checker::crash::{
    CrashExploreBounds, CrashExploreReport, CrashedStorage, ExpectedPrefixRange, explore_crashes,
};
use h5live_checker::schedule::{AllowedTears, ExploreBounds, ExploreReport, ReaderView, explore_schedules};
use h5live_log::LogMutant;

use crate::mutants::{death_bounds, power_failure_bounds};
use reader::{Looks, Sight, follow, recover};
pub use workloads::{LogWorkload, WriterPlan, joined_writers, one_writer};

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
        let exhausted = usize::from(exhausted);
        self.merge(LogReport { workloads: 1, states, wrong, exhausted, fault, ..LogReport::default() });
    }

    fn is_exhausted(&self) -> bool {
        self.exhausted == self.workloads
    }

    /// Adds what was found of one of the workloads.
    fn merge(&mut self, of_one: LogReport) {
        self.workloads += of_one.workloads;
        self.states += of_one.states;
        self.wrong += of_one.wrong;
        self.exhausted += of_one.exhausted;
        self.fault = self.fault.take().or(of_one.fault);
    }

    fn add_schedules(&mut self, found: ExploreReport) {
        let fault =
            found.violations.first().map(|bad| format!("after {} moves: {}", bad.writer_move_count(), bad.fault));
        self.add(found.schedule_count, found.violation_count, found.is_exhaustive, fault);
    }

    fn add_crashes(&mut self, found: CrashExploreReport) {
        let fault = found.violations.first().map(|bad| format!("{} ({:?})", bad.fault, bad.survivors));
        self.add(found.checked_state_count, found.violation_count, found.is_exhaustive, fault);
    }
}

/// Most time for states after a crash where nothing else is said.
const CRASH_TIME: Duration = Duration::from_secs(3600);
/// All workloads are explored in this part of the time first.
const FIRST_PART_OF_TIME: u32 = 4;
/// Runs of a reader in which a mutant of one workload is found out, or not at all.
const MUTANT_RUNS: u64 = 2000;
/// How often a reader opens the log.
const PASSES: usize = 2;
/// Writes of a workload that is looked at once.
const MANY_WRITES: usize = 15;
/// How many writes there are while a reader looks, where all schedules of so many are explored.
const FEW_WRITES: usize = 2;
/// How often two writers come further, by any number of writes, while a reader looks, where all such schedules are explored.
const FEW_MOVES: u32 = 1;

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
    tearing: AllowedTears,
    effort: Effort,
) -> ExploreReport {
    let Effort { threads, time, runs, moves } = effort;
    let bounds = ExploreBounds {
        start_prefix: workload.start,
        threads,
        time_limit: time,
        max_runs: runs,
        max_writer_moves: moves,
        tearing,
        ..ExploreBounds::default()
    };
    explore_schedules(&workload.trace, &bounds, &|view: &Arc<ReaderView>| follow(workload, view, looks, sight))
}

fn crashes(workload: &LogWorkload, bounds: CrashExploreBounds) -> CrashExploreReport {
    let bounds = CrashExploreBounds { start_prefix: workload.start, max_recovery_crashes: 0, ..bounds };
    let recovery = |disk: &Arc<CrashedStorage>, expected: &ExpectedPrefixRange| recover(workload, disk, expected);
    explore_crashes(&workload.trace, &bounds, &recovery)
}

/// How much happens while a reader looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Few writes of one writer, or few moves of two: so little that all schedules are explored.
    Little,
    /// Anything.
    All,
}

/// The parts of the exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LogPart {
    OneWriterOpened(Extent),
    OneWriterFollowed(Extent),
    OneWriter,
    OneWriterTorn,
    OneWriterDies,
    PowerFails,
    TwoWritersOpened(Extent),
    TwoWritersFollowed(Extent),
    TwoWriters,
    TwoWritersDie,
}

impl LogPart {
    const ALL: [LogPart; 14] = [
        LogPart::OneWriterOpened(Extent::Little),
        LogPart::OneWriterFollowed(Extent::Little),
        LogPart::OneWriterOpened(Extent::All),
        LogPart::OneWriterFollowed(Extent::All),
        LogPart::OneWriter,
        LogPart::OneWriterTorn,
        LogPart::OneWriterDies,
        LogPart::PowerFails,
        LogPart::TwoWritersOpened(Extent::Little),
        LogPart::TwoWritersFollowed(Extent::Little),
        LogPart::TwoWritersOpened(Extent::All),
        LogPart::TwoWritersFollowed(Extent::All),
        LogPart::TwoWriters,
        LogPart::TwoWritersDie,
    ];

    fn name(self) -> &'static str {
        match self {
            LogPart::OneWriterOpened(Extent::Little) => "one writer, the log is opened, few writes",
            LogPart::OneWriterFollowed(Extent::Little) => "one writer, the log is refreshed, few writes",
            LogPart::OneWriterOpened(Extent::All) => "one writer, the log is opened",
            LogPart::OneWriterFollowed(Extent::All) => "one writer, the log is refreshed",
            LogPart::OneWriter => "one writer, one after the other",
            LogPart::OneWriterTorn => "one writer, entries torn",
            LogPart::OneWriterDies => "one writer dies",
            LogPart::PowerFails => "one writer, the power fails",
            LogPart::TwoWritersOpened(Extent::Little) => "two writers, the log is opened, few moves",
            LogPart::TwoWritersFollowed(Extent::Little) => "two writers, the log is refreshed, few moves",
            LogPart::TwoWritersOpened(Extent::All) => "two writers, the log is opened",
            LogPart::TwoWritersFollowed(Extent::All) => "two writers, the log is refreshed",
            LogPart::TwoWriters => "two writers, one after the other",
            LogPart::TwoWritersDie => "two writers die",
        }
    }

    /// Most times that the writers come further while a reader looks.
    fn moves(self) -> Option<u32> {
        let is_bounded =
            matches!(self, LogPart::TwoWritersOpened(Extent::Little) | LogPart::TwoWritersFollowed(Extent::Little));
        is_bounded.then_some(FEW_MOVES)
    }

    /// The workloads, each explored by itself.
    fn workloads(self, mutant: LogMutant) -> Vec<LogWorkload> {
        let parts = |plan: WriterPlan| one_writer(mutant, plan).parts().unwrap_or_default();
        match self {
            LogPart::OneWriterOpened(Extent::Little) | LogPart::OneWriterFollowed(Extent::Little) => {
                let windows = |plan: WriterPlan| one_writer(mutant, plan).windows(FEW_WRITES).unwrap_or_default();
                WriterPlan::AT_MOST_ONE_EXTRA.into_iter().flat_map(windows).collect()
            }
            LogPart::OneWriterOpened(Extent::All) | LogPart::OneWriterFollowed(Extent::All) => {
                WriterPlan::AT_MOST_ONE_EXTRA.into_iter().flat_map(parts).collect()
            }
            LogPart::OneWriter => parts(WriterPlan::MAKES_DATASETS_AND_FILLS_LOGS),
            LogPart::OneWriterTorn => parts(WriterPlan::MAKES_DATASETS_AND_FILLS_LOGS)
                .into_iter()
                .filter(|part| part.writes() < MANY_WRITES)
                .collect(),
            LogPart::OneWriterDies => vec![one_writer(mutant, WriterPlan::MAKES_DATASETS_AND_FILLS_LOGS)],
            LogPart::PowerFails => {
                vec![one_writer(mutant, WriterPlan { durable: true, ..WriterPlan::MAKES_DATASETS_AND_FILLS_LOGS })]
            }
            LogPart::TwoWritersOpened(_)
            | LogPart::TwoWritersFollowed(_)
            | LogPart::TwoWriters
            | LogPart::TwoWritersDie => joined_writers(mutant),
        }
    }

    /// Explores workloads until a deadline. What one leaves of its time, the others have.
    fn explore_each(
        self,
        workloads: Vec<&LogWorkload>,
        threads: usize,
        deadline: Instant,
    ) -> Vec<(&LogWorkload, LogReport)> {
        let number = workloads.len();
        let explore = |(done, workload)| {
            let left = deadline.saturating_duration_since(Instant::now());
            let effort = Effort { threads, time: Some(left / (number - done) as u32), runs: None, moves: None };
            let mut found = LogReport::default();
            self.explore(workload, effort, &mut found);
            (workload, found)
        };
        workloads.into_iter().enumerate().map(explore).collect()
    }

    fn explore(self, workload: &LogWorkload, effort: Effort, report: &mut LogReport) {
        let effort = Effort { moves: self.moves(), ..effort };
        // The states after a crash are few: time is no bound.
        let (threads, limit) = (effort.threads, effort.time.unwrap_or(CRASH_TIME));
        let torn = AllowedTears { max_torn_positions_per_run: 1, ..AllowedTears::cut_at_multiples_of(512) };
        let mut look_at_little = |looks: Looks| {
            let sights = Sight::small(workload);
            let effort = Effort { time: effort.time.map(|time| time / sights.len() as u32), ..effort };
            for sight in sights {
                report.add_schedules(schedules(workload, (looks, *sight), AllowedTears::NONE, effort));
            }
        };
        match self {
            LogPart::OneWriterOpened(_) | LogPart::TwoWritersOpened(_) => look_at_little(Looks::AfterOpening),
            LogPart::OneWriterFollowed(_) | LogPart::TwoWritersFollowed(_) => look_at_little(Looks::AfterRefresh),
            LogPart::OneWriter | LogPart::TwoWriters => {
                // More writes multiply what there is to see.
                let times = if workload.writes() < MANY_WRITES { PASSES } else { 1 };
                report.add_schedules(schedules(
                    workload,
                    (Looks::Each { times }, Sight::ALL),
                    AllowedTears::NONE,
                    effort,
                ));
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

/// Explores the log store, part by part: the parts with `name` in their names. `limit` is the most time for a part.
pub fn explore_all(name: &str, threads: usize, limit: Duration) -> impl Iterator<Item = LogReport> {
    LogPart::ALL.into_iter().filter(move |part| part.name().contains(name)).map(move |part| {
        let workloads = part.workloads(LogMutant::None);
        let mut report = LogReport::new(part.name(), workloads.iter().map(LogWorkload::writes).max().unwrap_or(0));
        // Most are soon exhausted. The others are explored once more, in all the time that is left.
        let begin = Instant::now();
        let first = part.explore_each(workloads.iter().collect(), threads, begin + limit / FIRST_PART_OF_TIME);
        let (done, unfinished): (Vec<_>, Vec<_>) =
            first.into_iter().partition(|(_, found)| found.is_exhausted() || found.wrong > 0);
        let unfinished = unfinished.into_iter().map(|(workload, _)| workload).collect();
        let again = part.explore_each(unfinished, threads, begin + limit);
        done.into_iter().chain(again).for_each(|(_, found)| report.merge(found));
        report
    })
}

/// The fault by which a mutant is found out, and the part that has found it. What is soonest looked
/// through comes first.
pub fn find_killer(mutant: LogMutant, threads: usize) -> Option<(&'static str, String)> {
    let parts = [LogPart::OneWriterDies, LogPart::TwoWriters, LogPart::TwoWritersDie, LogPart::OneWriter];
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
        for mutant in LogMutant::all() {
            let found = find_killer(mutant, 2);
            println!("{mutant:?}: {found:?}");
            assert!(found.is_some(), "{mutant:?}");
        }
    }
}
