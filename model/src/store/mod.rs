//! The seam: the traits that a store implements.
//!
//! [`Store`] reads, [`StoreWriter`] changes objects and commits, [`ChunkStore`] reads and changes the elements of one
//! dataset, and [`MapStore`] reads and changes the pairs of maps. None of the methods has a default: a store, or a wrapper of one, that leaves one out does not compile. What
//! a caller has to plan with is data, [`Capabilities`].

mod batch;
mod capabilities;
mod chunks;
mod file_backed_bytes;
mod maps;
mod read_block;
mod read_each;
mod reads;
mod scope;
mod session;
mod writer;

use std::fmt;
use std::sync::Arc;

pub use batch::{ChunkBatch, ChunkWrite, PublishLevel};
pub use capabilities::{
    Capabilities, ChunkEncodedBy, ChunkReadStrategy, ConsistencyScope, DurabilitySupport, PartialWrites,
    SmallWritesStagedBy, StoreFeatures, StoreSizeLimits,
};
pub use chunks::ChunkStore;
pub use file_backed_bytes::{DatasetView, DatasetViewPart, FileBackedBytes, MappedMemory};
pub use maps::{EncodedKeyBounds, MapEdit, MapPrefetch, MapScan, MapStore};
pub use read_block::{check_block_in_chunk, read_block_by_runs};
pub use read_each::read_chunks_sequentially;
pub use reads::{ChunkBytes, ChunkReadRequest, ChunkSink};
pub use scope::ObjectScope;
pub use session::SessionInfo;
pub use writer::{NewObject, ObjectInfoChange, StoreWriter};

use crate::{
    AttributeData, Link, Name, ObjectId, ObjectInfo, ObjectKind, ObjectSpec, ReferenceKind, ReferenceType, Referent,
    Result, Stats, Watch,
};

/// Whether another process may be changing a store while it is read here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WriterLiveness {
    /// Nobody else changes it.
    AtRest,
    /// Somebody does.
    Live,
    /// Nobody can tell.
    Unknown,
}

/// The bytes of one stored variable-length element: [`Store::read_blobs`].
///
/// # Errors
/// As [`Store::read_blobs`].
pub fn read_blob(store: &dyn Store, element: &[u8]) -> Result<Vec<u8>> {
    let mut found = Vec::new();
    store.read_blobs(&[element], &mut |_, bytes| found = bytes.to_vec())?;
    Ok(found)
}

/// A session on a store: groups and their links, attributes, descriptions of datasets and committed types.
///
/// Methods take `&self`: a session is shared by threads, and keeps whatever locks it needs to itself. Callbacks of
/// listings must not call the store, which may hold a lock meanwhile.
pub trait Store: Send + Sync + fmt::Debug {
    /// What this session is, and what it can do.
    fn session(&self) -> &SessionInfo;

    /// The kind of an object.
    ///
    /// # Errors
    /// [`crate::Error::NoObject`] if nothing is there, [`crate::Error::Store`] if it cannot be read.
    fn kind(&self, id: ObjectId) -> Result<ObjectKind>;

    /// What [`StoreWriter::create`] was given to make the object, with the present extent of a dataset. What the store
    /// does not keep is as by default.
    ///
    /// # Errors
    /// As [`Store::kind`].
    fn spec(&self, id: ObjectId) -> Result<ObjectSpec>;

    /// What is known of an object beside its links, attributes and values.
    ///
    /// # Errors
    /// As [`Store::kind`].
    fn info(&self, id: ObjectId) -> Result<ObjectInfo>;

    /// The link of a group with this name.
    ///
    /// # Errors
    /// [`crate::Error::WrongKind`] if `group` is not a group.
    fn link(&self, group: ObjectId, name: &Name) -> Result<Option<Link>>;

    /// Calls `each` with every link of a group, in no particular order, until it returns `false`.
    ///
    /// # Errors
    /// [`crate::Error::WrongKind`] if `group` is not a group.
    fn for_each_link(&self, group: ObjectId, each: &mut dyn FnMut(Link) -> bool) -> Result<()>;

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

    /// Calls `each` with every attribute of an object, in no particular order, until it returns `false`.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if they cannot be read.
    fn for_each_attribute(&self, id: ObjectId, each: &mut dyn FnMut(AttributeData) -> bool) -> Result<()>;

    /// The description of a dataset and the way to its chunks. Opening twice gives the same shared state.
    ///
    /// # Errors
    /// [`crate::Error::WrongKind`] if it is not a dataset.
    fn dataset(&self, id: ObjectId) -> Result<Arc<dyn ChunkStore>>;

    /// Calls `each`, once for each of the stored variable-length `elements`, with its number and its bytes: exactly its
    /// count of base elements, and none for an element that nobody wrote.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if the bytes of an element cannot be read; `each` may have got those of others.
    fn read_blobs(&self, elements: &[&[u8]], each: &mut dyn FnMut(usize, &[u8])) -> Result<()>;

    /// What a stored reference `element` refers to; `None` if it is null. Whether that is still there is not looked at.
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`] for a kind that the store does not know, [`crate::Error::Store`] if what the
    /// reference leads to cannot be read.
    fn referent(&self, kind: ReferenceKind, element: &[u8]) -> Result<Option<Referent>>;

    /// The stored form of a reference: an element of the type `form`, which [`Store::referent`] takes. A store that has to
    /// keep more than the element can do so only in a session that writes.
    ///
    /// # Errors
    /// [`crate::Error::NoObject`] if the object is not there; [`crate::Error::Invalid`] if such elements do not refer
    /// to such things, or do not have that size; [`crate::Error::ReadOnly`]; [`crate::Error::Unsupported`].
    fn encode_reference(&self, form: &ReferenceType, to: &Referent) -> Result<Vec<u8>>;

    /// Takes up what a writer has published since. Nothing else moves what a reader sees of a dataset.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if an object cannot be read any more.
    fn refresh(&self, scope: ObjectScope<'_>) -> Result<()>;

    /// Whether another process may be changing the store while it is read here.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if that cannot be found out.
    fn liveness(&self) -> Result<WriterLiveness>;

    /// Whether the session that wrote the store last has ended without closing it, because its process died, as far as this
    /// session has seen. `false` if a session writes, or nobody can tell.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if that cannot be found out.
    fn is_abandoned(&self) -> Result<bool> {
        Ok(false)
    }

    /// Watches what a writer publishes of some objects: the elements of datasets, the links of groups, the attributes
    /// that are kept with an object.
    ///
    /// # Errors
    /// [`crate::Error::Store`] if one of them cannot be watched.
    fn watch(&self, objects: &[ObjectId]) -> Result<Box<dyn Watch>>;

    /// What this session has done so far, as far as the store counts it.
    fn stats(&self) -> Stats;

    /// Commits, and ends the session. A second call does nothing.
    ///
    /// # Errors
    /// As [`StoreWriter::commit`].
    fn close(&self) -> Result<()>;

    /// What changes the store.
    ///
    /// # Errors
    /// [`crate::Error::ReadOnly`] for a session that only reads, [`crate::Error::Closed`].
    fn writer(&self) -> Result<&dyn StoreWriter>;

    /// The maps of the store; `None` if it holds none ([`StoreFeatures::MAPS`]).
    fn maps(&self) -> Option<&dyn MapStore>;
}
