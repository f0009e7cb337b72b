//! Writers that end badly, one after the other: killed at any instant, or stopped by a storage that fails. Each time
//! everything that was flushed must be there, and nothing twice.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use h5live::FileOpenState;
use h5live_format::{Addr, SeqlockCounter};
use serde_json::{Value, json};

use crate::stress::rule::mix;
use h5live_cli::error::{Error, Result};
use h5live_cli::live::location::first_file_check_finding;
use h5live_cli::live::message::{StressInvariant, Violation};
use h5live_cli::live::writer_and_readers::WriterAndReaders;

use super::cell::{ElementKind, IndexChoice, MatrixCell};
use super::faults::StorageFault;
use super::peer::Peer;
use super::plan::{CellPlan, FileModel};
use super::terms::{MatrixTerms, arguments};
use super::value::RuleValue;
use super::{read_model, writer};

/// A writer counts as hanging if it has not flushed for this long, or if it does not report that its storage fails.
const HANG_TIMEOUT: Duration = Duration::from_secs(300);
/// Steps in a second.
const STEPS_PER_SECOND: f64 = 2000.0;

/// The results of the writers of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct CrashRow {
    /// The cell.
    pub cell: MatrixCell,
    /// Writers that ended badly.
    pub lives: u64,
    /// The number of those that ended before they had flushed anything.
    pub early: u64,
    /// The number of files in which only some pages of a structure, or of raw data in place, were written. Readers of
    /// h5live read such a file at once; libhdf5 reads it after the next writer or a repair.
    pub cut: u64,
    /// Steps that were flushed.
    pub steps: u64,
    /// Violations: events that must never happen.
    pub violations: Vec<Violation>,
}

impl CrashRow {
    /// The row for programs.
    pub fn json(&self) -> Value {
        let violations: Vec<_> = self.violations.iter().map(|v| json!([v.invariant.code(), v.detail])).collect();
        json!({
            "cell": self.cell.to_string(),
            "lives": self.lives,
            "early": self.early,
            "cut": self.cut,
            "steps": self.steps,
            "violations": violations,
        })
    }
}

impl fmt::Display for CrashRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CrashRow { cell, lives, early, cut, steps, violations } = self;
        write!(f, "{:<48} {lives:>5} {early:>5} {cut:>5} {steps:>8} {:>10}", cell.to_string(), violations.len())?;
        violations.iter().take(5).try_for_each(|v| write!(f, "\n    {}: {}", v.invariant.code(), v.detail))
    }
}

/// The head of the table.
pub fn head() -> String {
    format!("{:<48} {:>5} {:>5} {:>5} {:>8} {:>10}", "cell", "lives", "early", "cut", "flushes", "violations")
}

/// Kills writers, or lets their storage fail, one after the other.
pub struct CrashRunner<'a> {
    /// The file.
    pub path: &'a Path,
    /// The common options of the cells.
    pub terms: &'a MatrixTerms,
    /// Whether storages fail, instead of writers being killed.
    pub faults: bool,
    /// Another program that checks the files.
    pub peer: Option<&'a mut Peer>,
}

impl CrashRunner<'_> {
    /// Kills `lives` writers of a cell, or lets their storage fail. Lets one more writer end well.
    ///
    /// # Errors
    /// If processes cannot be started.
    pub fn run(&mut self, cell: MatrixCell, lives: u64) -> Result<CrashRow> {
        match cell.kind {
            ElementKind::Fixed => self.run_of::<u64>(cell, lives),
            ElementKind::Vlen => self.run_of::<String>(cell, lives),
        }
    }

    fn run_of<T: RuleValue>(&mut self, cell: MatrixCell, lives: u64) -> Result<CrashRow> {
        let plan = CellPlan::new(cell, self.terms.seed);
        writer::create::<T>(self.path, &plan)?;
        let mut troupe = WriterAndReaders::new(&self.path.into(), &[]);
        let mut row = CrashRow { cell, lives, early: 0, cut: 0, steps: 0, violations: Vec::new() };
        let mut model = FileModel::initial(&plan);
        let mut step = 0;
        for life in 0..lives {
            let random = mix(self.terms.seed ^ mix(life ^ mix(name_of(cell))));
            let before = troupe.flushes.len();
            self.run_writer(&mut troupe, &plan, step, random)?;
            let flushes = troupe.flushes.len() - before;
            row.steps += flushes as u64;
            row.early += u64::from(flushes == 0);
            let flushed_step =
                troupe.flushes.get(before..).unwrap_or_default().last().and_then(|f| f.row_counts.first()).copied();
            let flushed_step = flushed_step.unwrap_or(step);
            (step..flushed_step).for_each(|step| apply(&plan, &mut model, step));
            let mut attempted = model.clone();
            apply(&plan, &mut attempted, flushed_step);
            let cut = is_torn(self.path).unwrap_or(false);
            row.cut += u64::from(cut);
            model = self.examine::<T>(&mut troupe, &plan, cut, (model, &attempted));
            step = flushed_step + 1;
            let closed = h5live::diagnose(self.path).is_ok_and(|found| found.open_state == FileOpenState::Closed);
            if closed {
                // It could close the file after all. Readers of a closed file keep writers out.
                troupe.end_readers_clear_logs(&[model.digest()]).map_err(Error::Process)?;
            }
            // Readers of a file that is not live, yet or any more, would keep the writer out.
            if flushes > 0 && !closed && troupe.reader_logs.is_empty() {
                for _ in 0..self.terms.readers {
                    let arguments = arguments("--role=reader", cell, self.terms, STEPS_PER_SECOND);
                    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
                    troupe.start_reader(&arguments).map_err(Error::Process)?;
                }
            }
            if troupe.violations.len() > 5 {
                break;
            }
        }
        self.run_last_writer(&mut troupe, &plan, step)?;
        let start = step;
        let mut end = model;
        troupe
            .end_all_and_check(|flushes| {
                let steps = flushes.last().and_then(|flush| flush.row_counts.first()).copied().unwrap_or(start);
                (start..steps).for_each(|step| apply(&plan, &mut end, step));
                vec![end.digest()]
            })
            .map_err(Error::Process)?;
        self.examine_closed(&mut troupe, &plan, &end);
        row.violations = troupe.violations;
        Ok(row)
    }

    /// One writer, until it ends badly.
    fn run_writer(&self, troupe: &mut WriterAndReaders, plan: &CellPlan, step: u64, random: u64) -> Result<()> {
        let fault = self.faults.then(|| StorageFault::draw(random >> 3));
        let mut arguments = arguments("--role=writer", plan.cell, self.terms, STEPS_PER_SECOND);
        arguments.extend(["--step".to_owned(), step.to_string()]);
        arguments.extend(fault.into_iter().flat_map(|fault| ["--fault".to_owned(), fault.to_string()]));
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let flushes = troupe.flushes.len();
        troupe.spawn_writer(&arguments).map_err(Error::Process)?;
        if fault.is_some_and(StorageFault::is_error) {
            troupe.writer_failure = None;
            if !troupe.wait_until_or_writer_gone(HANG_TIMEOUT, |troupe| troupe.writer_failure.is_some())
                || troupe.writer_failure.is_none()
            {
                let fault = fault.map(|fault| fault.to_string()).unwrap_or_default();
                troupe.record_violation(
                    StressInvariant::Progress,
                    &format!("{fault}: the writer does not stop with an error"),
                );
            }
        } else if random.is_multiple_of(4) {
            // Perhaps before it has opened the file, or while it puts it in order.
            thread::sleep(Duration::from_micros((random >> 32) % 20_000));
        } else {
            if !troupe.wait_until_or_writer_gone(HANG_TIMEOUT, |troupe| troupe.flushes.len() > flushes) {
                troupe.record_violation(StressInvariant::Progress, "the writer does not flush");
            }
            thread::sleep(Duration::from_micros((random >> 32) % 50_000));
        }
        troupe.kill_writer().map_err(Error::Process)
    }

    /// A writer that closes the file.
    fn run_last_writer(&self, troupe: &mut WriterAndReaders, plan: &CellPlan, step: u64) -> Result<()> {
        let mut arguments = arguments("--role=writer", plan.cell, self.terms, STEPS_PER_SECOND);
        arguments.extend(["--step".to_owned(), step.to_string()]);
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let flushes = troupe.flushes.len();
        troupe.spawn_writer(&arguments).map_err(Error::Process)?;
        if !troupe.wait_until_or_writer_gone(HANG_TIMEOUT, |troupe| troupe.flushes.len() > flushes) {
            troupe.record_violation(StressInvariant::SurvivesWriterDeath, "the next writer does not go on");
        }
        Ok(())
    }

    /// Checks the file that a writer has left, perhaps in the middle of a write, and what the next writer will find.
    /// The next writer first replays the redo record.
    fn examine<T: RuleValue>(
        &mut self,
        troupe: &mut WriterAndReaders,
        plan: &CellPlan,
        cut: bool,
        (flushed_model, attempted): (FileModel, &FileModel),
    ) -> FileModel {
        let mut wrong = |detail: &str| troupe.record_violation(StressInvariant::SurvivesWriterDeath, detail);
        let found = match read_model::read_model::<T>(self.path, plan) {
            Ok(found) => found,
            Err(fault) => {
                wrong(&fault);
                return flushed_model;
            }
        };
        read_model::fault(plan, &found, &flushed_model, attempted).into_iter().for_each(|fault| wrong(&fault));
        first_file_check_finding(self.path).into_iter().for_each(|fault| wrong(&fault));
        let repaired: PathBuf = self.path.with_extension("repaired.h5");
        let mended = repair_copy(self.path, &repaired).and_then(|()| read_model::read_model::<T>(&repaired, plan));
        let mended = mended.unwrap_or_else(|fault| {
            wrong(&format!("repaired: {fault}"));
            found.clone()
        });
        if let Some(fault) = read_model::fault(plan, &mended, &found, attempted) {
            wrong(&format!("repaired: {fault}"));
        }
        if let Some(peer) = &mut self.peer {
            // libhdf5 would look for the rest of what was cut off, for hours, and take what is half written in an old
            // file for whole.
            let is_shown = !cut && plan.cell.index != IndexChoice::Btree1;
            for (path, swmr, model) in
                [(self.path, true, &found), (&*repaired, false, &mended)].into_iter().skip((!is_shown).into())
            {
                match peer.digest(path, plan, swmr) {
                    Ok(digest) if digest == model.digest() => {}
                    Ok(_) => wrong("the other program finds something else"),
                    Err(fault) => wrong(&fault),
                }
            }
        }
        // It is not there if it could not be made.
        let _ = std::fs::remove_file(&repaired);
        mended
    }

    /// Looks at the file that a writer has closed.
    fn examine_closed(&mut self, troupe: &mut WriterAndReaders, plan: &CellPlan, end: &FileModel) {
        if let Some(peer) = &mut self.peer {
            match peer.digest(self.path, plan, false) {
                Ok(digest) if digest == end.digest() => {}
                Ok(_) => troupe.record_violation(
                    StressInvariant::OtherProgramsSucceed,
                    "it finds something else in the closed file",
                ),
                Err(fault) => troupe.record_violation(StressInvariant::OtherProgramsSucceed, &fault),
            }
        }
    }
}

/// Whether a structure in the file, or raw data that was changed in place, is torn for programs that know nothing of
/// redo records.
fn is_torn(path: &Path) -> Result<bool> {
    let bare = path.with_extension("bare.h5");
    let found = h5live::diagnose(path)?;
    if found.length <= found.announced_length || found.open_state == FileOpenState::Closed {
        return Ok(false);
    }
    let cut = || -> std::io::Result<bool> {
        if is_under_way(path, found.announced_length)? {
            return Ok(true);
        }
        std::fs::copy(path, &bare)?;
        OpenOptions::new().write(true).open(&bare)?.set_len(found.announced_length)?;
        Ok(first_file_check_finding(&bare).is_some())
    };
    let cut = cut().map_err(Error::Process);
    // It is not there if it could not be made.
    let _ = std::fs::remove_file(&bare);
    cut
}

/// Whether raw data is on its way to its place.
fn is_under_way(path: &Path, announced: u64) -> std::io::Result<bool> {
    let mut word = [0; SeqlockCounter::SIZE];
    let place = SeqlockCounter::word_addr(Addr::new(announced)).and_then(Addr::get).unwrap_or(u64::MAX);
    let found = File::open(path)?.read_at(&mut word, place)?;
    Ok(word.get(..found).and_then(SeqlockCounter::from_bytes).is_some_and(SeqlockCounter::is_odd))
}

fn repair_copy(from: &Path, to: &Path) -> Result<(), String> {
    std::fs::copy(from, to).map_err(|error| error.to_string())?;
    h5live::repair(to).map(drop).map_err(|error| h5live_cli::error::error_with_causes(&error))
}

fn apply(plan: &CellPlan, model: &mut FileModel, step: u64) {
    plan.changes(step, &model.extents).iter().for_each(|change| model.apply(plan, change));
}

fn name_of(cell: MatrixCell) -> u64 {
    cell.to_string().bytes().fold(0, |state, byte| mix(state ^ u64::from(byte)))
}
