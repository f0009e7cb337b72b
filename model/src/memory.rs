//! The reference store: maps and vectors, with which every other store is compared.
//!
//! A [`MemoryStore`] is one session on a file that lives as long as a session does. One session writes;
//! [`MemoryStore::reader`] opens further ones, which see extents as of the writer's last flush and their own last
//! refresh, just as another process sees a live file.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use smallvec::SmallVec;

use crate::{
    Attribute, ChunkCoord, Chunks, DatasetSpec, Dataspace, Datatype, Error, FillValue, Layout, Link, LinkTarget, Name,
    ObjectId, ObjectKind, ObjectSpec, Objects, ReferenceKind, Referent, ReferentPart, Result, StoredChunk,
};

type Dims = SmallVec<[u64; 4]>;

const ROOT: ObjectId = ObjectId(1);

/// A session on a file in memory.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    session: Arc<Session>,
}

#[derive(Debug)]
struct Session {
    file: Arc<MemoryFile>,
    writable: bool,
    closed: AtomicBool,
    datasets: Mutex<BTreeMap<ObjectId, Arc<MemoryChunks>>>,
}

#[derive(Debug, Default)]
struct MemoryFile {
    state: Mutex<State>,
    flushed: Condvar,
}

#[derive(Debug)]
struct State {
    objects: BTreeMap<ObjectId, Object>,
    heap: Vec<Vec<u8>>,
    next: u128,
    /// Number of flushes so far: what a waiting reader looks at.
    generation: u64,
    writer: bool,
}

impl Default for State {
    fn default() -> Self {
        let root = Object { attributes: BTreeMap::new(), hard_links: 1, body: Body::Group(BTreeMap::new()) };
        State { objects: [(ROOT, root)].into(), heap: Vec::new(), next: 2, generation: 0, writer: true }
    }
}

#[derive(Debug)]
struct Object {
    attributes: BTreeMap<Name, Attribute>,
    hard_links: u64,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Group(BTreeMap<Name, Link>),
    Dataset(Box<Stored>),
    Datatype(Datatype),
}

#[derive(Debug)]
struct Stored {
    /// With the extent as the writer knows it.
    spec: Arc<DatasetSpec>,
    /// The extent as of the last flush.
    published: Dims,
    chunks: BTreeMap<ChunkCoord, (u32, Vec<u8>)>,
}

#[derive(Debug)]
struct MemoryChunks {
    session: std::sync::Weak<Session>,
    file: Arc<MemoryFile>,
    writable: bool,
    id: ObjectId,
    /// The extent as of the last refresh; only readers look at it.
    seen: Mutex<Dims>,
    generation: AtomicU64,
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::new()
    }
}

impl MemoryStore {
    /// A new, empty file, open for writing.
    pub fn new() -> Self {
        MemoryStore::open(Arc::default(), true)
    }

    /// A further session on the same file, for reading.
    pub fn reader(&self) -> Self {
        MemoryStore::open(self.session.file.clone(), false)
    }

    /// A new writing session on the same file, after this one was closed.
    ///
    /// # Errors
    /// [`Error::Unsupported`] while another session writes.
    pub fn reopen(&self) -> Result<Self> {
        let mut state = self.session.file.state.lock();
        if state.writer {
            return Err(Error::Unsupported("a second writer"));
        }
        state.writer = true;
        drop(state);
        Ok(MemoryStore::open(self.session.file.clone(), true))
    }

    fn open(file: Arc<MemoryFile>, writable: bool) -> Self {
        let session = Session { file, writable, closed: AtomicBool::new(false), datasets: Mutex::default() };
        MemoryStore { session: Arc::new(session) }
    }

    fn read(&self) -> Result<MutexGuard<'_, State>> {
        match self.session.closed.load(Ordering::Acquire) {
            true => Err(Error::Closed),
            false => Ok(self.session.file.state.lock()),
        }
    }

    fn write(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.read()?;
        if self.session.writable { Ok(state) } else { Err(Error::ReadOnly) }
    }
}

impl State {
    fn object(&self, id: ObjectId) -> Result<&Object> {
        self.objects.get(&id).ok_or(Error::NoObject(id))
    }

    fn object_mut(&mut self, id: ObjectId) -> Result<&mut Object> {
        self.objects.get_mut(&id).ok_or(Error::NoObject(id))
    }

    fn links(&self, id: ObjectId) -> Result<&BTreeMap<Name, Link>> {
        match &self.object(id)?.body {
            Body::Group(links) => Ok(links),
            _ => Err(Error::WrongKind { expected: "group" }),
        }
    }

    fn links_mut(&mut self, id: ObjectId) -> Result<&mut BTreeMap<Name, Link>> {
        match &mut self.object_mut(id)?.body {
            Body::Group(links) => Ok(links),
            _ => Err(Error::WrongKind { expected: "group" }),
        }
    }

    fn stored(&self, id: ObjectId) -> Result<&Stored> {
        match &self.object(id)?.body {
            Body::Dataset(stored) => Ok(stored),
            _ => Err(Error::WrongKind { expected: "dataset" }),
        }
    }

    fn stored_mut(&mut self, id: ObjectId) -> Result<&mut Stored> {
        match &mut self.object_mut(id)?.body {
            Body::Dataset(stored) => Ok(stored),
            _ => Err(Error::WrongKind { expected: "dataset" }),
        }
    }

    fn insert_link(&mut self, group: ObjectId, name: &Name, target: &LinkTarget) -> Result<()> {
        check_link_name(name)?;
        let links = self.links_mut(group)?;
        if links.contains_key(name) {
            return Err(Error::Exists(name.clone()));
        }
        links.insert(name.clone(), Link { name: name.clone(), target: target.clone(), creation_order: None });
        Ok(())
    }

    /// Takes one hard link from each of `ids`, and deletes what is left without any, with all below it.
    fn release(&mut self, mut ids: Vec<ObjectId>) {
        while let Some(id) = ids.pop() {
            let Some(object) = self.objects.get_mut(&id) else { continue };
            object.hard_links = object.hard_links.saturating_sub(1);
            if object.hard_links > 0 {
                continue;
            }
            if let Some(Object { body: Body::Group(links), .. }) = self.objects.remove(&id) {
                ids.extend(links.into_values().filter_map(|link| match link.target {
                    LinkTarget::Hard(id) => Some(id),
                    _ => None,
                }));
            }
        }
    }
}

fn check_link_name(name: &Name) -> Result<()> {
    match name.as_bytes() {
        b"" | b"." => Err(Error::Invalid(format!("{name:?} is no name for a link"))),
        bytes if bytes.contains(&b'/') || bytes.contains(&0) => {
            Err(Error::Invalid(format!("{name:?} has a slash or a NUL in it")))
        }
        _ => Ok(()),
    }
}

fn check_dataset(spec: &DatasetSpec) -> Result<()> {
    let invalid = |what: &str| Err(Error::Invalid(what.to_owned()));
    match (&spec.layout, &spec.dataspace) {
        (Layout::External, _) => return Err(Error::Unsupported("external storage")),
        (Layout::Chunked(_), Dataspace::Null | Dataspace::Scalar) => {
            return invalid("only a dataset with dimensions can be chunked");
        }
        (Layout::Chunked(_), _) if spec.grid().is_none() => {
            return invalid("chunks must have the rank of the dataset, and no dimension of zero");
        }
        (Layout::Chunked(chunk), space) if chunk.iter().zip(space.max()).any(|(chunk, max)| chunk > max) => {
            return invalid("chunks must not be larger than the dataset can become");
        }
        (Layout::Chunked(_) | Layout::Virtual(_), _) => {}
        (_, Dataspace::Simple(shape)) if shape.max() != shape.dims() => {
            return invalid("a dataset that can grow must be chunked");
        }
        _ if !spec.filters.is_empty() => return invalid("filters need chunks"),
        _ => {}
    }
    match &spec.fill.value {
        FillValue::Value(bytes) if bytes.len() as u64 != u64::from(spec.datatype.size()) => {
            invalid("the fill value is not of the size of an element")
        }
        _ if spec.datatype.size() == 0 => invalid("elements have no bytes"),
        _ => Ok(()),
    }
}

impl Objects for MemoryStore {
    fn root(&self) -> ObjectId {
        ROOT
    }

    fn kind(&self, id: ObjectId) -> Result<ObjectKind> {
        Ok(match self.read()?.object(id)?.body {
            Body::Group(_) => ObjectKind::Group,
            Body::Dataset(_) => ObjectKind::Dataset,
            Body::Datatype(_) => ObjectKind::Datatype,
        })
    }

    fn create(&self, parent: ObjectId, name: &Name, spec: &ObjectSpec) -> Result<ObjectId> {
        let mut state = self.write()?;
        let body = match spec {
            ObjectSpec::Group => Body::Group(BTreeMap::new()),
            ObjectSpec::Datatype(datatype) => Body::Datatype(datatype.clone()),
            ObjectSpec::Dataset(spec) => {
                check_dataset(spec)?;
                let published = spec.dataspace.dims().into();
                Body::Dataset(Box::new(Stored { spec: (**spec).clone().into(), published, chunks: BTreeMap::new() }))
            }
        };
        let id = ObjectId(state.next);
        state.insert_link(parent, name, &LinkTarget::Hard(id))?;
        state.next += 1;
        state.objects.insert(id, Object { attributes: BTreeMap::new(), hard_links: 1, body });
        Ok(id)
    }

    fn link(&self, group: ObjectId, name: &Name) -> Result<Option<Link>> {
        Ok(self.read()?.links(group)?.get(name).cloned())
    }

    fn for_each_link(&self, group: ObjectId, each: &mut dyn FnMut(Link) -> bool) -> Result<()> {
        let links: Vec<_> = self.read()?.links(group)?.values().cloned().collect();
        links.into_iter().all(each);
        Ok(())
    }

    fn add_link(&self, group: ObjectId, name: &Name, target: &LinkTarget) -> Result<()> {
        let mut state = self.write()?;
        if let LinkTarget::Hard(id) = target {
            state.object(*id)?;
        }
        state.insert_link(group, name, target)?;
        if let LinkTarget::Hard(id) = target {
            state.object_mut(*id)?.hard_links += 1;
        }
        Ok(())
    }

    fn remove_link(&self, group: ObjectId, name: &Name) -> Result<()> {
        let mut state = self.write()?;
        let link = state.links_mut(group)?.remove(name).ok_or_else(|| Error::NotFound(name.clone()))?;
        if let LinkTarget::Hard(id) = link.target {
            state.release(vec![id]);
        }
        Ok(())
    }

    fn attribute(&self, id: ObjectId, name: &Name) -> Result<Option<Attribute>> {
        Ok(self.read()?.object(id)?.attributes.get(name).cloned())
    }

    fn attribute_names(&self, id: ObjectId) -> Result<Vec<Name>> {
        Ok(self.read()?.object(id)?.attributes.keys().cloned().collect())
    }

    fn set_attribute(&self, id: ObjectId, attribute: &Attribute) -> Result<()> {
        let mut state = self.write()?;
        let size = u64::from(attribute.datatype.size());
        let bytes = attribute.dataspace.elements().and_then(|n| n.checked_mul(size));
        if bytes != Some(attribute.value.len() as u64) {
            return Err(Error::Invalid(format!("the value of attribute {:?} is not of its size", attribute.name)));
        }
        state.object_mut(id)?.attributes.insert(attribute.name.clone(), attribute.clone());
        Ok(())
    }

    fn remove_attribute(&self, id: ObjectId, name: &Name) -> Result<()> {
        let removed = self.write()?.object_mut(id)?.attributes.remove(name);
        removed.map(drop).ok_or_else(|| Error::NotFound(name.clone()))
    }

    fn dataset(&self, id: ObjectId) -> Result<Arc<dyn Chunks>> {
        let (seen, generation) = {
            let state = self.read()?;
            (state.stored(id)?.published.clone(), state.generation)
        };
        let mut datasets = self.session.datasets.lock();
        let chunks = datasets.entry(id).or_insert_with(|| {
            Arc::new(MemoryChunks {
                session: Arc::downgrade(&self.session),
                file: self.session.file.clone(),
                writable: self.session.writable,
                id,
                seen: Mutex::new(seen),
                generation: AtomicU64::new(generation),
            })
        });
        Ok(chunks.clone())
    }

    fn datatype(&self, id: ObjectId) -> Result<Datatype> {
        match &self.read()?.object(id)?.body {
            Body::Datatype(datatype) => Ok(datatype.clone()),
            _ => Err(Error::WrongKind { expected: "committed datatype" }),
        }
    }

    fn refresh(&self, id: ObjectId) -> Result<()> {
        self.read()?.object(id).map(drop)
    }

    fn read_heap(&self, element: &[u8]) -> Result<Vec<u8>> {
        let state = self.read()?;
        let place: [u8; 8] = element
            .get(4..12)
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(|| Error::Invalid("a variable-length element has 16 bytes".into()))?;
        match u64::from_le_bytes(place) {
            0 => Ok(Vec::new()),
            place => {
                let bytes = usize::try_from(place - 1).ok().and_then(|place| state.heap.get(place));
                bytes.cloned().ok_or_else(|| Error::Invalid("the heap has nothing in this place".into()))
            }
        }
    }

    fn write_heap(&self, bytes: &[u8], count: u32) -> Result<Vec<u8>> {
        let mut state = self.write()?;
        state.heap.push(bytes.into());
        let mut element = count.to_le_bytes().to_vec();
        element.extend((state.heap.len() as u64).to_le_bytes());
        element.extend([0; 4]);
        Ok(element)
    }

    fn referent(&self, kind: ReferenceKind, element: &[u8]) -> Result<Option<Referent>> {
        let ReferenceKind::Object1 = kind else { return Err(Error::Unsupported("this kind of reference")) };
        let id: [u8; 8] = element.try_into().map_err(|_| Error::Invalid("an object reference has 8 bytes".into()))?;
        let object = ObjectId(u64::from_le_bytes(id).into());
        Ok((object.0 != 0).then_some(Referent { file: None, object, part: ReferentPart::Whole }))
    }

    fn reference(&self, id: ObjectId) -> Result<Vec<u8>> {
        self.read()?.object(id)?;
        let id = u64::try_from(id.0).map_err(|_| Error::NoObject(id))?;
        Ok(id.to_le_bytes().into())
    }

    fn flush(&self) -> Result<()> {
        let mut state = self.read()?;
        if self.session.writable {
            for object in state.objects.values_mut() {
                if let Body::Dataset(stored) = &mut object.body {
                    stored.publish();
                }
            }
            state.generation += 1;
            self.session.file.flushed.notify_all();
        }
        Ok(())
    }

    fn close(&self) -> Result<()> {
        if self.session.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.flush()?;
        if self.session.writable {
            self.session.file.state.lock().writer = false;
        }
        self.session.closed.store(true, Ordering::Release);
        Ok(())
    }

    fn start_swmr(&self) -> Result<()> {
        drop(self.write()?);
        self.flush()
    }

    fn is_live(&self) -> Result<bool> {
        Ok(self.read()?.writer && !self.session.writable)
    }
}

impl Stored {
    fn publish(&mut self) {
        self.published = self.spec.dataspace.dims().into();
    }

    /// The bytes of a decoded chunk, if `coord` is one inside the maximum.
    fn chunk_bytes(&self, coord: &ChunkCoord) -> Result<u64> {
        let outside = || Error::Invalid(format!("no chunk of this dataset is at {:?}", coord.scaled()));
        let grid = self.spec.grid().ok_or_else(outside)?;
        let inside = match &self.spec.layout {
            Layout::Chunked(_) => {
                let counts = grid.counts(self.spec.dataspace.max());
                coord.rank() == counts.len() && coord.scaled().iter().zip(&counts).all(|(at, n)| at < n)
            }
            _ => *coord == ChunkCoord::origin(self.spec.dataspace.rank()),
        };
        self.spec.chunk_bytes().filter(|_| inside).ok_or_else(outside)
    }
}

impl MemoryChunks {
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
        let end = at.checked_add(bytes.len() as u64).filter(|end| *end <= whole);
        let (Some(end), Ok(whole)) = (end, usize::try_from(whole)) else {
            return Err(Error::Invalid(format!("a chunk of this dataset has {whole} bytes")));
        };
        let fill = stored.spec.fill_element();
        let (_, chunk) = stored
            .chunks
            .entry(coord.clone())
            .or_insert_with(|| (0, fill.iter().copied().cycle().take(whole).collect()));
        chunk[at as usize..end as usize].copy_from_slice(bytes);
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
        self.generation.store(state.generation, Ordering::Release);
        Ok(changed && !self.writable)
    }

    fn wait(&self, timeout: Duration) -> Result<()> {
        let until = Instant::now() + timeout;
        let mut state = self.read_state()?;
        while state.writer && state.generation == self.generation.load(Ordering::Acquire) {
            if self.file.flushed.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance;

    struct Memory;

    impl conformance::Lab for Memory {
        type Store = MemoryStore;

        fn create(&self) -> MemoryStore {
            MemoryStore::new()
        }

        fn reopen(&self, closed: MemoryStore) -> MemoryStore {
            closed.reopen().unwrap()
        }

        fn reader(&self, writer: &MemoryStore) -> Option<MemoryStore> {
            Some(writer.reader())
        }
    }

    #[test]
    fn conforms() {
        conformance::all(&Memory);
    }

    #[test]
    fn refuses_a_second_writer() {
        assert!(matches!(MemoryStore::new().reopen(), Err(Error::Unsupported(_))));
    }
}
