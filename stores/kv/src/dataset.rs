//! The chunks of one dataset.

use std::fmt;
use std::sync::Arc;

use h5live_model::{
    ChunkBatch, ChunkCoord, ChunkReadRequest, ChunkSink, ChunkStore, ChunkWrite, DatasetSpec, Dataspace,
    Error as ModelError, FileBackedBytes, Layout, ObjectId, ObjectKind, ObjectKindSpec, Result, StoredChunk,
    read_block_by_runs, read_chunks_sequentially,
};

use crate::chunk_records::{self, ChunkRecordLayout, KvStoredChunk};
use crate::engine::{View, ViewWithEdits};
use crate::error::damaged_object_error;
use crate::last_decoded_spec::LastDecodedSpec;
use crate::layout::encode::encode_dataspace;
use crate::layout::{MetadataField, key};
use crate::objects;
use crate::primitive::RwLock;
use crate::primitive::atomic::{AtomicU64, Ordering};
use crate::session::KvSession;
use crate::state::{KvState, check_kind, check_object_exists, or_invalid};

/// A dataset that is open.
pub struct KvDataset {
    session: Arc<KvSession>,
    id: ObjectId,
    seen: RwLock<SeenDataset>,
    /// How many objects the session had deleted when the dataset was last found to be there.
    found_after_deletions: AtomicU64,
}

/// What is seen of a dataset.
struct SeenDataset {
    spec: Arc<DatasetSpec>,
    /// The state that a reader sees. A writer sees that of the session.
    view: Option<Arc<dyn View>>,
}

impl fmt::Debug for KvDataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KvDataset").field(&self.id).finish()
    }
}

fn dataset_spec(state: &ViewWithEdits<'_>, id: ObjectId, last: &mut LastDecodedSpec) -> Result<Arc<DatasetSpec>> {
    let records = objects::metadata(state, id)?.without_object_info();
    last.get_or_decode(records, |records| {
        match records.decode_object_spec(ObjectKind::Dataset).map_err(damaged_object_error(id))?.body {
            ObjectKindSpec::Dataset(dataset) => Ok(Arc::from(dataset)),
            _ => Err(ModelError::WrongKind { expected: "dataset" }),
        }
    })
}

impl KvDataset {
    /// # Errors
    /// [`ModelError::NoObject`], [`ModelError::WrongKind`].
    pub fn open(session: &Arc<KvSession>, id: ObjectId, last: &mut LastDecodedSpec) -> Result<Self> {
        check_kind(id, ObjectKind::Dataset)?;
        let state = session.state();
        let spec = dataset_spec(&state.view_with_edits(), id, last)?;
        let view = (!session.info.mode.writes()).then(|| state.view.clone());
        let found_after_deletions = AtomicU64::new(state.deleted_object_count);
        drop(state);
        let seen = RwLock::new(SeenDataset { spec, view });
        Ok(KvDataset { session: session.clone(), id, seen, found_after_deletions })
    }

    /// Refuses a dataset that this session has deleted.
    fn check_there(&self) -> Result<()> {
        let deletions = self.session.deleted_object_count();
        if self.found_after_deletions.load(Ordering::Acquire) != deletions {
            self.session.read(|state| check_object_exists(state, self.id))?;
            self.found_after_deletions.store(deletions, Ordering::Release);
        }
        Ok(())
    }

    /// The state that a reader sees of the dataset.
    pub fn pinned_view(&self) -> Option<Arc<dyn View>> {
        self.seen.read().view.clone()
    }

    /// Reads the dataset as it is seen.
    fn read_state<T>(&self, read: impl FnOnce(&ViewWithEdits<'_>, &DatasetSpec) -> Result<T>) -> Result<T> {
        self.session.check_open()?;
        let seen = self.seen.read();
        let (spec, view) = (seen.spec.clone(), seen.view.clone());
        drop(seen);
        match view {
            Some(view) => read(&ViewWithEdits::without_edits(&view), &spec),
            None => read(&self.session.state().view_with_edits(), &spec),
        }
    }

    /// Takes up a state, and says whether the extent is another one.
    ///
    /// # Errors
    /// [`ModelError::NoObject`] if the dataset is gone.
    pub fn advance_to_committed(&self, view: &Arc<dyn View>) -> Result<bool> {
        let mut seen = self.seen.write();
        if seen.view.as_ref().is_none_or(|seen| seen.version() >= view.version()) {
            return Ok(false);
        }
        let snapshot = ViewWithEdits::without_edits(view);
        let mut records = crate::layout::MetadataRecords::default();
        for field in [MetadataField::Dataspace, MetadataField::ExtraProperties] {
            if let Some(value) = snapshot.get(key::metadata(self.id, field).as_bytes())? {
                records.insert(field, value);
            }
        }
        check_object_exists(&snapshot, self.id)?;
        let dataspace = records.dataspace().map_err(damaged_object_error(self.id))?;
        let is_new = dataspace != seen.spec.dataspace;
        if is_new {
            Arc::make_mut(&mut seen.spec).dataspace = dataspace;
        }
        seen.view = Some(view.clone());
        Ok(is_new)
    }

    /// Refuses what cannot be written.
    fn check_write(&self, spec: &DatasetSpec, write: &ChunkWrite<'_>) -> Result<()> {
        let whole = spec.chunk_bytes_at(write.first_coord())?;
        let is_filtered = !spec.filters.is_empty();
        let is_valid = match *write {
            ChunkWrite::Whole { bytes, .. } => is_filtered || bytes.len() as u64 == whole,
            ChunkWrite::ChunksAlongFirstDim { first, chunk_bytes: size, bytes } => {
                let chunks = (bytes.len() as u64).checked_div(whole).unwrap_or_default();
                let last = first.scaled().first().and_then(|at| at.checked_add(chunks.saturating_sub(1)));
                if let Some(last) = last {
                    spec.chunk_bytes_at(&first.with_index(0, last))?;
                }
                !is_filtered && size as u64 == whole && (bytes.len() as u64).is_multiple_of(whole.max(1))
            }
            ChunkWrite::ByteRange { byte_offset: at, bytes, .. } => {
                !is_filtered && at.checked_add(bytes.len() as u64).is_some_and(|end| end <= whole)
            }
            ChunkWrite::ElementBlock { .. } => return Err(ModelError::Unsupported("a block of a chunk in this form")),
        };
        match is_valid {
            true => Ok(()),
            false => {
                Err(ModelError::Invalid(format!("this is no part of a chunk of {whole} bytes that can be written")))
            }
        }
    }

    fn put(&self, state: &mut KvState, spec: &DatasetSpec, write: &ChunkWrite<'_>) -> Result<()> {
        match *write {
            ChunkWrite::Whole { coord, filter_mask, bytes } if !spec.filters.is_empty() => {
                chunk_records::put_filtered_chunk(state, self.id, spec, coord, filter_mask, bytes);
            }
            ChunkWrite::Whole { coord, bytes, .. } => {
                chunk_records::put_unfiltered_chunk(state, self.id, spec, coord, bytes)
            }
            ChunkWrite::ChunksAlongFirstDim { first, chunk_bytes: size, bytes } => {
                let at = first.scaled().first().copied().unwrap_or_default();
                for (at, chunk) in (at..).zip(bytes.chunks(size.max(1))) {
                    chunk_records::put_unfiltered_chunk(state, self.id, spec, &first.with_index(0, at), chunk);
                }
            }
            ChunkWrite::ByteRange { coord, byte_offset: at, bytes, .. } => {
                chunk_records::put_unfiltered_chunk_range(state, self.id, spec, (coord, at), bytes)?;
            }
            ChunkWrite::ElementBlock { .. } => {}
        }
        Ok(())
    }

    fn put_extent(&self, state: &mut KvState, dims: &[u64]) -> Result<()> {
        let mut seen = self.seen.write();
        let mut dataspace = seen.spec.dataspace.clone();
        let (Layout::Chunked(_), Dataspace::Simple(shape)) = (&seen.spec.layout, &mut dataspace) else {
            return Err(ModelError::Invalid("only a chunked dataset changes its extent".into()));
        };
        let is_smaller = dims.iter().zip(shape.dims()).any(|(new, old)| new < old);
        if !shape.try_resize(dims) {
            return Err(ModelError::Invalid(format!("{dims:?} is not within the maximum {:?}", shape.max_dims())));
        }
        if is_smaller {
            chunk_records::delete_chunks_outside(state, self.id, dims)?;
        }
        state.put(&key::metadata(self.id, MetadataField::Dataspace), or_invalid(encode_dataspace(&dataspace))?);
        Arc::make_mut(&mut seen.spec).dataspace = dataspace;
        Ok(())
    }

    fn stored(&self, chunk: KvStoredChunk) -> StoredChunk {
        StoredChunk { coord: chunk.coord, file_offset: None, size: chunk.size, filter_mask: chunk.filter_mask }
    }
}

impl ChunkStore for KvDataset {
    fn id(&self) -> ObjectId {
        self.id
    }

    fn spec(&self) -> Result<Arc<DatasetSpec>> {
        self.session.check_open()?;
        self.check_there()?;
        Ok(self.seen.read().spec.clone())
    }

    fn locate(&self, coord: &ChunkCoord) -> Result<Option<StoredChunk>> {
        self.read_state(|state, spec| {
            let found = chunk_records::find_chunk(state, self.id, &ChunkRecordLayout::of(spec), coord)?;
            Ok(found.map(|chunk| self.stored(chunk)))
        })
    }

    fn for_each_chunk(&self, each: &mut dyn FnMut(StoredChunk) -> bool) -> Result<()> {
        self.read_state(|state, spec| {
            chunk_records::for_each_stored_chunk(state, self.id, &ChunkRecordLayout::of(spec), &mut |chunk| {
                each(self.stored(chunk))
            })
        })
    }

    fn read(&self, chunk: &StoredChunk, at: u64, into: &mut [u8]) -> Result<()> {
        self.read_state(|state, spec| {
            chunk_records::read_stored_chunk_range(state, self.id, spec, (&chunk.coord, at), into)
        })
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

    fn map(&self, chunk: &StoredChunk, len: u64) -> Result<Option<FileBackedBytes>> {
        self.session.check_open()?;
        let seen = self.seen.read();
        let key = ChunkRecordLayout::of(&seen.spec).single_piece_key(self.id, &chunk.coord);
        let (Some(view), Some(key)) = (&seen.view, key) else { return Ok(None) };
        Ok(view.share_value_prefix(key.as_bytes(), len)?)
    }

    fn write(&self, batch: &ChunkBatch<'_>) -> Result<()> {
        if !batch.has_changes() && !self.session.info.mode.writes() {
            return self.session.check_open();
        }
        if batch.has_changes() {
            self.session.change(|state| {
                state.check_object_exists(self.id)?;
                batch.publish_after.iter().try_for_each(|earlier| state.check_object_exists(*earlier))?;
                let spec = self.seen.read().spec.clone();
                batch.writes.iter().try_for_each(|write| self.check_write(&spec, write))?;
                batch.writes.iter().try_for_each(|write| self.put(state, &spec, write))?;
                batch.extent.map_or(Ok(()), |dims| self.put_extent(state, dims))
            })?;
        }
        batch.publish.map_or(Ok(()), |publish| self.session.commit(publish))
    }

    fn refresh(&self) -> Result<bool> {
        if self.session.info.mode != h5live_model::Mode::SwmrRead {
            return self.session.read(|state| check_object_exists(state, self.id)).map(|()| false);
        }
        let view = self.session.refresh_view()?;
        self.advance_to_committed(&view)
    }
}
