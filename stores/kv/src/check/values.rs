//! Elements that lead to blobs.

use h5live_model::{Datatype, ObjectId, Result};

use super::{CheckedContainer, KvFault};
use crate::element_blobs::{BlobReference, walk_blob_references};
use crate::layout::{BlobId, key};

impl CheckedContainer<'_> {
    /// The bytes of a blob; `None` if it is not there.
    pub(super) fn bytes_of_blob(&self, blob: BlobId) -> Result<Option<u64>> {
        let mut bytes = None;
        self.state.with_value(key::blob(blob).as_bytes(), &mut |value| bytes = Some(value.len() as u64))?;
        Ok(bytes)
    }

    /// Looks at the blobs to which elements lead. Of those that `is_visible` says nobody can see, by their number, faults
    /// are none.
    pub(super) fn check_values(
        &mut self,
        object: ObjectId,
        datatype: &Datatype,
        elements: &[u8],
        is_visible: &mut dyn FnMut(usize) -> bool,
    ) -> Result<()> {
        if !datatype.has_vlen_or_references() {
            return Ok(());
        }
        let state = self.state;
        for (number, element) in elements.chunks_exact((datatype.size() as usize).max(1)).enumerate() {
            if element.iter().all(|byte| *byte == 0) {
                continue;
            }
            let is_visible = is_visible(number);
            walk_blob_references(&state, datatype, element, &mut |found| {
                let (is_new, fault) = match found {
                    BlobReference::Blob { id, bytes } => self.check_blob(id, bytes)?,
                    BlobReference::Damaged(error) => (false, Some(KvFault::RecordFormat(error))),
                };
                fault.filter(|_| is_visible).into_iter().for_each(|fault| self.add_fault(object, fault));
                Ok(is_new)
            })?;
            if self.is_full() {
                break;
            }
        }
        Ok(())
    }

    /// Marks a blob that an element uses. Whether it is the first one to do so, and what is wrong with the blob.
    fn check_blob(&mut self, blob: BlobId, stated: u64) -> Result<(bool, Option<KvFault>)> {
        let Some(is_new) = self.blobs.mark_used(blob) else {
            return Ok((false, Some(KvFault::NoBlob(blob))));
        };
        let found = self.bytes_of_blob(blob)?.unwrap_or_default();
        let fault = (found != stated).then_some(KvFault::BlobLengthMismatch { blob, stated, found });
        Ok((is_new, fault))
    }
}
