//! Errors of engines.

use std::io;
use std::path::PathBuf;

use h5live_model::{Error as ModelError, StoreErrorKind};

/// Why an engine could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The system refused.
    #[error("{context}: {source}")]
    Io {
        /// What was tried.
        context: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The library of the engine refused.
    #[error("{context}: {source}")]
    Library {
        /// What was tried.
        context: &'static str,
        /// Why it failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Nothing is there.
    #[error("there is no key-value store in {0:?}")]
    NoStoreAt(PathBuf),
    /// Something is there that was not to be replaced.
    #[error("{0:?} exists")]
    AlreadyExists(PathBuf),
    /// Another process writes.
    #[error("another session has {0:?} open for writing")]
    InUseByWriter(PathBuf),
    /// The table of readers cannot be written, and a process writes the store.
    #[error(
        "{0:?} is being written, and this process may not write its table of readers, lock.mdb: only a process that may \
         can read it meanwhile"
    )]
    ReaderTableNotWritable(PathBuf),
    /// Somebody reads without the table of readers, so that nobody may write.
    #[error(
        "{0:?} is being read by a session that may not write its table of readers, lock.mdb, as one of another user: until \
         that has closed it, nobody can write it"
    )]
    InUseByUnregisteredReader(PathBuf),
    /// There is no room.
    #[error("there is no room for what is to be written: {0}")]
    Full(String),
    /// The engine is open for reading.
    #[error("the key-value store is open for reading only")]
    ReadOnly,
    /// The engine keeps nothing durable.
    #[error("the key-value store was opened with sync=never: nothing in it is durable")]
    DurabilityDisabled,
    /// Another writer has taken over.
    #[error("another writer has taken over: {0}")]
    Fenced(String),
    /// A key is longer than the engine takes.
    #[error("a key of {0} bytes is longer than the engine takes")]
    KeyTooLong(usize),
    /// A value does not have its checksum.
    #[error("{0} is damaged: its checksum is another one")]
    Checksum(String),
    /// A page of LMDB's file is damaged.
    #[cfg(feature = "lmdb")]
    #[error("the key-value store is damaged: {0}")]
    DamagedPage(#[from] super::DamagedPage),
    /// Bytes of the engine contradict its own rules.
    #[error("the key-value store is damaged: {0}")]
    Damaged(&'static str),
}

impl EngineError {
    /// The kind of failure that every store has in common.
    pub fn kind(&self) -> StoreErrorKind {
        match self {
            EngineError::Io { source, .. } => StoreErrorKind::from(source),
            EngineError::Library { .. } => StoreErrorKind::Io,
            EngineError::NoStoreAt(_) => StoreErrorKind::NotFound,
            EngineError::AlreadyExists(_) => StoreErrorKind::AlreadyExists,
            EngineError::InUseByWriter(_) | EngineError::InUseByUnregisteredReader(_) => {
                StoreErrorKind::InUse(Vec::new())
            }
            EngineError::Full(_) => StoreErrorKind::StorageFull,
            EngineError::ReadOnly | EngineError::DurabilityDisabled | EngineError::ReaderTableNotWritable(_) => {
                StoreErrorKind::PermissionDenied
            }
            EngineError::Fenced(_) => StoreErrorKind::Fenced,
            EngineError::KeyTooLong(_) => StoreErrorKind::Io,
            #[cfg(feature = "lmdb")]
            EngineError::DamagedPage(_) => StoreErrorKind::Damaged,
            EngineError::Checksum(_) | EngineError::Damaged(_) => StoreErrorKind::Damaged,
        }
    }

    /// Names what was tried when the system refused.
    #[cfg(any(feature = "lmdb", feature = "slatedb"))]
    pub(crate) fn io(context: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => EngineError::Full(source.to_string()),
            _ => EngineError::Io { context, source },
        }
    }

    /// Names what was tried with a file when the system refused.
    #[cfg(feature = "lmdb")]
    pub(crate) fn io_at(context: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |source| match EngineError::io(context)(source) {
            EngineError::Io { context, source } => {
                EngineError::Io { context, source: io::Error::new(source.kind(), format!("{path}: {source}")) }
            }
            error => error,
        }
    }
}

impl From<EngineError> for ModelError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::ReadOnly => ModelError::ReadOnly,
            EngineError::DurabilityDisabled => ModelError::Unsupported("outlasting a power failure with sync=never"),
            error => ModelError::store(error.kind(), error),
        }
    }
}
