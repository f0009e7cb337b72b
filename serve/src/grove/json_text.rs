//! Elements in JSON, as h5grove writes them: lists within lists, `null` for what is no number, the numbers of enums.

use std::fmt::Write as _;

use h5live::Value;
use h5live::model::{Datatype, EnumType, ReferenceKind};

use super::dtype::{complex_part, integer_value, is_bool};
use crate::fault::Fault;

/// A text in JSON that is no longer than an answer may be.
#[derive(Debug)]
pub(super) struct JsonText {
    text: String,
    max_bytes: u64,
}

impl JsonText {
    pub fn new(max_bytes: u64) -> Self {
        JsonText { text: String::new(), max_bytes }
    }

    pub fn push_raw_json(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn check(&self) -> Result<(), Fault> {
        match self.text.len() as u64 {
            bytes if bytes > self.max_bytes => Err(Fault::answer_too_large(bytes, self.max_bytes)),
            _ => Ok(()),
        }
    }

    /// The text.
    ///
    /// # Errors
    /// [`Fault::answer_too_large`].
    pub fn finish(self) -> Result<String, Fault> {
        self.check().map(|()| self.text)
    }

    /// Lists within lists, of these dimensions; `each` writes the next element.
    pub fn push_nested(&mut self, dims: &[u64], each: &mut impl FnMut(&mut String)) -> Result<(), Fault> {
        let [first, rest @ ..] = dims else {
            each(&mut self.text);
            return self.check();
        };
        self.text.push('[');
        for n in 0..*first {
            if n > 0 {
                self.text.push(',');
            }
            self.push_nested(rest, each)?;
        }
        self.text.push(']');
        Ok(())
    }

    /// Values of this type.
    pub fn push_values(&mut self, values: &[Value], datatype: &Datatype, dims: &[u64]) -> Result<(), Fault> {
        let mut values = values.iter();
        self.push_nested(dims, &mut |text| match values.next() {
            Some(value) => push_value(text, value, datatype),
            None => text.push_str("null"),
        })
    }
}

/// A float; `null` if JSON has none such.
pub(super) fn push_float<T: Into<f64> + std::fmt::Debug + Copy>(text: &mut String, float: T) {
    match float.into().is_finite() {
        true => text.push_str(&format!("{float:?}")),
        false => text.push_str("null"),
    }
}

fn push_text(text: &mut String, value: &str) {
    text.push_str(&serde_json::Value::from(value).to_string());
}

fn push_list<'a, T: 'a>(
    text: &mut String,
    items: impl IntoIterator<Item = &'a T>,
    mut each: impl FnMut(&mut String, &T),
) {
    text.push('[');
    for (n, item) in items.into_iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        each(text, item);
    }
    text.push(']');
}

/// A value of this type.
pub(super) fn push_value(text: &mut String, value: &Value, datatype: &Datatype) {
    match (value, datatype) {
        (Value::Integer(number), _) => text.push_str(&number.to_string()),
        (Value::Float32(float), _) => push_float(text, *float),
        (Value::Float64(float), _) => push_float(text, *float),
        // Numpy, and with it h5grove, ends a text of fixed length at its last byte that is not zero, however it is padded.
        (Value::Text(value), Datatype::String(_)) => push_text(text, value.trim_end_matches('\0')),
        (Value::Text(value), _) => push_text(text, value),
        (Value::Bool(truth), _) => text.push_str(if *truth { "true" } else { "false" }),
        (Value::EnumName(name), Datatype::Enum(of)) => push_enum(text, of, name),
        (Value::Bytes(bytes), _) => push_bytes(text, bytes),
        (Value::Reference(reference), _) => {
            let kind = match reference.kind() {
                ReferenceKind::Region1 | ReferenceKind::Region2 => "region",
                _ => "object",
            };
            let null = if reference.is_null() { " (null)" } else { "" };
            push_text(text, &format!("<HDF5 {kind} reference{null}>"));
        }
        (Value::Complex(parts), Datatype::Complex(of)) => {
            push_list(text, &**parts, |text, part| push_value(text, part, &of.base));
        }
        (Value::Compound(members), Datatype::Compound(of)) => {
            // Complex numbers of h5py are lists of two, as all compounds are lists.
            let _ = complex_part(of);
            let mut types = of.members.iter().map(|member| &member.datatype);
            push_list(text, members, |text, (_, value)| {
                push_value(text, value, types.next().unwrap_or(datatype));
            });
        }
        (Value::List(values), Datatype::Array(of)) => push_array(text, values, &of.dims, &of.base),
        (Value::List(values), Datatype::VarLen(of)) => {
            push_list(text, values, |text, value| push_value(text, value, &of.base));
        }
        _ => text.push_str("null"),
    }
}

/// An array, which is a list of lists if it has several dimensions.
fn push_array(text: &mut String, values: &[Value], dims: &[u32], base: &Datatype) {
    push_list(text, values, |text, value| match (value, dims) {
        (Value::List(inner), [_, rest @ ..]) if !rest.is_empty() => push_array(text, inner, rest, base),
        (value, _) => push_value(text, value, base),
    });
}

/// Elements, and of arrays theirs, in one list; and of which type they are then.
pub(super) fn flat_values(mut values: Vec<Value>, mut datatype: &Datatype) -> (Vec<Value>, &Datatype) {
    while let Datatype::Array(of) = datatype {
        for _ in &of.dims {
            let parts = values.into_iter().flat_map(|value| match value {
                Value::List(parts) => parts,
                other => vec![other],
            });
            values = parts.collect();
        }
        datatype = &of.base;
    }
    (values, datatype)
}

fn push_enum(text: &mut String, of: &EnumType, name: &h5live::model::Name) {
    let member = of.members.iter().find(|member| member.name == *name);
    match member.and_then(|member| integer_value(&of.base, &member.value)) {
        Some(value) if is_bool(of) => text.push_str(if value == 1 { "true" } else { "false" }),
        Some(value) => text.push_str(&value.to_string()),
        None => text.push_str("null"),
    }
}

/// Bytes as a text, if they are one, and in hexadecimal if not.
fn push_bytes(text: &mut String, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(value) => push_text(text, value),
        Err(_) => {
            text.push_str("\"0x");
            for byte in bytes {
                let _ = write!(text, "{byte:02x}");
            }
            text.push('"');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(values: &[f64], dims: &[u64]) -> String {
        let mut text = JsonText::new(1000);
        let mut values = values.iter();
        text.push_nested(dims, &mut |text| push_float(text, *values.next().unwrap())).unwrap();
        text.finish().unwrap()
    }

    #[test]
    fn elements_are_lists_within_lists() {
        assert_eq!(nested(&[1.5], &[]), "1.5");
        assert_eq!(nested(&[1.0, f64::NAN, -2.0, f64::INFINITY], &[2, 2]), "[[1.0,null],[-2.0,null]]");
        assert_eq!(nested(&[], &[2, 0]), "[[],[]]");
        assert_eq!(nested(&[], &[0, 3]), "[]");
        assert_eq!(nested(&[1e300], &[1]), "[1e300]");
    }

    #[test]
    fn a_text_that_is_too_long_is_refused() {
        let mut text = JsonText::new(10);
        assert!(text.push_nested(&[100], &mut |text| text.push('1')).is_err());
    }
}
