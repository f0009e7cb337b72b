//! Errors that end a recording.

use std::io;
use std::path::PathBuf;

use h5live_text::counted::{counted, quoted_names_and_more};

use super::input::InputError;
use super::row_error::RowError;

/// A result of a recording.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a recording did not come to the end of its input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The library refused something; it names the file and the object.
    #[error(transparent)]
    File(#[from] h5live::Error),
    /// The dataset does not take such rows.
    #[error(transparent)]
    Dataset(#[from] DatasetProblem),
    /// The input is not valid.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A row cannot be stored, and recording was to stop there.
    #[error(transparent)]
    Row(#[from] RefusedRow),
    /// A frame is larger than a chunk can be.
    #[error("frames of shape {shape:?} have more than 4 GiB")]
    FrameTooLarge {
        /// The shape (elements).
        shape: Vec<u64>,
    },
    /// A row is larger than a row may be.
    #[error("a row would have {bytes} bytes, and may have {max_bytes}; --types makes columns narrower")]
    RowTooLarge {
        /// Its size (bytes).
        bytes: u64,
        /// The largest size (bytes).
        max_bytes: u64,
    },
    /// A type was given for a column that does not come in.
    #[error("there is no column {0:?}")]
    NoSuchInputColumn(String),
    /// Rejected rows would be appended to an HDF5 file.
    #[error("{}: this is an HDF5 file; rejected rows are text, and need another file", path.display())]
    RejectFileIsHdf5 {
        /// The file.
        path: PathBuf,
    },
    /// Rejected rows cannot be appended to their file.
    #[error("{}: {source}", path.display())]
    RejectFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl Error {
    /// Whether the input is at fault, and not the file that takes its rows.
    pub fn is_input_at_fault(&self) -> bool {
        matches!(self, Error::Input(_) | Error::Row(_) | Error::RowTooLarge { .. } | Error::NoSuchInputColumn(_))
    }
}

/// A row that cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("row {row_number}: {source}")]
pub struct RefusedRow {
    /// Rows before it, and one.
    pub row_number: u64,
    /// Why.
    pub source: RowError,
}

/// Why a dataset does not take the rows of an input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatasetProblem {
    /// The rows of an input have more columns than a dataset can have.
    #[error(
        "{path}: a row has {number} columns, and a dataset of a file can have {max_columns} of such names and types; stores \
         (`kv:`, `hsds:`) take up to 65535, and frames of numbers have no names: `record --dtype f32 --shape {number}` stores \
         them, as raw bytes"
    )]
    TooManyInputColumns {
        /// The dataset.
        path: String,
        /// Columns of the rows.
        number: usize,
        /// Most of them.
        max_columns: usize,
    },
    /// The input has more or fewer columns than the dataset, and no names for them.
    #[error("{path} has {}, the rows of the input have {}", counted(*found, "column"), counted(*given, "field"))]
    ColumnCountMismatch {
        /// The dataset.
        path: String,
        /// Its columns.
        found: usize,
        /// Fields of a row.
        given: usize,
    },
    /// The input has columns that the dataset does not have.
    #[error(
        "{path} has no column {}; its columns are {}",
        quoted_names_and_more(missing),
        quoted_names_and_more(columns)
    )]
    NoSuchColumns {
        /// The dataset.
        path: String,
        /// Columns of the input.
        missing: Vec<String>,
        /// Its columns.
        columns: Vec<String>,
    },
    /// A column of the input is of another type than that of the dataset.
    #[error("the column {column} is of type {found}, that of the input is to be {given}")]
    ColumnTypeMismatch {
        /// The column, and the path of the dataset.
        column: String,
        /// Its type in the dataset.
        found: String,
        /// The type of the input.
        given: String,
    },
    /// The recorded rows are of another type than the dataset.
    #[error("{path} holds {found}, the input {given}")]
    RowTypeMismatch {
        /// The dataset.
        path: String,
        /// Its type.
        found: String,
        /// The type of the rows.
        given: String,
    },
}
