//! Values of types that the program does not know beforehand.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

use std::fmt;

use h5live_model::Name;

pub(crate) use decode::{DecodePlan, ValueBudget};
pub(crate) use encode::EncodePlan;

use crate::Reference;

/// The value of an element of any datatype.
///
/// ```
/// use h5live::{File, Value};
///
/// let file = File::in_memory();
/// let data = file.new_dataset::<[u8; 2]>().shape(&[2]).create("data")?;
/// data.write(&[[1, 2], [3, 4]])?;
/// let values = data.read_values(1..)?;
/// assert_eq!(values, [Value::List(vec![Value::Integer(3), Value::Integer(4)])]);
/// assert_eq!(values[0].to_string(), "[3, 4]");
/// # Ok::<(), h5live::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum Value {
    /// Variable-length data that cannot be read; the rest of an element that has it can.
    #[default]
    Unreadable,
    /// The null string as the key of a map, which is another key than the empty string.
    Null,
    /// An integer, a bit field, a time (seconds since 1970), or a value of an enum that has no name.
    Integer(i128),
    /// A float of up to 32 bits, which has fewer digits to show than others.
    Float32(f32),
    /// Any other float, rounded to 64 bits.
    Float64(f64),
    /// A string. Bytes that are no UTF-8 are replaced.
    Text(String),
    /// The name of a value of an enum.
    EnumName(Name),
    /// A truth value: an enum of FALSE and TRUE.
    Bool(bool),
    /// Opaque data.
    Bytes(Vec<u8>),
    /// A reference.
    Reference(Reference),
    /// A complex number: its real and its imaginary part.
    Complex(Box<[Value; 2]>),
    /// The members of a compound.
    Compound(Vec<(Name, Value)>),
    /// An array (a list of lists, if it has several dimensions), or a sequence of variable length.
    List(Vec<Value>),
}

impl Value {
    /// The value as a number, if it is one; truth values are 0 and 1.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Integer(i) => Some(*i as f64),
            Value::Float32(f) => Some(f64::from(*f)),
            Value::Float64(f) => Some(*f),
            Value::Bool(truth) => Some(f64::from(u8::from(*truth))),
            _ => None,
        }
    }

    /// The text of a string, or of the name of an enum's value.
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            Value::EnumName(name) => name.as_str(),
            _ => None,
        }
    }

    /// The member of a compound with this name.
    pub fn member(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Compound(members) => members.iter().find(|(of, _)| *of == name).map(|(_, value)| value),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    /// On one line: strings in quotes, bytes in hexadecimal, what cannot be read as `?`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Unreadable => f.write_str("?"),
            Value::Null => f.write_str("null"),
            Value::Integer(i) => write!(f, "{i}"),
            Value::Float32(v) => write!(f, "{v:?}"),
            Value::Float64(v) => write!(f, "{v:?}"),
            Value::Text(text) => write!(f, "{text:?}"),
            Value::EnumName(name) => write!(f, "{:?}", name.to_string()),
            Value::Bool(truth) => write!(f, "{truth}"),
            Value::Bytes(bytes) => write_hex(f, bytes),
            Value::Reference(reference) => reference.fmt(f),
            Value::Complex(parts) => {
                let [real, imaginary] = &**parts;
                let plus = if imaginary.number().is_some_and(f64::is_sign_negative) { "" } else { "+" };
                write!(f, "{real}{plus}{imaginary}i")
            }
            Value::Compound(members) => {
                f.write_str("{")?;
                for (i, (name, value)) in members.iter().enumerate() {
                    write!(f, "{}{name}: {value}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
            Value::List(values) => {
                f.write_str("[")?;
                for (i, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
        }
    }
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str("0x")?;
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}
