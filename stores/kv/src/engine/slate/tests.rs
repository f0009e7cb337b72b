//! Failures of the object store in the middle of a session.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use h5live_model::{Mode, PublishLevel, WatchEvent};

use super::{SlateEngine, SlateLocation, SlateOptions};
use crate::engine::{EditBatch, Engine, EngineError, Result, View, ViewWithEdits};

fn open(folder: &Path, mode: Mode, session: u64) -> SlateEngine {
    let options = SlateOptions { poll_interval: Duration::from_millis(5), ..SlateOptions::default() };
    SlateEngine::open(SlateLocation::folder(folder, true, false).unwrap(), mode, &options, session).unwrap()
}

fn commit(engine: &SlateEngine, number: u8) -> Result<()> {
    let mut edits = EditBatch::new();
    edits.put(b"number", vec![number]);
    engine.commit(&edits, PublishLevel::Visible)
}

fn number(view: &Arc<dyn View>) -> Option<Vec<u8>> {
    ViewWithEdits::without_edits(view).get(b"number").unwrap()
}

/// Has each look at a part of the store fail, as if the server did not answer.
fn break_part(folder: &Path, part: &str) {
    fs::rename(folder.join(part), folder.join("away")).unwrap();
    fs::write(folder.join(part), "no folder").unwrap();
}

fn mend_part(folder: &Path, part: &str) {
    fs::remove_file(folder.join(part)).unwrap();
    fs::rename(folder.join("away"), folder.join(part)).unwrap();
}

/// SlateDB's own reader stops at such a failure for ever (its issue 1331).
#[test]
fn a_reader_goes_on_after_a_failure_of_the_object_store() {
    let folder = tempfile::tempdir().unwrap();
    let writer = open(folder.path(), Mode::CreateNew, 1);
    commit(&writer, 1).unwrap();
    let reader = open(folder.path(), Mode::SwmrRead, 2);
    let mut watch = reader.watch().unwrap();
    break_part(folder.path(), "wal");
    while !reader.session.signal.is_poll_failing() {
        std::thread::yield_now();
    }
    let error = reader.view().unwrap_err();
    assert!(error.to_string().contains(&*folder.path().to_string_lossy()), "{error}");
    mend_part(folder.path(), "wal");
    commit(&writer, 2).unwrap();
    assert_eq!(watch.wait(Duration::MAX).unwrap(), WatchEvent::Changed);
    assert_eq!(number(&reader.view().unwrap()), Some(vec![2]));
    assert!(!reader.session.signal.is_poll_failing());
}

#[test]
fn a_commit_that_the_object_store_refuses_is_an_error_and_none_before_it_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let writer = open(folder.path(), Mode::CreateNew, 1);
    commit(&writer, 1).unwrap();
    break_part(folder.path(), "wal");
    let error = commit(&writer, 2).unwrap_err();
    assert!(matches!(error, EngineError::Io { .. }), "{error:?}");
    assert!(error.to_string().contains(&*folder.path().to_string_lossy()), "{error}");
    mend_part(folder.path(), "wal");
    drop(writer);
    let writer = open(folder.path(), Mode::Write, 2);
    assert_eq!(number(&writer.view().unwrap()), Some(vec![1]));
    commit(&writer, 3).unwrap();
    assert_eq!(number(&open(folder.path(), Mode::Read, 3).view().unwrap()), Some(vec![3]));
}

/// A reader that does nothing for a while finds that the log which it has not read is gone, and goes on with tables.
#[test]
fn a_reader_whose_part_of_the_log_is_gone_takes_the_tables() {
    let folder = tempfile::tempdir().unwrap();
    let writer = open(folder.path(), Mode::CreateNew, 1);
    commit(&writer, 1).unwrap();
    let options = SlateOptions { poll_interval: Duration::from_secs(3600), ..SlateOptions::default() };
    let location = SlateLocation::folder(folder.path(), false, false).unwrap();
    let reader = SlateEngine::open(location, Mode::SwmrRead, &options, 2).unwrap();
    let first = reader.view().unwrap();
    (2..6).for_each(|number| commit(&writer, number).unwrap());
    writer.close().unwrap();
    for file in fs::read_dir(folder.path().join("wal")).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    while number(&reader.view().unwrap()) != Some(vec![5]) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(number(&first), Some(vec![1]), "the state that was there before stays");
}

/// Files of the log that who opens the store reads, since their writes are in no table.
fn unwritten_log_files(engine: &SlateEngine, folder: &Path) -> u64 {
    let admin = engine.session.new_admin();
    let manifest =
        engine.session.block_on_slate("the manifest", async move { admin.read_manifest(None).await }).unwrap().unwrap();
    let number = |file: fs::DirEntry| file.path().file_stem()?.to_str()?.parse::<u64>().ok();
    let newest = fs::read_dir(folder.join("wal")).unwrap().filter_map(|file| number(file.unwrap())).max();
    newest.unwrap_or(0).saturating_sub(manifest.replay_after_wal_id())
}

#[test]
fn the_log_does_not_grow_without_end_if_each_writer_dies_early() {
    let folder = tempfile::tempdir().unwrap();
    let (mut mode, mut most) = (Mode::CreateNew, 0);
    for session in 1..=14 {
        let writer = open(folder.path(), mode, session);
        most = most.max(unwritten_log_files(&writer, folder.path()));
        for commit in 0..50u64 {
            let mut edits = EditBatch::new();
            edits.put(b"number", commit.to_le_bytes().to_vec());
            writer.commit(&edits, PublishLevel::Visible).unwrap();
        }
        // Nothing of it is closed.
        std::mem::forget(writer);
        mode = Mode::Write;
    }
    assert!((400..512).contains(&most), "{most} files are read by who opens the store");
}
