//! Chunks that appends fill one after the other, and those that are stored before their elements come.

use std::ops::Range;

use h5live_cache::Owner;
use h5live_format::Addr;
use h5live_format::messages::DataspaceMessage;
use h5live_model::ChunkCoord;

use super::layout::NativeLayout;
use super::state::DatasetState;
use crate::Result;
use crate::object_headers::ObjectHeaders;

/// Chunks that appends fill one after the other, along one dimension.
#[derive(Debug)]
pub(crate) struct SequentialAppends {
    pub(super) axis: usize,
    pub(super) last_chunk: ChunkCoord,
    pub(super) append_count: u64,
}

/// Chunks that were made ready: `from` the first along a dimension to the one before `end`.
#[derive(Debug)]
pub(crate) struct PreallocatedChunks {
    layout: NativeLayout,
    pub(super) axis: usize,
    pub(super) first_chunk: ChunkCoord,
    pub(super) end_index: u64,
    /// Elements of a chunk along it.
    rows_per_chunk: u64,
    /// Bytes of a chunk.
    pub(super) chunk_bytes: u64,
    /// The addresses of the chunks.
    pub(super) chunk_addrs: Vec<Addr>,
}

impl SequentialAppends {
    fn is_followed_by(&self, coord: &ChunkCoord) -> bool {
        let last = self.last_chunk.scaled().get(self.axis);
        last.and_then(|last| last.checked_add(1))
            .is_some_and(|next| self.last_chunk.with_index(self.axis, next) == *coord)
    }

    /// Counts an append into `coord` that makes the dataset grow along `axis`.
    pub fn count_append(found: &mut Option<Self>, axis: usize, coord: &ChunkCoord) -> u64 {
        let before = found.take().filter(|row| row.axis == axis && row.is_followed_by(coord));
        let number = before.map_or(1, |row| row.append_count.saturating_add(1));
        *found = Some(SequentialAppends { axis, last_chunk: coord.clone(), append_count: number });
        number
    }
}

impl PreallocatedChunks {
    /// Plans the wanted number of chunks from `from` on: not more than the dataset can have, and none that is stored
    /// already.
    pub fn plan_chunks(
        state: &DatasetState,
        axis: usize,
        from: &ChunkCoord,
        (wanted, size): (u64, u64),
    ) -> Result<Option<Self>> {
        let dims = state.spec.chunk_dims().and_then(|dims| dims.get(axis));
        let sides = dims.copied().zip(state.spec.dataspace.max().get(axis));
        let (Some((side, max)), Some(first)) = (sides, from.scaled().get(axis)) else { return Ok(None) };
        let max_end = first.saturating_add(wanted).min(max.div_ceil(side));
        let mut end = *first;
        while end < max_end && state.layout.locate_chunk(&from.with_index(axis, end))?.is_none() {
            end += 1;
        }
        let place = state.layout.clone();
        Ok((*first < end).then(|| PreallocatedChunks {
            layout: place,
            axis,
            first_chunk: from.clone(),
            end_index: end,
            rows_per_chunk: side,
            chunk_bytes: size,
            chunk_addrs: Vec::new(),
        }))
    }

    pub fn chunk_count(&self) -> u64 {
        self.index_range().count() as u64
    }

    /// The range of the chunks along the dimension.
    fn index_range(&self) -> Range<u64> {
        self.first_chunk.scaled().get(self.axis).map_or(0..0, |first| *first..self.end_index)
    }

    /// The address of a chunk, if it is one of these.
    #[inline]
    pub fn chunk_addr(&self, coord: &ChunkCoord) -> Option<Addr> {
        let (at, first) = (*coord.scaled().get(self.axis)?, self.first_chunk.scaled().get(self.axis)?);
        let place = self.chunk_addrs.get(usize::try_from(at.checked_sub(*first)?).ok()?)?;
        (self.first_chunk.with_index(self.axis, at) == *coord).then_some(*place)
    }

    /// Whether the extent `dims` has nothing of a chunk: it is where it was made ready then.
    pub fn is_chunk_unused(&self, coord: &ChunkCoord, dims: &[u64]) -> bool {
        let extent = coord.scaled().get(self.axis).zip(dims.get(self.axis));
        extent.is_some_and(|(at, extent)| at.saturating_mul(self.rows_per_chunk) >= *extent)
    }

    /// Gives back the chunks that no append has used: the dataset with its header at `owner` is closed for appends. Says
    /// whether there were some.
    ///
    /// # Errors
    /// If the header or the index of the dataset cannot be read or changed.
    pub fn free_unused_chunks(&self, owner: Addr, headers: &ObjectHeaders) -> Result<bool> {
        let message = headers.load_header(owner)?.require_message::<DataspaceMessage>("a dataset has a dataspace")?;
        let used = message.dataspace.dims().get(self.axis).map_or(0, |extent| extent.div_ceil(self.rows_per_chunk));
        let cache = headers.cache();
        let (owner, _operation) = (Owner::new(owner), cache.begin_operation());
        for at in self.index_range().skip_while(|at| *at < used) {
            let coord = self.first_chunk.with_index(self.axis, at);
            let Some(element) = self.layout.locate_chunk(&coord)? else { continue };
            self.layout.remove_chunk(&coord)?;
            cache.free_raw(Some(owner), element.addr, self.chunk_bytes);
        }
        Ok(used < self.end_index)
    }
}
