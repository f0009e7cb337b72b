//! What commands make beside a file goes with them, or with the next command.
#![cfg(target_os = "linux")]

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::common::{run, start, text, until};
use h5live::File;

/// Bytes that take long to compress, so that a copy goes on until somebody ends it.
pub fn source(folder: &Path) -> String {
    let path = folder.join("source.h5");
    let file = File::create(&path).unwrap();
    let values = (0..8_000_000u64).map(|n| n.wrapping_mul(n).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20);
    let data = file.new_dataset::<u64>().shape(&[8_000_000]).chunk_shape(&[100_000]).create("data").unwrap();
    data.write(&values.collect::<Vec<_>>()).unwrap();
    file.close().unwrap();
    path.to_str().unwrap().to_owned()
}

fn unfinished(folder: &Path) -> Vec<PathBuf> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.extension().is_some_and(|ending| ending == "unfinished")).collect()
}

/// A copy that has begun to write.
fn copy(source: &str, folder: &Path) -> Child {
    let target = folder.join("target.h5");
    let child = start(&["copy", source, target.to_str().unwrap(), "--filter", "deflate:9"]);
    let has_begun =
        || unfinished(folder).first().is_some_and(|path| std::fs::metadata(path).is_ok_and(|m| m.len() > 0));
    until("the copy is being written", has_begun);
    child
}

pub fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// Whether whoever started this process has told it to ignore a signal, as shells do for programs in the background.
pub fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    u64::from_str_radix(mask, 16).unwrap() >> (number - 1) & 1 == 1
}

#[test]
fn a_signal_ends_a_copy_and_removes_what_there_is_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path());
    for (name, number) in [("-TERM", 15), ("-INT", 2), ("-HUP", 1)] {
        if is_ignored(number) {
            println!("skipped: {name}, which this process was started to ignore, and so are those that it starts");
            continue;
        }
        let mut child = copy(&source, folder.path());
        signal(&child, name);
        assert_eq!(child.wait().unwrap().signal(), Some(number), "it ends as if nobody had waited for the signal");
        assert!(unfinished(folder.path()).is_empty(), "{name}");
    }
    assert!(!folder.path().join("target.h5").exists());
}

#[test]
fn what_a_killed_copy_leaves_is_removed_by_the_next_command_that_writes_there() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path());
    let small = folder.path().join("small.h5");
    File::create(&small).unwrap().root().set_attribute("x", &1u8).unwrap();
    let small = small.to_str().unwrap();
    let other = folder.path().join("other.h5");
    let other = other.to_str().unwrap();
    let commands: [&[&str]; 4] =
        [&["copy", small, other], &["set", small, "/@x", "2"], &["repair", small], &["rm", small, "/@x"]];
    for command in commands {
        let mut child = copy(&source, folder.path());
        text(&run(command));
        assert_eq!(unfinished(folder.path()).len(), 1, "{command:?}: its maker lives");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(unfinished(folder.path()).len(), 1, "nobody could remove it");
        let _ = std::fs::remove_file(other);
        if command[0] == "rm" {
            text(&run(&["set", small, "/@x", "2"]));
        } else {
            text(&run(command));
        }
        assert!(unfinished(folder.path()).is_empty(), "{command:?}");
    }
}
