//! Reading many chunks of a file whose storage reads best many ranges at a time.

use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

use h5live_cache::{Error as CacheError, StorageAction};
use h5live_format::Addr;
use h5live_model::{
    AllocationLimit, ChunkBytes, ChunkRead, ChunkSink, ChunkStore, Error as ModelError, Result as ModelResult,
    StoredChunk,
};

use super::NativeDataset;
use crate::Error;

/// Most threads that look up chunks at a time.
const MAX_LOOKUP_THREADS: usize = 64;

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
        wanted: &[ChunkRead<'_>],
        in_flight: usize,
        budget: usize,
        each: &ChunkSink<'_>,
    ) -> ModelResult<()> {
        let limit = AllocationLimit::new(budget as u64);
        let (mut found, mut ranges) = (Vec::new(), Vec::new());
        let located = self.locate_together(wanted, in_flight)?;
        for (number, (wanted, chunk)) in wanted.iter().zip(located).enumerate() {
            let Some(chunk) = chunk else {
                each(number, None)?;
                continue;
            };
            let part = wanted.part.clone().unwrap_or(0..chunk.size);
            limit.check(part.end.saturating_sub(part.start))?;
            match chunk.offset {
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
                    Err(self.session.hold.explain_error(Error::from(cut)).into())
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
    fn locate_together(&self, wanted: &[ChunkRead<'_>], in_flight: usize) -> ModelResult<Vec<Option<StoredChunk>>> {
        let mut located = Vec::with_capacity(wanted.len());
        let misses = || self.session.cache.stats().misses;
        let before = misses();
        for wanted in wanted {
            located.push(self.locate(wanted.coord)?);
            if misses() != before {
                break;
            }
        }
        let rest = wanted.get(located.len()..).unwrap_or_default();
        located.extend(self.locate_by_threads(rest, in_flight.min(MAX_LOOKUP_THREADS))?);
        Ok(located)
    }

    /// Chunks that follow each other often lie in the same structure of the index, so one thread has them.
    fn locate_by_threads(&self, wanted: &[ChunkRead<'_>], threads: usize) -> ModelResult<Vec<Option<StoredChunk>>> {
        let locate_part = &|part: &[ChunkRead<'_>]| -> ModelResult<Vec<_>> {
            part.iter().map(|wanted| self.locate(wanted.coord)).collect()
        };
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
