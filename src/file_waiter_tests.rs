//! Waiting for files and for what is in them.

use std::fs;
use std::sync::mpsc::channel;

use super::*;

const LONG: Duration = Duration::from_secs(60);

#[test]
fn opening_waits_for_a_file_that_is_made_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let at = path.clone();
    let (done, is_done) = channel::<()>();
    let writer = thread::spawn(move || {
        // A file that is empty, and one that its writer has for itself, are not to be opened yet.
        fs::write(&at, b"").unwrap();
        let file = File::create(&at).unwrap();
        file.new_dataset::<u8>().shape(&[1]).create("data").unwrap().write(&[7]).unwrap();
        file.start_swmr().unwrap();
        is_done.recv().unwrap();
    });
    let file = File::options().swmr_read().wait(LONG).open(&path).unwrap();
    assert_eq!(file.dataset("data").unwrap().read::<u8>().unwrap(), [7]);
    done.send(()).unwrap();
    writer.join().unwrap();
}

#[test]
fn a_wait_that_is_over_ends_as_opening_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let without = File::options().swmr_read().open(&path).unwrap_err();
    let error = File::options().swmr_read().wait(Duration::from_millis(1)).open(&path).unwrap_err();
    assert_eq!(error.to_string(), without.to_string());
    assert_eq!(error.store_error_kind(), Some(&StoreErrorKind::NotFound));
    fs::write(&path, b"this is no HDF5 file").unwrap();
    // What no time changes is an error at once.
    assert!(File::options().wait(LONG).open(&path).is_err());
}

#[test]
fn a_waiter_finds_what_the_writer_adds_and_says_what_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let mut waiter = FileWaiter::new(File::options().swmr_read(), path.as_path()).unwrap();
    let find = |file: &File| file.dataset("a/late");
    assert!(waiter.wait_for(Duration::ZERO, find).unwrap().is_none());
    assert_eq!(waiter.awaited_change(), AwaitedChange::FileCreated);
    let file = File::create(&path).unwrap();
    assert!(waiter.wait_for(Duration::from_millis(50), find).unwrap().is_none());
    assert_eq!(waiter.awaited_change(), AwaitedChange::FileReleased);
    file.new_dataset::<u8>().shape(&[1]).create("a/early").unwrap();
    file.start_swmr().unwrap();
    let early = waiter.wait_for(LONG, |file| file.dataset("a/early")).unwrap();
    assert!(early.is_some());
    assert!(waiter.wait_for(Duration::from_millis(50), find).unwrap().is_none());
    assert_eq!(waiter.awaited_change(), AwaitedChange::ObjectCreated);
    let late = file.new_dataset::<u8>().unlimited_rows(&[]).chunk_shape(&[4]).create("a/late").unwrap();
    late.append(&[1u8]).unwrap();
    file.flush().unwrap();
    assert!(waiter.wait_for(LONG, find).unwrap().is_some());
}

#[test]
fn a_waiter_finds_the_next_file_at_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    File::create(&path).unwrap().close().unwrap();
    let mut waiter = FileWaiter::new(File::options(), path.as_path()).unwrap().follow_if_in_use();
    assert!(waiter.wait_for(Duration::ZERO, |file| file.dataset("x")).unwrap().is_none());
    assert_eq!(waiter.awaited_change(), AwaitedChange::ObjectCreated);
    let other = folder.path().join("other.h5");
    let file = File::create(&other).unwrap();
    file.new_dataset::<u8>().shape(&[1]).create("x").unwrap();
    file.close().unwrap();
    fs::rename(&other, &path).unwrap();
    assert!(waiter.wait_for(LONG, |file| file.dataset("x")).unwrap().is_some());
}

#[test]
fn a_waiter_without_a_watch_looks_again_and_again() {
    let mut waiter = FileWaiter::new(File::options().swmr_read(), "mem:not-made-yet").unwrap();
    assert!(waiter.wait_for(Duration::from_millis(20), |file| file.dataset("x")).unwrap().is_none());
    assert_eq!(waiter.awaited_change(), AwaitedChange::FileCreated);
    let file = File::create("mem:not-made-yet").unwrap();
    file.new_dataset::<u8>().shape(&[1]).create("x").unwrap();
    file.close().unwrap();
    assert!(waiter.wait_for(LONG, |file| file.dataset("x")).unwrap().is_some());
}

#[test]
fn a_file_that_nobody_changes_is_not_opened_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    File::create(&path).unwrap().close().unwrap();
    // So old that no second change can have the same time.
    let old = std::time::SystemTime::UNIX_EPOCH + LONG;
    fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    let mut waiter = FileWaiter::new(File::options(), path.as_path()).unwrap();
    let mut looks = 0;
    let mut find = |file: &File| {
        looks += 1;
        file.dataset("x")
    };
    for _ in 0..10 {
        assert!(waiter.wait_for(Duration::from_millis(20), &mut find).unwrap().is_none());
    }
    assert_eq!(looks, 1);
}
