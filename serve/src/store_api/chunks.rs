//! Chunks, as they are stored.

use h5live::model::{ChunkStore, Error as ModelError};
use h5live_served::protocol::{
    ChunkAnswer, ChunkWanted, ChunksAnswer, ChunksRequest, IndexAnswer, IndexRequest, MAX_ANSWER_DATA_BYTES,
};

use super::answers::{answer, message};
use super::opened::OpenedFile;
use crate::answer::Answer;
use crate::fault::Fault;
use crate::state::AppState;

/// Chunks of a request.
const MAX_CHUNKS: usize = 64 << 10;
/// Chunks of a part of an index.
const MAX_INDEX_CHUNKS: usize = 16 << 10;
/// How often a chunk is looked up that its writer moves meanwhile.
const MAX_LOOKUPS: u32 = 16;

/// Chunks, or parts of them.
pub(super) fn chunks(state: &AppState, opened: &OpenedFile, body: &[u8]) -> Result<Answer, Fault> {
    let request: ChunksRequest = message(body)?;
    let chunks = opened.chunk_store(request.incarnation, request.dataset)?;
    let limit = request.max_bytes.min(MAX_ANSWER_DATA_BYTES as u64).min(state.memory.max_answer_bytes() / 2);
    // What is read here is copied into the answer.
    let _memory = state.memory.reserve(limit)?;
    let (mut found, mut left) = (Vec::new(), limit);
    for wanted in request.wanted.iter().take(MAX_CHUNKS) {
        match chunk(&*chunks, wanted, limit, left, found.is_empty()).map_err(|error| Fault::of_store(&error))? {
            Some(chunk) => {
                left = left.saturating_sub(chunk.bytes.len() as u64);
                found.push(chunk);
            }
            None => break,
        }
    }
    answer(state, &mut ChunksAnswer { chunks: found })
}

/// What is wanted of a chunk; `None` if it has more than `left` bytes. Of the first chunk, what fits the limit.
fn chunk(
    chunks: &dyn ChunkStore,
    wanted: &ChunkWanted,
    limit: u64,
    left: u64,
    is_first: bool,
) -> Result<Option<ChunkAnswer>, ModelError> {
    for _ in 0..MAX_LOOKUPS {
        let Some(found) = chunks.locate(&wanted.coord)? else { return Ok(Some(ChunkAnswer::default())) };
        let part = wanted.byte_range.clone().unwrap_or(0..found.size);
        let len = part.end.min(found.size).saturating_sub(part.start);
        if len > left && !is_first {
            return Ok(None);
        }
        let mut bytes = vec![0; usize::try_from(len.min(limit)).unwrap_or(0)];
        match bytes.is_empty() {
            true => {}
            false => match chunks.read(&found, part.start, &mut bytes) {
                Err(ModelError::Moved) => {
                    chunks.refresh()?;
                    continue;
                }
                read => read?,
            },
        }
        return Ok(Some(ChunkAnswer { chunk: Some(found), bytes }));
    }
    Err(ModelError::Moved)
}

/// A part of the list of stored chunks.
pub(super) fn index(state: &AppState, opened: &OpenedFile, body: &[u8]) -> Result<Answer, Fault> {
    let request: IndexRequest = message(body)?;
    let chunks = opened.chunk_store(request.incarnation, request.dataset)?;
    let (mut found, mut number, mut is_end) = (Vec::new(), 0, true);
    let listed = chunks.for_each_chunk(&mut |chunk| {
        number += 1;
        if number > request.skip {
            is_end = found.len() < MAX_INDEX_CHUNKS;
            if is_end {
                found.push(chunk);
            }
        }
        is_end
    });
    listed.map_err(|error| Fault::of_store(&error))?;
    answer(state, &mut IndexAnswer { chunks: found, is_end })
}
