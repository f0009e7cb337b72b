//! Rows: what an input yields, and the compound type under which they are stored.

use std::str::FromStr;

use h5live::ConversionPolicy;

use h5live::Value;
use h5live::model::{ArrayType, CompoundMember, CompoundType, Datatype, MAX_RANK};
use h5live_text::utc;

use super::input_cell::InputCell;
use super::kind::{CellError, ColumnKind, UnknownColumnKind, parse_bool};
use super::row_error::RowError;
use super::row_member::RowMember;
use super::stored_type::StoredType;

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordColumn {
    /// The name.
    pub name: String,
    /// The type of a value, or of an element of an array.
    pub kind: ColumnKind,
    /// The shape of an array (elements); none for single values.
    pub dims: Vec<u32>,
    /// The type in the file, if a dataset that is there has another one than `kind` and `dims` say.
    pub(crate) stored: Option<Box<StoredType>>,
}

/// Why a text is not the type of a column.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ColumnParseError {
    /// The name or the type is missing.
    #[error("a type of a column is NAME=TYPE or NAME:TYPE")]
    NoSeparator,
    /// The shape is none.
    #[error("the shape of an array is [N] or [NxM], in elements")]
    InvalidShape,
    /// No type is called so.
    #[error(transparent)]
    UnknownKind(#[from] UnknownColumnKind),
}

impl FromStr for RecordColumn {
    type Err = ColumnParseError;

    /// `NAME=TYPE` or `NAME:TYPE`; behind the type of an array comes its shape: `a=f32[3]`, `b=u8[2x4]`.
    fn from_str(text: &str) -> Result<Self, ColumnParseError> {
        let (name, kind) = text.rsplit_once(['=', ':']).ok_or(ColumnParseError::NoSeparator)?;
        let dimension = |text: &str| text.parse().ok().filter(|dim| *dim > 0).ok_or(ColumnParseError::InvalidShape);
        let (kind, dims) = match kind.strip_suffix(']').and_then(|kind| kind.split_once('[')) {
            Some((kind, dims)) => (kind, dims.split('x').map(dimension).collect::<Result<_, _>>()?),
            None => (kind, Vec::new()),
        };
        Ok(RecordColumn { name: name.to_owned(), kind: kind.parse()?, dims, stored: None })
    }
}

impl RecordColumn {
    /// A column of single values.
    pub fn single(name: &str, kind: ColumnKind) -> Self {
        RecordColumn::array(name, kind, &[])
    }

    /// A column of arrays of a shape (`[rank]`, elements); of single values without one.
    pub fn array(name: &str, kind: ColumnKind, dims: &[u32]) -> Self {
        RecordColumn { name: name.to_owned(), kind, dims: dims.to_vec(), stored: None }
    }

    fn element_count(&self) -> u64 {
        self.dims.iter().fold(1, |n: u64, dim| n.saturating_mul(u64::from(*dim)))
    }

    /// Bytes of a value.
    fn size(&self) -> u64 {
        if let Some(stored) = &self.stored {
            return stored.datatype().size().into();
        }
        self.element_count().saturating_mul(u64::from(self.kind.size()))
    }

    fn datatype(&self) -> Datatype {
        if let Some(stored) = &self.stored {
            return stored.datatype().clone();
        }
        match &*self.dims {
            [] => self.kind.datatype(),
            dims => Datatype::Array(ArrayType { dims: dims.to_vec(), base: Box::new(self.kind.datatype()) }),
        }
    }

    /// The column in which values of a type are stored; `None` if they cannot be recorded.
    fn of(name: &str, datatype: &Datatype) -> Option<Self> {
        let (dims, base) = match datatype {
            Datatype::Array(array) => (array.dims.clone(), &*array.base),
            single => (Vec::new(), single),
        };
        let name = name.to_owned();
        if let Some(kind) = ColumnKind::of(base) {
            return Some(RecordColumn { name, kind, dims, stored: None });
        }
        let stored = StoredType::new(datatype)?;
        Some(RecordColumn { name, kind: stored.nearest_kind(), dims, stored: Some(Box::new(stored)) })
    }

    /// The value that a cell stands for. `empty` stands for an empty one of integers.
    fn value(&self, cell: &InputCell, empty: Option<&str>, fit: ConversionPolicy) -> Result<Value, CellError> {
        let kind = self.kind;
        if let Some(stored) = &self.stored {
            return stored.to_stored_value(cell, empty, fit);
        }
        let empty = empty.filter(|_| matches!(kind, ColumnKind::Integer { .. }));
        match (&*self.dims, cell.is_array_or_object()) {
            ([], false) => return cell.to_single_value(kind, empty, fit),
            ([], true) if kind.is_text() => return kind.parse_value(Some(&cell.json_text()), fit),
            _ => {}
        }
        if *cell == InputCell::Empty {
            let filled = |value, dim: &u32| Value::List(vec![value; *dim as usize]);
            return Ok(self.dims.iter().rev().fold(kind.parse_value(empty, fit)?, filled));
        }
        let found = cell.shape()?;
        if found != self.dims {
            return Err(CellError::ShapeMismatch { found, expected: self.dims.clone(), kind });
        }
        array_value(cell, kind, empty, fit)
    }

    /// The number of the row, and the text (none for an empty cell), that make this a column of texts although the first of
    /// `cells` (each with the number of its row), or at least half of them, are numbers or truth values.
    pub fn text_type_cause<'a>(&self, cells: &'a [(u64, InputCell)], rules: &InferRules) -> Option<TextTypeCause<'a>> {
        let is_text = |cells: &[(u64, InputCell)]| infer(cells.iter().map(|(_, cell)| cell), rules).is_text();
        let has_value = |cell: &InputCell| *cell != InputCell::Empty;
        let first = cells.iter().position(|(_, cell)| has_value(cell))?;
        let values: Vec<_> = cells.iter().map(|(_, cell)| cell).filter(|cell| has_value(cell)).collect();
        let others: Vec<_> = values.iter().filter(|cell| cell.is_number() || cell.is_boolean()).collect();
        let begins_as_text = is_text(&cells[..=first]);
        let are_most = 2 * others.len() >= values.len() && !others.is_empty();
        if !self.kind.is_text() || !self.dims.is_empty() || (begins_as_text && !are_most) {
            return None;
        }
        let are_numbers = others.first().is_some_and(|cell| cell.is_number());
        if begins_as_text {
            let (row, cell) = &cells[first];
            return Some(TextTypeCause { row_number: *row, text: cell.text(), others_are_numbers: are_numbers });
        }
        // What has become text with some rows is text with more of them, too.
        let (mut few, mut many) = (first + 1, cells.len());
        while few + 1 < many {
            let middle = few + (many - few) / 2;
            *(if is_text(&cells[..middle]) { &mut many } else { &mut few }) = middle;
        }
        let (_, begin) = &cells[first];
        let (row, cell) = cells.get(many - 1).filter(|_| begin.is_number() || begin.is_boolean())?;
        Some(TextTypeCause { row_number: *row, text: cell.text(), others_are_numbers: are_numbers })
    }

    /// The same column, with floats if it has integers that are all the same as floats. Whether it had some.
    pub fn widened_to_floats(self, cells: &[&InputCell]) -> (Self, bool) {
        let mut leaves = Vec::new();
        cells.iter().for_each(|cell| cell.collect_leaves(&mut leaves));
        let is_float = |text: &str| ColumnKind::F64.parse_value(Some(text.trim()), ConversionPolicy::Checked).is_ok();
        let fits = leaves.iter().all(|cell| cell.text().is_none_or(is_float));
        let is_widened = matches!(self.kind, ColumnKind::Integer { .. }) && fits;
        (if is_widened { RecordColumn { kind: ColumnKind::F64, ..self } } else { self }, is_widened)
    }

    /// The type that holds all of `cells` without a change.
    pub fn infer(name: &str, cells: &[&InputCell], rules: &InferRules) -> Self {
        if first_array_shape_mismatch(cells).is_some() {
            return RecordColumn::single(name, rules.text_kind());
        }
        let shape = cells.iter().find(|cell| ***cell != InputCell::Empty).and_then(|cell| cell.shape().ok());
        let dims = shape.unwrap_or_default();
        let mut leaves = Vec::new();
        cells.iter().for_each(|cell| cell.collect_leaves(&mut leaves));
        RecordColumn { name: name.to_owned(), kind: infer(leaves.iter().copied(), rules), dims, stored: None }
    }
}

/// What makes texts of a column of other values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextTypeCause<'a> {
    /// The number of the row.
    pub row_number: u64,
    /// The text; none for an empty cell.
    pub text: Option<&'a str>,
    /// Whether the others are numbers; otherwise they are truth values.
    pub others_are_numbers: bool,
}

/// The place of the first cell that keeps `cells` from being arrays of one shape: an array of objects, of no elements, or
/// of another shape than the cells before it. `None` if there is no array among them.
pub fn first_array_shape_mismatch(cells: &[&InputCell]) -> Option<usize> {
    let shape = cells.iter().find(|cell| ***cell != InputCell::Empty)?.shape().ok().filter(|dims| !dims.contains(&0));
    let is_irregular =
        |cell: &&InputCell| **cell != InputCell::Empty && (shape.is_none() || cell.shape().ok() != shape);
    cells.iter().any(|cell| cell.is_array_or_object()).then(|| cells.iter().position(is_irregular))?
}

/// The values of an array, as lists of lists.
fn array_value(
    cell: &InputCell,
    kind: ColumnKind,
    empty: Option<&str>,
    fit: ConversionPolicy,
) -> Result<Value, CellError> {
    let InputCell::List(elements) = cell else { return cell.to_single_value(kind, empty, fit) };
    let values = elements.iter().map(|element| array_value(element, kind, empty, fit));
    Ok(Value::List(values.collect::<Result<_, _>>()?))
}

/// How types are inferred.
#[derive(Debug, Clone, Copy, Default)]
pub struct InferRules {
    /// Whether there is an integer for empty cells.
    pub has_integer_for_empty: bool,
    /// Bytes of texts, if they are not to be of any length.
    pub fixed_text_bytes: Option<u16>,
}

impl InferRules {
    /// The type of texts.
    fn text_kind(&self) -> ColumnKind {
        self.fixed_text_bytes.map_or(ColumnKind::VarText, |width| ColumnKind::Text(width.into()))
    }
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
    /// The type of the rows of a dataset that is there, if it is not that of the columns one after the other.
    stored: Option<Datatype>,
    /// What a row consists of.
    parts: Vec<RowMember>,
    /// The shape of a row (elements), if the dataset has more dimensions than the one of rows.
    row_dims: Vec<u32>,
}

impl RowType {
    /// A table of these columns, which are those of the input in the same order.
    pub fn new(columns: Vec<RecordColumn>) -> Self {
        let fields = columns.len();
        let (sources, parts) = ((0..fields).map(Some).collect(), vec![RowMember::Column; fields]);
        RowType { columns, sources, fields, empty: None, stored: None, parts, row_dims: Vec::new() }
    }

    /// The columns of a type of rows that is there, for an input with columns of these names. `None` if rows of this
    /// type cannot be recorded, or the input has other columns.
    pub fn for_names(datatype: &Datatype, input_names: &[String]) -> Option<Self> {
        let Datatype::Compound(compound) = datatype else { return RowType::of_single_values(datatype, input_names) };
        let mut columns = Vec::new();
        let add = &mut |name: &str, datatype: &Datatype| {
            columns.push(RecordColumn::of(name, datatype)?);
            Some(())
        };
        let parts = RowMember::members_of(compound, "", input_names, add)?;
        let is_known = |name: &String| columns.iter().any(|column| column.name == *name);
        let sources = columns.iter().map(|column| input_names.iter().position(|name| *name == column.name)).collect();
        let stored = Some(datatype.clone());
        let table = RowType { sources, fields: input_names.len(), stored, parts, ..RowType::new(columns.clone()) };
        input_names.iter().all(is_known).then_some(table)
    }

    /// The column of a dataset whose elements have no names, for an input with one column, whatever its name is.
    fn of_single_values(datatype: &Datatype, names: &[String]) -> Option<Self> {
        let [name] = names else { return None };
        let column = RecordColumn::of(name, datatype)?;
        Some(RowType { stored: Some(datatype.clone()), ..RowType::new(vec![column]) })
    }

    /// The only column of a dataset in which a row has a shape (`[rank]`, elements), for an input with one column, whatever its
    /// name is. `None` if such rows cannot be recorded.
    pub fn of_array_rows(datatype: &Datatype, row_dims: &[u64], input_names: &[String]) -> Option<Self> {
        let [name] = input_names else { return None };
        let row_dims: Vec<u32> = row_dims.iter().map(|dim| u32::try_from(*dim).ok()).collect::<Option<_>>()?;
        let (inner, base) = match datatype {
            Datatype::Array(array) => (&*array.dims, &array.base),
            single => (&[][..], &Box::new(single.clone())),
        };
        let dims = [&row_dims, inner].concat();
        if row_dims.contains(&0) || dims.len() > MAX_RANK {
            return None;
        }
        let column = RecordColumn::of(name, &Datatype::Array(ArrayType { dims, base: base.clone() }))?;
        Some(RowType { stored: Some(datatype.clone()), row_dims, ..RowType::new(vec![column]) })
    }

    /// The shape of a row (elements); none if it is one element.
    pub fn row_dims(&self) -> Vec<u64> {
        self.row_dims.iter().map(|dim| u64::from(*dim)).collect()
    }

    /// The elements of a row, of which the value is a list of lists.
    pub fn split_into_elements(&self, row: Value) -> Vec<Value> {
        let mut elements = vec![row];
        for _ in &self.row_dims {
            let inside = elements.into_iter().flat_map(|value| match value {
                Value::List(values) => values,
                single => vec![single],
            });
            elements = inside.collect();
        }
        elements
    }

    /// Whether a row is one value, and no compound.
    fn is_single_value(&self) -> bool {
        !self.row_dims.is_empty() || self.stored.as_ref().is_some_and(|stored| !matches!(stored, Datatype::Compound(_)))
    }

    /// The columns of a type of rows that is there, for an input that has as many columns without names, or with other names.
    /// `None` if rows of this type cannot be recorded.
    pub fn for_unnamed(datatype: &Datatype) -> Option<Self> {
        let Datatype::Compound(compound) = datatype else {
            return RowType::of_single_values(datatype, &["0".to_owned()]);
        };
        let names: Vec<_> = compound.members.iter().map(|member| member.name.to_string()).collect();
        RowType::for_names(datatype, &names)
    }

    /// The same table, with a text that stands for empty cells of columns of integers.
    pub fn with_integer_for_empty(self, empty: Option<String>) -> Self {
        RowType { empty, ..self }
    }

    /// The columns.
    pub fn columns(&self) -> &[RecordColumn] {
        &self.columns
    }

    /// The same table, in which the integers of some columns are times.
    pub fn with_times(mut self, is_time: impl Fn(&str) -> bool) -> Self {
        for column in &mut self.columns {
            if column.kind == ColumnKind::I64 && is_time(&column.name) {
                column.kind = ColumnKind::Time;
            }
        }
        self
    }

    /// The names of the columns of times.
    pub fn time_column_names(&self) -> Vec<String> {
        self.columns.iter().filter(|c| c.kind == ColumnKind::Time).map(|c| c.name.clone()).collect()
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> u64 {
        self.columns.iter().map(RecordColumn::size).fold(0, u64::saturating_add)
    }

    /// The columns that hold every one of `rows` (each as long as `names`) without a change: integers and floats of 8
    /// bytes, truth values, times, or text; and arrays of these.
    pub fn infer_columns(names: &[String], rows: &[&[InputCell]], rules: &InferRules) -> Vec<RecordColumn> {
        let column = |(i, name): (usize, &String)| {
            let cells: Vec<_> = rows.iter().filter_map(|row| row.get(i)).collect();
            RecordColumn::infer(name, &cells, rules)
        };
        names.iter().enumerate().map(column).collect()
    }

    /// The stored type: that of the dataset, or the columns one after the other, without gaps.
    pub fn datatype(&self) -> Datatype {
        if let Some(stored) = &self.stored {
            return stored.clone();
        }
        let mut offset = 0;
        let members = self.columns.iter().map(|column| {
            let member = CompoundMember { name: column.name.as_str().into(), offset, datatype: column.datatype() };
            offset = offset.saturating_add(u32::try_from(column.size()).unwrap_or(u32::MAX));
            member
        });
        let members = members.collect();
        Datatype::Compound(CompoundType { size: offset, members })
    }

    /// The value of a row: a list of those of its columns.
    ///
    /// # Errors
    /// [`RowError`], with the cell that does not fit.
    pub fn row_value(&self, cells: &[InputCell], conversion: ConversionPolicy) -> Result<Value, RowError> {
        if cells.len() != self.fields {
            return Err(RowError::FieldCountMismatch { found: cells.len(), expected: self.fields });
        }
        let value = |(column, source): (&RecordColumn, &Option<usize>)| {
            let cell = source.and_then(|at| cells.get(at)).unwrap_or(&InputCell::Empty);
            let checked = check_lengths(cell, &self.row_dims, &mut Vec::new());
            let value = checked.and_then(|()| column.value(cell, self.empty.as_deref(), conversion));
            value.map_err(|source| RowError::Cell { column: column.name.clone(), source })
        };
        let mut values: Vec<_> = self.columns.iter().zip(&self.sources).map(value).collect::<Result<_, _>>()?;
        let is_single = self.is_single_value();
        let row = |values: Vec<_>| RowMember::nest_values(&self.parts, &mut values.into_iter());
        Ok(if is_single { values.pop().unwrap_or_default() } else { row(values) })
    }
}

/// Checks that arrays in arrays are as long as the shape of a row says. `at`: where the cell is in the row.
fn check_lengths(cell: &InputCell, dims: &[u32], at: &mut Vec<usize>) -> Result<(), CellError> {
    let ([expected, inner @ ..], InputCell::List(elements)) = (dims, cell) else {
        let is_short = !dims.is_empty() && *cell != InputCell::Empty;
        return if is_short {
            Err(CellError::ValueInsteadOfArray { at: at.clone(), dims: dims.to_vec() })
        } else {
            Ok(())
        };
    };
    if elements.len() as u64 != u64::from(*expected) {
        return Err(CellError::RowArrayLengthMismatch { at: at.clone(), found: elements.len(), expected: *expected });
    }
    for (number, element) in elements.iter().enumerate().filter(|_| !inner.is_empty()) {
        at.push(number);
        check_lengths(element, inner, at)?;
        at.pop();
    }
    Ok(())
}

fn infer<'a>(cells: impl Iterator<Item = &'a InputCell> + Clone, rules: &InferRules) -> ColumnKind {
    let all = |fits: fn(&str) -> bool| {
        cells.clone().all(|cell| match cell {
            InputCell::Empty => true,
            InputCell::Untyped(text) | InputCell::DecimalComma(_, text) => fits(text.trim()),
            InputCell::Text(_) | InputCell::AmbiguousPoint(_) | InputCell::List(_) | InputCell::Object(_) => false,
        })
    };
    let empty = cells.clone().any(|cell| *cell == InputCell::Empty);
    let all_empty = cells.clone().all(|cell| *cell == InputCell::Empty);
    let may_be_integers = !empty || rules.has_integer_for_empty && !all_empty;
    let is_time = |cell: &InputCell| cell.text().is_none_or(|text| utc::parse_iso8601_ns(text).is_some());
    if may_be_integers && all(|text| text.parse::<i64>().is_ok()) {
        ColumnKind::I64
    } else if may_be_integers && all(|text| text.parse::<u64>().is_ok()) {
        ColumnKind::U64
    } else if all(|text| ColumnKind::F64.parse_value(Some(text), ConversionPolicy::Checked).is_ok()) {
        ColumnKind::F64
    } else if all(|text| parse_bool(text).is_some()) {
        if empty { ColumnKind::OptionalBool } else { ColumnKind::Bool }
    } else if cells.clone().all(is_time) {
        ColumnKind::Time
    } else {
        rules.text_kind()
    }
}

#[cfg(test)]
mod tests;
