//! What comes between the steps of opening a file. The model of who gets in found each of these.

use std::cell::Cell;
use std::fs;

use h5live_model::{Name, NewObject, ObjectSpec, Publish, Scope, Store, StoreWriter};

use super::*;
use crate::NativeFile;

fn options(mode: Mode) -> OpenOptions {
    OpenOptions { mode, ..OpenOptions::default() }
}

fn add(file: &NativeFile, name: &str) {
    file.create(&NewObject::linked(file.session().root, &Name::from(name), &ObjectSpec::group())).unwrap();
}

fn names(path: &Path) -> Vec<String> {
    let file = NativeFile::open(path, &options(Mode::Read)).unwrap();
    let mut names = Vec::new();
    file.for_each_link(file.session().root, &mut |link| {
        names.push(link.name.to_string());
        true
    })
    .unwrap();
    names
}

#[test]
fn a_writer_begins_with_the_superblock_that_is_there_when_nobody_else_can_write() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("file.h5"), folder.path().join("other.h5"));
    let file = NativeFile::open(&other, &options(Mode::Create)).unwrap();
    file.start_swmr().unwrap();
    add(&file, "first");
    file.commit(Scope::All, Publish::Visible).unwrap();
    fs::copy(&other, &path).unwrap();
    // As another writer leaves it that takes it over and closes it.
    (0..200).for_each(|n| add(&file, &format!("later {n}")));
    file.close().unwrap();
    let closed = fs::read(&other).unwrap();

    let looks = Cell::new(0);
    let writer = options(Mode::Write);
    let session = writer.open_checked(&path, |storage, lock, locked| {
        let found = writer.check_writable(storage, lock, locked)?;
        if looks.replace(looks.get() + 1) == 0 {
            fs::write(&path, &closed).unwrap();
        }
        Ok(found)
    });
    session.unwrap().close().unwrap();
    assert_eq!(looks.get(), 2);
    assert_eq!(names(&path).len(), 201);
}

#[test]
fn a_file_is_made_anew_only_by_who_has_locked_it_and_then_finds_no_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    let file = NativeFile::open(&path, &options(Mode::Create)).unwrap();
    add(&file, "kept");
    file.close().unwrap();

    let creating = options(Mode::Create);
    {
        let lock = creating.lock_new_file(&path).unwrap();
        // From here on nobody comes in who locks, as every writer does first.
        let other = creating.lock_handle(&path).unwrap();
        assert_eq!(other.try_lock(LockKind::Exclusive).unwrap(), LockAttempt::Conflict);
        drop(lock);
    }
    // A SWMR writer of libhdf5 has let go of the lock, and lights no beacon.
    let writer = File::options().read(true).write(true).open(&path).unwrap();
    let refused = NativeFile::open(&path, &creating).unwrap_err();
    assert!(matches!(refused, Error::InUse { reason: OpenConflict::Writer, .. }), "{refused}");
    drop(writer);
    assert_eq!(names(&path), ["kept"]);
}

#[test]
fn a_swmr_reader_waits_for_a_writer_that_is_long_in_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    NativeFile::open(&path, &options(Mode::Create)).unwrap().close().unwrap();
    let reading = options(Mode::SwmrRead);
    let writer = reading.lock_handle(&path).unwrap();
    assert_eq!(writer.try_lock(LockKind::Exclusive).unwrap(), LockAttempt::Acquired);
    thread::scope(|scope| {
        let reader = scope.spawn(|| reading.open(&path).map(drop));
        // The disk keeps it busy.
        thread::sleep(Duration::from_millis(3 * u64::from(OPEN_WAIT_POLLS)));
        drop(writer);
        reader.join().unwrap().unwrap();
    });
}
