//! A dataset in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::behavior::SimulatedChunkCapabilities;
use crate::{
    AllocationLimit, ChunkCoord, ChunkEncodedBy, ChunkWrite, DatasetSpec, Dataspace, Error, Layout, ObjectId,
    PartialWrites, Result, SmallWritesStagedBy,
};

pub(super) type MemoryDims = SmallVec<[u64; 4]>;

/// The filter mask and the bytes of a chunk.
pub(super) type MemoryChunk = (u32, Vec<u8>);

#[derive(Debug)]
pub(super) struct MemoryDataset {
    /// With the extent as the writer knows it.
    pub(super) spec: Arc<DatasetSpec>,
    /// The extent as of the last flush.
    pub(super) published: MemoryDims,
    /// Datasets that are published before this one.
    pub(super) publish_after: Vec<ObjectId>,
    chunks: BTreeMap<ChunkCoord, MemoryChunk>,
    /// Chunks that only the writer sees before the next flush; `None` for one that it has dropped. There are some only
    /// if the store gathers writes.
    pending: BTreeMap<ChunkCoord, Option<MemoryChunk>>,
}

impl MemoryDataset {
    pub(super) fn new(spec: DatasetSpec) -> Self {
        let published = spec.dataspace.dims().into();
        let (chunks, pending) = (BTreeMap::new(), BTreeMap::new());
        MemoryDataset { spec: spec.into(), published, publish_after: Vec::new(), chunks, pending }
    }

    /// Shows readers what it holds. Returns what is to be published with it.
    pub(super) fn publish(&mut self) -> Vec<ObjectId> {
        self.published = self.spec.dataspace.dims().into();
        for (coord, chunk) in std::mem::take(&mut self.pending) {
            match chunk {
                Some(chunk) => drop(self.chunks.insert(coord, chunk)),
                None => drop(self.chunks.remove(&coord)),
            }
        }
        std::mem::take(&mut self.publish_after)
    }

    /// Goes back to the extent that was published, and to the chunks, if the store has gathered writes.
    pub(super) fn forget_unpublished(&mut self) {
        self.pending.clear();
        self.publish_after.clear();
        if let Dataspace::Simple(shape) = &mut Arc::make_mut(&mut self.spec).dataspace {
            shape.try_resize(&self.published);
        }
    }

    /// A chunk, as the writer or a reader sees it.
    pub(super) fn chunk(&self, coord: &ChunkCoord, is_writer: bool) -> Option<&MemoryChunk> {
        match self.pending.get(coord).filter(|_| is_writer) {
            Some(pending) => pending.as_ref(),
            None => self.chunks.get(coord),
        }
    }

    /// All chunks, as the writer or a reader sees them.
    pub(super) fn chunks(&self, is_writer: bool) -> BTreeMap<&ChunkCoord, &MemoryChunk> {
        let coords = self.chunks.keys().chain(self.pending.keys());
        coords.filter_map(|coord| Some((coord, self.chunk(coord, is_writer)?))).collect()
    }

    /// Stores elements.
    pub(super) fn write(
        &mut self,
        write: &ChunkWrite<'_>,
        behavior: SimulatedChunkCapabilities,
        limit: AllocationLimit,
    ) -> Result<()> {
        self.check_write(write, behavior)?;
        let staging = behavior.staging;
        match *write {
            ChunkWrite::Whole { coord, filter_mask, bytes } => {
                self.put_chunk(coord, (filter_mask, bytes.into()), staging)
            }
            ChunkWrite::ChunksAlongFirstDim { first, chunk_bytes: size, bytes } => {
                let at = first.scaled().first().copied().unwrap_or_default();
                for (at, chunk) in (at..).zip(bytes.chunks(size.max(1))) {
                    let coord = first.with_index(0, at);
                    self.spec.chunk_bytes_at(&coord)?;
                    self.put_chunk(&coord, (0, chunk.into()), staging);
                }
            }
            ChunkWrite::ByteRange { coord, byte_offset: at, bytes, .. } => {
                let chunk = self.chunk_to_change(coord, staging, limit)?;
                chunk[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
            }
            ChunkWrite::ElementBlock { coord, start, count, bytes } => {
                let sides = self.spec.chunk_dims_or_extent().unwrap_or_default().to_vec();
                let size = self.spec.datatype.size() as usize;
                let chunk = self.chunk_to_change(coord, staging, limit)?;
                put_block(chunk, &sides, (start, count), bytes, size);
            }
        }
        Ok(())
    }

    /// Refuses what the store does not take.
    fn check_write(&self, write: &ChunkWrite<'_>, behavior: SimulatedChunkCapabilities) -> Result<()> {
        let whole = self.spec.chunk_bytes_at(write.first_coord())?;
        // Chunks that the store encodes come to it as if there were no filters.
        let is_decoded = self.spec.filters.is_empty() || behavior.encoding == ChunkEncodedBy::Store;
        let is_valid = match (*write, behavior.partial_writes) {
            (ChunkWrite::Whole { bytes, filter_mask, .. }, _) => {
                !is_decoded || bytes.len() as u64 == whole && (filter_mask == 0 || self.spec.filters.is_empty())
            }
            (ChunkWrite::ChunksAlongFirstDim { chunk_bytes: size, .. }, _) => !is_decoded || size as u64 == whole,
            (ChunkWrite::ByteRange { byte_offset: at, bytes, .. }, PartialWrites::Bytes { multiple_of }) => {
                let end = at.checked_add(bytes.len() as u64).filter(|end| *end <= whole && is_decoded);
                let is_cut = |end: u64| end.is_multiple_of(multiple_of) || end == whole;
                end.is_some_and(|end| at.is_multiple_of(multiple_of) && is_cut(end))
            }
            (ChunkWrite::ElementBlock { start, count, bytes, .. }, PartialWrites::ElementBlocks) => {
                is_decoded && self.is_block(start, count, bytes.len() as u64)
            }
            (ChunkWrite::ByteRange { .. } | ChunkWrite::ElementBlock { .. }, _) => {
                return Err(Error::Unsupported("a part of a chunk in this form"));
            }
        };
        match is_valid {
            true => Ok(()),
            false => Err(Error::Invalid(format!("this is no part of a chunk of {whole} bytes that can be written"))),
        }
    }

    /// Whether a box lies in a chunk and has so many bytes.
    fn is_block(&self, start: &[u64], count: &[u64], bytes: u64) -> bool {
        let Some(sides) = self.spec.chunk_dims_or_extent() else { return false };
        let fits =
            |((start, count), side): ((&u64, &u64), &u64)| start.checked_add(*count).is_some_and(|end| end <= *side);
        let size = count.iter().try_fold(u64::from(self.spec.datatype.size()), |n, count| n.checked_mul(*count));
        start.len() == sides.len()
            && count.len() == sides.len()
            && start.iter().zip(count).zip(sides).all(fits)
            && size == Some(bytes)
    }

    fn put_chunk(&mut self, coord: &ChunkCoord, chunk: MemoryChunk, staging: SmallWritesStagedBy) {
        match staging {
            SmallWritesStagedBy::Caller => drop(self.chunks.insert(coord.clone(), chunk)),
            SmallWritesStagedBy::Store => drop(self.pending.insert(coord.clone(), Some(chunk))),
        }
    }

    /// The bytes of a chunk that is to be changed in place, with fill values if it is new.
    fn chunk_to_change(
        &mut self,
        coord: &ChunkCoord,
        staging: SmallWritesStagedBy,
        limit: AllocationLimit,
    ) -> Result<&mut Vec<u8>> {
        let is_there = match staging {
            SmallWritesStagedBy::Caller => self.chunks.contains_key(coord),
            SmallWritesStagedBy::Store => matches!(self.pending.get(coord), Some(Some(_))),
        };
        if !is_there {
            let chunk = match self.chunk(coord, true) {
                Some(committed) => committed.clone(),
                None => {
                    let mut chunk = limit.zeroed(self.spec.chunk_bytes_at(coord)?)?;
                    self.spec.fill_into(0, &mut chunk);
                    (0, chunk)
                }
            };
            self.put_chunk(coord, chunk, staging);
        }
        let chunk = match staging {
            SmallWritesStagedBy::Caller => self.chunks.get_mut(coord),
            SmallWritesStagedBy::Store => self.pending.get_mut(coord).and_then(Option::as_mut),
        };
        chunk.map(|(_, bytes)| bytes).ok_or_else(|| Error::Invalid("the chunk is gone".into()))
    }

    /// Changes the extent.
    pub(super) fn resize(&mut self, dims: &[u64], behavior: SimulatedChunkCapabilities) -> Result<()> {
        let spec = Arc::make_mut(&mut self.spec);
        let (Layout::Chunked(_), Dataspace::Simple(shape)) = (&spec.layout, &mut spec.dataspace) else {
            return Err(Error::Invalid("only a chunked dataset changes its extent".into()));
        };
        if !shape.try_resize(dims) {
            return Err(Error::Invalid(format!("{dims:?} is not within the maximum {:?}", shape.max_dims())));
        }
        let Some(grid) = spec.grid_or_single_chunk() else { return Ok(()) };
        let counts = grid.chunk_counts(dims);
        let is_outside = |coord: &ChunkCoord| coord.scaled().iter().zip(&counts).any(|(at, n)| at >= n);
        match behavior.staging {
            SmallWritesStagedBy::Caller => self.chunks.retain(|coord, _| !is_outside(coord)),
            SmallWritesStagedBy::Store => {
                let outside: Vec<_> =
                    self.chunks(true).into_keys().filter(|coord| is_outside(coord)).cloned().collect();
                self.pending.extend(outside.into_iter().map(|coord| (coord, None)));
            }
        }
        Ok(())
    }
}

/// Writes a box of elements of `size` bytes into a chunk of these sides.
fn put_block(chunk: &mut [u8], sides: &[u64], (start, count): (&[u64], &[u64]), bytes: &[u8], size: usize) {
    let row = count.last().map_or(1, |count| *count as usize) * size;
    let mut at = start.to_vec();
    for bytes in bytes.chunks_exact(row.max(1)) {
        let place = at.iter().zip(sides).fold(0, |place, (at, side)| place * *side as usize + *at as usize) * size;
        chunk[place..place + row].copy_from_slice(bytes);
        // The next row of the box.
        for dim in (0..at.len().saturating_sub(1)).rev() {
            at[dim] += 1;
            if at[dim] < start[dim] + count[dim] {
                break;
            }
            at[dim] = start[dim];
        }
    }
}
