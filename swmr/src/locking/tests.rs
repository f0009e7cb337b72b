//! Who gets in.

use super::*;

fn file() -> tempfile::NamedTempFile {
    tempfile::NamedTempFile::new().unwrap()
}

#[test]
fn an_exclusive_lock_keeps_out_every_other() {
    let file = file();
    let first = LockHandle::open(file.path(), LockPolicy::On).unwrap();
    let second = LockHandle::open(file.path(), LockPolicy::On).unwrap();
    assert_eq!(first.try_flock(LockKind::Exclusive).unwrap(), LockAttempt::AcquiredOrOff);
    assert_eq!(second.try_flock(LockKind::Shared).unwrap(), LockAttempt::Conflict);
    first.try_flock(LockKind::Shared).unwrap();
    assert_eq!(second.try_flock(LockKind::Shared).unwrap(), LockAttempt::AcquiredOrOff);
    assert_eq!(second.try_flock(LockKind::Exclusive).unwrap(), LockAttempt::Conflict);
    first.release_flock().unwrap();
    assert_eq!(second.try_flock(LockKind::Exclusive).unwrap(), LockAttempt::AcquiredOrOff);
}

#[test]
fn a_file_that_is_open_for_writing_has_a_writer() {
    let file = tempfile::Builder::new().tempfile().unwrap().into_temp_path();
    let lock = LockHandle::open(&file, LockPolicy::On).unwrap();
    let before = lock.find_writer();
    assert!(matches!(before, WriterPresence::None | WriterPresence::Unknown), "{before:?}");
    let writer = File::options().write(true).open(&file).unwrap();
    acquire_liveness_lock(&writer, LockPolicy::On).unwrap();
    let WriterPresence::Alive(holders) = lock.find_writer() else { panic!("the writer is not seen") };
    if cfg!(target_os = "linux") {
        assert!(holders.iter().any(|holder| holder.pid == std::process::id()), "{holders:?}");
    }
    drop(writer);
    assert_eq!(lock.find_writer(), before);
}

#[cfg(target_os = "linux")]
#[test]
fn what_other_threads_start_is_no_writer_and_holds_no_lock() {
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    Command::new("true").status().unwrap();
                }
            });
        }
        let wrong = (0..300).find_map(|_| {
            std::fs::write(&path, "written, and closed").unwrap();
            let lock = LockHandle::open(&path, LockPolicy::On).unwrap();
            assert_eq!(lock.try_flock(LockKind::Exclusive).unwrap(), LockAttempt::AcquiredOrOff);
            drop(lock);
            let lock = LockHandle::open(&path, LockPolicy::On).unwrap();
            let is_free = lock.try_flock(LockKind::Exclusive).unwrap() == LockAttempt::AcquiredOrOff;
            let found = lock.find_writer();
            lock.acquire_liveness_lock(&File::options().write(true).open(&path).unwrap()).unwrap();
            lock.release_liveness_lock_and_close();
            let is_right = is_free
                && lock.is_lockable_without_liveness_lock()
                && matches!(found, WriterPresence::None | WriterPresence::Unknown);
            (!is_right).then_some((found, is_free))
        });
        done.store(true, Ordering::Relaxed);
        assert_eq!(wrong, None);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_child_was_given_makes_it_a_writer() {
    let file = file().into_temp_path();
    let lock = LockHandle::open(&file, LockPolicy::On).unwrap();
    let given = File::options().write(true).open(&file).unwrap();
    let mut child = std::process::Command::new("sleep").arg("100").stdout(given).spawn().unwrap();
    let found = lock.find_writer();
    child.kill().unwrap();
    child.wait().unwrap();
    let WriterPresence::Alive(holders) = found else { return assert_eq!(found, WriterPresence::Unknown) };
    assert!(holders.iter().any(|holder| holder.pid == child.id()), "{holders:?}");
}

/// The child that is known as the writer ends while this process writes, and then nobody does.
#[cfg(target_os = "linux")]
#[test]
fn who_asks_again_whether_there_is_a_writer_hears_of_the_next_one_and_of_the_end() {
    let file = file().into_temp_path();
    let lock = LockHandle::open(&file, LockPolicy::On).unwrap();
    let before = lock.probe_writer_liveness();
    let given = File::options().write(true).open(&file).unwrap();
    let mut child = std::process::Command::new("sleep").arg("100").stdout(given).spawn().unwrap();
    let found = [lock.probe_writer_liveness(), lock.probe_writer_liveness()];
    let second = File::options().write(true).open(&file).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    if before == WriterLiveness::Unknown {
        return;
    }
    assert_eq!((before, found), (WriterLiveness::AtRest, [WriterLiveness::Live; 2]));
    assert_eq!([lock.probe_writer_liveness(), lock.probe_writer_liveness()], [WriterLiveness::Live; 2]);
    drop(second);
    assert_eq!(lock.probe_writer_liveness(), WriterLiveness::AtRest);
}

#[test]
fn a_second_beacon_is_refused() {
    let file = file();
    let open = || File::options().write(true).open(file.path()).unwrap();
    let (first, second) = (open(), open());
    acquire_liveness_lock(&first, LockPolicy::On).unwrap();
    assert_eq!(acquire_liveness_lock(&second, LockPolicy::On).is_err(), cfg!(target_os = "linux"));
    drop(first);
    acquire_liveness_lock(&second, LockPolicy::On).unwrap();
}

#[test]
fn the_environment_speaks_libhdf5s_language() {
    assert_eq!(LockPolicy::from_setting("FALSE"), Some(LockPolicy::Off));
    assert_eq!(LockPolicy::from_setting("0"), Some(LockPolicy::Off));
    assert_eq!(LockPolicy::from_setting("1"), Some(LockPolicy::On));
    assert_eq!(LockPolicy::from_setting("BEST_EFFORT"), Some(LockPolicy::BestEffort));
    assert_eq!(LockPolicy::from_setting("perhaps"), None);
}

#[test]
fn a_lock_that_another_thread_releases_is_held_whenever_the_handle_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, b"bytes").unwrap();
    let lock = LockHandle::open(&path, LockPolicy::On).unwrap();
    let other = LockHandle::open(&path, LockPolicy::On).unwrap();
    const ROUNDS: u32 = 10_000;
    let both = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                both.wait();
                lock.release_flock().unwrap();
                both.wait();
            }
        });
        let mut wrong = 0;
        for _ in 0..ROUNDS {
            both.wait();
            lock.try_flock(LockKind::Shared).unwrap();
            lock.announce_willing_to_yield();
            both.wait();
            let is_free = other.try_flock(LockKind::Exclusive).unwrap() == LockAttempt::AcquiredOrOff;
            // What is not held is not released on request either.
            wrong += u32::from(lock.holds_flock() == is_free || is_free && other.has_readers_willing_to_yield());
            other.release_flock().unwrap();
            lock.release_flock().unwrap();
        }
        assert_eq!(wrong, 0);
    });
}
