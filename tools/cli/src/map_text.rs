//! Keys and values of maps as text and as JSON.

use std::ops::RangeBounds;

use h5live::{File, Reference, UntypedMap};
use serde_json::{Value as Json, json};

use crate::error::Result;
use crate::from_json::{self, JsonValueError, ResolveReference};
use crate::model::Datatype;
use crate::output::StdoutWriter;
use crate::references::ReferenceFormatter;
use crate::value::{self, Value};

/// Prints pairs: for people as `key: value`, for programs as a JSON object per line. At most `limit` of them.
///
/// # Errors
/// If the map cannot be read.
pub fn print(
    map: &UntypedMap,
    range: impl RangeBounds<Value>,
    limit: Option<u64>,
    as_json: bool,
    out: &mut StdoutWriter,
) -> Result<()> {
    let style = PairFormatter::new(map.file(), as_json);
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    for pair in map.pairs(range)?.take(limit) {
        let (key, value) = pair?;
        out.line(style.format_pair(&key, &value))?;
    }
    Ok(())
}

/// How pairs are shown.
pub struct PairFormatter<'a> {
    references: ReferenceFormatter<'a>,
    as_json: bool,
}

impl<'a> PairFormatter<'a> {
    /// For the maps of a file.
    pub fn new(file: &'a File, as_json: bool) -> Self {
        PairFormatter { references: ReferenceFormatter::new(file), as_json }
    }

    /// A value.
    pub fn format_value(&self, value: &Value) -> String {
        let text = |reference: &Reference| self.references.display_text(reference);
        if self.as_json { self.json(value).to_string() } else { value::text(value, &text) }
    }

    fn json(&self, value: &Value) -> Json {
        value::exact_json(value, &|reference| self.references.json(reference))
    }

    /// A pair.
    pub fn format_pair(&self, key: &Value, value: &Value) -> String {
        match self.as_json {
            true => json!({ "key": self.json(key), "value": self.json(value) }).to_string(),
            false => format!("{}: {}", self.format_value(key), self.format_value(value)),
        }
    }

    /// A key that was removed.
    pub fn format_removed_key(&self, key: &Value) -> String {
        match self.as_json {
            true => json!({ "key": self.json(key), "removed": true }).to_string(),
            false => format!("{} removed", self.format_value(key)),
        }
    }
}

/// The key that JSON stands for: as values, but null is the null string where keys are strings.
///
/// # Errors
/// [`JsonValueError`].
pub fn map_key_from_json(
    datatype: &Datatype,
    json: &Json,
    refer: ResolveReference<'_>,
) -> Result<Value, JsonValueError> {
    match (datatype, json) {
        (Datatype::VarLen(_), Json::Null) if from_json::is_string_type(datatype) => Ok(Value::Null),
        _ => from_json::value_from_json(datatype, json, refer),
    }
}

/// A word as JSON, or as a text if it is none.
pub fn parse_json_or_string(word: &str) -> Json {
    serde_json::from_str(word).unwrap_or_else(|_| Json::String(word.to_owned()))
}

/// The key or value that a word of the command line stands for: JSON, or text if it is none or the type is text.
///
/// # Errors
/// [`JsonValueError`].
pub fn parse_word(datatype: &Datatype, word: &str, refer: ResolveReference<'_>) -> Result<Value, JsonValueError> {
    let json = parse_json_or_string(word);
    match from_json::is_string_type(datatype) && !json.is_string() {
        true => Ok(Value::Text(word.to_owned())),
        false => from_json::value_from_json(datatype, &json, refer),
    }
}
