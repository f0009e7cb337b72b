//! Indices along one dimension: blocks at equal distances.

use std::ops::Range;

use super::SelectionError;
use crate::UNLIMITED;

/// The indices selected along one dimension. The `p`-th of them is `start + q / block * stride + q % block`, where `q`
/// is `p + skip`.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    pub(super) start: u64,
    pub(super) stride: u64,
    pub(super) block: u64,
    /// Indices of the pattern that come before the first selected one.
    pub(super) skip: u64,
    /// Number of indices; the last block may be cut short.
    pub(super) len: u64,
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
            return Ok(Pattern { start: 0, stride: 1, block: 1, skip: 0, len: 0 });
        }
        let out = |end| SelectionError::OutOfBounds { dim, end, extent };
        if count > 1 && (stride < block || stride == 0) {
            return Err(SelectionError::Overlap { dim, stride, block });
        }
        if count == UNLIMITED || block == UNLIMITED {
            let pattern = Pattern { start, stride: stride.max(block), block, skip: 0, len: UNLIMITED };
            return Ok(Pattern { len: pattern.count_before(extent), ..pattern });
        }
        if count == 1 || stride == block {
            let len = count.checked_mul(block).ok_or(out(u64::MAX))?;
            let end = start.saturating_add(len);
            return if end > extent {
                Err(out(end))
            } else {
                Ok(Pattern { start, stride: len, block: len, skip: 0, len })
            };
        }
        let last = (count - 1).checked_mul(stride).and_then(|n| n.checked_add(start)).ok_or(out(u64::MAX))?;
        let end = last.saturating_add(block);
        if end > extent {
            return Err(out(end));
        }
        Ok(Pattern { start, stride, block, skip: 0, len: count * block })
    }

    pub(super) fn index_at(&self, p: u64) -> u64 {
        let p = p + self.skip;
        // Divisions are slow, and seldom needed.
        if p < self.block {
            self.start + p
        } else if self.block == 1 {
            self.start + p * self.stride
        } else {
            self.start + p / self.block * self.stride + p % self.block
        }
    }

    /// From a position to the end of its block.
    pub(super) fn left_in_block(&self, p: u64) -> u64 {
        let p = p + self.skip;
        if p < self.block { self.block - p } else { self.block - p % self.block }
    }

    /// The number of selected indices below `index`.
    pub(super) fn count_before(&self, index: u64) -> u64 {
        let Some(from_start) = index.checked_sub(self.start) else { return 0 };
        let before = if from_start < self.stride {
            from_start.min(self.block)
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
