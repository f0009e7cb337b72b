//! `--wait`, `dump --follow`, and recordings without rows.

use std::io::{BufRead, BufReader, Write};
use std::process::Command;

use crate::common::{error, new_file, run, run_with, start, text, until};

#[test]
fn followers_wait_for_the_file_and_then_for_the_dataset() {
    let (_folder, path, name) = new_file();
    let watch = start(&["watch", "--json", "--wait", &name, "b"]);
    let follower = start(&["dump", "--follow", "--wait", &name, "b"]);
    // Another dataset first: this file is there, and nobody writes it.
    text(&run_with(&["record", &name, "a"], b"v\n7\n"));
    let mut writer = start(&["record", "--types=v=i64", &name, "b"]);
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"v\n1\n").unwrap();
    until("a row", || path.exists() && run(&["dump", &name, "b"]).stdout == b"0: {v: 1}\n");
    // It is the follower that says so: what the writer does before its end is seen even by one that comes late.
    input.write_all(b"2\n").unwrap();
    drop(input);
    text(&writer.wait_with_output().unwrap());
    assert_eq!(text(&watch.wait_with_output().unwrap()), "{\"v\":1}\n{\"v\":2}\n");
    assert_eq!(text(&follower.wait_with_output().unwrap()), "0: {v: 1}\n1: {v: 2}\n");
}

#[test]
fn a_timeout_says_what_was_waited_for() {
    let (_folder, path, name) = new_file();
    let said = |arguments: &[&str]| error(&run(arguments));
    let absent = format!("h5live: {name}: waited 0.05 s for this file, which is not there");
    assert_eq!(said(&["watch", "--wait", "0.05", &name, "x"]), absent);
    assert_eq!(said(&["dump", "--wait=0.05", &name, "x"]), absent);
    std::fs::write(&path, b"").unwrap();
    assert_eq!(said(&["watch", "--wait", "0.05", &name, "x"]), absent);
    std::fs::remove_file(&path).unwrap();
    text(&run_with(&["record", &name, "a"], b"v\n7\n"));
    let absent = format!("h5live: {name}: x: waited 0.05 s for this object, which is not in the file");
    assert_eq!(said(&["watch", "--wait", "0.05", &name, "x"]), absent);
    assert_eq!(said(&["dump", "--follow", "--wait", "0.05", &name, "x"]), absent);
    // What no time brings about is said at once.
    std::fs::write(&path, b"this is no HDF5 file").unwrap();
    assert!(said(&["watch", "--wait", &name, "x"]).contains("HDF5"));
}

#[test]
fn an_interrupted_wait_ends_with_the_exit_code_of_one() {
    let (_folder, path, name) = new_file();
    for command in [&["watch", "--wait", &name, "x"][..], &["dump", "--wait", &name, "x"]] {
        let waiting = start(command);
        let heeds = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", waiting.id())).unwrap_or_default();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 2 != 0)
        };
        until("the signal is caught", heeds);
        assert!(Command::new("kill").args(["-INT", &waiting.id().to_string()]).status().unwrap().success());
        let output = waiting.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stdout), (Some(130), Vec::new()));
        assert!(!path.exists());
    }
}

#[test]
fn dump_follows_the_rows_that_are_asked_for_and_no_more() {
    let (_folder, _, name) = new_file();
    let mut writer = start(&["record", "--types=v=i64", &name, "x"]);
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"v\n1\n2\n3\n").unwrap();
    let mut all = start(&["dump", "--follow", "--wait", "--rows=-1", "--json", &name, "x"]);
    let mut lines = BufReader::new(all.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "{\"v\":3}");
    // This one ends by itself, before the writer.
    let some = start(&["dump", "--follow", "--wait", "--rows=2..4", &name, "x"]);
    input.write_all(b"4\n5\n").unwrap();
    assert_eq!(text(&some.wait_with_output().unwrap()), "2: {v: 3}\n3: {v: 4}\n");
    drop(input);
    text(&writer.wait_with_output().unwrap());
    assert_eq!(lines.map(Result::unwrap).collect::<Vec<_>>(), ["{\"v\":4}", "{\"v\":5}"]);
    assert!(all.wait().unwrap().success());
    // A file at rest is shown, and that is the end.
    assert_eq!(text(&run(&["dump", "--follow", "--rows=3..", &name, "x"])), "3: {v: 4}\n4: {v: 5}\n");
    assert!(error(&run(&["dump", "--follow", &name, "/"])).contains("this is not a dataset"));
}

#[test]
fn a_recording_without_rows_leaves_no_new_file_and_says_so() {
    let (_folder, path, name) = new_file();
    let removed = format!("h5live: {name}: no rows were recorded; the new file, which would be empty, was removed\n");
    let said = |input: &[u8], code| {
        let output = run_with(&["record", &name, "x"], input);
        assert_eq!(output.status.code(), Some(code));
        String::from_utf8(output.stderr).unwrap()
    };
    // An error is said alone.
    assert_eq!(said(b"", 2), "h5live: standard input: no header line\n");
    assert!(!path.exists());
    assert_eq!(said(b"a,b\n", 0), removed);
    assert!(!path.exists());
    assert_eq!(said(b"[]\n", 0), removed);
    assert!(said(b"a,b\n1\n", 1).contains(&removed));
    assert!(!path.exists());
    // A file that was there stays.
    text(&run_with(&["record", &name, "y"], b"v\n1\n"));
    assert!(said(b"a,b\n", 0).ends_with(": no rows were recorded; the file stays as it is\n"));
    assert_eq!(text(&run(&["dump", &name, "y"])), "0: {v: 1}\n");
    // The type of frames is known without any, but nobody would know the dataset without them.
    let frames = |input| {
        let output = run_with(&["record", "--dtype=u8", &name, "frames"], input);
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(frames(b"").ends_with(": no rows were recorded; the new dataset, which would be empty, was removed\n"));
    assert!(!text(&run(&["ls", &name])).contains("frames"));
    assert_eq!(frames(b"1"), "");
    assert!(frames(b"").ends_with(": no rows were recorded; the dataset has no more than before\n"));
    assert_eq!(text(&run(&["dump", &name, "frames"])), "0: 49\n");
}
