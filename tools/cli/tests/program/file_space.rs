//! `new` and `copy` say how the new file hands out its space, and keep what is not said; seen by h5py.

use std::path::Path;

use crate::common::{h5py, python, run, run_with, text};
use h5live::File;
use h5live::model::{FileSpaceSettings, FileSpaceStrategy};

fn space(path: &str) -> FileSpaceSettings {
    File::open(path).unwrap().file_space()
}

#[test]
fn the_strategy_of_a_new_file_is_chosen_and_kept_by_copies() {
    let folder = tempfile::tempdir().unwrap();
    let [new, same, plain, again] =
        ["new.h5", "same.h5", "plain.h5", "again.h5"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let options = ["--strategy", "page", "--page-size", "8192", "--persist", "--threshold", "10"];
    let description = text(&run(&["dump", "--json", &made(&folder.path().join("made.h5"))]));
    assert_eq!(text(&run_with(&[&["new", new.as_str()][..], &options].concat(), description.as_bytes())), "");
    let paged = FileSpaceSettings { strategy: FileSpaceStrategy::Paged, persist: true, threshold: 10, page_size: 8192 };
    assert_eq!(space(&new), paged);
    text(&run(&["copy", &new, &same]));
    assert_eq!(space(&same), paged);
    text(&run(&["copy", &new, &plain, "--strategy", "none"]));
    assert_eq!(space(&plain).strategy, FileSpaceStrategy::None);
    let described = text(&run(&["dump", "--json", &new]));
    text(&run_with(&["new", &again], described.as_bytes()));
    assert_eq!(space(&again), paged);
    for path in [&new, &same, &plain, &again] {
        assert_eq!(text(&run(&["diff", &new, path])), "");
        assert!(run(&["check", path]).status.success());
    }
    let Some(python) = python() else { return };
    let program = r#"
with h5py.File(path) as file:
    plist = file.id.get_create_plist()
    print(*map(int, plist.get_file_space_strategy()), plist.get_file_space_page_size(), file["numbers"][...].tolist())
"#;
    for path in [&new, &same, &again] {
        assert_eq!(h5py(&python, program, Path::new(path)).trim(), "1 1 10 8192 [1, 2, 3]");
    }
}

fn made(path: &Path) -> String {
    let file = File::create(path).unwrap();
    file.new_dataset::<i32>().create_with_data("numbers", &[1, 2, 3]).unwrap();
    file.close().unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn refuses_what_is_no_strategy_or_page_and_makes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let from = made(&folder.path().join("from.h5"));
    let to = folder.path().join("to.h5");
    for wrong in [["--strategy", "best"], ["--page-size", "511"], ["--threshold", "-1"]] {
        let output = run(&[&["copy", from.as_str(), to.to_str().unwrap()][..], &wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(!to.exists());
    }
}
