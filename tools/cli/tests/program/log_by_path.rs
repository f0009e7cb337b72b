//! Files with a log that are named by their paths, without `log:`.
#![cfg(unix)]

use std::io::Write;

use h5live::File;
use h5live_log::local_multi_writer_files::{subfile_folder, subfile_path};

use crate::common::manifests::files;
use crate::common::{error, h5live, new_file, run, run_with, shared, start, text, until};

const ROWS: &str = "0: {v: 1}\n1: {v: 2}\n2: {v: 3}\n";

/// The findings of a check: what it prints before the last line.
fn findings(arguments: &[&str]) -> String {
    let checked = run(arguments);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert_eq!(checked.status.code(), Some(1), "{said}{}", String::from_utf8_lossy(&checked.stderr));
    said
}

#[test]
fn a_copy_of_a_log_that_is_named_by_its_path_has_the_rows() {
    let (folder, path, name) = new_file();
    let to = |name: &str| folder.path().join(name).display().to_string();
    for (number, log) in [format!("log:{name}?join=yes"), format!("log:{name}")].iter().enumerate() {
        text(&run_with(&["record", log, "a"], b"v\n1\n2\n3\n"));
        let plain = to(&format!("plain{number}.h5"));
        text(&run(&["copy", "--quiet", &name, &plain]));
        assert_eq!(text(&run(&["dump", &plain, "a"])), ROWS, "{log}");
        assert!(!text(&run(&["ls", &plain])).contains("_LOG"));
        let filtered = to(&format!("filtered{number}.h5"));
        text(&run(&["copy", "--quiet", &name, &filtered, "--filter", "deflate:4"]));
        let folder = format!("kv:{}", to(&format!("kv{number}")));
        text(&run(&["copy", "--quiet", &name, &folder]));
        for copy in [&filtered, &folder, &format!("log:{name}")] {
            text(&run(&["diff", &name, copy]));
            assert_eq!(text(&run(&["dump", copy, "a"])), ROWS, "{log}");
        }
        assert_eq!(text(&run(&["dump", "--csv", &name, "a"])), "v\n1\n2\n3\n");
        assert_eq!(text(&run(&["watch", "--json", &name, "a"])), "{\"v\":1}\n{\"v\":2}\n{\"v\":3}\n");
        let listed = text(&run(&["ls", &name]));
        assert!(listed.contains("/a ") && !listed.contains("_LOG"), "{listed}");
        assert_eq!(File::open(&path).unwrap().dataset("a").unwrap().shape().unwrap(), [3]);
        std::fs::remove_file(&path).unwrap();
        let _ = std::fs::remove_dir_all(subfile_folder(&path));
    }
}

#[test]
fn a_log_that_is_named_by_its_path_is_written_as_a_log() {
    let (_folder, path, name) = new_file();
    text(&run_with(&["record", &format!("log:{name}"), "a"], b"v\n1\n"));
    text(&run_with(&["record", &name, "a"], b"v\n2\n3\n"));
    text(&run(&["set", &name, "a@unit", "V"]));
    for path in ["_LOG", "_LOG/log_1"] {
        assert!(error(&run(&["rm", &name, path])).contains("_LOG"));
        let refused = error(&run(&["set", &name, &format!("{path}@x"), "1"]));
        assert!(refused.contains("_LOG"), "{refused}");
    }
    assert_eq!(text(&run(&["dump", &name, "a"])), ROWS);
    assert_eq!(text(&run(&["dump", &name, "a@unit"])).trim(), "\"V\"");
    // A new file in its place is a native one.
    let (_other_folder, _, other) = new_file();
    text(&run_with(&["record", &other, "b"], b"v\n7\n"));
    text(&run(&["copy", "--quiet", "--force", &other, &name]));
    assert!(error(&run(&["log", "info", &name])).contains("no file with a log"));
    assert_eq!(File::open(path).unwrap().dataset("b").unwrap().shape().unwrap(), [1]);
}

#[test]
fn the_anchors_of_a_log_are_seen_in_the_native_file() {
    let (_folder, _, name) = new_file();
    text(&run_with(&["record", &format!("log:{name}"), "a"], b"v\n1\n"));
    let native = format!("native:{name}");
    assert!(text(&run(&["ls", &native])).contains("/_LOG/log_1"));
    assert_eq!(text(&run(&["dump", &native, "a"])), "{v: 0}\n");
    let refused = error(&run_with(&["record", &native, "a"], b"v\n1\n"));
    assert!(refused.contains("holds no rows, but one value of"), "{refused}");
}

#[test]
fn a_file_with_a_group_that_is_called_like_that_of_a_log_is_none() {
    let (_folder, path, name) = new_file();
    for version in [h5live::LibVer::Earliest, h5live::LibVer::V110] {
        let file = File::options().create().libver(version).open(&*path).unwrap();
        file.create_group("_LOG").unwrap().new_dataset::<i32>().shape(&[2]).create("a").unwrap();
        file.close().unwrap();
        assert!(text(&run(&["ls", &name])).contains("/_LOG/a"));
        assert!(error(&run(&["log", "info", &name])).contains("no file with a log"));
    }
}

#[test]
fn a_log_is_recognised_among_many_objects() {
    let (_folder, path, name) = new_file();
    text(&run_with(&["record", &format!("log:{name}"), "a"], b"v\n1\n2\n3\n"));
    let file = File::options().write().open(format!("log:{name}").as_str()).unwrap();
    (0..500).for_each(|number| drop(file.create_group(&format!("group{number}")).unwrap()));
    file.close().unwrap();
    assert_eq!(File::open(path).unwrap().dataset("a").unwrap().shape().unwrap(), [3]);
    assert_eq!(text(&run(&["dump", &name, "a"])), ROWS);
}

#[test]
fn a_log_that_is_yet_to_be_made_is_waited_for_and_followed_by_its_path() {
    let (_folder, _, name) = new_file();
    for log in [format!("log:{name}"), format!("log:{name}?join=yes")] {
        let watch = start(&["watch", "--json", "--wait", "60", &name, "a"]);
        let mut writer = start(&["record", "--types=v=i64", &log, "a"]);
        let mut input = writer.stdin.take().unwrap();
        input.write_all(b"v\n1\n").unwrap();
        until("a row", || run(&["dump", &name, "a"]).stdout == b"0: {v: 1}\n");
        assert!(text(&run(&["check", "--data", &name])).contains("sound"));
        input.write_all(b"2\n3\n").unwrap();
        until("more rows", || run(&["dump", &name, "a"]).stdout == ROWS.as_bytes());
        drop(input);
        assert!(writer.wait().unwrap().success());
        assert_eq!(text(&watch.wait_with_output().unwrap()), "{\"v\":1}\n{\"v\":2}\n{\"v\":3}\n");
        std::fs::remove_file(&name).unwrap();
    }
}

#[test]
fn a_check_of_a_log_reads_its_entries_its_table_and_its_subfiles() {
    let (_folder, path, name) = new_file();
    let (log, joined) = (format!("log:{name}"), format!("log:{name}?join=yes"));
    text(&run_with(&["record", &joined, "a"], b"v\n1\n2\n3\n"));
    for location in [&name, &log] {
        let said = text(&run(&["check", "--data", location]));
        assert_eq!(said.lines().filter(|line| line.contains(": sound; ")).count(), 2, "{said}");
    }
    let subfile = subfile_path(&path, 1);
    let whole = std::fs::read(&subfile).unwrap();
    let damage = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&subfile, bytes).unwrap();
    };
    // Log datasets are large, so they begin at a page; the index table lies before.
    let begin = 4096 + whole[4096..].windows(4).position(|bytes| bytes == b"LENT").unwrap();
    damage(begin + 50);
    let said = findings(&["check", &name]);
    assert!(said.contains("the log is damaged at byte 0 of subfile 1"), "{said}");
    let rows = [1i64, 2, 3].map(i64::to_le_bytes).concat();
    damage(begin + whole[begin..].windows(rows.len()).position(|bytes| bytes == rows).unwrap());
    let said = findings(&["check", "--data", &name]);
    assert!(said.contains("/a: the log is damaged") && said.contains("entry's data does not fit"), "{said}");
    text(&run(&["check", &name]));
    std::fs::remove_file(&subfile).unwrap();
    let said = findings(&["check", &log]);
    assert!(said.contains("subfile 1 of 1 of the log") && said.contains("1 finding;"), "{said}");
    let said = findings(&["check", "--json", &log]);
    assert!(said.contains("\"kind\":\"subfile\""), "{said}");
}

#[test]
fn a_check_of_a_log_finds_a_damaged_table_and_a_misplaced_anchor() {
    let (_folder, path, name) = new_file();
    let log = format!("log:{name}");
    text(&run_with(&["record", &log, "a"], b"v\n1\n2\n3\n"));
    let whole = std::fs::read(&path).unwrap();
    let table = whole.windows(4).rposition(|bytes| bytes == b"LENT").unwrap();
    let mut bytes = whole.clone();
    bytes[table + 50] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let said = findings(&["check", &name]);
    assert!(said.contains("the index table of the log is damaged"), "{said}");
    text(&run(&["log", "rebuild", &name]));
    text(&run(&["check", &name]));
    let native = format!("native:{name}");
    text(&run(&["set", &native, "a@_log_id", "7"]));
    let said = findings(&["check", &name]);
    assert!(said.contains("/a: it is dataset 7 of the log, of which 1 were made"), "{said}");
}

#[test]
fn what_copied_a_log_as_an_ordinary_file_is_named_instead_of_a_useless_repair() {
    let (_folder, _, name) = new_file();
    text(&run_with(&["record", &format!("log:{name}"), "a"], b"v\n1\n2\n3\n"));
    let copy = format!("{name}.copy");
    text(&run(&["copy", "--quiet", &format!("native:{name}"), &copy, "--filter", "deflate:4"]));
    for command in [&["dump", &copy, "a"][..], &["log", "rebuild", &copy], &["log", "replay", &copy, "x.h5"]] {
        let said = error(&h5live().args(command).current_dir(std::env::temp_dir()).output().unwrap());
        assert!(said.contains("copied the file as if it had no log") && !said.contains("anew"), "{said}");
    }
    assert!(findings(&["check", &copy]).contains("copied the file as if it had no log"));
}

#[test]
fn samples_of_log_vol_are_recognised_and_sound() {
    let Some(shared) = shared() else { return };
    let samples = files(&shared.join("samples/log-vol"), "h5");
    assert_eq!(samples.iter().filter(|path| !path.to_string_lossy().contains(".subfiles")).count(), 8);
    for path in samples.iter().map(|path| path.display().to_string()).filter(|path| !path.contains(".subfiles")) {
        text(&run(&["diff", &path, &format!("log:{path}")]));
        assert!(!text(&run(&["ls", &path])).contains("_int_att"), "{path}");
        let said = text(&run(&["check", "--data", &path]));
        let wanted = if path.ends_with("_sub.h5") { 3 } else { 1 };
        assert_eq!(said.lines().filter(|line| line.contains(": sound; ")).count(), wanted, "{said}");
    }
}
