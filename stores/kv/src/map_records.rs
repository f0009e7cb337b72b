//! The records of maps.

use std::collections::HashSet;

use h5live_model::{Datatype, Error as ModelError, MapSpec, ObjectBody, ObjectId, ObjectKind, Result};

use crate::element_blobs::blobs_of;
use crate::engine::{KeySpan, Snapshot};
use crate::layout::{BlobId, MetadataField, key};
use crate::objects;
use crate::state::{check_kind, read_number};

/// The description of a map.
///
/// # Errors
/// [`ModelError::NoObject`], [`ModelError::WrongKind`].
pub fn map_spec(state: &Snapshot<'_>, map: ObjectId) -> Result<MapSpec> {
    check_kind(map, ObjectKind::Map)?;
    match objects::spec(state, map)?.body {
        ObjectBody::Map(spec) => Ok(*spec),
        _ => Err(ModelError::WrongKind { expected: "map" }),
    }
}

/// The number of pairs of a map.
///
/// # Errors
/// As [`map_spec`].
pub fn pair_count(state: &Snapshot<'_>, map: ObjectId) -> Result<u64> {
    check_kind(map, ObjectKind::Map)?;
    let at = key::metadata(map, MetadataField::PairCount);
    read_number(state, map, &at, "Num Pairs")?.ok_or(ModelError::NoObject(map))
}

/// The blobs to which a value leads.
///
/// # Errors
/// [`ModelError::Store`] if one is damaged.
pub fn value_blobs(state: &Snapshot<'_>, spec: &MapSpec, value: &[u8]) -> Result<HashSet<BlobId>> {
    blobs_of(state, value_elements(spec), value)
}

/// The type of the elements that the bytes of a value are.
pub fn value_elements(spec: &MapSpec) -> &Datatype {
    match &spec.value {
        Datatype::VarLen(t) => &t.base,
        datatype => datatype,
    }
}

/// Whether values may lead to blobs.
pub fn has_blobs(spec: &MapSpec) -> bool {
    value_elements(spec).is_indirect()
}

/// The blobs to which the values of a map lead.
///
/// # Errors
/// [`ModelError::Store`] if one is damaged.
pub fn blobs_of_values(state: &Snapshot<'_>, map: ObjectId, spec: &MapSpec, blobs: &mut Vec<BlobId>) -> Result<()> {
    if !has_blobs(spec) {
        return Ok(());
    }
    state.for_each(&KeySpan::from(&key::map_records(map)), |_, value| -> Result<bool> {
        blobs.extend(value_blobs(state, spec, value)?);
        Ok(true)
    })
}
