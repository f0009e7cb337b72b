//! Datatypes as HSDS shows them: HDF5/JSON, which lacks some of HDF5's types. What it lacks is shown as opaque bytes.
//! Compounds have no gaps.

use h5live::model::{ByteOrder, CharacterSet, Datatype, Float, ReferenceKind, Sign, StringPadding, VarLen, VarLenKind};
use serde_json::{Value as Json, json};

/// Bytes of an object reference: an identity as text, filled up with NUL.
pub(super) const REFERENCE_BYTES: usize = 48;
/// The length of what has none of its own.
const VARIABLE: &str = "H5T_VARIABLE";

/// A datatype as HSDS shows it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ShownType {
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
    Compound(Vec<(String, ShownType)>),
    Enum {
        base: Box<ShownType>,
        members: Vec<(String, i128)>,
    },
    Array {
        dims: Vec<u64>,
        base: Box<ShownType>,
    },
    VarText {
        set: CharacterSet,
        padding: StringPadding,
    },
    Sequence(Box<ShownType>),
    ObjectReference,
    /// References that this server does not serve so.
    OtherReference,
}

fn opaque(size: u32, tag: String) -> ShownType {
    ShownType::Opaque { size: size as usize, tag }
}

/// An integer, if it uses all of its bits.
fn integer(datatype: &Datatype) -> Option<ShownType> {
    let (size, order, sign, exact) = match datatype {
        Datatype::Integer(t) => (t.size, t.order, t.sign, Datatype::integer(t.size, t.order, t.sign) == *datatype),
        Datatype::Bitfield(t) => (t.size, t.order, Sign::Unsigned, u32::from(t.precision) == t.size.saturating_mul(8)),
        _ => return None,
    };
    let is_named = exact && matches!(size, 1 | 2 | 4 | 8) && order != ByteOrder::Vax;
    is_named.then_some(ShownType::Integer { size: size as usize, order, sign })
}

fn float(t: &Float) -> ShownType {
    let is_ieee = Datatype::float(t.size, t.order) == Some(Datatype::Float(t.clone()));
    match is_ieee && matches!(t.size, 2 | 4 | 8) && t.order != ByteOrder::Vax {
        true => ShownType::Float { size: t.size as usize, order: t.order },
        false => opaque(t.size, String::new()),
    }
}

impl ShownType {
    pub fn of(datatype: &Datatype) -> Self {
        match datatype {
            Datatype::Integer(t) => integer(datatype).unwrap_or_else(|| opaque(t.size, String::new())),
            Datatype::Bitfield(t) => integer(datatype).unwrap_or_else(|| opaque(t.size, String::new())),
            Datatype::Float(t) => float(t),
            Datatype::String(t) => ShownType::Text { size: t.size as usize, set: t.character_set, padding: t.padding },
            Datatype::Opaque(t) => opaque(t.size, t.tag.to_string()),
            Datatype::Time(t) => opaque(t.size, String::new()),
            Datatype::Compound(t) => {
                let member = |m: &h5live::model::CompoundMember| (m.name.to_string(), ShownType::of(&m.datatype));
                ShownType::Compound(t.members.iter().map(member).collect())
            }
            Datatype::Complex(t) => {
                let part = ShownType::of(&t.base);
                ShownType::Compound(vec![("r".to_owned(), part.clone()), ("i".to_owned(), part)])
            }
            Datatype::Enum(t) => ShownType::of_enum(t),
            Datatype::Array(t) => {
                let dims = t.dims.iter().map(|dim| u64::from(*dim));
                match ShownType::of(&t.base) {
                    // h5json has no arrays of arrays, and none of enums.
                    ShownType::Array { dims: inner, base } => {
                        ShownType::Array { dims: dims.chain(inner).collect(), base }
                    }
                    ShownType::Enum { base, .. } => ShownType::Array { dims: dims.collect(), base },
                    base => ShownType::Array { dims: dims.collect(), base: base.into() },
                }
            }
            Datatype::VarLen(VarLen { kind: VarLenKind::String { padding, character_set }, .. }) => {
                ShownType::VarText { set: *character_set, padding: *padding }
            }
            Datatype::VarLen(t) => ShownType::Sequence(ShownType::of(&t.base).into()),
            Datatype::Reference(t) if t.kind == ReferenceKind::Object1 => ShownType::ObjectReference,
            Datatype::Reference(_) => ShownType::OtherReference,
        }
    }

    fn of_enum(t: &h5live::model::Enum) -> Self {
        let base = ShownType::of(&t.base);
        let member = |m: &h5live::model::EnumMember| Some((m.name.to_string(), base.integer_value(&m.value)?));
        match t.members.iter().map(member).collect::<Option<Vec<_>>>() {
            Some(members) if !members.is_empty() => ShownType::Enum { base: base.into(), members },
            _ => base,
        }
    }

    /// The number that bytes are; `None` if this is no type of integers.
    pub fn integer_value(&self, bytes: &[u8]) -> Option<i128> {
        let ShownType::Integer { size, order, sign } = self else { return None };
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
            ShownType::Integer { size, .. }
            | ShownType::Float { size, .. }
            | ShownType::Text { size, .. }
            | ShownType::Opaque { size, .. } => Some(*size),
            ShownType::Enum { base, .. } => base.size(),
            ShownType::Compound(members) => {
                members.iter().try_fold(0usize, |sum, (_, member)| sum.checked_add(member.size()?))
            }
            ShownType::Array { dims, base } => {
                let elements = dims.iter().try_fold(1usize, |n, dim| n.checked_mul(usize::try_from(*dim).ok()?))?;
                elements.checked_mul(base.size()?)
            }
            ShownType::ObjectReference => Some(REFERENCE_BYTES),
            ShownType::VarText { .. } | ShownType::Sequence(_) | ShownType::OtherReference => None,
        }
    }

    /// Whether a reference is in it that is not served.
    pub fn has_other_reference(&self) -> bool {
        match self {
            ShownType::OtherReference => true,
            ShownType::Compound(members) => members.iter().any(|(_, member)| member.has_other_reference()),
            ShownType::Array { base, .. } | ShownType::Sequence(base) => base.has_other_reference(),
            _ => false,
        }
    }

    /// The type as HSDS describes it.
    pub fn json(&self) -> Json {
        match self {
            ShownType::Integer { size, order, sign } => {
                let letter = if *sign == Sign::Signed { 'I' } else { 'U' };
                json!({ "class": "H5T_INTEGER", "base": format!("H5T_STD_{letter}{}{}", size * 8, suffix(*order)) })
            }
            ShownType::Float { size, order } => {
                json!({ "class": "H5T_FLOAT", "base": format!("H5T_IEEE_F{}{}", size * 8, suffix(*order)) })
            }
            ShownType::Text { size, set, padding } => text_json(json!(size), *set, *padding),
            ShownType::VarText { set, padding } => text_json(json!(VARIABLE), *set, *padding),
            ShownType::Opaque { size, tag } if tag.is_empty() => json!({ "class": "H5T_OPAQUE", "size": size }),
            ShownType::Opaque { size, tag } => json!({ "class": "H5T_OPAQUE", "size": size, "tag": tag }),
            ShownType::Compound(members) => {
                let field = |(name, member): &(String, ShownType)| json!({ "name": name, "type": member.json() });
                json!({ "class": "H5T_COMPOUND", "fields": members.iter().map(field).collect::<Vec<_>>() })
            }
            ShownType::Enum { base, members } => {
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
            ShownType::Array { dims, base } => json!({ "class": "H5T_ARRAY", "base": base.json(), "dims": dims }),
            ShownType::Sequence(base) => json!({ "class": "H5T_VLEN", "size": VARIABLE, "base": base.json() }),
            ShownType::ObjectReference => {
                json!({ "class": "H5T_REFERENCE", "base": "H5T_STD_REF_OBJ", "length": REFERENCE_BYTES })
            }
            ShownType::OtherReference => {
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
        assert_eq!(ShownType::of(&big).json(), json!({ "class": "H5T_INTEGER", "base": "H5T_STD_U16BE" }));
        assert_eq!(ShownType::of(&big).integer_value(&[1, 2]), Some(0x102));
        let signed = ShownType::of(&Datatype::integer(1, ByteOrder::Little, Sign::Signed));
        assert_eq!(signed.integer_value(&[0xff]), Some(-1));
        let odd = Datatype::integer(3, ByteOrder::Little, Sign::Signed);
        assert_eq!(ShownType::of(&odd).json(), json!({ "class": "H5T_OPAQUE", "size": 3 }));
        let pair = Datatype::compound([("a", big), ("b", Datatype::float(8, ByteOrder::Little).unwrap())]);
        assert_eq!(ShownType::of(&pair).size(), Some(10));
        let choice = ShownType::Enum { base: signed.into(), members: vec![("LOW".into(), -1), ("HIGH".into(), 5)] };
        let list = json!([{ "name": "LOW", "value": -1 }, { "name": "HIGH", "value": 5 }]);
        let shown = choice.json();
        assert_eq!((&shown["members"], &shown["mapping"]), (&list, &json!({ "LOW": -1, "HIGH": 5 })));
    }
}
