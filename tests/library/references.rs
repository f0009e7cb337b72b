//! References that h5py wrote, and what they refer to.
//!
//! Needs the Python that `H5LIVE_PYTHON` names, with h5py; without it the test says that it is skipped.

use std::process::Command;

use h5live::{File, Object, Reference, ReferenceTarget};

const MAKE: &str = r#"
import sys, h5py, numpy as np
file = h5py.File(sys.argv[1], "w", libver=sys.argv[2])
grid = file.create_dataset("grid", data=np.arange(60).reshape(6, 10))
grid.attrs["unit"] = "m"
group = file.create_group("group")
objects = file.create_dataset("objects", (4,), h5py.ref_dtype)
objects[0], objects[1], objects[2] = grid.ref, group.ref, file.ref
regions = file.create_dataset("regions", (3,), h5py.regionref_dtype)
regions[0] = grid.regionref[1:3, 2:5]
regions[1] = grid.regionref[:, 9]
file.create_dataset("gone", data=1)
objects[3] = file["gone"].ref
del file["gone"]
grid.id.set_comment(b"of numbers") if hasattr(grid.id, "set_comment") else h5py.h5o.set_comment(grid.id, b"of numbers")
file["again"] = grid
"#;

fn elements(file: &File, path: &str) -> Vec<Reference> {
    file.dataset(path).unwrap().read().unwrap()
}

#[test]
fn references_lead_to_what_h5py_referred_to() {
    let Some(python) = h5live_test_support::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    for version in ["earliest", "latest"] {
        let path = folder.path().join(format!("{version}.h5"));
        let made = Command::new(&python).args(["-c", MAKE]).arg(&path).arg(version).status().unwrap();
        assert!(made.success());
        let file = File::open(&path).unwrap();
        let grid = file.dataset("grid").unwrap();

        let found: Vec<_> = elements(&file, "objects")
            .iter()
            .map(|element| file.reference_target(element))
            .map(|found| match found {
                Ok(Some(ReferenceTarget::Object(object))) => Some(object.id()),
                _ => None,
            })
            .collect();
        let group = file.group("group").unwrap().id();
        assert_eq!(found, [Some(grid.id()), Some(group), Some(file.root().id()), None], "{version}");

        let regions = elements(&file, "regions");
        let region = |element: &Reference| match file.reference_target(element).unwrap() {
            Some(ReferenceTarget::Region(dataset, selection)) => {
                assert_eq!(dataset.id(), grid.id());
                Some(dataset.read_slice::<i64>(selection).unwrap())
            }
            Some(other) => panic!("{other:?}"),
            None => None,
        };
        assert_eq!(region(&regions[0]).unwrap(), [12, 13, 14, 22, 23, 24], "{version}");
        assert_eq!(region(&regions[1]).unwrap(), [9, 19, 29, 39, 49, 59], "{version}");
        assert_eq!(region(&regions[2]), None, "{version}");

        let info = grid.info().unwrap();
        assert_eq!(
            (info.hard_link_count, info.comment.unwrap().to_string()),
            (2, "of numbers".to_owned()),
            "{version}"
        );
        assert!(matches!(file.object("again").unwrap(), Object::Dataset(again) if again.id() == grid.id()));
    }
}
