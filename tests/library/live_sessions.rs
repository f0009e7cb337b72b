//! What a reader in one session sees of what another session writes.

use h5live::model::{Hyperslab, Selection, VirtualSource};
use h5live::{Dataset, File, SourceState, UNLIMITED};
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
            let dataset = file.new_dataset::<u64>().shape(dims).max_shape(max).chunk_shape(chunk);
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
            let dataset =
                file.new_dataset::<u64>().shape(dims).max_shape(max).chunk_shape(chunk).create("data").unwrap();
            dataset.write(&[1; 64]).unwrap();
            dataset
        });
        let places = || -> Vec<_> { reader.stored_chunks().unwrap().iter().map(|chunk| chunk.file_offset).collect() };
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
        pair(|file| file.new_dataset::<String>().unlimited_rows(&[]).chunk_shape(&[4]).create("data").unwrap());
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
        let dataset = file.new_dataset::<u64>().shape(&[1 << 20]).max_shape(&[UNLIMITED]).chunk_shape(&[8]);
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

/// A file that is open to write, with a dataset of which a virtual dataset in another file, which is closed, shows all.
struct Sources {
    source: File,
    rows: Dataset,
    folder: TempDir,
}

fn sources() -> Sources {
    let folder = tempfile::tempdir().unwrap();
    let mut all = Hyperslab::block(&[0], &[1]);
    all.block[0] = UNLIMITED;
    let all = Selection::Hyperslab(all);
    let piece = VirtualSource { file: "source.h5".into(), dataset: "/rows".into(), source: all.clone(), target: all };
    let whole = File::create(folder.path().join("whole.h5")).unwrap();
    whole
        .new_dataset::<u64>()
        .shape(&[0])
        .max_shape(&[UNLIMITED])
        .virtual_sources(vec![piece])
        .create("whole")
        .unwrap();
    whole.close().unwrap();
    let source = File::create(folder.path().join("source.h5")).unwrap();
    let rows = source.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[4]).create("rows").unwrap();
    Sources { source, rows, folder }
}

#[test]
fn a_virtual_dataset_shows_at_once_what_its_sources_hold() {
    let Sources { source, rows, folder } = sources();
    source.start_swmr().unwrap();
    let file = File::options().swmr_read().open(folder.path().join("whole.h5")).unwrap();
    let whole = file.dataset("whole").unwrap();
    for n in 0..20u64 {
        rows.append(&[n]).unwrap();
        rows.flush().unwrap();
        assert!(whole.refresh().unwrap());
        assert_eq!(whole.read::<u64>().unwrap(), (0..=n).collect::<Vec<_>>());
    }
}

#[test]
fn a_virtual_dataset_in_a_closed_file_is_followed_until_its_sources_are_closed() {
    let Sources { source, rows, folder } = sources();
    let path = folder.path().join("whole.h5");
    // Its file cannot be read by others yet. Who follows waits for its rows; for others, that is an error.
    let early = File::open(&path).unwrap().dataset("whole").unwrap();
    assert!(early.shape().unwrap_err().is_in_use() && early.read::<u64>().unwrap_err().is_in_use());
    assert_eq!(early.source_states().unwrap(), vec![SourceState::InExclusiveUse]);
    assert_eq!(early.clone().ignore_busy_sources_in_extent().shape().unwrap(), [0]);
    assert!(early.shape().is_err(), "what one who follows knows does not count");
    source.start_swmr().unwrap();
    rows.append(&[0, 1, 2]).unwrap();
    rows.flush().unwrap();
    assert!(early.refresh().unwrap());
    for file in [File::open(&path).unwrap(), File::options().swmr_read().open(&path).unwrap(), early.file().clone()] {
        let whole = file.dataset("whole").unwrap();
        assert_eq!((whole.shape().unwrap(), whole.read::<u64>().unwrap()), (vec![3], vec![0, 1, 2]));
        assert_eq!(whole.source_states().unwrap(), [SourceState::Live]);
        assert!(whole.is_live().unwrap() && !file.is_live().unwrap());
    }
    let (seen_count, seen_counts) = std::sync::mpsc::channel();
    let files = [File::options().swmr_read(), File::options(), File::options().swmr_read()];
    let follow = files.map(|options| options.open(&path).unwrap().dataset("whole").unwrap().follow::<u64>());
    let follow = follow.into_iter().zip([false, false, true]);
    let followers: Vec<_> = follow
        .map(|(follow, restless)| {
            let mut follow = if restless { follow.busy_poll() } else { follow };
            let seen_count = seen_count.clone();
            std::thread::spawn(move || {
                let mut seen = Vec::new();
                for batch in follow.by_ref() {
                    seen.extend(batch.unwrap());
                    seen_count.send(seen.len()).unwrap();
                }
                seen
            })
        })
        .collect();
    drop(seen_count);
    // Each batch is written when all have seen the one before, and wait.
    for n in 3..30 {
        let mut have = 0;
        while have < followers.len() {
            have += usize::from(seen_counts.recv().expect("they follow as long as the source is written") == n);
        }
        rows.append(&[n as u64]).unwrap();
        rows.flush().unwrap();
    }
    rows.append(&[30]).unwrap();
    drop(rows);
    source.close().unwrap();
    for follower in followers {
        assert_eq!(follower.join().unwrap(), (0..=30).collect::<Vec<u64>>());
    }
    assert_eq!(early.source_states().unwrap(), [SourceState::AtRest]);
    assert!(!early.is_live().unwrap());
}

#[test]
fn a_follower_waits_for_rows_of_a_source_that_cannot_be_read_yet() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let piece = |file: &str, n: u64| VirtualSource {
        file: file.into(),
        dataset: "/rows".into(),
        source: Selection::All,
        target: Selection::block(&[2 * n], &[2]),
    };
    for (name, values) in [("first.h5", [1u64, 2]), ("second.h5", [3, 4])] {
        File::create(at(name)).unwrap().new_dataset::<u64>().create_with_data("rows", &values).unwrap();
    }
    let whole = File::create(at("whole.h5")).unwrap();
    let sources = vec![piece("first.h5", 0), piece("second.h5", 1)];
    whole.new_dataset::<u64>().shape(&[4]).virtual_sources(sources).create("whole").unwrap();
    whole.close().unwrap();
    let held = File::options().write().open(at("second.h5")).unwrap();
    let whole = File::open(at("whole.h5")).unwrap().dataset("whole").unwrap();
    assert!(whole.read::<u64>().unwrap_err().is_in_use());
    assert_eq!(whole.read_slice::<u64>(..2).unwrap(), [1, 2]);
    let mut follower = whole.follow::<u64>();
    assert_eq!(follower.next().unwrap().unwrap(), [1, 2]);
    let mut hurried = whole.follow::<u64>().start_row(2).timeout(std::time::Duration::from_millis(1));
    assert!(hurried.next().is_none(), "the time is over");
    let (released, release) = std::sync::mpsc::channel();
    let follower = std::thread::spawn(move || {
        released.send(()).unwrap();
        // It may look for fewer rows than it wants when the file is released, and gets the others next.
        let mut rows = follower.next().unwrap().unwrap();
        while rows.len() < 2 {
            rows.extend(follower.next().unwrap().unwrap());
        }
        rows
    });
    release.recv().unwrap();
    held.close().unwrap();
    assert_eq!(follower.join().unwrap(), [3, 4]);
}

#[test]
fn the_states_of_sources_are_those_of_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let piece = |file: &str, dataset: &str, n: u64| VirtualSource {
        file: file.into(),
        dataset: dataset.into(),
        source: Selection::All,
        target: Selection::block(&[n], &[1]),
    };
    let one = |name: &str| {
        let file = File::create(at(name)).unwrap();
        file.new_dataset::<u64>().create_with_data("rows", &[7]).unwrap();
        file
    };
    one("closed.h5").close().unwrap();
    let live = one("live.h5");
    live.start_swmr().unwrap();
    let held = one("held.h5");
    std::fs::write(at("damaged.h5"), [1; 4096]).unwrap();
    let whole = File::create(at("whole.h5")).unwrap();
    let files = ["closed.h5", "live.h5", "held.h5", "missing.h5", "damaged.h5"];
    let mut sources: Vec<_> = files.iter().zip(0..).map(|(name, n)| piece(name, "/rows", n)).collect();
    sources.extend([piece("closed.h5", "/none", 5), piece("live.h5", "/none", 6)]);
    let numbered = piece("live.h5", "/run %b", 7);
    let builder = whole.new_dataset::<u64>().shape(&[8]).virtual_sources([sources, vec![numbered]].concat());
    builder.create("whole").unwrap();
    whole.new_dataset::<u64>().create_with_data("plain", &[1]).unwrap();
    whole.close().unwrap();
    let whole = File::open(at("whole.h5")).unwrap();
    assert_eq!(whole.dataset("plain").unwrap().source_states().unwrap(), []);
    use SourceState::{AtRest, InExclusiveUse, Live, Missing, Unreadable};
    let states = whole.dataset("whole").unwrap().source_states().unwrap();
    // What is not in a file that is written may come to be there.
    assert_eq!(states, [AtRest, Live, InExclusiveUse, Missing, Unreadable, Missing, Live, Live]);
    drop((live, held));
}
