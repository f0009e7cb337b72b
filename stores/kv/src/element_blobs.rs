//! The blobs to which elements lead: those of variable length, and references.

use std::collections::HashSet;

use h5live_model::{Datatype, ObjectId, ReferenceKind, Result, VarLenKind};

use crate::engine::Snapshot;
use crate::error::damaged;
use crate::layout::value::{StoredReference, VarLenBlob};
use crate::layout::{BlobId, LayoutError, key, oid};

/// What an element says of a blob.
#[derive(Debug)]
pub enum BlobUse {
    /// It leads to one.
    Blob {
        /// The blob.
        id: BlobId,
        /// The bytes that it has, as the element says.
        bytes: u64,
    },
    /// It makes no sense.
    Damaged(LayoutError),
}

/// Calls `each` with each use of a blob by `elements` of a type. If it returns `true`, what the blob itself leads to
/// follows. `each` may call the store.
///
/// # Errors
/// [`h5live_model::Error::Store`] if the store cannot be read, and those of `each`.
pub fn for_each_blob_use(
    state: &Snapshot<'_>,
    datatype: &Datatype,
    elements: &[u8],
    each: &mut dyn FnMut(BlobUse) -> Result<bool>,
) -> Result<()> {
    let size = datatype.size() as usize;
    if !datatype.has_heap_references() || size == 0 {
        return Ok(());
    }
    // The depth of the recursion is that of the type, which its decoder bounds.
    for element in elements.chunks_exact(size) {
        match datatype {
            Datatype::VarLen(t) => {
                let base = if t.kind == VarLenKind::Sequence { u64::from(t.base.size()) } else { 1 };
                match VarLenBlob::decode(element) {
                    Ok(stored) if stored.has_blob() => {
                        let (id, bytes) = (stored.blob, u64::from(stored.length) * base);
                        if each(BlobUse::Blob { id, bytes })? && t.base.has_heap_references() {
                            let inner = state.get(key::blob(id).as_bytes())?.unwrap_or_default();
                            for_each_blob_use(state, &t.base, &inner, each)?;
                        }
                    }
                    Ok(_) => {}
                    Err(error) => drop(each(BlobUse::Damaged(error))?),
                }
            }
            Datatype::Reference(t) => {
                if let Some(found) = blob_of_reference(t.kind, element) {
                    each(found)?;
                }
            }
            Datatype::Array(t) => for_each_blob_use(state, &t.base, element, each)?,
            Datatype::Compound(t) => {
                for member in &t.members {
                    let start = member.offset as usize;
                    let end = start.saturating_add(member.datatype.size() as usize);
                    for_each_blob_use(state, &member.datatype, element.get(start..end).unwrap_or_default(), each)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn blob_of_reference(kind: ReferenceKind, element: &[u8]) -> Option<BlobUse> {
    match StoredReference::decode(kind, element) {
        Ok(StoredReference::InBlob { blob, .. }) if blob.has_blob() => {
            Some(BlobUse::Blob { id: blob.blob, bytes: blob.length.into() })
        }
        Ok(_) => None,
        Err(error) => Some(BlobUse::Damaged(error)),
    }
}

/// The blobs to which `elements` of a type lead, and those to which the blobs lead.
///
/// # Errors
/// [`h5live_model::Error::Store`] if an element or a blob is damaged.
pub fn blobs_of(state: &Snapshot<'_>, datatype: &Datatype, elements: &[u8]) -> Result<HashSet<BlobId>> {
    let mut found = HashSet::new();
    for_each_blob_use(state, datatype, elements, &mut |found_use| match found_use {
        BlobUse::Blob { id, .. } => Ok(found.insert(id)),
        BlobUse::Damaged(error) => Err(damaged(oid::GLOBAL_METADATA)(error)),
    })?;
    Ok(found)
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
