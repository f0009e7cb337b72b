//! What the layout encodes as libhdf5 does, byte by byte beside libhdf5 itself.
//!
//! Needs the Python that `H5LIVE_PYTHON` names, with h5py; without it each test says that it is skipped.

use crate::common;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use h5live_kv::layout::encode::{
    AttributeCreationProperties, DatasetCreationProperties, DatatypeCreationProperties, FileCreationProperties,
    GroupCreationProperties, MapCreationProperties, ObjectCreationProperties, PropertyClass, decode_dataspace,
    decode_datatype, decode_properties, encode_dataspace, encode_datatype, encode_properties,
};
use h5live_kv::layout::{AttributeField, AttributeRecords, MetadataField, MetadataRecords, Result};
use h5live_model::{
    AllocationTime, AttributeData, ByteOrder, CharacterSet, ComplexType, CompoundMember, CompoundType, CreationOrder,
    DatasetSpec, Dataspace, Datatype, ExternalPiece, Fill, FillTime, FillValue, FilterSpec, GroupSpec, Layout,
    LinkOrAttributeStorageSpec, MapSpec, ObjectKindSpec, ObjectSpec, ReferenceKind, ReferenceType, Selection, Shape,
    Sign, StringPadding, UNLIMITED, VarLenKind, VarLenType, VirtualSource,
};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// Random cases that libhdf5 decodes, of each kind.
const DECODED_CASES: usize = 200;

/// The lines that the Python program writes: kind and name, and the bytes.
fn run(python: &Path, arguments: &[&str], input: &str) -> Vec<(String, String, std::result::Result<Vec<u8>, String>)> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/python/kv_encodings.py");
    let mut child =
        Command::new(python).arg(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    let line = |line: &str| {
        let mut parts = line.splitn(3, ' ');
        let mut next = || parts.next().unwrap_or_default().to_owned();
        let (kind, name, data) = (next(), next(), next());
        let data = if data.starts_with("error") { Err(data) } else { Ok(from_hex(&data)) };
        (kind, name, data)
    };
    String::from_utf8(output.stdout).unwrap().lines().map(line).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn again<P: PropertyClass>(bytes: &[u8]) -> Result<Vec<u8>> {
    encode_properties(&decode_properties::<P>(bytes)?)
}

/// The bytes that the layout encodes of what it has decoded.
fn encoded_again(kind: &str, bytes: &[u8]) -> Result<Vec<u8>> {
    match kind {
        "type" => encode_datatype(&decode_datatype(bytes)?),
        "space" => encode_dataspace(&decode_dataspace(bytes)?),
        "dcpl" => again::<DatasetCreationProperties>(bytes),
        "gcpl" => again::<GroupCreationProperties>(bytes),
        "fcpl" => again::<FileCreationProperties>(bytes),
        "tcpl" => again::<DatatypeCreationProperties>(bytes),
        "mcpl" => again::<MapCreationProperties>(bytes),
        "acpl" => again::<AttributeCreationProperties>(bytes),
        other => panic!("{other}"),
    }
}

#[test]
fn what_libhdf5_encodes_is_encoded_again_byte_by_byte() {
    let Some(python) = h5live_test_support::python() else { return };
    let mut counts = BTreeMap::new();
    for seed in ["1", "2", "3"] {
        for (kind, name, data) in run(&python, &["print", seed], "") {
            *counts.entry(kind.clone()).or_insert(0) += 1;
            if kind == "library" {
                continue;
            }
            let data = data.unwrap();
            let found =
                encoded_again(&kind, &data).unwrap_or_else(|e| panic!("{kind} {name} of {seed}: {e}: {data:02x?}"));
            assert_eq!(hex(&found), hex(&data), "{kind} {name} of {seed}: {}", data.escape_ascii());
        }
    }
    println!("{counts:?}");
    assert!(counts["type"] > 1000 && counts["dcpl"] > 900 && counts["gcpl"] > 300, "{counts:?}");
}

fn i32_type() -> Datatype {
    Datatype::integer(4, ByteOrder::Little, Sign::Signed)
}

fn text(character_set: CharacterSet) -> Datatype {
    let kind = VarLenKind::String { padding: StringPadding::NullTerminated, character_set };
    Datatype::VarLen(VarLenType { kind, size: 20, base: Box::new(Datatype::default()) })
}

fn sequence(base: Datatype) -> Datatype {
    Datatype::VarLen(VarLenType { kind: VarLenKind::Sequence, size: 20, base: Box::new(base) })
}

fn reference(kind: ReferenceKind, size: u32) -> Datatype {
    Datatype::Reference(ReferenceType { kind, size })
}

/// Types by the names that the Python program gives them, as they are in a container.
fn types() -> Vec<(&'static str, Datatype)> {
    let member = |name: &str, offset, datatype| CompoundMember { name: name.into(), offset, datatype };
    let parts = vec![
        member("a", 0, text(CharacterSet::Ascii)),
        member("b", 20, Datatype::integer(2, ByteOrder::Little, Sign::Signed)),
        member("c", 22, sequence(Datatype::default())),
    ];
    let double = Datatype::float(8, ByteOrder::Little).unwrap();
    vec![
        ("i32", i32_type()),
        ("text", text(CharacterSet::Utf8)),
        ("sequence", sequence(Datatype::integer(2, ByteOrder::Little, Sign::Unsigned))),
        ("object", reference(ReferenceKind::Object1, 16)),
        ("region", reference(ReferenceKind::Region1, 20)),
        ("reference", reference(ReferenceKind::Object2, 22)),
        ("compound", Datatype::Compound(CompoundType { size: 44, members: parts })),
        ("complex", Datatype::Complex(ComplexType { base: Box::new(double) })),
    ]
}

/// Objects with libhdf5's defaults, by the names that the Python program gives their property lists.
fn dataset(change: impl FnOnce(&mut DatasetSpec)) -> ObjectSpec {
    let mut dataset = DatasetSpec {
        datatype: i32_type(),
        dataspace: Dataspace::Simple(Shape::fixed(&[9])),
        fill: Fill { allocation: AllocationTime::Late, ..Fill::default() },
        ..DatasetSpec::default()
    };
    change(&mut dataset);
    ObjectSpec { track_times: true, ..dataset.into() }
}

fn chunked(dims: &[u64]) -> impl FnOnce(&mut DatasetSpec) {
    let dims = dims.to_vec();
    |dataset: &mut DatasetSpec| {
        dataset.layout = Layout::Chunked(dims);
        dataset.fill.allocation = AllocationTime::Incremental;
    }
}

fn datasets() -> Vec<(&'static str, ObjectSpec)> {
    let filter = |id, optional, params: &[u32]| FilterSpec { id, optional, name: None, params: params.to_vec() };
    let piece = |name: &str, offset, size| ExternalPiece { name: name.into(), offset, size };
    let untimed = ObjectSpec { track_times: false, ..dataset(|_| ()) };
    let attributes = LinkOrAttributeStorageSpec { order: CreationOrder::Indexed, max_compact: 20, min_dense: 3 };
    vec![
        ("default", dataset(|_| ())),
        ("untimed", untimed),
        ("compact", dataset(|d| (d.layout, d.fill.allocation) = (Layout::Compact, AllocationTime::Early))),
        ("chunked", dataset(chunked(&[3, 5]))),
        ("large-chunks", dataset(chunked(&[1 << 32, 5]))),
        (
            "filtered",
            dataset(|d| {
                chunked(&[3])(d);
                d.filters = vec![filter(2, true, &[]), filter(1, true, &[6]), filter(32001, true, &[7, 8])];
            }),
        ),
        (
            "filled",
            dataset(|d| {
                d.fill.value = FillValue::Value(vec![7, 0, 0, 0]);
                d.fill.time = FillTime::Allocation;
            }),
        ),
        ("undefined", dataset(|d| d.fill.value = FillValue::Undefined)),
        ("early", dataset(|d| d.fill.allocation = AllocationTime::Early)),
        ("external", dataset(|d| d.layout = Layout::External(vec![piece("raw.bin", 300, 40), piece("b", 0, 50)]))),
        ("attributes", ObjectSpec { attribute_storage: attributes, ..dataset(|_| ()) }),
        (
            "virtual",
            dataset(|d| {
                let (source, target) = (Selection::block(&[1], &[4]), Selection::block(&[2], &[4]));
                let (file, dataset) = ("other.h5".into(), "/data".into());
                d.layout = Layout::Virtual(vec![VirtualSource { file, dataset, source, target }]);
            }),
        ),
    ]
}

fn properties_of(spec: &ObjectSpec) -> Vec<u8> {
    MetadataRecords::of_object(spec).unwrap().get(MetadataField::CreationProperties).unwrap().to_vec()
}

fn attribute(name: &str) -> Vec<u8> {
    let attribute = AttributeData {
        name: name.into(),
        datatype: Datatype::default(),
        committed_datatype: None,
        dataspace: Dataspace::Scalar,
        value: vec![1],
        creation_order: None,
    };
    AttributeRecords::of_attribute(&attribute).unwrap().get(AttributeField::CreationProperties).unwrap().to_vec()
}

/// The cases that are described here, with their bytes.
fn described() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let growing = Shape::with_max(&[3, 4], &[UNLIMITED, 9]).map(Dataspace::Simple).unwrap();
    let spaces = [
        ("null", Dataspace::Null),
        ("scalar", Dataspace::Scalar),
        ("fixed", Dataspace::Simple(Shape::fixed(&[3, 0]))),
        ("growing", growing),
    ];
    let timed = |body: ObjectKindSpec| ObjectSpec { track_times: true, ..body.into() };
    let storage = LinkOrAttributeStorageSpec { order: CreationOrder::Indexed, max_compact: 20, min_dense: 3 };
    let ordered = ObjectSpec { track_times: false, ..GroupSpec { link_storage: storage }.into() };
    let tracked = LinkOrAttributeStorageSpec { order: CreationOrder::Tracked, ..LinkOrAttributeStorageSpec::default() };
    let root = ObjectSpec {
        attribute_storage: LinkOrAttributeStorageSpec {
            max_compact: 20,
            min_dense: 3,
            ..LinkOrAttributeStorageSpec::default()
        },
        ..timed(ObjectKindSpec::Group(GroupSpec { link_storage: tracked }))
    };
    let root_properties = |spec: &ObjectSpec| {
        MetadataRecords::of_root(spec).unwrap().get(MetadataField::CreationProperties).unwrap().to_vec()
    };
    let group = timed(ObjectKindSpec::Group(GroupSpec::default()));
    let datatype = timed(ObjectKindSpec::Datatype(i32_type()));
    let map = timed(ObjectKindSpec::Map(Box::new(MapSpec { key_type: i32_type(), value_type: i32_type() })));
    let mut all: Vec<_> = types().into_iter().map(|(name, t)| ("type", name, encode_datatype(&t).unwrap())).collect();
    all.extend(spaces.iter().map(|(name, space)| ("space", *name, encode_dataspace(space).unwrap())));
    all.extend(datasets().iter().map(|(name, spec)| ("dcpl", *name, properties_of(spec))));
    all.extend([
        ("gcpl", "default", properties_of(&group)),
        ("gcpl", "ordered", properties_of(&ordered)),
        ("fcpl", "default", root_properties(&group)),
        ("fcpl", "ordered", root_properties(&root)),
        ("tcpl", "default", properties_of(&datatype)),
        ("tcpl", "tracked", properties_of(&ObjectSpec { attribute_storage: tracked, ..datatype })),
        ("mcpl", "default", properties_of(&map)),
        ("mcpl", "tracked", properties_of(&ObjectSpec { attribute_storage: tracked, ..map })),
        ("acpl", "default", attribute("units")),
        ("acpl", "utf-8", attribute("größe")),
    ]);
    all
}

#[test]
fn what_is_described_has_the_bytes_of_libhdf5() {
    let Some(python) = h5live_test_support::python() else { return };
    let lines = run(&python, &["print", "1"], "");
    for (kind, name, ours) in described() {
        let Some((.., theirs)) = lines.iter().find(|(k, n, _)| (k.as_str(), n.as_str()) == (kind, name)) else {
            // libhdf5 has complex numbers from version 2.0 on.
            assert_eq!(name, "complex");
            continue;
        };
        assert_eq!(hex(&ours), hex(theirs.as_ref().unwrap()), "{kind} {name}");
    }
}

fn cases<S: Strategy>(strategy: S) -> Vec<S::Value> {
    let mut runner = TestRunner::deterministic();
    (0..DECODED_CASES).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

/// The kind of an object's property list.
fn kind_of(spec: &ObjectSpec) -> &'static str {
    match &spec.body {
        ObjectKindSpec::Group(_) => "gcpl",
        ObjectKindSpec::Dataset(_) => "dcpl",
        ObjectKindSpec::Datatype(_) => "tcpl",
        ObjectKindSpec::Map(_) => "mcpl",
    }
}

/// What a dataset's property list says. The shapes of the sources of virtual datasets are not part of it.
fn dataset_properties(bytes: &[u8]) -> (ObjectCreationProperties, Layout, Fill) {
    let properties: DatasetCreationProperties = decode_properties(bytes).unwrap();
    let mut layout = properties.layout();
    if let Layout::Virtual(sources) = &mut layout {
        sources.iter_mut().flat_map(|source| [&mut source.source, &mut source.target]).for_each(normalize);
    }
    (properties.object.clone(), layout, properties.fill())
}

/// libhdf5 writes the distance of blocks as 1 where there is only one block.
fn normalize(selection: &mut Selection) {
    let Selection::Hyperslab(slab) = selection else { return };
    slab.stride.iter_mut().zip(&slab.count).filter(|(_, count)| **count == 1).for_each(|(stride, _)| *stride = 1);
}

#[test]
fn libhdf5_decodes_what_the_layout_encodes() {
    let Some(python) = h5live_test_support::python() else { return };
    let mut ours: Vec<(&str, Vec<u8>)> = Vec::new();
    ours.extend(cases(common::datatype()).iter().map(|t| ("type", encode_datatype(t).unwrap())));
    ours.extend(cases(common::dataspace()).iter().map(|space| ("space", encode_dataspace(space).unwrap())));
    ours.extend(cases(common::object()).iter().map(|spec| (kind_of(spec), properties_of(spec))));
    let line = |(at, (kind, bytes)): (usize, &(&str, Vec<u8>))| format!("{kind} {at} {}\n", hex(bytes));
    let input: String = ours.iter().enumerate().map(line).collect();
    let theirs = run(&python, &["check"], &input);
    assert_eq!(theirs.len(), ours.len());
    for ((kind, bytes), (_, name, found)) in ours.iter().zip(theirs) {
        let found = found.unwrap_or_else(|e| panic!("{kind} {name}: {e}: {}", bytes.escape_ascii()));
        match *kind {
            "type" | "space" => assert_eq!(hex(&found), hex(bytes), "{kind} {name}"),
            // All properties of a decoded list were set. The order in which they are written is another one.
            "dcpl" => assert_eq!(dataset_properties(&found), dataset_properties(bytes), "{kind} {name}"),
            _ => assert_eq!(encoded_again(kind, &found).map(|f| hex(&f)), Ok(hex(bytes)), "{kind} {name}"),
        }
    }
}
