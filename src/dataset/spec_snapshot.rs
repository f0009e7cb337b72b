//! A dataset as one operation sees it.

use std::sync::Arc;

use h5live_model::{ChunkCoord, ChunkGrid, DatasetSpec, Dataspace, Layout};

use crate::dims::CoreDims;
use crate::error::ErrorKind;

/// A dataset as one operation sees it, from its start to its end.
#[derive(Debug, Clone)]
pub(crate) struct SpecSnapshot {
    pub(super) spec: Arc<DatasetSpec>,
    /// The extent, with rows that the store does not know yet (`[rank]`, elements).
    pub(crate) extent: CoreDims,
    /// Bytes of an element.
    pub(super) size: usize,
}

impl SpecSnapshot {
    /// The grid of chunks, and the bytes of a decoded chunk; `None` if there are no elements.
    pub(super) fn grid(&self) -> Result<Option<(ChunkGrid, usize)>, ErrorKind> {
        let sides = self.chunk_shape_bytes()?;
        Ok(sides.and_then(|(sides, bytes)| Some((ChunkGrid::new(sides)?, bytes))))
    }

    /// The sides of a chunk (`[rank]`, elements), and its bytes when it is decoded; `None` if there are no elements.
    #[inline]
    pub(super) fn chunk_shape_bytes(&self) -> Result<Option<(&[u64], usize)>, ErrorKind> {
        let sides: &[u64] = match &self.spec.layout {
            Layout::Chunked(dims) if dims.len() == self.extent.len() => dims,
            Layout::Chunked(_) => return Err(ErrorKind::InvalidSpec("the chunks are of another rank than the shape")),
            Layout::Virtual(_) => return Err(ErrorKind::Unsupported("appending to a virtual dataset, or resizing it")),
            _ if self.spec.dataspace == Dataspace::Null => return Ok(None),
            _ => &self.extent,
        };
        if sides.contains(&0) {
            return Ok(None);
        }
        let bytes = sides.iter().try_fold(self.size as u64, |n, side| n.checked_mul(*side));
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        match bytes.filter(|bytes| *bytes < usize::MAX / 2) {
            Some(bytes) => Ok(Some((sides, bytes))),
            None => Err(ErrorKind::OutOfMemory(u64::MAX)),
        }
    }

    /// Whether a chunk is stored without its filters because it reaches over the extent.
    pub(super) fn is_unfiltered_edge(&self, grid: &ChunkGrid, coord: &ChunkCoord) -> bool {
        self.spec.unfiltered_partial_chunks && grid.chunk_exceeds_extent(coord, &self.extent)
    }

    /// Makes `filled` hold `bytes` bytes of fill values.
    pub(super) fn fill(&self, filled: &mut Vec<u8>, bytes: usize) {
        let Some(element) = self.spec.nonzero_fill_value() else {
            if filled.capacity() < bytes {
                // Zeroed memory from the system costs less than filling memory with zeros.
                *filled = vec![0; bytes];
                return;
            }
            filled.clear();
            return filled.resize(bytes, 0);
        };
        filled.clear();
        filled.reserve(bytes);
        while filled.len() < bytes {
            filled.extend_from_slice(element);
        }
        filled.truncate(bytes);
    }
}
