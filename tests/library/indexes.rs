//! Chunk indexes that h5live and libhdf5 (through h5py) change in turn.
//!
//! Needs the Python that `H5LIVE_PYTHON` names, with h5py; without it each test says that it is skipped.

use std::path::Path;
use std::process::Command;

use h5live::{Dataset, File, LibVer, Selection, UNLIMITED};
use h5live_checker::file::check_path;

/// A dataset of `tests/python/indexes.py`.
struct Case {
    name: &'static str,
    chunk: &'static [u64],
    max: &'static [u64],
    /// The extents after each step.
    extents: [&'static [u64]; 4],
    compressed: bool,
}

const U: u64 = UNLIMITED;

const CASES: [Case; 6] = [
    Case { name: "line", chunk: &[3], max: &[U], extents: [&[400], &[1000], &[1300], &[5000]], compressed: false },
    Case {
        name: "plane",
        chunk: &[2, 2],
        max: &[U, U],
        extents: [&[60, 100], &[140, 150], &[170, 200], &[200, 210]],
        compressed: false,
    },
    Case {
        name: "packed",
        chunk: &[3, 2],
        max: &[U, U],
        extents: [&[30, 40], &[90, 100], &[120, 130], &[150, 140]],
        compressed: true,
    },
    Case {
        name: "room",
        chunk: &[2, 2, 2],
        max: &[U, U, U],
        extents: [&[10, 10, 10], &[16, 20, 18], &[20, 22, 24], &[26, 25, 24]],
        compressed: true,
    },
    Case {
        name: "bounded",
        chunk: &[2, 2, 5],
        max: &[U, U, 10],
        extents: [&[10, 10, 10], &[16, 20, 10], &[20, 22, 10], &[40, 25, 10]],
        compressed: false,
    },
    Case {
        name: "four",
        chunk: &[1, 2, 2, 3],
        max: &[U, U, 20, U],
        extents: [&[3, 4, 4, 6], &[6, 8, 8, 9], &[8, 9, 10, 13], &[9, 10, 11, 14]],
        compressed: true,
    },
];

/// The rows `first..last` of an extent: each element says where it is.
fn rule(first: u64, last: u64, extent: &[u64]) -> Vec<i32> {
    let mut values = Vec::new();
    let rest: u64 = extent[1..].iter().product();
    for row in first..last {
        for n in 0..rest {
            let mut left = n;
            let mut value = row;
            for (dim, factor) in [(1, 1009), (2, 31), (3, 7)].into_iter().take(extent.len() - 1).rev() {
                value += left % extent[dim] * factor;
                left /= extent[dim];
            }
            values.push(value as i32 + 1);
        }
    }
    values
}

/// Writes all of a dataset, blocks of rows in another order than that of the file.
fn fill(dataset: &Dataset, case: &Case, step: usize) {
    let extent = case.extents[step - 1];
    dataset.resize(extent).unwrap();
    let blocks = extent[0].div_ceil(case.chunk[0]);
    let stride = [7, 11, 13, 17].into_iter().find(|stride| !blocks.is_multiple_of(*stride)).unwrap();
    for block in (0..blocks).map(|n| n * stride % blocks) {
        let first = block * case.chunk[0];
        let last = (first + case.chunk[0]).min(extent[0]);
        let mut start = vec![0; extent.len()];
        let mut count = extent.to_vec();
        (start[0], count[0]) = (first, last - first);
        dataset.write_slice(Selection::block(&start, &count), &rule(first, last, extent)).unwrap();
    }
}

fn check(file: &File, step: usize) {
    for case in &CASES {
        let dataset = file.dataset(case.name).unwrap();
        let extent = case.extents[step - 1];
        assert_eq!(dataset.shape().unwrap(), extent, "{}", case.name);
        assert!(dataset.read::<i32>().unwrap() == rule(0, extent[0], extent), "{}", case.name);
        let chunks: u64 = extent.iter().zip(case.chunk).map(|(dim, size)| dim.div_ceil(*size)).product();
        assert_eq!(dataset.stored_chunks().unwrap().len() as u64, chunks, "{}", case.name);
    }
}

fn create(path: &Path, profile: LibVer) {
    let file = File::options().create().libver(profile).open(path).unwrap();
    for case in &CASES {
        let zeros = vec![0; case.chunk.len()];
        let builder = file.new_dataset::<i32>().shape(&zeros).max_shape(case.max).chunk_shape(case.chunk);
        let builder = if case.compressed { builder.shuffle().deflate(1) } else { builder };
        fill(&builder.create(case.name).unwrap(), case, 1);
    }
    check(&file, 1);
    file.close().unwrap();
    check_path(path).unwrap().expect_clean();
}

fn extend(path: &Path, step: usize) {
    let file = File::options().write().open(path).unwrap();
    CASES.iter().for_each(|case| fill(&file.dataset(case.name).unwrap(), case, step));
    check(&file, step);
    file.close().unwrap();
    check_path(path).unwrap().expect_clean();
}

fn shrink(path: &Path, step: usize) {
    let file = File::options().write().open(path).unwrap();
    for case in &CASES {
        file.dataset(case.name).unwrap().resize(case.extents[step - 1]).unwrap();
    }
    check(&file, step);
    file.close().unwrap();
    check_path(path).unwrap().expect_clean();
}

/// Runs `tests/python/indexes.py`; `None`, with a line that says so, where there is no Python for it.
fn python(args: &[&str]) -> Option<()> {
    let python = h5live_test_support::python()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/indexes.py");
    let status = Command::new(python).arg(script).args(args).status().expect("Python starts");
    assert!(status.success(), "indexes.py {args:?}");
    Some(())
}

fn h5py_goes_on(profile: LibVer) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours.h5");
    let name = path.to_str().unwrap();
    create(&path, profile);
    let Some(()) = python(&["check", name, "1"]) else { return };
    python(&["extend", name, "2"]);
    extend(&path, 3);
    python(&["check", name, "3"]);
    shrink(&path, 2);
    python(&["check", name, "2"]);
    python(&["extend", name, "4"]);
    check(&File::open(&path).unwrap(), 4);
    python(&["shrink", name, "1"]);
    extend(&path, 2);
    shrink(&path, 1);
    python(&["extend", name, "3"]);
    check(&File::open(&path).unwrap(), 3);
    check_path(&path).unwrap().expect_clean();
}

#[test]
fn h5py_goes_on_with_what_we_began() {
    h5py_goes_on(LibVer::default());
}

#[test]
fn h5py_goes_on_with_what_we_began_as_ever() {
    h5py_goes_on(LibVer::Earliest);
}

#[test]
fn h5py_goes_on_with_what_we_began_as_since_1_8() {
    h5py_goes_on(LibVer::V18);
}

fn go_on_with_h5py(bounds: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.h5");
    let name = path.to_str().unwrap();
    let Some(()) = python(&["create", name, "1", bounds, "latest"]) else { return };
    extend(&path, 2);
    python(&["extend", name, "3", bounds, "latest"]);
    shrink(&path, 1);
    python(&["check", name, "1"]);
    extend(&path, 4);
    python(&["shrink", name, "2"]);
    extend(&path, 3);
    python(&["check", name, "3"]);
}

#[test]
fn we_go_on_with_what_h5py_began() {
    go_on_with_h5py("v110");
}

#[test]
fn we_go_on_with_what_h5py_began_as_ever() {
    go_on_with_h5py("earliest");
}

#[test]
fn we_go_on_with_what_h5py_began_as_since_1_8() {
    go_on_with_h5py("v108");
}
