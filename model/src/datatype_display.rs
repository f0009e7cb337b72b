//! Datatypes as text.

use std::fmt;

use crate::escape::{escape, escape_with};
use crate::{
    ByteOrder, CharacterSet, CompoundType, Datatype, EnumType, FloatType, IntegerType, Normalization, Padding,
    ReferenceKind, Sign, StringPadding, VarLenKind,
};

impl fmt::Display for Datatype {
    /// As `h5live ls` shows it: `u16le`, `f64be`, `vstr(nullterm,utf8)`, `array[2,3]<i32le>`,
    /// `compound(12){time@0:f64le,count@8:u32le}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&type_text(self))
    }
}

/// The text of a datatype.
fn type_text(datatype: &Datatype) -> String {
    match datatype {
        Datatype::Integer(t) => {
            let sign = if t.sign == Sign::Signed { 'i' } else { 'u' };
            let bits = bits(t.size, t.precision, t.offset, t.low_padding, t.high_padding);
            format!("{sign}{}{}{bits}", bit_size(t.size), order(t.order, t.size))
        }
        Datatype::Bitfield(t) => {
            let bits = bits(t.size, t.precision, t.offset, t.low_padding, t.high_padding);
            format!("bitfield{}{}{bits}", bit_size(t.size), order(t.order, t.size))
        }
        Datatype::Float(t) => float(t),
        Datatype::Time(t) => {
            let whole = u64::from(t.precision) == bit_size(t.size);
            let precision = if whole { String::new() } else { format!("(prec={})", t.precision) };
            format!("time{}{}{precision}", bit_size(t.size), order(t.order, t.size))
        }
        Datatype::String(t) => format!("str({},{},{})", t.size, padded(t.padding), encoded(t.character_set)),
        Datatype::Opaque(t) => format!("opaque({},\"{}\")", t.size, escape_with(t.tag.as_bytes(), Some('"'))),
        Datatype::Compound(t) => compound(t),
        Datatype::Reference(t) => match t.kind {
            ReferenceKind::Object1 => "ref(object)".to_owned(),
            ReferenceKind::Region1 => "ref(region)".to_owned(),
            ReferenceKind::Object2 | ReferenceKind::Region2 | ReferenceKind::Attribute => "ref(std)".to_owned(),
        },
        Datatype::Enum(t) => enumeration(t),
        Datatype::VarLen(t) => match t.kind {
            VarLenKind::Sequence => format!("vlen<{}>", type_text(&t.base)),
            VarLenKind::String { padding, character_set } => {
                format!("vstr({},{})", padded(padding), encoded(character_set))
            }
        },
        Datatype::Array(t) => format!("array[{}]<{}>", dims_text(&t.dims), type_text(&t.base)),
        Datatype::Complex(t) => format!("complex<{}>", type_text(&t.base)),
    }
}

fn bit_size(bytes: u32) -> u64 {
    u64::from(bytes) * 8
}

fn order(order: ByteOrder, size: u32) -> &'static str {
    match order {
        _ if size <= 1 => "",
        ByteOrder::Little => "le",
        ByteOrder::Big => "be",
        ByteOrder::Vax => "vax",
    }
}

fn pad(padding: Padding) -> &'static str {
    match padding {
        Padding::Zero => "zero",
        Padding::One => "one",
    }
}

/// Which bits are significant, unless all are.
fn bits(size: u32, precision: u16, offset: u16, low: Padding, high: Padding) -> String {
    if u64::from(precision) == bit_size(size) && offset == 0 {
        return String::new();
    }
    format!("(prec={precision},off={offset},pad={}/{})", pad(low), pad(high))
}

fn float(t: &FloatType) -> String {
    let order = order(t.order, t.size);
    let ieee = Datatype::float(t.size, t.order).is_some_and(|ieee| match ieee {
        Datatype::Float(ieee) => {
            // What pads the bits that a format without unused bits does not have says nothing.
            let padding = FloatType {
                low_padding: t.low_padding,
                high_padding: t.high_padding,
                internal_padding: t.internal_padding,
                ..ieee
            };
            t.order != ByteOrder::Vax && padding == *t
        }
        _ => false,
    });
    if ieee {
        return format!("f{}{order}", bit_size(t.size));
    }
    let norm = match t.normalization {
        Normalization::Implied => "implied",
        Normalization::MsbSet => "msbset",
        Normalization::None => "none",
    };
    format!(
        "float(size={},order={},prec={},off={},sign={},exp={}+{},mant={}+{},bias={},norm={norm},pad={}/{}/{})",
        t.size,
        if order.is_empty() { "-" } else { order },
        t.precision,
        t.offset,
        t.sign_position,
        t.exponent_position,
        t.exponent_size,
        t.mantissa_position,
        t.mantissa_size,
        t.exponent_bias,
        pad(t.low_padding),
        pad(t.high_padding),
        pad(t.internal_padding),
    )
}

fn padded(padding: StringPadding) -> String {
    match padding {
        StringPadding::NullTerminated => "nullterm".to_owned(),
        StringPadding::NullPadded => "nullpad".to_owned(),
        StringPadding::SpacePadded => "spacepad".to_owned(),
        StringPadding::Reserved(n) => format!("pad{n}"),
    }
}

fn encoded(set: CharacterSet) -> String {
    match set {
        CharacterSet::Ascii => "ascii".to_owned(),
        CharacterSet::Utf8 => "utf8".to_owned(),
        CharacterSet::Reserved(n) => format!("cset{n}"),
    }
}

fn compound(t: &CompoundType) -> String {
    let mut members: Vec<_> = t.members.iter().collect();
    members.sort_by_key(|m| m.offset);
    let members: Vec<_> = members
        .iter()
        .map(|m| format!("{}@{}:{}", escape(m.name.as_bytes()), m.offset, type_text(&m.datatype)))
        .collect();
    format!("compound({}){{{}}}", t.size, members.join(","))
}

fn enumeration(t: &EnumType) -> String {
    let mut members: Vec<_> = t.members.iter().map(|m| (enum_value(&t.base, &m.value), &m.name)).collect();
    members.sort();
    let members: Vec<_> = members.iter().map(|(v, name)| format!("{}={v}", escape(name.as_bytes()))).collect();
    format!("enum<{}>{{{}}}", type_text(&t.base), members.join(","))
}

/// The value of an integer given by its stored bytes; bits above 128 are dropped.
fn enum_value(base: &Datatype, stored: &[u8]) -> i128 {
    match base {
        Datatype::Integer(t) => integer(t, stored),
        _ => integer(&IntegerType { size: base.size(), precision: 128, ..IntegerType::default() }, stored),
    }
}

/// The value of an integer given by its stored bytes; bits above 128 are dropped.
fn integer(t: &IntegerType, stored: &[u8]) -> i128 {
    let byte = |i: usize| match t.order {
        ByteOrder::Big => stored.len().checked_sub(i + 1).and_then(|at| stored.get(at)),
        ByteOrder::Vax => stored.len().checked_sub((i & !1) + 2).and_then(|at| stored.get(at + (i & 1))),
        ByteOrder::Little => stored.get(i),
    };
    let bit = |n: usize| byte(n / 8).is_some_and(|b| b >> (n % 8) & 1 == 1);
    let precision = usize::from(t.precision).min(128);
    let start = usize::from(t.offset);
    let value = (0..precision).filter(|i| bit(start + i)).fold(0u128, |v, i| v | 1 << i);
    let negative = t.sign == Sign::Signed && precision > 0 && bit(start + precision - 1);
    let sign_bits = if negative && precision < 128 { u128::MAX << precision } else { 0 };
    (value | sign_bits).cast_signed()
}

fn dims_text(dims: &[u32]) -> String {
    dims.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
#[path = "datatype_display_tests.rs"]
mod tests;
