//! `h5live watch` and `h5live record` on a file that somebody deletes, replaces or cuts meanwhile.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use crate::common;
use crate::common::{error, start};
use h5live::File;

const ROWS: i64 = 3000;

fn replace(path: &Path) {
    let other = path.with_extension("other");
    fs::copy(path, &other).unwrap();
    fs::rename(other, path).unwrap();
}

fn cut(path: &Path) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() / 2).unwrap();
}

/// Something that is done to the file at a path, and what is said of it.
type Change = (fn(&Path), &'static str);

const CHANGES: [Change; 3] =
    [(|path| fs::remove_file(path).unwrap(), "deleted"), (replace, "replaced"), (cut, "truncated")];

#[test]
fn watch_says_what_has_become_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    for (change, word) in CHANGES {
        for json in [true, false] {
            let writer = File::create(&path).unwrap();
            let data = writer.new_dataset::<i64>().unlimited_rows(&[]).chunk_shape(&[100]).create("x").unwrap();
            data.append(&(0..ROWS).collect::<Vec<_>>()).unwrap();
            writer.start_swmr().unwrap();
            let name = path.to_str().unwrap();
            let mut watch = if json { start(&["watch", "--json", name, "x"]) } else { start(&["watch", name, "x"]) };
            let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
            let last = if json { (ROWS - 1).to_string() } else { format!("{ROWS} rows") };
            assert!(lines.any(|line| line.unwrap().starts_with(&last)), "it has begun");
            change(&path);
            drop(lines.by_ref().map(Result::unwrap).last());
            let said = error(&watch.wait_with_output().unwrap());
            assert!(said.contains(word), "{said}");
            drop((data, writer));
            let _ = fs::remove_file(&path);
        }
    }
}

#[test]
fn record_says_what_has_become_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    for (change, word) in CHANGES {
        let mut record = start(&["record", path.to_str().unwrap(), "x", "--every=1", "--types=number=i64"]);
        let mut input = record.stdin.take().unwrap();
        writeln!(input, "number").unwrap();
        (0..ROWS).for_each(|n| writeln!(input, "{n}").unwrap());
        common::until("rows are visible", || {
            let file = File::options().swmr_read().open(&path).ok();
            let rows = file.and_then(|file| file.dataset("/x").ok()?.shape().ok());
            rows.is_some_and(|shape| shape == [ROWS as u64])
        });
        change(&path);
        drop(input);
        let said = error(&record.wait_with_output().unwrap());
        assert!(said.contains(word), "{said}");
        let _ = fs::remove_file(&path);
    }
}
