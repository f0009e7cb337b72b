//! What a reader in one session sees of what another session writes.

use h5live::{Dataset, File};
use tempfile::TempDir;

/// A file with a dataset, open to write and to follow.
struct Pair {
    writer: Dataset,
    reader: Dataset,
    _folder: TempDir,
}

fn pair(make: impl Fn(&File) -> Dataset) -> Pair {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.h5");
    let file = File::create(&path).unwrap();
    let writer = make(&file);
    file.start_swmr().unwrap();
    let reader = File::options().swmr_read().open(&path).unwrap().dataset("data").unwrap();
    Pair { writer, reader, _folder: folder }
}

fn look(reader: &Dataset) -> Vec<u64> {
    reader.refresh().unwrap();
    reader.read().unwrap()
}

/// One dataset for each index that says where chunks are.
const SHAPES: [(&str, &[u64], &[u64], &[u64]); 3] = [
    ("extensible array", &[64], &[h5live::UNLIMITED], &[4]),
    ("fixed array", &[64], &[64], &[4]),
    ("version 2 B-tree", &[8, 8], &[h5live::UNLIMITED; 2], &[2, 2]),
];

#[test]
fn a_reader_sees_chunks_that_come_and_move_without_the_header() {
    for (index, dims, max, chunk) in SHAPES {
        let Pair { writer, reader, _folder } = pair(|file| {
            let dataset = file.new_dataset::<u64>().shape(dims).max_shape(max).chunk(chunk);
            let dataset = dataset.deflate(1).create("data").unwrap();
            dataset.write(&[1; 64]).unwrap();
            dataset
        });
        assert_eq!(look(&reader), [1; 64], "{index}");
        for version in 2..6 {
            writer.write(&[version; 64]).unwrap();
            writer.flush().unwrap();
            assert_eq!(look(&reader), [version; 64], "{index}");
        }
    }
}
