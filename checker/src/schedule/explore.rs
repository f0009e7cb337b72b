//! Going through the tree of schedules.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::position::{AllowedTears, WriterPosition};
use super::timeline::Timeline;
use super::view::{BranchPoint, Checkpoints, QueryAtPosition, ReaderView, RunFault, RunLimits};
use crate::trace::Trace;

/// The reader's judgement of what it saw: the fault, in words.
pub type Verdict = Result<(), String>;

/// The bounds of an exploration.
#[derive(Debug, Clone)]
pub struct ExploreBounds {
    /// The prefix of the trace at which readers may begin: before, there is no file yet.
    pub start_prefix: usize,
    /// Which parts of writes are seen.
    pub tearing: AllowedTears,
    /// Most times that the writer comes further while a reader looks.
    pub max_writer_moves: Option<u32>,
    /// Most queries in one run. More are a fault of the reader.
    pub max_queries_per_run: u32,
    /// Most runs.
    pub max_runs: Option<u64>,
    /// Most time.
    pub time_limit: Option<Duration>,
    /// How many threads explore.
    pub threads: usize,
    /// Whether schedules that meet at a [checkpoint](ReaderView::try_enter_checkpoint) go on once.
    pub merges_schedules: bool,
}

impl Default for ExploreBounds {
    fn default() -> Self {
        ExploreBounds {
            start_prefix: 0,
            tearing: AllowedTears::NONE,
            max_writer_moves: None,
            max_queries_per_run: 100_000,
            max_runs: None,
            time_limit: None,
            threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
            merges_schedules: true,
        }
    }
}

/// A schedule in which a reader found something wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counterexample {
    /// The fault, in words.
    pub fault: String,
    /// Where the writer was at each of the reader's queries.
    pub queries: Vec<QueryAtPosition>,
}

impl Counterexample {
    /// How often the writer came further.
    pub fn writer_move_count(&self) -> usize {
        let positions = self.queries.iter().map(|seen| seen.position);
        positions.clone().zip(positions.skip(1)).filter(|(before, after)| before != after).count()
    }
}

/// The result of an exploration.
#[derive(Debug, Clone, Default)]
pub struct ExploreReport {
    /// Schedules: runs of the reader, no two the same.
    pub schedule_count: u64,
    /// Schedules among them that ended at a checkpoint where another had been.
    pub merged_schedule_count: u64,
    /// States: a position of the writer, together with everything that the reader had seen before. Each counts once.
    pub state_count: u64,
    /// Queries of the reader that were answered, repeated ones included.
    pub query_count: u64,
    /// Most queries of one schedule.
    pub max_queries_per_schedule: u32,
    /// Whether there is no other schedule within the bounds of positions, tears and moves.
    pub is_exhaustive: bool,
    /// The first schedules that went wrong.
    pub violations: Vec<Counterexample>,
    /// How many went wrong.
    pub violation_count: u64,
    /// How long it took.
    pub elapsed: Duration,
}

/// Counterexamples that are kept; when there are as many, the exploration ends.
const MAX_COUNTEREXAMPLES: usize = 4;

/// Runs `reader` under every schedule within `bounds`. It is run again and again, by several threads, and must do the
/// same whenever it sees the same.
pub fn explore_schedules(
    trace: &Trace,
    bounds: &ExploreBounds,
    reader: &(impl Fn(&Arc<ReaderView>) -> Verdict + Sync),
) -> ExploreReport {
    let began = Instant::now();
    let timeline = Arc::new(Timeline::new(trace.clone()));
    let shared = ExploreShared {
        jobs: Mutex::new(JobQueue { jobs: vec![Vec::new()], idle: 0 }),
        job_added: Condvar::new(),
        idle_workers: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        left: AtomicU64::new(bounds.max_runs.unwrap_or(u64::MAX)),
        deadline: bounds.time_limit.map(|time| began + time),
        threads: bounds.threads.max(1),
        checkpoints: Checkpoints::default(),
    };
    let work = || ExploreWorker::new(&timeline, bounds, &shared, reader).run_jobs();
    let parts = std::thread::scope(|scope| {
        let others: Vec<_> = (1..shared.threads).map(|_| scope.spawn(work)).collect();
        let mut parts = vec![work()];
        parts.extend(others.into_iter().filter_map(|thread| thread.join().ok()));
        parts
    });
    let mut explored = ExploreReport { is_exhaustive: !shared.stop.load(Relaxed), ..ExploreReport::default() };
    for part in parts {
        explored.schedule_count += part.schedule_count;
        explored.merged_schedule_count += part.merged_schedule_count;
        explored.state_count += part.state_count;
        explored.query_count += part.query_count;
        explored.max_queries_per_schedule = explored.max_queries_per_schedule.max(part.max_queries_per_schedule);
        explored.violation_count += part.violation_count;
        explored.violations.extend(part.violations);
    }
    explored.violations.sort_by_key(|found| (found.writer_move_count(), found.queries.len()));
    explored.violations.truncate(MAX_COUNTEREXAMPLES);
    explored.elapsed = began.elapsed();
    explored
}

/// The counterexample in which the writer comes further the fewest times, if there is one within `bounds`: looks
/// through the schedules with one move, then those with two, and so on.
pub fn find_counterexample_with_fewest_moves(
    trace: &Trace,
    bounds: &ExploreBounds,
    reader: &(impl Fn(&Arc<ReaderView>) -> Verdict + Sync),
) -> (Option<Counterexample>, ExploreReport) {
    let max_moves = bounds.max_writer_moves.unwrap_or(u32::MAX);
    let mut last = None;
    for moves in 0..=max_moves {
        let mut explored =
            explore_schedules(trace, &ExploreBounds { max_writer_moves: Some(moves), ..bounds.clone() }, reader);
        if !explored.violations.is_empty() {
            return (Some(explored.violations.swap_remove(0)), explored);
        }
        // More moves than there are operations, or queries, make no difference.
        let same = last == Some(explored.schedule_count);
        last = Some(explored.schedule_count);
        if !explored.is_exhaustive || same || moves == max_moves {
            return (None, explored);
        }
    }
    (None, ExploreReport::default())
}

/// Runs `reader` once. At each query, the writer is at the position in `observations`.
///
/// Returns the reader's verdict, and its queries.
pub fn replay_reader(
    trace: &Trace,
    bounds: &ExploreBounds,
    observations: &[QueryAtPosition],
    reader: &(impl Fn(&Arc<ReaderView>) -> Verdict + Sync),
) -> (Verdict, Vec<QueryAtPosition>) {
    let timeline = Arc::new(Timeline::new(trace.clone()));
    let limits = RunLimits {
        start: WriterPosition::after(bounds.start_prefix),
        moves: 0,
        queries: bounds.max_queries_per_run,
        merge: false,
    };
    let view = Arc::new(ReaderView::new(timeline, bounds.tearing, limits, Checkpoints::default()));
    let numbered = observations.iter().enumerate();
    let forks = numbered.map(|(number, seen)| BranchPoint {
        number: number as u32,
        query: seen.query,
        taken: seen.position,
        others: Vec::new(),
        after: None,
    });
    view.with_run(|run| run.forks = forks.collect());
    view.restart(true);
    let verdict = judge(&view, reader);
    (verdict, view.with_run(|run| run.journal.take()).unwrap_or_default())
}

fn judge(view: &Arc<ReaderView>, reader: &impl Fn(&Arc<ReaderView>) -> Verdict) -> Verdict {
    let verdict = catch_unwind(AssertUnwindSafe(|| reader(view)));
    match view.with_run(|run| (run.fault, run.query_count)) {
        (Some(RunFault::Nondeterministic), _) => Err("it does not do the same when it sees the same".into()),
        (Some(RunFault::TooManyQueries), queries) => Err(format!("it goes on after {queries} queries")),
        (None, _) => verdict.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            Err(format!("it panics: {}", text.or(panic.downcast_ref().copied()).unwrap_or("without a word")))
        }),
    }
}

struct JobQueue {
    /// Paths whose branches are not explored yet.
    jobs: Vec<Vec<BranchPoint>>,
    idle: usize,
}

struct ExploreShared {
    jobs: Mutex<JobQueue>,
    job_added: Condvar,
    /// Workers without a job.
    idle_workers: AtomicUsize,
    stop: AtomicBool,
    /// Runs that may still be made.
    left: AtomicU64,
    deadline: Option<Instant>,
    threads: usize,
    checkpoints: Checkpoints,
}

impl ExploreShared {
    fn next_job(&self) -> Option<Vec<BranchPoint>> {
        let mut jobs = self.jobs.lock();
        loop {
            if self.stop.load(Relaxed) {
                return None;
            }
            if let Some(job) = jobs.jobs.pop() {
                return Some(job);
            }
            jobs.idle += 1;
            if jobs.idle == self.threads {
                self.job_added.notify_all();
                return None;
            }
            self.idle_workers.fetch_add(1, Relaxed);
            self.job_added.wait(&mut jobs);
            self.idle_workers.fetch_sub(1, Relaxed);
            if jobs.idle == self.threads {
                return None;
            }
            jobs.idle -= 1;
        }
    }

    fn push_job(&self, job: Vec<BranchPoint>) {
        self.jobs.lock().jobs.push(job);
        self.job_added.notify_one();
    }

    fn stop_workers(&self) {
        self.stop.store(true, Relaxed);
        let _jobs = self.jobs.lock();
        self.job_added.notify_all();
    }
}

struct ExploreWorker<'a, R> {
    view: Arc<ReaderView>,
    shared: &'a ExploreShared,
    reader: &'a R,
    found: ExploreReport,
}

impl<'a, R: Fn(&Arc<ReaderView>) -> Verdict> ExploreWorker<'a, R> {
    fn new(timeline: &Arc<Timeline>, bounds: &ExploreBounds, shared: &'a ExploreShared, reader: &'a R) -> Self {
        let moves = bounds.max_writer_moves.unwrap_or(u32::MAX);
        let ExploreBounds { max_queries_per_run: queries, merges_schedules: merge, .. } = *bounds;
        let limits = RunLimits { start: WriterPosition::after(bounds.start_prefix), moves, queries, merge };
        let view = Arc::new(ReaderView::new(timeline.clone(), bounds.tearing, limits, shared.checkpoints.clone()));
        ExploreWorker { view, shared, reader, found: ExploreReport::default() }
    }

    fn run_jobs(mut self) -> ExploreReport {
        while let Some(job) = self.shared.next_job() {
            let floor = job.len();
            self.view.with_run(|run| {
                run.forks = job;
                run.clear_state_hashes();
            });
            while self.run_reader() && self.advance_branch(floor) {
                if self.shared.idle_workers.load(Relaxed) > 0 {
                    self.share_branches(floor);
                }
            }
        }
        self.found
    }

    /// Runs the reader once; returns whether to go on.
    fn run_reader(&mut self) -> bool {
        if self.shared.stop.load(Relaxed) {
            return false;
        }
        let late = self.found.schedule_count.is_multiple_of(256)
            && self.shared.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let left = self.shared.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        if late || left.is_err() {
            self.shared.stop_workers();
            return false;
        }
        let known = self.view.with_run(|run| run.forks.last().map_or(0, |fork| fork.number));
        self.view.restart(false);
        let verdict = judge(&self.view, self.reader);
        let (queries, merged) = self.view.with_run(|run| (run.query_count, run.is_duplicate));
        self.found.merged_schedule_count += u64::from(merged);
        self.found.schedule_count += 1;
        self.found.query_count += u64::from(queries);
        self.found.state_count += u64::from(queries.saturating_sub(known));
        self.found.max_queries_per_schedule = self.found.max_queries_per_schedule.max(queries);
        if let Err(fault) = verdict {
            self.found.violation_count += 1;
            self.record_violation(fault);
        }
        true
    }

    fn record_violation(&mut self, fault: String) {
        let forks = self.view.with_run(|run| run.forks.clone());
        self.view.restart(true);
        let _again = judge(&self.view, self.reader);
        let seen = self.view.with_run(|run| {
            run.forks = forks;
            run.journal.take().unwrap_or_default()
        });
        self.found.violations.push(Counterexample { fault, queries: seen });
        if self.found.violations.len() >= MAX_COUNTEREXAMPLES {
            self.shared.stop_workers();
        }
    }

    /// Goes to the next branch. The first `floor` branches are fixed.
    fn advance_branch(&self, floor: usize) -> bool {
        self.view.with_run(|run| {
            while run.forks.len() > floor
                && let Some(mut fork) = run.forks.pop()
            {
                if let Some(next) = run.pop_unexplored_position(&mut fork) {
                    fork.taken = next;
                    run.forks.push(fork);
                    return true;
                }
            }
            false
        })
    }

    /// Gives away the branches that are the nearest to the root.
    fn share_branches(&self, floor: usize) {
        let jobs = self.view.with_run(|run| {
            let open = run.forks.iter().enumerate().skip(floor).find(|(_, fork)| !fork.others.is_empty());
            let Some(depth) = open.map(|(depth, _)| depth) else { return Vec::new() };
            let mut others = Vec::new();
            if let Some(mut fork) = run.forks.get(depth).cloned() {
                others.extend(std::iter::from_fn(|| run.pop_unexplored_position(&mut fork)));
                run.forks[depth].others.clear();
            }
            let path: Vec<BranchPoint> = run.forks.iter().take(depth + 1).cloned().collect();
            let path: Vec<BranchPoint> =
                path.into_iter().map(|fork| BranchPoint { others: Vec::new(), ..fork }).collect();
            let job = |taken: WriterPosition| {
                let mut job = path.clone();
                job.iter_mut().skip(depth).for_each(|fork| fork.taken = taken);
                job
            };
            others.into_iter().map(job).collect()
        });
        jobs.into_iter().for_each(|job| self.shared.push_job(job));
    }
}
