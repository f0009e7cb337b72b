//! The bytes of every key and value of a container with objects of every kind, written down from `docs/kv-layout.md`.

use crate::shared;

use h5live_kv::layout::value::{
    ContainerFormat, EncodedReference, VarLenBlobRef, encode_link_target, encode_times, encode_u64,
};
use h5live_kv::layout::{
    AttributeField, AttributeRecords, BlobId, EngineKey, MetadataField, MetadataRecords, RecordKey, checked_value,
    checksum, container_id, key, map_dkey, oid,
};
use h5live_model::{
    AttributeData, ByteOrder, CharacterSet, CreationOrder, DatasetSpec, Dataspace, Datatype, Fill, FillValue,
    FilterSpec, GroupSpec, Layout, LinkOrAttributeStorageSpec, LinkTarget, MapKey, MapSpec, ObjectId, ObjectKind,
    ObjectKindSpec, ObjectSpec, ObjectTimes, OrderPreservingKeyCodec, ReferenceKind, Referent, ReferentPart, Shape,
    Sign, StringPadding, UNLIMITED, VarLenKind, VarLenType,
};

use self::shared::hex_bytes as bytes;

/// Compares a record with its engine key, dkey, akey and value.
#[track_caller]
fn record(found: (EngineKey, impl AsRef<[u8]>), engine: &str, dkey: &str, akey: &str, value: &str) {
    let (key, found) = (found.0, found.1.as_ref());
    assert_eq!(format!("{key:?}"), hex(&bytes(engine)), "the engine key");
    let (_, record) = EngineKey::parse(key.as_bytes()).unwrap();
    let map_key = matches!(record, RecordKey::MapRecord(_));
    assert!(
        map_key || record.dkey_or_ordered_key() == bytes(dkey),
        "the dkey is {}",
        hex(&record.dkey_or_ordered_key())
    );
    assert_eq!(hex(&record.akey()), hex(&bytes(akey)), "the akey");
    assert_eq!(hex(found), hex(&bytes(value)), "the value: {}", found.escape_ascii());
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const METADATA: &str = r#""/Internal Metadata""#;
const ATTRIBUTE: &str = r#""/Attribute""#;
const LINK_ORDER: &str = r#""/Link Creation Order""#;

/// All elements of a dataspace.
const ALL: &str = "03000000 01000000 00000000 00000000";
/// Properties of every object that have their default.
const DEFAULT_COMPACT: &str = r#""min dense attr" 00 04 06000000 "max compact attr" 00 04 08000000"#;

const DATASET: ObjectId = oid::new(ObjectKind::Dataset, 2);
const DATATYPE: ObjectId = oid::new(ObjectKind::Datatype, 3);
const MAP: ObjectId = oid::new(ObjectKind::Map, 4);

fn i32_type() -> Datatype {
    Datatype::integer(4, ByteOrder::Little, Sign::Signed)
}

fn metadata_record(of: ObjectId, records: &MetadataRecords, field: MetadataField) -> (EngineKey, &[u8]) {
    (key::metadata(of, field), records.get(field).unwrap())
}

fn described<V>(of: ObjectId, field: MetadataField, value: V) -> (EngineKey, V) {
    (key::metadata(of, field), value)
}

#[test]
fn the_examples_of_the_page() {
    assert_eq!(container_id(b"a").to_string(), "64894a4e-702b-9178-af8c-1a6f69cb28d2");
    assert_eq!(oid::token(oid::ROOT).to_vec(), bytes("01000000000000000000000000000000"));
    assert_eq!(oid::token(DATASET).to_vec(), bytes("02000000000000000000004000000000"));
    let chunk = key::chunk_piece(DATASET, &[30, 0], 0);
    let (_, chunk) = EngineKey::parse(chunk.as_bytes()).unwrap();
    assert_eq!(chunk.dkey_or_ordered_key(), bytes("001e000000000000000000000000000000"));
    let scalar = key::chunk_piece(DATASET, &[], 0);
    assert_eq!(EngineKey::parse(scalar.as_bytes()).unwrap().1.dkey_or_ordered_key(), bytes("00"));
    for (number, ordered) in [(0, "00"), (1, "0101"), (1000, "0203e8")] {
        assert_eq!(key::attribute_name_at_rank(oid::ROOT, number).as_bytes(), bytes(&format!("0101 2003 {ordered}")));
    }
    // An object of a class of DAOS.
    let id = ObjectId(0x1200_0000_4000_0005_0000_0000_0000_0007);
    assert_eq!(key::link_count(id).as_bytes(), bytes("61 07 12000000 00000005 3001"));
    let unknown = RecordKey::from_dkey_and_akey(b"d\0", b"a");
    assert_eq!(EngineKey::new(oid::ROOT, &unknown).as_bytes(), bytes(r#"0101 f0 "d" 00ff 00 01 "a""#));
}

#[test]
fn the_checksum_of_a_value() {
    let piece = key::chunk_piece(oid::new(ObjectKind::Dataset, 3), &[0], 0);
    assert_eq!(piece.as_bytes(), bytes("4103 50 00 10 00000000"));
    assert_eq!(checksum(piece.as_bytes(), &bytes("0102")).to_vec(), bytes("068013dc"));
    assert_eq!(checked_value(piece.as_bytes(), &bytes("0102 068013dc")), Some(&[1, 2][..]));
}

#[test]
fn the_global_metadata_object() {
    let gmd = oid::GLOBAL_METADATA;
    for (form, value) in [
        (ContainerFormat { version: 1, has_checksums: false }, r#""h5livekv" 01000000"#),
        (ContainerFormat::new(false), r#""h5livekv" 02000000 00000000"#),
        (ContainerFormat::new(true), r#""h5livekv" 02000000 01000000"#),
    ] {
        let version = form.encode_without_checksum();
        let described = described(gmd, MetadataField::ContainerFormat, &version);
        record(described, "00 1001", METADATA, r#""Layout Version""#, value);
        assert_eq!(ContainerFormat::decode_stored(&form.encode_stored()), Ok(Ok(form)));
    }
    assert_eq!(ContainerFormat::new(true).encode_stored(), bytes(r#""h5livekv" 02000000 01000000 c1a835f0"#));
    let root = oid::token(oid::ROOT);
    record(
        described(gmd, MetadataField::RootGroup, &root),
        "00 1002",
        METADATA,
        r#""Root Group OID""#,
        "01000000 00000000 00000000 00000000",
    );
    let next = encode_u64(1024);
    record(
        described(gmd, MetadataField::FirstUnreservedObjectIndex, &next),
        "00 1003",
        METADATA,
        r#""Next Object Index""#,
        "0004000000000000",
    );
    let uuid = BlobId(*b"0123456789abcdef");
    record(
        (key::blob(uuid), b"text"),
        r#"00 70 "0123456789abcdef""#,
        r#""0123456789abcdef""#,
        r#""Blob""#,
        r#""text""#,
    );
    let element = VarLenBlobRef { element_count: 4, blob: uuid };
    assert_eq!(element.encode().to_vec(), bytes(r#"04000000 "0123456789abcdef""#));
    assert_eq!(VarLenBlobRef::default().encode(), [0; 20]);
}

#[test]
fn the_root_group_and_its_links() {
    let links = LinkOrAttributeStorageSpec { order: CreationOrder::Indexed, ..LinkOrAttributeStorageSpec::default() };
    let spec: ObjectSpec = GroupSpec { link_storage: links }.into();
    let records = MetadataRecords::of_root(&spec).unwrap();
    let files = r#"
        "file_space_strategy" 00 00  "btree_rank" 00 04 10000000 20000000  "block_size" 00 0100
        "symbol_leaf" 00 04 04000000  "file_space_page_size" 00 020010  "free_space_persist" 00 00
        "shmsg_message_types" 00 04 0000000000000000 0000000000000000 0000000000000000 0000000000000000
        "obj_byte_num" 00 08  "free_space_threshold" 00 0101  "addr_byte_num" 00 08
        "shmsg_message_minsize" 00 04 fa000000 fa000000 fa000000 fa000000 fa000000 fa000000 00000000 00000000
        "shmsg_btree_min" 00 04 28000000  "shmsg_list_max" 00 04 32000000  "num_shmsg_indexes" 00 04 00000000"#;
    // Set: the order of links, and that no times are kept.
    let list = format!(
        r#"00 03 "link info" 00 04 03000000 "object header flags" 00 00 {files}
           "group info" 00 00000000 0800 0600 0400 0800 "pline" 00 040100 {DEFAULT_COMPACT} 00"#
    );
    let found = metadata_record(oid::ROOT, &records, MetadataField::CreationProperties);
    record(found, "0101 1012", METADATA, r#""Creation Property List""#, &list);

    let (external, user) = (r#"40 00 "o.h5" 00 "/x" 00"#, r#"41 "any""#);
    let targets = [
        ("d", LinkTarget::Hard(DATASET), "00 02000000 00000000 00000040 00000000"),
        ("e", LinkTarget::External { file: "o.h5".into(), path: "/x".into() }, external),
        ("s", LinkTarget::Soft("/d".into()), r#"01 "/d""#),
        ("u", LinkTarget::UserDefined { class: 65, data: b"any".to_vec() }, user),
    ];
    for (at, (name, target, value)) in targets.iter().enumerate() {
        let found = encode_link_target(target).unwrap();
        let (dkey, n) = (format!("{name:?}"), format!("{at:02x}00000000000000"));
        let ordered = if at == 0 { "00".to_owned() } else { format!("01{at:02x}") };
        record(
            (key::link(oid::ROOT, name.as_bytes()), &found),
            &format!("0101 40 {dkey} 00 01"),
            &dkey,
            r#""Link""#,
            value,
        );
        record(
            (key::link_order(oid::ROOT, name.as_bytes()), &encode_u64(at as u64)),
            &format!("0101 40 {dkey} 00 02"),
            &dkey,
            LINK_ORDER,
            &n,
        );
        record(
            (key::link_name_at_rank(oid::ROOT, at as u64), name.as_bytes()),
            &format!("0101 3003 {ordered} 01"),
            LINK_ORDER,
            &n,
            &dkey,
        );
        record(
            (key::link_target_at_rank(oid::ROOT, at as u64), &found),
            &format!("0101 3003 {ordered} 02"),
            LINK_ORDER,
            &format!("{n} 00"),
            value,
        );
    }
    record((key::link_count(oid::ROOT), &encode_u64(4)), "0101 3001", LINK_ORDER, r#""Num Links""#, "0400000000000000");
    record(
        (key::next_link_order(oid::ROOT), &encode_u64(4)),
        "0101 3002",
        LINK_ORDER,
        r#""Max Link Creation Order""#,
        "0400000000000000",
    );
}

fn dataset() -> ObjectSpec {
    let filter = FilterSpec { id: 1, optional: true, name: Some("deflate".into()), params: vec![6] };
    let dataset = DatasetSpec {
        datatype: i32_type(),
        committed_datatype: Some(DATATYPE),
        dataspace: Dataspace::Simple(Shape::with_max(&[3], &[UNLIMITED]).unwrap()),
        layout: Layout::Chunked(vec![10]),
        filters: vec![filter],
        fill: Fill { value: FillValue::Value(vec![7, 0, 0, 0]), ..Fill::default() },
        unfiltered_partial_chunks: true,
    };
    let attributes =
        LinkOrAttributeStorageSpec { order: CreationOrder::Tracked, ..LinkOrAttributeStorageSpec::default() };
    ObjectSpec { attribute_storage: attributes, track_times: true, ..dataset.into() }
}

#[test]
fn a_dataset() {
    let records = MetadataRecords::of_object(&dataset()).unwrap();
    let found = |field| metadata_record(DATASET, &records, field);
    let datatype = "03 00 10 080000 04000000 0000 2000";
    record(found(MetadataField::Datatype), "4102 1010", METADATA, r#""Datatype""#, datatype);
    let space = format!("01 00 08 18000000  01 01 01 00 00000000 0300000000000000 ffffffffffffffff {ALL}");
    record(found(MetadataField::Dataspace), "4102 1011", METADATA, r#""Dataspace""#, &space);
    let list = format!(
        r#"00 05 "layout" 00 02 01 0a000000 "efl" 00 0100
           "pline" 00 04 0101 01000000 01000000 00 0101 06000000
           "fill_value" 00 03 02 0400000000000000 07000000 010e {datatype}
           "object header flags" 00 24
           "dset_oh_minimize" 00 00 "alloc_time_state" 00 04 01000000 {DEFAULT_COMPACT} 00"#
    );
    record(found(MetadataField::CreationProperties), "4102 1012", METADATA, r#""Creation Property List""#, &list);
    record(found(MetadataField::FillValue), "4102 1013", METADATA, r#""Fill Value""#, "07000000");
    record(
        found(MetadataField::CommittedDatatype),
        "4102 1020",
        METADATA,
        r#""Committed Datatype""#,
        "03000000 00000000 00000080 00000000",
    );
    // Chunks at the edge have no filters; a filter has a name.
    record(found(MetadataField::ExtraProperties), "4102 1032", METADATA, r#""Extras""#, r#"0a 07000000 "deflate""#);
    assert_eq!(records.iter().count(), 6);

    let (links, times) = (encode_u64(1), ObjectTimes { access: 1, modification: 2, change: 3, birth: -1 });
    record(
        described(DATASET, MetadataField::RefCount, &links),
        "4102 1014",
        METADATA,
        r#""Ref Count""#,
        "0100000000000000",
    );
    record(described(DATASET, MetadataField::Comment, b"seen"), "4102 1030", METADATA, r#""Comment""#, r#""seen""#);
    record(
        described(DATASET, MetadataField::Times, &encode_times(&times)),
        "4102 1031",
        METADATA,
        r#""Times""#,
        "0100000000000000 0200000000000000 0300000000000000 ffffffffffffffff",
    );

    let (dkey, start) = ("00 e803000000000000", "50 0203e8");
    record((key::chunk_piece(DATASET, &[1000], 2), b"e"), &format!("4102 {start} 10 00000002"), dkey, "00", r#""e""#);
    record((key::filtered_chunk(DATASET, &[1000]), b"f"), &format!("4102 {start} 11"), dkey, "01", r#""f""#);
}

#[test]
fn an_attribute() {
    let kind = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: CharacterSet::Utf8 };
    let text = Datatype::VarLen(VarLenType { kind, size: 20, base: Box::new(Datatype::default()) });
    let value = VarLenBlobRef { element_count: 4, blob: BlobId(*b"0123456789abcdef") }.encode().to_vec();
    let attribute = AttributeData {
        name: "ä".into(),
        datatype: text,
        committed_datatype: Some(DATATYPE),
        dataspace: Dataspace::Scalar,
        value,
        creation_order: Some(5),
    };
    let records = AttributeRecords::of_attribute(&attribute).unwrap();
    let space = format!("01 00 08 08000000  01 00 00 00 00000000 {ALL}");
    let fields = [
        (AttributeField::Datatype, "T-", "01", "03 00 19 010100 08000000  10 000000 01000000 0000 0800"),
        (AttributeField::Dataspace, "S-", "02", &space),
        (AttributeField::CreationProperties, "P-", "03", r#"00 0e "character_encoding" 00 01 00"#),
        (AttributeField::CreationOrder, "C-", "04", "0500000000000000"),
        (AttributeField::CommittedDatatype, "D-", "05", "03000000 00000000 00000080 00000000"),
        (AttributeField::Value, "V-", "06", r#"04000000 "0123456789abcdef""#),
    ];
    for (field, prefix, tag, value) in fields {
        let found = (key::attribute(DATASET, field, "ä".as_bytes()), records.get(field).unwrap());
        record(found, &format!(r#"4102 2004 "ä" 00 {tag}"#), ATTRIBUTE, &format!(r#""{prefix}ä""#), value);
    }
    let count = encode_u64(1);
    record((key::attribute_count(DATASET), &count), "4102 2001", ATTRIBUTE, r#""Num Attributes""#, "0100000000000000");
    record(
        (key::next_attribute_order(DATASET), &count),
        "4102 2002",
        ATTRIBUTE,
        r#""Max Attribute Creation Order""#,
        "0100000000000000",
    );
    record((key::attribute_name_at_rank(DATASET, 0), b"x"), "4102 2003 00", ATTRIBUTE, "00 0000000000000000", r#""x""#);
}

#[test]
fn a_committed_datatype() {
    let spec = ObjectSpec { track_times: true, ..i32_type().into() };
    let records = MetadataRecords::of_object(&spec).unwrap();
    let found = |field| metadata_record(DATATYPE, &records, field);
    let datatype = "03 00 10 080000 04000000 0000 2000";
    record(found(MetadataField::Datatype), "8103 1010", METADATA, r#""Datatype""#, datatype);
    let list = format!(r#"00 0b "pline" 00 040100 {DEFAULT_COMPACT} "object header flags" 00 20 00"#);
    record(found(MetadataField::CreationProperties), "8103 1012", METADATA, r#""Creation Property List""#, &list);
    assert_eq!(records.iter().count(), 2);
}

#[test]
fn a_map() {
    let kind = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: CharacterSet::Ascii };
    let text = Datatype::VarLen(VarLenType { kind, size: 20, base: Box::new(Datatype::default()) });
    let value = Datatype::integer(8, ByteOrder::Little, Sign::Unsigned);
    let map = MapSpec { key_type: text.clone(), value_type: value };
    let spec = ObjectSpec { track_times: true, ..ObjectKindSpec::Map(Box::new(map)).into() };
    let records = MetadataRecords::of_object(&spec).unwrap();
    let found = |field| metadata_record(MAP, &records, field);
    let text_bytes = "03 00 19 010000 08000000  10 000000 01000000 0000 0800";
    record(found(MetadataField::KeyDatatype), "c104 1018", METADATA, r#""Key Datatype""#, text_bytes);
    let number = "03 00 10 000000 08000000 0000 4000";
    record(found(MetadataField::ValueDatatype), "c104 1019", METADATA, r#""Value Datatype""#, number);
    let list = format!(r#"00 14 "pline" 00 040100 {DEFAULT_COMPACT} "object header flags" 00 20 00"#);
    record(found(MetadataField::CreationProperties), "c104 1012", METADATA, r#""Creation Property List""#, &list);
    let committed = oid::token(DATATYPE);
    for (field, engine, akey) in [
        (MetadataField::CommittedKeyDatatype, "c104 1021", r#""Committed Key Datatype""#),
        (MetadataField::CommittedValueDatatype, "c104 1022", r#""Committed Value Datatype""#),
    ] {
        let value = "03000000 00000000 00000080 00000000";
        record((key::metadata(MAP, field), &committed), engine, METADATA, akey, value);
    }
    let pairs = encode_u64(2);
    let count = (key::metadata(MAP, MetadataField::PairCount), &pairs[..]);
    record(count, "c104 1028", METADATA, r#""Num Pairs""#, "0200000000000000");

    // The document's example: names to numbers.
    for (name, id, value) in [("Alice", 25_385_486u64, "0e5a830100000000"), ("Bob", 34_873_275, "bb1f140200000000")] {
        let key = MapKey::Bytes(name.as_bytes());
        assert_eq!(map_dkey(key), name.as_bytes());
        let ordered = OrderPreservingKeyCodec::new(&text).encode_to_vec(key).unwrap();
        let found = id.to_le_bytes();
        record(
            (key::map_record(MAP, &ordered), &found),
            &format!("c104 60 {}", hex(&ordered)),
            "",
            r#""Map Record""#,
            value,
        );
    }
    assert_eq!((map_dkey(MapKey::Bytes(b"")), map_dkey(MapKey::Null)), (vec![0].into(), vec![0, 0].into()));
}

#[test]
fn references() {
    let uuid = BlobId(*b"0123456789abcdef");
    let element = |kind, part, file: Option<&str>| {
        let to = Referent { file: file.map(Into::into), object: DATASET, part };
        let encoded = EncodedReference::new(kind, &to, 1).unwrap();
        (encoded.encode_element(uuid).unwrap(), encoded.blob().map(<[u8]>::to_vec))
    };
    let token = "02000000 00000000 00000040 00000000";
    let region = "02000000 03000000 01 02 01000000 0100 0100 0100 0200";
    let block = || ReferentPart::Region(h5live_model::Selection::block(&[1], &[2]));
    let cases = [
        (element(ReferenceKind::Object1, ReferentPart::Whole, None), token.to_owned(), None),
        (
            element(ReferenceKind::Region1, block(), None),
            r#"26000000 "0123456789abcdef""#.to_owned(),
            Some(format!("{token} {region}")),
        ),
        (element(ReferenceKind::Object2, ReferentPart::Whole, None), format!("02 00 10 {token} 000000"), None),
        (
            element(ReferenceKind::Region2, block(), None),
            r#"03 00 2f000000 "0123456789abcdef""#.to_owned(),
            Some(format!("10 {token} 16000000 01000000 {region}")),
        ),
        (
            element(ReferenceKind::Attribute, ReferentPart::Attribute("a".into()), Some("o.h5")),
            r#"04 01 1a000000 "0123456789abcdef""#.to_owned(),
            Some(format!(r#"10 {token} 0400 "o.h5" 0100 "a""#)),
        ),
    ];
    for ((found, blob), wanted, wanted_blob) in cases {
        assert_eq!(hex(&found), hex(&bytes(&wanted)));
        assert_eq!(blob.map(|blob| hex(&blob)), wanted_blob.map(|blob| hex(&bytes(&blob))));
    }
    assert_eq!(EncodedReference::null(ReferenceKind::Object2).encode_element(uuid), Ok(vec![0; 22]));
}
