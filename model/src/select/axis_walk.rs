//! The selected elements of a chunk, in row-major order.

use std::ops::Range;

use super::pattern::Pattern;
use super::{ElementRun, StridedRuns};

/// The selected indices of a chunk along one dimension.
pub(super) struct AxisSelection<'a> {
    pub(super) pattern: &'a Pattern,
    pub(super) positions: Range<u64>,
    /// The first index of the chunk.
    pub(super) lo: u64,
    /// From one index to the next (elements of the chunk).
    pub(super) chunk_stride: u64,
    /// From one position to the next (elements of the destination).
    pub(super) place_stride: u64,
}

impl AxisSelection<'_> {
    /// Where the index at position `p` is, in the chunk and in the destination.
    fn at(&self, p: u64) -> (u64, u64) {
        ((self.pattern.index_at(p) - self.lo) * self.chunk_stride, self.pattern.place_of(p) * self.place_stride)
    }

    fn is_segment(&self) -> bool {
        self.pattern.is_segment(&self.positions)
    }

    /// Calls `each` with a position, the step to the next one, and the number of positions in the chunk that follow at
    /// equal steps.
    fn for_each_step(&self, mut each: impl FnMut(u64, u64, u64)) {
        let AxisSelection { pattern, positions, chunk_stride, .. } = self;
        let count = positions.end - positions.start;
        // The stride of a pattern may be larger than any chunk if it has only one index.
        if pattern.block == 1 && count > 1 {
            return each(positions.start, count, pattern.stride * chunk_stride);
        }
        let mut from = positions.start;
        while from < positions.end {
            let len = pattern.left_in_block(from).min(positions.end - from);
            each(from, len, *chunk_stride);
            from += len;
        }
    }

    /// Calls `each` with a position, the number of positions in its block, and the number of blocks like this one from
    /// there on.
    fn for_each_block(&self, mut each: impl FnMut(u64, u64, u64)) {
        let AxisSelection { pattern, positions, .. } = self;
        let mut from = positions.start;
        while from < positions.end {
            let left = positions.end - from;
            let len = pattern.left_in_block(from).min(left);
            let blocks = if len == pattern.block { left / len } else { 1 };
            each(from, len, blocks);
            from += len * blocks;
        }
    }
}

/// Calls `each` with the runs of elements along these dimensions, of which the last one is the innermost, from `at` in
/// the chunk and `place` in the destination on.
pub(super) fn for_each_strided_run(
    sides: &[AxisSelection<'_>],
    at: u64,
    place: u64,
    each: &mut dyn FnMut(StridedRuns),
) {
    match sides {
        [] => each(ElementRun { offset_in_chunk: at, offset_in_selection: place, len: 1 }.into()),
        [side, last] if last.is_segment() => {
            let (last_at, last_place) = last.at(last.positions.start);
            let len = (last.positions.end - last.positions.start) * last.chunk_stride;
            // One run in each row.
            side.for_each_step(|p, count, stride| {
                let (row_at, row_place) = side.at(p);
                let run = ElementRun {
                    offset_in_chunk: at + row_at + last_at,
                    offset_in_selection: place + row_place + last_place,
                    len,
                };
                each(StridedRuns {
                    first_run: run,
                    count,
                    stride_in_chunk: stride,
                    stride_in_selection: side.place_stride,
                });
            });
        }
        [side] => side.for_each_block(|p, len, count| {
            let (run_at, run_place) = side.at(p);
            let run = ElementRun {
                offset_in_chunk: at + run_at,
                offset_in_selection: place + run_place,
                len: len * side.chunk_stride,
            };
            each(match count {
                1 => run.into(),
                _ => {
                    let (at_stride, place_stride) = (side.pattern.stride * side.chunk_stride, len * side.place_stride);
                    StridedRuns { first_run: run, count, stride_in_chunk: at_stride, stride_in_selection: place_stride }
                }
            });
        }),
        [side, inner @ ..] => {
            for p in side.positions.clone() {
                let (row_at, row_place) = side.at(p);
                for_each_strided_run(inner, at + row_at, place + row_place, each);
            }
        }
    }
}
