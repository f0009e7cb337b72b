//! Chunks that a live writer makes ready before rows come to them: nobody meets them, and none is left in a closed
//! file.
//!
//! libhdf5 looks at the files through the Python that `H5LIVE_PYTHON` names.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use h5live::model::ChunkCoord;
use h5live::{Dataset, File, Mode, Options, UNLIMITED};
use h5live_cache::{FaultyStorage, InjectedFailure};
use h5live_native::{MemoryStorage, NativeFile, OpenOptions};

const ROW: usize = 64;

fn row(number: u64) -> [u32; ROW] {
    std::array::from_fn(|at| number as u32 * 1000 + at as u32)
}

fn live(path: &Path) -> File {
    File::options().mode(Mode::Create).open(path).unwrap()
}

/// Appends rows of a chunk each, with a flush after each.
fn append(data: &Dataset, rows: std::ops::Range<u64>) {
    for number in rows {
        data.append(&row(number)).unwrap();
        data.flush().unwrap();
    }
}

/// Chunks of a dataset in the file, also outside of its extent.
fn stored(file: &File, data: &Dataset) -> Vec<u64> {
    let mut stored = Vec::new();
    let list = &mut |chunk: h5live::model::StoredChunk| {
        stored.push(chunk.coord.scaled()[0]);
        true
    };
    file.store().dataset(data.id()).unwrap().for_each_chunk(list).unwrap();
    stored
}

/// Has h5py look whether there are so many rows of a chunk each, and no other chunks.
fn libhdf5_finds(path: &Path, names: &[&str], rows: u64) {
    let Some(python) = h5live_test_support::python() else { return };
    let look = "import sys, h5py, numpy as np\n\
        file = h5py.File(sys.argv[1])\n\
        for name in sys.argv[3:]:\n\
        \x20   data = file[name][...]\n\
        \x20   rows = int(sys.argv[2])\n\
        \x20   assert data.shape == (rows, 64), data.shape\n\
        \x20   assert (data == np.arange(rows)[:, None] * 1000 + np.arange(64)).all()\n\
        \x20   assert file[name].id.get_num_chunks() == rows, file[name].id.get_num_chunks()\n";
    let done = Command::new(python).args(["-c", look]).arg(path).arg(rows.to_string()).args(names).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Bytes of a file where flushes follow two rows each, for which nothing is made ready.
fn size_by_twos(path: &Path, max_shapes: [(&str, [u64; 2]); 3], rows: u64) -> u64 {
    let file = live(path);
    let datasets = max_shapes.map(|(name, max)| of_rows(&file, name, &max));
    file.start_swmr().unwrap();
    for data in &datasets {
        for number in 0..rows {
            data.append(&row(number)).unwrap();
            if number % 2 == 1 {
                data.flush().unwrap();
            }
        }
        assert!(stored(&file, data).len() as u64 <= rows);
    }
    drop(datasets);
    file.close().unwrap();
    std::fs::metadata(path).unwrap().len()
}

/// A dataset of rows of a chunk each.
fn of_rows(file: &File, name: &str, max: &[u64; 2]) -> Dataset {
    file.new_dataset::<u32>().shape(&[0, ROW as u64]).max_shape(max).chunk_shape(&[1, ROW as u64]).create(name).unwrap()
}

/// A live file with rows of eight chunks, and a reader that keeps the file open.
#[test]
fn rows_of_several_chunks_of_two_unlimited_dimensions_cost_little_more_than_their_elements() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wide.h5");
    let file = live(&path);
    let new = file.new_dataset::<u64>().shape(&[0, 32]).max_shape(&[UNLIMITED, UNLIMITED]);
    let data = new.chunk_shape(&[1, 4]).create("data").unwrap();
    file.start_swmr().unwrap();
    let reader = File::options().mode(Mode::SwmrRead).open(&path).unwrap();
    let seen = reader.dataset("data").unwrap();
    let rows = 2000;
    let value = |row: u64| -> Vec<u64> { (0..32).map(|column| row * 32 + column + 1).collect() };
    for row in 0..rows {
        data.append(&value(row)).unwrap();
        data.flush().unwrap();
        if row % 97 == 0 {
            seen.refresh().unwrap();
            assert_eq!(seen.read::<u64>().unwrap(), (0..=row).flat_map(value).collect::<Vec<_>>());
        }
    }
    // Each chunk of 32 bytes takes 24 bytes in the index.
    let raw = rows * 32 * 8;
    let len = std::fs::metadata(&path).unwrap().len();
    println!("{len} bytes, {:.2} times the elements", len as f64 / raw as f64);
    assert!(len < raw * 3 + (128 << 10), "{len} bytes for {raw}");
    // Another column of chunks, and rows again.
    data.resize(&[rows, 34]).unwrap();
    data.append(&[7u64; 34]).unwrap();
    data.flush().unwrap();
    seen.refresh().unwrap();
    assert_eq!(seen.read_slice::<u64>(rows as usize).unwrap(), [7u64; 34]);
    file.close().unwrap();
    let file = File::open(&path).unwrap();
    let data = file.dataset("data").unwrap();
    assert_eq!(stored(&file, &data).len() as u64, rows * 8 + 9, "nothing that was made ready is left");
    assert_eq!(data.read_slice::<u64>((5, ..32)).unwrap(), value(5));
}

#[test]
fn none_is_left_when_the_file_is_closed_or_dropped() {
    let folder = tempfile::tempdir().unwrap();
    // An extensible array, a fixed array, and a version 2 B-tree.
    let max_shapes = [("one", [UNLIMITED, 64]), ("fixed", [1000, 64]), ("two", [UNLIMITED; 2])];
    for (closed, rows) in [(true, 100), (false, 100), (true, 4), (false, 3), (true, 3), (true, 1000)] {
        let path = folder.path().join("live.h5");
        let file = live(&path);
        let datasets = max_shapes.map(|(name, max)| of_rows(&file, name, &max));
        file.start_swmr().unwrap();
        datasets.iter().for_each(|data| append(data, 0..rows));
        for data in &datasets {
            let ahead = stored(&file, data).len() as u64 - rows;
            assert!(ahead <= (rows / 8).max(1), "{ahead} chunks are ready after {rows}");
            assert!(ahead > 0 || rows != 3, "{} after {rows}", data.path());
            assert_eq!(data.stored_chunks().unwrap().len() as u64, rows);
        }
        drop(datasets);
        if closed {
            file.close().unwrap();
        }
        drop(file);
        let size = std::fs::metadata(&path).unwrap().len();
        let file = File::open(&path).unwrap();
        for (name, _) in max_shapes {
            let data = file.dataset(name).unwrap();
            assert_eq!(stored(&file, &data), (0..rows).collect::<Vec<_>>(), "{name}");
            let wanted: Vec<u32> = (0..rows).flat_map(row).collect();
            assert_eq!(data.read::<u32>().unwrap(), wanted, "{name}");
        }
        let (data_size, others) =
            (3 * rows * 4 * ROW as u64, size_by_twos(&folder.path().join("twos.h5"), max_shapes, rows));
        assert!(size <= others + data_size / 8 + 8192, "{size} bytes, and {others} where none are made ready");
        libhdf5_finds(&path, &max_shapes.map(|(name, _)| name), rows);
    }
}

#[test]
fn rows_that_come_by_other_ways_find_fill_values() {
    let folder = tempfile::tempdir().unwrap();
    let file = live(&folder.path().join("live.h5"));
    let new = file.new_dataset::<u32>().unlimited_rows(&[ROW as u64]).chunk_shape(&[1, ROW as u64]);
    let data = new.fill(7u32).create("data").unwrap();
    file.start_swmr().unwrap();
    append(&data, 0..18);
    // As many as come before the last one that was made ready.
    let rows = stored(&file, &data).len() as u64 - 1;
    append(&data, 18..rows);
    append(&data, rows..20);
    assert!((18..20).contains(&rows), "{rows}");
    // Into the extent without having been written.
    data.resize(&[23, ROW as u64]).unwrap();
    data.flush().unwrap();
    assert_eq!(data.read_slice::<u32>((20..23, ..)).unwrap(), [7; 3 * ROW]);
    append(&data, 23..24);
    // As a whole, and in part.
    data.resize(&[26, ROW as u64]).unwrap();
    let bytes: Vec<u8> = row(24).iter().flat_map(|value| value.to_le_bytes()).collect();
    data.write_chunk(&ChunkCoord::new(&[24, 0]), 0, &bytes).unwrap();
    data.write_slice((25..26, 0..1), &[1u32]).unwrap();
    data.flush().unwrap();
    let read = data.read_slice::<u32>((23..26, ..)).unwrap();
    assert_eq!((&read[..ROW], &read[ROW..2 * ROW]), (&row(23)[..], &row(24)[..]));
    assert_eq!((read[2 * ROW], &read[2 * ROW + 1..]), (1, &[7; ROW - 1][..]));
    // Fewer, and more again.
    data.resize(&[10, ROW as u64]).unwrap();
    assert_eq!(stored(&file, &data).len(), 10);
    data.resize(&[12, ROW as u64]).unwrap();
    append(&data, 12..40);
    assert_eq!(data.read_slice::<u32>((10..12, ..)).unwrap(), [7; 2 * ROW]);
    assert_eq!(data.read_slice::<u32>((12..40, ..)).unwrap(), (12..40).flat_map(row).collect::<Vec<_>>());
    file.close().unwrap();
    let file = File::open(folder.path().join("live.h5")).unwrap();
    let data = file.dataset("data").unwrap();
    let there: Vec<u64> = (0..10).chain(12..40).collect();
    assert_eq!(stored(&file, &data), there);
}

#[test]
fn a_write_that_fails_loses_nothing_and_leaves_none() {
    for failing in 0.. {
        let storage = Arc::new(FaultyStorage::new(MemoryStorage::new()));
        let options = OpenOptions { mode: h5live_native::Mode::Create, ..OpenOptions::default() };
        let store = Arc::new(NativeFile::open_storage(storage.clone(), &options).unwrap());
        let file = File::with_store(store, "file", Options::default()).unwrap();
        let data = of_rows(&file, "data", &[UNLIMITED, ROW as u64]);
        file.start_swmr().unwrap();
        append(&data, 0..30);
        let before = storage.attempted_change_count();
        storage.fail_after(failing, InjectedFailure::StorageFull, false);
        for number in 30..50 {
            data.append(&row(number)).unwrap();
            data.flush().or_else(|_| data.flush()).unwrap();
        }
        let is_last = storage.attempted_change_count() - before <= failing;
        storage.clear_fault();
        drop(data);
        file.close().unwrap();
        let options = OpenOptions { mode: h5live_native::Mode::Read, ..OpenOptions::default() };
        let store = Arc::new(NativeFile::open_storage(Arc::new(storage.inner().clone()), &options).unwrap());
        let file = File::with_store(store, "file", Options::default()).unwrap();
        let data = file.dataset("data").unwrap();
        assert!(data.read::<u32>().unwrap() == (0..50).flat_map(row).collect::<Vec<_>>(), "change {failing} failed");
        assert_eq!(stored(&file, &data).len(), 50, "change {failing} failed");
        if is_last {
            assert!(failing > 40, "{failing}");
            break;
        }
    }
}

#[test]
fn a_dataset_that_has_some_can_be_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.h5");
    let file = live(&path);
    let make = |name: &str| of_rows(&file, name, &[UNLIMITED, ROW as u64]);
    let (kept, gone) = (make("kept"), make("gone"));
    file.start_swmr().unwrap();
    append(&gone, 0..50);
    append(&kept, 0..50);
    drop(gone);
    file.root().unlink("gone").unwrap();
    file.flush().unwrap();
    let other = make("other");
    append(&other, 0..50);
    append(&kept, 50..60);
    append(&other, 50..60);
    drop((kept, other));
    file.close().unwrap();
    libhdf5_finds(&path, &["kept", "other"], 60);
}

#[test]
fn several_rows_between_flushes_find_the_chunks_that_are_ready() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.h5");
    let file = live(&path);
    let data = of_rows(&file, "data", &[UNLIMITED, ROW as u64]);
    file.start_swmr().unwrap();
    let mut number = 0;
    // One, one, one... and then several; and the other way round.
    for several in [1, 1, 1, 1, 1, 1, 1, 5, 5, 1, 1, 30, 1, 1, 1, 1, 1, 7, 1] {
        for _ in 0..several {
            data.append(&row(number)).unwrap();
            number += 1;
        }
        data.flush().unwrap();
        let seen = File::options().mode(Mode::SwmrRead).open(&path).unwrap();
        let seen = seen.dataset("data").unwrap().read::<u32>().unwrap();
        assert!(seen == (0..number).flat_map(row).collect::<Vec<_>>(), "after {number} rows");
    }
    drop(data);
    file.close().unwrap();
    libhdf5_finds(&path, &["data"], number);
}
