//! Copies of a file that has everything, to each store and back: what a store does not keep, the copy says.

use std::path::Path;

use serde_json::Value;

use crate::common::{h5py, python, run, text};

/// Makes a file with everything that HDF5 has, and beside it the files that it names.
const MAKE: &str = r#"
import os
folder = os.path.dirname(path)
with open(os.path.join(folder, "raw.bin"), "wb") as raw:
    raw.write(bytes(range(1, 9)))
with h5py.File(os.path.join(folder, "parts.h5"), "w") as f:
    f["part"] = np.arange(4, dtype="<i4")
with h5py.File(path, "w", track_order=True, libver="v110", userblock_size=512) as f:
    f.attrs["z_first"] = 1
    f.attrs["a_second"] = "text"
    ordered = f.create_group("z_ordered", track_order=True)
    for name in ["c", "a", "b"]:
        ordered[name] = ord(name)
    many = f.create_group("many_attributes", track_order=True)
    for i in reversed(range(20)):
        many.attrs[f"attribute {i:02}"] = np.arange(i, dtype="<u2")
    f.create_dataset("timed", data=[1.5], track_times=True)
    f["commented"] = 7
    h5py.h5o.set_comment(f["commented"].id, b"what it is")
    h5py.h5o.set_comment(f.id, b"what all is")
    f["soft"] = h5py.SoftLink("/timed")
    f["dangling"] = h5py.SoftLink("/nowhere")
    f["external"] = h5py.ExternalLink("parts.h5", "/part")
    f["hard"] = f["timed"]
    f["committed"] = np.dtype([("x", "<f4"), ("y", ">i2")])
    f["with_committed"] = np.zeros(3, dtype=f["committed"].dtype)
    f.create_dataset("typed", (2,), dtype=f["committed"])
    f["typed"].attrs.create("of_type", np.zeros((), f["committed"].dtype), dtype=f["committed"])
    refs = f.create_dataset("references", (3,), h5py.ref_dtype)
    refs[0], refs[1] = f["timed"].ref, f.ref
    regions = f.create_dataset("regions", (3,), h5py.regionref_dtype)
    f["plane"] = np.arange(12, dtype="<i8").reshape(3, 4)
    regions[0], regions[1] = f["plane"].regionref[1:3, 0:2], f["plane"].regionref[[0, 2], 3]
    f["plane"].attrs["to"] = f["timed"].ref
    f.create_dataset("filled", (5,), "<f8", fillvalue=-1.5, chunks=(2,), maxshape=(9,))
    f.create_dataset("never_written", (4, 4), "<u4", chunks=(2, 2), maxshape=(None, 8), fillvalue=9)
    rows = np.repeat(np.arange(50), 4)
    f.create_dataset("deflated", data=rows, chunks=(64,), maxshape=(None,), compression=4, shuffle=True, fletcher32=True)
    f.create_dataset("scaled", data=rows.astype("<i4"), chunks=(64,), scaleoffset=0)
    f.create_dataset("bytes", data=np.array([b"abc", b"", b"x"], "S3"))
    f.create_dataset("utf8", data=np.array(["grün".encode(), b""], h5py.string_dtype("utf-8", 6)))
    f.create_dataset("texts", data=["a", "grün", ""], dtype=h5py.string_dtype())
    f.create_dataset("ascii_texts", data=[b"a", b"bc"], dtype=h5py.string_dtype("ascii"))
    kind = np.dtype([("n", "<i4"), ("name", h5py.string_dtype()), ("to", h5py.ref_dtype), ("in", [("x", "<f8", (2,))])])
    records = f.create_dataset("records", (2,), kind)
    records[0] = (1, "one", f["timed"].ref, ([0.5, 1.5],))
    f["state"] = np.array([0, 1, 1], dtype=h5py.enum_dtype({"OFF": 0, "ON": 1}, "i1"))
    f["flags"] = np.array([True, False])
    f["opaque"] = np.array([b"\x01\xff"], dtype="V2")
    f["complex"] = np.array([1 + 2j])
    f["half"] = np.array([1.5, -2], dtype=">f2")
    bits = h5py.h5t.STD_B16BE
    space = h5py.h5s.create_simple((3,))
    h5py.h5d.create(f.id, b"bits", bits, space).write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([1, 2, 65535], ">u2"), bits)
    f["ragged"] = np.array([np.array([1, 2], "<u2"), np.array([], "<u2")], dtype=h5py.vlen_dtype("<u2"))
    f["null"] = h5py.Empty("<f4")
    f["scalar"] = 2.5
    f["none"] = np.zeros((0, 3), "<i2")
    chunked = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    chunked.set_chunk((100,))
    chunked.set_deflate(1)
    h5py.h5d.create(f.id, b"empty_chunks", h5py.h5t.STD_I16LE, h5py.h5s.create_simple((0,), (0,)), chunked)
    compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    compact.set_layout(h5py.h5d.COMPACT)
    h5py.h5d.create(f.id, b"compact", h5py.h5t.STD_U8LE, h5py.h5s.create_simple((2,)), compact).write(
        h5py.h5s.ALL, h5py.h5s.ALL, np.array([3, 4], "u1"))
    layout = h5py.VirtualLayout((8,), "<i4")
    layout[:4] = h5py.VirtualSource("parts.h5", "part", shape=(4,))
    layout[4:] = h5py.VirtualSource("parts.h5", "part", shape=(4,))
    f.create_virtual_dataset("virtual", layout, fillvalue=-1)
    f.create_dataset("raw", (4,), "u1", external=[("raw.bin", 2, 4)])
with open(path, "r+b") as f:
    f.write(b"MATLAB 7.3 MAT-file".ljust(124) + bytes([0, 2]) + b"IM")
"#;

/// A store, and what the copy to it says of the file that [`MAKE`] makes.
struct KeptBy {
    store: &'static str,
    /// Whether it holds virtual datasets and raw files. If not, their elements are copied.
    has_other_files: bool,
    /// The beginning of each line that the copy says.
    not_kept: &'static [&'static str],
}

/// What each store does not keep. docs/stores.md has the same table.
const KEPT: [KeptBy; 4] = [
    KeptBy { store: "native", has_other_files: true, not_kept: &[] },
    KeptBy { store: "log", has_other_files: true, not_kept: &["left out: the user block of 512 bytes"] },
    KeptBy { store: "kv", has_other_files: false, not_kept: &["left out: the user block of 512 bytes"] },
    KeptBy {
        store: "hsds",
        has_other_files: false,
        not_kept: &[r#"left as it is: the name "parts.h5" of another file"#, "left out: the user block of 512 bytes"],
    },
];

/// The differences of two descriptions: paths within them.
fn differences(at: &str, a: &Value, b: &Value, found: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            for (name, value) in a {
                let place = format!("{at}/{name}");
                match b.get(name) {
                    Some(other) => differences(&place, value, other, found),
                    None => found.push(format!("{place}: {value} is gone")),
                }
            }
            found.extend(
                b.iter().filter(|(name, _)| !a.contains_key(*name)).map(|(name, v)| format!("{at}/{name}: new: {v}")),
            );
            let order = |map: &serde_json::Map<String, Value>| map.keys().cloned().collect::<Vec<_>>();
            if order(a) != order(b) && at.ends_with("/links") {
                found.push(format!("{at}: another order"));
            }
        }
        (a, b) if a != b => found.push(format!("{at}: {a} became {b}")),
        _ => {}
    }
}

fn described(path: &str) -> Value {
    serde_json::from_str(&text(&run(&["dump", "--json", path]))).unwrap()
}

#[test]
fn what_a_store_does_not_keep_is_named_by_the_copy() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let original = at("all.h5");
    h5py(&python, MAKE, Path::new(&original));
    let user_block = |path: &str| std::fs::read(path).unwrap()[..512].to_vec();
    for KeptBy { store, has_other_files, not_kept } in KEPT {
        if store == "kv" && !cfg!(feature = "kv") || store == "hsds" && !cfg!(feature = "hsds") {
            continue;
        }
        let inline = (!has_other_files).then_some("--inline");
        let copy =
            |from: &str, to: &str| run(&["copy"].into_iter().chain(inline).chain([from, to]).collect::<Vec<_>>());
        let copied = format!("{store}:{}", at(&format!("copied-{store}")));
        let returned = at(&format!("returned-{store}.h5"));
        let expected = at(&format!("expected-{store}.h5"));
        text(&copy(&original, &expected));
        assert_eq!(user_block(&expected), user_block(&original));
        let output = copy(&original, &copied);
        let said = String::from_utf8(output.stderr).unwrap();
        let mut lines: Vec<_> = said.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines.len(), not_kept.len(), "{store}: {said}");
        assert!(lines.iter().zip(not_kept).all(|(line, begin)| line.starts_with(begin)), "{store}: {said}");
        assert_eq!(output.status.code(), Some(i32::from(!not_kept.is_empty())), "{store}: {said}");
        text(&copy(&copied, &returned));
        let mut found = Vec::new();
        differences("", &described(&expected), &described(&returned), &mut found);
        assert!(found.is_empty(), "{store}: {found:#?}");
        let manifests = [&expected, &copied, &returned].map(|path| text(&run(&["manifest", path])));
        let differ = |other: &str| {
            let lines = manifests[0].lines().zip(other.lines()).filter(|(line, other)| line != other);
            lines.map(|(line, other)| format!("{line}\n{other}\n")).collect::<String>()
        };
        assert!(manifests[0] == manifests[1], "one content has one manifest: {store}:\n{}", differ(&manifests[1]));
        assert!(manifests[0] == manifests[2], "{store}, back:\n{}", differ(&manifests[2]));
        if store == "native" {
            assert_eq!(user_block(&returned), user_block(&original));
        }
    }
}
