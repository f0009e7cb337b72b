//! What is no HDF5 file, or not the whole of one.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use crate::common::{corpus, error, h5live, run, run_with, text};

/// The commands that read a file, without the file.
const READING: [&[&str]; 5] = [&["ls"], &["manifest"], &["dump", "--bytes=0"], &["dump", "--rows=0"], &["watch"]];

fn with_file<'a>(command: &[&'a str], file: &'a str) -> Vec<&'a str> {
    let mut arguments = command.to_vec();
    arguments.push(file);
    if matches!(command, ["watch"] | ["dump", "--rows=0"]) {
        arguments.push("/x");
    }
    arguments
}

#[test]
fn every_command_names_a_file_that_is_none_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.txt");
    fs::write(&other, "root:x:0:0\n".repeat(100)).unwrap();
    let empty = folder.path().join("empty");
    fs::write(&empty, "").unwrap();
    let missing = folder.path().join("missing");
    for file in [other.as_path(), &empty, &missing, folder.path()] {
        let file = file.to_str().unwrap();
        for command in READING {
            let said = error(&run(&with_file(command, file)));
            assert!(said.starts_with(&format!("h5live: {file}: ")), "{command:?}: {said}");
        }
    }
}

#[test]
fn nothing_is_recorded_into_what_is_no_hdf5_file() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("notes.txt");
    fs::write(&other, "my notes\n").unwrap();
    let file = other.to_str().unwrap();
    let said = error(&run_with(&["record", file, "x"], b"v\n1\n"));
    assert!(said.starts_with(&format!("h5live: {file}: ")), "{said}");
    assert_eq!(fs::read(&other).unwrap(), b"my notes\n");
}

#[test]
fn a_file_cut_short_anywhere_ends_in_a_message_and_not_in_a_panic() {
    let Some(corpus) = corpus() else { return };
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.h5");
    let file = cut.to_str().unwrap();
    for name in ["layouts.v110.h5", "groups.earliest.h5"] {
        let whole = fs::read(corpus.join(name)).unwrap();
        for part in 1..12 {
            fs::write(&cut, &whole[..whole.len() * part / 12]).unwrap();
            for command in READING {
                let output = run(&with_file(command, file));
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(matches!(output.status.code(), Some(0..=2)), "{name} {part}/12 {command:?}: {said}");
                assert!(!said.contains("panicked"), "{name} {part}/12 {command:?}: {said}");
            }
        }
    }
}

#[test]
fn a_path_that_is_not_there_is_named() {
    let Some(corpus) = corpus() else { return };
    let file = corpus.join("layouts.v110.h5");
    let file = file.to_str().unwrap();
    for command in [&["dump", file, "/no/where"], &["watch", file, "/no/where"], &["ls", file, "/no/where"]] {
        let said = error(&run(command));
        assert!(said.starts_with(&format!("h5live: {file}: /no/where: ")), "{said}");
    }
}

#[test]
fn an_offset_beyond_the_end_is_named() {
    let Some(corpus) = corpus() else { return };
    let file = corpus.join("layouts.v110.h5");
    let file = file.to_str().unwrap();
    let said = error(&run(&["dump", file, "--bytes=0xffffff"]));
    assert!(said.contains("offset 0xffffff lies beyond the end"), "{said}");
    let said = error(&run(&["dump", file, "--bytes=5"]));
    assert!(said.ends_with("no structure that could be known begins at 0x5"), "{said}");
}

#[test]
fn bytes_are_described_field_by_field() {
    let Some(corpus) = corpus() else { return };
    let file = corpus.join("layouts.v110.h5");
    let described = text(&run(&["dump", file.to_str().unwrap(), "--bytes=0"]));
    assert!(described.starts_with("superblock at 0x0\n    0x00000000      8  signature "), "{described}");
    assert!(described.ends_with("checksum                       valid\n"), "{described}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let Some(corpus) = corpus() else { return };
    let mut command = h5live();
    command.args(["ls", "--json"]).arg(corpus.join("groups.v110.h5")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{said}");
    assert_eq!(said, "");
}

#[test]
fn a_wrong_command_line_is_an_error_of_its_own() {
    assert_eq!(run(&["dump", "file.h5"]).status.code(), Some(2));
    assert_eq!(run(&["nonsense"]).status.code(), Some(2));
    assert_eq!(run(&["record", "f", "x", "--types=a"]).status.code(), Some(2));
    assert_eq!(run(&["--help"]).status.code(), Some(0));
}
