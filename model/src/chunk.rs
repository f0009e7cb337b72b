//! Chunks: the pieces in which a dataset's elements are stored.

use std::fmt;

use smallvec::SmallVec;

/// The position of a chunk in the grid of chunks (`[rank]`, chunks, slowest-varying first).
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ChunkCoord(SmallVec<[u64; 4]>);

// What `SmallVec` clones one by one is copied at once.
impl Clone for ChunkCoord {
    fn clone(&self) -> Self {
        ChunkCoord::new(&self.0)
    }
}

impl ChunkCoord {
    /// The coordinate at `scaled` (`[rank]`, chunks).
    pub fn new(scaled: &[u64]) -> Self {
        ChunkCoord(SmallVec::from_slice(scaled))
    }

    /// The first chunk of a grid of `rank` dimensions.
    pub fn origin(rank: usize) -> Self {
        ChunkCoord(SmallVec::from_elem(0, rank))
    }

    /// The position along each dimension (`[rank]`, chunks).
    pub fn scaled(&self) -> &[u64] {
        &self.0
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The chunk that is beside this one along dimension `axis`, where it is at `to` (chunks).
    #[must_use]
    pub fn with_index(&self, axis: usize, to: u64) -> Self {
        let mut moved = self.clone();
        moved.0.iter_mut().skip(axis).take(1).for_each(|at| *at = to);
        moved
    }

    /// Becomes the chunk that follows along the first dimension; saturates.
    pub fn advance_first_axis(&mut self) {
        self.0.iter_mut().take(1).for_each(|at| *at = at.saturating_add(1));
    }
}

impl fmt::Display for ChunkCoord {
    /// `[3, 0]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.scaled())
    }
}

/// The grid that cuts a dataset into chunks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChunkGrid {
    dims: SmallVec<[u64; 4]>,
}

impl ChunkGrid {
    /// A grid of chunks of `chunk_dims` (`[rank]`, elements). `None` if a dimension is zero.
    pub fn new(chunk_dims: &[u64]) -> Option<Self> {
        (!chunk_dims.contains(&0)).then(|| ChunkGrid { dims: SmallVec::from_slice(chunk_dims) })
    }

    /// The dimensions of a chunk (`[rank]`, elements).
    pub fn chunk_dims(&self) -> &[u64] {
        &self.dims
    }

    /// The number of elements of a chunk, or `None` if it does not fit 64 bits.
    pub fn chunk_element_count(&self) -> Option<u64> {
        self.dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d))
    }

    /// The chunk that holds the element at `at` (`[rank]`, elements).
    pub fn chunk_of(&self, at: &[u64]) -> ChunkCoord {
        ChunkCoord(self.along_each(at, |at, side| at / side))
    }

    /// The first element of a chunk (`[rank]`, elements); saturates.
    pub fn start_of(&self, coord: &ChunkCoord) -> SmallVec<[u64; 4]> {
        self.along_each(coord.scaled(), u64::saturating_mul)
    }

    /// The number of chunks that cover `extent` (`[rank]`, elements) along each dimension (`[rank]`, chunks).
    pub fn chunk_counts(&self, extent: &[u64]) -> SmallVec<[u64; 4]> {
        self.along_each(extent, u64::div_ceil)
    }

    /// What comes of a number and the side of a chunk along each dimension. Numbers that are copied at once take fewer
    /// instructions than numbers that are collected.
    #[inline]
    fn along_each(&self, numbers: &[u64], each: impl Fn(u64, u64) -> u64) -> SmallVec<[u64; 4]> {
        let mut found = SmallVec::from_slice(&numbers[..numbers.len().min(self.dims.len())]);
        found.iter_mut().zip(&self.dims).for_each(|(number, side)| *number = each(*number, *side));
        found
    }

    /// Whether part of the chunk lies outside `extent` (`[rank]`, elements).
    pub fn chunk_exceeds_extent(&self, coord: &ChunkCoord, extent: &[u64]) -> bool {
        let start = self.start_of(coord);
        start.iter().zip(&self.dims).zip(extent).any(|((s, d), e)| s.saturating_add(*d) > *e)
    }
}

/// The location of a stored chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredChunk {
    /// The position in the grid.
    pub coord: ChunkCoord,
    /// Bytes from the start of the file, where the store has such a thing.
    pub file_offset: Option<u64>,
    /// Stored bytes, after the filters.
    pub size: u64,
    /// Bit `i` set: filter `i` of the pipeline was skipped.
    pub filter_mask: u32,
}
