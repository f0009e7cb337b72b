//! A dataset in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::behavior::MemoryBehavior;
use crate::{AllocationLimit, ChunkCoord, ChunkWrite, DatasetSpec, Dataspace, Encoding, Error, Layout, Parts, Result};

pub(super) type MemoryDims = SmallVec<[u64; 4]>;

#[derive(Debug)]
pub(super) struct MemoryDataset {
    /// With the extent as the writer knows it.
    pub(super) spec: Arc<DatasetSpec>,
    /// The extent as of the last flush.
    pub(super) published: MemoryDims,
    pub(super) chunks: BTreeMap<ChunkCoord, (u32, Vec<u8>)>,
}

impl MemoryDataset {
    pub(super) fn publish(&mut self) {
        self.published = self.spec.dataspace.dims().into();
    }

    /// Stores elements.
    pub(super) fn write(
        &mut self,
        write: &ChunkWrite<'_>,
        behavior: MemoryBehavior,
        limit: AllocationLimit,
    ) -> Result<()> {
        let whole = self.spec.chunk_bytes_at(write.coord())?;
        // Chunks that the store encodes come to it as if there were no filters.
        let is_decoded = self.spec.filters.is_empty() || behavior.encoding == Encoding::Store;
        let is_valid = match *write {
            ChunkWrite::Whole { bytes, filter_mask, .. } => {
                !is_decoded || bytes.len() as u64 == whole && (filter_mask == 0 || self.spec.filters.is_empty())
            }
            ChunkWrite::Row { size, .. } => !is_decoded || size as u64 == whole,
            ChunkWrite::Part { at, bytes, .. } => {
                let end = at.checked_add(bytes.len() as u64).filter(|end| *end <= whole && is_decoded);
                match (behavior.parts, end) {
                    (Parts::Bytes { multiple_of }, Some(end)) => {
                        at.is_multiple_of(multiple_of) && (end.is_multiple_of(multiple_of) || end == whole)
                    }
                    (Parts::Bytes { .. }, None) => false,
                    (Parts::Whole | Parts::Blocks, _) => return Err(Error::Unsupported("a part of a chunk")),
                }
            }
        };
        if !is_valid {
            return Err(Error::Invalid(format!("this is no part of a chunk of {whole} bytes that can be written")));
        }
        match *write {
            ChunkWrite::Whole { coord, filter_mask, bytes } => self.write_whole(coord, filter_mask, bytes),
            ChunkWrite::Row { first, size, bytes } => {
                let at = first.scaled().first().copied().unwrap_or_default();
                let mut chunks = (at..).zip(bytes.chunks(size.max(1)));
                chunks.try_for_each(|(at, chunk)| self.write_whole(&first.with_index(0, at), 0, chunk))
            }
            ChunkWrite::Part { coord, at, bytes } => self.write_part(coord, at, bytes, limit),
        }
    }

    fn write_whole(&mut self, coord: &ChunkCoord, filter_mask: u32, bytes: &[u8]) -> Result<()> {
        self.spec.chunk_bytes_at(coord)?;
        self.chunks.insert(coord.clone(), (filter_mask, bytes.into()));
        Ok(())
    }

    fn write_part(&mut self, coord: &ChunkCoord, at: u64, bytes: &[u8], limit: AllocationLimit) -> Result<()> {
        if !self.chunks.contains_key(coord) {
            let mut chunk = limit.zeroed(self.spec.chunk_bytes_at(coord)?)?;
            self.spec.fill_into(0, &mut chunk);
            self.chunks.insert(coord.clone(), (0, chunk));
        }
        if let Some((_, chunk)) = self.chunks.get_mut(coord) {
            chunk[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Changes the extent.
    pub(super) fn resize(&mut self, dims: &[u64]) -> Result<()> {
        let spec = Arc::make_mut(&mut self.spec);
        let (Layout::Chunked(_), Dataspace::Simple(shape)) = (&spec.layout, &mut spec.dataspace) else {
            return Err(Error::Invalid("only a chunked dataset changes its extent".into()));
        };
        if !shape.resize(dims) {
            return Err(Error::Invalid(format!("{dims:?} is not within the maximum {:?}", shape.max())));
        }
        if let Some(grid) = spec.grid() {
            let counts = grid.counts(dims);
            self.chunks.retain(|coord, _| coord.scaled().iter().zip(&counts).all(|(at, n)| at < n));
        }
        Ok(())
    }
}
