//! The steps of a cell of the matrix, as a function of the seed alone. So the number of flushed steps tells what the
//! file must hold.

use h5live::UNLIMITED;
use serde_json::json;

use crate::stress::rule::mix;

use super::cell::{ChangeKind, IndexChoice, MatrixCell};
use super::link_names;
use super::value::ElementId;

/// Most elements of a dataset of two dimensions that grows, along each of them.
const MAX_SIDE: u64 = 192;
/// Places where a sparse dataset is written, and the elements of each.
const WINDOWS: u64 = 32;
const WINDOW_ELEMENTS: u64 = 256;

/// A block of elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// The first element, along each dimension.
    pub start: Vec<u64>,
    /// Elements along each dimension.
    pub count: Vec<u64>,
}

impl Region {
    /// A block.
    pub fn new(start: &[u64], count: &[u64]) -> Self {
        Region { start: start.into(), count: count.into() }
    }

    /// The number of elements.
    pub fn element_count(&self) -> u64 {
        self.count.iter().product()
    }

    /// The part that lies in an extent; `None` if there is none.
    pub fn clip(&self, extent: &[u64]) -> Option<Region> {
        let sides = self.start.iter().zip(&self.count).zip(extent);
        let count: Vec<_> = sides.map(|((start, count), end)| end.saturating_sub(*start).min(*count)).collect();
        (!count.contains(&0)).then(|| Region { start: self.start.clone(), count })
    }

    /// The common part of both blocks; `None` if there is none.
    pub fn intersection(&self, other: &Region) -> Option<Region> {
        let start: Vec<_> = self.start.iter().zip(&other.start).map(|(a, b)| *a.max(b)).collect();
        let ends = |region: &Region| -> Vec<u64> {
            region.start.iter().zip(&region.count).map(|(start, count)| start + count).collect()
        };
        let ends = ends(self).into_iter().zip(ends(other)).map(|(a, b)| a.min(b));
        let count: Vec<_> = ends.zip(&start).map(|(end, start)| end.saturating_sub(*start)).collect();
        (!count.contains(&0)).then_some(Region { start, count })
    }

    /// The number of an element in row-major order.
    pub fn slot(&self, at: &[u64]) -> usize {
        let sides = at.iter().zip(&self.start).zip(&self.count);
        sides.fold(0, |slot, ((at, start), count)| slot * count + at.saturating_sub(*start)) as usize
    }

    /// Calls `each` with the coordinates of every element, in row-major order.
    pub fn for_each(&self, mut each: impl FnMut(&[u64])) {
        let mut at = self.start.clone();
        for number in 0..self.element_count() {
            let mut rest = number;
            for (dim, (start, count)) in self.start.iter().zip(&self.count).enumerate().rev() {
                if let Some(at) = at.get_mut(dim) {
                    *at = start + rest % count;
                }
                rest /= count;
            }
            each(&at);
        }
    }
}

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellChange {
    /// Rows are appended that have this region then.
    Append(usize, Region),
    /// The extent is changed.
    Extent(usize, Vec<u64>),
    /// Elements are written, in this version.
    Write(usize, Region, u32),
    /// The dataset is made, with all of its elements in this version.
    Create(usize, u32),
    /// The dataset is removed from its group.
    Unlink(usize),
}

/// The datasets of a cell, and what happens to them.
#[derive(Debug, Clone)]
pub struct CellPlan {
    /// The cell.
    pub cell: MatrixCell,
    /// The seed.
    pub seed: u64,
    /// The names of the datasets, which are all alike.
    pub names: Vec<String>,
    /// Their extent when they are made.
    pub dims: Vec<u64>,
    /// Their largest extent.
    pub max: Vec<u64>,
    /// Their chunks.
    pub chunk: Vec<u64>,
    /// The distance between the numbers of neighbours, along each dimension.
    pub strides: Vec<u64>,
    /// The regions of elements that may change. Each chunk of a rewritten dataset is one region, and so is each dataset that
    /// comes and goes.
    pub regions: Vec<Region>,
}

impl CellPlan {
    /// The plan of a cell.
    pub fn new(cell: MatrixCell, seed: u64) -> CellPlan {
        let flat = cell.index == IndexChoice::Btree2;
        let whole = |dims: &[u64]| vec![Region::new(&vec![0; dims.len()], dims)];
        let linked = |dims: &[u64]| vec![Region::new(&vec![0; dims.len()], dims); link_names::names().len()];
        let (dims, limit, chunk, strides, regions): (&[u64], &[u64], &[u64], &[u64], _) = match cell.work {
            ChangeKind::Append if cell.index == IndexChoice::Implicit => (&[0], &[1 << 15], &[4], &[1], Vec::new()),
            ChangeKind::Append => (&[0], &[1 << 18], &[4], &[1], Vec::new()),
            ChangeKind::AppendRows if cell.index == IndexChoice::Implicit => {
                (&[0, 7, 5], &[1 << 10, 7, 5], &[2, 3, 4], &[35, 5, 1], Vec::new())
            }
            ChangeKind::AppendRows => (&[0, 7, 5], &[1 << 13, 7, 5], &[2, 3, 4], &[35, 5, 1], Vec::new()),
            ChangeKind::Grow => (&[0, 0], &[MAX_SIDE, MAX_SIDE], &[8, 6], &[1 << 12, 1], Vec::new()),
            ChangeKind::Sparse => match cell.index {
                IndexChoice::Single => (&[2048], &[2048], &[2048], &[1], windows(&[2048])),
                IndexChoice::Btree2 => (&[1024, 1024], &[1024, 1024], &[4, 4], &[1 << 12, 1], windows(&[1024, 1024])),
                IndexChoice::Implicit => (&[1 << 14], &[1 << 14], &[8], &[1], windows(&[1 << 14])),
                _ => (&[1 << 20], &[1 << 20], &[8], &[1], windows(&[1 << 20])),
            },
            ChangeKind::Rewrite => match cell.index {
                IndexChoice::Single => (&[1024], &[1024], &[1024], &[1], chunks(&[1024], &[1024])),
                IndexChoice::Btree2 => {
                    (&[128, 64], &[128, 64], &[32, 32], &[1 << 12, 1], chunks(&[128, 64], &[32, 32]))
                }
                _ => (&[8192], &[8192], &[1024], &[1], chunks(&[8192], &[1024])),
            },
            ChangeKind::Shrink => match cell.index {
                IndexChoice::Single => (&[512], &[512], &[512], &[1], whole(&[512])),
                _ if flat => (&[0, 0], &[64, 32], &[4, 4], &[1 << 12, 1], whole(&[64, 32])),
                _ => (&[0], &[2048], &[8], &[1], whole(&[2048])),
            },
            ChangeKind::Links => match cell.index {
                IndexChoice::Single => (&[16], &[16], &[16], &[1], linked(&[16])),
                IndexChoice::Btree2 => (&[4, 4], &[4, 4], &[2, 3], &[1 << 12, 1], linked(&[4, 4])),
                _ => (&[16], &[16], &[5], &[1], linked(&[16])),
            },
        };
        let unlimited = match cell.index {
            IndexChoice::ExtensibleArray => 1,
            IndexChoice::Btree2 | IndexChoice::Btree1 => dims.len(),
            IndexChoice::FixedArray | IndexChoice::Implicit | IndexChoice::Single => 0,
        };
        let max = limit.iter().enumerate().map(|(dim, limit)| if dim < unlimited { UNLIMITED } else { *limit });
        let names = match cell.work {
            ChangeKind::Links => link_names::names(),
            ChangeKind::Grow => (0..8).map(|number| format!("data{number}")).collect(),
            _ => vec!["data0".to_owned()],
        };
        CellPlan {
            cell,
            seed,
            names,
            dims: dims.into(),
            max: max.collect(),
            chunk: chunk.into(),
            strides: strides.into(),
            regions,
        }
    }

    /// The largest extents, although the dataset could have larger ones.
    fn limit(&self) -> Vec<u64> {
        match (self.cell.work, self.regions.last()) {
            (ChangeKind::Append, _) => vec![if self.cell.index == IndexChoice::Implicit { 1 << 15 } else { 1 << 18 }],
            (ChangeKind::AppendRows, _) => {
                vec![if self.cell.index == IndexChoice::Implicit { 1 << 10 } else { 1 << 13 }, 7, 5]
            }
            (ChangeKind::Grow, _) => vec![MAX_SIDE, MAX_SIDE],
            (ChangeKind::Shrink, Some(whole)) => whole.count.clone(),
            _ => self.dims.clone(),
        }
    }

    /// The names of the datasets that are there from the beginning to the end.
    pub fn lasting_names(&self) -> &[String] {
        if self.cell.work == ChangeKind::Links { &[] } else { &self.names }
    }

    /// The name of a dataset.
    pub fn name(&self, dataset: usize) -> &str {
        self.names.get(dataset).map_or("", String::as_str)
    }

    /// The number of an element.
    pub fn element_id(&self, dataset: usize, at: &[u64]) -> ElementId {
        let element = at.iter().zip(&self.strides).map(|(at, stride)| at * stride).sum();
        ElementId { dataset, element }
    }

    /// The number of the dataset that has this region.
    pub fn dataset_of_region(&self, region: usize) -> usize {
        if self.cell.work == ChangeKind::Links { region } else { 0 }
    }

    /// The changes before anybody reads.
    pub fn initial_changes(&self) -> Vec<CellChange> {
        match (self.cell.work, self.cell.index) {
            (ChangeKind::Links, _) => {
                (0..self.names.len()).step_by(2).map(|dataset| CellChange::Create(dataset, 1)).collect()
            }
            (ChangeKind::Rewrite, _) | (ChangeKind::Shrink, IndexChoice::Single) => {
                self.regions.iter().map(|region| CellChange::Write(0, region.clone(), 1)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The changes of a step, given the extents before it; empty if there is no room left.
    pub fn changes(&self, step: u64, extents: &[Vec<u64>]) -> Vec<CellChange> {
        let random = mix(self.seed ^ mix(step));
        // The elements that were there from the beginning are of version 1.
        let version = (step + 2) as u32;
        match self.cell.work {
            ChangeKind::Append | ChangeKind::AppendRows => self.append(random, extents),
            ChangeKind::Grow => self.grow(random, extents),
            ChangeKind::Sparse => (0..1 + random % 4).map(|n| self.touch(mix(random ^ (n + 1)), version)).collect(),
            ChangeKind::Rewrite => {
                let count = self.regions.len() as u64;
                let which = |n| self.regions.get((mix(random ^ n) % count) as usize).cloned();
                (0..1 + random % 3).filter_map(which).map(|region| CellChange::Write(0, region, version)).collect()
            }
            ChangeKind::Shrink => self.shrink(random, version, extents),
            ChangeKind::Links => self.come_and_go(random, version, extents),
        }
    }

    fn append(&self, random: u64, extents: &[Vec<u64>]) -> Vec<CellChange> {
        let (Some(extent), [limit, row @ ..]) = (extents.first(), &*self.limit()) else { return Vec::new() };
        let first = extent.first().copied().unwrap_or(0);
        let rows = if random.is_multiple_of(16) { 30 } else { 1 + random % 3 };
        let rows = rows.min(limit.saturating_sub(first));
        let (mut start, mut count) = (vec![0; row.len() + 1], vec![rows]);
        start.first_mut().into_iter().for_each(|start| *start = first);
        count.extend(row);
        if rows == 0 { Vec::new() } else { vec![CellChange::Append(0, Region { start, count })] }
    }

    fn grow(&self, random: u64, extents: &[Vec<u64>]) -> Vec<CellChange> {
        let limit = self.limit();
        let Some((dataset, old)) = extents.iter().enumerate().find(|(_, extent)| **extent != limit) else {
            return Vec::new();
        };
        let mut new = old.clone();
        for (dim, (side, limit)) in new.iter_mut().zip(&limit).enumerate() {
            if old.contains(&0) || *side < *limit && (random >> dim) & 1 == 1 {
                *side = (*side + 1 + (random >> (8 + dim)) % 3).min(*limit);
            }
        }
        let mut changes = vec![CellChange::Extent(dataset, new.clone())];
        changes.extend(added(old, &new).into_iter().map(|region| CellChange::Write(dataset, region, 1)));
        changes
    }

    fn touch(&self, random: u64, version: u32) -> CellChange {
        let none = Region::new(&self.dims, &self.dims);
        let window = self.regions.get((random % self.regions.len().max(1) as u64) as usize).unwrap_or(&none);
        let mut region = window.clone();
        for (dim, (start, count)) in region.start.iter_mut().zip(&mut region.count).enumerate() {
            let random = mix(random ^ (dim as u64 + 100));
            let length = 1 + random % (*count).min(20);
            *start += (random >> 16) % (*count - length + 1);
            *count = length;
        }
        CellChange::Write(0, region, version)
    }

    fn shrink(&self, random: u64, version: u32, extents: &[Vec<u64>]) -> Vec<CellChange> {
        let limit = self.limit();
        let Some(old) = extents.first() else { return Vec::new() };
        if *old == limit || (random % 8 == 7 && !old.contains(&0)) {
            let smaller = |(dim, side): (usize, &u64)| (random >> (8 * (dim + 1))) % (side + 1);
            return vec![CellChange::Extent(0, old.iter().enumerate().map(smaller).collect())];
        }
        let step = |limit: u64, dim: usize| 1 + (random >> (8 * (dim + 1))) % (limit / 16).max(1);
        let sides = old.iter().zip(&limit).enumerate();
        let new: Vec<u64> = sides.map(|(dim, (side, limit))| (side + step(*limit, dim)).min(*limit)).collect();
        let mut changes = vec![CellChange::Extent(0, new.clone())];
        changes.extend(added(old, &new).into_iter().map(|region| CellChange::Write(0, region, version)));
        changes
    }

    /// Datasets come if they are not there, and go if they are.
    fn come_and_go(&self, random: u64, version: u32, extents: &[Vec<u64>]) -> Vec<CellChange> {
        let change = |number: usize| match extents.get(number) {
            Some(extent) if extent.contains(&0) => CellChange::Create(number, version),
            _ => CellChange::Unlink(number),
        };
        link_names::draw_datasets(random).into_iter().map(change).collect()
    }

    /// The plan for a reader in another language.
    pub fn json(&self) -> serde_json::Value {
        let regions: Vec<_> = self.regions.iter().map(|region| json!([region.start, region.count])).collect();
        json!({
            "names": self.names,
            "strides": self.strides,
            "regions": regions,
            "shrinks": self.cell.work == ChangeKind::Shrink,
            "links": self.cell.work == ChangeKind::Links,
        })
    }
}

/// The blocks by which one extent is larger than another.
pub fn added(old: &[u64], new: &[u64]) -> Vec<Region> {
    let mut blocks = Vec::new();
    for (dim, (before, after)) in old.iter().zip(new).enumerate() {
        // Along the dimensions before this one what was there already, behind it all that is there now.
        let count = old.iter().zip(new).enumerate().map(|(d, (old, new))| match d.cmp(&dim) {
            std::cmp::Ordering::Less => *old.min(new),
            std::cmp::Ordering::Equal => after.saturating_sub(*before),
            std::cmp::Ordering::Greater => *new,
        });
        let count: Vec<_> = count.collect();
        let mut start = vec![0; old.len()];
        start.get_mut(dim).into_iter().for_each(|start| *start = *before);
        if !count.contains(&0) {
            blocks.push(Region { start, count });
        }
    }
    blocks
}

/// The chunks of an extent.
fn chunks(dims: &[u64], chunk: &[u64]) -> Vec<Region> {
    let counts: Vec<_> = dims.iter().zip(chunk).map(|(dim, chunk)| dim / chunk).collect();
    let mut found = Vec::new();
    Region::new(&vec![0; dims.len()], &counts).for_each(|at| {
        let start: Vec<_> = at.iter().zip(chunk).map(|(at, chunk)| at * chunk).collect();
        found.push(Region::new(&start, chunk));
    });
    found
}

/// Places all over an extent, powers of two on each side.
fn windows(dims: &[u64]) -> Vec<Region> {
    let side = if dims.len() == 1 { WINDOW_ELEMENTS } else { 16 };
    let counts: Vec<_> = dims.iter().map(|dim| dim / side).collect();
    let all: u64 = counts.iter().product();
    let place = |number: u64| {
        let slot = number * 1597 % all;
        let at = if let [_, second] = *counts { vec![slot / second, slot % second] } else { vec![slot] };
        let start: Vec<_> = at.iter().map(|at| at * side).collect();
        Region::new(&start, &vec![side; dims.len()])
    };
    (0..WINDOWS.min(all)).map(place).collect()
}

/// The contents of a file: extents, and the version of each element that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileModel {
    /// The extent of each dataset; zeros if it is not there.
    pub extents: Vec<Vec<u64>>,
    /// The version of each element of the regions, one region after the other; 0 for fill values.
    pub versions: Vec<Vec<u32>>,
}

impl FileModel {
    /// Empty datasets, or none.
    pub fn empty(plan: &CellPlan) -> FileModel {
        FileModel {
            extents: vec![vec![0; plan.dims.len()]; plan.names.len()],
            versions: plan.regions.iter().map(|region| vec![0; region.element_count() as usize]).collect(),
        }
    }

    /// The contents of a file before the first step.
    pub fn initial(plan: &CellPlan) -> FileModel {
        let mut model = FileModel::empty(plan);
        if plan.cell.work != ChangeKind::Links {
            model.extents.fill(plan.dims.clone());
        }
        plan.initial_changes().iter().for_each(|change| model.apply(plan, change));
        model
    }

    /// Makes a change.
    pub fn apply(&mut self, plan: &CellPlan, change: &CellChange) {
        match change {
            CellChange::Append(dataset, region) => {
                let ends = region.start.iter().zip(&region.count).map(|(start, count)| start + count);
                self.extents.get_mut(*dataset).into_iter().for_each(|extent| *extent = ends.clone().collect());
            }
            CellChange::Extent(dataset, dims) => {
                let Some(extent) = self.extents.get_mut(*dataset) else { return };
                let old = std::mem::replace(extent, dims.clone());
                added(dims, &old).iter().for_each(|block| self.set(plan, block, 0));
            }
            CellChange::Write(_, region, version) => self.set(plan, region, *version),
            CellChange::Create(dataset, version) => self.set_whole(*dataset, &plan.dims, *version),
            CellChange::Unlink(dataset) => self.set_whole(*dataset, &vec![0; plan.dims.len()], 0),
        }
    }

    /// Sets the extent of a dataset that comes and goes, and the version of all of its elements.
    fn set_whole(&mut self, dataset: usize, extent: &[u64], version: u32) {
        self.extents.get_mut(dataset).into_iter().for_each(|old| *old = extent.to_vec());
        self.versions.get_mut(dataset).into_iter().for_each(|old| old.fill(version));
    }

    fn set(&mut self, plan: &CellPlan, block: &Region, version: u32) {
        for (region, versions) in plan.regions.iter().zip(&mut self.versions) {
            let Some(both) = region.intersection(block) else { continue };
            both.for_each(|at| {
                versions.get_mut(region.slot(at)).into_iter().for_each(|slot| *slot = version);
            });
        }
    }

    /// A number that stands for the whole state. Another state has another number.
    pub fn digest(&self) -> u64 {
        let versions = self.versions.iter().flatten().map(|version| u64::from(*version));
        self.extents.iter().flatten().copied().chain(versions).fold(1, |state, n| mix(state ^ n))
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::{ElementKind, FilterChoice};
    use super::*;

    fn plan(index: IndexChoice, work: ChangeKind) -> CellPlan {
        CellPlan::new(MatrixCell { index, work, filter: FilterChoice::None, kind: ElementKind::Fixed }, 1)
    }

    fn plans() -> Vec<CellPlan> {
        let sensible = MatrixCell::all(&[], &[], &[FilterChoice::None], &[ElementKind::Fixed]);
        sensible
            .into_iter()
            .filter(|cell| cell.impossible_reason().is_none())
            .map(|cell| CellPlan::new(cell, 5))
            .collect()
    }

    #[test]
    fn changes_stay_within_the_extent_and_the_maximum() {
        for plan in plans() {
            let mut model = FileModel::initial(&plan);
            for step in 0..300 {
                for change in plan.changes(step, &model.extents) {
                    model.apply(&plan, &change);
                    let (CellChange::Append(dataset, region) | CellChange::Write(dataset, region, _)) = change else {
                        continue;
                    };
                    let extent = &model.extents[dataset];
                    assert_eq!(region.clip(extent).as_ref(), Some(&region), "{}: {extent:?}", plan.cell);
                }
                let fits = |extent: &Vec<u64>| extent.iter().zip(&plan.max).all(|(n, max)| n <= max);
                assert!(model.extents.iter().all(fits), "{}", plan.cell);
            }
            assert_ne!(model, FileModel::initial(&plan), "{}: nothing has changed", plan.cell);
        }
    }

    #[test]
    fn every_element_of_a_dataset_that_grows_is_written_once() {
        let plan = plan(IndexChoice::Btree2, ChangeKind::Grow);
        let mut model = FileModel::initial(&plan);
        let mut written = std::collections::HashSet::new();
        for step in 0..60 {
            for change in plan.changes(step, &model.extents) {
                model.apply(&plan, &change);
                if let CellChange::Write(dataset, region, 1) = change {
                    region.for_each(|at| assert!(written.insert(plan.element_id(dataset, at))));
                }
            }
        }
        let elements: u64 = model.extents.iter().map(|extent| extent.iter().product::<u64>()).sum();
        assert!(elements > 100 && written.len() as u64 == elements);
    }

    #[test]
    fn elements_have_numbers_of_their_own() {
        for plan in plans() {
            let mut seen = std::collections::HashSet::new();
            for (number, region) in plan.regions.iter().enumerate() {
                let dataset = plan.dataset_of_region(number);
                region.clip(&plan.max).unwrap().for_each(|at| assert!(seen.insert(plan.element_id(dataset, at))));
            }
            assert!(seen.iter().all(|place| place.element < 1 << 24), "{}", plan.cell);
        }
    }

    #[test]
    fn extents_go_down_and_up() {
        let plan = plan(IndexChoice::ExtensibleArray, ChangeKind::Shrink);
        let mut model = FileModel::initial(&plan);
        let (mut up, mut down) = (0, 0);
        for step in 0..100 {
            let before = model.extents[0][0];
            plan.changes(step, &model.extents).iter().for_each(|change| model.apply(&plan, change));
            up += u32::from(model.extents[0][0] > before);
            down += u32::from(model.extents[0][0] < before);
        }
        assert!(up > 20 && down > 5, "{up} {down}");
    }
}
