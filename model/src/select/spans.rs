//! Unions of blocks, as a tree of spans. For each dimension it has ranges of indices. Below each range it has the
//! selection in the dimensions after it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use smallvec::SmallVec;

use super::{ElementRun, SelectDims, SelectionError, row_major_strides};
use crate::{Block, ChunkCoord, ChunkGrid};

pub(super) const MAX_SPANS: usize = 1 << 20;

/// Disjoint ranges of one dimension, ascending.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SpanNode {
    pub(super) spans: Vec<IndexSpan>,
    pub(super) elements: u64,
}

/// Indices with the same selection below.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct IndexSpan {
    pub(super) lo: u64,
    pub(super) hi: u64,
    /// `None` in the last dimension.
    pub(super) below: Option<Arc<SpanNode>>,
    /// Elements of the spans before this one.
    pub(super) before: u64,
}

impl SpanNode {
    /// A node of ascending ranges, of which neighbours with the same selection below are made one.
    pub(super) fn new(
        ranges: impl IntoIterator<Item = Result<(u64, u64, Option<Arc<SpanNode>>), SelectionError>>,
    ) -> Result<Self, SelectionError> {
        let mut node = SpanNode { spans: Vec::new(), elements: 0 };
        for range in ranges {
            node.push(range?)?;
            if node.spans.len() > MAX_SPANS {
                return Err(SelectionError::MoreSpansThan(MAX_SPANS));
            }
        }
        Ok(node)
    }

    /// Adds the range behind the last one, to that if it can be. Returns whether it is a span of its own.
    fn push(&mut self, (lo, hi, below): (u64, u64, Option<Arc<SpanNode>>)) -> Result<bool, SelectionError> {
        let span = IndexSpan { lo, hi, below, before: self.elements };
        self.elements = (hi - lo)
            .checked_mul(span.weight())
            .and_then(|n| n.checked_add(self.elements))
            .ok_or(SelectionError::ElementCountOverflow)?;
        match self.spans.last_mut() {
            Some(last) if last.hi == lo && last.below == span.below => {
                last.hi = hi;
                Ok(false)
            }
            _ => {
                self.spans.push(span);
                Ok(true)
            }
        }
    }
}

impl IndexSpan {
    /// Elements selected for each index.
    fn weight(&self) -> u64 {
        self.below.as_ref().map_or(1, |below| below.elements)
    }
}

#[derive(Debug, Clone)]
pub(super) struct SpanTree {
    pub(super) root: Arc<SpanNode>,
    /// Whether this is the one element of an extent without dimensions.
    pub(super) scalar: bool,
}

impl SpanTree {
    /// Widens a box (from `lo` to before `hi`, both `[rank]`) so that it has all elements. Each node is looked at once,
    /// however many elements there are.
    pub(super) fn grow_box(&self, lo: &mut [u64], hi: &mut [u64]) {
        let mut seen = HashSet::new();
        let mut waiting = vec![(0, &self.root)];
        while let Some((dim, node)) = waiting.pop() {
            if !seen.insert(Arc::as_ptr(node)) {
                continue;
            }
            for span in &node.spans {
                if let (Some(lo), Some(hi)) = (lo.get_mut(dim), hi.get_mut(dim)) {
                    (*lo, *hi) = ((*lo).min(span.lo), (*hi).max(span.hi));
                }
                waiting.extend(span.below.as_ref().map(|below| (dim + 1, below)));
            }
        }
    }
}

struct SpanTreeBuilder<'a> {
    blocks: &'a [Block],
    rank: usize,
    pieces: usize,
    known: HashMap<(usize, Vec<usize>), Arc<SpanNode>>,
}

impl SpanTreeBuilder<'_> {
    /// The tree from dimension `dim` on of the blocks with these positions.
    fn build_node(&mut self, dim: usize, members: Vec<usize>) -> Result<Arc<SpanNode>, SelectionError> {
        if let Some(node) = self.known.get(&(dim, members.clone())) {
            return Ok(node.clone());
        }
        let bounds = |i: usize| (self.blocks[i].start[dim], self.blocks[i].start[dim] + self.blocks[i].count[dim]);
        let mut cuts: Vec<u64> = members.iter().flat_map(|i| <[u64; 2]>::from(bounds(*i))).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let mut node = SpanNode { spans: Vec::new(), elements: 0 };
        let mut starts = members.clone();
        starts.sort_by_key(|i| bounds(*i).0);
        let mut starts = starts.into_iter().peekable();
        let mut active: Vec<usize> = Vec::new();
        for pair in cuts.windows(2) {
            let (lo, hi) = (pair[0], pair[1]);
            active.retain(|i| bounds(*i).1 >= hi);
            active.extend(std::iter::from_fn(|| starts.next_if(|i| bounds(*i).0 <= lo)));
            if active.is_empty() {
                continue;
            }
            let below = if dim + 1 < self.rank { Some(self.build_node(dim + 1, active.clone())?) } else { None };
            self.pieces += usize::from(node.push((lo, hi, below))?);
            if self.pieces > MAX_SPANS {
                return Err(SelectionError::MoreSpansThan(MAX_SPANS));
            }
        }
        let node = Arc::new(node);
        self.known.insert((dim, members), node.clone());
        Ok(node)
    }
}

impl SpanTree {
    /// The union of blocks that lie within an extent.
    pub(super) fn new(blocks: &[Block], rank: usize) -> Result<Self, SelectionError> {
        let some = |block: &Block| !block.count.contains(&0);
        let members: Vec<usize> = (0..blocks.len()).filter(|i| some(&blocks[*i])).collect();
        if rank == 0 {
            let root = Arc::new(SpanNode { spans: Vec::new(), elements: u64::from(!members.is_empty()) });
            return Ok(SpanTree { scalar: !members.is_empty(), root });
        }
        let mut builder = SpanTreeBuilder { blocks, rank, pieces: 0, known: HashMap::new() };
        Ok(SpanTree { root: builder.build_node(0, members)?, scalar: false })
    }

    pub(super) fn element_count(&self) -> u64 {
        self.root.elements
    }

    pub(super) fn for_each_run(&self, grid: &ChunkGrid, chunk: &ChunkCoord, each: &mut dyn FnMut(ElementRun)) {
        if self.scalar {
            return each(ElementRun { offset_in_chunk: 0, offset_in_selection: 0, len: 1 });
        }
        let lo = grid.start_of(chunk);
        SpanWalk { lo: &lo, sizes: grid.chunk_dims(), strides: &row_major_strides(grid.chunk_dims()), each }
            .emit_runs(&self.root, 0, 0, 0);
    }

    pub(super) fn chunks<'a>(&'a self, grid: &'a ChunkGrid) -> SpanChunks<'a> {
        let root = SpanLevel { nodes: SmallVec::from_slice(&[&*self.root]), next: 0 };
        SpanChunks { sizes: grid.chunk_dims(), levels: vec![root], coord: SelectDims::new(), scalar: self.scalar }
    }
}

struct SpanWalk<'a> {
    lo: &'a [u64],
    sizes: &'a [u64],
    strides: &'a [u64],
    each: &'a mut dyn FnMut(ElementRun),
}

impl SpanWalk<'_> {
    fn emit_runs(&mut self, node: &SpanNode, dim: usize, at: u64, place: u64) {
        let (lo, stride) = (self.lo[dim], self.strides[dim]);
        let hi = lo.saturating_add(self.sizes[dim]);
        let first = node.spans.partition_point(|span| span.hi <= lo);
        for span in node.spans[first..].iter().take_while(|span| span.lo < hi) {
            let (from, to) = (span.lo.max(lo), span.hi.min(hi));
            let place = |index: u64| place + span.before + (index - span.lo) * span.weight();
            match &span.below {
                None => (self.each)(ElementRun {
                    offset_in_chunk: at + (from - lo),
                    offset_in_selection: place(from),
                    len: to - from,
                }),
                Some(below) => {
                    for index in from..to {
                        self.emit_runs(below, dim + 1, at + (index - lo) * stride, place(index));
                    }
                }
            }
        }
    }
}

struct SpanLevel<'a> {
    /// The selection from this dimension on, in the chunks chosen so far.
    nodes: SmallVec<[&'a SpanNode; 4]>,
    /// The chunk to look at next.
    next: u64,
}

/// The chunks that a union touches.
pub(super) struct SpanChunks<'a> {
    sizes: &'a [u64],
    levels: Vec<SpanLevel<'a>>,
    coord: SelectDims,
    scalar: bool,
}

impl Iterator for SpanChunks<'_> {
    type Item = ChunkCoord;

    fn next(&mut self) -> Option<ChunkCoord> {
        if std::mem::take(&mut self.scalar) {
            return Some(ChunkCoord::origin(0));
        }
        loop {
            let depth = self.levels.len();
            let size = *self.sizes.get(depth.checked_sub(1)?)?;
            let level = self.levels.last_mut()?;
            self.coord.truncate(depth - 1);
            let from = level.next.saturating_mul(size);
            let touched = level.nodes.iter().filter_map(|node| {
                let span = node.spans.get(node.spans.partition_point(|span| span.hi <= from))?;
                Some(span.lo.max(from) / size)
            });
            let Some(chunk) = touched.min() else {
                self.levels.pop();
                continue;
            };
            level.next = chunk + 1;
            self.coord.push(chunk);
            if depth == self.sizes.len() {
                return Some(ChunkCoord::new(&self.coord));
            }
            let (lo, hi) = (chunk.saturating_mul(size), (chunk + 1).saturating_mul(size));
            let mut nodes: SmallVec<[&SpanNode; 4]> = SmallVec::new();
            for node in &level.nodes {
                let first = node.spans.partition_point(|span| span.hi <= lo);
                for span in node.spans[first..].iter().take_while(|span| span.lo < hi) {
                    let below = span.below.as_deref();
                    nodes.extend(below.filter(|below| !nodes.iter().any(|node| std::ptr::eq(*node, *below))));
                }
            }
            self.levels.push(SpanLevel { nodes, next: 0 });
        }
    }
}
