//! The check of containers: a sound one has no findings, and each class of damage is found, and nothing else.

use crate::shared;

use h5live_kv::engine::{EditBatch, Engine, KeySpan, LongKeyEngine, MemoryEngine, ViewWithEdits};
use h5live_kv::layout::value::{VarLenBlobRef, encode_link_target, encode_u64};
use h5live_kv::layout::{AttributeField, BlobId, CHECKSUM_BYTES, EngineKey, MetadataField, RecordKey, key, oid};
use h5live_kv::{KvStore, check_container};
use h5live_model::{
    AllocationLimit, AttributeData, ByteOrder, ChunkBatch, ChunkCoord, ChunkWrite, CreationOrder, DatasetSpec,
    Dataspace, Datatype, DurabilitySupport, FilterEngine, FilterSpec, GroupSpec, Layout, LeakLocation,
    LinkOrAttributeStorageSpec, LinkTarget, MapEdit, MapKey, MapSpec, Mode, NewObject, NoFilters, ObjectId, ObjectKind,
    ObjectKindSpec, ObjectScope, ObjectSpec, PublishLevel, Shape, Sign, Store, StoreCheckOptions, StoreCheckReport,
    StringPadding, VarLenKind, VarLenType,
};

use self::shared::request;

/// A filter that adds a byte.
pub(crate) const FILTER: u16 = 300;

/// Undoes that filter: a byte 7 before the chunk.
#[derive(Debug)]
pub(crate) struct Undo;

impl FilterEngine for Undo {
    fn unfilter(
        &self,
        _: &[FilterSpec],
        _: u32,
        bytes: Vec<u8>,
        size: u64,
    ) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        match bytes.split_first() {
            Some((7, rest)) if rest.len() as u64 == size => Ok(rest.to_vec()),
            _ => Err("the first byte is 7".into()),
        }
    }
}

/// A sound container, and the identities of its objects.
pub(crate) struct Container {
    pub(crate) engine: LongKeyEngine<MemoryEngine>,
    pub(crate) group: ObjectId,
    pub(crate) inner: ObjectId,
    pub(crate) plain: ObjectId,
    pub(crate) filtered: ObjectId,
    pub(crate) committed: ObjectId,
    pub(crate) typed: ObjectId,
    pub(crate) map: ObjectId,
    pub(crate) blobs: Vec<BlobId>,
    pub(crate) long_name: String,
}

pub(crate) fn number() -> Datatype {
    Datatype::integer(1, ByteOrder::Little, Sign::Unsigned)
}

pub(crate) fn text_type() -> Datatype {
    let kind = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: Default::default() };
    Datatype::VarLen(VarLenType { kind, size: 20, base: Box::new(Datatype::default()) })
}

pub(crate) fn spec(body: ObjectKindSpec) -> ObjectSpec {
    ObjectSpec { body, ..ObjectSpec::group() }
}

pub(crate) fn dataset(datatype: Datatype, dims: &[u64], layout: Layout) -> DatasetSpec {
    DatasetSpec { datatype, dataspace: Dataspace::Simple(Shape::fixed(dims)), layout, ..DatasetSpec::default() }
}

pub(crate) fn attribute(name: &str, value: u8) -> AttributeData {
    let (datatype, dataspace) = (number(), Dataspace::Scalar);
    AttributeData {
        name: name.into(),
        datatype,
        committed_datatype: None,
        dataspace,
        value: vec![value],
        creation_order: None,
    }
}

impl Container {
    pub(crate) fn new() -> Self {
        let engine = MemoryEngine::new();
        let request = request(Mode::CreateNew, DurabilitySupport::Always, 5);
        let store = KvStore::open(LongKeyEngine::new(engine.clone()), &request).unwrap();
        let (root, writer) = (oid::ROOT, store.writer().unwrap());
        let make =
            |group, name: &str, body| writer.create(&NewObject::linked(group, &name.into(), &spec(body))).unwrap();
        let tracked = LinkOrAttributeStorageSpec { order: CreationOrder::Indexed, ..Default::default() };
        let group_spec = ObjectSpec {
            attribute_storage: tracked,
            ..spec(ObjectKindSpec::Group(GroupSpec { link_storage: tracked }))
        };
        let group = writer.create(&NewObject::linked(root, &"group".into(), &group_spec)).unwrap();
        let inner = make(group, "inner", ObjectKindSpec::Group(GroupSpec::default()));
        for name in ["gone", "soft", "other"] {
            writer.add_link(group, &name.into(), &LinkTarget::Soft("inner".into())).unwrap();
        }
        writer.remove_link(group, &"gone".into()).unwrap();
        for (value, name) in (0..).zip(["x", "gone", "y", "z"]) {
            writer.set_attribute(group, &attribute(name, value)).unwrap();
        }
        writer.remove_attribute(group, &"gone".into()).unwrap();
        writer.add_link(inner, &"again".into(), &LinkTarget::Hard(group)).unwrap();
        let long_name = "long ".repeat(60);
        make(inner, &long_name, ObjectKindSpec::Group(GroupSpec::default()));
        let plain = dataset(number(), &[200_000, 3], Layout::Chunked(vec![100_000, 2]));
        let plain = make(root, "plain", ObjectKindSpec::Dataset(Box::new(plain)));
        write(&store, plain, &[1, 1], 0, &vec![1; 200_000]);
        let text = Box::new(dataset(text_type(), &[3], Layout::Contiguous));
        let text = make(root, "text", ObjectKindSpec::Dataset(text));
        let elements: Vec<_> =
            ["one", "three"].map(|text| writer.put_blob(text.as_bytes(), text.len() as u32).unwrap()).into();
        write(&store, text, &[0], 0, &[elements.concat(), vec![0; 20]].concat());
        let mut filtered = dataset(text_type(), &[3], Layout::Chunked(vec![2]));
        filtered.filters.push(FilterSpec { id: FILTER, ..FilterSpec::default() });
        let filtered = make(root, "filtered", ObjectKindSpec::Dataset(Box::new(filtered)));
        let third = writer.put_blob(b"filters", 7).unwrap();
        write(&store, filtered, &[1], 0, &[vec![7], third.clone(), vec![0; 20]].concat());
        let committed = make(root, "type", ObjectKindSpec::Datatype(number()));
        let typed = DatasetSpec { committed_datatype: Some(committed), ..dataset(number(), &[4], Layout::Contiguous) };
        let typed = make(root, "typed", ObjectKindSpec::Dataset(Box::new(typed)));
        writer
            .set_attribute(typed, &AttributeData { committed_datatype: Some(committed), ..attribute("typed", 1) })
            .unwrap();
        let map =
            make(root, "map", ObjectKindSpec::Map(Box::new(MapSpec { key_type: number(), value_type: number() })));
        let put = |key: &'static [u8]| MapEdit::Put { key: MapKey::Bytes(key), value: &[9] };
        store.maps().unwrap().write(map, &[put(&[1]), put(&[2])]).unwrap();
        writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
        let blobs = elements.iter().chain([&third]).map(|bytes| VarLenBlobRef::decode(bytes).unwrap().blob).collect();
        let engine = LongKeyEngine::new(engine);
        Container { engine, group, inner, plain, filtered, committed, typed, map, blobs, long_name }
    }

    pub(crate) fn check(&self) -> StoreCheckReport {
        check_container(&self.engine, StoreCheckOptions::default(), &Undo, AllocationLimit::default()).unwrap()
    }
}

pub(crate) fn write(store: &KvStore, id: ObjectId, coord: &[u64], filter_mask: u32, bytes: &[u8]) {
    let coord = ChunkCoord::new(coord);
    let writes = [ChunkWrite::Whole { coord: &coord, filter_mask, bytes }];
    store.dataset(id).unwrap().write(&ChunkBatch { writes: &writes, ..ChunkBatch::default() }).unwrap();
}

/// The findings, as their kinds and texts.
pub(crate) fn findings(report: &StoreCheckReport) -> Vec<(&'static str, String)> {
    report.findings.iter().map(|found| (found.kind, found.to_string())).collect()
}

/// What a container is damaged by, and the findings: their kinds, and parts of their texts.
type Damage<'a> = (&'a str, &'a dyn Fn(&Container, &mut EditBatch), &'a [(&'a str, &'a str)]);

pub(crate) fn put(edits: &mut EditBatch, key: &EngineKey, value: impl Into<Vec<u8>>) {
    edits.put(key.as_bytes(), value.into());
}

fn delete(edits: &mut EditBatch, key: &EngineKey) {
    edits.delete(key.as_bytes());
}

fn check_all(damages: &[Damage<'_>]) {
    for (what, damage, expected) in damages {
        let container = Container::new();
        let mut edits = EditBatch::new();
        damage(&container, &mut edits);
        edits.add_checksums();
        container.engine.commit(&edits, PublishLevel::Visible).unwrap();
        let found = findings(&container.check());
        let is_same = found.len() == expected.len()
            && found
                .iter()
                .zip(*expected)
                .all(|((kind, text), (expected, part))| kind == expected && text.contains(part));
        assert!(is_same, "{what}: {found:#?}");
    }
}

#[test]
fn a_sound_container_has_no_findings_and_each_record_is_counted() {
    let container = Container::new();
    let data = StoreCheckOptions { verify_data: true, find_lost_domains: false };
    let report = check_container(&container.engine, data, &Undo, AllocationLimit::default()).unwrap();
    assert_eq!(findings(&report), []);
    assert_eq!((report.leak_count, report.object_count, report.unverified_part_count), (0, 10, 0));
    assert!(report.raw_bytes > 200_000 && report.metadata_bytes > 1000, "{report:?}");
    let report =
        check_container(&container.engine, StoreCheckOptions::default(), &NoFilters, AllocationLimit::default())
            .unwrap();
    assert_eq!(findings(&report), []);
    assert_eq!(
        (report.leak_count, report.unverified_part_count),
        (0, 1),
        "blobs may be used by what cannot be decoded"
    );
}

#[test]
fn damaged_descriptions_are_found() {
    let metadata = key::metadata;
    check_all(&[
        (
            "no type",
            &|c, e| delete(e, &metadata(c.plain, MetadataField::Datatype)),
            &[("record", "/plain: the object has no record Datatype")],
        ),
        (
            "half a shape",
            &|c, e| put(e, &metadata(c.plain, MetadataField::Dataspace), [1, 0, 8]),
            &[("record", "/plain: ")],
        ),
        (
            "no count",
            &|c, e| delete(e, &metadata(c.plain, MetadataField::RefCount)),
            &[("record", "/plain: the object has no record Ref Count")],
        ),
        (
            "times of 3 bytes",
            &|c, e| put(e, &metadata(c.map, MetadataField::Times), [1, 2, 3]),
            &[("record", "/map: ")],
        ),
        (
            "a type of a group",
            &|c, e| put(e, &metadata(c.group, MetadataField::Datatype), [3, 0]),
            &[(
                "unexpected-record",
                "/group: objects of its kind do not have the record Datatype of /Internal Metadata",
            )],
        ),
        (
            "a chunk of a map",
            &|c, e| put(e, &key::chunk_piece(c.map, &[0], 0), [1]),
            &[("unexpected-record", "/map: ")],
        ),
        (
            "an unknown record",
            &|c, e| {
                put(
                    e,
                    &EngineKey::new(c.map, &RecordKey::Unknown { dkey: b"a"[..].into(), akey: b"b"[..].into() }),
                    [1],
                )
            },
            &[("unexpected-record", "/map: objects of its kind do not have the record b of a")],
        ),
        ("a key of nobody", &|_, e| e.put(&[0x3f, 1], vec![]), &[("record", "an engine key of 2 bytes")]),
        (
            "a key behind all records",
            &|c, e| put(e, &key::object_records(c.map).end, []),
            &[("record", "/map: an engine key of 3 bytes is not one of the layout: no such section")],
        ),
        (
            "a key in no section",
            &|c, e| e.put(&[key::object_records(c.map).start.as_bytes(), &[0x80]].concat(), vec![]),
            &[("record", "/map: an engine key of 3 bytes is not one of the layout: no such section")],
        ),
        (
            "another root",
            &|c, e| put(e, &metadata(oid::GLOBAL_METADATA, MetadataField::RootGroup), oid::token(c.group)),
            &[("root", "the root group is said to be object")],
        ),
        (
            "an index that nobody has",
            &|_, e| put(e, &metadata(oid::GLOBAL_METADATA, MetadataField::FirstUnreservedObjectIndex), encode_u64(9)),
            &[("index", "its index is not below 9"), ("index", "its index is not below 9")],
        ),
        (
            "a comment on the container",
            &|_, e| put(e, &metadata(oid::GLOBAL_METADATA, MetadataField::Comment), *b"a"),
            &[("unexpected-record", "Comment")],
        ),
        (
            "another committed datatype",
            &|c, e| put(e, &metadata(c.typed, MetadataField::CommittedDatatype), oid::token(c.map)),
            &[("committed-datatype", "/typed: "), ("link-count", "/type: it states 3 hard links and uses, and has 2")],
        ),
        (
            "an attribute without a shape",
            &|c, e| delete(e, &key::attribute(c.group, AttributeField::Dataspace, b"x")),
            &[("attribute", "/group: its attribute \"x\": the object has no record S-")],
        ),
    ]);
}

#[test]
fn wrong_links_and_counts_are_found() {
    let hard = |id| encode_link_target(&LinkTarget::Hard(id)).unwrap();
    let lost = oid::new(ObjectKind::Group, 99);
    check_all(&[
        (
            "a raised count",
            &|c, e| put(e, &key::metadata(c.plain, MetadataField::RefCount), encode_u64(2)),
            &[("link-count", "/plain: it states 2 hard links and uses, and has 1")],
        ),
        (
            "a lost link",
            &|_, e| delete(e, &key::link(oid::ROOT, b"plain")),
            &[("link-count", "it states 1 hard links and uses, and has 0")],
        ),
        (
            "a further link",
            &|c, e| put(e, &key::link(c.inner, b"more"), hard(c.plain)),
            &[("link-count", "/plain: it states 1 hard links and uses, and has 2")],
        ),
        (
            "a link to the root",
            &|c, e| put(e, &key::link(c.inner, b"up"), hard(oid::ROOT)),
            &[("link-count", "/: it states 1 hard links and uses, and has 2")],
        ),
        (
            "a link to nothing",
            &|c, e| put(e, &key::link(c.inner, b"more"), hard(lost)),
            &[("dangling-link", "/group/inner: its link \"more\" leads to object 0x63, which is not there")],
        ),
        ("a link of no class", &|c, e| put(e, &key::link(c.inner, b"more"), [2, 3]), &[("record", "/group/inner: ")]),
        (
            "a position without a link",
            &|c, e| put(e, &key::link_order(c.inner, b"more"), encode_u64(1)),
            &[("creation-order", "/group/inner: its link \"more\"")],
        ),
        (
            "an object twice",
            &|c, e| {
                let other = oid::new(ObjectKind::Datatype, oid::index(c.map));
                let description = [MetadataField::Datatype, MetadataField::CreationProperties];
                let view = c.engine.view().unwrap();
                for field in description {
                    let value =
                        ViewWithEdits::without_edits(&view).get(key::metadata(c.committed, field).as_bytes()).unwrap();
                    let value = value.unwrap();
                    put(e, &key::metadata(other, field), &value[..value.len() - CHECKSUM_BYTES]);
                }
                put(e, &key::metadata(other, MetadataField::RefCount), encode_u64(1));
                put(e, &key::link(oid::ROOT, b"other"), hard(other));
            },
            &[("index", "/map: object 0x8")],
        ),
    ]);
}

#[test]
fn wrong_creation_orders_are_found() {
    let wrong = |text: &'static str| [("creation-order", text)];
    check_all(&[
        (
            "a wrong number of links",
            &|c, e| put(e, &key::link_count(c.group), encode_u64(4)),
            &wrong("/group: the creation order of its links: 4 are stated, and 3 are there"),
        ),
        ("a rank that is missing", &|c, e| delete(e, &key::link_name_at_rank(c.group, 1)), &wrong("rank 1 is missing")),
        (
            "the last rank",
            &|c, e| {
                delete(e, &key::link_name_at_rank(c.group, 2));
                delete(e, &key::link_target_at_rank(c.group, 2))
            },
            &wrong("the index has 2 of 3"),
        ),
        (
            "a target that is missing",
            &|c, e| delete(e, &key::link_target_at_rank(c.group, 2)),
            &wrong("the index has 2 of 3"),
        ),
        (
            "another target",
            &|c, e| put(e, &key::link_target_at_rank(c.group, 1), [1, b'x']),
            &wrong("rank 1 has another target"),
        ),
        (
            "another name",
            &|c, e| put(e, &key::link_name_at_rank(c.group, 1), *b"x"),
            &wrong("rank 1 has the name \"x\""),
        ),
        (
            "a name twice",
            &|c, e| put(e, &key::link_name_at_rank(c.group, 2), *b"soft"),
            &wrong("rank 2 has a position that is not above the one before"),
        ),
        (
            "a low counter",
            &|c, e| put(e, &key::next_link_order(c.group), encode_u64(3)),
            &wrong("rank 2 has the position 3, and 3 is to be given next"),
        ),
        (
            "a counter of a group that has no order",
            &|c, e| put(e, &key::next_link_order(c.inner), encode_u64(3)),
            &wrong("/group/inner: the creation order of its links: there are records of it"),
        ),
        (
            "a link without a position",
            &|c, e| delete(e, &key::link_order(c.group, b"soft")),
            &[("creation-order", "its link \"soft\""), ("creation-order", "rank 1 has the name \"soft\"")],
        ),
        (
            "a wrong number of attributes",
            &|c, e| put(e, &key::attribute_count(c.group), encode_u64(2)),
            &wrong("/group: the creation order of its attributes: 2 are stated, and 3 are there"),
        ),
        (
            "an attribute's rank that is missing",
            &|c, e| delete(e, &key::attribute_name_at_rank(c.group, 0)),
            &wrong("rank 0 is missing"),
        ),
        (
            "an attribute's low counter",
            &|c, e| put(e, &key::next_attribute_order(c.group), encode_u64(2)),
            &wrong("rank 1 has the position 2, and 2 is to be given next"),
        ),
        (
            "an attribute without a position",
            &|c, e| delete(e, &key::attribute(c.group, AttributeField::CreationOrder, b"z")),
            &[("creation-order", "its attribute \"z\""), ("creation-order", "rank 2 has the name \"z\"")],
        ),
    ]);
}

#[test]
fn wrong_chunks_are_found() {
    let piece = key::chunk_piece;
    check_all(&[
        (
            "outside",
            &|c, e| put(e, &piece(c.plain, &[200_000, 0], 0), [1]),
            &[("chunk", "/plain: its chunk at [200000, 0]: it is outside of the extent [200000, 3]")],
        ),
        (
            "between",
            &|c, e| put(e, &piece(c.plain, &[1, 0], 0), [1]),
            &[("chunk", "no chunk of the dataset begins there")],
        ),
        (
            "of another rank",
            &|c, e| put(e, &piece(c.plain, &[0], 0), [1]),
            &[("chunk", "no chunk of the dataset begins there")],
        ),
        (
            "too long",
            &|c, e| put(e, &piece(c.plain, &[0, 0], 0), vec![1; 65_537]),
            &[("chunk", "piece 0 has 65537 bytes, and may have 65536")],
        ),
        (
            "too long at the end",
            &|c, e| put(e, &piece(c.plain, &[100_000, 2], 3), vec![1; 3393]),
            &[("chunk", "piece 3 has 3393 bytes, and may have 3392")],
        ),
        (
            "behind the end",
            &|c, e| put(e, &piece(c.plain, &[100_000, 2], 4), []),
            &[("chunk", "piece 4 has 0 bytes, and may have 0")],
        ),
        (
            "without a first piece",
            &|c, e| delete(e, &piece(c.plain, &[100_000, 2], 0)),
            &[("chunk", "it has no piece 0")],
        ),
        (
            "behind filters",
            &|c, e| put(e, &key::filtered_chunk(c.plain, &[0, 0]), [0; 9]),
            &[("chunk", "it is stored with filters, or without")],
        ),
        (
            "not behind filters",
            &|c, e| put(e, &piece(c.filtered, &[0], 0), [0; 9]),
            &[("chunk", "/filtered: its chunk at [0]: it is stored with filters, or without")],
        ),
        (
            "without a mask",
            &|c, e| put(e, &key::filtered_chunk(c.filtered, &[0]), [0; 3]),
            &[("chunk", "it has no mask of filters")],
        ),
        (
            "filters that cannot be undone",
            &|c, e| put(e, &key::filtered_chunk(c.filtered, &[0]), [0; 9]),
            &[("chunk", "its filters cannot be undone: the first byte is 7")],
        ),
    ]);
}

#[test]
fn wrong_pairs_and_variable_length_data_are_found() {
    check_all(&[
        (
            "a wrong number of pairs",
            &|c, e| put(e, &key::metadata(c.map, MetadataField::PairCount), encode_u64(3)),
            &[("pair-count", "/map: it states 3 pairs, and has 2")],
        ),
        ("a long value", &|c, e| put(e, &key::map_record(c.map, &[2]), [1, 2]), &[("pair", "/map: its pair number 1")]),
        (
            "a long key",
            &|c, e| {
                put(e, &key::map_record(c.map, &[3, 3]), [1]);
                put(e, &key::metadata(c.map, MetadataField::PairCount), encode_u64(3))
            },
            &[("pair", "/map: its pair number 2")],
        ),
        (
            "a lost blob",
            &|c, e| delete(e, &key::blob(c.blobs[0])),
            &[("variable-length-data", "/text: an element leads to the variable-length data")],
        ),
        (
            "a lost blob behind filters",
            &|c, e| delete(e, &key::blob(c.blobs[2])),
            &[("variable-length-data", "/filtered: an element leads")],
        ),
        (
            "a short blob",
            &|c, e| put(e, &key::blob(c.blobs[1]), *b"data"),
            &[("variable-length-data", "/text: an element says that its variable-length data has 5 bytes")],
        ),
        ("a blob of nobody", &|_, e| put(e, &key::blob(BlobId([9; 16])), *b"data"), &[]),
    ]);
}

#[test]
fn what_nothing_leads_to_is_listed() {
    let container = Container::new();
    let mut edits = EditBatch::new();
    put(&mut edits, &key::blob(BlobId([9; 16])), *b"lost");
    // The group and the one in it lead to each other.
    delete(&mut edits, &key::link(oid::ROOT, b"group"));
    edits.add_checksums();
    container.engine.commit(&edits, PublishLevel::Visible).unwrap();
    let report = container.check();
    assert_eq!(findings(&report).len(), 1, "the link that is left is one of two");
    let mut edits = EditBatch::new();
    put(&mut edits, &key::metadata(container.group, MetadataField::RefCount), encode_u64(1));
    edits.add_checksums();
    container.engine.commit(&edits, PublishLevel::Visible).unwrap();
    let report = container.check();
    assert_eq!(findings(&report), []);
    let places: Vec<_> = report.leaks.iter().map(|leak| leak.place).collect();
    let inner = [container.group, container.inner].map(LeakLocation::Object);
    assert_eq!(report.leak_count, 4);
    assert!(inner.iter().all(|place| places.contains(place)), "{places:?}");
    assert_eq!(places.last(), Some(&LeakLocation::Blob([9; 16])));
    assert_eq!(report.leaks.last().map(|leak| leak.bytes), Some(4));
}

#[test]
fn spaces_of_long_keys_are_checked() {
    let stored = |container: &Container| {
        let (mut found, view) = (Vec::new(), container.engine.inner().view().unwrap());
        let all = KeySpan::all();
        view.scan(&all, &mut |key, value| {
            found.push((key.to_vec(), value.to_vec()));
            true
        })
        .unwrap();
        found
    };
    let container = Container::new();
    assert!(container.long_name.len() > 200);
    let leads: Vec<_> =
        stored(&container).into_iter().filter(|(key, value)| key.len() > 50 && value.len() == 8).collect();
    assert!(leads.len() > 4, "{leads:?}");
    let damage = |change: &dyn Fn(&mut EditBatch)| {
        let container = Container::new();
        let mut edits = EditBatch::new();
        change(&mut edits);
        container.engine.inner().commit(&edits, PublishLevel::Visible).unwrap();
        let found = container.check();
        findings(&found).into_iter().map(|(_, text)| text).collect::<Vec<_>>()
    };
    let first = |text: Vec<String>| text.first().cloned().unwrap_or_default();
    assert_eq!(damage(&|_| ()), Vec::<String>::new());
    assert!(first(damage(&|edits| edits.delete(&leads[0].0))).contains("no key leads to the space"));
    assert!(first(damage(&|edits| edits.put(&leads[0].0, vec![1]))).contains("no number of 8 bytes"));
    let far = 99u64.to_le_bytes().to_vec();
    let found = damage(&|edits| edits.put(&leads[0].0, far.clone()));
    assert!(found.iter().any(|text| text.contains("space 99 of long keys, which has none")));
    let second = leads[1].1.clone();
    let found = damage(&|edits| edits.put(&leads[0].0, second.clone()));
    assert!(found.iter().any(|text| text.contains("two keys lead to the space")));
    assert!(first(damage(&|edits| edits.put(&[0xff], 0u64.to_le_bytes().to_vec()))).contains("is not below 0"));
    assert!(first(damage(&|edits| edits.put(&[0xff, 1], vec![]))).contains("neither a key nor one that leads"));
}

#[test]
fn what_is_no_container_and_what_is_too_large_is_refused() {
    let container = Container::new();
    let refused =
        |limit| check_container(&container.engine, StoreCheckOptions::default(), &Undo, limit).unwrap_err().to_string();
    let few = refused(AllocationLimit::new(100));
    assert!(few.contains("max_allocation"), "{few}");
    let mut edits = EditBatch::new();
    let version = [&b"h5livekv"[..], &3u32.to_le_bytes()].concat();
    put(&mut edits, &key::metadata(oid::GLOBAL_METADATA, MetadataField::ContainerFormat), version);
    container.engine.commit(&edits, PublishLevel::Visible).unwrap();
    let version = refused(AllocationLimit::default());
    assert!(version.contains("layout 3"), "{version}");
    let empty = LongKeyEngine::new(MemoryEngine::new());
    let empty = check_container(&empty, StoreCheckOptions::default(), &Undo, AllocationLimit::default()).unwrap_err();
    assert!(empty.to_string().contains("no key-value store"), "{empty}");
}
