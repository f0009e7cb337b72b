use super::*;
use crate::{
    ArrayType, BitfieldType, ComplexType, CompoundMember, EnumMember, FixedStringType, OpaqueType, ReferenceType,
    TimeType, VarLenType,
};

fn i(size: u32) -> Datatype {
    Datatype::integer(size, ByteOrder::Little, Sign::Signed)
}

#[test]
fn integers_name_sign_bits_and_order() {
    assert_eq!(type_text(&i(1)), "i8");
    assert_eq!(type_text(&i(8)), "i64le");
    assert_eq!(type_text(&Datatype::integer(4, ByteOrder::Big, Sign::Unsigned)), "u32be");
    assert_eq!(type_text(&i(3)), "i24le");
}

#[test]
fn integers_with_unused_bits_say_which() {
    let t = IntegerType {
        size: 4,
        precision: 20,
        offset: 3,
        sign: Sign::Signed,
        high_padding: Padding::One,
        ..Default::default()
    };
    assert_eq!(type_text(&Datatype::Integer(t)), "i32le(prec=20,off=3,pad=zero/one)");
    let t = BitfieldType { size: 2, precision: 16, order: ByteOrder::Big, ..Default::default() };
    assert_eq!(type_text(&Datatype::Bitfield(t)), "bitfield16be");
}

#[test]
fn floats_of_the_standard_are_short_and_all_others_are_spelled_out() {
    assert_eq!(type_text(&Datatype::float(2, ByteOrder::Little).unwrap()), "f16le");
    assert_eq!(type_text(&Datatype::float(8, ByteOrder::Big).unwrap()), "f64be");
    let extended = FloatType {
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
    assert_eq!(
        type_text(&Datatype::Float(extended)),
        "float(size=16,order=le,prec=80,off=0,sign=79,exp=64+15,mant=0+64,bias=16383,norm=none,pad=zero/zero/zero)"
    );
    let vax = match Datatype::float(4, ByteOrder::Vax).unwrap() {
        Datatype::Float(t) => Datatype::Float(t),
        _ => unreachable!(),
    };
    assert!(type_text(&vax).starts_with("float(size=4,order=vax,"));
    let byte = FloatType {
        size: 1,
        precision: 8,
        sign_position: 7,
        exponent_position: 3,
        exponent_size: 4,
        mantissa_size: 3,
        exponent_bias: 7,
        ..Default::default()
    };
    assert!(type_text(&Datatype::Float(byte)).starts_with("float(size=1,order=-,prec=8,off=0,sign=7,exp=3+4,"));
}

#[test]
fn strings_say_padding_and_character_set() {
    let t = FixedStringType { size: 10, padding: StringPadding::NullTerminated, character_set: CharacterSet::Utf8 };
    assert_eq!(type_text(&Datatype::String(t)), "str(10,nullterm,utf8)");
    let kind = VarLenKind::String { padding: StringPadding::SpacePadded, character_set: CharacterSet::Ascii };
    assert_eq!(
        type_text(&Datatype::VarLen(VarLenType { kind, size: 16, base: Box::default() })),
        "vstr(spacepad,ascii)"
    );
    let t = FixedStringType { size: 1, padding: StringPadding::Reserved(9), character_set: CharacterSet::Reserved(3) };
    assert_eq!(type_text(&Datatype::String(t)), "str(1,pad9,cset3)");
}

#[test]
fn compounds_list_members_by_offset() {
    let members = vec![
        CompoundMember { name: "b".into(), offset: 8, datatype: Datatype::float(8, ByteOrder::Little).unwrap() },
        CompoundMember { name: "a\n".into(), offset: 0, datatype: i(4) },
    ];
    let t = Datatype::Compound(CompoundType { size: 16, members });
    assert_eq!(type_text(&t), "compound(16){a\\n@0:i32le,b@8:f64le}");
}

#[test]
fn enums_list_members_by_value_then_name() {
    let member = |name: &str, value: i16| EnumMember { name: name.into(), value: value.to_be_bytes().into() };
    let t = EnumType {
        base: Box::new(Datatype::integer(2, ByteOrder::Big, Sign::Signed)),
        members: vec![member("Z", 1), member("B", -300), member("A", 1)],
    };
    assert_eq!(type_text(&Datatype::Enum(t)), "enum<i16be>{B=-300,A=1,Z=1}");
}

#[test]
fn integers_are_cut_out_of_their_bytes() {
    let t = IntegerType { size: 2, precision: 5, offset: 3, sign: Sign::Signed, ..Default::default() };
    assert_eq!(integer(&t, &[0b1111_1000, 0xFF]), -1);
    assert_eq!(integer(&t, &[0b0111_1111, 0]), 15);
    let t = IntegerType { size: 4, precision: 32, order: ByteOrder::Vax, ..Default::default() };
    assert_eq!(integer(&t, &[2, 1, 4, 3]), 0x0102_0304);
    let t = IntegerType { size: 16, precision: 128, sign: Sign::Signed, ..Default::default() };
    assert_eq!(integer(&t, &[0xFF; 16]), -1);
    assert_eq!(integer(&IntegerType { precision: 8, ..t }, &[]), 0);
}

#[test]
fn derived_types_name_their_base() {
    assert_eq!(type_text(&Datatype::Array(ArrayType { dims: vec![3, 4], base: Box::new(i(4)) })), "array[3,4]<i32le>");
    let vlen = VarLenType { kind: VarLenKind::Sequence, size: 16, base: Box::new(i(2)) };
    assert_eq!(type_text(&Datatype::VarLen(vlen)), "vlen<i16le>");
    let base = Box::new(Datatype::float(8, ByteOrder::Little).unwrap());
    assert_eq!(type_text(&Datatype::Complex(ComplexType { base })), "complex<f64le>");
    assert_eq!(
        type_text(&Datatype::Reference(ReferenceType { kind: ReferenceKind::Region1, size: 12 })),
        "ref(region)"
    );
    assert_eq!(type_text(&Datatype::Reference(ReferenceType { kind: ReferenceKind::Object2, size: 16 })), "ref(std)");
    assert_eq!(type_text(&Datatype::Opaque(OpaqueType { size: 4, tag: "a\"b\t".into() })), "opaque(4,\"a\\\"b\\t\")");
    let time = TimeType { size: 4, precision: 31, ..Default::default() };
    assert_eq!(type_text(&Datatype::Time(time)), "time32le(prec=31)");
}
