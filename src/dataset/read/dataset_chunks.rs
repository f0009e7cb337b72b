//! What a dataset offers of its chunks: stored ones without filters, and its elements chunk by chunk.

use std::ops::Range;

use h5live_model::{
    BoundSelection, ChunkBytes, ChunkCoord, ChunkGrid, ChunkReadRequest, Dataspace, Error as ModelError, FillTime,
    Layout, Selection, StoredChunk,
};
use parking_lot::Mutex;

use super::chunk_selection_iter::{ChunkSelectionIter, block_grid};
use crate::dataset::Dataset;
use crate::dataset::error::DatasetError;
use crate::dims::CoreDims;
use crate::error::ErrorKind;
use crate::{Result, Select};

impl Dataset {
    /// The stored chunks, in the order of the index: their addresses, sizes, and the filters that were left out. Staged
    /// elements are written out first. A contiguous or compact dataset is one chunk.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if the index cannot be read.
    pub fn stored_chunks(&self) -> Result<Vec<StoredChunk>> {
        let mut chunks = Vec::new();
        self.for_each_stored_chunk(|chunk| {
            chunks.push(chunk);
            true
        })?;
        Ok(chunks)
    }

    /// Calls `each` with the stored chunks, as [`Dataset::stored_chunks`] has them, until it returns `false`.
    ///
    /// # Errors
    /// As [`Dataset::stored_chunks`].
    pub fn for_each_stored_chunk(&self, mut each: impl FnMut(StoredChunk) -> bool) -> Result<()> {
        self.with_error_path(|| {
            self.core.write_out(self.file.shared())?;
            let view = self.core.spec_snapshot()?;
            let grid = match &view.spec.layout {
                Layout::Chunked(dims) => ChunkGrid::new(dims),
                _ => None,
            };
            let Some(grid) = grid else { return Ok(self.core.chunks.for_each_chunk(&mut each)?) };
            // A live store may have chunks that wait for appends.
            let counts = grid.chunk_counts(&view.extent);
            let is_there = |coord: &ChunkCoord| coord.scaled().iter().zip(&counts).all(|(at, number)| at < number);
            Ok(self.core.chunks.for_each_chunk(&mut |chunk| !is_there(&chunk.coord) || each(chunk))?)
        })
    }

    /// The place of the chunk at a position in the grid; `None` if it was never written.
    ///
    /// # Errors
    /// As [`Dataset::stored_chunks`].
    pub fn stored_chunk(&self, coord: &ChunkCoord) -> Result<Option<StoredChunk>> {
        self.with_error_path(|| {
            self.core.write_out(self.file.shared())?;
            self.core.chunks.locate(coord).map_err(|error| DatasetError::in_chunk(coord, error))
        })
    }

    /// The stored bytes of a chunk, as they came out of the filters.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] if they cannot be read; [`ErrorKind::Allocation`] if they are more than may be allocated at
    /// once ([`Options::max_allocation`](crate::Options::max_allocation)).
    pub fn read_chunk(&self, chunk: &StoredChunk) -> Result<Vec<u8>> {
        self.with_error_path(|| {
            let mut bytes = self.core.max_allocation.zeroed(chunk.size)?;
            self.core.chunks.read(chunk, 0, &mut bytes).map_err(|error| DatasetError::in_chunk(&chunk.coord, error))?;
            Ok(bytes)
        })
    }

    /// Whether many chunks are best read and written by one call.
    pub(crate) fn takes_many_chunks(&self) -> bool {
        self.core.read.reads.preferred_chunks_in_flight() > 1
    }

    /// As [`Dataset::read_chunk`], for each of these chunks: by one call where the store reads best like that.
    pub(crate) fn read_chunks(&self, chunks: &[StoredChunk]) -> Result<Vec<Vec<u8>>> {
        let found: Mutex<Vec<Option<Vec<u8>>>> = Mutex::new(vec![None; chunks.len()]);
        let bytes = chunks.iter().fold(0u64, |bytes, chunk| bytes.saturating_add(chunk.size));
        // What may not be in memory together is read one by one.
        let is_together = chunks.len() > 1 && self.core.max_allocation.check(bytes).is_ok();
        if self.takes_many_chunks() && is_together {
            let wanted: Vec<_> =
                chunks.iter().map(|chunk| ChunkReadRequest { coord: &chunk.coord, byte_range: None }).collect();
            let take = |number: usize, bytes: Option<ChunkBytes<'_>>| {
                // So is what has moved or changed.
                if let (Some(bytes), Some(chunk)) = (bytes, chunks.get(number))
                    && *bytes.chunk == *chunk
                {
                    found.lock()[number] = Some(bytes.bytes.to_vec());
                }
                Ok(())
            };
            let budget = usize::try_from(bytes).unwrap_or(usize::MAX).max(self.core.transfer_memory_bytes);
            self.with_error_path(|| match self.core.chunks.read_many(&wanted, budget, &take) {
                Err(ModelError::Moved) => Ok(()),
                read => Ok(read?),
            })?;
        }
        let found = found.into_inner().into_iter().zip(chunks);
        found.map(|(bytes, chunk)| bytes.map_or_else(|| self.read_chunk(chunk), Ok)).collect()
    }

    /// Undoes the filters of the stored bytes of a chunk, to see whether that can be done.
    pub(crate) fn verify_chunk(&self, chunk: &StoredChunk, stored: &[u8]) -> Result<()> {
        self.with_error_path(|| {
            let view = self.core.spec_snapshot()?;
            let Some((grid, bytes)) = view.grid()? else { return Ok(()) };
            let mask = if view.is_unfiltered_edge(&grid, &chunk.coord) { u32::MAX } else { chunk.filter_mask };
            self.core.check_allocation(bytes)?;
            let decoded = self.core.filters.decode(mask, stored, bytes);
            decoded.map(drop).map_err(|error| DatasetError::in_chunk(&chunk.coord, error))
        })
    }

    /// Copies the bytes of a chunk that was stored without filters, part by part, and calls `each` with the number of
    /// bytes of each part. Bytes that were never written are left out. Nothing leads to the dataset `to` yet. One part is
    /// written while the next one is read.
    pub(crate) fn copy_unfiltered_chunk(
        &self,
        to: &Dataset,
        chunk: &StoredChunk,
        step: u64,
        each: &mut dyn FnMut(u64),
    ) -> Result<()> {
        if !self.core.filters.is_empty() || !to.core.store.takes_runs() {
            to.write_chunk(&chunk.coord, chunk.filter_mask, &self.read_chunk(chunk)?)?;
            each(chunk.size);
            return Ok(());
        }
        let spec = to.spec()?;
        // A chunk that is not there yet is made of fill values.
        let is_filled = spec.fill.time != FillTime::Never || to.stored_chunk(&chunk.coord)?.is_none();
        let skips_holes = is_filled && spec.nonzero_fill_value().is_none();
        let mut fill = self.copy_buffer(step.min(chunk.size))?;
        let mut read = self.read_next_part(chunk, 0..step, skips_holes, self.copy_buffer(step.min(chunk.size))?)?;
        let mut spare = if step < chunk.size { self.copy_buffer(step)? } else { Vec::new() };
        let mut done = 0;
        while let Some((at, mut bytes)) = read {
            let end = at + bytes.len() as u64;
            let write = || to.write_copied_part(chunk, (at, &bytes), &mut fill, is_filled);
            let next = || match end < chunk.size {
                true => self.read_next_part(chunk, end..end.saturating_add(step), skips_holes, spare),
                false => Ok(None),
            };
            let (written, next) = rayon::join(write, next);
            written?;
            read = next?;
            bytes.resize(step.min(chunk.size) as usize, 0);
            spare = bytes;
            each(end - done);
            done = end;
        }
        Ok(())
    }

    fn copy_buffer(&self, bytes: u64) -> Result<Vec<u8>> {
        self.with_error_path(|| Ok(self.core.max_allocation.zeroed(bytes).map_err(ErrorKind::from)?))
    }

    /// Reads the bytes of a chunk without filters that lie in `part`, or, if that `skips_holes`, as many behind the next
    /// hole. Returns where they begin. They are not more than `bytes`.
    fn read_next_part(
        &self,
        chunk: &StoredChunk,
        part: Range<u64>,
        skips_holes: bool,
        mut bytes: Vec<u8>,
    ) -> Result<Option<(u64, Vec<u8>)>> {
        self.with_error_path(|| {
            let mut at = part.start;
            if at > 0 && skips_holes {
                let next = self.core.chunks.next_data(chunk, at)?;
                // The last byte is read, so that a file that has been cut is noticed.
                at = next.unwrap_or(chunk.size).min(chunk.size - 1);
            }
            bytes.truncate((chunk.size - at).min(part.end - part.start) as usize);
            let read = self.core.chunks.read(chunk, at, &mut bytes);
            read.map_err(|error| DatasetError::in_chunk(&chunk.coord, error))?;
            Ok(Some((at, bytes)))
        })
    }

    /// The chunks of the dataset as selections, in row-major order: each is the part of a chunk that lies within the
    /// extent. A dataset without chunks is cut into blocks of rows of at most 4 MiB.
    ///
    /// So the whole dataset is read with the memory of one chunk, and each chunk is decoded once. The extent is that of
    /// the call: chunks of later appends do not come.
    ///
    /// ```
    /// use h5live::File;
    ///
    /// let file = File::in_memory();
    /// let data = file.new_dataset::<u32>().shape(&[3, 4]).chunk_shape(&[2, 3]).create("data")?;
    /// data.write(&(0..12).collect::<Vec<_>>())?;
    /// let mut sum = 0;
    /// for chunk in data.iter_chunks()? {
    ///     println!("{chunk}"); // 0:2, 0:3 and so on
    ///     sum += data.read_slice::<u32>(&chunk)?.iter().sum::<u32>();
    /// }
    /// assert_eq!(sum, 66);
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// [`Dataset::for_each_chunk_part`] does the same with a selection.
    ///
    /// # Errors
    /// As [`Dataset::spec`].
    pub fn iter_chunks(&self) -> Result<ChunkSelectionIter> {
        self.with_error_path(|| {
            let view = self.core.spec_snapshot()?;
            let extent = CoreDims::from_slice(&view.extent);
            let grid = match &view.spec.layout {
                Layout::Chunked(_) => view.grid()?.map(|(grid, _)| grid),
                _ => block_grid(&extent, view.size as u64),
            };
            let grid = grid.filter(|_| view.spec.dataspace != Dataspace::Null);
            Ok(grid.map_or(ChunkSelectionIter::default(), |grid| ChunkSelectionIter::new(&grid, &extent)))
        })
    }

    /// Calls `each` for each part of a selection that lies in one chunk, in row-major order of the chunks. A caller
    /// that reads part by part decodes each chunk once. A dataset without chunks has one part.
    ///
    /// ```
    /// use h5live::File;
    ///
    /// let file = File::in_memory();
    /// let data = file.new_dataset::<u32>().shape(&[5]).chunk_shape(&[2]).create("data")?;
    /// data.write(&[1, 2, 3, 4, 5])?;
    /// let mut sums = Vec::new();
    /// data.for_each_chunk_part(1.., |part| {
    ///     sums.push(data.read_slice::<u32>(part)?.iter().sum::<u32>());
    ///     Ok(())
    /// })?;
    /// assert_eq!(sums, [2, 7, 5]);
    /// # Ok::<(), h5live::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Selection`] if the selection does not fit, or a part of it falls into too many pieces; and what
    /// `each` returns.
    pub fn for_each_chunk_part(
        &self,
        selection: impl Select,
        mut each: impl FnMut(Selection) -> Result<()>,
    ) -> Result<()> {
        let (view, selected) = self.with_error_path(|| {
            let view = self.core.spec_snapshot()?;
            let selected = self.select(&view, &selection)?;
            Ok((view, selected))
        })?;
        let grid = match &view.spec.layout {
            Layout::Chunked(_) => self.with_error_path(|| Ok(view.grid()?.map(|(grid, _)| grid)))?,
            _ => ChunkGrid::new(selected.extent()),
        };
        let Some(grid) = grid else { return Ok(()) };
        self.for_each_part_in(&selected, &grid, &mut each)
    }

    /// Calls `each` with the start and the counts of the parts of the dataset that lie in one chunk of a grid each.
    pub(crate) fn for_each_block_of(
        &self,
        grid: &ChunkGrid,
        mut each: impl FnMut(&[u64], &[u64]) -> Result<()>,
    ) -> Result<()> {
        let selected = self.with_error_path(|| self.select(&self.resolved_snapshot()?, &Selection::All))?;
        let extent = selected.extent();
        for coord in selected.split_by_chunks(grid).chunks() {
            let start = grid.start_of(&coord);
            let ends = start.iter().zip(grid.chunk_dims()).zip(extent);
            let count: CoreDims =
                ends.map(|((start, size), extent)| (*size).min(extent.saturating_sub(*start))).collect();
            each(&start, &count)?;
        }
        Ok(())
    }

    fn for_each_part_in(
        &self,
        selected: &BoundSelection,
        grid: &ChunkGrid,
        each: &mut dyn FnMut(Selection) -> Result<()>,
    ) -> Result<()> {
        let cut = selected.split_by_chunks(grid);
        for coord in cut.chunks() {
            let start = grid.start_of(&coord);
            let end: CoreDims =
                start.iter().zip(grid.chunk_dims()).map(|(start, size)| start.saturating_add(*size)).collect();
            each(self.with_error_path(|| Ok(selected.clip_to_box(&start, &end)?))?)?;
        }
        Ok(())
    }
}
