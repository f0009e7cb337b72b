//! A stored element as a value to be shown: as text for people, as JSON for programs.

use std::fmt;

use crate::manifest::integer_of;
use crate::model::{ByteOrder, Datatype, Float, Normalization, StringPadding, VarLenKind};

/// What elements that are places in a heap or references resolve to, for display.
pub trait Resolve {
    /// The bytes that a stored variable-length element points to; `None` if they cannot be read.
    fn heap(&self, element: &[u8]) -> Option<Vec<u8>>;
}

/// No heap at all: variable-length data is shown as unreadable.
pub struct NoHeap;

impl Resolve for NoHeap {
    fn heap(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// The value of an element.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// An integer, a bit field, a time, or the unnamed value of an enumeration.
    Integer(i128),
    /// A float of up to 32 bits, which has fewer digits.
    Single(f32),
    /// Any other float.
    Double(f64),
    /// A string or the name of a value of an enumeration.
    Text(String),
    /// A truth value: an enumeration of FALSE and TRUE.
    Truth(bool),
    /// Bytes without a meaning: opaque data and references.
    Bytes(Vec<u8>),
    /// A complex number.
    Complex(Box<[Value; 2]>),
    /// The members of a compound.
    Compound(Vec<(String, Value)>),
    /// An array or a sequence.
    List(Vec<Value>),
    /// What cannot be read.
    Unreadable,
}

impl Value {
    /// The value of an element stored as `bytes`.
    pub fn decode(datatype: &Datatype, bytes: &[u8], places: &dyn Resolve) -> Value {
        match datatype {
            Datatype::Integer(t) => Value::Integer(integer_of(t, bytes)),
            Datatype::Bitfield(_) | Datatype::Time(_) => Value::Integer(unsigned(datatype, bytes)),
            Datatype::Float(t) => float(t, bytes),
            Datatype::String(t) => Value::Text(text(bytes, t.padding)),
            Datatype::Opaque(_) | Datatype::Reference(_) => Value::Bytes(bytes.to_vec()),
            Datatype::Enum(t) => match t.members.iter().find(|m| m.value == bytes) {
                Some(m) if m.name == "TRUE" && t.members.len() == 2 => Value::Truth(true),
                Some(m) if m.name == "FALSE" && t.members.len() == 2 => Value::Truth(false),
                Some(m) => Value::Text(m.name.to_string()),
                None => Value::decode(&t.base, bytes, places),
            },
            Datatype::Complex(t) => {
                let (real, imaginary) = bytes.split_at(bytes.len() / 2);
                Value::Complex(Box::new([
                    Value::decode(&t.base, real, places),
                    Value::decode(&t.base, imaginary, places),
                ]))
            }
            Datatype::Array(t) => Value::List(list(&t.base, bytes, places)),
            Datatype::VarLen(t) => match places.heap(bytes) {
                None => Value::Unreadable,
                Some(heap) => match t.kind {
                    VarLenKind::Sequence => Value::List(list(&t.base, &heap, places)),
                    VarLenKind::String { .. } => Value::Text(text(&heap, StringPadding::NullTerminated)),
                },
            },
            Datatype::Compound(t) => {
                let member = |m: &crate::model::Member| {
                    let start = m.offset as usize;
                    let end = start.saturating_add(m.datatype.size() as usize);
                    let value = bytes.get(start..end).map(|b| Value::decode(&m.datatype, b, places));
                    (m.name.to_string(), value.unwrap_or(Value::Unreadable))
                };
                Value::Compound(t.members.iter().map(member).collect())
            }
        }
    }

    /// The value as a number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Integer(i) => Some(*i as f64),
            Value::Single(f) => Some(f64::from(*f)),
            Value::Double(f) => Some(*f),
            Value::Truth(truth) => Some(f64::from(u8::from(*truth))),
            _ => None,
        }
    }

    /// The value as JSON: not-a-number, infinities and what cannot be read are null; bytes are hexadecimal.
    pub fn json(&self) -> serde_json::Value {
        match self {
            Value::Integer(i) => match (u64::try_from(*i), i64::try_from(*i)) {
                (Ok(u), _) => u.into(),
                (_, Ok(i)) => i.into(),
                _ => i.to_string().into(),
            },
            Value::Single(f) => f.to_string().parse::<f64>().unwrap_or(f64::NAN).into(),
            Value::Double(f) => (*f).into(),
            Value::Text(text) => text.as_str().into(),
            Value::Truth(truth) => (*truth).into(),
            Value::Bytes(bytes) => hex(bytes).into(),
            Value::Complex(parts) => parts.iter().map(Value::json).collect(),
            Value::List(values) => values.iter().map(Value::json).collect(),
            Value::Compound(members) => {
                serde_json::Value::Object(members.iter().map(|(name, value)| (name.clone(), value.json())).collect())
            }
            Value::Unreadable => serde_json::Value::Null,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(i) => write!(f, "{i}"),
            Value::Single(v) => write!(f, "{v:?}"),
            Value::Double(v) => write!(f, "{v:?}"),
            Value::Text(text) => write!(f, "{text:?}"),
            Value::Truth(truth) => write!(f, "{truth}"),
            Value::Bytes(bytes) => write!(f, "0x{}", hex(bytes)),
            Value::Complex(parts) => {
                let [real, imaginary] = &**parts;
                write!(f, "{real}{}{imaginary}i", if imaginary.number().is_some_and(|i| i < 0.0) { "" } else { "+" })
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
            Value::Unreadable => f.write_str("?"),
        }
    }
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn list(base: &Datatype, bytes: &[u8], places: &dyn Resolve) -> Vec<Value> {
    bytes.chunks_exact((base.size() as usize).max(1)).map(|b| Value::decode(base, b, places)).collect()
}

fn text(bytes: &[u8], padding: StringPadding) -> String {
    let end = match padding {
        StringPadding::SpacePadded => bytes.iter().rposition(|b| *b != b' ').map_or(0, |at| at + 1),
        StringPadding::NullPadded => bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1),
        _ => bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len()),
    };
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

fn unsigned(datatype: &Datatype, bytes: &[u8]) -> i128 {
    let (order, offset, precision) = match datatype {
        Datatype::Bitfield(t) => (t.order, t.offset, t.precision),
        Datatype::Time(t) => (t.order, 0, t.precision),
        _ => (ByteOrder::Little, 0, 128),
    };
    bits(order, bytes, offset, precision.min(127)) as i128
}

/// `precision` bits from bit `offset` on.
fn bits(order: ByteOrder, bytes: &[u8], offset: u16, precision: u16) -> u128 {
    let t = crate::model::Integer { size: bytes.len() as u32, order, offset, precision, ..Default::default() };
    integer_of(&t, bytes).cast_unsigned()
}

/// The value of a float of any layout, rounded to 64 bits.
fn float(t: &Float, bytes: &[u8]) -> Value {
    match (Datatype::Float(t.clone()) == ieee(t), t.order, bytes) {
        (true, ByteOrder::Little, &[a, b, c, d]) => return Value::Single(f32::from_le_bytes([a, b, c, d])),
        (true, ByteOrder::Big, &[a, b, c, d]) => return Value::Single(f32::from_be_bytes([a, b, c, d])),
        (true, ByteOrder::Little, _) if t.size == 8 => {
            return bytes.try_into().map_or(Value::Unreadable, |b| Value::Double(f64::from_le_bytes(b)));
        }
        (true, ByteOrder::Big, _) if t.size == 8 => {
            return bytes.try_into().map_or(Value::Unreadable, |b| Value::Double(f64::from_be_bytes(b)));
        }
        _ => {}
    }
    let field = |position: u8, size: u8| bits(t.order, bytes, u16::from(position), u16::from(size).min(127));
    let exponent = field(t.exponent_position, t.exponent_size);
    let mantissa = field(t.mantissa_position, t.mantissa_size);
    let all_ones = t.exponent_size > 0 && t.exponent_size < 127 && exponent == (1u128 << t.exponent_size) - 1;
    let implied = t.normalization == Normalization::Implied;
    // Where the leading bit is stored, it says nothing about infinity.
    let fraction =
        if implied || t.mantissa_size == 0 { mantissa } else { mantissa & !(1u128 << (t.mantissa_size - 1).min(126)) };
    let magnitude = if all_ones && t.order != ByteOrder::Vax {
        if fraction == 0 { f64::INFINITY } else { f64::NAN }
    } else {
        let denormal = exponent == 0;
        let leading = if implied && !denormal { 1.0 } else { 0.0 };
        // The value of the highest mantissa bit: 1/2 below an implied leading one, 1 where it is stored itself.
        let scale = i32::from(t.mantissa_size) - i32::from(!implied);
        let significand = leading + mantissa as f64 * power_of_two(-scale);
        let bias = i64::from(t.exponent_bias);
        let power =
            i64::try_from(exponent).unwrap_or(i64::MAX).max(i64::from(denormal && implied)).saturating_sub(bias);
        significand * power_of_two(i32::try_from(power).unwrap_or(i32::MAX))
    };
    let negative = field(t.sign_position, 1) == 1;
    let value = if negative { -magnitude } else { magnitude };
    if t.size <= 2 { Value::Single(value as f32) } else { Value::Double(value) }
}

fn ieee(t: &Float) -> Datatype {
    Datatype::float(t.size, t.order).unwrap_or_default()
}

/// 2 to the `n`, in two steps so that neither leaves the range of normal numbers before the product does.
fn power_of_two(n: i32) -> f64 {
    2f64.powi(n / 2) * 2f64.powi(n - n / 2)
}

#[cfg(test)]
#[path = "value_tests.rs"]
mod tests;
