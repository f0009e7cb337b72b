//! No run replaces a file without `--force`.

use crate::run;
use h5live_test_support::program::error;

#[test]
fn a_file_that_exists_is_replaced_only_by_force() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target.h5");
    let name = target.to_str().unwrap();
    for content in ["my notes", "\u{89}HDF"] {
        std::fs::write(&target, content).unwrap();
        for words in [&["latency"][..], &["stress"], &["scenario", "generator"]] {
            let said = error(&run(&[words, &["--seconds", "0.1", name]].concat()));
            assert_eq!(said, format!("h5live: {name}: the file exists; --force replaces it"), "{words:?}");
            assert_eq!(std::fs::read(&target).unwrap(), content.as_bytes(), "{words:?}");
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
}
