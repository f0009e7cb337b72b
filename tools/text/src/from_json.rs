//! Values of elements from JSON, as `dump --json` writes them.

use serde_json::Value as Json;

use crate::counted::counted;
use crate::number_text;
use h5live::Value;
use h5live::model::{CompoundType, Datatype, Name, ReferenceType, VarLenKind};

/// Why JSON is not a value of a datatype.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonValueError {
    /// It is of another kind.
    #[error("{0} is not a value of type {1}")]
    NotOfType(String, String),
    /// It is one value, where there are several.
    #[error("{0} is not a list of values")]
    NotAList(String),
    /// A compound lacks a member.
    #[error("the member {0:?} is missing")]
    MissingMember(String),
    /// An array has another shape.
    #[error("{} instead of {wanted}", counted(*found, "value"))]
    WrongCount {
        /// Values given.
        found: usize,
        /// Elements there are.
        wanted: u64,
    },
    /// A reference leads nowhere.
    #[error("there is no {0} to refer to")]
    NoReferent(String),
}

/// Resolves the JSON that stands for a reference.
pub type ResolveReference<'a> = &'a dyn Fn(&ReferenceType, &Json) -> Option<Value>;

/// The value of an element that JSON stands for.
///
/// Not-a-number is null or `"nan"`; infinities are `"inf"` and `"-inf"`; bytes are hexadecimal; references are
/// what `refer` makes of them.
///
/// # Errors
/// [`JsonValueError`].
pub fn value_from_json(datatype: &Datatype, json: &Json, refer: ResolveReference<'_>) -> Result<Value, JsonValueError> {
    let refused = || JsonValueError::NotOfType(json.to_string(), datatype.to_string());
    let found = match (datatype, json) {
        (Datatype::Integer(_) | Datatype::Bitfield(_) | Datatype::Time(_), _) => integer(json),
        (Datatype::Float(_), Json::Null) => Some(Value::Float64(f64::NAN)),
        (Datatype::Float(_), Json::Number(number)) => float(&number.to_string()),
        (Datatype::Float(_), Json::String(text)) => float(text),
        (Datatype::String(_), Json::String(text)) => Some(Value::Text(text.clone())),
        (Datatype::Opaque(_), Json::String(text)) => unhex(text).map(Value::Bytes),
        (Datatype::Reference(_), Json::Null) => Some(Value::Reference(h5live::Reference::default())),
        (Datatype::Reference(form), Json::String(_) | Json::Object(_)) => {
            return refer(form, json).ok_or_else(|| JsonValueError::NoReferent(json.to_string()));
        }
        (Datatype::Enum(_), Json::String(name)) => Some(Value::EnumName(name.as_str().into())),
        (Datatype::Enum(_), Json::Bool(truth)) => Some(Value::Bool(*truth)),
        (Datatype::Enum(_), _) => integer(json),
        (Datatype::Complex(complex), Json::Array(parts)) => match &parts[..] {
            [real, imaginary] => {
                let parts =
                    [value_from_json(&complex.base, real, refer)?, value_from_json(&complex.base, imaginary, refer)?];
                Some(Value::Complex(Box::new(parts)))
            }
            _ => None,
        },
        (Datatype::Complex(complex), _) => return value_from_json(&complex.base, json, refer),
        (Datatype::VarLen(of), _) => match (of.kind, json) {
            (VarLenKind::String { .. }, Json::String(text)) => Some(Value::Text(text.clone())),
            (VarLenKind::Sequence, Json::Array(values)) => {
                let values = values.iter().map(|json| value_from_json(&of.base, json, refer));
                Some(Value::List(values.collect::<Result<_, _>>()?))
            }
            _ => None,
        },
        (Datatype::Array(array), _) => return nested(&array.dims, &array.base, json, refer),
        (Datatype::Compound(compound), Json::Object(_) | Json::Array(_)) => return members(compound, json, refer),
        _ => None,
    };
    found.ok_or_else(refused)
}

/// Whether elements of a datatype are strings.
pub fn is_string_type(datatype: &Datatype) -> bool {
    match datatype {
        Datatype::String(_) => true,
        Datatype::VarLen(of) => matches!(of.kind, VarLenKind::String { .. }),
        _ => false,
    }
}

fn integer(json: &Json) -> Option<Value> {
    match json {
        Json::Number(number) => {
            let text = number.to_string();
            match number_text::parse_number_as_clamped_integer(&text, i128::MIN, i128::MAX)? {
                found if found.is_exact_or_rounded_fraction => Some(Value::Integer(found.value)),
                // With a fraction that a float keeps, so that it is seen to be lost.
                _ => number.as_f64().filter(|float| float.fract() != 0.0).map(Value::Float64),
            }
        }
        Json::String(digits) => digits.parse().ok().map(Value::Integer),
        Json::Bool(truth) => Some(Value::Integer((*truth).into())),
        _ => None,
    }
}

/// A number as a float, or as an integer if it is one, which a float of few bits might round; `None` also for what no
/// float has.
fn float(text: &str) -> Option<Value> {
    let found = number_text::parse_f64(text)?;
    match text.parse::<i128>() {
        Ok(integer) if integer != 0 => Some(Value::Integer(integer)),
        _ => found.is_exact_or_rounded_fraction.then_some(Value::Float64(found.value)),
    }
}

fn nested(dims: &[u32], base: &Datatype, json: &Json, refer: ResolveReference<'_>) -> Result<Value, JsonValueError> {
    let [length, inner @ ..] = dims else { return value_from_json(base, json, refer) };
    match json {
        Json::Array(values) if values.len() == *length as usize => {
            let values = values.iter().map(|json| nested(inner, base, json, refer));
            Ok(Value::List(values.collect::<Result<_, _>>()?))
        }
        Json::Array(values) => Err(JsonValueError::WrongCount { found: values.len(), wanted: (*length).into() }),
        _ => Err(JsonValueError::NotAList(json.to_string())),
    }
}

fn members(compound: &CompoundType, json: &Json, refer: ResolveReference<'_>) -> Result<Value, JsonValueError> {
    let member = |(i, member): (usize, &h5live::model::CompoundMember)| {
        let name = member.name.to_string();
        let found = match json {
            Json::Object(values) => values.get(&name),
            Json::Array(values) => values.get(i),
            _ => None,
        };
        let found = found.ok_or(JsonValueError::MissingMember(name))?;
        Ok((Name::clone(&member.name), value_from_json(&member.datatype, found, refer)?))
    };
    match json {
        Json::Object(values) if values.len() > compound.members.len() => {}
        Json::Array(values) if values.len() > compound.members.len() => {}
        _ => return Ok(Value::Compound(compound.members.iter().enumerate().map(member).collect::<Result<_, _>>()?)),
    }
    Err(JsonValueError::NotOfType(json.to_string(), "compound".to_owned()))
}

/// The elements of an array of `dims` (`[rank]`, elements), in row-major order, that lists within lists stand for.
///
/// # Errors
/// [`JsonValueError`].
pub fn elements_from_json(
    datatype: &Datatype,
    dims: &[u64],
    json: &Json,
    refer: ResolveReference<'_>,
) -> Result<Vec<Value>, JsonValueError> {
    let mut values = Vec::new();
    flatten(datatype, dims, json, refer, &mut values)?;
    Ok(values)
}

fn flatten(
    datatype: &Datatype,
    dims: &[u64],
    json: &Json,
    refer: ResolveReference<'_>,
    values: &mut Vec<Value>,
) -> Result<(), JsonValueError> {
    let [length, inner @ ..] = dims else {
        values.push(value_from_json(datatype, json, refer)?);
        return Ok(());
    };
    match json {
        Json::Array(rows) if rows.len() as u64 == *length => {
            rows.iter().try_for_each(|row| flatten(datatype, inner, row, refer, values))
        }
        Json::Array(rows) => Err(JsonValueError::WrongCount { found: rows.len(), wanted: *length }),
        _ => Err(JsonValueError::NotAList(json.to_string())),
    }
}

/// Bytes from hexadecimal digits.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    let byte = |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(byte).collect()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::type_parse::DatatypeFromText;

    fn parsed(datatype: &str, json: &str) -> Result<Value, JsonValueError> {
        let DatatypeFromText(datatype) = datatype.parse().unwrap();
        value_from_json(&datatype, &serde_json::from_str(json).unwrap(), &|_, _| None)
    }

    #[test]
    fn values_are_what_their_json_says() {
        assert_eq!(parsed("u64le", "18446744073709551615"), Ok(Value::Integer(u64::MAX.into())));
        assert_eq!(parsed("i128le", "\"-1180591620717411303424\""), Ok(Value::Integer(-(1 << 70))));
        assert_eq!(parsed("u128le", "18446744073709551617"), Ok(Value::Integer((1 << 64) + 1)));
        assert_eq!(parsed("f64le", "9007199254740993"), Ok(Value::Integer((1 << 53) + 1)));
        assert_eq!(parsed("f32le", "-16777217"), Ok(Value::Integer(-16_777_217)));
        assert_eq!(parsed("f64le", "-0").unwrap().to_string(), "-0.0");
        assert!(parsed("f64le", "9007199254740993.0").is_err() && parsed("f64le", "1e-400").is_err());
        assert!(parsed("f64le", "1e999").is_err() && parsed("u64le", "9223372036854775808.5").is_err());
        assert_eq!(parsed("f32le", "\"-inf\""), Ok(Value::Float64(f64::NEG_INFINITY)));
        assert_eq!(parsed("opaque(2,\"x\")", "\"ab01\""), Ok(Value::Bytes(vec![0xAB, 1])));
        assert_eq!(parsed("string", "\"a\""), Ok(Value::Text("a".into())));
        let compound = parsed("compound(8){a@0:array[2]<u8>,b@4:f32le}", r#"{"b": 1.5, "a": [1, 2]}"#).unwrap();
        assert_eq!(compound.to_string(), "{a: [1, 2], b: 1.5}");
        let complex = parsed("complex<f32le>", "[1, -2]").unwrap();
        assert_eq!(complex.to_string(), "1-2i");
    }

    #[test]
    fn says_what_is_wrong() {
        assert_eq!(parsed("u8", "\"x\"").unwrap_err().to_string(), "\"x\" is not a value of type u8");
        let one = parsed("compound(1){a@0:u8}", "5").unwrap_err();
        assert_eq!(one.to_string(), "5 is not a value of type compound(1){a@0:u8}");
        assert!(matches!(parsed("array[2]<u8>", "[1]"), Err(JsonValueError::WrongCount { found: 1, wanted: 2 })));
        assert!(matches!(parsed("compound(1){a@0:u8}", "{}"), Err(JsonValueError::MissingMember(_))));
        assert!(matches!(parsed("ref(object)", "\"/a\""), Err(JsonValueError::NoReferent(_))));
        assert!(parsed("compound(1){a@0:u8}", r#"{"a": 1, "b": 2}"#).is_err());
    }
}
