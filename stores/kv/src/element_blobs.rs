//! The blobs to which elements lead: those of variable length, and references.

use std::collections::HashSet;

use h5live_model::{Datatype, ObjectId, ReferenceKind, Result, VarLenKind};

use crate::engine::ViewWithEdits;
use crate::error::damaged_object_error;
use crate::layout::value::{DecodedReference, VarLenBlobRef};
use crate::layout::{BlobId, RecordFormatError, key, oid};

/// What an element says of a blob.
#[derive(Debug)]
pub enum BlobReference {
    /// It leads to one.
    Blob {
        /// The blob.
        id: BlobId,
        /// The bytes that it has, as the element says.
        bytes: u64,
    },
    /// It makes no sense.
    Damaged(RecordFormatError),
}

/// Calls `each_then_descend` with each use of a blob by `elements` of a type. If it returns `true`, what the blob itself leads to
/// follows. `each_then_descend` may call the store.
///
/// # Errors
/// [`h5live_model::Error::Store`] if the store cannot be read, and those of `each_then_descend`.
pub fn walk_blob_references(
    state: &ViewWithEdits<'_>,
    datatype: &Datatype,
    elements: &[u8],
    each_then_descend: &mut dyn FnMut(BlobReference) -> Result<bool>,
) -> Result<()> {
    let size = datatype.size() as usize;
    if !datatype.has_vlen_or_references() || size == 0 {
        return Ok(());
    }
    // The depth of the recursion is that of the type, which its decoder bounds.
    for element in elements.chunks_exact(size) {
        match datatype {
            Datatype::VarLen(t) => {
                let base = if t.kind == VarLenKind::Sequence { u64::from(t.base.size()) } else { 1 };
                match VarLenBlobRef::decode(element) {
                    Ok(stored) if stored.has_blob() => {
                        let (id, bytes) = (stored.blob, u64::from(stored.element_count) * base);
                        if each_then_descend(BlobReference::Blob { id, bytes })? && t.base.has_vlen_or_references() {
                            let inner = state.get(key::blob(id).as_bytes())?.unwrap_or_default();
                            walk_blob_references(state, &t.base, &inner, each_then_descend)?;
                        }
                    }
                    Ok(_) => {}
                    Err(error) => drop(each_then_descend(BlobReference::Damaged(error))?),
                }
            }
            Datatype::Reference(t) => {
                if let Some(found) = blob_of_reference(t.kind, element) {
                    each_then_descend(found)?;
                }
            }
            Datatype::Array(t) => walk_blob_references(state, &t.base, element, each_then_descend)?,
            Datatype::Compound(t) => {
                for member in &t.members {
                    let start = member.offset as usize;
                    let end = start.saturating_add(member.datatype.size() as usize);
                    walk_blob_references(
                        state,
                        &member.datatype,
                        element.get(start..end).unwrap_or_default(),
                        each_then_descend,
                    )?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn blob_of_reference(kind: ReferenceKind, element: &[u8]) -> Option<BlobReference> {
    match DecodedReference::decode(kind, element) {
        Ok(DecodedReference::InBlob { blob, .. }) if blob.has_blob() => {
            Some(BlobReference::Blob { id: blob.blob, bytes: blob.element_count.into() })
        }
        Ok(_) => None,
        Err(error) => Some(BlobReference::Damaged(error)),
    }
}

/// The blobs to which `elements` of a type lead, and those to which the blobs lead.
///
/// # Errors
/// [`h5live_model::Error::Store`] if an element or a blob is damaged.
pub fn referenced_blob_ids(state: &ViewWithEdits<'_>, datatype: &Datatype, elements: &[u8]) -> Result<HashSet<BlobId>> {
    let mut found = HashSet::new();
    walk_blob_references(state, datatype, elements, &mut |found_use| match found_use {
        BlobReference::Blob { id, .. } => Ok(found.insert(id)),
        BlobReference::Damaged(error) => Err(damaged_object_error(oid::GLOBAL_METADATA)(error)),
    })?;
    Ok(found)
}

/// The bytes of a variable-length element.
///
/// # Errors
/// [`h5live_model::Error::Store`] if its blob is not there.
pub fn with_blob(state: &ViewWithEdits<'_>, stored: VarLenBlobRef, found: &mut dyn FnMut(&[u8])) -> Result<bool> {
    Ok(state.with_value(key::blob(stored.blob).as_bytes(), found)?)
}

/// The object under which blobs are kept, for errors.
pub const BLOB_HOLDER: ObjectId = oid::GLOBAL_METADATA;
