//! Datatypes as JSON ("Type"; HDF5/JSON, "datatype").
//!
//! The schema has fewer types than HDF5. What it lacks is shown as what comes nearest, and the exact type is kept beside
//! it ([`datatype_to_base64`]): readers of the schema see that, and h5live the type.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use h5live_format::messages::DatatypeMessage;
use h5live_format::{Widths, decode, encode};
use h5live_model::{
    ArrayType, ByteOrder, CharacterSet, CompoundMember, CompoundType, Datatype, EnumMember, EnumType, FixedStringType,
    MAX_RANK, OpaqueType, ReferenceKind, ReferenceType, Sign, StringPadding, VarLenKind, VarLenType,
    VlenAndReferenceSizes,
};
use serde_json::{Value, json};

use super::error::{LayoutError, Result};
use super::json::Members;

/// Sizes of elements that lead elsewhere, as they cross the seam. Object references are the 48 bytes of the schema;
/// others are tokens of a session.
pub const MODEL_VLEN_AND_REFERENCE_SIZES: VlenAndReferenceSizes = VlenAndReferenceSizes {
    vlen: 16,
    object_reference: OBJECT_REFERENCE_SIZE,
    region_reference: 16,
    standard_reference: 16,
};
/// Bytes of an object reference: an identity as text, filled up with NUL.
pub const OBJECT_REFERENCE_SIZE: u32 = 48;
/// Most levels of types in types.
const MAX_DEPTH: usize = 32;
/// Most bytes of an element.
const MAX_ELEMENT_BYTES: u64 = 1 << 31;

const VARIABLE: &str = "H5T_VARIABLE";

/// The JSON of a datatype: of what comes nearest, if the schema lacks it.
pub fn nearest_datatype_to_json(datatype: &Datatype) -> Value {
    let base = |base: &Datatype| nearest_datatype_to_json(base);
    match datatype {
        Datatype::Integer(t) => match standard_integer(t.size, t.order, t.sign) {
            Some((name, standard)) if standard == *datatype => json!({"class": "H5T_INTEGER", "base": name}),
            _ => opaque(t.size, ""),
        },
        Datatype::Bitfield(t) => match standard_integer(t.size, t.order, Sign::Unsigned) {
            Some((name, _)) if u32::from(t.precision) == t.size * 8 => json!({"class": "H5T_INTEGER", "base": name}),
            _ => opaque(t.size, ""),
        },
        Datatype::Float(t) => match Datatype::float(t.size, t.order) {
            Some(standard) if standard == *datatype && t.order != ByteOrder::Vax => {
                json!({"class": "H5T_FLOAT", "base": format!("H5T_IEEE_F{}{}", t.size * 8, order_suffix(t.order))})
            }
            _ => opaque(t.size, ""),
        },
        Datatype::String(t) => string_to_json(json!(t.size), t.padding, t.character_set),
        Datatype::Opaque(t) => opaque(t.size, &t.tag.to_string()),
        Datatype::Compound(t) => {
            let field =
                |member: &CompoundMember| json!({"name": member.name.to_string(), "type": base(&member.datatype)});
            json!({"class": "H5T_COMPOUND", "fields": t.members.iter().map(field).collect::<Vec<_>>()})
        }
        Datatype::Reference(t) => match t.kind {
            ReferenceKind::Object1 => {
                json!({"class": "H5T_REFERENCE", "base": "H5T_STD_REF_OBJ", "length": OBJECT_REFERENCE_SIZE})
            }
            ReferenceKind::Region1 => {
                json!({"class": "H5T_REFERENCE", "base": "H5T_STD_REF_DSETREG", "length": VARIABLE})
            }
            // Bytes, to those who read the schema.
            _ => {
                json!({"class": "H5T_VLEN", "size": VARIABLE, "base": {"class": "H5T_INTEGER", "base": "H5T_STD_U8LE"}})
            }
        },
        Datatype::Enum(t) => enum_to_json(t),
        Datatype::VarLen(VarLenType { kind: VarLenKind::String { padding, character_set }, .. }) => {
            string_to_json(json!(VARIABLE), *padding, *character_set)
        }
        Datatype::VarLen(t) => json!({"class": "H5T_VLEN", "size": VARIABLE, "base": base(&t.base)}),
        Datatype::Array(t) => array_to_json(t),
        Datatype::Complex(t) => {
            let part = |name| json!({"name": name, "type": base(&t.base)});
            json!({"class": "H5T_COMPOUND", "fields": [part("r"), part("i")]})
        }
        Datatype::Time(t) => opaque(t.size, ""),
    }
}

fn opaque(size: u32, tag: &str) -> Value {
    match tag {
        "" => json!({"class": "H5T_OPAQUE", "size": size}),
        tag => json!({"class": "H5T_OPAQUE", "size": size, "tag": tag}),
    }
}

fn order_suffix(order: ByteOrder) -> &'static str {
    if order == ByteOrder::Big { "BE" } else { "LE" }
}

/// The name of an integer that uses all of its bits, and its type.
fn standard_integer(size: u32, order: ByteOrder, sign: Sign) -> Option<(String, Datatype)> {
    let is_named = matches!(size, 1 | 2 | 4 | 8) && order != ByteOrder::Vax;
    let letter = if sign == Sign::Signed { 'I' } else { 'U' };
    let name = || format!("H5T_STD_{letter}{}{}", size * 8, order_suffix(order));
    is_named.then(|| (name(), Datatype::integer(size, order, sign)))
}

fn string_to_json(length: Value, padding: StringPadding, character_set: CharacterSet) -> Value {
    let padding = match padding {
        StringPadding::NullTerminated => "H5T_STR_NULLTERM",
        StringPadding::SpacePadded => "H5T_STR_SPACEPAD",
        _ => "H5T_STR_NULLPAD",
    };
    let set = if character_set == CharacterSet::Ascii { "H5T_CSET_ASCII" } else { "H5T_CSET_UTF8" };
    json!({"class": "H5T_STRING", "length": length, "charSet": set, "strPad": padding})
}

/// An array as h5json takes it, by which HSDS and its clients read types: it has no arrays of arrays, of enumerations and of
/// opaque types. Arrays in arrays are shown as one with the dimensions of all, the second as their integers, and the third
/// as one opaque element.
fn array_to_json(t: &ArrayType) -> Value {
    let (mut dims, mut base) = (t.dims.clone(), &*t.base);
    while let Datatype::Array(inner) = base
        && dims.len() + inner.dims.len() <= MAX_RANK
    {
        dims.extend_from_slice(&inner.dims);
        base = &inner.base;
    }
    let shown = match base {
        Datatype::Enum(of) => nearest_datatype_to_json(&of.base),
        other => nearest_datatype_to_json(other),
    };
    let elements = dims.iter().try_fold(1u32, |n, dim| n.checked_mul(*dim));
    match elements.and_then(|elements| elements.checked_mul(base.size())) {
        Some(size) if shown.get("class").and_then(Value::as_str) == Some("H5T_OPAQUE") => opaque(size, ""),
        _ => json!({"class": "H5T_ARRAY", "base": shown, "dims": dims}),
    }
}

fn enum_to_json(t: &EnumType) -> Value {
    let base = nearest_datatype_to_json(&t.base);
    let member = |member: &EnumMember| {
        let value = integer_to_json(&t.base, &member.value)?;
        Some(json!({"name": member.name.to_string(), "value": value}))
    };
    let members: Option<Vec<Value>> = t.members.iter().map(member).collect();
    match members {
        Some(members) if base.get("class").and_then(Value::as_str) == Some("H5T_INTEGER") => {
            json!({"class": "H5T_ENUM", "base": base, "members": members})
        }
        _ => opaque(t.base.size(), ""),
    }
}

/// The number that the bytes of an integer are; `None` if it has no JSON.
pub fn integer_to_json(datatype: &Datatype, bytes: &[u8]) -> Option<Value> {
    let (order, sign) = match datatype {
        Datatype::Integer(t) => (t.order, t.sign),
        Datatype::Bitfield(t) => (t.order, Sign::Unsigned),
        _ => return None,
    };
    let fold = |number: u64, byte: &u8| (number << 8) | u64::from(*byte);
    let number = match order {
        ByteOrder::Big => bytes.iter().fold(0, fold),
        _ => bytes.iter().rev().fold(0, fold),
    };
    let unused = 64u32.checked_sub(8 * u32::try_from(bytes.len()).ok()?).filter(|unused| *unused < 64)?;
    Some(match sign {
        Sign::Signed => json!(((number << unused) as i64) >> unused),
        Sign::Unsigned => json!(number),
    })
}

/// The bytes of an integer; `None` if the JSON is no integer, or one that has no room.
pub fn integer_from_json(datatype: &Datatype, value: &Value) -> Option<Vec<u8>> {
    let (size, order, sign) = match datatype {
        Datatype::Integer(t) => (t.size, t.order, t.sign),
        Datatype::Bitfield(t) => (t.size, t.order, Sign::Unsigned),
        _ => return None,
    };
    let value = value.as_bool().map_or_else(|| value.clone(), |truth| json!(u8::from(truth)));
    let bits = size.checked_mul(8).filter(|bits| (1..=64).contains(bits))?;
    let number = match sign {
        Sign::Signed => {
            let number = value.as_i64()?;
            ((number << (64 - bits)) >> (64 - bits) == number).then_some(number as u64)?
        }
        Sign::Unsigned => value.as_u64().filter(|number| bits == 64 || number >> bits == 0)?,
    };
    let mut bytes = number.to_le_bytes().get(..size as usize)?.to_vec();
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    Some(bytes)
}

/// The datatype that a JSON describes; compounds are packed. The name of a type stands for the type.
///
/// # Errors
/// [`LayoutError::MissingOrInvalidMember`], [`LayoutError::ValueIsNot`], [`LayoutError::DatatypeDeeperThan`].
pub fn datatype_from_json(json: &Value) -> Result<Datatype> {
    at_depth(json, 0)
}

fn at_depth(json: &Value, depth: usize) -> Result<Datatype> {
    const NO_TYPE: LayoutError = LayoutError::MissingOrInvalidMember { member: "type", expected: "a datatype" };
    if depth > MAX_DEPTH {
        return Err(LayoutError::DatatypeDeeperThan(MAX_DEPTH));
    }
    let members = match json {
        Value::String(name) => return named(name),
        Value::Object(members) => members,
        _ => return Err(NO_TYPE),
    };
    let base = |member: &'static str| {
        at_depth(
            members.get(member).ok_or(LayoutError::MissingOrInvalidMember { member, expected: "a datatype" })?,
            depth + 1,
        )
    };
    let found = match members.get("class").and_then(Value::as_str).ok_or(NO_TYPE)? {
        "H5T_INTEGER" | "H5T_FLOAT" | "H5T_BITFIELD" => base("base")?,
        "H5T_STRING" => string_from_json(members)?,
        "H5T_VLEN" => {
            let base = Box::new(base("base")?);
            Datatype::VarLen(VarLenType { kind: VarLenKind::Sequence, size: MODEL_VLEN_AND_REFERENCE_SIZES.vlen, base })
        }
        "H5T_OPAQUE" => Datatype::Opaque(OpaqueType {
            size: size_of(members, "size")?,
            tag: members.get("tag").and_then(Value::as_str).unwrap_or_default().into(),
        }),
        "H5T_ARRAY" => Datatype::Array(ArrayType { dims: array_dims(members)?, base: Box::new(base("base")?) }),
        "H5T_COMPOUND" => compound_from_json(members, depth)?,
        "H5T_ENUM" => enum_from_json(members, base("base")?)?,
        "H5T_REFERENCE" => match members.get("base").and_then(Value::as_str) {
            Some("H5T_STD_REF_OBJ") => reference(ReferenceKind::Object1),
            Some("H5T_STD_REF_DSETREG") => reference(ReferenceKind::Region1),
            _ => return Err(LayoutError::ValueIsNot("a kind of reference")),
        },
        _ => return Err(NO_TYPE),
    };
    Ok(found)
}

fn reference(kind: ReferenceKind) -> Datatype {
    Datatype::Reference(ReferenceType { kind, size: MODEL_VLEN_AND_REFERENCE_SIZES.reference_size(kind) })
}

/// The type that has a name: `H5T_STD_I32LE`, `H5T_IEEE_F64BE`.
fn named(name: &str) -> Result<Datatype> {
    const UNKNOWN: LayoutError = LayoutError::ValueIsNot("the name of a datatype");
    let (bare, order) = match (name.strip_suffix("LE"), name.strip_suffix("BE")) {
        (Some(bare), _) => (bare, ByteOrder::Little),
        (_, Some(bare)) => (bare, ByteOrder::Big),
        _ => (name, ByteOrder::Little),
    };
    let bits = |digits: &str| digits.parse::<u32>().ok().filter(|bits| matches!(bits, 8 | 16 | 32 | 64));
    let integer = |digits, sign| bits(digits).map(|bits| Datatype::integer(bits / 8, order, sign));
    let found = if let Some(digits) = bare.strip_prefix("H5T_STD_I") {
        integer(digits, Sign::Signed)
    } else if let Some(digits) = bare.strip_prefix("H5T_STD_U").or(bare.strip_prefix("H5T_STD_B")) {
        integer(digits, Sign::Unsigned)
    } else {
        bare.strip_prefix("H5T_IEEE_F").and_then(bits).and_then(|bits| Datatype::float(bits / 8, order))
    };
    found.ok_or(UNKNOWN)
}

fn size_of(members: &Members, member: &'static str) -> Result<u32> {
    let size = members.get(member).and_then(Value::as_u64);
    let size = size.filter(|size| (1..MAX_ELEMENT_BYTES).contains(size));
    size.and_then(|size| u32::try_from(size).ok())
        .ok_or(LayoutError::MissingOrInvalidMember { member, expected: "a number of bytes" })
}

fn string_from_json(members: &Members) -> Result<Datatype> {
    let padding = match members.get("strPad").and_then(Value::as_str) {
        Some("H5T_STR_NULLTERM") => StringPadding::NullTerminated,
        Some("H5T_STR_SPACEPAD") => StringPadding::SpacePadded,
        _ => StringPadding::NullPadded,
    };
    let character_set = match members.get("charSet").and_then(Value::as_str) {
        Some("H5T_CSET_UTF8") => CharacterSet::Utf8,
        _ => CharacterSet::Ascii,
    };
    if members.get("length").and_then(Value::as_str) == Some(VARIABLE) {
        // As libhdf5 has it.
        let base = Box::new(Datatype::default());
        let kind = VarLenKind::String { padding, character_set };
        return Ok(Datatype::VarLen(VarLenType { kind, size: MODEL_VLEN_AND_REFERENCE_SIZES.vlen, base }));
    }
    Ok(Datatype::String(FixedStringType { size: size_of(members, "length")?, padding, character_set }))
}

fn array_dims(members: &Members) -> Result<Vec<u32>> {
    const BAD: LayoutError =
        LayoutError::MissingOrInvalidMember { member: "dims", expected: "the dimensions of an array" };
    let dim = |value: &Value| value.as_u64().and_then(|dim| u32::try_from(dim).ok()).filter(|dim| *dim > 0).ok_or(BAD);
    match members.get("dims") {
        Some(Value::Array(list)) if (1..=MAX_RANK).contains(&list.len()) => list.iter().map(dim).collect(),
        Some(number) => Ok(vec![dim(number)?]),
        None => Err(BAD),
    }
}

fn compound_from_json(members: &Members, depth: usize) -> Result<Datatype> {
    const BAD: LayoutError = LayoutError::MissingOrInvalidMember { member: "fields", expected: "a list of fields" };
    let fields = members.get("fields").and_then(Value::as_array).filter(|fields| !fields.is_empty()).ok_or(BAD)?;
    let (mut size, mut found) = (0u32, Vec::new());
    for field in fields {
        let name = field.get("name").and_then(Value::as_str).ok_or(BAD)?;
        let datatype = at_depth(field.get("type").ok_or(BAD)?, depth + 1)?;
        let end = size.checked_add(datatype.size()).filter(|end| u64::from(*end) < MAX_ELEMENT_BYTES);
        found.push(CompoundMember { name: name.into(), offset: size, datatype });
        size = end.ok_or(LayoutError::ValueIsNot("an element of less than 2 GiB"))?;
    }
    Ok(Datatype::Compound(CompoundType { size, members: found }))
}

fn enum_from_json(members: &Members, base: Datatype) -> Result<Datatype> {
    const BAD: LayoutError =
        LayoutError::MissingOrInvalidMember { member: "members", expected: "the members of an enumeration" };
    let named: Vec<(&str, &Value)> = match members.get("members").or(members.get("mapping")) {
        Some(Value::Array(list)) => {
            let entries = list.iter().map(|entry| Some((entry.get("name")?.as_str()?, entry.get("value")?)));
            entries.collect::<Option<_>>().ok_or(BAD)?
        }
        Some(Value::Object(map)) => map.iter().map(|(name, value)| (name.as_str(), value)).collect(),
        _ => return Err(BAD),
    };
    let member = |(name, value): (&str, &Value)| {
        let value = integer_from_json(&base, value).ok_or(BAD)?;
        Ok(EnumMember { name: name.into(), value })
    };
    let found = named.into_iter().map(member).collect::<Result<_>>()?;
    Ok(Datatype::Enum(EnumType { base: Box::new(base), members: found }))
}

/// The exact datatype as text: the datatype message of the file format in base 64.
///
/// # Errors
/// [`LayoutError::Encode`].
pub fn datatype_to_base64(datatype: &Datatype) -> Result<String> {
    let message = DatatypeMessage { min_composite_version: 3, datatype: datatype.clone() };
    Ok(BASE64.encode(encode(&message, Widths::default())?))
}

/// The datatype that a text of [`datatype_to_base64`] is.
///
/// # Errors
/// [`LayoutError::Decode`], [`LayoutError::ValueIsNot`].
pub fn datatype_from_base64(text: &str) -> Result<Datatype> {
    let bytes = BASE64.decode(text).map_err(|_| LayoutError::ValueIsNot("a text in base 64"))?;
    Ok(decode::<DatatypeMessage>(&bytes, Widths::default())?.datatype)
}

#[cfg(test)]
mod tests {
    use h5live_model::{ComplexType, TimeType};

    use super::*;

    fn reread(datatype: &Datatype) -> Datatype {
        datatype_from_json(&nearest_datatype_to_json(datatype)).unwrap()
    }

    fn members(of: &[(&str, Datatype)]) -> Datatype {
        let (mut size, mut members) = (0, Vec::new());
        for (name, datatype) in of {
            members.push(CompoundMember { name: (*name).into(), offset: size, datatype: datatype.clone() });
            size += datatype.size();
        }
        Datatype::Compound(CompoundType { size, members })
    }

    fn sequence(base: Datatype) -> Datatype {
        Datatype::VarLen(VarLenType {
            kind: VarLenKind::Sequence,
            size: MODEL_VLEN_AND_REFERENCE_SIZES.vlen,
            base: Box::new(base),
        })
    }

    #[test]
    fn types_of_the_schema_come_back_from_their_json() {
        let i16 = Datatype::integer(2, ByteOrder::Big, Sign::Signed);
        let member = |name: &str, value: i16| EnumMember { name: name.into(), value: value.to_be_bytes().into() };
        let choice = EnumType { base: Box::new(i16.clone()), members: vec![member("A", -3), member("B", 7)] };
        let text = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: CharacterSet::Utf8 };
        let text = VarLenType { kind: text, size: 16, base: Box::new(Datatype::default()) };
        let types = [
            i16.clone(),
            Datatype::float(2, ByteOrder::Little).unwrap(),
            Datatype::float(8, ByteOrder::Big).unwrap(),
            Datatype::fixed_string(6, CharacterSet::Ascii),
            Datatype::Enum(choice),
            Datatype::VarLen(text.clone()),
            sequence(sequence(i16.clone())),
            Datatype::Opaque(OpaqueType { size: 5, tag: "tag".into() }),
            Datatype::Array(ArrayType { dims: vec![2, 3], base: Box::new(i16.clone()) }),
            members(&[("a", i16), ("b", Datatype::VarLen(text)), ("c", reference(ReferenceKind::Object1))]),
            reference(ReferenceKind::Region1),
        ];
        for datatype in types {
            assert_eq!(reread(&datatype), datatype);
            assert_eq!(datatype_from_base64(&datatype_to_base64(&datatype).unwrap()).unwrap(), datatype);
        }
    }

    #[test]
    fn types_that_the_schema_lacks_are_shown_as_others_of_their_size_and_kept_exactly() {
        let odd = h5live_model::IntegerType { size: 4, precision: 20, offset: 3, ..Default::default() };
        let base = Box::new(Datatype::float(4, ByteOrder::Little).unwrap());
        let types = [
            Datatype::Integer(odd),
            Datatype::Time(TimeType { size: 4, order: ByteOrder::Little, precision: 32 }),
            Datatype::Complex(ComplexType { base }),
        ];
        for datatype in types {
            assert_eq!(reread(&datatype).size(), datatype.size());
            assert_eq!(datatype_from_base64(&datatype_to_base64(&datatype).unwrap()).unwrap(), datatype);
        }
    }

    #[test]
    fn arrays_are_shown_as_h5json_takes_them() {
        let array = |dims: &[u32], base: &Datatype| {
            Datatype::Array(ArrayType { dims: dims.into(), base: Box::new(base.clone()) })
        };
        let i16 = Datatype::integer(2, ByteOrder::Big, Sign::Signed);
        assert_eq!(reread(&array(&[3], &array(&[2, 4], &i16))), array(&[3, 2, 4], &i16));
        let member = EnumMember { name: "A".into(), value: vec![0, 1] };
        let choice = Datatype::Enum(EnumType { base: Box::new(i16.clone()), members: vec![member] });
        assert_eq!(reread(&array(&[3], &choice)), array(&[3], &i16));
        let opaque = |size| Datatype::Opaque(OpaqueType { size, tag: "".into() });
        assert_eq!(reread(&array(&[3], &array(&[2], &opaque(5)))), opaque(30));
        let deep = (0..40).fold(i16, |base, _| array(&[1], &base));
        assert_eq!(reread(&deep).size(), 2);
    }

    #[test]
    fn short_forms_of_types_are_taken() {
        let i32 = Datatype::integer(4, ByteOrder::Little, Sign::Signed);
        let found =
            datatype_from_json(&json!({"class": "H5T_COMPOUND", "fields": [{"name": "a", "type": "H5T_STD_I32LE"}]}));
        assert_eq!(found.unwrap(), members(&[("a", i32)]));
        let mapping = json!({"class": "H5T_ENUM", "base": {"class": "H5T_INTEGER", "base": "H5T_STD_I8LE"}, "mapping": {"F": 0, "T": 1}});
        assert!(matches!(datatype_from_json(&mapping).unwrap(), Datatype::Enum(t) if t.members.len() == 2));
    }

    #[test]
    fn types_that_contradict_themselves_are_refused() {
        let mut deep = json!("H5T_STD_I8LE");
        for _ in 0..100 {
            deep = json!({"class": "H5T_VLEN", "base": deep});
        }
        for bad in [
            json!(null),
            json!("H5T_STD_I7LE"),
            json!({"class": "H5T_STRING", "length": 0}),
            json!({"class": "H5T_OPAQUE", "size": -1}),
            json!({"class": "H5T_COMPOUND", "fields": []}),
            json!({"class": "H5T_ARRAY", "base": "H5T_STD_I8LE", "dims": [0]}),
            json!({"class": "H5T_ENUM", "base": "H5T_STD_I8LE", "members": [{"name": "x", "value": 300}]}),
            deep,
        ] {
            assert!(datatype_from_json(&bad).is_err(), "{bad}");
        }
    }
}
