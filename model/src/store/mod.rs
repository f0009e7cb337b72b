//! The seam: the two traits that a store implements.

mod batch;
mod capabilities;
mod chunks;
mod session;
mod shared_bytes;

use std::fmt;
use std::sync::Arc;

pub use batch::{ChunkBatch, ChunkWrite, Publish};
pub use capabilities::{Capabilities, Durability, Encoding, Features, Limits, Parts, Reads, Staging, Unit};
pub use chunks::Chunks;
pub use session::{ElementForms, Session, Settings};
pub use shared_bytes::{DatasetView, MappedMemory, SharedBytes};

use crate::{
    AttributeData, ChunkCoord, Error, GroupSpec, Layout, Link, LinkTarget, Name, ObjectBody, ObjectInfo, ObjectKind,
    ObjectSpec, ObjectTimes, ReferenceKind, ReferenceType, Referent, Result, Stats, Watch,
};

/// The identity of an object inside its store: an address, a key, or a UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u128);

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// The objects of a store: groups and their links, attributes, descriptions of datasets and committed types.
///
/// Methods take `&self`: a store is shared by threads, and keeps whatever locks it needs to itself.
pub trait Objects: Send + Sync + fmt::Debug {
    /// What this session is, and what it can do.
    fn session(&self) -> &Session;

    /// Whether this session can change the store: what every method that changes it asks first.
    ///
    /// # Errors
    /// [`crate::Error::ReadOnly`], [`crate::Error::Closed`].
    fn check_writable(&self) -> Result<()> {
        Ok(())
    }

    /// The kind of an object.
    ///
    /// # Errors
    /// [`crate::Error::NoObject`] if nothing is there, [`crate::Error::Store`] if it cannot be read.
    fn kind(&self, id: ObjectId) -> Result<ObjectKind>;

    /// Makes an object and links it into `parent` under `name`. The object is complete before the link is there.
    ///
    /// # Errors
    /// [`crate::Error::Exists`] if the name is taken, [`crate::Error::ReadOnly`], [`crate::Error::Invalid`] if
    /// the description contradicts itself, [`crate::Error::Unsupported`] if the store cannot hold it.
    fn create(&self, parent: ObjectId, name: &Name, spec: &ObjectSpec) -> Result<ObjectId>;

    /// As [`Objects::create`], of a compact dataset, in which `elements` are when the link is there: all of them, as they
    /// are stored.
    ///
    /// # Errors
    /// As [`Objects::create`]; [`crate::Error::Invalid`] if it is no compact dataset, or has more or fewer bytes.
    fn create_compact(&self, parent: ObjectId, name: &Name, spec: &ObjectSpec, elements: &[u8]) -> Result<ObjectId> {
        let rank = match &spec.body {
            ObjectBody::Dataset(spec) if spec.layout == Layout::Compact => spec.dataspace.rank(),
            _ => return Err(Error::Invalid("only a compact dataset is made with its elements".into())),
        };
        let id = self.create_unlinked(spec)?;
        let fill = || {
            self.dataset(id)?.write_whole(&ChunkCoord::origin(rank), 0, elements)?;
            self.add_link(parent, name, &LinkTarget::Hard(id))
        };
        fill().inspect_err(|_| drop(self.discard(id)))?;
        Ok(id)
    }

    /// Makes an object that no link leads to: [`Objects::add_link`] is to add the first one before the session ends.
    ///
    /// # Errors
    /// [`crate::Error::ReadOnly`], [`crate::Error::Invalid`], [`crate::Error::Unsupported`].
    fn create_unlinked(&self, spec: &ObjectSpec) -> Result<ObjectId> {
        let _ = spec;
        Err(Error::Unsupported("making objects without links"))
    }

    /// Deletes an object of [`Objects::create_unlinked`], with everything to which nothing else leads, if still no link
    /// leads to it.
    ///
    /// # Errors
    /// As removing a link to it.
    fn discard(&self, id: ObjectId) -> Result<()> {
        let _ = id;
        Ok(())
    }

    /// Says when an object was touched, where it keeps that.
    ///
    /// # Errors
    /// [`crate::Error::NoObject`], [`crate::Error::ReadOnly`].
    fn set_times(&self, id: ObjectId, times: ObjectTimes) -> Result<()> {
        let _ = (id, times);
        Ok(())
    }

    /// The link of a group with this name.
    ///
    /// # Errors
    /// [`crate::Error::WrongKind`] if `group` is not a group.
    fn link(&self, group: ObjectId, name: &Name) -> Result<Option<Link>>;

    /// How a group keeps its links.
    ///
    /// # Errors
    /// [`crate::Error::WrongKind`] if it is not a group.
    fn group(&self, id: ObjectId) -> Result<GroupSpec> {
        match self.kind(id)? {
            ObjectKind::Group => Ok(GroupSpec::default()),
            _ => Err(Error::WrongKind { expected: "group" }),
        }
    }

    /// Calls `for_each_message` with every link of a group, in no particular order, until it returns `false`.
    ///
    /// # Errors
    /// [`crate::Error::WrongKind`] if `group` is not a group.
    fn for_each_link(&self, group: ObjectId, each: &mut dyn FnMut(Link) -> bool) -> Result<()>;

    /// Adds a link.
    ///
    /// # Errors
    /// [`crate::Error::Exists`], [`crate::Error::ReadOnly`], [`crate::Error::WrongKind`].
    fn add_link(&self, group: ObjectId, name: &Name, target: &LinkTarget) -> Result<()>;

    /// Removes a link; an object to which no hard link leads any more is deleted.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::ReadOnly`], [`crate::Error::WrongKind`].
    fn remove_link(&self, group: ObjectId, name: &Name) -> Result<()>;

    /// Gives a link another name, in the same group or another one, at once: it is never under both names, nor under
    /// neither, and its object stays what it is.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::Exists`], [`crate::Error::ReadOnly`], [`crate::Error::WrongKind`],
    /// [`crate::Error::Unsupported`].
    fn rename_link(&self, from: (ObjectId, &Name), to: (ObjectId, &Name)) -> Result<()> {
        let _ = (from, to);
        Err(Error::Unsupported("renaming links"))
    }

    /// The attribute of an object with this name.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if it cannot be read.
    fn attribute(&self, id: ObjectId, name: &Name) -> Result<Option<AttributeData>>;

    /// The names of the attributes of an object, in no particular order.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if they cannot be listed.
    fn attribute_names(&self, id: ObjectId) -> Result<Vec<Name>>;

    /// Calls `for_each_message` with every attribute of an object, in no particular order, until it returns `false`.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if they cannot be read.
    fn for_each_attribute(&self, id: ObjectId, each: &mut dyn FnMut(AttributeData) -> bool) -> Result<()> {
        for name in self.attribute_names(id)? {
            if let Some(attribute) = self.attribute(id, &name)?
                && !each(attribute)
            {
                break;
            }
        }
        Ok(())
    }

    /// What is known of an object beside its links, attributes and values.
    ///
    /// # Errors
    /// [`crate::Error::NoObject`] if nothing is there, [`crate::Error::Store`] if it cannot be read.
    fn info(&self, id: ObjectId) -> Result<ObjectInfo> {
        self.kind(id).map(|_| ObjectInfo { links: 1, ..ObjectInfo::default() })
    }

    /// Sets the comment on an object, or takes it away.
    ///
    /// # Errors
    /// [`crate::Error::NoObject`], [`crate::Error::ReadOnly`], [`crate::Error::Unsupported`].
    fn set_comment(&self, id: ObjectId, comment: Option<&Name>) -> Result<()> {
        let _ = (id, comment);
        Err(Error::Unsupported("setting comments"))
    }

    /// Adds an attribute, or replaces the one of the same name, which keeps its position in the order of creation.
    ///
    /// # Errors
    /// [`crate::Error::ReadOnly`], [`crate::Error::Invalid`] if the value does not fit type and shape.
    fn set_attribute(&self, id: ObjectId, attribute: &AttributeData) -> Result<()>;

    /// Removes an attribute.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::ReadOnly`].
    fn remove_attribute(&self, id: ObjectId, name: &Name) -> Result<()>;

    /// The description of a dataset and the way to its chunks. Opening twice gives the same shared state.
    ///
    /// # Errors
    /// [`crate::Error::WrongKind`] if it is not a dataset.
    fn dataset(&self, id: ObjectId) -> Result<Arc<dyn Chunks>>;

    /// The type that a committed datatype holds.
    ///
    /// # Errors
    /// [`crate::Error::WrongKind`] if it is not a committed datatype.
    fn datatype(&self, id: ObjectId) -> Result<crate::Datatype>;

    /// Forgets what is known of an object, so that the next call sees what its writer has published since.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if the object cannot be read any more.
    fn refresh(&self, id: ObjectId) -> Result<()>;

    /// The bytes of a variable-length element, whose place in the heap the stored `element` says: exactly its
    /// count of base elements, and none for an element that nobody wrote.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if the heap cannot be read.
    fn read_heap(&self, element: &[u8]) -> Result<Vec<u8>>;

    /// Puts the `count` base elements of a variable-length element, `bytes` in all, into a heap, and returns the
    /// stored form of the element, which [`Objects::read_heap`] takes.
    ///
    /// # Errors
    /// [`crate::Error::ReadOnly`], [`crate::Error::Unsupported`], [`crate::Error::Store`] if there is no room.
    fn write_heap(&self, bytes: &[u8], count: u32) -> Result<Vec<u8>> {
        let _ = (bytes, count);
        Err(Error::Unsupported("writing variable-length data"))
    }

    /// What a stored reference `element` refers to; `None` if it is null. Whether that is still there is not looked at.
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`] for a kind that the store does not know, [`crate::Error::Store`] if what the
    /// reference leads to cannot be read.
    fn referent(&self, kind: ReferenceKind, element: &[u8]) -> Result<Option<Referent>> {
        let _ = (kind, element);
        Err(Error::Unsupported("following references"))
    }

    /// The object of this store that a stored reference `element` refers to; `None` if it is null, in another file, or
    /// not there any more.
    ///
    /// # Errors
    /// As [`Objects::referent`].
    fn dereference(&self, kind: ReferenceKind, element: &[u8]) -> Result<Option<ObjectId>> {
        let referent = self.referent(kind, element)?.filter(|referent| referent.file.is_none());
        Ok(referent.map(|referent| referent.object).filter(|id| self.kind(*id).is_ok()))
    }

    /// The stored form of a reference: an element of the type `form`, which [`Objects::referent`] takes.
    ///
    /// # Errors
    /// [`crate::Error::NoObject`] if the object is not there; [`crate::Error::Invalid`] if such elements do not refer
    /// to such things, or do not have that size; [`crate::Error::ReadOnly`], [`crate::Error::Unsupported`].
    fn reference(&self, form: &ReferenceType, to: &Referent) -> Result<Vec<u8>> {
        let _ = (form, to);
        Err(Error::Unsupported("making references"))
    }

    /// Makes everything written so far visible to other processes, in an order in which no reader meets
    /// anything half-done.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if a write fails; what was flushed before stays readable.
    fn flush(&self) -> Result<()>;

    /// Publishes what was changed of one object, and whatever must be seen before it, as [`Objects::flush`] does for
    /// everything.
    ///
    /// # Errors
    /// As [`Objects::flush`].
    fn flush_object(&self, id: ObjectId) -> Result<()> {
        let _ = id;
        self.flush()
    }

    /// Flushes one object, or everything, and returns when that will outlast a power failure. From the first call on,
    /// every flush orders what it writes so that nothing durable is lost by a power failure meanwhile.
    ///
    /// # Errors
    /// As [`Objects::flush`].
    fn flush_durable(&self, id: Option<ObjectId>) -> Result<()> {
        id.map_or_else(|| self.flush(), |id| self.flush_object(id))
    }

    /// Whether something was changed that is not published. A store that does not know says yes.
    fn is_dirty(&self) -> bool {
        true
    }

    /// Flushes, and ends the session. A second call does nothing.
    ///
    /// # Errors
    /// As [`Objects::flush`].
    fn close(&self) -> Result<()>;

    /// Lets readers in while this process goes on writing.
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`] if the store, or something in it, cannot be read while it is written.
    fn start_swmr(&self) -> Result<()>;

    /// Whether another process may be changing the store while it is read here.
    fn is_live(&self) -> Result<bool>;

    /// What this session has done so far, as far as the store counts it.
    fn stats(&self) -> Stats {
        Stats::default()
    }

    /// Watches what a writer publishes of some objects: the elements of datasets, the links of groups, the attributes
    /// that are kept with an object.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if one of them cannot be watched.
    fn watch(&self, objects: &[ObjectId]) -> Result<Box<dyn Watch>>;
}
