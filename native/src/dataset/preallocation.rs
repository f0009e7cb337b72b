//! Preallocated chunks: chunks that are stored before their elements come. Where appends fill one chunk after the
//! other, the next chunks are stored with fill values and entered into the index, many at a time. They lie beyond the
//! extent, where no reader looks. An append then writes only its elements and the extent.
//!
//! Chunks that no append has used are freed when the file is closed. A writer that dies leaves them, like chunks that
//! were not published yet. The next writer drops them.

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};

use h5live_cache::{FlushScope, Owner};
use h5live_format::{Addr, ChunkEntryFormat};
use h5live_model::{ChunkCoord, DatasetSpec};

use super::NativeDataset;
use super::layout::NativeLayout;
use super::preallocated_append_rows::{PreallocatedAppendRows, SequentialAppends};
use super::state::DatasetState;
use crate::Result;

/// Chunks are preallocated after this many in sequence...
const MIN_SEQUENTIAL_CHUNKS: u64 = 3;
/// ...one for each so many appended chunks: this part of the file may stay unused.
const APPENDS_PER_PREALLOCATED_CHUNK: u64 = 8;
/// At least and at most this many at once...
const PREALLOCATED_CHUNKS: RangeInclusive<u64> = 2..=256;
/// ...and at most this many bytes. The system has less work for each page if one call brings more of them.
const MAX_PREALLOCATED_BYTES: usize = 1 << 20;
/// At most this many chunks of rows of several.
const MAX_CHUNKS_AT_ONCE: u64 = 4096;
/// Longer chunks are written as they come (bytes): to write them twice, once through a mapping, takes longer than the
/// calls and the index that it saves.
const MAX_PREALLOCATED_CHUNK_BYTES: u64 = 32 << 10;

static ZEROS: [u8; MAX_PREALLOCATED_BYTES] = [0; MAX_PREALLOCATED_BYTES];

/// The dimension along which `new` is larger, if it is only that.
fn growing_axis(old: &[u64], new: &[u64]) -> Option<usize> {
    let axis = old.iter().zip(new).position(|(old, new)| old != new)?;
    old.iter().zip(new).skip(axis + 1).all(|(old, new)| old == new).then_some(axis)
}

/// Chunks of a row of them, which is as wide as `dims` in all dimensions but `axis`.
fn row_width(axis: usize, dims: &[u64], chunk: &[u64]) -> u64 {
    let widths = dims.iter().zip(chunk).enumerate().filter(|(dim, _)| *dim != axis);
    widths.map(|(_, (dim, side))| dim.div_ceil(*side)).fold(1u64, u64::saturating_mul)
}

/// Fill values, `bytes` bytes of them.
fn fill_bytes(spec: &DatasetSpec, bytes: usize) -> Cow<'static, [u8]> {
    let zeros = ZEROS.get(..bytes).filter(|_| spec.nonzero_fill_value().is_none());
    zeros.map_or_else(|| spec.repeated_fill_value(bytes).into(), Cow::Borrowed)
}

impl NativeDataset {
    /// The chunk that an append to `dims` begins, made ready with the next ones if it is one of many.
    pub(super) fn preallocate_and_flush(
        &self,
        state: &DatasetState,
        row: &mut Option<SequentialAppends>,
        coord: &ChunkCoord,
        dims: &[u64],
    ) -> Result<Option<Addr>> {
        let Some(axis) = growing_axis(state.spec.dataspace.dims(), dims) else { return Ok(None) };
        let Some(ready) = self.plan_next_chunks(state, row, coord, (axis, dims))? else { return Ok(None) };
        if !ready.has_single_chunk_rows() {
            return Ok(None);
        }
        let place = self.preallocate_chunks(state, row, ready)?;
        if place.is_some() {
            self.session.flush(FlushScope::Owner(Owner::new(self.shared.header_addr)))?;
        }
        Ok(place)
    }

    /// Makes the rows of chunks ready that begin with the one of `coord`, which lies beyond the extent and is about to be
    /// written, if it is one of many that follow each other. Says whether it did. The next flush enters them into the
    /// index.
    pub(super) fn try_preallocate_rows(&self, state: &DatasetState, coord: &ChunkCoord) -> Result<bool> {
        let (dims, Some(chunk)) = (state.spec.dataspace.dims(), state.spec.chunk_dims_or_extent()) else {
            return Ok(false);
        };
        let mut beyond = coord
            .scaled()
            .iter()
            .zip(chunk)
            .zip(dims)
            .enumerate()
            .filter_map(|(dim, ((at, side), end))| (at.saturating_mul(*side) >= *end).then_some(dim));
        let (Some(axis), None) = (beyond.next(), beyond.next()) else { return Ok(false) };
        // A row of one chunk is made ready by its own append, if that is published at once.
        if row_width(axis, dims, chunk) == 1 {
            return Ok(false);
        }
        let mut fast_append = self.shared.fast_append.lock();
        let row = &mut fast_append.sequential_appends;
        let Some(ready) = self.plan_next_chunks(state, row, coord, (axis, dims))? else { return Ok(false) };
        Ok(self.preallocate_chunks(state, row, ready)?.is_some())
    }

    /// Counts a chunk that an append begins, and plans the ones that are made ready with it, if there are to be some. Rows
    /// of chunks are as wide as `dims`.
    fn plan_next_chunks(
        &self,
        state: &DatasetState,
        row: &mut Option<SequentialAppends>,
        coord: &ChunkCoord,
        (axis, dims): (usize, &[u64]),
    ) -> Result<Option<PreallocatedAppendRows>> {
        let chunk = state.spec.chunk_dims_or_extent().unwrap_or_default();
        let number = SequentialAppends::record_append_and_count_rows(row, axis, coord, row_width(axis, dims, chunk));
        let is_plain = matches!(state.layout, NativeLayout::Chunked(_, _, ChunkEntryFormat::Unfiltered))
            && state.layout.can_move_chunks();
        let size = state.spec.chunk_bytes_or_total().filter(|size| (1..=MAX_PREALLOCATED_CHUNK_BYTES).contains(size));
        let (true, Some(size)) = (is_plain && number >= MIN_SEQUENTIAL_CHUNKS, size) else { return Ok(None) };
        if !self.session.cache.allows_in_place_publish() {
            return Ok(None);
        }
        let wanted =
            (number / APPENDS_PER_PREALLOCATED_CHUNK).clamp(*PREALLOCATED_CHUNKS.start(), *PREALLOCATED_CHUNKS.end());
        let max_chunks = (MAX_PREALLOCATED_BYTES as u64 / size).min(MAX_CHUNKS_AT_ONCE);
        PreallocatedAppendRows::plan_chunk_rows(state, (axis, dims), coord, (wanted, max_chunks, size))
    }

    /// Stores chunks with fill values, and enters them into the index. Returns the address of the first one. `None` if
    /// they could not be written. There may still be room for one chunk; if not, its own write returns the error.
    fn preallocate_chunks(
        &self,
        state: &DatasetState,
        row: &mut Option<SequentialAppends>,
        mut ready: PreallocatedAppendRows,
    ) -> Result<Option<Addr>> {
        let number = usize::try_from(ready.chunk_count()).unwrap_or(usize::MAX);
        let fill = |run: Range<usize>| fill_bytes(&state.spec, run.len() * ready.chunk_bytes as usize);
        let Ok(stored) = self.store_chunk_row(&state.layout, number, ready.chunk_bytes, fill) else { return Ok(None) };
        let indexed = match ready.has_single_chunk_rows() {
            true => self.index_chunk_row(state, (&ready.first_chunk, ready.axis), &stored),
            false => self.index_chunks(state, ready.chunks(), &stored),
        };
        let number = row.as_ref().map_or(0, |row| row.append_count).saturating_add(ready.chunk_row_count());
        let last_chunk = ready.first_chunk.with_index(ready.axis, ready.end_index - 1);
        let chunks_in_row = u64::MAX;
        *row = Some(SequentialAppends { axis: ready.axis, last_chunk, append_count: number, chunks_in_row });
        ready.chunk_addrs = stored.places;
        let place = ready.chunk_addrs.first().copied();
        self.shared.keep_preallocated_rows(ready);
        indexed.map(|()| place)
    }
}
