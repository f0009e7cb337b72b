use crate::{
    ArrayType, Block, ByteOrder, CharacterSet, ChunkCoord, CompoundMember, CompoundType, Dataspace, Datatype,
    EnumMember, EnumType, ForeignFileChange, Hyperslab, OpaqueType, Selection, Shape, Sign, StringPadding, UNLIMITED,
    VarLenKind, VarLenType,
};

#[test]
fn datatypes_are_shown_as_ls_shows_them() {
    let i32be = Datatype::integer(4, ByteOrder::Big, Sign::Signed);
    let f64le = Datatype::float(8, ByteOrder::Little).unwrap();
    let kind = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: CharacterSet::Utf8 };
    let text = Datatype::VarLen(VarLenType { kind, size: 16, base: Box::default() });
    let array = Datatype::Array(ArrayType { dims: vec![2, 3], base: Box::new(i32be.clone()) });
    let member = |name: &str, offset, datatype| CompoundMember { name: name.into(), offset, datatype };
    let members = vec![member("t", 0, f64le), member("a\tb", 8, array), member("s", 32, text)];
    let compound = Datatype::Compound(CompoundType { size: 48, members });
    let shown = "compound(48){t@0:f64le,a\\tb@8:array[2,3]<i32be>,s@32:vstr(nullterm,utf8)}";
    assert_eq!(compound.to_string(), shown);
    let value = |name: &str, value: i32| EnumMember { name: name.into(), value: value.to_be_bytes().into() };
    let of = EnumType { base: Box::new(i32be), members: vec![value("on", 1), value("off", -1)] };
    assert_eq!(Datatype::Enum(of).to_string(), "enum<i32be>{off=-1,on=1}");
    assert_eq!(Datatype::Opaque(OpaqueType { size: 3, tag: "a\"b".into() }).to_string(), r#"opaque(3,"a\"b")"#);
    assert_eq!(format!("{:>4}", Datatype::default()), "  u8");
}

#[test]
fn dataspaces_are_shown_with_their_maximum_if_they_can_grow() {
    assert_eq!(Dataspace::Null.to_string(), "null");
    assert_eq!(Dataspace::Scalar.to_string(), "scalar");
    assert_eq!(Shape::fixed(&[2, 3]).to_string(), "[2, 3]");
    let grows = Dataspace::Simple(Shape::with_max(&[2, 3], &[UNLIMITED, 3]).unwrap());
    assert_eq!(grows.to_string(), "[2, 3] of at most [unlimited, 3]");
}

#[test]
fn selections_are_shown_as_slices() {
    let slab = |start: &[u64], stride: &[u64], count: &[u64], block: &[u64]| Hyperslab {
        start: start.into(),
        stride: stride.into(),
        count: count.into(),
        block: block.into(),
    };
    assert_eq!(Selection::All.to_string(), "all");
    assert_eq!(Selection::block(&[0, 1], &[2, 2]).to_string(), "0:2, 1:3");
    assert_eq!(slab(&[1, 0], &[2, 1], &[4, 1], &[1, UNLIMITED]).to_string(), "1:8:2, :");
    assert_eq!(slab(&[3, 1], &[2, 1], &[UNLIMITED, 1], &[1, UNLIMITED]).to_string(), "3::2, 1:");
    assert_eq!(slab(&[0, 4], &[5, 1], &[3, 0], &[3, 1]).to_string(), "0:13:5x3, 4:4");
    let block = |start: u64| Block { start: [start].as_slice().into(), count: [2].as_slice().into() };
    assert_eq!(Selection::Blocks(vec![block(0), block(5)]).to_string(), "(0:2) + (5:7)");
    let points = (0..9).map(|i| [i, 1].as_slice().into()).collect();
    let shown = Selection::Points(points).to_string();
    assert!(shown.starts_with("[0, 1], [1, 1], ") && shown.ends_with("[7, 1], ... (9 points)"), "{shown}");
}

#[test]
fn chunks_and_changes_of_a_file_are_shown_in_a_word() {
    assert_eq!(ChunkCoord::new(&[3, 0]).to_string(), "[3, 0]");
    assert_eq!(format!("{:9}|", ForeignFileChange::Deleted), "deleted  |");
}
