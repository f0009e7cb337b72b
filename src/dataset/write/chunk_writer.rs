//! The chunks of one write, as wholes or in parts.

use std::ops::Range;
use std::sync::Arc;

use h5live_model::{
    Block, ChunkBatch, ChunkCoord, ChunkGrid, ChunkSplit, ChunkWrite, ElementRun, StridedRuns, split_run_into_blocks,
    strided_runs_as_block,
};
use smallvec::SmallVec;

use crate::convert::ConvertError;
use crate::dataset::error::DatasetError;
use crate::dataset::stage::{MAX_STAGED_PART_BYTES, StagedChunk};
use crate::dataset::store::{DatasetWriter, EncodeBuffers, PartWrites, encode_and_store};
use crate::dataset::transfer::ElementSource;

/// Unfiltered chunks up to this size are put together before they are stored (bytes).
const MAX_ASSEMBLED_CHUNK_BYTES: usize = 4 << 20;
/// A box of so many bytes is handed to the store where the caller has it.
const MIN_DIRECT_BLOCK_BYTES: usize = 1 << 10;
/// Boxes or parts that are handed to the store at once.
const MAX_BATCH_BLOCKS: usize = 1 << 10;

/// The chunks of one write.
pub(super) struct ChunkWriter<'a, S> {
    pub(super) writer: &'a DatasetWriter<'a>,
    pub(super) cut: &'a ChunkSplit<'a>,
    pub(super) grid: &'a ChunkGrid,
    /// Bytes of a decoded chunk.
    pub(crate) bytes: usize,
    pub(super) source: &'a S,
}

impl<S: ElementSource> ChunkWriter<'_, S> {
    /// Whether a chunk is stored as a whole: every element of it that lies in the extent was written.
    pub(super) fn is_covered(&self, coord: &ChunkCoord) -> bool {
        let view = &self.writer.view;
        let small = self.writer.core.store.part_writes == PartWrites::Never || self.bytes <= MAX_ASSEMBLED_CHUNK_BYTES;
        let single = self.cut.single_run(coord);
        if single.is_some_and(|run| run.len as usize * view.size == self.bytes) {
            return true;
        }
        if !small {
            return false;
        }
        let start = self.grid.start_of(coord);
        let sides = start.iter().zip(self.grid.chunk_dims()).zip(&view.extent);
        let inside: u64 = sides.map(|((start, size), extent)| (*size).min(extent.saturating_sub(*start))).product();
        let selected = single.map_or_else(|| self.cut.distinct_elements_in(coord), |run| run.len);
        // A chunk into which the extent may still grow is staged.
        let ends = start.iter().zip(self.grid.chunk_dims()).map(|(start, size)| start.saturating_add(*size));
        let grows = ends
            .zip(view.extent.iter().zip(view.spec.dataspace.max_dims()))
            .any(|(end, (extent, max))| end > *extent && max > extent);
        selected == inside && !grows
    }

    /// Stores chunks whose elements are all written.
    pub(super) fn store_batch(&self, batch: &[ChunkCoord]) -> Result<(), DatasetError> {
        let writer = self.writer;
        if writer.core.filters.is_empty() {
            return self.store_unfiltered(batch);
        }
        let encode = |coord: &ChunkCoord, memory: &mut EncodeBuffers| {
            let bytes = self.collect(coord, &mut memory.chunk).map_err(|failure| failure.with_chunk(coord))?;
            writer.encode_chunk(&writer.view, self.grid, coord, bytes, &mut memory.stored)
        };
        let store = |coord: &ChunkCoord, mask: u32, bytes: &[u8]| {
            writer.store_encoded(coord, mask, bytes)?;
            writer.core.stage.lock().chunks.take_chunk(coord);
            Ok(())
        };
        encode_and_store(batch, writer.core.chunks_per_batch(self.bytes), encode, store)
    }

    /// As [`ChunkWriter::store_batch`], for chunks that go through no filters here: as many at once as the store takes best.
    fn store_unfiltered(&self, batch: &[ChunkCoord]) -> Result<(), DatasetError> {
        let mut memory: SmallVec<[Vec<u8>; 1]> = SmallVec::new();
        for coords in batch.chunks(self.writer.core.chunks_per_write(self.bytes)) {
            memory.resize_with(coords.len(), Vec::new);
            let mut writes: SmallVec<[_; 1]> = SmallVec::new();
            for (coord, memory) in coords.iter().zip(&mut memory) {
                let bytes = self.collect(coord, memory).map_err(|failure| failure.with_chunk(coord))?;
                writes.push(ChunkWrite::Whole { coord, filter_mask: 0, bytes });
            }
            self.writer.store_many(&writes)?;
            let mut stage = self.writer.core.stage.lock();
            coords.iter().for_each(|coord| drop(stage.chunks.take_chunk(coord)));
        }
        Ok(())
    }

    /// The bytes of a chunk whose elements are all written: from their place, or put together in `memory`.
    fn collect<'b>(&'b self, coord: &ChunkCoord, memory: &'b mut Vec<u8>) -> Result<&'b [u8], DatasetError> {
        if let Some(run) = self.cut.single_run(coord)
            && run.len as usize * self.writer.view.size == self.bytes
            && let Some(direct) = self.source.direct_bytes(dest_range(run))
        {
            return Ok(direct);
        }
        self.writer.view.fill(memory, self.bytes);
        self.overlay(coord, memory)?;
        Ok(memory)
    }

    /// Writes the selected elements of a chunk over its bytes.
    fn overlay(&self, coord: &ChunkCoord, bytes: &mut [u8]) -> Result<(), DatasetError> {
        let size = self.writer.view.size;
        let mut result = Ok(());
        self.cut.for_each_run(coord, |run| {
            if result.is_ok() {
                let range = run.offset_in_chunk as usize * size..(run.offset_in_chunk + run.len) as usize * size;
                result = self.source.get_elements(dest_range(run), &mut bytes[range]);
            }
        });
        Ok(result?)
    }

    /// Writes over the staged bytes of a filtered chunk.
    fn stage_whole(&self, coord: &ChunkCoord) -> Result<(), DatasetError> {
        let writer = self.writer;
        let is_rewritten = self.changes_stored_rows(coord)?;
        {
            let mut stage = writer.core.stage.lock();
            if let Some(staged) = stage.chunks.get_mut(coord).filter(|staged| staged.bytes.len() == self.bytes) {
                staged.is_dirty = true;
                staged.is_rewritten |= is_rewritten;
                return self.overlay(coord, Arc::make_mut(&mut staged.bytes).as_mut_slice());
            }
        }
        let mut bytes = writer.reader().read_chunk(self.grid, self.bytes, coord)?;
        self.overlay(coord, &mut bytes)?;
        writer.core.stage.lock().chunks.stage_chunk(coord, StagedChunk::whole(bytes, is_rewritten));
        // From now on what is staged counts.
        writer.core.count_change();
        writer.cache.remove(writer.core.cache_id(), coord);
        Ok(())
    }

    /// Whether some of the selected elements of a chunk are in rows that the store has.
    fn changes_stored_rows(&self, coord: &ChunkCoord) -> Result<bool, DatasetError> {
        let (Some(chunk_rows), Some(at)) = (self.grid.chunk_dims().first(), coord.scaled().first()) else {
            return Ok(true);
        };
        let stored_rows = self.writer.core.stored_row_count()?.saturating_sub(at.saturating_mul(*chunk_rows));
        let row_elements: u64 = self.grid.chunk_dims().iter().skip(1).product();
        let mut first = u64::MAX;
        self.cut.for_each_run(coord, |run| first = first.min(run.offset_in_chunk));
        Ok(first / row_elements.max(1) < stored_rows)
    }

    /// Hands on part of a chunk.
    pub(super) fn write_part(&self, coord: &ChunkCoord) -> Result<(), DatasetError> {
        match self.writer.core.store.part_writes {
            PartWrites::Runs | PartWrites::Pieces(_) => self.stage_parts(coord),
            PartWrites::Blocks => self.store_blocks(coord),
            PartWrites::Never => self.stage_whole(coord),
        }
    }

    /// Stages the run of an unfiltered chunk if it is short, and stores a long one. Several runs are stored together.
    fn stage_parts(&self, coord: &ChunkCoord) -> Result<(), DatasetError> {
        if self.writer.core.store.part_writes == PartWrites::Runs && self.cut.single_run(coord).is_none() {
            return self.store_runs(coord);
        }
        let mut result = Ok(());
        let mut scratch = Vec::new();
        self.cut.for_each_run(coord, |run| {
            if result.is_ok() {
                result = self.for_each_piece(run, &mut scratch, |at, bytes| self.stage_part(coord, at, bytes));
            }
        });
        result
    }

    /// Stores the selected runs of an unfiltered chunk, many of them at once.
    fn store_runs(&self, coord: &ChunkCoord) -> Result<(), DatasetError> {
        let staged = self.writer.core.stage.lock().chunks.get(coord).cloned();
        if let Some(staged) = staged {
            self.writer.store_part(coord, staged.offset, &staged.bytes)?;
            self.writer.core.stage.lock().chunks.take_chunk(coord);
        }
        let (size, mut parts) = (self.writer.view.size, PartBatch::default());
        let step = (MAX_STAGED_PART_BYTES / size).max(1) as u64;
        let mut result = Ok(());
        self.cut.for_each_run(coord, |run| {
            for from in (0..run.len).step_by(step as usize) {
                if result.is_err() {
                    return;
                }
                let places = (run.offset_in_selection + from) as usize
                    ..(run.offset_in_selection + run.len.min(from + step)) as usize;
                result = self.add_part(coord, (run.offset_in_chunk + from) as usize * size, places, &mut parts);
            }
        });
        result?;
        self.store_part_batch(coord, &mut parts)
    }

    /// Adds a part of a chunk, which begins at `at` (bytes). Stores those before if they are many.
    fn add_part<'b>(
        &'b self,
        coord: &ChunkCoord,
        at: usize,
        places: Range<usize>,
        to: &mut PartBatch<'b>,
    ) -> Result<(), DatasetError> {
        let len = places.len() * self.writer.view.size;
        if to.total_bytes + len > MAX_STAGED_PART_BYTES || to.parts.len() >= MAX_BATCH_BLOCKS {
            self.store_part_batch(coord, to)?;
        }
        to.total_bytes += len;
        if let Some(direct) = self.source.direct_bytes(places.clone()) {
            to.parts.push((at, PartBytes::Direct(direct)));
            return Ok(());
        }
        let from = to.converted.len();
        to.converted.resize(from + len, 0);
        self.source.get_elements(places, &mut to.converted[from..])?;
        to.parts.push((at, PartBytes::Converted(from..from + len)));
        Ok(())
    }

    /// Stores parts of a chunk, and forgets them.
    fn store_part_batch(&self, coord: &ChunkCoord, batch: &mut PartBatch<'_>) -> Result<(), DatasetError> {
        let mut writes = Vec::with_capacity(batch.parts.len());
        for (at, bytes) in &batch.parts {
            let bytes = match bytes {
                PartBytes::Direct(bytes) => bytes,
                PartBytes::Converted(range) => &batch.converted[range.clone()],
            };
            writes.push(ChunkWrite::ByteRange { coord, byte_offset: *at as u64, bytes, unseen: false });
        }
        if !writes.is_empty() {
            self.writer.core.chunks.write(&ChunkBatch { writes: &writes, ..ChunkBatch::default() })?;
        }
        batch.parts.clear();
        batch.converted.clear();
        batch.total_bytes = 0;
        Ok(())
    }

    /// Calls `each` with the elements of a run, piece by piece, and where each piece begins in the chunk (bytes).
    fn for_each_piece(
        &self,
        run: ElementRun,
        scratch: &mut Vec<u8>,
        mut each: impl FnMut(usize, &[u8]) -> Result<(), DatasetError>,
    ) -> Result<(), DatasetError> {
        let (size, places) = (self.writer.view.size, dest_range(run));
        let step = (MAX_STAGED_PART_BYTES / size).max(1);
        for from in places.clone().step_by(step) {
            let piece = from..places.end.min(from + step);
            let at = (run.offset_in_chunk as usize + (from - places.start)) * size;
            match self.source.direct_bytes(piece.clone()) {
                Some(direct) => each(at, direct)?,
                None => {
                    scratch.resize(piece.len() * size, 0);
                    self.source.get_elements(piece, scratch)?;
                    each(at, scratch)?;
                }
            }
        }
        Ok(())
    }

    /// Stages a short part of an unfiltered chunk, from `at` on (bytes), and stores a long one.
    fn stage_part(&self, coord: &ChunkCoord, at: usize, bytes: &[u8]) -> Result<(), DatasetError> {
        match self.writer.core.store.part_writes {
            PartWrites::Pieces(piece) => self.stage_pieces(coord, at, bytes, piece),
            _ => self.stage_run(coord, at, bytes),
        }
    }

    /// As [`ChunkWriter::stage_part`]: over or after what is staged of the chunk, or else in its place.
    fn stage_run(&self, coord: &ChunkCoord, at: usize, bytes: &[u8]) -> Result<(), DatasetError> {
        let stage = &self.writer.core.stage;
        let before = {
            let mut stage = stage.lock();
            if stage.chunks.add_run(coord, at, bytes) {
                return Ok(());
            }
            stage.chunks.get(coord).cloned()
        };
        if let Some(before) = before {
            self.writer.store_part(coord, before.offset, &before.bytes)?;
            let mut stage = stage.lock();
            stage.chunks.take_chunk(coord);
            if stage.chunks.add_run(coord, at, bytes) {
                return Ok(());
            }
        }
        self.writer.store_part(coord, at, bytes)
    }

    /// Stages a part of a chunk that the store takes in pieces of `piece` bytes. The rest of the first and the last
    /// piece is read, unless they are staged.
    fn stage_pieces(&self, coord: &ChunkCoord, at: usize, bytes: &[u8], piece: usize) -> Result<(), DatasetError> {
        let end = at + bytes.len();
        let (from, to) = (at - at % piece, end.next_multiple_of(piece).min(self.bytes));
        let is_whole = from == at && to == end;
        let is_staged = || self.writer.core.stage.lock().chunks.get(coord).is_some_and(|staged| staged.covers(at..end));
        if is_whole || is_staged() {
            return self.stage_run(coord, at, bytes);
        }
        let mut whole = self.writer.reader().read_chunk_part(self.grid, self.bytes, coord, from..to)?;
        whole[at - from..end - from].copy_from_slice(bytes);
        self.stage_run(coord, from, &whole)
    }

    /// Hands the selected boxes of an unfiltered chunk to the store, as they are.
    fn store_blocks(&self, coord: &ChunkCoord) -> Result<(), DatasetError> {
        let mut blocks = BlockBatch::default();
        let mut result = Ok(());
        self.cut.for_each_strided(coord, |runs| {
            if result.is_ok() {
                result = self.add_blocks(coord, runs, &mut blocks);
            }
        });
        result?;
        self.store_block_batch(coord, &mut blocks)
    }

    /// Adds the boxes that runs make: one, if they can be one.
    fn add_blocks(&self, coord: &ChunkCoord, runs: StridedRuns, to: &mut BlockBatch) -> Result<(), DatasetError> {
        let (size, sides) = (self.writer.view.size, self.grid.chunk_dims());
        let bytes = (runs.first_run.len as usize).saturating_mul(runs.count as usize).saturating_mul(size);
        if bytes <= MAX_STAGED_PART_BYTES
            && let Some(block) = strided_runs_as_block(sides, &runs)
        {
            if bytes >= MIN_DIRECT_BLOCK_BYTES
                && let Some(places) = runs.contiguous_selection_range()
                && let Some(bytes) = self.source.direct_bytes(places.start as usize..places.end as usize)
            {
                self.store_block_batch(coord, to)?;
                return self.store_block_writes(&[ChunkWrite::ElementBlock {
                    coord,
                    start: &block.start,
                    count: &block.count,
                    bytes,
                }]);
            }
            if to.bytes.len() + bytes > MAX_STAGED_PART_BYTES {
                self.store_block_batch(coord, to)?;
            }
            to.blocks.push((block, bytes));
            return runs.runs().try_for_each(|run| Ok(to.fill(self.source, dest_range(run), size)?));
        }
        let step = (MAX_STAGED_PART_BYTES / size).max(1) as u64;
        for run in runs.runs() {
            for from in (0..run.len).step_by(step as usize) {
                let len = step.min(run.len - from);
                if to.bytes.len() + len as usize * size > MAX_STAGED_PART_BYTES || to.blocks.len() >= MAX_BATCH_BLOCKS {
                    self.store_block_batch(coord, to)?;
                }
                let at = run.offset_in_chunk + from;
                to.blocks.extend(split_run_into_blocks(sides, at..at + len).map(|block| {
                    let bytes = block.count.iter().product::<u64>() as usize * size;
                    (block, bytes)
                }));
                let place = (run.offset_in_selection + from) as usize;
                to.fill(self.source, place..place + len as usize, size)?;
            }
        }
        Ok(())
    }

    /// Stores boxes of a chunk, and forgets them.
    fn store_block_batch(&self, coord: &ChunkCoord, batch: &mut BlockBatch) -> Result<(), DatasetError> {
        let mut rest = &batch.bytes[..];
        let mut writes = Vec::with_capacity(batch.blocks.len());
        for (block, len) in &batch.blocks {
            let (bytes, others) = rest.split_at(*len);
            rest = others;
            writes.push(ChunkWrite::ElementBlock { coord, start: &block.start, count: &block.count, bytes });
        }
        if !writes.is_empty() {
            self.store_block_writes(&writes)?;
        }
        batch.blocks.clear();
        batch.bytes.clear();
        Ok(())
    }

    fn store_block_writes(&self, writes: &[ChunkWrite<'_>]) -> Result<(), DatasetError> {
        self.writer.core.chunks.write(&ChunkBatch { writes, ..ChunkBatch::default() })?;
        self.writer.core.count_change();
        Ok(())
    }
}

/// Parts of one chunk on their way to the store.
#[derive(Default)]
struct PartBatch<'a> {
    /// The parts, each with its offset in the chunk (bytes).
    parts: Vec<(usize, PartBytes<'a>)>,
    /// The elements of those that had to be converted.
    converted: Vec<u8>,
    /// Bytes of all parts.
    total_bytes: usize,
}

/// The elements of a part.
enum PartBytes<'a> {
    /// Where the caller has them.
    Direct(&'a [u8]),
    /// A range of the converted ones.
    Converted(Range<usize>),
}

/// Boxes of one chunk on their way to the store.
#[derive(Default)]
struct BlockBatch {
    /// The boxes, each with the number of its bytes.
    blocks: Vec<(Block, usize)>,
    /// The elements of all, one box after the other.
    bytes: Vec<u8>,
}

impl BlockBatch {
    /// Adds elements.
    fn fill(&mut self, source: &impl ElementSource, places: Range<usize>, size: usize) -> Result<(), ConvertError> {
        match source.direct_bytes(places.clone()) {
            Some(direct) => self.bytes.extend_from_slice(direct),
            None => {
                let from = self.bytes.len();
                self.bytes.resize(from + places.len() * size, 0);
                source.get_elements(places, &mut self.bytes[from..])?;
            }
        }
        Ok(())
    }
}

pub(super) fn dest_range(run: ElementRun) -> Range<usize> {
    run.offset_in_selection as usize..(run.offset_in_selection + run.len) as usize
}
