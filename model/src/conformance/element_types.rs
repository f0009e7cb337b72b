//! Elements of every type of the model.

use super::data::region_coords_or_attribute;
use super::store_fixture::{StoreFixture, blob, make, name, number, read_stored, unlimited_spec};
use super::types::{find, rows};
use crate::{
    ArrayType, AttributeData, BitfieldType, ByteOrder, CharacterSet, ChunkCoord, ComplexType, CompoundMember,
    CompoundType, Dataspace, Datatype, EnumMember, EnumType, Error, Fill, FillValue, FixedStringType, FloatType,
    IntegerType, NewObject, Normalization, ObjectId, OpaqueType, Padding, PublishLevel, ReferenceKind, ReferenceType,
    Referent, ReferentPart, Result, Selection, Shape, Sign, Store, StringPadding, TimeType, VarLenKind, VarLenType,
    VlenAndReferenceSizes,
};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];
const PADDINGS: [StringPadding; 3] =
    [StringPadding::NullTerminated, StringPadding::NullPadded, StringPadding::SpacePadded];
const CHARACTER_SETS: [CharacterSet; 2] = [CharacterSet::Ascii, CharacterSet::Utf8];
const REFERENCES: [ReferenceKind; 5] = [
    ReferenceKind::Object1,
    ReferenceKind::Region1,
    ReferenceKind::Object2,
    ReferenceKind::Region2,
    ReferenceKind::Attribute,
];
/// Where the object is to which references lead.
const TARGET: &str = "target";

/// What an element is, wherever its parts are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    /// Bytes in the element.
    Bytes(Vec<u8>),
    /// The members of a compound, or the elements of an array.
    Parts(Vec<Content>),
    /// Elements, or a text, in a heap.
    VariableLength(Vec<Content>),
    /// The part of the target, and whether it is the target.
    Reference(String, bool),
}

fn numbers() -> Vec<Datatype> {
    let mut types = Vec::new();
    for order in ORDERS {
        for size in [1, 2, 4, 8] {
            types.extend([Sign::Signed, Sign::Unsigned].map(|sign| Datatype::integer(size, order, sign)));
            let precision = size as u16 * 8;
            types.push(Datatype::Bitfield(BitfieldType { size, order, precision, ..BitfieldType::default() }));
            types.extend(Datatype::float(size, order));
        }
        // 12 of 16 bits, with ones above them; 3 bytes; a brain float; 80 bits of a processor in 16 bytes.
        let odd = IntegerType {
            size: 2,
            order,
            precision: 12,
            offset: 2,
            high_padding: Padding::One,
            ..IntegerType::default()
        };
        types.extend([Datatype::Integer(odd), Datatype::integer(3, order, Sign::Signed)]);
        let brain = FloatType {
            size: 2,
            order,
            precision: 16,
            sign_position: 15,
            exponent_position: 7,
            exponent_size: 8,
            ..FloatType::default()
        };
        types.push(Datatype::Float(FloatType { mantissa_size: 7, exponent_bias: 127, ..brain }));
        let extended = FloatType {
            size: 16,
            order,
            precision: 80,
            sign_position: 79,
            exponent_position: 64,
            ..FloatType::default()
        };
        let extended = FloatType { exponent_size: 15, mantissa_size: 64, exponent_bias: 16383, ..extended };
        types.push(Datatype::Float(FloatType { normalization: Normalization::MsbSet, ..extended }));
        types.push(Datatype::Time(TimeType { size: 4, order, precision: 32 }));
        types.extend([4, 8].into_iter().filter_map(|size| Datatype::float(size, order)).map(complex));
    }
    types
}

fn complex(base: Datatype) -> Datatype {
    Datatype::Complex(ComplexType { base: Box::new(base) })
}

fn array(dims: &[u32], base: Datatype) -> Datatype {
    Datatype::Array(ArrayType { dims: dims.to_vec(), base: Box::new(base) })
}

fn sequence(base: Datatype) -> Datatype {
    let size = VlenAndReferenceSizes::default().vlen;
    Datatype::VarLen(VarLenType { kind: VarLenKind::Sequence, size, base: Box::new(base) })
}

fn texts() -> Vec<Datatype> {
    let mut types = Vec::new();
    for (padding, character_set) in PADDINGS.into_iter().flat_map(|padding| CHARACTER_SETS.map(|set| (padding, set))) {
        types.push(Datatype::String(FixedStringType { size: 6, padding, character_set }));
        let kind = VarLenKind::String { padding, character_set };
        types.push(Datatype::VarLen(VarLenType {
            kind,
            size: VlenAndReferenceSizes::default().vlen,
            base: Box::default(),
        }));
    }
    types
}

fn enums() -> [Datatype; 2] {
    let of = |base, members: &[(&str, &[u8])]| {
        let member = |(name, value): &(&str, &[u8])| EnumMember { name: (*name).into(), value: value.to_vec() };
        Datatype::Enum(EnumType { base: Box::new(base), members: members.iter().map(member).collect() })
    };
    // As h5py has truth values.
    let truth = of(Datatype::integer(1, ByteOrder::Little, Sign::Signed), &[("FALSE", &[0]), ("TRUE", &[1])]);
    let wide = Datatype::integer(2, ByteOrder::Big, Sign::Unsigned);
    [truth, of(wide, &[("rot", &[0, 1]), ("grün", &[1, 0]), ("none", &[255, 255])])]
}

/// Types of every class and kind, as they are in an HDF5 file.
fn every_type() -> Vec<Datatype> {
    let int = Datatype::integer(4, ByteOrder::Big, Sign::Signed);
    let text = texts().remove(1);
    let reference =
        |kind| Datatype::Reference(ReferenceType { kind, size: VlenAndReferenceSizes::default().reference_size(kind) });
    let member = |name: &str, offset, datatype| CompoundMember { name: name.into(), offset, datatype };
    let gaps = vec![member("a", 1, int.clone()), member("ä", 8, enums()[1].clone())];
    let gaps = Datatype::Compound(CompoundType { size: 13, members: gaps });
    let inner =
        Datatype::compound([("text", text.clone()), ("numbers", sequence(int.clone())), ("gaps", gaps.clone())]);
    let row = Datatype::compound([
        ("inner", inner.clone()),
        ("grid", array(&[2, 3], int.clone())),
        ("texts", array(&[2], text.clone())),
        ("to", reference(ReferenceKind::Object1)),
        ("bytes", Datatype::Opaque(OpaqueType { size: 3, tag: "in a row".into() })),
    ]);
    let mut types = numbers();
    types.extend(texts());
    types.extend(enums());
    types.push(Datatype::Opaque(OpaqueType { size: 5, tag: "five bytes".into() }));
    types.extend([gaps.clone(), inner, row.clone()]);
    types.extend([
        array(&[3], int.clone()),
        array(&[2, 1, 2], gaps.clone()),
        array(&[2], text.clone()),
        array(&[2], enums()[0].clone()),
    ]);
    types.extend([
        sequence(int.clone()),
        sequence(gaps),
        sequence(text.clone()),
        sequence(row),
        sequence(enums()[0].clone()),
    ]);
    types.extend([sequence(sequence(int)), sequence(array(&[2], text))]);
    types.extend(REFERENCES.map(reference));
    types
}

/// A number in the bits that an integer or a bitfield uses.
fn in_bits(number: u128, size: u32, order: ByteOrder, [offset, precision]: [u16; 2], high: Padding) -> Vec<u8> {
    let used = (u128::MAX >> (128 - u32::from(precision))) << offset;
    let above =
        if high == Padding::One { u128::MAX.checked_shl(u32::from(offset + precision)).unwrap_or(0) } else { 0 };
    in_order((number << offset) & used | above, size, order)
}

fn in_order(bits: u128, size: u32, order: ByteOrder) -> Vec<u8> {
    let mut bytes = bits.to_le_bytes()[..size as usize].to_vec();
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    bytes
}

/// The text of number `n`, that a fixed string of 6 bytes has room for.
fn text(n: usize, character_set: CharacterSet) -> Vec<u8> {
    let letter = if character_set == CharacterSet::Utf8 { "ü" } else { "u" };
    format!("{n}{}", letter.repeat(n % 3)).into_bytes()
}

/// The element of number `n` of a type.
fn content(datatype: &Datatype, n: usize) -> Content {
    let pattern = (n as u128 + 1) * 0x0123_4567_89AB_CDEF_1122_3344_5566_7788;
    match datatype {
        Datatype::Integer(t) => {
            Content::Bytes(in_bits(pattern, t.size, t.order, [t.offset, t.precision], t.high_padding))
        }
        Datatype::Bitfield(t) => {
            Content::Bytes(in_bits(pattern, t.size, t.order, [t.offset, t.precision], t.high_padding))
        }
        Datatype::Time(t) => Content::Bytes(in_order(pattern, t.size, t.order)),
        Datatype::Float(t) => {
            let mut bits = u128::from(t.exponent_bias) << t.exponent_position | (n as u128 % 64) << t.mantissa_position;
            if t.normalization == Normalization::MsbSet {
                bits |= 1 << (t.mantissa_position + t.mantissa_size - 1);
            }
            Content::Bytes(in_order(bits, t.size, t.order))
        }
        Datatype::String(t) => {
            let mut bytes = text(n, t.character_set);
            let end = if t.padding == StringPadding::SpacePadded { b' ' } else { 0 };
            bytes.resize(t.size as usize, end);
            Content::Bytes(bytes)
        }
        Datatype::Opaque(t) => Content::Bytes(pattern.to_le_bytes()[..t.size as usize].to_vec()),
        Datatype::Enum(t) => Content::Bytes(t.members[n % t.members.len()].value.clone()),
        Datatype::Complex(t) => Content::Parts(vec![content(&t.base, n), content(&t.base, n + 1)]),
        Datatype::Compound(t) => Content::Parts(t.members.iter().map(|member| content(&member.datatype, n)).collect()),
        Datatype::Array(t) => Content::Parts((0..elements(t)).map(|i| content(&t.base, n + i)).collect()),
        Datatype::VarLen(t) => Content::VariableLength(match t.kind {
            VarLenKind::String { character_set, .. } => {
                text(n, character_set).into_iter().map(|byte| Content::Bytes(vec![byte])).collect()
            }
            VarLenKind::Sequence => (0..n % 4).map(|i| content(&t.base, n + i)).collect(),
        }),
        Datatype::Reference(t) => Content::Reference(shown(&referent_part(t.kind)), true),
    }
}

fn elements(array: &ArrayType) -> usize {
    array.dims.iter().product::<u32>() as usize
}

fn referent_part(kind: ReferenceKind) -> ReferentPart {
    match kind {
        ReferenceKind::Object1 | ReferenceKind::Object2 => ReferentPart::Whole,
        ReferenceKind::Region1 | ReferenceKind::Region2 => ReferentPart::Region(Selection::block(&[2, 1], &[3, 2])),
        ReferenceKind::Attribute => ReferentPart::Attribute(name("unit")),
    }
}

fn shown(part: &ReferentPart) -> String {
    format!("{:?}", region_coords_or_attribute(part))
}

/// The bytes of an element in a store, which keeps what is outside of them.
fn stored(store: &impl Store, target: ObjectId, datatype: &Datatype, content: &Content) -> Result<Vec<u8>> {
    let mut out = vec![0; datatype.size() as usize];
    match (datatype, content) {
        (_, Content::Bytes(bytes)) => out.clone_from(bytes),
        (Datatype::Compound(t), Content::Parts(parts)) => {
            for (member, part) in t.members.iter().zip(parts) {
                let bytes = stored(store, target, &member.datatype, part)?;
                out[member.offset as usize..][..bytes.len()].copy_from_slice(&bytes);
            }
        }
        (Datatype::Array(ArrayType { base, .. }) | Datatype::Complex(ComplexType { base }), Content::Parts(parts)) => {
            let parts = parts.iter().map(|part| stored(store, target, base, part));
            out = parts.collect::<Result<Vec<_>>>()?.concat();
        }
        (Datatype::VarLen(t), Content::VariableLength(parts)) => {
            let bytes = parts.iter().map(|part| stored(store, target, &t.base, part)).collect::<Result<Vec<_>>>()?;
            out = store.writer()?.put_blob(&bytes.concat(), parts.len() as u32)?;
        }
        (Datatype::Reference(t), _) => {
            let to = Referent { file: None, object: target, part: referent_part(t.kind) };
            out = store.encode_reference(t, &to)?;
        }
        other => panic!("{other:?}"),
    }
    Ok(out)
}

/// What the bytes of an element stand for.
fn found(store: &impl Store, target: ObjectId, datatype: &Datatype, bytes: &[u8]) -> Content {
    let each = |base: &Datatype, bytes: &[u8]| {
        bytes.chunks(base.size() as usize).map(|bytes| found(store, target, base, bytes)).collect()
    };
    match datatype {
        Datatype::Compound(t) => Content::Parts(
            t.members
                .iter()
                .map(|member| {
                    let bytes = &bytes[member.offset as usize..][..member.datatype.size() as usize];
                    found(store, target, &member.datatype, bytes)
                })
                .collect(),
        ),
        Datatype::Array(ArrayType { base, .. }) | Datatype::Complex(ComplexType { base }) => {
            Content::Parts(each(base, bytes))
        }
        Datatype::VarLen(t) => Content::VariableLength(each(&t.base, &blob(store, bytes))),
        Datatype::Reference(t) => {
            let to = store.referent(t.kind, bytes).unwrap().expect("the reference is not null");
            Content::Reference(shown(&to.part), to.object == target && to.file.is_none())
        }
        _ => Content::Bytes(bytes.to_vec()),
    }
}

/// Two elements, of the numbers `n` and `n + 1`.
fn pair(store: &impl Store, datatype: &Datatype, n: usize) -> Result<Vec<u8>> {
    let target = find(store, TARGET);
    let one = |n| stored(store, target, datatype, &content(datatype, n));
    Ok([one(n)?, one(n + 1)?].concat())
}

fn assert_pair(store: &impl Store, datatype: &Datatype, bytes: &[u8], n: usize) {
    let target = find(store, TARGET);
    let size = datatype.size() as usize;
    assert_eq!(bytes.len(), 2 * size, "{datatype}");
    for (n, bytes) in (n..).zip(bytes.chunks(size)) {
        assert_eq!(found(store, target, datatype, bytes), content(datatype, n), "{datatype}, element {n}");
    }
}

fn attribute(datatype: &Datatype, value: Vec<u8>) -> AttributeData {
    let dataspace = Dataspace::Simple(Shape::fixed(&[2]));
    AttributeData { datatype: datatype.clone(), dataspace, value, ..number(name("a"), 0) }
}

/// Makes a dataset of a type, with two elements, which it has as its attribute, too.
fn make_rows(store: &impl Store, at: &str, datatype: &Datatype) -> Result<()> {
    let mut spec = rows(datatype.clone(), 2);
    if !datatype.has_vlen_or_references() {
        let element = stored(store, find(store, TARGET), datatype, &content(datatype, 5))?;
        spec.fill = Fill { value: FillValue::Value(element), ..Fill::default() };
    }
    let id = store.writer()?.create(&NewObject::linked(store.session().root, &name(at), &spec.clone().into()))?;
    let data = store.dataset(id)?;
    data.write_whole_chunk(&ChunkCoord::origin(1), 0, &pair(store, datatype, 0)?)?;
    store.writer()?.set_attribute(id, &attribute(datatype, pair(store, datatype, 1)?))?;
    let made = data.spec()?;
    assert_eq!((&made.datatype, &made.dataspace, &made.fill.value), (datatype, &spec.dataspace, &spec.fill.value));
    data.publish(PublishLevel::Visible)
}

/// Elements of every type, in a dataset and in an attribute, are there after the store was closed and opened, and so are those
/// that are appended then.
pub fn test_every_element_type(lab: &impl StoreFixture) {
    let store = lab.create();
    make(&store, TARGET, unlimited_spec(&[10, 4], &[2, 2]));
    let (forms, mut made) = (store.session().vlen_and_reference_sizes, Vec::new());
    for (i, plain) in every_type().into_iter().enumerate() {
        let (at, datatype) =
            (format!("d{i}"), plain.with_vlen_and_reference_sizes(VlenAndReferenceSizes::default(), forms));
        match make_rows(&store, &at, &datatype) {
            Ok(()) => made.push((at, datatype)),
            Err(Error::Unsupported(what)) => println!("skipped: {plain}: {what}"),
            Err(error) => panic!("{plain}: {error}"),
        }
    }
    assert!(made.len() > 30, "{} types", made.len());
    store.close().unwrap();
    let store = lab.reopen(store);
    for (at, datatype) in &made {
        let data = store.dataset(find(&store, at)).unwrap();
        data.set_extent(&[4]).unwrap();
        data.write_whole_chunk(&ChunkCoord::new(&[1]), 0, &pair(&store, datatype, 2).unwrap()).unwrap();
        let found = store.attribute(data.id(), &name("a")).unwrap().unwrap();
        assert_pair(&store, datatype, &found.value, 1);
        let value = attribute(datatype, pair(&store, datatype, 3).unwrap());
        store.writer().unwrap().set_attribute(data.id(), &value).unwrap();
        data.publish(PublishLevel::Visible).unwrap();
    }
    store.close().unwrap();
    let store = lab.reopen(store);
    for (at, datatype) in &made {
        let data = store.dataset(find(&store, at)).unwrap();
        assert_eq!(data.spec().unwrap().dataspace.dims(), [4], "{datatype}");
        assert_pair(&store, datatype, &read_stored(&*data, &[0]), 0);
        assert_pair(&store, datatype, &read_stored(&*data, &[1]), 2);
        let found = store.attribute(data.id(), &name("a")).unwrap().unwrap();
        assert_eq!((&found.datatype, found.dataspace.dims()), (datatype, &[2][..]));
        assert_pair(&store, datatype, &found.value, 3);
    }
}
