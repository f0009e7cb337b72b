use super::*;
use crate::VlenAndReferenceSizes;

#[test]
fn members_move_when_places_in_heaps_change_their_size() {
    let text = |size| {
        let kind = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: CharacterSet::Utf8 };
        Datatype::VarLen(VarLenType { kind, size, base: Box::default() })
    };
    let member = |name: &str, offset, datatype| CompoundMember { name: name.into(), offset, datatype };
    let reference = |size| Datatype::Reference(ReferenceType { kind: ReferenceKind::Object1, size });
    let array = |size| Datatype::Array(ArrayType { dims: vec![2], base: Box::new(reference(size)) });
    let small = vec![member("n", 32, Datatype::default()), member("t", 0, text(12)), member("a", 20, array(4))];
    let small = Datatype::Compound(CompoundType { size: 40, members: small });
    let large = vec![member("n", 44, Datatype::default()), member("t", 0, text(16)), member("a", 24, array(8))];
    let large = Datatype::Compound(CompoundType { size: 52, members: large });
    let (four, eight) = (VlenAndReferenceSizes::with_offset_size(4), VlenAndReferenceSizes::with_offset_size(8));
    assert_eq!(small.with_vlen_and_reference_sizes(four, eight), large);
    assert_eq!(large.with_vlen_and_reference_sizes(eight, four), small);
    assert_eq!(small.with_vlen_and_reference_sizes(four, four), small);
}

#[test]
fn sees_numbers_that_leave_most_of_their_bits_unused() {
    let narrow = Datatype::Integer(IntegerType { size: 4, precision: 15, ..Default::default() });
    let member = CompoundMember { name: "a".into(), offset: 0, datatype: narrow };
    assert!(Datatype::Compound(CompoundType { size: 4, members: vec![member] }).has_number_over_half_unused());
    assert!(!Datatype::integer(4, ByteOrder::Little, Sign::Signed).has_number_over_half_unused());
}
