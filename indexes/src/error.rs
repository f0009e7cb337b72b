//! Errors of indexes.

use h5live_format::Addr;
use h5live_model::ChunkCoord;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an index could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A structure could not be read, written or ordered.
    #[error(transparent)]
    Cache(#[from] h5live_cache::Error),
    /// A chunk lies outside the largest extent, or beyond what the index can count.
    #[error("chunk {:?} is outside of the index", .0.scaled())]
    ChunkOutOfBounds(ChunkCoord),
    /// The stored size of a chunk does not fit the elements of the index.
    #[error("a stored size of {size} bytes does not fit the elements of the index")]
    StoredChunkTooLarge {
        /// Stored bytes.
        size: u64,
    },
    /// This index cannot do this.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
    /// The offsets of a fractal heap do not reach far enough for another block.
    #[error("the fractal heap at {at} is full")]
    HeapFull {
        /// The heap.
        at: Addr,
    },
    /// Filters of a structure could not be undone.
    #[error("the filters of the structure at {at} cannot be undone")]
    FilterFailed {
        /// The structure.
        at: Addr,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Structures of the file contradict each other.
    #[error("the {record} at {at} contradicts the {other}: {rule}")]
    Contradiction {
        /// The structure.
        record: &'static str,
        /// Its address.
        at: Addr,
        /// The structure that it contradicts.
        other: &'static str,
        /// The rule that does not hold.
        rule: &'static str,
    },
}

impl Error {
    /// Whether a writer that is at work in the same place could be the cause: reading again may help.
    pub fn may_be_torn(&self) -> bool {
        match self {
            Error::Cache(error) => error.may_be_torn(),
            Error::Contradiction { .. } | Error::FilterFailed { .. } => true,
            _ => false,
        }
    }
}
