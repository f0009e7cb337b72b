//! Errors of the native store.

use std::io;
use std::path::PathBuf;

use h5live_cache::Error as CacheError;
use h5live_format::{Addr, DecodeError, EncodeError, Fault};
use h5live_indexes::Error as IndexError;
use h5live_model::{self as model, ForeignFileChange, Retry, StoreError, StoreErrorKind, SwmrInvariant};
use h5live_swmr::RetryableError;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why the native store could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be opened, locked or followed.
    #[error(transparent)]
    Swmr(#[from] h5live_swmr::Error),
    /// A structure is being written, and did not become whole.
    #[error("{}", h5live_swmr::torn_read_message(*attempts, source.is_overtaken(), source.violated_invariant()))]
    Torn {
        /// How often it was read.
        attempts: u32,
        /// The error of the last attempt.
        source: Box<Error>,
    },
    /// A structure could not be read, written or ordered.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The chunk index failed.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A message of an object header is damaged.
    #[error("the object header at {header} is damaged")]
    DamagedMessage {
        /// The object header.
        header: Addr,
        /// The fault of the message.
        source: DecodeError,
    },
    /// One of the files into which a file was cut could not be opened.
    #[error("cannot open the member {}", .file.display())]
    MemberFile {
        /// The member.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A raw file that holds elements could not be read.
    #[error("cannot read the raw file {}", .file.display())]
    ExternalRawFile {
        /// The file, as the dataset names it.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A raw file that would be written is an HDF5 file, which a process writes.
    #[error("cannot write the raw file {}: it is an HDF5 file", .file.display())]
    RawFileIsLiveHdf5 {
        /// The file, as the dataset names it.
        file: PathBuf,
        /// Who writes it.
        source: h5live_swmr::Error,
    },
    /// A structure cannot be written.
    #[error("a value does not fit the format")]
    Encode(#[from] EncodeError),
    /// Structures of an object contradict each other, or lead nowhere.
    #[error("the object at {header} is damaged: {rule}")]
    DamagedObject {
        /// The object header.
        header: Addr,
        /// The rule that does not hold.
        rule: &'static str,
    },
    /// The request contradicts the data model, or needs something that this store cannot do.
    #[error(transparent)]
    Model(#[from] model::Error),
}

impl Error {
    /// The error of the metadata cache, if that is what this one is.
    fn cache(&self) -> Option<&CacheError> {
        match self {
            Error::Cache(error) | Error::Index(IndexError::Cache(error)) => Some(error),
            _ => None,
        }
    }

    /// The change of the file by another program that caused this error, if there was one.
    pub fn file_change(&self) -> Option<ForeignFileChange> {
        match self {
            Error::Swmr(error) => error.file_change(),
            _ => matches!(self.cache(), Some(CacheError::FileTruncated { .. })).then_some(ForeignFileChange::Truncated),
        }
    }

    /// Which promise a writer has not kept, if this is met while it is followed, and that is known.
    pub fn violated_invariant(&self) -> Option<SwmrInvariant> {
        match self {
            Error::Swmr(error) => return error.violated_invariant(),
            Error::Torn { source, .. } => return source.violated_invariant(),
            _ => {}
        }
        match self.cache()? {
            CacheError::PastEnd { .. } | CacheError::UndefinedAddr => Some(SwmrInvariant::NoDanglingAddress),
            CacheError::Decode { source, .. } => match source.fault {
                Fault::Checksum { .. } => Some(SwmrInvariant::NoLastingTornWrites),
                // There is another structure, or none.
                Fault::Signature { .. } | Fault::UnsupportedVersion { .. } => Some(SwmrInvariant::NoDanglingAddress),
                _ => None,
            },
            _ => None,
        }
    }

    /// The portable kind of this failure.
    pub fn kind(&self) -> StoreErrorKind {
        if let Some(change) = self.file_change() {
            return StoreErrorKind::Changed(change);
        }
        match self {
            Error::Swmr(error) | Error::RawFileIsLiveHdf5 { source: error, .. } => error.kind(),
            Error::MemberFile { source, .. } | Error::ExternalRawFile { source, .. } => source.into(),
            Error::Torn { .. } => StoreErrorKind::Torn,
            Error::Cache(error) | Error::Index(IndexError::Cache(error)) => store_kind_of_cache_error(error),
            Error::Index(_) | Error::DamagedMessage { .. } | Error::DamagedObject { .. } => StoreErrorKind::Damaged,
            _ => StoreErrorKind::Io,
        }
    }

    /// The error of a request that contradicts the data model.
    pub(crate) fn invalid(text: impl Into<String>) -> Error {
        Error::Model(model::Error::Invalid(text.into()))
    }

    pub(crate) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Swmr(h5live_swmr::Error::Io { action, source })
    }
}

impl RetryableError for Error {
    fn may_be_torn(&self) -> bool {
        match self {
            Error::Swmr(error) => error.may_be_torn(),
            Error::DamagedMessage { .. } | Error::DamagedObject { .. } => true,
            Error::Index(error) if error.may_be_torn() => true,
            _ => self.cache().is_some_and(|error| matches!(error, CacheError::Decode { .. }) || error.may_be_torn()),
        }
    }

    fn is_overtaken(&self) -> bool {
        matches!(self, Error::Swmr(error) if error.is_overtaken())
    }

    fn addr(&self) -> Option<Addr> {
        match self {
            Error::Index(IndexError::Contradiction { at, .. })
            | Error::DamagedMessage { header: at, .. }
            | Error::DamagedObject { header: at, .. } => Some(*at),
            Error::Torn { source, .. } => source.addr(),
            _ => match self.cache()? {
                CacheError::Decode { at, .. } | CacheError::PastEnd { at, .. } => Some(*at),
                _ => None,
            },
        }
    }

    fn may_be_truncated(&self) -> bool {
        !matches!(self, Error::Model(_))
    }

    fn into_torn_after_attempts(self, attempts: u32) -> Self {
        Error::Torn { attempts, source: Box::new(self) }
    }
}

fn store_kind_of_cache_error(error: &CacheError) -> StoreErrorKind {
    match error {
        CacheError::Io { source, .. } => source.into(),
        CacheError::AddressSpaceFull { .. } => StoreErrorKind::StorageFull,
        CacheError::PastEnd { .. }
        | CacheError::Decode { .. }
        | CacheError::WrongEntryType { .. }
        | CacheError::UndefinedAddr => StoreErrorKind::Damaged,
        _ => StoreErrorKind::Io,
    }
}

impl From<Error> for model::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Model(error) => error,
            other => {
                let retry = if matches!(other, Error::Torn { .. } | Error::Swmr(h5live_swmr::Error::Torn { .. })) {
                    Retry::Exhausted
                } else {
                    Retry::Never
                };
                let (kind, broken) = (other.kind(), other.violated_invariant());
                StoreError::new(kind, other).with_retry(retry).with_broken_invariant(broken).into()
            }
        }
    }
}
