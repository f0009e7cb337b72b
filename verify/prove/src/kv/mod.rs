//! Explorations of the key-value store: a reader that looks between any two batches, and a writer that dies between them.
//!
//! An engine shows whole batches, and nothing else. So a schedule says after which batch each look of the reader at the
//! engine comes, and a crash leaves the state after a batch. How an engine keeps batches whole is tested with the engine.

mod engines;
mod steps;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use h5live::{File, Options};
use h5live_kv::engine::{Engine, KeySpan, LongKeyEngine, MemoryEngine, MemoryView, View, ViewWithEdits};
use h5live_kv::layout::EngineKey;
use h5live_kv::{KvOpenRequest, KvStore, check_container};
use h5live_model::{AllocationLimit, DurabilitySupport, Mode, NoFilters, ObjectSpec, StoreCheckOptions};

use crate::observer::error_chain_text;
pub use engines::KvMutant;
use engines::{MutantEngine, Schedule, ScheduledEngine};
use steps::{Part, STEPS};

/// What was found of one kind of reader, or of the deaths of the writer.
#[derive(Debug, Clone)]
pub struct KvReport {
    /// Who looks, and when.
    pub name: &'static str,
    /// Batches of the writer.
    pub batches: usize,
    /// Schedules, or deaths.
    pub schedules: u64,
    /// How many of them were wrong.
    pub wrong: u64,
    /// Whether all there are were looked at.
    pub exhausted: bool,
    /// The first fault.
    pub fault: Option<String>,
}

/// What a writer did.
#[derive(Debug)]
struct Recording {
    /// The store after each batch, and before the first.
    states: Vec<MemoryView>,
    /// The last of the states that each step has made; the first is that before all steps.
    flushed: Vec<usize>,
    max_key_bytes: usize,
}

/// Opens a session. Each has a number of its own, from which it makes the identities of blobs.
fn open(engine: impl Engine + 'static, mode: Mode) -> Result<File, String> {
    static SESSIONS: AtomicU64 = AtomicU64::new(0);
    let request = KvOpenRequest {
        mode,
        root: ObjectSpec::group(),
        durability: DurabilitySupport::Always,
        max_allocation: AllocationLimit::default(),
        filter_engine: Arc::new(NoFilters),
        max_uncommitted_bytes: KvOpenRequest::DEFAULT_MAX_UNCOMMITTED_BYTES,
        blob_id_seed: SESSIONS.fetch_add(1, Ordering::Relaxed),
        checksum_new_container: true,
    };
    let store = KvStore::open(engine, &request).map_err(|error| error_chain_text(&error))?;
    File::with_store(Arc::new(store), "recorded", Options::default()).map_err(text)
}

fn text(error: h5live::Error) -> String {
    error_chain_text(&error)
}

impl Recording {
    fn new(mutant: KvMutant) -> Result<Self, String> {
        let engine = MemoryEngine::new();
        let file = open(MutantEngine::new(LongKeyEngine::new(engine.clone()), mutant), Mode::CreateNew)?;
        steps::make_objects(&file).map_err(text)?;
        engine.start_history();
        let mut flushed = vec![0];
        for step in 1..=STEPS {
            steps::take_step(&file, step).map_err(text)?;
            flushed.push(engine.recorded_history().len() - 1);
        }
        Ok(Recording { states: engine.recorded_history(), flushed, max_key_bytes: engine.max_key_bytes() })
    }

    /// Steps that the writer has flushed when it has made this state.
    fn acknowledged(&self, state: usize) -> usize {
        self.flushed.iter().take_while(|flushed| **flushed <= state).count().saturating_sub(1)
    }
}

/// The step after which a part looks as it does.
fn step_of(file: &File, part: Part) -> Result<usize, String> {
    let found = part.read(file).map_err(|error| format!("{part:?}: {}", text(error)))?;
    part.step_of(&found).ok_or_else(|| format!("{part:?} is seen in part: {found:?}"))
}

/// The step after which all parts look as they do.
fn common_step(file: &File) -> Result<usize, String> {
    let first = step_of(file, Part::Rows)?;
    for part in Part::ALL {
        let step = step_of(file, part)?;
        if step != first {
            return Err(format!("Rows are those of step {first}, {part:?} those of step {step}"));
        }
    }
    Ok(first)
}

/// What a reader does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// It opens the store, and opens it again.
    Opens,
    /// It opens the store, and refreshes everything twice.
    RefreshesAll,
    /// It refreshes one object after the other, and looks at each.
    RefreshesEach,
}

impl Reader {
    const ALL: [Reader; 3] = [Reader::Opens, Reader::RefreshesAll, Reader::RefreshesEach];

    fn name(self) -> &'static str {
        match self {
            Reader::Opens => "a reader opens the store again and again",
            Reader::RefreshesAll => "a reader refreshes everything",
            Reader::RefreshesEach => "a reader refreshes object by object",
        }
    }

    /// Looks as the schedule says.
    fn run(self, recording: &Recording, schedule: &Arc<Schedule>) -> Result<(), String> {
        let open = || {
            let engine = ScheduledEngine::new(schedule.clone(), recording.max_key_bytes);
            open(LongKeyEngine::new(engine), Mode::SwmrRead)
        };
        let look = |before: usize, least: usize, found: usize| match found {
            _ if found < before => Err(format!("step {found} is seen after step {before}")),
            _ if found < least => Err(format!("step {found} is seen, and {least} steps were flushed before")),
            _ => Ok(found),
        };
        let least = || recording.acknowledged(schedule.position());
        let (mut seen, mut flushed) = (0, least());
        let mut file = open()?;
        seen = look(seen, flushed, common_step(&file)?)?;
        match self {
            Reader::Opens => {
                for _ in 0..2 {
                    flushed = least();
                    file = open()?;
                    seen = look(seen, flushed, common_step(&file)?)?;
                }
            }
            Reader::RefreshesAll => {
                for _ in 0..3 {
                    flushed = least();
                    file.refresh().map_err(text)?;
                    seen = look(seen, flushed, common_step(&file)?)?;
                }
            }
            Reader::RefreshesEach => {
                let mut seen_of = Part::ALL.map(|part| (part, seen));
                for name in ["texts", "rows", "grid"] {
                    file.dataset(name).and_then(|dataset| dataset.refresh()).map_err(text)?;
                    for (part, before) in &mut seen_of {
                        *before = look(*before, 0, step_of(&file, *part)?)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs under every schedule, as far as the time goes.
    fn explore(self, recording: &Recording, time: Duration) -> KvReport {
        let schedule = Arc::new(Schedule::new(recording.states.clone()));
        let began = Instant::now();
        let mut report = KvReport::new(self.name(), recording);
        loop {
            let run = self.run(recording, &schedule);
            report.add(run.map_err(|fault| format!("{fault} (moves {:?})", schedule.story())));
            report.exhausted = !schedule.advance();
            if report.exhausted || began.elapsed() > time {
                return report;
            }
        }
    }
}

impl KvReport {
    fn new(name: &'static str, recording: &Recording) -> Self {
        let batches = recording.states.len() - 1;
        KvReport { name, batches, schedules: 0, wrong: 0, exhausted: false, fault: None }
    }

    fn add(&mut self, run: Result<(), String>) {
        self.schedules += 1;
        if let Err(fault) = run {
            self.wrong += 1;
            self.fault.get_or_insert(fault);
        }
    }
}

/// How many records of each kind a state has.
fn count_records(engine: &MemoryEngine) -> Result<BTreeMap<String, usize>, String> {
    let view: Arc<dyn View> = LongKeyEngine::new(engine.clone()).view().map_err(|error| error_chain_text(&error))?;
    let mut counts = BTreeMap::new();
    let mut add = |key: &[u8], _: &[u8]| {
        let Ok((_, record)) = EngineKey::parse(key) else { return false };
        // The name of the kind of record begins what `Debug` shows.
        let kind: String = format!("{record:?}").chars().take_while(|c| c.is_alphabetic()).collect();
        *counts.entry(kind).or_default() += 1;
        true
    };
    ViewWithEdits::without_edits(&view).scan(&KeySpan::all(), &mut add).map_err(|error| error_chain_text(&error))?;
    Ok(counts)
}

/// Everything in the store is accounted for.
fn check(engine: &MemoryEngine) -> Result<(), String> {
    let (limit, keys) = (AllocationLimit::default(), LongKeyEngine::new(engine.clone()));
    let report =
        check_container(&keys, StoreCheckOptions { verify_data: true, find_lost_domains: false }, &NoFilters, limit);
    let report = report.map_err(|error| error_chain_text(&error))?;
    match report.findings.first() {
        Some(finding) => Err(format!("the store is not sound: {finding}")),
        None if report.leak_count > 0 => Err(format!("nothing leads to {:?}", report.leaks)),
        None => Ok(()),
    }
}

/// The writer dies at a state. What is there is whole, and the next writer goes on as if nothing had been.
fn recover(recording: &Recording, sound: &Recording, state: usize) -> Result<(), String> {
    let engine = MemoryEngine::from_view(&recording.states[state]);
    check(&engine)?;
    let file = open(LongKeyEngine::new(engine.clone()), Mode::Write)?;
    let found = common_step(&file)?;
    let flushed = recording.acknowledged(state);
    if found < flushed {
        return Err(format!("step {found} is there, and {flushed} were flushed"));
    }
    let next = if found < STEPS {
        steps::take_step(&file, found + 1).map_err(text)?;
        found + 1
    } else {
        found
    };
    file.close().map_err(text)?;
    let read = open(LongKeyEngine::new(engine.reader()), Mode::Read)?;
    let after = common_step(&read)?;
    if after != next {
        return Err(format!("step {after} is there after step {next} was taken"));
    }
    check(&engine)?;
    let (counts, wanted) =
        (count_records(&engine)?, count_records(&MemoryEngine::from_view(&sound.states[sound.flushed[next]]))?);
    if counts != wanted {
        return Err(format!(
            "records that nothing leads to, or missing ones, after step {next}: {counts:?}, not {wanted:?}"
        ));
    }
    Ok(())
}

fn explore_deaths(recording: &Recording, sound: &Recording) -> KvReport {
    let mut report = KvReport::new("the writer dies, and another one goes on", recording);
    for state in 0..recording.states.len() {
        report.add(recover(recording, sound, state).map_err(|fault| format!("{fault} (after batch {state})")));
    }
    report.exhausted = true;
    report
}

/// Explores everything of the key-value store. `limit` is the most time for one kind of reader.
///
/// # Errors
/// If the writer fails.
pub fn explore_all(mutant: KvMutant, limit: Duration) -> Result<Vec<KvReport>, String> {
    let (recording, sound) = (Recording::new(mutant)?, Recording::new(KvMutant::None)?);
    let readers = Reader::ALL.into_iter().map(|reader| reader.explore(&recording, limit));
    Ok(readers.chain([explore_deaths(&recording, &sound)]).collect())
}

/// The fault by which a mutant is found out, and by whom: the writer itself may be the first to meet it.
pub fn find_killer(mutant: KvMutant, limit: Duration) -> Option<(&'static str, String)> {
    match explore_all(mutant, limit) {
        Ok(reports) => reports.into_iter().find_map(|report| Some((report.name, report.fault?))),
        Err(fault) => Some(("the writer", fault)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_reader_and_no_death_is_wrong() {
        for report in explore_all(KvMutant::None, Duration::from_secs(3600)).unwrap() {
            println!("{report:?}");
            assert_eq!((report.wrong, report.exhausted, &report.fault), (0, true, &None));
        }
    }

    #[test]
    fn each_mutant_is_found_out() {
        for mutant in KvMutant::all() {
            let found = find_killer(mutant, Duration::from_secs(60));
            println!("{mutant:?}: {found:?}");
            assert!(found.is_some(), "{mutant:?}");
        }
    }
}
