//! Why a row cannot be stored.

use h5live_text::counted::counted;

use super::kind::CellError;

/// Why a row cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// The row has more or fewer cells than the table has columns.
    #[error("{} instead of {expected}", counted(*found, "field"))]
    FieldCountMismatch {
        /// Cells of the row.
        found: usize,
        /// Columns of the table.
        expected: usize,
    },
    /// A quote is not closed, so that it is not known where the row ends.
    #[error("a quote is not closed within {}", counted(*lines, "line"))]
    UnclosedQuote {
        /// The lines that were searched.
        lines: usize,
    },
    /// A cell is no text.
    #[error("field {column} is not valid UTF-8: {source}")]
    NotUtf8 {
        /// Fields before it, and one.
        column: usize,
        /// Where it is not.
        source: std::str::Utf8Error,
    },
    /// It is no JSON.
    #[error("not valid JSON: {0}")]
    InvalidJson(String),
    /// The array of rows cannot be read from here on.
    #[error("{0}; the rest of the array cannot be read")]
    RestOfJsonArrayUnreadable(String),
    /// It is JSON, but no row.
    #[error("neither an object nor an array with values")]
    NotARow,
    /// It has a name that the first rows do not have.
    #[error("{0:?} is not in the first rows (--on-new-key says what becomes of it)")]
    NewKey(String),
    /// It has a value of no name.
    #[error("a key is empty")]
    EmptyKey,
    /// It has two values of one name.
    #[error("{0:?} is there twice")]
    RepeatedKey(String),
    /// It has a new name that no dataset can have.
    #[error("{0:?} is not in the first row, and cannot be the name of a dataset")]
    UnusableKeyName(String),
    /// There are too many new names for a dataset each.
    #[error("{name:?} is not in the first row, and there are {max_keys} new keys with a dataset already")]
    TooManyNewKeys {
        /// The name.
        name: String,
        /// Most new names.
        max_keys: usize,
    },
    /// The input ends within a frame.
    #[error("a frame of {} instead of {expected}", counted(*found, "byte"))]
    TruncatedFrame {
        /// Bytes that are there.
        found: usize,
        /// Bytes of a frame.
        expected: usize,
    },
    /// A cell does not fit its column.
    #[error("column {column:?}: {source}")]
    Cell {
        /// The name of the column.
        column: String,
        /// The fault of the cell.
        source: CellError,
    },
}
