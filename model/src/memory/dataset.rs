//! A dataset in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::state::MemoryDims;
use crate::{AllocationLimit, ChunkCoord, ChunkWrite, DatasetSpec, Dataspace, Error, Layout, Result};

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
    pub(super) fn write(&mut self, write: &ChunkWrite<'_>, limit: AllocationLimit) -> Result<()> {
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
        let whole = self.spec.chunk_bytes_at(coord)?;
        if self.spec.filters.is_empty() && whole != bytes.len() as u64 {
            return Err(Error::Invalid(format!("a chunk of this dataset has {whole} bytes, not {}", bytes.len())));
        }
        self.chunks.insert(coord.clone(), (filter_mask, bytes.into()));
        Ok(())
    }

    fn write_part(&mut self, coord: &ChunkCoord, at: u64, bytes: &[u8], limit: AllocationLimit) -> Result<()> {
        let whole = self.spec.chunk_bytes_at(coord)?;
        if !self.spec.filters.is_empty() {
            return Err(Error::Invalid("a filtered chunk is written whole".into()));
        }
        let Some(end) = at.checked_add(bytes.len() as u64).filter(|end| *end <= whole) else {
            return Err(Error::Invalid(format!("a chunk of this dataset has {whole} bytes")));
        };
        if !self.chunks.contains_key(coord) {
            let mut chunk = limit.zeroed(whole)?;
            self.spec.fill_into(0, &mut chunk);
            self.chunks.insert(coord.clone(), (0, chunk));
        }
        if let Some((_, chunk)) = self.chunks.get_mut(coord) {
            chunk[at as usize..end as usize].copy_from_slice(bytes);
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
