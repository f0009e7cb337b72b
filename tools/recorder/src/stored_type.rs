//! Types of columns that other programs have chosen, and how a cell becomes a value of one.

use std::sync::OnceLock;

use h5live::{ConversionPolicy, File};
use serde_json::Value as Json;

use h5live::Value;
use h5live::model::{CharacterSet, Datatype, EnumType, StringPadding, VarLenKind};
use h5live_text::from_json;

use super::input_cell::InputCell;
use super::kind::{CellError, ColumnKind, parse_bool};

/// The type of a column, which `record` would not choose by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredType(Datatype);

/// A file in memory, which values are encoded for that have nothing outside of themselves.
fn scratch() -> &'static File {
    static SCRATCH: OnceLock<File> = OnceLock::new();
    SCRATCH.get_or_init(File::in_memory)
}

impl StoredType {
    /// `None` if there are no texts for its values: references.
    pub fn new(datatype: &Datatype) -> Option<Self> {
        (!has(datatype, &|datatype| matches!(datatype, Datatype::Reference(_)))).then(|| StoredType(datatype.clone()))
    }

    /// The type.
    pub fn datatype(&self) -> &Datatype {
        &self.0
    }

    /// The type of `record` that comes nearest to it.
    pub fn nearest_kind(&self) -> ColumnKind {
        match &self.0 {
            Datatype::Integer(_) | Datatype::Bitfield(_) | Datatype::Enum(_) => ColumnKind::I64,
            Datatype::Float(_) => ColumnKind::F64,
            _ => ColumnKind::VarText,
        }
    }

    /// The value that a cell stands for. `integer_for_empty` stands for an empty one of integers.
    ///
    /// # Errors
    /// [`CellError`] if the type has no such value.
    pub fn to_stored_value(
        &self,
        cell: &InputCell,
        integer_for_empty: Option<&str>,
        conversion: ConversionPolicy,
    ) -> Result<Value, CellError> {
        value(&self.0, cell, integer_for_empty, conversion)
    }
}

/// Whether a type, or one within it, is such.
fn has(datatype: &Datatype, is_such: &dyn Fn(&Datatype) -> bool) -> bool {
    is_such(datatype)
        || match datatype {
            Datatype::Array(array) => has(&array.base, is_such),
            Datatype::VarLen(of) => matches!(of.kind, VarLenKind::Sequence) && has(&of.base, is_such),
            Datatype::Compound(compound) => compound.members.iter().any(|member| has(&member.datatype, is_such)),
            Datatype::Complex(complex) => has(&complex.base, is_such),
            _ => false,
        }
}

fn value(
    datatype: &Datatype,
    cell: &InputCell,
    empty: Option<&str>,
    fit: ConversionPolicy,
) -> Result<Value, CellError> {
    match datatype {
        Datatype::String(string) => {
            // A text that fills the element up to its end is not ended by NUL, as most programs want it.
            let end = u32::from(string.padding == StringPadding::NullTerminated && string.size > 1);
            text(datatype, string.character_set, ColumnKind::Text(string.size - end), cell, fit)
        }
        Datatype::VarLen(of) => match of.kind {
            VarLenKind::String { character_set, .. } => text(datatype, character_set, ColumnKind::VarText, cell, fit),
            VarLenKind::Sequence => {
                let elements = list(cell).ok_or_else(|| other(datatype, cell))?;
                let values = elements.iter().map(|element| value(&of.base, element, empty, fit));
                Ok(Value::List(values.collect::<Result<_, _>>()?))
            }
        },
        Datatype::Array(array) => nested(&array.dims, datatype, &array.base, cell, empty, fit),
        Datatype::Enum(of) => enum_value(datatype, of, cell),
        Datatype::Float(_) => match ColumnKind::of(datatype) {
            Some(kind) => cell.to_single_value(kind, None, fit),
            None => exact(datatype, cell, cell.to_single_value(ColumnKind::F64, None, fit)?),
        },
        Datatype::Integer(_) => match ColumnKind::of(datatype) {
            Some(kind) => cell.to_single_value(kind, empty, fit),
            None => exact(datatype, cell, from_json_value(datatype, cell, empty)?),
        },
        _ => exact(datatype, cell, from_json_value(datatype, cell, empty)?),
    }
}

fn other(datatype: &Datatype, cell: &InputCell) -> CellError {
    let text = cell.text().map_or_else(|| cell.json_text(), str::to_owned);
    CellError::NotOfDatatype { text, datatype: Box::new(datatype.clone()) }
}

/// The elements of a cell that is an array, or the JSON of one; none of an empty cell. `None` if it is none.
fn list(cell: &InputCell) -> Option<Vec<InputCell>> {
    match cell {
        InputCell::List(elements) => Some(elements.clone()),
        InputCell::Empty => Some(Vec::new()),
        InputCell::Untyped(text) | InputCell::Text(text) => match serde_json::from_str(text).ok()? {
            Json::Array(elements) => Some(elements.into_iter().map(InputCell::from_json).collect()),
            _ => None,
        },
        _ => None,
    }
}

fn nested(
    dims: &[u32],
    datatype: &Datatype,
    base: &Datatype,
    cell: &InputCell,
    empty: Option<&str>,
    fit: ConversionPolicy,
) -> Result<Value, CellError> {
    let [length, inner @ ..] = dims else { return value(base, cell, empty, fit) };
    if *cell == InputCell::Empty {
        let element = nested(inner, datatype, base, cell, empty, fit)?;
        return Ok(Value::List(vec![element; *length as usize]));
    }
    let elements = list(cell).filter(|elements| elements.len() as u64 == u64::from(*length));
    let elements = elements.ok_or_else(|| other(datatype, cell))?;
    let values = elements.iter().map(|element| nested(inner, datatype, base, element, empty, fit));
    Ok(Value::List(values.collect::<Result<_, _>>()?))
}

fn text(
    datatype: &Datatype,
    character_set: CharacterSet,
    kind: ColumnKind,
    cell: &InputCell,
    fit: ConversionPolicy,
) -> Result<Value, CellError> {
    let found = if cell.is_array_or_object() {
        kind.parse_value(Some(&cell.json_text()), fit)?
    } else {
        cell.to_single_value(kind, None, fit)?
    };
    match &found {
        Value::Text(text) if character_set == CharacterSet::Ascii && !text.is_ascii() => {
            Err(CellError::NotAscii { text: text.clone(), datatype: Box::new(datatype.clone()) })
        }
        _ => Ok(found),
    }
}

/// The member of an enumeration that a cell names, or whose number it is. What names a truth value, names the member that
/// has its name in capitals.
fn enum_value(datatype: &Datatype, of: &EnumType, cell: &InputCell) -> Result<Value, CellError> {
    let refused = || other(datatype, cell);
    let text = cell.text().ok_or_else(refused)?.trim();
    let member = |name: &str| of.members.iter().find(|member| member.name == *name);
    let truth = parse_bool(text).map(|truth| if truth { "TRUE" } else { "FALSE" });
    if let Some(found) = member(text).or_else(|| member(truth?)) {
        return Ok(Value::EnumName(found.name.clone()));
    }
    let number: i128 = text.parse().map_err(|_| refused())?;
    let is_number =
        |bytes: &[u8]| Value::decode(&of.base, bytes, None).is_ok_and(|value| value == Value::Integer(number));
    let found = of.members.iter().find(|member| is_number(&member.value)).ok_or_else(refused)?;
    Ok(Value::EnumName(found.name.clone()))
}

fn from_json_value(datatype: &Datatype, cell: &InputCell, empty: Option<&str>) -> Result<Value, CellError> {
    let empty = empty.filter(|_| matches!(datatype, Datatype::Integer(_) | Datatype::Bitfield(_)));
    let json = match (cell, empty) {
        (InputCell::Empty, Some(text)) => InputCell::Untyped(text.to_owned()).to_json(),
        _ => cell.to_json(),
    };
    from_json::value_from_json(datatype, &json, &|_, _| None).map_err(|_| other(datatype, cell))
}

/// The value, if it is one of the type without a change; of what lies outside of elements, nothing is known here.
fn exact(datatype: &Datatype, cell: &InputCell, value: Value) -> Result<Value, CellError> {
    if has(datatype, &|datatype| matches!(datatype, Datatype::VarLen(_))) {
        return Ok(value);
    }
    match Value::encode_all(std::slice::from_ref(&value), datatype, scratch().store()) {
        Ok(_) => Ok(value),
        Err(error) => {
            let text = cell.text().map_or_else(|| cell.json_text(), str::to_owned);
            Err(CellError::InexactForDatatype { text, datatype: Box::new(datatype.clone()), cause: error.to_string() })
        }
    }
}
