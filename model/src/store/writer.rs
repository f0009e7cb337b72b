//! What changes objects, and publishes what was changed.

use crate::{AttributeData, LinkTarget, Name, ObjectId, ObjectScope, ObjectSpec, ObjectTimes, PublishLevel, Result};

/// An object to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewObject<'a> {
    /// What it is like.
    pub spec: &'a ObjectSpec,
    /// The group and the name of its first link. Without one, [`StoreWriter::add_link`] is to add it before the session
    /// ends.
    pub link: Option<(ObjectId, &'a Name)>,
    /// All elements of a compact dataset, as they are stored. They are there when the link is.
    pub compact_elements: Option<&'a [u8]>,
}

impl<'a> NewObject<'a> {
    /// An object with a link.
    pub fn linked(group: ObjectId, name: &'a Name, spec: &'a ObjectSpec) -> Self {
        NewObject { spec, link: Some((group, name)), compact_elements: None }
    }

    /// An object that no link leads to yet.
    pub fn unlinked(spec: &'a ObjectSpec) -> Self {
        NewObject { spec, link: None, compact_elements: None }
    }

    /// The same with these elements.
    #[must_use]
    pub fn with_compact_elements(self, elements: &'a [u8]) -> Self {
        NewObject { compact_elements: Some(elements), ..self }
    }
}

/// A change of what is known of an object beside its links, attributes and values.
#[derive(Debug, Clone, Copy)]
pub enum ObjectInfoChange<'a> {
    /// When it was touched, where that is kept.
    Times(ObjectTimes),
    /// The comment on it; `None` takes it away.
    Comment(Option<&'a Name>),
}

/// The writing half of a session: [`Store::writer`](crate::Store::writer). Elements of datasets are written by
/// [`ChunkStore::write`](crate::ChunkStore::write).
///
/// Changes are seen by other processes once they are committed. Every method returns [`crate::Error::ReadOnly`] and
/// [`crate::Error::Closed`] where the session cannot write.
pub trait StoreWriter: Send + Sync {
    /// Makes an object, and links it if it has a link. The object is complete before the link is there.
    ///
    /// # Errors
    /// [`crate::Error::Exists`] if the name is taken, [`crate::Error::Invalid`] if the description contradicts itself
    /// or the elements do not fit it, [`crate::Error::Unsupported`] if the store cannot hold it.
    fn create(&self, new: &NewObject<'_>) -> Result<ObjectId>;

    /// Deletes an object that was made without a link, with everything to which nothing else leads, if still no link
    /// leads to it.
    ///
    /// # Errors
    /// As removing a link to it.
    fn discard(&self, id: ObjectId) -> Result<()>;

    /// Adds a link.
    ///
    /// # Errors
    /// [`crate::Error::Exists`], [`crate::Error::WrongKind`].
    fn add_link(&self, group: ObjectId, name: &Name, target: &LinkTarget) -> Result<()>;

    /// Removes a link; an object to which no hard link leads any more is deleted.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::WrongKind`].
    fn remove_link(&self, group: ObjectId, name: &Name) -> Result<()>;

    /// Gives a link another name, in the same group or another one, at once: it is never under both names, nor under
    /// neither, and its object stays what it is.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::Exists`], [`crate::Error::WrongKind`],
    /// [`crate::Error::Unsupported`].
    fn rename_link(&self, from: (ObjectId, &Name), to: (ObjectId, &Name)) -> Result<()>;

    /// Adds an attribute, or replaces the one of the same name, which keeps its position in the order of creation.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if the value does not fit type and shape.
    fn set_attribute(&self, id: ObjectId, attribute: &AttributeData) -> Result<()>;

    /// Removes an attribute.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`].
    fn remove_attribute(&self, id: ObjectId, name: &Name) -> Result<()>;

    /// Changes what is known of an object.
    ///
    /// # Errors
    /// [`crate::Error::NoObject`], [`crate::Error::Unsupported`] if the store does not keep that.
    fn set_info(&self, id: ObjectId, change: &ObjectInfoChange<'_>) -> Result<()>;

    /// Keeps the `base_element_count` base elements of a variable-length element, `bytes` in all, and returns the stored form of the
    /// element, which [`Store::read_blobs`](crate::Store::read_blobs) takes.
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`], [`crate::Error::Store`] if there is no room.
    fn put_blob(&self, bytes: &[u8], base_element_count: u32) -> Result<Vec<u8>>;

    /// Keeps many variable-length elements, each with its bytes and its count of base elements, and returns their stored
    /// forms, one behind the other. They are what [`StoreWriter::put_blob`] returns for one after the other. A store does
    /// once what that would do for each.
    ///
    /// # Errors
    /// As [`StoreWriter::put_blob`]. The store may then keep the bytes of some of them, to which nothing leads.
    fn put_blobs(&self, blobs: &[(&[u8], u32)]) -> Result<Vec<u8>> {
        let mut elements = Vec::new();
        for (bytes, count) in blobs {
            elements.append(&mut self.put_blob(bytes, *count)?);
        }
        Ok(elements)
    }

    /// Gives up the bytes of variable-length elements, which [`StoreWriter::put_blob`] has returned or a file has: the
    /// store has other elements in their place, or none, and nothing else leads to the bytes. No thread of this process
    /// is about to read them. The store may use their room again when nobody else can read them, or keep them. Elements
    /// of length 0, and those without bytes in the store, are passed over.
    ///
    /// Each element is given up once: later, other bytes may be where its bytes were.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if what was given up earlier cannot be made free.
    fn remove_blobs(&self, elements: &[&[u8]]) -> Result<()>;

    /// Lets readers in while this process goes on writing. What was written so far is committed. A store that always
    /// lets readers in does nothing else.
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`] if the store, or something in it, cannot be read while it is written.
    fn start_swmr(&self) -> Result<()>;

    /// Whether something was changed that is not committed.
    fn is_dirty(&self) -> bool;

    /// Makes what was changed visible to other processes, with whatever must be seen before it, in an order in which no
    /// reader meets anything half-done. From the first durable commit on, every commit orders what it writes so that
    /// nothing durable is lost by a power failure meanwhile.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if a write fails; what was committed before stays readable.
    /// [`crate::Error::Unsupported`] for [`PublishLevel::Durable`] where [`DurabilitySupport`](crate::DurabilitySupport) is `Never`.
    fn commit(&self, scope: ObjectScope<'_>, publish: PublishLevel) -> Result<()>;
}
