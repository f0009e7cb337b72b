//! Unions, intersections and complements of selections.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::spans::{MAX_SPANS, SpanNode, SpanTree};
use super::{BoundKind, BoundSelection, SelectDims, SelectionError};
use crate::{Block, Selection};

/// Whether an element is in the result, given whether it is in each of the two selections. It is not asked about an
/// element that is in neither.
type CombineRule = fn(bool, bool) -> bool;

type SubtreeRef<'a> = Option<&'a Arc<SpanNode>>;

impl Selection {
    /// The elements of this selection and of the other one, in row-major order, in an `extent` (`[rank]`, elements).
    ///
    /// # Errors
    /// [`SelectionError`] if one does not fit the extent, or the result falls into too many pieces.
    pub fn or(&self, other: &Selection, extent: &[u64]) -> Result<Selection, SelectionError> {
        self.bind(extent)?.or(&other.bind(extent)?)?.to_blocks_or_points()
    }

    /// The elements that this selection and the other one share, in row-major order.
    ///
    /// # Errors
    /// As [`Selection::or`].
    pub fn and(&self, other: &Selection, extent: &[u64]) -> Result<Selection, SelectionError> {
        self.bind(extent)?.and(&other.bind(extent)?)?.to_blocks_or_points()
    }

    /// The elements that are in just one of the two selections, in row-major order.
    ///
    /// # Errors
    /// As [`Selection::or`].
    pub fn xor(&self, other: &Selection, extent: &[u64]) -> Result<Selection, SelectionError> {
        self.bind(extent)?.xor(&other.bind(extent)?)?.to_blocks_or_points()
    }

    /// The elements of this selection that are not in the other one, in row-major order.
    ///
    /// # Errors
    /// As [`Selection::or`].
    pub fn difference(&self, other: &Selection, extent: &[u64]) -> Result<Selection, SelectionError> {
        self.bind(extent)?.difference(&other.bind(extent)?)?.to_blocks_or_points()
    }

    /// The elements of the extent that are not in this selection, in row-major order.
    ///
    /// # Errors
    /// As [`Selection::or`].
    pub fn not(&self, extent: &[u64]) -> Result<Selection, SelectionError> {
        Selection::All.difference(self, extent)
    }
}

impl BoundSelection {
    /// The elements of both selections, in row-major order.
    ///
    /// # Errors
    /// [`SelectionError::DifferentExtents`] if they are of different extents, [`SelectionError::MoreSpansThan`].
    pub fn or(&self, other: &BoundSelection) -> Result<BoundSelection, SelectionError> {
        self.combine(other, |here, there| here || there)
    }

    /// The elements that two selections share, in row-major order.
    ///
    /// # Errors
    /// As [`BoundSelection::or`].
    pub fn and(&self, other: &BoundSelection) -> Result<BoundSelection, SelectionError> {
        self.combine(other, |here, there| here && there)
    }

    /// The elements that are in just one of two selections, in row-major order.
    ///
    /// # Errors
    /// As [`BoundSelection::or`].
    pub fn xor(&self, other: &BoundSelection) -> Result<BoundSelection, SelectionError> {
        self.combine(other, |here, there| here != there)
    }

    /// The elements that the other one does not have, in row-major order.
    ///
    /// # Errors
    /// As [`BoundSelection::or`].
    pub fn difference(&self, other: &BoundSelection) -> Result<BoundSelection, SelectionError> {
        self.combine(other, |here, there| here && !there)
    }

    /// The elements of the extent that are not selected, in row-major order.
    ///
    /// # Errors
    /// As [`BoundSelection::or`].
    pub fn not(&self) -> Result<BoundSelection, SelectionError> {
        Selection::All.bind(&self.extent)?.difference(self)
    }

    /// Those of the elements that lie in a box (from `lo` to before `hi`, both `[rank]`), in their order; of lists of
    /// indices in row-major order, each element once.
    ///
    /// # Errors
    /// [`SelectionError::MoreSpansThan`].
    pub fn clip_to_box(&self, lo: &[u64], hi: &[u64]) -> Result<Selection, SelectionError> {
        let hi: SelectDims = hi.iter().zip(&self.extent).map(|(hi, extent)| *hi.min(extent)).collect();
        match &self.kind {
            BoundKind::Regular(regular) => {
                let regular = regular.clip_to_box(lo, &hi);
                if let Some(block) = regular.single_block() {
                    return Ok(Selection::Hyperslab(block));
                }
                let elements = regular.element_count()?;
                let part = BoundSelection { extent: self.extent.clone(), elements, kind: BoundKind::Regular(regular) };
                part.to_blocks_or_points()
            }
            BoundKind::Points(points) => {
                let inside = |point: &&SelectDims| {
                    point.iter().zip(lo.iter().zip(&hi)).all(|(at, (lo, hi))| lo <= at && at < hi)
                };
                Ok(Selection::Points(points.iter().filter(inside).cloned().collect()))
            }
            BoundKind::Spans(_) => {
                let count = lo.iter().zip(&hi).map(|(lo, hi)| hi.saturating_sub(*lo)).collect::<SelectDims>();
                self.and(&Selection::block(lo, &count).bind(&self.extent)?)?.to_blocks_or_points()
            }
        }
    }

    /// The selection as disjoint boxes, or as points in their order. Lists of indices lose theirs, and become boxes, too.
    ///
    /// # Errors
    /// [`SelectionError::MoreSpansThan`].
    pub fn to_blocks_or_points(&self) -> Result<Selection, SelectionError> {
        if let BoundKind::Points(points) = &self.kind {
            return Ok(if points.is_empty() { Selection::None } else { Selection::Points(points.clone()) });
        }
        let spans = self.spans()?;
        let mut blocks = Vec::new();
        if spans.scalar {
            blocks.push(Block { start: SelectDims::new(), count: SelectDims::new() });
        }
        collect_blocks(&spans.root, &mut SmallVec::new(), &mut blocks)?;
        Ok(if blocks.is_empty() { Selection::None } else { Selection::Blocks(blocks) })
    }

    fn combine(&self, other: &BoundSelection, rule: CombineRule) -> Result<BoundSelection, SelectionError> {
        if self.extent != other.extent {
            return Err(SelectionError::DifferentExtents);
        }
        let (here, there) = (self.spans()?, other.spans()?);
        let spans = if self.extent.is_empty() {
            let scalar = rule(here.scalar, there.scalar);
            SpanTree { root: Arc::new(SpanNode { spans: Vec::new(), elements: scalar.into() }), scalar }
        } else {
            let mut merge = TreeMerge { rule, rank: self.extent.len(), pieces: 0, known: HashMap::new() };
            SpanTree { root: merge.merge_nodes(0, Some(&here.root), Some(&there.root))?, scalar: false }
        };
        Ok(BoundSelection {
            extent: self.extent.clone(),
            elements: spans.element_count(),
            kind: BoundKind::Spans(spans),
        })
    }

    fn spans(&self) -> Result<SpanTree, SelectionError> {
        if self.elements == 0 {
            return SpanTree::new(&[], self.extent.len());
        }
        match &self.kind {
            BoundKind::Spans(spans) => Ok(spans.clone()),
            BoundKind::Points(_) if self.extent.is_empty() => {
                SpanTree::new(&[Block { start: SelectDims::new(), count: SelectDims::new() }], 0)
            }
            BoundKind::Points(points) => {
                let mut points: Vec<&[u64]> = points.iter().map(|point| &point[..]).collect();
                points.sort_unstable();
                Ok(SpanTree { root: tree_of_points(&points, 0, self.extent.len())?, scalar: false })
            }
            BoundKind::Regular(_) if self.extent.is_empty() => {
                SpanTree::new(&[Block { start: SelectDims::new(), count: SelectDims::new() }], 0)
            }
            BoundKind::Regular(regular) => {
                // The same in every row: made from the last dimension to the first.
                let mut below = None;
                for dim in (0..self.extent.len()).rev() {
                    let ranges = regular.ranges(dim).map(|(lo, hi)| Ok((lo, hi, below.clone())));
                    below = Some(Arc::new(SpanNode::new(ranges)?));
                }
                let root = below.ok_or(SelectionError::ElementCountOverflow)?;
                Ok(SpanTree { root, scalar: false })
            }
        }
    }
}

/// The tree of points that are in order.
fn tree_of_points(points: &[&[u64]], dim: usize, rank: usize) -> Result<Arc<SpanNode>, SelectionError> {
    let ranges = points.chunk_by(|a, b| a[dim] == b[dim]).map(|same| {
        let index = same[0][dim];
        let below = if dim + 1 < rank { Some(tree_of_points(same, dim + 1, rank)?) } else { None };
        Ok((index, index + 1, below))
    });
    Ok(Arc::new(SpanNode::new(ranges)?))
}

/// The boxes of a tree.
fn collect_blocks(
    node: &SpanNode,
    path: &mut SmallVec<[(u64, u64); 4]>,
    blocks: &mut Vec<Block>,
) -> Result<(), SelectionError> {
    for span in &node.spans {
        path.push((span.lo, span.hi - span.lo));
        match &span.below {
            Some(below) => collect_blocks(below, path, blocks)?,
            None if blocks.len() == MAX_SPANS => return Err(SelectionError::MoreSpansThan(MAX_SPANS)),
            None => {
                let (start, count) = path.iter().copied().unzip();
                blocks.push(Block { start, count });
            }
        }
        path.pop();
    }
    Ok(())
}

/// The combination of two trees.
struct TreeMerge {
    rule: CombineRule,
    rank: usize,
    pieces: usize,
    /// Results by the addresses of both nodes. A node that is shared in one tree is shared in the result, too.
    known: HashMap<(usize, usize), Arc<SpanNode>>,
}

impl TreeMerge {
    fn merge_nodes(
        &mut self,
        dim: usize,
        here: SubtreeRef<'_>,
        there: SubtreeRef<'_>,
    ) -> Result<Arc<SpanNode>, SelectionError> {
        let place = |node: SubtreeRef<'_>| node.map_or(0, |node| Arc::as_ptr(node) as usize);
        let key = (place(here), place(there));
        if let Some(node) = self.known.get(&key) {
            return Ok(node.clone());
        }
        let mine = here.map_or(&[][..], |node| &node.spans);
        let theirs = there.map_or(&[][..], |node| &node.spans);
        let mut cuts: Vec<u64> = mine.iter().chain(theirs).flat_map(|span| [span.lo, span.hi]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let (mut mine, mut theirs) = (mine.iter().peekable(), theirs.iter().peekable());
        let mut ranges = Vec::new();
        for pair in cuts.windows(2) {
            let (lo, hi) = (pair[0], pair[1]);
            while mine.next_if(|span| span.hi <= lo).is_some() {}
            while theirs.next_if(|span| span.hi <= lo).is_some() {}
            let here = mine.peek().filter(|span| span.lo <= lo);
            let there = theirs.peek().filter(|span| span.lo <= lo);
            if here.is_none() && there.is_none() {
                continue;
            }
            let below = if dim + 1 < self.rank {
                let below = |span: Option<&&'_ super::spans::IndexSpan>| span.and_then(|span| span.below.clone());
                let (here, there) = (below(here), below(there));
                let below = self.merge_nodes(dim + 1, here.as_ref(), there.as_ref())?;
                if below.elements == 0 {
                    continue;
                }
                Some(below)
            } else if (self.rule)(here.is_some(), there.is_some()) {
                None
            } else {
                continue;
            };
            self.pieces += 1;
            if self.pieces > MAX_SPANS {
                return Err(SelectionError::MoreSpansThan(MAX_SPANS));
            }
            ranges.push(Ok((lo, hi, below)));
        }
        let node = Arc::new(SpanNode::new(ranges)?);
        self.known.insert(key, node.clone());
        Ok(node)
    }
}
