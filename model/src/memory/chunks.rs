//! The chunks of one dataset in memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread;

use parking_lot::{Mutex, MutexGuard, RwLock};

use super::dataset::{MemoryChunk, MemoryDims};
use super::file::{MemoryAccess, MemoryFile};
use super::state::MemoryState;
use crate::{
    ChunkBatch, ChunkBytes, ChunkCoord, ChunkReadRequest, ChunkReadStrategy, ChunkSink, ChunkStore, DatasetSpec,
    Dataspace, Error, FileBackedBytes, ObjectId, PublishLevel, Result, StoredChunk, read_block_by_runs,
    read_chunks_sequentially,
};

/// Threads that answer one batch of reads.
const MAX_READING_THREADS: usize = 4;

#[derive(Debug)]
pub(super) struct MemoryChunks {
    /// Gone with the session.
    access: Weak<MemoryAccess>,
    file: Arc<MemoryFile>,
    writable: bool,
    id: ObjectId,
    /// The extent as of the last refresh; only readers look at it.
    extent: Mutex<MemoryDims>,
}

impl MemoryChunks {
    pub(super) fn new(access: &Arc<MemoryAccess>, id: ObjectId, seen: MemoryDims) -> Self {
        MemoryChunks {
            access: Arc::downgrade(access),
            file: access.file.clone(),
            writable: access.writable,
            id,
            extent: Mutex::new(seen),
        }
    }

    fn read_state(&self) -> Result<MutexGuard<'_, MemoryState>> {
        match self.access.upgrade() {
            Some(access) if !access.is_closed() => Ok(self.file.state.lock()),
            _ => Err(Error::Closed),
        }
    }

    /// As [`ChunkStore::refresh`], unless the dataset was deleted.
    pub(super) fn refresh_if_there(&self) -> Result<()> {
        match self.refresh() {
            Err(Error::NoObject(_)) => Ok(()),
            refreshed => refreshed.map(drop),
        }
    }

    fn write_state(&self) -> Result<MutexGuard<'_, MemoryState>> {
        let state = self.read_state()?;
        if self.writable { Ok(state) } else { Err(Error::ReadOnly) }
    }
}

fn describe_chunk(coord: &ChunkCoord, (filter_mask, bytes): &MemoryChunk) -> StoredChunk {
    StoredChunk { coord: coord.clone(), file_offset: None, size: bytes.len() as u64, filter_mask: *filter_mask }
}

/// Reads chunks by several threads, the last one first: as a store may whose reads come back in any order.
fn read_backwards(
    chunks: &MemoryChunks,
    wanted: &[ChunkReadRequest<'_>],
    budget: usize,
    in_flight: usize,
    each: &ChunkSink<'_>,
) -> Result<()> {
    let threads = in_flight.clamp(1, MAX_READING_THREADS).min(wanted.len());
    let left = AtomicUsize::new(wanted.len());
    let failure = Mutex::new(None);
    // A chunk that takes more than its share of the budget is read alone.
    let shares = RwLock::new(());
    let read = |number: usize| {
        let put = |_, found: Option<ChunkBytes<'_>>| each(number, found);
        let wanted = wanted.get(number..=number).unwrap_or_default();
        {
            let _shared = shares.read();
            match read_chunks_sequentially(chunks, wanted, budget / threads, &put) {
                Err(Error::Allocation(_)) => {}
                done => return done,
            }
        }
        let _alone = shares.write();
        read_chunks_sequentially(chunks, wanted, budget, &put)
    };
    let work = || {
        let take = |left: usize| left.checked_sub(1).filter(|_| failure.lock().is_none());
        while let Ok(left) = left.fetch_update(Ordering::AcqRel, Ordering::Acquire, take) {
            if let Err(error) = read(left - 1) {
                failure.lock().get_or_insert(error);
            }
        }
    };
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    failure.into_inner().map_or(Ok(()), Err)
}

impl ChunkStore for MemoryChunks {
    fn id(&self) -> ObjectId {
        self.id
    }

    fn spec(&self) -> Result<Arc<DatasetSpec>> {
        let spec = self.read_state()?.dataset(self.id)?.spec.clone();
        let seen = self.extent.lock();
        if self.writable || spec.dataspace.dims() == &**seen {
            return Ok(spec);
        }
        let mut spec = DatasetSpec::clone(&spec);
        if let Dataspace::Simple(shape) = &mut spec.dataspace {
            shape.try_resize(&seen);
        }
        Ok(spec.into())
    }

    fn locate(&self, coord: &ChunkCoord) -> Result<Option<StoredChunk>> {
        let state = self.read_state()?;
        Ok(state.dataset(self.id)?.chunk(coord, self.writable).map(|stored| describe_chunk(coord, stored)))
    }

    /// Each chunk without filters is whole in memory, whatever part of it is written.
    fn check_chunk_storable(&self, coord: &ChunkCoord) -> Result<()> {
        let state = self.read_state()?;
        let spec = &state.dataset(self.id)?.spec;
        if spec.filters.is_empty() {
            self.file.max_allocation.check(spec.chunk_bytes_at(coord)?)?;
        }
        Ok(())
    }

    fn for_each_chunk(&self, each: &mut dyn FnMut(StoredChunk) -> bool) -> Result<()> {
        let state = self.read_state()?;
        let stored = state.dataset(self.id)?.chunks(self.writable);
        let stored: Vec<_> = stored.into_iter().map(|(coord, stored)| describe_chunk(coord, stored)).collect();
        drop(state);
        stored.into_iter().all(each);
        Ok(())
    }

    fn read(&self, chunk: &StoredChunk, at: u64, into: &mut [u8]) -> Result<()> {
        let state = self.read_state()?;
        let stored = state.dataset(self.id)?.chunk(&chunk.coord, self.writable);
        let bytes = stored.map_or(&[][..], |(_, bytes)| bytes);
        let from = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
        let n = from.len().min(into.len());
        into[..n].copy_from_slice(&from[..n]);
        into[n..].fill(0);
        Ok(())
    }

    fn read_block(&self, chunk: &StoredChunk, start: &[u64], count: &[u64], into: &mut [u8]) -> Result<()> {
        read_block_by_runs(self, chunk, (start, count), into)
    }

    fn read_many(&self, wanted: &[ChunkReadRequest<'_>], budget: usize, each: &ChunkSink<'_>) -> Result<()> {
        match self.file.behavior.reads {
            ChunkReadStrategy::Direct { .. } | ChunkReadStrategy::ElementBlocks => {
                read_chunks_sequentially(self, wanted, budget, each)
            }
            ChunkReadStrategy::Batched { preferred_reads_in_flight: in_flight, .. } => {
                read_backwards(self, wanted, budget, in_flight, each)
            }
        }
    }

    fn next_data(&self, chunk: &StoredChunk, at: u64) -> Result<Option<u64>> {
        drop(self.read_state()?);
        Ok(Some(at).filter(|at| *at < chunk.size))
    }

    fn map(&self, _: &StoredChunk, _: u64) -> Result<Option<FileBackedBytes>> {
        self.read_state().map(|_| None)
    }

    fn write(&self, batch: &ChunkBatch<'_>) -> Result<()> {
        if !batch.has_changes() && !self.writable {
            return self.read_state().map(drop);
        }
        let mut state = self.write_state()?;
        if batch.publish == Some(PublishLevel::Durable) {
            return Err(Error::Unsupported("outlasting a power failure in memory"));
        }
        let stored = state.dataset_mut(self.id)?;
        for write in batch.writes {
            self.file.count_change_or_fail()?;
            stored.write(write, self.file.behavior, self.file.max_allocation)?;
        }
        if let Some(dims) = batch.extent {
            self.file.count_change_or_fail()?;
            stored.resize(dims, self.file.behavior)?;
        }
        if !batch.writes.is_empty() || batch.extent.is_some() {
            state.changed.insert(self.id);
        }
        batch.publish_after.iter().try_for_each(|earlier| state.dataset(*earlier).map(drop))?;
        let after = &mut state.dataset_mut(self.id)?.publish_after;
        after
            .extend(batch.publish_after.iter().filter(|earlier| !after.contains(earlier)).copied().collect::<Vec<_>>());
        if batch.publish.is_some() {
            self.file.count_change_or_fail()?;
            state.publish(self.id)?;
            state.generation += 1;
            self.file.flushed.notify_all();
        }
        Ok(())
    }

    fn refresh(&self) -> Result<bool> {
        let state = self.read_state()?;
        let published = &state.dataset(self.id)?.published;
        let mut seen = self.extent.lock();
        let changed = *seen != *published;
        *seen = published.clone();
        Ok(changed && !self.writable)
    }
}
