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
    pub(super) last: ChunkCoord,
    pub(super) number: u64,
}

/// Chunks that were made ready: `from` the first along a dimension to the one before `end`.
#[derive(Debug)]
pub(crate) struct PreallocatedChunks {
    place: NativeLayout,
    pub(super) axis: usize,
    pub(super) from: ChunkCoord,
    pub(super) end: u64,
    /// Elements of a chunk along it.
    side: u64,
    /// Bytes of a chunk.
    pub(super) size: u64,
    /// The addresses of the chunks.
    pub(super) places: Vec<Addr>,
}

impl SequentialAppends {
    fn is_followed_by(&self, coord: &ChunkCoord) -> bool {
        let last = self.last.scaled().get(self.axis);
        last.and_then(|last| last.checked_add(1)).is_some_and(|next| self.last.with_index(self.axis, next) == *coord)
    }

    /// Counts an append into `coord` that makes the dataset grow along `axis`.
    pub fn record(found: &mut Option<Self>, axis: usize, coord: &ChunkCoord) -> u64 {
        let before = found.take().filter(|row| row.axis == axis && row.is_followed_by(coord));
        let number = before.map_or(1, |row| row.number.saturating_add(1));
        *found = Some(SequentialAppends { axis, last: coord.clone(), number });
        number
    }
}

impl PreallocatedChunks {
    /// Plans the wanted number of chunks from `from` on: not more than the dataset can have, and none that is stored
    /// already.
    pub fn plan(
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
        while end < max_end && state.layout.get(&from.with_index(axis, end))?.is_none() {
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

    pub fn len(&self) -> u64 {
        self.range().count() as u64
    }

    /// The range of the chunks along the dimension.
    fn range(&self) -> Range<u64> {
        self.from.scaled().get(self.axis).map_or(0..0, |first| *first..self.end)
    }

    /// The address of a chunk, if it is one of these.
    #[inline]
    pub fn chunk_addr(&self, coord: &ChunkCoord) -> Option<Addr> {
        let (at, first) = (*coord.scaled().get(self.axis)?, self.from.scaled().get(self.axis)?);
        let place = self.places.get(usize::try_from(at.checked_sub(*first)?).ok()?)?;
        (self.from.with_index(self.axis, at) == *coord).then_some(*place)
    }

    /// Whether the extent `dims` has nothing of a chunk: it is where it was made ready then.
    pub fn is_unused(&self, coord: &ChunkCoord, dims: &[u64]) -> bool {
        let extent = coord.scaled().get(self.axis).zip(dims.get(self.axis));
        extent.is_some_and(|(at, extent)| at.saturating_mul(self.side) >= *extent)
    }

    /// Gives back the chunks that no append has used: the dataset with its header at `owner` is closed for appends. Says
    /// whether there were some.
    ///
    /// # Errors
    /// If the header or the index of the dataset cannot be read or changed.
    pub fn free_unused(&self, owner: Addr, headers: &ObjectHeaders) -> Result<bool> {
        let message = headers.load(owner)?.require::<DataspaceMessage>("a dataset has a dataspace")?;
        let used = message.dataspace.dims().get(self.axis).map_or(0, |extent| extent.div_ceil(self.side));
        let cache = headers.cache();
        let (owner, _operation) = (Owner::new(owner), cache.begin_operation());
        for at in self.range().skip_while(|at| *at < used) {
            let coord = self.from.with_index(self.axis, at);
            let Some(element) = self.place.get(&coord)? else { continue };
            self.place.remove(&coord)?;
            cache.discard_raw(element.addr);
            cache.space().free_raw_owned(owner, element.addr, self.size);
        }
        Ok(used < self.end)
    }
}
