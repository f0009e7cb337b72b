//! What goes wrong between a client and a server.

use h5live_format::{DecodeError, EncodeError};
use h5live_model::{AllocationError, Error as ModelError, ForeignFileChange, Retry, StoreError, StoreErrorKind};

/// A result of a request.
pub(crate) type Result<T> = std::result::Result<T, ServedError>;

/// What goes wrong between a client and a server. None names a token; whoever shows one names the file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServedError {
    #[error("the server does not answer: {cause}")]
    Unreachable { cause: String },
    #[error(
        "the server wants a token, and this one is missing or wrong: it is in the address that the server printed (?token=, or H5LIVE_TOKEN)"
    )]
    Unauthorized,
    #[error("the server is not called so: use the address that it printed")]
    Misdirected,
    #[error("the server does not let it be read: {message}")]
    Denied { message: String },
    #[error("the server has no such file")]
    NoFile,
    #[error("another file has taken the place of the one that was opened")]
    Replaced,
    #[error("{message}")]
    InUse { message: String },
    #[error("the server has no room now: {message}")]
    Busy { message: String },
    #[error("{message}")]
    NotThisFormat { message: String },
    #[error("{message}")]
    Refused { message: String },
    #[error("no h5live server of this version answers there: {what}")]
    NotOurs { what: String },
    #[error("the answer of the server is damaged: {cause}")]
    Message { cause: DecodeError },
    #[error("the request does not fit the protocol: {cause}")]
    Request { cause: EncodeError },
    #[error("the answer of the server has more than {limit} bytes")]
    TooLarge { limit: usize },
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl ServedError {
    /// Whether the same request may succeed in a moment.
    pub fn is_transient(&self) -> bool {
        matches!(self, ServedError::Unreachable { .. } | ServedError::Busy { .. })
    }
}

impl From<ServedError> for ModelError {
    fn from(error: ServedError) -> Self {
        let kind = match &error {
            ServedError::Unreachable { .. } | ServedError::Busy { .. } => StoreErrorKind::Unreachable,
            ServedError::Unauthorized | ServedError::Misdirected | ServedError::Denied { .. } => {
                StoreErrorKind::PermissionDenied
            }
            ServedError::NoFile => StoreErrorKind::NotFound,
            ServedError::Replaced => StoreErrorKind::Changed(ForeignFileChange::Replaced),
            ServedError::InUse { .. } => StoreErrorKind::InUse(Vec::new()),
            ServedError::NotThisFormat { .. } | ServedError::NotOurs { .. } => StoreErrorKind::NotThisFormat,
            ServedError::Message { .. } => StoreErrorKind::Damaged,
            ServedError::Refused { .. } | ServedError::Request { .. } | ServedError::TooLarge { .. } => {
                StoreErrorKind::Io
            }
            ServedError::Allocation(_) | ServedError::Model(_) => StoreErrorKind::Io,
        };
        match error {
            ServedError::Model(error) => error,
            ServedError::Allocation(error) => error.into(),
            error => {
                let retry = if error.is_transient() { Retry::Exhausted } else { Retry::Never };
                StoreError::new(kind, error).with_retry(retry).into()
            }
        }
    }
}
