//! The native store: an HDF5 file.

use std::hash::{DefaultHasher, Hash};
use std::path::Path;
use std::sync::{Arc, Weak};

use h5live_cache::{DependencyNode, EdgeKind, FlushScope, Owner, Storage};
use h5live_format::messages::{
    AttributeMessage, Comment, DataspaceMessage, DatatypeMessage, LinkValue, MessageType, Shareable,
};
use h5live_format::{Addr, GlobalHeapId, Superblock, VarLenElement, decode, encode};
use h5live_model::{
    AllocationTime, AttributeData, Chunks, Datatype, Error as ModelError, GroupSpec, Layout, Link, LinkTarget, Name,
    ObjectBody, ObjectId, ObjectInfo, ObjectKind, ObjectSpec, ObjectTimes, Objects, ReferenceKind, ReferenceType,
    Referent, Result as ModelResult, Session, Stats, Watch,
};

use crate::attributes::{AttributeStorage, StoredAttribute};
use crate::creation::{committed, link_storage};
use crate::dataset::NativeDataset;
use crate::described_session::describe;
use crate::header::CachedHeader;
use crate::links::LinkStorage;
use crate::open::OpenOptions;
use crate::seen_names::NameScope;
use crate::session::NativeSession;
use crate::watch::NativeWatch;
use crate::{Error, Result};

/// An HDF5 file that is open in this process. Clones are the same session.
#[derive(Debug, Clone)]
pub struct NativeFile(Arc<NativeSession>, Arc<Session>);

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

    fn new(session: NativeSession) -> Self {
        let described = describe(&session);
        NativeFile(Arc::new(session), Arc::new(described))
    }

    /// Hashes everything that is kept in memory of a file that is followed by generations. For the model checker.
    #[doc(hidden)]
    pub fn hash_state(&self, state: &mut DefaultHasher) {
        let session = &*self.0;
        session.retry.generations().iter().for_each(|generations| generations.hash_state(state));
        // Where the file ended when it was opened matters to nobody.
        let superblock = Superblock { end_of_file: Addr::UNDEFINED, ..session.superblock.clone() };
        format!("{superblock:?} {:?}", session.extension).hash(state);
        // While one is opened, nothing is known of it.
        let Some(datasets) = session.datasets.try_lock() else { return };
        let mut open: Vec<_> = datasets.values().filter_map(Weak::upgrade).collect();
        drop(datasets);
        open.sort_unstable_by_key(|dataset| Chunks::id(&**dataset));
        open.iter().for_each(|dataset| dataset.hash_state(state));
    }

    #[cfg(test)]
    pub(crate) fn native_session(&self) -> &NativeSession {
        &self.0
    }

    fn group(&self, id: ObjectId) -> Result<CachedHeader> {
        let header = self.0.header(self.0.object(id)?)?;
        match kind_of(&header)? {
            ObjectKind::Group => Ok(header),
            _ => Err(Error::Model(ModelError::WrongKind { expected: "group" })),
        }
    }

    /// A link as a file holds it, and the header to which it leads if it is a hard link.
    fn link_value(&self, target: &LinkTarget) -> Result<(LinkValue, Option<CachedHeader>)> {
        Ok(match target {
            LinkTarget::Hard(id) => {
                let header = self.0.header(self.0.object(*id)?)?;
                (LinkValue::Hard(header.addr()), Some(header))
            }
            LinkTarget::Soft(path) => (LinkValue::Soft(path.clone()), None),
            LinkTarget::External { file, path } => {
                (LinkValue::External { file: file.clone(), path: path.clone() }, None)
            }
            LinkTarget::UserDefined { class, data } => {
                (LinkValue::UserDefined { class: *class, data: data.clone() }, None)
            }
        })
    }

    /// Makes an object; a compact dataset may have `elements` from the start.
    fn create_object(
        &self,
        parent: ObjectId,
        name: &Name,
        spec: &ObjectSpec,
        elements: Option<&[u8]>,
    ) -> ModelResult<ObjectId> {
        self.0.check_writable()?;
        check_name(name)?;
        if (self.0.has_followers() || !is_cheap_to_create(spec)) && self.link(parent, name)?.is_some() {
            return Err(ModelError::Exists(name.clone()));
        }
        self.0.announce_for(spec)?;
        let operation = self.0.cache.begin_operation();
        self.0.require_atomic_flush();
        let header = self.0.create(spec, elements)?;
        let linked = self.insert_link(parent, name, LinkValue::Hard(header.addr()), Some(&header));
        linked.inspect_err(|_| drop(self.0.release_object(header.addr())))?;
        drop(operation);
        self.0.reclaim_space()?;
        Ok(ObjectId(header.addr().get().unwrap_or(u64::MAX).into()))
    }

    /// Adds a link, whose name the caller has checked.
    fn insert_link(&self, group: ObjectId, name: &Name, value: LinkValue, target: Option<&CachedHeader>) -> Result<()> {
        let addr = self.0.object(group)?;
        let _lock = self.0.header_lock(addr);
        let mut header = self.group(group)?;
        self.0.insert_link(&mut header, name, value, target)
    }
}

/// Whether so little is made of an object that it may be in vain: that its name is taken is found when its link is
/// added.
fn is_cheap_to_create(spec: &ObjectSpec) -> bool {
    match &spec.body {
        ObjectBody::Dataset(spec) => {
            let has_header_alone = matches!(spec.layout, Layout::Compact | Layout::Contiguous | Layout::Chunked(_));
            has_header_alone && spec.fill.allocation != AllocationTime::Early && spec.committed.is_none()
        }
        _ => false,
    }
}

fn check_name(name: &Name) -> Result<()> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes == b"." || bytes.contains(&b'/') || bytes.contains(&0) {
        let text = format!("{name:?} cannot be the name of a link");
        return Err(Error::Model(ModelError::Invalid(text)));
    }
    Ok(())
}

/// The kind of the object with this header.
pub(crate) fn kind_of(header: &CachedHeader) -> Result<ObjectKind> {
    let (mut layout, mut datatype, mut dataspace, mut links) = (false, false, false, false);
    header.for_each_type(|kind| match kind {
        MessageType::LAYOUT => layout = true,
        MessageType::DATATYPE => datatype = true,
        MessageType::DATASPACE => dataspace = true,
        MessageType::LINK_INFO | MessageType::SYMBOL_TABLE => links = true,
        _ => {}
    });
    if layout || datatype && dataspace {
        Ok(ObjectKind::Dataset)
    } else if links {
        Ok(ObjectKind::Group)
    } else if datatype {
        Ok(ObjectKind::Datatype)
    } else {
        Err(header.damaged_error("it is a group, a dataset or a datatype"))
    }
}

impl Objects for NativeFile {
    fn session(&self) -> &Session {
        &self.1
    }

    fn check_writable(&self) -> ModelResult<()> {
        Ok(self.0.check_writable()?)
    }

    fn kind(&self, id: ObjectId) -> ModelResult<ObjectKind> {
        Ok(kind_of(&self.0.header(self.0.object(id)?)?)?)
    }

    fn create(&self, parent: ObjectId, name: &Name, spec: &ObjectSpec) -> ModelResult<ObjectId> {
        self.create_object(parent, name, spec, None)
    }

    fn create_compact(
        &self,
        parent: ObjectId,
        name: &Name,
        spec: &ObjectSpec,
        elements: &[u8],
    ) -> ModelResult<ObjectId> {
        self.create_object(parent, name, spec, Some(elements))
    }

    fn create_unlinked(&self, spec: &ObjectSpec) -> ModelResult<ObjectId> {
        self.0.check_writable()?;
        self.0.announce_for(spec)?;
        let _operation = self.0.cache.begin_operation();
        let header = self.0.create(spec, None)?;
        self.0.unlinked.lock().insert(header.addr());
        Ok(ObjectId(header.addr().get().unwrap_or(u64::MAX).into()))
    }

    fn link(&self, group: ObjectId, name: &Name) -> ModelResult<Option<Link>> {
        let addr = self.0.object(group)?;
        self.0.check_open()?;
        if let Some(known) = LinkStorage::find_cached(&self.0, addr, name) {
            return Ok(known);
        }
        let found = self.0.find_stable(NameScope::Links(addr), name, || {
            let _lock = self.0.lock_to_read(addr);
            let header = self.group(group)?;
            let links = LinkStorage::load(&self.0, &header)?;
            links.count_lookup(&self.0, &header);
            links.find(&header, name)
        })?;
        Ok(found)
    }

    fn group(&self, id: ObjectId) -> ModelResult<GroupSpec> {
        Ok(GroupSpec { links: link_storage(&NativeFile::group(self, id)?)? })
    }

    fn for_each_link(&self, group: ObjectId, each: &mut dyn FnMut(Link) -> bool) -> ModelResult<()> {
        let addr = self.0.object(group)?;
        self.0.for_each_listed(each, (NameScope::Links(addr), |link: &Link| &link.name), |each| {
            let _lock = self.0.lock_to_read(addr);
            let header = self.group(group)?;
            LinkStorage::load(&self.0, &header)?.for_each(&header, each)
        })?;
        Ok(())
    }

    fn add_link(&self, group: ObjectId, name: &Name, target: &LinkTarget) -> ModelResult<()> {
        self.0.check_writable()?;
        let operation = self.0.cache.begin_operation();
        self.0.require_atomic_flush();
        let (value, header) = self.link_value(target)?;
        check_name(name)?;
        self.insert_link(group, name, value, header.as_ref())?;
        if let Some(header) = header {
            self.0.count_use(header.addr())?;
        }
        drop(operation);
        Ok(self.0.reclaim_space()?)
    }

    fn remove_link(&self, group: ObjectId, name: &Name) -> ModelResult<()> {
        self.0.check_writable()?;
        let operation = self.0.cache.begin_operation();
        self.0.require_atomic_flush();
        let addr = self.0.object(group)?;
        let link = {
            let header = self.group(group)?;
            LinkStorage::load(&self.0, &header)?
                .find(&header, name)?
                .ok_or_else(|| ModelError::NotFound(name.clone()))?
        };
        if let LinkTarget::Hard(target) = link.target {
            self.0.release_object(self.0.object(target)?)?;
        }
        let lock = self.0.header_lock(addr);
        let mut header = self.group(group)?;
        self.0.remove_link(&mut header, name)?;
        drop((lock, operation));
        Ok(self.0.reclaim_space()?)
    }

    fn rename_link(&self, from: (ObjectId, &Name), to: (ObjectId, &Name)) -> ModelResult<()> {
        self.0.check_writable()?;
        let link = {
            let header = self.group(from.0)?;
            LinkStorage::load(&self.0, &header)?
                .find(&header, from.1)?
                .ok_or_else(|| ModelError::NotFound(from.1.clone()))?
        };
        if from == to {
            return Ok(());
        }
        let _operation = self.0.cache.begin_operation();
        self.0.cache.require_atomic_flush();
        let (value, target) = self.link_value(&link.target)?;
        check_name(to.1)?;
        self.insert_link(to.0, to.1, value, target.as_ref())?;
        let addr = self.0.object(from.0)?;
        let _lock = self.0.header_lock(addr);
        let mut header = self.group(from.0)?;
        self.0.remove_link(&mut header, from.1)?;
        if from.0 != to.0 {
            header.depend_on(&self.group(to.0)?, EdgeKind::Link);
        }
        Ok(())
    }

    fn attribute(&self, id: ObjectId, name: &Name) -> ModelResult<Option<AttributeData>> {
        let addr = self.0.object(id)?;
        let found = self.0.find_stable(NameScope::Attributes(addr), name, || {
            let _lock = self.0.lock_to_read(addr);
            let header = self.0.header(addr)?;
            let tracked = header.prefix().attributes_tracked;
            let found = AttributeStorage::load(&self.0, &header)?.find(&self.0, &header, name)?;
            found.map(|stored| self.0.attribute_value(stored, tracked)).transpose()
        })?;
        Ok(found)
    }

    fn attribute_names(&self, id: ObjectId) -> ModelResult<Vec<Name>> {
        let addr = self.0.object(id)?;
        let names = self.0.list_stable(
            NameScope::Attributes(addr),
            |name| name,
            |each| {
                let _lock = self.0.lock_to_read(addr);
                let header = self.0.header(addr)?;
                let mut each = |stored: StoredAttribute| Ok(each(stored.message.name));
                AttributeStorage::load(&self.0, &header)?.for_each(&self.0, &header, &mut each)
            },
        )?;
        Ok(names)
    }

    fn for_each_attribute(&self, id: ObjectId, each: &mut dyn FnMut(AttributeData) -> bool) -> ModelResult<()> {
        let addr = self.0.object(id)?;
        self.0.for_each_listed(
            each,
            (NameScope::Attributes(addr), |attribute: &AttributeData| &attribute.name),
            |each| {
                let _lock = self.0.lock_to_read(addr);
                let header = self.0.header(addr)?;
                let tracked = header.prefix().attributes_tracked;
                AttributeStorage::load(&self.0, &header)?
                    .for_each(&self.0, &header, &mut |stored| Ok(each(self.0.attribute_value(stored, tracked)?)))
            },
        )?;
        Ok(())
    }

    fn info(&self, id: ObjectId) -> ModelResult<ObjectInfo> {
        let addr = self.0.object(id)?;
        Ok(self.0.retry.retry(|| self.0.header(addr)?.info())?)
    }

    fn discard(&self, id: ObjectId) -> ModelResult<()> {
        self.0.check_writable()?;
        let addr = self.0.object(id)?;
        let _operation = self.0.cache.begin_operation();
        if self.0.unlinked.lock().remove(&addr) {
            self.0.release_object(addr)?;
        }
        Ok(())
    }

    fn set_times(&self, id: ObjectId, times: ObjectTimes) -> ModelResult<()> {
        self.0.check_writable()?;
        let _operation = self.0.cache.begin_operation();
        let addr = self.0.object(id)?;
        let _lock = self.0.header_lock(addr);
        Ok(self.0.header(addr)?.set_times(times)?)
    }

    fn set_comment(&self, id: ObjectId, comment: Option<&Name>) -> ModelResult<()> {
        self.0.check_writable()?;
        let _operation = self.0.cache.begin_operation();
        let addr = self.0.object(id)?;
        let _lock = self.0.header_lock(addr);
        let mut header = self.0.header(addr)?;
        let old = header.find(|message| message.kind == MessageType::COMMENT);
        match (comment, old) {
            (Some(text), _) => header.put(&Comment { text: text.clone() })?,
            (None, Some((spot, _))) => header.remove(spot)?,
            (None, None) => {}
        }
        Ok(())
    }

    fn set_attribute(&self, id: ObjectId, attribute: &AttributeData) -> ModelResult<()> {
        self.0.check_writable()?;
        let bytes = attribute.dataspace.elements().and_then(|n| n.checked_mul(attribute.datatype.size().into()));
        if attribute.name.is_empty() || bytes != Some(attribute.value.len() as u64) {
            let text = format!("the value of attribute {:?} does not fit its type and shape", attribute.name);
            return Err(ModelError::Invalid(text));
        }
        let _operation = self.0.cache.begin_operation();
        self.0.require_atomic_flush();
        let addr = self.0.object(id)?;
        let lock = self.0.header_lock(addr);
        let mut header = self.0.header(addr)?;
        let message = AttributeMessage::new(
            self.0.profile,
            attribute.name.clone(),
            self.0.datatype_message(&attribute.datatype, attribute.committed)?,
            Shareable::Inline(DataspaceMessage::new(self.0.profile, attribute.dataspace.clone())),
            attribute.value.clone(),
        );
        let old = AttributeStorage::load(&self.0, &header)?.find(&self.0, &header, &attribute.name)?;
        let old_type = old.and_then(|old| committed(old.message.datatype.shared()));
        let committed = attribute.committed.map(|id| self.0.header(self.0.object(id)?)).transpose()?;
        let heaps = if attribute.datatype.is_indirect() { self.0.heap.lock().changed() } else { Vec::new() };
        let heaps = heaps.iter().map(|heap| (heap as &dyn DependencyNode, EdgeKind::MetadataHeap));
        let types = committed
            .iter()
            .filter(|header| header.is_new())
            .flat_map(CachedHeader::chunk_nodes)
            .map(|node| (node, EdgeKind::Link));
        let before: Vec<_> = heaps.chain(types).collect();
        self.0.put_attribute(&mut header, &message, &before)?;
        if attribute.datatype.is_indirect() {
            header.depend_on_heap(&self.0)?;
        }
        drop(lock);
        self.0.count_user(&header, attribute.committed)?;
        Ok(self.0.release_type(old_type)?)
    }

    fn remove_attribute(&self, id: ObjectId, name: &Name) -> ModelResult<()> {
        self.0.check_writable()?;
        let _operation = self.0.cache.begin_operation();
        self.0.require_atomic_flush();
        let addr = self.0.object(id)?;
        let lock = self.0.header_lock(addr);
        let mut header = self.0.header(addr)?;
        let old = AttributeStorage::load(&self.0, &header)?.find(&self.0, &header, name)?;
        let old = old.ok_or_else(|| ModelError::NotFound(name.clone()))?;
        self.0.remove_attribute(&mut header, name)?;
        drop(lock);
        Ok(self.0.release_type(committed(old.message.datatype.shared()))?)
    }

    fn dataset(&self, id: ObjectId) -> ModelResult<Arc<dyn Chunks>> {
        Ok(NativeDataset::open(&self.0, self.0.object(id)?)?)
    }

    fn datatype(&self, id: ObjectId) -> ModelResult<Datatype> {
        let header = self.0.header(self.0.object(id)?)?;
        if kind_of(&header)? != ObjectKind::Datatype {
            return Err(ModelError::WrongKind { expected: "committed datatype" });
        }
        Ok(header.require::<DatatypeMessage>("a committed datatype has a datatype")?.datatype)
    }

    fn refresh(&self, id: ObjectId) -> ModelResult<()> {
        self.0.header(self.0.object(id)?)?;
        Ok(())
    }

    fn read_heap(&self, element: &[u8]) -> ModelResult<Vec<u8>> {
        let widths = self.0.cache.widths();
        let element: VarLenElement =
            decode(element, widths).map_err(|source| Error::Message { header: Addr::UNDEFINED, source })?;
        if element.length == 0 || !element.place.is_defined() {
            return Ok(Vec::new());
        }
        Ok(self.0.read_global_heap(element.place)?)
    }

    fn write_heap(&self, bytes: &[u8], count: u32) -> ModelResult<Vec<u8>> {
        self.0.check_writable()?;
        let widths = self.0.cache.widths();
        let place = match count {
            0 => GlobalHeapId { collection: Addr::new(0), index: 0 },
            _ => {
                let _operation = self.0.cache.begin_operation();
                self.0.write_global_heap(bytes)?
            }
        };
        Ok(encode(&VarLenElement { length: count, place }, widths).map_err(Error::from)?)
    }

    fn reference(&self, form: &ReferenceType, to: &Referent) -> ModelResult<Vec<u8>> {
        self.0.check_writable()?;
        if to.file.is_none() {
            self.kind(to.object)?;
        }
        let _operation = self.0.cache.begin_operation();
        Ok(self.0.encode_reference(form.kind, form.size, Some(to))?)
    }

    fn referent(&self, kind: ReferenceKind, element: &[u8]) -> ModelResult<Option<Referent>> {
        Ok(self.0.referent(kind, element)?)
    }

    fn flush(&self) -> ModelResult<()> {
        Ok(self.0.flush(FlushScope::All)?)
    }

    fn flush_object(&self, id: ObjectId) -> ModelResult<()> {
        Ok(self.0.flush(FlushScope::Owner(Owner::new(self.0.object(id)?)))?)
    }

    fn flush_durable(&self, id: Option<ObjectId>) -> ModelResult<()> {
        let scope = match id {
            Some(id) => FlushScope::Owner(Owner::new(self.0.object(id)?)),
            None => FlushScope::All,
        };
        Ok(self.0.flush_durable(scope)?)
    }

    fn is_dirty(&self) -> bool {
        self.0.mode.writes() && self.0.cache.is_dirty()
    }

    fn close(&self) -> ModelResult<()> {
        Ok(self.0.close()?)
    }

    fn start_swmr(&self) -> ModelResult<()> {
        Ok(self.0.start_swmr()?)
    }

    fn is_live(&self) -> ModelResult<bool> {
        Ok(self.0.is_live()?)
    }

    fn stats(&self) -> Stats {
        self.0.stats()
    }

    fn watch(&self, objects: &[ObjectId]) -> ModelResult<Box<dyn Watch>> {
        Ok(Box::new(NativeWatch::new(&self.0, objects)?))
    }
}
