//! What changes an HDF5 file: objects, links, attributes; and commits.

use h5live_cache::{DependencyKind, DependencyNode, FlushScope, Owner};
use h5live_format::messages::{AttributeMessage, Comment, DataspaceMessage, LinkValue, MessageType, Shareable};
use h5live_format::{GlobalHeapId, VarLenElement, decode};
use h5live_model::{
    AllocationTime, AttributeData, Error as ModelError, Layout, LinkTarget, Name, NewObject, ObjectId,
    ObjectInfoChange, ObjectKindSpec, ObjectScope, ObjectSpec, ObjectTimes, PublishLevel, Result as ModelResult, Store,
    StoreWriter,
};

use crate::attributes::AttributeStorage;
use crate::file::NativeFile;
use crate::header::CachedHeader;
use crate::links::LinkStorage;
use crate::object_kind::committed_datatype;
use crate::{Error, Result};

impl NativeFile {
    /// A link as a file holds it, and the header to which it leads if it is a hard link.
    fn link_value(&self, target: &LinkTarget) -> Result<(LinkValue, Option<CachedHeader>)> {
        Ok(match target {
            LinkTarget::Hard(id) => {
                let header = self.0.load_header(self.0.header_addr_of(*id)?)?;
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

    /// Makes an object with a link to it.
    fn create_linked(&self, (parent, name): (ObjectId, &Name), new: &NewObject<'_>) -> ModelResult<ObjectId> {
        let NewObject { spec, compact_elements: elements, .. } = *new;
        name.check_as_link_name()?;
        if (self.0.may_be_followed() || !is_cheap_to_create(spec)) && self.link(parent, name)?.is_some() {
            return Err(ModelError::Exists(name.clone()));
        }
        self.0.extend_eof_for_object(spec)?;
        let operation = self.0.cache.begin_atomic_change();
        self.0.make_flush_atomic_unless_followed();
        let header = self.0.create_object(spec, elements)?;
        let linked = self.insert_link(parent, name, LinkValue::Hard(header.addr()), Some(&header));
        linked.inspect_err(|_| drop(self.0.drop_use_or_delete_object(header.addr())))?;
        drop(operation);
        self.0.count_operation_and_flush_if_due()?;
        Ok(ObjectId(header.addr().get().unwrap_or(u64::MAX).into()))
    }

    /// Makes an object that no link leads to.
    fn create_unlinked(&self, new: &NewObject<'_>) -> ModelResult<ObjectId> {
        self.0.extend_eof_for_object(new.spec)?;
        let _operation = self.0.cache.begin_atomic_change();
        let header = self.0.create_object(new.spec, new.compact_elements)?;
        self.0.unlinked.add_new_object(header.addr());
        Ok(ObjectId(header.addr().get().unwrap_or(u64::MAX).into()))
    }

    /// Adds a link, whose name the caller has checked.
    fn insert_link(&self, group: ObjectId, name: &Name, value: LinkValue, target: Option<&CachedHeader>) -> Result<()> {
        let addr = self.0.header_addr_of(group)?;
        let _lock = self.0.lock_header(addr);
        let mut header = self.group(group)?;
        self.0.insert_link(&mut header, name, value, target)
    }

    /// Says when an object was touched, where its header keeps that.
    fn set_times(&self, id: ObjectId, times: ObjectTimes) -> ModelResult<()> {
        let _operation = self.0.cache.begin_atomic_change();
        let addr = self.0.header_addr_of(id)?;
        let _lock = self.0.lock_header(addr);
        Ok(self.0.load_header(addr)?.set_times(times)?)
    }

    /// Sets the comment on an object, or takes it away.
    fn set_comment(&self, id: ObjectId, comment: Option<&Name>) -> ModelResult<()> {
        let _operation = self.0.cache.begin_atomic_change();
        let addr = self.0.header_addr_of(id)?;
        let _lock = self.0.lock_header(addr);
        let mut header = self.0.load_header(addr)?;
        let old = header.find_message(|message| message.kind == MessageType::COMMENT);
        match (comment, old) {
            (Some(text), _) => header.set_message(&Comment { text: text.clone() })?,
            (None, Some((spot, _))) => header.remove_message(spot)?,
            (None, None) => {}
        }
        Ok(())
    }
}

/// Whether so little is made of an object that it may be in vain: that its name is taken is found when its link is
/// added.
fn is_cheap_to_create(spec: &ObjectSpec) -> bool {
    match &spec.body {
        ObjectKindSpec::Dataset(spec) => {
            let has_header_alone = matches!(spec.layout, Layout::Compact | Layout::Contiguous | Layout::Chunked(_));
            has_header_alone && spec.fill.allocation != AllocationTime::Early && spec.committed_datatype.is_none()
        }
        _ => false,
    }
}

/// With more objects than these that wait to be removed from global heaps, a flush is worth it.
const MAX_PENDING_REMOVALS: usize = 4096;

impl StoreWriter for NativeFile {
    fn create(&self, new: &NewObject<'_>) -> ModelResult<ObjectId> {
        self.0.check_writable()?;
        match new.link {
            Some(link) => self.create_linked(link, new),
            None => self.create_unlinked(new),
        }
    }

    fn discard(&self, id: ObjectId) -> ModelResult<()> {
        self.0.check_writable()?;
        let addr = self.0.header_addr_of(id)?;
        let _operation = self.0.cache.begin_atomic_change();
        if self.0.unlinked.take_new_object(addr) {
            self.0.drop_use_or_delete_object(addr)?;
        }
        Ok(())
    }

    fn add_link(&self, group: ObjectId, name: &Name, target: &LinkTarget) -> ModelResult<()> {
        self.0.check_writable()?;
        let operation = self.0.cache.begin_atomic_change();
        self.0.make_flush_atomic_unless_followed();
        let (value, header) = self.link_value(target)?;
        name.check_as_link_name()?;
        self.insert_link(group, name, value, header.as_ref())?;
        if let Some(header) = header {
            self.0.add_object_use(header.addr())?;
        }
        drop(operation);
        Ok(self.0.count_operation_and_flush_if_due()?)
    }

    fn remove_link(&self, group: ObjectId, name: &Name) -> ModelResult<()> {
        self.0.check_writable()?;
        let operation = self.0.cache.begin_atomic_change();
        self.0.make_flush_atomic_unless_followed();
        let addr = self.0.header_addr_of(group)?;
        let link = {
            let header = self.group(group)?;
            LinkStorage::load(&self.0, &header)?
                .find_link(&header, name)?
                .ok_or_else(|| ModelError::NotFound(name.clone()))?
        };
        if let LinkTarget::Hard(target) = link.target {
            self.0.drop_use_or_delete_object(self.0.header_addr_of(target)?)?;
        }
        let lock = self.0.lock_header(addr);
        let mut header = self.group(group)?;
        self.0.remove_link(&mut header, name)?;
        drop((lock, operation));
        Ok(self.0.count_operation_and_flush_if_due()?)
    }

    fn rename_link(&self, from: (ObjectId, &Name), to: (ObjectId, &Name)) -> ModelResult<()> {
        self.0.check_writable()?;
        let link = {
            let header = self.group(from.0)?;
            LinkStorage::load(&self.0, &header)?
                .find_link(&header, from.1)?
                .ok_or_else(|| ModelError::NotFound(from.1.clone()))?
        };
        if from == to {
            return Ok(());
        }
        let _operation = self.0.cache.begin_atomic_change();
        self.0.cache.make_next_flush_atomic();
        let (value, target) = self.link_value(&link.target)?;
        to.1.check_as_link_name()?;
        self.insert_link(to.0, to.1, value, target.as_ref())?;
        let addr = self.0.header_addr_of(from.0)?;
        let _lock = self.0.lock_header(addr);
        let mut header = self.group(from.0)?;
        self.0.remove_link(&mut header, from.1)?;
        if from.0 != to.0 {
            header.add_dependency_on(&self.group(to.0)?, DependencyKind::Link);
        }
        Ok(())
    }

    fn set_attribute(&self, id: ObjectId, attribute: &AttributeData) -> ModelResult<()> {
        self.0.check_writable()?;
        attribute.check()?;
        let _operation = self.0.cache.begin_atomic_change();
        self.0.make_flush_atomic_unless_followed();
        let addr = self.0.header_addr_of(id)?;
        let lock = self.0.lock_header(addr);
        let mut header = self.0.load_header(addr)?;
        let message = AttributeMessage::new(
            self.0.profile,
            attribute.name.clone(),
            self.0.datatype_message(&attribute.datatype, attribute.committed_datatype)?,
            Shareable::Inline(DataspaceMessage::new(self.0.profile, attribute.dataspace.clone())),
            attribute.value.clone(),
        );
        let old = AttributeStorage::load(&self.0, &header)?.find_attribute(&self.0, &header, &attribute.name)?;
        let old_type = old.and_then(|old| committed_datatype(old.message.datatype.shared()));
        let committed =
            attribute.committed_datatype.map(|id| self.0.load_header(self.0.header_addr_of(id)?)).transpose()?;
        let heaps = if attribute.datatype.has_vlen_or_references() {
            self.0.global_heap.changed_collections()
        } else {
            Vec::new()
        };
        let heaps = heaps.iter().map(|heap| (heap as &dyn DependencyNode, DependencyKind::MetadataGlobalHeap));
        let types = committed
            .iter()
            .filter(|header| header.is_new())
            .flat_map(CachedHeader::chunk_nodes)
            .map(|node| (node, DependencyKind::Link));
        let before: Vec<_> = heaps.chain(types).collect();
        self.0.put_attribute(&mut header, &message, &before)?;
        if attribute.datatype.has_vlen_or_references() {
            self.0.global_heap.add_header_as_flush_parent(&header)?;
        }
        drop(lock);
        self.0.count_datatype_use(&header, attribute.committed_datatype)?;
        Ok(self.0.drop_committed_type_use(old_type)?)
    }

    fn remove_attribute(&self, id: ObjectId, name: &Name) -> ModelResult<()> {
        self.0.check_writable()?;
        let _operation = self.0.cache.begin_atomic_change();
        self.0.make_flush_atomic_unless_followed();
        let addr = self.0.header_addr_of(id)?;
        let lock = self.0.lock_header(addr);
        let mut header = self.0.load_header(addr)?;
        let old = AttributeStorage::load(&self.0, &header)?.find_attribute(&self.0, &header, name)?;
        let old = old.ok_or_else(|| ModelError::NotFound(name.clone()))?;
        self.0.remove_attribute(&mut header, name)?;
        drop(lock);
        Ok(self.0.drop_committed_type_use(committed_datatype(old.message.datatype.shared()))?)
    }

    fn set_info(&self, id: ObjectId, change: &ObjectInfoChange<'_>) -> ModelResult<()> {
        self.0.check_writable()?;
        match *change {
            ObjectInfoChange::Times(times) => self.set_times(id, times),
            ObjectInfoChange::Comment(comment) => self.set_comment(id, comment),
        }
    }

    fn put_blob(&self, bytes: &[u8], count: u32) -> ModelResult<Vec<u8>> {
        self.put_blobs(&[(bytes, count)])
    }

    fn put_blobs(&self, blobs: &[(&[u8], u32)]) -> ModelResult<Vec<u8>> {
        self.0.check_writable()?;
        let widths = self.0.cache.widths();
        let objects: Vec<&[u8]> = blobs.iter().filter(|(_, count)| *count > 0).map(|(bytes, _)| *bytes).collect();
        let mut places = {
            let _operation = self.0.cache.begin_atomic_change();
            self.0.global_heap.write_objects(&objects)?.into_iter()
        };
        let elements = blobs.iter().map(|(_, count)| {
            let place = if *count == 0 { None } else { places.next() };
            VarLenElement { length: *count, place: place.unwrap_or(GlobalHeapId::NOWHERE) }
        });
        Ok(VarLenElement::encode_all(elements, widths).map_err(Error::from)?)
    }

    fn remove_blobs(&self, elements: &[&[u8]]) -> ModelResult<()> {
        self.0.check_writable()?;
        let widths = self.0.cache.widths();
        if self.0.may_be_followed() {
            return Ok(());
        }
        let objects = elements.iter().filter_map(|element| decode::<VarLenElement>(element, widths).ok());
        let objects = objects.filter(|element| element.length > 0 && element.place.is_defined());
        self.0.global_heap.queue_object_removals(objects.map(|element| element.place));
        // They can be removed after a flush.
        let is_due = self.0.global_heap.pending_removal_count() > MAX_PENDING_REMOVALS;
        if is_due { Ok(self.0.flush(FlushScope::All)?) } else { Ok(()) }
    }

    fn start_swmr(&self) -> ModelResult<()> {
        Ok(self.0.start_swmr()?)
    }

    fn is_dirty(&self) -> bool {
        self.0.mode.writes() && self.0.cache.is_dirty()
    }

    fn commit(&self, scope: ObjectScope<'_>, publish: PublishLevel) -> ModelResult<()> {
        self.0.check_writable()?;
        let flush = |scope| match publish {
            PublishLevel::Visible => self.0.flush(scope),
            PublishLevel::Durable => self.0.flush_durable(scope),
        };
        match scope {
            ObjectScope::All => flush(FlushScope::All)?,
            ObjectScope::Objects(objects) => {
                for id in objects {
                    flush(FlushScope::Owner(Owner::new(self.0.header_addr_of(*id)?)))?;
                }
            }
        }
        Ok(())
    }
}
