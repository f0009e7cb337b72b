//! Rows: what an input yields, and the compound type under which they are stored.

use h5live::Conversion;

use crate::manifest::type_text;
use crate::model::{Compound, CompoundMember, Datatype};

use super::kind::{CellError, ColumnKind, parse_bool};

/// A cell of a row as the input had it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputCell {
    /// Nothing.
    Empty,
    /// A text that may be a number or a truth value.
    Plain(String),
    /// A text that may be a number with a decimal comma, and the same number with a point.
    DecimalComma(String, String),
    /// A text, even if it looks like a number.
    Text(String),
    /// An array, which no column takes.
    Nested,
}

impl InputCell {
    fn text(&self) -> Option<&str> {
        match self {
            InputCell::Empty | InputCell::Nested => None,
            InputCell::Plain(text) | InputCell::Text(text) | InputCell::DecimalComma(text, _) => Some(text),
        }
    }

    /// The text that is to become a value of a type.
    fn text_for(&self, kind: ColumnKind) -> Option<&str> {
        match (self, kind) {
            (InputCell::DecimalComma(_, number), ColumnKind::Integer { .. } | ColumnKind::Float { .. }) => Some(number),
            _ => self.text(),
        }
    }
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordColumn {
    /// The name.
    pub name: String,
    /// The type.
    pub kind: ColumnKind,
}

/// The columns of a table of rows, and their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowType {
    columns: Vec<RecordColumn>,
    /// For each column the place of its cell in a row of the input; `None` if the input does not have it.
    sources: Vec<Option<usize>>,
    /// Cells of a row of the input.
    fields: usize,
    /// The text that stands for an empty cell of a column of integers.
    empty: Option<String>,
}

/// Why a row cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// The row has more or fewer cells than the table has columns.
    #[error("{found} fields instead of {expected}")]
    Fields {
        /// Cells of the row.
        found: usize,
        /// Columns of the table.
        expected: usize,
    },
    /// A cell is no text.
    #[error("field {column} is not valid UTF-8: {source}")]
    Utf8 {
        /// Fields before it, and one.
        column: usize,
        /// Where it is not.
        source: std::str::Utf8Error,
    },
    /// It is no JSON.
    #[error("{0}")]
    Json(String),
    /// The array of rows cannot be read from here on.
    #[error("{0}; the rest of the array cannot be read")]
    JsonArray(String),
    /// It is JSON, but no row.
    #[error("neither an object nor an array with values")]
    NotARow,
    /// It has a name that the first row has not.
    #[error("{0:?} is not in the first row")]
    NewName(String),
    /// It has two values of one name.
    #[error("{0:?} is there twice")]
    Twice(String),
    /// A value is an array.
    #[error("{0:?} is neither a number nor a text nor a truth value")]
    Nested(String),
    /// The input ends within a frame.
    #[error("a frame of {found} bytes instead of {expected}")]
    Frame {
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

impl RowType {
    /// A table of these columns, which are those of the input in the same order.
    pub fn new(columns: Vec<RecordColumn>) -> Self {
        let fields = columns.len();
        RowType { columns, sources: (0..fields).map(Some).collect(), fields, empty: None }
    }

    /// The columns of a type of rows that is there, for an input with columns of these names. `None` if rows of this
    /// type cannot be recorded, or the input has other columns.
    pub fn of(datatype: &Datatype, names: &[String]) -> Option<Self> {
        let Datatype::Compound(compound) = datatype else { return None };
        let column = |member: &CompoundMember| {
            Some(RecordColumn { name: member.name.to_string(), kind: ColumnKind::of(&member.datatype)? })
        };
        let columns: Vec<_> = compound.members.iter().map(column).collect::<Option<_>>()?;
        let is_known = |name: &String| columns.iter().any(|column| column.name == *name);
        let sources = columns.iter().map(|column| names.iter().position(|name| *name == column.name)).collect();
        let table = RowType { sources, fields: names.len(), ..RowType::new(columns.clone()) };
        (names.iter().all(is_known) && type_text(&table.datatype()) == type_text(datatype)).then_some(table)
    }

    /// The same table, with a text that stands for empty cells of columns of integers.
    pub fn with_empty(self, empty: Option<String>) -> Self {
        RowType { empty, ..self }
    }

    /// The columns.
    pub fn columns(&self) -> &[RecordColumn] {
        &self.columns
    }

    /// The types that hold every one of `rows` (each as long as `names`) without a change: integers and floats of 8
    /// bytes, truth values, or text twice as long as the longest.
    pub fn infer_columns(names: &[String], rows: &[&[InputCell]], empty: Option<&str>) -> Self {
        let column = |(i, name): (usize, &String)| {
            let cells = rows.iter().filter_map(|row| row.get(i));
            RecordColumn { name: name.clone(), kind: infer(cells, empty.is_some()) }
        };
        RowType::new(names.iter().enumerate().map(column).collect()).with_empty(empty.map(str::to_owned))
    }

    /// The stored type: the columns one after the other, without gaps.
    pub fn datatype(&self) -> Datatype {
        let mut offset = 0;
        let members = self.columns.iter().map(|column| {
            let member = CompoundMember { name: column.name.as_str().into(), offset, datatype: column.kind.datatype() };
            offset += column.kind.size();
            member
        });
        let members = members.collect();
        Datatype::Compound(Compound { size: offset, members })
    }

    /// Appends the encoded row to `out`. Nothing is appended if the row cannot be stored.
    ///
    /// # Errors
    /// [`RowError`], with the cell that does not fit.
    pub fn encode(&self, cells: &[InputCell], fit: Conversion, out: &mut Vec<u8>) -> Result<(), RowError> {
        if cells.len() != self.fields {
            return Err(RowError::Fields { found: cells.len(), expected: self.fields });
        }
        let start = out.len();
        for (column, source) in self.columns.iter().zip(&self.sources) {
            let cell = source.and_then(|at| cells.get(at)).unwrap_or(&InputCell::Empty);
            let is_integer = matches!(column.kind, ColumnKind::Integer { .. });
            let empty = self.empty.as_deref().filter(|_| is_integer);
            let text = cell.text_for(column.kind).or(empty);
            if let Err(source) = column.kind.encode(text, fit, out) {
                out.truncate(start);
                return Err(RowError::Cell { column: column.name.clone(), source });
            }
        }
        Ok(())
    }
}

fn infer<'a>(cells: impl Iterator<Item = &'a InputCell> + Clone, has_empty_value: bool) -> ColumnKind {
    let all = |fits: fn(&str) -> bool| {
        cells.clone().all(|cell| match cell {
            InputCell::Empty => true,
            InputCell::Plain(text) | InputCell::DecimalComma(_, text) => fits(text.trim()),
            InputCell::Text(_) | InputCell::Nested => false,
        })
    };
    let empty = cells.clone().any(|cell| *cell == InputCell::Empty);
    let all_empty = cells.clone().all(|cell| *cell == InputCell::Empty);
    let may_be_integers = !empty || has_empty_value && !all_empty;
    if may_be_integers && all(|text| text.parse::<i64>().is_ok()) {
        ColumnKind::I64
    } else if may_be_integers && all(|text| text.parse::<u64>().is_ok()) {
        ColumnKind::U64
    } else if all(|text| ColumnKind::F64.encode(Some(text), Conversion::Exact, &mut Vec::new()).is_ok()) {
        ColumnKind::F64
    } else if !empty && all(|text| parse_bool(text).is_some()) {
        ColumnKind::Bool
    } else {
        let longest = cells.filter_map(InputCell::text).map(str::len).max().unwrap_or(0);
        let size = longest.saturating_mul(2).max(8).checked_next_power_of_two().unwrap_or(longest);
        ColumnKind::Text(u16::try_from(size).map_or(u32::from(u16::MAX), u32::from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(cells: &[&str]) -> Vec<InputCell> {
        cells.iter().map(|c| if c.is_empty() { InputCell::Empty } else { InputCell::Plain((*c).to_owned()) }).collect()
    }

    fn inferred(rows: &[Vec<InputCell>]) -> Vec<String> {
        let names: Vec<_> = (0..rows[0].len()).map(|i| format!("c{i}")).collect();
        let rows: Vec<&[InputCell]> = rows.iter().map(Vec::as_slice).collect();
        RowType::infer_columns(&names, &rows, None).columns().iter().map(|c| c.kind.to_string()).collect()
    }

    #[test]
    fn a_column_is_of_the_narrowest_type_that_holds_all_its_cells() {
        let rows = [plain(&["1", "1", "true", "a", "1"]), plain(&["-2", "1e3", "false", "twelve bytes", "true"])];
        assert_eq!(inferred(&rows), ["i64", "f64", "bool", "str32", "str8"]);
    }

    #[test]
    fn empty_cells_make_integers_floats_and_truth_values_text() {
        let rows = [plain(&["1", "true", ""]), plain(&["", "", ""])];
        assert_eq!(inferred(&rows), ["f64", "str8", "f64"]);
    }

    #[test]
    fn integers_that_no_float_has_are_not_floats() {
        let rows = [plain(&["18446744073709551615", "9007199254740993", "1e400", "1e999999999999999999999"])];
        assert_eq!(inferred(&rows), ["u64", "i64", "str16", "str64"]);
        let rows =
            [plain(&["18446744073709551615", "9007199254740993", "-1"]), plain(&["-1", "0.5", "18446744073709551616"])];
        assert_eq!(inferred(&rows), ["str64", "str32", "f64"]);
    }

    #[test]
    fn text_that_looks_like_a_number_stays_text() {
        assert_eq!(inferred(&[vec![InputCell::Text("12".into())]]), ["str8"]);
    }

    #[test]
    fn rows_are_packed_in_the_order_of_their_columns() {
        let column = |name: &str, kind: &str| RecordColumn { name: name.into(), kind: kind.parse().unwrap() };
        let table = RowType::new(vec![column("t", "u16"), column("v", "f32"), column("s", "str3")]);
        let Datatype::Compound(t) = table.datatype() else { panic!("not a compound") };
        assert_eq!(t.size, 9);
        assert_eq!(t.members.iter().map(|m| m.offset).collect::<Vec<_>>(), [0, 2, 6]);
        let mut out = Vec::new();
        table.encode(&plain(&["258", "1", "ab"]), Conversion::Exact, &mut out).unwrap();
        assert_eq!(out, [2, 1, 0, 0, 0x80, 0x3F, b'a', b'b', 0]);
    }

    #[test]
    fn a_row_that_does_not_fit_leaves_nothing_behind() {
        let column = |name: &str| RecordColumn { name: name.into(), kind: ColumnKind::I64 };
        let table = RowType::new(vec![column("a"), column("b")]);
        let mut out = vec![7];
        let error = table.encode(&plain(&["1"]), Conversion::Exact, &mut out).unwrap_err();
        assert_eq!(error.to_string(), "1 fields instead of 2");
        let error = table.encode(&plain(&["1", "x"]), Conversion::Exact, &mut out).unwrap_err();
        assert_eq!(error.to_string(), "column \"b\": \"x\" is no i64");
        assert_eq!(out, [7]);
    }
}
