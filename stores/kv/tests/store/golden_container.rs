//! All keys and values of a container with objects of every kind, as a session makes it, written down from
//! `docs/kv-layout.md`. The records of each kind one by one are in `golden.rs`.

use crate::shared;

use h5live_kv::KvStore;
use h5live_kv::engine::{Engine, KeySpan, LongKeyEngine, MemoryEngine};
use h5live_kv::layout::{checked_value, oid};
use h5live_model::{
    AttributeData, ByteOrder, CharacterSet, ChunkBatch, ChunkCoord, ChunkWrite, CreationOrder, DatasetSpec, Dataspace,
    Datatype, DurabilitySupport, FilterSpec, GroupSpec, Layout, LinkOrAttributeStorageSpec, LinkTarget, MapEdit,
    MapKey, MapSpec, Mode, NewObject, ObjectId, ObjectKindSpec, ObjectScope, ObjectSpec, PublishLevel, Shape, Sign,
    Store, StoreWriter, StringPadding, UNLIMITED, VarLenKind, VarLenType,
};

use self::shared::{hex_bytes, request};

/// The property list of a chunked dataset without times, with this layout and these filters.
fn chunked(layout: &str, pline: &str) -> String {
    format!(
        r#"00 05 "layout" 00 {layout} "efl" 00 0100 "pline" 00 {pline} "fill_value" 00 03 02 0000000000000000
           "object header flags" 00 00 "dset_oh_minimize" 00 00 "alloc_time_state" 00 04 01000000 {DENSE} 00"#
    )
}

/// That of a contiguous dataset without times. It gets its space as chunked ones do, which is not the way of the layout.
fn contiguous() -> String {
    format!(
        r#"00 05 "layout" 00 01 "efl" 00 0100 "pline" 00 {NO_FILTERS} "alloc_time_state" 00 04 00000000
           "fill_value" 00 03 02 0000000000000000 "object header flags" 00 00 "dset_oh_minimize" 00 00 {DENSE} 00"#
    )
}

const DENSE: &str = r#""min dense attr" 00 04 06000000 "max compact attr" 00 04 08000000"#;
const ALL: &str = "03000000 01000000 00000000 00000000";
const BYTE: &str = "03 00 10 000000 01000000 0000 0800";
const NO_FILTERS: &str = "040100";

fn byte() -> Datatype {
    Datatype::integer(1, ByteOrder::Little, Sign::Unsigned)
}

fn text() -> Datatype {
    let kind = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: CharacterSet::Utf8 };
    Datatype::VarLen(VarLenType { kind, size: 20, base: Box::new(Datatype::default()) })
}

fn make(store: &KvStore, name: &str, body: ObjectKindSpec) -> ObjectId {
    let spec = ObjectSpec { body, ..ObjectSpec::group() };
    store.create(&NewObject::linked(oid::ROOT, &name.into(), &spec)).unwrap()
}

fn make_dataset(store: &KvStore, name: &str, dataset: DatasetSpec) -> ObjectId {
    make(store, name, ObjectKindSpec::Dataset(Box::new(dataset)))
}

fn write(store: &KvStore, id: ObjectId, coord: &[u64], filter_mask: u32, bytes: &[u8]) {
    let coord = ChunkCoord::new(coord);
    let writes = [ChunkWrite::Whole { coord: &coord, filter_mask, bytes }];
    store.dataset(id).unwrap().write(&ChunkBatch { writes: &writes, ..ChunkBatch::default() }).unwrap();
}

/// A container with an object of each kind.
fn fill(store: &KvStore) {
    let links = LinkOrAttributeStorageSpec { order: CreationOrder::Indexed, ..LinkOrAttributeStorageSpec::default() };
    let group = make(store, "group", ObjectKindSpec::Group(GroupSpec { link_storage: links }));
    store.add_link(group, &"soft".into(), &LinkTarget::Soft("/x".into())).unwrap();
    let outside = LinkTarget::External { file: "o.h5".into(), path: "/x".into() };
    store.add_link(oid::ROOT, &"outside".into(), &outside).unwrap();
    let shape = Dataspace::Simple(Shape::with_max(&[3], &[UNLIMITED]).unwrap());
    let rows =
        DatasetSpec { datatype: byte(), dataspace: shape, layout: Layout::Chunked(vec![2]), ..Default::default() };
    let plain = make_dataset(store, "plain", rows.clone());
    write(store, plain, &[0], 0, &[1, 2]);
    write(store, plain, &[1], 0, &[3, 0]);
    let filter = FilterSpec { id: 1, optional: true, name: None, params: vec![6] };
    let filtered = make_dataset(store, "z", DatasetSpec { filters: vec![filter], ..rows });
    write(store, filtered, &[1], 1, b"as it is");
    let scalar = DatasetSpec { datatype: text(), dataspace: Dataspace::Scalar, ..DatasetSpec::default() };
    let texts = make_dataset(store, "text", scalar);
    let element = store.put_blob(b"abc", 3).unwrap();
    write(store, texts, &[], 0, &element);
    let committed = make(store, "type", ObjectKindSpec::Datatype(byte()));
    let attribute = AttributeData {
        name: "a".into(),
        datatype: byte(),
        committed_datatype: Some(committed),
        dataspace: Dataspace::Scalar,
        value: vec![9],
        creation_order: None,
    };
    store.set_attribute(group, &attribute).unwrap();
    let map = make(store, "map", ObjectKindSpec::Map(Box::new(MapSpec { key_type: byte(), value_type: byte() })));
    let edit = MapEdit::Put { key: MapKey::Bytes(&[7]), value: &[8] };
    store.maps().unwrap().write(map, &[edit]).unwrap();
    let names = make(store, "names", ObjectKindSpec::Map(Box::new(MapSpec { key_type: byte(), value_type: text() })));
    let edit = |key, value| MapEdit::Put { key: MapKey::Bytes(key), value };
    store.maps().unwrap().write(names, &[edit(&[1], b"one"), edit(&[2], b"")]).unwrap();
    store.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
}

/// The records that the page says such a container has.
fn expected() -> Vec<(String, String)> {
    let list = |class: &str| format!(r#"00 {class} "object header flags" 00 00 "pline" 00 {NO_FILTERS} {DENSE} 00"#);
    let files = r#"
        "file_space_strategy" 00 00  "btree_rank" 00 04 10000000 20000000  "block_size" 00 0100
        "symbol_leaf" 00 04 04000000  "file_space_page_size" 00 020010  "free_space_persist" 00 00
        "shmsg_message_types" 00 04 0000000000000000 0000000000000000 0000000000000000 0000000000000000
        "obj_byte_num" 00 08  "free_space_threshold" 00 0101  "addr_byte_num" 00 08
        "shmsg_message_minsize" 00 04 fa000000 fa000000 fa000000 fa000000 fa000000 fa000000 00000000 00000000
        "shmsg_btree_min" 00 04 28000000  "shmsg_list_max" 00 04 32000000  "num_shmsg_indexes" 00 04 00000000"#;
    let group_info = r#""group info" 00 00000000 0800 0600 0400 0800"#;
    let root = format!(
        r#"00 03 "object header flags" 00 00 {files} "link info" 00 04 00000000 {group_info} "pline" 00 {NO_FILTERS} {DENSE} 00"#
    );
    let ordered = format!(
        r#"00 09 "link info" 00 04 03000000 "object header flags" 00 00 {group_info} "pline" 00 {NO_FILTERS} {DENSE} 00"#
    );
    let rows = format!("01 00 08 18000000  01 01 01 00 00000000 0300000000000000 ffffffffffffffff {ALL}");
    let scalar = format!("01 00 08 08000000  01 00 00 00 00000000 {ALL}");
    let deflate = "04 0101 01000000 01000000 00 0101 06000000";
    let text_type = "03 00 19 010100 08000000  10 000000 01000000 0000 0800";
    // The session's random number is 1; this is its first blob.
    let uuid = "0000000000004001 8000000000000001";
    let second = "0000000000004001 8000000000000002";
    let token = |index: &str, kind: &str| format!("{index}000000 00000000 000000{kind} 00000000");
    let link = |index: &str, kind: &str| format!("00 {}", token(index, kind));
    let one = "0100000000000000";
    let records = [
        ("00 1001", r#""h5livekv" 02000000 01000000"#),
        ("00 1002", &token("01", "00")),
        ("00 1003", "0004000000000000"),
        (&format!("00 70 {uuid}"), r#""abc""#),
        (&format!("00 70 {second}"), r#""one""#),
        // The root group.
        ("0101 1012", &root),
        (r#"0101 40 "group" 00 01"#, &link("02", "00")),
        (r#"0101 40 "map" 00 01"#, &link("07", "c0")),
        (r#"0101 40 "names" 00 01"#, &link("08", "c0")),
        (r#"0101 40 "outside" 00 01"#, r#"40 00 "o.h5" 00 "/x" 00"#),
        (r#"0101 40 "plain" 00 01"#, &link("03", "40")),
        (r#"0101 40 "text" 00 01"#, &link("05", "40")),
        (r#"0101 40 "type" 00 01"#, &link("06", "80")),
        (r#"0101 40 "z" 00 01"#, &link("04", "40")),
        // The group with an order of creation, and its attribute.
        ("0102 1012", &ordered),
        ("0102 1014", one),
        (r#"0102 2004 "a" 00 01"#, BYTE),
        (r#"0102 2004 "a" 00 02"#, &scalar),
        (r#"0102 2004 "a" 00 03"#, r#"00 0e "character_encoding" 00 00 00"#),
        (r#"0102 2004 "a" 00 05"#, &token("06", "80")),
        (r#"0102 2004 "a" 00 06"#, "09"),
        ("0102 3001", one),
        ("0102 3002", one),
        ("0102 3003 00 01", r#""soft""#),
        ("0102 3003 00 02", r#"01 "/x""#),
        (r#"0102 40 "soft" 00 01"#, r#"01 "/x""#),
        (r#"0102 40 "soft" 00 02"#, "0000000000000000"),
        // The dataset without filters: what is fill value at the end of a chunk is not stored.
        ("4103 1010", BYTE),
        ("4103 1011", &rows),
        ("4103 1012", &chunked("02 01 02000000", NO_FILTERS)),
        ("4103 1014", one),
        ("4103 50 00 10 00000000", "0102"),
        ("4103 50 0102 10 00000000", "03"),
        // The dataset with a filter, which one chunk has not passed.
        ("4104 1010", BYTE),
        ("4104 1011", &rows),
        ("4104 1012", &chunked("02 01 02000000", deflate)),
        ("4104 1014", one),
        ("4104 50 0102 11", r#"01000000 "as it is""#),
        // The text.
        ("4105 1010", text_type),
        ("4105 1011", &scalar),
        ("4105 1012", &contiguous()),
        ("4105 1014", one),
        ("4105 50 10 00000000", &format!("03000000 {uuid}")),
        // The committed datatype: a link, and an attribute.
        ("8106 1010", BYTE),
        ("8106 1012", &list("0b")),
        ("8106 1014", "0200000000000000"),
        // The map.
        ("c107 1012", &list("14")),
        ("c107 1014", one),
        ("c107 1018", BYTE),
        ("c107 1019", BYTE),
        ("c107 1028", one),
        ("c107 60 07", "08"),
        // The map of texts.
        ("c108 1012", &list("14")),
        ("c108 1014", one),
        ("c108 1018", BYTE),
        ("c108 1019", text_type),
        ("c108 1028", "0200000000000000"),
        ("c108 60 01", &format!("03000000 {second}")),
        ("c108 60 02", "00000000 0000000000000000 0000000000000000"),
    ];
    let listed = records.iter().map(|(key, value)| (hex(&hex_bytes(key)), hex(&hex_bytes(value))));
    listed.collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_container_with_objects_of_every_kind_has_these_keys_and_values_and_no_others() {
    let engine = MemoryEngine::new();
    let store =
        KvStore::open(LongKeyEngine::new(engine.clone()), &request(Mode::CreateNew, DurabilitySupport::Always, 1))
            .unwrap();
    fill(&store);
    let mut found = Vec::new();
    engine
        .view()
        .unwrap()
        .scan(&KeySpan::all(), &mut |key, value| {
            found.push((hex(key), hex(checked_value(key, value).expect("the checksum of the value"))));
            true
        })
        .unwrap();
    let expected = expected();
    for ((key, value), wanted) in found.iter().zip(&expected) {
        assert_eq!((key, value), (&wanted.0, &wanted.1));
    }
    assert_eq!(found.len(), expected.len());
}
