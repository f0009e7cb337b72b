//! Key-value stores (`kv:run`), with every command that a file has.
#![cfg(all(unix, feature = "kv"))]

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};

use common::manifests::{agree, check_sound_files};
use h5live::{File, UNLIMITED};

use common::{error, run, run_with, shared, start, text, until};

/// Files of the corpus that do not come back from a key-value store as they were, and why.
const EXCEPTIONS: [(&str, &str); 10] = [
    ("generated/external.earliest.h5", "elements are in raw files, and a key-value store has no path for them"),
    ("libhdf5/h5repack/h5repack_ext.h5", "elements are in raw files"),
    ("libhdf5/h5repack/h5repack_f32le_ex.h5", "elements are in raw files"),
    ("libhdf5/h5repack/h5repack_int32le_1d_ex.h5", "elements are in raw files"),
    ("libhdf5/h5repack/h5repack_int32le_3d_ex.h5", "elements are in raw files"),
    ("libhdf5/h5stat/h5stat_filters.h5", "elements are in raw files"),
    ("libhdf5/tools/tfilters.h5", "elements are in raw files"),
    ("libhdf5/test/tbogus.h5", "objects in it have messages that are to make programs refuse them"),
    ("generated/sizes.earliest.h5", "what comes back has references of eight bytes, and these have four"),
    ("generated/sizes.latest.h5", "what comes back has references of eight bytes, and these have four"),
];

/// What a copy may allocate at once: one file has a chunk of 480 MiB (bytes).
const MAX_ALLOCATION: &str = "536870912";

/// Copies a file into a key-value store and back. Says what went wrong.
fn store_and_back(reference: &Path, folder: &Path) -> Result<(), String> {
    let file = reference.with_extension("");
    let name = file.file_name().unwrap().to_str().unwrap();
    let store = format!("kv:{}?sync=never", folder.join(format!("kv-{name}")).display());
    let back = folder.join(format!("back-{name}")).display().to_string();
    let wanted = std::fs::read_to_string(reference).unwrap();
    let ends = |arguments: &[&str]| {
        let output = run(&[&["--max-allocation", MAX_ALLOCATION], arguments].concat());
        // Chunks that nobody can decode are copied as they are: then the exit code is 1, and no error is said.
        match output.status.success() || output.status.code() == Some(1) && output.stderr.is_empty() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr))),
        }
    };
    ends(&["copy", "--quiet", "--keep-names", file.to_str().unwrap(), &store])?;
    ends(&["copy", "--quiet", "--keep-names", &store, &back])?;
    // Elements that lead elsewhere have other sizes in the store itself.
    let found = ends(&["manifest", &back])?;
    match agree(&wanted, &found) {
        true => Ok(()),
        false => {
            let differ = wanted.lines().zip(found.lines()).find(|(wanted, found)| !agree(wanted, found));
            Err(format!("{back}: {differ:?}"))
        }
    }
}

#[test]
fn every_sound_file_comes_back_from_a_key_value_store_as_it_was() {
    let Some(shared) = shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    check_sound_files(&shared, folder.path(), &EXCEPTIONS, store_and_back);
}

/// A folder for a store, its path, and its location.
fn new_store() -> (tempfile::TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let location = format!("kv:{}", path.display());
    (folder, path, location)
}

#[test]
fn rows_are_followed_while_they_are_recorded() {
    let (_folder, path, store) = new_store();
    let mut writer = start(&["record", &store, "rows"]);
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"v\n1\n").unwrap();
    until("a row", || path.exists() && run(&["dump", &store, "rows"]).stdout == b"0: {v: 1}\n");
    let watch = start(&["watch", "--json", &store, "rows"]);
    input.write_all(b"2\n3\n").unwrap();
    until("more rows", || run(&["dump", &store, "rows"]).stdout == b"0: {v: 1}\n1: {v: 2}\n2: {v: 3}\n");
    drop(input);
    text(&writer.wait_with_output().unwrap());
    assert_eq!(text(&watch.wait_with_output().unwrap()), "{\"v\":1}\n{\"v\":2}\n{\"v\":3}\n");
    // The path alone is known to be such a store.
    assert_eq!(text(&run(&["dump", path.to_str().unwrap(), "rows"])), "0: {v: 1}\n1: {v: 2}\n2: {v: 3}\n");
}

#[test]
fn a_killed_recording_has_all_rows_that_were_seen_and_goes_on() {
    let (_folder, path, store) = new_store();
    let mut writer = start(&["record", &store, "rows"]);
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"v\n1\n2\n").unwrap();
    until("rows", || path.exists() && run(&["dump", &store, "rows"]).stdout == b"0: {v: 1}\n1: {v: 2}\n");
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert_eq!(text(&run(&["dump", &store, "rows"])), "0: {v: 1}\n1: {v: 2}\n");
    text(&run_with(&["record", &store, "rows"], b"v\n3\n"));
    assert_eq!(text(&run(&["dump", &store, "rows"])), "0: {v: 1}\n1: {v: 2}\n2: {v: 3}\n");
}

#[test]
fn a_second_writer_and_a_folder_of_something_else_are_refused() {
    let (folder, path, store) = new_store();
    let file = File::options().create().open(&*store).unwrap();
    file.new_dataset::<u8>().shape(&[1]).create("a").unwrap();
    file.flush().unwrap();
    let refused = error(&run_with(&["record", &store, "rows"], b"v\n1\n"));
    assert!(refused.contains("open for writing"), "{refused}");
    file.close().unwrap();
    let source = folder.path().join("source.h5");
    File::create(&source).unwrap().close().unwrap();
    let refused = error(&run(&["copy", source.to_str().unwrap(), &store]));
    assert!(refused.contains("exists"), "{refused}");
    assert!(text(&run(&["ls", &store])).contains("/a"), "nothing was replaced");
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("thesis.tex"), "precious").unwrap();
    let refused = error(&run_with(&["record", &format!("kv:{}", other.display()), "rows"], b"v\n1\n"));
    assert!(refused.contains("exists"), "{refused}");
    assert_eq!(std::fs::read_to_string(other.join("thesis.tex")).unwrap(), "precious");
    assert!(path.exists());
    let missing = error(&run(&["ls", &format!("kv:{}", folder.path().join("nothing").display())]));
    assert!(missing.contains("no key-value store"), "{missing}");
}

#[test]
fn a_reader_stays_at_its_snapshot_until_it_refreshes() {
    let (_folder, _, store) = new_store();
    let writer = File::options().create().open(&*store).unwrap();
    let names = ["a", "b", "c", "d", "e"];
    let make = |name: &&str| {
        writer.new_dataset::<u64>().shape(&[0]).max_shape(&[UNLIMITED]).chunk_shape(&[4]).create(name).unwrap()
    };
    let data: Vec<_> = names.iter().map(make).collect();
    writer.flush().unwrap();
    let reader = File::options().swmr_read().open(&*store).unwrap();
    let seen: Vec<_> = names.iter().map(|name| reader.dataset(name).unwrap()).collect();
    for round in 1..=20u64 {
        for data in &data {
            data.append(&[round]).unwrap();
        }
        assert!(seen.iter().all(|seen| seen.shape().unwrap() == [round - 1]), "nothing moves by itself");
        writer.flush().unwrap();
        assert!(seen.iter().all(|seen| seen.shape().unwrap() == [round - 1]), "nothing moves by itself");
        reader.refresh().unwrap();
        for seen in &seen {
            assert_eq!(seen.read::<u64>().unwrap(), (1..=round).collect::<Vec<_>>());
        }
    }
}
