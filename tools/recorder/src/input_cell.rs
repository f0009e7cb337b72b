//! Cells of rows, as the input has them.

use h5live::ConversionPolicy;

use serde_json::Value as Json;

use h5live::Value;
use h5live::model::MAX_RANK;

use super::kind::{CellError, ColumnKind, parse_bool};
use super::non_finite;

/// A cell of a row as the input had it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputCell {
    /// Nothing.
    Empty,
    /// A text that may be a number or a truth value.
    Untyped(String),
    /// A text that may be a number with a decimal comma, and the same number with a point.
    DecimalComma(String, String),
    /// A text that may be a number with a point before groups of thousands, or before a fraction.
    AmbiguousPoint(String),
    /// A text, even if it looks like a number.
    Text(String),
    /// An array.
    List(Vec<InputCell>),
    /// An object within an array, as JSON, which only columns of texts take.
    Object(String),
}

impl InputCell {
    /// The cell that a value of JSON is.
    pub fn from_json(value: Json) -> Self {
        match value {
            Json::Null => InputCell::Empty,
            Json::Bool(truth) => InputCell::Untyped(truth.to_string()),
            Json::Number(number) => InputCell::Untyped(number.to_string()),
            Json::String(text) => {
                non_finite::unmark_non_finite(&text).map_or(InputCell::Text(text.clone()), InputCell::Untyped)
            }
            Json::Array(values) => InputCell::List(values.into_iter().map(InputCell::from_json).collect()),
            object @ Json::Object(_) => InputCell::Object(object.to_string()),
        }
    }

    /// The value of JSON that the cell stands for: a text that is JSON is what it says.
    pub fn to_json(&self) -> Json {
        match self {
            InputCell::Empty => Json::Null,
            InputCell::DecimalComma(_, text) | InputCell::Untyped(text) | InputCell::Object(text) => {
                serde_json::from_str(text.trim()).unwrap_or_else(|_| Json::from(&**text))
            }
            InputCell::Text(text) | InputCell::AmbiguousPoint(text) => Json::from(&**text),
            InputCell::List(elements) => elements.iter().map(InputCell::to_json).collect(),
        }
    }

    /// Whether it is a number, also one that no type holds.
    pub fn is_number(&self) -> bool {
        match self {
            InputCell::Untyped(text) => text.trim().parse::<f64>().is_ok(),
            InputCell::DecimalComma(..) => true,
            _ => false,
        }
    }

    /// Whether it is a truth value.
    pub fn is_boolean(&self) -> bool {
        matches!(self, InputCell::Untyped(text) if parse_bool(text).is_some())
    }

    /// The text; `None` for an empty cell, and for what has several values.
    pub fn text(&self) -> Option<&str> {
        match self {
            InputCell::Empty | InputCell::List(_) | InputCell::Object(_) => None,
            InputCell::Untyped(text)
            | InputCell::Text(text)
            | InputCell::DecimalComma(text, _)
            | InputCell::AmbiguousPoint(text) => Some(text),
        }
    }

    /// The shape (elements); none for a single value.
    ///
    /// # Errors
    /// [`CellError::IrregularArray`].
    pub fn shape(&self) -> Result<Vec<u32>, CellError> {
        let InputCell::List(elements) = self else {
            return if matches!(self, InputCell::Object(_)) { Err(CellError::IrregularArray) } else { Ok(Vec::new()) };
        };
        let length = u32::try_from(elements.len()).map_err(|_| CellError::IrregularArray)?;
        let inner = elements.first().map_or(Ok(Vec::new()), InputCell::shape)?;
        for element in elements.iter().skip(1) {
            if element.shape()? != inner {
                return Err(CellError::IrregularArray);
            }
        }
        if inner.len() >= MAX_RANK { Err(CellError::IrregularArray) } else { Ok([&[length], &*inner].concat()) }
    }

    /// Whether it is an array, or an object in one.
    pub fn is_array_or_object(&self) -> bool {
        matches!(self, InputCell::List(_) | InputCell::Object(_))
    }

    /// The cell as JSON.
    pub fn json_text(&self) -> String {
        match self {
            InputCell::Empty => "null".to_owned(),
            InputCell::Untyped(text) | InputCell::Object(text) => text.clone(),
            InputCell::Text(text) | InputCell::DecimalComma(text, _) | InputCell::AmbiguousPoint(text) => {
                serde_json::Value::from(&**text).to_string()
            }
            InputCell::List(elements) => {
                format!("[{}]", elements.iter().map(InputCell::json_text).collect::<Vec<_>>().join(","))
            }
        }
    }

    /// Puts the single values of an array into a list, or a cell that is none itself.
    pub fn collect_leaves<'a>(&'a self, leaves: &mut Vec<&'a InputCell>) {
        match self {
            InputCell::List(elements) => elements.iter().for_each(|element| element.collect_leaves(leaves)),
            single => leaves.push(single),
        }
    }

    /// The value of a type that the cell stands for. `text_for_empty` is the text for an empty one.
    pub fn to_single_value(
        &self,
        kind: ColumnKind,
        text_for_empty: Option<&str>,
        conversion: ConversionPolicy,
    ) -> Result<Value, CellError> {
        match (self, kind) {
            (InputCell::DecimalComma(_, number), ColumnKind::Integer { .. } | ColumnKind::Float { .. }) => {
                kind.parse_value(Some(number), conversion)
            }
            (InputCell::AmbiguousPoint(text), ColumnKind::Integer { .. } | ColumnKind::Float { .. }) => {
                Err(CellError::AmbiguousPoint { text: text.clone() })
            }
            _ => kind.parse_value(self.text().or(text_for_empty), conversion),
        }
    }
}
