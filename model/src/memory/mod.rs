//! The reference store: maps and vectors, with which every other store is compared.
//!
//! A [`MemoryStore`] is one session on a file that lives as long as a session does. One session writes;
//! [`MemoryStore::open_reader`] opens further ones, which see extents as of the writer's last flush and their own last
//! refresh, just as another process sees a live file.

mod behavior;
mod chunks;
mod connector;
mod dataset;
mod file;
mod map;
mod maps;
mod state;
mod writer;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

pub use self::behavior::SimulatedChunkCapabilities;
use self::chunks::MemoryChunks;
pub use self::connector::MemoryConnector;
use self::file::{MemoryAccess, MemoryFile, MemoryWatch, SCHEME};
use self::map::MemoryPairs;
use self::state::{MemoryBody, MemoryState, ROOT};
use crate::{
    AllocationLimit, AttributeData, Capabilities, ChunkStore, ConsistencyScope, DatasetSpec, DurabilitySupport, Error,
    Link, Location, MapStore, Mode, Name, ObjectId, ObjectInfo, ObjectKind, ObjectKindSpec, ObjectScope, ObjectSpec,
    PublishLevel, ReferenceKind, ReferenceType, Referent, Result, SessionInfo, Stats, Store, StoreFeatures,
    StoreSizeLimits, StoreWriter, Watch, WriterLiveness,
};

/// The capabilities of a session on a file in memory.
fn capabilities(behavior: SimulatedChunkCapabilities, mode: Mode) -> Capabilities {
    Capabilities {
        features: StoreFeatures::all().without(StoreFeatures::TIMES),
        partial_writes: behavior.partial_writes,
        staging: behavior.staging,
        encoding: behavior.encoding,
        reads: behavior.reads_of(mode.writes()),
        commit: ConsistencyScope::Object,
        view: ConsistencyScope::Object,
        durability: DurabilitySupport::Never,
        supports_live_reads: true,
        limits: StoreSizeLimits::NONE,
    }
}

/// A session on a file in memory.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    session: Arc<MemorySession>,
}

#[derive(Debug)]
struct MemorySession {
    access: Arc<MemoryAccess>,
    described: SessionInfo,
    datasets: Mutex<BTreeMap<ObjectId, Arc<MemoryChunks>>>,
    /// What a reader has looked at, as of its last refresh.
    maps: Mutex<BTreeMap<ObjectId, Arc<MemoryPairs>>>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::new()
    }
}

impl MemoryStore {
    /// A new, empty file, open for writing ([`Mode::Create`]).
    pub fn new() -> Self {
        MemoryStore::open(Arc::default(), Mode::Create)
    }

    /// A new, empty file, open for writing. A chunk of which only a part is written has at most as many bytes as the
    /// limit: the rest of it is in memory too.
    pub fn with_max_partial_chunk_bytes(max_allocation: AllocationLimit) -> Self {
        MemoryStore::open(Arc::new(MemoryFile { max_allocation, ..MemoryFile::default() }), Mode::Create)
    }

    /// A new, empty file, open for writing, that behaves in another way.
    pub fn with_capabilities(capabilities: SimulatedChunkCapabilities) -> Self {
        MemoryStore::open(Arc::new(MemoryFile { behavior: capabilities, ..MemoryFile::default() }), Mode::Create)
    }

    /// A further session on the same file, which follows the writer ([`Mode::SwmrRead`]).
    pub fn open_reader(&self) -> Self {
        MemoryStore::open(self.session.access.file.clone(), Mode::SwmrRead)
    }

    /// A new writing session on the same file, after this one was closed ([`Mode::Write`]).
    ///
    /// # Errors
    /// [`Error::Unsupported`] while another session writes.
    pub fn reopen_for_writing(&self) -> Result<Self> {
        let mut state = self.session.access.file.state.lock();
        if state.has_writer {
            return Err(Error::Unsupported("a second writer"));
        }
        state.has_writer = true;
        drop(state);
        Ok(MemoryStore::open(self.session.access.file.clone(), Mode::Write))
    }

    /// Lets so many changes of datasets succeed from now on, and all later ones fail, for tests. With `None`, all succeed
    /// again. A write, a change of the extent and a publication are one change each.
    pub fn fail_after(&self, data_changes: Option<u64>) {
        *self.session.access.file.changes_before_failure.lock() = data_changes;
    }

    /// Ends the session as the death of its process does: nothing more is published.
    pub fn abandon(&self) {
        self.session.access.close();
        if self.session.access.writable {
            let mut state = self.session.access.file.state.lock();
            state.forget_unpublished();
            state.has_writer = false;
            self.session.access.file.flushed.notify_all();
        }
    }

    fn open(file: Arc<MemoryFile>, mode: Mode) -> Self {
        MemoryStore::open_at(None, file, mode)
    }

    fn open_at(location: Option<&Location>, file: Arc<MemoryFile>, mode: Mode) -> Self {
        let mut described = SessionInfo::new(SCHEME, mode, ROOT, capabilities(file.behavior, mode));
        described.location = location.cloned();
        let access = Arc::new(MemoryAccess::new(file, mode.writes()));
        MemoryStore {
            session: Arc::new(MemorySession { access, described, datasets: Mutex::default(), maps: Mutex::default() }),
        }
    }

    fn lock_to_read(&self) -> Result<MutexGuard<'_, MemoryState>> {
        self.session.access.lock_to_read()
    }

    fn lock_to_write(&self) -> Result<MutexGuard<'_, MemoryState>> {
        self.session.access.lock_to_write()
    }
}

impl Store for MemoryStore {
    fn session(&self) -> &SessionInfo {
        &self.session.described
    }

    fn kind(&self, id: ObjectId) -> Result<ObjectKind> {
        Ok(match self.lock_to_read()?.object(id)?.body {
            MemoryBody::Group(_) => ObjectKind::Group,
            MemoryBody::Dataset(_) => ObjectKind::Dataset,
            MemoryBody::Datatype(_) => ObjectKind::Datatype,
            MemoryBody::Map(_) => ObjectKind::Map,
        })
    }

    fn spec(&self, id: ObjectId) -> Result<ObjectSpec> {
        let state = self.lock_to_read()?;
        let object = state.object(id)?;
        let body = match &object.body {
            MemoryBody::Group(links) => ObjectKindSpec::Group(links.spec),
            MemoryBody::Datatype(datatype) => ObjectKindSpec::Datatype(datatype.clone()),
            MemoryBody::Map(map) => ObjectKindSpec::Map(Box::new(map.spec.clone())),
            MemoryBody::Dataset(_) => {
                drop(state);
                let spec = DatasetSpec::clone(&*self.dataset(id)?.spec()?);
                return Ok(ObjectSpec { attribute_storage: self.info(id)?.attribute_storage, ..spec.into() });
            }
        };
        Ok(ObjectSpec { attribute_storage: object.attribute_storage, ..body.into() })
    }

    fn info(&self, id: ObjectId) -> Result<ObjectInfo> {
        let state = self.lock_to_read()?;
        let object = state.object(id)?;
        let (comment, attributes) = (object.comment.clone(), object.attribute_storage);
        Ok(ObjectInfo {
            hard_link_count: object.hard_links,
            comment,
            attribute_storage: attributes,
            ..ObjectInfo::default()
        })
    }

    fn link(&self, group: ObjectId, name: &Name) -> Result<Option<Link>> {
        Ok(self.lock_to_read()?.links(group)?.by_name.get(name).cloned())
    }

    fn for_each_link(&self, group: ObjectId, each: &mut dyn FnMut(Link) -> bool) -> Result<()> {
        let links: Vec<_> = self.lock_to_read()?.links(group)?.by_name.values().cloned().collect();
        links.into_iter().all(each);
        Ok(())
    }

    fn attribute(&self, id: ObjectId, name: &Name) -> Result<Option<AttributeData>> {
        Ok(self.lock_to_read()?.object(id)?.attributes.get(name).cloned())
    }

    fn attribute_names(&self, id: ObjectId) -> Result<Vec<Name>> {
        Ok(self.lock_to_read()?.object(id)?.attributes.keys().cloned().collect())
    }

    fn for_each_attribute(&self, id: ObjectId, each: &mut dyn FnMut(AttributeData) -> bool) -> Result<()> {
        let attributes: Vec<_> = self.lock_to_read()?.object(id)?.attributes.values().cloned().collect();
        attributes.into_iter().all(each);
        Ok(())
    }

    fn dataset(&self, id: ObjectId) -> Result<Arc<dyn ChunkStore>> {
        let seen = self.lock_to_read()?.dataset(id)?.published.clone();
        let mut datasets = self.session.datasets.lock();
        let chunks = datasets.entry(id).or_insert_with(|| Arc::new(MemoryChunks::new(&self.session.access, id, seen)));
        Ok(chunks.clone())
    }

    fn read_blobs(&self, elements: &[&[u8]], each: &mut dyn FnMut(usize, &[u8])) -> Result<()> {
        let read = |element: &[u8]| self.lock_to_read()?.blob(element);
        for (number, element) in elements.iter().enumerate() {
            // Not under the lock.
            let bytes = read(element)?;
            each(number, &bytes);
        }
        Ok(())
    }

    fn refresh(&self, scope: ObjectScope<'_>) -> Result<()> {
        drop(self.lock_to_read()?);
        self.refresh_maps(|id| match scope {
            ObjectScope::All => true,
            ObjectScope::Objects(objects) => objects.contains(&id),
        })?;
        let open = self.session.datasets.lock().clone();
        match scope {
            ObjectScope::All => open.values().try_for_each(|dataset| dataset.refresh_if_there()),
            ObjectScope::Objects(objects) => objects.iter().try_for_each(|id| match open.get(id) {
                Some(dataset) => dataset.refresh().map(drop),
                None => self.kind(*id).map(drop),
            }),
        }
    }

    fn liveness(&self) -> Result<WriterLiveness> {
        let is_live = self.lock_to_read()?.has_writer && !self.session.access.writable;
        Ok(if is_live { WriterLiveness::Live } else { WriterLiveness::AtRest })
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }

    fn writer(&self) -> Result<&dyn StoreWriter> {
        drop(self.lock_to_write()?);
        Ok(self)
    }

    fn maps(&self) -> Option<&dyn MapStore> {
        Some(self)
    }

    fn referent(&self, kind: ReferenceKind, element: &[u8]) -> Result<Option<Referent>> {
        self.lock_to_read()?.referent(kind, element)
    }

    fn encode_reference(&self, form: &ReferenceType, to: &Referent) -> Result<Vec<u8>> {
        // Others are kept in a table of the store.
        let is_number = form.kind == ReferenceKind::Object1;
        let mut state = if is_number { self.lock_to_read()? } else { self.lock_to_write()? };
        state.encode_reference(form, to)
    }

    fn close(&self) -> Result<()> {
        if self.session.access.is_closed() {
            return Ok(());
        }
        if self.session.access.writable {
            self.commit(ObjectScope::All, PublishLevel::Visible)?;
            self.session.access.file.state.lock().has_writer = false;
            self.session.access.file.flushed.notify_all();
        }
        self.session.access.close();
        Ok(())
    }

    fn watch(&self, _: &[ObjectId]) -> Result<Box<dyn Watch>> {
        let generation = self.lock_to_read()?.generation;
        Ok(Box::new(MemoryWatch::new(self.session.access.file.clone(), generation)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ChunkEncodedBy, ChunkReadStrategy, LinkTarget, NewObject, PartialWrites, SmallWritesStagedBy, conformance,
    };

    struct Memory;

    impl conformance::StoreFixture for Memory {
        type Store = MemoryStore;

        fn create(&self) -> MemoryStore {
            MemoryStore::new()
        }

        fn reopen(&self, closed: MemoryStore) -> MemoryStore {
            closed.reopen_for_writing().unwrap()
        }

        fn open_reader(&self, writer: &MemoryStore) -> Option<MemoryStore> {
            Some(writer.open_reader())
        }
    }

    conformance::suite!(Memory);

    impl conformance::FaultyStoreFixture for Memory {
        fn fail_after(&self, store: &MemoryStore, changes: Option<u64>) {
            store.fail_after(changes);
        }

        fn crash_and_reopen(&self, died: MemoryStore) -> MemoryStore {
            died.fail_after(None);
            died.abandon();
            died.reopen_for_writing().unwrap()
        }
    }

    conformance::fault_suite!(Memory);

    /// A file in memory that behaves in another way.
    struct Behaving(SimulatedChunkCapabilities);

    impl conformance::StoreFixture for Behaving {
        type Store = MemoryStore;

        fn create(&self) -> MemoryStore {
            MemoryStore::with_capabilities(self.0)
        }

        fn reopen(&self, closed: MemoryStore) -> MemoryStore {
            closed.reopen_for_writing().unwrap()
        }

        fn open_reader(&self, writer: &MemoryStore) -> Option<MemoryStore> {
            Some(writer.open_reader())
        }
    }

    /// The conformance suite for each way of behaving.
    macro_rules! behaving {
        ($($module:ident: $field:ident = $value:expr;)*) => {$(
            mod $module {
                use super::*;

                conformance::suite!(Behaving(SimulatedChunkCapabilities { $field: $value, ..SimulatedChunkCapabilities::default() }));
            }
        )*};
    }

    behaving! {
        of_whole_chunks: partial_writes = PartialWrites::Whole;
        of_pieces: partial_writes = PartialWrites::Bytes { multiple_of: 64 };
        of_blocks: partial_writes = PartialWrites::ElementBlocks;
        that_stages: staging = SmallWritesStagedBy::Store;
        that_encodes: encoding = ChunkEncodedBy::Store;
        read_by_blocks: reads = ChunkReadStrategy::ElementBlocks;
        read_in_batches: reads = ChunkReadStrategy::Batched { preferred_reads_in_flight: 3, max_gap_bytes: 16 };
    }

    #[test]
    fn refuses_a_second_writer() {
        assert!(matches!(MemoryStore::new().reopen_for_writing(), Err(Error::Unsupported(_))));
    }

    #[test]
    fn refuses_durable_commits_which_it_cannot_keep() {
        let store = MemoryStore::new();
        assert_eq!(store.session().capabilities.durability, DurabilitySupport::Never);
        let durable = store.writer().unwrap().commit(ObjectScope::All, PublishLevel::Durable);
        assert!(matches!(durable, Err(Error::Unsupported(_))));
    }

    #[test]
    fn is_dirty_from_a_change_to_its_commit() {
        let store = MemoryStore::new();
        let (writer, root) = (store.writer().unwrap(), store.session().root);
        assert!(!writer.is_dirty());
        let (name, spec) = ("g".into(), ObjectSpec::group());
        writer.create(&NewObject::linked(root, &name, &spec)).unwrap();
        assert!(writer.is_dirty());
        writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
        assert!(!writer.is_dirty());
        writer.remove_link(root, &name).unwrap();
        assert!(writer.is_dirty());
    }

    #[test]
    fn a_discarded_object_is_gone_unless_a_link_leads_to_it() {
        let store = MemoryStore::new();
        let (writer, spec) = (store.writer().unwrap(), ObjectSpec::group());
        let [one, other] = [(); 2].map(|()| writer.create(&NewObject::unlinked(&spec)).unwrap());
        writer.add_link(store.session().root, &"kept".into(), &LinkTarget::Hard(other)).unwrap();
        writer.discard(one).unwrap();
        writer.discard(other).unwrap();
        assert!(matches!(store.kind(one), Err(Error::NoObject(_))));
        assert_eq!(store.kind(other).unwrap(), ObjectKind::Group);
    }
}
