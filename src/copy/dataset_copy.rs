//! The elements of a dataset on their way to its copy.

use std::sync::mpsc::sync_channel;
use std::thread;

use h5live_model::{ChunkEncodedBy, ChunkGrid, ChunkWrite, DatasetSpec, Hyperslab, Layout, Selection, StoredChunk};
use rayon::prelude::*;

use super::element_copy::ElementCopy;
use super::{CopiedObject, Copier, DatasetInCopy};
use crate::dims::CoreDims;
use crate::{Dataset, Result};

/// Bytes that are copied at a time, or one chunk if it is larger.
const MAX_COPY_BYTES: u64 = 16 << 20;

/// Chunks that are copied at a time at most.
const MAX_COPY_CHUNKS: usize = 1 << 10;

/// Whether chunks go through the same filters. The names of the filters do not count.
fn has_same_filters(a: &DatasetSpec, b: &DatasetSpec) -> bool {
    let filters = a.filters.iter().zip(&b.filters);
    a.filters.len() == b.filters.len() && filters.into_iter().all(|(a, b)| (a.id, &a.params) == (b.id, &b.params))
}

/// How many of these chunks are copied at a time: `most`, if they have no more than [`MAX_COPY_BYTES`] bytes together, and one
/// at least.
fn stored_batch_len(chunks: &[StoredChunk], most: usize) -> usize {
    let mut bytes = 0u64;
    let fits = |chunk: &&StoredChunk| {
        bytes = bytes.saturating_add(chunk.size);
        bytes <= MAX_COPY_BYTES
    };
    chunks.iter().take(most).take_while(fits).count().max(1)
}

/// Elements that are copied together.
#[derive(Debug, Clone)]
struct CopyPart {
    selection: Selection,
    bytes: u64,
}

impl CopyPart {
    /// Reads the elements into `bytes`, which is made as long as they are.
    fn read(&self, from: &Dataset, bytes: &mut Vec<u8>) -> Result<()> {
        bytes.resize(self.bytes as usize, 0);
        from.read_raw_into(&self.selection, bytes)
    }
}

impl Copier<'_> {
    /// Copies the elements of a dataset.
    pub(super) fn copy_elements(&mut self, made: &CopiedObject) -> Result<()> {
        let from = Dataset::open(self.files.from.clone(), made.from, made.path.clone())?;
        let to = Dataset::open(self.files.to.clone(), made.to, made.path.clone())?;
        if self.has_elements_elsewhere(&from)? {
            return Ok(());
        }
        let (old, new) = (from.spec()?, to.spec()?);
        let elsewhere = matches!(old.layout, Layout::Virtual(_) | Layout::External(_));
        if old.dataspace.element_count() == Some(0) {
            return Ok(());
        }
        if let (Some(elements_by), false) = (&mut self.elements_by, elsewhere) {
            let dataset = DatasetInCopy { path: &made.path, spec: &old, chunks: &from.stored_chunks()?, copy: made.to };
            if elements_by(&dataset).map_err(|error| self.write_error(&made.path, error))? {
                return Ok(());
            }
        }
        let plan = ElementCopy::new(&old.datatype, &new.datatype);
        if elsewhere {
            return self.copy_slabs(&from, &to, &new, &plan);
        }
        let same_grid = old.grid_or_single_chunk() == new.grid_or_single_chunk();
        let is_encoded = |data: &Dataset| data.file().session().capabilities.encoding == ChunkEncodedBy::Pipeline;
        let same_form = old.filters.is_empty() || is_encoded(&from) && is_encoded(&to);
        let same_edges = old.unfiltered_partial_chunks == new.unfiltered_partial_chunks;
        if same_grid && plan.is_plain() && has_same_filters(&old, &new) && same_edges && same_form {
            return self.copy_stored_chunks(&from, &to, !old.filters.is_empty());
        }
        if self.filters.is_none() && is_encoded(&to) && self.has_lossy_filter(&new) {
            self.report.lossily_reencoded_datasets.push(made.path.clone());
        }
        let mut chunks = from.stored_chunks()?;
        let (Some(grid), Some(new_grid)) = (old.grid_or_single_chunk(), new.grid_or_single_chunk()) else {
            return Ok(());
        };
        let counts = grid.chunk_counts(old.dataspace.dims());
        let all = counts.iter().try_fold(1u64, |n, count| n.checked_mul(*count));
        if all == Some(chunks.len() as u64) {
            return self.copy_slabs(&from, &to, &new, &plan);
        }
        // Elements that were never written are not written. Parts of one new chunk come one after the other.
        chunks.sort_by_cached_key(|chunk| new_grid.chunk_of(&grid.start_of(&chunk.coord)));
        for chunk in chunks {
            let start = grid.start_of(&chunk.coord);
            let ends = start.iter().zip(grid.chunk_dims()).zip(old.dataspace.dims());
            let count: CoreDims =
                ends.map(|((start, size), extent)| (*size).min(extent.saturating_sub(*start))).collect();
            if !count.contains(&0) {
                self.copy_block(&from, &to, (&start, &count), &plan)?;
            }
        }
        Ok(())
    }

    /// Whether a dataset has a filter that rounds its elements. One that cannot encode here leaves them as they are.
    fn has_lossy_filter(&self, spec: &DatasetSpec) -> bool {
        let registry = &self.files.to.shared().options.filters;
        let mut filters = spec.filters.iter().filter_map(|filter| Some((registry.get(filter.id)?, &filter.params)));
        filters.any(|(filter, params)| filter.can_encode() && filter.is_lossy(params))
    }

    /// Copies the stored bytes of all chunks: as many at a time as the stores take best, and more if they went through filters
    /// and are verified.
    fn copy_stored_chunks(&mut self, from: &Dataset, to: &Dataset, filtered: bool) -> Result<()> {
        let chunks = from.stored_chunks()?;
        let verify = filtered && self.verify;
        let most = match from.takes_many_chunks() || to.takes_many_chunks() {
            true => MAX_COPY_CHUNKS,
            false if verify => 4 * rayon::current_num_threads(),
            false => 1,
        };
        let mut rest = &chunks[..];
        while let [first, ..] = rest {
            let (batch, later) = rest.split_at(stored_batch_len(rest, most));
            rest = later;
            match first.size > MAX_COPY_BYTES && !verify {
                true => self.copy_large_chunk(from, to, first)?,
                false => self.copy_chunk_batch(from, to, batch, verify)?,
            }
        }
        Ok(())
    }

    /// Copies the stored bytes of chunks, which are in memory together. Verifies them if it is to.
    fn copy_chunk_batch(&mut self, from: &Dataset, to: &Dataset, batch: &[StoredChunk], verify: bool) -> Result<()> {
        let stored = from.read_chunks(batch)?;
        let error = |(chunk, bytes): (&StoredChunk, &Vec<u8>)| from.verify_chunk(chunk, bytes).err();
        let errors: Vec<_> = if verify { batch.par_iter().zip(&stored).map(error).collect() } else { Vec::new() };
        let writes = batch.iter().zip(&stored).map(|(chunk, bytes)| {
            let StoredChunk { coord, filter_mask, .. } = chunk;
            ChunkWrite::Whole { coord, filter_mask: *filter_mask, bytes }
        });
        to.write_chunks(&writes.collect::<Vec<_>>())?;
        errors.into_iter().flatten().for_each(|error| self.report.add_unverified(from.path(), error));
        self.report_progress(batch.iter().map(|chunk| chunk.size).sum())
    }

    /// Copies the stored bytes of a chunk, part by part.
    fn copy_large_chunk(&mut self, from: &Dataset, to: &Dataset, chunk: &StoredChunk) -> Result<()> {
        from.copy_unfiltered_chunk(to, chunk, MAX_COPY_BYTES, &mut |bytes| self.progress.add(bytes))?;
        self.report_progress(0)
    }

    /// Copies all elements: as many rows of the new chunks at a time as there is room for.
    fn copy_slabs(&mut self, from: &Dataset, to: &Dataset, new: &DatasetSpec, plan: &ElementCopy) -> Result<()> {
        let dims = new.dataspace.dims();
        let grid = match &new.layout {
            Layout::Chunked(chunk) => ChunkGrid::new(chunk),
            _ => ChunkGrid::new(&vec![1; dims.len()]),
        };
        let (Some(rows), Some(grid)) = (dims.first(), grid) else {
            return self.copy_part(from, to, Selection::All, plan);
        };
        let row_bytes = dims[1..].iter().fold(u64::from(new.datatype.size()), |n, dim| n.saturating_mul(*dim));
        let chunk_rows = grid.chunk_dims()[0];
        if row_bytes.saturating_mul(chunk_rows) > MAX_COPY_BYTES.saturating_mul(4) {
            return from.for_each_block_of(&grid, |start, count| self.copy_block(from, to, (start, count), plan));
        }
        let step = (MAX_COPY_BYTES / row_bytes.max(1) / chunk_rows).max(1).saturating_mul(chunk_rows);
        let slab = |at: u64| {
            let (mut start, mut count) = (CoreDims::from_elem(0, dims.len()), CoreDims::from_slice(dims));
            start[0] = at;
            count[0] = step.min(rows - at);
            CopyPart {
                bytes: row_bytes.saturating_mul(count[0]),
                selection: Selection::Hyperslab(Hyperslab::block(&start, &count)),
            }
        };
        let starts = std::iter::successors(Some(0), |at: &u64| at.checked_add(step).filter(|at| at < rows));
        self.copy_parts(from, to, starts.map(slab), plan)
    }

    /// Copies parts of all elements, in their order. A thread reads the next one while one is written, so that up to three
    /// are in memory.
    fn copy_parts(
        &mut self,
        from: &Dataset,
        to: &Dataset,
        parts: impl Iterator<Item = CopyPart> + Clone + Send,
        plan: &ElementCopy,
    ) -> Result<()> {
        let is_single = parts.clone().nth(1).is_none();
        let one_by_one =
            |copier: &mut Self| parts.clone().try_for_each(|part| copier.copy_part(from, to, part.selection, plan));
        if is_single || !plan.is_plain() {
            return one_by_one(self);
        }
        thread::scope(|scope| {
            let (read, elements) = sync_channel(1);
            let (used, spare) = sync_channel::<Vec<u8>>(2);
            let parts = parts.clone();
            let read_parts = move || {
                for part in parts {
                    let mut bytes = spare.try_recv().unwrap_or_default();
                    let result = part.read(from, &mut bytes);
                    let is_last = result.is_err();
                    // Nobody takes it if writing has failed.
                    if read.send((part, result.map(|()| bytes))).is_err() || is_last {
                        return;
                    }
                }
            };
            if thread::Builder::new().name("h5live-copy".to_owned()).spawn_scoped(scope, read_parts).is_err() {
                return one_by_one(self);
            }
            elements.iter().try_for_each(|(part, bytes)| {
                let bytes = bytes?;
                to.write_raw(&part.selection, &bytes)?;
                self.report_progress(part.bytes)?;
                // The thread may have ended.
                let _ended = used.try_send(bytes);
                Ok(())
            })
        })
    }

    /// Copies a block of elements, from `start` on: in pieces, unless one of the datasets has all of a chunk in memory
    /// anyway.
    fn copy_block(
        &mut self,
        from: &Dataset,
        to: &Dataset,
        (start, count): (&[u64], &[u64]),
        plan: &ElementCopy,
    ) -> Result<()> {
        let size = u64::from(from.spec()?.datatype.size());
        let bytes = count.iter().fold(size, |n, count| n.saturating_mul(*count));
        let is_plain = from.spec()?.filters.is_empty() && to.spec()?.filters.is_empty();
        let cut =
            count.iter().position(|count| *count > 1).filter(|_| is_plain && bytes > MAX_COPY_BYTES.saturating_mul(4));
        let Some(cut) = cut else {
            let limit = self.files.from.shared().options.max_allocation;
            limit.check(bytes).map_err(|error| self.read_error(from.path(), error))?;
            return self.copy_part(from, to, Selection::block(start, count), plan);
        };
        let row = bytes / count[cut];
        let step = (MAX_COPY_BYTES / row).clamp(1, count[cut] - 1);
        let (mut start, end) = (CoreDims::from_slice(start), start[cut].saturating_add(count[cut]));
        while start[cut] < end {
            let mut part = CoreDims::from_slice(count);
            part[cut] = step.min(end - start[cut]);
            self.copy_block(from, to, (&start, &part), plan)?;
            start[cut] += part[cut];
        }
        Ok(())
    }

    fn copy_part(&mut self, from: &Dataset, to: &Dataset, part: Selection, plan: &ElementCopy) -> Result<()> {
        if matches!(from.spec()?.layout, Layout::Virtual(_)) && !plan.is_plain() {
            // The heap of another file may hold the variable-length data.
            let values = from.read_values(&part)?;
            to.write_values(&part, &values)?;
            return self.report_progress(values.len() as u64 * u64::from(from.spec()?.datatype.size()));
        }
        let elements = from.read_raw(&part)?;
        let bytes = elements.len() as u64;
        let copied = match plan.is_plain() {
            true => elements,
            false => plan.run(&elements, &self.files).map_err(|kind| self.read_error(from.path(), kind))?,
        };
        to.write_raw(&part, &copied)?;
        self.report_progress(bytes)
    }

    pub(super) fn report_progress(&mut self, bytes: u64) -> Result<()> {
        self.progress.add(bytes);
        if self.progress.takes_flush() { self.files.to.flush() } else { Ok(()) }
    }
}
