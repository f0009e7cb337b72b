//! Runs the model checker over h5live's writer and readers, and prints the results.
//!
//! `prove [--quick] [--seconds=N] [--tell] [--keep=FOLDER] [PART]... [=NAME]`: all parts (`readers`, `torn`, `cut`,
//! `deaths`, `power`, `log`, `kv`, `mutants`), or the named ones; all workloads, or those with NAME in their names; N seconds for
//! each exploration. Counterexamples are printed with --tell, and kept in FOLDER.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use h5live_cache::DependencyKind;
use h5live_checker::crash::{CrashExploreBounds, CrashedStorage, ExpectedPrefixRange, explore_crashes};
use h5live_checker::schedule::{AllowedTears, Counterexample, CounterexampleLog, ExploreBounds};
use h5live_checker::trace::{Trace, TraceFileError};
use h5live_log::LogMutant;
use h5live_prove::kv::{self, KvMutant};
use h5live_prove::log;
use h5live_prove::mutants::{self, MutantResult, ProtocolMutant};
use h5live_prove::suite::{Case, RecordFn, all_cases, page_tears, small_tears};
use h5live_prove::{CrashRecovery, Workload, WriterSetup};

/// Least time to look for a mutant in one exploration: whether it is found must not depend on the machine.
const MIN_MUTANT_TIME: Duration = Duration::from_secs(60);

/// Most time for one exploration: none takes as long on a machine that does nothing else.
const MAX_EXPLORATION_TIME: Duration = Duration::from_secs(600);

/// Most time for one exploration of the cut.
const MAX_QUICK_TIME: Duration = Duration::from_millis(150);

const USAGE: &str = "prove [--quick] [--seconds=N] [--tell] [--keep=FOLDER] [PART]... [=NAME]";

const PARTS: [&str; 8] = ["readers", "torn", "cut", "deaths", "power", "log", "kv", "mutants"];

/// Whether this program knows the argument. An unknown one would be skipped, and its part would seem to be sound.
fn is_known(argument: &str) -> bool {
    let options = ["--quick", "--tell"].contains(&argument);
    options
        || PARTS.contains(&argument)
        || ["--seconds=", "--keep=", "="].iter().any(|start| argument.starts_with(start))
}

struct ProverRun {
    threads: usize,
    /// Most time for one exploration.
    time_limit: Duration,
    name_filter: String,
    trace_folder: Option<PathBuf>,
    /// Whether counterexamples are printed.
    prints_stories: bool,
    /// Whether what takes long and finds nothing is left out.
    is_quick: bool,
    is_sound: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().all(|argument| is_known(argument)) {
        println!("{USAGE}, PART being one of {}", PARTS.join(", "));
        return ExitCode::from(2);
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let named = arguments.iter().find_map(|argument| argument.strip_prefix('='));
    let parts: Vec<&str> = arguments.iter().map(String::as_str).filter(|text| !text.starts_with(['-', '='])).collect();
    let wanted = |part| parts.is_empty() || parts.contains(&part);
    let began = Instant::now();
    let mut run = ProverRun {
        threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
        time_limit: match arguments.iter().find_map(|argument| argument.strip_prefix("--seconds=")) {
            Some(seconds) => Duration::from_secs(seconds.parse().unwrap_or(300)),
            None if quick => MAX_QUICK_TIME,
            None => MAX_EXPLORATION_TIME,
        },
        name_filter: named.unwrap_or_default().into(),
        trace_folder: arguments.iter().find_map(|argument| argument.strip_prefix("--keep=")).map(PathBuf::from),
        prints_stories: arguments.iter().any(|argument| argument == "--tell"),
        is_quick: quick,
        is_sound: true,
    };
    if wanted("readers") {
        run.explore_readers("every schedule", |case| Some((case.record, case.passes, AllowedTears::NONE)));
    }
    if wanted("torn") {
        run.explore_readers("every schedule, writes torn", |case| {
            case.torn.map(|(record, n)| (record, n, small_tears()))
        });
    }
    if wanted("cut") {
        run.explore_readers("every schedule, writes cut off for ever", |case| {
            case.cut.map(|(record, n)| (record, n, page_tears()))
        });
    }
    if wanted("deaths") {
        run.explore_process_deaths();
    }
    if wanted("power") {
        run.explore_power_failures();
    }
    if wanted("log") {
        run.explore_log();
    }
    if wanted("kv") {
        run.explore_kv();
    }
    if wanted("mutants") {
        run.judge_mutants();
        run.judge_log_mutants();
        run.judge_kv_mutants();
    }
    println!("\n{} in {:.0} s", if run.is_sound { "sound" } else { "NOT SOUND" }, began.elapsed().as_secs_f64());
    if run.is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

type ExplorationPlan = (RecordFn, usize, AllowedTears);

fn yes_or_no(whether: bool) -> &'static str {
    if whether { "yes" } else { "no" }
}

impl ProverRun {
    fn cases(&self) -> impl Iterator<Item = &'static Case> + use<> {
        let name = self.name_filter.clone();
        all_cases().filter(move |case| case.name.contains(&name))
    }

    fn save_counterexample(&self, name: &str, trace: &Trace, found: &Counterexample) {
        let Some(folder) = &self.trace_folder else { return };
        let path = folder.join(format!("{}.h5trace", name.replace([' ', ','], "-").replace("--", "-")));
        let done = std::fs::create_dir_all(folder).and_then(|()| File::create(&path));
        match done.map_err(TraceFileError::from).and_then(|file| found.save(trace, BufWriter::new(file))) {
            Ok(()) => println!("    kept in {}", path.display()),
            Err(error) => println!("    not kept in {}: {error}", path.display()),
        }
    }

    fn explore_readers(&mut self, title: &str, plan: impl Fn(&Case) -> Option<ExplorationPlan>) {
        println!(
            "\n{title:<36} {:<18} {:>6} {:>6} {:>10} {:>10} {:>6} {:>9} {:>8}",
            "reader", "writes", "passes", "schedules", "states", "wrong", "exhausted", "per s"
        );
        for case in self.cases() {
            let Some((record, passes, tearing)) = plan(case) else { continue };
            let workload = record(WriterSetup::default());
            for reader in case.readers {
                let bounds = ExploreBounds {
                    threads: self.threads,
                    time_limit: Some(self.time_limit),
                    tearing,
                    ..ExploreBounds::default()
                };
                let explored = reader.explore(&workload, passes, &bounds);
                println!(
                    "{:<36} {:<18} {:>6} {passes:>6} {:>10} {:>10} {:>6} {:>9} {:>8.0}",
                    case.name,
                    reader.name(),
                    workload.trace.len() - workload.start,
                    explored.schedule_count,
                    explored.state_count,
                    explored.violation_count,
                    yes_or_no(explored.is_exhaustive),
                    explored.schedule_count as f64 / explored.elapsed.as_secs_f64()
                );
                for found in explored.violations.iter().take(2) {
                    println!("    after {} moves: {}", found.writer_move_count(), found.fault);
                }
                if let Some(found) = explored.violations.first() {
                    if self.prints_stories {
                        println!("{}", CounterexampleLog::new(&workload.trace, found));
                    }
                    self.save_counterexample(&format!("{}-{}", case.name, reader.name()), &workload.trace, found);
                }
                self.is_sound &= explored.violation_count == 0;
            }
        }
    }

    fn explore_process_deaths(&mut self) {
        println!(
            "\n{:<36} {:>8} {:>8} {:>6} {:>9}  in the middle of a write: {:>6} {:>6}",
            "the writer dies", "deaths", "states", "wrong", "exhausted", "states", "wrong"
        );
        for case in self.cases().filter(|case| case.may_crash()) {
            let workload = (case.record)(WriterSetup::default());
            let survivor = CrashRecovery::for_process_death(&workload);
            let recover = |disk: &Arc<CrashedStorage>, expected: &ExpectedPrefixRange| survivor.recover(disk, expected);
            let torn = CrashExploreBounds {
                start_prefix: workload.start,
                ..mutants::death_bounds(self.threads, self.time_limit)
            };
            let whole = CrashExploreBounds { tearing: AllowedTears::NONE, ..torn.clone() };
            let [whole, torn] = [whole, torn].map(|bounds| explore_crashes(&workload.trace, &bounds, &recover));
            println!(
                "{:<36} {:>8} {:>8} {:>6} {:>9} {:>33} {:>6}",
                case.name,
                torn.planned_writer_crash_count,
                whole.checked_state_count,
                whole.violation_count,
                yes_or_no(whole.is_exhaustive && torn.is_exhaustive),
                torn.checked_state_count,
                torn.violation_count,
            );
            for bad in whole.violations.iter().chain(&torn.violations).take(2) {
                println!("    {} ({:?}, then {:?})", bad.fault, bad.survivors, bad.crashed_recoveries);
            }
            self.is_sound &= whole.violation_count == 0 && torn.violation_count == 0;
        }
    }

    /// Durable flushes, and any subset of the later writes: whole writes, and writes torn between pages and between
    /// sectors.
    fn explore_power_failures(&mut self) {
        println!(
            "\n{:<36} {:>9} {:>7} {:>9}  {:>12} {:>14} {:>16}",
            "the power fails", "failures", "states", "exhausted", "wrong: whole", "torn at pages", "torn at sectors"
        );
        for case in self.cases().filter(|case| case.may_crash()) {
            let run = |setup, tearing| {
                let workload = (case.record)(setup);
                let survivor = CrashRecovery::for_power_failure(&workload);
                let recover =
                    |disk: &Arc<CrashedStorage>, expected: &ExpectedPrefixRange| survivor.recover(disk, expected);
                let bounds = mutants::power_failure_bounds(tearing, self.threads, self.time_limit);
                let bounds = CrashExploreBounds { start_prefix: workload.start, ..bounds };
                explore_crashes(&workload.trace, &bounds, &recover)
            };
            let torn = |unit| AllowedTears { max_torn_positions_per_run: 1, ..AllowedTears::cut_at_multiples_of(unit) };
            let [whole, pages, sectors] =
                [AllowedTears::NONE, torn(4096), torn(512)].map(|t| run(WriterSetup::durable(), t));
            println!(
                "{:<36} {:>9} {:>7} {:>9}  {:>12} {:>14} {:>16}",
                case.name,
                sectors.planned_writer_crash_count,
                sectors.checked_state_count,
                yes_or_no(whole.is_exhaustive && sectors.is_exhaustive),
                whole.violation_count,
                pages.violation_count,
                sectors.violation_count,
            );
            for bad in whole.violations.iter().chain(&pages.violations).chain(&sectors.violations).take(2) {
                println!("    {} ({:?})", bad.fault, bad.survivors);
            }
            self.is_sound &= whole.violation_count + pages.violation_count + sectors.violation_count == 0;
        }
    }

    fn explore_log(&mut self) {
        println!("\n{:<46} {:>6} {:>10} {:>6} {:>13}", "files with a log", "writes", "states", "wrong", "exhausted");
        let name = self.name_filter.clone();
        for found in log::explore_all(&name, self.threads, self.time_limit) {
            println!(
                "{:<46} {:>6} {:>10} {:>6} {:>13}",
                found.name,
                found.writes,
                found.states,
                found.wrong,
                format!("{} of {}", found.exhausted, found.workloads)
            );
            if let Some(fault) = &found.fault {
                println!("    {fault}");
            }
            self.is_sound &= found.wrong == 0;
        }
    }

    fn explore_kv(&mut self) {
        println!(
            "\n{:<44} {:>7} {:>10} {:>6} {:>9}",
            "a key-value store", "batches", "schedules", "wrong", "exhausted"
        );
        let reports = kv::explore_all(KvMutant::None, self.time_limit).unwrap_or_else(|fault| {
            println!("the writer: {fault}");
            self.is_sound = false;
            Vec::new()
        });
        for found in reports {
            let exhausted = yes_or_no(found.exhausted);
            println!(
                "{:<44} {:>7} {:>10} {:>6} {exhausted:>9}",
                found.name, found.batches, found.schedules, found.wrong
            );
            found.fault.iter().for_each(|fault| println!("    {fault}"));
            self.is_sound &= found.wrong == 0;
        }
    }

    fn judge_kv_mutants(&mut self) {
        for mutant in KvMutant::all() {
            let name = format!("{mutant:?}");
            match kv::find_killer(mutant, self.time_limit.max(MIN_MUTANT_TIME)) {
                Some((by, fault)) => println!("{name:<26} {:<9} {:>5}  {by}: {fault}", "killed", ""),
                None => {
                    println!("{name:<26} {:<9}", "ALIVE");
                    self.is_sound = false;
                }
            }
        }
    }

    fn judge_log_mutants(&mut self) {
        for mutant in LogMutant::all() {
            let name = format!("{mutant:?}");
            match log::find_killer(mutant, self.threads) {
                Some((by, fault)) => println!("{name:<26} {:<9} {:>5}  {by}: {fault}", "killed", ""),
                None => {
                    println!("{name:<26} {:<9}", "ALIVE");
                    self.is_sound = false;
                }
            }
        }
    }

    fn judge_mutants(&mut self) {
        println!("\n{:<26} {:<9} {:>5}  by", "without the dependencies", "", "moves");
        let sound: Vec<Workload> = all_cases().map(|case| (case.record)(WriterSetup::default())).collect();
        for &kind in DependencyKind::ALL {
            let name = format!("{kind:?}");
            // That there is nothing to find takes longest.
            if let (true, Some(why)) = (self.is_quick, mutants::why_redundant(kind)) {
                println!("{name:<26} {:<9} {:>5}  not looked for: {why}", "redundant", "");
                continue;
            }
            match mutants::judge_missing_edges(kind, &sound, self.threads, self.time_limit.max(MIN_MUTANT_TIME)) {
                MutantResult::Killed { case, reader, found, trace } => {
                    let by = format!("{}, {}", case.name, reader.name());
                    println!("{name:<26} {:<9} {:>5}  {by}: {}", "killed", found.writer_move_count(), found.fault);
                    self.save_counterexample(&name, &trace, &found);
                }
                MutantResult::KilledByDeath { case, fault } => {
                    println!("{name:<26} {:<9} {:>5}  {}, the writer dies: {fault}", "killed", "", case.name);
                }
                MutantResult::Redundant(why) => println!("{name:<26} {:<9} {:>5}  {why}", "redundant", ""),
                MutantResult::Alive { exhausted } => {
                    println!("{name:<26} {:<9} {:>5}  exhausted: {}", "ALIVE", "", yes_or_no(exhausted));
                    self.is_sound = false;
                }
                MutantResult::Unused => println!("{name:<26} {:<9} {:>5}  no workload has it", "-", ""),
            }
        }
        for other in ProtocolMutant::all() {
            let name = format!("{other:?}");
            match other.find_killer(self.threads, self.time_limit.max(MIN_MUTANT_TIME)) {
                Some((case, fault)) => println!("{name:<26} {:<9} {:>5}  {}, {fault}", "killed", "", case.name),
                None => {
                    println!("{name:<26} {:<9}", "ALIVE");
                    self.is_sound = false;
                }
            }
        }
    }
}
