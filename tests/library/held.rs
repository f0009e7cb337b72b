//! Files that are in use: nothing replaces them, and messages say who uses them. Files whose writer has died.

use std::error::Error as _;
use std::fs;
use std::path::Path;

use h5live::{Error, File, FileOpenState, Mode, diagnose, repair};

fn create(path: &Path) -> File {
    let file = File::create(path).unwrap();
    file.new_dataset::<u64>()
        .unlimited_rows(&[])
        .chunk_shape(&[4])
        .create("rows")
        .unwrap()
        .append(&[1u64, 2, 3])
        .unwrap();
    file.flush().unwrap();
    file
}

/// An error with its causes.
fn text(error: &Error) -> String {
    format!("{error}: {}", error.source().map(ToString::to_string).unwrap_or_default())
}

fn open(path: &Path, mode: Mode) -> Error {
    File::options().mode(mode).open(path).expect_err("it is in use")
}

#[test]
fn who_holds_a_file_itself_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("held.h5");
    let file = create(&path);
    let bytes = fs::read(&path).unwrap();
    let is_own = |mode| {
        let text = text(&open(&path, mode));
        let tells = text.contains("this process") && !text.contains("another") && !text.contains("other processes");
        assert!(tells || !cfg!(target_os = "linux"), "{mode:?}: {text}");
    };
    for mode in [Mode::Read, Mode::Write, Mode::SwmrWrite, Mode::Create] {
        is_own(mode);
    }
    assert!(fs::read(&path).unwrap() == bytes, "nothing was changed");
    file.start_swmr().unwrap();
    for mode in [Mode::Read, Mode::Write, Mode::SwmrWrite, Mode::Create] {
        is_own(mode);
    }
    assert!(text(&repair(&path).unwrap_err()).contains("this process") || !cfg!(target_os = "linux"));
    file.close().unwrap();
    let reader = File::open(&path).unwrap();
    for mode in [Mode::Write, Mode::SwmrWrite, Mode::Create] {
        is_own(mode);
    }
    assert_eq!(reader.dataset("rows").unwrap().read::<u64>().unwrap(), [1, 2, 3]);
}

#[test]
fn a_file_that_is_in_use_is_not_created_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("held.h5");
    let writer = create(&path);
    writer.start_swmr().unwrap();
    for mode in [Mode::Create, Mode::CreateNew] {
        let error = open(&path, mode);
        assert!(mode == Mode::CreateNew || error.is_in_use(), "{error}");
    }
    writer.dataset("rows").unwrap().append(&[4u64]).unwrap();
    writer.close().unwrap();
    let reader = File::open(&path).unwrap();
    assert!(open(&path, Mode::Create).is_in_use(), "somebody reads it");
    assert_eq!(reader.dataset("rows").unwrap().read::<u64>().unwrap(), [1, 2, 3, 4]);
    reader.close().unwrap();
    File::create(&path).unwrap().close().unwrap();
    assert!(File::open(&path).unwrap().dataset("rows").is_err());
}

/// What a writer leaves that dies: the file as it is while it is written.
fn abandoned(folder: &Path, live: bool) -> std::path::PathBuf {
    let (path, left) = (folder.join("written.h5"), folder.join(format!("left-{live}.h5")));
    let writer = create(&path);
    if live {
        writer.start_swmr().unwrap();
    }
    fs::copy(&path, &left).unwrap();
    writer.close().unwrap();
    assert_eq!(diagnose(&left).unwrap().open_state, FileOpenState::Abandoned { live });
    left
}

#[test]
fn a_file_whose_writer_died_is_brought_into_order_by_who_opens_it_and_may() {
    let folder = tempfile::tempdir().unwrap();
    for live in [true, false] {
        for mode in [Mode::Read, Mode::SwmrRead] {
            let path = abandoned(folder.path(), live);
            let file = File::options().mode(mode).recover(true).open(&path).unwrap();
            assert_eq!(file.dataset("rows").unwrap().read::<u64>().unwrap(), [1, 2, 3]);
            assert!(!file.is_live().unwrap());
            assert_eq!(diagnose(&path).unwrap().open_state, FileOpenState::Closed, "{mode:?}");
        }
        let path = abandoned(folder.path(), live);
        let bytes = fs::read(&path).unwrap();
        File::open(&path).unwrap().close().unwrap();
        assert!(fs::read(&path).unwrap() == bytes, "nobody has asked for it");
    }
}

#[test]
fn a_file_that_cannot_be_brought_into_order_is_opened_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = abandoned(folder.path(), true);
    let bytes = fs::read(&path).unwrap();
    let held = fs::File::open(&path).unwrap();
    held.lock_shared().unwrap();
    let file = File::open_or_recover(&path).unwrap();
    assert_eq!(file.dataset("rows").unwrap().read::<u64>().unwrap(), [1, 2, 3]);
    assert!(fs::read(&path).unwrap() == bytes, "others read it");
}

#[test]
fn a_file_whose_writer_lives_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.h5");
    let writer = create(&path);
    assert!(File::open_or_recover(&path).unwrap_err().is_in_use(), "nobody may follow yet");
    writer.start_swmr().unwrap();
    let reader = File::open_or_recover(&path).unwrap();
    let rows = reader.dataset("rows").unwrap();
    assert!(reader.is_live().unwrap());
    writer.dataset("rows").unwrap().append(&[4u64]).unwrap();
    writer.flush().unwrap();
    rows.refresh().unwrap();
    assert_eq!(rows.read::<u64>().unwrap(), [1, 2, 3, 4]);
    writer.close().unwrap();
    assert!(!reader.is_live().unwrap());
    assert_eq!(File::open_or_recover(&path).unwrap().dataset("rows").unwrap().shape().unwrap(), [4]);
}

#[test]
#[cfg(unix)]
fn a_file_that_somebody_may_have_open_is_replaced_and_not_emptied() {
    use std::io::{Read, Seek};
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("held.h5"), folder.path().join("link.h5"));
    create(&path).close().unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let before = fs::read(&path).unwrap();
    // It takes no lock, as h5py with `locking=False`.
    let mut reader = fs::File::open(&path).unwrap();
    for made in [&path, &link] {
        let new = File::create(made).unwrap();
        new.new_dataset::<u64>().create_with_data("new", &[7; 1000]).unwrap();
        new.close().unwrap();
        let mut seen = Vec::new();
        reader.rewind().unwrap();
        reader.read_to_end(&mut seen).unwrap();
        assert!(seen == before, "{made:?}: the reader finds {} bytes", seen.len());
        assert_eq!(File::open(&path).unwrap().dataset("new").unwrap().read::<u64>().unwrap(), [7; 1000]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn a_recorder_starts_again_under_followers_that_have_seen_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("restarted.h5");
    let writer = create(&path);
    writer.start_swmr().unwrap();
    let follower = File::options().swmr_read().open(&path).unwrap();
    let rows = follower.dataset("rows").unwrap();
    writer.close().unwrap();
    for session in 0..3u64 {
        assert!(!follower.is_live().unwrap(), "it has seen the end");
        assert!(open(&path, Mode::Write).is_in_use(), "plain writers are kept out again");
        let again = File::options().swmr_write().open(&path);
        if !cfg!(target_os = "linux") {
            return assert!(again.unwrap_err().is_in_use());
        }
        let again = again.unwrap();
        again.dataset("rows").unwrap().append(&[10 + session]).unwrap();
        again.flush().unwrap();
        assert!(follower.is_live().unwrap());
        rows.refresh().unwrap();
        let expected: Vec<u64> = [1, 2, 3].into_iter().chain(10..=10 + session).collect();
        assert_eq!(rows.read::<u64>().unwrap(), expected);
        again.close().unwrap();
    }
    let plain = File::open(&path).unwrap();
    let refused = text(&open(&path, Mode::SwmrWrite));
    assert!(refused.contains("this process has the file open for reading"), "{refused}");
    plain.close().unwrap();
}
