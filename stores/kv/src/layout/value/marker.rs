//! The record that recognises a store, and says in which form its records are.

use crate::layout::{CHECKSUM_BYTES, MetadataField, RecordFormatError, Result, checked_value, checksum, key, oid};

/// The newest version of the layout, in which new stores are.
pub const LAYOUT_VERSION: u32 = 2;
/// The version without flags: values have no checksums, and texts of maps are in their records.
const FIRST_VERSION: u32 = 1;

/// What the value begins with.
const MAGIC: &[u8; 8] = b"h5livekv";
/// Values end with checksums.
const CHECKSUMS: u32 = 1;

/// In which form the records of a container are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContainerFormat {
    /// The version of the layout.
    pub version: u32,
    /// Whether each value ends with a checksum.
    pub has_checksums: bool,
}

impl ContainerFormat {
    /// That of a new container.
    pub const fn new(has_checksums: bool) -> Self {
        ContainerFormat { version: LAYOUT_VERSION, has_checksums }
    }

    /// Whether values of maps that have a variable length are blobs, as in the connector. In the first version, the bytes
    /// are in the record of the pair.
    pub const fn has_varlen_map_value_blobs(self) -> bool {
        self.version > FIRST_VERSION
    }

    /// The value of the record, without a checksum.
    pub fn encode_without_checksum(self) -> Vec<u8> {
        let mut value = [&MAGIC[..], &self.version.to_le_bytes()].concat();
        if self.version > FIRST_VERSION {
            value.extend(if self.has_checksums { CHECKSUMS } else { 0 }.to_le_bytes());
        }
        value
    }

    /// The form of a container whose record has these bytes, with a checksum if there is one.
    ///
    /// # Errors
    /// The version, if this program does not know it; [`RecordFormatError::InvalidValue`] if the value is not that of a store.
    pub fn decode_stored(stored: &[u8]) -> Result<std::result::Result<Self, u32>> {
        let record = MetadataField::ContainerFormat.akey_text();
        let fault = |rule| RecordFormatError::InvalidValue { record, rule };
        let rest = stored.strip_prefix(MAGIC).and_then(|rest| rest.split_first_chunk());
        let (version, rest) =
            rest.ok_or(fault("it is \"h5livekv\", a version of 4 bytes, and flags from version 2 on"))?;
        let version = u32::from_le_bytes(*version);
        let form = |has_checksums| Ok(Ok(ContainerFormat { version, has_checksums }));
        match (version, rest.split_first_chunk()) {
            (FIRST_VERSION, None) if rest.is_empty() => form(false),
            (LAYOUT_VERSION, Some((flags, behind))) => match u32::from_le_bytes(*flags) {
                0 if behind.is_empty() => form(false),
                CHECKSUMS if behind.len() == CHECKSUM_BYTES => {
                    let at = key::metadata(oid::GLOBAL_METADATA, MetadataField::ContainerFormat);
                    checked_value(at.as_bytes(), stored).ok_or(fault("its checksum is another one"))?;
                    form(true)
                }
                _ => Err(fault("version 2 has the flag 1, if values end with checksums, or none")),
            },
            (FIRST_VERSION | LAYOUT_VERSION, _) => Err(fault("it has the bytes of its version")),
            _ => Ok(Err(version)),
        }
    }

    /// The bytes of the record as they are stored.
    pub fn encode_stored(self) -> Vec<u8> {
        let mut value = self.encode_without_checksum();
        if self.has_checksums {
            let at = key::metadata(oid::GLOBAL_METADATA, MetadataField::ContainerFormat);
            value.extend(checksum(at.as_bytes(), &value));
        }
        value
    }
}
