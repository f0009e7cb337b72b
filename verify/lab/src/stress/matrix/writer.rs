//! The writer of a cell of the matrix.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use h5live::model::AllocationTime;
use h5live::{Dataset, File, LibVer, Selection};

use h5live_cli::error::{Error, Result};
use h5live_cli::live::message::{TimedExtents, WorkCounts as Done, WorkerMessage};
use h5live_cli::output::StdoutWriter;

use super::cell::{ChangeKind, FilterChoice, IndexChoice};
use super::link_names::{GROUPS, link_path};
use super::plan::{CellChange, CellPlan, Region};
use super::value::RuleValue;

/// How far the writer may be behind its rate and still catch up.
const MAX_LAG: Duration = Duration::from_millis(250);

/// Makes the file of a plan, with its initial contents.
///
/// # Errors
/// [`h5live_cli::error::Error::File`].
pub fn create<T: RuleValue>(path: &Path, plan: &CellPlan) -> Result<()> {
    let profile = if plan.cell.index == IndexChoice::Btree1 { LibVer::Earliest } else { LibVer::default() };
    let file = File::options().create().libver(profile).open(path)?;
    let mut datasets = Vec::new();
    if plan.cell.work == ChangeKind::Links {
        GROUPS.iter().try_for_each(|group| file.create_group(group).map(drop))?;
    } else {
        for name in &plan.names {
            datasets.push(create_dataset::<T>(&file, plan, name)?);
        }
    }
    for change in plan.initial_changes() {
        apply_change::<T>(&file, plan, &datasets, &change)?;
    }
    Ok(file.close()?)
}

fn create_dataset<T: RuleValue>(file: &File, plan: &CellPlan, name: &str) -> Result<Dataset> {
    let builder = file.new_dataset::<T>().shape(&plan.dims).max_shape(&plan.max).chunk_shape(&plan.chunk);
    let builder = match plan.cell.filter {
        FilterChoice::None => builder,
        FilterChoice::Deflate => builder.shuffle().deflate(1),
        FilterChoice::Fletcher32 => builder.fletcher32(),
    };
    let is_early = plan.cell.index == IndexChoice::Implicit;
    let builder = if is_early { builder.alloc_time(AllocationTime::Early) } else { builder };
    Ok(builder.create(name)?)
}

/// Makes one step after the other, from `step` on, and says after each flush how many were made, until `stop` is set.
///
/// # Errors
/// As [`h5live_cli::error::Error`] says.
pub fn run<T: RuleValue>(file: &File, plan: &CellPlan, mut step: u64, rate: f64, stop: &AtomicBool) -> Result<()> {
    let datasets = plan.lasting_names().iter().map(|name| file.dataset(name)).collect::<Result<Vec<_>, _>>()?;
    let links = plan.cell.work == ChangeKind::Links;
    let mut extents: Vec<_> = match links {
        true => linked_extents(file, plan)?,
        false => datasets.iter().map(Dataset::shape).collect::<Result<_, _>>()?,
    };
    let mut out = StdoutWriter::stdout();
    let mut done = Done::default();
    let pause = Duration::from_secs_f64(1.0 / rate);
    let mut next = Instant::now();
    loop {
        let changes = plan.changes(step, &extents);
        let before = extents.clone();
        for change in &changes {
            let made = apply_change::<T>(file, plan, &datasets, change);
            done.new_rows += made.or_else(|error| revert_extents(&datasets, &before).and(Err(error)))?;
            let (number, new) = match change {
                CellChange::Append(number, _) | CellChange::Extent(number, _) => {
                    (*number, datasets.get(*number).map(Dataset::shape).transpose()?)
                }
                CellChange::Create(number, _) => (*number, Some(plan.dims.clone())),
                CellChange::Unlink(number) => (*number, Some(vec![0; plan.dims.len()])),
                CellChange::Write(..) => continue,
            };
            extents.get_mut(number).into_iter().zip(new).for_each(|(extent, new)| *extent = new);
        }
        let at = TimedExtents::now(vec![step + 1]);
        // Both ways to publish, by turns. Only the first one publishes links.
        if links || step.is_multiple_of(2) {
            file.flush()?
        } else {
            datasets.iter().try_for_each(Dataset::flush)?
        }
        step += 1;
        done.refreshes_or_flushes += 1;
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
fn apply_change<T: RuleValue>(file: &File, plan: &CellPlan, datasets: &[Dataset], change: &CellChange) -> Result<u64> {
    let dataset = |number: &usize| datasets.get(*number);
    match change {
        CellChange::Append(number, region) => {
            dataset(number).map_or(Ok(()), |dataset| dataset.append(&values::<T>(plan, *number, region, 1)))?;
            Ok(region.element_count())
        }
        CellChange::Extent(number, dims) => {
            dataset(number).map_or(Ok(()), |dataset| dataset.resize(dims))?;
            Ok(0)
        }
        CellChange::Write(number, region, version) => {
            let values = values::<T>(plan, *number, region, *version);
            let selection = Selection::block(&region.start, &region.count);
            dataset(number).map_or(Ok(()), |dataset| dataset.write_slice(selection, &values))?;
            Ok(region.element_count())
        }
        CellChange::Create(number, version) => create_linked::<T>(file, plan, *number, *version),
        CellChange::Unlink(number) => {
            file.root().unlink(link_path(plan.name(*number)))?;
            Ok(0)
        }
    }
}

/// The extents of the datasets of a file: zeros for those that are not there.
///
/// # Errors
/// If the file cannot be read.
fn linked_extents(file: &File, plan: &CellPlan) -> Result<Vec<Vec<u64>>> {
    let extent = |name: &String| -> Result<Vec<u64>> {
        match file.dataset(name) {
            Err(error) if error.is_not_found_in_file() => Ok(vec![0; plan.dims.len()]),
            dataset => Ok(dataset?.shape()?),
        }
    };
    plan.names.iter().map(extent).collect()
}

/// Makes a dataset with its elements, or nothing.
fn create_linked<T: RuleValue>(file: &File, plan: &CellPlan, number: usize, version: u32) -> Result<u64> {
    let name = plan.name(number);
    let whole = Region::new(&vec![0; plan.dims.len()], &plan.dims);
    let write = || -> Result<()> {
        Ok(create_dataset::<T>(file, plan, name)?.write(&values::<T>(plan, number, &whole, version))?)
    };
    // A link without the elements would be published when the file is closed.
    let undo = |error| match file.object(link_path(name)) {
        Ok(_) => file.root().unlink(link_path(name)).map_err(Error::from).and(Err(error)),
        Err(_) => Err(error),
    };
    write().or_else(undo).map(|()| whole.element_count())
}

fn values<T: RuleValue>(plan: &CellPlan, dataset: usize, region: &Region, version: u32) -> Vec<T> {
    let mut values = Vec::with_capacity(region.element_count() as usize);
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
