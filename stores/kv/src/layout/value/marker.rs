//! The record that recognises a store, and says the version of its layout.

use crate::layout::{LayoutError, Result};

/// The version of the layout that this program writes.
pub const LAYOUT_VERSION: u32 = 1;

/// What the value begins with.
const MAGIC: &[u8; 8] = b"h5livekv";

/// The value of [`MetadataField::LayoutVersion`](crate::layout::MetadataField::LayoutVersion) for a version.
pub fn encode_layout_version(version: u32) -> [u8; 12] {
    let mut value = [0; 12];
    value[..8].copy_from_slice(MAGIC);
    value[8..].copy_from_slice(&version.to_le_bytes());
    value
}

/// The version of a store's layout. It may be one that this program does not know.
///
/// # Errors
/// [`LayoutError::Value`] if the value is not that of a store.
pub fn decode_layout_version(value: &[u8]) -> Result<u32> {
    let version = value.strip_prefix(MAGIC).and_then(|version| version.try_into().ok());
    let rule = "it is \"h5livekv\" and 4 bytes";
    version.map(u32::from_le_bytes).ok_or(LayoutError::Value { record: "Layout Version", rule })
}
