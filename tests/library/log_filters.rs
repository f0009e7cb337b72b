//! Filters of entries in a log: what is stored is smaller, and read as it was written.

use std::path::Path;

use h5live::model::Url;
use h5live::{EntryFilter, File, Location, Log, Selection};

/// Sides of the dataset: 8 MiB in all.
const SHAPE: [u64; 2] = [1024, 1024];

fn location(path: &Path) -> Location {
    Url::literal("log", path.to_str().unwrap()).into()
}

fn value(row: u64, column: u64) -> f64 {
    ((row / 3 + column / 5) % 17) as f64
}

fn values(rows: std::ops::Range<u64>, columns: std::ops::Range<u64>) -> Vec<f64> {
    rows.flat_map(|row| columns.clone().map(move |column| value(row, column))).collect()
}

/// Writes the dataset in one piece, and then a block of it anew. Returns the bytes of the file.
fn write(path: &Path, options: Log, deflated: bool) -> u64 {
    let file = File::options().create().with(options).open(location(path)).unwrap();
    let builder = file.new_dataset::<f64>().shape(&SHAPE).chunk_shape(&[256, 128]);
    let data = if deflated { builder.deflate(4) } else { builder }.create("data").unwrap();
    data.write(&values(0..SHAPE[0], 0..SHAPE[1])).unwrap();
    data.write_slice(Selection::block(&[100, 200], &[300, 400]), &vec![-1.0; 300 * 400]).unwrap();
    // A session sees what it has written itself.
    check(&file);
    file.close().unwrap();
    path.metadata().unwrap().len()
}

fn check(file: &File) {
    let data = file.dataset("data").unwrap();
    let mut wanted = values(0..SHAPE[0], 0..SHAPE[1]);
    (100..400).for_each(|row| wanted[row * 1024 + 200..row * 1024 + 600].fill(-1.0));
    assert!(data.read::<f64>().unwrap() == wanted);
    let part: Vec<f64> = data.read_slice(Selection::block(&[399, 590], &[2, 20])).unwrap();
    assert_eq!(part[..20], [vec![-1.0; 10], values(399..400, 600..610)].concat());
    assert_eq!(part[20..], values(400..401, 590..610));
}

#[test]
fn entries_go_through_filters_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let log = |filter| Log { filter, max_log_size: 1 << 20, ..Log::default() };
    let plain = write(&path, log(EntryFilter::Never), true);
    assert!(plain > 8 << 20);
    for (filter, deflated) in [
        (EntryFilter::OfDataset, true),
        (EntryFilter::Deflate, false),
        (EntryFilter::Lz4, false),
        (EntryFilter::Zstd, true),
    ] {
        let stored = write(&path, log(filter), deflated);
        assert!(stored < plain / 4, "{filter:?}: {stored} bytes of {plain}");
        check(&File::open(location(&path)).unwrap());
    }
    // Without filters of its own, a dataset has none.
    assert!(write(&path, log(EntryFilter::OfDataset), false) > 8 << 20);
}

#[test]
fn what_does_not_become_smaller_is_stored_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("noise.h5");
    let noise: Vec<u64> =
        (0..100_000u64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17) ^ n << 40).collect();
    let options = Log { filter: EntryFilter::Lz4, ..Log::default() };
    let file = File::options().create().with(options).open(location(&path)).unwrap();
    file.new_dataset::<u64>().shape(&[100_000]).create("noise").unwrap().write(&noise).unwrap();
    file.close().unwrap();
    let file = File::open(location(&path)).unwrap();
    assert!(file.dataset("noise").unwrap().read::<u64>().unwrap() == noise);
}
