//! Files by the programs that people use (netCDF4, PyTables, pandas, anndata, MATLAB's format, h5py with all its
//! special types): what we read of them is what these programs read.

use crate::common;

use std::path::Path;
use std::process::Command;

use h5live::{File, Selection, Value};

/// The numbers and texts of which a value consists, in order.
fn leaves(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::List(values) => values.iter().for_each(|value| leaves(value, out)),
        Value::Complex(parts) => parts.iter().for_each(|part| leaves(part, out)),
        Value::Compound(members) => members.iter().for_each(|(_, value)| leaves(value, out)),
        // What h5py stores times in: opaque data of eight bytes.
        Value::Bytes(bytes) => match bytes.as_slice().try_into() {
            Ok(bytes) => out.push(i64::from_le_bytes(bytes).to_string()),
            Err(_) => out.push(value.to_string()),
        },
        Value::EnumName(_) | Value::Text(_) => out.push(value.text().unwrap_or_default().to_owned()),
        _ => out.push(value.number().map_or_else(|| value.to_string(), |number| number.to_string())),
    }
}

/// All values at a path: of a dataset, of one of its members (`DATASET.MEMBER`), or of an attribute (`PATH@NAME`).
fn values(file: &File, path: &str) -> Vec<String> {
    let mut out = Vec::new();
    if let Some((object, name)) = path.split_once('@') {
        let attribute = match file.object(object).unwrap() {
            h5live::Object::Group(group) => group.attribute(name).unwrap(),
            h5live::Object::Dataset(dataset) => dataset.attribute(name).unwrap(),
            _ => panic!("{path}"),
        };
        attribute.values().unwrap().iter().for_each(|value| leaves(value, &mut out));
        return out;
    }
    let (path, member) = path.split_once('.').map_or((path, None), |(path, member)| (path, Some(member)));
    for value in file.dataset(path).unwrap().read_values(Selection::All).unwrap() {
        let value = match (&value, member) {
            (Value::Complex(parts), Some("r" | "real")) => &parts[0],
            (Value::Complex(parts), Some(_)) => &parts[1],
            (value, Some(member)) => value.member(member).unwrap_or_else(|| panic!("{path}: {value} has no {member}")),
            (value, None) => value,
        };
        leaves(value, &mut out);
    }
    out
}

fn agrees(file: &Path, line: &str) {
    let [path, kind, expected] = line.splitn(3, '\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
    let found = values(&File::open(file).unwrap(), path);
    let expected: Vec<String> = serde_json::from_str(expected).unwrap();
    let place = format!("{}: {path}", file.display());
    assert_eq!(found.len(), expected.len(), "{place}: {found:?}");
    for (found, expected) in found.iter().zip(&expected) {
        let same = match kind {
            "s" => expected == found,
            _ => found.parse::<f64>().is_ok_and(|found| expected.parse() == Ok(found)),
        };
        assert!(same, "{place}: {found} is not {expected}");
    }
}

#[test]
fn values_are_those_that_the_programs_read() {
    let Some(python) = common::python() else { return };
    let needed = "import netCDF4, tables, pandas, anndata, hdf5storage, scipy";
    if !Command::new(&python).args(["-c", needed]).stderr(std::process::Stdio::null()).status().unwrap().success() {
        return println!("skipped: not all of what makes the files is there ({needed}; `make setup`)");
    }
    let folder = tempfile::tempdir().unwrap();
    let script = common::workspace().join("tests/python/real_files.py");
    let made = Command::new(&python).args(["-W", "ignore"]).arg(script).arg(folder.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut lines = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let expected = entry.unwrap().path();
        if expected.extension().is_some_and(|extension| extension == "expected") {
            let text = std::fs::read_to_string(&expected).unwrap();
            text.lines().for_each(|line| agrees(&expected.with_extension(""), line));
            lines += text.lines().count();
        }
    }
    println!("{lines} datasets and attributes agree");
    assert!(lines > 30);
}
