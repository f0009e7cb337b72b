//! A reader of a cell of the matrix: it checks every value that it sees.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use h5live::{Dataset, Selection};

use crate::stress::rule::mix;
use h5live_cli::error::{Error, Result};
use h5live_cli::live::message::{StressInvariant, TimedExtents, Violation, WorkCounts as Done, WorkerMessage};
use h5live_cli::open;
use h5live_cli::output::StdoutWriter;

use super::cell::ChangeKind;
use super::plan::{CellPlan, FileModel, Region, added};
use super::value::{ObservedValue, RuleValue, shown};

/// A pause after a look at the file.
pub(super) const PAUSE: Duration = Duration::from_micros(300);
/// Elements that are read at a time.
const BLOCK_ELEMENTS: u64 = 1 << 14;
/// A reader stops after this many violations.
const MAX_VIOLATIONS: u32 = 50;
/// How often an element that has just been cut off and come back is looked at again before it counts as lost.
pub(super) const MAX_REREADS: u32 = 50;

/// A reader.
pub struct MatrixReader<'a> {
    path: &'a Path,
    pub(super) plan: &'a CellPlan,
    /// The state that was seen and right.
    pub(super) known: FileModel,
    /// The latest version of each dataset that comes and goes.
    pub(super) latest: Vec<u32>,
    pub(super) done: Done,
    violations: u32,
    out: StdoutWriter,
}

/// Why a reader stops.
pub(super) enum MatrixReadError {
    /// The file cannot be read.
    File(Error),
    /// Standard output cannot be written.
    Output(Error),
}

impl From<h5live::Error> for MatrixReadError {
    fn from(error: h5live::Error) -> Self {
        MatrixReadError::File(error.into())
    }
}

impl<'a> MatrixReader<'a> {
    /// A reader that has seen nothing yet.
    pub fn new(path: &'a Path, plan: &'a CellPlan) -> Self {
        let known = FileModel::empty(plan);
        let latest = vec![0; plan.names.len()];
        MatrixReader { path, plan, known, latest, done: Done::default(), violations: 0, out: StdoutWriter::stdout() }
    }

    /// Follows the file until `stop` is set, and looks at it once more after that. It opens the file again after each
    /// `reopen`.
    ///
    /// # Errors
    /// [`Error::Stdout`]; faults of the file are reported as violations instead.
    pub fn run<T: RuleValue>(mut self, reopen: Duration, stop: &AtomicBool) -> Result<()> {
        let mut ended = false;
        while !ended && self.violations < MAX_VIOLATIONS {
            match self.session::<T>(reopen, stop) {
                Ok(last) => ended = last,
                Err(MatrixReadError::Output(error)) => return Err(error),
                Err(MatrixReadError::File(error)) => {
                    self.violation(StressInvariant::NoDanglingAddress, h5live_cli::error::error_with_causes(&error))?;
                    ended = stop.load(Ordering::Acquire);
                    thread::sleep(Duration::from_millis(10));
                }
            }
        }
        self.say(&WorkerMessage::Seen(TimedExtents::now(vec![self.known.digest()])))?;
        self.say(&WorkerMessage::Done(self.done))
    }

    fn session<T: RuleValue>(&mut self, reopen: Duration, stop: &AtomicBool) -> Result<bool, MatrixReadError> {
        let file = open::for_following(self.path).map_err(MatrixReadError::File)?;
        self.done.opens += 1;
        let datasets =
            self.plan.lasting_names().iter().map(|name| file.dataset(name)).collect::<Result<Vec<_>, _>>()?;
        let until = Instant::now() + reopen;
        while Instant::now() < until {
            // In this order: what was written before the end is still seen.
            let last = stop.load(Ordering::Acquire);
            self.done.refreshes_or_flushes += 1;
            if self.plan.cell.work == ChangeKind::Links {
                self.look_at_links::<T>(&file)?;
            }
            for (number, dataset) in datasets.iter().enumerate() {
                match self.plan.cell.work.grows() {
                    true => self.look_at_growth::<T>(number, dataset)?,
                    false => self.look_at_changes::<T>(dataset)?,
                }
            }
            if last {
                return Ok(true);
            }
            thread::sleep(PAUSE);
        }
        Ok(false)
    }

    /// Reads and checks new rows, and some old ones.
    fn look_at_growth<T: RuleValue>(&mut self, number: usize, dataset: &Dataset) -> Result<(), MatrixReadError> {
        dataset.refresh()?;
        let extent = dataset.shape()?;
        let known = self.known.extents.get(number).cloned().unwrap_or_default();
        if extent.iter().zip(&known).any(|(now, before)| now < before) {
            let detail = format!("{}: {extent:?} after {known:?}", dataset.path());
            return self.violation(StressInvariant::MonotonicReads, detail).map_err(MatrixReadError::Output);
        }
        for region in added(&known, &extent) {
            for block in blocks(&region) {
                self.check_growth::<T>(number, dataset, &block, StressInvariant::WholeAppends)?;
                self.done.new_rows += block.element_count();
            }
        }
        let mut back = Region::new(&vec![0; known.len()], &known);
        let random = mix(self.done.refreshes_or_flushes);
        if let (Some(start), Some(count)) = (back.start.first_mut(), back.count.first_mut())
            && *count > 0
        {
            *start = random % *count;
            *count = (*count - *start).min(4);
            if back.element_count() > 0 {
                self.check_growth::<T>(number, dataset, &back, StressInvariant::MonotonicReads)?;
                self.done.reread_rows += back.element_count();
            }
        }
        self.known.extents.get_mut(number).into_iter().for_each(|known| known.clone_from(&extent));
        Ok(())
    }

    fn check_growth<T: RuleValue>(
        &mut self,
        number: usize,
        dataset: &Dataset,
        region: &Region,
        broken: StressInvariant,
    ) -> Result<(), MatrixReadError> {
        let values = dataset.read_slice::<T>(Selection::block(&region.start, &region.count))?;
        let mut wrong = None;
        let mut values = values.iter();
        region.for_each(|at| {
            let value = values.next();
            let found = value.map(|value| value.observe(self.plan.element_id(number, at)));
            if found != Some(ObservedValue::Version(1)) && wrong.is_none() {
                wrong = Some(format!("{}: element {at:?} is {}", dataset.path(), shown(value)));
            }
        });
        wrong.map_or(Ok(()), |detail| self.violation(broken, detail).map_err(MatrixReadError::Output))
    }

    /// Reads all elements that may change, and checks that none goes back.
    fn look_at_changes<T: RuleValue>(&mut self, dataset: &Dataset) -> Result<(), MatrixReadError> {
        dataset.refresh()?;
        let extent = dataset.shape()?;
        let shrinks = self.plan.cell.work == ChangeKind::Shrink;
        let known = self.known.extents.first().cloned().unwrap_or_default();
        if !shrinks && extent != known && known.iter().any(|side| *side > 0) {
            let detail = format!("{}: {extent:?} after {known:?}", dataset.path());
            self.violation(StressInvariant::MonotonicReads, detail).map_err(MatrixReadError::Output)?;
        }
        self.forget_outside(&extent);
        let plan = self.plan;
        for (number, whole) in plan.regions.iter().enumerate() {
            let Some(region) = whole.clip(&extent) else { continue };
            let Some(values) = self.read::<T>(dataset, &region, &extent)? else { return Ok(()) };
            let mut lost = None;
            let mut wrong = None;
            let mut versions = (u32::MAX, 0);
            let mut values = values.iter();
            region.for_each(|at| {
                let slot = whole.slot(at);
                let known = self.known.versions.get(number).and_then(|slots| slots.get(slot)).copied().unwrap_or(0);
                let Some(value) = values.next() else { return };
                let problem = match value.observe(plan.element_id(0, at)) {
                    ObservedValue::Version(version) if version >= known => {
                        versions = (versions.0.min(version), versions.1.max(version));
                        if let Some(known) = self.known.versions.get_mut(number).and_then(|slots| slots.get_mut(slot)) {
                            *known = version;
                        }
                        return;
                    }
                    ObservedValue::Version(version) => {
                        (StressInvariant::MonotonicReads, format!("element {at:?}: version {version} after {known}"))
                    }
                    ObservedValue::Fill if shrinks => {
                        lost.get_or_insert_with(|| at.to_vec());
                        return;
                    }
                    ObservedValue::Fill if plan.cell.work == ChangeKind::Sparse && known == 0 => return,
                    ObservedValue::Fill => {
                        (StressInvariant::MonotonicReads, format!("element {at:?}: a fill value after version {known}"))
                    }
                    ObservedValue::Nothing => (StressInvariant::WholeAppends, format!("element {at:?} is {value:?}")),
                };
                wrong.get_or_insert(problem);
            });
            self.done.new_rows += region.element_count();
            if let Some((broken, detail)) = wrong {
                self.violation(broken, format!("{}: {detail}", dataset.path())).map_err(MatrixReadError::Output)?;
            }
            if plan.cell.work == ChangeKind::Rewrite && versions.0 < versions.1 {
                let detail = format!("{}: chunk at {:?} of versions {versions:?}", dataset.path(), region.start);
                self.violation(StressInvariant::NoTornReads, detail).map_err(MatrixReadError::Output)?;
            }
            if let Some(at) = lost {
                self.look_for::<T>(dataset, &at)?;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Forgets the known state of elements outside of the extent: they are gone.
    fn forget_outside(&mut self, extent: &[u64]) {
        if let Some(known) = self.known.extents.first().cloned() {
            let cut = super::plan::CellChange::Extent(0, extent.to_vec());
            if known != extent {
                self.known.apply(self.plan, &cut);
            }
        }
    }

    /// The elements of a region; `None` if the extent has changed meanwhile, so that they may not be there any more.
    fn read<T: RuleValue>(
        &self,
        dataset: &Dataset,
        region: &Region,
        extent: &[u64],
    ) -> Result<Option<Vec<T>>, MatrixReadError> {
        match dataset.read_slice::<T>(Selection::block(&region.start, &region.count)) {
            Err(_) if dataset.shape()? != extent => Ok(None),
            read => Ok(Some(read?)),
        }
    }

    /// Looks again for an element that was a fill value below the extent: it must have been cut off meanwhile, or come
    /// back.
    fn look_for<T: RuleValue>(&mut self, dataset: &Dataset, at: &[u64]) -> Result<(), MatrixReadError> {
        let region = Region::new(at, &vec![1; at.len()]);
        for _ in 0..MAX_REREADS {
            dataset.refresh()?;
            let extent = dataset.shape()?;
            if region.clip(&extent).is_none() {
                return Ok(());
            }
            let value = self.read::<T>(dataset, &region, &extent)?;
            if value.is_none_or(|value| {
                value.iter().all(|value| value.observe(self.plan.element_id(0, at)) != ObservedValue::Fill)
            }) {
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        let detail = format!("{}: element {at:?} stays a fill value", dataset.path());
        self.violation(StressInvariant::WholeAppends, detail).map_err(MatrixReadError::Output)
    }

    pub(super) fn violation(&mut self, invariant: StressInvariant, detail: String) -> Result<()> {
        self.violations += 1;
        self.say(&WorkerMessage::Violation(Violation { invariant, detail }))
    }

    fn say(&mut self, message: &WorkerMessage) -> Result<()> {
        self.out.line(message)?;
        self.out.flush()
    }
}

/// A block in pieces that are read at a time.
fn blocks(region: &Region) -> Vec<Region> {
    let rows = region.count.first().copied().unwrap_or(0);
    let step = (BLOCK_ELEMENTS / (region.element_count() / rows.max(1)).max(1)).max(1);
    let first = region.start.first().copied().unwrap_or(0);
    let piece = |from: u64| {
        let mut piece = region.clone();
        piece.start.first_mut().into_iter().for_each(|start| *start = first + from);
        piece.count.first_mut().into_iter().for_each(|count| *count = step.min(rows - from));
        piece
    };
    (0..rows).step_by(step as usize).map(piece).collect()
}
