//! The chunks of a dataset, one after another.

use std::iter::FusedIterator;

use h5live_model::{ChunkGrid, Selection};

use crate::dims::CoreDims;

/// Bytes that a block of a dataset without chunks has at most, if one element is not larger.
const MAX_BLOCK_BYTES: u64 = 4 << 20;

/// Blocks of whole rows, as many as fit [`MAX_BLOCK_BYTES`], of an extent (`[rank]`, elements). `None` if it is empty.
pub(super) fn block_grid(extent: &[u64], element_bytes: u64) -> Option<ChunkGrid> {
    let mut left = (MAX_BLOCK_BYTES / element_bytes.max(1)).max(1);
    let mut dims = CoreDims::from_slice(extent);
    for dim in dims.iter_mut().rev() {
        *dim = (*dim).min(left);
        left /= (*dim).max(1);
    }
    ChunkGrid::new(&dims)
}

/// The chunks of a dataset as selections; made by [`Dataset::iter_chunks`](crate::Dataset::iter_chunks).
#[derive(Debug, Clone, Default)]
pub struct ChunkSelectionIter {
    /// Of the dataset (`[rank]`, elements).
    extent: CoreDims,
    /// Of a chunk (`[rank]`, elements).
    sides: CoreDims,
    /// The first element of the next chunk (`[rank]`, elements).
    start: CoreDims,
    /// Chunks that are still to come.
    left: u64,
}

impl ChunkSelectionIter {
    pub(super) fn new(grid: &ChunkGrid, extent: &[u64]) -> Self {
        let left = grid.chunk_counts(extent).iter().fold(1u64, |n, count| n.saturating_mul(*count));
        let (extent, sides) = (CoreDims::from_slice(extent), CoreDims::from_slice(grid.chunk_dims()));
        ChunkSelectionIter { start: CoreDims::from_elem(0, extent.len()), extent, sides, left }
    }
}

impl Iterator for ChunkSelectionIter {
    type Item = Selection;

    fn next(&mut self) -> Option<Selection> {
        self.left = self.left.checked_sub(1)?;
        let ends = self.start.iter().zip(&self.sides).zip(&self.extent);
        let count: CoreDims = ends.map(|((start, side), extent)| (*side).min(extent - start)).collect();
        let chunk = Selection::block(&self.start, &count);
        for ((start, side), extent) in self.start.iter_mut().zip(&self.sides).zip(&self.extent).rev() {
            *start = start.saturating_add(*side);
            if *start < *extent {
                break;
            }
            *start = 0;
        }
        Some(chunk)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).ok();
        (left.unwrap_or(usize::MAX), left)
    }
}

impl FusedIterator for ChunkSelectionIter {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{Dataset, File};

    fn all_once(data: &Dataset, values: &[u32]) -> usize {
        let mut seen = vec![0u32; values.len()];
        let chunks = data.iter_chunks().unwrap();
        let hint = chunks.size_hint();
        let chunks: Vec<_> = chunks.collect();
        assert_eq!(hint, (chunks.len(), Some(chunks.len())));
        for chunk in &chunks {
            data.read_slice::<u32>(chunk).unwrap().iter().for_each(|value| seen[*value as usize] += 1);
        }
        assert!(seen.iter().all(|n| *n == 1));
        chunks.len()
    }

    proptest! {
        #[test]
        fn each_element_is_in_one_chunk(
            dims in prop::collection::vec(0u64..8, 1..4),
            sides in prop::collection::vec(1u64..5, 3),
        ) {
            let file = File::in_memory();
            let sides = &sides[..dims.len()];
            let max = vec![crate::UNLIMITED; dims.len()];
            let data = file.new_dataset::<u32>().shape(&dims).max_shape(&max).chunk_shape(sides).create("data").unwrap();
            let values: Vec<u32> = (0..dims.iter().product::<u64>() as u32).collect();
            data.write(&values).unwrap();
            let want: u64 = dims.iter().zip(sides).map(|(dim, side)| dim.div_ceil(*side)).product();
            prop_assert_eq!(all_once(&data, &values) as u64, want);
        }
    }

    #[test]
    fn a_dataset_without_chunks_comes_in_blocks_of_bounded_size() {
        let file = File::in_memory();
        let dims = [3, 1000, 1000];
        let values: Vec<u32> = (0..dims.iter().product::<u64>() as u32).collect();
        let data = file.new_dataset::<u32>().shape(&dims).create("data").unwrap();
        data.write(&values).unwrap();
        assert_eq!(all_once(&data, &values), 3);
        let row = file.new_dataset::<u32>().shape(&[1, 3_000_000]).create("row").unwrap();
        row.write(&values).unwrap();
        assert_eq!(all_once(&row, &values), 3);
    }

    #[test]
    fn a_scalar_is_one_chunk_and_nothing_is_none() {
        let file = File::in_memory();
        let scalar = file.new_dataset::<u32>().create("scalar").unwrap();
        scalar.write_scalar(&0u32).unwrap();
        assert_eq!(all_once(&scalar, &[0]), 1);
        assert_eq!(file.new_dataset::<u32>().shape(&[0, 5]).create("empty").unwrap().iter_chunks().unwrap().count(), 0);
    }
}
