//! Every state in which a crash may leave a file.
//!
//! When a process dies, its writes are there up to some operation; part of that operation may be there. When the power
//! fails, everything before the last barrier is there. Of later writes, any part may be there, in any order.

mod disk;
mod power_failure;
mod subsets;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::schedule::{AllowedTears, Tear, Verdict, WriterPosition};
use crate::trace::{StorageOp, Trace};

pub use disk::CrashedStorage;
pub use power_failure::PowerFailureSampling;
use subsets::subsets;

/// The kind of crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashKind {
    /// The process dies: writes that it has not made are lost.
    Process,
    /// The power fails: writes that are not durable may be lost.
    Power(PowerFailureSampling),
}

/// The bounds of an exploration.
#[derive(Debug, Clone)]
pub struct CrashExploreBounds {
    /// The prefix of the trace from which on the crash may happen.
    pub start_prefix: usize,
    /// Which parts of the write in flight, or of one of those that are not durable, may be there.
    pub tearing: AllowedTears,
    /// The kind of crash.
    pub crash_kind: CrashKind,
    /// How often the recovery may crash as well.
    pub max_recovery_crashes: u32,
    /// Most time.
    pub time_limit: Option<Duration>,
    /// How many threads explore.
    pub threads: usize,
}

/// The states that may and must be found after a crash, as prefixes of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExpectedPrefixRange {
    /// All that these operations did is there.
    pub min_ops: usize,
    /// Nothing is there that these operations did not do.
    pub max_ops: usize,
    /// How many recoveries have crashed since.
    pub recovery_crash_count: u32,
}

/// A state that was not recovered from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedRecovery {
    /// The fault, in words.
    pub fault: String,
    /// The states that were allowed.
    pub expected: ExpectedPrefixRange,
    /// The writes that survived the crash.
    pub survivors: SurvivingWrites,
    /// The prefix of what the recovery did that outlasted its crash, for each recovery that crashed.
    pub crashed_recoveries: Vec<WriterPosition>,
}

/// The writes that survive a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SurvivingWrites {
    /// All until here.
    Prefix(WriterPosition),
    /// All of the first `durable` operations, and these.
    Subset {
        /// The number of operations that are durable.
        durable: usize,
        /// Which of the others are there, ascending.
        kept: Vec<u32>,
        /// Which of them is there only in part.
        torn: Option<(u32, Tear)>,
    },
}

/// The result of an exploration.
#[derive(Debug, Clone, Default)]
pub struct CrashExploreReport {
    /// Crashes: what outlasted them, no two the same.
    pub planned_writer_crash_count: u64,
    /// States of the file among them that differ, and were looked at.
    pub checked_state_count: u64,
    /// Whether that is all there is within the bounds.
    pub is_exhaustive: bool,
    /// The first bad states, the simplest first.
    pub violations: Vec<FailedRecovery>,
    /// How many were bad.
    pub violation_count: u64,
    /// How long it took.
    pub elapsed: Duration,
}

/// Bad states that are kept.
const MAX_BAD_STATES: usize = 16;

/// Calls `recover` with every state within `bounds`. `recover` opens the file, reads it, and may write. Its writes,
/// too, may survive the next crash only in part.
pub fn explore_crashes(
    trace: &Trace,
    bounds: &CrashExploreBounds,
    recover: &(impl Fn(&Arc<CrashedStorage>, &ExpectedPrefixRange) -> Verdict + Sync),
) -> CrashExploreReport {
    let began = Instant::now();
    let all = match bounds.crash_kind {
        CrashKind::Process => process_deaths(trace, bounds),
        CrashKind::Power(power) => power_failures(trace, bounds, &power),
    };
    let shared = CrashExplorer {
        trace,
        bounds,
        recover,
        seen: Mutex::default(),
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        found: Mutex::default(),
        deadline: bounds.time_limit.map(|time| began + time),
    };
    std::thread::scope(|scope| {
        for _ in 0..bounds.threads.max(1) {
            scope.spawn(|| shared.check_states(&all.states));
        }
    });
    let mut found = shared.found.into_inner();
    found.planned_writer_crash_count = all.states.len() as u64;
    found.is_exhaustive = all.complete && !shared.stop.load(Relaxed);
    found
        .violations
        .sort_by_key(|bad| (bad.crashed_recoveries.len(), bad.survivors.operation_count(), bad.expected.max_ops));
    found.elapsed = began.elapsed();
    found
}

struct CrashStates {
    states: Vec<(SurvivingWrites, ExpectedPrefixRange)>,
    complete: bool,
}

/// Every prefix, and every part of the write in flight.
fn process_deaths(trace: &Trace, bounds: &CrashExploreBounds) -> CrashStates {
    let mut states = Vec::new();
    for prefix in bounds.start_prefix..=trace.len() {
        let mut add = |tear| {
            let position = WriterPosition { tear, ..WriterPosition::after(prefix) };
            let max_ops = prefix + usize::from(tear != Tear::None);
            states.push((
                SurvivingWrites::Prefix(position),
                ExpectedPrefixRange { min_ops: prefix, max_ops, recovery_crash_count: 0 },
            ));
        };
        add(Tear::None);
        trace
            .operations()
            .get(prefix)
            .map(|operation| possible_tears(operation, &bounds.tearing))
            .into_iter()
            .flatten()
            .for_each(add);
    }
    CrashStates { states, complete: true }
}

fn possible_tears(operation: &StorageOp, tearing: &AllowedTears) -> Vec<Tear> {
    match operation {
        StorageOp::Write { at, bytes } => tearing.possible_tears(*at, bytes.len() as u64, 0, u64::MAX),
        _ => Vec::new(),
    }
}

/// Subsets of the operations between each two barriers.
fn power_failures(trace: &Trace, bounds: &CrashExploreBounds, power: &PowerFailureSampling) -> CrashStates {
    let mut all = CrashStates { states: Vec::new(), complete: true };
    let operations = trace.operations();
    let is_barrier = |n: &usize| matches!(operations.get(*n), Some(StorageOp::Sync));
    let mut barriers: Vec<usize> = (0..operations.len()).filter(is_barrier).map(|n| n + 1).collect();
    barriers.retain(|durable| *durable > bounds.start_prefix);
    barriers.insert(0, bounds.start_prefix);
    for (n, durable) in barriers.iter().enumerate() {
        let end = barriers.get(n + 1).copied().unwrap_or(operations.len());
        let changes = |n: &usize| matches!(operations.get(*n), Some(StorageOp::Write { .. } | StorageOp::SetLen(_)));
        let pending: Vec<u32> = (*durable..end).filter(changes).map(|n| n as u32).collect();
        let (chosen, complete) = subsets(pending.len(), power);
        all.complete &= complete;
        for subset in chosen {
            let kept: Vec<u32> = subset.kept.iter().filter_map(|n| pending.get(*n).copied()).collect();
            // Marks that follow the last survivor and precede the next operation belong to it.
            let last = kept.last().map_or(*durable, |last| *last as usize + 1);
            let max_ops = (last..end).find(|n| changes(n)).unwrap_or(end);
            // What was said of what is durable was said before anything else was done.
            let min_ops = pending.first().map_or(end, |first| *first as usize);
            let expected = ExpectedPrefixRange { min_ops, max_ops, recovery_crash_count: 0 };
            let torn = kept.iter().filter(|_| subset.may_be_torn).flat_map(|n| {
                let tears = operations.get(*n as usize).map(|operation| possible_tears(operation, &bounds.tearing));
                tears.into_iter().flatten().map(move |tear| Some((*n, tear)))
            });
            for torn in std::iter::once(None).chain(torn) {
                all.states.push((SurvivingWrites::Subset { durable: *durable, kept: kept.clone(), torn }, expected));
            }
        }
    }
    all
}

impl SurvivingWrites {
    fn operation_count(&self) -> usize {
        match self {
            SurvivingWrites::Prefix(position) => position.prefix as usize,
            SurvivingWrites::Subset { durable, kept, torn } => durable + kept.len() + usize::from(torn.is_some()),
        }
    }

    /// The file.
    pub fn build_crashed_storage(&self, trace: &Trace) -> CrashedStorage {
        let disk = CrashedStorage::new(Arc::new(trace.base().to_vec()));
        self.apply(trace, &disk);
        disk
    }

    fn apply(&self, trace: &Trace, disk: &CrashedStorage) {
        let operations = trace.operations();
        match self {
            SurvivingWrites::Prefix(position) => {
                operations
                    .iter()
                    .take(position.prefix as usize)
                    .for_each(|operation| disk.apply(operation, Tear::None));
                if let (true, Some(operation)) = (position.is_torn(), operations.get(position.prefix as usize)) {
                    disk.apply(operation, position.tear);
                }
            }
            SurvivingWrites::Subset { durable, kept, torn } => {
                operations.iter().take(*durable).for_each(|operation| disk.apply(operation, Tear::None));
                for n in kept {
                    let tear = torn.filter(|(torn, _)| torn == n).map_or(Tear::None, |(_, tear)| tear);
                    operations.get(*n as usize).into_iter().for_each(|operation| disk.apply(operation, tear));
                }
            }
        }
    }
}

struct CrashExplorer<'a, R> {
    trace: &'a Trace,
    bounds: &'a CrashExploreBounds,
    recover: &'a R,
    seen: Mutex<HashSet<(u64, ExpectedPrefixRange)>>,
    next: AtomicUsize,
    stop: AtomicBool,
    found: Mutex<CrashExploreReport>,
    deadline: Option<Instant>,
}

/// States that a thread takes at once.
const STATES_PER_BATCH: usize = 64;

impl<R: Fn(&Arc<CrashedStorage>, &ExpectedPrefixRange) -> Verdict + Sync> CrashExplorer<'_, R> {
    fn check_states(&self, all: &[(SurvivingWrites, ExpectedPrefixRange)]) {
        let base = Arc::new(self.trace.base().to_vec());
        loop {
            let first = self.next.fetch_add(STATES_PER_BATCH, Relaxed);
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) && first < all.len() {
                self.stop.store(true, Relaxed);
            }
            let Some(batch) = all.get(first..all.len().min(first + STATES_PER_BATCH)).filter(|batch| !batch.is_empty())
            else {
                return;
            };
            for (survivors, expected) in batch {
                if self.stop.load(Relaxed) {
                    return;
                }
                let disk = CrashedStorage::new(base.clone());
                survivors.apply(self.trace, &disk);
                self.check_state(disk, survivors, *expected, &mut Vec::new());
            }
        }
    }

    fn check_state(
        &self,
        disk: CrashedStorage,
        survivors: &SurvivingWrites,
        expected: ExpectedPrefixRange,
        recoveries: &mut Vec<WriterPosition>,
    ) {
        if !self.seen.lock().insert((disk.fingerprint(), expected)) {
            return;
        }
        let before = disk.copy_with_empty_log();
        let disk = Arc::new(disk);
        let verdict = catch_unwind(AssertUnwindSafe(|| (self.recover)(&disk, &expected)));
        let verdict = verdict.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            Err(format!("it panics: {}", text.or(panic.downcast_ref().copied()).unwrap_or("without a word")))
        });
        {
            let mut found = self.found.lock();
            found.checked_state_count += 1;
            if let Err(fault) = verdict {
                found.violation_count += 1;
                let bad = || FailedRecovery {
                    fault,
                    expected,
                    survivors: survivors.clone(),
                    crashed_recoveries: recoveries.clone(),
                };
                // The simplest of each kind is worth more than many of one.
                if found.violations.len() < MAX_BAD_STATES {
                    let bad = bad();
                    found.violations.push(bad);
                }
                return;
            }
        }
        if expected.recovery_crash_count >= self.bounds.max_recovery_crashes {
            return;
        }
        let log = disk.ops_since_crash();
        let expected = ExpectedPrefixRange { recovery_crash_count: expected.recovery_crash_count + 1, ..expected };
        for (done, operation) in log.iter().enumerate() {
            for tear in std::iter::once(Tear::None).chain(possible_tears(operation, &self.bounds.tearing)) {
                let next = before.copy_with_empty_log();
                log.iter().take(done).for_each(|operation| next.apply(operation, Tear::None));
                if tear != Tear::None {
                    next.apply(operation, tear);
                }
                recoveries.push(WriterPosition { tear, ..WriterPosition::after(done) });
                self.check_state(next, survivors, expected, recoveries);
                recoveries.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests;
