//! Errors at the seam between the facade and a store.

use std::io;

use crate::{AllocationError, FileHolderProcess, ForeignFileChange, Name, ObjectId, SwmrInvariant};

/// A result of a store.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a store could not do what was asked.
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
        /// The kind that was asked for.
        expected: &'static str,
    },
    /// The identity leads to no object.
    #[error("no object is at {0}")]
    NoObject(ObjectId),
    /// A chunk is no longer at the address where it was found, because its writer has stored it again. Look it up
    /// again.
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
    /// The store itself failed. Its kind is portable; its source is the store's own error.
    #[error(transparent)]
    Store(Box<StoreError>),
}

impl Error {
    /// Wraps a store's own error.
    pub fn store(kind: StoreErrorKind, error: impl std::error::Error + Send + Sync + 'static) -> Self {
        StoreError::new(kind, error).into()
    }

    /// The kind of failure, if the store itself failed.
    pub fn store_error_kind(&self) -> Option<&StoreErrorKind> {
        match self {
            Error::Store(error) => Some(&error.kind),
            _ => None,
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Error::Store(Box::new(error))
    }
}

/// A failure of a store: what every store has in common, and its own error as the source.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
#[non_exhaustive]
pub struct StoreError {
    /// The kind of failure.
    pub kind: StoreErrorKind,
    /// Whether to try again.
    pub retry: Retry,
    /// The promise that a writer has not kept, if that is known.
    pub broken_invariant: Option<SwmrInvariant>,
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl StoreError {
    /// Wraps a store's own error. Trying again does not help, and no promise is known to be broken.
    pub fn new(kind: StoreErrorKind, error: impl std::error::Error + Send + Sync + 'static) -> Self {
        StoreError { kind, retry: Retry::Never, broken_invariant: None, source: Box::new(error) }
    }

    /// Says whether to try again.
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Says which promise the writer has not kept.
    pub fn with_broken_invariant(mut self, invariant: Option<SwmrInvariant>) -> Self {
        self.broken_invariant = invariant;
        self
    }
}

/// The kinds of failure that every store has in common.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Another session excludes this one. The processes are named where the system names them.
    InUse(Vec<FileHolderProcess>),
    /// Another writer has taken the place of this one.
    Fenced,
    /// Nothing is at the location.
    NotFound,
    /// Something is at the location that was not to be replaced.
    AlreadyExists,
    /// The bytes at the location are not in the format that the store reads.
    NotThisFormat,
    /// The system does not allow it.
    PermissionDenied,
    /// There is no room.
    StorageFull,
    /// A structure contradicts the format, or another structure.
    Damaged,
    /// A structure that is being written did not become whole within the time that a reader waits.
    Torn,
    /// Another program has replaced, deleted or truncated the open file.
    Changed(ForeignFileChange),
    /// The service that keeps the store does not answer.
    Unreachable,
    /// Reading or writing failed in another way.
    Io,
}

impl From<&io::Error> for StoreErrorKind {
    fn from(error: &io::Error) -> Self {
        // What has the bytes may know better than the system's kinds can say.
        if let Some(known) = error.get_ref().and_then(|inner| inner.downcast_ref::<StoreError>()) {
            return known.kind.clone();
        }
        match error.kind() {
            io::ErrorKind::NotFound => StoreErrorKind::NotFound,
            io::ErrorKind::AlreadyExists => StoreErrorKind::AlreadyExists,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => StoreErrorKind::PermissionDenied,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                StoreErrorKind::StorageFull
            }
            _ => StoreErrorKind::Io,
        }
    }
}

/// Whether to try an operation again that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retry {
    /// It will fail again.
    Never,
    /// It may succeed later.
    Later,
    /// The store has tried again, as often as it may.
    Exhausted,
}
