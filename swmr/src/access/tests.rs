//! What comes between the steps of opening a file. The model of who gets in found each of these.

use std::cell::Cell;
use std::process::{Command, Stdio};
use std::sync::Arc;

use h5live_format::{Addr, encode};

use super::*;
use crate::LockYieldRegistration;

fn access(mode: Mode) -> AccessOptions {
    AccessOptions { mode, locking: LockPolicy::On, take_over: false, takes_turns: false, reports_writer_process: true }
}

/// The bytes of a file that is nothing but a superblock of version 3, padded to `end` bytes.
fn bytes(status: StatusFlags, end: u64) -> Vec<u8> {
    let superblock = Superblock { version: 3, status, end_of_file: Addr::new(end), ..Superblock::default() };
    let mut bytes = encode(&superblock, superblock.widths).unwrap();
    bytes.resize(end as usize, 0);
    bytes
}

#[test]
fn a_writer_begins_with_the_superblock_that_is_there_when_nobody_else_can_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    fs::write(&path, bytes(StatusFlags::WRITE | StatusFlags::SWMR, 300)).unwrap();

    let looks = Cell::new(0);
    let writer = access(Mode::Write);
    let opened = writer.open_for_writing_checked(&path, |storage, lock, locked| {
        let found = writer.check_writable(storage, lock, locked)?;
        if looks.replace(looks.get() + 1) == 0 {
            // As another writer leaves it that takes it over and closes it.
            fs::write(&path, bytes(StatusFlags::CLEAR, 700)).unwrap();
        }
        Ok(found)
    });
    let found = opened.unwrap().found_state;
    assert_eq!(looks.get(), 2);
    assert_eq!((found.superblock.end_of_file, found.unclean_close), (Addr::new(700), None));
}

#[test]
fn a_file_is_made_anew_only_by_who_has_locked_it_and_then_finds_no_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    fs::write(&path, bytes(StatusFlags::CLEAR, 300)).unwrap();

    let creating = access(Mode::Create);
    {
        let lock = creating.lock_existing_file(&path).unwrap();
        // From here on nobody comes in who locks, as every writer does first.
        let other = creating.lock_handle(&path).unwrap();
        assert_eq!(other.try_flock(LockKind::Exclusive).unwrap(), LockAttempt::Conflict);
        drop(lock);
    }
    // A SWMR writer of libhdf5 has released the lock, and has no liveness lock.
    let writer = File::options().read(true).write(true).open(&path).unwrap();
    let refused = creating.create_or_open_to_overwrite(&path).unwrap_err();
    assert!(matches!(refused, Error::InUse { reason: OpenConflict::Writer, .. }), "{refused}");
    drop(writer);
    assert_eq!(fs::read(&path).unwrap(), bytes(StatusFlags::CLEAR, 300));
}

#[test]
fn a_swmr_reader_waits_for_a_writer_that_is_long_in_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    fs::write(&path, bytes(StatusFlags::CLEAR, 300)).unwrap();
    let reading = access(Mode::SwmrRead);
    let writer = reading.lock_handle(&path).unwrap();
    assert_eq!(writer.try_flock(LockKind::Exclusive).unwrap(), LockAttempt::AcquiredOrOff);
    thread::scope(|scope| {
        let reader = scope.spawn(|| reading.open_for_reading(&path).map(drop));
        // The disk keeps it busy.
        thread::sleep(Duration::from_millis(3 * u64::from(OPEN_WAIT_POLLS)));
        drop(writer);
        reader.join().unwrap().unwrap();
    });
}

/// A reader in another process, which holds its lock until its input ends.
fn reader_process(path: &Path, lock: &LockHandle) -> std::process::Child {
    let mut reader = Command::new("flock");
    let child = reader.arg("--shared").arg(path).arg("cat").stdin(Stdio::piped()).spawn().unwrap();
    while lock.try_flock(LockKind::Exclusive).unwrap() == LockAttempt::AcquiredOrOff {
        lock.release_flock().unwrap();
        thread::yield_now();
    }
    child
}

#[test]
fn a_file_is_created_though_a_reader_looks_whether_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    fs::write(&path, b"").unwrap();
    let lock = access(Mode::Create).lock_handle(&path).unwrap();
    let mut reader = reader_process(&path, &lock);

    // A reader that stays.
    let pauses = Cell::new(0);
    let count = || pauses.set(pauses.get() + 1);
    let refused = AccessOptions::lock_to_create(&lock, || Ok(()), count).unwrap_err();
    assert!(matches!(refused, Error::InUse { reason: OpenConflict::Lock, .. }), "{refused}");
    assert_eq!(pauses.replace(0), LEAVE_WAIT_POLLS);

    // One that goes.
    let leave = || {
        count();
        drop(reader.stdin.take());
        reader.wait().unwrap();
    };
    AccessOptions::lock_to_create(&lock, || Ok(()), leave).unwrap();
    assert_eq!(pauses.get(), 1);
}

#[test]
fn a_writer_waits_a_moment_for_a_reader_that_only_looks_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    fs::write(&path, bytes(StatusFlags::CLEAR, 300)).unwrap();
    let probe = FileStorage::new(File::open(&path).unwrap());
    let writer = access(Mode::SwmrWrite);
    let lock = writer.lock_handle(&path).unwrap();
    let mut reader = reader_process(&path, &lock);

    // A reader that stays.
    let pauses = Cell::new(0);
    let count = || pauses.set(pauses.get() + 1);
    assert!(!writer.lock_beside_readers(&path, &lock, &probe, count).unwrap());
    assert_eq!(pauses.replace(0), LEAVE_WAIT_POLLS);

    // One that goes.
    let leave = || {
        count();
        drop(reader.stdin.take());
        reader.wait().unwrap();
    };
    assert!(writer.lock_beside_readers(&path, &lock, &probe, leave).unwrap());
    assert_eq!(pauses.replace(0), 1);
    lock.release_flock().unwrap();

    // One in this process cannot go while it waits.
    let own = access(Mode::Read).open_for_reading(&path).unwrap();
    assert!(!writer.lock_beside_readers(&path, &lock, &probe, count).unwrap());
    assert_eq!(pauses.get(), 0);
    drop(own);
}

#[test]
fn followers_that_stay_let_a_swmr_writer_through_and_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    fs::write(&path, bytes(StatusFlags::CLEAR, 300)).unwrap();
    let follower = |_| {
        let lock = Arc::new(access(Mode::SwmrRead).open_for_reading(&path).unwrap().1);
        let lets_through = LockYieldRegistration::new(&lock);
        if lets_through.is_some() {
            lock.announce_willing_to_yield();
        }
        (lets_through, lock)
    };
    let followers: Vec<_> = (0..3).map(follower).collect();
    let is_held = || followers.iter().all(|(_, lock)| lock.holds_flock());

    for mode in [Mode::Write, Mode::Create] {
        let opened = match mode {
            Mode::Write => access(mode).open_for_writing(&path).map(drop),
            _ => access(mode).lock_existing_file(&path).map(drop),
        };
        assert!(matches!(opened, Err(Error::InUse { .. })), "{mode:?}: {opened:?}");
        assert!(is_held(), "{mode:?}");
    }
    let writer = access(Mode::SwmrWrite).open_for_writing(&path);
    if cfg!(target_os = "linux") {
        writer.unwrap();
        assert!(followers.iter().all(|(_, lock)| !lock.holds_flock()));
    }

    // A reader that does not expect a writer stays in its way.
    let plain = access(Mode::Read).open_for_reading(&path).unwrap();
    let _followers: Vec<_> = (0..2).map(follower).collect();
    let refused = access(Mode::SwmrWrite).open_for_writing(&path).unwrap_err();
    assert!(matches!(refused, Error::InUse { reason: OpenConflict::Readers, .. }), "{refused}");
    drop(plain);
}

#[test]
fn new_readers_wait_a_moment_for_a_swmr_writer_that_waits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    fs::write(&path, bytes(StatusFlags::CLEAR, 300)).unwrap();
    let waiting = access(Mode::SwmrWrite).lock_handle(&path).unwrap();
    let reader = access(Mode::Read).lock_handle(&path).unwrap();
    let pauses = Cell::new(0);
    let count = || pauses.set(pauses.get() + 1);
    AccessOptions::let_writer_go_first(&reader, count);
    assert_eq!(pauses.get(), 0);
    waiting.announce_writer_waiting(true);
    AccessOptions::let_writer_go_first(&reader, || {
        count();
        if pauses.get() == 3 {
            waiting.announce_writer_waiting(false);
        }
    });
    if cfg!(target_os = "linux") {
        assert_eq!(pauses.replace(0), 3);
        // One that does not begin keeps nobody out for ever.
        waiting.announce_writer_waiting(true);
        AccessOptions::let_writer_go_first(&reader, count);
        assert_eq!(pauses.get(), OPEN_WAIT_POLLS);
    }
}
