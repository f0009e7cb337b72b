use h5live_model::{
    CharacterSet, FixedStringType, FloatType, IntegerType, OpaqueType, ReferenceType, Sign, StringPadding, TimeType,
    VarLenKind,
};

use super::*;
use crate::{Widths, decode, describe, encode};

fn int(size: u32) -> Datatype {
    Datatype::integer(size, ByteOrder::Little, Sign::Signed)
}

fn member(name: &str, offset: u32, datatype: Datatype) -> CompoundMember {
    CompoundMember { name: name.into(), offset, datatype }
}

fn compound(members: Vec<CompoundMember>) -> Datatype {
    let size = members.iter().map(|m| m.offset + m.datatype.size()).max().unwrap_or(0);
    Datatype::Compound(CompoundType { size, members })
}

fn array(dims: &[u32], base: Datatype) -> Datatype {
    Datatype::Array(ArrayType { dims: dims.to_vec(), base: Box::new(base) })
}

fn var_len(kind: VarLenKind, base: Datatype) -> Datatype {
    Datatype::VarLen(VarLenType { kind, size: 16, base: Box::new(base) })
}

fn vax() -> Datatype {
    let Some(Datatype::Float(float)) = Datatype::float(4, ByteOrder::Vax) else { panic!() };
    Datatype::Float(FloatType { exponent_bias: 129, ..float })
}

fn enumeration() -> Datatype {
    let members = [("RED", 0u8), ("GREEN", 1), ("a long name", 2)]
        .map(|(name, value)| EnumMember { name: name.into(), value: vec![value, 0] });
    Datatype::Enum(EnumType { base: Box::new(int(2)), members: members.to_vec() })
}

fn samples() -> Vec<Datatype> {
    let string = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: CharacterSet::Utf8 };
    let double = Datatype::float(8, ByteOrder::Big).unwrap();
    let mut samples = vec![
        int(8),
        Datatype::Integer(IntegerType {
            size: 4,
            offset: 3,
            precision: 17,
            order: ByteOrder::Big,
            ..Default::default()
        }),
        double.clone(),
        vax(),
        Datatype::Time(TimeType { size: 4, precision: 32, order: ByteOrder::Little }),
        Datatype::fixed_string(13, CharacterSet::Ascii),
        Datatype::String(FixedStringType {
            size: 1,
            padding: StringPadding::Reserved(9),
            character_set: CharacterSet::Reserved(3),
        }),
        Datatype::Opaque(OpaqueType { size: 7, tag: "a tag of some length".into() }),
        Datatype::Opaque(OpaqueType { size: 7, tag: Name::default() }),
        enumeration(),
        var_len(VarLenKind::Sequence, int(4)),
        var_len(string, Datatype::integer(1, ByteOrder::Little, Sign::Unsigned)),
        array(&[3, 4], double.clone()),
        Datatype::Complex(ComplexType { base: Box::new(double.clone()) }),
        compound(vec![member("x", 0, int(4)), member("a longer name", 8, double)]),
    ];
    for kind in [
        ReferenceKind::Object1,
        ReferenceKind::Region1,
        ReferenceKind::Object2,
        ReferenceKind::Region2,
        ReferenceKind::Attribute,
    ] {
        samples.push(Datatype::Reference(ReferenceType { kind, size: 18 }));
    }
    let all = samples.iter().scan(0, |at, t| {
        let m = member(&format!("m{at}"), *at, t.clone());
        *at += t.size();
        Some(m)
    });
    samples.push(compound(all.collect()));
    samples.push(var_len(VarLenKind::Sequence, array(&[2], compound(vec![member("e", 0, enumeration())]))));
    samples
}

#[test]
fn comes_back_from_bytes_in_every_version() {
    for datatype in samples() {
        for profile in LibVer::ALL {
            let message = DatatypeMessage::new(profile, datatype.clone());
            let bytes = encode(&message, Widths::default()).unwrap();
            let decoded = decode::<DatatypeMessage>(&bytes, Widths::default()).unwrap();
            assert_eq!(decoded.datatype, datatype);
            assert_eq!(encode(&decoded, Widths::default()).unwrap(), bytes);
            let (fields, described) = describe(DatatypeMessage::default(), &bytes, Widths::default());
            assert_eq!(described, Ok(()));
            assert_eq!(fields.iter().map(|f| f.size).sum::<usize>(), bytes.len());
        }
    }
}

#[test]
fn only_composite_types_are_upgraded() {
    let version = |datatype: &Datatype, min_version| version_of(datatype, min_version);
    assert_eq!(version(&int(4), 5), 1);
    assert_eq!(version(&vax(), 1), 3);
    assert_eq!(version(&enumeration(), 4), 4);
    assert_eq!(version(&array(&[2], int(4)), 1), 2);
    assert_eq!(version(&compound(vec![member("a", 0, array(&[2], int(4)))]), 1), 2);
    assert_eq!(version(&var_len(VarLenKind::Sequence, int(4)), 5), 1);
    assert_eq!(version(&var_len(VarLenKind::Sequence, enumeration()), 3), 3);
}

#[test]
fn members_of_version_1_may_be_arrays() {
    let datatype = compound(vec![member("pt", 0, int(4))]);
    let mut bytes = encode(&DatatypeMessage { min_composite_version: 1, datatype }, Widths::default()).unwrap();
    bytes[4] = 24;
    bytes[20] = 2;
    bytes[32] = 2;
    bytes[36] = 3;
    let decoded = decode::<DatatypeMessage>(&bytes, Widths::default()).unwrap();
    assert_eq!(decoded.datatype, compound(vec![member("pt", 0, array(&[2, 3], int(4)))]));
}

#[test]
fn refuses_types_nested_too_deep() {
    let mut bytes = Vec::new();
    for _ in 0..1000 {
        bytes.extend_from_slice(&[0x19, 0, 0, 0, 16, 0, 0, 0]);
    }
    let error = decode::<DatatypeMessage>(&bytes, Widths::default()).unwrap_err();
    assert_eq!(error.fault, Fault::DeeperThan(MAX_DEPTH));
}

#[test]
fn refuses_members_that_overlap_or_stick_out_or_share_a_name() {
    let sound = compound(vec![member("a", 0, int(4)), member("b", 4, int(4))]);
    let Datatype::Compound(sound) = sound else { panic!() };
    for (name, offset) in [("b", 3), ("b", 5), ("a", 4)] {
        let mut broken = sound.clone();
        broken.members[1] = member(name, offset, int(4));
        let message = DatatypeMessage { min_composite_version: 3, datatype: Datatype::Compound(broken) };
        assert!(encode(&message, Widths::default()).is_err(), "{name} at {offset}");
    }
}

#[test]
fn refuses_floats_whose_parts_overlap() {
    let Some(Datatype::Float(float)) = Datatype::float(4, ByteOrder::Little) else { panic!() };
    let broken = FloatType { exponent_position: 22, ..float };
    assert!(
        encode(&DatatypeMessage { min_composite_version: 1, datatype: Datatype::Float(broken) }, Widths::default())
            .is_err()
    );
}
