//! Everything that the library writes, seen by h5py and `h5dump`.
//!
//! Needs the Python that `H5LIVE_PYTHON` names, with h5py; without it the tests say that they are skipped.

use std::path::Path;
use std::process::Command;

use h5live::model::{
    AllocationTime, BitfieldType, CreationOrder, EnumMember, FillTime, FilterSpec, LinkOrAttributeStorageSpec,
    OpaqueType, ReferenceKind, VirtualSource,
};
use h5live::{
    Datatype, File, FixedStr, H5Type, LibVer, Options, Reference, Result, Selection, UNLIMITED, Value, model,
};

/// What a Python program prints of a file.
#[track_caller]
pub fn seen(python: &Path, program: &str, path: &Path) -> String {
    let program = format!("import sys, h5py, numpy as np\nwith h5py.File(sys.argv[1]) as f:\n{program}");
    let output = Command::new(python).arg("-c").arg(program).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Has `h5dump` read the file to its end, if there is one.
#[track_caller]
fn dumped(path: &Path) {
    match Command::new("h5dump").arg(path).current_dir(path.parent().unwrap()).output() {
        Ok(output) => assert!(output.status.success(), "h5dump: {}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => println!("there is no h5dump"),
    }
}

#[derive(Debug, Clone, PartialEq, H5Type)]
struct Inner {
    position: [f32; 2],
    label: String,
}

#[derive(Debug, Clone, PartialEq, H5Type)]
struct Outer {
    number: i16,
    inner: Inner,
    tags: Vec<u8>,
}

fn outer(number: i16) -> Outer {
    let inner = Inner { position: [0.5, f32::from(number)], label: format!("label {number}") };
    Outer { number, inner, tags: vec![7; number as usize] }
}

fn types(file: &File) -> Result<()> {
    file.new_dataset::<Outer>().create_with_data("compound", &[outer(1), outer(0)])?;
    let ragged = file.new_dataset::<Vec<Vec<u16>>>().shape(&[3]).chunk_shape(&[2]).deflate(1).create("ragged")?;
    ragged.write(&[vec![vec![1, 2], vec![]], vec![], vec![vec![3]]])?;
    let texts = file.new_dataset::<String>().unlimited_rows(&[]).create("texts")?;
    texts.append(&["a".to_owned(), "grün".to_owned(), String::new()])?;
    file.new_dataset::<FixedStr<4>>().create_with_data("fixed", &[FixedStr::<4>::new("ab").unwrap()])?;
    file.new_dataset::<bool>().create_with_data("truths", &[true, false])?;
    let member = |name: &str, value: i16| EnumMember { name: name.into(), value: value.to_le_bytes().into() };
    let members = vec![member("OFF", -1), member("ON", 300)];
    let switch = Datatype::Enum(model::EnumType { base: Box::new(i16::datatype()), members });
    let state = file.root().new_dataset_with_type(switch).shape(&[2]).create("state")?;
    state.write_values(.., &[Value::EnumName("ON".into()), Value::EnumName("OFF".into())])?;
    let opaque = Datatype::Opaque(OpaqueType { size: 3, tag: "raw".into() });
    file.root().new_dataset_with_type(opaque).create("opaque")?.write_values(.., &[Value::Bytes(vec![1, 0, 255])])?;
    let bits = Datatype::Bitfield(BitfieldType { size: 2, precision: 16, ..BitfieldType::default() });
    file.root().new_dataset_with_type(bits).create("bits")?.write_values(.., &[Value::Integer(0x8001)])?;
    Ok(())
}

#[test]
fn h5py_sees_every_type() {
    let Some(python) = h5live_test_support::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("types.h5");
    let file = File::create(&path).unwrap();
    types(&file).unwrap();
    file.close().unwrap();
    dumped(&path);
    let program = r#"
    for row in f["compound"]:
        print(row["number"], row["inner"]["position"].tolist(), row["inner"]["label"].decode(), row["tags"].tolist())
    print([[inner.tolist() for inner in row] for row in f["ragged"]])
    print(f["texts"].asstr()[:].tolist(), f["fixed"][0], f["truths"][:].tolist())
    print(f["state"][:].tolist(), h5py.check_enum_dtype(f["state"].dtype))
    raw = np.zeros((), "V3")
    f["opaque"].id.read(h5py.h5s.ALL, h5py.h5s.ALL, raw, f["opaque"].id.get_type())
    print(raw.tobytes(), f["opaque"].id.get_type().get_tag(), f["bits"].id.get_type().get_class() == h5py.h5t.BITFIELD)
"#;
    let want = "\
1 [0.5, 1.0] label 1 [7]
0 [0.5, 0.0] label 0 []
[[[1, 2], []], [], [[3]]]
['a', 'grün', ''] b'ab' [True, False]
[300, -1] {'OFF': -1, 'ON': 300}
b'\\x01\\x00\\xff' b'raw' True
";
    assert_eq!(seen(&python, program, &path), want);
}

fn layouts(file: &File, folder: &Path) -> Result<()> {
    let numbers: Vec<i32> = (0..60).collect();
    let new = || file.new_dataset::<i32>().shape(&[6, 10]);
    new().compact().create("compact")?.write(&numbers)?;
    new().contiguous().create("contiguous")?.write(&numbers)?;
    new().chunk_shape(&[6, 10]).create("single")?.write(&numbers)?;
    new().chunk_shape(&[6, 10]).deflate(6).create("single filtered")?.write(&numbers)?;
    new().chunk_shape(&[2, 5]).alloc_time(AllocationTime::Early).create("implicit")?.write(&numbers)?;
    new().chunk_shape(&[4, 4]).create("fixed array")?.write(&numbers)?;
    new().chunk_shape(&[4, 4]).shuffle().deflate(6).fletcher32().create("fixed array filtered")?.write(&numbers)?;
    new().chunk_shape(&[4, 4]).max_shape(&[UNLIMITED, 10]).create("extensible array")?.write(&numbers)?;
    new().chunk_shape(&[4, 4]).resizable().create("tree")?.write(&numbers)?;
    new().chunk_shape(&[4, 4]).resizable().deflate(1).create("tree filtered")?.write(&numbers)?;
    new().chunk_shape(&[4, 4]).deflate(1).unfiltered_partial_chunks().create("edges")?.write(&numbers)?;
    let chunked = |name: &str, id, params: &[u32]| -> Result<()> {
        let filter = FilterSpec { id, optional: true, name: None, params: params.into() };
        new().chunk_shape(&[4, 4]).filter(filter).create(name)?.write(&numbers)
    };
    chunked("szip", 4, &[4, 8])?;
    chunked("nbit", 5, &[])?;
    chunked("scaleoffset", 6, &[2, 0])?;
    let grown = file.new_dataset::<i32>().shape(&[2, 3]).chunk_shape(&[2, 2]).resizable().fill(-7).create("resized")?;
    grown.write(&[1, 2, 3, 4, 5, 6])?;
    grown.resize(&[4, 5])?;
    grown.write_slice((3, 4), &[99])?;
    grown.resize(&[4, 2])?;
    grown.resize(&[5, 4])?;
    let all = Selection::All;
    let source = |dataset: &str, start: u64| VirtualSource {
        file: ".".into(),
        dataset: dataset.into(),
        source: all.clone(),
        target: Selection::block(&[start, 0], &[6, 10]),
    };
    let sources = vec![source("/compact", 0), source("/tree", 6)];
    file.new_dataset::<i32>().shape(&[13, 10]).virtual_sources(sources).fill(-1).create("virtual")?;
    let [one, two] = ["one.raw", "two.raw"].map(|name| folder.join(name).display().to_string());
    let raw = new().external(&one, 3, 100).external(&two, 0, UNLIMITED).create("external")?;
    raw.write(&numbers)
}

#[test]
fn h5py_sees_every_layout() {
    let Some(python) = h5live_test_support::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("layouts.h5");
    let file = File::create(&path).unwrap();
    layouts(&file, folder.path()).unwrap();
    file.close().unwrap();
    dumped(&path);
    let program = r#"
    import os
    want = np.arange(60).reshape(6, 10)
    special = ("resized", "virtual")
    print([name for name in f if name not in special and not np.array_equal(f[name][...], want)])
    print(f["resized"][...].tolist())
    print(np.array_equal(f["virtual"][:12], np.concatenate([want, want])), f["virtual"][12].tolist())
    print([(os.path.basename(name), *place) for name, *place in f["external"].external])
"#;
    let want = "\
[]
[[1, 2, -7, -7], [4, 5, -7, -7], [-7, -7, -7, -7], [-7, -7, -7, -7], [-7, -7, -7, -7]]
True [-1, -1, -1, -1, -1, -1, -1, -1, -1, -1]
[('one.raw', 3, 100), ('two.raw', 0, 18446744073709551615)]
";
    assert_eq!(seen(&python, program, &path), want);
}

#[test]
fn h5py_sees_what_its_plugins_can_read() {
    let Some(python) = h5live_test_support::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plugins.h5");
    let file = File::create(&path).unwrap();
    let numbers: Vec<u16> = (0..5000).map(|i| i / 7).collect();
    let filters = [
        ("bzip2", 307, vec![9]),
        ("lzf", 32_000, vec![]),
        ("blosc", 32_001, vec![0, 0, 0, 0, 5, 1, 1]),
        ("lz4", 32_004, vec![0]),
        ("bitshuffle", 32_008, vec![0, 2]),
        ("zstd", 32_015, vec![3]),
    ];
    for (name, id, params) in filters {
        let filter = FilterSpec { id, optional: false, name: None, params };
        let data = file.new_dataset::<u16>().shape(&[5000]).chunk_shape(&[1000]).filter(filter).create(name).unwrap();
        data.write(&numbers).unwrap();
        assert!(data.stored_chunks().unwrap().iter().all(|chunk| chunk.size < 2000), "{name} makes chunks smaller");
    }
    file.close().unwrap();
    let program =
        "    import hdf5plugin\n    print([name for name in f if not np.array_equal(f[name], np.arange(5000) // 7)])";
    assert_eq!(seen(&python, program, &path).trim(), "[]");
}

fn structure(file: &File, large: usize) -> Result<()> {
    let indexed = LinkOrAttributeStorageSpec { order: CreationOrder::Indexed, ..LinkOrAttributeStorageSpec::default() };
    let group = file
        .root()
        .new_group()
        .link_order(CreationOrder::Indexed)
        .attribute_storage(indexed)
        .track_times()
        .create("many")?;
    for i in (0..30).rev() {
        group.link_soft(&format!("link {i:02}"), &format!("/target {i}"))?;
        group.set_attribute(&format!("attribute {i:02}"), &i)?;
    }
    group.rename("link 00", "renamed")?;
    group.unlink("link 01")?;
    group.remove_attribute("attribute 29")?;
    group.set_comment(Some("many things"))?;
    let datatype = file.root().commit_datatype("type", &Outer::datatype())?;
    file.root()
        .new_dataset_with_type(u8::datatype())
        .committed_datatype(&datatype)
        .shape(&[1])
        .create("typed")?
        .write(&[outer(2)])?;
    file.root().new_attribute("typed").committed_datatype(&datatype).write(&[outer(1)])?;
    file.root().new_attribute("null").null().datatype(f64::datatype()).write_raw(&[])?;
    file.root().new_attribute("matrix").shape(&[2, 2]).write(&[1.5f32, 2.5, 3.5, 4.5])?;
    file.root().new_attribute("large").shape(&[large as u64]).write(&vec![3u64; large])?;
    let data = file.new_dataset::<u8>().shape(&[4, 4]).fill_time(FillTime::Never).create("data")?;
    data.write(&(0..16).collect::<Vec<u8>>())?;
    let region = data.region_reference((1..3, 2..))?;
    let points = Selection::Points(vec![[0, 0].as_slice().into(), [3, 3].as_slice().into()]);
    let regions = file.root().new_dataset_with_type(Reference::datatype_of(ReferenceKind::Region1)).shape(&[3]);
    regions.create("regions")?.write(&[
        region,
        data.region_reference(points)?,
        Reference::new(ReferenceKind::Region1, &[0; 12]),
    ])?;
    let objects = [file.object("many")?.reference()?, Reference::default()];
    file.new_dataset::<Reference>().create_with_data("objects", &objects)?;
    file.root().link_external("outside", "other.h5", "/x")?;
    file.root().link_hard("again", data.id())?;
    file.new_dataset::<String>().shape(&[2]).chunk_shape(&[2]).fill("filled".to_owned()).create("filled")?;
    file.copy_object("many", "copies/many")?;
    file.copy_object("typed", "copies/typed")?;
    file.copy_object("regions", "copies/regions")?;
    file.create_group("gone/below")?.new_dataset::<f64>().create_with_data("data", &[1.0; 1000])?;
    file.root().unlink("gone")
}

#[test]
fn what_is_deleted_leaves_nothing_to_those_that_take_its_place() {
    let folder = tempfile::tempdir().unwrap();
    for file in [File::create(folder.path().join("deleted.h5")).unwrap(), File::in_memory()] {
        for round in 1..20u16 {
            let len = 8 + u64::from(round);
            let data =
                file.new_dataset::<u16>().shape(&[len]).chunk_shape(&[4]).deflate(1).create("group/data").unwrap();
            data.write_slice(1..3, &[round, round]).unwrap();
            assert_eq!(data.read_slice::<u16>(0..4).unwrap(), [0, round, round, 0]);
            file.flush().unwrap();
            data.write_slice(5..6, &[round]).unwrap();
            file.root().unlink("group").unwrap();
            assert!(data.read::<u16>().is_err());
            assert!(data.write_slice(0..1, &[1u16]).is_err());
            file.flush().unwrap();
        }
        let wrong = file.new_dataset::<u8>().shape(&[2]).create_with_data("wrong", &["a".to_owned(), "b".to_owned()]);
        assert!(wrong.is_err() && !file.root().contains("wrong").unwrap());
        file.close().unwrap();
    }
}

#[test]
fn h5py_sees_a_file_behind_a_user_block() {
    let Some(python) = h5live_test_support::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("user.h5");
    let header = [b"MATLAB 7.3 MAT-file".as_slice(), &[b' '; 700]].concat();
    let file = Options::default().create().user_block(&header).open(&path).unwrap();
    file.new_dataset::<u8>().create_with_data("data", &[1, 2, 3]).unwrap();
    file.close().unwrap();
    let file = Options::default().write().open(&path).unwrap();
    file.new_dataset::<f64>().unlimited_rows(&[]).create("more").unwrap().append(&[0.5]).unwrap();
    file.close().unwrap();
    dumped(&path);
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.starts_with(&header) && bytes[1024..].starts_with(b"\x89HDF"));
    let program = "    print(f.userblock_size, f['data'][:].tolist(), f['more'][:].tolist())";
    assert_eq!(seen(&python, program, &path).trim(), "1024 [1, 2, 3] [0.5]");
}

#[test]
fn h5py_sees_groups_attributes_and_references() {
    let Some(python) = h5live_test_support::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("structure.h5");
    let file = File::create(&path).unwrap();
    structure(&file, 20_000).unwrap();
    file.close().unwrap();
    dumped(&path);
    let program = r#"
    print(sorted(f), sorted(f["copies"]))
    for group in f["many"], f["copies/many"]:
        links, attributes = list(group), list(group.attrs)
        print(len(links), links[:2], links[-2:], len(attributes), attributes[0], attributes[-1], group.attrs["attribute 07"])
        print(f.id.get_comment(group.name.encode()) if hasattr(f.id, "get_comment") else h5py.h5g.get_comment(group.id, b"."))
    for data in f["typed"], f["copies/typed"]:
        print(data.id.get_type().committed(), data[0]["inner"]["label"].decode(), data[0]["tags"].tolist())
    print(f.attrs["typed"]["number"], f.attrs["null"], f.attrs["matrix"].tolist(), f.attrs["large"].sum())
    for regions in f["regions"], f["copies/regions"]:
        first, second, null = regions[:]
        print(f[first].name, f["data"][first].tolist(), f["data"][second].tolist(), bool(null))
    print([f[o].name if o else None for o in f["objects"][:]], f["again"] == f["data"], f["filled"].asstr()[:].tolist())
"#;
    let many = "29 ['link 29', 'link 28'] ['link 02', 'renamed'] 29 attribute 28 attribute 00 7\nb'many things'\n";
    let regions = "/again [[6, 7], [10, 11]] [0, 15] False\n";
    let want = format!(
        "\
['again', 'copies', 'data', 'filled', 'many', 'objects', 'outside', 'regions', 'type', 'typed'] \
['many', 'regions', 'typed']
{many}{many}True label 2 [7, 7]
True label 2 [7, 7]
1 Empty(dtype=dtype('<f8')) [[1.5, 2.5], [3.5, 4.5]] 60000
{regions}{regions}['/many', None] True ['filled', 'filled']
"
    );
    assert_eq!(seen(&python, program, &path), want);
}

#[test]
fn every_profile_holds_types_layouts_and_structure() {
    let Some(python) = h5live_test_support::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    for profile in LibVer::ALL {
        let name = profile.name();
        let path = folder.path().join(format!("{name}.h5"));
        let file = Options::default().create().libver(profile).open(&path).unwrap();
        types(&file).unwrap();
        layouts(&file, folder.path()).unwrap();
        // Object headers of HDF5 1.6 have no room for attributes of more than 64 KiB.
        structure(&file, if profile == LibVer::Earliest { 2000 } else { 20_000 }).unwrap();
        let objects = file.walk().filter(|visit| matches!(visit, Ok(h5live::WalkItem::Object(_)))).count() - 1;
        file.close().unwrap();
        let program = r#"
    names = []
    def look(name, object):
        names.append(name)
        if isinstance(object, h5py.Dataset) and name not in ("bits", "opaque"):
            object[...]
        dict(object.attrs)
    f.visititems(look)
    print(len(names))
"#;
        assert_eq!(seen(&python, program, &path).trim(), objects.to_string(), "{name}");
        if profile <= LibVer::V110 {
            dumped(&path);
        }
    }
}

#[test]
fn groups_whose_heaps_have_filters_change() {
    let Some(python) = h5live_test_support::python() else { return };
    let Some(corpus) = h5live_test_support::corpus() else { return };
    let original = corpus.join("generated/groups_corder.v108.h5");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filtered.h5");
    std::fs::copy(original, &path).unwrap();
    let groups = |file: &File| -> Vec<h5live::Group> {
        let met = file.walk().filter_map(|met| match met.unwrap() {
            h5live::WalkItem::Object(h5live::Object::Group(group)) => Some(group),
            _ => None,
        });
        met.collect()
    };
    let program = r#"
    names = []
    f.visititems_links(lambda name, _: names.append(name))
    print("\n".join(sorted(names)))
"#;
    let before = seen(&python, program, &path);
    for round in 0..3 {
        let file = File::options().write().open(&path).unwrap();
        for group in groups(&file) {
            (0..300).for_each(|number| group.link_soft(&format!("zz {round} {number}"), "/somewhere").unwrap());
            (0..round * 100).for_each(|number| group.unlink(&format!("zz {} {number}", round - 1)).unwrap());
        }
        file.close().unwrap();
        h5live_checker::file::check_path(&path).unwrap().expect_clean();
        let lines = seen(&python, program, &path);
        let others: Vec<_> = lines.lines().filter(|line| !line.contains("zz ")).collect();
        assert_eq!(others, before.lines().collect::<Vec<_>>());
        dumped(&path);
    }
    let file = File::options().write().open(&path).unwrap();
    for group in groups(&file) {
        for name in group.names().unwrap().iter().map(|name| name.to_string()).filter(|name| name.starts_with("zz ")) {
            group.unlink(&name).unwrap();
        }
    }
    file.close().unwrap();
    h5live_checker::file::check_path(&path).unwrap().expect_clean();
    assert_eq!(seen(&python, program, &path), before);
}
