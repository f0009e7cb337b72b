//! Values of elements for programs: as JSON.

pub use h5live::Value;

use h5live::Reference;

use h5live::model::{Datatype, Name, Store};

/// The value of an element; unreadable, if its datatype makes no sense.
pub fn decode_or_unreadable(datatype: &Datatype, bytes: &[u8], store: Option<&dyn Store>) -> Value {
    Value::decode(datatype, bytes, store).unwrap_or_default()
}

/// A value as JSON: not-a-number and what cannot be read are null, infinities are `"inf"` and `"-inf"`, and bytes are
/// hexadecimal. References are what `reference` makes of them.
pub fn json_nan_as_null(value: &Value, reference: &dyn Fn(&Reference) -> serde_json::Value) -> serde_json::Value {
    let float = |float: f64| if float.is_infinite() { float.to_string().into() } else { float.into() };
    json_with(value, &float, reference)
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

/// A value on one line, as its `Display` has it. References are what `reference` makes of them.
pub fn text(value: &Value, reference: &dyn Fn(&Reference) -> String) -> String {
    let list = |each: Vec<String>| each.join(", ");
    match value {
        Value::Reference(of) => reference(of),
        Value::List(values) => format!("[{}]", list(values.iter().map(|value| text(value, reference)).collect())),
        Value::Compound(members) => {
            let member = |(name, value): &(Name, Value)| format!("{name}: {}", text(value, reference));
            format!("{{{}}}", list(members.iter().map(member).collect()))
        }
        other => other.to_string(),
    }
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: &Value) -> serde_json::Value {
        super::json_nan_as_null(value, &|_| "reference".into())
    }

    #[test]
    fn text_is_what_display_has_but_for_references() {
        let reference = Value::Reference(Reference::default());
        let value = Value::Compound(vec![
            ("a".into(), Value::List(vec![Value::Integer(1), reference])),
            ("b".into(), Value::Text("x\"y".into())),
        ]);
        assert_eq!(text(&value, &|_| "\"/p\"".to_owned()), r#"{a: [1, "/p"], b: "x\"y"}"#);
        let plain = Value::List(vec![Value::Float64(0.5), Value::Bool(true), Value::Unreadable]);
        assert_eq!(text(&plain, &|_| String::new()), plain.to_string());
    }

    #[test]
    fn json_has_infinities_and_large_integers_as_text() {
        assert_eq!(json(&Value::Float64(f64::INFINITY)).to_string(), "\"inf\"");
        assert_eq!(json(&Value::Float32(f32::NEG_INFINITY)).to_string(), "\"-inf\"");
        assert_eq!(json(&Value::Float64(f64::NAN)), serde_json::Value::Null);
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
