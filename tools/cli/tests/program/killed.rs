//! What a writer leaves that is killed: a file that opens at once, with every row that was flushed, here and with
//! libhdf5, and a place for the next writer.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command};

use crate::common;
use crate::common::{run, start, text, until};
use h5live::File;

const ROWS: u64 = 700;

/// A writer of `ROWS` rows, all of them flushed, that waits for more.
fn writer(path: &Path) -> Child {
    let mut child = start(&["record", path.to_str().unwrap(), "/rows", "--every", "1"]);
    let input = child.stdin.as_mut().unwrap();
    writeln!(input, "number,square").unwrap();
    for number in 0..ROWS {
        writeln!(input, "{number},{}", number * number).unwrap();
    }
    input.flush().unwrap();
    let seen = || {
        let file = File::options().swmr_read().open(path).ok()?;
        Some(file.dataset("/rows").ok()?.shape().ok()?[0])
    };
    until("all rows are visible", || seen() == Some(ROWS));
    child
}

fn kill(mut writer: Child) {
    writer.kill().unwrap();
    writer.wait().unwrap();
}

#[test]
fn the_file_opens_at_once_with_all_that_was_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("killed.h5");
    kill(writer(&path));
    for options in [File::options().read(), File::options().swmr_read()] {
        let file = options.open(&path).unwrap();
        assert_eq!(file.dataset("/rows").unwrap().shape().unwrap(), [ROWS]);
    }
    assert!(text(&run(&["ls", path.to_str().unwrap()])).contains("/rows"));
}

#[test]
fn the_next_writer_goes_on_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("killed.h5");
    kill(writer(&path));
    let file = File::options().swmr_write().open(&path).unwrap();
    file.new_dataset::<u8>().unlimited_rows(&[]).create("/after").unwrap().append(&[1, 2, 3]).unwrap();
    file.close().unwrap();
    let file = File::open(&path).unwrap();
    assert_eq!(file.dataset("/rows").unwrap().shape().unwrap(), [ROWS]);
    assert_eq!(file.dataset("/after").unwrap().read::<u8>().unwrap(), [1, 2, 3]);
}

#[test]
fn a_second_writer_is_refused_while_the_first_lives() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("held.h5");
    let first = writer(&path);
    let pid = first.id().to_string();
    for options in [File::options().write(), File::options().swmr_write()] {
        let error = options.open(&path).unwrap_err();
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        assert!(!cfg!(target_os = "linux") || text.contains(&pid), "{text} does not name process {pid}");
    }
    kill(first);
}

/// Has libhdf5 count the rows, and add up what is in them.
fn h5py(path: &Path, open: &str) -> Option<String> {
    let program = format!(
        "rows = h5py.File(path, {open})['rows'][...]\n\
         assert (rows['square'] == rows['number'] ** 2).all()\nprint(len(rows), int(rows['number'].sum()))"
    );
    Some(common::h5py(&common::python()?, &program, path).trim().to_owned())
}

#[test]
fn libhdf5_finds_all_that_was_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("killed.h5");
    kill(writer(&path));
    let expected = format!("{ROWS} {}", ROWS * (ROWS - 1) / 2);
    let Some(found) = h5py(&path, "'r', swmr=True") else { return };
    assert_eq!(found, expected);
    match Command::new("h5clear").arg("-s").arg(&path).status() {
        Ok(status) => assert!(status.success()),
        Err(_) => return println!("skipped: there is no h5clear"),
    }
    assert_eq!(h5py(&path, "'r'"), Some(expected));
}
