//! What a session sees: a state of the engine, and what it has changed and not committed.

use std::sync::Arc;

use h5live_model::{Error as ModelError, ObjectId, ObjectKind, ObjectSpec, Result};

use crate::blob_ids::BlobIdGenerator;
use crate::engine::{EditBatch, View, ViewWithEdits};
use crate::error::{KvError, damaged_object_error, invalid_argument_error};
use crate::layout::value::{ContainerFormat, decode_u64, encode_u64};
use crate::layout::{EngineKey, MetadataField, MetadataRecords, OidAllocator, OidCounter, key, oid};
use crate::tracked_orders::TrackedOrderCache;

/// A state of the engine, and the edits of this session over it.
#[derive(Debug)]
pub struct KvState {
    /// In which form records are.
    pub form: ContainerFormat,
    /// The state as of the last commit or refresh.
    pub view: Arc<dyn View>,
    /// What is not committed.
    pub edits: EditBatch,
    /// Bytes of edits beyond which the next change is refused.
    pub current_max_uncommitted_bytes: u64,
    /// Identities of new objects.
    pub object_ids: OidAllocator,
    /// Identities of new blobs.
    pub blob_ids: BlobIdGenerator,
    /// At which objects orders of creation are kept.
    pub tracked_orders: TrackedOrderCache,
    /// The description of the object that was made last, with its records: the next one is often like it.
    pub last_created_spec: Option<(ObjectSpec, MetadataRecords)>,
    /// A change failed in its middle.
    pub is_poisoned: bool,
    /// How many objects this session has deleted.
    pub deleted_object_count: u64,
}

impl KvState {
    /// Nothing is changed.
    pub fn new(form: ContainerFormat, view: Arc<dyn View>, blob_ids: BlobIdGenerator, max_uncommitted: u64) -> Self {
        KvState {
            form,
            view,
            edits: EditBatch::new(),
            current_max_uncommitted_bytes: max_uncommitted,
            object_ids: OidAllocator::default(),
            blob_ids,
            tracked_orders: TrackedOrderCache::default(),
            last_created_spec: None,
            is_poisoned: false,
            deleted_object_count: 0,
        }
    }

    /// What the session sees.
    pub fn view_with_edits(&self) -> ViewWithEdits<'_> {
        ViewWithEdits::with_edits(&self.view, &self.edits)
    }

    /// Gives a key a value.
    pub fn put(&mut self, key: &EngineKey, value: impl AsRef<[u8]>) {
        self.put_concatenated(key, &[value.as_ref()]);
    }

    /// Gives a key a value that consists of these pieces.
    pub fn put_concatenated(&mut self, key: &EngineKey, pieces: &[&[u8]]) {
        let mut value = self.edits.take_spare_buffer(pieces.iter().map(|piece| piece.len()).sum());
        pieces.iter().for_each(|piece| value.extend_from_slice(piece));
        self.edits.put(key.as_bytes(), value);
    }

    /// Deletes a key.
    pub fn delete(&mut self, key: &EngineKey) {
        self.edits.delete(key.as_bytes());
    }

    /// An identity for a new object.
    ///
    /// # Errors
    /// [`ModelError::Store`] if the store cannot be read, or has no more identities.
    pub fn new_object_id(&mut self, kind: ObjectKind) -> Result<ObjectId> {
        if let Some(id) = self.object_ids.allocate(kind) {
            return Ok(id);
        }
        let at = key::metadata(oid::GLOBAL_METADATA, MetadataField::FirstUnreservedObjectIndex);
        let next =
            read_number(&self.view_with_edits(), oid::GLOBAL_METADATA, &at, "Next Object Index")?.unwrap_or_default();
        let none = KvError::InconsistentObject { object: oid::GLOBAL_METADATA, rule: "it has no more identities" };
        let (range, reserved) = OidCounter::starting_at(next).reserve_range().ok_or(none)?;
        self.put(&at, encode_u64(reserved.first_unreserved()));
        self.object_ids.replace_free_range(range);
        let none = KvError::InconsistentObject { object: oid::GLOBAL_METADATA, rule: "a range of identities is empty" };
        self.object_ids.allocate(kind).ok_or_else(|| none.into())
    }

    /// Refuses what is not there.
    ///
    /// # Errors
    /// [`ModelError::NoObject`].
    pub fn check_object_exists(&self, id: ObjectId) -> Result<()> {
        check_object_exists(&self.view_with_edits(), id)
    }

    /// Adds to the hard links, or uses, of an object.
    ///
    /// # Errors
    /// [`ModelError::NoObject`].
    pub fn add_references(&mut self, id: ObjectId, more: u64) -> Result<()> {
        let uses = ref_count(&self.view_with_edits(), id)?.ok_or(ModelError::NoObject(id))?;
        self.put(&ref_count_key(id), encode_u64(uses.saturating_add(more)));
        Ok(())
    }
}

/// The key of the number of hard links to an object, and of uses of a committed datatype.
pub fn ref_count_key(id: ObjectId) -> EngineKey {
    key::metadata(id, MetadataField::RefCount)
}

/// How many hard links lead to an object, and how often a committed datatype is used; `None` if it is not there. The
/// root group has no count as long as no link leads to it.
pub fn ref_count(state: &ViewWithEdits<'_>, id: ObjectId) -> Result<Option<u64>> {
    let uses = read_number(state, id, &ref_count_key(id), "Ref Count")?;
    Ok(uses.or((id == oid::ROOT).then_some(1)))
}

/// Refuses what is not there.
///
/// # Errors
/// [`ModelError::NoObject`].
pub fn check_object_exists(state: &ViewWithEdits<'_>, id: ObjectId) -> Result<()> {
    if id == oid::ROOT || state.has(ref_count_key(id).as_bytes())? { Ok(()) } else { Err(ModelError::NoObject(id)) }
}

/// Refuses what is of another kind. Whether it is there is not looked at.
///
/// # Errors
/// [`ModelError::WrongKind`].
pub fn check_kind(id: ObjectId, kind: ObjectKind) -> Result<()> {
    let expected = match kind {
        ObjectKind::Group => "group",
        ObjectKind::Dataset => "dataset",
        ObjectKind::Datatype => "committed datatype",
        ObjectKind::Map => "map",
    };
    if oid::kind(id) == kind { Ok(()) } else { Err(ModelError::WrongKind { expected }) }
}

/// The number of a record; `None` if there is no such record.
pub fn read_number(
    state: &ViewWithEdits<'_>,
    object: ObjectId,
    key: &EngineKey,
    record: &'static str,
) -> Result<Option<u64>> {
    let mut number = None;
    state.with_value(key.as_bytes(), &mut |value| number = Some(decode_u64(record, value)))?;
    number.transpose().map_err(damaged_object_error(object))
}

/// What a description is as records, or why it is none.
pub fn or_invalid<T>(encoded: crate::layout::Result<T>) -> Result<T> {
    encoded.map_err(invalid_argument_error)
}
