//! Writers that end badly, one after the other: killed at any instant, or stopped by a storage that fails. Each time
//! everything that was flushed must be there, and nothing twice.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use h5live::Condition;
use h5live_format::{Addr, Turn};
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::live::message::{Invariant, Violation};
use crate::live::troupe::Troupe;
use crate::stress::rule::mix;
use crate::stress::unsound;

use super::cell::{Cell, Index, Type};
use super::faults::Fault;
use super::peer::Peer;
use super::plan::{Model, Plan};
use super::value::Ruled;
use super::{Terms, arguments, state, writer};

/// After this a writer hangs that has not flushed, or whose storage fails and that does not say so.
const PATIENCE: Duration = Duration::from_secs(300);
/// Steps in a second.
const RATE: f64 = 2000.0;

/// What came of the writers of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The cell.
    pub cell: Cell,
    /// Writers that ended badly.
    pub lives: u64,
    /// Of them, those that ended before they had flushed anything.
    pub early: u64,
    /// Of them, those that left a structure, or raw data in its place, of which some pages were written: libhdf5 can
    /// read it after the next writer
    /// or a repair, and readers of h5live at once.
    pub cut: u64,
    /// Steps that were flushed.
    pub steps: u64,
    /// What must never happen.
    pub violations: Vec<Violation>,
}

impl Row {
    /// The row for programs.
    pub fn json(&self) -> Value {
        let violations: Vec<_> = self.violations.iter().map(|v| json!([v.invariant.name(), v.detail])).collect();
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

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { cell, lives, early, cut, steps, violations } = self;
        write!(f, "{:<48} {lives:>5} {early:>5} {cut:>5} {steps:>8} {:>10}", cell.to_string(), violations.len())?;
        violations.iter().take(5).try_for_each(|v| write!(f, "\n    {}: {}", v.invariant.name(), v.detail))
    }
}

/// The head of the table.
pub fn head() -> String {
    format!("{:<48} {:>5} {:>5} {:>5} {:>8} {:>10}", "cell", "lives", "early", "cut", "flushes", "violations")
}

/// Has one writer after the other end badly.
pub struct Lives<'a> {
    /// The file.
    pub path: &'a Path,
    /// What the cells have in common.
    pub terms: &'a Terms,
    /// Whether storages fail, instead of writers being killed.
    pub faults: bool,
    /// Another program that looks at what is left.
    pub peer: Option<&'a mut Peer>,
}

impl Lives<'_> {
    /// Has `lives` writers of a cell end badly, and one well.
    ///
    /// # Errors
    /// If processes cannot be started.
    pub fn run(&mut self, cell: Cell, lives: u64) -> Result<Row> {
        match cell.kind {
            Type::Fixed => self.run_of::<u64>(cell, lives),
            Type::Vlen => self.run_of::<String>(cell, lives),
        }
    }

    fn run_of<T: Ruled>(&mut self, cell: Cell, lives: u64) -> Result<Row> {
        let plan = Plan::new(cell, self.terms.seed);
        writer::create::<T>(self.path, &plan)?;
        let mut troupe = Troupe::new(self.path, &[]);
        let mut row = Row { cell, lives, early: 0, cut: 0, steps: 0, violations: Vec::new() };
        let mut model = Model::new(&plan);
        let mut step = 0;
        for life in 0..lives {
            let random = mix(self.terms.seed ^ mix(life ^ mix(name_of(cell))));
            let before = troupe.flushes.len();
            self.live(&mut troupe, &plan, step, random)?;
            let flushes = troupe.flushes.len() - before;
            row.steps += flushes as u64;
            row.early += u64::from(flushes == 0);
            let told = troupe.flushes.get(before..).unwrap_or_default().last().and_then(|f| f.rows.first()).copied();
            let told = told.unwrap_or(step);
            (step..told).for_each(|step| apply(&plan, &mut model, step));
            let mut attempted = model.clone();
            apply(&plan, &mut attempted, told);
            let cut = is_cut(self.path).unwrap_or(false);
            row.cut += u64::from(cut);
            model = self.examine::<T>(&mut troupe, &plan, cut, (model, &attempted));
            step = told + 1;
            let closed = h5live::diagnose(self.path).is_ok_and(|found| found.condition == Condition::Closed);
            if closed {
                // It could close the file after all. Readers of a closed file keep writers out.
                troupe.dismiss_readers(&[model.digest()]).map_err(Error::Process)?;
            }
            // Readers of a file that is not live, yet or any more, would keep the writer out.
            if flushes > 0 && !closed && troupe.stories.is_empty() {
                for _ in 0..self.terms.readers {
                    let arguments = arguments("--role=reader", cell, self.terms, RATE);
                    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
                    troupe.start_reader(&arguments).map_err(Error::Process)?;
                }
            }
            if troupe.violations.len() > 5 {
                break;
            }
        }
        self.last_life(&mut troupe, &plan, step)?;
        let start = step;
        let mut end = model;
        troupe
            .finish(|flushes| {
                let steps = flushes.last().and_then(|flush| flush.rows.first()).copied().unwrap_or(start);
                (start..steps).for_each(|step| apply(&plan, &mut end, step));
                vec![end.digest()]
            })
            .map_err(Error::Process)?;
        self.examine_closed(&mut troupe, &plan, &end);
        row.violations = troupe.violations;
        Ok(row)
    }

    /// One writer, until it ends badly.
    fn live(&self, troupe: &mut Troupe, plan: &Plan, step: u64, random: u64) -> Result<()> {
        let fault = self.faults.then(|| Fault::draw(random >> 3));
        let mut arguments = arguments("--role=writer", plan.cell, self.terms, RATE);
        arguments.extend(["--step".to_owned(), step.to_string()]);
        arguments.extend(fault.into_iter().flat_map(|fault| ["--fault".to_owned(), fault.to_string()]));
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let flushes = troupe.flushes.len();
        troupe.spawn_writer(&arguments).map_err(Error::Process)?;
        if fault.is_some_and(Fault::is_error) {
            troupe.stopped = None;
            if !troupe.await_writer(PATIENCE, |troupe| troupe.stopped.is_some()) || troupe.stopped.is_none() {
                let fault = fault.map(|fault| fault.to_string()).unwrap_or_default();
                troupe.violation(Invariant::Progress, &format!("{fault}: the writer does not stop with an error"));
            }
        } else if random.is_multiple_of(4) {
            // Perhaps before it has opened the file, or while it puts it in order.
            thread::sleep(Duration::from_micros((random >> 32) % 20_000));
        } else {
            if !troupe.await_writer(PATIENCE, |troupe| troupe.flushes.len() > flushes) {
                troupe.violation(Invariant::Progress, "the writer does not flush");
            }
            thread::sleep(Duration::from_micros((random >> 32) % 50_000));
        }
        troupe.kill_writer().map_err(Error::Process)
    }

    /// A writer that closes the file.
    fn last_life(&self, troupe: &mut Troupe, plan: &Plan, step: u64) -> Result<()> {
        let mut arguments = arguments("--role=writer", plan.cell, self.terms, RATE);
        arguments.extend(["--step".to_owned(), step.to_string()]);
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let flushes = troupe.flushes.len();
        troupe.spawn_writer(&arguments).map_err(Error::Process)?;
        if !troupe.await_writer(PATIENCE, |troupe| troupe.flushes.len() > flushes) {
            troupe.violation(Invariant::ProcessDeath, "the next writer does not go on");
        }
        Ok(())
    }

    /// Looks at the file that a writer has left, perhaps in the middle of a write; what the next one will find, who
    /// first does what this one still intended.
    fn examine<T: Ruled>(
        &mut self,
        troupe: &mut Troupe,
        plan: &Plan,
        cut: bool,
        (told, attempted): (Model, &Model),
    ) -> Model {
        let mut wrong = |detail: &str| troupe.violation(Invariant::ProcessDeath, detail);
        let found = match state::of::<T>(self.path, plan) {
            Ok(found) => found,
            Err(fault) => {
                wrong(&fault);
                return told;
            }
        };
        state::fault(plan, &found, &told, attempted).into_iter().for_each(|fault| wrong(&fault));
        unsound(self.path).into_iter().for_each(|fault| wrong(&fault));
        let repaired: PathBuf = self.path.with_extension("repaired.h5");
        let mended = repair_copy(self.path, &repaired).and_then(|()| state::of::<T>(&repaired, plan));
        let mended = mended.unwrap_or_else(|fault| {
            wrong(&format!("repaired: {fault}"));
            found.clone()
        });
        if let Some(fault) = state::fault(plan, &mended, &found, attempted) {
            wrong(&format!("repaired: {fault}"));
        }
        if let Some(peer) = &mut self.peer {
            // libhdf5 would look for the rest of what was cut off, for hours, and take what is half written in an old file
            // for whole.
            let is_shown = !cut && plan.cell.index != Index::Btree1;
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
    fn examine_closed(&mut self, troupe: &mut Troupe, plan: &Plan, end: &Model) {
        if let Some(peer) = &mut self.peer {
            match peer.digest(self.path, plan, false) {
                Ok(digest) if digest == end.digest() => {}
                Ok(_) => troupe.violation(Invariant::OtherProgram, "it finds something else in the closed file"),
                Err(fault) => troupe.violation(Invariant::OtherProgram, &fault),
            }
        }
    }
}

/// Whether a structure in the file, or raw data that was changed in its place, is torn for those who do not know that what
/// it was to be is said behind the announced end.
fn is_cut(path: &Path) -> Result<bool> {
    let bare = path.with_extension("bare.h5");
    let found = h5live::diagnose(path)?;
    if found.length <= found.announced || found.condition == Condition::Closed {
        return Ok(false);
    }
    let cut = || -> std::io::Result<bool> {
        if is_under_way(path, found.announced)? {
            return Ok(true);
        }
        std::fs::copy(path, &bare)?;
        OpenOptions::new().write(true).open(&bare)?.set_len(found.announced)?;
        Ok(unsound(&bare).is_some())
    };
    let cut = cut().map_err(Error::Process);
    // It is not there if it could not be made.
    let _ = std::fs::remove_file(&bare);
    cut
}

/// Whether raw data is on its way to its place.
fn is_under_way(path: &Path, announced: u64) -> std::io::Result<bool> {
    let mut word = [0; Turn::SIZE];
    let place = Turn::place(Addr::new(announced)).and_then(Addr::get).unwrap_or(u64::MAX);
    let found = File::open(path)?.read_at(&mut word, place)?;
    Ok(word.get(..found).and_then(Turn::from_bytes).is_some_and(Turn::is_under_way))
}

fn repair_copy(from: &Path, to: &Path) -> Result<(), String> {
    std::fs::copy(from, to).map_err(|error| error.to_string())?;
    h5live::repair(to).map(drop).map_err(|error| crate::args::whole_text(&error))
}

fn apply(plan: &Plan, model: &mut Model, step: u64) {
    plan.changes(step, &model.extents).iter().for_each(|change| model.apply(plan, change));
}

fn name_of(cell: Cell) -> u64 {
    cell.to_string().bytes().fold(0, |state, byte| mix(state ^ u64::from(byte)))
}
