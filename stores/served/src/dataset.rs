//! The chunks of a dataset of a server.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use h5live_model::{
    AllocationLimit, ChunkBatch, ChunkBytes, ChunkCoord, ChunkReadRequest, ChunkSink, ChunkStore, DatasetSpec, Error,
    FileBackedBytes, ObjectId, ObjectKindSpec, Result, StoredChunk, read_block_by_runs,
};
use parking_lot::Mutex;

use crate::client::PendingCall;
use crate::protocol::{
    ChunkAnswer, ChunkWanted, ChunksAnswer, ChunksRequest, IndexAnswer, IndexRequest, MAX_ANSWER_DATA_BYTES,
};
use crate::shared::ServedShared;

/// Bytes that one request of many asks for.
const BATCH_BYTES: u64 = 4 << 20;
/// Chunks that one request asks for.
const BATCH_CHUNKS: usize = 4096;
/// Requests that are under way at a time.
pub(crate) const MAX_IN_FLIGHT: usize = 4;

/// The chunks of a dataset of a server.
#[derive(Debug)]
pub(crate) struct ServedDataset {
    id: ObjectId,
    shared: Arc<ServedShared>,
    spec: Mutex<Arc<DatasetSpec>>,
    /// Whether it was deleted.
    is_gone: AtomicBool,
}

impl ServedDataset {
    pub fn new(id: ObjectId, shared: Arc<ServedShared>, spec: DatasetSpec) -> Self {
        ServedDataset { id, shared, spec: Mutex::new(Arc::new(spec)), is_gone: AtomicBool::new(false) }
    }

    /// Takes a new description. Returns whether the extent is another one.
    pub fn set_spec_and_check_resize(&self, new: &DatasetSpec) -> bool {
        let mut spec = self.spec.lock();
        let is_changed = spec.dataspace != new.dataspace;
        if **spec != *new {
            *spec = Arc::new(new.clone());
        }
        is_changed
    }

    /// Says that it was deleted.
    pub fn set_gone(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }

    fn request(&self, wanted: Vec<ChunkWanted>) -> ChunksRequest {
        let (incarnation, max_bytes) = (self.shared.file_incarnation(), MAX_ANSWER_DATA_BYTES as u64);
        ChunksRequest { incarnation, dataset: self.id, max_bytes, wanted }
    }

    /// What the server has of one chunk.
    fn ask_for_one(&self, coord: &ChunkCoord, part: Option<Range<u64>>) -> Result<ChunkAnswer> {
        let mut request = self.request(vec![ChunkWanted { coord: coord.clone(), byte_range: part }]);
        let answer: ChunksAnswer = self.shared.client().call_with_retry("chunks", &mut request)?;
        let found = answer.chunks.into_iter().next().ok_or_else(|| damaged("an answer without a chunk"))?;
        self.checked(coord, found)
    }

    /// Refuses a chunk that was not asked for.
    fn checked(&self, coord: &ChunkCoord, found: ChunkAnswer) -> Result<ChunkAnswer> {
        match &found.chunk {
            Some(chunk) if chunk.coord != *coord => Err(damaged("a chunk that nobody asked for")),
            _ => Ok(found),
        }
    }

    /// Begins to ask for the first of some chunks. Returns how many these are.
    fn start_batch(&self, wanted: &[(usize, ChunkWanted)]) -> Result<(usize, PendingCall)> {
        let chunk_bytes = self.spec.lock().chunk_bytes_or_total().unwrap_or(u64::MAX);
        let (mut bytes, mut count) = (0u64, 0);
        for (_, wanted) in wanted.iter().take(BATCH_CHUNKS) {
            let len = wanted.byte_range.as_ref().map_or(chunk_bytes, |part| part.end.saturating_sub(part.start));
            bytes = bytes.saturating_add(len);
            if count > 0 && bytes > BATCH_BYTES {
                break;
            }
            count += 1;
        }
        let mut request = self.request(wanted.iter().take(count).map(|(_, wanted)| wanted.clone()).collect());
        Ok((count, self.shared.client().start("chunks", &mut request)?))
    }

    /// All bytes of what was found of a chunk: an answer may have the first of them alone.
    fn complete(
        &self,
        wanted: &ChunkWanted,
        found: ChunkAnswer,
        budget: usize,
    ) -> Result<(Option<StoredChunk>, Vec<u8>)> {
        let Some(chunk) = found.chunk else { return Ok((None, Vec::new())) };
        let part = wanted.byte_range.clone().unwrap_or(0..chunk.size);
        let len = part.end.saturating_sub(part.start);
        let limit = AllocationLimit::new(budget as u64);
        limit.check(len)?;
        let mut bytes = found.bytes;
        if bytes.len() as u64 > len {
            return Err(damaged("more bytes than were asked for"));
        }
        if bytes.len() as u64 == len {
            return Ok((Some(chunk), bytes));
        }
        let mut whole = limit.zeroed(len)?;
        let at = bytes.len();
        whole[..at].copy_from_slice(&bytes);
        bytes.clear();
        self.read(&chunk, part.start + at as u64, &mut whole[at..])?;
        Ok((Some(chunk), whole))
    }
}

fn damaged(what: &'static str) -> Error {
    Error::store(h5live_model::StoreErrorKind::Damaged, std::io::Error::other(format!("the server sends {what}")))
}

impl ChunkStore for ServedDataset {
    fn id(&self) -> ObjectId {
        self.id
    }

    fn spec(&self) -> Result<Arc<DatasetSpec>> {
        if self.is_gone.load(Ordering::Relaxed) {
            return Err(Error::NoObject(self.id));
        }
        Ok(self.spec.lock().clone())
    }

    fn locate(&self, coord: &ChunkCoord) -> Result<Option<StoredChunk>> {
        Ok(self.ask_for_one(coord, Some(0..0))?.chunk)
    }

    fn for_each_chunk(&self, each: &mut dyn FnMut(StoredChunk) -> bool) -> Result<()> {
        let mut skip = 0;
        loop {
            let mut request = IndexRequest { incarnation: self.shared.file_incarnation(), dataset: self.id, skip };
            let answer: IndexAnswer = self.shared.client().call_with_retry("index", &mut request)?;
            if answer.chunks.is_empty() && !answer.is_end {
                return Err(damaged("a part of an index without chunks"));
            }
            skip += answer.chunks.len() as u64;
            if !answer.chunks.into_iter().all(&mut *each) || answer.is_end {
                return Ok(());
            }
        }
    }

    fn read(&self, chunk: &StoredChunk, at: u64, into: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < into.len() {
            let piece = (into.len() - done).min(MAX_ANSWER_DATA_BYTES);
            let start = at.saturating_add(done as u64);
            if start >= chunk.size {
                into[done..].fill(0);
                return Ok(());
            }
            let found = self.ask_for_one(&chunk.coord, Some(start..start.saturating_add(piece as u64)))?;
            if found.chunk.as_ref() != Some(chunk) {
                return Err(Error::Moved);
            }
            if found.bytes.is_empty() || found.bytes.len() > piece {
                return Err(damaged("another number of bytes than was asked for"));
            }
            into[done..done + found.bytes.len()].copy_from_slice(&found.bytes);
            done += found.bytes.len();
        }
        Ok(())
    }

    fn read_block(&self, chunk: &StoredChunk, start: &[u64], count: &[u64], into: &mut [u8]) -> Result<()> {
        read_block_by_runs(self, chunk, (start, count), into)
    }

    fn read_many(&self, wanted: &[ChunkReadRequest<'_>], budget: usize, each: &ChunkSink<'_>) -> Result<()> {
        let all =
            wanted.iter().map(|read| ChunkWanted { coord: read.coord.clone(), byte_range: read.byte_range.clone() });
        let all: Vec<_> = all.enumerate().collect();
        let in_flight = (budget / BATCH_BYTES as usize).clamp(1, MAX_IN_FLIGHT);
        let mut rest = &all[..];
        let mut pending: VecDeque<(&[(usize, ChunkWanted)], PendingCall)> = VecDeque::new();
        loop {
            while pending.len() < in_flight && !rest.is_empty() {
                let (count, call) = self.start_batch(rest)?;
                let (batch, after) = rest.split_at(count);
                pending.push_back((batch, call));
                rest = after;
            }
            let Some((batch, call)) = pending.pop_front() else { return Ok(()) };
            let answer: ChunksAnswer = self.shared.client().wait_with_retry(call)?;
            if answer.chunks.is_empty() || answer.chunks.len() > batch.len() {
                return Err(damaged("another number of chunks than was asked for"));
            }
            let left = &batch[answer.chunks.len()..];
            if !left.is_empty() {
                // Some of these may be left by this request, too.
                let (_, call) = self.start_batch(left)?;
                pending.push_front((left, call));
            }
            for ((number, wanted), found) in batch.iter().zip(answer.chunks) {
                let found = self.checked(&wanted.coord, found)?;
                match self.complete(wanted, found, budget)? {
                    (Some(chunk), bytes) => each(*number, Some(ChunkBytes { chunk: &chunk, bytes: &bytes }))?,
                    (None, _) => each(*number, None)?,
                }
            }
        }
    }

    fn next_data(&self, chunk: &StoredChunk, at: u64) -> Result<Option<u64>> {
        Ok((at < chunk.size).then_some(at))
    }

    fn map(&self, _: &StoredChunk, _: u64) -> Result<Option<FileBackedBytes>> {
        Ok(None)
    }

    fn write(&self, _: &ChunkBatch<'_>) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn refresh(&self) -> Result<bool> {
        let record = self.shared.fetch_record(self.id)?;
        match &record.spec.body {
            ObjectKindSpec::Dataset(spec) => Ok(self.set_spec_and_check_resize(spec)),
            _ => Err(Error::WrongKind { expected: "dataset" }),
        }
    }
}
