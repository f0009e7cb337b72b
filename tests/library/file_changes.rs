//! Files that somebody deletes, replaces or cuts beneath those who have them open.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use h5live::{Dataset, File, ForeignFileChange, Result};

const ROWS: u64 = 20_000;

/// What is done to the file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Delete,
    Replace,
    Cut,
}

const CHANGES: [Change; 3] = [Change::Delete, Change::Replace, Change::Cut];

impl Change {
    fn apply(self, path: &Path) {
        match self {
            Change::Delete => fs::remove_file(path).unwrap(),
            Change::Replace => {
                let other = path.with_extension("other");
                fs::copy(path, &other).unwrap();
                fs::rename(other, path).unwrap();
            }
            Change::Cut => {
                let file = fs::File::options().write(true).open(path).unwrap();
                file.set_len(file.metadata().unwrap().len() / 2).unwrap();
            }
        }
    }

    fn cause(self) -> ForeignFileChange {
        match self {
            Change::Delete => ForeignFileChange::Deleted,
            Change::Replace => ForeignFileChange::Replaced,
            Change::Cut => ForeignFileChange::Truncated,
        }
    }
}

/// A value that is never 0, whose last byte is.
fn value(n: u64) -> i64 {
    i64::try_from(n).unwrap() * 3 + 1
}

/// How elements are stored.
const KINDS: [&str; 3] = ["contiguous", "chunked", "filtered"];

fn add(file: &File, kind: &str, rows: u64) -> Dataset {
    let data = file.new_dataset::<i64>();
    let data = match kind {
        "contiguous" => data.shape(&[rows]).create(kind),
        "chunked" => data.unlimited_rows(&[]).chunk_shape(&[100]).create(kind),
        _ => data.unlimited_rows(&[]).chunk_shape(&[100]).deflate(1).create(kind),
    };
    let data = data.unwrap();
    let values: Vec<_> = (0..rows).map(value).collect();
    if kind == "contiguous" {
        data.write(&values).unwrap()
    } else {
        data.append(&values).unwrap()
    }
    data
}

/// A closed file with a dataset of each kind, and the first bytes of each of its datasets last of all.
fn closed(folder: &Path, kind: &str) -> PathBuf {
    let path = folder.join(format!("{kind}.h5"));
    let file = File::create(&path).unwrap();
    add(&file, kind, ROWS);
    file.close().unwrap();
    path
}

fn slice(data: &Dataset, at: u64, count: u64) -> Result<Vec<i64>> {
    data.read_slice::<i64>(at..at + count)
}

/// Reads here and there; returns how many reads failed because the file was cut. Whatever is read is right.
fn read_around(data: &Dataset, count: u64, what: &str) -> usize {
    let mut cut = 0;
    for at in (0..ROWS - count).step_by(37) {
        match slice(data, at, count) {
            Ok(values) => assert!(values.iter().copied().eq((at..at + count).map(value)), "{what}: {count} at {at}"),
            Err(error) => {
                assert_eq!(error.file_change(), Some(ForeignFileChange::Truncated), "{what}: {count} at {at}: {error}");
                cut += 1;
            }
        }
    }
    cut
}

#[test]
fn what_was_cut_off_is_an_error_for_a_plain_reader_and_never_zeros() {
    let folder = tempfile::tempdir().unwrap();
    for kind in KINDS {
        for (way, is_mapped) in [("mapped", true), ("by calls", false)] {
            let options = || File::options().use_mmap(is_mapped);
            for count in [1, 10, 700] {
                let path = closed(folder.path(), kind);
                let reader = options().open(&path).unwrap();
                let data = reader.dataset(kind).unwrap();
                let what = format!("{kind}, {way}");
                assert_eq!(read_around(&data, count, &what), 0, "{what}");
                let file = fs::File::options().write(true).open(&path).unwrap();
                let len = file.metadata().unwrap().len();
                let mut cut = 0;
                // In the middle of elements, and of pages.
                for len in [len - 1, len / 2 + 3, len / 3, len / 4 / 4096 * 4096] {
                    file.set_len(len).unwrap();
                    let fresh = options().open(&path);
                    assert_eq!(fresh.map(drop).unwrap_err().file_change(), Some(ForeignFileChange::Truncated));
                    cut = read_around(&data, count, &what);
                }
                // What was decoded is kept, and right.
                assert!(cut > 0 || kind == "filtered", "{what}: {count}");
            }
        }
    }
}

#[test]
fn reads_while_a_file_is_being_cut_are_right_or_errors() {
    let folder = tempfile::tempdir().unwrap();
    for (round, kind) in KINDS.iter().cycle().enumerate().take(12) {
        let path = closed(folder.path(), kind);
        let reader = File::options().use_mmap(round % 2 == 0).chunk_cache_bytes(0).open(&path).unwrap();
        let data = reader.dataset(kind).unwrap();
        assert_eq!(read_around(&data, 1, kind), 0);
        let file = fs::File::options().write(true).open(&path).unwrap();
        let len = file.metadata().unwrap().len();
        thread::scope(|scope| {
            scope.spawn(|| (0..len).rev().step_by(1021).for_each(|len| file.set_len(len).unwrap()));
            for count in [1, 10, 700, 5000] {
                read_around(&data, count, kind);
            }
        });
        assert!(read_around(&data, 1, kind) > 0, "there is nothing left");
    }
}

#[test]
fn a_plain_reader_of_a_file_that_was_deleted_or_replaced_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    for change in [Change::Delete, Change::Replace] {
        let path = closed(folder.path(), "chunked");
        let reader = File::open(&path).unwrap();
        change.apply(&path);
        assert_eq!(read_around(&reader.dataset("chunked").unwrap(), 10, "old"), 0);
        assert!(!reader.is_live().unwrap());
    }
}

fn cause<T>(result: Result<T>) -> Option<ForeignFileChange> {
    result.err().and_then(|error| error.file_change())
}

#[test]
fn a_writer_learns_what_has_become_of_its_file_from_each_kind_of_flush() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    for change in CHANGES {
        for live in [false, true] {
            for how in ["flush", "durable flush", "close"] {
                let file = File::create(&path).unwrap();
                let data = add(&file, "chunked", 1000);
                if live {
                    file.start_swmr().unwrap();
                }
                file.flush().unwrap();
                change.apply(&path);
                data.append(&[value(1000)]).unwrap();
                let found = match how {
                    "flush" => {
                        // The last look may have been a moment ago.
                        thread::sleep(Duration::from_millis(3));
                        cause(file.flush())
                    }
                    "durable flush" => cause(file.flush_durable()),
                    _ => cause(file.close()),
                };
                assert_eq!(found, Some(change.cause()), "{change:?}, {how}, live: {live}");
                drop(data);
                drop(file);
                let _ = fs::remove_file(&path);
            }
        }
    }
}

#[test]
fn a_writer_does_not_take_a_move_for_a_deletion() {
    let folder = tempfile::tempdir().unwrap();
    let (path, moved) = (folder.path().join("run.h5"), folder.path().join("moved.h5"));
    let file = File::create(&path).unwrap();
    let data = add(&file, "chunked", 1000);
    fs::rename(&path, &moved).unwrap();
    data.append(&[value(1000)]).unwrap();
    file.flush_durable().unwrap();
    file.close().unwrap();
    assert_eq!(File::open(&moved).unwrap().dataset("chunked").unwrap().shape().unwrap(), [1001]);
}

#[test]
fn a_writer_that_goes_on_does_not_hide_that_its_file_was_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let file = File::create(&path).unwrap();
    let data = add(&file, "chunked", 1000);
    file.flush().unwrap();
    Change::Cut.apply(&path);
    // Much more than the file had.
    let found = (0..100).find_map(|_| cause(data.append(&[1_i64; 10_000])));
    assert_eq!(found.or_else(|| cause(file.close())), Some(ForeignFileChange::Truncated));
}

/// A live file, and a follower of it that has seen all there is.
fn live(path: &Path) -> (File, Dataset, File) {
    let writer = File::create(path).unwrap();
    let data = add(&writer, "chunked", 5000);
    writer.start_swmr().unwrap();
    (writer, data, File::options().swmr_read().open(path).unwrap())
}

#[test]
fn a_follower_of_rows_ends_with_what_has_become_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    for change in CHANGES {
        for rests in [true, false] {
            let (writer, data, reader) = live(&path);
            let mut rows = reader.dataset("chunked").unwrap().follow::<i64>().max_batch_rows(5000);
            rows = if rests { rows } else { rows.busy_poll() };
            assert_eq!(rows.next().unwrap().unwrap().len(), 5000);
            assert!(reader.is_live().unwrap());
            data.append(&[1, 2, 3]).unwrap();
            data.flush().unwrap();
            change.apply(&path);
            let mut last = rows.next().unwrap();
            if change != Change::Cut {
                assert_eq!(last.unwrap(), [1, 2, 3], "what was published before is delivered");
                last = rows.next().unwrap();
            }
            assert_eq!(cause(last), Some(change.cause()), "{change:?}");
            assert!(rows.next().is_none());
            assert_eq!(cause(reader.is_live()), Some(change.cause()));
            drop((data, writer, reader));
            let _ = fs::remove_file(&path);
        }
    }
}

#[test]
fn a_follower_of_groups_ends_with_what_has_become_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    for change in CHANGES {
        let (writer, data, reader) = live(&path);
        let mut arrivals = reader.follow();
        assert_eq!(arrivals.next().unwrap().unwrap().path(), "/chunked");
        change.apply(&path);
        assert_eq!(cause(arrivals.next().unwrap()), Some(change.cause()), "{change:?}");
        assert!(arrivals.next().is_none());
        drop((data, writer, reader));
        let _ = fs::remove_file(&path);
    }
}

#[test]
fn followers_see_the_usual_end_of_a_file_that_its_writer_makes_shorter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let writer = File::options().eof_headroom(4 << 20).create().open(&path).unwrap();
    let data = add(&writer, "chunked", 100);
    writer.start_swmr().unwrap();
    let reader = File::options().swmr_read().open(&path).unwrap();
    let mut rows = reader.dataset("chunked").unwrap().follow::<i64>();
    assert_eq!(rows.next().unwrap().unwrap().len(), 100);
    assert!(reader.is_live().unwrap());
    let before = fs::metadata(&path).unwrap().len();
    drop(data);
    writer.close().unwrap();
    assert!(fs::metadata(&path).unwrap().len() < before);
    assert!(rows.next().is_none());
    assert!(!reader.is_live().unwrap());
    // And when it is deleted after that.
    fs::remove_file(&path).unwrap();
    assert!(!reader.is_live().unwrap());
}

/// Members of files that libhdf5 cuts into several: its drivers, and the names of what they make.
const MEMBERS: [(&str, &[&str]); 2] = [
    ("driver='family', memb_size=65536", &["members0.h5", "members1.h5", "members2.h5"]),
    ("driver='split', meta_ext=b'-m.h5', raw_ext=b'-r.h5'", &["members-m.h5", "members-r.h5"]),
];

#[test]
fn what_was_cut_off_of_a_member_is_an_error_and_never_zeros() {
    let Some(python) = h5live_test_support::python() else { return };
    for (driver, members) in MEMBERS {
        let folder = tempfile::tempdir().unwrap();
        let name = if driver.contains("family") { "members%d.h5" } else { "members" };
        let program = format!(
            "import h5py, numpy as np\n\
             with h5py.File('{name}', 'w', {driver}) as f:\n    f['x'] = np.arange({ROWS}) * 3 + 1\n"
        );
        let output = std::process::Command::new(&python).arg("-c").arg(program).current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for cut in members {
            let path = folder.path().join(members[0]);
            let reader = File::open(&path).unwrap();
            let data = reader.dataset("x").unwrap();
            assert!(data.read::<i64>().unwrap().into_iter().eq((0..ROWS).map(value)));
            let member = folder.path().join(cut);
            let whole = fs::read(&member).unwrap();
            fs::File::options().write(true).open(&member).unwrap().set_len(whole.len() as u64 / 2).unwrap();
            let mut missing = 0;
            for at in (0..ROWS - 10).step_by(37) {
                match slice(&data, at, 10) {
                    Ok(values) => assert!(values.into_iter().eq((at..at + 10).map(value)), "{driver}, {cut}: at {at}"),
                    Err(error) => {
                        assert_eq!(error.object(), Some("/x"), "{error}");
                        missing += 1;
                    }
                }
            }
            // The first part of a split file has no elements.
            assert!(missing > 0 || *cut == "members-m.h5", "{driver}, {cut}");
            drop((data, reader));
            let again = File::open(&path).and_then(|file| file.dataset("x")?.read::<i64>());
            assert!(again.is_err() || *cut == "members-m.h5", "{driver}, {cut}");
            fs::write(&member, whole).unwrap();
        }
    }
}
