//! Whole chunks that are appended one after the other between two flushes, and stored together.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use h5live::model::ChunkCoord;
use h5live::{Dataset, File, LibVer, Mode, Options, UNLIMITED};
use h5live_cache::{FaultyStorage, InjectedFailure};
use h5live_native::{MemoryStorage, NativeFile, OpenOptions};

const ROW: usize = 64;
/// Those of an extensible array, a fixed array and a version 2 B-tree.
const MOST: [(&str, [u64; 2]); 3] =
    [("one", [UNLIMITED, ROW as u64]), ("none", [3000, ROW as u64]), ("two", [UNLIMITED; 2])];

fn row(number: u64) -> [u32; ROW] {
    std::array::from_fn(|at| number as u32 * 1000 + at as u32)
}

fn rows(range: std::ops::Range<u64>) -> Vec<u32> {
    range.flat_map(row).collect()
}

fn live(path: &Path) -> File {
    File::options().mode(Mode::Create).open(path).unwrap()
}

/// A dataset of rows of a chunk each.
fn of_rows(file: &File, name: &str, max: &[u64; 2]) -> Dataset {
    file.new_dataset::<u32>().shape(&[0, ROW as u64]).max_shape(max).chunk_shape(&[1, ROW as u64]).create(name).unwrap()
}

fn append(data: &Dataset, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| data.append(&row(number)).unwrap());
}

#[test]
fn another_process_finds_them_however_many_come_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.h5");
    let file = live(&path);
    let datasets = MOST.map(|(name, max)| of_rows(&file, name, &max));
    file.start_swmr().unwrap();
    let mut number = 0;
    // More than are stored together at most, and some that are alone.
    for several in [2, 1, 100, 257, 3, 1, 1, 1, 1, 600, 256, 5] {
        for data in &datasets {
            append(data, number..number + several);
            data.flush().unwrap();
        }
        number += several;
        let seen = File::options().mode(Mode::SwmrRead).open(&path).unwrap();
        for (name, _) in MOST {
            assert!(seen.dataset(name).unwrap().read::<u32>().unwrap() == rows(0..number), "{name}, {number} rows");
        }
    }
    drop(datasets);
    file.close().unwrap();
    let Some(python) = h5live_test_support::python() else { return };
    let look = "import sys, h5py, numpy as np\n\
        rows = int(sys.argv[2])\n\
        for name, data in h5py.File(sys.argv[1]).items():\n\
        \x20   assert data.shape == (rows, 64), data.shape\n\
        \x20   assert (data[...] == np.arange(rows)[:, None] * 1000 + np.arange(64)).all()\n\
        \x20   assert data.id.get_num_chunks() == rows, data.id.get_num_chunks()\n";
    let done = Command::new(python).args(["-c", look]).arg(&path).arg(number.to_string()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// A version 1 B-tree finds what its nodes wait for by the address of each chunk.
#[test]
fn each_chunk_of_a_row_comes_before_the_node_of_an_old_file_that_leads_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.h5");
    let file = File::options().mode(Mode::Create).libver(LibVer::Earliest).open(&path).unwrap();
    let data = of_rows(&file, "data", &MOST[0].1);
    file.start_swmr().unwrap();
    let mut number = 0;
    for several in [2, 1, 100, 257, 3, 600] {
        append(&data, number..number + several);
        // The same rows as one long append.
        data.append(&rows(number + several..number + 2 * several)).unwrap();
        data.flush().unwrap();
        number += 2 * several;
        let seen = File::options().mode(Mode::SwmrRead).open(&path).unwrap();
        assert!(seen.dataset("data").unwrap().read::<u32>().unwrap() == rows(0..number), "{number} rows");
    }
}

#[test]
fn what_is_not_stored_yet_is_read_changed_cut_and_listed() {
    let folder = tempfile::tempdir().unwrap();
    let file = live(&folder.path().join("live.h5"));
    for (name, max) in MOST {
        let data = of_rows(&file, name, &max);
        append(&data, 0..10);
        assert_eq!(data.read::<u32>().unwrap(), rows(0..10));
        assert_eq!(data.read_slice::<u32>((3..5, 7..9)).unwrap(), [3007, 3008, 4007, 4008]);
        // Over some of it, and more rows after that.
        data.write_slice((4..6, 0..2), &[1u32, 2, 3, 4]).unwrap();
        append(&data, 10..14);
        let mut all = rows(0..14);
        for (at, value) in [(4 * ROW, 1), (4 * ROW + 1, 2), (5 * ROW, 3), (5 * ROW + 1, 4)] {
            all[at] = value;
        }
        assert_eq!(data.read::<u32>().unwrap(), all);
        // A chunk as it is stored, in place of one that was not yet.
        append(&data, 14..18);
        let bytes: Vec<u8> = row(77).iter().flat_map(|value| value.to_le_bytes()).collect();
        data.write_chunk(&ChunkCoord::new(&[16, 0]), 0, &bytes).unwrap();
        all.extend(rows(14..16).into_iter().chain(row(77)).chain(row(17)));
        assert_eq!(data.read::<u32>().unwrap(), all);
        append(&data, 18..25);
        assert_eq!(data.stored_chunks().unwrap().len(), 25);
        // Fewer rows, and others in their place.
        append(&data, 25..30);
        data.resize(&[20, ROW as u64]).unwrap();
        append(&data, 40..45);
        all.extend(rows(18..20).into_iter().chain(rows(40..45)));
        assert_eq!(data.read::<u32>().unwrap(), all);
        file.flush().unwrap();
        assert_eq!(data.read::<u32>().unwrap(), all);
        assert_eq!(data.stored_chunks().unwrap().len(), 25);
    }
}

#[test]
fn a_write_that_fails_loses_none_of_them() {
    for (name, max) in MOST {
        for failing in 0.. {
            let storage = Arc::new(FaultyStorage::new(MemoryStorage::new()));
            let options = OpenOptions { mode: h5live_native::Mode::Create, ..OpenOptions::default() };
            let store = Arc::new(NativeFile::open_storage(storage.clone(), &options).unwrap());
            let file = File::with_store(store, "file", Options::default()).unwrap();
            let data = of_rows(&file, name, &max);
            file.start_swmr().unwrap();
            append(&data, 0..3);
            data.flush().unwrap();
            let before = storage.attempted_change_count();
            storage.fail_after(failing, InjectedFailure::StorageFull, false);
            for number in 3..600 {
                // One that is refused is not there, and can be appended again.
                data.append(&row(number)).or_else(|_| data.append(&row(number))).unwrap();
                if number % 290 == 0 {
                    data.flush().or_else(|_| data.flush()).unwrap();
                }
            }
            data.flush().or_else(|_| data.flush()).unwrap();
            let is_last = storage.attempted_change_count() - before <= failing;
            storage.clear_fault();
            drop(data);
            file.close().unwrap();
            let options = OpenOptions { mode: h5live_native::Mode::Read, ..OpenOptions::default() };
            let store = Arc::new(NativeFile::open_storage(Arc::new(storage.inner().clone()), &options).unwrap());
            let file = File::with_store(store, "file", Options::default()).unwrap();
            let data = file.dataset(name).unwrap();
            assert!(data.read::<u32>().unwrap() == rows(0..600), "{name}: change {failing} failed");
            assert_eq!(data.stored_chunks().unwrap().len(), 600, "{name}: change {failing} failed");
            if is_last {
                assert!(failing > 6, "{failing}");
                break;
            }
        }
    }
}

#[test]
fn no_more_is_staged_than_the_options_allow() {
    for staging in [0, 100, 256, 300, 1 << 10] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.h5");
        let file = File::options().mode(Mode::Create).append_buffer_bytes(staging).open(&path).unwrap();
        let data = of_rows(&file, "data", &[UNLIMITED, ROW as u64]);
        append(&data, 0..50);
        let mut stored = 0;
        let count = &mut |_| {
            stored += 1;
            true
        };
        file.store().dataset(data.id()).unwrap().for_each_chunk(count).unwrap();
        assert!((50 - stored) * ROW * 4 <= staging, "{stored} chunks of 50 are stored");
        assert_eq!(data.read::<u32>().unwrap(), rows(0..50));
    }
}
