//! Indices along one dimension: blocks at equal distances, or a list.

use std::ops::Range;
use std::sync::Arc;

use super::SelectionError;
use super::index_list::IndexList;
use crate::UNLIMITED;

/// The indices selected along one dimension, ascending. The `p`-th of them is `start + q / block * stride + q % block`,
/// where `q` is `p + skip`. A list has no stride and no block, and is asked itself.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    pub(super) start: u64,
    pub(super) stride: u64,
    pub(super) block: u64,
    /// Indices of the pattern that come before the first selected one.
    pub(super) skip: u64,
    /// Number of indices; the last block may be cut short.
    pub(super) len: u64,
    pub(super) list: Option<Arc<IndexList>>,
}

impl Pattern {
    pub(super) fn new(
        dim: usize,
        start: u64,
        stride: u64,
        count: u64,
        block: u64,
        extent: u64,
    ) -> Result<Self, SelectionError> {
        if count == 0 || block == 0 {
            return Ok(Pattern { start: 0, stride: 1, block: 1, skip: 0, len: 0, list: None });
        }
        let out = |end| SelectionError::ExceedsExtent { dim, end, extent };
        if count > 1 && (stride < block || stride == 0) {
            return Err(SelectionError::HyperslabBlocksOverlap { dim, stride, block });
        }
        if count == UNLIMITED || block == UNLIMITED {
            let pattern = Pattern { start, stride: stride.max(block), block, skip: 0, len: UNLIMITED, list: None };
            return Ok(Pattern { len: pattern.count_before(extent), ..pattern });
        }
        if count == 1 || stride == block {
            let len = count.checked_mul(block).ok_or(out(u64::MAX))?;
            let end = start.saturating_add(len);
            return if end > extent {
                Err(out(end))
            } else {
                Ok(Pattern { start, stride: len, block: len, skip: 0, len, list: None })
            };
        }
        let last = (count - 1).checked_mul(stride).and_then(|n| n.checked_add(start)).ok_or(out(u64::MAX))?;
        let end = last.saturating_add(block);
        if end > extent {
            return Err(out(end));
        }
        Ok(Pattern { start, stride, block, skip: 0, len: count * block, list: None })
    }

    /// The indices of a list, of which dimension `dim` has `extent`.
    pub(super) fn of_list(dim: usize, indices: &[u64], extent: u64) -> Result<Self, SelectionError> {
        if let Some(index) = indices.iter().find(|index| **index >= extent) {
            return Err(SelectionError::IndexOutOfBounds { dim, index: (*index).into(), extent });
        }
        let len = indices.len() as u64;
        // Most lists that programs make ascend by equal steps: they are patterns.
        let step = match indices {
            [] => return Pattern::new(dim, 0, 1, 0, 1, extent),
            [_] => 1,
            [first, second, ..] => second.saturating_sub(*first),
        };
        if step > 0 && indices.windows(2).all(|pair| pair[1].checked_sub(pair[0]) == Some(step)) {
            return Pattern::new(dim, indices[0], step, len, 1, extent);
        }
        Ok(Pattern { start: 0, stride: 0, block: 0, skip: 0, len, list: Some(Arc::new(IndexList::new(indices))) })
    }

    pub(super) fn index_at(&self, p: u64) -> u64 {
        let p = p + self.skip;
        // Divisions are slow, and seldom needed.
        if p < self.block {
            self.start + p
        } else if self.block == 1 {
            self.start + p * self.stride
        } else if let Some(list) = &self.list {
            list.index_at(p)
        } else {
            self.start + p / self.block * self.stride + p % self.block
        }
    }

    /// Where the destination has the index at position `p`, counted in indices.
    #[inline]
    pub(super) fn place_of(&self, p: u64) -> u64 {
        self.list.as_ref().map_or(p, |list| list.place_of(p + self.skip))
    }

    /// From a position to the end of its block. In a list, a block is a run of neighbours that are neighbours in the
    /// destination, too.
    pub(super) fn left_in_block(&self, p: u64) -> u64 {
        let p = p + self.skip;
        match &self.list {
            _ if p < self.block => self.block - p,
            Some(list) => list.left_in_run(p),
            None => self.block - p % self.block,
        }
    }

    /// The number of selected indices below `index`.
    pub(super) fn count_before(&self, index: u64) -> u64 {
        let Some(from_start) = index.checked_sub(self.start) else { return 0 };
        let before = if from_start < self.stride {
            from_start.min(self.block)
        } else if let Some(list) = &self.list {
            list.count_before(index)
        } else {
            let blocks = from_start / self.stride;
            blocks.saturating_mul(self.block).saturating_add((from_start % self.stride).min(self.block))
        };
        before.saturating_sub(self.skip).min(self.len)
    }

    /// The positions of the selected indices in `lo..hi`.
    pub(super) fn positions_in(&self, lo: u64, hi: u64) -> Range<u64> {
        self.count_before(lo)..self.count_before(hi)
    }

    /// The number of indices at these positions, each counted once.
    pub(super) fn distinct_in(&self, positions: &Range<u64>) -> u64 {
        let Some(list) = &self.list else { return positions.end.saturating_sub(positions.start) };
        list.distinct_in(positions.start + self.skip..positions.end + self.skip)
    }

    /// Whether the positions are of one block.
    pub(super) fn is_segment(&self, positions: &Range<u64>) -> bool {
        positions.is_empty() || positions.end - positions.start <= self.left_in_block(positions.start)
    }

    /// The pattern of some of the indices.
    pub(super) fn restrict_to(&self, positions: Range<u64>) -> Pattern {
        Pattern {
            skip: self.skip + positions.start,
            len: positions.end.saturating_sub(positions.start),
            ..self.clone()
        }
    }
}
