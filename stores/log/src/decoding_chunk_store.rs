//! Datasets with filters that are in the file of a log, and not in the log: other programs have added them. Their chunks are
//! decoded here, as a log has decoded elements.

use std::fmt;
use std::sync::Arc;

use h5live_model::{
    ChunkBatch, ChunkCoord, ChunkReadRequest, ChunkSink, ChunkStore, DatasetSpec, Error, FileBackedBytes, ObjectId,
    StoreErrorKind, StoredChunk, read_block_by_runs, read_chunks_sequentially,
};
use parking_lot::Mutex;

use crate::error::{LogError, Result};
use crate::session::LogSession;

/// Why nothing is written.
const WRITES: &str = "writing a dataset with filters that is not in the log of its file (open the file itself)";

/// A dataset whose chunks are decoded when they are read.
pub struct DecodingChunkStore {
    session: Arc<LogSession>,
    inner: Arc<dyn ChunkStore>,
    /// The chunk that was read last, and what it has.
    last: Mutex<Option<(StoredChunk, Arc<Vec<u8>>)>>,
}

impl fmt::Debug for DecodingChunkStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecodingChunkStore").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl DecodingChunkStore {
    /// The dataset of the store beneath.
    pub fn new(session: &Arc<LogSession>, inner: Arc<dyn ChunkStore>) -> Self {
        DecodingChunkStore { session: session.clone(), inner, last: Mutex::default() }
    }

    /// A chunk as it is seen: decoded.
    fn as_decoded(spec: &DatasetSpec, chunk: &StoredChunk) -> Result<StoredChunk> {
        let size = spec.chunk_bytes_at(&chunk.coord)?;
        Ok(StoredChunk { coord: chunk.coord.clone(), file_offset: None, size, filter_mask: 0 })
    }

    /// The elements of a chunk.
    fn decoded(&self, coord: &ChunkCoord) -> Result<Arc<Vec<u8>>> {
        let spec = self.inner.spec()?;
        let missing = || Error::Invalid(format!("the dataset has no chunk {coord}"));
        let stored = self.inner.locate(coord)?.ok_or_else(missing)?;
        let mut last = self.last.lock();
        if let Some((known, bytes)) = &*last
            && *known == stored
        {
            return Ok(bytes.clone());
        }
        let limit = self.session.max_allocation;
        let size = spec.chunk_bytes_at(coord)?;
        limit.check(size)?;
        let mut bytes = limit.zeroed(stored.size)?;
        self.inner.read(&stored, 0, &mut bytes)?;
        let grid = spec.grid_or_single_chunk().ok_or_else(missing)?;
        let is_bare = spec.unfiltered_partial_chunks && grid.chunk_exceeds_extent(coord, spec.dataspace.dims());
        if !is_bare {
            let failed = |source| LogError::DecodeUnloggedChunk { chunk: coord.to_string(), source };
            bytes =
                self.session.filter_engine.unfilter(&spec.filters, stored.filter_mask, bytes, size).map_err(failed)?;
        }
        if bytes.len() as u64 != size {
            let text = format!("chunk {coord} has {} bytes, and its elements take {size}", bytes.len());
            return Err(Error::store(StoreErrorKind::Damaged, std::io::Error::other(text)));
        }
        let bytes = Arc::new(bytes);
        *last = Some((stored, bytes.clone()));
        Ok(bytes)
    }
}

impl ChunkStore for DecodingChunkStore {
    fn id(&self) -> ObjectId {
        self.inner.id()
    }

    fn spec(&self) -> Result<Arc<DatasetSpec>> {
        self.session.check_open()?;
        self.inner.spec()
    }

    fn locate(&self, coord: &ChunkCoord) -> Result<Option<StoredChunk>> {
        let spec = self.spec()?;
        self.inner.locate(coord)?.map(|chunk| Self::as_decoded(&spec, &chunk)).transpose()
    }

    fn for_each_chunk(&self, each: &mut dyn FnMut(StoredChunk) -> bool) -> Result<()> {
        let spec = self.spec()?;
        let mut result = Ok(());
        self.inner.for_each_chunk(&mut |chunk| match Self::as_decoded(&spec, &chunk) {
            Ok(chunk) => each(chunk),
            Err(error) => {
                result = Err(error);
                false
            }
        })?;
        result
    }

    fn read(&self, chunk: &StoredChunk, at: u64, into: &mut [u8]) -> Result<()> {
        let bytes = self.decoded(&chunk.coord)?;
        let outside = || Error::Invalid(format!("chunk {} has no {} bytes from byte {at} on", chunk.coord, into.len()));
        let part = usize::try_from(at).ok().and_then(|at| bytes.get(at..)?.get(..into.len()));
        into.copy_from_slice(part.ok_or_else(outside)?);
        Ok(())
    }

    fn read_block(&self, chunk: &StoredChunk, start: &[u64], count: &[u64], into: &mut [u8]) -> Result<()> {
        read_block_by_runs(self, chunk, (start, count), into)
    }

    fn read_many(&self, wanted: &[ChunkReadRequest<'_>], budget: usize, each: &ChunkSink<'_>) -> Result<()> {
        read_chunks_sequentially(self, wanted, budget, each)
    }

    fn next_data(&self, chunk: &StoredChunk, at: u64) -> Result<Option<u64>> {
        self.session.check_open()?;
        Ok(Some(at).filter(|at| *at < chunk.size))
    }

    fn map(&self, _: &StoredChunk, _: u64) -> Result<Option<FileBackedBytes>> {
        self.session.check_open().map(|()| None)
    }

    fn write(&self, batch: &ChunkBatch<'_>) -> Result<()> {
        self.session.check_open()?;
        if !batch.writes.is_empty() || batch.extent.is_some() {
            return Err(Error::Unsupported(WRITES));
        }
        self.inner.write(batch)
    }

    fn refresh(&self) -> Result<bool> {
        *self.last.lock() = None;
        self.inner.refresh()
    }
}
