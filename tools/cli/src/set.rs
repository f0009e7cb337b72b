//! `h5live set`: values of attributes and datasets.

use std::io::Read;
use std::path::{Path, PathBuf};

use h5live::{Dataset, File, H5Type, Location, Object};
use serde_json::Value as Json;

use crate::checked_json::DuplicateCheckedJson;
use crate::conversion_args::ConversionArgs;
use crate::error::{ChangeRefusal, CommandOutcome, Error, Result};
use crate::from_json;
use crate::model::{Dataspace, Datatype, ReferenceType, Selection, Shape};
use crate::object_or_attribute::{self, ObjectOrAttribute};
use crate::temp_output;
use crate::type_parse::DatatypeFromText;

/// The longest text of a value (bytes).
const MAX_VALUE_BYTES: u64 = 1 << 30;

/// Sets an attribute, or the values of a dataset
///
/// The value is JSON, or text if it is none. An attribute that is there keeps its type, and its shape if the value has
/// it. All elements of a dataset are set: each to the same value, or to those of a list.
#[derive(Debug, clap::Args)]
pub struct SetCommand {
    /// The file
    file: Location,
    /// An attribute as OBJECT@NAME, or a dataset
    path: String,
    /// The value
    #[arg(allow_hyphen_values = true, required_unless_present = "from")]
    value: Option<String>,
    /// Takes the value from a file, or from standard input (-)
    #[arg(long, value_name = "FILE", conflicts_with = "value")]
    from: Option<PathBuf>,
    /// The type of an attribute, as `ls` shows types: u16le, f64be, str(10,nullpad,utf8), ...
    #[arg(long = "type", value_name = "TYPE")]
    datatype: Option<DatatypeFromText>,
    #[command(flatten)]
    lossy: ConversionArgs,
}

impl SetCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// If there is no such object, or the value does not fit. The file is then unchanged.
    pub fn run(mut self) -> Result<CommandOutcome> {
        if let Some(from) = &self.from {
            self.value = Some(read_value(from)?);
        }
        let found: Result<DuplicateCheckedJson, _> = serde_json::from_str(self.text());
        let DuplicateCheckedJson { value: json, repeated_key_path: repeated_key } =
            found.unwrap_or_else(|_| Json::from(self.text()).into());
        if let Some(key) = repeated_key {
            return Err(self.refused(ChangeRefusal::RepeatedKey(key)));
        }
        temp_output::remove_stale_temps_beside(&self.file)?;
        let file = crate::open::command_line_options().conversion(self.lossy.conversion()).write().open(&self.file)?;
        match object_or_attribute::parse_and_find_object(&file, &self.path)? {
            ObjectOrAttribute::Object(Object::Dataset(dataset)) => self.dataset(&file, &dataset, &json)?,
            ObjectOrAttribute::Object(_) => return Err(self.refused(ChangeRefusal::NotDatasetOrAttribute)),
            ObjectOrAttribute::AttributeName(object, name) => self.attribute(&file, &object, &name, &json)?,
        }
        file.close()?;
        Ok(CommandOutcome::Clean)
    }

    /// The value as a text.
    fn text(&self) -> &str {
        self.value.as_deref().unwrap_or_default()
    }

    fn dataset(&self, file: &File, dataset: &Dataset, json: &Json) -> Result<()> {
        let spec = dataset.spec()?;
        let dims = spec.dataspace.dims();
        let refer = |form: &ReferenceType, json: &Json| object_or_attribute::reference_from_json(file, form, json);
        let text = self.text_for(&spec.datatype, json);
        let one = from_json::value_from_json(&spec.datatype, &text, &refer);
        let values = match (from_json::elements_from_json(&spec.datatype, dims, &text, &refer), one) {
            (Ok(values), _) => values,
            (_, Ok(value)) => vec![value; usize::try_from(dataset.size()?).unwrap_or(usize::MAX)],
            // A list was meant to have a value for each element, anything else to be the value of all.
            (Err(refused), _) if text.is_array() => return Err(self.refused(ChangeRefusal::InvalidValue(refused))),
            (_, Err(refused)) => return Err(self.refused(ChangeRefusal::InvalidValue(refused))),
        };
        Ok(dataset.write_values(Selection::All, &values)?)
    }

    fn attribute(&self, file: &File, object: &Object, name: &str, json: &Json) -> Result<()> {
        let old = object_or_attribute::find_maybe_escaped_attribute(object, name)?;
        let datatype = match (&self.datatype, &old) {
            (Some(DatatypeFromText(datatype)), _) => datatype.clone(),
            (None, Some(old)) => old.datatype().clone(),
            (None, None) => inferred(json),
        };
        let refer = |form: &ReferenceType, json: &Json| object_or_attribute::reference_from_json(file, form, json);
        let text = self.text_for(&datatype, json);
        let same = old.as_ref().map(|old| old.dataspace().clone());
        let shapes = same.into_iter().chain([Dataspace::Scalar, shape_of(&datatype, &text)]);
        let mut refused = None;
        for dataspace in shapes.filter(|space| *space != Dataspace::Null) {
            match from_json::elements_from_json(&datatype, dataspace.dims(), &text, &refer) {
                Ok(values) => {
                    let mut builder = object_or_attribute::new_attribute(object, name)
                        .ok_or(self.refused(ChangeRefusal::NotDatasetOrAttribute))?;
                    builder = builder.datatype(datatype).dataspace(dataspace);
                    if let (Some(old), None) = (&old, &self.datatype) {
                        builder = builder.same_type_as(old);
                    }
                    return Ok(builder.write_values(&values)?);
                }
                Err(error) => refused = Some(error),
            }
        }
        Err(self.refused(refused.map_or(ChangeRefusal::NotDatasetOrAttribute, ChangeRefusal::InvalidValue)))
    }

    /// The value for a string: the text itself, even if it is also JSON.
    fn text_for(&self, datatype: &Datatype, json: &Json) -> Json {
        let is_text = from_json::is_string_type(datatype) && !json.is_string() && !json.is_array();
        if is_text { Json::from(self.text()) } else { json.clone() }
    }

    fn refused(&self, why: ChangeRefusal) -> Error {
        Error::ChangeRefused { file: self.file.to_string().into(), path: self.path.clone(), why }
    }
}

/// A text in a file, or on standard input (`-`), without the end of its last line.
fn read_value(from: &Path) -> Result<String> {
    let source: Box<dyn Read> = match from.as_os_str() == "-" {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(std::fs::File::open(from).map_err(|error| unreadable(from, error))?),
    };
    let mut bytes = Vec::new();
    source.take(MAX_VALUE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(from, error))?;
    if bytes.len() as u64 > MAX_VALUE_BYTES {
        return Err(unreadable(from, std::io::Error::other(format!("a value of more than {MAX_VALUE_BYTES} bytes"))));
    }
    let text = String::from_utf8(bytes).map_err(|error| unreadable(from, std::io::Error::other(error)))?;
    let line = text.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    Ok(line.unwrap_or(&text).to_owned())
}

fn unreadable(from: &Path, source: std::io::Error) -> Error {
    Error::Io { path: if from.as_os_str() == "-" { "standard input".into() } else { from.to_owned() }, source }
}

/// The type of a new attribute.
fn inferred(json: &Json) -> Datatype {
    let mut leaves = Vec::new();
    leaves_of(json, &mut leaves);
    let all = |of: fn(&Json) -> bool| !leaves.is_empty() && leaves.iter().all(|leaf| of(leaf));
    if all(Json::is_boolean) {
        bool::datatype()
    } else if all(|leaf| leaf.is_i64()) {
        i64::datatype()
    } else if all(|leaf| leaf.is_u64()) {
        u64::datatype()
    } else if all(|leaf| leaf.is_number() || leaf.is_null()) {
        f64::datatype()
    } else {
        String::datatype()
    }
}

fn leaves_of<'a>(json: &'a Json, leaves: &mut Vec<&'a Json>) {
    match json {
        Json::Array(values) => values.iter().for_each(|value| leaves_of(value, leaves)),
        leaf => leaves.push(leaf),
    }
}

/// The shape of lists within lists of elements.
fn shape_of(datatype: &Datatype, json: &Json) -> Dataspace {
    let inner = match datatype {
        Datatype::Array(array) => array.dims.len(),
        Datatype::Compound(_) | Datatype::Complex(_) | Datatype::VarLen(_) if !from_json::is_string_type(datatype) => 1,
        _ => 0,
    };
    let mut dims = Vec::new();
    let mut level = json;
    while let Json::Array(values) = level {
        dims.push(values.len() as u64);
        let Some(first) = values.first() else { break };
        level = first;
    }
    dims.truncate(dims.len().saturating_sub(if level.is_object() { 0 } else { inner }));
    if dims.is_empty() { Dataspace::Scalar } else { Dataspace::Simple(Shape::fixed(&dims)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_attributes_have_the_type_and_shape_of_their_value() {
        let of = |text: &str| {
            let json: Json = serde_json::from_str(text).unwrap();
            let datatype = inferred(&json);
            (datatype.to_string(), shape_of(&datatype, &json).dims().to_vec())
        };
        assert_eq!(of("7"), ("i64le".into(), vec![]));
        assert_eq!(of("18446744073709551615"), ("u64le".into(), vec![]));
        assert_eq!(of("[[1, 2.5], [3, null]]"), ("f64le".into(), vec![2, 2]));
        assert_eq!(of("[true]"), ("enum<i8>{FALSE=0,TRUE=1}".into(), vec![1]));
        assert_eq!(of("[\"a\", \"b\"]"), ("vstr(nullterm,utf8)".into(), vec![2]));
    }
}
