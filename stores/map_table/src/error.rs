//! Errors of tables.

use h5live_model::{Error as ModelError, StoreErrorKind};

/// Why a map that is a table cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MapTableError {
    /// A layout that this program does not know.
    #[error("the map has layout {found}; this program knows layout {known}")]
    UnsupportedVersion {
        /// What the mark says.
        found: u32,
        /// The layout that is known.
        known: u32,
    },
    /// The table or the mark is not there, or has another form.
    #[error("the map is damaged: {0}")]
    Malformed(&'static str),
    /// A row of the table makes no sense.
    #[error("the map is damaged: row {row} of its table {rule}")]
    InvalidRow {
        /// The row.
        row: u64,
        /// What is wrong with it.
        rule: &'static str,
    },
}

impl From<MapTableError> for ModelError {
    fn from(error: MapTableError) -> Self {
        let kind = match error {
            MapTableError::UnsupportedVersion { .. } => StoreErrorKind::NotThisFormat,
            MapTableError::Malformed(_) | MapTableError::InvalidRow { .. } => StoreErrorKind::Damaged,
        };
        ModelError::store(kind, error)
    }
}
