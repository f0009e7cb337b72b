//! `diff` compares what files hold, not how they store it.

use crate::common::{h5py, python, run, text};

const MAKE: &str = r#"
import sys
for name, options, order, chunks in ("a.h5", {"libver": "earliest"}, "<", None), ("b.h5", {"libver": "latest"}, ">", (3, 4)):
    with h5py.File(f"{path}/{name}", "w", **options) as file:
        file.create_dataset("grid", data=np.arange(60.0).reshape(6, 10).astype(order + "f8"), chunks=chunks)
        file["texts"] = ["x", "yy", "grün"]
        file["group/flag"] = np.array([True, False])
        file["group"].attrs["unit"] = "m"
        file["soft"] = h5py.SoftLink("/grid")
        refs = file.create_dataset("refs", (1,), h5py.ref_dtype)
        refs[0] = file["group"].ref
"#;

const CHANGE: &str = r#"
with h5py.File(path, "r+") as file:
    file["grid"][2, 3] = 23.5
    file["texts"][1] = "zz"
    file["group"].attrs["unit"] = "km"
    del file["group/flag"]
    file["group/new"] = 1
    file["refs"][0] = file["grid"].ref
"#;

#[test]
fn files_with_the_same_content_do_not_differ() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    h5py(&python, MAKE, folder.path());
    let [a, b] = ["a.h5", "b.h5"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let output = run(&["diff", &a, &b]);
    assert_eq!((output.status.code(), text(&output).as_str()), (Some(0), ""));
}

#[test]
fn every_difference_is_told() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    h5py(&python, MAKE, folder.path());
    let [a, b] = ["a.h5", "b.h5"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    h5py(&python, CHANGE, &folder.path().join("b.h5"));
    let output = run(&["diff", &a, &b]);
    assert_eq!(output.status.code(), Some(1));
    let mut said: Vec<_> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    said.retain(|line| !line.starts_with("/refs"));
    assert_eq!(
        said,
        [
            "/grid[2, 3]: 23.0 and 23.5",
            "/group/flag: dataset in A only",
            r#"/group@unit: "m" and "km""#,
            r#"/texts[1]: "yy" and "zz""#,
            "/group/new: dataset in B only",
        ]
    );
    let near = run(&["diff", "--relative", "0.1", "--path", "/grid", "--json", &a, &b]);
    assert_eq!(near.status.code(), Some(0), "{near:?}");
    let output = run(&["diff", "--json", "--path", "/grid", &a, &b]);
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said, serde_json::json!({"path": "/grid", "at": [2, 3], "a": 23.0, "b": 23.5}));
}

#[test]
fn a_file_that_is_not_there_is_an_error() {
    let output = run(&["diff", "/no/such/file.h5", "/no/other.h5"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such/file.h5"));
}
