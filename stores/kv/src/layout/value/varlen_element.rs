//! Variable-length elements: a length, and the UUID of what they hold.

use crate::layout::encode::STORED_VLEN_AND_REFERENCE_SIZES;
use crate::layout::record_key::BlobId;
use crate::layout::{RecordFormatError, Result};

/// A variable-length element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VarLenBlobRef {
    /// Elements of the base type; bytes of a string. The blob of length 0 is not stored.
    pub element_count: u32,
    /// The blob; all zeros for an element that is null.
    pub blob: BlobId,
}

impl VarLenBlobRef {
    /// Bytes of an element.
    pub const BYTES: usize = STORED_VLEN_AND_REFERENCE_SIZES.vlen as usize;

    /// Whether a blob is stored for the element.
    pub fn has_blob(self) -> bool {
        self.element_count > 0 && !self.blob.is_null()
    }

    /// The bytes of the element.
    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut element = [0; Self::BYTES];
        element[..4].copy_from_slice(&self.element_count.to_le_bytes());
        element[4..].copy_from_slice(&self.blob.0);
        element
    }

    /// The element of these bytes.
    ///
    /// # Errors
    /// [`RecordFormatError::InvalidValue`] if there are not 20 of them.
    pub fn decode(element: &[u8]) -> Result<Self> {
        let record = "variable-length element";
        let wrong = RecordFormatError::InvalidValue { record, rule: "it has 4 bytes of length and 16 of the blob" };
        let (length, blob) = element.split_first_chunk().ok_or_else(|| wrong.clone())?;
        let blob = BlobId(blob.try_into().map_err(|_| wrong)?);
        Ok(VarLenBlobRef { element_count: u32::from_le_bytes(*length), blob })
    }
}
