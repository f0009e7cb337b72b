//! Reading many chunks of a file whose storage reads best many ranges at a time.

use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

use h5live_cache::{Error as CacheError, StorageAction};
use h5live_format::Addr;
use h5live_model::{
    AllocationLimit, ChunkBytes, ChunkCoord, ChunkReadRequest, ChunkSink, ChunkStore, Error as ModelError, Layout,
    Result as ModelResult, Selection, StoredChunk,
};

use super::NativeDataset;
use crate::Error;

/// Most threads that look up chunks at a time.
const MAX_LOOKUP_THREADS: usize = 64;

/// Places of a grid that are looked up to read its index, in all and at a time.
const MAX_LISTED_PLACES: u64 = 1 << 20;
const PLACES_AT_ONCE: usize = 16 << 10;

/// A chunk that was found, and which of the wanted ones it is.
struct FoundChunk {
    number: usize,
    chunk: StoredChunk,
}

impl NativeDataset {
    /// [`ChunkStore::read_many`]: all chunks are looked up, and then read by one call of the storage.
    /// `in_flight` is how many reads of the storage are best under way at a time.
    pub(super) fn read_ranges(
        &self,
        wanted: &[ChunkReadRequest<'_>],
        in_flight: usize,
        budget: usize,
        each: &ChunkSink<'_>,
    ) -> ModelResult<()> {
        let limit = AllocationLimit::new(budget as u64);
        let (mut found, mut ranges) = (Vec::new(), Vec::new());
        let coords: Vec<&ChunkCoord> = wanted.iter().map(|wanted| wanted.coord).collect();
        let located = self.locate_together(&coords, in_flight)?;
        for (number, (wanted, chunk)) in wanted.iter().zip(located).enumerate() {
            let Some(chunk) = chunk else {
                each(number, None)?;
                continue;
            };
            let part = wanted.byte_range.clone().unwrap_or(0..chunk.size);
            limit.check(part.end.saturating_sub(part.start))?;
            match chunk.file_offset {
                Some(offset) => {
                    ranges.push(offset.saturating_add(part.start)..offset.saturating_add(part.end));
                    found.push(FoundChunk { number, chunk });
                }
                None => self.read_unplaced(number, &chunk, part, &limit, each)?,
            }
        }
        let mut failure: Option<ModelError> = None;
        let mut take = |at: usize, bytes: &[u8]| {
            let (FoundChunk { number, chunk }, range) = (&found[at], &ranges[at]);
            let wanted = range.end - range.start;
            let done: ModelResult<()> = match (bytes.len() as u64) < wanted {
                true => {
                    let found = bytes.len() as u64;
                    let cut = CacheError::PastEnd { at: Addr::new(range.start), wanted, found };
                    Err(self.session.hold.truncation_or(Error::from(cut)).into())
                }
                false => each(*number, Some(ChunkBytes { chunk, bytes })),
            };
            done.map_err(|error| failure = Some(error)).is_ok()
        };
        let read = self.session.cache.storage().read_ranges(&ranges, budget, &mut take);
        let first = ranges.first().map_or(0, |range| range.start);
        match (failure, read) {
            (Some(failure), _) => Err(failure),
            (None, Ok(())) => Ok(()),
            (None, Err(source)) => {
                let bytes = ranges.iter().map(|range| range.end - range.start).sum();
                let error = CacheError::Io { action: StorageAction::Read, at: first, len: bytes, source };
                Err(Error::from(error).into())
            }
        }
    }

    /// Looks up chunks. As soon as something of the index has to be read, many are looked up at a time: each lookup may wait
    /// for several structures, one after the other.
    fn locate_together(&self, wanted: &[&ChunkCoord], in_flight: usize) -> ModelResult<Vec<Option<StoredChunk>>> {
        let mut located = Vec::with_capacity(wanted.len());
        let misses = || self.session.cache.stats().misses;
        let before = misses();
        for coord in wanted {
            located.push(self.locate(coord)?);
            if misses() != before {
                break;
            }
        }
        let rest = wanted.get(located.len()..).unwrap_or_default();
        located.extend(self.locate_by_threads(rest, in_flight.min(MAX_LOOKUP_THREADS))?);
        Ok(located)
    }

    /// Reads the structures of the index, many at a time: a walk over them would wait for one after the other. What fails here
    /// fails again in the walk.
    pub(super) fn load_index(&self, in_flight: usize) {
        let spec = self.state().spec.clone();
        let (Layout::Chunked(_), Some(grid)) = (&spec.layout, spec.grid_or_single_chunk()) else { return };
        let counts = grid.chunk_counts(spec.dataspace.dims());
        let places = counts.iter().try_fold(1u64, |places, count| places.checked_mul(*count));
        if !places.is_some_and(|places| (2..=MAX_LISTED_PLACES).contains(&places)) {
            return;
        }
        let Ok(all) = Selection::All.bind(spec.dataspace.dims()) else { return };
        let (split, mut is_read) = (all.split_by_chunks(&grid), true);
        let mut coords = split.chunks();
        while is_read {
            let listed: Vec<ChunkCoord> = coords.by_ref().take(PLACES_AT_ONCE).collect();
            let located = self.locate_together(&listed.iter().collect::<Vec<_>>(), in_flight);
            is_read = !listed.is_empty() && located.is_ok();
        }
    }

    /// Chunks that follow each other often lie in the same structure of the index, so one thread has them.
    fn locate_by_threads(&self, wanted: &[&ChunkCoord], threads: usize) -> ModelResult<Vec<Option<StoredChunk>>> {
        let locate_part =
            &|part: &[&ChunkCoord]| -> ModelResult<Vec<_>> { part.iter().map(|coord| self.locate(coord)).collect() };
        let threads = threads.min(wanted.len());
        if threads < 2 {
            return locate_part(wanted);
        }
        thread::scope(|scope| {
            let parts = wanted.chunks(wanted.len().div_ceil(threads));
            let start = |part| (part, thread::Builder::new().spawn_scoped(scope, move || locate_part(part)));
            let started: Vec<_> = parts.map(start).collect();
            let mut located = Vec::with_capacity(wanted.len());
            for (part, thread) in started {
                located.extend(match thread {
                    Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic))?,
                    // The system has no more threads.
                    Err(_) => locate_part(part)?,
                });
            }
            Ok(located)
        })
    }

    /// Reads a chunk that has no place of its own in the file.
    fn read_unplaced(
        &self,
        number: usize,
        chunk: &StoredChunk,
        part: Range<u64>,
        limit: &AllocationLimit,
        each: &ChunkSink<'_>,
    ) -> ModelResult<()> {
        let mut bytes = limit.zeroed(part.end.saturating_sub(part.start))?;
        self.read(chunk, part.start, &mut bytes)?;
        each(number, Some(ChunkBytes { chunk, bytes: &bytes }))
    }
}
