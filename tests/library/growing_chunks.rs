//! Chunks with filters that grow under followers: they are filled in place without filters, and go through them when they
//! are full, when the file is closed, or by a repair.
//!
//! libhdf5 looks at the files through the Python that `H5LIVE_PYTHON` names.

use std::path::Path;
use std::process::Command;

use h5live::model::{ChunkCoord, StoredChunk};
use h5live::{Dataset, File};

fn value(row: u64) -> u64 {
    row.wrapping_mul(2_654_435_761) % (1 << 40)
}

fn values(rows: std::ops::Range<u64>) -> Vec<u64> {
    rows.map(value).collect()
}

/// A live file with a dataset of chunks of 1,000 rows, and the filter of that name.
fn live(path: &Path, filter: &str) -> (File, Dataset) {
    let file = File::options().create().open(path).unwrap();
    let new = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[1000]);
    let data = match filter {
        "gzip" => new.shuffle().deflate(1),
        "fletcher32" => new.fletcher32(),
        other => panic!("{other}"),
    };
    let data = data.create("data").unwrap();
    file.start_swmr().unwrap();
    (file, data)
}

fn append(data: &Dataset, rows: std::ops::Range<u64>, step: u64) {
    for from in rows.clone().step_by(step as usize) {
        data.append(&values(from..rows.end.min(from + step))).unwrap();
        data.flush().unwrap();
    }
}

fn chunk(file: &File, data: &Dataset, number: u64) -> Option<StoredChunk> {
    file.store().dataset(data.id()).unwrap().locate(&ChunkCoord::new(&[number])).unwrap()
}

/// Has h5py look whether there are so many rows, and how many chunks went through the filters.
fn libhdf5_finds(path: &Path, rows: u64, filtered: u64) {
    let Some(python) = h5live_test_support::python() else { return };
    let look = "import sys, h5py, numpy as np\n\
        file = h5py.File(sys.argv[1], swmr=True)\n\
        data, rows = file['data'], int(sys.argv[2])\n\
        assert data.shape == (rows,), data.shape\n\
        assert (data[...] == (np.arange(rows, dtype='u8') * np.uint64(2654435761)) % np.uint64(2**40)).all()\n\
        chunks = [data.id.get_chunk_info(n) for n in range(data.id.get_num_chunks())]\n\
        filtered = sum(chunk.filter_mask == 0 for chunk in chunks)\n\
        assert filtered == int(sys.argv[3]), chunks\n";
    let done =
        Command::new(python).args(["-c", look]).arg(path).arg(rows.to_string()).arg(filtered.to_string()).output();
    let done = done.unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_chunk_that_is_flushed_row_by_row_takes_its_space_three_times_at_most() {
    let directory = tempfile::tempdir().unwrap();
    for filter in ["gzip", "fletcher32"] {
        let path = directory.path().join(filter);
        let (file, data) = live(&path, filter);
        // Somebody keeps the file open.
        let reader = std::fs::File::open(&path).unwrap();
        append(&data, 0..5500, 1);
        assert_eq!(data.read::<u64>().unwrap(), values(0..5500));
        libhdf5_finds(&path, 5500, 5);
        let growing = chunk(&file, &data, 5).unwrap();
        assert_eq!(growing.size, 8000, "{growing:?}");
        let len = std::fs::metadata(&path).unwrap().len();
        let announced = (len / 8).max(64 << 10);
        assert!(len - announced < 3 * 44_000, "{filter}: {len}");
        file.close().unwrap();
        libhdf5_finds(&path, 5500, 6);
        drop(reader);
    }
}

#[test]
fn followers_see_each_row_of_a_growing_chunk_and_no_other_values() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("followed.h5");
    let (file, data) = live(&path, "gzip");
    let reader = File::options().swmr_read().open(&path).unwrap();
    let seen = reader.dataset("data").unwrap();
    let mut rows = 0;
    for step in [1, 1, 1, 7, 300, 1, 690, 1, 500, 499, 1, 1000, 3000, 1, 2] {
        data.append(&values(rows..rows + step)).unwrap();
        data.flush().unwrap();
        rows += step;
        seen.refresh().unwrap();
        assert_eq!(seen.read::<u64>().unwrap(), values(0..rows), "after {rows} rows");
        assert_eq!(seen.read_slice::<u64>(rows as usize - 1).unwrap(), [value(rows - 1)]);
        assert_eq!(data.read::<u64>().unwrap(), values(0..rows));
    }
    file.close().unwrap();
    seen.refresh().unwrap();
    assert_eq!(seen.read::<u64>().unwrap(), values(0..rows));
}

#[test]
fn rows_of_a_growing_chunk_that_are_written_over_are_stored_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rewritten.h5");
    let (file, data) = live(&path, "gzip");
    append(&data, 0..10, 1);
    let before = chunk(&file, &data, 0).unwrap();
    assert_eq!(before.size, 8000);
    let bytes = std::fs::read(&path).unwrap();
    data.write_slice(3..5, &[7u64, 8]).unwrap();
    data.append(&values(10..11)).unwrap();
    data.flush().unwrap();
    let after = chunk(&file, &data, 0).unwrap();
    assert_ne!(after.file_offset, before.file_offset, "who reads the old chunk must not meet a mixture");
    let at = before.file_offset.unwrap() as usize;
    assert_eq!(std::fs::read(&path).unwrap()[at..at + 80], bytes[at..at + 80]);
    append(&data, 11..14, 1);
    let expected = [values(0..3), vec![7, 8], values(5..14)].concat();
    assert_eq!(data.read::<u64>().unwrap(), expected);
    data.resize(&[4]).unwrap();
    data.append(&values(4..6)).unwrap();
    data.flush().unwrap();
    data.append(&values(6..7)).unwrap();
    file.close().unwrap();
    let expected = [values(0..3), vec![7], values(4..7)].concat();
    assert_eq!(File::open(&path).unwrap().dataset("data").unwrap().read::<u64>().unwrap(), expected);
}

#[test]
fn a_dead_writer_leaves_chunks_that_the_next_one_goes_on_filling_and_a_repair_filters() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("dead.h5");
    let copy = directory.path().join("copy.h5");
    let (file, data) = live(&path, "gzip");
    append(&data, 0..1200, 1);
    let growing = chunk(&file, &data, 1).unwrap();
    std::fs::copy(&path, &copy).unwrap();
    let repaired = h5live::repair(&copy).unwrap();
    assert_eq!(repaired.after.open_state, h5live::FileOpenState::Closed);
    libhdf5_finds(&copy, 1200, 2);

    std::fs::copy(&path, &copy).unwrap();
    drop(file);
    let next = File::options().swmr_write().open(&copy).unwrap();
    let data = next.dataset("data").unwrap();
    append(&data, 1200..1203, 1);
    assert_eq!(chunk(&next, &data, 1).unwrap().file_offset, growing.file_offset);
    append(&data, 1203..2100, 100);
    next.close().unwrap();
    libhdf5_finds(&copy, 2100, 3);
}

#[test]
fn a_repair_says_what_it_could_not_read_and_filters_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("dead.h5"), directory.path().join("copy.h5"));
    let (file, data) = live(&path, "gzip");
    append(&data, 0..1200, 1);
    let damaged = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[1000]).deflate(1).create("z").unwrap();
    append(&damaged, 0..100, 1);
    let header = usize::try_from(damaged.id().0).unwrap();
    file.flush().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    assert_eq!(&bytes[header..header + 4], b"OHDR");
    bytes[header + 12] ^= 1;
    std::fs::write(&copy, bytes).unwrap();
    let repaired = h5live::repair(&copy).unwrap();
    assert_eq!(repaired.after.open_state, h5live::FileOpenState::Closed);
    let [left] = &*repaired.unrepaired else { panic!("{:?}", repaired.unrepaired) };
    assert!(left.contains("copy.h5") && left.contains("/z") && left.contains("checksum"), "{left}");
    libhdf5_finds(&copy, 1200, 2);
    assert!(h5live::repair(&copy).unwrap().unrepaired.is_empty(), "nothing to repair any more");
}
