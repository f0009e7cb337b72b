//! No command replaces, cuts or repairs a file that a process writes, nor any file without `--force`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common;
use crate::common::{error, run, run_with, start, text, until};
use h5live::File;

/// Commands that make a file, without its name, and what they read from standard input.
const MAKING: [(&[&str], &str); 2] = [
    (&["new"], r#"{"links": {"new": {"type": "u8", "shape": [1], "values": [1]}}}"#),
    (&["demo", "--seconds", "0.1"], ""),
];

fn source(folder: &Path) -> String {
    let path = folder.join("source.h5");
    File::create(&path).unwrap().new_dataset::<u8>().create_with_data("new", &[1]).unwrap();
    path.to_str().unwrap().to_owned()
}

/// All commands that replace a file, with its name; with or without force.
fn commands<'a>(source: &'a str, target: &'a str, force: bool) -> Vec<(Vec<&'a str>, &'static str)> {
    let mut all = vec![(vec!["copy", source, target], "")];
    all.extend(MAKING.map(|(command, input)| ([command, &[target]].concat(), input)));
    all.iter_mut().for_each(|(command, _)| command.extend(force.then_some("--force")));
    all
}

#[test]
fn a_file_that_exists_is_replaced_only_by_force() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path());
    let target = folder.path().join("target.h5");
    let name = target.to_str().unwrap();
    for content in ["my notes", "\u{89}HDF"] {
        fs::write(&target, content).unwrap();
        for (command, input) in commands(&source, name, false) {
            let said = error(&run_with(&command, input.as_bytes()));
            assert_eq!(said, format!("h5live: {name}: the file exists; --force replaces it"), "{command:?}");
            assert_eq!(fs::read(&target).unwrap(), content.as_bytes(), "{command:?}");
        }
    }
    for (command, input) in commands(&source, name, true).into_iter().take(2) {
        fs::write(&target, "my notes").unwrap();
        text(&run_with(&command, input.as_bytes()));
        assert_eq!(File::open(&target).unwrap().dataset("new").unwrap().read::<u8>().unwrap(), [1], "{command:?}");
    }
    let said = error(&run(&["copy", &source, "/dev/null", "--force"]));
    assert_eq!(said, "h5live: /dev/null: this is no regular file");
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "nothing else is left: {names:?}");
}

/// A recording that goes on.
fn recording(path: &Path) -> Child {
    let mut child = start(&["record", path.to_str().unwrap(), "/rows", "--every", "1"]);
    writeln!(child.stdin.as_mut().unwrap(), "number\n1").unwrap();
    child
}

/// A program of libhdf5 that writes a file until its standard input ends.
fn libhdf5(python: &Path, path: &Path, live: bool) -> Child {
    let start = if live { "file.swmr_mode = True" } else { "file.flush()" };
    let program = format!(
        "import sys, h5py\nfile = h5py.File(sys.argv[1], 'w', libver='latest')\n\
         rows = file.create_dataset('rows', (1,), maxshape=(None,), chunks=(4,), dtype='u8')\n{start}\n\
         print('begun', flush=True)\nsys.stdin.read()\nrows.resize((2,))\nfile.close()"
    );
    let mut command = Command::new(python);
    command.arg("-c").arg(program).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut line).unwrap();
    assert_eq!(line, "begun\n");
    child
}

/// Tries all commands on a file that a process writes, and lets the process come to its end then.
fn nothing_harms(folder: &Path, path: &Path, mut writer: Child, more: &str) {
    let source = source(folder);
    let name = path.to_str().unwrap();
    let pid = writer.id().to_string();
    let identity = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let before = (identity(path), fs::read(path).unwrap());
    let repair = (vec!["repair", name], "");
    for (command, input) in commands(&source, name, true).into_iter().chain([repair]) {
        let said = error(&run_with(&command, input.as_bytes()));
        assert!(said.contains(name) && said.contains("another process"), "{command:?}: {said}");
        assert!(!cfg!(target_os = "linux") || said.contains(&pid), "{command:?}: {said}");
        assert_eq!(identity(path), before.0, "{command:?}: it is the same file");
        assert!(fs::read(path).unwrap() == before.1, "{command:?}: nothing of it has changed");
    }
    let refused = File::create(path).unwrap_err();
    assert!(refused.is_in_use(), "{refused}");
    // Nor do rows of text, or raw elements of another file, come into it.
    let other = folder.join("other.h5");
    let reject = format!("--on-error=reject-to={name}");
    let said = error(&run_with(&["record", &reject, other.to_str().unwrap(), "x"], b"a,b\n1\n"));
    assert!(said.contains(name) && said.contains("this is an HDF5 file"), "{said}");
    assert!(!other.exists());
    let file = File::create(&other).unwrap();
    let raw = file.new_dataset::<u64>().shape(&[4]).external(name, 0, 32).create("raw").unwrap();
    let refused = raw.write(&[0, 0, 0, 0]).and_then(|()| file.flush()).unwrap_err();
    assert!(refused.is_in_use() && refused.to_string().contains("raw"), "{refused}");
    assert!(fs::read(path).unwrap() == before.1, "nothing of it has changed");
    drop((raw, file));
    fs::remove_file(other).unwrap();
    writer.stdin.take().unwrap().write_all(more.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
    assert_eq!(File::open(path).unwrap().dataset("rows").unwrap().shape().unwrap(), [2]);
}

#[test]
fn a_file_that_is_being_recorded_is_neither_replaced_nor_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.h5");
    let writer = recording(&path);
    let rows = || File::options().swmr_read().open(&path).ok()?.dataset("rows").ok()?.shape().ok();
    until("a row is visible", || rows() == Some(vec![1]));
    nothing_harms(folder.path(), &path, writer, "2\n");
}

#[test]
fn a_file_that_libhdf5_writes_is_neither_replaced_nor_repaired() {
    let Some(python) = common::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    for live in [true, false] {
        let path: PathBuf = folder.path().join(format!("libhdf5-{live}.h5"));
        let writer = libhdf5(&python, &path, live);
        nothing_harms(folder.path(), &path, writer, "");
    }
}

#[test]
fn who_reads_a_file_that_is_replaced_goes_on_with_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path());
    let target = folder.path().join("target.h5");
    File::create(&target).unwrap().new_dataset::<u8>().create_with_data("old", &[9]).unwrap();
    let reader = File::open(&target).unwrap();
    text(&run(&["copy", &source, target.to_str().unwrap(), "--force"]));
    assert_eq!(reader.dataset("old").unwrap().read::<u8>().unwrap(), [9]);
    assert!(File::open(&target).unwrap().dataset("new").is_ok());
}
