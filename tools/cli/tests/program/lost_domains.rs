//! Domains of object stores that were not completed: what is left of them, and who removes it.
#![cfg(all(target_os = "linux", feature = "hsds"))]

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Child;

use h5live::File;

use crate::common::{run, start, text, until};
use crate::unfinished::{is_ignored, signal, source};

/// The files below a folder that have content: locks have none.
fn objects(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(objects(&entry.path())),
            false if entry.file_name() != ".h5live.lock" => found.push(entry.path()),
            false => {}
        }
    }
    found.sort();
    found
}

/// A small domain.
fn small(location: &str) {
    let file = File::options().create_new().open(location).unwrap();
    file.new_dataset::<u8>().shape(&[4]).chunk_shape(&[2]).create("a").unwrap().write(&[1, 2, 3, 4]).unwrap();
    file.close().unwrap();
}

/// A copy that has written some chunks.
fn copy(source: &str, location: &str, bucket: &Path, arguments: &[&str]) -> Child {
    let before = objects(&bucket.join("db")).len();
    let child = start(&[&["copy", source, location, "--filter", "deflate:9"], arguments].concat());
    until("some chunks are written", || objects(&bucket.join("db")).len() > before + 3);
    child
}

#[test]
fn a_signal_ends_a_copy_and_removes_the_objects_of_its_domain() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path());
    let bucket = folder.path().join("bucket");
    let location = format!("hsds:{}?domain=/home/run", bucket.display());
    for (name, number) in [("-TERM", 15), ("-INT", 2), ("-HUP", 1)] {
        if is_ignored(number) {
            println!("skipped: {name}, which this process was started to ignore, and so are those that it starts");
            continue;
        }
        let mut child = copy(&source, &location, &bucket, &[]);
        signal(&child, name);
        assert_eq!(child.wait().unwrap().signal(), Some(number), "it ends as if nobody had waited for the signal");
        assert!(!bucket.exists(), "{name}: {:?}", objects(&bucket));
    }
    // What it was to replace stays.
    small(&location);
    let before = objects(&bucket);
    let child = copy(&source, &location, &bucket, &["--force"]);
    signal(&child, "-TERM");
    let said = child.wait_with_output().unwrap();
    assert_eq!(objects(&bucket), before);
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("its objects are being removed") && said.lines().count() == 1, "{said}");
    assert_eq!(text(&run(&["dump", &location, "a"])).lines().count(), 4);
}

#[test]
fn what_a_killed_copy_leaves_in_a_bucket_is_found_and_reclaimed_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path());
    let bucket = folder.path().join("bucket");
    let at = |domain: &str| format!("hsds:{}?domain={domain}", bucket.display());
    small(&at("small"));
    let kept = objects(&bucket);
    let unused = |domain: &str| -> Vec<serde_json::Value> {
        let said = text(&run(&["check", "--leaks", "--json", &at(domain)]));
        let lines = said.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.filter(|line| line["is"] == "unused").collect()
    };
    let mut child = copy(&source, &at("big"), &bucket, &[]);
    // Its maker lives.
    assert_eq!(unused("small"), Vec::<serde_json::Value>::new());
    assert!(text(&run(&["repair", "--reclaim", &at("small")])).contains(" 0 objects reclaimed"));
    child.kill().unwrap();
    child.wait().unwrap();
    let left = objects(&bucket.join("db")).len() - objects_of(&kept, "db");
    assert!(left > 3);
    for domain in ["small", "big"] {
        let found = unused(domain);
        let found: Vec<_> = found.iter().map(|line| (&line["kind"], &line["objects"])).collect();
        assert_eq!(found, [(&"unfinished domain".into(), &left.into())], "{domain}");
    }
    // A replacement that was killed: the old domain stays, and the new objects are lost.
    let mut child = copy(&source, &at("small"), &bucket, &["--force"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(unused("big").len(), 2);
    let said = text(&run(&["repair", "--reclaim", &at("small")]));
    assert!(said.contains(&format!("{left} objects, ")) && said.contains(" 2 objects reclaimed"), "{said}");
    assert_eq!(objects(&bucket.join("db")).len(), objects_of(&kept, "db"));
    assert_eq!(unused("small"), Vec::<serde_json::Value>::new());
    assert_eq!(text(&run(&["dump", &at("small"), "a"])).lines().count(), 4);
    // Without any domain at the location, too.
    let mut child = copy(&source, &at("big"), &bucket, &[]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(text(&run(&["repair", "--reclaim", &at("big")])).contains(" 1 object reclaimed"));
    assert_eq!(objects(&bucket.join("db")).len(), objects_of(&kept, "db"));
}

fn objects_of(paths: &[PathBuf], folder: &str) -> usize {
    paths.iter().filter(|path| path.iter().any(|part| part == folder)).count()
}
