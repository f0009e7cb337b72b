//! Reads the whole contents of a file while nobody writes it.

use std::path::Path;

use h5live::Selection;

use h5live_cli::open;

use super::cell::ChangeKind;
use super::plan::{CellPlan, FileModel, Region};
use super::value::{ObservedValue, RuleValue, shown};

/// The contents of a file.
///
/// # Errors
/// A line that names the part that cannot be read, or that was never written.
pub fn read_model<T: RuleValue>(path: &Path, plan: &CellPlan) -> Result<FileModel, String> {
    let text = |error: h5live::Error| h5live_cli::error::error_with_causes(&error);
    let file = open::for_reading(path).map_err(|error| h5live_cli::error::error_with_causes(&error))?;
    let mut model = FileModel { extents: Vec::new(), versions: Vec::new() };
    for (number, name) in plan.names.iter().enumerate() {
        let dataset = match file.dataset(name) {
            Err(error) if plan.cell.work == ChangeKind::Links && error.is_not_found_in_file() => {
                let empty = FileModel::empty(plan);
                model.extents.extend(empty.extents.into_iter().nth(number));
                model.versions.extend(empty.versions.into_iter().nth(number));
                continue;
            }
            found => found.map_err(text)?,
        };
        let extent = dataset.shape().map_err(text)?;
        let read = |region: &Region| -> Result<Vec<u32>, String> {
            let values = dataset.read_slice::<T>(Selection::block(&region.start, &region.count)).map_err(text)?;
            let mut versions = Vec::with_capacity(values.len());
            let mut wrong = None;
            let mut values = values.iter();
            region.for_each(|at| {
                match values.next().map(|value| (value, value.observe(plan.element_id(number, at)))) {
                    Some((_, ObservedValue::Version(version))) => versions.push(version),
                    Some((_, ObservedValue::Fill)) => versions.push(0),
                    value => {
                        let value = value.map(|(value, _)| value);
                        wrong.get_or_insert_with(|| format!("{name}: element {at:?} is {}", shown(value)));
                    }
                }
            });
            wrong.map_or(Ok(versions), Err)
        };
        if plan.cell.work.grows() {
            let whole = Region::new(&vec![0; extent.len()], &extent);
            if let Some(at) = read(&whole)?.iter().position(|version| *version != 1) {
                return Err(format!("{name}: element number {at} of {extent:?} is a fill value"));
            }
        }
        let own = plan.regions.iter().enumerate().filter(|(region, _)| plan.dataset_of_region(*region) == number);
        for (_, whole) in own {
            let mut versions = vec![0; whole.element_count() as usize];
            if let Some(region) = whole.clip(&extent) {
                let found = read(&region)?;
                if matches!(plan.cell.work, ChangeKind::Shrink | ChangeKind::Links) && found.contains(&0) {
                    return Err(format!("{name}: there are fill values below the extent {extent:?}"));
                }
                let mut found = found.into_iter();
                region.for_each(|at| {
                    versions.get_mut(whole.slot(at)).into_iter().zip(found.next()).for_each(|(slot, new)| *slot = new);
                });
            }
            model.versions.push(versions);
        }
        model.extents.push(extent);
    }
    Ok(model)
}

/// The fault of a state after a writer has ended. The writer had flushed `flushed_model`, and may have got to `attempted`.
pub fn fault(plan: &CellPlan, found: &FileModel, flushed_model: &FileModel, attempted: &FileModel) -> Option<String> {
    for (number, extent) in found.extents.iter().enumerate() {
        let (flushed_model, attempted) = (flushed_model.extents.get(number), attempted.extents.get(number));
        if Some(extent) != flushed_model && Some(extent) != attempted {
            let (flushed_model, attempted) = (shown(flushed_model), shown(attempted));
            return Some(format!("data{number}: {extent:?} instead of {flushed_model} or {attempted}"));
        }
    }
    for (number, region) in plan.regions.iter().enumerate() {
        let of = |model: &FileModel, slot: usize| model.versions.get(number).and_then(|v| v.get(slot)).copied();
        for slot in 0..region.element_count() as usize {
            let version = of(found, slot);
            if version != of(flushed_model, slot) && version != of(attempted, slot) {
                let [version, flushed_model, attempted] =
                    [version, of(flushed_model, slot), of(attempted, slot)].map(shown);
                return Some(format!(
                    "element {slot} of the block at {:?}: version {version} instead of {flushed_model} or {attempted}",
                    region.start
                ));
            }
        }
    }
    None
}
