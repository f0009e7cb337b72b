//! Selections at work: checked against an extent, cut into chunks, and turned into runs of elements.

mod axis_walk;
mod blocks;
mod combine;
#[cfg(test)]
mod combine_tests;
mod error;
mod index_list;
mod pattern;
mod points;
#[cfg(test)]
mod product_tests;
mod regular;
mod runs;
mod spans;
mod strides;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use blocks::{split_run_into_blocks, strided_runs_as_block};
pub use error::SelectionError;
pub use runs::{ElementRun, StridedRuns};
pub(crate) use strides::{SelectDims, row_major_strides};

use smallvec::SmallVec;

use crate::{Block, ChunkCoord, ChunkGrid, DimIndices, Hyperslab, MAX_RANK, Selection};
use regular::RegularSelection;
use spans::SpanTree;

/// A selection that fits an extent. Its elements have an order, in which they fill a destination: row-major,
/// except for points, which keep the order given.
#[derive(Debug, Clone)]
pub struct BoundSelection {
    extent: SelectDims,
    elements: u64,
    kind: BoundKind,
}

#[derive(Debug, Clone)]
enum BoundKind {
    Regular(RegularSelection),
    Spans(SpanTree),
    Points(Vec<SelectDims>),
}

impl Selection {
    /// Checks the selection against an extent (`[rank]`, elements). Counts and blocks of
    /// [`UNLIMITED`](crate::UNLIMITED) reach to the end of the extent.
    ///
    /// # Errors
    /// [`SelectionError`].
    pub fn bind(&self, extent: &[u64]) -> Result<BoundSelection, SelectionError> {
        let rank = extent.len();
        if rank > MAX_RANK {
            return Err(SelectionError::TooManyDimensions(rank));
        }
        let kind = match self {
            Selection::All => return BoundSelection::of_regular(RegularSelection::all(extent), extent),
            Selection::Hyperslab(slab) => {
                return BoundSelection::of_regular(RegularSelection::new(slab, extent)?, extent);
            }
            Selection::None => BoundKind::Points(Vec::new()),
            Selection::Blocks(blocks) => {
                blocks.iter().try_for_each(|block| check_block(block, extent))?;
                BoundKind::Spans(SpanTree::new(blocks, rank)?)
            }
            Selection::Points(points) => {
                points.iter().try_for_each(|point| check_point(point, extent))?;
                BoundKind::Points(points.clone())
            }
        };
        let elements = match &kind {
            BoundKind::Regular(regular) => regular.element_count()?,
            BoundKind::Spans(spans) => spans.element_count(),
            BoundKind::Points(points) => points.len() as u64,
        };
        Ok(BoundSelection { extent: SelectDims::from_slice(extent), elements, kind })
    }

    /// As [`Selection::bind`], without a copy of the points.
    ///
    /// # Errors
    /// As [`Selection::bind`].
    #[inline]
    pub fn into_bound(self, extent: &[u64]) -> Result<BoundSelection, SelectionError> {
        let Selection::Points(points) = self else { return self.bind(extent) };
        let none = Selection::None.bind(extent)?;
        points.iter().try_for_each(|point| check_point(point, extent))?;
        Ok(BoundSelection { elements: points.len() as u64, kind: BoundKind::Points(points), ..none })
    }
}

impl DimIndices {
    /// Checks the product of the indices of each dimension (`[rank]`) against an extent (`[rank]`, elements). Its elements
    /// fill a destination in the order of the indices, the last dimension first.
    ///
    /// # Errors
    /// [`SelectionError`].
    pub fn bind_product(dims: &[DimIndices], extent: &[u64]) -> Result<BoundSelection, SelectionError> {
        if extent.len() > MAX_RANK {
            return Err(SelectionError::TooManyDimensions(extent.len()));
        }
        BoundSelection::of_regular(RegularSelection::product(dims, extent)?, extent)
    }
}

impl Hyperslab {
    pub(crate) fn check_rank(&self, extent: &[u64]) -> Result<(), SelectionError> {
        let ranks = [self.start.len(), self.stride.len(), self.count.len(), self.block.len()];
        match ranks.into_iter().find(|rank| *rank != extent.len()) {
            Some(selection) => Err(SelectionError::RankMismatch { selection, extent: extent.len() }),
            None => Ok(()),
        }
    }
}

fn check_block(block: &Block, extent: &[u64]) -> Result<(), SelectionError> {
    for rank in [block.start.len(), block.count.len()] {
        if rank != extent.len() {
            return Err(SelectionError::RankMismatch { selection: rank, extent: extent.len() });
        }
    }
    let bounds = block.start.iter().zip(&block.count).zip(extent).enumerate();
    for (dim, ((start, count), extent)) in bounds {
        let end = start.saturating_add(*count);
        if end > *extent {
            return Err(SelectionError::ExceedsExtent { dim, end, extent: *extent });
        }
    }
    Ok(())
}

fn check_point(point: &[u64], extent: &[u64]) -> Result<(), SelectionError> {
    if point.len() != extent.len() {
        return Err(SelectionError::RankMismatch { selection: point.len(), extent: extent.len() });
    }
    match point.iter().zip(extent).position(|(at, extent)| at >= extent) {
        Some(dim) => Err(SelectionError::ExceedsExtent { dim, end: point[dim].saturating_add(1), extent: extent[dim] }),
        None => Ok(()),
    }
}

impl BoundSelection {
    #[inline]
    fn of_regular(regular: RegularSelection, extent: &[u64]) -> Result<Self, SelectionError> {
        let elements = regular.element_count()?;
        Ok(BoundSelection { extent: SelectDims::from_slice(extent), elements, kind: BoundKind::Regular(regular) })
    }

    /// The chunk that has all elements of a hyperslab, and the box there that they are, if they are one, row-major. Its
    /// start counts from that of the chunk.
    pub fn single_chunk_block(&self, grid: &ChunkGrid) -> Option<(ChunkCoord, Block)> {
        match &self.kind {
            BoundKind::Regular(regular) if self.elements > 0 => regular.single_chunk_block(grid),
            _ => None,
        }
    }

    /// The number of elements.
    pub fn element_count(&self) -> u64 {
        self.elements
    }

    /// The extent that the selection was checked against (`[rank]`, elements).
    pub fn extent(&self) -> &[u64] {
        &self.extent
    }

    /// The shape that the elements fill (elements): that of the extent's rank for hyperslabs, one dimension for
    /// points and unions.
    pub fn dims(&self) -> SmallVec<[u64; 4]> {
        match &self.kind {
            BoundKind::Regular(regular) => regular.dims(),
            _ => SmallVec::from_slice(&[self.elements]),
        }
    }

    /// Whether the elements are the whole extent, in its order.
    pub fn is_all(&self) -> bool {
        let whole = self.extent.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
        let is_in_order = match &self.kind {
            BoundKind::Regular(regular) => !regular.has_list(),
            BoundKind::Spans(_) => true,
            BoundKind::Points(_) => false,
        };
        is_in_order && whole == Some(self.elements)
    }

    /// The smallest box that has all elements: its first indices, and one past its last ones (`[rank]`). `None` if
    /// there are no elements.
    pub fn bounds(&self) -> Option<(SelectDims, SelectDims)> {
        if self.elements == 0 {
            return None;
        }
        let (mut lo, mut hi) = (self.extent.clone(), SelectDims::from_elem(0, self.extent.len()));
        match &self.kind {
            BoundKind::Regular(regular) => return Some(regular.bounds()),
            BoundKind::Spans(spans) => spans.grow_box(&mut lo, &mut hi),
            BoundKind::Points(points) => {
                for (dim, at) in points.iter().flat_map(|point| point.iter().enumerate()) {
                    (lo[dim], hi[dim]) = (lo[dim].min(*at), hi[dim].max(*at + 1));
                }
            }
        }
        Some((lo, hi))
    }

    /// Of two selections whose elements stand for each other in their order: those of the first one that lie in a box
    /// (from `lo` to before `hi`, both `[rank]`), and those of the second one that they stand for.
    ///
    /// `None` if both are not hyperslabs of the same shape. Dimensions of one element do not count, and where one of
    /// the two has more at its end, that is left out.
    pub fn restrict(&self, other: &BoundSelection, lo: &[u64], hi: &[u64]) -> Option<(BoundSelection, BoundSelection)> {
        let (BoundKind::Regular(ours), BoundKind::Regular(theirs)) = (&self.kind, &other.kind) else { return None };
        let (ours, theirs) = ours.restrict(theirs, lo, hi)?;
        let (our_elements, their_elements) = (ours.element_count().ok()?, theirs.element_count().ok()?);
        let ours =
            BoundSelection { extent: self.extent.clone(), elements: our_elements, kind: BoundKind::Regular(ours) };
        let theirs =
            BoundSelection { extent: other.extent.clone(), elements: their_elements, kind: BoundKind::Regular(theirs) };
        (our_elements == their_elements).then_some((ours, theirs))
    }

    /// Calls `each` with the places here and there of the elements that two selections of one extent share: runs of
    /// `(place here, place there, elements)`. The other one has no element twice.
    pub fn for_each_shared(&self, other: &BoundSelection, mut each: impl FnMut(u64, u64, u64)) {
        let mut theirs = Vec::new();
        other.for_each_run(|run| theirs.push(run));
        theirs.sort_unstable_by_key(|run| run.offset_in_chunk);
        self.for_each_run(|run| {
            let end = run.offset_in_chunk + run.len;
            let first = theirs.partition_point(|other| other.offset_in_chunk + other.len <= run.offset_in_chunk);
            for other in theirs[first..].iter().take_while(|other| other.offset_in_chunk < end) {
                let (from, to) =
                    (run.offset_in_chunk.max(other.offset_in_chunk), end.min(other.offset_in_chunk + other.len));
                each(
                    run.offset_in_selection + (from - run.offset_in_chunk),
                    other.offset_in_selection + (from - other.offset_in_chunk),
                    to - from,
                );
            }
        });
    }

    /// Cuts the selection by the chunks of a grid of the same rank.
    pub fn split_by_chunks<'a>(&'a self, grid: &'a ChunkGrid) -> ChunkSplit<'a> {
        let order = match &self.kind {
            BoundKind::Points(points) => points::sort_by_chunk(points, grid, &self.extent),
            _ => Vec::new(),
        };
        ChunkSplit { selected: self, grid, order }
    }

    /// Calls `each` with the runs of elements in the whole extent, as if it were one chunk, in order; of lists of indices
    /// in row-major order.
    pub fn for_each_run(&self, mut each: impl FnMut(ElementRun)) {
        if self.elements == 0 {
            return;
        }
        let Some(grid) = ChunkGrid::new(&self.extent) else { return };
        let origin = ChunkCoord::origin(self.extent.len());
        match &self.kind {
            BoundKind::Points(points) => (0..points.len()).for_each(|i| points::emit_run(points, i, &grid, &mut each)),
            BoundKind::Regular(regular) => {
                regular.for_each_strided(&grid, &origin, &mut |strided| strided.runs().for_each(&mut each));
            }
            BoundKind::Spans(spans) => spans.for_each_run(&grid, &origin, &mut each),
        }
    }
}

/// A selection cut by a grid of chunks.
#[derive(Debug)]
pub struct ChunkSplit<'a> {
    selected: &'a BoundSelection,
    grid: &'a ChunkGrid,
    /// The points, chunk by chunk.
    order: Vec<points::ChunkPoint>,
}

impl ChunkSplit<'_> {
    /// The chunks that have elements of the selection, in row-major order of the grid.
    pub fn chunks(&self) -> impl Iterator<Item = ChunkCoord> + '_ {
        let chunks: Box<dyn Iterator<Item = ChunkCoord>> = match &self.selected.kind {
            _ if self.selected.elements == 0 => Box::new(std::iter::empty()),
            BoundKind::Regular(regular) => Box::new(regular.chunks(self.grid)),
            BoundKind::Spans(spans) => Box::new(spans.chunks(self.grid)),
            BoundKind::Points(points) => Box::new(points::chunks_of_points(points, &self.order, self.grid)),
        };
        chunks
    }

    /// The chunk that has all elements of a hyperslab, and their run, if it is one of each.
    pub fn single_chunk_run(&self) -> Option<(ChunkCoord, ElementRun)> {
        match &self.selected.kind {
            BoundKind::Regular(regular) if self.selected.elements > 0 => regular.single_chunk_run(self.grid),
            _ => None,
        }
    }

    /// The selected elements of a chunk, if they are one run.
    pub fn single_run(&self, chunk: &ChunkCoord) -> Option<ElementRun> {
        if let (BoundKind::Regular(regular), true) = (&self.selected.kind, self.selected.elements > 0) {
            return regular.single_run(self.grid, chunk);
        }
        let (mut first, mut runs) = (None, 0u64);
        self.for_each_run(chunk, |run| {
            first.get_or_insert(run);
            runs += 1;
        });
        first.filter(|_| runs == 1)
    }

    /// The places of the selected elements of all chunks that have the first `depth` coordinates of this one, if no
    /// others are between them; of one chunk alone, if they are in their order, too. `None` also if finding it out
    /// takes longer.
    pub fn dest_range(&self, chunk: &ChunkCoord, depth: usize) -> Option<Range<u64>> {
        if let (BoundKind::Regular(regular), true) = (&self.selected.kind, self.selected.elements > 0) {
            return regular.dest_range(self.grid, chunk, depth);
        }
        if depth < chunk.rank() {
            return None;
        }
        let (mut places, mut in_order) = (None::<Range<u64>>, true);
        self.for_each_run(chunk, |run| {
            let places = places.get_or_insert(run.offset_in_selection..run.offset_in_selection);
            in_order &= run.offset_in_selection == places.end;
            places.end = run.offset_in_selection + run.len;
        });
        places.filter(|_| in_order)
    }

    /// The number of selected elements of a chunk. An element that is selected several times counts once.
    pub fn distinct_elements_in(&self, chunk: &ChunkCoord) -> u64 {
        if let (BoundKind::Regular(regular), true) = (&self.selected.kind, chunk.rank() == self.grid.chunk_dims().len())
        {
            return regular.distinct_in(self.grid, chunk);
        }
        // Points come as they lie in the chunk, and boxes do not overlap.
        let (mut elements, mut end) = (0, 0);
        self.for_each_run(chunk, |run| {
            if run.offset_in_chunk >= end {
                elements += run.len;
                end = run.offset_in_chunk + run.len;
            }
        });
        elements
    }

    /// Calls `each` with the runs of elements in a chunk, in row-major order; points at one place in the order given.
    pub fn for_each_run(&self, chunk: &ChunkCoord, mut each: impl FnMut(ElementRun)) {
        self.for_each_strided(chunk, |strided| match strided {
            StridedRuns { first_run: run, count: 1, .. } => each(run),
            strided => strided.runs().for_each(&mut each),
        });
    }

    /// As [`for_each_run`](Self::for_each_run), with those that are equally far apart together.
    pub fn for_each_strided(&self, chunk: &ChunkCoord, mut each: impl FnMut(StridedRuns)) {
        if self.selected.elements == 0 || chunk.rank() != self.grid.chunk_dims().len() {
            return;
        }
        let each = &mut each;
        match &self.selected.kind {
            BoundKind::Regular(regular) => regular.for_each_strided(self.grid, chunk, each),
            BoundKind::Spans(spans) => spans.for_each_run(self.grid, chunk, &mut |run| each(run.into())),
            BoundKind::Points(points) => {
                points::for_each_run(points, &self.order, self.grid, chunk, &mut |run| each(run.into()));
            }
        }
    }
}
