//! The records of maps.

use std::collections::HashSet;

use h5live_model::{Datatype, Error as ModelError, MapSpec, ObjectId, ObjectKind, ObjectKindSpec, Result, VarLenKind};

use crate::element_blobs::{referenced_blob_ids, with_blob};
use crate::engine::{KeySpan, ViewWithEdits};
use crate::error::damaged_object_error;
use crate::layout::value::{ContainerFormat, VarLenBlobRef};
use crate::layout::{BlobId, MetadataField, key};
use crate::objects::{self, contradiction_error};
use crate::state::{KvState, check_kind, read_number};

/// The description of a map.
///
/// # Errors
/// [`ModelError::NoObject`], [`ModelError::WrongKind`].
pub fn map_spec(state: &ViewWithEdits<'_>, map: ObjectId) -> Result<MapSpec> {
    check_kind(map, ObjectKind::Map)?;
    match objects::spec(state, map)?.body {
        ObjectKindSpec::Map(spec) => Ok(*spec),
        _ => Err(ModelError::WrongKind { expected: "map" }),
    }
}

/// The number of pairs of a map.
///
/// # Errors
/// As [`map_spec`].
pub fn recorded_pair_count(state: &ViewWithEdits<'_>, map: ObjectId) -> Result<u64> {
    check_kind(map, ObjectKind::Map)?;
    let at = key::metadata(map, MetadataField::PairCount);
    read_number(state, map, &at, "Num Pairs")?.ok_or(ModelError::NoObject(map))
}

/// How the values of a map are stored.
#[derive(Debug, Clone, Copy)]
pub struct MapValueCodec<'a> {
    /// The type of what a record has: elements, one after the other.
    pub stored_datatype: &'a Datatype,
    /// Whether a record has an element that leads to a blob, which has the bytes of the value.
    pub are_blobs: bool,
    /// Bytes of the value for each that the element counts.
    base_bytes: usize,
    /// The type of the elements that the bytes of a value are.
    elements: &'a Datatype,
}

impl<'a> MapValueCodec<'a> {
    /// Those of a map in a container with records of a form.
    pub fn of(spec: &'a MapSpec, form: ContainerFormat) -> Self {
        match &spec.value_type {
            Datatype::VarLen(t) => {
                let are_blobs = form.has_varlen_map_value_blobs();
                let base_bytes = if t.kind == VarLenKind::Sequence { t.base.size() as usize } else { 1 };
                MapValueCodec {
                    stored_datatype: if are_blobs { &spec.value_type } else { &t.base },
                    are_blobs,
                    base_bytes,
                    elements: &t.base,
                }
            }
            datatype => {
                MapValueCodec { stored_datatype: datatype, are_blobs: false, base_bytes: 1, elements: datatype }
            }
        }
    }

    /// Whether records may lead to blobs.
    pub fn may_reference_blobs(&self) -> bool {
        self.stored_datatype.has_vlen_or_references()
    }

    /// The blobs to which a record leads.
    ///
    /// # Errors
    /// [`ModelError::Store`] if one is damaged.
    pub fn blobs_referenced_by_record(&self, state: &ViewWithEdits<'_>, record: &[u8]) -> Result<HashSet<BlobId>> {
        referenced_blob_ids(state, self.stored_datatype, record)
    }

    /// The blobs to which the bytes of a value lead.
    ///
    /// # Errors
    /// [`ModelError::Store`] if one is damaged.
    pub fn blobs_referenced_by_value(&self, state: &ViewWithEdits<'_>, value: &[u8]) -> Result<HashSet<BlobId>> {
        referenced_blob_ids(state, self.elements, value)
    }

    /// Stores the bytes of a value, and returns those of its record.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] if the value is too long.
    pub fn encode_value_storing_blob(&self, state: &mut KvState, value: &[u8]) -> Result<Vec<u8>> {
        if !self.are_blobs {
            let mut stored = state.edits.take_spare_buffer(value.len());
            stored.extend_from_slice(value);
            return Ok(stored);
        }
        if value.is_empty() {
            return Ok(VarLenBlobRef::default().encode().to_vec());
        }
        let count = value.len().checked_div(self.base_bytes).and_then(|count| u32::try_from(count).ok());
        let length = count.ok_or_else(|| ModelError::Invalid("a value has less than 2^32 elements".into()))?;
        let blob = state.blob_ids.next_id();
        state.put(&key::blob(blob), value);
        Ok(VarLenBlobRef { element_count: length, blob }.encode().to_vec())
    }

    /// Calls `found` with the bytes of the value of a record.
    ///
    /// # Errors
    /// [`ModelError::Store`] if the record, or what it leads to, is damaged.
    pub fn read_value(
        &self,
        state: &ViewWithEdits<'_>,
        map: ObjectId,
        record: &[u8],
        found: &mut dyn FnMut(&[u8]),
    ) -> Result<()> {
        if !self.are_blobs {
            found(record);
            return Ok(());
        }
        let stored = VarLenBlobRef::decode(record).map_err(damaged_object_error(map))?;
        if !stored.has_blob() {
            found(&[]);
            return Ok(());
        }
        let (stated, mut is_whole) = (stored.element_count as usize * self.base_bytes, true);
        let is_there = with_blob(state, stored, &mut |value| {
            is_whole = value.len() == stated;
            if is_whole {
                found(value);
            }
        })?;
        match is_there && is_whole {
            true => Ok(()),
            false => Err(contradiction_error(map, "the data of a value is not there, or has another length")),
        }
    }
}

/// The blobs to which the values of a map lead.
///
/// # Errors
/// [`ModelError::Store`] if one is damaged.
pub fn collect_map_blobs(
    state: &ViewWithEdits<'_>,
    form: ContainerFormat,
    map: ObjectId,
    spec: &MapSpec,
    blobs: &mut Vec<BlobId>,
) -> Result<()> {
    let values = MapValueCodec::of(spec, form);
    if !values.may_reference_blobs() {
        return Ok(());
    }
    state.for_each_pair_reentrant(&KeySpan::from(&key::map_records(map)), |_, record| -> Result<bool> {
        blobs.extend(values.blobs_referenced_by_record(state, record)?);
        Ok(true)
    })
}
