//! Errors of decoding and encoding.

use std::ops::RangeInclusive;

/// Why bytes are not the structure that they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{record}: {field} at byte {offset_in_structure}: {fault}")]
pub struct DecodeError {
    /// The structure.
    pub record: &'static str,
    /// The field of the structure.
    pub field: &'static str,
    /// Bytes from the start of the structure.
    pub offset_in_structure: usize,
    /// The fault of the field.
    pub fault: Fault,
}

impl DecodeError {
    /// Whether a writer that is at work in the same place could be the cause: reading again may help.
    pub fn may_be_torn(&self) -> bool {
        matches!(self.fault, Fault::Checksum { .. } | Fault::Signature { .. } | Fault::Truncated { .. })
    }
}

/// The fault of a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The bytes end too soon.
    #[error("needs {needed} bytes, {left} are left")]
    Truncated {
        /// Bytes that the field takes.
        needed: u64,
        /// Bytes that are there.
        left: usize,
    },
    /// Bytes are left when all fields have been read.
    #[error("{0} bytes are left over")]
    TrailingBytes(usize),
    /// The structure does not begin with its signature.
    #[error("the signature is {}, not {expected}", hex(.found))]
    Signature {
        /// The right one.
        expected: &'static str,
        /// The bytes that are there.
        found: Vec<u8>,
    },
    /// A version that does not exist, or not here.
    #[error("version {found} is not known, but {}", versions(.allowed))]
    UnsupportedVersion {
        /// The known versions.
        allowed: RangeInclusive<u8>,
        /// The one that is there.
        found: u8,
    },
    /// The checksum does not match the bytes.
    #[error("checksum is {stored:#010x}, the bytes give {computed:#010x}")]
    Checksum {
        /// The one that is there.
        stored: u32,
        /// The right one.
        computed: u32,
    },
    /// A value that the format does not allow.
    #[error("{found} is not allowed: {rule}")]
    InvalidValue {
        /// The value.
        found: u64,
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// A count or size that the bytes cannot hold, or that is above a limit.
    #[error("{found} is above the limit of {limit}")]
    TooLarge {
        /// The value.
        found: u64,
        /// The largest that is possible here.
        limit: u64,
    },
    /// Structures are nested deeper than is allowed.
    #[error("nested deeper than {0} levels")]
    DeeperThan(u32),
    /// A message of a type that this library does not know, marked so that the object must not be opened.
    #[error("message type {0:#x} is unknown, and marked as one that must be known")]
    UnknownRequiredMessage(u16),
}

/// Bytes as text.
fn hex(bytes: &[u8]) -> String {
    let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join(" ")
}

/// Versions as text.
fn versions(known: &RangeInclusive<u8>) -> String {
    match (known.start(), known.end()) {
        (first, last) if first == last => format!("version {first} is"),
        (first, last) => format!("versions {first} to {last} are"),
    }
}

/// Why a structure cannot be written as bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{record}: {field}: {value} does not fit {limit}")]
pub struct EncodeError {
    /// The structure.
    pub record: &'static str,
    /// The field of the structure.
    pub field: &'static str,
    /// The value.
    pub value: u64,
    /// The largest that the field can hold.
    pub limit: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_show_bytes_and_versions_in_plain_words() {
        let fault = Fault::Signature { expected: "FAHD", found: b"FA\0\x7f".to_vec() };
        assert_eq!(fault.to_string(), "the signature is 46 41 00 7f, not FAHD");
        let version = |allowed| Fault::UnsupportedVersion { allowed, found: 9 }.to_string();
        assert_eq!(version(0..=0), "version 9 is not known, but version 0 is");
        assert_eq!(version(1..=3), "version 9 is not known, but versions 1 to 3 are");
    }
}
