//! Why bytes are not a key or a value of the layout.

use h5live_format::{DecodeError, EncodeError};

/// A result of decoding a key or a value.
pub type Result<T> = std::result::Result<T, RecordFormatError>;

/// Why bytes are not a key or a value of the layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordFormatError {
    /// An engine key that is none of the layout.
    #[error("an engine key of {length} bytes is not one of the layout: {rule} (byte {at})")]
    InvalidKey {
        /// Bytes from the start of the key.
        at: usize,
        /// Bytes of the key.
        length: usize,
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// Bytes that are not the structure of a value.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A value that does not fit its field.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A record that an object of this kind has, and this one has not.
    #[error("the object has no record {record}")]
    MissingRecord {
        /// The akey of the record.
        record: &'static str,
    },
    /// A value that breaks a rule of its record.
    #[error("the value of {record} is not valid: {rule}")]
    InvalidValue {
        /// The record.
        record: &'static str,
        /// The rule that it breaks.
        rule: &'static str,
    },
}
