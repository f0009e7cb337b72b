//! The events that the reader of standard input reports.

use std::io;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use super::input_cell::InputCell;
use super::row_error::RowError;

/// Why nothing more can be read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The input cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// The input is empty: not even the names of the columns are there.
    #[error("no header line")]
    EmptyInput,
    /// The names of the columns are not UTF-8.
    #[error(
        "the names of the columns are not UTF-8 ({0}); convert the input first, as with `iconv -f latin1 -t utf-8`"
    )]
    HeaderNotUtf8(std::str::Utf8Error),
    /// A quote in the names of the columns is not closed.
    #[error("a quote in the line with the names of the columns is not closed")]
    UnclosedHeaderQuote,
}

/// A row of the input.
#[derive(Debug)]
pub struct InputRow {
    /// Rows before it, and one.
    pub row_number: u64,
    /// Its cells in the order of the columns, or why they cannot be told. The caller checks their number.
    pub cells: Result<Vec<InputCell>, RowError>,
    /// Values with names that the first row does not have, if these are kept.
    pub new_keys: Vec<(String, InputCell)>,
    /// The row as it came in, if that was asked for.
    pub raw_text_if_kept: Vec<u8>,
}

/// The columns of the input.
#[derive(Debug, Default)]
pub struct InputColumns {
    /// The names.
    pub names: Vec<String>,
    /// The names of a header whose rows have no columns in the dataset.
    pub header_names_left_out: Vec<String>,
    /// The header line as it came in.
    pub header: Vec<u8>,
    /// When the first row came in, if it had to wait until it was clear how rows are written.
    pub first_row_time: Option<Instant>,
    /// Whether the input has no names, so that the columns are numbered.
    pub is_numbered: bool,
    /// Whether rows may have more columns, by keys that the first one does not have.
    pub may_have_new_keys: bool,
    /// What makes the line with the names look like a row.
    pub doubt: Option<HeaderDoubt>,
}

/// What makes a line with the names of columns look like a row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderDoubt {
    /// A name is a number.
    #[error("{0:?} is a number; --no-header makes the line a row")]
    NumericName(String),
    /// A name is there twice.
    #[error("{0:?} is there twice; --no-header makes the line a row")]
    RepeatedName(String),
    /// The only name is as long as a line of a log.
    #[error("it looks like a line of text; --format lines makes each line a row")]
    Sentence,
}

/// The cells of a row in the order of the columns, and those with new names.
pub type CellsAndNewKeys = (Vec<InputCell>, Vec<(String, InputCell)>);

/// An event of the input.
#[derive(Debug)]
pub enum InputEvent {
    /// The names of the columns, before the first row that has cells.
    Columns(InputColumns),
    /// The lines before the header, as they came in; before the names of the columns.
    Preamble(String),
    /// A row.
    Row(InputRow),
    /// A frame, or the beginning of one at the end of the input.
    Frame(Vec<u8>),
    /// The input cannot be read any further.
    Failed(InputError),
}

/// The name of the column of rows that are one value each.
pub const VALUE_COLUMN_NAME: &str = "value";

/// Names for columns that have none.
pub fn numbered_column_names(columns: usize) -> Vec<String> {
    (0..columns).map(|i| format!("c{i}")).collect()
}

/// The receiver of what was read.
pub struct InputEventSender<'a> {
    sender: &'a SyncSender<InputEvent>,
    keeps_text: bool,
    row_rank: usize,
    rows: u64,
    begun: Option<Instant>,
}

impl<'a> InputEventSender<'a> {
    /// Nothing was read yet. `keeps_raw_text` says whether rows are handed on as they came in, too.
    pub fn new(sender: &'a SyncSender<InputEvent>, keeps_raw_text: bool) -> Self {
        InputEventSender { sender, keeps_text: keeps_raw_text, row_rank: 0, rows: 0, begun: None }
    }

    /// Says that a row is an array of arrays, so many deep; 0 if it has columns. A line of CSV is an array of single values.
    pub fn with_row_nesting_depth(self, row_nesting_depth: usize) -> Self {
        InputEventSender { row_rank: row_nesting_depth, ..self }
    }

    /// How deep the arrays of a row are.
    pub fn row_nesting_depth(&self) -> usize {
        self.row_rank
    }

    /// Notes when the first row came in.
    pub fn set_first_row_time(&mut self, first_row_time: Option<Instant>) {
        self.begun = first_row_time;
    }

    /// Hands on the names of the columns. Returns `false` if nobody listens any more.
    pub fn send_columns(&self, columns: InputColumns) -> bool {
        self.sender.send(InputEvent::Columns(InputColumns { first_row_time: self.begun, ..columns })).is_ok()
    }

    /// Hands on the lines before the header. Returns `false` if nobody listens any more.
    pub fn send_preamble(&self, text: String) -> bool {
        self.sender.send(InputEvent::Preamble(text)).is_ok()
    }

    /// Hands on a row. Returns `false` if nobody listens any more.
    pub fn send_row(&mut self, cells: Result<Vec<InputCell>, RowError>, text: impl FnOnce() -> Vec<u8>) -> bool {
        self.send_row_with_new_keys(cells.map(|cells| (cells, Vec::new())), text)
    }

    /// Hands on a row that may have new names. Returns `false` if nobody listens any more.
    pub fn send_row_with_new_keys(
        &mut self,
        cells: Result<CellsAndNewKeys, RowError>,
        text: impl FnOnce() -> Vec<u8>,
    ) -> bool {
        self.rows += 1;
        let text = if self.keeps_text { text() } else { Vec::new() };
        let (cells, new_keys) = match cells {
            Ok((cells, new_keys)) => (Ok(cells), new_keys),
            Err(error) => (Err(error), Vec::new()),
        };
        self.sender
            .send(InputEvent::Row(InputRow { row_number: self.rows, cells, new_keys, raw_text_if_kept: text }))
            .is_ok()
    }

    /// Hands on a frame. Returns `false` if nobody listens any more.
    pub fn send_frame(&self, bytes: Vec<u8>) -> bool {
        self.sender.send(InputEvent::Frame(bytes)).is_ok()
    }
}
