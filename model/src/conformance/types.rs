//! Types that are read back and used again.

use super::store_fixture::{StoreFixture, name, number};
use crate::{
    ArrayType, AttributeData, ByteOrder, CharacterSet, ChunkCoord, CompoundMember, CompoundType, DatasetSpec,
    Dataspace, Datatype, Error, Layout, LinkTarget, NewObject, ObjectId, PublishLevel, ReferenceKind, ReferenceType,
    Shape, Sign, Store, StringPadding, UNLIMITED, VarLenKind, VarLenType, VlenAndReferenceSizes,
};

/// Types of each kind, as they are in an HDF5 file.
fn types() -> Vec<(&'static str, Datatype)> {
    let forms = VlenAndReferenceSizes::default();
    let text = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: CharacterSet::Utf8 };
    let text = Datatype::VarLen(VarLenType { kind: text, size: forms.vlen, base: Box::default() });
    let sequence =
        |base| Datatype::VarLen(VarLenType { kind: VarLenKind::Sequence, size: forms.vlen, base: Box::new(base) });
    let reference = |kind| Datatype::Reference(ReferenceType { kind, size: forms.reference_size(kind) });
    let array = |base| Datatype::Array(ArrayType { base: Box::new(base), dims: vec![2, 3] });
    let int = Datatype::integer(4, ByteOrder::Big, Sign::Signed);
    let member = |name: &str, offset, datatype| CompoundMember { name: name.into(), offset, datatype };
    let vlen = forms.vlen;
    let members = vec![
        member("number", 0, int.clone()),
        member("text", 4, text.clone()),
        member("last", 4 + vlen, int.clone()),
        member("texts", 8 + vlen, array(text.clone())),
    ];
    let row = Datatype::Compound(CompoundType { size: 8 + 7 * vlen, members });
    vec![
        ("integer", int.clone()),
        ("fixed string", Datatype::fixed_string(5, CharacterSet::Utf8)),
        ("text", text.clone()),
        ("array", array(int.clone())),
        ("array of texts", array(text.clone())),
        ("sequence", sequence(int)),
        ("sequence of texts", sequence(text)),
        ("row", row.clone()),
        ("sequence of rows", sequence(row)),
        ("reference to an object", reference(ReferenceKind::Object1)),
        ("reference to a region", reference(ReferenceKind::Region1)),
    ]
}

pub(super) fn rows(datatype: Datatype, count: u64) -> DatasetSpec {
    let dataspace = Dataspace::Simple(Shape::with_max(&[count], &[UNLIMITED]).unwrap());
    DatasetSpec { datatype, dataspace, layout: Layout::Chunked(vec![2]), ..DatasetSpec::default() }
}

pub(super) fn find(store: &impl Store, at: &str) -> ObjectId {
    match store.link(store.session().root, &name(at)).unwrap().unwrap().target {
        LinkTarget::Hard(id) => id,
        other => panic!("{other:?}"),
    }
}

/// A type that is read back is the one that was given, for datasets and attributes. It is appended to and set again, and
/// makes a further dataset: what fits the store stays as it is when it is made to fit.
pub fn test_types_read_back(lab: &impl StoreFixture) {
    let store = lab.create();
    let (mut made, root) = (Vec::new(), store.session().root);
    for (at, plain) in types() {
        let datatype = plain
            .with_vlen_and_reference_sizes(VlenAndReferenceSizes::default(), store.session().vlen_and_reference_sizes);
        let spec = rows(datatype.clone(), 2);
        match store.writer().unwrap().create(&NewObject::linked(root, &name(at), &spec.into())) {
            Ok(id) => {
                let chunk = vec![0; 2 * datatype.size() as usize];
                store.dataset(id).unwrap().write_whole_chunk(&ChunkCoord::origin(1), 0, &chunk).unwrap();
                let value = vec![0; datatype.size() as usize];
                let attribute = AttributeData { datatype: datatype.clone(), value, ..number(name("a"), 0) };
                store.writer().unwrap().set_attribute(id, &attribute).unwrap();
                made.push((at, plain, datatype));
            }
            Err(Error::Unsupported(what)) => println!("skipped: {at}: {what}"),
            Err(error) => panic!("{at}: {error}"),
        }
    }
    assert!(!made.is_empty());
    store.close().unwrap();
    let store = lab.reopen(store);
    let forms = store.session().vlen_and_reference_sizes;
    for (at, plain, datatype) in made {
        let id = find(&store, at);
        let data = store.dataset(id).unwrap();
        let found = data.spec().unwrap().datatype.clone();
        assert_eq!(found, datatype, "{at}");
        assert_eq!(found.with_vlen_and_reference_sizes(forms, VlenAndReferenceSizes::default()), plain, "{at}");
        assert_eq!(
            found.with_vlen_and_reference_sizes(VlenAndReferenceSizes::default(), forms),
            found,
            "{at} fits already"
        );
        data.set_extent(&[4]).unwrap();
        data.write_whole_chunk(&ChunkCoord::new(&[1]), 0, &vec![0; 2 * found.size() as usize]).unwrap();
        let attribute = store.attribute(id, &name("a")).unwrap().unwrap();
        assert_eq!(attribute.datatype, datatype, "{at}");
        store.writer().unwrap().set_attribute(id, &attribute).unwrap();
        let again = rows(attribute.datatype.with_vlen_and_reference_sizes(VlenAndReferenceSizes::default(), forms), 0);
        let root = store.session().root;
        let again =
            store.writer().unwrap().create(&NewObject::linked(root, &name(&format!("{at} again")), &again.into()));
        assert_eq!(store.dataset(again.unwrap()).unwrap().spec().unwrap().datatype, datatype, "{at}");
        data.publish(PublishLevel::Visible).unwrap();
    }
}
