//! Selected elements of a chunk without filters: run by run, or as boxes where a store reads best like that.

use h5live_model::{ElementRun, StoredChunk, StridedRuns, strided_runs_as_block};

use super::chunk_reader::{ChunkReader, DatasetReader};
use super::run_group::{self, RunGroup};
use crate::dataset::error::DatasetError;
use crate::dataset::scratch::resize_scratch;
use crate::dataset::stage::StagedBytes;
use crate::dataset::transfer::ElementSink;
use crate::types::ConversionContext;

/// The most bytes of a box of elements that is read by one call.
const MAX_BLOCK_BYTES: usize = 4 << 20;

impl ChunkReader<'_> {
    /// Reads the runs of a group, and forgets them.
    pub(super) fn gather_runs<S: ElementSink>(
        &self,
        group: &mut RunGroup,
        stored: Option<&StoredChunk>,
        staged: Option<&StagedBytes>,
        base: usize,
        sink: &mut S,
        scratch: &mut Vec<u8>,
    ) -> Result<(), DatasetError> {
        if let Some(run) = group.single() {
            group.clear();
            return self.gather_single_run(run, stored, staged, base, sink, scratch);
        }
        if !group.is_empty() {
            let bytes = group.bytes();
            let scratch = resize_scratch(scratch, bytes.len());
            self.read_span(stored, staged, bytes.start, scratch)?;
            group.put_elements(scratch, base, sink, ConversionContext::new(self.reader.store))?;
            group.clear();
        }
        Ok(())
    }

    /// Reads runs as boxes of elements, each by one call.
    pub(super) fn gather_blocks<S: ElementSink>(
        &self,
        runs: &StridedRuns,
        stored: &StoredChunk,
        base: usize,
        sink: &mut S,
        scratch: &mut Vec<u8>,
    ) -> Result<(), DatasetError> {
        let (size, sides) = (self.reader.view.size, self.grid.chunk_dims());
        let run_bytes = runs.first_run.len as usize * size;
        for part in run_group::split_evenly(*runs, (MAX_BLOCK_BYTES / run_bytes).max(1) as u64) {
            let block = if part.count == 1 { None } else { strided_runs_as_block(sides, &part) };
            let Some(block) = block else {
                let mut runs = part.runs();
                runs.try_for_each(|run| self.gather_single_run(run, Some(stored), None, base, sink, scratch))?;
                continue;
            };
            let bytes = run_bytes * part.count as usize;
            let places = self.dest_range(ElementRun { len: part.first_run.len * part.count, ..part.first_run }, base);
            let is_one_run = part.stride_in_selection == part.first_run.len;
            if let Some(direct) = sink.direct_bytes_mut(places).filter(|_| is_one_run) {
                self.reader.core.chunks.read_block(stored, &block.start, &block.count, direct)?;
                continue;
            }
            let scratch = resize_scratch(scratch, bytes);
            self.reader.core.chunks.read_block(stored, &block.start, &block.count, scratch)?;
            let packed = StridedRuns { stride_in_chunk: part.first_run.len, ..part };
            run_group::put_runs(&packed, scratch, size, base, sink, ConversionContext::new(self.reader.store))?;
        }
        Ok(())
    }

    /// Reads one run.
    pub(super) fn gather_single_run<S: ElementSink>(
        &self,
        run: ElementRun,
        stored: Option<&StoredChunk>,
        staged: Option<&StagedBytes>,
        base: usize,
        sink: &mut S,
        scratch: &mut Vec<u8>,
    ) -> Result<(), DatasetError> {
        let size = self.reader.view.size;
        let (places, start) = (self.dest_range(run, base), run.offset_in_chunk as usize * size);
        if let Some(direct) = sink.direct_bytes_mut(places.clone()) {
            return self.read_span(stored, staged, start, direct);
        }
        let (at_once, mut from, len) = (self.reader.core.read.max_read_bytes, 0, run.len as usize);
        while from < len {
            let at = start + from * size;
            let n = ((at_once - at % at_once) / size).clamp(1, len - from);
            let scratch = resize_scratch(scratch, n * size);
            self.read_span(stored, staged, at, scratch)?;
            sink.put_elements(
                places.start + from..places.start + from + n,
                scratch,
                ConversionContext::new(self.reader.store),
            )?;
            from += n;
        }
        Ok(())
    }

    /// The bytes of an unfiltered chunk from `at` on: from the store or fill values, with the staged bytes over them.
    pub(super) fn read_span(
        &self,
        stored: Option<&StoredChunk>,
        staged: Option<&StagedBytes>,
        at: usize,
        into: &mut [u8],
    ) -> Result<(), DatasetError> {
        let DatasetReader { core, view, .. } = self.reader;
        match stored {
            Some(stored) => core.chunks.read(stored, at as u64, into)?,
            None => view.spec.fill_into(at as u64, into),
        }
        if let Some(staged) = staged {
            staged.overlay_onto(at, into);
        }
        Ok(())
    }
}
