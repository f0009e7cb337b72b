//! The types that a recorded column or frame can have, and how a text becomes one.

use std::fmt;
use std::str::FromStr;

use h5live::Conversion;

use crate::manifest::type_text;
use crate::model::{ByteOrder, CharacterSet, Datatype, Enum, EnumMember, Sign};
use crate::{number_text, utc};

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// An integer of 1, 2, 4 or 8 bytes.
    Integer {
        /// Bytes.
        size: u32,
        /// Signed or not.
        sign: Sign,
        /// Byte order.
        order: ByteOrder,
    },
    /// A float of 4 or 8 bytes.
    Float {
        /// Bytes.
        size: u32,
        /// Byte order.
        order: ByteOrder,
    },
    /// A truth value: an enumeration of FALSE and TRUE in a byte, as h5py has it.
    Bool,
    /// UTF-8 text of at most this many bytes, NUL-padded.
    Text(u32),
    /// A time in ISO 8601, stored as nanoseconds since 1970 in an integer of 8 bytes.
    Time,
}

/// What the stored integers of [`ColumnKind::Time`] are, for an attribute of the dataset.
pub const TIME_UNITS: &str = "nanoseconds since 1970-01-01T00:00:00Z";

/// The integer that stands for no time, as in numpy.
const NO_TIME: i64 = i64::MIN;

/// The reason why a cell cannot be stored under its column's type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CellError {
    /// The text is not a value of the type.
    #[error("{text:?} is not a value of type {kind}")]
    NotA {
        /// The text.
        text: String,
        /// The type.
        kind: ColumnKind,
    },
    /// The type does not have the number.
    #[error("{text} does not fit {kind} (it would become {becomes}; --lossy stores that)")]
    Inexact {
        /// The text.
        text: String,
        /// The type.
        kind: ColumnKind,
        /// The nearest number that the type has.
        becomes: String,
    },
    /// The text is longer than the column is wide.
    #[error("a text of {found} bytes is too long for {kind} (--lossy cuts it; --str-width makes a new dataset wider)")]
    TooLong {
        /// Bytes of the text.
        found: usize,
        /// The type.
        kind: ColumnKind,
    },
    /// An empty cell, and the type has no value for "nothing".
    #[error("an empty cell is not a value of type {kind}")]
    Empty {
        /// The type.
        kind: ColumnKind,
    },
    /// An array of another shape than the column has, which may be none.
    #[error("{} is not {}", found_text(found), shape_text(expected, *kind))]
    Shape {
        /// The shape (elements).
        found: Vec<u32>,
        /// That of the column (elements).
        expected: Vec<u32>,
        /// The type of an element.
        kind: ColumnKind,
    },
    /// An array with elements that are objects, or that are arrays of different lengths.
    #[error("an array has numbers, texts or truth values in rows of equal length")]
    NoArray,
}

fn found_text(dims: &[u32]) -> String {
    if dims.is_empty() { "a single value".to_owned() } else { format!("an array of shape {dims:?}") }
}

fn shape_text(dims: &[u32], kind: ColumnKind) -> String {
    if dims.is_empty() { format!("a value of type {kind}") } else { format!("an array of {kind} of shape {dims:?}") }
}

/// A name that no type has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no type is called {0:?}: i8 to i64, u8 to u64, f32 and f64 (with `be` for big-endian), bool, time, str1 to \
     str65535; arrays have [N] or [NxM] behind it"
)]
pub struct UnknownKind(String);

impl ColumnKind {
    /// A signed little-endian integer of 8 bytes.
    pub const I64: ColumnKind = ColumnKind::Integer { size: 8, sign: Sign::Signed, order: ByteOrder::Little };
    /// An unsigned little-endian integer of 8 bytes.
    pub const U64: ColumnKind = ColumnKind::Integer { size: 8, sign: Sign::Unsigned, order: ByteOrder::Little };
    /// A little-endian float of 8 bytes.
    pub const F64: ColumnKind = ColumnKind::Float { size: 8, order: ByteOrder::Little };

    /// The type of columns that are stored so; `None` if there is none.
    pub fn of(datatype: &Datatype) -> Option<Self> {
        let kind = match datatype {
            Datatype::Integer(integer) => {
                ColumnKind::Integer { size: integer.size, sign: integer.sign, order: integer.order }
            }
            Datatype::Float(float) if matches!(float.size, 4 | 8) => {
                ColumnKind::Float { size: float.size, order: float.order }
            }
            Datatype::Enum(_) => ColumnKind::Bool,
            Datatype::String(string) => ColumnKind::Text(string.size),
            _ => return None,
        };
        let is_integer_size = !matches!(kind, ColumnKind::Integer { .. }) || matches!(kind.size(), 1 | 2 | 4 | 8);
        (is_integer_size && type_text(&kind.datatype()) == type_text(datatype)).then_some(kind)
    }

    /// Bytes of a value.
    pub fn size(self) -> u32 {
        match self {
            ColumnKind::Integer { size, .. } | ColumnKind::Float { size, .. } | ColumnKind::Text(size) => size,
            ColumnKind::Bool => 1,
            ColumnKind::Time => 8,
        }
    }

    /// The datatype in the file.
    pub fn datatype(self) -> Datatype {
        match self {
            ColumnKind::Integer { size, sign, order } => Datatype::integer(size, order, sign),
            ColumnKind::Float { size, order } => Datatype::float(size, order).unwrap_or_default(),
            ColumnKind::Text(size) => Datatype::fixed_string(size, CharacterSet::Utf8),
            ColumnKind::Time => ColumnKind::I64.datatype(),
            ColumnKind::Bool => {
                let member = |name: &str, value| EnumMember { name: name.into(), value: vec![value] };
                let base = Box::new(Datatype::integer(1, ByteOrder::Little, Sign::Signed));
                Datatype::Enum(Enum { base, members: vec![member("FALSE", 0), member("TRUE", 1)] })
            }
        }
    }

    /// Appends the stored form of a text; `None` is an empty cell: NaN, no time, or an empty text. A number that the type does
    /// not have becomes the nearest one if the conversion may be lossy.
    ///
    /// # Errors
    /// [`CellError`] if the text is no value of this type.
    pub fn encode(self, text: Option<&str>, fit: Conversion, out: &mut Vec<u8>) -> Result<(), CellError> {
        let Some(text) = text else {
            return match self {
                ColumnKind::Float { .. } => self.encode(Some("nan"), fit, out),
                ColumnKind::Text(_) => self.encode(Some(""), fit, out),
                ColumnKind::Time => {
                    out.extend_from_slice(&NO_TIME.to_le_bytes());
                    Ok(())
                }
                ColumnKind::Integer { .. } | ColumnKind::Bool => Err(CellError::Empty { kind: self }),
            };
        };
        let not_a = || CellError::NotA { text: text.to_owned(), kind: self };
        let exact = |number: String, is_exact: bool| match fit {
            Conversion::Exact if !is_exact => {
                Err(CellError::Inexact { text: text.trim().to_owned(), kind: self, becomes: number })
            }
            _ => Ok(()),
        };
        match self {
            ColumnKind::Integer { size, sign, order } => {
                let (low, high) = range(size * 8, sign);
                let found = number_text::integer(text.trim(), low, high).ok_or_else(not_a)?;
                exact(found.value.to_string(), found.is_exact)?;
                push(&found.value.to_le_bytes(), size, order, out);
            }
            ColumnKind::Float { size: 4, order } => {
                let found = number_text::single(text.trim()).ok_or_else(not_a)?;
                exact(format!("{:?}", found.value), found.is_exact)?;
                push(&found.value.to_le_bytes(), 4, order, out);
            }
            ColumnKind::Float { size, order } => {
                let found = number_text::double(text.trim()).ok_or_else(not_a)?;
                exact(format!("{:?}", found.value), found.is_exact)?;
                push(&found.value.to_le_bytes(), size, order, out);
            }
            ColumnKind::Bool => out.push(u8::from(parse_bool(text).ok_or_else(not_a)?)),
            ColumnKind::Time => out.extend_from_slice(&utc::parse_ns(text).ok_or_else(not_a)?.to_le_bytes()),
            ColumnKind::Text(size) => {
                let size = size as usize;
                if text.len() > size && fit == Conversion::Exact {
                    return Err(CellError::TooLong { found: text.len(), kind: self });
                }
                let text = &text[..text.floor_char_boundary(size)];
                out.extend_from_slice(text.as_bytes());
                out.extend(std::iter::repeat_n(0, size - text.len()));
            }
        }
        Ok(())
    }
}

/// The smallest and the largest integer of so many bits.
fn range(bits: u32, sign: Sign) -> (i128, i128) {
    match sign {
        Sign::Signed => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        Sign::Unsigned => (0, (1i128 << bits) - 1),
    }
}

/// The truth value that a text names.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text.trim() {
        "true" | "TRUE" | "True" => Some(true),
        "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Appends the `size` least significant bytes of a little-endian number in another order.
fn push(little: &[u8], size: u32, order: ByteOrder, out: &mut Vec<u8>) {
    let bytes = little.iter().take(size as usize);
    match order {
        ByteOrder::Big => out.extend(bytes.rev()),
        _ => out.extend(bytes),
    }
}

impl fmt::Display for ColumnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let big = |order| if order == ByteOrder::Big { "be" } else { "" };
        match *self {
            ColumnKind::Integer { size, sign: Sign::Signed, order } => write!(f, "i{}{}", size * 8, big(order)),
            ColumnKind::Integer { size, sign: Sign::Unsigned, order } => write!(f, "u{}{}", size * 8, big(order)),
            ColumnKind::Float { size, order } => write!(f, "f{}{}", size * 8, big(order)),
            ColumnKind::Bool => f.write_str("bool"),
            ColumnKind::Time => f.write_str("time"),
            ColumnKind::Text(size) => write!(f, "str{size}"),
        }
    }
}

impl FromStr for ColumnKind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Self, UnknownKind> {
        let unknown = || UnknownKind(name.to_owned());
        if name == "bool" {
            return Ok(ColumnKind::Bool);
        }
        if name == "time" {
            return Ok(ColumnKind::Time);
        }
        if let Some(size) = name.strip_prefix("str") {
            let size: u16 = size.parse().map_err(|_| unknown())?;
            return if size == 0 { Err(unknown()) } else { Ok(ColumnKind::Text(u32::from(size))) };
        }
        let (body, order) = match (name.strip_suffix("be"), name.strip_suffix("le")) {
            (Some(body), _) => (body, ByteOrder::Big),
            (None, Some(body)) => (body, ByteOrder::Little),
            (None, None) => (name, ByteOrder::Little),
        };
        let size = |bits: &str| match bits {
            "8" => Ok(1),
            "16" => Ok(2),
            "32" => Ok(4),
            "64" => Ok(8),
            _ => Err(unknown()),
        };
        match body.split_at_checked(1) {
            Some(("i", bits)) => Ok(ColumnKind::Integer { size: size(bits)?, sign: Sign::Signed, order }),
            Some(("u", bits)) => Ok(ColumnKind::Integer { size: size(bits)?, sign: Sign::Unsigned, order }),
            Some(("f", bits @ ("32" | "64"))) => Ok(ColumnKind::Float { size: size(bits)?, order }),
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(kind: &str, text: Option<&str>) -> Result<Vec<u8>, CellError> {
        let mut out = Vec::new();
        kind.parse::<ColumnKind>().unwrap().encode(text, Conversion::Exact, &mut out).map(|()| out)
    }

    #[test]
    fn every_name_is_read_and_shown_alike() {
        for name in ["i8", "i16", "i32be", "u64", "u16be", "f32", "f64be", "bool", "time", "str1", "str300"] {
            assert_eq!(name.parse::<ColumnKind>().unwrap().to_string(), name);
        }
        assert_eq!("u16le".parse(), "u16".parse::<ColumnKind>());
    }

    #[test]
    fn refuses_names_of_no_type() {
        for name in ["", "i", "i7", "f8", "f16", "x32", "str", "str0", "str70000", "bool8", "übe"] {
            assert!(name.parse::<ColumnKind>().is_err(), "{name}");
        }
    }

    #[test]
    fn numbers_are_stored_in_their_size_and_order() {
        assert_eq!(encoded("i16", Some("-2")).unwrap(), [0xFE, 0xFF]);
        assert_eq!(encoded("u32be", Some(" 258 ")).unwrap(), [0, 0, 1, 2]);
        assert_eq!(encoded("u64", Some("18446744073709551615")).unwrap(), [0xFF; 8]);
        assert_eq!(encoded("f64", Some("0.5")).unwrap(), 0.5f64.to_le_bytes());
        assert_eq!(encoded("f32be", Some("0.1")).unwrap(), 0.1f32.to_be_bytes());
        assert_eq!(encoded("bool", Some("true")).unwrap(), [1]);
        assert_eq!(encoded("time", Some("1970-01-01T00:00:00.000000258Z")).unwrap(), [2, 1, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn refuses_what_does_not_fit() {
        for (kind, text) in [
            ("i8", "128"),
            ("i8", "-129"),
            ("u8", "-1"),
            ("u64", "18446744073709551616"),
            ("i32", "1.5"),
            ("f64", "9007199254740993"),
            ("f32", "16777217"),
            ("f64", "1e400"),
            ("f32", "1e40"),
        ] {
            assert!(matches!(encoded(kind, Some(text)), Err(CellError::Inexact { .. })), "{kind} {text}");
        }
        let error = encoded("u16", Some("1.5")).unwrap_err().to_string();
        assert_eq!(error, "1.5 does not fit u16 (it would become 1; --lossy stores that)");
        assert!(matches!(encoded("i32", Some("nan")), Err(CellError::NotA { .. })));
        assert!(matches!(encoded("bool", Some("1")), Err(CellError::NotA { .. })));
        assert!(matches!(encoded("f64", Some("")), Err(CellError::NotA { .. })));
        assert!(matches!(encoded("time", Some("1700000000")), Err(CellError::NotA { .. })));
        assert!(matches!(encoded("str2", Some("abc")), Err(CellError::TooLong { found: 3, .. })));
    }

    #[test]
    fn a_lossy_conversion_takes_the_nearest_value() {
        let lossy = |kind: &str, text: &str| {
            let mut out = Vec::new();
            kind.parse::<ColumnKind>().unwrap().encode(Some(text), Conversion::Lossy, &mut out).unwrap();
            out
        };
        assert_eq!(lossy("i8", "300"), [127]);
        assert_eq!(lossy("u8", "-0.5"), [0]);
        assert_eq!(lossy("u16", "1e9"), [255, 255]);
        assert_eq!(lossy("f32", "1e40"), f32::INFINITY.to_le_bytes());
        assert_eq!(lossy("str2", "aü"), *b"a\0");
    }

    #[test]
    fn empty_cells_are_nan_or_no_time_or_empty_text_and_nothing_else() {
        assert!(f64::from_le_bytes(encoded("f64", None).unwrap().try_into().unwrap()).is_nan());
        assert_eq!(encoded("str3", None).unwrap(), [0; 3]);
        assert_eq!(encoded("time", None).unwrap(), i64::MIN.to_le_bytes());
        assert!(matches!(encoded("i32", None), Err(CellError::Empty { .. })));
        assert!(matches!(encoded("bool", None), Err(CellError::Empty { .. })));
    }
}
