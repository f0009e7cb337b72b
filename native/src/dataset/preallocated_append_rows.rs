//! Chunks that appends fill one after the other, and those that are stored before their elements come.

use std::ops::Range;

use h5live_cache::Owner;
use h5live_format::Addr;
use h5live_format::messages::DataspaceMessage;
use h5live_model::ChunkCoord;
use smallvec::SmallVec;

use super::layout::NativeLayout;
use super::state::DatasetState;
use crate::object_headers::ObjectHeaders;
use crate::{Error, Result};

/// Rows of chunks that appends fill one after the other, along one dimension. A row has one chunk, or several along the
/// other dimensions.
#[derive(Debug)]
pub(crate) struct SequentialAppends {
    pub(super) axis: usize,
    pub(super) last_chunk: ChunkCoord,
    pub(super) append_count: u64,
    /// Chunks of the last row that were written before an extent held them.
    pub(super) chunks_in_row: u64,
}

/// Rows of chunks that were made ready: from that of the first chunk along a dimension to the one before `end_index`.
#[derive(Debug)]
pub(crate) struct PreallocatedAppendRows {
    layout: NativeLayout,
    pub(super) axis: usize,
    pub(super) first_chunk: ChunkCoord,
    pub(super) end_index: u64,
    /// Chunks of a row along each dimension (`[rank]`); one along the dimension of the appends.
    row_chunks: Vec<u64>,
    /// Elements of a chunk along it.
    rows_per_chunk: u64,
    /// Bytes of a chunk.
    pub(super) chunk_bytes: u64,
    /// The addresses of the chunks, row by row.
    pub(super) chunk_addrs: Vec<Addr>,
}

impl SequentialAppends {
    /// Counts an append into `coord` that makes the dataset grow along `axis`. Returns the number of rows of chunks, each of
    /// `row_width` chunks, that came one after the other and whole: the extent held none of a row before all of it was there.
    pub fn record_append_and_count_rows(
        found: &mut Option<Self>,
        axis: usize,
        coord: &ChunkCoord,
        row_width: u64,
    ) -> u64 {
        let index = |coord: &ChunkCoord| coord.scaled().get(axis).copied();
        let before = found.take().filter(|row| row.axis == axis);
        let (number, chunks_in_row) = match before.as_ref().map(|row| (row, index(&row.last_chunk))) {
            Some((row, last)) if last == index(coord) => {
                (row.append_count, row.chunks_in_row.saturating_add(u64::from(row.last_chunk != *coord)))
            }
            Some((row, Some(last))) if last.checked_add(1) == index(coord) && row.chunks_in_row >= row_width => {
                (row.append_count.saturating_add(1), 1)
            }
            _ => (1, 1),
        };
        *found = Some(SequentialAppends { axis, last_chunk: coord.clone(), append_count: number, chunks_in_row });
        number
    }
}

impl PreallocatedAppendRows {
    /// Plans the wanted number of rows of chunks, from that of `from` on: not more than the dataset can have, none of
    /// which a chunk is stored already, and not more than `max_chunks` chunks. A row is as wide as `dims`.
    pub fn plan_chunk_rows(
        state: &DatasetState,
        (axis, dims): (usize, &[u64]),
        from: &ChunkCoord,
        (wanted, max_chunks, size): (u64, u64, u64),
    ) -> Result<Option<Self>> {
        let Some(chunk) = state.spec.chunk_dims_or_extent() else { return Ok(None) };
        let sides = chunk.get(axis).copied().zip(state.spec.dataspace.max_dims().get(axis));
        let (Some((side, max)), Some(first)) = (sides, from.scaled().get(axis).copied()) else { return Ok(None) };
        let mut row_chunks: Vec<u64> = dims.iter().zip(chunk).map(|(dim, side)| dim.div_ceil(*side)).collect();
        if let Some(along) = row_chunks.get_mut(axis) {
            *along = 1;
        }
        let width = row_chunks.iter().try_fold(1u64, |product, count| product.checked_mul(*count)).unwrap_or(0);
        let wanted = wanted.min(max_chunks.checked_div(width).unwrap_or(0));
        let mut plan = PreallocatedAppendRows {
            layout: state.layout.clone(),
            axis,
            first_chunk: ChunkCoord::origin(row_chunks.len()).with_index(axis, first),
            end_index: first,
            row_chunks,
            rows_per_chunk: side,
            chunk_bytes: size,
            chunk_addrs: Vec::new(),
        };
        let max_end = first.saturating_add(wanted).min(max.div_ceil(side));
        while plan.end_index < max_end {
            let mut row = plan.chunks_of_row(plan.end_index);
            if row.try_fold(false, |has_any, coord| {
                Ok::<_, Error>(has_any || plan.layout.locate_chunk(&coord)?.is_some())
            })? {
                break;
            }
            drop(row);
            plan.end_index += 1;
        }
        Ok(Some(plan).filter(|plan| first < plan.end_index))
    }

    /// The chunks of a row, in row-major order.
    fn chunks_of_row(&self, at: u64) -> impl Iterator<Item = ChunkCoord> {
        let counts: SmallVec<[u64; 4]> = SmallVec::from_slice(&self.row_chunks);
        let axis = self.axis;
        (0..counts.iter().product()).map(move |mut number: u64| {
            let mut coord = ChunkCoord::origin(counts.len()).with_index(axis, at);
            for (dim, count) in counts.iter().enumerate().rev().filter(|(dim, _)| *dim != axis) {
                coord = coord.with_index(dim, number % count);
                number /= count;
            }
            coord
        })
    }

    /// All chunks, row by row.
    pub fn chunks(&self) -> impl Iterator<Item = ChunkCoord> + '_ {
        self.index_range().flat_map(|at| self.chunks_of_row(at))
    }

    pub fn chunk_count(&self) -> u64 {
        self.chunk_row_count().saturating_mul(self.row_chunks.iter().product())
    }

    pub fn chunk_row_count(&self) -> u64 {
        let rows = self.index_range();
        rows.end - rows.start
    }

    /// Whether a row is one chunk.
    pub fn has_single_chunk_rows(&self) -> bool {
        self.row_chunks.iter().all(|count| *count == 1)
    }

    /// The range of the rows of chunks along the dimension.
    fn index_range(&self) -> Range<u64> {
        self.first_chunk.scaled().get(self.axis).map_or(0..0, |first| *first..self.end_index)
    }

    /// The address of a chunk, if it is one of these.
    #[inline]
    pub fn chunk_addr(&self, coord: &ChunkCoord) -> Option<Addr> {
        let (at, first) = (*coord.scaled().get(self.axis)?, self.first_chunk.scaled().get(self.axis)?);
        let mut number = at.checked_sub(*first)?;
        for (dim, (at, count)) in coord.scaled().iter().zip(&self.row_chunks).enumerate() {
            if dim != self.axis {
                number = number.checked_mul(*count)?.checked_add(*at).filter(|_| at < count)?;
            }
        }
        self.chunk_addrs.get(usize::try_from(number).ok()?).copied()
    }

    /// Whether the extent `dims` has nothing of a chunk: it is where it was made ready then.
    pub fn is_chunk_beyond_extent(&self, coord: &ChunkCoord, dims: &[u64]) -> bool {
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
        let (owner, _operation) = (Owner::new(owner), cache.begin_atomic_change());
        for coord in self.index_range().skip_while(|at| *at < used).flat_map(|at| self.chunks_of_row(at)) {
            let Some(element) = self.layout.locate_chunk(&coord)? else { continue };
            self.layout.remove_chunk_entry(&coord)?;
            cache.free_raw(Some(owner), element.addr, self.chunk_bytes);
        }
        Ok(used < self.end_index)
    }
}
