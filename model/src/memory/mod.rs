//! The reference store: maps and vectors, with which every other store is compared.
//!
//! A [`MemoryStore`] is one session on a file that lives as long as a session does. One session writes;
//! [`MemoryStore::reader`] opens further ones, which see extents as of the writer's last flush and their own last
//! refresh, just as another process sees a live file.

mod chunks;
mod connector;
mod dataset;
mod state;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use self::chunks::MemoryChunks;
pub use self::connector::MemoryConnector;
use self::state::{MemoryBody, MemoryState, ROOT};
use crate::{
    AllocationLimit, AttributeData, Capabilities, Chunks, Datatype, Durability, Encoding, Error, Features, GroupSpec,
    Limits, Link, LinkTarget, Location, Mode, Name, ObjectId, ObjectInfo, ObjectKind, ObjectSpec, Objects, Parts,
    Publish, Reads, ReferenceKind, ReferenceType, Referent, Result, Session, Staging, Unit, Watch, WatchEvent,
};

/// Bytes that a reader need not read more than at once, though each read is atomic.
const ATOMIC_READ_BYTES: u64 = 8 << 20;

/// The capabilities of a session on a file in memory.
const fn capabilities(mode: Mode) -> Capabilities {
    Capabilities {
        features: Features::all().without(Features::TIMES).without(Features::MAPS),
        parts: Parts::Bytes { multiple_of: 1 },
        staging: Staging::Caller,
        encoding: Encoding::Pipeline,
        reads: Reads::Direct { atomic: if mode.writes() { 0 } else { ATOMIC_READ_BYTES } },
        commit: Unit::Object,
        view: Unit::Object,
        durability: Durability::Never,
        live: true,
        limits: Limits::NONE,
    }
}

/// A session on a file in memory.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    session: Arc<MemorySession>,
}

#[derive(Debug)]
struct MemorySession {
    file: Arc<MemoryFile>,
    described: Session,
    writable: bool,
    closed: AtomicBool,
    datasets: Mutex<BTreeMap<ObjectId, Arc<MemoryChunks>>>,
}

#[derive(Debug, Default)]
struct MemoryFile {
    /// Most bytes of a chunk that is made for a part of it.
    max_allocation: AllocationLimit,
    state: Mutex<MemoryState>,
    flushed: Condvar,
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::new()
    }
}

impl MemorySession {
    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

impl MemoryStore {
    /// A new, empty file, open for writing ([`Mode::Create`]).
    pub fn new() -> Self {
        MemoryStore::open(Arc::default(), Mode::Create)
    }

    /// A new, empty file, open for writing. A chunk of which only a part is written has at most as many bytes as the
    /// limit: the rest of it is in memory too.
    pub fn limited(max_allocation: AllocationLimit) -> Self {
        MemoryStore::open(Arc::new(MemoryFile { max_allocation, ..MemoryFile::default() }), Mode::Create)
    }

    /// A further session on the same file, which follows the writer ([`Mode::SwmrRead`]).
    pub fn reader(&self) -> Self {
        MemoryStore::open(self.session.file.clone(), Mode::SwmrRead)
    }

    /// A new writing session on the same file, after this one was closed ([`Mode::Write`]).
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
        Ok(MemoryStore::open(self.session.file.clone(), Mode::Write))
    }

    fn open(file: Arc<MemoryFile>, mode: Mode) -> Self {
        MemoryStore::open_at(None, file, mode)
    }

    fn open_at(location: Option<&Location>, file: Arc<MemoryFile>, mode: Mode) -> Self {
        let mut described = Session::new(connector::SCHEME, mode, ROOT, capabilities(mode));
        described.location = location.cloned();
        let (closed, datasets) = (AtomicBool::new(false), Mutex::default());
        let session = MemorySession { file, described, writable: mode.writes(), closed, datasets };
        MemoryStore { session: Arc::new(session) }
    }

    fn read(&self) -> Result<MutexGuard<'_, MemoryState>> {
        match self.session.closed.load(Ordering::Acquire) {
            true => Err(Error::Closed),
            false => Ok(self.session.file.state.lock()),
        }
    }

    fn write(&self) -> Result<MutexGuard<'_, MemoryState>> {
        let state = self.read()?;
        if self.session.writable { Ok(state) } else { Err(Error::ReadOnly) }
    }
}

impl Objects for MemoryStore {
    fn session(&self) -> &Session {
        &self.session.described
    }

    fn check_writable(&self) -> Result<()> {
        self.write().map(drop)
    }

    fn kind(&self, id: ObjectId) -> Result<ObjectKind> {
        Ok(match self.read()?.object(id)?.body {
            MemoryBody::Group(_) => ObjectKind::Group,
            MemoryBody::Dataset(_) => ObjectKind::Dataset,
            MemoryBody::Datatype(_) => ObjectKind::Datatype,
        })
    }

    fn create(&self, parent: ObjectId, name: &Name, spec: &ObjectSpec) -> Result<ObjectId> {
        let mut state = self.write()?;
        state.check_new_link(parent, name)?;
        let id = state.create(spec)?;
        state.insert_link(parent, name, LinkTarget::Hard(id))?;
        state.add_hard_link(Some(id))?;
        Ok(id)
    }

    fn create_unlinked(&self, spec: &ObjectSpec) -> Result<ObjectId> {
        self.write()?.create(spec)
    }

    fn group(&self, id: ObjectId) -> Result<GroupSpec> {
        Ok(self.read()?.links(id)?.spec)
    }

    fn info(&self, id: ObjectId) -> Result<ObjectInfo> {
        let state = self.read()?;
        let object = state.object(id)?;
        let (comment, attributes) = (object.comment.clone(), object.attribute_storage);
        Ok(ObjectInfo { links: object.hard_links, comment, attributes, ..ObjectInfo::default() })
    }

    fn set_comment(&self, id: ObjectId, comment: Option<&Name>) -> Result<()> {
        self.write()?.object_mut(id)?.comment = comment.cloned();
        Ok(())
    }

    fn link(&self, group: ObjectId, name: &Name) -> Result<Option<Link>> {
        Ok(self.read()?.links(group)?.by_name.get(name).cloned())
    }

    fn for_each_link(&self, group: ObjectId, each: &mut dyn FnMut(Link) -> bool) -> Result<()> {
        let links: Vec<_> = self.read()?.links(group)?.by_name.values().cloned().collect();
        links.into_iter().all(each);
        Ok(())
    }

    fn add_link(&self, group: ObjectId, name: &Name, target: &LinkTarget) -> Result<()> {
        let mut state = self.write()?;
        let object = match target {
            LinkTarget::Hard(id) => Some(*id),
            _ => None,
        };
        object.map(|id| state.object(id).map(drop)).transpose()?;
        state.insert_link(group, name, target.clone())?;
        state.add_hard_link(object)
    }

    fn remove_link(&self, group: ObjectId, name: &Name) -> Result<()> {
        let mut state = self.write()?;
        let link = state.links_mut(group)?.by_name.remove(name).ok_or_else(|| Error::NotFound(name.clone()))?;
        if let LinkTarget::Hard(id) = link.target {
            state.remove_hard_links(vec![id]);
        }
        Ok(())
    }

    fn rename_link(&self, from: (ObjectId, &Name), to: (ObjectId, &Name)) -> Result<()> {
        self.write()?.rename_link(from, to)
    }

    fn attribute(&self, id: ObjectId, name: &Name) -> Result<Option<AttributeData>> {
        Ok(self.read()?.object(id)?.attributes.get(name).cloned())
    }

    fn attribute_names(&self, id: ObjectId) -> Result<Vec<Name>> {
        Ok(self.read()?.object(id)?.attributes.keys().cloned().collect())
    }

    fn set_attribute(&self, id: ObjectId, attribute: &AttributeData) -> Result<()> {
        self.write()?.set_attribute(id, attribute)
    }

    fn remove_attribute(&self, id: ObjectId, name: &Name) -> Result<()> {
        self.write()?.remove_attribute(id, name)
    }

    fn dataset(&self, id: ObjectId) -> Result<Arc<dyn Chunks>> {
        let seen = self.read()?.stored(id)?.published.clone();
        let mut datasets = self.session.datasets.lock();
        let chunks = datasets.entry(id).or_insert_with(|| Arc::new(MemoryChunks::new(&self.session, id, seen)));
        Ok(chunks.clone())
    }

    fn datatype(&self, id: ObjectId) -> Result<Datatype> {
        match &self.read()?.object(id)?.body {
            MemoryBody::Datatype(datatype) => Ok(datatype.clone()),
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
        self.read()?.referent(kind, element)
    }

    fn reference(&self, form: &ReferenceType, to: &Referent) -> Result<Vec<u8>> {
        self.write()?.reference(form, to)
    }

    fn flush(&self) -> Result<()> {
        let mut state = self.read()?;
        if self.session.writable {
            for object in state.objects.values_mut() {
                if let MemoryBody::Dataset(stored) = &mut object.body {
                    stored.publish();
                }
            }
            state.generation += 1;
            self.session.file.flushed.notify_all();
        }
        Ok(())
    }

    fn flush_object(&self, id: ObjectId) -> Result<()> {
        match self.kind(id)? {
            ObjectKind::Dataset => self.dataset(id)?.publish(Publish::Visible),
            _ => self.flush(),
        }
    }

    fn close(&self) -> Result<()> {
        if self.session.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.flush()?;
        if self.session.writable {
            self.session.file.state.lock().writer = false;
            self.session.file.flushed.notify_all();
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

    fn watch(&self, _: &[ObjectId]) -> Result<Box<dyn Watch>> {
        let generation = self.read()?.generation;
        Ok(Box::new(MemoryWatch { file: self.session.file.clone(), generation }))
    }
}

/// Wakes up at each flush.
#[derive(Debug)]
struct MemoryWatch {
    file: Arc<MemoryFile>,
    /// Flushes as of the last wake-up.
    generation: u64,
}

impl Watch for MemoryWatch {
    fn wait(&mut self, timeout: Duration) -> Result<WatchEvent> {
        let until = Instant::now().checked_add(timeout);
        let mut state = self.file.state.lock();
        loop {
            if std::mem::replace(&mut self.generation, state.generation) != state.generation {
                return Ok(WatchEvent::Changed);
            }
            if !state.writer {
                return Ok(WatchEvent::Ended);
            }
            match until {
                Some(until) if self.file.flushed.wait_until(&mut state, until).timed_out() => {
                    return Ok(WatchEvent::Timeout);
                }
                Some(_) => {}
                None => self.file.flushed.wait(&mut state),
            }
        }
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
        conformance::run_all(&Memory);
    }

    #[test]
    fn refuses_a_second_writer() {
        assert!(matches!(MemoryStore::new().reopen(), Err(Error::Unsupported(_))));
    }
}
