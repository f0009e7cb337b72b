//! The values of elements, of which HSDS's form is given as bytes.

use h5live::model::{ByteOrder, StringPadding};

use super::hdf5_json_type::{Hdf5JsonType, REFERENCE_BYTES};

/// What a condition can look at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ElementValue<'a> {
    Integer(i128),
    /// A number, and of how many bytes it is.
    Float(f64, usize),
    /// A text without its padding.
    Text(&'a [u8]),
    Other,
}

/// Elements, one after the other.
pub(super) struct ElementBytes<'a>(pub &'a [u8]);

impl<'a> ElementBytes<'a> {
    fn take_bytes(&mut self, size: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(taken)
    }

    fn take_variable(&mut self) -> Option<&'a [u8]> {
        let head = self.take_bytes(4)?.try_into().ok()?;
        self.take_bytes(usize::try_from(i32::from_le_bytes(head)).ok()?)
    }

    /// The next value; `None` if the bytes end before.
    pub fn next_value(&mut self, of: &Hdf5JsonType) -> Option<ElementValue<'a>> {
        Some(match of {
            Hdf5JsonType::Integer { size, .. } => ElementValue::Integer(of.integer_value(self.take_bytes(*size)?)?),
            Hdf5JsonType::Enum { base, .. } => self.next_value(base)?,
            Hdf5JsonType::Float { size, order } => {
                ElementValue::Float(float_value(self.take_bytes(*size)?, *order), *size)
            }
            Hdf5JsonType::Text { size, padding, .. } => {
                ElementValue::Text(without_padding(self.take_bytes(*size)?, *padding))
            }
            Hdf5JsonType::VarText { .. } => ElementValue::Text(self.take_variable()?),
            Hdf5JsonType::Opaque { size, .. } => self.take_bytes(*size).map(|_| ElementValue::Other)?,
            Hdf5JsonType::ObjectReference => self.take_bytes(REFERENCE_BYTES).map(|_| ElementValue::Other)?,
            Hdf5JsonType::Sequence(_) | Hdf5JsonType::OtherReference => {
                self.take_variable().map(|_| ElementValue::Other)?
            }
            Hdf5JsonType::Compound(members) => {
                for (_, member) in members {
                    self.next_value(member)?;
                }
                ElementValue::Other
            }
            Hdf5JsonType::Array { dims, base } => {
                for _ in 0..dims.iter().try_fold(1u64, |all, dim| all.checked_mul(*dim))? {
                    self.next_value(base)?;
                }
                ElementValue::Other
            }
        })
    }
}

/// The text in a string of fixed length (format specification 4.0, IV.A.2.d "Class specific information for Strings").
pub(super) fn without_padding(bytes: &[u8], padding: StringPadding) -> &[u8] {
    let without_last =
        |bytes: &'_ [u8], pad: u8| bytes.iter().rposition(|byte| *byte != pad).map_or(0, |last| last + 1);
    let end = match padding {
        StringPadding::NullTerminated => bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()),
        // libhdf5 cuts off the spaces, and numpy the zeros that are left.
        StringPadding::SpacePadded => without_last(&bytes[..without_last(bytes, b' ')], 0),
        _ => without_last(bytes, 0),
    };
    &bytes[..end]
}

/// The number that at most 8 bytes are.
pub(super) fn float_value(bytes: &[u8], order: ByteOrder) -> f64 {
    let mut wide = [0; 8];
    let length = bytes.len().min(8);
    wide[..length].copy_from_slice(&bytes[..length]);
    if order == ByteOrder::Big {
        wide[..length].reverse();
    }
    let word = u64::from_le_bytes(wide);
    match length {
        2 => half(word as u16),
        4 => f64::from(f32::from_bits(word as u32)),
        _ => f64::from_bits(word),
    }
}

/// A float of 16 bits.
fn half(bits: u16) -> f64 {
    let (exponent, mantissa) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => mantissa * 2f64.powi(-24),
        0x1f if mantissa == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        _ => (1.0 + mantissa / 1024.0) * 2f64.powi(exponent - 15),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_where_their_padding_begins() {
        for (padding, text) in [
            (StringPadding::NullTerminated, &b"a"[..]),
            (StringPadding::NullPadded, b"a\0b  "),
            (StringPadding::SpacePadded, b"a\0b"),
        ] {
            assert_eq!(without_padding(b"a\0b  ", padding), text);
            assert_eq!(without_padding(b"\0\0", padding), b"");
        }
        assert_eq!(without_padding(b"abc", StringPadding::NullTerminated), b"abc");
        assert_eq!(without_padding(b"  ", StringPadding::SpacePadded), b"");
        assert_eq!(without_padding(b"a \0", StringPadding::SpacePadded), b"a ");
    }

    #[test]
    fn floats_of_16_bits_are_exact() {
        for (bits, value) in
            [(0x3c00, 1.0), (0xc100, -2.5), (0x7bff, 65504.0), (0x0001, 2f64.powi(-24)), (0x7c00, f64::INFINITY)]
        {
            assert_eq!(half(bits), value);
        }
        assert!(half(0x7e00).is_nan());
    }
}
