//! `dump --json` describes a file, and `new` makes it again.

use std::path::Path;

use crate::common::{error, h5py, python, run, run_with, text};

const MAKE: &str = r#"
with h5py.File(path, "w", track_order=True, libver="v110") as f:
    f["z"] = np.arange(6, dtype=">i2").reshape(2, 3)
    f.create_dataset("packed", data=np.linspace(0, 1, 50), chunks=(20,), maxshape=(None,), compression="gzip", shuffle=True)
    f["t"] = np.dtype("<f4")
    f.create_dataset("typed", (2,), dtype=f["t"], fillvalue=-1.5)
    f.attrs["texts"] = ["a", "grün", ""]
    f.attrs.create("null", h5py.Empty("<u4"))
    f.attrs["special"] = [np.nan, np.inf, -np.inf]
    g = f.create_group("a/b")
    g["again"] = f["z"]
    g["soft"] = h5py.SoftLink("/nowhere")
    g["out"] = h5py.ExternalLink("other.h5", "/x")
    refs = g.create_dataset("refs", (2,), h5py.ref_dtype)
    refs[0] = f["z"].ref
    kind = np.dtype([("n", "<i4"), ("name", "S3"), ("sub", [("x", "<f8", (2,)), ("flag", bool)])])
    g["records"] = np.array([(1, b"ab", ([0.5, 1.5], True)), (2, b"", ([2.5, 3.5], False))], dtype=kind)
    g["ragged"] = np.array([np.array([1, 2], "u1"), np.array([], "u1")], dtype=h5py.vlen_dtype("u1"))
    g["state"] = np.array(1, dtype=h5py.enum_dtype({"OFF": 0, "ON": 1}, "i1"))
    g["opaque"] = np.array([b"\x01\xff"], dtype="V2")
    g["complex"] = np.array([1 + 2j])
    layout = h5py.VirtualLayout((2, 3), "<i2")
    layout[:, :] = h5py.VirtualSource(f["z"])
    g.create_virtual_dataset("view", layout)
    f["back\\slash"] = 7
    refs[1] = f["back\\slash"].ref
    g["short"] = np.array(b"abc", "S3")
    f.create_dataset("raw", (4,), "u1", external=[("raw.bin", 2, 4)])
"#;

#[test]
fn a_described_file_is_made_again() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["a.h5", "b.h5"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    std::fs::write(folder.path().join("raw.bin"), [0, 0, 1, 2, 3, 4]).unwrap();
    h5py(&python, MAKE, Path::new(&first));
    let description = text(&run(&["dump", "--json", &first]));
    assert_eq!(text(&run_with(&["new", &second], description.as_bytes())), "");
    let manifests = [&first, &second].map(|path| text(&run(&["manifest", path])));
    assert_eq!(manifests[0], manifests[1]);
    assert_eq!(text(&run(&["dump", "--json", &second])), description);
    let seen = h5py(
        &python,
        "with h5py.File(path) as f: print(list(f), f['typed'].id.get_type().committed())",
        Path::new(&second),
    );
    assert_eq!(seen.trim(), r"['z', 'packed', 't', 'typed', 'a', 'back\\slash', 'raw'] True");
}

#[test]
fn a_description_may_leave_out_what_is_usual() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.h5");
    let path = path.to_str().unwrap();
    let description = r#"{"links": {
        "run": {"kind": "group", "attributes": {"unit": {"type": "string", "value": "mm"}}, "links": {
            "frames": {"type": "u16le", "shape": [0, 4], "max_shape": [null, 4], "filters": ["shuffle", "deflate:4"]},
            "scalar": {"type": "bool", "values": true}}}}}"#;
    assert_eq!(text(&run_with(&["new", path, "--profile", "v110"], description.as_bytes())), "");
    let file = h5live::File::open(path).unwrap();
    let frames = file.dataset("run/frames").unwrap();
    let spec = frames.spec().unwrap();
    assert_eq!(
        spec.filters.iter().map(|filter| (filter.id, &filter.params[..])).collect::<Vec<_>>(),
        [(2, &[2][..]), (1, &[4])]
    );
    assert!(file.dataset("run/scalar").unwrap().read_scalar::<bool>().unwrap());
    let said = error(&run_with(&["new", path], description.as_bytes()));
    assert!(said.contains("exists"), "{said}");
}

#[test]
fn says_what_is_wrong_with_a_description_and_makes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.h5");
    let refused = |description: &str| {
        let said = error(&run_with(&["new", path.to_str().unwrap()], description.as_bytes()));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{said}");
        said.strip_prefix("h5live: standard input: ").unwrap_or(&said).to_owned()
    };
    let elsewhere = tempfile::tempdir().unwrap();
    let named = elsewhere.path().join("named.json");
    std::fs::write(&named, r#"{"lynx": {}}"#).unwrap();
    let said = error(&run(&["new", path.to_str().unwrap(), named.to_str().unwrap()]));
    assert_eq!(said, format!("h5live: {}: /: the field \"lynx\" is not known", named.display()));
    assert!(refused("{").starts_with("EOF while parsing"));
    assert_eq!(refused(r#"{"lynx": {}}"#), "/: the field \"lynx\" is not known");
    assert_eq!(refused(r#"{"links": {"a": {"shape": [1]}}}"#), "/a: \"type\" is missing, or is not a text");
    assert!(refused(r#"{"links": {"a": {"type": "u7"}}}"#).starts_with("/a: \"u7\" is not a datatype"));
    let large = refused(r#"{"links": {"a": {"type": "u8", "values": 300}}}"#);
    assert!(large.starts_with(&format!("h5live: {}: /a: ", path.display())), "{large}");
    assert!(large.contains("300 does not fit u8"), "{large}");
    assert_eq!(refused(r#"{"links": {"a": {"type": "u8"}, "a": {"type": "i8"}}}"#), "\"links.a\" is there twice");
    let hard = r#"{"links": {"a": {"kind": "hard", "target": "/b"}}}"#;
    assert_eq!(refused(hard), "/a: the description has no \"/b\" of the right kind");
    let wrong = r#"{"links": {"a": {"type": "u8", "shape": [2], "values": [1, 2, 3]}}}"#;
    assert_eq!(refused(wrong), "/a: 3 values instead of 2");
}

#[test]
fn addresses_may_be_short() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (folder.path().join("one.h5"), folder.path().join("other.h5"));
    let description = r#"{"offset_size": 4, "links": {"a": {"type": "u8", "shape": [2], "values": [1, 2]}}}"#;
    assert_eq!(text(&run_with(&["new", one.to_str().unwrap()], description.as_bytes())), "");
    let described = text(&run(&["dump", "--json", one.to_str().unwrap()]));
    assert!(described.contains("\"offset_size\": 4"), "{described}");
    assert_eq!(text(&run_with(&["new", other.to_str().unwrap()], described.as_bytes())), "");
    assert_eq!(std::fs::read(one).unwrap(), std::fs::read(other).unwrap());
    let wrong = error(&run_with(&["new", folder.path().join("third.h5").to_str().unwrap()], br#"{"offset_size": 3}"#));
    assert!(wrong.contains("2, 4 or 8"), "{wrong}");
}

const REFER: &str = r#"
with h5py.File(path, "w") as f:
    f["z"] = np.arange(12).reshape(3, 4)
    f["z"].attrs["unit"] = "mm"
    g = f.create_group("g")
    regions = g.create_dataset("regions", (4,), h5py.regionref_dtype)
    regions[0] = f["z"].regionref[1:3, 0:2]
    regions[1] = f["z"].regionref[:, 1]
    regions[2] = f["z"].regionref[[0, 2], 3]
    g.attrs["region"] = f["z"].regionref[2, 1:]
    kind = np.dtype([("n", "<i4"), ("where", h5py.regionref_dtype), ("what", h5py.ref_dtype)])
    row = np.zeros((1,), kind)
    row[0] = (7, f["z"].regionref[0, 0:1], f["z"].ref)
    g.create_dataset("rows", data=row)
"#;

const REGIONS: &str = r#"
with h5py.File(path) as f:
    z, g = f["z"], f["g"]
    print([z[r].ravel().tolist() if r else None for r in g["regions"]])
    print(z[g.attrs["region"]].tolist(), z[g["rows"][0]["where"]].tolist(), f[g["rows"][0]["what"]].name)
"#;

#[test]
fn references_to_regions_and_attributes_are_described_and_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["a.h5", "b.h5"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    if let Some(python) = python() {
        h5py(&python, REFER, Path::new(&first));
        let description = text(&run(&["dump", "--json", &first]));
        assert!(description.contains("\"region\""), "{description}");
        text(&run_with(&["new", &second], description.as_bytes()));
        let seen = h5py(&python, REGIONS, Path::new(&second));
        assert_eq!(seen, h5py(&python, REGIONS, Path::new(&first)));
        assert!(seen.starts_with("[[4, 5, 8, 9], [1, 5, 9], [3, 11], None]\n"), "{seen}");
        text(&run(&["diff", &first, &second]));
        std::fs::remove_file(&second).unwrap();
    }
    let description = r#"{"attributes": {"a": {"type": "u8", "value": 1}}, "links": {"d": {"type": "u8", "shape": [4]},
        "r": {"type": "ref(std)", "shape": [4], "values": ["/d", null, {"object": "/", "attribute": "a"},
            {"dataset": "/d", "region": {"points": [[3], [1]]}}]}}}"#;
    text(&run_with(&["new", &second], description.as_bytes()));
    let json: serde_json::Value = serde_json::from_str(&text(&run(&["dump", "--json", &second]))).unwrap();
    let wanted: serde_json::Value = serde_json::from_str(description).unwrap();
    assert_eq!(json["links"]["r"]["values"], wanted["links"]["r"]["values"]);
}

#[test]
fn a_description_names_what_it_cannot_hold() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [path, copy] = ["a.h5", "b.h5"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let make = r#"
with h5py.File(path, "w") as f:
    f["z"] = 1
    f["refs"] = np.array([f["z"].ref, None], h5py.ref_dtype)
    f["text"] = np.array([b"\xff", b"a"], "S1")
    del f["z"]
"#;
    h5py(&python, make, Path::new(&path));
    let output = run(&["dump", "--json", &path]);
    assert_eq!(output.status.code(), Some(1));
    let description = String::from_utf8(output.stdout).unwrap();
    assert!(description.contains("1 reference leads to nothing in this description, and is null"), "{description}");
    assert!(description.contains("1 text is not UTF-8, and is changed"), "{description}");
    assert!(error(&run_with(&["new", &copy], description.as_bytes())).contains("the field \"errors\" is not known"));
}

#[test]
fn a_damaged_name_that_leads_back_to_its_own_group_is_described_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loop.h5");
    let file = h5live::File::options().libver(h5live::model::LibVer::Earliest).create().open(&path).unwrap();
    let root = file.root();
    root.link_hard("round and round", root.id()).unwrap();
    file.close().unwrap();
    // An empty name: the path of what it leads to is the path of the group.
    let mut bytes = std::fs::read(&path).unwrap();
    let name = b"round and round\0";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at..at + name.len()].fill(0);
    std::fs::write(&path, bytes).unwrap();
    let output = run(&["dump", "--json", path.to_str().unwrap()]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["links"][""]["target"], "/", "{json}");
}

#[test]
fn the_bytes_of_a_raw_file_that_exists_are_replaced_only_by_force() {
    let folder = tempfile::tempdir().unwrap();
    let [path, raw] = ["a.h5", "raw.bin"].map(|name| folder.path().join(name));
    let path = path.to_str().unwrap();
    let described = |offset: u64| {
        format!(
            r#"{{"links": {{"g": {{"kind": "group", "links": {{"x": {{"type": "u8", "shape": [3], "values": [1, 2, 3],
                "layout": "external", "files": [{{"file": "raw.bin", "offset": {offset}, "size": 3}}]}}}}}}}}}}"#
        )
    };
    std::fs::write(&raw, b"precious").unwrap();
    let refused = error(&run_with(&["new", path], described(5).as_bytes()));
    assert!(refused.contains("raw.bin: the raw file exists, and the values of /g/x would replace bytes"), "{refused}");
    assert!(!Path::new(path).exists());
    assert_eq!(std::fs::read(&raw).unwrap(), b"precious");
    // What is beyond its end replaces nothing.
    text(&run_with(&["new", path], described(8).as_bytes()));
    assert_eq!(std::fs::read(&raw).unwrap(), b"precious\x01\x02\x03");
    text(&run_with(&["new", "--force", path], described(0).as_bytes()));
    assert_eq!(std::fs::read(&raw).unwrap(), b"\x01\x02\x03cious\x01\x02\x03");
}

#[test]
fn a_description_writes_raw_files_into_other_folders_only_by_force() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    let path = inside.join("a.h5");
    let path = path.to_str().unwrap();
    let absolute = folder.path().join("absolute.bin").to_str().unwrap().to_owned();
    let described = |raw: &str| {
        format!(
            r#"{{"links": {{"x": {{"type": "u8", "shape": [3], "values": [1, 2, 3],
                "layout": "external", "files": [{{"file": "{raw}", "offset": 0, "size": 3}}]}}}}}}"#
        )
    };
    for raw in ["../raw.bin", &absolute, "x/../../raw.bin", ".."] {
        let refused = error(&run_with(&["new", path], described(raw).as_bytes()));
        assert!(refused.contains("is not in the folder of the new file"), "{raw}: {refused}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(&inside).unwrap().count(), 0);
    text(&run_with(&["new", path], described("./raw.bin").as_bytes()));
    assert_eq!(std::fs::read(inside.join("raw.bin")).unwrap(), [1, 2, 3]);
    text(&run_with(&["new", "--force", path], described("../raw.bin").as_bytes()));
    assert_eq!(std::fs::read(folder.path().join("raw.bin")).unwrap(), [1, 2, 3]);
}
