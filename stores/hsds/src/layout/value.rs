//! Values of attributes, and fill values, as JSON ("Attribute").
//!
//! A value is numbers and texts where these say all of it (`NaN` and `Infinity` as Python writes them), and else the stored elements in base 64, which the service
//! takes as well.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use h5live_model::{ByteOrder, CompoundMember, Datatype, FloatType, ReferenceKind, VarLenKind};
use serde_json::{Value, json};

use super::datatype::{integer_from_json, integer_to_json};
use super::error::{LayoutError, Result};
use super::json::{NON_FINITE_MARK, non_finite_to_json};
use super::references::{region_from_json, region_to_json};

const BASE64_NAME: &str = "base64";
/// Most bytes of stored elements that are shown as numbers and texts. h5pyd reads only these; but they take up to 32 times
/// as much memory.
const MAX_SHOWN_BYTES: usize = 1 << 20;

/// Stored elements in JSON: the value, and the name of its encoding if it has one. `dims` are those of the attribute,
/// and `datatype` is the one that the schema shows.
pub fn elements_to_json(datatype: &Datatype, dims: &[u64], stored: &[u8]) -> (Value, Option<&'static str>) {
    let shown = (stored.len() <= MAX_SHOWN_BYTES).then(|| to_json(datatype, dims, stored)).flatten();
    // Only what comes back as it was says all of it.
    let is_exact = |value: &Value| elements_from_json(datatype, dims, value, None).is_ok_and(|again| again == stored);
    match shown.filter(is_exact) {
        Some(value) => (value, None),
        None => (json!(BASE64.encode(stored)), Some(BASE64_NAME)),
    }
}

/// Stored elements from JSON.
///
/// # Errors
/// [`LayoutError::ValueIsNot`], [`LayoutError::LengthMismatch`].
pub fn elements_from_json(datatype: &Datatype, dims: &[u64], value: &Value, encoding: Option<&str>) -> Result<Vec<u8>> {
    match encoding {
        Some(BASE64_NAME) => {
            let text = value.as_str().ok_or(LayoutError::ValueIsNot("a text in base 64"))?;
            BASE64.decode(text).map_err(|_| LayoutError::ValueIsNot("a text in base 64"))
        }
        Some(_) => Err(LayoutError::ValueIsNot("in an encoding that is known")),
        None => {
            let mut stored = Vec::new();
            from_json(datatype, dims, value, &mut stored)?;
            Ok(stored)
        }
    }
}

/// A fill value. The service takes one number for a compound: it is that of each of its members.
pub fn broadcast_to_members<'a>(datatype: &Datatype, value: &'a Value) -> Cow<'a, Value> {
    match datatype {
        Datatype::Compound(t) if value.is_number() => {
            let member = |member: &CompoundMember| broadcast_to_members(&member.datatype, value).into_owned();
            Cow::Owned(t.members.iter().map(member).collect())
        }
        _ => Cow::Borrowed(value),
    }
}

struct StoredElements<'a>(&'a [u8]);

impl<'a> StoredElements<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    /// The bytes of an element of variable length.
    fn take_variable(&mut self) -> Option<&'a [u8]> {
        let len = self.take(4)?.first_chunk().map(|bytes| i32::from_le_bytes(*bytes))?;
        self.take(usize::try_from(len).ok()?)
    }
}

fn to_json(datatype: &Datatype, dims: &[u64], stored: &[u8]) -> Option<Value> {
    let mut from = StoredElements(stored);
    let value = nested_to_json(datatype, dims, &mut from)?;
    from.0.is_empty().then_some(value)
}

fn nested_to_json(datatype: &Datatype, dims: &[u64], from: &mut StoredElements<'_>) -> Option<Value> {
    match dims.split_first() {
        None => element_to_json(datatype, from),
        Some((dim, inner)) => {
            let count = usize::try_from(*dim).ok()?;
            (0..count).map(|_| nested_to_json(datatype, inner, from)).collect::<Option<Vec<_>>>().map(Value::Array)
        }
    }
}

fn element_to_json(datatype: &Datatype, from: &mut StoredElements<'_>) -> Option<Value> {
    match datatype {
        Datatype::Integer(t) => integer_to_json(datatype, from.take(t.size as usize)?),
        Datatype::Float(t) => float_to_json(t, from.take(t.size as usize)?),
        Datatype::Enum(t) => integer_to_json(&t.base, from.take(t.base.size() as usize)?),
        Datatype::String(t) => text_to_json(from.take(t.size as usize)?),
        Datatype::Reference(t) if t.kind == ReferenceKind::Object1 => text_to_json(from.take(t.size as usize)?),
        Datatype::Reference(t) if t.kind == ReferenceKind::Region1 => region_to_json(from.take_variable()?),
        Datatype::Opaque(t) => Some(json!(BASE64.encode(from.take(t.size as usize)?))),
        Datatype::Compound(t) => {
            let members = t.members.iter().map(|member| element_to_json(&member.datatype, from));
            members.collect::<Option<Vec<_>>>().map(Value::Array)
        }
        Datatype::Array(t) => {
            let dims: Vec<u64> = t.dims.iter().map(|dim| u64::from(*dim)).collect();
            nested_to_json(&t.base, &dims, from)
        }
        Datatype::VarLen(t) => {
            let bytes = from.take_variable()?;
            if t.kind != VarLenKind::Sequence {
                return plain_text(bytes);
            }
            let (mut inner, mut elements) = (StoredElements(bytes), Vec::new());
            while !inner.0.is_empty() {
                let before = inner.0.len();
                elements.push(element_to_json(&t.base, &mut inner)?);
                if inner.0.len() == before {
                    return None;
                }
            }
            Some(Value::Array(elements))
        }
        _ => None,
    }
}

/// The text without the NUL characters at its end.
fn text_to_json(bytes: &[u8]) -> Option<Value> {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    plain_text(bytes.get(..end)?)
}

/// A text; `None` if it is no UTF-8, or could be taken for a number that JSON does not have.
fn plain_text(bytes: &[u8]) -> Option<Value> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.starts_with(NON_FINITE_MARK)).map(Value::from)
}

fn float_to_json(t: &FloatType, bytes: &[u8]) -> Option<Value> {
    let mut little: Vec<u8> = bytes.to_vec();
    if t.order == ByteOrder::Big {
        little.reverse();
    }
    let number = match little.as_slice() {
        [a, b, c, d] => f64::from(f32::from_le_bytes([*a, *b, *c, *d])),
        [a, b, c, d, e, f, g, h] => f64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]),
        [a, b] => half_to_f64(u16::from_le_bytes([*a, *b])),
        _ => return None,
    };
    Some(serde_json::Number::from_f64(number).map_or_else(|| non_finite_to_json(number), Value::Number))
}

/// The value of an IEEE number of 16 bits.
fn half_to_f64(bits: u16) -> f64 {
    let (exponent, mantissa) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => mantissa * 2f64.powi(-24),
        31 if bits & 0x3ff == 0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + mantissa) * 2f64.powi(exponent - 25),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

/// The IEEE number of 16 bits that is next to a value; halfway, the even one.
fn half_from_f64(value: f64) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    if value.is_nan() {
        return 0x7e00;
    }
    let magnitude = value.abs();
    // Numbers of 16 bits grow with their bits, so that the nearest one is found by halving.
    let (mut low, mut high) = (0u16, 0x7c00u16);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if half_to_f64(middle) <= magnitude { low = middle } else { high = middle }
    }
    let above = if high == 0x7c00 { 65536.0 } else { half_to_f64(high) };
    let is_above = match (magnitude - half_to_f64(low)).partial_cmp(&(above - magnitude)) {
        Some(std::cmp::Ordering::Greater) => true,
        Some(std::cmp::Ordering::Equal) => low & 1 == 1,
        _ => false,
    };
    sign | if is_above { high } else { low }
}

fn from_json(datatype: &Datatype, dims: &[u64], value: &Value, stored: &mut Vec<u8>) -> Result<()> {
    let Some((dim, inner)) = dims.split_first() else {
        return element_from_json(datatype, value, stored);
    };
    let list = value.as_array().ok_or(LayoutError::ValueIsNot("a list for each dimension"))?;
    if list.len() as u64 != *dim {
        return Err(LayoutError::ValueIsNot("of the shape that is stated"));
    }
    list.iter().try_for_each(|value| from_json(datatype, inner, value, stored))
}

fn element_from_json(datatype: &Datatype, value: &Value, stored: &mut Vec<u8>) -> Result<()> {
    let integer = |datatype: &Datatype| {
        integer_from_json(datatype, value).ok_or(LayoutError::ValueIsNot("an integer of its type"))
    };
    match datatype {
        Datatype::Integer(_) => stored.extend(integer(datatype)?),
        Datatype::Enum(t) => stored.extend(integer(&t.base)?),
        Datatype::Float(t) => stored.extend(float_from_json(t, value)?),
        Datatype::String(t) => {
            let size = t.size as usize;
            match value {
                // The service takes the length of a type for letters, so that a text may not fit.
                Value::String(text) => {
                    let fitting = text.get(..text.floor_char_boundary(size)).unwrap_or_default();
                    fill_up(fitting.as_bytes(), size, stored)?;
                }
                other => text_from_json(other, size, stored)?,
            }
        }
        Datatype::Reference(t) if t.kind == ReferenceKind::Object1 => {
            text_from_json(value, t.size as usize, stored)?;
        }
        Datatype::Opaque(t) => {
            let text = value.as_str().ok_or(LayoutError::ValueIsNot("a text in base 64"))?;
            let bytes = BASE64.decode(text).map_err(|_| LayoutError::ValueIsNot("a text in base 64"))?;
            fill_up(&bytes, t.size as usize, stored)?;
        }
        Datatype::Compound(t) => {
            let values = value.as_array().filter(|values| values.len() == t.members.len());
            let values = values.ok_or(LayoutError::ValueIsNot("a list of the members of a compound"))?;
            for (member, value) in t.members.iter().zip(values) {
                element_from_json(&member.datatype, value, stored)?;
            }
        }
        Datatype::Array(t) => {
            let dims: Vec<u64> = t.dims.iter().map(|dim| u64::from(*dim)).collect();
            from_json(&t.base, &dims, value, stored)?;
        }
        Datatype::VarLen(t) => {
            let mut bytes = Vec::new();
            match (t.kind, value) {
                // An element that nobody wrote.
                (_, Value::Null) => {}
                (_, Value::Number(zero)) if zero.as_u64() == Some(0) => {}
                (VarLenKind::String { .. }, Value::String(text)) => bytes.extend_from_slice(text.as_bytes()),
                (VarLenKind::Sequence, Value::Array(list)) => {
                    list.iter().try_for_each(|value| element_from_json(&t.base, value, &mut bytes))?;
                }
                _ => return Err(LayoutError::ValueIsNot("of variable length")),
            }
            put_variable(&bytes, stored)?;
        }
        Datatype::Reference(t) if t.kind == ReferenceKind::Region1 => put_variable(&region_from_json(value)?, stored)?,
        _ => return Err(LayoutError::ValueIsNot("of a type that has values in JSON")),
    }
    Ok(())
}

fn put_variable(bytes: &[u8], stored: &mut Vec<u8>) -> Result<()> {
    let length = i32::try_from(bytes.len()).map_err(|_| LayoutError::InvalidVarLenLength(bytes.len() as i64))?;
    stored.extend_from_slice(&length.to_le_bytes());
    stored.extend_from_slice(bytes);
    Ok(())
}

fn text_from_json(value: &Value, size: usize, stored: &mut Vec<u8>) -> Result<()> {
    match value {
        Value::Null => fill_up(&[], size, stored),
        Value::String(text) => fill_up(text.as_bytes(), size, stored),
        _ => Err(LayoutError::ValueIsNot("a text")),
    }
}

fn fill_up(bytes: &[u8], size: usize, stored: &mut Vec<u8>) -> Result<()> {
    let rest =
        size.checked_sub(bytes.len()).ok_or(LayoutError::LengthMismatch { expected: size, found: bytes.len() })?;
    stored.extend_from_slice(bytes);
    stored.extend(std::iter::repeat_n(0, rest));
    Ok(())
}

fn float_from_json(t: &FloatType, value: &Value) -> Result<Vec<u8>> {
    let number = match value {
        Value::String(text) => {
            text.trim_start_matches(NON_FINITE_MARK).parse().map_err(|_| LayoutError::ValueIsNot("a number"))?
        }
        value => value.as_f64().ok_or(LayoutError::ValueIsNot("a number"))?,
    };
    let mut bytes = match t.size {
        2 => half_from_f64(number).to_le_bytes().to_vec(),
        4 => (number as f32).to_le_bytes().to_vec(),
        8 => number.to_le_bytes().to_vec(),
        _ => return Err(LayoutError::ValueIsNot("a number of 2, 4 or 8 bytes")),
    };
    if t.order == ByteOrder::Big {
        bytes.reverse();
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use h5live_model::Sign;

    use super::super::datatype::datatype_from_json;
    use super::*;

    fn exchange(datatype: &Datatype, dims: &[u64], stored: &[u8]) -> (Value, Option<&'static str>) {
        let (value, encoding) = elements_to_json(datatype, dims, stored);
        assert_eq!(elements_from_json(datatype, dims, &value, encoding).unwrap(), stored, "{value}");
        (value, encoding)
    }

    #[test]
    fn values_are_numbers_and_texts_where_these_say_all() {
        let i16 = Datatype::integer(2, ByteOrder::Big, Sign::Signed);
        assert_eq!(exchange(&i16, &[2, 1], &[0xff, 0xfe, 0, 3]), (json!([[-2], [3]]), None));
        let f32 = Datatype::float(4, ByteOrder::Little).unwrap();
        assert_eq!(exchange(&f32, &[], &1.5f32.to_le_bytes()), (json!(1.5), None));
        let text = datatype_from_json(&json!({"class": "H5T_STRING", "length": "H5T_VARIABLE"})).unwrap();
        let stored = [&[6, 0, 0, 0][..], "bêta!".as_bytes(), &[0; 4]].concat();
        assert_eq!(exchange(&text, &[2], &stored), (json!(["bêta!", ""]), None));
        let fields = json!([{"name": "a", "type": "H5T_STD_I8LE"},
            {"name": "b", "type": {"class": "H5T_VLEN", "base": "H5T_STD_U16LE"}},
            {"name": "c", "type": {"class": "H5T_STRING", "length": 3}}]);
        let record = datatype_from_json(&json!({"class": "H5T_COMPOUND", "fields": fields})).unwrap();
        let stored = [&[5][..], &[4, 0, 0, 0, 1, 0, 2, 0], b"x\0\0"].concat();
        assert_eq!(exchange(&record, &[], &stored), (json!([5, [1, 2], "x"]), None));
    }

    #[test]
    fn values_that_json_cannot_say_are_in_base_64() {
        let f64 = Datatype::float(8, ByteOrder::Little).unwrap();
        for (number, text) in [(f64::NAN, "NaN"), (f64::NEG_INFINITY, "-Infinity"), (f64::INFINITY, "Infinity")] {
            assert_eq!(
                exchange(&f64, &[1], &number.to_le_bytes()),
                (json!([format!("{NON_FINITE_MARK}{text}")]), None)
            );
        }
        let other = f64::from_bits(f64::NAN.to_bits() | 1);
        assert_eq!(exchange(&f64, &[1], &other.to_le_bytes()).1, Some("base64"));
        let text = datatype_from_json(&json!({"class": "H5T_STRING", "length": 3})).unwrap();
        assert_eq!(exchange(&text, &[], &[0xff, 1, 2]).1, Some("base64"));
        assert_eq!(exchange(&text, &[0], &[]), (json!([]), None));
        for number in [-0.0, 1e-310, 0.1, f64::MAX] {
            assert_eq!(exchange(&f64, &[], &number.to_le_bytes()).1, None);
        }
    }

    #[test]
    fn numbers_of_16_bits_come_back_bit_by_bit() {
        let f16 = Datatype::float(2, ByteOrder::Big).unwrap();
        for bits in 0..=u16::MAX {
            let encoding = exchange(&f16, &[], &bits.to_be_bytes()).1;
            assert_eq!(encoding.is_none(), !half_to_f64(bits).is_nan() || bits == 0x7e00, "{bits:#x}");
        }
        assert_eq!([half_from_f64(65520.0), half_from_f64(65519.9), half_from_f64(1.0)], [0x7c00, 0x7bff, 0x3c00]);
    }

    #[test]
    fn values_that_do_not_fit_their_type_are_refused() {
        let u8 = Datatype::integer(1, ByteOrder::Little, Sign::Unsigned);
        for bad in [json!(256), json!(-1), json!("x"), json!([1]), json!(1.5), json!(null)] {
            assert!(elements_from_json(&u8, &[], &bad, None).is_err(), "{bad}");
        }
        assert!(elements_from_json(&u8, &[2], &json!([1]), None).is_err());
        assert!(elements_from_json(&u8, &[], &json!("AA=="), Some("hex")).is_err());
        assert_eq!(elements_from_json(&u8, &[], &json!(true), None).unwrap(), [1]);
    }
}
