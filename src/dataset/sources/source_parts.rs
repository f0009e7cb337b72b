//! Which elements of a virtual dataset are elements of which source.

use h5live_model::{BoundSelection, Selection, UNLIMITED, VirtualSource};

use super::block_names::{expand_block_name, is_numbered, nth_block, unlimited_dimension};
use crate::dataset::Dataset;
use crate::dataset::error::DatasetError;
use crate::dataset::spec_snapshot::SpecSnapshot;
use crate::dims::CoreDims;
use crate::error::ErrorKind;

/// Elements of a source that are read or written at a time (bytes).
const MAX_SOURCE_BATCH_BYTES: u64 = 16 << 20;

/// Why a source cannot be read whose elements cannot be told from each other.
const UNEQUAL_MAPPING: &str = "the virtual dataset maps another number of elements than the source has in this place";

/// Elements of the target of a piece that are compared one by one with those that are selected.
const MAX_COMPARED_ELEMENTS: u64 = 16 << 20;

/// Elements of a virtual dataset that are elements of a source, in the same order.
pub(super) struct SourcePart<'a> {
    pub(super) source: &'a Dataset,
    pub(super) source_view: &'a SpecSnapshot,
    /// Which elements of the source they are.
    pub(super) source_elements: &'a BoundSelection,
    /// Which elements of the virtual dataset they are.
    pub(super) elements: &'a BoundSelection,
}

/// Calls `each` with those of `sources` that are at `places`; of one with numbers in its name, with each of its blocks that
/// may have elements between `lo` and `hi`.
pub(super) fn for_each_piece(
    (sources, places): (&[VirtualSource], &[usize]),
    (lo, hi): (&[u64], &[u64]),
    mut each: impl FnMut(&VirtualSource) -> Result<(), DatasetError>,
) -> Result<(), DatasetError> {
    for source in places.iter().map(|at| &sources[*at]) {
        let numbers = is_numbered(&source.file) || is_numbered(&source.dataset);
        let numbered = |n: u64, target: Selection| VirtualSource {
            file: expand_block_name(&source.file, n),
            dataset: expand_block_name(&source.dataset, n),
            source: source.source.clone(),
            target,
        };
        match (&source.target, unlimited_dimension(&source.target)) {
            (Selection::Hyperslab(slab), Some(dim)) if numbers && dim < lo.len() => {
                let stride = slab.stride[dim].max(1);
                let block = |index: u64| index.saturating_sub(slab.start[dim]) / stride;
                for n in block(lo[dim])..=block(hi[dim].saturating_sub(1)) {
                    let Some(target) = nth_block(slab, dim, n) else { break };
                    each(&numbered(n, Selection::Hyperslab(target)))?;
                }
            }
            _ => each(&numbered(0, source.target.clone()))?,
        }
    }
    Ok(())
}

/// The elements of a piece within the extent, if some of them may lie between `lo` and `hi`.
pub(super) fn target_between(
    piece: &VirtualSource,
    view: &SpecSnapshot,
    (lo, hi): (&[u64], &[u64]),
) -> Option<BoundSelection> {
    // Elements outside of the extent do not exist.
    let target = clip_to_extent(&piece.target, &view.extent).bind(&view.extent).ok()?;
    let (from, to) = target.bounds()?;
    let is_apart = from.iter().zip(hi).any(|(from, hi)| from >= hi) || to.iter().zip(lo).any(|(to, lo)| to <= lo);
    (!is_apart).then_some(target)
}

/// Whether some selected elements are in the target of a piece, as far as that can be found out in reasonable time. `lo` and
/// `hi` are the bounds of what is selected.
pub(super) fn has_shared_elements(
    selected: &BoundSelection,
    target: &BoundSelection,
    (lo, hi): (&[u64], &[u64]),
) -> bool {
    let within = target.restrict(target, lo, hi).map(|(within, _)| within);
    let target = within.as_ref().unwrap_or(target);
    let is_block =
        lo.iter().zip(hi).try_fold(1u64, |n, (lo, hi)| n.checked_mul(hi - lo)) == Some(selected.element_count());
    if target.element_count() == 0 || is_block && within.is_some() || target.element_count() > MAX_COMPARED_ELEMENTS {
        return target.element_count() > 0;
    }
    let mut is_shared = false;
    selected.for_each_shared(target, |_, _, _| is_shared = true);
    is_shared
}

/// Calls `each` with the parts of a source that lie between `lo` and `hi`, each of bounded size.
pub(super) fn for_each_part(
    (piece, target): (&VirtualSource, &BoundSelection),
    (source, source_view): (&Dataset, &SpecSnapshot),
    (lo, hi): (&[u64], &[u64]),
    element_bytes: usize,
    mut each: impl FnMut(&SourcePart<'_>) -> Result<(), DatasetError>,
) -> Result<(), DatasetError> {
    let extent = &source_view.extent;
    let stands_for = clip_to_extent(&piece.source, extent).bind(extent);
    let stands_for = stands_for.map_err(|error| source.to_other_file_error(error.into()))?;
    let mut boxes: Vec<(CoreDims, CoreDims)> = vec![(lo.into(), hi.into())];
    while let Some((lo, hi)) = boxes.pop() {
        let restricted = target.restrict(&stands_for, &lo, &hi);
        let is_whole = restricted.is_none();
        let (elements, source_elements) = match restricted {
            Some(pair) => pair,
            None if target.element_count() == stands_for.element_count() => (target.clone(), stands_for.clone()),
            None => return Err(source.to_other_file_error(ErrorKind::InvalidSpec(UNEQUAL_MAPPING).into()).into()),
        };
        let bytes = elements.element_count().saturating_mul(source_view.size.max(element_bytes) as u64);
        let split = (0..lo.len()).find(|dim| hi[*dim] - lo[*dim] > 1 && elements.dims().get(*dim) > Some(&1));
        if let (Some(dim), true) = (split, bytes > MAX_SOURCE_BATCH_BYTES) {
            let middle = lo[dim] + (hi[dim] - lo[dim]) / 2;
            let (mut below, mut above) = (hi.clone(), lo.clone());
            (below[dim], above[dim]) = (middle, middle);
            boxes.extend([(above, hi), (lo, below)]);
            continue;
        }
        if elements.element_count() > 0 {
            each(&SourcePart { source, source_view, source_elements: &source_elements, elements: &elements })?;
        }
        if is_whole {
            break;
        }
    }
    Ok(())
}

/// New elements of some places among others.
pub(super) struct ElementRuns<'a> {
    /// The first place and the number of elements of each run.
    pub(super) runs: &'a [(usize, usize)],
    /// The elements of all runs, one after another.
    pub(super) bytes: &'a [u8],
    /// Bytes of an element.
    pub(super) size: usize,
}

impl ElementRuns<'_> {
    pub(super) fn copy_to(&self, elements: &mut [u8]) {
        let mut rest = self.bytes;
        for (first, len) in self.runs {
            let (run, after) = rest.split_at(len * self.size);
            elements[first * self.size..(first + len) * self.size].copy_from_slice(run);
            rest = after;
        }
    }
}

/// A hyperslab cut to an extent, as far as its counts and blocks allow.
fn clip_to_extent(selection: &Selection, extent: &[u64]) -> Selection {
    let Selection::Hyperslab(slab) = selection else { return selection.clone() };
    let mut slab = slab.clone();
    if slab.start.len() != extent.len() {
        return selection.clone();
    }
    for (dim, extent) in extent.iter().enumerate() {
        let (start, stride, block) = (slab.start[dim], slab.stride[dim].max(1), slab.block[dim]);
        let Some(room) = extent.checked_sub(start).filter(|room| *room > 0) else {
            slab.count[dim] = 0;
            continue;
        };
        if block == UNLIMITED {
            continue;
        }
        if slab.count[dim] == 1 {
            slab.block[dim] = block.min(room);
        } else if (room - 1) % stride + 1 >= block {
            // No block reaches over the end.
            slab.count[dim] = slab.count[dim].min((room - 1) / stride + 1);
        }
    }
    Selection::Hyperslab(slab)
}
