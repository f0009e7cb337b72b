//! What can go wrong at the seam between the facade and a store.

use crate::{AllocationError, Name, ObjectId};

/// A result of a store.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A group has no link of this name.
    #[error("there is no {0:?} here")]
    NotFound(Name),
    /// A group has a link, or an object an attribute, of this name already.
    #[error("{0:?} exists already")]
    Exists(Name),
    /// The object is of another kind.
    #[error("this is not a {expected}")]
    WrongKind {
        /// What was asked for.
        expected: &'static str,
    },
    /// The identity leads to no object.
    #[error("no object is at {0}")]
    NoObject(ObjectId),
    /// A chunk is no longer where it was found: its writer has stored it anew. Look it up again.
    #[error("the chunk has been stored anew since it was looked up")]
    Moved,
    /// The store was opened for reading.
    #[error("the file is open for reading only")]
    ReadOnly,
    /// The session was closed.
    #[error("the file is closed")]
    Closed,
    /// The argument does not fit the object.
    #[error("{0}")]
    Invalid(String),
    /// There is no memory for a length that the file or a description states.
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    /// The store cannot do this.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
    /// The store itself failed; the source says how.
    #[error("{0}")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Wraps a store's own error.
    pub fn store(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Error::Store(Box::new(error))
    }
}
