//! Regular hyperslabs: the same pattern in every row.

use std::ops::Range;

use smallvec::SmallVec;

use super::axis_walk::{AxisSelection, for_each_strided_run};
use super::pattern::Pattern;
use super::{ElementRun, SelectDims, SelectionError, StridedRuns, row_major_strides};
use crate::{Block, ChunkCoord, ChunkGrid, DimIndices, Hyperslab};

/// How the selected elements lie in a chunk.
struct ChunkOverlap {
    /// The first element of the chunk (`[rank]`).
    lo: SelectDims,
    /// The positions of the selected indices, for each dimension.
    positions: SmallVec<[Range<u64>; 4]>,
    /// Dimensions below this one are taken whole both from the chunk and by the destination: they only make its
    /// elements larger.
    inner: usize,
}

/// One pattern for each dimension.
#[derive(Debug, Clone)]
pub(super) struct RegularSelection {
    patterns: SmallVec<[Pattern; 3]>,
}

impl RegularSelection {
    pub(super) fn all(extent: &[u64]) -> Self {
        let pattern =
            |n: &u64| Pattern { start: 0, stride: (*n).max(1), block: (*n).max(1), skip: 0, len: *n, list: None };
        RegularSelection { patterns: extent.iter().map(pattern).collect() }
    }

    #[inline]
    pub(super) fn new(slab: &Hyperslab, extent: &[u64]) -> Result<Self, SelectionError> {
        slab.check_rank(extent)?;
        let pattern = |dim: usize| {
            Pattern::new(dim, slab.start[dim], slab.stride[dim], slab.count[dim], slab.block[dim], extent[dim])
        };
        let mut patterns = SmallVec::with_capacity(extent.len());
        for dim in 0..extent.len() {
            patterns.push(pattern(dim)?);
        }
        Ok(RegularSelection { patterns })
    }

    /// The product of the indices of each dimension.
    pub(super) fn product(dims: &[DimIndices], extent: &[u64]) -> Result<Self, SelectionError> {
        if dims.len() != extent.len() {
            return Err(SelectionError::RankMismatch { selection: dims.len(), extent: extent.len() });
        }
        let pattern = |(dim, (indices, extent)): (usize, (&DimIndices, &u64))| match indices {
            DimIndices::List(indices) => Pattern::of_list(dim, indices, *extent),
            DimIndices::StridedBlocks { start, stride, count, block } => {
                Pattern::new(dim, *start, *stride, *count, *block, *extent)
            }
        };
        Ok(RegularSelection { patterns: dims.iter().zip(extent).enumerate().map(pattern).collect::<Result<_, _>>()? })
    }

    /// Whether the indices of a dimension are a list that no pattern says.
    pub(super) fn has_list(&self) -> bool {
        self.patterns.iter().any(|pattern| pattern.list.is_some())
    }

    pub(super) fn dims(&self) -> SelectDims {
        self.patterns.iter().map(|pattern| pattern.len).collect()
    }

    pub(super) fn element_count(&self) -> Result<u64, SelectionError> {
        if self.patterns.iter().any(|pattern| pattern.len == 0) {
            return Ok(0);
        }
        let product = self.patterns.iter().try_fold(1u64, |n, pattern| n.checked_mul(pattern.len));
        product.ok_or(SelectionError::ElementCountOverflow)
    }

    /// How the selected elements lie in a chunk; `None` if there are none.
    fn chunk_overlap(&self, grid: &ChunkGrid, chunk: &ChunkCoord) -> Option<ChunkOverlap> {
        let lo = grid.start_of(chunk);
        let mut positions: SmallVec<[Range<u64>; 4]> = SmallVec::with_capacity(self.patterns.len());
        for ((pattern, lo), size) in self.patterns.iter().zip(&lo).zip(grid.chunk_dims()) {
            let range = pattern.positions_in(*lo, lo.saturating_add(*size));
            if range.is_empty() {
                return None;
            }
            positions.push(range);
        }
        let mut inner = self.patterns.len().saturating_sub(1);
        while inner > 0 {
            let (pattern, range) = (&self.patterns[inner], &positions[inner]);
            let len = range.end - range.start;
            if len != grid.chunk_dims()[inner] || len != pattern.len || !pattern.is_segment(range) {
                break;
            }
            inner -= 1;
        }
        Some(ChunkOverlap { lo, positions, inner })
    }

    /// The chunk that has all selected elements, of which there are some, and their run, if it is one of each.
    pub(super) fn single_chunk_run(&self, grid: &ChunkGrid) -> Option<(ChunkCoord, ElementRun)> {
        let mut run = ElementRun { offset_in_chunk: 0, offset_in_selection: 0, len: 1 };
        let (mut scaled, mut chunk_stride) = (SelectDims::from_elem(0, self.patterns.len()), 1u64);
        // Whether dimensions behind are not taken whole.
        let mut is_part = false;
        for (dim, pattern) in self.patterns.iter().enumerate().rev() {
            let (size, first) = (*grid.chunk_dims().get(dim)?, pattern.index_at(0));
            scaled[dim] = first / size;
            let at = first - scaled[dim] * size;
            let is_run = if is_part { pattern.len == 1 } else { pattern.is_segment(&(0..pattern.len)) };
            if !is_run || pattern.len > size - at {
                return None;
            }
            is_part |= pattern.len != size;
            run.offset_in_chunk += at * chunk_stride;
            run.len *= pattern.len;
            chunk_stride = chunk_stride.saturating_mul(size);
        }
        Some((ChunkCoord::new(&scaled), run))
    }

    /// The chunk that has all selected elements, of which there are some, and the box there that they are, if they are
    /// one.
    pub(super) fn single_chunk_block(&self, grid: &ChunkGrid) -> Option<(ChunkCoord, Block)> {
        let zeros = SelectDims::from_elem(0, self.patterns.len());
        let (mut scaled, mut start, mut count) = (zeros.clone(), zeros.clone(), zeros);
        for (dim, pattern) in self.patterns.iter().enumerate() {
            let (size, first) = (*grid.chunk_dims().get(dim)?, pattern.index_at(0));
            scaled[dim] = first / size;
            start[dim] = first - scaled[dim] * size;
            count[dim] = pattern.len;
            if !pattern.is_segment(&(0..pattern.len)) || pattern.len > size - start[dim] {
                return None;
            }
        }
        Some((ChunkCoord::new(&scaled), Block { start, count }))
    }

    /// The selected elements of a chunk, if they are one run.
    pub(super) fn single_run(&self, grid: &ChunkGrid, chunk: &ChunkCoord) -> Option<ElementRun> {
        let mut run = ElementRun { offset_in_chunk: 0, offset_in_selection: 0, len: 1 };
        let (mut chunk_stride, mut place_stride) = (1u64, 1u64);
        // Dimensions behind this one are taken whole, as [`ChunkOverlap::inner`] has it.
        let mut inner = None;
        for (dim, pattern) in self.patterns.iter().enumerate().rev() {
            let (size, at) = (*grid.chunk_dims().get(dim)?, *chunk.scaled().get(dim)?);
            let lo = at.saturating_mul(size);
            let range = pattern.positions_in(lo, lo.saturating_add(size));
            let len = range.end - range.start;
            let fits = match inner {
                None => pattern.is_segment(&range),
                Some(_) => len == 1,
            };
            if range.is_empty() || !fits {
                return None;
            }
            if len != size || len != pattern.len {
                inner.get_or_insert(dim);
            }
            run.offset_in_chunk += (pattern.index_at(range.start) - lo) * chunk_stride;
            run.offset_in_selection += pattern.place_of(range.start) * place_stride;
            run.len *= len;
            chunk_stride = chunk_stride.saturating_mul(size);
            place_stride = place_stride.saturating_mul(pattern.len);
        }
        Some(run)
    }

    /// The places of the selected elements of the chunks whose first `depth` coordinates are those of `chunk`, if there
    /// is no other between them, and, in one chunk, they are in their order.
    pub(super) fn dest_range(&self, grid: &ChunkGrid, chunk: &ChunkCoord, depth: usize) -> Option<Range<u64>> {
        let (mut first, mut len, mut stride) = (0, 1, 1u64);
        let mut is_part = false;
        for (dim, pattern) in self.patterns.iter().enumerate().rev() {
            let (size, at) = (*grid.chunk_dims().get(dim)?, *chunk.scaled().get(dim)?);
            let lo = at.saturating_mul(size);
            let range = if dim < depth { pattern.positions_in(lo, lo.saturating_add(size)) } else { 0..pattern.len };
            let n = range.end - range.start;
            if is_part && n > 1 {
                return None;
            }
            // A list fills its places in order only within a run.
            if pattern.list.is_some() && dim < depth && !pattern.is_segment(&range) {
                return None;
            }
            is_part |= n != pattern.len;
            first += if n == 0 || dim >= depth { range.start } else { pattern.place_of(range.start) } * stride;
            len *= n;
            stride = stride.saturating_mul(pattern.len);
        }
        Some(first..first + len)
    }

    /// The number of selected elements of a chunk, each counted once.
    pub(super) fn distinct_in(&self, grid: &ChunkGrid, chunk: &ChunkCoord) -> u64 {
        let Some(overlap) = self.chunk_overlap(grid, chunk) else { return 0 };
        self.patterns
            .iter()
            .zip(&overlap.positions)
            .map(|(pattern, positions)| pattern.distinct_in(positions))
            .product()
    }

    pub(super) fn for_each_strided(&self, grid: &ChunkGrid, chunk: &ChunkCoord, each: &mut dyn FnMut(StridedRuns)) {
        let Some(ChunkOverlap { lo, positions, inner }) = self.chunk_overlap(grid, chunk) else { return };
        let (chunk_strides, place_strides) = (row_major_strides(grid.chunk_dims()), row_major_strides(&self.dims()));
        let side = |dim: usize| AxisSelection {
            pattern: &self.patterns[dim],
            positions: positions[dim].clone(),
            lo: lo[dim],
            chunk_stride: chunk_strides[dim],
            place_stride: place_strides[dim],
        };
        let sides: SmallVec<[AxisSelection<'_>; 3]> = (0..self.patterns.len().min(inner + 1)).map(side).collect();
        for_each_strided_run(&sides, 0, 0, each);
    }

    /// The part of the selection that lies in a box.
    pub(super) fn clip_to_box(&self, lo: &[u64], hi: &[u64]) -> RegularSelection {
        let sides = self.patterns.iter().zip(lo.iter().zip(hi));
        RegularSelection {
            patterns: sides.map(|(pattern, (lo, hi))| pattern.restrict_to(pattern.positions_in(*lo, *hi))).collect(),
        }
    }

    /// The elements as one box, if they are one.
    pub(super) fn single_block(&self) -> Option<Hyperslab> {
        let single = |pattern: &Pattern| {
            (pattern.len > 0 && pattern.is_segment(&(0..pattern.len))).then(|| (pattern.index_at(0), pattern.len))
        };
        let (start, count): (SelectDims, SelectDims) =
            self.patterns.iter().map(single).collect::<Option<Vec<_>>>()?.into_iter().unzip();
        Some(Hyperslab::block(&start, &count))
    }

    /// The ranges of indices along a dimension, ascending.
    pub(super) fn ranges(&self, dim: usize) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut next = 0;
        std::iter::from_fn(move || {
            let pattern = self.patterns.get(dim)?;
            let left = pattern.len.checked_sub(next).filter(|left| *left > 0)?;
            let lo = pattern.index_at(next);
            if pattern.list.is_some() {
                next = pattern.count_before(lo + 1);
                return Some((lo, lo + 1));
            }
            let n = left.min(pattern.left_in_block(next));
            next += n;
            Some((lo, lo + n))
        })
    }

    /// The first and one past the last index of each dimension.
    pub(super) fn bounds(&self) -> (SelectDims, SelectDims) {
        let ends = |pattern: &Pattern| (pattern.index_at(0), pattern.index_at(pattern.len - 1) + 1);
        self.patterns.iter().map(ends).unzip()
    }

    /// Takes two selections whose elements correspond to each other. Returns the elements of the first one that lie in
    /// a box, and the corresponding elements of the second. `None` if the shapes differ, apart from dimensions of one
    /// element and from additional elements of one of them at the end.
    pub(super) fn restrict(
        &self,
        other: &RegularSelection,
        lo: &[u64],
        hi: &[u64],
    ) -> Option<(RegularSelection, RegularSelection)> {
        if self.has_list() || other.has_list() {
            return None;
        }
        let long = |regular: &RegularSelection| {
            (0..regular.patterns.len()).filter(|i| regular.patterns[*i].len != 1).collect::<Vec<_>>()
        };
        let pairs: Vec<(usize, usize)> = if self.patterns.len() == other.patterns.len() {
            (0..self.patterns.len()).map(|dim| (dim, dim)).collect()
        } else {
            let (ours, theirs) = (long(self), long(other));
            if ours.len() != theirs.len() {
                return None;
            }
            ours.into_iter().zip(theirs).collect()
        };
        let (mut ours, mut theirs) = (self.clone(), other.clone());
        for (dim, pattern) in self.patterns.iter().enumerate() {
            let mut positions = pattern.positions_in(lo[dim], hi[dim]);
            if let Some((_, there)) = pairs.iter().find(|(here, _)| *here == dim) {
                positions.end = positions.end.min(other.patterns[*there].len);
                positions.start = positions.start.min(positions.end);
                theirs.patterns[*there] = other.patterns[*there].restrict_to(positions.clone());
            }
            ours.patterns[dim] = pattern.restrict_to(positions);
        }
        Some((ours, theirs))
    }

    pub(super) fn chunks<'a>(&'a self, grid: &'a ChunkGrid) -> RegularChunks<'a> {
        let first =
            self.patterns.iter().zip(grid.chunk_dims()).map(|(pattern, size)| pattern.index_at(0) / size).collect();
        RegularChunks { regular: self, grid, next: Some(first) }
    }
}

/// The chunks that a hyperslab touches.
pub(super) struct RegularChunks<'a> {
    regular: &'a RegularSelection,
    grid: &'a ChunkGrid,
    next: Option<SelectDims>,
}

impl RegularChunks<'_> {
    /// The chunk with the next selected index along a dimension after those of chunk `at`.
    fn next_chunk_along(&self, dim: usize, at: u64) -> Option<u64> {
        let (pattern, size) = (&self.regular.patterns[dim], self.grid.chunk_dims()[dim]);
        let p = pattern.count_before(at.saturating_add(1).saturating_mul(size));
        (p < pattern.len).then(|| pattern.index_at(p) / size)
    }
}

impl Iterator for RegularChunks<'_> {
    type Item = ChunkCoord;

    fn next(&mut self) -> Option<ChunkCoord> {
        let current = self.next.take()?;
        let mut next = current.clone();
        for dim in (0..next.len()).rev() {
            match self.next_chunk_along(dim, next[dim]) {
                Some(at) => {
                    next[dim] = at;
                    self.next = Some(next);
                    break;
                }
                None => next[dim] = self.regular.patterns[dim].index_at(0) / self.grid.chunk_dims()[dim],
            }
        }
        Some(ChunkCoord::new(&current))
    }
}
