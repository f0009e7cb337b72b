use h5live_model::memory::MemoryStore;
use h5live_model::{ArrayType, ByteOrder, ComplexType, CompoundMember, EnumMember, FixedStringType, Sign};

use super::*;

fn converted(from: &Datatype, to: &Datatype, bytes: &[u8]) -> Vec<u8> {
    let plan = ElementPlan::new(from, to).unwrap();
    let mut out = vec![0x55; bytes.len() / plan.input_size() * plan.output_size()];
    plan.convert_elements(
        bytes,
        &mut out,
        ConversionContext::new(&MemoryStore::new()).with_conversion(ConversionPolicy::Lossy),
    )
    .unwrap();
    out
}

fn int(size: u32, order: ByteOrder) -> Datatype {
    Datatype::integer(size, order, Sign::Signed)
}

fn text(size: u32, padding: StringPadding) -> Datatype {
    Datatype::String(FixedStringType { size, padding, ..Default::default() })
}

fn compound(size: u32, members: &[(&str, u32, Datatype)]) -> Datatype {
    let member = |(name, offset, datatype): &(&str, u32, Datatype)| CompoundMember {
        name: (*name).into(),
        offset: *offset,
        datatype: datatype.clone(),
    };
    Datatype::Compound(CompoundType { size, members: members.iter().map(member).collect() })
}

#[test]
fn members_go_by_name_and_the_others_are_zero() {
    let from = compound(
        7,
        &[("a", 0, int(2, ByteOrder::Big)), ("b", 2, int(1, ByteOrder::Little)), ("c", 3, int(4, ByteOrder::Little))],
    );
    let to = compound(
        8,
        &[
            ("c", 0, int(2, ByteOrder::Little)),
            ("none", 2, int(2, ByteOrder::Little)),
            ("a", 4, int(4, ByteOrder::Little)),
        ],
    );
    let elements = [0xff, 0xfe, 7, 0, 0, 1, 0, 0, 9, 1, 5, 0, 0, 0];
    let want = [0xff, 0x7f, 0, 0, 0xfe, 0xff, 0xff, 0xff, 5, 0, 0, 0, 9, 0, 0, 0];
    assert_eq!(converted(&from, &to, &elements), want);
}

#[test]
fn enums_go_by_name_and_unknown_values_become_all_ones() {
    let member = |name: &str, value: &[u8]| EnumMember { name: name.into(), value: value.into() };
    let from =
        EnumType { base: Box::new(int(1, ByteOrder::Little)), members: vec![member("A", &[3]), member("B", &[4])] };
    let to = EnumType {
        base: Box::new(int(2, ByteOrder::Big)),
        members: vec![member("C", &[0, 1]), member("B", &[0, 2]), member("A", &[0, 3])],
    };
    let (from, to) = (Datatype::Enum(from), Datatype::Enum(to));
    assert_eq!(converted(&from, &to, &[3, 4, 5]), [0, 3, 0, 2, 0xff, 0xff]);
    assert!(matches!(ElementPlan::new(&to, &from), Err(ConvertError::NoEnumName(_))));
}

/// As H5Tconvert of HDF5 2.0 does it.
#[test]
fn strings_are_cut_and_padded() {
    use StringPadding::{NullPadded, NullTerminated, SpacePadded};
    let of = |from, size, to, bytes: &[u8]| converted(&text(bytes.len() as u32, from), &text(size, to), bytes);
    assert_eq!(of(NullPadded, 3, NullTerminated, b"abcd"), *b"ab\0");
    assert_eq!(of(NullPadded, 6, SpacePadded, b"ab\0d"), *b"ab    ");
    assert_eq!(of(SpacePadded, 6, NullPadded, b"a b  "), *b"a b\0\0\0");
    assert_eq!(of(NullTerminated, 4, NullPadded, b"abcdef"), *b"abcd");
}

#[test]
fn bits_are_copied_and_the_highest_are_cut_off() {
    let bits = |size, order, offset, precision| {
        Datatype::Bitfield(BitfieldType { size, order, offset, precision, ..Default::default() })
    };
    let wide = bits(2, ByteOrder::Big, 0, 16);
    let narrow = bits(1, ByteOrder::Little, 1, 4);
    assert_eq!(converted(&wide, &narrow, &[0xab, 0xcd]), [0x1a]);
    assert_eq!(converted(&narrow, &wide, &[0x1a]), [0, 0xd]);
}

#[test]
fn complex_numbers_are_two_of_their_parts() {
    let single = Datatype::float(4, ByteOrder::Little).unwrap();
    let double = Datatype::float(8, ByteOrder::Little).unwrap();
    let complex = Datatype::Complex(ComplexType { base: Box::new(single.clone()) });
    let bytes = [1.5f32.to_le_bytes(), (-2f32).to_le_bytes()].concat();
    let want = [1.5f64.to_le_bytes(), (-2f64).to_le_bytes()].concat();
    let pair = Datatype::Array(ArrayType { dims: vec![2], base: Box::new(double.clone()) });
    assert_eq!(converted(&complex, &pair, &bytes), want);
    assert_eq!(converted(&complex, &compound(16, &[("r", 0, double.clone()), ("i", 8, double.clone())]), &bytes), want);
    assert_eq!(converted(&complex, &double, &bytes), 1.5f64.to_le_bytes());
    assert_eq!(converted(&double, &complex, &1.5f64.to_le_bytes()), [1.5f32.to_le_bytes(), [0; 4]].concat());
}

#[test]
fn refuses_what_libhdf5_refuses() {
    let number = int(4, ByteOrder::Little);
    let string = text(4, StringPadding::NullPadded);
    assert!(matches!(ElementPlan::new(&number, &string), Err(ConvertError::Class { .. })));
    let array = |n| Datatype::Array(ArrayType { dims: vec![n], base: Box::new(number.clone()) });
    assert!(matches!(ElementPlan::new(&array(2), &array(3)), Err(ConvertError::ArrayLength { .. })));
}
