//! Bytes of a dataset where the file has them: chunks without filters that lie one behind another, mapped together.

use h5live_model::{ChunkCoord, DatasetSpec, Datatype, FileBackedBytes, Layout, StoredChunk};

use crate::{Dataset, DatasetView, DatasetViewPart};

/// Bytes of the dataset that are one piece of the file.
#[derive(Debug)]
struct Run {
    /// The first byte in the dataset.
    start: u64,
    /// Behind the last byte.
    end: u64,
    bytes: FileBackedBytes,
    view: DatasetView<u8>,
}

/// A dataset of bytes with one dimension, as pieces of the file.
#[derive(Debug)]
pub(crate) struct ChunkRuns {
    /// In order. Between them, nobody wrote anything: there, all bytes are zero.
    runs: Vec<Run>,
    len: u64,
}

impl ChunkRuns {
    /// The pieces; `None` if the elements are not bytes, or the file does not have them in this form.
    pub(crate) fn map(dataset: &Dataset) -> crate::Result<Option<ChunkRuns>> {
        let spec = dataset.spec()?;
        let len = spec.dataspace.dims().first().copied().unwrap_or(0);
        let Some(chunk) = chunk_bytes(&spec, len) else { return Ok(None) };
        let mut chunks = dataset.stored_chunks()?;
        chunks.sort_by_key(|stored| stored.coord.scaled().first().copied());
        let store = dataset.file().store().dataset(dataset.id());
        let store = store.map_err(|error| dataset.file().error(Some(dataset.path()), error))?;
        let mut runs = Vec::new();
        let mut chunks = chunks.into_iter().peekable();
        while let Some(first) = chunks.next() {
            let (Some(number), Some(offset)) = (first.coord.scaled().first().copied(), first.file_offset) else {
                return Ok(None);
            };
            if first.size < chunk.min(len) {
                return Ok(None);
            }
            let mut count = 1;
            let follows = |next: &StoredChunk, count: u64| {
                next.size >= chunk
                    && next.coord.scaled().first() == number.checked_add(count).as_ref()
                    && next.file_offset == count.checked_mul(chunk).and_then(|bytes| bytes.checked_add(offset))
            };
            while chunks.next_if(|next| follows(next, count)).is_some() {
                count += 1;
            }
            let Some(start) = number.checked_mul(chunk).filter(|start| *start < len) else { continue };
            let end = count.checked_mul(chunk).and_then(|bytes| bytes.checked_add(start)).unwrap_or(len).min(len);
            let stored = StoredChunk { coord: ChunkCoord::new(&[number]), size: end - start, ..first };
            let mapped = store.map(&stored, end - start);
            let Some(bytes) = mapped.map_err(|error| dataset.file().error(Some(dataset.path()), error))? else {
                return Ok(None);
            };
            let Some(view) = bytes.clone().into_elements() else { return Ok(None) };
            runs.push(Run { start, end, bytes, view });
        }
        Ok(Some(ChunkRuns { runs, len }))
    }

    /// The piece that has a byte, or the first one behind it.
    fn run_at(&self, at: u64) -> Option<&Run> {
        match &*self.runs {
            [run] => Some(run).filter(|run| at < run.end),
            runs => runs.get(runs.partition_point(|run| run.end <= at)),
        }
    }

    /// Fills `into` with the bytes from `at` on. `false` if there are not so many, or nothing can be copied so.
    pub(crate) fn copy_to(&self, mut at: u64, mut into: &mut [u8]) -> bool {
        if at.checked_add(into.len() as u64).is_none_or(|end| end > self.len) {
            return false;
        }
        while !into.is_empty() {
            let run = self.run_at(at);
            let start = run.map_or(self.len, |run| run.start);
            let is_hole = at < start;
            let end = if is_hole { start } else { run.map_or(self.len, |run| run.end) };
            let (part, rest) = into.split_at_mut((end - at).min(into.len() as u64) as usize);
            match run {
                Some(run) if !is_hole => {
                    if !run.bytes.copy_to((at - start) as usize, part) || run.bytes.has_faulted() {
                        return false;
                    }
                }
                _ => part.fill(0),
            }
            at += part.len() as u64;
            into = rest;
        }
        true
    }

    /// Bytes where they are; `None` if they are not in one piece.
    pub(crate) fn view(&self, at: u64, len: u64) -> Option<DatasetViewPart<'_, u8>> {
        let run = self.run_at(at).filter(|run| run.start <= at)?;
        let start = at - run.start;
        run.view.part(start as usize..usize::try_from(start.checked_add(len)?).ok()?)
    }

    /// In how many pieces the file has the bytes.
    pub(crate) fn pieces(&self) -> usize {
        self.runs.len()
    }
}

/// Bytes of a chunk, if the dataset has bytes without filters.
fn chunk_bytes(spec: &DatasetSpec, len: u64) -> Option<u64> {
    let is_bytes = matches!(&spec.datatype, Datatype::Integer(_)) && spec.datatype.size() == 1;
    match &spec.layout {
        _ if !is_bytes || !spec.filters.is_empty() || spec.dataspace.rank() != 1 || len == 0 => None,
        Layout::Chunked(dims) => dims.first().copied().filter(|bytes| *bytes > 0),
        Layout::Contiguous => Some(len),
        _ => None,
    }
}
