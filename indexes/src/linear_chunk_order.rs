//! The position of a chunk in an array index: a grid of chunks laid out in one line.

use h5live_model::{ChunkCoord, ChunkGrid, UNLIMITED};
use smallvec::SmallVec;

/// The order of the chunks of a grid in one line: row-major over the largest extent. The unlimited dimension (if there
/// is one) varies slowest, so that growth appends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinearChunkOrder {
    unlimited: Option<usize>,
    counts: SmallVec<[u64; 4]>,
}

impl LinearChunkOrder {
    /// The line for chunks of `grid` in a dataset with maximum dimensions `max_dims` (`[rank]`, elements). At most one
    /// dimension may be unlimited. `None` otherwise, or if the ranks differ.
    pub fn new(grid: &ChunkGrid, max_dims: &[u64]) -> Option<Self> {
        let mut open = max_dims.iter().enumerate().filter(|(_, dim)| **dim == UNLIMITED).map(|(dim, _)| dim);
        let unlimited = open.next();
        (open.next().is_none() && grid.chunk_dims().len() == max_dims.len())
            .then(|| LinearChunkOrder { unlimited, counts: grid.chunk_counts(max_dims) })
    }

    /// The number of chunks on the line; `None` if it has no end, or does not fit 64 bits.
    pub fn chunk_count(&self) -> Option<u64> {
        match self.unlimited {
            Some(_) => None,
            None => self.counts.iter().try_fold(1u64, |n, count| n.checked_mul(*count)),
        }
    }

    /// The position of a chunk; `None` if it lies outside the largest extent, or beyond 64 bits.
    pub fn index_of(&self, coord: &ChunkCoord) -> Option<u64> {
        if coord.rank() != self.counts.len() {
            return None;
        }
        let first = match self.unlimited {
            Some(dim) => *coord.scaled().get(dim)?,
            None => 0,
        };
        let mut rest = coord.scaled().iter().zip(&self.counts).enumerate();
        rest.try_fold(first, |index, (dim, (at, count))| {
            if Some(dim) == self.unlimited {
                Some(index)
            } else if at < count {
                index.checked_mul(*count)?.checked_add(*at)
            } else {
                None
            }
        })
    }

    /// The chunk at a position.
    pub fn coord_at(&self, index: u64) -> ChunkCoord {
        let mut scaled: SmallVec<[u64; 4]> = SmallVec::from_elem(0, self.counts.len());
        let mut rest = index;
        for (dim, (at, count)) in scaled.iter_mut().zip(&self.counts).enumerate().rev() {
            if Some(dim) != self.unlimited {
                *at = rest.checked_rem(*count).unwrap_or(0);
                rest = rest.checked_div(*count).unwrap_or(0);
            }
        }
        if let Some(at) = self.unlimited.and_then(|dim| scaled.get_mut(dim)) {
            *at = rest;
        }
        ChunkCoord::new(&scaled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unlimited_dimension_is_the_slowest_wherever_it_is() {
        let grid = ChunkGrid::new(&[2, 5, 10]).unwrap();
        let line = LinearChunkOrder::new(&grid, &[4, UNLIMITED, 25]).unwrap();
        assert_eq!(line.chunk_count(), None);
        assert_eq!(line.index_of(&ChunkCoord::new(&[1, 0, 2])), Some(5));
        assert_eq!(line.index_of(&ChunkCoord::new(&[0, 1, 0])), Some(6));
        assert_eq!(line.index_of(&ChunkCoord::new(&[2, 1, 0])), None);
        for index in 0..100 {
            assert_eq!(line.index_of(&line.coord_at(index)), Some(index));
        }
    }

    #[test]
    fn a_fixed_grid_is_row_major() {
        let grid = ChunkGrid::new(&[2, 5]).unwrap();
        let line = LinearChunkOrder::new(&grid, &[5, 20]).unwrap();
        assert_eq!(line.chunk_count(), Some(12));
        assert_eq!(line.index_of(&ChunkCoord::new(&[2, 3])), Some(11));
        for index in 0..12 {
            assert_eq!(line.index_of(&line.coord_at(index)), Some(index));
        }
    }

    #[test]
    fn two_unlimited_dimensions_have_no_line() {
        let grid = ChunkGrid::new(&[2, 5]).unwrap();
        assert_eq!(LinearChunkOrder::new(&grid, &[UNLIMITED, UNLIMITED]), None);
    }
}
