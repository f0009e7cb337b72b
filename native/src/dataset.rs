//! One dataset of an HDF5 file: its description, its chunks, and following its writer.

mod append_fast_path;
mod batch;
mod chunk_row;
mod create;
mod extent;
mod extent_overlap;
mod external;
mod fill;
mod late_index;
#[cfg(test)]
mod late_index_tests;
mod layout;
mod preallocation;
mod refresh;
mod spec_cache;
mod write;

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use h5live_cache::{MAX_ATOMIC_READ_BYTES, Owner};
use h5live_format::messages::{LayoutClass, LayoutMessage, MAX_OLD_CHUNK_BYTES};
use h5live_format::{Addr, ChunkElement, ElementFormat, GlobalHeapId, VirtualLayout, VirtualMapping, decode};
use h5live_model::{
    ChunkBatch, ChunkCoord, ChunkGrid, ChunkRead, ChunkSink, ChunkStore, DatasetSpec, Error as ModelError, Name,
    ObjectId, ObjectKind, Result as ModelResult, SharedBytes, StoredChunk, VirtualSource, read_each,
};
use h5live_swmr::ReaderMemory;
use parking_lot::{Mutex, RwLock};

use self::append_fast_path::FastAppendState;
pub(crate) use self::create::{SpecMessageCache, create_dataset, not_compact_error};
use self::layout::NativeLayout;
pub(crate) use self::preallocation::PreallocatedChunks;
pub(crate) use self::spec_cache::SpecCache;
use self::spec_cache::cached_spec;
use crate::header::CachedHeader;
use crate::object_kind::kind_of;
use crate::session::NativeSession;
use crate::{Error, Result};

/// Most bytes that a follower reads at once. A read must not take too long, and it must see raw data that a writer
/// changes in place either old or new.
const MAX_FOLLOWER_READ_BYTES: usize = MAX_ATOMIC_READ_BYTES;

/// A dataset of an HDF5 file.
#[derive(Debug)]
pub struct NativeDataset {
    session: Arc<NativeSession>,
    addr: Addr,
    state: RwLock<Arc<DatasetState>>,
    fast_append: Mutex<FastAppendState>,
    /// Held by the one that writes a batch: an index is changed by one thread at a time.
    writer: Mutex<()>,
    /// Held while a reader reads the state again.
    refresh_lock: Mutex<()>,
    /// The extent without an index for which a reader has waited in vain; held while it waits.
    missed: Mutex<Vec<u64>>,
    /// Whether the dataset has been deleted.
    is_deleted: AtomicBool,
}

/// The result of one reading of the header.
#[derive(Debug, Clone)]
struct DatasetState {
    /// Before the header was read.
    since: Duration,
    spec: Arc<DatasetSpec>,
    layout: NativeLayout,
    /// Bytes that the layout says contiguous data has, if they are fewer than the elements take.
    too_short: Option<u64>,
    /// The version of the layout message, if it does not allow chunks as large as it says they are.
    oversized_chunks: Option<u8>,
    /// Bytes of the first chunk of the header.
    header_len: usize,
    /// That chunk, of a reader that follows, if it is known.
    image: Option<Arc<[u8]>>,
}

/// The state of a new dataset until it is opened.
#[derive(Debug)]
pub(crate) struct NewDataset {
    addr: Addr,
    state: DatasetState,
}

fn invalid(text: impl Into<String>) -> Error {
    Error::Model(ModelError::Invalid(text.into()))
}

/// The pieces of a virtual dataset.
fn virtual_sources(
    session: &NativeSession,
    header: &CachedHeader,
    heap: Addr,
    index: u32,
) -> Result<Vec<VirtualSource>> {
    let place = GlobalHeapId { collection: heap, index };
    if !place.is_defined() {
        return Ok(Vec::new());
    }
    let bytes = session.read_global_heap(place)?;
    let layout: VirtualLayout = decode(&bytes, header.widths())
        .map_err(|source| Error::Cache(h5live_cache::Error::Decode { at: heap, source }))?;
    let source = |mapping: VirtualMapping| VirtualSource {
        file: Name::clone(&mapping.file),
        dataset: Name::clone(&mapping.dataset),
        source: mapping.source.selection,
        target: mapping.target.selection,
    };
    Ok(layout.mappings.into_iter().map(source).collect())
}

impl NativeDataset {
    pub(crate) fn open(session: &Arc<NativeSession>, addr: Addr) -> Result<Arc<Self>> {
        let mut open = session.datasets.lock();
        if let Some(dataset) = open.get(&addr).and_then(Weak::upgrade) {
            return Ok(dataset);
        }
        let made = session.new_dataset.lock().take_if(|made| made.addr == addr);
        let read = |since: &mut Duration| {
            let header = session.header(addr)?;
            if kind_of(&header)? != ObjectKind::Dataset {
                return Err(Error::Model(ModelError::WrongKind { expected: "dataset" }));
            }
            DatasetState::new(session, &header, *since)
        };
        let state = made.map_or_else(|| session.retry.retry_since(read), |made| Ok(made.state))?;
        let state = RwLock::new(Arc::new(state));
        let dataset = NativeDataset {
            session: session.clone(),
            addr,
            state,
            fast_append: Mutex::default(),
            writer: Mutex::default(),
            refresh_lock: Mutex::default(),
            missed: Mutex::default(),
            is_deleted: AtomicBool::new(false),
        };
        let dataset = Arc::new(dataset);
        open.insert(addr, Arc::downgrade(&dataset));
        Ok(dataset)
    }

    /// The committed datatype that is the type of the elements, if it is one.
    pub(crate) fn committed(&self) -> Option<ObjectId> {
        self.state().spec.committed
    }

    /// Calls `each` with the first byte and the length (bytes) of every run of raw data of the dataset in the file.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub(crate) fn for_each_raw_range(&self, each: &mut dyn FnMut(Addr, u64)) -> Result<()> {
        self.for_each_stored(&self.state(), &mut |chunk| {
            if let Some(offset) = chunk.offset {
                each(Addr::new(offset), chunk.size);
            }
            true
        })
    }

    /// As [`for_each_raw_range`](Self::for_each_raw_range), also with chunks that a writer that died did not come to
    /// count.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub(crate) fn for_each_raw_range_unpublished(&self, each: &mut dyn FnMut(Addr, u64)) -> Result<()> {
        let state = self.state();
        self.for_each_raw_range(each)?;
        state.layout.for_each_with_unpublished(state.spec.dataspace.rank(), &mut |coord, element| {
            let chunk = self.stored_chunk(&state, &coord, element);
            chunk.offset.into_iter().for_each(|offset| each(Addr::new(offset), chunk.size));
            true
        })
    }

    /// The dataset is deleted.
    pub(crate) fn mark_deleted(&self) {
        self.is_deleted.store(true, Ordering::Release);
        self.forget_preallocated();
    }

    /// Gives back the space of the chunk index: the dataset is deleted.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub(crate) fn delete_index(&self) -> Result<()> {
        self.mark_deleted();
        self.state().layout.delete_index()
    }

    fn check_not_deleted(&self) -> Result<()> {
        self.session.check_open()?;
        match self.is_deleted.load(Ordering::Acquire) {
            true => Err(Error::Model(ModelError::NoObject(self.id()))),
            false => Ok(()),
        }
    }

    fn check_writable(&self) -> Result<()> {
        self.session.check_writable()?;
        self.check_not_deleted()
    }

    fn state(&self) -> Arc<DatasetState> {
        self.state.read().clone()
    }

    /// Reads the header again, and marks the index as stale. The header comes first, so that the index is at least as
    /// new.
    fn reload(&self) -> Result<bool> {
        let owner = Owner::new(self.addr);
        let new = self.session.retry.retry_since(|since| {
            let header = self.session.header(self.addr)?;
            let state = DatasetState::new(&self.session, &header, *since)?;
            self.session.cache.evict_owner(owner);
            Ok::<_, Error>(state)
        })?;
        let mut state = self.state.write();
        let changed = new.spec.dataspace != state.spec.dataspace;
        *state = Arc::new(new);
        Ok(changed)
    }

    /// Runs `operation` on the chunks. For a follower, runs it again from the header on if it meets something torn, or
    /// if the header is too old.
    fn with_layout<T>(&self, mut operation: impl FnMut(&DatasetState) -> Result<T>) -> Result<T> {
        self.check_not_deleted()?;
        let retry = &self.session.retry;
        let mut again = false;
        retry.retry_since(|since| {
            if std::mem::replace(&mut again, true) || retry.is_expired(self.state().since) {
                self.reload()?;
            }
            let state = self.state();
            *since = state.since;
            operation(&state)
        })
    }

    /// Reads from a chunk that was found before, and that may have been stored at a new place since.
    fn read_located(&self, state: &DatasetState, chunk: &StoredChunk, at: u64, into: &mut [u8]) -> Result<()> {
        let found = state.layout.get(&chunk.coord)?.map(|element| self.stored_chunk(state, &chunk.coord, element));
        if found.as_ref() != Some(chunk) {
            return Err(Error::Model(ModelError::Moved));
        }
        let addr = chunk.offset.map_or(Addr::UNDEFINED, Addr::new);
        Ok(self.session.cache.read_raw(addr, at, into)?)
    }

    fn stored_chunk(&self, state: &DatasetState, coord: &ChunkCoord, element: ChunkElement) -> StoredChunk {
        let size = match state.layout.format() {
            Some(ElementFormat::Filtered(_)) => element.size,
            _ => state.spec.chunk_bytes().unwrap_or(0),
        };
        StoredChunk { coord: coord.clone(), offset: element.addr.get(), size, filter_mask: element.filter_mask }
    }

    /// Calls `each` with every stored chunk, until it returns `false`.
    fn for_each_stored(&self, state: &DatasetState, each: &mut dyn FnMut(StoredChunk) -> bool) -> Result<()> {
        if let NativeLayout::Compact(_) | NativeLayout::External(_) = state.layout {
            if let Some(grid) = state.spec.grid() {
                let size = state.spec.chunk_bytes().unwrap_or(0);
                let coord = ChunkCoord::origin(ChunkGrid::dims(&grid).len());
                each(StoredChunk { coord, offset: None, size, filter_mask: 0 });
            }
            return Ok(());
        }
        let rank = state.spec.dataspace.rank();
        state.layout.for_each(rank, &mut |coord, element| each(self.stored_chunk(state, &coord, element)))
    }

    /// Hashes everything that is kept of the dataset, apart from what a file without generations shows by itself.
    pub(crate) fn hash_state(&self, state: &mut impl Hasher) {
        let now = self.state();
        (self.addr, now.header_len, now.spec.dataspace.dims()).hash(state);
        match now.layout.header() {
            Some(header) => header.hash_state(state),
            None => format!("{:?}", now.spec).hash(state),
        }
    }
}

impl Drop for NativeDataset {
    fn drop(&mut self) {
        let mut open = self.session.datasets.lock();
        // Another one may have been opened since nobody had this one.
        if open.get(&self.addr).is_some_and(|dataset| dataset.strong_count() == 0) {
            open.remove(&self.addr);
        }
    }
}

impl DatasetState {
    fn new(session: &Arc<NativeSession>, header: &CachedHeader, since: Duration) -> Result<Self> {
        let (spec, mut layout) = cached_spec(session, header)?;
        let place = match &mut layout.storage {
            LayoutClass::Compact { data, .. } if session.is_at_rest() => {
                NativeLayout::Compact(Some(std::mem::take(data)))
            }
            _ => NativeLayout::new(session, header, &spec, &layout)?,
        };
        let header_len = header.chunk_ranges().next().map_or(0, |(_, len)| len);
        let too_short = match layout.storage {
            // Earlier versions do not state it.
            LayoutClass::Contiguous { addr, size, .. } if layout.version >= 3 && addr.is_defined() => {
                Some(size).filter(|size| spec.chunk_bytes().is_none_or(|bytes| bytes > *size) && spec.grid().is_some())
            }
            _ => None,
        };
        let oversized_chunks = Some(layout.version).filter(|_| !layout.allows_chunk_size());
        Ok(DatasetState { since, spec, layout: place, too_short, oversized_chunks, header_len, image: None })
    }

    /// Refuses to write chunks that other programs cannot read.
    #[inline]
    fn check_chunk_size(&self) -> Result<()> {
        self.oversized_chunks.map_or(Ok(()), |version| Err(self.oversized(version)))
    }

    /// Says that the chunks are too large.
    #[cold]
    fn oversized(&self, version: u8) -> Error {
        let bytes = self.spec.chunk_bytes().map_or_else(|| "more than 2^64".into(), |bytes| bytes.to_string());
        invalid(format!(
            "a chunk of {bytes} bytes cannot be written: a layout message of version {version} allows \
             {MAX_OLD_CHUNK_BYTES} bytes (LibVer::V200 makes datasets with larger chunks)"
        ))
    }

    /// Refuses elements that have no place.
    #[inline]
    fn check_length(&self) -> Result<()> {
        self.too_short.map_or(Ok(()), |size| Err(self.misfit(size)))
    }

    /// Says that the elements do not fit the bytes that the layout has for them.
    #[cold]
    fn misfit(&self, size: u64) -> Error {
        match self.spec.chunk_bytes() {
            Some(bytes) => {
                invalid(format!("the elements take {bytes} bytes, but the layout has {size} bytes for them"))
            }
            None => invalid("the elements take more than 2^64 bytes"),
        }
    }
}

impl ChunkStore for NativeDataset {
    fn id(&self) -> ObjectId {
        ObjectId(self.addr.get().unwrap_or(u64::MAX).into())
    }

    fn spec(&self) -> ModelResult<Arc<DatasetSpec>> {
        self.check_not_deleted()?;
        Ok(self.state().spec.clone())
    }

    fn locate(&self, coord: &ChunkCoord) -> ModelResult<Option<StoredChunk>> {
        let look = |state: &DatasetState| {
            state.check_length()?;
            if let NativeLayout::Compact(_) | NativeLayout::External(_) = state.layout {
                let size = state.spec.chunk_bytes().unwrap_or(0);
                return Ok(Some(StoredChunk { coord: coord.clone(), offset: None, size, filter_mask: 0 }));
            }
            Ok(state.layout.get(coord)?.map(|element| self.stored_chunk(state, coord, element)))
        };
        let found = self.with_layout(look)?;
        if found.is_none() && self.state().lacks_index_at(coord) && self.has_late_index()? {
            return Ok(self.with_layout(look)?);
        }
        Ok(found)
    }

    fn for_each_chunk(&self, each: &mut dyn FnMut(StoredChunk) -> bool) -> ModelResult<()> {
        let session = &self.session;
        if !session.is_follower() {
            self.check_not_deleted()?;
            let state = self.state();
            state.check_length()?;
            return Ok(self.for_each_stored(&state, each)?);
        }
        // A follower may have to start again, so it first gathers everything.
        let list = |state: &DatasetState| {
            state.check_length()?;
            let mut chunks = Vec::new();
            self.for_each_stored(state, &mut |chunk| {
                chunks.push(chunk);
                true
            })?;
            Ok((chunks, state.layout.lacks_index()))
        };
        let chunks = match self.with_layout(list)? {
            (_, true) if self.has_late_index()? => self.with_layout(list)?.0,
            (chunks, _) => chunks,
        };
        chunks.into_iter().all(each);
        Ok(())
    }

    fn read(&self, chunk: &StoredChunk, at: u64, into: &mut [u8]) -> ModelResult<()> {
        self.check_not_deleted()?;
        let Some(offset) = chunk.offset else {
            let mut copy = |data: &[u8]| {
                let start = usize::try_from(at).unwrap_or(usize::MAX);
                let part = data.get(start..).and_then(|rest| rest.get(..into.len()));
                into.copy_from_slice(part.ok_or_else(|| invalid("the bytes are not in the dataset"))?);
                Ok(())
            };
            match &self.state().layout {
                NativeLayout::External(files) => return Ok(files.read(at, into)?),
                NativeLayout::Compact(Some(data)) => return copy(data),
                _ => {}
            }
            let header = self.session.header(self.addr)?;
            let layout = header.require::<LayoutMessage>("a dataset has a layout")?;
            return match &layout.storage {
                LayoutClass::Compact { data, .. } => copy(data),
                _ => Ok(()),
            };
        };
        if self.session.is_follower() {
            let first = into.len().min(MAX_FOLLOWER_READ_BYTES - (at % MAX_FOLLOWER_READ_BYTES as u64) as usize);
            let (first, rest) = into.split_at_mut(first);
            let behind = at + first.len() as u64;
            let rest = rest.chunks_mut(MAX_FOLLOWER_READ_BYTES).zip((behind..).step_by(MAX_FOLLOWER_READ_BYTES));
            for (part, at) in std::iter::once((first, at)).chain(rest).filter(|(part, _)| !part.is_empty()) {
                self.with_layout(|state| match (self.session.retry.redo_reader(), state.layout.format()) {
                    // Filtered chunks are never changed in place.
                    (Some(redo_reader), Some(ElementFormat::Unfiltered)) => {
                        let begin = Addr::new(offset.saturating_add(at));
                        redo_reader.read_consistent(begin, part, |part| self.read_located(state, chunk, at, part))
                    }
                    _ => self.read_located(state, chunk, at, part),
                })?;
            }
            if self.state().spec.datatype.is_indirect() {
                self.session.heap_reader.forget();
            }
            return Ok(());
        }
        let is_filtered = matches!(self.state().layout.format(), Some(ElementFormat::Filtered(_)));
        let (cache, chunk) = (&self.session.cache, Addr::new(offset));
        // Filtered chunks are written as a whole. Of other chunks, a writer may have parts that are not in the file
        // yet.
        let read = match self.session.mode.writes() && !is_filtered {
            true => cache.read_raw_padded(chunk, at, into),
            false => cache.read_raw(chunk, at, into),
        };
        Ok(read.map_err(|error| self.session.opened.cause(Error::from(error)))?)
    }

    fn read_many(&self, wanted: &[ChunkRead<'_>], budget: usize, each: &ChunkSink<'_>) -> ModelResult<()> {
        read_each(self, wanted, budget, each)
    }

    fn next_data(&self, chunk: &StoredChunk, at: u64) -> ModelResult<Option<u64>> {
        self.check_not_deleted()?;
        let known = chunk.offset.filter(|_| self.session.is_at_rest());
        let Some(place) = known.and_then(|offset| offset.checked_add(at)) else {
            return Ok(Some(at).filter(|at| *at < chunk.size));
        };
        let found = self.session.cache.storage().next_data(place).map_err(Error::io("look for data in the file"))?;
        Ok(found.map(|found| at.saturating_add(found.saturating_sub(place))).filter(|at| *at < chunk.size))
    }

    fn map(&self, chunk: &StoredChunk, len: u64) -> ModelResult<Option<SharedBytes>> {
        self.check_not_deleted()?;
        let Some(at) = chunk.offset.filter(|_| self.session.is_at_rest()) else { return Ok(None) };
        let mapped = self.session.cache.storage().map(at, len);
        Ok(mapped.map_err(Error::io("map the file"))?)
    }

    fn write(&self, batch: &ChunkBatch<'_>) -> ModelResult<()> {
        Ok(self.write_batch(batch)?)
    }

    fn refresh(&self) -> ModelResult<bool> {
        self.check_not_deleted()?;
        if !self.session.is_follower() {
            return Ok(false);
        }
        Ok(self.refresh_published()?)
    }
}
