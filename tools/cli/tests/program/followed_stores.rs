//! What is followed in each store before it is there, and when its writer is killed.

use std::io::Write;
use std::process::{Child, Output};

use crate::common::{run, run_with, start, text, until};

const STORES: [&str; 4] = ["", "log:", "kv:", "hsds:"];

/// A folder, and the location of a store in it.
fn new_store(store: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let location = format!("{store}{}", folder.path().join("run").display());
    (folder, location)
}

fn code(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A writer with one row, which is seen.
fn writer(location: &str) -> Child {
    let mut writer = start(&["record", "--types=v=i64", "--every", "1", location, "r"]);
    writer.stdin.as_mut().unwrap().write_all(b"v\n1\n").unwrap();
    until("a row", || run(&["dump", location, "r"]).stdout == b"0: {v: 1}\n");
    writer
}

#[test]
fn a_watch_that_begins_before_the_store_or_the_dataset_ends_with_all_rows() {
    for store in STORES {
        for has_other in [false, true] {
            let (_folder, location) = new_store(store);
            if has_other {
                text(&run_with(&["record", &location, "other"], b"v\n7\n"));
            }
            let watch = start(&["watch", "--json", "--wait", "60", &location, "r"]);
            let missing = run(&["watch", "--wait", "0.05", &location, "r"]);
            assert_eq!(missing.status.code(), Some(2), "{location}");
            text(&run_with(&["record", "--types=v=i64", &location, "r"], b"v\n1\n2\n"));
            assert_eq!(text(&watch.wait_with_output().unwrap()), "{\"v\":1}\n{\"v\":2}\n", "{location} {has_other}");
        }
    }
}

#[test]
fn a_watch_of_a_writer_that_was_killed_says_so_and_that_of_one_that_closed_does_not() {
    for store in STORES {
        let (_folder, location) = new_store(store);
        let mut killed = writer(&location);
        let mut watch = start(&["watch", "--json", &location, "r"]);
        let mut first = [0; 8];
        std::io::Read::read_exact(watch.stdout.as_mut().unwrap(), &mut first).unwrap();
        killed.kill().unwrap();
        killed.wait().unwrap();
        let (exit, said) = code(&watch.wait_with_output().unwrap());
        assert_eq!(exit, Some(1), "{location}: {said}");
        assert!(said.contains("its writer has died"), "{location}: {said}");
        // A repair, or the next writer that closes, ends that.
        text(&run(&["repair", &location]));
        assert_eq!(code(&run(&["watch", "--json", &location, "r"])), (Some(0), String::new()), "{location}");
        let (_folder, location) = new_store(store);
        let mut closing = writer(&location);
        let watch = start(&["watch", "--json", &location, "r"]);
        closing.stdin.take().unwrap().write_all(b"2\n").unwrap();
        text(&closing.wait_with_output().unwrap());
        assert_eq!(text(&watch.wait_with_output().unwrap()), "{\"v\":1}\n{\"v\":2}\n", "{location}");
    }
}
