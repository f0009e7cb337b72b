use h5live_model::{
    ArrayType, BitfieldType, ByteOrder, ComplexType, CompoundMember, CompoundType, Datatype, EnumMember, EnumType,
    FixedStringType, FloatType, IntegerType, OpaqueType, Sign, StringPadding, VarLenKind, VarLenType,
};

use super::*;
use crate::File;

fn value(datatype: &Datatype, bytes: &[u8]) -> Value {
    Value::decode(datatype, bytes, None).unwrap()
}

fn float(size: u32, order: ByteOrder) -> Datatype {
    Datatype::float(size, order).unwrap()
}

fn int(size: u32, order: ByteOrder) -> Datatype {
    Datatype::integer(size, order, Sign::Signed)
}

#[test]
fn numbers_have_the_digits_that_they_need() {
    assert_eq!(value(&int(2, ByteOrder::Big), &[0xFF, 0xFE]).to_string(), "-2");
    assert_eq!(value(&float(4, ByteOrder::Little), &0.1f32.to_le_bytes()).to_string(), "0.1");
    assert_eq!(value(&float(8, ByteOrder::Big), &1e300f64.to_be_bytes()).to_string(), "1e300");
    assert_eq!(value(&float(2, ByteOrder::Big), &0x3555u16.to_be_bytes()), Value::Float32(0.333_251_95));
}

#[test]
fn extended_floats_have_a_stored_leading_bit() {
    let extended = Datatype::Float(FloatType {
        size: 16,
        precision: 80,
        normalization: h5live_model::Normalization::MsbSet,
        sign_position: 79,
        exponent_position: 64,
        exponent_size: 15,
        mantissa_size: 64,
        exponent_bias: 16383,
        ..Default::default()
    });
    let mut bytes = 0xC000_0000_0000_0000u64.to_le_bytes().to_vec();
    bytes.extend(0xBFFFu16.to_le_bytes());
    bytes.resize(16, 0);
    assert_eq!(value(&extended, &bytes), Value::Float64(-1.5));
}

#[test]
fn bits_are_taken_from_where_they_are() {
    let bits = BitfieldType { size: 2, order: ByteOrder::Big, offset: 4, precision: 5, ..Default::default() };
    assert_eq!(value(&Datatype::Bitfield(bits), &[0x01, 0x5F]), Value::Integer(0b10101));
    let wide = IntegerType { size: 16, precision: 128, ..Default::default() };
    assert_eq!(value(&Datatype::Integer(wide), &[0xFF; 16]), Value::Integer(i128::MAX));
}

#[test]
fn compounds_arrays_and_complex_numbers_are_made_of_values() {
    let complex = Datatype::Complex(ComplexType { base: Box::new(float(4, ByteOrder::Little)) });
    let array = Datatype::Array(ArrayType { dims: vec![2, 2], base: Box::new(int(1, ByteOrder::Little)) });
    let member = |name: &str, offset, datatype| CompoundMember { name: name.into(), offset, datatype };
    let opaque = Datatype::Opaque(OpaqueType { size: 2, tag: "raw".into() });
    let members = vec![member("z", 0, complex), member("m", 8, array), member("o", 12, opaque)];
    let compound = Datatype::Compound(CompoundType { size: 14, members });
    let bytes = [&1f32.to_le_bytes()[..], &(-0.5f32).to_le_bytes(), &[1, 2, 3, 255], &[0xAB, 1]].concat();
    let value = value(&compound, &bytes);
    assert_eq!(value.to_string(), "{z: 1.0-0.5i, m: [[1, 2], [3, -1]], o: 0xab01}");
    assert_eq!(value.member("o"), Some(&Value::Bytes(vec![0xAB, 1])));
    assert!(Value::decode_all(&compound, &bytes[..13], None).unwrap().is_empty());
}

#[test]
fn a_member_outside_its_compound_is_unreadable() {
    let member = CompoundMember { name: "far".into(), offset: 6, datatype: int(4, ByteOrder::Little) };
    let compound = Datatype::Compound(CompoundType { size: 8, members: vec![member] });
    assert_eq!(value(&compound, &[0; 8]).member("far"), Some(&Value::Unreadable));
}

#[test]
fn enums_are_names_or_truths_or_numbers() {
    let member = |name: &str, value| EnumMember { name: name.into(), value: vec![value] };
    let of = |members| Datatype::Enum(EnumType { base: Box::new(int(1, ByteOrder::Little)), members });
    let truth = of(vec![member("FALSE", 0), member("TRUE", 1)]);
    assert_eq!(value(&truth, &[1]), Value::Bool(true));
    let colour = of(vec![member("RED", 3)]);
    assert_eq!(value(&colour, &[3]).text(), Some("RED"));
    assert_eq!(value(&colour, &[4]), Value::Integer(4));
}

#[test]
fn strings_end_as_their_padding_says() {
    let string = |padding| Datatype::String(FixedStringType { size: 4, padding, ..Default::default() });
    assert_eq!(value(&string(StringPadding::NullTerminated), b"a\0b\0").text(), Some("a"));
    assert_eq!(value(&string(StringPadding::NullPadded), b"a\0b\0").text(), Some("a\0b"));
    assert_eq!(value(&string(StringPadding::SpacePadded), b"a b ").text(), Some("a b"));
}

#[test]
fn variable_length_values_come_from_the_heap() {
    let file = File::in_memory();
    let data = file.new_dataset::<Vec<String>>().shape(&[3]).create("data").unwrap();
    data.write_slice(0..2, &[vec!["a".to_owned(), "bc".to_owned()], vec![]]).unwrap();
    let text = |text: &str| Value::Text(text.into());
    let want = [Value::List(vec![text("a"), text("bc")]), Value::List(vec![]), Value::List(vec![])];
    assert_eq!(data.read_values(..).unwrap(), want);
    let stored = data.read_raw(0..1).unwrap();
    assert_eq!(Value::decode(&data.datatype().unwrap(), &stored, None).unwrap(), Value::Unreadable);
    data.set_attribute("names", &vec![1u8, 2]).unwrap();
    let list = Value::List(vec![Value::Integer(1), Value::Integer(2)]);
    assert_eq!(data.attribute("names").unwrap().values().unwrap(), [list]);
}

#[test]
fn references_lead_to_objects() {
    let file = File::in_memory();
    let group = file.create_group("a/b").unwrap();
    let reference = file.object("a/b").unwrap().reference().unwrap();
    let data = file.new_dataset::<Reference>().shape(&[2]).create("refs").unwrap();
    data.write_slice(1.., std::slice::from_ref(&reference)).unwrap();
    let read = data.read::<Reference>().unwrap();
    assert!(file.dereference(&read[0]).unwrap().is_none(), "null");
    assert_eq!(file.dereference(&read[1]).unwrap().unwrap().id(), group.id());
    assert_eq!(data.read_values(1..).unwrap(), [Value::Reference(reference)]);
    assert!(data.read::<u64>().is_err());
}

/// A heap in which every sequence is made of that one sequence.
#[test]
fn sequences_inside_themselves_end() {
    let file = File::in_memory();
    let store = file.store();
    let mut deep = Datatype::integer(1, ByteOrder::Little, Sign::Unsigned);
    for _ in 0..12 {
        deep = Datatype::VarLen(VarLenType { kind: VarLenKind::Sequence, size: 16, base: Box::new(deep) });
    }
    // The second object of the heap holds places of itself.
    let writer = file.writer().unwrap();
    let first = writer.put_blob(&[], 0).unwrap();
    let mut itself = 4096u32.to_le_bytes().to_vec();
    itself.extend(2u64.to_le_bytes());
    itself.extend([0; 4]);
    assert_eq!(first.len(), itself.len());
    let place = writer.put_blob(&itself.repeat(4096), 4096).unwrap();
    assert_eq!(place, itself);
    let (value, _) = DecodePlan::new(&deep).unwrap().value_with_budget(&place, Some(store), 1 << 20);
    assert!(matches!(value, Value::List(_)));
}

#[test]
fn arrays_of_nothing_have_no_values() {
    let none = Datatype::Array(ArrayType { dims: vec![0, 3], base: Box::default() });
    let pair = Datatype::Array(ArrayType { dims: vec![2], base: Box::new(none) });
    assert!(matches!(value(&pair, &[0, 0]), Value::List(_)));
    assert!(Value::decode_all(&pair, &[], None).unwrap().is_empty());
}
