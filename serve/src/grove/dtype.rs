//! Datatypes as h5grove describes them: HDF5's class and properties, and numpy's name.

use h5live::model::{
    ByteOrder, CharacterSet, CompoundType, Datatype, EnumType, FloatType, ReferenceKind, Sign, StringPadding,
    VarLenKind,
};
use serde_json::{Map, Value as Json, json};

/// Bytes of a pointer, and of a sequence of variable length, in the memory of h5py.
const POINTER_BYTES: u64 = 8;
const SEQUENCE_BYTES: u64 = 16;
/// What the tag of an opaque type begins with that h5py has made of a type of numpy.
const NUMPY_TAG: &[u8] = b"NUMPY:";

/// A type as h5grove describes it.
pub(super) fn type_json(datatype: &Datatype) -> Json {
    let mut json = Map::new();
    let mut set = |name: &str, value: Json| drop(json.insert(name.to_owned(), value));
    set("class", class(datatype).into());
    set("dtype", dtype_json(datatype));
    set("size", memory_size(datatype).into());
    match datatype {
        Datatype::Integer(t) => {
            set("order", order(t.order).into());
            set("sign", u8::from(t.sign == Sign::Signed).into());
        }
        Datatype::Float(t) => set("order", order(t.order).into()),
        Datatype::Bitfield(t) => set("order", order(t.order).into()),
        Datatype::String(t) => set_string(&mut set, t.character_set, t.padding, false),
        Datatype::VarLen(t) => match t.kind {
            VarLenKind::String { padding, character_set } => set_string(&mut set, character_set, padding, true),
            VarLenKind::Sequence => set("base", type_json(&t.base)),
        },
        Datatype::Opaque(t) => set("tag", t.tag.to_string().into()),
        Datatype::Compound(t) => set("members", members_json(t)),
        Datatype::Enum(t) => {
            set("members", enum_json(t));
            set("base", type_json(&t.base));
        }
        Datatype::Array(t) => {
            set("dims", t.dims.clone().into());
            set("base", type_json(&t.base));
        }
        Datatype::Time(_) | Datatype::Reference(_) | Datatype::Complex(_) => {}
    }
    Json::Object(json)
}

fn set_string(set: &mut impl FnMut(&str, Json), charset: CharacterSet, padding: StringPadding, is_varlen: bool) {
    let charset = match charset {
        CharacterSet::Ascii => 0,
        CharacterSet::Utf8 => 1,
        CharacterSet::Reserved(other) => other,
    };
    let padding = match padding {
        StringPadding::NullTerminated => 0,
        StringPadding::NullPadded => 1,
        StringPadding::SpacePadded => 2,
        StringPadding::Reserved(other) => other,
    };
    set("cset", charset.into());
    set("strpad", padding.into());
    set("vlen", is_varlen.into());
}

fn members_json(compound: &CompoundType) -> Json {
    let member = |member: &h5live::model::CompoundMember| {
        let mut json = type_json(&member.datatype);
        json["name"] = member.name.to_string().into();
        json
    };
    compound.members.iter().map(member).collect::<Vec<_>>().into()
}

fn enum_json(of: &EnumType) -> Json {
    let members = of.members.iter().map(|member| (member.name.to_string(), integer_json(&of.base, &member.value)));
    Json::Object(members.collect())
}

/// The bytes of an integer as a number.
pub(super) fn integer_value(base: &Datatype, bytes: &[u8]) -> Option<i128> {
    let Datatype::Integer(integer) = base else { return None };
    let mut little = bytes.to_vec();
    if integer.order == ByteOrder::Big {
        little.reverse();
    }
    let mut wide = [0; 16];
    let is_negative = integer.sign == Sign::Signed && little.last().is_some_and(|byte| byte & 0x80 != 0);
    if is_negative {
        wide.fill(0xff);
    }
    wide.get_mut(..little.len())?.copy_from_slice(&little);
    Some(i128::from_le_bytes(wide))
}

fn integer_json(base: &Datatype, bytes: &[u8]) -> Json {
    match integer_value(base, bytes) {
        Some(value) if u64::try_from(value).is_ok() => (value as u64).into(),
        Some(value) => (value as i64).into(),
        None => Json::Null,
    }
}

fn class(datatype: &Datatype) -> u8 {
    match datatype {
        Datatype::Integer(_) => 0,
        Datatype::Float(_) => 1,
        Datatype::Time(_) => 2,
        Datatype::String(_) => 3,
        Datatype::VarLen(t) if matches!(t.kind, VarLenKind::String { .. }) => 3,
        Datatype::Bitfield(_) => 4,
        Datatype::Opaque(_) => 5,
        Datatype::Compound(_) => 6,
        Datatype::Reference(_) => 7,
        Datatype::Enum(_) => 8,
        Datatype::VarLen(_) => 9,
        Datatype::Array(_) => 10,
        Datatype::Complex(_) => 11,
    }
}

fn order(order: ByteOrder) -> u8 {
    match order {
        ByteOrder::Little => 0,
        ByteOrder::Big => 1,
        ByteOrder::Vax => 2,
    }
}

fn order_mark(order: ByteOrder, size: u64) -> char {
    match (size, order) {
        (1, _) => '|',
        (_, ByteOrder::Big) => '>',
        _ => '<',
    }
}

/// The size in the memory of libhdf5 (bytes): as in the file, but for what leads to a heap.
fn memory_size(datatype: &Datatype) -> u64 {
    match datatype {
        Datatype::VarLen(t) => match t.kind {
            VarLenKind::String { .. } => POINTER_BYTES,
            VarLenKind::Sequence => SEQUENCE_BYTES,
        },
        Datatype::Reference(t) => match t.kind {
            ReferenceKind::Object1 => 8,
            ReferenceKind::Region1 => 12,
            _ => 64,
        },
        Datatype::Compound(t) => {
            let stored: u64 = t.members.iter().map(|member| u64::from(member.datatype.size())).sum();
            let here: u64 = t.members.iter().map(|member| memory_size(&member.datatype)).sum();
            u64::from(t.size).saturating_sub(stored).saturating_add(here)
        }
        Datatype::Array(t) => {
            t.dims.iter().fold(memory_size(&t.base), |size, dim| size.saturating_mul(u64::from(*dim)))
        }
        other => u64::from(other.size()),
    }
}

/// Bytes that numpy takes for a float.
pub(super) fn numpy_float_size(float: &FloatType) -> u64 {
    match (float.exponent_size, float.mantissa_size) {
        (exponent, mantissa) if exponent <= 5 && mantissa <= 10 => 2,
        (exponent, mantissa) if exponent <= 8 && mantissa <= 23 => 4,
        (exponent, mantissa) if exponent <= 11 && mantissa <= 52 => 8,
        _ => 16,
    }
}

/// The float of both parts, if a compound is what h5py makes of complex numbers.
pub(super) fn complex_part(compound: &CompoundType) -> Option<&FloatType> {
    match &compound.members[..] {
        [re, im] if re.name.as_bytes() == b"r" && im.name.as_bytes() == b"i" && re.datatype == im.datatype => {
            match &re.datatype {
                Datatype::Float(part) if re.offset == 0 && im.offset == part.size && compound.size == 2 * part.size => {
                    Some(part)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether an enum is what h5py makes of truth values.
pub(super) fn is_bool(of: &EnumType) -> bool {
    let value = |name: &str| {
        let found = of.members.iter().find(|member| member.name.as_bytes() == name.as_bytes())?;
        integer_value(&of.base, &found.value)
    };
    of.base.size() == 1 && of.members.len() == 2 && value("FALSE") == Some(0) && value("TRUE") == Some(1)
}

/// The name of numpy's type, or the names of the types of its fields.
fn dtype_json(datatype: &Datatype) -> Json {
    match datatype {
        Datatype::Compound(t) if complex_part(t).is_none() => {
            let fields = t.members.iter().map(|member| (member.name.to_string(), dtype_json(&member.datatype)));
            Json::Object(fields.collect())
        }
        other => dtype_text(other).into(),
    }
}

/// The name of numpy's type, of a type without fields.
pub(super) fn dtype_text(datatype: &Datatype) -> String {
    match datatype {
        Datatype::Integer(t) => {
            let sign = if t.sign == Sign::Signed { 'i' } else { 'u' };
            format!("{}{sign}{}", order_mark(t.order, t.size.into()), t.size)
        }
        Datatype::Bitfield(t) => format!("{}u{}", order_mark(t.order, t.size.into()), t.size),
        Datatype::Float(t) => format!("{}f{}", order_mark(t.order, t.size.into()), numpy_float_size(t)),
        Datatype::String(t) => format!("|S{}", t.size),
        Datatype::Opaque(t) => match t.tag.as_bytes().strip_prefix(NUMPY_TAG) {
            Some(name) => String::from_utf8_lossy(name).into_owned(),
            None => format!("|V{}", t.size),
        },
        Datatype::Enum(t) if is_bool(t) => "|b1".to_owned(),
        Datatype::Enum(t) => dtype_text(&t.base),
        Datatype::Complex(t) => match &*t.base {
            Datatype::Float(part) => complex_text(part),
            _ => format!("|V{}", datatype.size()),
        },
        Datatype::Compound(t) => match complex_part(t) {
            Some(part) => complex_text(part),
            None => format!("|V{}", numpy_size(datatype)),
        },
        Datatype::Array(_) => format!("|V{}", numpy_size(datatype)),
        Datatype::VarLen(_) | Datatype::Reference(_) => "|O".to_owned(),
        Datatype::Time(t) => format!("|V{}", t.size),
    }
}

fn complex_text(part: &FloatType) -> String {
    format!("{}c{}", order_mark(part.order, 2), 2 * numpy_float_size(part))
}

/// Bytes of an element in numpy's memory.
fn numpy_size(datatype: &Datatype) -> u64 {
    match datatype {
        Datatype::VarLen(_) | Datatype::Reference(_) => POINTER_BYTES,
        Datatype::Float(t) => numpy_float_size(t),
        Datatype::Array(t) => t.dims.iter().fold(numpy_size(&t.base), |size, dim| size.saturating_mul(u64::from(*dim))),
        other => memory_size(other),
    }
}

/// What an attribute, or a dataset, has of a shape.
pub(super) fn shape_json(dataspace: &h5live::model::Dataspace) -> Json {
    match dataspace {
        h5live::model::Dataspace::Null => Json::Null,
        other => json!(other.dims()),
    }
}
