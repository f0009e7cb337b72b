//! From the caller's values to chunks.

use std::ops::Range;
use std::sync::Arc;

use h5live_model::{ChunkCoord, ChunkGrid, Cut, Layout, Objects, Run, Selected, Selection};
use parking_lot::MutexGuard;

use super::cache::ChunkCache;
use super::core::{Core, Dims, Failure, View};
use super::line::{self, Memory};
use super::next::Next;
use super::read::Reader;
use super::sides::Source;
use super::staged_chunks::{STAGED_PART, STAGED_RUN, Staged};
use crate::error::ErrorKind;

/// Unfiltered chunks up to this size are put together before they are stored (bytes).
const WHOLE_BYTES: usize = 4 << 20;
/// Chunks that are listed before they are stored.
const LISTED: usize = 1 << 10;

/// Rows that are to be appended.
pub(crate) struct Rows {
    /// The dimension along which they are.
    axis: usize,
    /// Elements in all.
    values: u64,
    /// Elements of one.
    row: u64,
    /// The extent with them.
    extent: Dims,
}

/// The one that changes elements or the extent of a dataset.
pub(crate) struct Writer<'a> {
    core: &'a Core,
    store: &'a dyn Objects,
    cache: &'a ChunkCache,
    view: View,
    _alone: MutexGuard<'a, ()>,
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.core.list_staged();
    }
}

impl Core {
    pub(crate) fn writer<'a>(&'a self, store: &'a dyn Objects, cache: &'a ChunkCache) -> Result<Writer<'a>, Failure> {
        let alone = self.writer.lock();
        let view = self.view()?;
        self.check_allocation(view.size)?;
        Ok(Writer { core: self, store, cache, view, _alone: alone })
    }
}

impl<'a> Writer<'a> {
    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    fn reader(&self) -> Reader<'_> {
        Reader { core: self.core, view: &self.view, store: self.store, cache: self.cache }
    }

    /// Overwrites the elements of a selection.
    pub(crate) fn write(&self, selected: &Selected, source: &impl Source) -> Result<(), Failure> {
        if selected.elements() == 0 {
            return Ok(());
        }
        let Some((grid, bytes)) = self.view.grid()? else { return Ok(()) };
        let cut = &selected.cut(&grid);
        if let Some((coord, run)) = cut.only_run()
            && self.core.filters.is_empty()
            && run.len as usize * self.view.size == bytes
            && let Some(direct) = source.direct(places(run))
        {
            self.put_encoded(&coord, 0, direct)?;
            self.core.stage.lock().chunks.take(&coord);
            return Ok(());
        }
        if !self.core.filters.is_empty() {
            self.core.check_allocation(bytes)?;
        }
        let chunk = Chunk { writer: self, cut, grid: &grid, bytes, source };
        let mut batch = Vec::new();
        for coord in chunk.cut.chunks() {
            if chunk.is_covered(&coord) {
                batch.push(coord);
                if batch.len() == LISTED {
                    chunk.store(&batch)?;
                    batch.clear();
                }
            } else if self.core.filters.is_empty() {
                chunk.stage_parts(&coord).map_err(|failure| failure.of(&coord))?;
            } else {
                chunk.stage_whole(&coord).map_err(|failure| failure.of(&coord))?;
            }
        }
        chunk.store(&batch)?;
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
    pub(crate) fn rows(&self, values: usize) -> Result<Rows, ErrorKind> {
        let axis = self.axis()?;
        let row = self.row_along(axis);
        let values = values as u64;
        if row == 0 || !values.is_multiple_of(row) {
            return Err(ErrorKind::Rows { row, values });
        }
        let mut extent = Dims::from_slice(&self.view.extent);
        extent[axis] = extent[axis].saturating_add(values / row);
        self.check_extent(&extent)?;
        Ok(Rows { axis, values, row, extent })
    }

    /// Appends rows that [`Writer::rows`] has made room for.
    pub(crate) fn append(&mut self, rows: Rows, source: &impl Source) -> Result<(), Failure> {
        let Rows { axis, values, row, extent } = rows;
        self.promote_edges(&extent)?;
        let before = std::mem::replace(&mut self.view.extent, extent);
        let sides = self.view.sides()?;
        let values = values as usize;
        let run = sides.and_then(|sides| self.one_run(axis, &before, values, sides));
        let mut next = None;
        let whole = values * self.view.size == sides.map_or(0, |(_, bytes)| bytes);
        // What is published by itself waits for that: the store may know a shorter way to do both.
        let is_alone = self.core.appends.begin();
        match (run, source.direct(0..values)) {
            (Some((coord, _)), Some(direct)) if whole && !is_alone => {
                self.put_encoded(&coord, 0, direct)?;
                self.core.stage.lock().chunks.take(&coord);
                next = self.after(&coord, row);
            }
            (Some((coord, at)), _) if !whole || is_alone => {
                self.stage_run(&coord, at, 0..values, (source, &mut Vec::new()))?;
                next = match whole {
                    true => self.after(&coord, row),
                    false => self.next(coord, at + values * self.view.size, row as usize * self.view.size),
                };
            }
            _ => {
                let (mut start, mut count) = (Dims::from_elem(0, before.len()), before.clone());
                start[axis] = before[axis];
                count[axis] = self.view.extent[axis] - before[axis];
                self.write(&Selection::block(&start, &count).on(&self.view.extent)?, source)?;
            }
        }
        let mut stage = self.core.stage.lock();
        stage.extent = Some(Dims::from_slice(&self.view.extent));
        if next.is_some() || stage.next.is_some() {
            stage.next = next;
        }
        let is_staged = stage.chunks.bytes() > 0;
        drop(stage);
        let Some((sides, _)) = sides else { return Ok(()) };
        let (first, full) = (before[axis] / sides[axis], self.view.extent[axis] / sides[axis]);
        if first < full
            && is_staged
            && !is_alone
            && let Some((grid, bytes)) = self.view.grid()?
        {
            self.store_staged(&grid, bytes, |coord| (first..full).contains(&coord.scaled()[axis]))?;
        }
        Ok(())
    }

    /// The chunk without filters, and the place in it (bytes), of new rows that are one short run there.
    fn one_run(
        &self,
        axis: usize,
        before: &[u64],
        values: usize,
        (sides, bytes): (&[u64], usize),
    ) -> Option<(ChunkCoord, usize)> {
        let now = &self.view.extent;
        let len = values.checked_mul(self.view.size)?;
        let is_short = len > 0 && len <= STAGED_RUN.min(bytes) && self.core.filters.is_empty();
        if axis != 0 || !is_short || sides.get(1..) != now.get(1..) {
            return None;
        }
        let (side, first, end) = (*sides.first()?, *before.first()?, *now.first()?);
        let (chunk, row) = (first / side, len as u64 / (end - first));
        if (end - 1) / side != chunk {
            return None;
        }
        let mut coord = Dims::from_elem(0, sides.len());
        coord[0] = chunk;
        Some((ChunkCoord::new(&coord), (first % side * row) as usize))
    }

    /// Where the rows go that come after those of [`Writer::one_run`], which end `at` in a chunk (bytes)
    /// and have `row` bytes each; `None` if the chunk has room for no more.
    fn next(&self, coord: ChunkCoord, at: usize, row: usize) -> Option<Next> {
        let (sides, _) = self.view.sides().ok()??;
        let (side, max) = (*sides.first()?, *self.view.spec.dataspace.max().first()?);
        let end = coord.scaled().first()?.saturating_add(1).saturating_mul(side).min(max);
        let extent = Dims::from_slice(&self.view.extent);
        (*extent.first()? < end).then_some(Next { coord, at, row, extent, end, side, max })
    }

    /// Where the rows go that come after all those of a chunk, of `row` elements each.
    fn after(&self, coord: &ChunkCoord, row: u64) -> Option<Next> {
        let next = coord.scaled().first()?.checked_add(1)?;
        self.next(coord.moved(0, next), 0, row as usize * self.view.size)
    }

    /// Stages a run of an unfiltered chunk, from `at` on (bytes), piece by piece.
    fn stage_run(
        &self,
        coord: &ChunkCoord,
        at: usize,
        run: Range<usize>,
        (source, scratch): (&impl Source, &mut Vec<u8>),
    ) -> Result<(), Failure> {
        let size = self.view.size;
        let step = (STAGED_PART / size).max(1);
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
    fn stage_part(&self, coord: &ChunkCoord, at: usize, bytes: &[u8]) -> Result<(), Failure> {
        let stage = &self.core.stage;
        if stage.lock().chunks.add(coord, at, bytes) {
            return Ok(());
        }
        let before = stage.lock().chunks.get(coord);
        if let Some(before) = before {
            self.put_part(coord, before.at, &before.bytes)?;
            let mut stage = stage.lock();
            stage.chunks.take(coord);
            if stage.chunks.add(coord, at, bytes) {
                return Ok(());
            }
        }
        self.put_part(coord, at, bytes)
    }

    fn check_extent(&self, dims: &[u64]) -> Result<(), ErrorKind> {
        let max = self.view.spec.dataspace.max();
        let fits = dims.len() == max.len() && dims.iter().zip(max).all(|(dim, max)| dim <= max);
        if fits { Ok(()) } else { Err(ErrorKind::Extent { dims: dims.into(), max: max.into() }) }
    }

    /// Changes the extent. Elements that come to be are fill values; those outside are gone.
    pub(crate) fn resize(&mut self, dims: &[u64]) -> Result<(), Failure> {
        self.check_extent(dims)?;
        if !matches!(self.view.spec.layout, Layout::Chunked(_)) {
            return Ok(self.core.chunks.set_extent(dims)?);
        }
        let Some((grid, bytes)) = self.view.grid()? else { return Ok(self.core.chunks.set_extent(dims)?) };
        if self.view.extent.iter().zip(dims).all(|(old, new)| old <= new) {
            self.promote_edges(dims)?;
            self.core.stage.lock().extent = Some(Dims::from_slice(dims));
            return Ok(());
        }
        let kept: Vec<u64> = self.view.extent.iter().zip(dims).map(|(old, new)| *old.min(new)).collect();
        if kept != dims {
            // A smaller extent is published at once, a larger one by the next flush, with what is written until then.
            self.resize(&kept)?;
            return self.resize(dims);
        }
        self.write_out()?;
        let counts = grid.counts(dims);
        let mut changed = Vec::new();
        self.core.chunks.for_each_chunk(&mut |stored| {
            let inside = stored.coord.scaled().iter().zip(&counts).all(|(at, n)| at < n);
            if inside && (grid.is_partial(&stored.coord, dims) || self.view.is_bare(&grid, &stored.coord)) {
                changed.push(stored.coord);
            }
            true
        })?;
        if !changed.is_empty() {
            self.core.check_allocation(bytes)?;
        }
        // The extent comes first: what is cleared and dropped is then no longer there to see.
        self.core.chunks.set_extent(dims)?;
        let smaller = View { extent: dims.into(), ..self.view.clone() };
        for coord in changed {
            let clear = || -> Result<(), Failure> {
                let old = self.reader().whole(&grid, bytes, &coord)?;
                let cleared = clear_outside(&smaller, &grid, &coord, &old);
                self.put(&smaller, &grid, &coord, &cleared)
            };
            clear().map_err(|failure| failure.of(&coord))?;
        }
        let mut stage = self.core.stage.lock();
        stage.chunks.retain(|_, _| false);
        stage.extent = None;
        stage.next = None;
        drop(stage);
        self.core.changed();
        self.cache.forget(self.core.cached_as());
        self.view.extent = dims.into();
        Ok(())
    }

    /// Stages the chunks that were stored without filters because they reached over the extent, and will no more.
    fn promote_edges(&self, dims: &[u64]) -> Result<(), Failure> {
        if !self.view.spec.unfiltered_edges || self.core.filters.is_empty() {
            return Ok(());
        }
        let Some((grid, bytes)) = self.view.grid()? else { return Ok(()) };
        let mut promoted = Vec::new();
        self.core.chunks.for_each_chunk(&mut |stored| {
            if self.view.is_bare(&grid, &stored.coord) && !grid.is_partial(&stored.coord, dims) {
                promoted.push(stored.coord);
            }
            true
        })?;
        for coord in promoted {
            let whole = self.reader().whole(&grid, bytes, &coord).map_err(|failure| failure.of(&coord))?;
            self.core.stage.lock().chunks.put(&coord, Staged { at: 0, bytes: Arc::new(whole), dirty: true });
        }
        Ok(())
    }

    /// Stores a chunk as it is, in place of what is stored and staged of it.
    pub(crate) fn write_stored(&self, coord: &ChunkCoord, mask: u32, bytes: &[u8]) -> Result<(), Failure> {
        self.core.stage.lock().chunks.take(coord);
        self.put_encoded(coord, mask, bytes)
    }

    /// Stores everything staged, and tells the store the extent.
    pub(crate) fn write_out(&self) -> Result<(), Failure> {
        if let Some((grid, bytes)) = self.view.grid()? {
            self.store_staged(&grid, bytes, |_| true)?;
            // What will be appended to is kept, so that it need not be decoded again.
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
    ) -> Result<(), Failure> {
        self.core.store_row(false)?;
        let mut dirty = self.core.stage.lock().dirty();
        dirty.retain(|(coord, _)| which(coord));
        if self.core.filters.is_empty() {
            for (coord, staged) in dirty {
                match staged.bytes.len() == chunk_bytes {
                    true => self.put_encoded(&coord, 0, &staged.bytes)?,
                    false => self.put_part(&coord, staged.at, &staged.bytes)?,
                }
                self.core.stage.lock().stored(&coord, false);
            }
            return Ok(());
        }
        let encode = |(coord, staged): &(ChunkCoord, Staged), memory: &mut Memory| {
            self.encode(&self.view, grid, coord, &staged.bytes, &mut memory.stored)
        };
        let store = |(coord, _): &(ChunkCoord, Staged), mask: u32, bytes: &[u8]| {
            self.put_encoded(coord, mask, bytes)?;
            self.core.stage.lock().stored(coord, true);
            Ok(())
        };
        line::run(&dirty, self.core.batch(chunk_bytes), encode, store)
    }

    /// Makes `stored` what is stored of a chunk of a dataset with filters; returns the mask.
    fn encode(
        &self,
        view: &View,
        grid: &ChunkGrid,
        coord: &ChunkCoord,
        bytes: &[u8],
        stored: &mut Vec<u8>,
    ) -> Result<u32, Failure> {
        if view.is_bare(grid, coord) {
            stored.clear();
            stored.extend_from_slice(bytes);
            return Ok(0);
        }
        self.core.filters.encode_into(bytes, stored).map_err(|error| Failure::in_chunk(coord, error))
    }

    fn put(&self, view: &View, grid: &ChunkGrid, coord: &ChunkCoord, bytes: &[u8]) -> Result<(), Failure> {
        if self.core.filters.is_empty() {
            return self.put_encoded(coord, 0, bytes);
        }
        let mut stored = Vec::new();
        let mask = self.encode(view, grid, coord, bytes, &mut stored)?;
        self.put_encoded(coord, mask, &stored)
    }

    fn put_encoded(&self, coord: &ChunkCoord, mask: u32, bytes: &[u8]) -> Result<(), Failure> {
        self.core.chunks.write_whole(coord, mask, bytes).map_err(|error| Failure::in_chunk(coord, error))?;
        self.core.changed();
        self.cache.remove(self.core.cached_as(), coord);
        Ok(())
    }

    fn put_part(&self, coord: &ChunkCoord, at: usize, bytes: &[u8]) -> Result<(), Failure> {
        self.core.chunks.write_part(coord, at as u64, bytes).map_err(|error| Failure::in_chunk(coord, error))
    }
}

/// A chunk with fill values outside the extent.
fn clear_outside(view: &View, grid: &ChunkGrid, coord: &ChunkCoord, bytes: &[u8]) -> Vec<u8> {
    let mut cleared = vec![0; bytes.len()];
    view.spec.fill_into(0, &mut cleared);
    if let Ok(inside) = Selection::All.on(&view.extent) {
        inside.cut(grid).for_each_run(coord, |run| {
            let range = run.at as usize * view.size..(run.at + run.len) as usize * view.size;
            cleared[range.clone()].copy_from_slice(&bytes[range]);
        });
    }
    cleared
}

/// The chunks of one write.
struct Chunk<'a, S> {
    writer: &'a Writer<'a>,
    cut: &'a Cut<'a>,
    grid: &'a ChunkGrid,
    /// Bytes of a decoded chunk.
    bytes: usize,
    source: &'a S,
}

impl<S: Source> Chunk<'_, S> {
    /// Whether a chunk is to be stored as a whole: every element of it that lies in the extent is written.
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
        let small = !self.writer.core.filters.is_empty() || self.bytes <= WHOLE_BYTES;
        selected == inside && small && !grows
    }

    /// Stores chunks whose elements are all written.
    fn store(&self, batch: &[ChunkCoord]) -> Result<(), Failure> {
        let writer = self.writer;
        if writer.core.filters.is_empty() {
            let mut memory = Vec::new();
            for coord in batch {
                let bytes = self.collect(coord, &mut memory).map_err(|failure| failure.of(coord))?;
                writer.put_encoded(coord, 0, bytes)?;
                writer.core.stage.lock().chunks.take(coord);
            }
            return Ok(());
        }
        let encode = |coord: &ChunkCoord, memory: &mut Memory| {
            let bytes = self.collect(coord, &mut memory.chunk).map_err(|failure| failure.of(coord))?;
            writer.encode(&writer.view, self.grid, coord, bytes, &mut memory.stored)
        };
        let store = |coord: &ChunkCoord, mask: u32, bytes: &[u8]| {
            writer.put_encoded(coord, mask, bytes)?;
            writer.core.stage.lock().chunks.take(coord);
            Ok(())
        };
        line::run(batch, writer.core.batch(self.bytes), encode, store)
    }

    /// The bytes of a chunk whose elements are all written: where they are, or put together in `memory`.
    fn collect<'b>(&'b self, coord: &ChunkCoord, memory: &'b mut Vec<u8>) -> Result<&'b [u8], Failure> {
        if let Some(run) = self.cut.single_run(coord)
            && run.len as usize * self.writer.view.size == self.bytes
            && let Some(direct) = self.source.direct(places(run))
        {
            return Ok(direct);
        }
        self.writer.view.fill(memory, self.bytes);
        self.overlay(coord, memory)?;
        Ok(memory)
    }

    /// Writes the selected elements of a chunk over its bytes.
    fn overlay(&self, coord: &ChunkCoord, bytes: &mut [u8]) -> Result<(), Failure> {
        let size = self.writer.view.size;
        let mut result = Ok(());
        self.cut.for_each_run(coord, |run| {
            if result.is_ok() {
                let range = run.at as usize * size..(run.at + run.len) as usize * size;
                result = self.source.get(places(run), &mut bytes[range]);
            }
        });
        Ok(result?)
    }

    /// Writes over the staged bytes of a filtered chunk.
    fn stage_whole(&self, coord: &ChunkCoord) -> Result<(), Failure> {
        let writer = self.writer;
        {
            let mut stage = writer.core.stage.lock();
            if let Some(staged) = stage.chunks.get_mut(coord).filter(|staged| staged.bytes.len() == self.bytes) {
                staged.dirty = true;
                return self.overlay(coord, Arc::make_mut(&mut staged.bytes).as_mut_slice());
            }
        }
        let mut bytes = writer.reader().whole(self.grid, self.bytes, coord)?;
        self.overlay(coord, &mut bytes)?;
        writer.core.stage.lock().chunks.put(coord, Staged { at: 0, bytes: Arc::new(bytes), dirty: true });
        Ok(())
    }

    /// Stages short runs of an unfiltered chunk, and stores long ones.
    fn stage_parts(&self, coord: &ChunkCoord) -> Result<(), Failure> {
        let mut result = Ok(());
        let mut scratch = Vec::new();
        self.cut.for_each_run(coord, |run| {
            if result.is_ok() {
                let at = run.at as usize * self.writer.view.size;
                result = self.writer.stage_run(coord, at, places(run), (self.source, &mut scratch));
            }
        });
        result
    }
}

fn places(run: Run) -> Range<usize> {
    run.place as usize..(run.place + run.len) as usize
}
