//! The native store: an HDF5 file.

use std::hash::{DefaultHasher, Hash};
use std::path::Path;
use std::sync::Arc;

use h5live_cache::Storage;
use h5live_format::messages::DatatypeMessage;
use h5live_format::{Addr, GlobalHeapId, Superblock, VarLenElement, decode};
use h5live_model::{
    AttributeData, ChunkStore, DatasetSpec, Error as ModelError, GroupSpec, Link, Location, MapStore, Name, ObjectId,
    ObjectInfo, ObjectKind, ObjectKindSpec, ObjectScope, ObjectSpec, ReferenceKind, ReferenceType, Referent,
    ReferentPart, Result as ModelResult, SessionInfo, Stats, Store, StoreWriter, Watch, WriterLiveness,
};

use crate::attributes::{AttributeStorage, StoredAttribute};
use crate::dataset::NativeDataset;
use crate::header::CachedHeader;
use crate::links::LinkStorage;
use crate::object_kind::{kind_of, link_storage};
use crate::open_options::OpenOptions;
use crate::seen_names::NameOwner;
use crate::session::NativeSession;
use crate::session_description::describe_session;
use crate::watch::NativeWatch;
use crate::{Error, Result};

/// An HDF5 file that is open in this process. Clones are the same session.
#[derive(Debug, Clone)]
pub struct NativeFile(pub(crate) Arc<NativeSession>, Arc<SessionInfo>);

impl NativeFile {
    /// Opens or creates the file at `path`.
    ///
    /// # Errors
    /// If the file cannot be opened, is no HDF5 file, or is open elsewhere in a way that excludes this session.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        Ok(NativeFile::new(options.open(path)?))
    }

    /// Opens or creates a file on a storage that is used by nobody else, as [`NativeFile::open`] does on a path.
    ///
    /// # Errors
    /// As [`NativeFile::open`].
    pub fn open_storage(storage: Arc<dyn Storage>, options: &OpenOptions) -> Result<Self> {
        Ok(NativeFile::new(options.open_storage(storage)?))
    }

    /// The session as that of another connector, which has opened the storage at a location.
    pub fn with_location(self, connector: &'static str, at: Location) -> Self {
        let session = SessionInfo { connector, location: Some(at), ..(*self.1).clone() };
        NativeFile(self.0, Arc::new(session))
    }

    fn new(session: NativeSession) -> Self {
        let described = describe_session(&session);
        NativeFile(Arc::new(session), Arc::new(described))
    }

    /// Hashes everything that is kept in memory of a file that is followed by generations. For the model checker.
    #[doc(hidden)]
    pub fn hash_state(&self, state: &mut DefaultHasher) {
        let session = &*self.0;
        session.retry.generation_reader().iter().for_each(|generations| generations.hash_state(state));
        // Where the file ended when it was opened matters to nobody.
        let superblock = Superblock { end_of_file: Addr::UNDEFINED, ..session.superblock.clone() };
        format!("{superblock:?} {:?}", session.extension).hash(state);
        // While one is opened, nothing is known of it.
        let Some(mut open) = session.datasets.try_all_open() else { return };
        open.sort_unstable_by_key(|dataset| dataset.header_addr);
        open.iter().for_each(|dataset| dataset.hash_state(state));
    }

    #[cfg(test)]
    pub(crate) fn native_session(&self) -> &NativeSession {
        &self.0
    }

    pub(crate) fn group(&self, id: ObjectId) -> Result<CachedHeader> {
        let header = self.0.load_header(self.0.header_addr_of(id)?)?;
        match kind_of(&header)? {
            ObjectKind::Group => Ok(header),
            _ => Err(Error::Model(ModelError::WrongKind { expected: "group" })),
        }
    }
}

impl Store for NativeFile {
    fn session(&self) -> &SessionInfo {
        &self.1
    }

    fn kind(&self, id: ObjectId) -> ModelResult<ObjectKind> {
        Ok(kind_of(&self.0.load_header(self.0.header_addr_of(id)?)?)?)
    }

    fn link(&self, group: ObjectId, name: &Name) -> ModelResult<Option<Link>> {
        let addr = self.0.header_addr_of(group)?;
        self.0.check_open()?;
        if let Some(known) = LinkStorage::find_cached_link(&self.0, addr, name) {
            return Ok(known);
        }
        let found = self.0.names.find_entry_with_retry(NameOwner::Links(addr), name, || {
            let _lock = self.0.lock_header_if_writable(addr);
            let header = self.group(group)?;
            let links = LinkStorage::load(&self.0, &header)?;
            links.count_lookup_and_maybe_cache(&self.0, &header);
            links.find_link(&header, name)
        })?;
        Ok(found)
    }

    fn for_each_link(&self, group: ObjectId, each: &mut dyn FnMut(Link) -> bool) -> ModelResult<()> {
        let addr = self.0.header_addr_of(group)?;
        self.0.names.for_each_entry_with_retry(
            each,
            (NameOwner::Links(addr), |link: &Link| &link.name),
            |after, each| {
                let _lock = self.0.lock_header_if_writable(addr);
                let header = self.group(group)?;
                LinkStorage::load(&self.0, &header)?.for_each_link_page(&header, after, each)
            },
        )?;
        Ok(())
    }

    fn attribute(&self, id: ObjectId, name: &Name) -> ModelResult<Option<AttributeData>> {
        let addr = self.0.header_addr_of(id)?;
        let found = self.0.names.find_entry_with_retry(NameOwner::Attributes(addr), name, || {
            let _lock = self.0.lock_header_if_writable(addr);
            let header = self.0.load_header(addr)?;
            let tracked = header.prefix().attribute_order_tracked;
            let found = AttributeStorage::load(&self.0, &header)?.find_attribute(&self.0, &header, name)?;
            found.map(|stored| self.0.resolve_attribute(stored, tracked)).transpose()
        })?;
        Ok(found)
    }

    fn attribute_names(&self, id: ObjectId) -> ModelResult<Vec<Name>> {
        let addr = self.0.header_addr_of(id)?;
        let names = self.0.names.list_entries_with_retry(
            NameOwner::Attributes(addr),
            |name| name,
            |after, each| {
                let _lock = self.0.lock_header_if_writable(addr);
                let header = self.0.load_header(addr)?;
                let mut each = |stored: StoredAttribute| Ok(each(stored.message.name));
                AttributeStorage::load(&self.0, &header)?.for_each_attribute_page((&self.0, &header), after, &mut each)
            },
        )?;
        Ok(names)
    }

    fn for_each_attribute(&self, id: ObjectId, each: &mut dyn FnMut(AttributeData) -> bool) -> ModelResult<()> {
        let addr = self.0.header_addr_of(id)?;
        self.0.names.for_each_entry_with_retry(
            each,
            (NameOwner::Attributes(addr), |attribute: &AttributeData| &attribute.name),
            |after, each| {
                let _lock = self.0.lock_header_if_writable(addr);
                let header = self.0.load_header(addr)?;
                let tracked = header.prefix().attribute_order_tracked;
                let attributes = AttributeStorage::load(&self.0, &header)?;
                attributes.for_each_attribute_page((&self.0, &header), after, &mut |stored| {
                    Ok(each(self.0.resolve_attribute(stored, tracked)?))
                })
            },
        )?;
        Ok(())
    }

    fn spec(&self, id: ObjectId) -> ModelResult<ObjectSpec> {
        let addr = self.0.header_addr_of(id)?;
        let (info, body) = self.0.retry.retry(|| {
            let header = self.0.load_header(addr)?;
            let body = match kind_of(&header)? {
                ObjectKind::Group => Some(ObjectKindSpec::Group(GroupSpec { link_storage: link_storage(&header)? })),
                ObjectKind::Datatype => {
                    let message = header.require_message::<DatatypeMessage>("a committed datatype has a datatype")?;
                    Some(ObjectKindSpec::Datatype(message.datatype))
                }
                _ => None,
            };
            Ok::<_, Error>((header.object_info()?, body))
        })?;
        let body = match body {
            Some(body) => body,
            None => {
                ObjectKindSpec::Dataset(Box::new(DatasetSpec::clone(&*NativeDataset::open(&self.0, addr)?.spec()?)))
            }
        };
        Ok(ObjectSpec { attribute_storage: info.attribute_storage, track_times: info.times.is_some(), ..body.into() })
    }

    fn info(&self, id: ObjectId) -> ModelResult<ObjectInfo> {
        let addr = self.0.header_addr_of(id)?;
        Ok(self.0.retry.retry(|| self.0.load_header(addr)?.object_info())?)
    }

    fn dataset(&self, id: ObjectId) -> ModelResult<Arc<dyn ChunkStore>> {
        Ok(Arc::new(NativeDataset::open(&self.0, self.0.header_addr_of(id)?)?))
    }

    fn read_blobs(&self, elements: &[&[u8]], each: &mut dyn FnMut(usize, &[u8])) -> ModelResult<()> {
        let widths = self.0.cache.widths();
        let place = |element: &&[u8]| {
            let element: VarLenElement = decode(element, widths)?;
            Ok(if element.length == 0 { GlobalHeapId::NOWHERE } else { element.place })
        };
        let places: std::result::Result<Vec<_>, _> = elements.iter().map(place).collect();
        let places = places.map_err(|source| Error::DamagedMessage { header: Addr::UNDEFINED, source })?;
        Ok(self.0.global_heap.with_objects(&places, each)?)
    }

    fn referent(&self, kind: ReferenceKind, element: &[u8]) -> ModelResult<Option<Referent>> {
        Ok(self.0.decode_reference(kind, element)?)
    }

    fn encode_reference(&self, form: &ReferenceType, to: &Referent) -> ModelResult<Vec<u8>> {
        let is_address = to.part == ReferentPart::Whole && to.file.is_none();
        if is_address {
            self.0.check_open()?
        } else {
            self.0.check_writable()?
        }
        if to.file.is_none() {
            self.kind(to.object)?;
        }
        let _operation = (!is_address).then(|| self.0.cache.begin_atomic_change());
        Ok(self.0.encode_reference(form.kind, form.size, Some(to))?)
    }

    fn close(&self) -> ModelResult<()> {
        Ok(self.0.close()?)
    }

    fn refresh(&self, scope: ObjectScope<'_>) -> ModelResult<()> {
        let ObjectScope::Objects(objects) = scope else { return Ok(NativeDataset::refresh_all(&self.0)?) };
        for id in objects {
            let addr = self.0.header_addr_of(*id)?;
            match NativeDataset::find_open(&self.0, addr) {
                Some(dataset) => drop(dataset.refresh()?),
                None => drop(self.0.load_header(addr)?),
            }
        }
        Ok(())
    }

    fn liveness(&self) -> ModelResult<WriterLiveness> {
        Ok(self.0.writer_liveness_with_relock()?)
    }

    fn stats(&self) -> Stats {
        self.0.session_stats()
    }

    fn watch(&self, objects: &[ObjectId]) -> ModelResult<Box<dyn Watch>> {
        Ok(Box::new(NativeWatch::new(&self.0, objects)?))
    }

    fn writer(&self) -> ModelResult<&dyn StoreWriter> {
        self.0.check_writable()?;
        Ok(self)
    }

    fn maps(&self) -> Option<&dyn MapStore> {
        None
    }
}
