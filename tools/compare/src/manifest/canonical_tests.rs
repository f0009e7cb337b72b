use super::*;
use h5live::model::{ArrayType, ComplexType, CompoundMember, CompoundType, ReferenceType, Sign, VarLenType};

/// A heap whose object 1 is `abc\0d`, and 2 two big-endian 16-bit numbers; one object at address 0x10.
struct Sample;

impl VlenAndReferenceResolver for Sample {
    fn vlen_bytes(&self, element: &[u8]) -> Result<Vec<u8>, CanonicalError> {
        match element.last_chunk().map(|index| u32::from_le_bytes(*index)) {
            Some(1) => Ok(b"abc\0d".to_vec()),
            Some(2) => Ok(vec![1, 2, 3, 4]),
            _ => Err(CanonicalError::Heap("no such object".into())),
        }
    }

    fn referent_text(&self, _: ReferenceKind, reference: &[u8]) -> Result<Vec<u8>, CanonicalError> {
        Ok(if reference.first() == Some(&0x10) { b"/a".to_vec() } else { Vec::new() })
    }
}

fn stream(datatype: &Datatype, stored: &[u8]) -> Vec<u8> {
    CanonicalPlan::for_datatype(datatype).canonical_bytes(stored, &Sample).unwrap().into_owned()
}

fn number(size: u32, order: ByteOrder) -> Datatype {
    Datatype::integer(size, order, Sign::Unsigned)
}

fn place(count: u32, address: u64, index: u32) -> Vec<u8> {
    [&count.to_le_bytes()[..], &address.to_le_bytes(), &index.to_le_bytes()].concat()
}

fn vlen(kind: VarLenKind, base: Datatype) -> Datatype {
    Datatype::VarLen(VarLenType { kind, size: 16, base: Box::new(base) })
}

#[test]
fn numbers_come_least_significant_byte_first() {
    assert_eq!(stream(&number(2, ByteOrder::Little), &[1, 2, 3, 4]), [1, 2, 3, 4]);
    assert_eq!(stream(&number(2, ByteOrder::Big), &[1, 2, 3, 4]), [2, 1, 4, 3]);
    assert_eq!(stream(&Datatype::float(4, ByteOrder::Vax).unwrap(), &[1, 2, 3, 4]), [3, 4, 1, 2]);
}

#[test]
fn parts_of_complex_numbers_and_arrays_are_reversed_one_by_one() {
    let base = Box::new(Datatype::float(4, ByteOrder::Big).unwrap());
    assert_eq!(stream(&Datatype::Complex(ComplexType { base }), &[1, 2, 3, 4, 5, 6, 7, 8]), [4, 3, 2, 1, 8, 7, 6, 5]);
    let base = Box::new(number(2, ByteOrder::Big));
    assert_eq!(stream(&Datatype::Array(ArrayType { dims: vec![2], base }), &[1, 2, 3, 4]), [2, 1, 4, 3]);
}

#[test]
fn compounds_lose_their_gaps_and_come_in_order_of_offset() {
    let member = |name: &str, offset, datatype| CompoundMember { name: name.into(), offset, datatype };
    let members = vec![member("b", 4, number(2, ByteOrder::Big)), member("a", 1, number(1, ByteOrder::Little))];
    let t = Datatype::Compound(CompoundType { size: 7, members });
    assert_eq!(stream(&t, &[0, 1, 0, 0, 2, 3, 0, 9, 4, 9, 9, 5, 6, 9]), [1, 3, 2, 4, 6, 5]);
}

#[test]
fn a_compound_without_gaps_is_taken_as_it_is() {
    let member =
        |name: &str, offset| CompoundMember { name: name.into(), offset, datatype: number(2, ByteOrder::Little) };
    let t = Datatype::Compound(CompoundType { size: 4, members: vec![member("a", 0), member("b", 2)] });
    assert!(matches!(
        CanonicalPlan::for_datatype(&t).canonical_bytes(&[1, 2, 3, 4], &Sample).unwrap(),
        Cow::Borrowed(_)
    ));
}

#[test]
fn variable_strings_end_at_the_first_nul() {
    let kind = VarLenKind::String { padding: Default::default(), character_set: Default::default() };
    let t = vlen(kind, number(1, ByteOrder::Little));
    assert_eq!(stream(&t, &place(5, 0x100, 1)), [3, 0, 0, 0, 0, 0, 0, 0, b'a', b'b', b'c']);
    assert_eq!(stream(&t, &place(0, 0, 0)), [0; 8]);
    assert_eq!(stream(&t, &place(7, 0, 0)), [0; 8], "a null string has no address");
}

#[test]
fn sequences_are_counted_and_their_elements_laid_out() {
    let t = vlen(VarLenKind::Sequence, number(2, ByteOrder::Big));
    assert_eq!(stream(&t, &place(2, 0x100, 2)), [2, 0, 0, 0, 0, 0, 0, 0, 2, 1, 4, 3]);
}

#[test]
fn a_sequence_longer_than_its_heap_object_is_refused() {
    let t = vlen(VarLenKind::Sequence, number(2, ByteOrder::Big));
    let error = CanonicalPlan::for_datatype(&t).canonical_bytes(&place(3, 0x100, 2), &Sample).unwrap_err();
    assert!(matches!(error, CanonicalError::ShortSequence { expected: 6, found: 4 }), "{error}");
    let error = CanonicalPlan::for_datatype(&t).canonical_bytes(&place(3, 0x100, 9), &Sample).unwrap_err();
    assert!(matches!(error, CanonicalError::Heap(_)), "{error}");
}

#[test]
fn references_become_paths() {
    let t = Datatype::Reference(ReferenceType { kind: ReferenceKind::Object1, size: 8 });
    assert_eq!(stream(&t, &[0x10, 0, 0, 0, 0, 0, 0, 0]), [2, 0, 0, 0, 0, 0, 0, 0, b'/', b'a']);
    assert_eq!(stream(&t, &[0; 8]), [0; 8]);
}
