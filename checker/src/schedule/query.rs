//! The queries of a reader.

/// A query of a reader to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReaderQuery {
    /// How long it is.
    Length,
    /// Bytes of it.
    Bytes {
        /// From where, in bytes from its start.
        at: u64,
        /// How many.
        len: usize,
    },
}

impl ReaderQuery {
    pub(super) fn span(self) -> (u64, u64) {
        match self {
            ReaderQuery::Length => (0, u64::MAX),
            ReaderQuery::Bytes { at, len } => (at, at.saturating_add(len as u64)),
        }
    }
}
