//! Reads of many chunks by one call, where a store reads best like that.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use h5live_model::{ChunkBytes, ChunkCoord, ChunkReadRequest, ElementRun, Error as ModelError, StridedRuns};
use parking_lot::Mutex;

use super::chunk_reader::{
    ChunkContent, ChunkReadPart, ChunkReader, DatasetReader, MAX_DECODE_RETRIES, STORED_CHUNK_SLACK_BYTES,
};
use super::run_group::{self, RunGroup};
use crate::dataset::error::DatasetError;
use crate::dataset::scratch::{resize_scratch, with_scratch};
use crate::dataset::transfer::ElementSink;
use crate::error::ErrorKind;
use crate::types::ConversionContext;

/// The longest part of an unfiltered chunk that is asked for by itself (bytes).
const MAX_PART_BYTES: usize = 4 << 20;

/// What the store is asked for.
struct ChunkRequest<'a> {
    coord: &'a ChunkCoord,
    /// The runs to which the bytes belong; `None` for a chunk with filters, which is read as a whole.
    runs: Option<RunGroup>,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestState {
    Waiting,
    Done,
    /// What came could not be used.
    Failed,
}

impl ChunkReader<'_> {
    /// Reads chunks by one call, if none moves meanwhile.
    pub(super) fn read_many<S: ElementSink>(
        &self,
        listed: &[ChunkCoord],
        gap: usize,
        sink: &Mutex<S>,
    ) -> Result<(), DatasetError> {
        let core = self.reader.core;
        let mut requests = Vec::new();
        for coord in listed {
            let staged = core.stage.lock().staged_bytes_of(coord);
            match self.content_without_store(coord, staged.as_ref()) {
                Some(content) => self.put_content(coord, content, sink)?,
                None if core.filters.is_empty() => self.add_requests(coord, gap, &mut requests),
                None => requests.push(ChunkRequest { coord, runs: None }),
            }
        }
        let states = Mutex::new(vec![RequestState::Waiting; requests.len()]);
        for _ in 0..=MAX_DECODE_RETRIES {
            let asked = self.request_chunks(&requests, &states, sink);
            if !matches!(asked, Err(ModelError::Moved)) {
                asked?;
                break;
            }
            // Those that came are not asked for again.
            core.chunks.refresh()?;
        }
        // What came damaged, or has moved again and again, is read by itself, with all patience.
        let states = states.into_inner();
        let left = requests.iter().zip(&states).filter(|(_, state)| **state != RequestState::Done);
        let mut coords: Vec<_> = left.map(|(request, _)| request.coord).collect();
        coords.dedup();
        coords.into_iter().try_for_each(|coord| {
            with_scratch(|scratch| self.read(&ChunkReadPart { coord, single: None }, 0, &mut *sink.lock(), scratch))
        })
    }

    /// Asks the store for what is waited for.
    fn request_chunks<S: ElementSink>(
        &self,
        requests: &[ChunkRequest<'_>],
        states: &Mutex<Vec<RequestState>>,
        sink: &Mutex<S>,
    ) -> Result<(), ModelError> {
        let core = self.reader.core;
        let part = |runs: &RunGroup| runs.bytes().start as u64..runs.bytes().end as u64;
        let waiting: Vec<_> = {
            let states = states.lock();
            (0..requests.len()).filter(|number| states[*number] == RequestState::Waiting).collect()
        };
        let wanted: Vec<_> = waiting
            .iter()
            .map(|number| &requests[*number])
            .map(|request| ChunkReadRequest { coord: request.coord, byte_range: request.runs.as_ref().map(part) })
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        // At least one chunk.
        let min_budget = self.bytes.saturating_mul(2).saturating_add(STORED_CHUNK_SLACK_BYTES);
        let min_budget = if core.filters.is_empty() { MAX_PART_BYTES.min(min_budget) } else { min_budget };
        let changes = core.read.changes();
        core.chunks.read_many(&wanted, core.transfer_memory_bytes.max(min_budget), &|number, found| {
            let Some(number) = waiting.get(number).copied() else { return Ok(()) };
            let state = match self.put_found(&requests[number], found, changes, sink) {
                Ok(()) => RequestState::Done,
                Err(_) => RequestState::Failed,
            };
            states.lock()[number] = state;
            Ok(())
        })
    }

    /// Adds what is wanted of an unfiltered chunk.
    fn add_requests<'b>(&self, coord: &'b ChunkCoord, gap: usize, requests: &mut Vec<ChunkRequest<'b>>) {
        let size = self.reader.view.size;
        let mut group = RunGroup::new(size, gap);
        let mut add = |group: RunGroup| {
            if !group.is_empty() {
                requests.push(ChunkRequest { coord, runs: Some(group) });
            }
        };
        let mut take = |runs: StridedRuns| {
            if !group.try_push(runs) {
                add(mem::replace(&mut group, RunGroup::new(size, gap)));
                group.push(runs);
            }
        };
        self.cut.for_each_strided(coord, |runs| match runs.count {
            1 => split_evenly(runs.first_run, (MAX_PART_BYTES / size).max(1)).for_each(|run| take(run.into())),
            _ => run_group::split_distant(runs, size, gap).for_each(&mut take),
        });
        add(group);
    }

    /// Puts what was found of a chunk into its places.
    fn put_found<S: ElementSink>(
        &self,
        request: &ChunkRequest<'_>,
        found: Option<ChunkBytes<'_>>,
        changes: u64,
        sink: &Mutex<S>,
    ) -> Result<(), DatasetError> {
        let DatasetReader { core, view, store, .. } = self.reader;
        let Some(runs) = &request.runs else {
            let content = match found {
                Some(found) => self.decode_found(request.coord, found, changes)?,
                None => ChunkContent::Fill,
            };
            return self.put_content(request.coord, content, sink);
        };
        let staged = core.stage.lock().staged_bytes_of(request.coord);
        let Range { start, end } = runs.bytes();
        with_scratch(|scratch| {
            let scratch = resize_scratch(scratch, end - start);
            match found {
                Some(found) => {
                    self.check_size(found.chunk.size)?;
                    scratch.copy_from_slice(found.bytes.get(..end - start).ok_or(ErrorKind::StoredChunkLength {
                        expected: (end - start) as u64,
                        found: found.bytes.len() as u64,
                    })?);
                }
                None => view.spec.fill_into(start as u64, scratch),
            }
            if let Some(staged) = staged {
                staged.overlay_onto(start, scratch);
            }
            Ok(runs.put_elements(scratch, 0, &mut *sink.lock(), ConversionContext::new(store))?)
        })
    }

    /// Undoes the filters of a chunk, and keeps it for later reads unless all of it is wanted now.
    fn decode_found(
        &self,
        coord: &ChunkCoord,
        found: ChunkBytes<'_>,
        changes: u64,
    ) -> Result<ChunkContent, DatasetError> {
        let DatasetReader { core, view, cache, .. } = self.reader;
        let mut bytes = core.max_allocation.zeroed(self.bytes as u64)?;
        if core.filters.is_identity(found.chunk.filter_mask) || view.is_unfiltered_edge(self.grid, coord) {
            self.check_size(found.bytes.len() as u64)?;
            bytes.copy_from_slice(&found.bytes[..self.bytes]);
            return Ok(ChunkContent::Decoded(Arc::new(bytes)));
        }
        core.filters.decode_into(found.chunk.filter_mask, found.bytes, &mut bytes)?;
        let bytes = Arc::new(bytes);
        let is_whole = self.cut.single_run(coord).is_some_and(|run| run.len == self.chunk_elements());
        if !is_whole && core.stage.lock().staged_bytes_of(coord).is_none() {
            let is_old = || core.read.changes() != changes;
            cache.insert(core.cache_id(), coord, bytes.clone(), is_old);
        }
        Ok(ChunkContent::Decoded(bytes))
    }

    fn check_size(&self, found: u64) -> Result<(), ErrorKind> {
        let expected = self.bytes as u64;
        if found < expected { Err(ErrorKind::StoredChunkLength { expected, found }) } else { Ok(()) }
    }

    fn put_content<S: ElementSink>(
        &self,
        coord: &ChunkCoord,
        content: ChunkContent,
        sink: &Mutex<S>,
    ) -> Result<(), DatasetError> {
        let part = ChunkReadPart { coord, single: None };
        let put = with_scratch(|scratch| self.scatter_content(&part, content, 0, &mut *sink.lock(), scratch));
        put.map_err(|failure| failure.with_chunk(coord))
    }
}

/// A run in shares of so many elements.
fn split_evenly(run: ElementRun, share_len: usize) -> impl Iterator<Item = ElementRun> {
    let share = move |n: u64| ElementRun {
        offset_in_chunk: run.offset_in_chunk + n,
        offset_in_selection: run.offset_in_selection + n,
        len: (share_len as u64).min(run.len - n),
    };
    (0..run.len).step_by(share_len).map(share)
}
