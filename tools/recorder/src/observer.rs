//! What a recording tells while it goes on.

use std::fmt;

use h5live_text::counted::{counted, quoted_names_and_more};

use super::error::RefusedRow;
use super::input::HeaderDoubt;
use super::target::LayoutSetting;

/// Hears of a recording while it goes on. `()` hears nothing.
pub trait RecordObserver {
    /// Something was decided that a user may not expect.
    fn notice(&mut self, notice: &RecordNotice) {
        let _ = notice;
    }

    /// A row or frame was taken. It is visible to other processes with the next flush.
    fn row_accepted(&mut self) {}

    /// A row cannot be stored, and the recording goes on.
    fn row_skipped_or_rejected(&mut self, row: &RefusedRow) {
        let _ = row;
    }
}

impl RecordObserver for () {}

/// A decision about the rows of a recording that a user may not expect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordNotice {
    /// The dataset is there already, so that these settings of a new one do not count.
    IgnoredLayoutSettings(Vec<LayoutSetting>),
    /// The input has no names, and its columns are those of the dataset in their order.
    ColumnsByPosition {
        /// The columns of the dataset.
        names: Vec<String>,
    },
    /// The dataset has no columns, so that the names of the header are left out.
    HeaderNamesLeftOut(Vec<String>),
    /// The first line was taken for the names of the columns, but looks like a row.
    DoubtfulHeader(HeaderDoubt),
    /// The first rows came slowly: columns of integers are stored as floats, because later ones may have fractions.
    IntegersStoredAsFloats {
        /// The columns.
        names: Vec<String>,
        /// Rows that came in time.
        rows: u64,
    },
    /// The first row has the units of the columns.
    UnitsRow {
        /// The attributes that were made.
        attributes: Vec<String>,
        /// The columns whose units were left out: the dataset has rows already.
        left_out: Vec<String>,
    },
    /// There are lines before the names of the columns.
    Preamble {
        /// Their number.
        lines: usize,
        /// The attribute that has them; `None` if they were left out, because the dataset has rows already.
        attribute: Option<&'static str>,
    },
    /// A column has texts because of one cell.
    TextColumnDueToCell {
        /// The column.
        column: String,
        /// Whether the other cells are numbers; otherwise they are truth values.
        are_numbers: bool,
        /// The row (counted from one) of the cell.
        row: u64,
        /// The text of the cell; none of an empty one.
        text: Option<String>,
    },
    /// A column has texts of JSON, because its cells are no arrays of one shape.
    JsonColumn {
        /// The column.
        column: String,
        /// The first row (counted from one) that does not fit.
        row: u64,
    },
}

impl fmt::Display for RecordNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordNotice::IgnoredLayoutSettings(settings) => {
                let settings: Vec<_> = settings.iter().map(ToString::to_string).collect();
                write!(f, "it is there already and keeps its layout; {} left out", settings.join(", "))
            }
            RecordNotice::ColumnsByPosition { names } => {
                let names = quoted_names_and_more(names);
                write!(f, "the input has no names; its columns are those of the dataset in order: {names}")
            }
            RecordNotice::HeaderNamesLeftOut(names) => {
                let names = quoted_names_and_more(names);
                write!(f, "the rows of the dataset have no columns; the names of the header are left out: {names}")
            }
            RecordNotice::DoubtfulHeader(doubt) => {
                write!(f, "the first line was taken for the names of the columns, although {doubt}")
            }
            RecordNotice::IntegersStoredAsFloats { names, rows } => {
                let (first, rows) = (names.first().map_or("", String::as_str), counted(*rows, "row"));
                write!(
                    f,
                    "columns of integers are stored as f64, because {rows} came in the first second, and later ones may have \
                     fractions: {} (--types {first}=i64 stores integers)",
                    quoted_names_and_more(names)
                )
            }
            RecordNotice::UnitsRow { attributes, left_out } => {
                f.write_str("row 1 has the units of the columns (--no-units makes it a row)")?;
                if !attributes.is_empty() {
                    write!(f, "; attributes: {}", quoted_names_and_more(attributes))?;
                }
                if left_out.is_empty() {
                    Ok(())
                } else {
                    write!(f, "; left out: those of {}", quoted_names_and_more(left_out))
                }
            }
            RecordNotice::Preamble { lines, attribute } => {
                match lines {
                    1 => f.write_str("1 line before the header is ")?,
                    lines => write!(f, "{lines} lines before the header are ")?,
                }
                match attribute {
                    Some(attribute) => write!(f, "its attribute {attribute:?}"),
                    None => f.write_str("left out; it has rows already"),
                }
            }
            RecordNotice::TextColumnDueToCell { column, are_numbers, row, text } => {
                let others = if *are_numbers { "numbers" } else { "truth values" };
                let text = text.as_ref().map_or_else(|| "an empty cell".to_owned(), |text| format!("{text:?}"));
                write!(f, "column {column:?} has texts, not {others}, because of {text} in row {row}")
            }
            RecordNotice::JsonColumn { column, row } => write!(
                f,
                "column {column:?} has texts of JSON: row {row} does not have an array of numbers or texts of one shape"
            ),
        }
    }
}
