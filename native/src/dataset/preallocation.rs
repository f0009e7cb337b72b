//! Preallocated chunks: chunks that are stored before their elements come. Where appends fill one chunk after the
//! other, the next chunks are stored with fill values and entered into the index, many at a time. They lie beyond the
//! extent, where no reader looks. An append then writes only its elements and the extent.
//!
//! Chunks that no append has used are freed when the file is closed. A writer that dies leaves them, like chunks that
//! were not published yet. The next writer drops them.

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};

use h5live_cache::{FlushScope, Owner};
use h5live_format::{Addr, ElementFormat, messages::DataspaceMessage};
use h5live_model::{ChunkCoord, DatasetSpec};

use super::layout::NativeLayout;
use super::{DatasetState, NativeDataset};
use crate::Result;
use crate::session::NativeSession;

/// Chunks are preallocated after this many in sequence...
const MIN_SEQUENTIAL_CHUNKS: u64 = 3;
/// ...one for each so many appended chunks: this part of the file may stay unused.
const APPENDS_PER_PREALLOCATED_CHUNK: u64 = 8;
/// At least and at most this many at once...
const PREALLOCATED_CHUNKS: RangeInclusive<u64> = 2..=256;
/// ...and at most this many bytes. The system has less work for each page if one call brings more of them.
const MAX_PREALLOCATED_BYTES: usize = 1 << 20;
/// Longer chunks are written as they come (bytes): to write them twice, once through a mapping, takes longer than the
/// calls and the index that it saves.
const MAX_PREALLOCATED_CHUNK_BYTES: u64 = 32 << 10;

static ZEROS: [u8; MAX_PREALLOCATED_BYTES] = [0; MAX_PREALLOCATED_BYTES];

/// Chunks that appends fill one after the other, along one dimension.
#[derive(Debug)]
pub(super) struct SequentialAppends {
    axis: usize,
    last: ChunkCoord,
    number: u64,
}

/// Chunks that were made ready: `from` the first along a dimension to the one before `end`.
#[derive(Debug)]
pub(crate) struct PreallocatedChunks {
    place: NativeLayout,
    axis: usize,
    from: ChunkCoord,
    end: u64,
    /// Elements of a chunk along it.
    side: u64,
    /// Bytes of a chunk.
    size: u64,
    /// The addresses of the chunks.
    places: Vec<Addr>,
}

impl SequentialAppends {
    fn is_followed_by(&self, coord: &ChunkCoord) -> bool {
        let last = self.last.scaled().get(self.axis);
        last.and_then(|last| last.checked_add(1)).is_some_and(|next| self.last.with_index(self.axis, next) == *coord)
    }

    /// Counts an append into `coord` that makes the dataset grow along `axis`.
    fn record(found: &mut Option<Self>, axis: usize, coord: &ChunkCoord) -> u64 {
        let before = found.take().filter(|row| row.axis == axis && row.is_followed_by(coord));
        let number = before.map_or(1, |row| row.number.saturating_add(1));
        *found = Some(SequentialAppends { axis, last: coord.clone(), number });
        number
    }
}

/// The dimension along which `new` is larger, if it is only that.
fn axis_of(old: &[u64], new: &[u64]) -> Option<usize> {
    let axis = old.iter().zip(new).position(|(old, new)| old != new)?;
    old.iter().zip(new).skip(axis + 1).all(|(old, new)| old == new).then_some(axis)
}

/// Fill values, `bytes` bytes of them.
fn fill_bytes(spec: &DatasetSpec, bytes: usize) -> Cow<'static, [u8]> {
    let zeros = ZEROS.get(..bytes).filter(|_| spec.fill_pattern().is_none());
    zeros.map_or_else(|| spec.fill_bytes(bytes).into(), Cow::Borrowed)
}

impl PreallocatedChunks {
    /// Plans the wanted number of chunks from `from` on: not more than the dataset can have, and none that is stored
    /// already.
    fn plan(state: &DatasetState, axis: usize, from: &ChunkCoord, (wanted, size): (u64, u64)) -> Result<Option<Self>> {
        let dims = state.spec.chunk_dims().and_then(|dims| dims.get(axis));
        let sides = dims.copied().zip(state.spec.dataspace.max().get(axis));
        let (Some((side, max)), Some(first)) = (sides, from.scaled().get(axis)) else { return Ok(None) };
        let most = first.saturating_add(wanted).min(max.div_ceil(side));
        let mut end = *first;
        while end < most && state.layout.get(&from.with_index(axis, end))?.is_none() {
            end += 1;
        }
        let place = state.layout.clone();
        Ok((*first < end).then(|| PreallocatedChunks {
            place,
            axis,
            from: from.clone(),
            end,
            side,
            size,
            places: Vec::new(),
        }))
    }

    fn len(&self) -> u64 {
        self.range().count() as u64
    }

    /// The range of the chunks along the dimension.
    fn range(&self) -> Range<u64> {
        self.from.scaled().get(self.axis).map_or(0..0, |first| *first..self.end)
    }

    /// The address of a chunk, if it is one of these.
    #[inline]
    pub(super) fn chunk_addr(&self, coord: &ChunkCoord) -> Option<Addr> {
        let (at, first) = (*coord.scaled().get(self.axis)?, self.from.scaled().get(self.axis)?);
        let place = self.places.get(usize::try_from(at.checked_sub(*first)?).ok()?)?;
        (self.from.with_index(self.axis, at) == *coord).then_some(*place)
    }

    /// Whether the extent `dims` has nothing of a chunk: it is where it was made ready then.
    pub(super) fn is_unused(&self, coord: &ChunkCoord, dims: &[u64]) -> bool {
        let extent = coord.scaled().get(self.axis).zip(dims.get(self.axis));
        extent.is_some_and(|(at, extent)| at.saturating_mul(self.side) >= *extent)
    }
}

impl NativeDataset {
    /// The chunk that an append to `dims` begins, made ready with the next ones if it is one of many.
    pub(super) fn begin_chunk(
        &self,
        state: &DatasetState,
        row: &mut Option<SequentialAppends>,
        coord: &ChunkCoord,
        dims: &[u64],
    ) -> Result<Option<Addr>> {
        let Some(axis) = axis_of(state.spec.dataspace.dims(), dims) else { return Ok(None) };
        let number = SequentialAppends::record(row, axis, coord);
        let is_plain =
            matches!(state.layout, NativeLayout::Chunked(_, _, ElementFormat::Unfiltered)) && state.layout.can_move();
        let size = state.spec.chunk_bytes().filter(|size| (1..=MAX_PREALLOCATED_CHUNK_BYTES).contains(size));
        let (true, Some(size)) = (is_plain && number >= MIN_SEQUENTIAL_CHUNKS, size) else { return Ok(None) };
        if !self.session.cache.can_publish_parts() {
            return Ok(None);
        }
        let wanted = (number / APPENDS_PER_PREALLOCATED_CHUNK)
            .clamp(*PREALLOCATED_CHUNKS.start(), *PREALLOCATED_CHUNKS.end())
            .min(MAX_PREALLOCATED_BYTES as u64 / size);
        let Some(ready) = PreallocatedChunks::plan(state, axis, coord, (wanted, size))? else { return Ok(None) };
        let (end, number) = (ready.end, number.saturating_add(ready.len()));
        let place = self.preallocate_chunks(state, ready)?;
        if place.is_some() {
            *row = Some(SequentialAppends { axis, last: coord.with_index(axis, end - 1), number });
            self.session.flush(FlushScope::Owner(Owner::new(self.addr)))?;
        }
        Ok(place)
    }

    /// The address of a preallocated chunk, and whether it is still unused.
    pub(super) fn preallocated(&self, coord: &ChunkCoord, dims: &[u64]) -> Option<(Addr, bool)> {
        let ready = self.session.preallocated.lock();
        let ready = ready.get(&self.addr)?;
        Some((ready.chunk_addr(coord)?, ready.is_unused(coord, dims)))
    }

    /// Forgets the preallocated chunks: they will be dropped with everything outside of the extent.
    pub(super) fn forget_preallocated(&self) {
        self.session.preallocated.lock().remove(&self.addr);
    }

    /// Stores chunks with fill values, and enters them into the index. Returns the address of the first one. `None` if
    /// they could not be written. There may still be room for one chunk; if not, its own write returns the error.
    fn preallocate_chunks(&self, state: &DatasetState, mut ready: PreallocatedChunks) -> Result<Option<Addr>> {
        let number = usize::try_from(ready.len()).unwrap_or(usize::MAX);
        let fill = |run: Range<usize>| fill_bytes(&state.spec, run.len() * ready.size as usize);
        let Ok(row) = self.store_row(&state.layout, number, ready.size, fill) else { return Ok(None) };
        let indexed = self.index_row(state, (&ready.from, ready.axis), &row);
        ready.places = row.places;
        let place = ready.places.first().copied();
        self.session.preallocated.lock().insert(self.addr, ready);
        indexed.map(|()| place)
    }
}

impl NativeSession {
    /// Gives back the chunks that were made ready and never used; says whether there were some.
    ///
    /// # Errors
    /// If the header or the index of a dataset cannot be read or changed.
    pub(crate) fn free_preallocated(&self) -> Result<bool> {
        let mut ready = self.preallocated.lock();
        let mut any = false;
        while let Some((addr, chunks)) = ready.iter().next() {
            let addr = *addr;
            any |= self.free_unused(addr, chunks)?;
            ready.remove(&addr);
        }
        Ok(any)
    }

    fn free_unused(&self, addr: Addr, ready: &PreallocatedChunks) -> Result<bool> {
        let message = self.header(addr)?.require::<DataspaceMessage>("a dataset has a dataspace")?;
        let used = message.dataspace.dims().get(ready.axis).map_or(0, |extent| extent.div_ceil(ready.side));
        let (owner, _operation) = (Owner::new(addr), self.cache.begin_operation());
        for at in ready.range().skip_while(|at| *at < used) {
            let coord = ready.from.with_index(ready.axis, at);
            let Some(element) = ready.place.get(&coord)? else { continue };
            ready.place.remove(&coord)?;
            self.cache.discard_raw(element.addr);
            self.cache.space().free_raw_owned(owner, element.addr, ready.size);
        }
        Ok(used < ready.end)
    }
}
