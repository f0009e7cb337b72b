//! From the caller's values to chunks.

use std::collections::HashSet;

use h5live_model::{Block, BoundSelection, ChunkBatch, ChunkCoord, ChunkGrid, ChunkWrite, Layout, Selection};

use super::chunk_writer::{ChunkWriter, dest_range};
use crate::dataset::core::CHUNKS_PER_BATCH;
use crate::dataset::error::DatasetError;
use crate::dataset::spec_snapshot::SpecSnapshot;
use crate::dataset::stage::AppendBuffer;
use crate::dataset::stage::{MAX_STAGED_PART_BYTES, StagedChunk};
use crate::dataset::store::DatasetWriter;
use crate::dataset::store::PartWrites;
use crate::dataset::store::{MAX_BUFFERED_APPEND_BYTES, StoredRows};
use crate::dataset::transfer::ElementSource;
use crate::dims::CoreDims;
use crate::error::ErrorKind;

/// Rows to append.
pub(crate) struct RowAppend {
    /// The dimension along which they are.
    axis: usize,
    /// Elements in all.
    values: u64,
    /// The extent with them.
    extent: CoreDims,
}

impl DatasetWriter<'_> {
    /// Overwrites the elements of a selection: all of them, or none if some value does not fit.
    pub(crate) fn write_selection(
        &self,
        selected: &BoundSelection,
        source: &impl ElementSource,
    ) -> Result<(), DatasetError> {
        if selected.elements() == 0 {
            return Ok(());
        }
        source.check()?;
        self.core.store_rows(StoredRows::All)?;
        let Some((grid, bytes)) = self.view.grid()? else { return Ok(()) };
        self.check_selection(selected, &grid)?;
        if self.core.store.part_writes == PartWrites::Blocks && self.write_block(selected, &grid, source)? {
            return Ok(());
        }
        let cut = &selected.split_by_chunks(&grid);
        if let Some((coord, run)) = cut.single_chunk_run()
            && self.core.filters.is_empty()
            && run.len as usize * self.view.size == bytes
            && let Some(direct) = source.direct_bytes(dest_range(run))
        {
            self.store_encoded(&coord, 0, direct)?;
            self.core.stage.lock().chunks.take_chunk(&coord);
            return Ok(());
        }
        if self.core.store.part_writes == PartWrites::Never {
            self.core.check_allocation(bytes)?;
        }
        let chunk = ChunkWriter { writer: self, cut, grid: &grid, bytes, source };
        let mut batch = Vec::new();
        for coord in chunk.cut.chunks() {
            if chunk.is_covered(&coord) {
                batch.push(coord);
                if batch.len() == CHUNKS_PER_BATCH {
                    chunk.store_batch(&batch)?;
                    batch.clear();
                }
            } else {
                chunk.write_part(&coord).map_err(|failure| failure.with_chunk(&coord))?;
            }
        }
        chunk.store_batch(&batch)?;
        if self.core.stage.is_staged_by_store
            || self.core.stage.lock().chunks.total_bytes() > self.core.stage.append_buffer_bytes
        {
            self.store_staged_chunks(&grid, bytes, |_| true)?;
            self.drop_stored_chunks(&grid);
        }
        Ok(())
    }

    /// Refuses elements that the store could not take when they are written out.
    fn check_selection(&self, selected: &BoundSelection, grid: &ChunkGrid) -> Result<(), DatasetError> {
        match (self.check_chunk_before(&self.view.extent, grid), selected.bounds()) {
            (Err(_), Some((_, end))) => self.check_chunk_before(&end, grid),
            _ => Ok(()),
        }
    }

    /// Refuses the chunk of the last element before `end` (`[rank]`, elements) if the store can never take it.
    fn check_chunk_before(&self, end: &[u64], grid: &ChunkGrid) -> Result<(), DatasetError> {
        let coord = grid.chunk_of(&end.iter().map(|end| end.saturating_sub(1)).collect::<CoreDims>());
        self.core.chunks.check_chunk(&coord).map_err(|error| DatasetError::in_chunk(&coord, error))
    }

    /// Hands a box of one chunk to the store, where the caller has its elements. Returns `false` if they are no such box.
    fn write_block(
        &self,
        selected: &BoundSelection,
        grid: &ChunkGrid,
        source: &impl ElementSource,
    ) -> Result<bool, DatasetError> {
        let elements = usize::try_from(selected.elements()).unwrap_or(usize::MAX);
        if elements.saturating_mul(self.view.size) > MAX_STAGED_PART_BYTES {
            return Ok(false);
        }
        let Some((coord, Block { start, count })) = selected.single_chunk_block(grid) else { return Ok(false) };
        let Some(bytes) = source.direct_bytes(0..elements) else { return Ok(false) };
        let writes = [ChunkWrite::Block { coord: &coord, start: &start, count: &count, bytes }];
        let written = self.core.chunks.write(&ChunkBatch { writes: &writes, ..ChunkBatch::default() });
        written.map_err(|error| DatasetError::in_chunk(&coord, error))?;
        self.core.count_change();
        Ok(true)
    }

    /// The dimension along which rows are appended: the first one if it can grow, or else the unlimited one.
    pub(crate) fn append_axis(&self) -> Result<usize, ErrorKind> {
        let max = self.view.spec.dataspace.max();
        if max.first().zip(self.view.extent.first()).is_some_and(|(max, now)| max > now) {
            return Ok(0);
        }
        max.iter().position(|max| *max == h5live_model::UNLIMITED).ok_or(ErrorKind::CannotGrow)
    }

    /// Elements of a row.
    pub(crate) fn elements_per_row(&self) -> Result<u64, ErrorKind> {
        self.append_axis().map(|axis| self.elements_per_row_along(axis))
    }

    fn elements_per_row_along(&self, axis: usize) -> u64 {
        let (before, after) = self.view.extent.split_at(axis);
        before.iter().chain(&after[1..]).try_fold(1u64, |n, dim| n.checked_mul(*dim)).unwrap_or(0)
    }

    /// The rows that `values` elements in all make.
    pub(crate) fn plan_row_append(&self, values: usize) -> Result<RowAppend, ErrorKind> {
        let axis = self.append_axis()?;
        let row = self.elements_per_row_along(axis);
        let values = values as u64;
        if row == 0 || !values.is_multiple_of(row) {
            return Err(ErrorKind::Rows { row, values });
        }
        let mut extent = CoreDims::from_slice(&self.view.extent);
        extent[axis] = extent[axis].saturating_add(values / row);
        self.check_extent(&extent)?;
        Ok(RowAppend { axis, values, extent })
    }

    /// Appends rows that [`DatasetWriter::plan_row_append`] has made room for.
    pub(crate) fn append_rows(&mut self, rows: RowAppend, source: &impl ElementSource) -> Result<(), DatasetError> {
        let RowAppend { axis, values, extent } = rows;
        if let Some((grid, _)) = self.view.grid()? {
            self.check_chunk_before(&extent, &grid)?;
        }
        self.restage_edges(&extent)?;
        if self.buffer_rows(axis, values as usize, source)? {
            return Ok(());
        }
        self.core.store_rows(StoredRows::All)?;
        let before = std::mem::replace(&mut self.view.extent, extent);
        let (mut start, mut count) = (CoreDims::from_elem(0, before.len()), before.clone());
        start[axis] = before[axis];
        count[axis] = self.view.extent[axis] - before[axis];
        self.write_selection(&Selection::block(&start, &count).bind(&self.view.extent)?, source)?;
        let is_staged = self.core.stage.lock().chunks.total_bytes() > 0;
        self.grow_extent(&self.view.extent)?;
        let Some((grid, bytes)) = self.view.grid()?.filter(|_| is_staged) else { return Ok(()) };
        let side = grid.dims()[axis];
        let full = before[axis] / side..self.view.extent[axis] / side;
        if full.is_empty() {
            return Ok(());
        }
        self.store_staged_chunks(&grid, bytes, |coord| full.contains(&coord.scaled()[axis]))
    }

    /// Has the buffer take new rows of a dataset without filters. Returns `false` if they are long and have to be
    /// converted, or do not follow each other in the chunks.
    fn buffer_rows(&self, axis: usize, values: usize, source: &impl ElementSource) -> Result<bool, DatasetError> {
        let len = values.saturating_mul(self.view.size);
        if axis != 0 || self.core.store.part_writes != PartWrites::Runs || self.core.stage.is_staged_by_store {
            return Ok(false);
        }
        let direct = source.direct_bytes(0..values);
        if len > MAX_BUFFERED_APPEND_BYTES && direct.is_none() {
            return Ok(false);
        }
        let Some(buffer) = AppendBuffer::new(&self.view) else { return Ok(false) };
        if !self.core.stage.lock().rows.as_ref().is_some_and(|rows| rows.is_continued_by(&buffer)) {
            self.core.store_rows(StoredRows::All)?;
            self.core.stage.lock().rows = Some(buffer);
        }
        if let Some((grid, bytes)) = self.view.grid()? {
            self.store_staged_chunks(&grid, bytes, |_| true)?;
        }
        let mut memory = Vec::new();
        let bytes = match direct {
            Some(bytes) => bytes,
            None => {
                memory.resize(len, 0);
                source.get_elements(0..values, &mut memory)?;
                &memory
            }
        };
        self.core.push_rows(self.core.stage.lock(), &self.view.extent, bytes)
    }

    fn check_extent(&self, dims: &[u64]) -> Result<(), ErrorKind> {
        let max = self.view.spec.dataspace.max();
        let fits = dims.len() == max.len() && dims.iter().zip(max).all(|(dim, max)| dim <= max);
        if fits { Ok(()) } else { Err(ErrorKind::InvalidExtent { dims: dims.into(), max: max.into() }) }
    }

    /// Changes the extent. Elements that come to be are fill values; those outside are gone.
    pub(crate) fn resize_extent(&mut self, dims: &[u64]) -> Result<(), DatasetError> {
        self.check_extent(dims)?;
        if !matches!(self.view.spec.layout, Layout::Chunked(_)) {
            return Ok(self.core.chunks.set_extent(dims)?);
        }
        let Some((grid, bytes)) = self.view.grid()? else { return Ok(self.core.chunks.set_extent(dims)?) };
        self.core.store_rows(StoredRows::All)?;
        if self.view.extent.iter().zip(dims).all(|(old, new)| old <= new) {
            self.restage_edges(dims)?;
            return self.grow_extent(dims);
        }
        let kept: Vec<u64> = self.view.extent.iter().zip(dims).map(|(old, new)| *old.min(new)).collect();
        if kept != dims {
            // A smaller extent is published at once, a larger one by the next flush, with the elements written until
            // then.
            self.resize_extent(&kept)?;
            return self.resize_extent(dims);
        }
        self.write_out()?;
        let counts = grid.counts(dims);
        let (mut changed, mut left_out) = (Vec::new(), Vec::new());
        self.core.chunks.for_each_chunk(&mut |stored| {
            if grid.is_partial(&stored.coord, dims) {
                left_out.push(stored.coord.clone());
            }
            let inside = stored.coord.scaled().iter().zip(&counts).all(|(at, n)| at < n);
            if inside && (grid.is_partial(&stored.coord, dims) || self.view.is_unfiltered_edge(&grid, &stored.coord)) {
                changed.push(stored.coord);
            }
            true
        })?;
        if !changed.is_empty() {
            self.core.check_allocation(bytes)?;
        }
        let mut old = HashSet::new();
        for coord in left_out {
            old.extend(self.blobs_outside(&grid, bytes, &coord, dims).map_err(|failure| failure.with_chunk(&coord))?);
        }
        // The extent comes first. Then nobody can see the cleared and dropped elements any more.
        self.core.chunks.set_extent(dims)?;
        let smaller = SpecSnapshot { extent: dims.into(), ..self.view.clone() };
        for coord in changed {
            let clear = || -> Result<(), DatasetError> {
                let old = self.reader().read_chunk(&grid, bytes, &coord)?;
                let cleared = fill_outside_extent(&smaller, &grid, &coord, &old);
                self.store_chunk(&smaller, &grid, &coord, &cleared)
            };
            clear().map_err(|failure| failure.with_chunk(&coord))?;
        }
        self.core.store.growing.forget_all();
        let mut stage = self.core.stage.lock();
        stage.chunks.retain(|_, _| false);
        stage.extent = None;
        stage.rows = None;
        drop(stage);
        self.core.count_change();
        self.cache.forget_dataset(self.core.cache_id());
        self.view.extent = dims.into();
        self.give_up(old)
    }

    /// Stages the chunks that were stored without filters because they reached over the extent, and will no more.
    fn restage_edges(&self, dims: &[u64]) -> Result<(), DatasetError> {
        if !self.view.spec.unfiltered_edges || self.core.filters.is_empty() {
            return Ok(());
        }
        let Some((grid, bytes)) = self.view.grid()? else { return Ok(()) };
        let mut promoted = Vec::new();
        self.core.chunks.for_each_chunk(&mut |stored| {
            if self.view.is_unfiltered_edge(&grid, &stored.coord) && !grid.is_partial(&stored.coord, dims) {
                promoted.push(stored.coord);
            }
            true
        })?;
        for coord in promoted {
            let whole = self.reader().read_chunk(&grid, bytes, &coord).map_err(|failure| failure.with_chunk(&coord))?;
            self.core.stage.lock().chunks.stage_chunk(&coord, StagedChunk::whole(whole, true));
        }
        Ok(())
    }

    /// Makes the extent larger: it is staged, unless the store gathers what it is told.
    fn grow_extent(&self, dims: &[u64]) -> Result<(), DatasetError> {
        if !self.core.stage.is_staged_by_store {
            self.core.stage.lock().extent = Some(CoreDims::from_slice(dims));
            return Ok(());
        }
        let mut earlier = self.core.publish.order.earlier();
        loop {
            earlier.retain(|core| !core.is_deleted());
            let after: Vec<_> = earlier.iter().map(|core| core.chunks.id()).collect();
            let batch = ChunkBatch { extent: Some(dims), after: &after, ..ChunkBatch::default() };
            match self.core.chunks.write(&batch) {
                // Another thread has deleted one of them meanwhile.
                Err(_) if earlier.iter().any(|core| core.is_deleted()) => {}
                written => return Ok(written?),
            }
        }
    }
}

/// A chunk with fill values outside the extent.
pub(crate) fn fill_outside_extent(view: &SpecSnapshot, grid: &ChunkGrid, coord: &ChunkCoord, bytes: &[u8]) -> Vec<u8> {
    let mut cleared = vec![0; bytes.len()];
    view.spec.fill_into(0, &mut cleared);
    if let Ok(inside) = Selection::All.bind(&view.extent) {
        inside.split_by_chunks(grid).for_each_run(coord, |run| {
            let range = run.at as usize * view.size..(run.at + run.len) as usize * view.size;
            cleared[range.clone()].copy_from_slice(&bytes[range]);
        });
    }
    cleared
}
