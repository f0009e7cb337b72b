//! What a reader in one session sees of what another session writes.

use h5live::model::{Hyperslab, Selection, VirtualSource};
use h5live::{Dataset, File, UNLIMITED};
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

/// The name of an index, then dimensions, largest dimensions and those of a chunk of a dataset that has it.
type Indexed = (&'static str, &'static [u64], &'static [u64], &'static [u64]);

/// One dataset for each index that says where chunks are.
const SHAPES: [Indexed; 3] = [
    ("extensible array", &[64], &[UNLIMITED], &[4]),
    ("fixed array", &[64], &[64], &[4]),
    ("version 2 B-tree", &[8, 8], &[UNLIMITED; 2], &[2, 2]),
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

#[test]
fn a_chunk_that_is_rewritten_comes_to_be_elsewhere() {
    let single: (&str, &[u64], &[u64], &[u64]) = ("single chunk", &[64], &[64], &[64]);
    for (index, dims, max, chunk) in SHAPES.into_iter().chain([single]) {
        let Pair { writer, reader, _folder } = pair(|file| {
            let dataset = file.new_dataset::<u64>().shape(dims).max_shape(max).chunk(chunk).create("data").unwrap();
            dataset.write(&[1; 64]).unwrap();
            dataset
        });
        let places = || -> Vec<_> { reader.chunks().unwrap().iter().map(|chunk| chunk.offset).collect() };
        let before = places();
        writer.write(&[2; 64]).unwrap();
        // What has not been flushed is not seen, though it is in the file.
        assert_eq!(look(&reader), [1; 64], "{index}");
        writer.flush().unwrap();
        assert_eq!(look(&reader), [2; 64], "{index}");
        assert!(places().iter().all(|place| !before.contains(place)), "{index}");
    }
}

#[test]
fn a_reader_finds_what_came_into_a_heap_that_it_has_read() {
    let Pair { writer, reader, _folder } =
        pair(|file| file.new_dataset::<String>().growing(&[]).chunk(&[4]).create("data").unwrap());
    let text = |n: u64| format!("number {n}");
    for n in 0..50 {
        writer.append(&[text(n)]).unwrap();
        writer.flush().unwrap();
        reader.refresh().unwrap();
        assert_eq!(reader.read::<String>().unwrap(), (0..=n).map(text).collect::<Vec<_>>());
    }
    // Nothing of the header changes.
    writer.write_slice(7..9, &["seven", "eight"].map(String::from)).unwrap();
    writer.flush().unwrap();
    reader.refresh().unwrap();
    assert_eq!(reader.read_slice::<String>(6..10).unwrap(), [&text(6), "seven", "eight", &text(9)]);
}

#[test]
fn what_nobody_wrote_of_a_chunk_is_the_fill_value() {
    let Pair { writer, reader, _folder } = pair(|file| {
        let dataset = file.new_dataset::<u64>().shape(&[1 << 20]).max_shape(&[UNLIMITED]).chunk(&[8]);
        dataset.create("data").unwrap()
    });
    // All over it, so that blocks of more than a page of the index are changed by and by.
    for n in 1..300u64 {
        let at = n * 7919 % (1 << 17) * 8;
        writer.write_slice(at + 3..at + 4, &[n]).unwrap();
        writer.flush().unwrap();
        reader.refresh().unwrap();
        assert_eq!(reader.read_slice::<u64>(at..at + 8).unwrap(), [0, 0, 0, n, 0, 0, 0, 0], "element {at}");
    }
}

#[test]
fn a_virtual_dataset_shows_at_once_what_its_sources_hold() {
    let folder = tempfile::tempdir().unwrap();
    let source = File::create(folder.path().join("source.h5")).unwrap();
    let rows = source.new_dataset::<u64>().growing(&[]).chunk(&[4]).create("rows").unwrap();
    source.start_swmr().unwrap();
    let mut all = Hyperslab::block(&[0], &[1]);
    all.block[0] = UNLIMITED;
    let all = Selection::Hyperslab(all);
    let piece = VirtualSource { file: "source.h5".into(), dataset: "/rows".into(), source: all.clone(), target: all };
    let whole = File::create(folder.path().join("whole.h5")).unwrap();
    whole.new_dataset::<u64>().shape(&[0]).max_shape(&[UNLIMITED]).sources(vec![piece]).create("whole").unwrap();
    whole.close().unwrap();
    let file = File::options().swmr_read().open(folder.path().join("whole.h5")).unwrap();
    let whole = file.dataset("whole").unwrap();
    for n in 0..20u64 {
        rows.append(&[n]).unwrap();
        rows.flush().unwrap();
        assert!(whole.refresh().unwrap());
        assert_eq!(whole.read::<u64>().unwrap(), (0..=n).collect::<Vec<_>>());
    }
}
