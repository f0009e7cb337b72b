//! The writer of a cell of the matrix.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use h5live::model::AllocationTime;
use h5live::{Dataset, File, LibVer, Selection};

use crate::error::Result;
use crate::live::message::{Extents, WorkCounts as Done, WorkerMessage};
use crate::output::Output;

use super::cell::{FilterChoice, IndexChoice};
use super::plan::{CellChange, CellPlan, Region};
use super::value::RuleValue;

/// How far the writer may be behind its rate and still catch up.
const MAX_LAG: Duration = Duration::from_millis(250);

/// Makes the file of a plan, with its initial contents.
///
/// # Errors
/// [`crate::error::Error::File`].
pub fn create<T: RuleValue>(path: &Path, plan: &CellPlan) -> Result<()> {
    let profile = if plan.cell.index == IndexChoice::Btree1 { LibVer::Earliest } else { LibVer::default() };
    let file = File::options().create().libver(profile).open(path)?;
    let mut datasets = Vec::new();
    for name in &plan.names {
        let mut builder = file.new_dataset::<T>().shape(&plan.dims).max_shape(&plan.max).chunk_shape(&plan.chunk);
        builder = match plan.cell.filter {
            FilterChoice::None => builder,
            FilterChoice::Deflate => builder.shuffle().deflate(1),
            FilterChoice::Fletcher32 => builder.fletcher32(),
        };
        if plan.cell.index == IndexChoice::Implicit {
            builder = builder.alloc_time(AllocationTime::Early);
        }
        datasets.push(builder.create(name)?);
    }
    for change in plan.initial_changes() {
        apply_change::<T>(plan, &datasets, &change)?;
    }
    Ok(file.close()?)
}

/// Makes one step after the other, from `step` on, and says after each flush how many were made, until `stop` is set.
///
/// # Errors
/// As [`crate::error::Error`] says.
pub fn run<T: RuleValue>(file: &File, plan: &CellPlan, mut step: u64, rate: f64, stop: &AtomicBool) -> Result<()> {
    let datasets: Vec<Dataset> = plan.names.iter().map(|name| file.dataset(name)).collect::<Result<_, _>>()?;
    let mut extents: Vec<_> = datasets.iter().map(Dataset::shape).collect::<Result<_, _>>()?;
    let mut out = Output::stdout();
    let mut done = Done::default();
    let pause = Duration::from_secs_f64(1.0 / rate);
    let mut next = Instant::now();
    loop {
        let changes = plan.changes(step, &extents);
        let before = extents.clone();
        for change in &changes {
            let made = apply_change::<T>(plan, &datasets, change);
            done.rows += made.or_else(|error| revert_extents(&datasets, &before).and(Err(error)))?;
            if let CellChange::Append(dataset, _) | CellChange::Extent(dataset, _) = change {
                let new = datasets.get(*dataset).map(Dataset::shape).transpose()?;
                extents.get_mut(*dataset).into_iter().zip(new).for_each(|(extent, new)| *extent = new);
            }
        }
        let at = Extents::now(vec![step + 1]);
        // Both ways to publish, by turns.
        if step.is_multiple_of(2) {
            file.flush()?
        } else {
            datasets.iter().try_for_each(Dataset::flush)?
        }
        step += 1;
        done.refreshes += 1;
        out.line(WorkerMessage::Flushed(at))?;
        out.flush()?;
        if stop.load(Ordering::Acquire) {
            break;
        }
        next += pause;
        thread::sleep(next.saturating_duration_since(Instant::now()));
        // Flushes that are late are made up for; those of a long standstill are not.
        next = next.max(Instant::now().checked_sub(MAX_LAG).unwrap_or(next));
    }
    file.close()?;
    out.line(WorkerMessage::Done(done))?;
    out.flush()
}

/// An extent that is there without its elements would be published when the file is closed.
fn revert_extents(datasets: &[Dataset], extents: &[Vec<u64>]) -> Result<()> {
    datasets.iter().zip(extents).try_for_each(|(dataset, before)| {
        let grown = dataset.shape()?.iter().zip(before).any(|(now, before)| now > before);
        if grown { Ok(dataset.resize(before)?) } else { Ok(()) }
    })
}

/// Makes a change; how many elements were written.
fn apply_change<T: RuleValue>(plan: &CellPlan, datasets: &[Dataset], change: &CellChange) -> Result<u64> {
    let (CellChange::Append(number, _) | CellChange::Extent(number, _) | CellChange::Write(number, ..)) = change;
    let Some(dataset) = datasets.get(*number) else { return Ok(0) };
    match change {
        CellChange::Append(_, region) => {
            dataset.append(&values::<T>(plan, *number, region, 1))?;
            Ok(region.elements())
        }
        CellChange::Extent(_, dims) => {
            dataset.resize(dims)?;
            Ok(0)
        }
        CellChange::Write(_, region, version) => {
            let values = values::<T>(plan, *number, region, *version);
            dataset.write_slice(Selection::block(&region.start, &region.count), &values)?;
            Ok(region.elements())
        }
    }
}

fn values<T: RuleValue>(plan: &CellPlan, dataset: usize, region: &Region, version: u32) -> Vec<T> {
    let mut values = Vec::with_capacity(region.elements() as usize);
    region.for_each(|at| values.push(T::value(plan.element_id(dataset, at), version)));
    values
}

#[cfg(test)]
mod tests {
    use super::super::cell::{ChangeKind, ElementKind, MatrixCell};
    use super::super::faults::{self, StorageFault};
    use super::super::read_model;
    use super::*;

    #[test]
    fn an_extent_whose_elements_could_not_be_written_is_not_published() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.h5");
        let mut failures = 0;
        for index in [IndexChoice::ExtensibleArray, IndexChoice::FixedArray, IndexChoice::Btree1] {
            let plan = CellPlan::new(
                MatrixCell { index, work: ChangeKind::Shrink, filter: FilterChoice::Deflate, kind: ElementKind::Fixed },
                1,
            );
            for at in 0..24 {
                create::<u64>(&path, &plan).unwrap();
                let file = faults::open(&path, StorageFault::Short(at));
                let stop = AtomicBool::new(true);
                failures += u32::from(file.and_then(|file| run::<u64>(&file, &plan, 0, 1e6, &stop)).is_err());
                read_model::read_model::<u64>(&path, &plan)
                    .unwrap_or_else(|fault| panic!("{}, change {at}: {fault}", plan.cell));
            }
        }
        assert!(failures > 10, "{failures}");
    }
}
