//! Errors of the log.

use std::error::Error as _;

use h5live_model::{Error as ModelError, StoreError, StoreErrorKind};

use crate::entry::EntryError;
use crate::position::LogPosition;

/// A result of the seam.
pub type Result<T> = h5live_model::Result<T>;

/// Why a log cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file is no log.
    #[error("it is no file with a log, but an ordinary HDF5 file")]
    NoLog,
    /// A log dataset does not have its bytes as they were written.
    #[error(
        "the log is damaged: {0:?} is not one run of bytes without filters. A program has copied the file as if it had no \
         log; use the file from which it was copied"
    )]
    LogDatasetRearranged(String),
    /// An object of the log is not there.
    #[error("the log is damaged: it has no {0}")]
    MissingPart(String),
    /// An attribute of the log's does not have the form that it should have.
    #[error("the log is damaged: the attribute {attribute:?} of {of} has another form")]
    InvalidAttribute {
        /// The attribute.
        attribute: &'static str,
        /// The object that has it.
        of: &'static str,
    },
    /// A subfile cannot be opened.
    #[error("subfile {number} of {count} of the log: {source}")]
    OpenSubfile {
        /// Its number.
        number: u32,
        /// How many there are.
        count: u32,
        /// Why.
        source: Box<StoreError>,
    },
    /// What a subfile has is damaged, or cannot be read.
    #[error("in subfile {number} of the log: {source}")]
    InSubfile {
        /// Its number.
        number: u32,
        /// What is wrong.
        source: Box<StoreError>,
    },
    /// A subfile was made for another file.
    #[error("subfile {0} of the log belongs to another file")]
    ForeignSubfile(u32),
    /// A layout that this program does not know.
    #[error("the log has layout {0}; this program knows layout {known}", known = crate::LAYOUT_VERSION)]
    UnknownLayoutVersion(i64),
    /// An entry is damaged.
    #[error("the log is damaged at byte {at}: {source}")]
    DamagedEntry {
        /// Where the entry begins.
        at: LogPosition,
        /// What is wrong with it.
        source: EntryError,
    },
    /// What a heap has of a variable-length element is not what was stored.
    #[error("the log is damaged: the bytes of a text or sequence do not fit their checksum")]
    BlobChecksum,
    /// An entry does not fit its dataset.
    #[error("the log is damaged: an entry of dataset {dataset} {rule}")]
    EntryDatasetMismatch {
        /// The number of the dataset.
        dataset: u64,
        /// What is wrong.
        rule: &'static str,
    },
    /// The index table, or the skip list, is damaged.
    #[error(
        "the index table of the log is damaged: {source}; `h5live log rebuild` makes it anew if `h5live check` finds no \
         other damage"
    )]
    DamagedIndexTable {
        /// What is wrong with it.
        source: EntryError,
    },
    /// Data cannot be encoded.
    #[error("the data of an entry cannot be filtered: {source}")]
    EncodeEntry {
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A chunk of a dataset that is beside the log cannot be decoded.
    #[error("chunk {chunk} cannot be decoded: {source}")]
    DecodeUnloggedChunk {
        /// The chunk.
        chunk: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Data cannot be decoded.
    #[error("the data of an entry at byte {at} of the log cannot be decoded: {source}")]
    DecodeEntry {
        /// Where the data begins.
        at: LogPosition,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl LogError {
    /// Whether the text says in which file of the log the damage is.
    fn names_file(&self) -> bool {
        use LogError::{DamagedEntry, DecodeEntry, ForeignSubfile, InSubfile, OpenSubfile};
        matches!(
            self,
            DamagedEntry { .. } | DecodeEntry { .. } | OpenSubfile { .. } | InSubfile { .. } | ForeignSubfile(_)
        )
    }
}

/// The error of what a file has, with the number of the file, if that is a subfile.
pub fn with_subfile_number(number: u32, error: ModelError) -> ModelError {
    let ModelError::Store(error) = error else { return error };
    if number == 0 || error.source().and_then(|source| source.downcast_ref()).is_some_and(LogError::names_file) {
        return ModelError::Store(error);
    }
    let (kind, retry, broken) = (error.kind.clone(), error.retry, error.broken_invariant);
    StoreError::new(kind, LogError::InSubfile { number, source: error })
        .with_retry(retry)
        .with_broken_invariant(broken)
        .into()
}

impl From<LogError> for ModelError {
    fn from(error: LogError) -> Self {
        let kind =
            if matches!(error, LogError::NoLog) { StoreErrorKind::NotThisFormat } else { StoreErrorKind::Damaged };
        ModelError::store(kind, error)
    }
}
