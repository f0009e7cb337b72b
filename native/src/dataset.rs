//! One dataset of an HDF5 file: its description, its chunks, and following its writer.

mod append_fast_path;
mod batch;
mod batched_read;
mod chunk_row;
mod create;
mod dataset_registry;
mod extent;
mod extent_message;
mod extent_overlap;
mod external_raw_files;
mod fill_new_space;
mod late_index;
#[cfg(test)]
mod late_index_tests;
mod layout;
mod load;
mod preallocated_append_rows;
mod preallocation;
mod refresh;
mod repeated_append;
mod spec_cache;
mod state;
mod write;

use std::sync::Arc;
use std::time::Duration;

use h5live_cache::{ATOMIC_READ_WINDOW_BYTES, Owner};
use h5live_format::messages::{LayoutClass, LayoutMessage};
use h5live_format::{Addr, ChunkEntryFormat, ChunkIndexEntry};
use h5live_model::{
    ChunkBatch, ChunkCoord, ChunkGrid, ChunkReadRequest, ChunkSink, ChunkStore, DatasetSpec, Error as ModelError,
    FileBackedBytes, ObjectId, ObjectKind, Result as ModelResult, StoredChunk, read_block_by_runs,
    read_chunks_sequentially,
};

pub(crate) use self::create::{create_dataset, not_compact_error};
pub(crate) use self::dataset_registry::{DatasetRegistry, OpenDataset};
pub use self::external_raw_files::existing_raw_file;
use self::layout::NativeLayout;
use self::load::load_state;
use self::state::DatasetState;
use crate::adaptive_batch_limit::AdaptiveBatchLimit;
use crate::object_kind::kind_of;
use crate::session::NativeSession;
use crate::{Error, Result};

/// Most bytes that a follower reads at once. A read must not take too long, and it must see raw data that a writer
/// changes in place either old or new.
const MAX_FOLLOWER_READ_BYTES: usize = ATOMIC_READ_WINDOW_BYTES;

/// A dataset of an HDF5 file. All handles of one dataset share what is known of it.
#[derive(Debug)]
pub struct NativeDataset {
    session: Arc<NativeSession>,
    shared: Arc<OpenDataset>,
}

impl NativeDataset {
    /// The dataset with its header at `addr`.
    ///
    /// # Errors
    /// If it is not there, cannot be read, or is no dataset.
    pub(crate) fn open(session: &Arc<NativeSession>, addr: Addr) -> Result<Self> {
        let read = |since: &mut Duration| {
            let header = session.load_header(addr)?;
            if kind_of(&header)? != ObjectKind::Dataset {
                return Err(Error::Model(ModelError::WrongKind { expected: "dataset" }));
            }
            load_state(session, &header, *since)
        };
        let open = session.datasets.get_or_open(addr, || session.retry.retry_with_start_time(read))?;
        Ok(NativeDataset { session: session.clone(), shared: open })
    }

    /// The dataset with its header at `addr`, if somebody has it open.
    pub(crate) fn find_open(session: &Arc<NativeSession>, addr: Addr) -> Option<Self> {
        session.datasets.find_open(addr).map(|open| NativeDataset { session: session.clone(), shared: open })
    }

    /// Takes up what the writer of a file has published since of all datasets that are open.
    ///
    /// # Errors
    /// If one of them cannot be read any more, and was not deleted.
    pub(crate) fn refresh_all(session: &Arc<NativeSession>) -> Result<()> {
        session.check_open()?;
        if !session.is_follower() {
            return Ok(());
        }
        session.datasets.all_open().into_iter().try_for_each(|open| {
            match (NativeDataset { session: session.clone(), shared: open }).refresh_published() {
                Err(Error::Model(ModelError::NoObject(_))) => Ok(()),
                refreshed => refreshed.map(drop),
            }
        })
    }

    /// What all handles of this dataset share.
    pub(crate) fn into_shared(self) -> Arc<OpenDataset> {
        self.shared
    }

    /// The committed datatype that is the type of the elements, if it is one.
    pub(crate) fn committed_datatype(&self) -> Option<ObjectId> {
        self.state().spec.committed_datatype
    }

    /// Calls `each` with the first byte and the length (bytes) of every run of raw data of the dataset in the file.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub(crate) fn for_each_raw_range(&self, each: &mut dyn FnMut(Addr, u64)) -> Result<()> {
        self.for_each_stored_chunk(&self.state(), &mut |chunk| {
            if let Some(offset) = chunk.file_offset {
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
        state.layout.for_each_chunk_with_uncounted(state.spec.dataspace.rank(), &mut |coord, element| {
            let chunk = self.stored_chunk(&state, &coord, element);
            chunk.file_offset.into_iter().for_each(|offset| each(Addr::new(offset), chunk.size));
            true
        })
    }

    fn check_not_deleted(&self) -> Result<()> {
        self.session.check_open()?;
        match self.shared.is_deleted() {
            true => Err(Error::Model(ModelError::NoObject(self.id()))),
            false => Ok(()),
        }
    }

    fn check_writable(&self) -> Result<()> {
        self.session.check_writable()?;
        self.check_not_deleted()
    }

    fn state(&self) -> Arc<DatasetState> {
        self.shared.state()
    }

    /// Gives back the space of the chunk index: the dataset is deleted.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub(crate) fn delete_index(&self) -> Result<()> {
        self.shared.mark_deleted_and_free_index()
    }

    /// Reads the header again, and marks the index as stale. The header comes first, so that the index is at least as
    /// new.
    fn reload_header(&self) -> Result<bool> {
        let owner = Owner::new(self.shared.header_addr);
        let new = self.session.retry.retry_with_start_time(|since| {
            let header = self.session.load_header(self.shared.header_addr)?;
            let state = load_state(&self.session, &header, *since)?;
            self.session.cache.evict_owner(owner);
            Ok::<_, Error>(state)
        })?;
        let mut state = self.shared.state.write();
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
        retry.retry_with_start_time(|since| {
            let mut state = self.state();
            if std::mem::replace(&mut again, true) || retry.should_reread(state.read_since) {
                self.reload_header()?;
                state = self.state();
            }
            *since = state.read_since;
            operation(&state)
        })
    }

    /// Reads from a chunk that was found before, and that may have been stored at a new place since.
    fn read_located_chunk(&self, state: &DatasetState, chunk: &StoredChunk, at: u64, into: &mut [u8]) -> Result<()> {
        self.check_not_moved(state, chunk)?;
        let addr = chunk.file_offset.map_or(Addr::UNDEFINED, Addr::new);
        Ok(self.session.cache.read_raw(addr, at, into)?)
    }

    /// As [`read_located_chunk`](Self::read_located_chunk), in the session of a writer: another thread may move the chunk
    /// meanwhile.
    fn read_own_chunk(&self, chunk: &StoredChunk, addr: Addr, at: u64, into: &mut [u8]) -> Result<()> {
        let cache = &self.session.cache;
        let reading = cache.space().begin_raw_read();
        let check = || {
            self.check_not_deleted()?;
            self.check_not_moved(&self.state(), chunk)
        };
        if reading.was_any_chunk_ever_freed() {
            check()?;
        }
        // Chunks that went through filters are written as a whole. Of other chunks, a writer may have parts that are not in
        // the file yet.
        let is_filtered = {
            let state = self.shared.state.read();
            matches!(state.layout.chunk_entry_format(), Some(ChunkEntryFormat::Filtered(_)))
                && !state.skips_all_filters(chunk.filter_mask)
        };
        let read =
            if is_filtered { cache.read_raw(addr, at, into) } else { cache.read_raw_zero_padded(addr, at, into) };
        if reading.unwritten_discarded_since_start() {
            check()?;
        }
        Ok(read?)
    }

    fn check_not_moved(&self, state: &DatasetState, chunk: &StoredChunk) -> Result<()> {
        let found = state.layout.locate_chunk(&chunk.coord)?;
        let found = found.map(|element| self.stored_chunk(state, &chunk.coord, element));
        match found.as_ref() == Some(chunk) {
            true => Ok(()),
            false => Err(Error::Model(ModelError::Moved)),
        }
    }

    fn stored_chunk(&self, state: &DatasetState, coord: &ChunkCoord, element: ChunkIndexEntry) -> StoredChunk {
        let size = match state.layout.chunk_entry_format() {
            Some(ChunkEntryFormat::Filtered(_)) => element.stored_size,
            _ => state.spec.chunk_bytes_or_total().unwrap_or(0),
        };
        StoredChunk { coord: coord.clone(), file_offset: element.addr.get(), size, filter_mask: element.filter_mask }
    }

    /// Calls `each` with every stored chunk, until it returns `false`.
    fn for_each_stored_chunk(&self, state: &DatasetState, each: &mut dyn FnMut(StoredChunk) -> bool) -> Result<()> {
        if let NativeLayout::Compact(_) | NativeLayout::External(_) = state.layout {
            if let Some(grid) = state.spec.grid_or_single_chunk() {
                let size = state.spec.chunk_bytes_or_total().unwrap_or(0);
                let coord = ChunkCoord::origin(ChunkGrid::chunk_dims(&grid).len());
                each(StoredChunk { coord, file_offset: None, size, filter_mask: 0 });
            }
            return Ok(());
        }
        let rank = state.spec.dataspace.rank();
        state.layout.for_each_chunk(rank, &mut |coord, element| each(self.stored_chunk(state, &coord, element)))
    }

    /// The chunks of a dataset in a file with generations; `None` if it is another file, or has another index.
    fn list_chunks_in_parts(&self) -> Result<Option<Vec<StoredChunk>>> {
        if self.session.retry.generation_reader().is_none() {
            return Ok(None);
        }
        let (mut all, mut limit) = (Vec::<StoredChunk>::new(), AdaptiveBatchLimit::unlimited());
        loop {
            let after = all.last().map(|last| last.coord.clone());
            let read = self.with_layout(|state| {
                state.check_layout_covers_elements()?;
                let NativeLayout::Chunked(index, ..) = &state.layout else { return Ok(None) };
                limit.shrink_if_retrying();
                let (mut part, mut is_ended) = (Vec::new(), false);
                let walked = index.for_each_after_if_supported(after.as_ref(), &mut |coord, element| {
                    part.push(self.stored_chunk(state, &coord, element));
                    is_ended = !limit.may_read_more(part.len());
                    !is_ended
                });
                limit.record_attempt_size(part.len());
                Ok(walked?.then_some((part, is_ended)))
            })?;
            let Some((part, is_ended)) = read else { return Ok(None) };
            limit.grow_after_success();
            all.extend(part);
            if !is_ended {
                return Ok(Some(all));
            }
        }
    }
}

impl ChunkStore for NativeDataset {
    fn id(&self) -> ObjectId {
        ObjectId(self.shared.header_addr.get().unwrap_or(u64::MAX).into())
    }

    fn spec(&self) -> ModelResult<Arc<DatasetSpec>> {
        self.check_not_deleted()?;
        Ok(self.shared.state.read().spec.clone())
    }

    fn locate(&self, coord: &ChunkCoord) -> ModelResult<Option<StoredChunk>> {
        let look = |state: &DatasetState| {
            state.check_layout_covers_elements()?;
            if let NativeLayout::Compact(_) | NativeLayout::External(_) = state.layout {
                let size = state.spec.chunk_bytes_or_total().unwrap_or(0);
                return Ok(Some(StoredChunk { coord: coord.clone(), file_offset: None, size, filter_mask: 0 }));
            }
            Ok(state.layout.locate_chunk(coord)?.map(|element| self.stored_chunk(state, coord, element)))
        };
        let found = self.with_layout(look)?;
        if found.is_none() && self.state().lacks_index_at(coord) && self.wait_for_late_index()? {
            return Ok(self.with_layout(look)?);
        }
        Ok(found)
    }

    fn check_chunk_storable(&self, coord: &ChunkCoord) -> ModelResult<()> {
        self.check_not_deleted()?;
        let state = self.state();
        if let NativeLayout::Chunked(index, ..) = &state.layout
            && !index.can_hold_chunk(coord)
        {
            return Err(crate::Error::Index(h5live_indexes::Error::ChunkOutOfBounds(coord.clone())).into());
        }
        Ok(())
    }

    fn for_each_chunk(&self, each: &mut dyn FnMut(StoredChunk) -> bool) -> ModelResult<()> {
        let session = &self.session;
        if !session.is_follower() {
            self.check_not_deleted()?;
            self.state().check_layout_covers_elements()?;
            if let Some(reads) = session.batch_read_hints() {
                self.load_index(reads.preferred_reads_in_flight);
            }
            let state = self.state();
            return Ok(self.for_each_stored_chunk(&state, each)?);
        }
        // A follower may have to start again, so it first gathers everything.
        if let Some(chunks) = self.list_chunks_in_parts()? {
            chunks.into_iter().all(each);
            return Ok(());
        }
        let list = |state: &DatasetState| {
            state.check_layout_covers_elements()?;
            let mut chunks = Vec::new();
            self.for_each_stored_chunk(state, &mut |chunk| {
                chunks.push(chunk);
                true
            })?;
            Ok((chunks, state.layout.lacks_chunk_index_yet()))
        };
        let chunks = match self.with_layout(list)? {
            (_, true) if self.wait_for_late_index()? => self.with_layout(list)?.0,
            (chunks, _) => chunks,
        };
        chunks.into_iter().all(each);
        Ok(())
    }

    fn read(&self, chunk: &StoredChunk, at: u64, into: &mut [u8]) -> ModelResult<()> {
        self.check_not_deleted()?;
        let Some(offset) = chunk.file_offset else {
            let mut copy = |data: &[u8]| {
                let start = usize::try_from(at).unwrap_or(usize::MAX);
                let part = data.get(start..).and_then(|rest| rest.get(..into.len()));
                into.copy_from_slice(part.ok_or_else(|| Error::invalid("the bytes are not in the dataset"))?);
                Ok(())
            };
            match &self.state().layout {
                NativeLayout::External(files) => return Ok(files.read(at, into)?),
                NativeLayout::Compact(Some(data)) => return copy(data),
                _ => {}
            }
            let header = self.session.load_header(self.shared.header_addr)?;
            let layout = header.require_message::<LayoutMessage>("a dataset has a layout")?;
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
                self.with_layout(|state| {
                    match (self.session.retry.redo_reader(), state.layout.chunk_entry_format()) {
                        // Filtered chunks are never changed in place.
                        (Some(redo_reader), Some(ChunkEntryFormat::Unfiltered)) => {
                            let begin = Addr::new(offset.saturating_add(at));
                            redo_reader
                                .read_consistent(begin, part, |part| self.read_located_chunk(state, chunk, at, part))
                        }
                        _ => self.read_located_chunk(state, chunk, at, part),
                    }
                })?;
            }
            if self.state().spec.datatype.has_vlen_or_references() {
                self.session.global_heap.forget_read_collections();
            }
            return Ok(());
        }
        let addr = Addr::new(offset);
        let read = match self.session.mode.writes() {
            true => self.read_own_chunk(chunk, addr, at, into),
            false => self.session.cache.read_raw(addr, at, into).map_err(Error::from),
        };
        Ok(read.map_err(|error| self.session.hold.truncation_or(error))?)
    }

    fn read_block(&self, chunk: &StoredChunk, start: &[u64], count: &[u64], into: &mut [u8]) -> ModelResult<()> {
        read_block_by_runs(self, chunk, (start, count), into)
    }

    fn read_many(&self, wanted: &[ChunkReadRequest<'_>], budget: usize, each: &ChunkSink<'_>) -> ModelResult<()> {
        match self.session.batch_read_hints() {
            Some(reads) => self.read_ranges(wanted, reads.preferred_reads_in_flight, budget, each),
            None => read_chunks_sequentially(self, wanted, budget, each),
        }
    }

    fn next_data(&self, chunk: &StoredChunk, at: u64) -> ModelResult<Option<u64>> {
        self.check_not_deleted()?;
        let known = chunk.file_offset.filter(|_| self.session.file_cannot_change());
        let Some(place) = known.and_then(|offset| offset.checked_add(at)) else {
            return Ok(Some(at).filter(|at| *at < chunk.size));
        };
        let found = self.session.cache.storage().next_data(place).map_err(Error::io("look for data in the file"))?;
        Ok(found.map(|found| at.saturating_add(found.saturating_sub(place))).filter(|at| *at < chunk.size))
    }

    fn map(&self, chunk: &StoredChunk, len: u64) -> ModelResult<Option<FileBackedBytes>> {
        self.check_not_deleted()?;
        let Some(at) = chunk.file_offset.filter(|_| self.session.file_cannot_change()) else { return Ok(None) };
        let mapped = self.session.cache.storage().map(at, len);
        Ok(mapped.map_err(Error::io("map the file"))?)
    }

    fn write(&self, batch: &ChunkBatch<'_>) -> ModelResult<()> {
        Ok(self.write_batch(batch)?)
    }

    fn prefers_unfiltered_until_full(&self) -> bool {
        self.session.prefers_unfiltered_until_full()
    }

    fn refresh(&self) -> ModelResult<bool> {
        self.check_not_deleted()?;
        if !self.session.is_follower() {
            return Ok(false);
        }
        Ok(self.refresh_published()?)
    }
}
