//! Values of elements for programs: as JSON.

pub use h5live::Value;

use h5live::Reference;

use crate::model::{Datatype, Name, Store};

/// The value of an element; unreadable, if its datatype makes no sense.
pub fn decode(datatype: &Datatype, bytes: &[u8], heap: Option<&dyn Store>) -> Value {
    Value::decode(datatype, bytes, heap).unwrap_or_default()
}

/// A value as JSON: not-a-number, infinities and what cannot be read are null; bytes are hexadecimal.
pub fn json(value: &Value) -> serde_json::Value {
    json_with(value, &serde_json::Value::from, &|reference| hex(reference.as_bytes()).into())
}

/// A value as JSON, without loss: not-a-number and infinities are `"nan"`, `"inf"` and `"-inf"`. References are what
/// `reference` makes of them.
pub fn exact_json(value: &Value, reference: &dyn Fn(&Reference) -> serde_json::Value) -> serde_json::Value {
    let float = |float: f64| match float.is_finite() {
        true => float.into(),
        false => float.to_string().to_lowercase().into(),
    };
    json_with(value, &float, reference)
}

fn json_with(
    value: &Value,
    float: &dyn Fn(f64) -> serde_json::Value,
    reference: &dyn Fn(&Reference) -> serde_json::Value,
) -> serde_json::Value {
    let json = |value: &Value| json_with(value, float, reference);
    match value {
        Value::Integer(i) => match (u64::try_from(*i), i64::try_from(*i)) {
            (Ok(u), _) => u.into(),
            (_, Ok(i)) => i.into(),
            _ => i.to_string().into(),
        },
        Value::Float32(f) => float(f.to_string().parse().unwrap_or(f64::NAN)),
        Value::Float64(f) => float(*f),
        Value::Text(text) => text.as_str().into(),
        Value::EnumName(name) => name.to_string().into(),
        Value::Bool(truth) => (*truth).into(),
        Value::Bytes(bytes) => hex(bytes).into(),
        Value::Reference(of) => reference(of),
        Value::Complex(parts) => parts.iter().map(json).collect(),
        Value::List(values) => values.iter().map(json).collect(),
        Value::Compound(members) => {
            serde_json::Value::Object(members.iter().map(|(name, value)| (name.to_string(), json(value))).collect())
        }
        _ => serde_json::Value::Null,
    }
}

/// A value with the paths of objects in place of references to them, as far as `path` knows them.
pub fn with_paths(value: Value, path: &dyn Fn(&Reference) -> Option<Name>) -> Value {
    let each = |values: Vec<Value>| values.into_iter().map(|value| with_paths(value, path)).collect();
    match value {
        Value::Reference(reference) => match path(&reference) {
            Some(path) => Value::EnumName(path),
            None => Value::Reference(reference),
        },
        Value::List(values) => Value::List(each(values)),
        Value::Compound(members) => {
            Value::Compound(members.into_iter().map(|(name, value)| (name, with_paths(value, path))).collect())
        }
        other => other,
    }
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_no_room_for_infinity_and_keeps_large_integers_as_text() {
        assert_eq!(json(&Value::Float64(f64::INFINITY)), serde_json::Value::Null);
        assert_eq!(json(&Value::Integer(i128::from(u64::MAX))).to_string(), "18446744073709551615");
        assert_eq!(json(&Value::Integer(1 << 70)).to_string(), "\"1180591620717411303424\"");
        assert_eq!(json(&Value::Float32(0.1)).to_string(), "0.1");
        assert_eq!(json(&Value::Bytes(vec![0xAB, 1])).to_string(), "\"ab01\"");
    }

    #[test]
    fn compounds_are_objects_and_what_is_unreadable_is_null() {
        let list = Value::List(vec![Value::Integer(7), Value::Integer(8)]);
        let value = Value::Compound(vec![("a".into(), list), ("out".into(), Value::Unreadable)]);
        assert_eq!(json(&value).to_string(), r#"{"a":[7,8],"out":null}"#);
    }
}
