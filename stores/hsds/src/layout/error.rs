//! What is wrong with an object of the schema.

/// A result of the layout.
pub type Result<T> = std::result::Result<T, LayoutError>;

/// What is wrong with an object of the schema, or why it cannot be expressed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The bytes are no JSON.
    #[error("it is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A member is not there, or has another form.
    #[error("the member {member:?} is not there, or is not {expected}")]
    MissingOrInvalidMember {
        /// The member.
        member: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A text is no identity of an object.
    #[error("{0:?} is not the id of an object")]
    InvalidId(String),
    /// An identity is one of the first schema.
    #[error("the id {0:?} is one of schema 1, which is not read")]
    Schema1Id(String),
    /// A shard that the document names is not there.
    #[error("the document of its object names this shard, and it is not there")]
    MissingShard,
    /// A name in a shard belongs to another one.
    #[error("the name {0:?} does not belong to this shard")]
    EntryInWrongShard(String),
    /// A shard that is asked for was not read.
    #[error("a shard of its {0} was not read")]
    ShardNotLoaded(&'static str),
    /// A value does not fit its type.
    #[error("a value is not {0}")]
    ValueIsNot(&'static str),
    /// Elements end in their middle, or go on after their end.
    #[error("the elements take {expected} bytes, but {found} are there")]
    LengthMismatch {
        /// Bytes that the elements take, as far as that is known.
        expected: usize,
        /// Bytes that are there.
        found: usize,
    },
    /// The length of a variable-length element makes no sense.
    #[error("an element states a length of {0} bytes")]
    InvalidVarLenLength(i64),
    /// A type is nested too deeply.
    #[error("a type is nested more than {0} levels deep")]
    DatatypeDeeperThan(usize),
    /// A datatype is not one that the member says.
    #[error("the exact datatype is damaged: {0}")]
    Decode(#[from] h5live_format::DecodeError),
    /// A datatype cannot be encoded.
    #[error("the datatype cannot be encoded: {0}")]
    Encode(#[from] h5live_format::EncodeError),
    /// The schema has no room for something.
    #[error("{0} cannot be expressed in the schema")]
    Unsupported(&'static str),
}
