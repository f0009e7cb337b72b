//! Elements that are stored and read back.

use std::collections::HashMap;

use h5live_model::{ArrayType, ByteOrder, CompoundMember, CompoundType, Sign, VarLenType};

use super::*;

fn u16le() -> Datatype {
    Datatype::integer(2, ByteOrder::Little, Sign::Unsigned)
}

fn sequence(base: Datatype) -> Datatype {
    Datatype::VarLen(VarLenType { kind: VarLenKind::Sequence, size: 16, base: Box::new(base) })
}

fn compound(size: u32, members: &[(u32, Datatype)]) -> Datatype {
    let member = |(offset, datatype): &(u32, Datatype)| CompoundMember {
        name: format!("m{offset}").as_str().into(),
        offset: *offset,
        datatype: datatype.clone(),
    };
    Datatype::Compound(CompoundType { size, members: members.iter().map(member).collect() })
}

fn token(number: u32, count: u32) -> VarLenToken {
    VarLenToken { base_element_count: count, holder_id: u32::MAX, holder_version: 0, element_number: number }
}

fn pack(codec: &ElementCodec, elements: &[u8], contents: &HashMap<u32, Vec<u8>>) -> Vec<u8> {
    let (mut out, mut tokens) = (Vec::new(), StoredTokenNumbers::default());
    let mut content = |token: VarLenToken| {
        Ok::<_, LayoutError>(VarLenContent::ModelElements(contents[&token.element_number][..].into()))
    };
    codec.pack(elements, &mut content, &mut tokens, &mut out).unwrap();
    out
}

#[test]
fn members_of_a_compound_are_stored_without_gaps() {
    let codec = ElementCodec::new(&compound(12, &[(4, u16le()), (0, u16le()), (8, u16le())]));
    let elements = [1, 2, 0, 0, 3, 4, 0, 0, 5, 6, 0, 0, 7, 8, 0, 0, 9, 10, 0, 0, 11, 12, 0, 0];
    let stored = pack(&codec, &elements, &HashMap::new());
    assert_eq!(stored, [3, 4, 1, 2, 5, 6, 9, 10, 7, 8, 11, 12]);
    assert_eq!(codec.stored_element_size(), Some(6));
    let mut again = [0; 24];
    codec.unpack(&stored, 2, 1, 1, &mut again).unwrap();
    assert_eq!(again, elements);
}

#[test]
fn members_without_gaps_are_stored_as_they_are() {
    let array = Datatype::Array(ArrayType { dims: vec![3], base: Box::new(u16le()) });
    let codec = ElementCodec::new(&compound(8, &[(0, u16le()), (2, array)]));
    assert!(codec.is_verbatim());
}

/// Strings, sequences, and sequences in sequences, in a compound and in an array.
#[test]
fn variable_length_elements_are_stored_in_their_place() {
    let nested = sequence(compound(18, &[(0, u16le()), (2, sequence(u16le()))]));
    let array = Datatype::Array(ArrayType { dims: vec![2], base: Box::new(sequence(u16le())) });
    let codec = ElementCodec::new(&compound(50, &[(0, u16le()), (2, nested), (18, array)]));
    let mut contents = HashMap::new();
    contents.insert(10, vec![1, 0, 2, 0]);
    contents.insert(11, vec![3, 0]);
    let inner: Vec<u8> = [&[9, 0][..], &token(10, 2).encode(), &[8, 0], &token(11, 1).encode()].concat();
    contents.insert(12, inner);
    contents.insert(13, vec![7, 0, 7, 0, 7, 0]);
    let element = [&[5, 0][..], &token(12, 2).encode(), &[0; 16], &token(13, 3).encode()].concat();
    let stored = pack(&codec, &element, &contents);
    let want = [
        &[5, 0][..],
        &[18, 0, 0, 0],
        &[9, 0, 4, 0, 0, 0, 1, 0, 2, 0],
        &[8, 0, 2, 0, 0, 0, 3, 0],
        &[0; 4],
        &[6, 0, 0, 0, 7, 0, 7, 0, 7, 0],
    ]
    .concat();
    assert_eq!(stored, want);
    let mut again = vec![0; 50];
    codec.unpack(&stored, 1, 3, 4, &mut again).unwrap();
    let table = codec.varlen_element_table(&stored, 1).unwrap();
    let outer = VarLenToken::decode(&again[2..18]).unwrap();
    assert_eq!(outer, VarLenToken { base_element_count: 2, holder_id: 3, holder_version: 4, element_number: 0 });
    let records = table.unpack_base_elements(outer, &stored).unwrap();
    let within: Vec<VarLenToken> =
        records.chunks_exact(18).map(|record| VarLenToken::decode(&record[2..]).unwrap()).collect();
    assert_eq!(within.iter().map(|token| token.element_number).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(table.unpack_base_elements(within[0], &stored).unwrap(), [1, 0, 2, 0]);
    assert_eq!(table.unpack_base_elements(within[1], &stored).unwrap(), [3, 0]);
    assert_eq!(VarLenToken::decode(&again[18..34]).unwrap(), VarLenToken::default());
    let last = VarLenToken::decode(&again[34..]).unwrap();
    assert_eq!((last.base_element_count, last.element_number), (3, 4));
    assert_eq!(table.unpack_base_elements(last, &stored).unwrap(), [7, 0, 7, 0, 7, 0]);
    // What was read is stored as it was.
    let (mut out, mut tokens) = (Vec::new(), StoredTokenNumbers::default());
    let mut content = |token: VarLenToken| {
        Ok::<_, LayoutError>(VarLenContent::StoredBytes(
            table.stored_bytes(token.element_number, &stored).unwrap().to_vec(),
        ))
    };
    codec.pack(&again, &mut content, &mut tokens, &mut out).unwrap();
    assert_eq!(out, stored);
    assert_eq!(
        tokens.new_element_numbers.iter().map(|(token, number)| (token.element_number, *number)).collect::<Vec<_>>(),
        [(0, 0), (4, 4)]
    );
}

#[test]
fn stored_elements_that_end_too_early_or_too_late_are_refused() {
    let codec = ElementCodec::new(&sequence(u16le()));
    let mut into = [0; 32];
    let sound = [2, 0, 0, 0, 1, 1, 0, 0, 0, 0];
    codec.unpack(&sound, 2, 1, 1, &mut into).unwrap();
    for end in 0..sound.len() {
        assert!(codec.unpack(&sound[..end], 2, 1, 1, &mut into).is_err(), "{end}");
    }
    for bad in [&[3, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0][..], &[255; 16], &[0; 12], &[2, 0, 0, 0x70, 1, 1]] {
        assert!(codec.unpack(bad, 2, 1, 1, &mut into).is_err(), "{bad:?}");
        assert!(codec.varlen_element_table(bad, 4).is_err(), "{bad:?}");
    }
    // A sequence of elements that take no bytes would never end.
    let empty =
        ElementCodec::new(&sequence(Datatype::Array(ArrayType { dims: vec![0], base: Box::new(sequence(u16le())) })));
    assert!(empty.unpack(&[1, 0, 0, 0, 9], 1, 1, 1, &mut [0; 16]).is_err());
}

#[test]
fn room_that_the_service_leaves_behind_arrays_is_no_damage() {
    let array = Datatype::Array(ArrayType { dims: vec![2], base: Box::new(sequence(u16le())) });
    let codec = ElementCodec::new(&Datatype::compound([("n", u16le()), ("pair", array)]));
    let element = [7, 0, 2, 0, 0, 0, 1, 1, 0, 0, 0, 0];
    let (two, mut into) = ([element, element].concat(), vec![0; 2 * codec.model_element_size()]);
    codec.unpack(&two, 2, 1, 1, &mut into).unwrap();
    let with_room = [&two[..], &[0; 8]].concat();
    codec.unpack(&with_room, 2, 1, 1, &mut into).unwrap();
    for bad in
        [[&two[..], &[0; 7]].concat(), [&two[..], &[0; 12]].concat(), [&two[..], &[0, 0, 0, 0, 0, 0, 0, 1]].concat()]
    {
        assert!(codec.unpack(&bad, 2, 1, 1, &mut into).is_err(), "{bad:?}");
    }
}
