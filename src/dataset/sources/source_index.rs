//! The sources of a virtual dataset, found by the place of their elements.

use std::sync::Arc;

use h5live_model::{DatasetSpec, Layout, Selection, UNLIMITED, VirtualSource};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::dataset::spec_snapshot::SpecSnapshot;
use crate::dims::CoreDims;

/// Boxes that stand together in a larger one.
const BOXES_PER_NODE: usize = 16;

/// A box of indices: from `lo` to before `hi` (`[rank]`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct IndexBox {
    lo: CoreDims,
    hi: CoreDims,
}

impl IndexBox {
    /// The box around the elements of a selection, as far as they are known without an extent; `None` if it has no elements
    /// of `rank` dimensions.
    fn around(selection: &Selection, rank: usize) -> Option<IndexBox> {
        let dims = |n: u64| SmallVec::from_elem(n, rank);
        let empty = IndexBox { lo: dims(u64::MAX), hi: dims(0) };
        let found = match selection {
            _ if selection.rank().is_some_and(|found| found != rank) => empty,
            Selection::None => empty,
            Selection::All => IndexBox { lo: dims(0), hi: dims(u64::MAX) },
            Selection::Hyperslab(slab) => {
                let end = |dim: usize| match (slab.start[dim], slab.count[dim], slab.block[dim]) {
                    (_, 0, _) | (_, _, 0) => 0,
                    (_, UNLIMITED, _) | (_, _, UNLIMITED) => u64::MAX,
                    (start, count, block) => {
                        (count - 1).saturating_mul(slab.stride[dim]).saturating_add(start).saturating_add(block)
                    }
                };
                IndexBox { lo: slab.start.clone(), hi: (0..rank).map(end).collect() }
            }
            Selection::Blocks(blocks) => blocks.iter().fold(empty, |mut around, block| {
                let hi = block.start.iter().zip(&block.count).map(|(start, n)| start.saturating_add(*n)).collect();
                around.grow(&IndexBox { lo: block.start.clone(), hi });
                around
            }),
            Selection::Points(points) => points.iter().fold(empty, |mut around, point| {
                let hi = point.iter().map(|index| index.saturating_add(1)).collect();
                around.grow(&IndexBox { lo: point.clone(), hi });
                around
            }),
        };
        found.lo.iter().zip(&found.hi).all(|(lo, hi)| lo < hi).then_some(found)
    }

    fn grow(&mut self, other: &IndexBox) {
        self.lo.iter_mut().zip(&other.lo).for_each(|(lo, other)| *lo = (*lo).min(*other));
        self.hi.iter_mut().zip(&other.hi).for_each(|(hi, other)| *hi = (*hi).max(*other));
    }

    fn meets(&self, lo: &[u64], hi: &[u64]) -> bool {
        self.lo.iter().zip(hi).all(|(lo, hi)| lo < hi) && self.hi.iter().zip(lo).all(|(hi, lo)| hi > lo)
    }
}

/// The boxes around the sources in row-major order of their first indices, and above them the boxes around
/// [`BOXES_PER_NODE`] of them each, up to one: what lies in a place is found by as many steps as there are levels.
#[derive(Debug, Default)]
struct SourceIndex {
    /// The first level has a box for each source that has elements.
    levels: Vec<Vec<IndexBox>>,
    /// The places of these sources in the list of the dataset.
    sources: Vec<usize>,
}

impl SourceIndex {
    fn new(sources: &[VirtualSource], rank: usize) -> Self {
        let around = |(at, source): (usize, &VirtualSource)| Some((IndexBox::around(&source.target, rank)?, at));
        let mut boxes: Vec<(IndexBox, usize)> = sources.iter().enumerate().filter_map(around).collect();
        boxes.sort_unstable();
        let (mut level, sources): (Vec<IndexBox>, Vec<usize>) = boxes.into_iter().unzip();
        let mut levels = Vec::new();
        while level.len() > BOXES_PER_NODE {
            let above = level.chunks(BOXES_PER_NODE).map(|boxes| {
                let mut around = boxes[0].clone();
                boxes[1..].iter().for_each(|other| around.grow(other));
                around
            });
            let above = above.collect();
            levels.push(std::mem::replace(&mut level, above));
        }
        levels.push(level);
        SourceIndex { levels, sources }
    }

    /// The places of the sources that may have elements between `lo` and `hi`, in the order of the list.
    fn between(&self, lo: &[u64], hi: &[u64]) -> Vec<usize> {
        let top = self.levels.last().map_or(0, Vec::len);
        let mut found: Vec<usize> = (0..top).collect();
        for (depth, level) in self.levels.iter().enumerate().rev() {
            found.retain(|at| level[*at].meets(lo, hi));
            if let Some(below) = depth.checked_sub(1).map(|below| self.levels[below].len()) {
                let boxes = |at: usize| at * BOXES_PER_NODE..((at + 1) * BOXES_PER_NODE).min(below);
                found = found.into_iter().flat_map(boxes).collect();
            }
        }
        found.iter_mut().for_each(|at| *at = self.sources[*at]);
        found.sort_unstable();
        found
    }
}

/// The index of the sources of one virtual dataset, made when it is read first.
#[derive(Debug, Default)]
pub(super) struct CachedSourceIndex(Mutex<Option<(Arc<DatasetSpec>, Arc<SourceIndex>)>>);

impl CachedSourceIndex {
    /// The places of the sources of `view` that may have elements between `lo` and `hi`, in the order of the list.
    pub(super) fn between(&self, view: &SpecSnapshot, (lo, hi): (&[u64], &[u64])) -> Vec<usize> {
        self.index(view).between(lo, hi)
    }

    fn index(&self, view: &SpecSnapshot) -> Arc<SourceIndex> {
        let mut known = self.0.lock();
        if let Some((of, index)) = &*known
            && (Arc::ptr_eq(of, &view.spec) || of.layout == view.spec.layout)
        {
            return Arc::clone(index);
        }
        let sources = if let Layout::Virtual(sources) = &view.spec.layout { &sources[..] } else { &[] };
        let index = Arc::new(SourceIndex::new(sources, view.extent.len()));
        *known = Some((Arc::clone(&view.spec), Arc::clone(&index)));
        index
    }
}

#[cfg(test)]
mod tests {
    use h5live_model::{Block, Hyperslab};
    use proptest::prelude::*;

    use super::*;

    const EXTENT: u64 = 12;

    fn dims() -> impl Strategy<Value = CoreDims> {
        proptest::collection::vec(0..EXTENT, 2).prop_map(CoreDims::from_vec)
    }

    fn targets() -> impl Strategy<Value = Selection> {
        let slab =
            (dims(), 1..4u64, 0..4u64, 1..3u64, any::<bool>()).prop_map(|(start, stride, count, block, is_open)| {
                let count = if is_open { [count, UNLIMITED] } else { [count, count] };
                let (stride, block) = (SmallVec::from_elem(stride.max(block), 2), SmallVec::from_elem(block, 2));
                Selection::Hyperslab(Hyperslab { start, stride, count: SmallVec::from_slice(&count), block })
            });
        let block = (dims(), 0..4u64).prop_map(|(start, n)| Block { start, count: SmallVec::from_elem(n, 2) });
        prop_oneof![
            1 => Just(Selection::All),
            1 => Just(Selection::None),
            1 => Just(Selection::block(&[1], &[1])),
            20 => slab,
            4 => proptest::collection::vec(block, 1..4).prop_map(Selection::Blocks),
            4 => proptest::collection::vec(dims(), 0..4).prop_map(Selection::Points),
        ]
    }

    proptest! {
        /// Each source whose box meets the place is found, in order, and no other.
        #[test]
        fn sources_are_found_as_by_a_search_of_all(
            targets in proptest::collection::vec(targets(), 0..400), lo in dims(), size in 1..5u64,
        ) {
            let hi: CoreDims = lo.iter().map(|lo| lo + size).collect();
            let source = |target| VirtualSource {
                file: ".".into(), dataset: "x".into(), source: Selection::All, target,
            };
            let sources: Vec<VirtualSource> = targets.into_iter().map(source).collect();
            let all = sources.iter().enumerate().filter(|(_, source)| {
                IndexBox::around(&source.target, 2).is_some_and(|around| around.meets(&lo, &hi))
            });
            prop_assert_eq!(SourceIndex::new(&sources, 2).between(&lo, &hi), all.map(|(at, _)| at).collect::<Vec<_>>());
        }

        /// No element of a selection is outside of its box.
        #[test]
        fn the_box_around_a_selection_has_its_elements(target in targets()) {
            let Ok(bound) = target.bind(&[2 * EXTENT, 3 * EXTENT]) else { return Ok(()) };
            let Some((lo, hi)) = bound.bounds() else { return Ok(()) };
            let around = IndexBox::around(&target, 2).expect("it has elements");
            prop_assert!(around.lo.iter().zip(&lo).all(|(around, lo)| around <= lo));
            prop_assert!(around.hi.iter().zip(&hi).all(|(around, hi)| around >= hi));
        }
    }

    #[test]
    fn a_tile_among_many_is_found_by_few_steps() {
        let tile = |at: u64| Selection::block(&[at / 100 * 8, at % 100 * 8], &[8, 8]);
        let source =
            |at| VirtualSource { file: ".".into(), dataset: "x".into(), source: Selection::All, target: tile(at) };
        let sources: Vec<VirtualSource> = (0..10_000).map(source).collect();
        let index = SourceIndex::new(&sources, 2);
        assert_eq!(index.levels.len(), 4);
        assert_eq!(index.between(&[80, 160], &[88, 168]), [1020]);
        assert_eq!(index.between(&[80, 160], &[89, 169]), [1020, 1021, 1120, 1121]);
    }
}
