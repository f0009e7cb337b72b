//! The native store: an HDF5 file.

use std::path::Path;
use std::sync::Arc;

use h5live_cache::{EdgeKind, Scope};
use h5live_format::messages::LinkInfo;
use h5live_format::messages::{
    AttributeMessage, DataspaceMessage, DatatypeMessage, LinkMessage, LinkValue, MessageType, Shareable, SharedPlace,
};
use h5live_format::{Addr, MessageFlags, ObjectHeaderPrefix, RawMessage, VarLenElement, decode};
use h5live_model::{
    Attribute, CharacterSet, Chunks, Datatype, Error as ModelError, Link, LinkTarget, Name, ObjectId, ObjectKind,
    ObjectSpec, Objects, ReferenceKind, Result as ModelResult,
};

use crate::dataset::{NativeDataset, create_dataset};
use crate::header::{Header, Room, Spot};
use crate::open::{OpenOptions, new_group};
use crate::session::Session;
use crate::{Error, Result};

/// An HDF5 file that is open in this process. Clones are the same session.
#[derive(Debug, Clone)]
pub struct NativeFile(Arc<Session>);

impl NativeFile {
    /// Opens or creates the file at `path`.
    ///
    /// # Errors
    /// If the file cannot be opened, is no HDF5 file, or is open elsewhere in a way that excludes this session.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        Ok(NativeFile(Arc::new(options.open(path)?)))
    }

    fn group(&self, id: ObjectId) -> Result<Header> {
        let header = self.0.header(self.0.object(id)?)?;
        match kind_of(&header)? {
            ObjectKind::Group => Ok(header),
            _ => Err(Error::Model(ModelError::WrongKind { expected: "group" })),
        }
    }

    fn check_compact(header: &Header) -> Result<()> {
        if header.has(MessageType::SYMBOL_TABLE) {
            return Err(Error::Model(ModelError::Unsupported("a group of the old style")));
        }
        match header.get::<LinkInfo>()? {
            Some(info) if info.is_dense() => Err(Error::Model(ModelError::Unsupported("a group with dense links"))),
            _ => Ok(()),
        }
    }

    fn links(&self, group: ObjectId) -> Result<Vec<(Spot, LinkMessage)>> {
        self.0.patience.retry(|| {
            let header = self.group(group)?;
            Self::check_compact(&header)?;
            let mut links = Vec::new();
            header.each(|spot, message| {
                if message.kind == MessageType::LINK {
                    links.push((spot, header.decode::<LinkMessage>(message)?));
                }
                Ok(())
            })?;
            Ok(links)
        })
    }

    fn insert_link(&self, group: ObjectId, name: &Name, value: LinkValue, target: Option<&Header>) -> Result<()> {
        check_name(name)?;
        let addr = self.0.object(group)?;
        let _lock = self.0.header_lock(addr);
        let mut header = self.group(group)?;
        Self::check_compact(&header)?;
        if self.links(group)?.iter().any(|(_, link)| link.name == *name) {
            return Err(Error::Model(ModelError::Exists(name.clone())));
        }
        let mut creation_order = None;
        if let Some(mut info) = header.get::<LinkInfo>()?
            && let Some(next) = info.max_creation_order
        {
            creation_order = Some(next);
            info.max_creation_order = Some(next.saturating_add(1));
            header.put(&info)?;
        }
        let character_set = if name.is_ascii() { CharacterSet::Ascii } else { CharacterSet::Utf8 };
        let link = LinkMessage { name: name.clone(), character_set, creation_order, value };
        let message = header.raw(&link, MessageFlags::default())?;
        header.add(message)?;
        if let Some(target) = target {
            header.depend_on(target, EdgeKind::Link);
        }
        Ok(())
    }

    fn attributes(&self, header: &Header) -> Result<Vec<(Spot, AttributeMessage, u16)>> {
        if let Some(info) = header.get::<h5live_format::messages::AttributeInfo>()?
            && info.is_dense()
        {
            return Err(Error::Model(ModelError::Unsupported("an object with dense attributes")));
        }
        let mut found = Vec::new();
        header.each(|spot, message| {
            if message.kind == MessageType::ATTRIBUTE {
                if message.flags.is_shared() {
                    return Err(Error::Model(ModelError::Unsupported("an attribute in the heap of shared messages")));
                }
                found.push((spot, header.decode::<AttributeMessage>(message)?, message.creation_index));
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn value(&self, message: AttributeMessage, creation_order: Option<u16>) -> Result<Attribute> {
        let datatype = self.0.resolve_datatype(&message.datatype)?;
        let Shareable::Here(dataspace) = message.dataspace else {
            return Err(Error::Model(ModelError::Unsupported("a shared dataspace")));
        };
        let mut value = message.data;
        let bytes = dataspace.dataspace.elements().and_then(|n| n.checked_mul(datatype.size().into()));
        if let Some(bytes) = bytes.and_then(|bytes| usize::try_from(bytes).ok()).filter(|bytes| *bytes < value.len()) {
            value.truncate(bytes);
        }
        Ok(Attribute { name: message.name, datatype, dataspace: dataspace.dataspace, value, creation_order })
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

/// What kind of object has this header.
pub(crate) fn kind_of(header: &Header) -> Result<ObjectKind> {
    if header.has(MessageType::LAYOUT) || (header.has(MessageType::DATATYPE) && header.has(MessageType::DATASPACE)) {
        Ok(ObjectKind::Dataset)
    } else if header.has(MessageType::LINK_INFO) || header.has(MessageType::SYMBOL_TABLE) {
        Ok(ObjectKind::Group)
    } else if header.has(MessageType::DATATYPE) {
        Ok(ObjectKind::Datatype)
    } else {
        Err(header.damaged("it is a group, a dataset or a datatype"))
    }
}

impl Session {
    /// The type that a message holds, or to which it leads.
    pub(crate) fn resolve_datatype(&self, message: &Shareable<DatatypeMessage>) -> Result<Datatype> {
        match message {
            Shareable::Here(message) => Ok(message.datatype.clone()),
            Shareable::Shared(shared) => match shared.place {
                SharedPlace::Committed(addr) => {
                    let header = self.header(addr)?;
                    let message = header.require::<DatatypeMessage>("a committed datatype has a datatype")?;
                    Ok(message.datatype)
                }
                SharedPlace::Heap(_) => {
                    Err(Error::Model(ModelError::Unsupported("a datatype in the heap of shared messages")))
                }
            },
        }
    }
}

fn hard_target(link: &LinkMessage) -> LinkTarget {
    link.value.clone().into()
}

impl Objects for NativeFile {
    fn root(&self) -> ObjectId {
        ObjectId(self.0.superblock.root.header().get().unwrap_or(u64::MAX).into())
    }

    fn kind(&self, id: ObjectId) -> ModelResult<ObjectKind> {
        Ok(kind_of(&self.0.header(self.0.object(id)?)?)?)
    }

    fn create(&self, parent: ObjectId, name: &Name, spec: &ObjectSpec) -> ModelResult<ObjectId> {
        self.0.check_writable()?;
        check_name(name)?;
        if self.link(parent, name)?.is_some() {
            return Err(ModelError::Exists(name.clone()));
        }
        let operation = self.0.cache.operation();
        let header = match spec {
            ObjectSpec::Group => new_group(&self.0)?,
            ObjectSpec::Dataset(spec) => create_dataset(&self.0, spec)?,
            ObjectSpec::Datatype(datatype) => {
                let message = DatatypeMessage::new(self.0.profile, datatype.clone());
                let message = RawMessage::new(&message, MessageFlags::CONSTANT, self.0.cache.widths());
                let messages = vec![message.map_err(Error::from)?];
                Header::create(&self.0.cache, ObjectHeaderPrefix::default(), messages, Room(64))?
            }
        };
        self.insert_link(parent, name, LinkValue::Hard(header.addr()), Some(&header))?;
        drop(operation);
        Ok(ObjectId(header.addr().get().unwrap_or(u64::MAX).into()))
    }

    fn link(&self, group: ObjectId, name: &Name) -> ModelResult<Option<Link>> {
        let found = self.links(group)?.into_iter().find(|(_, link)| link.name == *name);
        Ok(found.map(|(_, link)| Link {
            target: hard_target(&link),
            name: link.name,
            creation_order: link.creation_order,
        }))
    }

    fn for_each_link(&self, group: ObjectId, each: &mut dyn FnMut(Link) -> bool) -> ModelResult<()> {
        for (_, link) in self.links(group)? {
            let target = hard_target(&link);
            if !each(Link { target, name: link.name, creation_order: link.creation_order }) {
                break;
            }
        }
        Ok(())
    }

    fn add_link(&self, group: ObjectId, name: &Name, target: &LinkTarget) -> ModelResult<()> {
        self.0.check_writable()?;
        let _operation = self.0.cache.operation();
        let (value, header) = match target {
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
        };
        self.insert_link(group, name, value, header.as_ref())?;
        if let Some(header) = header {
            let _lock = self.0.header_lock(header.addr());
            self.0.header(header.addr())?.count_link(1)?;
        }
        Ok(())
    }

    fn remove_link(&self, group: ObjectId, name: &Name) -> ModelResult<()> {
        self.0.check_writable()?;
        let _operation = self.0.cache.operation();
        let addr = self.0.object(group)?;
        let found = {
            let _lock = self.0.header_lock(addr);
            let mut header = self.group(group)?;
            let found = self.links(group)?.into_iter().find(|(_, link)| link.name == *name);
            let Some((spot, link)) = found else { return Err(ModelError::NotFound(name.clone())) };
            header.remove(spot)?;
            link
        };
        if let LinkValue::Hard(target) = found.value {
            let _lock = self.0.header_lock(target);
            self.0.header(target)?.count_link(-1)?;
        }
        Ok(())
    }

    fn attribute(&self, id: ObjectId, name: &Name) -> ModelResult<Option<Attribute>> {
        let addr = self.0.object(id)?;
        let found = self.0.patience.retry(|| {
            let header = self.0.header(addr)?;
            let tracked = header.prefix().attributes_tracked;
            let found = self.attributes(&header)?.into_iter().find(|(_, attribute, _)| attribute.name == *name);
            found.map(|(_, message, order)| self.value(message, tracked.then_some(order))).transpose()
        })?;
        Ok(found)
    }

    fn attribute_names(&self, id: ObjectId) -> ModelResult<Vec<Name>> {
        let addr = self.0.object(id)?;
        let found = self.0.patience.retry(|| self.attributes(&self.0.header(addr)?))?;
        Ok(found.into_iter().map(|(_, attribute, _)| attribute.name).collect())
    }

    fn set_attribute(&self, id: ObjectId, attribute: &Attribute) -> ModelResult<()> {
        self.0.check_writable()?;
        let bytes = attribute.dataspace.elements().and_then(|n| n.checked_mul(attribute.datatype.size().into()));
        if attribute.name.is_empty() || bytes != Some(attribute.value.len() as u64) {
            let text = format!("the value of attribute {:?} does not fit its type and shape", attribute.name);
            return Err(ModelError::Invalid(text));
        }
        let _operation = self.0.cache.operation();
        let addr = self.0.object(id)?;
        let _lock = self.0.header_lock(addr);
        let mut header = self.0.header(addr)?;
        let message = AttributeMessage::new(
            self.0.profile,
            attribute.name.clone(),
            Shareable::Here(DatatypeMessage::new(self.0.profile, attribute.datatype.clone())),
            Shareable::Here(DataspaceMessage::new(self.0.profile, attribute.dataspace.clone())),
            attribute.value.clone(),
        );
        let new = header.raw(&message, MessageFlags::default())?;
        let old = self.attributes(&header)?.into_iter().find(|(_, held, _)| held.name == attribute.name);
        Ok(match old {
            Some((spot, _, creation_index)) => header.replace(spot, RawMessage { creation_index, ..new }),
            None => header.add(new),
        }?)
    }

    fn remove_attribute(&self, id: ObjectId, name: &Name) -> ModelResult<()> {
        self.0.check_writable()?;
        let _operation = self.0.cache.operation();
        let addr = self.0.object(id)?;
        let _lock = self.0.header_lock(addr);
        let mut header = self.0.header(addr)?;
        let found = self.attributes(&header)?.into_iter().find(|(_, held, _)| held.name == *name);
        let Some((spot, ..)) = found else { return Err(ModelError::NotFound(name.clone())) };
        Ok(header.remove(spot)?)
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
        Ok(self.0.heap_object(element.place)?)
    }

    fn dereference(&self, kind: ReferenceKind, element: &[u8]) -> ModelResult<Option<ObjectId>> {
        if kind != ReferenceKind::Object1 {
            return Err(ModelError::Unsupported("following references of this kind"));
        }
        let addr = element.iter().rev().fold(0u64, |addr, byte| addr << 8 | u64::from(*byte));
        let max = self.0.cache.widths().offset.max();
        if addr == 0 || addr == max {
            return Ok(None);
        }
        let id = ObjectId(addr.into());
        Ok(self.0.header(Addr::new(addr)).is_ok().then_some(id))
    }

    fn flush(&self) -> ModelResult<()> {
        Ok(self.0.flush(Scope::All)?)
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
}
