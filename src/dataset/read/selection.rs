//! Reads of a selection: it is cut by chunks, which are read one by one, or many by one call where a store reads best
//! like that.

use std::ops::Range;
use std::sync::Arc;

use h5live_model::{BoundSelection, ChunkCoord, ChunkGrid, ChunkReadStrategy};
use parking_lot::Mutex;

use super::chunk_reader::{ChunkContent, ChunkReadPart, ChunkReader, DatasetReader};
use crate::dataset::core::CHUNKS_PER_BATCH;
use crate::dataset::error::DatasetError;
use crate::dataset::scratch::with_scratch;
use crate::dataset::transfer::ElementSink;

/// Chunks that one call reads at most.
const MAX_CHUNKS_PER_CALL: usize = 16 << 10;

impl DatasetReader<'_> {
    /// Reads the elements of a selection into a sink that has a place for each.
    #[inline]
    pub(crate) fn read<S: ElementSink>(&self, selected: &BoundSelection, sink: S) -> Result<(), DatasetError> {
        let _reading = self.core.blobs.begin_read(&self.view.spec.datatype);
        match self.core.read.reads {
            ChunkReadStrategy::Direct { .. } | ChunkReadStrategy::ElementBlocks => self.read_direct(selected, sink),
            ChunkReadStrategy::Batched { max_gap_bytes: gap, .. } => {
                self.read_batched(selected, sink, usize::try_from(gap).unwrap_or(usize::MAX))
            }
        }
    }

    /// As [`DatasetReader::read`]. Unfiltered bytes up to `gap` apart are read as one.
    #[cold]
    fn read_batched<S: ElementSink>(&self, selected: &BoundSelection, sink: S, gap: usize) -> Result<(), DatasetError> {
        if selected.element_count() == 0 {
            return Ok(());
        }
        let Some((grid, bytes)) = self.view.grid()? else { return Ok(()) };
        let chunk = ChunkReader { reader: *self, cut: &selected.split_by_chunks(&grid), grid: &grid, bytes };
        let sink = Mutex::new(sink);
        let mut coords = chunk.cut.chunks();
        loop {
            let listed: Vec<_> = coords.by_ref().take(MAX_CHUNKS_PER_CALL).collect();
            if listed.is_empty() {
                return Ok(());
            }
            chunk.read_many(&listed, gap, &sink)?;
        }
    }

    /// Reads the elements of a selection, chunk by chunk, into a sink that has a place for each.
    pub(super) fn read_direct<S: ElementSink>(
        &self,
        selected: &BoundSelection,
        mut sink: S,
    ) -> Result<(), DatasetError> {
        if selected.element_count() == 0 {
            return Ok(());
        }
        let Some((grid, chunk_bytes)) = self.view.grid()? else { return Ok(()) };
        let chunk =
            ChunkReader { reader: *self, cut: &selected.split_by_chunks(&grid), grid: &grid, bytes: chunk_bytes };
        if let Some((coord, run)) = &chunk.cut.single_chunk_run() {
            let run = *run;
            let shares = chunk.split_run(coord, run, &mut sink);
            if !shares.is_empty() {
                return chunk.read_pieces(shares, &mut 0, sink, true).map(drop);
            }
            return with_scratch(|scratch| {
                chunk.read(&ChunkReadPart { coord, single: Some(run) }, 0, &mut sink, scratch)
            });
        }
        let mut coords = chunk.cut.chunks().peekable();
        let batch = self.core.chunks_per_batch(chunk_bytes);
        // Each thread has one chunk of these at a time. They are more if memory for as many as there are threads is no
        // matter.
        let list = if batch < 2 * rayon::current_num_threads() { batch } else { CHUNKS_PER_BATCH };
        let is_parallel = |n: usize| chunk.is_parallel(n, selected.element_count());
        // Places before `base` are done with, and no longer in the sink.
        let mut base = 0;
        let mut listed: Vec<ChunkCoord> = Vec::new();
        loop {
            listed.extend(coords.by_ref().take(list - listed.len()));
            if listed.is_empty() {
                return Ok(());
            }
            if let Some(pieces) = chunk.split_into_pieces(&listed, base, coords.peek().is_none()) {
                let read = pieces.iter().map(|piece| piece.coords.len()).sum();
                sink = chunk.read_pieces(pieces, &mut base, sink, is_parallel(read))?;
                listed.drain(..read);
                continue;
            }
            for batch in listed.chunks(batch) {
                chunk.read_batch(batch, base, &mut sink, is_parallel(batch.len()))?;
            }
            listed.clear();
        }
    }

    /// The decoded bytes of a chunk; fill values if it was never written.
    pub(crate) fn read_chunk(
        &self,
        grid: &ChunkGrid,
        bytes: usize,
        coord: &ChunkCoord,
    ) -> Result<Vec<u8>, DatasetError> {
        self.read_chunk_part(grid, bytes, coord, 0..bytes)
    }

    /// As [`DatasetReader::read_chunk`], only some of the bytes.
    pub(crate) fn read_chunk_part(
        &self,
        grid: &ChunkGrid,
        bytes: usize,
        coord: &ChunkCoord,
        part: Range<usize>,
    ) -> Result<Vec<u8>, DatasetError> {
        let all = h5live_model::Selection::All.bind(&self.view.extent)?;
        let chunk = ChunkReader { reader: *self, cut: &all.split_by_chunks(grid), grid, bytes };
        let content = chunk.find_and_keep_content(coord, false)?;
        if let ChunkContent::Decoded(decoded) = content {
            return Ok(if part.len() == bytes { Arc::unwrap_or_clone(decoded) } else { decoded[part].to_vec() });
        }
        let mut found = self.core.max_allocation.zeroed(part.len() as u64)?;
        match content {
            ChunkContent::Unfiltered(stored, staged) => {
                chunk.read_span(stored.as_ref(), staged.as_ref(), part.start, &mut found)?;
            }
            _ => self.view.spec.fill_into(part.start as u64, &mut found),
        }
        Ok(found)
    }
}
