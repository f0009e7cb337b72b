use super::*;
use h5live::model::memory::MemoryStore;
use h5live::model::{
    AttributeData, ByteOrder, Fill, Layout, LinkTarget, Name, NewObject, ObjectKind, ObjectSpec, ReferenceType,
    Referent, ReferentPart, Shape, Sign, StoreWriter, VarLenType,
};

/// Most bytes of a dataset that are read.
const LIMIT: u64 = 4 << 30;

fn u16be() -> Datatype {
    Datatype::integer(2, ByteOrder::Big, Sign::Unsigned)
}

fn dataset(datatype: Datatype, dims: &[u64]) -> DatasetSpec {
    DatasetSpec { datatype, dataspace: Dataspace::Simple(Shape::fixed(dims)), ..Default::default() }
}

fn create(store: &MemoryStore, parent: ObjectId, name: &str, spec: DatasetSpec, bytes: &[u8]) -> ObjectId {
    let id = store.create(&NewObject::linked(parent, &name.into(), &spec.into())).unwrap();
    let chunks = store.dataset(id).unwrap();
    let origin = h5live::model::ChunkCoord::origin(chunks.spec().unwrap().dataspace.rank());
    chunks.write_whole_chunk(&origin, 0, bytes).unwrap();
    id
}

/// The manifest of a store whose datasets are all of one chunk and small.
fn manifest(store: &MemoryStore) -> Vec<String> {
    let listing = Listing::from_store(store, store.session().root, b"/", None);
    let read = |id, selection: &Selection| {
        assert_eq!(*selection, Selection::All);
        let chunks = store.dataset(id).unwrap();
        let rank = chunks.spec().unwrap().dataspace.rank();
        let chunk = chunks.locate(&h5live::model::ChunkCoord::origin(rank)).unwrap().unwrap();
        let mut bytes = vec![0; chunk.size as usize];
        chunks.read(&chunk, 0, &mut bytes).unwrap();
        Ok(bytes)
    };
    ManifestRenderer::new(store, &listing, LIMIT, Box::new(&read)).render_lines().collect()
}

fn sha(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

#[test]
fn an_empty_file_is_its_root() {
    assert_eq!(manifest(&MemoryStore::new()), ["/\tgroup\t-\t-\t-\t-"]);
}

#[test]
fn lines_come_depth_first_and_sorted_bytewise() {
    let store = MemoryStore::new();
    let group =
        |parent, name: &str| store.create(&NewObject::linked(parent, &name.into(), &ObjectSpec::group())).unwrap();
    let b = group(store.session().root, "b");
    group(b, "z");
    group(store.session().root, "a\n");
    group(store.session().root, "B");
    store.add_link(store.session().root, &"c".into(), &LinkTarget::Hard(b)).unwrap();
    store.add_link(store.session().root, &"d".into(), &LinkTarget::Soft("/b\t".into())).unwrap();
    let external = LinkTarget::External { file: "f.h5".into(), path: "/x".into() };
    store.add_link(b, &"e".into(), &external).unwrap();
    store.add_link(b, &"u".into(), &LinkTarget::UserDefined { class: 187, data: vec![] }).unwrap();
    let invalid = Name::from(&b"\xFF"[..]);
    store.create(&NewObject::linked(store.session().root, &invalid, &u16be().into())).unwrap();
    let lines = manifest(&store);
    let short: Vec<_> = lines.iter().map(|line| line.strip_suffix("\t-\t-\t-").unwrap()).collect();
    assert_eq!(
        short,
        [
            "/\tgroup\t-",
            "/B\tgroup\t-",
            "/a\\n\tgroup\t-",
            "/b\tgroup\t-",
            "/b/e\texternal\tf.h5:/x",
            "/b/u\tunknown-link\t187",
            "/b/z\tgroup\t-",
            "/c\thard\t/b",
            "/d\tsoft\t/b\\t",
            "/\\xFF\tdatatype\tu16be",
        ]
    );
}

#[test]
fn datasets_show_type_space_storage_and_hash() {
    let store = MemoryStore::new();
    let fill = Fill { value: FillValue::Value(vec![0, 7]), ..Default::default() };
    let spec = DatasetSpec { fill, layout: Layout::Chunked(vec![2]), ..dataset(u16be(), &[2]) };
    create(&store, store.session().root, "d", spec, &[1, 2, 3, 4]);
    let line = format!("/d\tdataset\tu16be\t[2]/[2]\tchunked[2] fill=0007\t{}", sha(&[2, 1, 4, 3]));
    assert_eq!(manifest(&store).last(), Some(&line));
}

#[test]
fn attributes_follow_their_object_before_its_links() {
    let store = MemoryStore::new();
    let group = store.create(&NewObject::linked(store.session().root, &"g".into(), &ObjectSpec::group())).unwrap();
    for (object, name) in [(store.session().root, "b"), (store.session().root, "a"), (group, "c")] {
        let value = AttributeData {
            name: name.into(),
            datatype: u16be(),
            committed_datatype: None,
            dataspace: Dataspace::Scalar,
            value: vec![1, 2],
            creation_order: None,
        };
        store.set_attribute(object, &value).unwrap();
    }
    let lines = manifest(&store);
    let paths: Vec<_> = lines.iter().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(paths, ["/", "/@a", "/@b", "/g", "/g@c"]);
    assert_eq!(lines[1], format!("/@a\tattribute\tu16be\tscalar\t-\t{}", sha(&[2, 1])));
}

#[test]
fn references_show_the_path_under_which_their_object_was_listed() {
    let store = MemoryStore::new();
    let target =
        store.create(&NewObject::linked(store.session().root, &"target".into(), &ObjectSpec::group())).unwrap();
    let form = ReferenceType { kind: ReferenceKind::Object1, size: 8 };
    let to = Referent { file: None, object: target, part: ReferentPart::Whole };
    let stored = store.encode_reference(&form, &to).unwrap();
    let datatype = Datatype::Reference(form);
    create(&store, store.session().root, "r", dataset(datatype, &[1]), &stored);
    let line = &manifest(&store)[1];
    assert!(line.ends_with(&sha(b"\x07\0\0\0\0\0\0\0/target")), "{line}");
}

#[test]
fn what_has_no_hash_says_why() {
    let store = MemoryStore::new();
    let listing = Listing::from_store(&store, store.session().root, b"/", None);
    let read = |_, _: &Selection| panic!("nothing is read");
    let renderer = ManifestRenderer::new(&store, &listing, LIMIT, Box::new(&read));
    let feed = |_: &CanonicalPlan, _: &mut Sha256| -> Result<(), UnreadCause> { panic!("there is nothing to feed") };
    assert_eq!(renderer.hash(&u16be(), &Dataspace::Null, feed), Ok(sha(b"")));
    let space = |dims: &[u64]| Dataspace::Simple(Shape::fixed(dims));
    let skipped = |bytes| Err(UnreadCause::TooLarge { bytes, limit: LIMIT });
    assert_eq!(renderer.hash(&u16be(), &space(&[(2 << 30) + 1]), feed), skipped((4 << 30) + 2));
    assert_eq!(renderer.hash(&u16be(), &space(&[u64::MAX, 3]), feed), skipped(u64::MAX));
    let unreadable = UnreadCause::Unreadable("why".to_owned());
    assert_eq!(renderer.hash(&u16be(), &space(&[1]), |_, _| Err(unreadable.clone())), Err(unreadable.clone()));
    let column = renderer.column("/d", Err(unreadable.clone()));
    assert!(column.starts_with("unreadable:"), "{column}");
    assert_eq!(renderer.take_unread(), [("/d".to_owned(), unreadable)]);
}

#[test]
fn regions_are_told_by_their_elements() {
    let store = MemoryStore::new();
    let target = create(&store, store.session().root, "target", dataset(u16be(), &[10]), &[0; 20]);
    let form = ReferenceType { kind: ReferenceKind::Region1, size: 12 };
    let line_of = |name: &str, region: Selection| {
        let to = Referent { file: None, object: target, part: ReferentPart::Region(region) };
        let stored = store.encode_reference(&form, &to).unwrap();
        create(&store, store.session().root, name, dataset(Datatype::Reference(form.clone()), &[1]), &stored);
        let line = manifest(&store).into_iter().find(|line| line.starts_with(&format!("/{name}\t"))).unwrap();
        line.rsplit('\t').next().unwrap().to_owned()
    };
    let block = line_of("block", Selection::block(&[2], &[3]));
    let singles = h5live::model::Hyperslab {
        block: [1][..].into(),
        count: [3][..].into(),
        ..h5live::model::Hyperslab::block(&[2], &[3])
    };
    assert_eq!(block, line_of("singles", Selection::Hyperslab(singles)));
    assert_ne!(block, line_of("other", Selection::block(&[3], &[3])));
}

#[test]
fn a_string_that_the_heap_does_not_have_is_unreadable() {
    let kind = h5live::model::VarLenKind::String { padding: Default::default(), character_set: Default::default() };
    let datatype = Datatype::VarLen(VarLenType { kind, size: 16, base: Box::default() });
    let store = MemoryStore::new();
    create(
        &store,
        store.session().root,
        "s",
        dataset(datatype, &[1]),
        &[1, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9],
    );
    let [first, second] = [(); 2].map(|()| manifest(&store)[1].clone());
    assert!(first.contains("\tunreadable:") && second.contains("\tunreadable:"), "{first}");
    assert_ne!(first, second, "what was not read is equal to nothing");
    assert_eq!(store.kind(store.session().root).unwrap(), ObjectKind::Group);
}

#[test]
fn elements_that_nobody_wrote_are_hashed_and_not_looked_up() {
    const CHUNK: u64 = 1 << 20;
    let store = MemoryStore::new();
    let mut spec = dataset(Datatype::integer(1, ByteOrder::Little, Sign::Unsigned), &[200 * CHUNK]);
    spec.layout = Layout::Chunked(vec![CHUNK]);
    spec.fill.value = FillValue::Value(vec![3]);
    let id = store.create(&NewObject::linked(store.session().root, &"d".into(), &spec.into())).unwrap();
    let written = vec![9; CHUNK as usize];
    store.dataset(id).unwrap().write_whole_chunk(&h5live::model::ChunkCoord::new(&[100]), 0, &written).unwrap();
    let mut expected = vec![3; 200 << 20];
    expected[100 << 20..101 << 20].copy_from_slice(&written);
    let reads = Cell::new(0);
    let read = |_, selection: &Selection| {
        reads.set(reads.get() + 1);
        let Selection::Hyperslab(slab) = selection else { panic!("{selection:?}") };
        Ok(expected[slab.start[0] as usize..][..slab.block[0] as usize].to_vec())
    };
    let listing = Listing::from_store(&store, store.session().root, b"/", None);
    let lines: Vec<_> = ManifestRenderer::new(&store, &listing, LIMIT, Box::new(&read)).render_lines().collect();
    assert!(lines[1].ends_with(&format!("\t{}", sha(&expected))), "{}", lines[1]);
    assert_eq!(reads.get(), 1, "of four blocks, one has a chunk");
}

#[test]
fn elements_that_are_larger_than_what_may_be_allocated_are_unreadable() {
    let store = MemoryStore::new();
    let opaque = Datatype::Opaque(h5live::model::OpaqueType { size: 300 << 20, tag: Name::default() });
    let spec = DatasetSpec { layout: Layout::Chunked(vec![1]), ..dataset(opaque, &[5]) };
    store.create(&NewObject::linked(store.session().root, &"d".into(), &spec.into())).unwrap();
    let listing = Listing::from_store(&store, store.session().root, b"/", None);
    let read = |_, _: &Selection| panic!("nobody wrote anything");
    let renderer = ManifestRenderer {
        allocation: AllocationLimit::new(256 << 20),
        ..ManifestRenderer::new(&store, &listing, LIMIT, Box::new(&read))
    };
    let lines: Vec<_> = renderer.render_lines().collect();
    assert!(lines[1].contains("\tunreadable:"), "{}", lines[1]);
}

#[test]
fn blocks_cover_everything_once_and_in_order() {
    let covered = |dims: &[u64], block| -> Vec<(Vec<u64>, Vec<u64>)> {
        split_into_blocks(dims, &[], 2, block).into_iter().map(|block| (block.start, block.count)).collect()
    };
    assert_eq!(covered(&[], 100), [(vec![], vec![])]);
    assert_eq!(covered(&[3, 4], 24), [(vec![0, 0], vec![3, 4])]);
    assert_eq!(covered(&[3, 4], 16), [(vec![0, 0], vec![2, 4]), (vec![2, 0], vec![1, 4])]);
    let rows = [(vec![0, 0], vec![1, 3]), (vec![0, 3], vec![1, 1]), (vec![1, 0], vec![1, 3]), (vec![1, 3], vec![1, 1])];
    assert_eq!(covered(&[2, 4], 6), rows);
    assert_eq!(covered(&[2], 1), [(vec![0], vec![1]), (vec![1], vec![1])]);
}

#[test]
fn blocks_are_of_whole_chunks_where_that_is_possible() {
    let lengths = |dims: &[u64], chunk: &[u64], block| -> Vec<u64> {
        split_into_blocks(dims, chunk, 1, block).into_iter().map(|block| block.count[0]).collect()
    };
    assert_eq!(lengths(&[10, 4], &[3, 4], 28), [6, 4]);
    assert_eq!(lengths(&[10, 4], &[9, 4], 28), [7, 3], "a chunk is larger than a block");
}
