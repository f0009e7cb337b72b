//! Datatypes as HSDS shows them: HDF5/JSON, which lacks some of HDF5's types. What it lacks is shown as opaque bytes.
//! Compounds have no gaps.

use h5live::model::{
    ByteOrder, CharacterSet, Datatype, FloatType, ReferenceKind, Sign, StringPadding, VarLenKind, VarLenType,
};
use serde_json::{Value as Json, json};

/// Bytes of an object reference: an identity as text, filled up with NUL.
pub(super) const REFERENCE_BYTES: usize = 48;
/// The length of what has none of its own.
const VARIABLE: &str = "H5T_VARIABLE";

/// A datatype as HSDS shows it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Hdf5JsonType {
    Integer {
        size: usize,
        order: ByteOrder,
        sign: Sign,
    },
    Float {
        size: usize,
        order: ByteOrder,
    },
    Text {
        size: usize,
        set: CharacterSet,
        padding: StringPadding,
    },
    Opaque {
        size: usize,
        tag: String,
    },
    Compound(Vec<(String, Hdf5JsonType)>),
    Enum {
        base: Box<Hdf5JsonType>,
        members: Vec<(String, i128)>,
    },
    Array {
        dims: Vec<u64>,
        base: Box<Hdf5JsonType>,
    },
    VarText {
        set: CharacterSet,
        padding: StringPadding,
    },
    Sequence(Box<Hdf5JsonType>),
    ObjectReference,
    /// References that this server does not serve so.
    OtherReference,
}

fn opaque(size: u32, tag: String) -> Hdf5JsonType {
    Hdf5JsonType::Opaque { size: size as usize, tag }
}

/// An integer, if it uses all of its bits.
fn integer(datatype: &Datatype) -> Option<Hdf5JsonType> {
    let (size, order, sign, exact) = match datatype {
        Datatype::Integer(t) => (t.size, t.order, t.sign, Datatype::integer(t.size, t.order, t.sign) == *datatype),
        Datatype::Bitfield(t) => (t.size, t.order, Sign::Unsigned, u32::from(t.precision) == t.size.saturating_mul(8)),
        _ => return None,
    };
    let is_named = exact && matches!(size, 1 | 2 | 4 | 8) && order != ByteOrder::Vax;
    is_named.then_some(Hdf5JsonType::Integer { size: size as usize, order, sign })
}

fn float(t: &FloatType) -> Hdf5JsonType {
    let is_ieee = Datatype::float(t.size, t.order) == Some(Datatype::Float(t.clone()));
    match is_ieee && matches!(t.size, 2 | 4 | 8) && t.order != ByteOrder::Vax {
        true => Hdf5JsonType::Float { size: t.size as usize, order: t.order },
        false => opaque(t.size, String::new()),
    }
}

impl Hdf5JsonType {
    pub fn of(datatype: &Datatype) -> Self {
        match datatype {
            Datatype::Integer(t) => integer(datatype).unwrap_or_else(|| opaque(t.size, String::new())),
            Datatype::Bitfield(t) => integer(datatype).unwrap_or_else(|| opaque(t.size, String::new())),
            Datatype::Float(t) => float(t),
            Datatype::String(t) => {
                Hdf5JsonType::Text { size: t.size as usize, set: t.character_set, padding: t.padding }
            }
            Datatype::Opaque(t) => opaque(t.size, t.tag.to_string()),
            Datatype::Time(t) => opaque(t.size, String::new()),
            Datatype::Compound(t) => {
                let member = |m: &h5live::model::CompoundMember| (m.name.to_string(), Hdf5JsonType::of(&m.datatype));
                Hdf5JsonType::Compound(t.members.iter().map(member).collect())
            }
            Datatype::Complex(t) => {
                let part = Hdf5JsonType::of(&t.base);
                Hdf5JsonType::Compound(vec![("r".to_owned(), part.clone()), ("i".to_owned(), part)])
            }
            Datatype::Enum(t) => Hdf5JsonType::of_enum(t),
            Datatype::Array(t) => {
                let dims = t.dims.iter().map(|dim| u64::from(*dim));
                match Hdf5JsonType::of(&t.base) {
                    // h5json has no arrays of arrays, and none of enums.
                    Hdf5JsonType::Array { dims: inner, base } => {
                        Hdf5JsonType::Array { dims: dims.chain(inner).collect(), base }
                    }
                    Hdf5JsonType::Enum { base, .. } => Hdf5JsonType::Array { dims: dims.collect(), base },
                    base => Hdf5JsonType::Array { dims: dims.collect(), base: base.into() },
                }
            }
            Datatype::VarLen(VarLenType { kind: VarLenKind::String { padding, character_set }, .. }) => {
                Hdf5JsonType::VarText { set: *character_set, padding: *padding }
            }
            Datatype::VarLen(t) => Hdf5JsonType::Sequence(Hdf5JsonType::of(&t.base).into()),
            Datatype::Reference(t) if t.kind == ReferenceKind::Object1 => Hdf5JsonType::ObjectReference,
            Datatype::Reference(_) => Hdf5JsonType::OtherReference,
        }
    }

    fn of_enum(t: &h5live::model::EnumType) -> Self {
        let base = Hdf5JsonType::of(&t.base);
        let member = |m: &h5live::model::EnumMember| Some((m.name.to_string(), base.integer_value(&m.value)?));
        match t.members.iter().map(member).collect::<Option<Vec<_>>>() {
            Some(members) if !members.is_empty() => Hdf5JsonType::Enum { base: base.into(), members },
            _ => base,
        }
    }

    /// The number that bytes are; `None` if this is no type of integers.
    pub fn integer_value(&self, bytes: &[u8]) -> Option<i128> {
        let Hdf5JsonType::Integer { size, order, sign } = self else { return None };
        let mut wide = [0; 8];
        let bytes = bytes.get(..*size)?;
        wide.get_mut(..*size)?.copy_from_slice(bytes);
        if *order == ByteOrder::Big {
            wide.get_mut(..*size)?.reverse();
        }
        let unused = 64 - 8 * *size as u32;
        let word = u64::from_le_bytes(wide);
        Some(match sign {
            Sign::Signed => i128::from(((word << unused) as i64) >> unused),
            Sign::Unsigned => i128::from(word),
        })
    }

    /// Bytes of an element; `None` if it has no length of its own.
    pub fn size(&self) -> Option<usize> {
        match self {
            Hdf5JsonType::Integer { size, .. }
            | Hdf5JsonType::Float { size, .. }
            | Hdf5JsonType::Text { size, .. }
            | Hdf5JsonType::Opaque { size, .. } => Some(*size),
            Hdf5JsonType::Enum { base, .. } => base.size(),
            Hdf5JsonType::Compound(members) => {
                members.iter().try_fold(0usize, |sum, (_, member)| sum.checked_add(member.size()?))
            }
            Hdf5JsonType::Array { dims, base } => {
                let elements = dims.iter().try_fold(1usize, |n, dim| n.checked_mul(usize::try_from(*dim).ok()?))?;
                elements.checked_mul(base.size()?)
            }
            Hdf5JsonType::ObjectReference => Some(REFERENCE_BYTES),
            Hdf5JsonType::VarText { .. } | Hdf5JsonType::Sequence(_) | Hdf5JsonType::OtherReference => None,
        }
    }

    /// Whether a reference is in it that is not served.
    pub fn has_unserved_reference(&self) -> bool {
        match self {
            Hdf5JsonType::OtherReference => true,
            Hdf5JsonType::Compound(members) => members.iter().any(|(_, member)| member.has_unserved_reference()),
            Hdf5JsonType::Array { base, .. } | Hdf5JsonType::Sequence(base) => base.has_unserved_reference(),
            _ => false,
        }
    }

    /// The type as HSDS describes it.
    pub fn json(&self) -> Json {
        match self {
            Hdf5JsonType::Integer { size, order, sign } => {
                let letter = if *sign == Sign::Signed { 'I' } else { 'U' };
                json!({ "class": "H5T_INTEGER", "base": format!("H5T_STD_{letter}{}{}", size * 8, suffix(*order)) })
            }
            Hdf5JsonType::Float { size, order } => {
                json!({ "class": "H5T_FLOAT", "base": format!("H5T_IEEE_F{}{}", size * 8, suffix(*order)) })
            }
            Hdf5JsonType::Text { size, set, padding } => text_json(json!(size), *set, *padding),
            Hdf5JsonType::VarText { set, padding } => text_json(json!(VARIABLE), *set, *padding),
            Hdf5JsonType::Opaque { size, tag } if tag.is_empty() => json!({ "class": "H5T_OPAQUE", "size": size }),
            Hdf5JsonType::Opaque { size, tag } => json!({ "class": "H5T_OPAQUE", "size": size, "tag": tag }),
            Hdf5JsonType::Compound(members) => {
                let field = |(name, member): &(String, Hdf5JsonType)| json!({ "name": name, "type": member.json() });
                json!({ "class": "H5T_COMPOUND", "fields": members.iter().map(field).collect::<Vec<_>>() })
            }
            Hdf5JsonType::Enum { base, members } => {
                let value = |value: &i128| match u64::try_from(*value) {
                    Ok(value) => json!(value),
                    Err(_) => json!(*value as i64),
                };
                let list: Vec<_> =
                    members.iter().map(|(name, number)| json!({ "name": name, "value": value(number) })).collect();
                // h5pyd before 1.0 looks for `mapping`.
                let map: Json = members.iter().map(|(name, number)| (name.clone(), value(number))).collect();
                json!({ "class": "H5T_ENUM", "base": base.json(), "members": list, "mapping": map })
            }
            Hdf5JsonType::Array { dims, base } => json!({ "class": "H5T_ARRAY", "base": base.json(), "dims": dims }),
            Hdf5JsonType::Sequence(base) => json!({ "class": "H5T_VLEN", "size": VARIABLE, "base": base.json() }),
            Hdf5JsonType::ObjectReference => {
                json!({ "class": "H5T_REFERENCE", "base": "H5T_STD_REF_OBJ", "length": REFERENCE_BYTES })
            }
            Hdf5JsonType::OtherReference => {
                json!({ "class": "H5T_REFERENCE", "base": "H5T_STD_REF_DSETREG", "length": VARIABLE })
            }
        }
    }
}

fn suffix(order: ByteOrder) -> &'static str {
    if order == ByteOrder::Big { "BE" } else { "LE" }
}

fn text_json(length: Json, set: CharacterSet, padding: StringPadding) -> Json {
    let padding = match padding {
        StringPadding::NullTerminated => "H5T_STR_NULLTERM",
        StringPadding::SpacePadded => "H5T_STR_SPACEPAD",
        _ => "H5T_STR_NULLPAD",
    };
    let set = if set == CharacterSet::Ascii { "H5T_CSET_ASCII" } else { "H5T_CSET_UTF8" };
    json!({ "class": "H5T_STRING", "length": length, "charSet": set, "strPad": padding })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_those_of_hdf5_json() {
        let big = Datatype::integer(2, ByteOrder::Big, Sign::Unsigned);
        assert_eq!(Hdf5JsonType::of(&big).json(), json!({ "class": "H5T_INTEGER", "base": "H5T_STD_U16BE" }));
        assert_eq!(Hdf5JsonType::of(&big).integer_value(&[1, 2]), Some(0x102));
        let signed = Hdf5JsonType::of(&Datatype::integer(1, ByteOrder::Little, Sign::Signed));
        assert_eq!(signed.integer_value(&[0xff]), Some(-1));
        let odd = Datatype::integer(3, ByteOrder::Little, Sign::Signed);
        assert_eq!(Hdf5JsonType::of(&odd).json(), json!({ "class": "H5T_OPAQUE", "size": 3 }));
        let pair = Datatype::compound([("a", big), ("b", Datatype::float(8, ByteOrder::Little).unwrap())]);
        assert_eq!(Hdf5JsonType::of(&pair).size(), Some(10));
        let choice = Hdf5JsonType::Enum { base: signed.into(), members: vec![("LOW".into(), -1), ("HIGH".into(), 5)] };
        let list = json!([{ "name": "LOW", "value": -1 }, { "name": "HIGH", "value": 5 }]);
        let shown = choice.json();
        assert_eq!((&shown["members"], &shown["mapping"]), (&list, &json!({ "LOW": -1, "HIGH": 5 })));
    }
}
