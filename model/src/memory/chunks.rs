//! The chunks of one dataset in memory.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};

use super::state::{Dims, State};
use super::{MemoryFile, Session};
use crate::{ChunkCoord, Chunks, DatasetSpec, Dataspace, Error, Layout, ObjectId, Result, StoredChunk};

#[derive(Debug)]
pub(super) struct MemoryChunks {
    session: Weak<Session>,
    file: Arc<MemoryFile>,
    writable: bool,
    id: ObjectId,
    /// The extent as of the last refresh; only readers look at it.
    seen: Mutex<Dims>,
}

impl MemoryChunks {
    pub(super) fn new(session: &Arc<Session>, id: ObjectId, seen: Dims) -> Self {
        MemoryChunks {
            session: Arc::downgrade(session),
            file: session.file.clone(),
            writable: session.writable,
            id,
            seen: Mutex::new(seen),
        }
    }

    fn read_state(&self) -> Result<MutexGuard<'_, State>> {
        match self.session.upgrade() {
            Some(session) if !session.closed.load(Ordering::Acquire) => Ok(self.file.state.lock()),
            _ => Err(Error::Closed),
        }
    }

    fn write_state(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.read_state()?;
        if self.writable { Ok(state) } else { Err(Error::ReadOnly) }
    }
}

fn describe(coord: &ChunkCoord, (filter_mask, bytes): &(u32, Vec<u8>)) -> StoredChunk {
    StoredChunk { coord: coord.clone(), offset: None, size: bytes.len() as u64, filter_mask: *filter_mask }
}

impl Chunks for MemoryChunks {
    fn id(&self) -> ObjectId {
        self.id
    }

    fn spec(&self) -> Result<Arc<DatasetSpec>> {
        let spec = self.read_state()?.stored(self.id)?.spec.clone();
        let seen = self.seen.lock();
        if self.writable || spec.dataspace.dims() == &**seen {
            return Ok(spec);
        }
        let mut spec = DatasetSpec::clone(&spec);
        if let Dataspace::Simple(shape) = &mut spec.dataspace {
            shape.resize(&seen);
        }
        Ok(spec.into())
    }

    fn set_extent(&self, dims: &[u64]) -> Result<()> {
        let mut state = self.write_state()?;
        let stored = state.stored_mut(self.id)?;
        let spec = Arc::make_mut(&mut stored.spec);
        let (Layout::Chunked(_), Dataspace::Simple(shape)) = (&spec.layout, &mut spec.dataspace) else {
            return Err(Error::Invalid("only a chunked dataset changes its extent".into()));
        };
        if !shape.resize(dims) {
            return Err(Error::Invalid(format!("{dims:?} is not within the maximum {:?}", shape.max())));
        }
        if let Some(grid) = spec.grid() {
            let counts = grid.counts(dims);
            stored.chunks.retain(|coord, _| coord.scaled().iter().zip(&counts).all(|(at, n)| at < n));
        }
        Ok(())
    }

    fn chunk(&self, coord: &ChunkCoord) -> Result<Option<StoredChunk>> {
        let state = self.read_state()?;
        Ok(state.stored(self.id)?.chunks.get_key_value(coord).map(|(coord, stored)| describe(coord, stored)))
    }

    fn for_each_chunk(&self, each: &mut dyn FnMut(StoredChunk) -> bool) -> Result<()> {
        let stored = self.read_state()?.stored(self.id)?.chunks.iter().map(|(c, s)| describe(c, s)).collect::<Vec<_>>();
        stored.into_iter().all(each);
        Ok(())
    }

    fn read(&self, chunk: &StoredChunk, at: u64, into: &mut [u8]) -> Result<()> {
        let state = self.read_state()?;
        let stored = state.stored(self.id)?.chunks.get(&chunk.coord);
        let bytes = stored.map_or(&[][..], |(_, bytes)| bytes);
        let from = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
        let n = from.len().min(into.len());
        into[..n].copy_from_slice(&from[..n]);
        into[n..].fill(0);
        Ok(())
    }

    fn write(&self, coord: &ChunkCoord, filter_mask: u32, bytes: &[u8]) -> Result<()> {
        let mut state = self.write_state()?;
        let stored = state.stored_mut(self.id)?;
        let whole = stored.chunk_bytes(coord)?;
        if stored.spec.filters.is_empty() && whole != bytes.len() as u64 {
            return Err(Error::Invalid(format!("a chunk of this dataset has {whole} bytes, not {}", bytes.len())));
        }
        stored.chunks.insert(coord.clone(), (filter_mask, bytes.into()));
        Ok(())
    }

    fn write_part(&self, coord: &ChunkCoord, at: u64, bytes: &[u8]) -> Result<()> {
        let mut state = self.write_state()?;
        let stored = state.stored_mut(self.id)?;
        let whole = stored.chunk_bytes(coord)?;
        if !stored.spec.filters.is_empty() {
            return Err(Error::Invalid("a filtered chunk is written whole".into()));
        }
        let Some(end) = at.checked_add(bytes.len() as u64).filter(|end| *end <= whole) else {
            return Err(Error::Invalid(format!("a chunk of this dataset has {whole} bytes")));
        };
        if !stored.chunks.contains_key(coord) {
            let mut chunk = self.file.max_allocation.zeroed(whole)?;
            stored.spec.fill_into(0, &mut chunk);
            stored.chunks.insert(coord.clone(), (0, chunk));
        }
        if let Some((_, chunk)) = stored.chunks.get_mut(coord) {
            chunk[at as usize..end as usize].copy_from_slice(bytes);
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        let mut state = self.read_state()?;
        if self.writable {
            state.stored_mut(self.id)?.publish();
            state.generation += 1;
            self.file.flushed.notify_all();
        }
        Ok(())
    }

    fn refresh(&self) -> Result<bool> {
        let state = self.read_state()?;
        let published = &state.stored(self.id)?.published;
        let mut seen = self.seen.lock();
        let changed = *seen != *published;
        *seen = published.clone();
        Ok(changed && !self.writable)
    }
}
