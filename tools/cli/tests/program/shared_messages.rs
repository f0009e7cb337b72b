//! Files of libhdf5 in which objects share messages: h5live edits them, and counts the uses, so that libhdf5 can go on.

use std::path::Path;
use std::process::Command;

use crate::common::{python, run, text, workspace};
use h5live::File;

/// Runs the script that stands for libhdf5; `None` where there is none.
fn libhdf5(what: &str, path: &Path, more: &[&str]) -> Option<()> {
    let script = workspace().join("tests/python/shared_messages.py");
    let output = Command::new(python()?).arg(script).arg(what).arg(path).args(more).output().unwrap();
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

/// By how much the messages of a sound file state more uses than there are.
fn excess_uses(path: &Path) -> u64 {
    let said = text(&run(&["check", "--verbose", path.to_str().unwrap()]));
    let excess = |line: &str| {
        let (_, counts) = line.split_once("shared message record at ")?.1.split_once(": uses: ")?;
        let (stated, found) = counts.split_once(" by statement, ")?;
        Some(stated.parse::<u64>().ok()? - found.split_once(' ')?.0.parse::<u64>().ok()?)
    };
    said.lines().filter_map(excess).sum()
}

/// Lists and B-trees, and indexes that turn from one to the other.
const PHASES: [[&str; 2]; 3] = [["50", "40"], ["0", "0"], ["8", "4"]];

#[test]
fn objects_with_shared_messages_are_deleted_and_libhdf5_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared.h5");
    for phase in PHASES {
        let Some(()) = libhdf5("make", &path, &phase) else { return };
        assert_eq!(excess_uses(&path), 0, "libhdf5 counts right");
        let file = File::options().write().open(&path).unwrap();
        // The headers of some hold the only copy of a message.
        for name in ["data0", "data1", "data5", "unlike"] {
            file.root().unlink(name).unwrap();
        }
        file.close().unwrap();
        assert_eq!(excess_uses(&path), 0, "{phase:?}: no message states a use that is gone");
        libhdf5("edit", &path, &[]);
        assert_eq!(excess_uses(&path), 0, "{phase:?}: libhdf5 goes on");
        let file = File::options().write().open(&path).unwrap();
        for name in file.root().names().unwrap() {
            file.root().unlink(name.as_str().unwrap()).unwrap();
        }
        file.close().unwrap();
        libhdf5("edit", &path, &[]);
        libhdf5("empty", &path, &[]);
        assert_eq!(excess_uses(&path), 0, "{phase:?}: libhdf5 goes on");
    }
}

#[test]
fn attributes_and_extents_that_are_shared_are_changed_and_libhdf5_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared.h5");
    for phase in PHASES {
        let Some(()) = libhdf5("make", &path, &phase) else { return };
        assert_eq!(excess_uses(&path), 0, "libhdf5 counts right");
        let file = File::options().write().open(&path).unwrap();
        for number in [0, 1, 2, 5] {
            let data = file.dataset(&format!("data{number}")).unwrap();
            let names = data.attribute_names().unwrap();
            data.remove_attribute(names[0].as_str().unwrap()).unwrap();
            data.new_attribute(names[1].as_str().unwrap()).write(&[number]).unwrap();
            data.new_attribute("ours").write(&[1.5]).unwrap();
            data.resize(&[20]).unwrap();
            assert_eq!(data.shape().unwrap(), [20]);
        }
        file.close().unwrap();
        assert_eq!(excess_uses(&path), 0, "{phase:?}: no message states a use that is gone");
        let file = File::open(&path).unwrap();
        for number in 0..12 {
            let data = file.dataset(&format!("data{number}")).unwrap();
            let rows = if [0, 1, 2, 5].contains(&number) { 20 } else { 8 };
            assert_eq!(data.shape().unwrap(), [rows], "data{number}");
            data.attributes().unwrap();
        }
        drop(file);
        libhdf5("edit", &path, &[]);
        assert_eq!(excess_uses(&path), 0, "{phase:?}: libhdf5 goes on");
        libhdf5("empty", &path, &[]);
        assert_eq!(excess_uses(&path), 0, "{phase:?}: libhdf5 goes on");
    }
}
