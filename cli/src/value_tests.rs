use super::*;
use crate::model::{Array, Compound, Enum, EnumMember, FixedString, Member, Sign, VarLen};

struct OneObject(&'static [u8]);

impl Resolve for OneObject {
    fn heap(&self, _: &[u8]) -> Option<Vec<u8>> {
        Some(self.0.to_vec())
    }
}

fn shown(datatype: &Datatype, bytes: &[u8]) -> String {
    Value::decode(datatype, bytes, &NoHeap).to_string()
}

fn f(size: u32, order: ByteOrder) -> Datatype {
    Datatype::float(size, order).unwrap()
}

#[test]
fn numbers_are_shown_with_the_digits_that_they_need() {
    assert_eq!(shown(&Datatype::integer(2, ByteOrder::Big, Sign::Signed), &[0xFF, 0xFE]), "-2");
    assert_eq!(shown(&f(4, ByteOrder::Little), &0.1f32.to_le_bytes()), "0.1");
    assert_eq!(shown(&f(8, ByteOrder::Big), &1e300f64.to_be_bytes()), "1e300");
    assert_eq!(shown(&f(8, ByteOrder::Little), &f64::NAN.to_le_bytes()), "NaN");
}

#[test]
fn half_floats_are_decoded_field_by_field() {
    for (bits, value) in [
        (0x3C00u16, 1.0f32),
        (0xC000, -2.0),
        (0x3555, 0.333_251_95),
        (0x7BFF, 65504.0),
        (0x0001, 5.960_464_5e-8),
        (0x0000, 0.0),
        (0x7C00, f32::INFINITY),
        (0xFC00, f32::NEG_INFINITY),
    ] {
        let decoded = Value::decode(&f(2, ByteOrder::Little), &bits.to_le_bytes(), &NoHeap);
        assert_eq!(decoded, Value::Single(value), "{bits:#06x}");
    }
    assert_eq!(shown(&f(2, ByteOrder::Big), &0x7E00u16.to_be_bytes()), "NaN");
}

#[test]
fn extended_floats_have_a_stored_leading_bit() {
    let extended = Float {
        size: 16,
        precision: 80,
        normalization: Normalization::None,
        sign_position: 79,
        exponent_position: 64,
        exponent_size: 15,
        mantissa_size: 64,
        exponent_bias: 16383,
        ..Default::default()
    };
    let stored = |sign_and_exponent: u16, mantissa: u64| {
        let mut bytes = mantissa.to_le_bytes().to_vec();
        bytes.extend(sign_and_exponent.to_le_bytes());
        bytes.resize(16, 0);
        Value::decode(&Datatype::Float(extended.clone()), &bytes, &NoHeap)
    };
    assert_eq!(stored(0x3FFF, 1 << 63), Value::Double(1.0));
    assert_eq!(stored(0xC000, 0xA000_0000_0000_0000), Value::Double(-2.5));
    assert_eq!(stored(0x7FFF, 1 << 63), Value::Double(f64::INFINITY));
    assert_eq!(stored(0, 0), Value::Double(0.0));
}

#[test]
fn strings_lose_their_padding() {
    let string = |padding, bytes: &[u8]| {
        let t = FixedString { size: bytes.len() as u32, padding, ..Default::default() };
        shown(&Datatype::String(t), bytes)
    };
    assert_eq!(string(StringPadding::NullTerminated, b"ab\0c"), "\"ab\"");
    assert_eq!(string(StringPadding::NullPadded, b"a\0b\0"), "\"a\\0b\"");
    assert_eq!(string(StringPadding::SpacePadded, b"a b  "), "\"a b\"");
    assert_eq!(string(StringPadding::NullTerminated, b"abc"), "\"abc\"");
}

#[test]
fn enumerations_are_shown_by_name_and_truth_values_as_such() {
    let member = |name: &str, value| EnumMember { name: name.into(), value: vec![value] };
    let base = || Box::new(Datatype::integer(1, ByteOrder::Little, Sign::Signed));
    let t = Datatype::Enum(Enum { base: base(), members: vec![member("RED", 0), member("BLUE", 2)] });
    assert_eq!(shown(&t, &[2]), "\"BLUE\"");
    assert_eq!(shown(&t, &[0xFF]), "-1");
    let t = Datatype::Enum(Enum { base: base(), members: vec![member("FALSE", 0), member("TRUE", 1)] });
    assert_eq!(Value::decode(&t, &[1], &NoHeap), Value::Truth(true));
}

#[test]
fn compounds_and_lists_nest() {
    let member = |name: &str, offset, datatype| Member { name: name.into(), offset, datatype };
    let pair = Array { dims: vec![2], base: Box::new(Datatype::default()) };
    let members = vec![member("a", 1, Datatype::Array(pair)), member("out", 9, Datatype::default())];
    let t = Datatype::Compound(Compound { size: 3, members });
    let value = Value::decode(&t, &[0, 7, 8], &NoHeap);
    assert_eq!(value.to_string(), "{a: [7, 8], out: ?}");
    assert_eq!(value.json().to_string(), r#"{"a":[7,8],"out":null}"#);
}

#[test]
fn variable_length_data_comes_from_the_heap() {
    let t = Datatype::VarLen(VarLen { kind: VarLenKind::Sequence, size: 16, base: Box::default() });
    assert_eq!(Value::decode(&t, &[0; 16], &OneObject(&[1, 2])).to_string(), "[1, 2]");
    assert_eq!(shown(&t, &[0; 16]), "?");
    let kind = VarLenKind::String { padding: Default::default(), character_set: Default::default() };
    let t = Datatype::VarLen(VarLen { kind, size: 16, base: Box::default() });
    assert_eq!(Value::decode(&t, &[0; 16], &OneObject(b"ab\0")).to_string(), "\"ab\"");
}

#[test]
fn json_has_no_room_for_infinity_and_keeps_large_integers_as_text() {
    assert_eq!(Value::Double(f64::INFINITY).json(), serde_json::Value::Null);
    assert_eq!(Value::Integer(i128::from(u64::MAX)).json().to_string(), "18446744073709551615");
    assert_eq!(Value::Integer(1 << 70).json().to_string(), "\"1180591620717411303424\"");
    assert_eq!(Value::Single(0.1).json().to_string(), "0.1");
    assert_eq!(Value::Bytes(vec![0xAB, 1]).json().to_string(), "\"ab01\"");
}
