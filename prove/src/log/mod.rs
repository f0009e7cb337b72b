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
use reader::{follow, recover};
pub use workloads::{LogWorkload, joined_writers, one_writer};

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
    /// Whether all there are were looked at.
    pub exhausted: bool,
    /// The first fault.
    pub fault: Option<String>,
}

impl LogReport {
    fn new(name: &str, writes: usize) -> Self {
        LogReport { name: name.to_owned(), writes, exhausted: true, ..LogReport::default() }
    }

    fn add(&mut self, states: u64, wrong: u64, exhausted: bool, fault: Option<String>) {
        self.workloads += 1;
        self.states += states;
        self.wrong += wrong;
        self.exhausted &= exhausted;
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

/// Passes of a reader over everything.
const PASSES: usize = 2;
/// Writes of a workload that is looked at once.
const MANY_WRITES: usize = 15;

fn schedules(workload: &LogWorkload, tearing: Tearing, threads: usize, limit: Duration) -> ExploreReport {
    let bounds =
        ExploreBounds { start: workload.start, threads, time: Some(limit), tearing, ..ExploreBounds::default() };
    // More writes, or torn ones, multiply what there is to see.
    let passes = if tearing == Tearing::NONE && workload.writes() < MANY_WRITES { PASSES } else { 1 };
    explore(&workload.trace, &bounds, &|view: &Arc<ReaderView>| follow(workload, view, passes))
}

fn crashes(workload: &LogWorkload, bounds: CrashBounds) -> CrashReport {
    let bounds = CrashBounds { start: workload.start, recrashes: 0, ..bounds };
    let recovery = |disk: &Arc<CrashedDisk>, expected: &ExpectedPrefix| recover(workload, disk, expected);
    explore_crashes(&workload.trace, &bounds, &recovery)
}

/// Explores everything of the log store, part by part.
pub fn explore_all(threads: usize, limit: Duration) -> impl Iterator<Item = LogReport> {
    explore_with(LogMutant::None, threads, limit)
}

/// The fault by which a mutant is found out.
pub fn find_killer(mutant: LogMutant, threads: usize, limit: Duration) -> Option<(String, String)> {
    explore_with(mutant, threads, limit).find_map(|report| Some((report.name, report.fault?)))
}

fn explore_with(mutant: LogMutant, threads: usize, limit: Duration) -> impl Iterator<Item = LogReport> {
    let one = Arc::new(one_writer(mutant, false));
    let durable = one_writer(mutant, true);
    let torn = Tearing { observations: 1, ..Tearing::at(512) };
    let parts: [Box<dyn FnOnce() -> LogReport>; 6] = [
        Box::new({
            let one = one.clone();
            move || {
                let mut report = LogReport::new("one writer, every schedule", one.writes());
                let parts = one.parts().unwrap_or_default();
                parts.iter().for_each(|part| report.add_schedules(schedules(part, Tearing::NONE, threads, limit)));
                report
            }
        }),
        Box::new({
            let one = one.clone();
            move || {
                let mut report = LogReport::new("one writer, entries torn", one.writes());
                let (parts, tears) = (one.parts().unwrap_or_default(), crate::suite::small_tears());
                let batches = parts.iter().filter(|part| part.writes() < MANY_WRITES);
                batches.for_each(|part| report.add_schedules(schedules(part, tears, threads, limit)));
                report
            }
        }),
        Box::new(move || {
            let mut report = LogReport::new("one writer dies", one.writes());
            report.add_crashes(crashes(&one, death_bounds(threads, limit)));
            report
        }),
        Box::new(move || {
            let mut report = LogReport::new("one writer, the power fails", durable.writes());
            report.add_crashes(crashes(&durable, power_failure_bounds(torn, threads, limit)));
            report
        }),
        Box::new(move || {
            let all = joined_writers(mutant);
            let mut report = LogReport::new("two writers, every schedule", all[0].writes());
            all.iter().for_each(|one| report.add_schedules(schedules(one, Tearing::NONE, threads, limit)));
            report
        }),
        Box::new(move || {
            let all = joined_writers(mutant);
            let mut report = LogReport::new("two writers die", all[0].writes());
            all.iter().for_each(|one| report.add_crashes(crashes(one, death_bounds(threads, limit))));
            report
        }),
    ];
    parts.into_iter().map(|part| part())
}
