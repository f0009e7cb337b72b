//! Reading many chunks of a file whose storage reads best many ranges at a time.

use std::ops::Range;

use h5live_cache::{Error as CacheError, StorageAction};
use h5live_format::Addr;
use h5live_model::{
    AllocationLimit, ChunkBytes, ChunkRead, ChunkSink, ChunkStore, Error as ModelError, Result as ModelResult,
    StoredChunk,
};

use super::NativeDataset;
use crate::Error;

/// A chunk that was found, and which of the wanted ones it is.
struct FoundChunk {
    number: usize,
    chunk: StoredChunk,
}

impl NativeDataset {
    /// [`ChunkStore::read_many`]: all chunks are looked up, and then read by one call of the storage.
    pub(super) fn read_ranges(&self, wanted: &[ChunkRead<'_>], budget: usize, each: &ChunkSink<'_>) -> ModelResult<()> {
        let limit = AllocationLimit::new(budget as u64);
        let (mut found, mut ranges) = (Vec::new(), Vec::new());
        for (number, wanted) in wanted.iter().enumerate() {
            let Some(chunk) = self.locate(wanted.coord)? else {
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
