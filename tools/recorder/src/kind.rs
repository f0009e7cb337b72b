//! The types that a recorded column or frame can have, and how a text becomes one.

use std::fmt;
use std::str::FromStr;

use h5live::{ConversionPolicy, H5Type};

use h5live::Value;
use h5live::model::{ByteOrder, CharacterSet, Datatype, EnumMember, EnumType, Sign, VarLenKind, VarLenType};
use h5live_text::times::NO_TIME;
use h5live_text::{number_text, utc};

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
    /// A float of 2, 4 or 8 bytes.
    Float {
        /// Bytes.
        size: u32,
        /// Byte order.
        order: ByteOrder,
    },
    /// A truth value: an enumeration of FALSE and TRUE in a byte, as h5py has it.
    Bool,
    /// A truth value or nothing: an enumeration of FALSE, TRUE and NONE (-1) in a byte.
    OptionalBool,
    /// UTF-8 text of at most this many bytes, NUL-padded.
    Text(u32),
    /// UTF-8 text of any length, which lies in a heap of the file.
    VarText,
    /// A time in ISO 8601, stored as nanoseconds since 1970 in an integer of 8 bytes.
    Time,
}

/// The reason why a cell cannot be stored under its column's type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CellError {
    /// The text is not a value of the type.
    #[error("{text:?} is not a value of type {kind}")]
    NotOfKind {
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
    #[error(
        "a text of {found} bytes is too long for {kind} (--lossy cuts it; --str-width makes a new dataset wider, after `h5live rm` of this one)"
    )]
    TooLong {
        /// Bytes of the text.
        found: usize,
        /// The type.
        kind: ColumnKind,
    },
    /// The text has a NUL character, at which most programs would take it to end.
    #[error("{text:?} has a NUL character, which a text in a file cannot have (--lossy cuts the text there)")]
    Nul {
        /// The text.
        text: String,
    },
    /// The number has a point where the others of the input have groups of thousands or nothing.
    #[error(
        "{text:?} is not clear: between numbers with a decimal comma it may have a decimal point or a group of thousands"
    )]
    AmbiguousPoint {
        /// The text.
        text: String,
    },
    /// An empty cell, and the type has no value for "nothing".
    #[error("an empty cell is not a value of type {kind}")]
    Empty {
        /// The type.
        kind: ColumnKind,
    },
    /// An array of another shape than the column has, which may be none.
    #[error("{} is not {}", found_text(found), shape_text(expected, *kind))]
    ShapeMismatch {
        /// The shape (elements).
        found: Vec<u32>,
        /// That of the column (elements).
        expected: Vec<u32>,
        /// The type of an element.
        kind: ColumnKind,
    },
    /// An array of a row of several dimensions is too long or too short.
    #[error("{} has {found} instead of {expected} elements", place_text(at))]
    RowArrayLengthMismatch {
        /// Where it is in the row: the numbers of elements, from 0.
        at: Vec<usize>,
        /// Its elements.
        found: usize,
        /// The elements of the dataset.
        expected: u32,
    },
    /// There is a single value where a row has an array.
    #[error("{} is no array of shape {dims:?}", place_text(at))]
    ValueInsteadOfArray {
        /// Where it is in the row: the numbers of elements, from 0.
        at: Vec<usize>,
        /// The shape that it should have (elements).
        dims: Vec<u32>,
    },
    /// The text is not a value of a type that another program has chosen.
    #[error("{text:?} is not a value of type {datatype}")]
    NotOfDatatype {
        /// The text.
        text: String,
        /// The type.
        datatype: Box<Datatype>,
    },
    /// A value that a type that another program has chosen does not have.
    #[error("{text} does not fit {datatype}: {cause}")]
    InexactForDatatype {
        /// The text.
        text: String,
        /// The type.
        datatype: Box<Datatype>,
        /// Why not.
        cause: String,
    },
    /// A text with other characters than those of ASCII, for a column of texts in ASCII.
    #[error("{text:?} is not ASCII, as texts of type {datatype} are")]
    NotAscii {
        /// The text.
        text: String,
        /// The type.
        datatype: Box<Datatype>,
    },
    /// An array with elements that are objects, or that are arrays of different lengths.
    #[error("an array has numbers, texts or truth values in rows of equal length")]
    IrregularArray,
}

/// The part of a row at these numbers of elements.
fn place_text(at: &[usize]) -> String {
    match at {
        [] => "the array".to_owned(),
        at => format!("the element {at:?}"),
    }
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
    "no type is called {0:?}: i8 to i64, u8 to u64, f16, f32 and f64 (with `be` for big-endian), bool, bool3, time, str, str1 to \
     str65535; arrays have [N] or [NxM] behind it"
)]
pub struct UnknownColumnKind(String);

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
            Datatype::Float(float) if matches!(float.size, 2 | 4 | 8) => {
                ColumnKind::Float { size: float.size, order: float.order }
            }
            Datatype::Enum(of) if of.members.len() == 2 => ColumnKind::Bool,
            Datatype::Enum(_) => ColumnKind::OptionalBool,
            Datatype::String(string) => ColumnKind::Text(string.size),
            Datatype::VarLen(VarLenType { kind: VarLenKind::String { .. }, .. }) => ColumnKind::VarText,
            _ => return None,
        };
        let is_integer_size = !matches!(kind, ColumnKind::Integer { .. }) || matches!(kind.size(), 1 | 2 | 4 | 8);
        (is_integer_size && kind.datatype().to_string() == datatype.to_string()).then_some(kind)
    }

    /// Whether values are texts.
    pub fn is_text(self) -> bool {
        matches!(self, ColumnKind::Text(_) | ColumnKind::VarText)
    }

    /// Bytes of a value.
    pub fn size(self) -> u32 {
        match self {
            ColumnKind::Integer { size, .. } | ColumnKind::Float { size, .. } | ColumnKind::Text(size) => size,
            ColumnKind::Bool | ColumnKind::OptionalBool => 1,
            ColumnKind::Time => 8,
            ColumnKind::VarText => self.datatype().size(),
        }
    }

    /// The datatype in the file.
    pub fn datatype(self) -> Datatype {
        match self {
            ColumnKind::Integer { size, sign, order } => Datatype::integer(size, order, sign),
            ColumnKind::Float { size, order } => Datatype::float(size, order).unwrap_or_default(),
            ColumnKind::Text(size) => Datatype::fixed_string(size, CharacterSet::Utf8),
            ColumnKind::VarText => <String as H5Type>::datatype(),
            ColumnKind::Time => ColumnKind::I64.datatype(),
            ColumnKind::Bool => truth_values(&[("FALSE", 0), ("TRUE", 1)]),
            ColumnKind::OptionalBool => truth_values(&[("FALSE", 0), ("TRUE", 1), (NONE, -1)]),
        }
    }

    /// The value that a text stands for; `None` is an empty cell: NaN, no time, or an empty text. A number that the type
    /// does not have becomes the nearest one if the conversion may be lossy.
    ///
    /// # Errors
    /// [`CellError`] if the text is no value of this type.
    pub fn parse_value(self, text: Option<&str>, conversion: ConversionPolicy) -> Result<Value, CellError> {
        let Some(text) = text else {
            return match self {
                ColumnKind::Float { size: 2 | 4, .. } => Ok(Value::Float32(f32::NAN)),
                ColumnKind::Float { .. } => Ok(Value::Float64(f64::NAN)),
                ColumnKind::Text(_) | ColumnKind::VarText => Ok(Value::Text(String::new())),
                ColumnKind::Time => Ok(Value::Integer(NO_TIME.into())),
                ColumnKind::OptionalBool => Ok(Value::EnumName(NONE.into())),
                ColumnKind::Integer { .. } | ColumnKind::Bool => Err(CellError::Empty { kind: self }),
            };
        };
        let not_a = || CellError::NotOfKind { text: text.to_owned(), kind: self };
        let exact = |number: String, is_exact: bool| match conversion {
            ConversionPolicy::Checked if !is_exact => {
                Err(CellError::Inexact { text: text.trim().to_owned(), kind: self, becomes: number })
            }
            _ => Ok(()),
        };
        Ok(match self {
            ColumnKind::Integer { size, sign, .. } => {
                let (low, high) = range(size * 8, sign);
                let found = number_text::parse_number_as_clamped_integer(text.trim(), low, high).ok_or_else(not_a)?;
                exact(found.value.to_string(), found.is_exact_or_rounded_fraction)?;
                Value::Integer(found.value)
            }
            ColumnKind::Float { size: 2, .. } => {
                let found = number_text::parse_f16_as_f32(text.trim()).ok_or_else(not_a)?;
                exact(format!("{:?}", found.value), found.is_exact_or_rounded_fraction)?;
                Value::Float32(found.value)
            }
            ColumnKind::Float { size: 4, .. } => {
                let found = number_text::parse_f32(text.trim()).ok_or_else(not_a)?;
                exact(format!("{:?}", found.value), found.is_exact_or_rounded_fraction)?;
                Value::Float32(found.value)
            }
            ColumnKind::Float { .. } => {
                let found = number_text::parse_f64(text.trim()).ok_or_else(not_a)?;
                exact(format!("{:?}", found.value), found.is_exact_or_rounded_fraction)?;
                Value::Float64(found.value)
            }
            ColumnKind::Bool | ColumnKind::OptionalBool => Value::Bool(parse_bool(text).ok_or_else(not_a)?),
            ColumnKind::Time => Value::Integer(utc::parse_iso8601_ns(text).ok_or_else(not_a)?.into()),
            ColumnKind::Text(_) | ColumnKind::VarText => Value::Text(self.text_value(text, conversion)?),
        })
    }

    /// A text as it is stored: as it is, or cut if the conversion may be lossy.
    fn text_value(self, text: &str, fit: ConversionPolicy) -> Result<String, CellError> {
        let whole = text.split('\0').next().unwrap_or_default();
        let cut = match self {
            ColumnKind::Text(size) => &whole[..whole.floor_char_boundary(size as usize)],
            _ => whole,
        };
        match fit {
            ConversionPolicy::Checked if whole.len() < text.len() => Err(CellError::Nul { text: text.to_owned() }),
            ConversionPolicy::Checked if cut.len() < text.len() => {
                Err(CellError::TooLong { found: text.len(), kind: self })
            }
            _ => Ok(cut.to_owned()),
        }
    }
}

/// The truth value that is there for nothing.
const NONE: &str = "NONE";

fn truth_values(members: &[(&str, i8)]) -> Datatype {
    let member = |(name, value): &(&str, i8)| EnumMember { name: (*name).into(), value: value.to_le_bytes().to_vec() };
    let base = Box::new(Datatype::integer(1, ByteOrder::Little, Sign::Signed));
    Datatype::Enum(EnumType { base, members: members.iter().map(member).collect() })
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

impl fmt::Display for ColumnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let big = |order| if order == ByteOrder::Big { "be" } else { "" };
        match *self {
            ColumnKind::Integer { size, sign: Sign::Signed, order } => write!(f, "i{}{}", size * 8, big(order)),
            ColumnKind::Integer { size, sign: Sign::Unsigned, order } => write!(f, "u{}{}", size * 8, big(order)),
            ColumnKind::Float { size, order } => write!(f, "f{}{}", size * 8, big(order)),
            ColumnKind::Bool => f.write_str("bool"),
            ColumnKind::OptionalBool => f.write_str("bool3"),
            ColumnKind::Time => f.write_str("time"),
            ColumnKind::Text(size) => write!(f, "str{size}"),
            ColumnKind::VarText => f.write_str("str"),
        }
    }
}

impl FromStr for ColumnKind {
    type Err = UnknownColumnKind;

    fn from_str(name: &str) -> Result<Self, UnknownColumnKind> {
        let unknown = || UnknownColumnKind(name.to_owned());
        if name == "bool" {
            return Ok(ColumnKind::Bool);
        }
        if name == "bool3" {
            return Ok(ColumnKind::OptionalBool);
        }
        if name == "time" {
            return Ok(ColumnKind::Time);
        }
        if name == "str" {
            return Ok(ColumnKind::VarText);
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
            Some(("f", bits @ ("16" | "32" | "64"))) => Ok(ColumnKind::Float { size: size(bits)?, order }),
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(kind: &str, text: Option<&str>) -> Result<Value, CellError> {
        kind.parse::<ColumnKind>().unwrap().parse_value(text, ConversionPolicy::Checked)
    }

    #[test]
    fn every_name_is_read_and_shown_alike() {
        for name in [
            "i8", "i16", "i32be", "u64", "u16be", "f16", "f32", "f64be", "bool", "bool3", "time", "str", "str1",
            "str300",
        ] {
            assert_eq!(name.parse::<ColumnKind>().unwrap().to_string(), name);
        }
        assert_eq!("u16le".parse(), "u16".parse::<ColumnKind>());
    }

    #[test]
    fn refuses_names_of_no_type() {
        for name in ["", "i", "i7", "f8", "f128", "x32", "str0", "str70000", "bool8", "übe"] {
            assert!(name.parse::<ColumnKind>().is_err(), "{name}");
        }
    }

    #[test]
    fn a_text_becomes_the_value_that_it_stands_for() {
        assert_eq!(value("i16", Some("-2")), Ok(Value::Integer(-2)));
        assert_eq!(value("u32be", Some(" 258 ")), Ok(Value::Integer(258)));
        assert_eq!(value("u64", Some("18446744073709551615")), Ok(Value::Integer(u64::MAX.into())));
        assert_eq!(value("f64", Some("0.5")), Ok(Value::Float64(0.5)));
        assert_eq!(value("f32be", Some("0.1")), Ok(Value::Float32(0.1)));
        assert_eq!(value("bool", Some("true")), Ok(Value::Bool(true)));
        assert_eq!(value("time", Some("1970-01-01T00:00:00.000000258Z")), Ok(Value::Integer(258)));
        assert_eq!(value("str", Some(" as it is ")), Ok(Value::Text(" as it is ".into())));
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
            ("f16", "2049"),
            ("f16", "70000"),
        ] {
            assert!(matches!(value(kind, Some(text)), Err(CellError::Inexact { .. })), "{kind} {text}");
        }
        let error = value("u16", Some("1.5")).unwrap_err().to_string();
        assert_eq!(error, "1.5 does not fit u16 (it would become 1; --lossy stores that)");
        assert!(matches!(value("i32", Some("nan")), Err(CellError::NotOfKind { .. })));
        assert!(matches!(value("bool", Some("1")), Err(CellError::NotOfKind { .. })));
        assert!(matches!(value("f64", Some("")), Err(CellError::NotOfKind { .. })));
        assert!(matches!(value("time", Some("1700000000")), Err(CellError::NotOfKind { .. })));
        assert!(matches!(value("str2", Some("abc")), Err(CellError::TooLong { found: 3, .. })));
        assert!(matches!(value("str", Some("a\0")), Err(CellError::Nul { .. })));
        assert!(matches!(value("str2", Some("\0")), Err(CellError::Nul { .. })));
    }

    #[test]
    fn a_lossy_conversion_takes_the_nearest_value() {
        let lossy = |kind: &str, text: &str| {
            kind.parse::<ColumnKind>().unwrap().parse_value(Some(text), ConversionPolicy::Lossy).unwrap().to_string()
        };
        assert_eq!(lossy("i8", "300"), "127");
        assert_eq!(lossy("u8", "-0.5"), "0");
        assert_eq!(lossy("u16", "1e9"), "65535");
        assert_eq!(lossy("f32", "1e40"), "inf");
        assert_eq!(lossy("str2", "aü"), "\"a\"");
        assert_eq!(lossy("str", "a\0b"), "\"a\"");
    }

    #[test]
    fn empty_cells_are_nan_or_no_time_or_empty_text_and_nothing_else() {
        assert!(value("f64", None).unwrap().number().unwrap().is_nan());
        assert!(value("f32", None).unwrap().number().unwrap().is_nan());
        assert_eq!(value("str3", None), Ok(Value::Text(String::new())));
        assert_eq!(value("str", None), Ok(Value::Text(String::new())));
        assert_eq!(value("time", None), Ok(Value::Integer(i64::MIN.into())));
        assert!(matches!(value("i32", None), Err(CellError::Empty { .. })));
        assert!(matches!(value("bool", None), Err(CellError::Empty { .. })));
    }
}
