//! Every state in which a crash may leave a file.
//!
//! When a process dies, all that it wrote is there, up to some operation, of which there may be a part. When the power
//! fails, only what a barrier followed is sure to be there; of what came later any part may be, in any order.

mod disk;
mod subsets;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::schedule::{Position, Tear, Tearing, Verdict};
use crate::trace::{Operation, Trace};

pub use disk::Disk;
use subsets::subsets;

/// What is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// What the process had not yet written.
    Process,
    /// What was not yet durable.
    Power(Power),
}

/// How the states after a power failure are chosen, where there are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Power {
    /// Most operations without a barrier of which every subset is tried. Of more, those that lack at most two or have
    /// at most two, and some at random.
    pub pending: u32,
    /// How many random subsets.
    pub random: u32,
    /// Where they begin.
    pub seed: u64,
    /// Most operations without a barrier of which every subset is tried with a part of one write missing. Of more,
    /// those that lack at most two or have at most two.
    pub torn: u32,
}

impl Default for Power {
    fn default() -> Self {
        Power { pending: 18, random: 20_000, seed: 1, torn: 8 }
    }
}

/// What is explored.
#[derive(Debug, Clone)]
pub struct CrashBounds {
    /// The prefix of the trace from which on the crash may happen.
    pub start: usize,
    /// Which parts of the write in flight, or of one of those that are not durable, may be there.
    pub tearing: Tearing,
    /// What is lost.
    pub loss: Loss,
    /// How often the recovery may crash as well.
    pub again: u32,
    /// Most time.
    pub time: Option<Duration>,
    /// How many threads explore.
    pub threads: usize,
}

/// What may and must be found after a crash, as prefixes of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Expected {
    /// All that these operations did is there.
    pub least: usize,
    /// Nothing is there that these operations did not do.
    pub most: usize,
    /// How many recoveries have crashed since.
    pub round: u32,
}

/// A state that was not recovered from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadState {
    /// What is wrong.
    pub fault: String,
    /// What had to be found.
    pub expected: Expected,
    /// What outlasted the crash.
    pub survivors: Survivors,
    /// The prefix of what the recovery did that outlasted its crash, for each recovery that crashed.
    pub recoveries: Vec<Position>,
}

/// What outlasts a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Survivors {
    /// All until here.
    Until(Position),
    /// All of the first `durable` operations, and these.
    These {
        /// The number of operations that are durable.
        durable: usize,
        /// Which of the others are there, ascending.
        kept: Vec<u32>,
        /// Which of them is there only in part.
        torn: Option<(u32, Tear)>,
    },
}

/// What was explored.
#[derive(Debug, Clone, Default)]
pub struct Crashed {
    /// Crashes: what outlasted them, no two the same.
    pub crashes: u64,
    /// States of the file among them that differ, and were looked at.
    pub states: u64,
    /// Whether that is all there is within the bounds.
    pub exhausted: bool,
    /// The first bad states, the simplest first.
    pub violations: Vec<BadState>,
    /// How many were bad.
    pub wrong: u64,
    /// How long it took.
    pub elapsed: Duration,
}

/// Bad states that are kept.
const KEPT: usize = 16;

/// Calls `recover` with every state within `bounds`. It opens the file and looks at what is there, and may write: of
/// what it writes, too, only a part may outlast the next crash.
pub fn crash(
    trace: &Trace,
    bounds: &CrashBounds,
    recover: &(impl Fn(&Arc<Disk>, &Expected) -> Verdict + Sync),
) -> Crashed {
    let began = Instant::now();
    let all = match bounds.loss {
        Loss::Process => until(trace, bounds),
        Loss::Power(power) => power_failures(trace, bounds, &power),
    };
    let shared = Shared {
        trace,
        bounds,
        recover,
        seen: Mutex::default(),
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        found: Mutex::default(),
        deadline: bounds.time.map(|time| began + time),
    };
    std::thread::scope(|scope| {
        for _ in 0..bounds.threads.max(1) {
            scope.spawn(|| shared.work(&all.states));
        }
    });
    let mut found = shared.found.into_inner();
    found.crashes = all.states.len() as u64;
    found.exhausted = all.complete && !shared.stop.load(Relaxed);
    found.violations.sort_by_key(|bad| (bad.recoveries.len(), bad.survivors.weight(), bad.expected.most));
    found.elapsed = began.elapsed();
    found
}

struct All {
    states: Vec<(Survivors, Expected)>,
    complete: bool,
}

/// Every prefix, and every part of the write in flight.
fn until(trace: &Trace, bounds: &CrashBounds) -> All {
    let mut states = Vec::new();
    for prefix in bounds.start..=trace.len() {
        let mut add = |tear| {
            let position = Position { tear, ..Position::after(prefix) };
            let most = prefix + usize::from(tear != Tear::None);
            states.push((Survivors::Until(position), Expected { least: prefix, most, round: 0 }));
        };
        add(Tear::None);
        trace
            .operations()
            .get(prefix)
            .map(|operation| tears(operation, &bounds.tearing))
            .into_iter()
            .flatten()
            .for_each(add);
    }
    All { states, complete: true }
}

fn tears(operation: &Operation, tearing: &Tearing) -> Vec<Tear> {
    match operation {
        Operation::Write { at, bytes } => tearing.tears(*at, bytes.len() as u64, 0, u64::MAX),
        _ => Vec::new(),
    }
}

/// For every span between two barriers, subsets of what was done in it.
fn power_failures(trace: &Trace, bounds: &CrashBounds, power: &Power) -> All {
    let mut all = All { states: Vec::new(), complete: true };
    let operations = trace.operations();
    let is_barrier = |n: &usize| matches!(operations.get(*n), Some(Operation::Sync));
    let mut barriers: Vec<usize> = (0..operations.len()).filter(is_barrier).map(|n| n + 1).collect();
    barriers.retain(|durable| *durable > bounds.start);
    barriers.insert(0, bounds.start);
    for (n, durable) in barriers.iter().enumerate() {
        let end = barriers.get(n + 1).copied().unwrap_or(operations.len());
        let changes = |n: &usize| matches!(operations.get(*n), Some(Operation::Write { .. } | Operation::SetLen(_)));
        let pending: Vec<u32> = (*durable..end).filter(changes).map(|n| n as u32).collect();
        let (chosen, complete) = subsets(pending.len(), power);
        all.complete &= complete;
        for subset in chosen {
            let kept: Vec<u32> = subset.kept.iter().filter_map(|n| pending.get(*n).copied()).collect();
            // Marks that follow the last survivor and precede the next operation belong to it.
            let last = kept.last().map_or(*durable, |last| *last as usize + 1);
            let most = (last..end).find(|n| changes(n)).unwrap_or(end);
            // What was said of what is durable was said before anything else was done.
            let least = pending.first().map_or(end, |first| *first as usize);
            let expected = Expected { least, most, round: 0 };
            let torn = kept.iter().filter(|_| subset.may_be_torn).flat_map(|n| {
                let tears = operations.get(*n as usize).map(|operation| tears(operation, &bounds.tearing));
                tears.into_iter().flatten().map(move |tear| Some((*n, tear)))
            });
            for torn in std::iter::once(None).chain(torn) {
                all.states.push((Survivors::These { durable: *durable, kept: kept.clone(), torn }, expected));
            }
        }
    }
    all
}

impl Survivors {
    fn weight(&self) -> usize {
        match self {
            Survivors::Until(position) => position.prefix as usize,
            Survivors::These { durable, kept, torn } => durable + kept.len() + usize::from(torn.is_some()),
        }
    }

    /// The file.
    pub fn disk(&self, trace: &Trace) -> Disk {
        let disk = Disk::new(Arc::new(trace.base().to_vec()));
        self.apply(trace, &disk);
        disk
    }

    fn apply(&self, trace: &Trace, disk: &Disk) {
        let operations = trace.operations();
        match self {
            Survivors::Until(position) => {
                operations
                    .iter()
                    .take(position.prefix as usize)
                    .for_each(|operation| disk.apply(operation, Tear::None));
                if let (true, Some(operation)) = (position.is_torn(), operations.get(position.prefix as usize)) {
                    disk.apply(operation, position.tear);
                }
            }
            Survivors::These { durable, kept, torn } => {
                operations.iter().take(*durable).for_each(|operation| disk.apply(operation, Tear::None));
                for n in kept {
                    let tear = torn.filter(|(torn, _)| torn == n).map_or(Tear::None, |(_, tear)| tear);
                    operations.get(*n as usize).into_iter().for_each(|operation| disk.apply(operation, tear));
                }
            }
        }
    }
}

struct Shared<'a, R> {
    trace: &'a Trace,
    bounds: &'a CrashBounds,
    recover: &'a R,
    seen: Mutex<HashSet<(u64, Expected)>>,
    next: AtomicUsize,
    stop: AtomicBool,
    found: Mutex<Crashed>,
    deadline: Option<Instant>,
}

/// States that a thread takes at once.
const BATCH: usize = 64;

impl<R: Fn(&Arc<Disk>, &Expected) -> Verdict + Sync> Shared<'_, R> {
    fn work(&self, all: &[(Survivors, Expected)]) {
        let base = Arc::new(self.trace.base().to_vec());
        loop {
            let first = self.next.fetch_add(BATCH, Relaxed);
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) && first < all.len() {
                self.stop.store(true, Relaxed);
            }
            let Some(batch) = all.get(first..all.len().min(first + BATCH)).filter(|batch| !batch.is_empty()) else {
                return;
            };
            for (survivors, expected) in batch {
                if self.stop.load(Relaxed) {
                    return;
                }
                let disk = Disk::new(base.clone());
                survivors.apply(self.trace, &disk);
                self.look(disk, survivors, *expected, &mut Vec::new());
            }
        }
    }

    fn look(&self, disk: Disk, survivors: &Survivors, expected: Expected, recoveries: &mut Vec<Position>) {
        if !self.seen.lock().insert((disk.fingerprint(), expected)) {
            return;
        }
        let before = disk.copy();
        let disk = Arc::new(disk);
        let verdict = catch_unwind(AssertUnwindSafe(|| (self.recover)(&disk, &expected)));
        let verdict = verdict.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            Err(format!("it panics: {}", text.or(panic.downcast_ref().copied()).unwrap_or("without a word")))
        });
        {
            let mut found = self.found.lock();
            found.states += 1;
            if let Err(fault) = verdict {
                found.wrong += 1;
                let bad = || BadState { fault, expected, survivors: survivors.clone(), recoveries: recoveries.clone() };
                // The simplest of each kind is worth more than many of one.
                if found.violations.len() < KEPT {
                    let bad = bad();
                    found.violations.push(bad);
                }
                return;
            }
        }
        if expected.round >= self.bounds.again {
            return;
        }
        let log = disk.log();
        let expected = Expected { round: expected.round + 1, ..expected };
        for (done, operation) in log.iter().enumerate() {
            for tear in std::iter::once(Tear::None).chain(tears(operation, &self.bounds.tearing)) {
                let next = before.copy();
                log.iter().take(done).for_each(|operation| next.apply(operation, Tear::None));
                if tear != Tear::None {
                    next.apply(operation, tear);
                }
                recoveries.push(Position { tear, ..Position::after(done) });
                self.look(next, survivors, expected, recoveries);
                recoveries.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests;
