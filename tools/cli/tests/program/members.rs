//! Files that libhdf5's drivers cut into several are read from their first member.

use crate::common::{h5py, python, run, text};

const MAKE: &str = r#"
def make(name, **options):
    with h5py.File(f"{path}/{name}", "w", **options) as file:
        file["numbers"] = np.arange(5000)
        file.create_dataset("chunks", data=np.arange(3000.0).reshape(30, 100), chunks=(7, 9), compression=4)
        file.create_group("group")["texts"] = ["x", "yy"]
for version in "earliest", "latest":
    make(f"whole_{version}.h5", libver=version)
    make(f"family_{version}_%05d.h5", libver=version, driver="family", memb_size=2000)
    make(f"split_{version}", libver=version, driver="split")
"#;

#[test]
fn members_are_read_as_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let Some(python) = python() else { return };
    h5py(&python, MAKE, folder.path());
    let manifest = |name: String| text(&run(&["manifest", folder.path().join(name).to_str().unwrap()]));
    for version in ["earliest", "latest"] {
        let whole = manifest(format!("whole_{version}.h5"));
        assert_eq!(manifest(format!("family_{version}_00000.h5")), whole);
        assert_eq!(manifest(format!("family_{version}_%05d.h5")), whole);
        assert_eq!(manifest(format!("split_{version}-m.h5")), whole);
    }
}

#[test]
fn a_missing_member_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let Some(python) = python() else { return };
    h5py(&python, MAKE, folder.path());
    std::fs::remove_file(folder.path().join("split_latest-r.h5")).unwrap();
    let output = run(&["ls", folder.path().join("split_latest-m.h5").to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot open the member") && said.contains("split_latest-r.h5"), "{said}");
}
