//! Errors of the key-value store.

use h5live_model::{Error as ModelError, ObjectId, StoreErrorKind};

use crate::layout::RecordFormatError;

/// What is wrong with a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KvError {
    /// A record of an object is damaged.
    #[error("object {object} of the key-value store is damaged: {source}")]
    DamagedObject {
        /// The object.
        object: ObjectId,
        /// What is wrong.
        source: RecordFormatError,
    },
    /// A record has no value, or none that fits, though others say that it has.
    #[error("object {object} of the key-value store is damaged: {rule}")]
    InconsistentObject {
        /// The object.
        object: ObjectId,
        /// What is wrong.
        rule: &'static str,
    },
    /// The engine has keys of something else.
    #[error("this is not a key-value store of h5live: {0}")]
    NotKvStore(RecordFormatError),
    /// The engine has no store.
    #[error("no key-value store of h5live is there")]
    NoStore,
    /// A layout that this program does not know.
    #[error("the key-value store has layout {found}; this program knows layout {known}")]
    UnsupportedVersion {
        /// The layout that the store has.
        found: u32,
        /// The layout that this program knows.
        known: u32,
    },
    /// Something is wrong with the store, so that nothing is deleted from it.
    #[error("nothing is deleted, because a check has {findings} findings; the first is: {first}")]
    ReclaimRefused {
        /// The number of findings.
        findings: usize,
        /// The first one.
        first: String,
    },
    /// So much is not committed that nothing more is taken.
    #[error(
        "changes of {bytes} bytes are in memory, more than the option max_uncommitted allows ({most} bytes): flush the \
         file, and then go on"
    )]
    TooMuchUncommitted {
        /// Bytes of the changes.
        bytes: u64,
        /// Most bytes after which a change is still taken.
        most: u64,
    },
    /// A change failed in its middle.
    #[error("an earlier change failed in its middle: nothing is written any more")]
    Poisoned,
}

impl From<KvError> for ModelError {
    fn from(error: KvError) -> Self {
        let kind = match error {
            KvError::DamagedObject { .. } | KvError::InconsistentObject { .. } | KvError::ReclaimRefused { .. } => {
                StoreErrorKind::Damaged
            }
            KvError::NotKvStore(_) | KvError::UnsupportedVersion { .. } => StoreErrorKind::NotThisFormat,
            KvError::NoStore => StoreErrorKind::NotFound,
            KvError::TooMuchUncommitted { .. } => StoreErrorKind::StorageFull,
            KvError::Poisoned => StoreErrorKind::Io,
        };
        ModelError::store(kind, error)
    }
}

/// Says of which object a record is damaged.
pub fn damaged_object_error(object: ObjectId) -> impl Fn(RecordFormatError) -> ModelError {
    move |source| KvError::DamagedObject { object, source }.into()
}

/// Says that a description does not fit the layout.
pub fn invalid_argument_error(error: RecordFormatError) -> ModelError {
    ModelError::Invalid(error.to_string())
}
