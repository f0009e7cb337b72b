//! Runs of elements of a chunk as boxes.

use std::iter;
use std::ops::Range;

use super::{SelectDims, StridedRuns, row_major_strides};
use crate::Block;

/// The boxes that a run of elements is made of, in order, in a chunk of these sides (`[rank]`, elements): the largest
/// that there are.
pub fn split_run_into_blocks(chunk_dims: &[u64], run: Range<u64>) -> impl Iterator<Item = Block> {
    let strides = row_major_strides(chunk_dims);
    let mut at = run.start;
    iter::from_fn(move || {
        let left = run.end.checked_sub(at).filter(|left| *left > 0)?;
        let start: SelectDims = strides.iter().zip(chunk_dims).map(|(stride, side)| at / stride % side).collect();
        // The slowest dimension along which whole steps begin here.
        let fits = |stride: &u64| at.is_multiple_of(*stride) && left >= *stride;
        let Some(dim) = strides.iter().position(fits) else {
            // A scalar.
            at = run.end;
            return Some(Block { start, count: SelectDims::new() });
        };
        let steps = (left / strides[dim]).min(chunk_dims[dim] - start[dim]);
        let mut count = SelectDims::from_elem(1, chunk_dims.len());
        count[dim] = steps;
        count[dim + 1..].copy_from_slice(&chunk_dims[dim + 1..]);
        at += steps * strides[dim];
        Some(Block { start, count })
    })
}

/// The box that runs make in a chunk of these sides, if they make one.
pub fn strided_runs_as_block(chunk_dims: &[u64], runs: &StridedRuns) -> Option<Block> {
    let mut boxes = split_run_into_blocks(
        chunk_dims,
        runs.first_run.offset_in_chunk..runs.first_run.offset_in_chunk + runs.first_run.len,
    );
    let mut block = boxes.next()?;
    if boxes.next().is_some() {
        return None;
    }
    if runs.count == 1 {
        return Some(block);
    }
    let is_axis = |dim: &usize| {
        block.count[..=*dim].iter().all(|count| *count == 1)
            && row_major_strides(chunk_dims)[*dim] == runs.stride_in_chunk
            && block.start[*dim].checked_add(runs.count).is_some_and(|end| end <= chunk_dims[*dim])
    };
    let axis = (0..chunk_dims.len()).find(is_axis)?;
    block.count[axis] = runs.count;
    Some(block)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{ChunkCoord, ChunkGrid, ElementRun, Selection};

    /// The elements of a box of a chunk, in order.
    fn elements(sides: &[u64], block: &Block) -> Vec<u64> {
        let mut elements = Vec::new();
        let selected = Selection::block(&block.start, &block.count).bind(sides).unwrap();
        selected.for_each_run(|run| elements.extend(run.offset_in_chunk..run.offset_in_chunk + run.len));
        elements
    }

    proptest! {
        #[test]
        fn the_boxes_of_a_run_are_the_run(sides in prop::collection::vec(1u64..6, 1..4), cut in any::<[u64; 2]>()) {
            let all: u64 = sides.iter().product();
            let (from, to) = (cut[0] % (all + 1), cut[1] % (all + 1));
            let run = from.min(to)..from.max(to);
            let boxes: Vec<_> = split_run_into_blocks(&sides, run.clone()).collect();
            let found: Vec<_> = boxes.iter().flat_map(|block| elements(&sides, block)).collect();
            prop_assert_eq!(found, run.collect::<Vec<_>>());
            prop_assert!(boxes.len() < 2 * sides.len());
        }

        #[test]
        fn the_box_of_runs_is_the_runs(
            sides in prop::collection::vec(1u64..6, 1..4),
            at in any::<u64>(),
            (len, count, gap) in (1u64..12, 1u64..5, 0u64..12),
        ) {
            let all: u64 = sides.iter().product();
            let (at, axis) = (at % all, at as usize % (sides.len() + 1));
            let len = len.min(all - at);
            // Half of the strides are those of a dimension.
            let at_stride = row_major_strides(&sides).get(axis).copied().unwrap_or(len + gap).max(len);
            let count = count.min((all - at - len) / at_stride + 1);
            let runs = StridedRuns { first_run: ElementRun { offset_in_chunk: at, offset_in_selection: 0, len }, count, stride_in_chunk: at_stride, stride_in_selection: len };
            if let Some(block) = strided_runs_as_block(&sides, &runs) {
                let want: Vec<_> = runs.runs().flat_map(|run| run.offset_in_chunk..run.offset_in_chunk + run.len).collect();
                prop_assert_eq!(elements(&sides, &block), want);
            }
        }
    }

    #[test]
    fn a_selected_box_is_one_box() {
        let grid = ChunkGrid::new(&[4, 6]).unwrap();
        let selected = Selection::block(&[1, 2], &[3, 3]).bind(&[4, 6]).unwrap();
        let mut found = Vec::new();
        let cut = selected.split_by_chunks(&grid);
        cut.for_each_strided(&ChunkCoord::origin(2), |runs| {
            found.push(strided_runs_as_block(grid.chunk_dims(), &runs))
        });
        let want = Block { start: SelectDims::from_slice(&[1, 2]), count: SelectDims::from_slice(&[3, 3]) };
        assert_eq!(found, [Some(want)]);
        let scalar: Vec<_> = split_run_into_blocks(&[], 0..1).collect();
        assert_eq!(scalar, [Block { start: SelectDims::new(), count: SelectDims::new() }]);
    }
}
