//! Values as lines: as text, as JSON, as CSV.

use h5live::{File, Value};

use crate::error::{Error, FileProblem, Result};
use crate::model::{ArrayType, Datatype};
use crate::output::StdoutWriter;
use crate::references::ReferenceFormatter;
use crate::times::TimeColumns;
use crate::value;

/// Most columns of CSV.
const MAX_COLUMNS: u64 = 1 << 20;

/// How values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueStyle {
    /// Text, behind the index of the row.
    Text,
    /// A JSON value per line.
    Json,
    /// A line of CSV per row, below the names of the columns.
    Csv,
    /// The elements as stored, without lines.
    Raw,
}

/// Writes rows of values.
pub struct ValueWriter<'a> {
    style: ValueStyle,
    references: ReferenceFormatter<'a>,
    times: TimeColumns,
    /// The type of an element, as soon as it is known.
    datatype: Option<Datatype>,
}

impl<'a> ValueWriter<'a> {
    /// A writer of values of a file.
    pub fn new(style: ValueStyle, file: &'a File) -> Self {
        ValueWriter { style, references: ReferenceFormatter::new(file), times: TimeColumns::default(), datatype: None }
    }

    /// The same writer, which shows these integers as times to people, and in CSV.
    pub fn with_times(self, times: TimeColumns) -> Self {
        ValueWriter { times, ..self }
    }

    /// How values are written.
    pub fn style(&self) -> ValueStyle {
        self.style
    }

    /// Says what comes: rows (`[rank - 1]`, elements) of what is called `name`. The second time, nothing happens.
    ///
    /// # Errors
    /// [`Error::Stdout`]; [`Error::UnsuitableFile`] if CSV cannot have so many columns.
    pub fn write_csv_header_once(
        &mut self,
        name: &str,
        datatype: &Datatype,
        row_dims: &[u64],
        out: &mut StdoutWriter,
    ) -> Result<()> {
        let is_first = self.datatype.replace(datatype.clone()).is_none();
        if self.style != ValueStyle::Csv || !is_first {
            return Ok(());
        }
        let number = product(row_dims.iter().copied()).saturating_mul(column_count(datatype));
        if number > MAX_COLUMNS {
            let problem = FileProblem::TooManyCsvColumns { path: name.to_owned(), number, max_columns: MAX_COLUMNS };
            return Err(Error::UnsuitableFile { path: self.references.file().name().into(), problem });
        }
        let name = name.rsplit('/').find(|part| !part.is_empty()).unwrap_or("value");
        let mut names = Vec::new();
        row_columns(row_dims, datatype, name, &mut names);
        csv_line(&names, out)
    }

    /// Writes values, `row_dims` (`[rank - 1]`, elements) of them on a line, behind a label each.
    ///
    /// # Errors
    /// [`Error::Stdout`].
    pub fn write_lines(
        &self,
        row_dims: &[u64],
        values: Vec<Value>,
        labels: &[u64],
        out: &mut StdoutWriter,
    ) -> Result<()> {
        let per_line = row_dims.iter().fold(1, |n: usize, dim| n.saturating_mul(*dim as usize)).max(1);
        let mut values = values.into_iter();
        let mut labels = labels.iter();
        while values.len() >= per_line {
            let value = nest_next_values(row_dims, &mut values);
            let value = if self.style == ValueStyle::Json { value } else { self.times.times_to_texts(value) };
            self.line(row_dims, &value, labels.next().copied(), out)?;
        }
        Ok(())
    }

    fn line(&self, row: &[u64], value: &Value, label: Option<u64>, out: &mut StdoutWriter) -> Result<()> {
        match (self.style, label) {
            (ValueStyle::Json, _) => {
                out.line(value::json_nan_as_null(value, &|reference| self.references.json(reference)))
            }
            (ValueStyle::Csv, _) => {
                let mut cells = Vec::new();
                self.row_cells(row.len(), value, &mut cells);
                csv_line(&cells, out)
            }
            (_, Some(label)) => out.line(format_args!("{label}: {}", self.text(value))),
            (_, None) => out.line(self.text(value)),
        }
    }

    fn text(&self, value: &Value) -> String {
        value::text(value, &|reference| self.references.display_text(reference))
    }

    fn row_cells(&self, rank: usize, value: &Value, cells: &mut Vec<String>) {
        match (rank.checked_sub(1), value) {
            (Some(inner), Value::List(values)) => values.iter().for_each(|value| self.row_cells(inner, value, cells)),
            _ => self.cells(self.datatype.as_ref(), value, cells),
        }
    }

    /// The cells of an element, as [`columns`] names them.
    fn cells(&self, datatype: Option<&Datatype>, value: &Value, cells: &mut Vec<String>) {
        match (datatype, value) {
            (Some(Datatype::Compound(compound)), Value::Compound(values)) => {
                for (member, (_, value)) in compound.members.iter().zip(values) {
                    self.cells(Some(&member.datatype), value, cells);
                }
            }
            (Some(Datatype::Array(array)), Value::List(values)) => {
                self.array_cells(array.dims.len(), array, values, cells)
            }
            (_, Value::Text(text)) => cells.push(text.clone()),
            (_, Value::EnumName(name)) => cells.push(name.to_string()),
            (_, Value::Unreadable) => cells.push(String::new()),
            (_, Value::Bytes(bytes)) => cells.push(value::hex(bytes)),
            (_, Value::Reference(reference)) => cells.push(self.references.csv_text(reference)),
            (_, Value::List(_) | Value::Compound(_)) => {
                cells.push(value::json_nan_as_null(value, &|reference| self.references.json(reference)).to_string());
            }
            _ => cells.push(value.to_string()),
        }
    }

    fn array_cells(&self, rank: usize, array: &ArrayType, values: &[Value], cells: &mut Vec<String>) {
        for value in values {
            match (rank, value) {
                (2.., Value::List(values)) => self.array_cells(rank - 1, array, values, cells),
                _ => self.cells(Some(&array.base), value, cells),
            }
        }
    }
}

fn product(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(1, u64::saturating_mul)
}

fn array_elements(array: &ArrayType) -> u64 {
    product(array.dims.iter().map(|dim| u64::from(*dim)))
}

/// The number of columns of an element.
fn column_count(datatype: &Datatype) -> u64 {
    match datatype {
        Datatype::Compound(compound) => {
            compound.members.iter().map(|m| column_count(&m.datatype)).fold(0, u64::saturating_add)
        }
        Datatype::Array(array) => array_elements(array).saturating_mul(column_count(&array.base)),
        _ => 1,
    }
}

/// The names of the columns of a row of elements.
fn row_columns(row: &[u64], datatype: &Datatype, name: &str, names: &mut Vec<String>) {
    if row.is_empty() {
        // The members of a compound have names enough.
        let name = if matches!(datatype, Datatype::Compound(_)) { "" } else { name };
        return columns(datatype, name, names);
    }
    (0..product(row.iter().copied())).for_each(|i| columns(datatype, &format!("c{i}"), names));
}

/// The names of the columns of an element: those of members of a compound are called `name.member`, and those of
/// elements of an array `name.0`, `name.1`, ...
fn columns(datatype: &Datatype, name: &str, names: &mut Vec<String>) {
    let below = |part: &str| if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") };
    match datatype {
        Datatype::Compound(compound) => {
            compound.members.iter().for_each(|m| columns(&m.datatype, &below(&m.name.to_string()), names));
        }
        Datatype::Array(array) => {
            (0..array_elements(array)).for_each(|i| columns(&array.base, &below(&i.to_string()), names));
        }
        _ => names.push(name.to_owned()),
    }
}

fn csv_line(cells: &[String], out: &mut StdoutWriter) -> Result<()> {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    // Memory takes every record.
    let _ = writer.write_record(cells);
    out.bytes(&writer.into_inner().unwrap_or_default())
}

/// The next elements, which make up a row, as lists within lists.
pub fn nest_next_values(dims: &[u64], values: &mut dyn Iterator<Item = Value>) -> Value {
    match dims {
        [] => values.next().unwrap_or_default(),
        [length, inner @ ..] => Value::List((0..*length).map(|_| nest_next_values(inner, values)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::type_parse::DatatypeFromText;

    #[test]
    fn columns_have_the_names_of_members_and_the_numbers_of_elements() {
        let names = |row: &[u64], text: &str| {
            let mut names = Vec::new();
            let datatype = text.parse::<DatatypeFromText>().unwrap().0;
            row_columns(row, &datatype, "v", &mut names);
            let count = product(row.iter().copied()) * column_count(&datatype);
            assert_eq!(names.len() as u64, count);
            names.join(" ")
        };
        assert_eq!(names(&[], "f64le"), "v");
        assert_eq!(names(&[2], "f64le"), "c0 c1");
        assert_eq!(names(&[], "array[2,2]<u8>"), "v.0 v.1 v.2 v.3");
        assert_eq!(names(&[], "compound(3){a@0:u8,b@1:array[2]<u8>}"), "a b.0 b.1");
        assert_eq!(names(&[2], "compound(1){a@0:u8}"), "c0.a c1.a");
    }
}
