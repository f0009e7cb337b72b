//! What h5py wrote, read as h5py reads it: numbers in any others, fill values, strings, virtual datasets.
//!
//! Needs the Python that `H5LIVE_PYTHON` names, with h5py; without it the tests say that they are skipped.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use h5live::model::Sign;
use h5live::{ByteOrder, ConversionPolicy, Datatype, File, Object, Value};

/// Has h5py make the files; false if there is none.
fn make(folder: &Path) -> bool {
    let Some(python) = h5live_test_support::python() else { return false };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/read.py");
    assert!(Command::new(python).arg(script).arg(folder).status().unwrap().success());
    true
}

fn number(kind: &str) -> Datatype {
    let size = kind[2..].parse().unwrap();
    match &kind[1..2] {
        "f" => Datatype::float(size, ByteOrder::Little).unwrap(),
        "u" => Datatype::integer(size, ByteOrder::Little, Sign::Unsigned),
        _ => Datatype::integer(size, ByteOrder::Little, Sign::Signed),
    }
}

fn hex(bytes: &[u8]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    if hex.is_empty() { "-".to_owned() } else { hex }
}

#[test]
fn reads_what_h5py_reads() {
    let folder = tempfile::tempdir().unwrap();
    if !make(folder.path()) {
        return;
    }
    let expected = std::fs::read_to_string(folder.path().join("expected.txt")).unwrap();
    let mut files = BTreeMap::new();
    let mut differences = Vec::new();
    for line in expected.lines() {
        let (rest, want) = line.rsplit_once(' ').unwrap();
        let (rest, kind) = rest.rsplit_once(' ').unwrap();
        let (name, path) = rest.split_once(' ').unwrap();
        // libhdf5 takes the nearest value where the other type does not have it.
        let open = || File::options().conversion(ConversionPolicy::Lossy).open(folder.path().join(name)).unwrap();
        let file = files.entry(name).or_insert_with(open);
        let read = || -> h5live::Result<String> {
            let dataset = file.dataset(path)?;
            if kind == "text" {
                let texts = dataset.read::<String>()?;
                return Ok(hex(&texts.iter().flat_map(|text| [text.as_bytes(), b"\0"].concat()).collect::<Vec<_>>()));
            }
            if kind.starts_with('/') {
                let Object::Datatype(to) = file.object(kind)? else { panic!("{kind} is a datatype") };
                return Ok(hex(&dataset.read_as(.., to.datatype())?));
            }
            let bytes = dataset.read_as(.., &number(kind))?;
            // The two ways to read a number agree.
            if kind == "<f8" {
                let typed: Vec<u8> = dataset.read::<f64>()?.iter().flat_map(|value| value.to_le_bytes()).collect();
                assert_eq!(hex(&typed), hex(&bytes), "{line}");
            }
            Ok(hex(&bytes))
        };
        match read() {
            Ok(got) if got == want => {}
            Ok(got) => differences.push(format!("{name} {path} as {kind}\n  want {want}\n  got  {got}")),
            Err(error) => differences.push(format!("{name} {path} as {kind}: {error}")),
        }
    }
    assert!(differences.is_empty(), "{} of them:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn a_null_dataspace_has_no_elements() {
    let folder = tempfile::tempdir().unwrap();
    if !make(folder.path()) {
        return;
    }
    let file = File::open(folder.path().join("fills-latest.h5")).unwrap();
    let null = file.dataset("null").unwrap();
    assert_eq!(null.size().unwrap(), 0);
    assert_eq!(null.read::<f64>().unwrap(), [0f64; 0]);
    assert_eq!(null.read_values(..).unwrap(), [] as [Value; 0]);
    assert!(null.read_scalar::<f64>().is_err());
}
