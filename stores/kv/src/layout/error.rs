//! Why bytes are not a key or a value of the layout.

/// A result of decoding a key or a value.
pub type Result<T> = std::result::Result<T, LayoutError>;

/// Why bytes are not a key or a value of the layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// An engine key that is none of the layout.
    #[error("an engine key of {length} bytes is not one of the layout: {rule} (byte {at})")]
    Key {
        /// Bytes from the start of the key.
        at: usize,
        /// Bytes of the key.
        length: usize,
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// A value that breaks a rule of its record.
    #[error("the value of {record} is not valid: {rule}")]
    Value {
        /// The record.
        record: &'static str,
        /// The rule that it breaks.
        rule: &'static str,
    },
}
