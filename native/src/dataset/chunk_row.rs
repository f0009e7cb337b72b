//! Chunks without filters that follow each other along a dimension, stored together: neighbours in the file by one
//! write.

use std::borrow::Cow;
use std::ops::Range;

use h5live_cache::{ChunkProxy, Owner, SpaceKind};
use h5live_format::{Addr, ChunkEntryFormat, ChunkIndexEntry};
use h5live_model::ChunkCoord;

use super::NativeDataset;
use super::layout::NativeLayout;
use super::state::DatasetState;
use crate::Result;

/// Chunks that are stored, and that no index leads to yet.
pub(super) struct StoredChunkRow {
    pub(super) places: Vec<Addr>,
    /// Chunks that are neighbours in the file, and the proxy of each group that must wait.
    runs: Vec<(Range<usize>, Option<ChunkProxy>)>,
}

impl NativeDataset {
    /// Stores `number` chunks of `size` bytes in new space; `bytes` are those of some of them. After an error, nothing
    /// is stored.
    pub(super) fn store_chunk_row<'a>(
        &self,
        layout: &NativeLayout,
        number: usize,
        size: u64,
        bytes: impl Fn(Range<usize>) -> Cow<'a, [u8]>,
    ) -> Result<StoredChunkRow> {
        let (cache, owner) = (&self.session.cache, Owner::new(self.shared.header_addr));
        let mut row = StoredChunkRow { places: Vec::with_capacity(number), runs: Vec::new() };
        let mut store = || -> Result<()> {
            for _ in 0..number {
                row.places.push(cache.space().alloc(size, SpaceKind::Raw)?);
            }
            let mut begin = 0;
            let is_shared = layout.allows_proxy_shared_by_chunks();
            for run in row.places.chunk_by(|one, next| is_shared && one.checked_add(size) == Some(*next)) {
                let range = begin..begin + run.len();
                begin = range.end;
                let place = run.first().copied().unwrap_or_default();
                let proxy = cache.write_or_enqueue_new_raw(owner, place, 0, &bytes(range.clone()))?;
                row.runs.push((range, proxy));
            }
            Ok(())
        };
        let stored = store();
        if stored.is_err() {
            for place in &row.places {
                cache.free_raw(Some(owner), *place, size);
            }
        }
        stored.map(|()| row)
    }

    /// Puts stored chunks into the index: `first` and those after it along a dimension.
    pub(super) fn index_chunk_row(
        &self,
        state: &DatasetState,
        (first, axis): (&ChunkCoord, usize),
        row: &StoredChunkRow,
    ) -> Result<()> {
        let at = first.scaled().get(axis).copied().unwrap_or_default();
        let _operation = self.session.cache.begin_atomic_change();
        row.runs.iter().try_for_each(|(range, proxy)| {
            let begin = first.with_index(axis, at.saturating_add(range.start as u64));
            let places = row.places.get(range.clone()).unwrap_or_default();
            state.layout.set_entries_along_axis(&begin, axis, places, proxy.as_ref())
        })
    }

    /// Puts stored chunks into the index, wherever they belong.
    pub(super) fn index_chunks(
        &self,
        state: &DatasetState,
        mut coords: impl Iterator<Item = ChunkCoord>,
        stored: &StoredChunkRow,
    ) -> Result<()> {
        let _operation = self.session.cache.begin_atomic_change();
        for (range, proxy) in &stored.runs {
            for addr in stored.places.get(range.clone()).unwrap_or_default() {
                let Some(coord) = coords.next() else { return Ok(()) };
                state.layout.set_chunk_entry(
                    &coord,
                    ChunkIndexEntry { addr: *addr, stored_size: 0, filter_mask: 0 },
                    proxy.as_ref(),
                )?;
            }
        }
        Ok(())
    }

    /// As [`ChunkWrite::ChunksAlongFirstDim`](h5live_model::ChunkWrite::ChunksAlongFirstDim).
    pub(super) fn write_consecutive_chunks(&self, first: &ChunkCoord, size: usize, bytes: &[u8]) -> Result<()> {
        self.check_writable()?;
        let state = self.state();
        let number = bytes.len() / size.max(1);
        let at = first.scaled().first().copied().unwrap_or_default();
        let is_row = matches!(&state.layout, NativeLayout::Chunked(_, _, ChunkEntryFormat::Unfiltered))
            && !state.spec.datatype.has_vlen_or_references()
            && number > 0
            && number * size == bytes.len();
        let last = first.with_index(0, at.saturating_add(number.saturating_sub(1) as u64));
        let mut are_new = is_row;
        if is_row {
            self.check_chunk_writable(&state, first, Some(size))?;
            self.check_chunk_writable(&state, &last, Some(size))?;
            are_new = !state.layout.has_any_chunk_along_axis(first, 0, number as u64)?;
        }
        if !are_new {
            let mut chunks = (at..).zip(bytes.chunks(size.max(1)));
            return chunks.try_for_each(|(at, chunk)| self.write_chunk(&first.with_index(0, at), 0, chunk));
        }
        let of = |range: Range<usize>| bytes.get(range.start * size..range.end * size).unwrap_or_default();
        let row = self.store_chunk_row(&state.layout, number, size as u64, |range| of(range).into())?;
        self.index_chunk_row(&state, (first, 0), &row)?;
        Ok(self.session.cache.flush_over_budget()?)
    }
}
