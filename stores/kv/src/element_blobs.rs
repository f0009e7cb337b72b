//! The blobs to which elements lead: those of variable length, and references.

use h5live_model::{Datatype, ObjectId, ReferenceKind, Result};

use crate::engine::Snapshot;
use crate::error::damaged;
use crate::layout::value::{StoredReference, VarLenBlob};
use crate::layout::{BlobId, key, oid};

/// The blobs to which `elements` of a type lead, and those to which the blobs lead.
///
/// # Errors
/// [`h5live_model::Error::Store`] if an element or a blob is damaged.
pub fn blobs_of(state: &Snapshot<'_>, datatype: &Datatype, elements: &[u8]) -> Result<Vec<BlobId>> {
    let mut found = Vec::new();
    collect(state, datatype, elements, &mut found)?;
    Ok(found)
}

/// The depth of the recursion is that of the type, which its decoder bounds.
fn collect(state: &Snapshot<'_>, datatype: &Datatype, elements: &[u8], found: &mut Vec<BlobId>) -> Result<()> {
    let size = datatype.size() as usize;
    if !datatype.is_indirect() || size == 0 {
        return Ok(());
    }
    for element in elements.chunks_exact(size) {
        match datatype {
            Datatype::VarLen(t) => {
                let stored = VarLenBlob::decode(element).map_err(damaged(oid::GLOBAL_METADATA))?;
                if stored.has_blob() && !found.contains(&stored.blob) {
                    found.push(stored.blob);
                    if t.base.is_indirect() {
                        let inner = state.get(key::blob(stored.blob).as_bytes())?.unwrap_or_default();
                        collect(state, &t.base, &inner, found)?;
                    }
                }
            }
            Datatype::Reference(t) => found.extend(blob_of_reference(t.kind, element)?),
            Datatype::Array(t) => collect(state, &t.base, element, found)?,
            Datatype::Compound(t) => {
                for member in &t.members {
                    let start = member.offset as usize;
                    let end = start.saturating_add(member.datatype.size() as usize);
                    collect(state, &member.datatype, element.get(start..end).unwrap_or_default(), found)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn blob_of_reference(kind: ReferenceKind, element: &[u8]) -> Result<Option<BlobId>> {
    match StoredReference::decode(kind, element).map_err(damaged(oid::GLOBAL_METADATA))? {
        StoredReference::InBlob { blob, .. } if blob.has_blob() => Ok(Some(blob.blob)),
        _ => Ok(None),
    }
}

/// The bytes of a variable-length element.
///
/// # Errors
/// [`h5live_model::Error::Store`] if its blob is not there.
pub fn with_blob(state: &Snapshot<'_>, stored: VarLenBlob, found: &mut dyn FnMut(&[u8])) -> Result<bool> {
    Ok(state.with_value(key::blob(stored.blob).as_bytes(), found)?)
}

/// The object under which blobs are kept, for errors.
pub const BLOB_HOLDER: ObjectId = oid::GLOBAL_METADATA;
