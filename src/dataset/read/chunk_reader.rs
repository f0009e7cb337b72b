//! From chunks to the caller's buffer.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use h5live_model::{
    ChunkCoord, ChunkGrid, ChunkReadStrategy, ChunkSplit, ElementRun, Store, StoredChunk, StridedRuns, WriterLiveness,
};
use rayon::prelude::*;

use super::chunk_cache::ChunkCache;
use super::run_group::{self, MAX_READ_GAP_BYTES, RunGroup};
use crate::dataset::core::DatasetCore;
use crate::dataset::error::DatasetError;
use crate::dataset::scratch::with_scratch;
use crate::dataset::spec_snapshot::SpecSnapshot;
use crate::dataset::stage::StagedBytes;
use crate::dataset::transfer::ElementSink;
use crate::error::ErrorKind;
use crate::types::ConversionContext;

/// Times that a chunk of a live file is read again when it does not decode.
pub(super) const MAX_DECODE_RETRIES: u32 = 8;
/// Least bytes that are worth another thread (decoded bytes, or without filters, selected bytes)...
const MIN_PARALLEL_BYTES: usize = 64 << 10;
/// ...and finding an unfiltered chunk counts as this many bytes.
const LOOKUP_COST_BYTES: usize = 1 << 10;
/// The least share of one run that is worth another thread if it is converted (bytes), and if it is only copied...
const MIN_CONVERTED_SHARE_BYTES: usize = 512 << 10;
const MIN_COPIED_SHARE_BYTES: usize = 4 << 20;
/// ...and the most shares for each thread.
const MAX_SHARES_PER_THREAD: usize = 8;
/// Room for a stored chunk beyond twice its decoded size (bytes).
pub(super) const STORED_CHUNK_SLACK_BYTES: usize = 64 << 10;

/// One read of a dataset. It begins with [`DatasetReader::read`], in `selection.rs`, which cuts it by chunks.
#[derive(Clone, Copy)]
pub(crate) struct DatasetReader<'a> {
    pub(crate) core: &'a DatasetCore,
    pub(crate) view: &'a SpecSnapshot,
    pub(crate) store: &'a dyn Store,
    pub(crate) cache: &'a ChunkCache,
}

/// The elements of a chunk.
pub(super) enum ChunkContent {
    /// Nobody wrote them.
    Fill,
    Decoded(Arc<Vec<u8>>),
    /// Bytes of the store, or fill values, with the staged bytes over them.
    Unfiltered(Option<StoredChunk>, Option<StagedBytes>),
}

/// Chunks whose selected elements fill consecutive places.
pub(super) struct ReadPiece<'a> {
    pub(super) coords: &'a [ChunkCoord],
    /// All these elements, if they are one run of one chunk.
    single: Option<ElementRun>,
    /// Elements selected.
    elements: usize,
}

/// The part of one chunk that is read.
pub(super) struct ChunkReadPart<'a> {
    pub(crate) coord: &'a ChunkCoord,
    /// All of it, if it is one run.
    pub(super) single: Option<ElementRun>,
}

/// The chunks of one read.
pub(super) struct ChunkReader<'a> {
    pub(crate) reader: DatasetReader<'a>,
    pub(super) cut: &'a ChunkSplit<'a>,
    pub(super) grid: &'a ChunkGrid,
    /// Bytes of a decoded chunk.
    pub(crate) bytes: usize,
}

impl ChunkReader<'_> {
    /// Whether a read of `n` chunks is worth another thread. `elements` may be fewer than these chunks have.
    pub(super) fn is_parallel(&self, n: usize, elements: u64) -> bool {
        let bytes = n.saturating_sub(1).saturating_mul(self.bytes);
        let selected = usize::try_from(elements).map_or(usize::MAX, |n| n.saturating_mul(self.reader.view.size));
        let work = match self.reader.core.filters.is_empty() {
            true => bytes.min(selected.saturating_add(n.saturating_mul(LOOKUP_COST_BYTES))),
            false => bytes,
        };
        work >= MIN_PARALLEL_BYTES
    }

    /// Groups the chunks into pieces, if the selected elements of each piece directly follow those of the piece before,
    /// from `base` on. A piece is one chunk, or as many as share coordinates. Unless `is_all`, more chunks may follow,
    /// and may belong to the last piece; then that piece is left out.
    pub(super) fn split_into_pieces<'b>(
        &self,
        listed: &'b [ChunkCoord],
        base: usize,
        is_all: bool,
    ) -> Option<Vec<ReadPiece<'b>>> {
        let rank = self.grid.chunk_dims().len();
        if let Some(pieces) = self.split_at_depth(rank, listed, base) {
            return Some(pieces);
        }
        // Those of one piece are read by one thread. Elements of chunks without filters are all that takes time.
        let min_pieces = if self.reader.core.filters.is_empty() { 2 } else { 2 * rayon::current_num_threads() };
        (1..rank).rev().find_map(|depth| {
            let mut pieces = self.split_at_depth(depth, listed, base)?;
            if !is_all {
                pieces.pop();
            }
            (pieces.len() >= min_pieces).then_some(pieces)
        })
    }

    /// The pieces of the chunks that share their first `depth` coordinates.
    fn split_at_depth<'b>(&self, depth: usize, listed: &'b [ChunkCoord], base: usize) -> Option<Vec<ReadPiece<'b>>> {
        let mut next = base as u64;
        let mut pieces = Vec::new();
        for coords in listed.chunk_by(|a, b| a.scaled().get(..depth) == b.scaled().get(..depth)) {
            let coord = coords.first()?;
            let places = self.cut.dest_range(coord, depth).filter(|places| places.start == next)?;
            let elements = usize::try_from(places.end - next).ok()?;
            next = places.end;
            let single = if coords.len() == 1 { self.cut.single_run(coord) } else { None };
            pieces.push(ReadPiece { coords, single, elements });
        }
        Some(pieces)
    }

    /// Splits a run of a chunk into pieces for several threads. Empty if one thread should read it.
    pub(super) fn split_run<'b>(
        &self,
        coord: &'b ChunkCoord,
        run: ElementRun,
        sink: &mut impl ElementSink,
    ) -> Vec<ReadPiece<'b>> {
        let size = self.reader.view.size;
        // A chunk with filters is decoded once, and a follower reads as many bytes at once as are seen as one.
        let is_plain =
            self.reader.core.filters.is_empty() && self.reader.core.read.max_read_bytes < MIN_CONVERTED_SHARE_BYTES;
        let is_copied = sink.direct_bytes_mut(0..1).is_some();
        if is_copied && self.reader.core.read.reads == ChunkReadStrategy::ElementBlocks {
            // The store uses threads as it sees fit.
            return Vec::new();
        }
        let min_share_bytes = if is_copied { MIN_COPIED_SHARE_BYTES } else { MIN_CONVERTED_SHARE_BYTES };
        let max_shares = run.len as usize / (min_share_bytes / size).max(1);
        if max_shares < 2 || !is_plain {
            return Vec::new();
        }
        let share = run.len.div_ceil(max_shares.min(MAX_SHARES_PER_THREAD * rayon::current_num_threads()) as u64);
        let starts = (0..run.len).step_by(share as usize);
        let run_from = |n: u64| ElementRun {
            offset_in_chunk: run.offset_in_chunk + n,
            offset_in_selection: run.offset_in_selection + n,
            len: share.min(run.len - n),
        };
        let coords = std::slice::from_ref(coord);
        let piece = |run: ElementRun| ReadPiece { coords, single: Some(run), elements: run.len as usize };
        starts.map(|n| piece(run_from(n))).collect()
    }

    /// Reads pieces that follow each other in the sink, from the place `base` on. Leaves the rest of the sink.
    pub(super) fn read_pieces<S: ElementSink>(
        &self,
        pieces: Vec<ReadPiece<'_>>,
        base: &mut usize,
        mut sink: S,
        parallel: bool,
    ) -> Result<S, DatasetError> {
        let mut parts = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let (part, rest) = sink.split(piece.elements);
            sink = rest;
            let elements = piece.elements;
            parts.push((*base, part, piece));
            *base += elements;
        }
        let read = |(base, mut part, piece): (usize, S, ReadPiece<'_>)| {
            with_scratch(|scratch| {
                let mut parts = piece.coords.iter().map(|coord| ChunkReadPart { coord, single: piece.single });
                parts.try_for_each(|chunk| self.read(&chunk, base, &mut part, scratch))
            })
        };
        if parallel && parts.len() > 1 {
            parts.into_par_iter().try_for_each(read)?;
        } else {
            parts.into_iter().try_for_each(read)?;
        }
        Ok(sink)
    }

    /// Reads chunks whose elements go anywhere: first the contents of all chunks, then the elements into their places.
    pub(super) fn read_batch<S: ElementSink>(
        &self,
        batch: &[ChunkCoord],
        base: usize,
        sink: &mut S,
        parallel: bool,
    ) -> Result<(), DatasetError> {
        let content =
            |coord: &ChunkCoord| self.find_and_keep_content(coord, true).map_err(|failure| failure.with_chunk(coord));
        let contents: Vec<_> = match parallel {
            true => batch.par_iter().map(content).collect::<Result<_, _>>()?,
            false => batch.iter().map(content).collect::<Result<_, _>>()?,
        };
        for (coord, content) in batch.iter().zip(contents) {
            let part = ChunkReadPart { coord, single: None };
            let done = with_scratch(|scratch| self.scatter_content(&part, content, base, sink, scratch));
            done.map_err(|failure| failure.with_chunk(coord))?;
        }
        Ok(())
    }

    /// Reads one chunk into its own sink, whose first place is `base`.
    pub(super) fn read<S: ElementSink>(
        &self,
        part: &ChunkReadPart<'_>,
        base: usize,
        sink: &mut S,
        scratch: &mut Vec<u8>,
    ) -> Result<(), DatasetError> {
        self.read_chunk_elements(part, base, sink, scratch).map_err(|failure| failure.with_chunk(part.coord))
    }

    fn read_chunk_elements<S: ElementSink>(
        &self,
        part: &ChunkReadPart<'_>,
        base: usize,
        sink: &mut S,
        scratch: &mut Vec<u8>,
    ) -> Result<(), DatasetError> {
        let whole = part.single.filter(|run| run.offset_in_chunk == 0 && run.len == self.chunk_elements());
        if let (Some(run), false) = (whole, self.reader.core.filters.is_empty()) {
            // A whole chunk is decoded right where it is wanted.
            if let Some(direct) = sink.direct_bytes_mut(self.dest_range(run, base)) {
                match self.find_content(part.coord, Some(direct))? {
                    Some(content) => return self.scatter_content(part, content, base, sink, scratch),
                    None => return Ok(()),
                }
            }
        }
        let content = self.find_and_keep_content(part.coord, whole.is_none())?;
        self.scatter_content(part, content, base, sink, scratch)
    }

    pub(super) fn chunk_elements(&self) -> u64 {
        (self.bytes / self.reader.view.size) as u64
    }

    pub(super) fn dest_range(&self, run: ElementRun, base: usize) -> Range<usize> {
        let start = run.offset_in_selection as usize - base;
        start..start + run.len as usize
    }

    /// The contents of a chunk. With `keep`, a decoded chunk is kept for later reads.
    pub(super) fn find_and_keep_content(&self, coord: &ChunkCoord, keep: bool) -> Result<ChunkContent, DatasetError> {
        let DatasetReader { core, cache, .. } = self.reader;
        let changes = core.read.changes();
        let content = self.find_content(coord, None)?.unwrap_or(ChunkContent::Fill);
        if let (ChunkContent::Decoded(bytes), true) = (&content, keep)
            && core.stage.lock().staged_bytes_of(coord).is_none()
        {
            let is_old = || core.read.changes() != changes;
            cache.insert(core.cache_id(), coord, bytes.clone(), is_old);
        }
        Ok(content)
    }

    /// The contents of a chunk, if the store need not be asked.
    #[inline(always)]
    pub(super) fn content_without_store(
        &self,
        coord: &ChunkCoord,
        staged: Option<&StagedBytes>,
    ) -> Option<ChunkContent> {
        let DatasetReader { core, cache, .. } = self.reader;
        if let Some(whole) = staged.and_then(|staged| staged.whole_chunk(self.bytes)) {
            return Some(ChunkContent::Decoded(whole));
        }
        let is_kept = !core.filters.is_empty();
        is_kept.then(|| cache.get(core.cache_id(), coord).map(ChunkContent::Decoded)).flatten()
    }

    /// Finds out what a chunk holds, and decodes it: into `direct`, if that is given, and then there is nothing left
    /// to scatter.
    fn find_content(
        &self,
        coord: &ChunkCoord,
        mut direct: Option<&mut [u8]>,
    ) -> Result<Option<ChunkContent>, DatasetError> {
        let DatasetReader { core, view, cache, store } = self.reader;
        let staged = core.stage.lock().staged_bytes_of(coord);
        if let Some(known) = self.content_without_store(coord, staged.as_ref()) {
            return Ok(Some(known));
        }
        let mut attempt = 0;
        loop {
            let Some(stored) = core.chunks.locate(coord)? else {
                let content =
                    if staged.is_some() { ChunkContent::Unfiltered(None, staged) } else { ChunkContent::Fill };
                return Ok(Some(content));
            };
            if core.filters.is_identity(stored.filter_mask) || view.is_unfiltered_edge(self.grid, coord) {
                let expected = self.bytes as u64;
                if stored.size < expected {
                    return Err(ErrorKind::StoredChunkLength { expected, found: stored.size }.into());
                }
                return Ok(Some(ChunkContent::Unfiltered(Some(stored), staged)));
            }
            let decoded = match &mut direct {
                Some(direct) => {
                    // Between two filters, all of the chunk is in memory once more.
                    if view.spec.filters.len() > 1 {
                        core.check_allocation(self.bytes)?;
                    }
                    self.decode_stored(&stored, direct).map(|()| None)
                }
                None => {
                    let mut bytes = core.max_allocation.zeroed(self.bytes as u64)?;
                    self.decode_stored(&stored, &mut bytes).map(|()| Some(ChunkContent::Decoded(Arc::new(bytes))))
                }
            };
            match decoded {
                Ok(content) => {
                    cache.record_waits(attempt, true);
                    return Ok(content);
                }
                Err(failure)
                    if attempt
                        >= (if failure.is_moved() || cache.is_worth_waiting() { MAX_DECODE_RETRIES } else { 1 }) =>
                {
                    cache.record_waits(attempt, false);
                    return Err(if failure.is_moved() { failure } else { failure.into_unfinished() });
                }
                Err(failure) if !(failure.is_moved() || store.liveness()? != WriterLiveness::AtRest) => {
                    return Err(failure);
                }
                Err(_) => {
                    std::thread::sleep(Duration::from_micros(200 << attempt));
                    attempt += 1;
                    core.chunks.refresh()?;
                }
            }
        }
    }

    /// Reads a stored chunk and undoes its filters.
    fn decode_stored(&self, stored: &StoredChunk, into: &mut [u8]) -> Result<(), DatasetError> {
        let core = self.reader.core;
        let max_bytes = self.bytes.saturating_mul(2).saturating_add(STORED_CHUNK_SLACK_BYTES);
        let size = usize::try_from(stored.size).ok().filter(|size| *size <= max_bytes);
        let size = size.ok_or(ErrorKind::StoredChunkLength { expected: self.bytes as u64, found: stored.size })?;
        with_scratch(|scratch| {
            if scratch.len() < size {
                *scratch = core.max_allocation.zeroed(stored.size)?;
            }
            let bytes = &mut scratch[..size];
            core.chunks.read(stored, 0, bytes)?;
            Ok(core.filters.decode_into(stored.filter_mask, bytes, into)?)
        })
    }

    /// Puts the selected elements of a chunk into their places; `base` is the first one. If the chunk was stored at a
    /// new place meanwhile, all of its elements are read again.
    pub(super) fn scatter_content<S: ElementSink>(
        &self,
        part: &ChunkReadPart<'_>,
        content: ChunkContent,
        base: usize,
        sink: &mut S,
        scratch: &mut Vec<u8>,
    ) -> Result<(), DatasetError> {
        let mut content = content;
        for _ in 0..MAX_DECODE_RETRIES {
            match self.scatter_content_once(part, content, base, sink, scratch) {
                Err(failure) if failure.is_moved() => {
                    self.reader.core.chunks.refresh()?;
                    content = self.find_content(part.coord, None)?.unwrap_or(ChunkContent::Fill);
                }
                done => return done,
            }
        }
        self.scatter_content_once(part, content, base, sink, scratch)
    }

    fn scatter_content_once<S: ElementSink>(
        &self,
        part: &ChunkReadPart<'_>,
        content: ChunkContent,
        base: usize,
        sink: &mut S,
        scratch: &mut Vec<u8>,
    ) -> Result<(), DatasetError> {
        let size = self.reader.view.size;
        let context = ConversionContext::new(self.reader.store);
        let mut result = Ok(());
        match content {
            ChunkContent::Fill => {
                let fill = self.reader.view.spec.fill_value_or_zeros();
                self.for_each_strided(part, &mut result, |runs| {
                    runs.runs().try_for_each(|run| Ok(sink.fill_with(self.dest_range(run, base), &fill, context)?))
                });
            }
            ChunkContent::Decoded(bytes) => self.for_each_strided(part, &mut result, |runs| {
                Ok(run_group::put_runs(
                    &runs,
                    &bytes[runs.first_run.offset_in_chunk as usize * size..],
                    size,
                    base,
                    sink,
                    context,
                )?)
            }),
            ChunkContent::Unfiltered(Some(stored), None)
                if self.reader.core.read.reads == ChunkReadStrategy::ElementBlocks && part.single.is_none() =>
            {
                self.for_each_strided(part, &mut result, |runs| {
                    self.gather_blocks(&runs, &stored, base, sink, scratch)
                });
            }
            ChunkContent::Unfiltered(stored, staged) => {
                if let Some(run) = part.single {
                    return self.gather_single_run(run, stored.as_ref(), staged.as_ref(), base, sink, scratch);
                }
                let mut group = RunGroup::new(size, MAX_READ_GAP_BYTES);
                self.for_each_strided(part, &mut result, |runs| {
                    let mut take = |runs: StridedRuns| {
                        if !group.try_push(runs) {
                            self.gather_runs(&mut group, stored.as_ref(), staged.as_ref(), base, sink, scratch)?;
                            group.push(runs);
                        }
                        Ok(())
                    };
                    match runs.count {
                        1 => take(runs),
                        _ => run_group::split_distant(runs, size, MAX_READ_GAP_BYTES).try_for_each(take),
                    }
                });
                result?;
                return self.gather_runs(&mut group, stored.as_ref(), staged.as_ref(), base, sink, scratch);
            }
        }
        result
    }

    fn for_each_strided(
        &self,
        part: &ChunkReadPart<'_>,
        result: &mut Result<(), DatasetError>,
        mut each: impl FnMut(StridedRuns) -> Result<(), DatasetError>,
    ) {
        if let Some(run) = part.single {
            *result = each(run.into());
            return;
        }
        self.cut.for_each_strided(part.coord, |runs| {
            if result.is_ok() {
                *result = each(runs);
            }
        });
    }
}
