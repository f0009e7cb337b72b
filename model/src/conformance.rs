//! What every store must do, as one suite that each runs in its own tests.
//!
//! A store implements [`Lab`] and calls [`all`], or the parts that it supports. Each part panics with the
//! sentence that does not hold.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    Attribute, ByteOrder, ChunkCoord, ChunkGrid, Chunks, CreationOrder, DatasetSpec, Dataspace, Datatype, EntryStorage,
    Error, Fill, FillValue, FilterSpec, GroupSpec, Layout, LinkTarget, Name, ObjectId, ObjectKind, ObjectSpec, Objects,
    Reference, ReferenceKind, Referent, ReferentPart, Selection, Shape, Sign, UNLIMITED, Wake,
};

/// Makes the stores that the suite tries.
pub trait Lab {
    /// The store.
    type Store: Objects;

    /// A new, empty file, open for writing.
    fn create(&self) -> Self::Store;

    /// The file of a session that was closed, open for writing again.
    fn reopen(&self, closed: Self::Store) -> Self::Store;

    /// A reading session beside the writing one, as another process would have it, after
    /// [`Objects::start_swmr`]. `None` if the store cannot be read while it is written.
    fn reader(&self, writer: &Self::Store) -> Option<Self::Store>;
}

/// Runs the whole suite.
pub fn all<L: Lab>(lab: &L) {
    groups(lab);
    links(lab);
    link_removal(lab);
    attributes(lab);
    committed_types(lab);
    contiguous(lab);
    chunks(lab);
    filtered_chunks(lab);
    extents(lab);
    shrinking(lab);
    heap(lab);
    references(lab);
    rich_references(lab);
    renaming(lab);
    unlinked(lab);
    creation_order(lab);
    uses_of_committed_types(lab);
    comments(lab);
    persistence(lab);
    live(lab);
}

fn name(text: &str) -> Name {
    Name::from(text)
}

fn u16le() -> Datatype {
    Datatype::integer(2, ByteOrder::Little, Sign::Unsigned)
}

/// A dataset of `dims` elements of two bytes, growing without limit along the first dimension.
fn growing(dims: &[u64], chunk: &[u64]) -> DatasetSpec {
    let mut max = dims.to_vec();
    max[0] = UNLIMITED;
    DatasetSpec {
        datatype: u16le(),
        dataspace: Dataspace::Simple(Shape::with_max(dims, &max).unwrap()),
        layout: Layout::Chunked(chunk.into()),
        ..Default::default()
    }
}

/// A scalar attribute of two bytes.
fn number(name: Name, value: u16) -> Attribute {
    Attribute {
        name,
        datatype: u16le(),
        committed: None,
        dataspace: Dataspace::Scalar,
        value: value.to_le_bytes().into(),
        creation_order: None,
    }
}

fn make(store: &impl Objects, at: &str, spec: DatasetSpec) -> Arc<dyn Chunks> {
    let id = store.create(store.root(), &name(at), &spec.into()).unwrap();
    store.dataset(id).unwrap()
}

fn link_names(store: &impl Objects, group: ObjectId) -> BTreeSet<Name> {
    let mut names = BTreeSet::new();
    store
        .for_each_link(group, &mut |link| {
            assert!(names.insert(link.name), "a link is listed once");
            true
        })
        .unwrap();
    names
}

fn stored(chunks: &dyn Chunks, at: &[u64]) -> Vec<u8> {
    let chunk = chunks.chunk(&ChunkCoord::new(at)).unwrap().expect("the chunk is stored");
    let mut bytes = vec![0xEE; chunk.size as usize];
    chunks.read(&chunk, 0, &mut bytes).unwrap();
    bytes
}

/// Groups are made, found and listed; a name is taken once.
pub fn groups(lab: &impl Lab) {
    let store = lab.create();
    let root = store.root();
    assert_eq!(store.kind(root).unwrap(), ObjectKind::Group);
    assert_eq!(link_names(&store, root), BTreeSet::new());
    let a = store.create(root, &name("a"), &ObjectSpec::group()).unwrap();
    let b = store.create(a, &name("b"), &ObjectSpec::group()).unwrap();
    assert_ne!(a, b);
    assert_eq!(store.kind(b).unwrap(), ObjectKind::Group);
    assert!(matches!(store.create(root, &name("a"), &ObjectSpec::group()), Err(Error::Exists(_))));
    for bad in ["", ".", "x/y"] {
        assert!(matches!(store.create(root, &name(bad), &ObjectSpec::group()), Err(Error::Invalid(_))), "{bad:?}");
    }
    assert_eq!(link_names(&store, root), [name("a")].into());
    assert_eq!(link_names(&store, a), [name("b")].into());
    let link = store.link(root, &name("a")).unwrap().expect("the link is there");
    assert_eq!(link.target, LinkTarget::Hard(a));
    assert_eq!(store.link(root, &name("b")).unwrap(), None);
    for i in 0..100 {
        store.create(b, &Name::from(format!("member {i}")), &ObjectSpec::group()).unwrap();
    }
    assert_eq!(link_names(&store, b).len(), 100);
    let mut seen = 0;
    store
        .for_each_link(b, &mut |_| {
            seen += 1;
            seen < 3
        })
        .unwrap();
    assert_eq!(seen, 3, "a listing stops when it is told to");
    let data = make(&store, "data", growing(&[0], &[4]));
    assert!(matches!(store.link(data.id(), &name("x")), Err(Error::WrongKind { .. })));
    assert!(matches!(store.dataset(a), Err(Error::WrongKind { .. })));
    assert!(store.kind(ObjectId(u128::MAX)).is_err());
}

/// Links of every class keep their targets.
pub fn links(lab: &impl Lab) {
    let store = lab.create();
    let root = store.root();
    let a = store.create(root, &name("a"), &ObjectSpec::group()).unwrap();
    let targets = [
        ("hard", LinkTarget::Hard(a)),
        ("soft", LinkTarget::Soft(name("/a/nowhere"))),
        ("external", LinkTarget::External { file: name("other.h5"), path: name("/x") }),
    ];
    for (at, target) in &targets {
        store.add_link(a, &name(at), target).unwrap();
        assert!(matches!(store.add_link(a, &name(at), target), Err(Error::Exists(_))));
    }
    for (at, target) in &targets {
        assert_eq!(store.link(a, &name(at)).unwrap().map(|link| link.target).as_ref(), Some(target));
    }
    assert!(store.add_link(a, &name("dangling"), &LinkTarget::Hard(ObjectId(u128::MAX))).is_err());
}

/// An object lives as long as a hard link leads to it.
pub fn link_removal(lab: &impl Lab) {
    let store = lab.create();
    let root = store.root();
    let a = store.create(root, &name("a"), &ObjectSpec::group()).unwrap();
    store.create(a, &name("below"), &ObjectSpec::group()).unwrap();
    store.add_link(root, &name("again"), &LinkTarget::Hard(a)).unwrap();
    store.remove_link(root, &name("a")).unwrap();
    assert_eq!(link_names(&store, root), [name("again")].into());
    assert_eq!(link_names(&store, a), [name("below")].into());
    store.remove_link(root, &name("again")).unwrap();
    assert_eq!(link_names(&store, root), BTreeSet::new());
    assert!(matches!(store.remove_link(root, &name("a")), Err(Error::NotFound(_))));
}

/// Attributes are set, replaced, listed and removed.
pub fn attributes(lab: &impl Lab) {
    let store = lab.create();
    let root = store.root();
    let make = |at: &str, value: &[u8]| Attribute {
        name: name(at),
        datatype: u16le(),
        committed: None,
        dataspace: Dataspace::Simple(Shape::fixed(&[value.len() as u64 / 2])),
        value: value.into(),
        creation_order: None,
    };
    let check = |want: &Attribute| {
        let got = store.attribute(root, &want.name).unwrap().expect("the attribute is there");
        assert_eq!((&got.datatype, &got.dataspace, &got.value), (&want.datatype, &want.dataspace, &want.value));
    };
    assert_eq!(store.attribute(root, &name("x")).unwrap(), None);
    let first = make("x", &[1, 0, 2, 0]);
    store.set_attribute(root, &first).unwrap();
    check(&first);
    let second = make("x", &[9, 9, 9, 9, 9, 9]);
    store.set_attribute(root, &second).unwrap();
    check(&second);
    let scalar = Attribute { dataspace: Dataspace::Scalar, value: vec![7, 7], ..make("s", &[]) };
    store.set_attribute(root, &scalar).unwrap();
    check(&scalar);
    let null = Attribute { dataspace: Dataspace::Null, ..make("null", &[]) };
    store.set_attribute(root, &null).unwrap();
    check(&null);
    let wrong = Attribute { value: vec![1, 2, 3], ..make("wrong", &[]) };
    assert!(matches!(store.set_attribute(root, &wrong), Err(Error::Invalid(_))));
    for i in 0..40u8 {
        store.set_attribute(root, &make(&format!("many {i}"), &[i, 0])).unwrap();
    }
    let names: BTreeSet<_> = store.attribute_names(root).unwrap().into_iter().collect();
    assert_eq!(names.len(), 43);
    for i in 0..40u8 {
        check(&make(&format!("many {i}"), &[i, 0]));
    }
    store.remove_attribute(root, &name("x")).unwrap();
    assert_eq!(store.attribute(root, &name("x")).unwrap(), None);
    assert!(matches!(store.remove_attribute(root, &name("x")), Err(Error::NotFound(_))));
}

/// A committed type comes back as it was.
pub fn committed_types(lab: &impl Lab) {
    let store = lab.create();
    let datatype = Datatype::float(8, ByteOrder::Big).unwrap();
    let id = store.create(store.root(), &name("t"), &datatype.clone().into()).unwrap();
    assert_eq!(store.kind(id).unwrap(), ObjectKind::Datatype);
    assert_eq!(store.datatype(id).unwrap(), datatype);
    assert!(matches!(store.datatype(store.root()), Err(Error::WrongKind { .. })));
}

/// A dataset that is not chunked is one chunk at the origin, and a part of it can be written.
pub fn contiguous(lab: &impl Lab) {
    let store = lab.create();
    let fill = Fill { value: FillValue::Value(vec![5, 6]), ..Default::default() };
    let fixed = |layout| DatasetSpec {
        datatype: u16le(),
        dataspace: Dataspace::Simple(Shape::fixed(&[2, 3])),
        layout,
        fill: fill.clone(),
        ..Default::default()
    };
    for (at, layout) in [("contiguous", Layout::Contiguous), ("compact", Layout::Compact)] {
        let spec = fixed(layout);
        let data = make(&store, at, spec.clone());
        assert_eq!(*data.spec().unwrap(), spec);
        data.write_part(&ChunkCoord::new(&[0, 0]), 2, &[1, 2, 3, 4]).unwrap();
        assert_eq!(stored(&*data, &[0, 0]), [5, 6, 1, 2, 3, 4, 5, 6, 5, 6, 5, 6]);
        assert!(matches!(data.write_part(&ChunkCoord::new(&[0, 0]), 10, &[0; 4]), Err(Error::Invalid(_))));
        assert!(data.write_part(&ChunkCoord::new(&[1, 0]), 0, &[0; 4]).is_err());
        assert!(matches!(data.set_extent(&[3, 3]), Err(Error::Invalid(_))));
        data.write(&ChunkCoord::new(&[0, 0]), 0, &[7; 12]).unwrap();
        assert_eq!(stored(&*data, &[0, 0]), [7; 12]);
    }
    let scalar = make(&store, "scalar", DatasetSpec { datatype: u16le(), ..Default::default() });
    scalar.write(&ChunkCoord::origin(0), 0, &[1, 2]).unwrap();
    assert_eq!(stored(&*scalar, &[]), [1, 2]);
    let null = DatasetSpec { datatype: u16le(), dataspace: Dataspace::Null, ..Default::default() };
    let null = make(&store, "null", null);
    assert_eq!(null.spec().unwrap().dataspace, Dataspace::Null);
}

/// Chunks are stored where they belong, and parts of them overwritten.
pub fn chunks(lab: &impl Lab) {
    let store = lab.create();
    let data = make(&store, "data", growing(&[5, 3], &[2, 2]));
    assert_eq!(data.chunk(&ChunkCoord::new(&[0, 0])).unwrap(), None);
    data.write(&ChunkCoord::new(&[1, 0]), 0, &[1; 8]).unwrap();
    data.write(&ChunkCoord::new(&[0, 1]), 0, &[2; 8]).unwrap();
    data.write_part(&ChunkCoord::new(&[2, 1]), 4, &[3, 3]).unwrap();
    assert_eq!(stored(&*data, &[1, 0]), [1; 8]);
    assert_eq!(stored(&*data, &[0, 1]), [2; 8]);
    assert_eq!(stored(&*data, &[2, 1]), [0, 0, 0, 0, 3, 3, 0, 0]);
    assert_eq!(data.chunk(&ChunkCoord::new(&[0, 0])).unwrap(), None);
    data.write_part(&ChunkCoord::new(&[1, 0]), 6, &[4, 4]).unwrap();
    assert_eq!(stored(&*data, &[1, 0]), [1, 1, 1, 1, 1, 1, 4, 4]);
    let mut seen = BTreeSet::new();
    data.for_each_chunk(&mut |chunk| {
        assert_eq!((chunk.size, chunk.filter_mask), (8, 0));
        assert!(seen.insert(chunk.coord), "a chunk is listed once");
        true
    })
    .unwrap();
    assert_eq!(seen, [[0, 1], [1, 0], [2, 1]].iter().map(|at| ChunkCoord::new(at)).collect());
    let chunk = data.chunk(&ChunkCoord::new(&[1, 0])).unwrap().unwrap();
    let mut part = [0; 3];
    data.read(&chunk, 5, &mut part).unwrap();
    assert_eq!(part, [1, 4, 4]);
    assert!(matches!(data.write(&ChunkCoord::new(&[0, 0]), 0, &[0; 7]), Err(Error::Invalid(_))));
    assert!(data.write(&ChunkCoord::new(&[0, 2]), 0, &[0; 8]).is_err(), "outside the maximum");
    assert!(matches!(data.write_part(&ChunkCoord::new(&[0, 0]), 4, &[0; 5]), Err(Error::Invalid(_))));
    assert!(matches!(store.create(store.root(), &name("bad"), &growing(&[1, 1], &[1]).into()), Err(Error::Invalid(_))));
    assert_eq!(link_names(&store, store.root()), [name("data")].into(), "what was refused is not there");
}

/// Filtered chunks are of any size, change it, and keep their mask.
pub fn filtered_chunks(lab: &impl Lab) {
    let store = lab.create();
    let deflate = FilterSpec { id: 1, params: vec![6], ..Default::default() };
    let spec = DatasetSpec { filters: vec![deflate], ..growing(&[100], &[10]) };
    let data = make(&store, "data", spec.clone());
    for i in 0..10u8 {
        data.write(&ChunkCoord::new(&[i.into()]), u32::from(i % 2), &vec![i; usize::from(i) + 1]).unwrap();
    }
    data.write(&ChunkCoord::new(&[3]), 0, &[33; 19]).unwrap();
    data.write(&ChunkCoord::new(&[8]), 1, &[88]).unwrap();
    for i in 0..10u8 {
        let chunk = data.chunk(&ChunkCoord::new(&[i.into()])).unwrap().unwrap();
        let (mask, want) = match i {
            3 => (0, vec![33; 19]),
            8 => (1, vec![88]),
            _ => (u32::from(i % 2), vec![i; usize::from(i) + 1]),
        };
        assert_eq!(chunk.filter_mask, mask);
        assert_eq!(stored(&*data, &[i.into()]), want);
    }
    assert!(matches!(data.write_part(&ChunkCoord::new(&[0]), 0, &[1]), Err(Error::Invalid(_))));
    assert_eq!(data.spec().unwrap().filters[0].id, 1);
}

/// An extent grows within its maximum, and data may come before it.
pub fn extents(lab: &impl Lab) {
    let store = lab.create();
    let mut spec = growing(&[0, 2], &[4, 2]);
    spec.dataspace = Dataspace::Simple(Shape::with_max(&[0, 2], &[10, 2]).unwrap());
    let data = make(&store, "data", spec);
    assert_eq!(data.spec().unwrap().dataspace.dims(), [0, 2]);
    data.write(&ChunkCoord::new(&[1, 0]), 0, &[1; 16]).unwrap();
    data.set_extent(&[7, 2]).unwrap();
    assert_eq!(data.spec().unwrap().dataspace.dims(), [7, 2]);
    assert_eq!(stored(&*data, &[1, 0]), [1; 16]);
    assert!(matches!(data.set_extent(&[11, 2]), Err(Error::Invalid(_))));
    assert!(matches!(data.set_extent(&[1]), Err(Error::Invalid(_))));
    assert_eq!(data.spec().unwrap().dataspace.dims(), [7, 2]);
    let again = store.dataset(data.id()).unwrap();
    assert_eq!(again.spec().unwrap().dataspace.dims(), [7, 2], "two handles of a dataset share its state");
    data.flush().unwrap();
    assert_eq!(again.spec().unwrap().dataspace.dims(), [7, 2]);
}

/// Chunks outside a smaller extent are gone.
pub fn shrinking(lab: &impl Lab) {
    let store = lab.create();
    let data = make(&store, "data", growing(&[10], &[2]));
    for i in 0..5 {
        data.write(&ChunkCoord::new(&[i]), 0, &[i as u8 + 1; 4]).unwrap();
    }
    data.set_extent(&[3]).unwrap();
    assert_eq!(stored(&*data, &[1]), [2; 4]);
    assert_eq!(data.chunk(&ChunkCoord::new(&[2])).unwrap(), None);
    data.set_extent(&[10]).unwrap();
    assert_eq!(data.chunk(&ChunkCoord::new(&[4])).unwrap(), None);
}

/// Variable-length elements come back from the heap.
pub fn heap(lab: &impl Lab) {
    let store = lab.create();
    let elements: Vec<_> = (0..50u8)
        .map(|i| {
            let bytes = vec![i; usize::from(i) * 100];
            (store.write_heap(&bytes, bytes.len() as u32).unwrap(), bytes)
        })
        .collect();
    for (element, bytes) in &elements {
        assert_eq!(&store.read_heap(element).unwrap(), bytes);
    }
    assert_eq!(store.read_heap(&[0; 16]).unwrap(), []);
}

/// References to objects lead back to them, and null to nothing.
pub fn references(lab: &impl Lab) {
    let store = lab.create();
    let a = store.create(store.root(), &name("a"), &ObjectSpec::group()).unwrap();
    let form = Reference { kind: ReferenceKind::Object1, size: 8 };
    let to = |object| Referent { file: None, object, part: ReferentPart::Whole };
    let reference = store.reference(&form, &to(a)).unwrap();
    assert_eq!(reference.len(), 8);
    assert_eq!(store.dereference(ReferenceKind::Object1, &reference).unwrap(), Some(a));
    assert_eq!(store.referent(ReferenceKind::Object1, &reference).unwrap(), Some(to(a)));
    assert_eq!(store.dereference(ReferenceKind::Object1, &[0; 8]).unwrap(), None);
    assert!(store.reference(&form, &to(ObjectId(u128::MAX))).is_err());
    let region = Referent { part: ReferentPart::Region(Selection::All), ..to(a) };
    assert!(matches!(store.reference(&form, &region), Err(Error::Invalid(_))));
}

/// The blocks of a region of a dataset of 10 by 4 elements, and the name of an attribute.
fn elements(part: &ReferentPart) -> (Vec<Vec<u64>>, Option<Name>) {
    match part {
        ReferentPart::Whole => (Vec::new(), None),
        ReferentPart::Attribute(name) => (Vec::new(), Some(name.clone())),
        ReferentPart::Region(selection) => {
            let selected = selection.on(&[10, 4]).unwrap();
            let grid = ChunkGrid::new(&[1, 1]).unwrap();
            let cut = selected.cut(&grid);
            (cut.chunks().map(|at| at.scaled().to_vec()).collect(), None)
        }
    }
}

/// References to regions and attributes, and those of HDF5 1.12, lead back to what they were made of.
pub fn rich_references(lab: &impl Lab) {
    let store = lab.create();
    let data = make(&store, "data", growing(&[10, 4], &[2, 2])).id();
    let slab = Selection::block(&[2, 1], &[3, 2]);
    let points = Selection::Points(vec![[1, 1].as_slice().into(), [9, 0].as_slice().into()]);
    let attribute = name("unit");
    let cases = [
        (ReferenceKind::Region1, 12, ReferentPart::Region(slab.clone())),
        (ReferenceKind::Region1, 12, ReferentPart::Region(points)),
        (ReferenceKind::Object2, 16, ReferentPart::Whole),
        (ReferenceKind::Region2, 20, ReferentPart::Region(slab)),
        (ReferenceKind::Attribute, 20, ReferentPart::Attribute(attribute)),
    ];
    for (kind, size, part) in cases {
        let to = Referent { file: None, object: data, part };
        let element = store.reference(&Reference { kind, size }, &to).unwrap();
        assert_eq!(element.len(), size as usize);
        let found = store.referent(kind, &element).unwrap().expect("the reference is not null");
        assert_eq!((&found.file, found.object), (&to.file, to.object), "{kind:?}");
        assert_eq!(elements(&found.part), elements(&to.part), "{kind:?}");
        assert_eq!(store.referent(kind, &vec![0; size as usize]).unwrap(), None);
    }
}

/// A link goes from one name to another, and what it leads to stays what it is.
pub fn renaming(lab: &impl Lab) {
    let store = lab.create();
    let root = store.root();
    let group = store.create(root, &name("group"), &ObjectSpec::group()).unwrap();
    let data = make(&store, "data", growing(&[3], &[2]));
    store.add_link(root, &name("soft"), &LinkTarget::Soft(name("/data"))).unwrap();
    store.rename_link((root, &name("data")), (group, &name("moved"))).unwrap();
    store.rename_link((root, &name("soft")), (root, &name("other"))).unwrap();
    assert_eq!(link_names(&store, root), [name("group"), name("other")].into());
    assert_eq!(store.link(group, &name("moved")).unwrap().unwrap().target, LinkTarget::Hard(data.id()));
    assert_eq!(store.link(root, &name("other")).unwrap().unwrap().target, LinkTarget::Soft(name("/data")));
    let nothing = store.rename_link((root, &name("data")), (root, &name("new")));
    assert!(matches!(nothing, Err(Error::NotFound(_))));
    let taken = store.rename_link((root, &name("other")), (root, &name("group")));
    assert!(matches!(taken, Err(Error::Exists(_))));
    let bad = store.rename_link((root, &name("other")), (root, &name("a/b")));
    assert!(matches!(bad, Err(Error::Invalid(_))));
    let elsewhere = store.rename_link((root, &name("other")), (data.id(), &name("new")));
    assert!(matches!(elsewhere, Err(Error::WrongKind { .. })));
    store.rename_link((root, &name("other")), (root, &name("other"))).unwrap();
    assert_eq!(link_names(&store, root), [name("group"), name("other")].into(), "what was refused changed nothing");
    store.remove_link(group, &name("moved")).unwrap();
    assert_eq!(link_names(&store, group), BTreeSet::new());
}

/// An object that is made without links has as many as are added.
pub fn unlinked(lab: &impl Lab) {
    let store = lab.create();
    let group = store.create_unlinked(&ObjectSpec::group()).unwrap();
    let data = store.create_unlinked(&growing(&[2], &[2]).into()).unwrap();
    store.dataset(data).unwrap().write(&ChunkCoord::new(&[0]), 0, &[1, 2, 3, 4]).unwrap();
    store.add_link(group, &name("data"), &LinkTarget::Hard(data)).unwrap();
    assert_eq!(link_names(&store, store.root()), BTreeSet::new());
    store.add_link(store.root(), &name("group"), &LinkTarget::Hard(group)).unwrap();
    store.add_link(store.root(), &name("again"), &LinkTarget::Hard(data)).unwrap();
    assert_eq!((store.info(group).unwrap().links, store.info(data).unwrap().links), (1, 2));
    // A committed type may have users, and no link.
    let id = store.create_unlinked(&u16le().into()).unwrap();
    make(&store, "typed", DatasetSpec { committed: Some(id), ..growing(&[1], &[1]) });
    assert_eq!(store.info(id).unwrap().links, 1);
    store.close().unwrap();
    let store = lab.reopen(store);
    assert_eq!(link_names(&store, store.root()), [name("again"), name("group"), name("typed")].into());
    let Some(LinkTarget::Hard(data)) = store.link(store.root(), &name("again")).unwrap().map(|link| link.target) else {
        panic!("a hard link");
    };
    assert_eq!(stored(&*store.dataset(data).unwrap(), &[0]), [1, 2, 3, 4]);
    assert_eq!(store.info(data).unwrap().links, 2);
}

/// Links and attributes know their order of creation where it is tracked, also after some are gone.
pub fn creation_order(lab: &impl Lab) {
    let store = lab.create();
    for order in [CreationOrder::Untracked, CreationOrder::Tracked, CreationOrder::Indexed] {
        let kept = EntryStorage { order, ..EntryStorage::default() };
        let spec = ObjectSpec { attributes: kept, ..GroupSpec { links: kept }.into() };
        let group = store.create(store.root(), &Name::from(format!("{order:?}")), &spec).unwrap();
        assert_eq!(store.group(group).unwrap(), GroupSpec { links: kept });
        assert_eq!(store.info(group).unwrap().attributes, kept);
        for i in 0..20u16 {
            let name = Name::from(format!("{:02}", 19 - i));
            store.add_link(group, &name, &LinkTarget::Soft(name.clone())).unwrap();
            store.set_attribute(group, &number(name, i)).unwrap();
        }
        store.set_attribute(group, &number(name("19"), 99)).unwrap();
        store.remove_link(group, &name("18")).unwrap();
        store.remove_attribute(group, &name("18")).unwrap();
        store.add_link(group, &name("18"), &LinkTarget::Soft(name("x"))).unwrap();
        store.set_attribute(group, &number(name("18"), 1)).unwrap();
        let tracked = order != CreationOrder::Untracked;
        for (at, position) in [("19", 0), ("17", 2), ("00", 19), ("18", 20)] {
            let link = store.link(group, &name(at)).unwrap().unwrap();
            assert_eq!(link.creation_order, tracked.then_some(position));
            let attribute = store.attribute(group, &name(at)).unwrap().unwrap();
            assert_eq!(attribute.creation_order, tracked.then_some(position as u16));
        }
    }
}

/// Datasets and attributes whose type is a committed one say so, and keep it alive.
pub fn uses_of_committed_types(lab: &impl Lab) {
    let store = lab.create();
    let root = store.root();
    let id = store.create(root, &name("t"), &u16le().into()).unwrap();
    let data = make(&store, "data", DatasetSpec { committed: Some(id), ..growing(&[1], &[1]) });
    assert_eq!(data.spec().unwrap().committed, Some(id));
    store.set_attribute(root, &Attribute { committed: Some(id), ..number(name("a"), 7) }).unwrap();
    assert_eq!(store.attribute(root, &name("a")).unwrap().unwrap().committed, Some(id));
    assert_eq!(store.info(id).unwrap().links, 3);
    store.remove_link(root, &name("t")).unwrap();
    store.remove_attribute(root, &name("a")).unwrap();
    assert_eq!(store.datatype(id).unwrap(), u16le());
    assert_eq!(store.info(id).unwrap().links, 1);
    store.add_link(root, &name("again"), &LinkTarget::Hard(id)).unwrap();
    store.remove_link(root, &name("data")).unwrap();
    assert_eq!(store.info(id).unwrap().links, 1);
    let group = store.create(root, &name("group"), &ObjectSpec::group()).unwrap();
    let wrong = DatasetSpec { committed: Some(group), ..growing(&[1], &[1]) };
    assert!(store.create(root, &name("wrong"), &wrong.into()).is_err());
}

/// A comment is set, replaced and taken away.
pub fn comments(lab: &impl Lab) {
    let store = lab.create();
    let comment = || store.info(store.root()).unwrap().comment;
    assert_eq!(comment(), None);
    for text in [Some("short"), Some("somewhat longer than it was before"), Some(""), None] {
        store.set_comment(store.root(), text.map(Name::from).as_ref()).unwrap();
        assert_eq!(comment().filter(|text| !text.is_empty()), text.filter(|text| !text.is_empty()).map(Name::from));
    }
}

/// Everything is there after the file was closed and opened again; a closed session does nothing.
pub fn persistence(lab: &impl Lab) {
    let store = lab.create();
    let group = store.create(store.root(), &name("g"), &ObjectSpec::group()).unwrap();
    store.create(group, &name("below"), &ObjectSpec::group()).unwrap();
    store.add_link(group, &name("soft"), &LinkTarget::Soft(name("/g"))).unwrap();
    let attribute = Attribute {
        name: name("a"),
        datatype: u16le(),
        committed: None,
        dataspace: Dataspace::Scalar,
        value: vec![1, 2],
        creation_order: None,
    };
    store.set_attribute(group, &attribute).unwrap();
    let spec = growing(&[3, 2], &[2, 2]);
    let data = make(&store, "data", spec.clone());
    data.write(&ChunkCoord::new(&[1, 0]), 0, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    store.close().unwrap();
    store.close().unwrap();
    assert!(store.create(store.root(), &name("late"), &ObjectSpec::group()).is_err());
    assert!(data.write(&ChunkCoord::new(&[0, 0]), 0, &[0; 8]).is_err());
    drop(data);

    let store = lab.reopen(store);
    let root = store.root();
    assert_eq!(link_names(&store, root), [name("data"), name("g")].into());
    let id = |group, at: &str| match store.link(group, &name(at)).unwrap().unwrap().target {
        LinkTarget::Hard(id) => id,
        other => panic!("{other:?}"),
    };
    let group = id(root, "g");
    assert_eq!(link_names(&store, group), [name("below"), name("soft")].into());
    assert_eq!(store.attribute(group, &name("a")).unwrap().unwrap().value, [1, 2]);
    let data = store.dataset(id(root, "data")).unwrap();
    assert_eq!(*data.spec().unwrap(), spec);
    assert_eq!(stored(&*data, &[1, 0]), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(data.chunk(&ChunkCoord::new(&[0, 0])).unwrap(), None);
    data.set_extent(&[4, 2]).unwrap();
    data.write(&ChunkCoord::new(&[0, 0]), 0, &[9; 8]).unwrap();
    data.flush().unwrap();
    assert_eq!(stored(&*data, &[0, 0]), [9; 8]);
}

/// A reader sees an extent after the writer's flush and its own refresh, whole, and cannot write.
pub fn live(lab: &impl Lab) {
    let writer = lab.create();
    let data = make(&writer, "data", growing(&[0], &[2]));
    writer.start_swmr().unwrap();
    let Some(reader) = lab.reader(&writer) else { return };
    assert!(reader.is_live().unwrap());
    assert!(!writer.is_live().unwrap(), "nobody else changes the file of a writer");
    let LinkTarget::Hard(id) = reader.link(reader.root(), &name("data")).unwrap().unwrap().target else {
        panic!("a hard link");
    };
    let mut watch = reader.watch(&[id]).unwrap();
    let seen = reader.dataset(id).unwrap();
    let extent = || seen.spec().unwrap().dataspace.dims()[0];
    assert_eq!(extent(), 0);
    for i in 0..20u64 {
        data.write(&ChunkCoord::new(&[i]), 0, &[i as u8; 4]).unwrap();
        data.set_extent(&[2 * i + 2]).unwrap();
        seen.refresh().unwrap();
        assert!(extent() <= 2 * i + 2);
        data.flush().unwrap();
        assert_eq!(watch.wait(Duration::MAX).unwrap(), Wake::Changed);
        seen.refresh().unwrap();
        assert_eq!(extent(), 2 * i + 2);
        for k in 0..=i {
            assert_eq!(stored(&*seen, &[k]), [k as u8; 4]);
        }
    }
    assert!(!seen.refresh().unwrap(), "nothing has changed");
    assert!(matches!(seen.write(&ChunkCoord::new(&[0]), 0, &[0; 4]), Err(Error::ReadOnly)));
    assert!(matches!(seen.set_extent(&[0]), Err(Error::ReadOnly)));
    assert!(matches!(reader.create(reader.root(), &name("x"), &ObjectSpec::group()), Err(Error::ReadOnly)));
    writer.close().unwrap();
    assert!(!reader.is_live().unwrap());
}
