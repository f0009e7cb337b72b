//! The chunks of one dataset.

mod dropped;
mod leftovers;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use h5live_model::{
    AllocationLimit, ChunkBatch, ChunkBytes, ChunkCoord, ChunkReadRequest, ChunkSink, ChunkStore, ChunkWrite,
    DatasetSpec, Dataspace, Error as ModelError, FileBackedBytes, Layout, Mode, ObjectId, ObjectKind, Result,
    StoredChunk, read_block_by_runs, read_chunks_sequentially,
};
use parking_lot::{Mutex, RwLock};
use rayon::prelude::*;

use crate::chunk_codec::ChunkCodec;
use crate::decoded_chunk_cache::ChunkLookup;
use crate::engine::{FetchedObject, ObjectEngine, ObjectPut, Revalidation};
use crate::error::{damaged_object_error, invalid_or_unsupported_error};
use crate::holders::VarLenHolder;
use crate::layout::{AclRight, ObjectDocument, StoredTokenNumbers, chunk_of_key_suffix, kind};
use crate::linked_hdf5_chunks::LinkedHdf5Chunks;
use crate::session::HsdsSession;
use crate::small_chunk_read_ahead::MAX_SMALL_CHUNK_BYTES;

/// How often a chunk is read that this session stores anew again and again.
const MAX_READ_ROUNDS: u32 = 64;
/// Most threads that read chunks of a native file at a time: each waits for requests.
const MAX_NATIVE_READERS: usize = 32;

/// A dataset that is open.
pub struct HsdsDataset {
    session: Arc<HsdsSession>,
    id: ObjectId,
    form: ChunkCodec,
    /// Over how many folders the chunks are spread.
    partitions: u64,
    /// Chunks that lie in a native file.
    native: Option<LinkedHdf5Chunks>,
    /// Whether its only chunk may be read before it is asked for.
    is_read_ahead: bool,
    seen: RwLock<Arc<DatasetSpec>>,
}

/// A chunk, and the numbers of what is wanted of it.
type WantedChunk<'a> = (&'a ChunkCoord, Vec<usize>);

/// A chunk that is about to be written.
struct EncodedChunk {
    coord: ChunkCoord,
    bytes: Vec<u8>,
    /// If elements have variable-length parts: the stored elements and the tokens in them.
    tokens: Option<(Vec<u8>, StoredTokenNumbers)>,
}

/// Whether the extent lies within one chunk.
fn has_one_chunk(spec: &DatasetSpec) -> bool {
    spec.grid_or_single_chunk()
        .is_some_and(|grid| grid.chunk_counts(spec.dataspace.dims()).iter().all(|count| *count == 1))
}

impl fmt::Debug for HsdsDataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HsdsDataset").field(&self.id).finish()
    }
}

impl HsdsDataset {
    /// # Errors
    /// [`ModelError::NoObject`], [`ModelError::WrongKind`], [`ModelError::Store`].
    pub fn open(session: &Arc<HsdsSession>, id: ObjectId) -> Result<Self> {
        if kind(id) != Some(ObjectKind::Dataset) {
            session.document(id)?;
            return Err(ModelError::WrongKind { expected: "dataset" });
        }
        let document = session.document(id)?;
        let spec = session.dataset_spec(&document)?;
        let open = |table| Ok(Arc::new(HsdsDataset::open(session, table)?) as Arc<dyn ChunkStore>);
        let native = LinkedHdf5Chunks::of_dataset(session, &document, &spec, &open)?;
        let form = session.chunk_codec(&document, &spec);
        let is_small = has_one_chunk(&spec) && form.model_chunk_size() <= MAX_SMALL_CHUNK_BYTES;
        let is_read_ahead = is_small && native.is_none() && session.session_info.mode == Mode::Read;
        let (seen, partitions) = (RwLock::new(Arc::new(spec)), document.chunk_partition_count());
        // An earlier handle may have looked chunks up that others have written since.
        session.decoded_chunks.invalidate_dataset(id);
        let dataset = HsdsDataset { session: session.clone(), id, form, partitions, native, is_read_ahead, seen };
        if is_read_ahead {
            session.chunks_ahead.record_opened_dataset(id, dataset.key(&dataset.origin()));
        }
        Ok(dataset)
    }

    fn key(&self, coord: &ChunkCoord) -> String {
        self.session.domain.chunk_key(self.id, coord, self.partitions)
    }

    /// The version of a chunk of variable-length elements, which is to be known before it is read.
    fn version(&self, coord: &ChunkCoord) -> u32 {
        match self.form.element_codec.has_variable_parts() {
            true => self.session.varlen_tokens.version(&VarLenHolder::Chunk(self.id, coord.clone())),
            false => 0,
        }
    }

    /// The elements of a chunk that was read when it had this version, as they cross the seam. `None` if this session has stored it
    /// anew meanwhile: it is to be read again.
    fn decode(&self, coord: &ChunkCoord, seen: u32, found: &FetchedObject) -> Result<Option<Vec<u8>>> {
        let key = self.key(coord);
        let stored = self.form.decompress(&key, &found.bytes)?;
        let holder = match self.form.element_codec.has_variable_parts() {
            true => self.session.varlen_tokens.register_holder_elements_if_current(
                VarLenHolder::Chunk(self.id, coord.clone()),
                seen,
                &stored,
            ),
            false => Some((0, 0)),
        };
        holder.map(|holder| self.form.to_model_elements(&key, &stored, holder)).transpose()
    }

    /// Reads a chunk that is an object; `None` if it is not there.
    fn fetch(&self, coord: &ChunkCoord) -> Result<Option<Arc<Vec<u8>>>> {
        let (engine, key) = (&self.session.engine, self.key(coord));
        for _ in 0..MAX_READ_ROUNDS {
            let seen = self.version(coord);
            let found = match self.is_read_ahead && *coord == self.origin() {
                true => self.session.chunks_ahead.take_or_read_ahead(engine, self.id, &key)?,
                false => engine.get(&key)?,
            };
            let Some(found) = found else { return Ok(None) };
            if let Some(elements) = self.decode(coord, seen, &found)? {
                return Ok(Some(Arc::new(elements)));
            }
        }
        Err(ModelError::Moved)
    }

    /// A chunk; `None` if nobody wrote it.
    fn load(&self, coord: &ChunkCoord) -> Result<Option<Arc<Vec<u8>>>> {
        self.session.check_open()?;
        if self.is_dropped(coord) {
            return Ok(None);
        }
        let found = match self.session.decoded_chunks.find(self.id, coord) {
            ChunkLookup::Hit(chunk) => return Ok(chunk),
            ChunkLookup::MissAtChangeCount(found) => found,
        };
        let chunk = match &self.native {
            Some(native) => native.read_decoded_chunk(&self.session, self.spec()?.as_ref(), coord)?.map(Arc::new),
            None => self.fetch(coord)?,
        };
        if chunk.is_none() {
            self.check_holes(&[coord])?;
        }
        self.session.decoded_chunks.insert_if_unchanged(self.id, coord, chunk.clone(), found);
        Ok(chunk)
    }

    /// Refuses chunks that are not there because the dataset was deleted, or became smaller, since it was opened: they have
    /// no fill values.
    fn check_holes(&self, coords: &[&ChunkCoord]) -> Result<()> {
        if self.session.session_info.mode.writes() || self.native.is_some() || coords.is_empty() {
            return Ok(());
        }
        let key = self.session.domain.document_key(self.id);
        let tag = self.session.state().cached_tagged_document(self.id).and_then(|stored| stored.tag.clone());
        let newer = match tag.map(|tag| self.session.engine.revalidate(&key, &tag)).transpose()? {
            Some(Revalidation::Same) => return Ok(()),
            Some(Revalidation::Gone) => return Err(ModelError::NoObject(self.id)),
            Some(Revalidation::Newer(found)) => found,
            None => self.session.engine.get(&key)?.ok_or(ModelError::NoObject(self.id))?,
        };
        let document =
            ObjectDocument::parse(self.session.domain, self.id, &newer.bytes).map_err(damaged_object_error(&key))?;
        let spec = document.stored_dataset_spec().map_err(damaged_object_error(&key))?.spec;
        let counts =
            spec.grid_or_single_chunk().map(|grid| grid.chunk_counts(spec.dataspace.dims())).unwrap_or_default();
        let is_inside = |coord: &&ChunkCoord| coord.scaled().iter().zip(&counts).all(|(at, count)| at < count);
        if coords.iter().all(is_inside) { Ok(()) } else { Err(ModelError::Moved) }
    }

    /// Fetches chunks in one wave, and gives out what is wanted of them.
    fn read_wave(&self, wave: &[WantedChunk<'_>], wanted: &[ChunkReadRequest<'_>], each: &ChunkSink<'_>) -> Result<()> {
        let (dropped, stored): (Vec<&WantedChunk<'_>>, Vec<_>) =
            wave.iter().partition(|(coord, _)| self.is_dropped(coord));
        let no_chunk = |(_, numbers): &WantedChunk<'_>| numbers.iter().try_for_each(|number| each(*number, None));
        dropped.into_iter().try_for_each(no_chunk)?;
        let keys: Vec<String> = stored.iter().map(|(coord, _)| self.key(coord)).collect();
        let seen: Vec<u32> = stored.iter().map(|(coord, _)| self.version(coord)).collect();
        let holes = Mutex::new(Vec::new());
        self.session.engine.get_many(&keys, &|place, found| {
            let Some((coord, numbers)) = stored.get(place) else { return Ok(()) };
            let Some(found) = found else {
                holes.lock().push(place);
                return Ok(());
            };
            let elements = match self.decode(coord, seen.get(place).copied().unwrap_or_default(), &found)? {
                Some(elements) => Arc::new(elements),
                None => self.fetch(coord)?.ok_or(ModelError::Moved)?,
            };
            let chunk = self.stored((*coord).clone());
            numbers.iter().try_for_each(|number| {
                let part = wanted.get(*number).and_then(|read| read.byte_range.clone());
                let bytes = match part {
                    None => Some(elements.as_slice()),
                    Some(part) => elements.get(part.start as usize..(part.end as usize).min(elements.len())),
                };
                each(*number, Some(ChunkBytes { chunk: &chunk, bytes: bytes.unwrap_or_default() }))
            })
        })?;
        let holes: Vec<&WantedChunk<'_>> =
            holes.into_inner().into_iter().filter_map(|place| stored.get(place)).copied().collect();
        self.check_holes(&holes.iter().map(|(coord, _)| *coord).collect::<Vec<_>>())?;
        holes.into_iter().try_for_each(no_chunk)
    }

    /// The first chunk.
    fn origin(&self) -> ChunkCoord {
        ChunkCoord::origin(self.seen.read().dataspace.rank())
    }

    /// Fetches chunks that lie in a native file, many at a time.
    fn read_native_chunks(&self, wanted: &[ChunkReadRequest<'_>], budget: usize, each: &ChunkSink<'_>) -> Result<()> {
        let fitting = (budget as u64).checked_div(self.form.model_chunk_size()).unwrap_or(1);
        let readers = usize::try_from(fitting).unwrap_or(usize::MAX).clamp(1, MAX_NATIVE_READERS).min(wanted.len());
        let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
        let work = || {
            while failed.lock().is_none() {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(read) = wanted.get(number) else { break };
                let sink = |_, found: Option<ChunkBytes<'_>>| each(number, found);
                if let Err(error) = read_chunks_sequentially(self, std::slice::from_ref(read), budget, &sink) {
                    failed.lock().get_or_insert(error);
                }
            }
        };
        thread::scope(|scope| {
            (1..readers).for_each(|_| drop(scope.spawn(work)));
            work();
        });
        failed.into_inner().map_or(Ok(()), Err)
    }

    /// Takes up what was committed, and says whether the extent is another one.
    ///
    /// # Errors
    /// [`ModelError::NoObject`] if the dataset is gone.
    pub fn advance_to_committed(&self) -> Result<bool> {
        self.session.decoded_chunks.invalidate_dataset(self.id);
        self.session.reload_if_changed(self.id)?;
        let spec = self.session.dataset_spec(&*self.session.document(self.id)?)?;
        let mut seen = self.seen.write();
        let is_new = spec.dataspace != seen.dataspace;
        *seen = Arc::new(spec);
        Ok(is_new)
    }

    /// Refuses what cannot be written.
    fn check_write(&self, spec: &DatasetSpec, write: &ChunkWrite<'_>) -> Result<()> {
        if matches!(write, ChunkWrite::ByteRange { .. } | ChunkWrite::ElementBlock { .. }) {
            return Err(ModelError::Unsupported("a part of a chunk in an object store"));
        }
        let whole = spec.chunk_bytes_at(write.first_coord())?;
        let is_valid = match *write {
            ChunkWrite::Whole { bytes, filter_mask, .. } => bytes.len() as u64 == whole && filter_mask == 0,
            ChunkWrite::ChunksAlongFirstDim { first, chunk_bytes: size, bytes } => {
                let chunks = (bytes.len() as u64).checked_div(whole).unwrap_or_default();
                let last = first.scaled().first().and_then(|at| at.checked_add(chunks.saturating_sub(1)));
                if let Some(last) = last {
                    spec.chunk_bytes_at(&first.with_index(0, last))?;
                }
                size as u64 == whole && (bytes.len() as u64).is_multiple_of(whole.max(1))
            }
            ChunkWrite::ByteRange { .. } | ChunkWrite::ElementBlock { .. } => false,
        };
        let most = self.session.session_info.capabilities.limits.max_chunk_bytes;
        match is_valid && whole <= most {
            true => Ok(()),
            false => Err(ModelError::Invalid(format!("this is no chunk of {whole} bytes that can be written"))),
        }
    }

    /// The chunks that a batch writes, the last one of each place.
    fn chunks_of<'a>(&self, writes: &[ChunkWrite<'a>]) -> Vec<(ChunkCoord, &'a [u8])> {
        let mut chunks: Vec<(ChunkCoord, &[u8])> = Vec::new();
        for write in writes {
            match *write {
                ChunkWrite::ChunksAlongFirstDim { first, chunk_bytes: size, bytes } => {
                    let at = first.scaled().first().copied().unwrap_or_default();
                    let row = (at..).zip(bytes.chunks(size.max(1)));
                    chunks.extend(row.map(|(at, bytes)| (first.with_index(0, at), bytes)));
                }
                _ => {
                    if let ChunkWrite::Whole { coord, bytes, .. } = *write {
                        chunks.push((coord.clone(), bytes));
                    }
                }
            }
        }
        let last: HashMap<ChunkCoord, usize> =
            chunks.iter().enumerate().map(|(at, (coord, _))| (coord.clone(), at)).collect();
        let numbered = chunks.into_iter().enumerate();
        numbered.filter(|(at, (coord, _))| last.get(coord) == Some(at)).map(|(_, chunk)| chunk).collect()
    }

    fn encode(&self, coord: &ChunkCoord, elements: &[u8]) -> Result<EncodedChunk> {
        let (stored, tokens) = self.session.pack(&self.form.element_codec, elements)?;
        let tokens = self.form.element_codec.has_variable_parts().then(|| (stored.clone(), tokens));
        Ok(EncodedChunk { coord: coord.clone(), bytes: self.form.compress(stored)?, tokens })
    }

    fn put_chunks(&self, writes: &[ChunkWrite<'_>]) -> Result<()> {
        let chunks = self.chunks_of(writes);
        let encoded: Vec<EncodedChunk> = match chunks.as_slice() {
            [(coord, bytes)] => vec![self.encode(coord, bytes)?],
            _ => chunks.par_iter().map(|(coord, bytes)| self.encode(coord, bytes)).collect::<Result<_>>()?,
        };
        let (mut puts, mut written) = (Vec::new(), Vec::new());
        let holder = |coord: &ChunkCoord| VarLenHolder::Chunk(self.id, coord.clone());
        for EncodedChunk { coord, bytes, tokens } in encoded {
            puts.push(ObjectPut { key: self.key(&coord), bytes });
            if let Some((stored, tokens)) = tokens {
                self.session.varlen_tokens.announce_storing(holder(&coord), &stored, tokens.new_element_numbers);
            }
            written.push(coord);
        }
        // A commit of another thread that comes from now on does not delete them any more.
        let dropped = self.take_dropped(&written);
        let put = self.session.put_or_queue_chunks(puts);
        self.session.decoded_chunks.invalidate_dataset(self.id);
        if let Err(error) = put {
            self.add_dropped(dropped);
            return Err(error);
        }
        if self.form.element_codec.has_variable_parts() {
            written.iter().for_each(|coord| self.session.varlen_tokens.note_stored(&holder(coord)));
        }
        self.note_written_beyond(written.iter());
        Ok(())
    }

    /// The description with another extent.
    fn with_extent(&self, spec: &DatasetSpec, dims: &[u64]) -> Result<DatasetSpec> {
        let mut resized = spec.clone();
        let (Layout::Chunked(_), Dataspace::Simple(shape)) = (&spec.layout, &mut resized.dataspace) else {
            return Err(ModelError::Invalid("only a chunked dataset changes its extent".into()));
        };
        if !shape.try_resize(dims) {
            return Err(ModelError::Invalid(format!("{dims:?} is not within the maximum {:?}", shape.max_dims())));
        }
        Ok(resized)
    }

    fn stored_coords(&self) -> Result<BTreeSet<ChunkCoord>> {
        let rank = self.seen.read().dataspace.rank();
        let folder = self.session.domain.chunk_key_prefix(self.id);
        let listed = self.session.engine.list(&folder)?;
        let coord = |key: &str| chunk_of_key_suffix(key.strip_prefix(&folder)?, rank);
        // In the folder of another partition, nobody finds it.
        let found = listed.iter().filter_map(|object| coord(&object.key).filter(|coord| self.key(coord) == object.key));
        Ok(found.collect())
    }

    fn stored(&self, coord: ChunkCoord) -> StoredChunk {
        StoredChunk { coord, file_offset: None, size: self.form.model_chunk_size(), filter_mask: 0 }
    }

    /// Changes the dataset as a batch says, without its publication.
    fn change(&self, batch: &ChunkBatch<'_>) -> Result<()> {
        self.session.check_writable()?;
        self.session.check_right(Some(&*self.session.document(self.id)?), AclRight::Update)?;
        for earlier in batch.publish_after {
            self.session.document(*earlier)?;
        }
        if self.native.is_some() {
            return Err(ModelError::Unsupported("writing chunks that lie in an HDF5 file"));
        }
        let spec = self.seen.read().clone();
        batch.writes.iter().try_for_each(|write| self.check_write(&spec, write))?;
        let resized = batch.extent.map(|dims| self.with_extent(&spec, dims)).transpose()?;
        if let Some(resized) = &resized {
            self.clear_leftovers(resized, batch.writes)?;
        }
        if !batch.writes.is_empty() {
            self.put_chunks(batch.writes)?;
        }
        let dims = spec.dataspace.dims();
        let is_smaller = batch.extent.is_some_and(|new| new.iter().zip(dims).any(|(new, old)| new < old));
        let dropped = match &resized {
            Some(resized) if is_smaller => self.chunks_outside(resized)?,
            _ => BTreeSet::new(),
        };
        let extent = |document: &mut ObjectDocument| match &resized {
            Some(resized) => document.set_extent(resized).map_err(invalid_or_unsupported_error),
            None => Ok(()),
        };
        self.session.change_document(self.id, extent)?;
        self.add_dropped(dropped);
        if !batch.publish_after.is_empty() {
            self.session.state.write().commit_prerequisites.entry(self.id).or_default().extend(batch.publish_after);
        }
        if let Some(resized) = resized {
            self.forget_written_within(&resized);
            *self.seen.write() = Arc::new(resized);
            self.session.decoded_chunks.invalidate_dataset(self.id);
        }
        Ok(())
    }
}

impl ChunkStore for HsdsDataset {
    fn id(&self) -> ObjectId {
        self.id
    }

    fn spec(&self) -> Result<Arc<DatasetSpec>> {
        self.session.check_open()?;
        if self.session.state().is_deleted(self.id) {
            return Err(ModelError::NoObject(self.id));
        }
        Ok(self.seen.read().clone())
    }

    fn locate(&self, coord: &ChunkCoord) -> Result<Option<StoredChunk>> {
        if self.seen.read().chunk_bytes_at(coord).is_err() {
            return self.session.check_open().map(|()| None);
        }
        Ok(self.load(coord)?.map(|_| self.stored(coord.clone())))
    }

    fn for_each_chunk(&self, each: &mut dyn FnMut(StoredChunk) -> bool) -> Result<()> {
        self.session.check_open()?;
        if self.native.is_none() && has_one_chunk(&self.seen.read()) {
            // What is listed is often read next: it is read already.
            if let Some(chunk) = self.locate(&self.origin())? {
                each(chunk);
            }
            return Ok(());
        }
        let coords = match &self.native {
            Some(native) => native.coords(self.spec()?.as_ref())?,
            None => self.stored_coords()?,
        };
        for coord in coords {
            if !self.is_dropped(&coord) && !each(self.stored(coord)) {
                break;
            }
        }
        Ok(())
    }

    fn read(&self, chunk: &StoredChunk, at: u64, into: &mut [u8]) -> Result<()> {
        let loaded = self.load(&chunk.coord)?.ok_or(ModelError::Moved)?;
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let found = loaded.get(start..).unwrap_or_default();
        let (filled, rest) = into.split_at_mut(found.len().min(into.len()));
        filled.copy_from_slice(found.get(..filled.len()).unwrap_or_default());
        rest.fill(0);
        Ok(())
    }

    fn read_block(&self, chunk: &StoredChunk, start: &[u64], count: &[u64], into: &mut [u8]) -> Result<()> {
        read_block_by_runs(self, chunk, (start, count), into)
    }

    fn read_many(&self, wanted: &[ChunkReadRequest<'_>], budget: usize, each: &ChunkSink<'_>) -> Result<()> {
        self.session.check_open()?;
        if self.native.is_some() {
            return self.read_native_chunks(wanted, budget, each);
        }
        let chunk_bytes = self.form.model_chunk_size();
        let limit = AllocationLimit::new(budget as u64);
        for read in wanted {
            limit.check(read.byte_range.as_ref().map_or(chunk_bytes, |part| part.end.saturating_sub(part.start)))?;
        }
        // One that was read just now is not fetched again, unless others may have written it since.
        if wanted.len() == 1 && self.session.session_info.mode != Mode::SwmrRead {
            return read_chunks_sequentially(self, wanted, budget, each);
        }
        // A chunk is fetched once for all of its parts.
        let (mut places, mut chunks): (HashMap<&ChunkCoord, usize>, Vec<WantedChunk<'_>>) = Default::default();
        for (number, read) in wanted.iter().enumerate() {
            let place = *places.entry(read.coord).or_insert_with(|| {
                chunks.push((read.coord, Vec::new()));
                chunks.len() - 1
            });
            chunks[place].1.push(number);
        }
        let at_once = (budget as u64).checked_div(chunk_bytes).and_then(|n| usize::try_from(n).ok());
        let mut waves = chunks.chunks(at_once.unwrap_or(usize::MAX).max(1));
        waves.try_for_each(|wave| self.read_wave(wave, wanted, each))
    }

    fn next_data(&self, chunk: &StoredChunk, at: u64) -> Result<Option<u64>> {
        self.session.check_open()?;
        Ok(Some(at).filter(|at| *at < chunk.size))
    }

    fn map(&self, _: &StoredChunk, _: u64) -> Result<Option<FileBackedBytes>> {
        self.session.check_open().map(|()| None)
    }

    fn write(&self, batch: &ChunkBatch<'_>) -> Result<()> {
        if !batch.has_changes() && !self.session.session_info.mode.writes() {
            return self.session.check_open();
        }
        if batch.has_changes() {
            self.change(batch)?;
        }
        batch.publish.map_or(Ok(()), |publish| self.session.commit_objects(&[self.id], publish))
    }

    fn refresh(&self) -> Result<bool> {
        if self.session.session_info.mode != Mode::SwmrRead {
            self.session.document(self.id)?;
            return Ok(false);
        }
        self.advance_to_committed()
    }
}

impl HsdsSession {
    /// Takes up what was committed of an object, and says whether that is something else.
    ///
    /// # Errors
    /// [`ModelError::NoObject`] if it is gone, [`ModelError::Store`].
    pub fn reload_if_changed(&self, id: ObjectId) -> Result<bool> {
        use crate::state::TaggedDocument;

        let key = self.domain.document_key(id);
        let tag = self.state().cached_tagged_document(id).and_then(|stored| stored.tag.clone());
        let Some(tag) = tag else { return self.document(id).map(|_| true) };
        match self.engine.revalidate(&key, &tag)? {
            Revalidation::Same => Ok(false),
            Revalidation::Gone => Err(ModelError::NoObject(id)),
            Revalidation::Newer(found) => {
                let document =
                    ObjectDocument::parse(self.domain, id, &found.bytes).map_err(damaged_object_error(&key))?;
                self.state
                    .write()
                    .replace_with_fetched(TaggedDocument { document: Arc::new(document), tag: Some(found.tag) });
                Ok(true)
            }
        }
    }
}
