//! From the caller's values to chunks.

use std::ops::Range;
use std::sync::Arc;

use h5live_model::{BoundSelection, ChunkCoord, ChunkGrid, ChunkSplit, ElementRun, Layout, Selection, Store};
use parking_lot::MutexGuard;

use super::append_buffer::AppendBuffer;
use super::append_rows::{MAX_BUFFERED_APPEND_BYTES, StoredRows};
use super::chunk_cache::ChunkCache;
use super::core::DatasetCore;
use super::encode_pipeline::{self, EncodeBuffers};
use super::error::DatasetError;
use super::read::DatasetReader;
use super::spec_snapshot::SpecSnapshot;
use super::staged_chunks::{MAX_STAGED_PART_BYTES, StagedChunk};
use super::transfer::ElementSource;
use crate::dims::CoreDims;
use crate::error::ErrorKind;

/// Unfiltered chunks up to this size are put together before they are stored (bytes).
const MAX_ASSEMBLED_CHUNK_BYTES: usize = 4 << 20;
/// Chunks that are listed before they are stored.
const CHUNKS_PER_BATCH: usize = 1 << 10;

/// Rows to append.
pub(crate) struct RowAppend {
    /// The dimension along which they are.
    axis: usize,
    /// Elements in all.
    values: u64,
    /// The extent with them.
    extent: CoreDims,
}

/// The one that changes elements or the extent of a dataset.
pub(crate) struct DatasetWriter<'a> {
    core: &'a DatasetCore,
    store: &'a dyn Store,
    cache: &'a ChunkCache,
    view: SpecSnapshot,
    _alone: MutexGuard<'a, ()>,
}

impl Drop for DatasetWriter<'_> {
    fn drop(&mut self) {
        self.core.list_staged();
    }
}

impl DatasetCore {
    pub(crate) fn writer<'a>(
        &'a self,
        store: &'a dyn Store,
        cache: &'a ChunkCache,
    ) -> Result<DatasetWriter<'a>, DatasetError> {
        let alone = self.writer.lock();
        let view = self.view()?;
        self.check_allocation(view.size)?;
        Ok(DatasetWriter { core: self, store, cache, view, _alone: alone })
    }
}

impl<'a> DatasetWriter<'a> {
    pub(crate) fn view(&self) -> &SpecSnapshot {
        &self.view
    }

    fn reader(&self) -> DatasetReader<'_> {
        DatasetReader { core: self.core, view: &self.view, store: self.store, cache: self.cache }
    }

    /// Overwrites the elements of a selection.
    pub(crate) fn write(&self, selected: &BoundSelection, source: &impl ElementSource) -> Result<(), DatasetError> {
        if selected.elements() == 0 {
            return Ok(());
        }
        self.core.store_rows(StoredRows::All)?;
        let Some((grid, bytes)) = self.view.grid()? else { return Ok(()) };
        let cut = &selected.split_by_chunks(&grid);
        if let Some((coord, run)) = cut.single_chunk_run()
            && self.core.filters.is_empty()
            && run.len as usize * self.view.size == bytes
            && let Some(direct) = source.direct(dest_range(run))
        {
            self.store_encoded(&coord, 0, direct)?;
            self.core.stage.lock().chunks.take(&coord);
            return Ok(());
        }
        if !self.core.writes_parts {
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
            } else if self.core.writes_parts {
                chunk.stage_parts(&coord).map_err(|failure| failure.with_chunk(&coord))?;
            } else {
                chunk.stage_whole(&coord).map_err(|failure| failure.with_chunk(&coord))?;
            }
        }
        chunk.store_batch(&batch)?;
        if self.core.stage.lock().chunks.bytes() > self.core.staging {
            self.store_staged(&grid, bytes, |_| true)?;
        }
        Ok(())
    }

    /// The dimension along which rows are appended: the first one if it can grow, or else the unlimited one.
    pub(crate) fn axis(&self) -> Result<usize, ErrorKind> {
        let max = self.view.spec.dataspace.max();
        if max.first().zip(self.view.extent.first()).is_some_and(|(max, now)| max > now) {
            return Ok(0);
        }
        max.iter().position(|max| *max == h5live_model::UNLIMITED).ok_or(ErrorKind::CannotGrow)
    }

    /// Elements of a row.
    pub(crate) fn row(&self) -> Result<u64, ErrorKind> {
        self.axis().map(|axis| self.row_along(axis))
    }

    fn row_along(&self, axis: usize) -> u64 {
        let (before, after) = self.view.extent.split_at(axis);
        before.iter().chain(&after[1..]).try_fold(1u64, |n, dim| n.checked_mul(*dim)).unwrap_or(0)
    }

    /// The rows that `values` elements in all make.
    pub(crate) fn rows(&self, values: usize) -> Result<RowAppend, ErrorKind> {
        let axis = self.axis()?;
        let row = self.row_along(axis);
        let values = values as u64;
        if row == 0 || !values.is_multiple_of(row) {
            return Err(ErrorKind::Rows { row, values });
        }
        let mut extent = CoreDims::from_slice(&self.view.extent);
        extent[axis] = extent[axis].saturating_add(values / row);
        self.check_extent(&extent)?;
        Ok(RowAppend { axis, values, extent })
    }

    /// Appends rows that [`DatasetWriter::rows`] has made room for.
    pub(crate) fn append(&mut self, rows: RowAppend, source: &impl ElementSource) -> Result<(), DatasetError> {
        let RowAppend { axis, values, extent } = rows;
        self.restage_edges(&extent)?;
        if self.buffer_rows(axis, values as usize, source)? {
            return Ok(());
        }
        self.core.store_rows(StoredRows::All)?;
        let before = std::mem::replace(&mut self.view.extent, extent);
        let (mut start, mut count) = (CoreDims::from_elem(0, before.len()), before.clone());
        start[axis] = before[axis];
        count[axis] = self.view.extent[axis] - before[axis];
        self.write(&Selection::block(&start, &count).bind(&self.view.extent)?, source)?;
        let mut stage = self.core.stage.lock();
        stage.extent = Some(CoreDims::from_slice(&self.view.extent));
        let is_staged = stage.chunks.bytes() > 0;
        drop(stage);
        let Some((grid, bytes)) = self.view.grid()?.filter(|_| is_staged) else { return Ok(()) };
        let side = grid.dims()[axis];
        let full = before[axis] / side..self.view.extent[axis] / side;
        if full.is_empty() {
            return Ok(());
        }
        self.store_staged(&grid, bytes, |coord| full.contains(&coord.scaled()[axis]))
    }

    /// Has the buffer take new rows of a dataset without filters. Returns `false` if they are long and have to be
    /// converted, or do not follow each other in the chunks.
    fn buffer_rows(&self, axis: usize, values: usize, source: &impl ElementSource) -> Result<bool, DatasetError> {
        let len = values.saturating_mul(self.view.size);
        if axis != 0 || !self.core.writes_parts {
            return Ok(false);
        }
        let direct = source.direct(0..values);
        if len > MAX_BUFFERED_APPEND_BYTES && direct.is_none() {
            return Ok(false);
        }
        let Some(buffer) = AppendBuffer::new(&self.view) else { return Ok(false) };
        if !self.core.stage.lock().rows.as_ref().is_some_and(|rows| rows.is_continued_by(&buffer)) {
            self.core.store_rows(StoredRows::All)?;
            self.core.stage.lock().rows = Some(buffer);
        }
        if let Some((grid, bytes)) = self.view.grid()? {
            self.store_staged(&grid, bytes, |_| true)?;
        }
        let mut memory = Vec::new();
        let bytes = match direct {
            Some(bytes) => bytes,
            None => {
                memory.resize(len, 0);
                source.get(0..values, &mut memory)?;
                &memory
            }
        };
        self.core.push_rows(self.core.stage.lock(), &self.view.extent, bytes)
    }

    /// Stages a run of an unfiltered chunk, from `at` on (bytes), piece by piece.
    fn stage_run(
        &self,
        coord: &ChunkCoord,
        at: usize,
        run: Range<usize>,
        (source, scratch): (&impl ElementSource, &mut Vec<u8>),
    ) -> Result<(), DatasetError> {
        let size = self.view.size;
        let step = (MAX_STAGED_PART_BYTES / size).max(1);
        for from in run.clone().step_by(step) {
            let piece = from..run.end.min(from + step);
            let at = at + (from - run.start) * size;
            match source.direct(piece.clone()) {
                Some(direct) => self.stage_part(coord, at, direct)?,
                None => {
                    scratch.resize(piece.len() * size, 0);
                    source.get(piece, scratch)?;
                    self.stage_part(coord, at, scratch)?;
                }
            }
        }
        Ok(())
    }

    /// Stages a short part of an unfiltered chunk, from `at` on (bytes), and stores a long one.
    fn stage_part(&self, coord: &ChunkCoord, at: usize, bytes: &[u8]) -> Result<(), DatasetError> {
        let stage = &self.core.stage;
        if stage.lock().chunks.add_run(coord, at, bytes) {
            return Ok(());
        }
        let before = stage.lock().chunks.get(coord).cloned();
        if let Some(before) = before {
            self.store_part(coord, before.at, &before.bytes)?;
            let mut stage = stage.lock();
            stage.chunks.take(coord);
            if stage.chunks.add_run(coord, at, bytes) {
                return Ok(());
            }
        }
        self.store_part(coord, at, bytes)
    }

    fn check_extent(&self, dims: &[u64]) -> Result<(), ErrorKind> {
        let max = self.view.spec.dataspace.max();
        let fits = dims.len() == max.len() && dims.iter().zip(max).all(|(dim, max)| dim <= max);
        if fits { Ok(()) } else { Err(ErrorKind::InvalidExtent { dims: dims.into(), max: max.into() }) }
    }

    /// Changes the extent. Elements that come to be are fill values; those outside are gone.
    pub(crate) fn resize(&mut self, dims: &[u64]) -> Result<(), DatasetError> {
        self.check_extent(dims)?;
        if !matches!(self.view.spec.layout, Layout::Chunked(_)) {
            return Ok(self.core.chunks.set_extent(dims)?);
        }
        let Some((grid, bytes)) = self.view.grid()? else { return Ok(self.core.chunks.set_extent(dims)?) };
        self.core.store_rows(StoredRows::All)?;
        if self.view.extent.iter().zip(dims).all(|(old, new)| old <= new) {
            self.restage_edges(dims)?;
            self.core.stage.lock().extent = Some(CoreDims::from_slice(dims));
            return Ok(());
        }
        let kept: Vec<u64> = self.view.extent.iter().zip(dims).map(|(old, new)| *old.min(new)).collect();
        if kept != dims {
            // A smaller extent is published at once, a larger one by the next flush, with the elements written until
            // then.
            self.resize(&kept)?;
            return self.resize(dims);
        }
        self.write_out()?;
        let counts = grid.counts(dims);
        let mut changed = Vec::new();
        self.core.chunks.for_each_chunk(&mut |stored| {
            let inside = stored.coord.scaled().iter().zip(&counts).all(|(at, n)| at < n);
            if inside && (grid.is_partial(&stored.coord, dims) || self.view.is_unfiltered_edge(&grid, &stored.coord)) {
                changed.push(stored.coord);
            }
            true
        })?;
        if !changed.is_empty() {
            self.core.check_allocation(bytes)?;
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
        let mut stage = self.core.stage.lock();
        stage.chunks.retain(|_, _| false);
        stage.extent = None;
        stage.rows = None;
        drop(stage);
        self.core.note_change();
        self.cache.forget(self.core.cache_id());
        self.view.extent = dims.into();
        Ok(())
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
            self.core.stage.lock().chunks.put(&coord, StagedChunk { at: 0, bytes: Arc::new(whole), dirty: true });
        }
        Ok(())
    }

    /// Stores a chunk as given, and replaces its stored and staged contents.
    pub(crate) fn write_stored(&self, coord: &ChunkCoord, mask: u32, bytes: &[u8]) -> Result<(), DatasetError> {
        self.core.store_rows(StoredRows::All)?;
        self.core.stage.lock().chunks.take(coord);
        self.store_encoded(coord, mask, bytes)
    }

    /// Stores everything staged, and tells the store the extent.
    pub(crate) fn write_out(&self) -> Result<(), DatasetError> {
        if self.core.store_rows(StoredRows::AllWithExtent(None))? {
            return Ok(());
        }
        if let Some((grid, bytes)) = self.view.grid()? {
            self.store_staged(&grid, bytes, |_| true)?;
            // The chunk of the next rows is kept, so that it need not be decoded again.
            let mut stage = self.core.stage.lock();
            stage.chunks.retain(|coord, _| grid.is_partial(coord, &self.view.extent));
            if stage.chunks.bytes() > self.core.staging / 2 {
                stage.chunks.retain(|_, _| false);
            }
        }
        let extent = self.core.stage.lock().extent.clone();
        if let Some(extent) = extent {
            self.core.chunks.set_extent(&extent)?;
            self.core.stage.lock().extent = None;
        }
        Ok(())
    }

    /// Stores the staged chunks that `which` picks.
    fn store_staged(
        &self,
        grid: &ChunkGrid,
        chunk_bytes: usize,
        which: impl Fn(&ChunkCoord) -> bool,
    ) -> Result<(), DatasetError> {
        let mut dirty = self.core.stage.lock().dirty_chunks();
        dirty.retain(|(coord, _)| which(coord));
        if self.core.filters.is_empty() {
            for (coord, staged) in dirty {
                match staged.bytes.len() == chunk_bytes {
                    true => self.store_encoded(&coord, 0, &staged.bytes)?,
                    false => self.store_part(&coord, staged.at, &staged.bytes)?,
                }
                self.core.stage.lock().mark_stored(&coord, !self.core.writes_parts);
            }
            return Ok(());
        }
        let encode = |(coord, staged): &(ChunkCoord, StagedChunk), memory: &mut EncodeBuffers| {
            self.encode(&self.view, grid, coord, &staged.bytes, &mut memory.stored)
        };
        let store = |(coord, _): &(ChunkCoord, StagedChunk), mask: u32, bytes: &[u8]| {
            self.store_encoded(coord, mask, bytes)?;
            self.core.stage.lock().mark_stored(coord, true);
            Ok(())
        };
        encode_pipeline::run(&dirty, self.core.batch(chunk_bytes), encode, store)
    }

    /// Encodes a chunk of a dataset with filters into `stored`, and returns the mask.
    fn encode(
        &self,
        view: &SpecSnapshot,
        grid: &ChunkGrid,
        coord: &ChunkCoord,
        bytes: &[u8],
        stored: &mut Vec<u8>,
    ) -> Result<u32, DatasetError> {
        if view.is_unfiltered_edge(grid, coord) {
            stored.clear();
            stored.extend_from_slice(bytes);
            return Ok(0);
        }
        self.core.filters.encode_into(bytes, stored).map_err(|error| DatasetError::in_chunk(coord, error))
    }

    fn store_chunk(
        &self,
        view: &SpecSnapshot,
        grid: &ChunkGrid,
        coord: &ChunkCoord,
        bytes: &[u8],
    ) -> Result<(), DatasetError> {
        if self.core.filters.is_empty() {
            return self.store_encoded(coord, 0, bytes);
        }
        let mut stored = Vec::new();
        let mask = self.encode(view, grid, coord, bytes, &mut stored)?;
        self.store_encoded(coord, mask, &stored)
    }

    fn store_encoded(&self, coord: &ChunkCoord, mask: u32, bytes: &[u8]) -> Result<(), DatasetError> {
        self.core.chunks.write_whole(coord, mask, bytes).map_err(|error| DatasetError::in_chunk(coord, error))?;
        self.core.note_change();
        self.cache.remove(self.core.cache_id(), coord);
        Ok(())
    }

    fn store_part(&self, coord: &ChunkCoord, at: usize, bytes: &[u8]) -> Result<(), DatasetError> {
        self.core.chunks.write_part(coord, at as u64, bytes).map_err(|error| DatasetError::in_chunk(coord, error))
    }
}

/// A chunk with fill values outside the extent.
fn fill_outside_extent(view: &SpecSnapshot, grid: &ChunkGrid, coord: &ChunkCoord, bytes: &[u8]) -> Vec<u8> {
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

/// The chunks of one write.
struct ChunkWriter<'a, S> {
    writer: &'a DatasetWriter<'a>,
    cut: &'a ChunkSplit<'a>,
    grid: &'a ChunkGrid,
    /// Bytes of a decoded chunk.
    bytes: usize,
    source: &'a S,
}

impl<S: ElementSource> ChunkWriter<'_, S> {
    /// Whether a chunk is stored as a whole: every element of it that lies in the extent was written.
    fn is_covered(&self, coord: &ChunkCoord) -> bool {
        let view = &self.writer.view;
        let start = self.grid.start_of(coord);
        let sides = start.iter().zip(self.grid.dims()).zip(&view.extent);
        let inside: u64 = sides.map(|((start, size), extent)| (*size).min(extent.saturating_sub(*start))).product();
        let single = self.cut.single_run(coord);
        let selected = single.map_or_else(|| self.cut.elements_in(coord), |run| run.len);
        let direct = single.is_some_and(|run| run.len as usize * view.size == self.bytes);
        if direct {
            return true;
        }
        // A chunk into which the extent may still grow is staged.
        let ends = start.iter().zip(self.grid.dims()).map(|(start, size)| start.saturating_add(*size));
        let grows = ends
            .zip(view.extent.iter().zip(view.spec.dataspace.max()))
            .any(|(end, (extent, max))| end > *extent && max > extent);
        let small = !self.writer.core.writes_parts || self.bytes <= MAX_ASSEMBLED_CHUNK_BYTES;
        selected == inside && small && !grows
    }

    /// Stores chunks whose elements are all written.
    fn store_batch(&self, batch: &[ChunkCoord]) -> Result<(), DatasetError> {
        let writer = self.writer;
        if writer.core.filters.is_empty() {
            let mut memory = Vec::new();
            for coord in batch {
                let bytes = self.collect(coord, &mut memory).map_err(|failure| failure.with_chunk(coord))?;
                writer.store_encoded(coord, 0, bytes)?;
                writer.core.stage.lock().chunks.take(coord);
            }
            return Ok(());
        }
        let encode = |coord: &ChunkCoord, memory: &mut EncodeBuffers| {
            let bytes = self.collect(coord, &mut memory.chunk).map_err(|failure| failure.with_chunk(coord))?;
            writer.encode(&writer.view, self.grid, coord, bytes, &mut memory.stored)
        };
        let store = |coord: &ChunkCoord, mask: u32, bytes: &[u8]| {
            writer.store_encoded(coord, mask, bytes)?;
            writer.core.stage.lock().chunks.take(coord);
            Ok(())
        };
        encode_pipeline::run(batch, writer.core.batch(self.bytes), encode, store)
    }

    /// The bytes of a chunk whose elements are all written: from their place, or put together in `memory`.
    fn collect<'b>(&'b self, coord: &ChunkCoord, memory: &'b mut Vec<u8>) -> Result<&'b [u8], DatasetError> {
        if let Some(run) = self.cut.single_run(coord)
            && run.len as usize * self.writer.view.size == self.bytes
            && let Some(direct) = self.source.direct(dest_range(run))
        {
            return Ok(direct);
        }
        self.writer.view.fill(memory, self.bytes);
        self.overlay(coord, memory)?;
        Ok(memory)
    }

    /// Writes the selected elements of a chunk over its bytes.
    fn overlay(&self, coord: &ChunkCoord, bytes: &mut [u8]) -> Result<(), DatasetError> {
        let size = self.writer.view.size;
        let mut result = Ok(());
        self.cut.for_each_run(coord, |run| {
            if result.is_ok() {
                let range = run.at as usize * size..(run.at + run.len) as usize * size;
                result = self.source.get(dest_range(run), &mut bytes[range]);
            }
        });
        Ok(result?)
    }

    /// Writes over the staged bytes of a filtered chunk.
    fn stage_whole(&self, coord: &ChunkCoord) -> Result<(), DatasetError> {
        let writer = self.writer;
        {
            let mut stage = writer.core.stage.lock();
            if let Some(staged) = stage.chunks.get_mut(coord).filter(|staged| staged.bytes.len() == self.bytes) {
                staged.dirty = true;
                return self.overlay(coord, Arc::make_mut(&mut staged.bytes).as_mut_slice());
            }
        }
        let mut bytes = writer.reader().read_chunk(self.grid, self.bytes, coord)?;
        self.overlay(coord, &mut bytes)?;
        writer.core.stage.lock().chunks.put(coord, StagedChunk { at: 0, bytes: Arc::new(bytes), dirty: true });
        Ok(())
    }

    /// Stages short runs of an unfiltered chunk, and stores long ones.
    fn stage_parts(&self, coord: &ChunkCoord) -> Result<(), DatasetError> {
        let mut result = Ok(());
        let mut scratch = Vec::new();
        self.cut.for_each_run(coord, |run| {
            if result.is_ok() {
                let at = run.at as usize * self.writer.view.size;
                result = self.writer.stage_run(coord, at, dest_range(run), (self.source, &mut scratch));
            }
        });
        result
    }
}

fn dest_range(run: ElementRun) -> Range<usize> {
    run.dest as usize..(run.dest + run.len) as usize
}
