//! Every workload of h5live's writer, with libhdf5 as the reader: a process for each, for the library serves one thread
//! at a time.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use h5live_cache::DependencyKind;
use h5live_checker::schedule::{AllowedTears, CounterexampleLog, ExploreBounds, ExploreReport, explore_schedules};
use h5live_prove::suite::{Case, ReaderKind, all_cases, small_tears};
use h5live_prove::{Workload, WriterSetup};

use crate::library::Library;
use crate::reader::Libhdf5Follower;
use crate::virtual_file;

/// How often the library reads a structure that does not check: more often than a workload writes any. It reads the
/// superblock in two parts, which a writer that opens and closes can come between each time.
const ATTEMPTS: u32 = 6;

/// Schedules of one exploration.
const MIN_SCHEDULES: u64 = 100_000;

/// Most time for the schedules of a job. On an idle machine it takes a tenth of it.
const MAX_JOB_TIME: Duration = Duration::from_secs(300);

/// A workload of each chunk index that can be followed. The newest library gets many schedules of each, without
/// merging.
const INDEXES: [&str; 5] =
    ["extensible array, from nothing", "fixed array", "implicit index", "single chunk", "B-tree, from nothing"];

/// Seconds for each workload when only little is looked at.
const QUICK_SECONDS: u64 = 1;

/// If there are too few schedules, this many passes are added, again and again.
const EXTRA_PASSES: usize = 2;

/// Most passes over the whole, where there are not as many schedules with fewer.
const MAX_PASSES: usize = 15;

/// How the names of workloads begin in which space is freed while time passes.
const REWRITTEN: &str = "rewritten, ";

/// Workloads that the library is not shown, by what their names begin with, and why.
const NOT_SHOWN: [(&str, &str); 5] = [
    ("space used again", "libhdf5 refuses files in which space is used again after a time"),
    ("old file", "libhdf5 does not follow files of these superblock versions"),
    ("implicit rewrite", "libhdf5 may read what is rewritten in its place half new"),
    ("contiguous rewrite", "libhdf5 may read what is rewritten in its place half new"),
    ("attributes that are texts", "the reader here knows no texts"),
];

/// The form in which the library sees a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteGranularity {
    /// Every write at once.
    Whole,
    /// Every write at once, in many schedules.
    Many,
    /// Writes in part.
    Torn,
    /// A writer that publishes extents before the chunks below them, or that uses freed space again after a time. It must
    /// be found.
    Broken,
}

impl WriteGranularity {
    fn name(self) -> &'static str {
        match self {
            WriteGranularity::Whole => "whole",
            WriteGranularity::Many => "many",
            WriteGranularity::Torn => "torn",
            WriteGranularity::Broken => "broken",
        }
    }
}

/// One exploration: a library and a workload.
#[derive(Debug, Clone)]
pub struct ExplorationJob {
    library: PathBuf,
    case: usize,
    shown: WriteGranularity,
    /// Whether to tell counterexamples.
    story: bool,
    limit: Duration,
}

impl ExplorationJob {
    /// The job of a separate process.
    pub fn parse(arguments: &[String]) -> Option<ExplorationJob> {
        let [job, library, case, shown, limit, story] = arguments else { return None };
        let limit = Duration::from_millis(limit.parse().ok()?);
        let job = (job == "--job").then(|| case.parse().ok()).flatten();
        let shown = [WriteGranularity::Whole, WriteGranularity::Many, WriteGranularity::Torn, WriteGranularity::Broken]
            .into_iter()
            .find(|known| known.name() == shown)?;
        Some(ExplorationJob { library: library.into(), case: job?, shown, story: story == "story", limit })
    }

    fn arguments(&self) -> [String; 6] {
        let library = self.library.display().to_string();
        let story = if self.story { "story" } else { "" };
        let limit = self.limit.as_millis().to_string();
        ["--job".into(), library, self.case.to_string(), self.shown.name().into(), limit, story.into()]
    }

    fn plan(&self) -> Option<(&'static Case, ReaderKind, Workload, usize, AllowedTears)> {
        let case = all_cases().nth(self.case)?;
        let shown = |reader: &ReaderKind| {
            !matches!(reader, ReaderKind::EndOfFile | ReaderKind::Strings | ReaderKind::Transient)
        };
        let reader = case.readers.iter().copied().find(shown)?;
        let whole = (case.record, case.passes, AllowedTears::NONE);
        let ((record, passes, tearing), setup) = match self.shown {
            WriteGranularity::Whole | WriteGranularity::Many => (whole, WriterSetup::default()),
            WriteGranularity::Torn => {
                (case.torn.map(|(record, passes)| (record, passes, small_tears()))?, WriterSetup::default())
            }
            WriteGranularity::Broken if case.name.starts_with(REWRITTEN) => (whole, WriterSetup::reusing_by_time()),
            WriteGranularity::Broken => (whole, WriterSetup::without(DependencyKind::ObjectHeaderIndex)),
        };
        Some((case, reader, record(setup), passes, tearing))
    }

    /// Explores, and prints a line.
    pub fn run(&self) -> ExitCode {
        let Some((case, reader, workload, mut passes, tearing)) = self.plan() else { return ExitCode::SUCCESS };
        let library = match Library::load(&self.library, ATTEMPTS) {
            Ok(library) => library,
            Err(error) => {
                println!("{}: {error}", self.library.display());
                return ExitCode::FAILURE;
            }
        };
        let file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
        virtual_file::serve_file(file.as_file()).expect("the file is there");
        let path = CString::new(file.path().as_os_str().as_bytes()).expect("a path has no zeros");
        let bounds = ExploreBounds { start_prefix: workload.start, tearing, threads: 1, ..ExploreBounds::default() };
        let bounds = ExploreBounds { merges_schedules: self.shown != WriteGranularity::Many, ..bounds };
        let began = Instant::now();
        let (mut explored, mut moves) = (ExploreReport::default(), None);
        let first = if self.shown == WriteGranularity::Many { passes + EXTRA_PASSES } else { passes };
        for more in (first..).step_by(EXTRA_PASSES) {
            let follower = Libhdf5Follower::new(&library, &path, &workload, reader, more);
            let limit = self.limit.saturating_sub(began.elapsed());
            let (found, reached) = match self.shown {
                WriteGranularity::Many => explore_by_moves(&workload, &bounds, limit, &follower),
                _ => explore_within_limit(&workload, &bounds, limit, &follower),
            };
            if found.violation_count > 0 || found.schedule_count > explored.schedule_count {
                (explored, moves, passes) = (found, reached, more);
            }
            let is_enough =
                explored.violation_count > 0 || explored.schedule_count >= MIN_SCHEDULES || more >= MAX_PASSES;
            if self.shown != WriteGranularity::Many || is_enough || began.elapsed() >= self.limit {
                break;
            }
        }
        println!(
            "{:<36} {:<8} {:<6} {:>6} {passes:>6} {:>10} {:>10} {:>6} {:>9} {:>6} {:>8.0}",
            case.name,
            library.version(),
            self.shown.name(),
            workload.trace.len() - workload.start,
            explored.schedule_count,
            explored.state_count,
            explored.violation_count,
            if explored.is_exhaustive { "yes" } else { "no" },
            moves.map_or("all".into(), |moves| moves.to_string()),
            explored.schedule_count as f64 / explored.elapsed.as_secs_f64(),
        );
        if self.shown == WriteGranularity::Broken {
            println!("    {}", if explored.violation_count > 0 { "found out, as it must be" } else { "NOT FOUND OUT" });
            return if explored.violation_count > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        for found in explored.violations.iter().take(2) {
            println!("    after {} moves: {}", found.writer_move_count(), found.fault);
            if self.story {
                println!("{}", CounterexampleLog::new(&workload.trace, found));
            }
        }
        if explored.violation_count == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// The schedules with one move of the writer, then those with two, and so on, until there are enough, or the time is
/// over: the most that there were, with the number of moves of these.
fn explore_by_moves(
    workload: &Workload,
    bounds: &ExploreBounds,
    limit: Duration,
    follower: &Libhdf5Follower<'_>,
) -> (ExploreReport, Option<u32>) {
    let began = Instant::now();
    let (mut largest, mut reached) = (ExploreReport::default(), 0);
    for moves in 1.. {
        let time = Some(limit.saturating_sub(began.elapsed()));
        let bounds = ExploreBounds {
            max_writer_moves: Some(moves),
            max_runs: Some(MIN_SCHEDULES),
            time_limit: time,
            ..bounds.clone()
        };
        let found = explore_schedules(&workload.trace, &bounds, &|view| follower.run(view));
        let is_last = !found.is_exhaustive || found.schedule_count == largest.schedule_count;
        if found.violation_count > 0 || found.schedule_count > largest.schedule_count {
            (largest, reached) = (found, moves);
        }
        if is_last || largest.violation_count > 0 {
            break;
        }
    }
    (largest, Some(reached))
}

/// All schedules, if they come to an end in half of the time; else those with one move of the writer, then with two,
/// and so on, as far as it goes, and the number of moves that was reached.
fn explore_within_limit(
    workload: &Workload,
    bounds: &ExploreBounds,
    limit: Duration,
    follower: &Libhdf5Follower<'_>,
) -> (ExploreReport, Option<u32>) {
    let began = Instant::now();
    let explore = |moves, limit: Duration| {
        let time = Some(limit.saturating_sub(began.elapsed()));
        let bounds = ExploreBounds {
            max_writer_moves: moves,
            max_runs: Some(MIN_SCHEDULES),
            time_limit: time,
            ..bounds.clone()
        };
        explore_schedules(&workload.trace, &bounds, &|view| follower.run(view))
    };
    let mut found = explore(None, limit / 2);
    let mut reached = None;
    while !found.is_exhaustive && found.violation_count == 0 && began.elapsed() < limit {
        let moves = reached.map_or(1, |moves| moves + 1);
        let next = explore(Some(moves), limit);
        reached = Some(moves);
        let through = next.is_exhaustive;
        found = ExploreReport { is_exhaustive: false, ..next };
        if !through {
            break;
        }
    }
    (found, reached)
}

/// Explores all workloads with `name` in their names under each library that is found, each for `seconds`. Returns
/// whether there is no fault.
pub fn explore_all(seconds: u64, story: bool, name: &str) -> bool {
    let libraries = crate::locate::libraries();
    if libraries.is_empty() {
        println!("\nskipped: libhdf5 as the reader; there is no libhdf5");
        return true;
    }
    println!(
        "\n{:<36} {:<8} {:<6} {:>6} {:>6} {:>10} {:>10} {:>6} {:>9} {:>6} {:>8}",
        "libhdf5 reads",
        "version",
        "seen",
        "writes",
        "passes",
        "schedules",
        "states",
        "wrong",
        "exhausted",
        "moves",
        "per s"
    );
    let jobs = Mutex::new(exploration_jobs(&libraries, seconds, story, name));
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let sound = Mutex::new(true);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(job) = jobs.lock().ok().and_then(|mut jobs| jobs.pop()) else { return };
                    let well = run_in_process(&job);
                    if let Ok(mut sound) = sound.lock() {
                        *sound &= well;
                    }
                }
            });
        }
    });
    sound.into_inner().unwrap_or(false)
}

/// The jobs of [`explore_all`], of which the last one comes first.
fn exploration_jobs(libraries: &[PathBuf], seconds: u64, story: bool, name: &str) -> Vec<ExplorationJob> {
    let limit = Duration::from_secs(seconds);
    let cases = all_cases().enumerate().filter(|(_, case)| case.name.contains(name));
    let mut jobs: Vec<ExplorationJob> = Vec::new();
    for (number, case) in cases {
        if let Some((_, reason)) = NOT_SHOWN.iter().find(|(start, _)| case.name.starts_with(start)) {
            println!("{:<36} not shown: {reason}", case.name);
            continue;
        }
        for (n, library) in libraries.iter().enumerate() {
            // The first is the newest.
            let all: &[WriteGranularity] = match (number, n) {
                (0, 0) => {
                    &[WriteGranularity::Broken, WriteGranularity::Many, WriteGranularity::Whole, WriteGranularity::Torn]
                }
                (0, _) => &[WriteGranularity::Broken, WriteGranularity::Whole, WriteGranularity::Torn],
                (_, _) if case.name.starts_with(REWRITTEN) => &[WriteGranularity::Broken, WriteGranularity::Whole],
                (_, 0) if INDEXES.contains(&case.name) => {
                    &[WriteGranularity::Many, WriteGranularity::Whole, WriteGranularity::Torn]
                }
                (_, 0) => &[WriteGranularity::Whole, WriteGranularity::Torn],
                _ => &[WriteGranularity::Whole],
            };
            let job = |shown: &WriteGranularity| {
                let limit = if *shown == WriteGranularity::Many && seconds > QUICK_SECONDS {
                    limit.max(MAX_JOB_TIME)
                } else {
                    limit
                };
                ExplorationJob { library: library.clone(), case: number, shown: *shown, story, limit }
            };
            jobs.extend(all.iter().map(job));
        }
    }
    jobs.reverse();
    jobs
}

/// Runs a job in a separate process.
fn run_in_process(job: &ExplorationJob) -> bool {
    let program = std::env::current_exe().unwrap_or_else(|_| Path::new("/proc/self/exe").into());
    match Command::new(program).args(job.arguments()).output() {
        Ok(output) => {
            print!("{}", String::from_utf8_lossy(&output.stdout));
            eprint!("{}", String::from_utf8_lossy(&output.stderr));
            if output.status.code().is_none() {
                println!("    {:?} ended the process: {}", job, output.status);
            }
            output.status.success()
        }
        Err(error) => {
            println!("    {job:?} could not be run: {error}");
            false
        }
    }
}
