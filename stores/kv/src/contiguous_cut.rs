//! How the one run of bytes of a large contiguous dataset lies in the chunks into which it is cut by itself.

use h5live_model::DatasetSpec;

use crate::layout::chunk_dims_if_large_contiguous;

/// The cut of a contiguous dataset. A chunk spans whole rows of the dimensions behind the one that is cut, and one index
/// of those before it; so it is a run of bytes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargeContiguousChunking {
    /// The dimensions before the one that is cut (elements).
    before: Vec<u64>,
    /// The number of dimensions behind it.
    behind: usize,
    /// The side of a chunk along the dimension that is cut (elements).
    side: u64,
    /// Bytes of a chunk.
    chunk: u64,
    /// Bytes of all chunks along the dimension that is cut. The last one may be shorter.
    row: u64,
}

impl LargeContiguousChunking {
    /// That of a dataset; `None` if it is not cut.
    pub fn of(spec: &DatasetSpec) -> Option<Self> {
        let (chunk, dims) = (chunk_dims_if_large_contiguous(spec)?, spec.dataspace.dims());
        let cut = chunk.iter().zip(dims).rposition(|(side, dim)| side != dim)?;
        let (before, rest) = dims.split_at_checked(cut)?;
        let (dim, behind) = rest.split_first()?;
        let inner: u64 = behind.iter().product::<u64>() * u64::from(spec.datatype.size());
        let side = *chunk.get(cut)?;
        Some(LargeContiguousChunking {
            before: before.to_vec(),
            behind: behind.len(),
            side,
            chunk: side.checked_mul(inner)?,
            row: dim.checked_mul(inner)?,
        })
    }

    /// Where the chunk that begins at an element (`[rank]`) begins in the dataset (bytes); `None` if it is in none.
    pub fn byte_offset_of_chunk(&self, start: &[u64]) -> Option<u64> {
        let (outer, rest) = start.split_at_checked(self.before.len())?;
        let index =
            outer.iter().zip(&self.before).try_fold(0u64, |all, (at, dim)| all.checked_mul(*dim)?.checked_add(*at))?;
        let in_row = rest.first()?.checked_div(self.side)?.checked_mul(self.chunk)?;
        index.checked_mul(self.row)?.checked_add(in_row)
    }

    /// The chunk that has the byte at `byte_offset` of the dataset: its first element (`[rank]`), where in it the byte is,
    /// and how many bytes from there on are in the same chunk.
    pub fn chunk_offset_and_bytes_left(&self, byte_offset: u64) -> (Vec<u64>, u64, u64) {
        let (mut outer, in_row) = (byte_offset / self.row, byte_offset % self.row);
        let (number, within) = (in_row / self.chunk, in_row % self.chunk);
        let mut start = vec![0; self.before.len()];
        for (at, dim) in start.iter_mut().zip(&self.before).rev() {
            *at = outer % dim;
            outer /= dim;
        }
        start.push(number * self.side);
        start.resize(start.len() + self.behind, 0);
        let left = (self.chunk - within).min(self.row - in_row);
        (start, within, left)
    }
}
