//! `set`, `rm` and `mv`, seen by h5py.

use std::path::Path;

use crate::common::{error, h5py, python, run, text};
use h5live::{File, Value};

fn made(folder: &Path) -> String {
    let path = folder.join("file.h5");
    let file = File::create(&path).unwrap();
    let data = file.new_dataset::<f64>().shape(&[2, 2]).create("run/data").unwrap();
    data.set_attribute("unit", &"mm".to_owned()).unwrap();
    data.new_attribute("scale").shape(&[2]).write(&[1.5f32, 2.5]).unwrap();
    file.root().link_soft("newest", "/nowhere").unwrap();
    file.close().unwrap();
    path.to_str().unwrap().to_owned()
}

#[track_caller]
fn quietly(arguments: &[&str]) {
    assert_eq!(text(&run(arguments)), "", "{arguments:?}");
}

#[test]
fn values_are_set_and_seen_by_h5py() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    quietly(&["set", &path, "run/data@unit", "km"]);
    quietly(&["set", &path, "/run/data@scale", "[3, 4.5]"]);
    quietly(&["set", &path, "@version", "-7"]);
    quietly(&["set", &path, "run@flags", "[true, false]"]);
    quietly(&["set", &path, "run@code", "[1, 2, 3]", "--type", "u16be"]);
    quietly(&["set", &path, "run@target", "/run/data", "--type", "ref(object)"]);
    quietly(&["set", &path, "run/data", "[[1, 2], [3, \"nan\"]]"]);
    let file = File::open(&path).unwrap();
    let data = file.dataset("run/data").unwrap();
    assert_eq!(data.read::<f64>().unwrap()[..3], [1.0, 2.0, 3.0]);
    assert_eq!(data.attribute("scale").unwrap().read::<f32>().unwrap(), [3.0, 4.5]);
    assert_eq!(file.attribute("version").unwrap().values().unwrap(), [Value::Integer(-7)]);
    drop((data, file));
    quietly(&["set", &path, "run/data", "0.5"]);
    let Some(python) = python() else { return };
    let program = r#"
with h5py.File(path) as file:
    data = file["run/data"]
    print(data[...].tolist(), data.attrs["unit"], data.attrs["scale"].tolist(), data.attrs["scale"].dtype)
    print(file.attrs["version"], file["run"].attrs["flags"].tolist(), file["run"].attrs["code"].tolist())
    print(file["run"].attrs["code"].dtype, file[file["run"].attrs["target"]].name)
"#;
    let seen = h5py(&python, program, Path::new(&path));
    let want = ["[[0.5, 0.5], [0.5, 0.5]] km [3.0, 4.5] float32", "-7 [True, False] [1, 2, 3]", ">u2 /run/data"];
    assert_eq!(seen.lines().collect::<Vec<_>>(), want);
}

#[test]
fn an_attribute_may_stand_behind_a_slash() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    for (object, attribute) in [("run/data", "run/data/@n"), ("run", "run/@n"), ("/", "/@n")] {
        quietly(&["set", &path, attribute, "7"]);
        assert_eq!(text(&run(&["dump", &path, attribute])), "7\n", "{attribute}");
        quietly(&["rm", &path, attribute]);
        assert!(!text(&run(&["ls", &path, object])).contains("@n"), "{attribute}");
    }
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let refused = |arguments: &[&str]| {
        let said = error(&run(arguments));
        said.strip_prefix(&format!("h5live: {path}: ")).unwrap_or(&said).to_owned()
    };
    assert_eq!(refused(&["set", &path, "run/data@scale", "x"]), "run/data@scale: \"x\" is not a value of type f32le");
    assert_eq!(refused(&["set", &path, "run/data", "[1, 2, 3]"]), "run/data: 3 values instead of 2");
    let large = refused(&["set", &path, "run/data@scale", "[16777217, 1]"]);
    assert!(large.ends_with("16777217 does not fit f32 (it would become 16777216.0)"), "{large}");
    assert!(refused(&["set", &path, "run/data", "1e-400"]).ends_with("is not a value of type f64le"));
    let ended = refused(&["set", &path, "run/data@unit", "\"a\\u0000b\""]);
    assert!(ended.ends_with("a string of 3 bytes has a NUL, at which it would end after 1"), "{ended}");
    assert_eq!(refused(&["set", &path, "run@c", r#"{"a": 1, "a": 2}"#]), "run@c: \"a\" is there twice");
    assert_eq!(refused(&["set", &path, "run", "1"]), "run: this is neither a dataset nor an attribute");
    assert_eq!(refused(&["set", &path, "none@x", "1"]), "/none: there is no \"none\" here");
    let wrong = run(&["set", &path, "run@x", "1", "--type", "u7"]);
    assert!(
        wrong.status.code() == Some(2) && String::from_utf8_lossy(&wrong.stderr).contains("\"u7\" is not a datatype")
    );
    assert_eq!(refused(&["rm", &path, "run/none"]), "/run/none: there is no \"none\" here");
    assert_eq!(refused(&["rm", &path, "run", "none"]), "/none: there is no \"none\" here");
    assert_eq!(refused(&["rm", &path, "run/data", "run@none"]), "run@none: there is no \"none\" here");
    assert_eq!(refused(&["mv", &path, "run", "run/below"]), "/run: a group does not go below itself");
    assert_eq!(refused(&["rm", &path, "/"]), "/: the root group stays where it is");
    assert_eq!(refused(&["mv", &path, "run", "newest"]), "/run: \"newest\" exists already");
    let file = File::open(&path).unwrap();
    assert_eq!(file.dataset("run/data").unwrap().attribute("scale").unwrap().read::<f32>().unwrap(), [1.5, 2.5]);
    assert_eq!(file.dataset("run/data").unwrap().attribute("unit").unwrap().read_scalar::<String>().unwrap(), "mm");
    assert!(file.root().contains("run").unwrap());
}

#[test]
fn links_and_attributes_move_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    quietly(&["mv", &path, "run/data", "old/runs/"]);
    quietly(&["mv", &path, "newest", "/latest"]);
    quietly(&["rm", &path, "run", "latest", "old/runs/data@unit"]);
    let Some(python) = python() else { return };
    let program = r#"
with h5py.File(path) as file:
    print(list(file), list(file["old/runs"]), list(file["old/runs/data"].attrs))
"#;
    assert_eq!(h5py(&python, program, Path::new(&path)).trim(), "['old'] ['data'] ['scale']");
}
