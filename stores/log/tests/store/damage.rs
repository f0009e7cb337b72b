//! A damaged log is an error, or the values that were written, whatever part of an entry is read: never other values.

use std::path::Path;
use std::sync::Arc;

use h5live_log::{Log, LogOpenRequest, LogStore};
use h5live_model::{
    AttributeData, ByteOrder, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Dataspace, Datatype, Layout,
    LinkTarget, Mode, Name, NewObject, ObjectId, PublishLevel, Shape, Sign, Store, UNLIMITED,
};
use h5live_native::{MemoryStorage, NativeFile, OpenOptions};

/// Sides of the datasets, which are one chunk each.
const SIDES: [u64; 2] = [40, 30];
const NAMES: [&str; 3] = ["x", "y", "z"];

fn native(path: &Path, mode: Mode) -> Arc<dyn Store> {
    Arc::new(NativeFile::open(path, &OpenOptions { mode, ..OpenOptions::default() }).unwrap())
}

fn open(path: &Path, mode: Mode) -> Result<LogStore, h5live_model::Error> {
    LogStore::open_or_create(native(path, mode), None, LogOpenRequest::new(Log::default()))
}

fn open_bytes(bytes: Vec<u8>) -> Result<LogStore, h5live_model::Error> {
    let file = NativeFile::open_storage(Arc::new(MemoryStorage::from(bytes)), &OpenOptions::default())?;
    LogStore::open_or_create(Arc::new(file), None, LogOpenRequest::new(Log::default()))
}

fn find(store: &dyn Store, group: ObjectId, name: &str) -> ObjectId {
    match store.link(group, &Name::from(name)).unwrap().unwrap_or_else(|| panic!("no {name}")).target {
        LinkTarget::Hard(id) => id,
        other => panic!("{other:?}"),
    }
}

fn group_of_log(store: &dyn Store) -> ObjectId {
    find(store, store.session().root, "_LOG")
}

fn dataset(store: &dyn Store, name: &str) -> Result<Arc<dyn ChunkStore>, h5live_model::Error> {
    store.dataset(find(store, store.session().root, name))
}

/// The value of an element of the dataset with a number.
fn value(number: usize, row: u64, column: u64) -> u16 {
    (number as u64 * 10_000 + row * SIDES[1] + column) as u16 + 1
}

fn bytes_of(number: usize, (rows, columns): (std::ops::Range<u64>, std::ops::Range<u64>)) -> Vec<u8> {
    let row = |row| columns.clone().flat_map(move |column| value(number, row, column).to_le_bytes());
    rows.flat_map(row).collect()
}

/// Makes three datasets, each of some boxes and some points.
fn write_log(path: &Path) {
    let store = open(path, Mode::CreateNew).unwrap();
    for (number, name) in NAMES.iter().enumerate() {
        let spec = DatasetSpec {
            datatype: Datatype::integer(2, ByteOrder::Little, Sign::Unsigned),
            dataspace: Dataspace::Simple(Shape::with_max(&SIDES, &[UNLIMITED, SIDES[1]]).unwrap()),
            layout: Layout::Chunked(SIDES.into()),
            ..DatasetSpec::default()
        };
        let (name, spec) = (Name::from(*name), spec.into());
        let new = NewObject::linked(store.session().root, &name, &spec);
        let data = store.dataset(store.writer().unwrap().create(&new).unwrap()).unwrap();
        let put = |start: [u64; 2], count: [u64; 2]| {
            let bytes = bytes_of(number, (start[0]..start[0] + count[0], start[1]..start[1] + count[1]));
            let coord = ChunkCoord::origin(2);
            let writes = [ChunkWrite::ElementBlock { coord: &coord, start: &start, count: &count, bytes: &bytes }];
            data.write(&ChunkBatch { writes: &writes, ..ChunkBatch::default() }).unwrap();
        };
        put([0, 0], [20, 30]);
        put([20, 0], [20, 11]);
        (20..40).for_each(|row| put([row, 11], [1, 19]));
        (0..40).for_each(|row| put([row, row % 30], [1, 1]));
        data.publish(PublishLevel::Visible).unwrap();
    }
    store.close().unwrap();
}

/// A box of a dataset: an error, or the bytes.
fn read(
    data: &dyn ChunkStore,
    (rows, columns): (std::ops::Range<u64>, std::ops::Range<u64>),
) -> Result<Vec<u8>, h5live_model::Error> {
    let chunk = data.locate(&ChunkCoord::origin(2))?.expect("the chunk is written");
    let count = [rows.end - rows.start, columns.end - columns.start];
    let mut bytes = vec![0; 2 * (count[0] * count[1]) as usize];
    data.read_block(&chunk, &[rows.start, columns.start], &count, &mut bytes)?;
    Ok(bytes)
}

/// The error of reading a part of a dataset that way; nothing, if the values are the right ones.
fn error_of(store: &LogStore, number: usize, part: usize) -> Option<h5live_model::Error> {
    let data = match dataset(store, NAMES[number]) {
        Ok(data) => data,
        Err(error) => return Some(error),
    };
    let boxes = match part {
        // All of it, as `copy` and `dump --raw` read it.
        0 => vec![(0..40, 0..30)],
        // Row by row, and column by column, as `dump` reads it.
        1 => (0..40).map(|row| (row..row + 1, 0..30)).collect(),
        2 => (0..30).map(|column| (0..40, column..column + 1)).collect(),
        // Element by element.
        3 => (0..40).flat_map(|row| (0..30).map(move |column| (row..row + 1, column..column + 1))).collect(),
        _ => vec![(1..39, 1..29)],
    };
    for wanted in boxes {
        match read(&*data, wanted.clone()) {
            Ok(found) => assert_eq!(found, bytes_of(number, wanted.clone()), "{} {wanted:?}", NAMES[number]),
            Err(error) => return Some(error),
        }
    }
    None
}

/// Where the first log dataset has its entries in the file, and how many bytes they have.
fn entries_in(path: &Path) -> std::ops::Range<usize> {
    let store = native(path, Mode::Read);
    let log = store.dataset(find(&*store, group_of_log(&*store), "log_1")).unwrap();
    let begin = log.locate(&ChunkCoord::origin(1)).unwrap().unwrap().file_offset.unwrap() as usize;
    let end = store.attribute(log.id(), &Name::from("end")).unwrap().unwrap();
    begin..begin + u64::from_le_bytes(end.value.try_into().unwrap()) as usize
}

#[test]
fn a_flipped_byte_of_an_entry_is_an_error_or_changes_nothing_that_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    write_log(&path);
    let sound = std::fs::read(&path).unwrap();
    let entries = entries_in(&path);
    let (mut found, mut flips) = (0, 0);
    for (flip, at) in entries.step_by(307).enumerate() {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (flip % 8);
        // A new session for each way of reading: a check that was made is remembered.
        for part in 0..5 {
            let store = open_bytes(bytes.clone()).unwrap();
            let errors = (0..NAMES.len()).filter_map(|number| error_of(&store, number, part)).count();
            assert!(errors <= 1, "byte {at}: {errors} datasets");
            found += errors;
        }
        flips += 1;
    }
    println!("{flips} flipped bytes, read in 5 ways: {found} errors");
    assert!(flips > 40 && found > 2 * flips, "{found} of {flips}");
}

/// Sets a number of the skip list.
fn set_skip(path: &Path, number: usize, value: u64) {
    let store = native(path, Mode::Write);
    let list = store.dataset(find(&*store, group_of_log(&*store), "skip_list")).unwrap();
    let spec = list.spec().unwrap();
    let chunk = list.locate(&ChunkCoord::origin(1)).unwrap().unwrap();
    let mut bytes = vec![0; spec.chunk_bytes_or_total().unwrap() as usize];
    list.read(&chunk, 0, &mut bytes).unwrap();
    bytes[8 * number..8 * number + 8].copy_from_slice(&value.to_le_bytes());
    let coord = ChunkCoord::origin(1);
    let writes = [ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: &bytes }];
    list.write(&ChunkBatch { writes: &writes, ..ChunkBatch::default() }).unwrap();
    store.close().unwrap();
}

fn remove_attribute(path: &Path, find_object: impl Fn(&dyn Store) -> ObjectId, name: &str) {
    let store = native(path, Mode::Write);
    store.writer().unwrap().remove_attribute(find_object(&*store), &Name::from(name)).unwrap();
    store.close().unwrap();
}

/// The table of the log, whose checksum is not there: earlier versions wrote none.
fn table_of(store: &dyn Store) -> ObjectId {
    find(store, group_of_log(store), "index_table")
}

#[test]
fn a_table_that_leads_to_entries_of_another_dataset_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let sound = folder.path().join("sound.h5");
    write_log(&sound);
    let skips: Vec<u64> = {
        let store = native(&sound, Mode::Read);
        let list = store.dataset(find(&*store, group_of_log(&*store), "skip_list")).unwrap();
        let chunk = list.locate(&ChunkCoord::origin(1)).unwrap().unwrap();
        let mut bytes = vec![0; 48];
        list.read(&chunk, 0, &mut bytes).unwrap();
        bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
    };
    // Where entries of `y` begin: where those of `z` do, at the beginning, at the second entry of its own. Its count.
    let changes = [(2, skips[4]), (2, 0), (3, skips[3] - 1), (3, 0), (5, 1), (1, skips[1] + skips[3])];
    for has_checksum in [true, false] {
        for (at, value) in changes {
            let path = folder.path().join("run.h5");
            std::fs::copy(&sound, &path).unwrap();
            set_skip(&path, at, value);
            if !has_checksum {
                remove_attribute(&path, table_of, "checksum");
            }
            let text = match open(&path, Mode::Read) {
                Err(error) => error.to_string(),
                Ok(store) => {
                    let errors: Vec<_> = (0..3).filter_map(|number| error_of(&store, number, 0)).collect();
                    errors.first().unwrap_or_else(|| panic!("{at} {value}: nothing is found")).to_string()
                }
            };
            assert!(text.contains("the index table of the log is damaged"), "{at} {value}: {text}");
        }
    }
}

#[test]
fn a_log_without_its_group_its_layout_or_the_number_of_a_dataset_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let text = |path: &Path| match open(path, Mode::Read).map(|store| dataset(&store, "x").map(drop)) {
        Err(error) | Ok(Err(error)) => error.to_string(),
        Ok(Ok(())) => panic!("nothing is found"),
    };
    type FindObject = fn(&dyn Store) -> ObjectId;
    let attributes: [(&str, FindObject); 4] = [
        ("layout_version", group_of_log),
        ("log_datasets", group_of_log),
        ("datasets", group_of_log),
        ("_log_id", |store| find(store, store.session().root, "x")),
    ];
    for (name, object) in attributes {
        write_log(&path);
        remove_attribute(&path, object, name);
        assert!(text(&path).contains("the log is damaged: it has no"), "{name}: {}", text(&path));
        let is_claimed = h5live_log::LogStore::is_log_file(&*native(&path, Mode::Read)).unwrap();
        assert!(is_claimed, "{name}: the path still leads to a log");
        std::fs::remove_file(&path).unwrap();
    }
    write_log(&path);
    let store = native(&path, Mode::Write);
    store.writer().unwrap().remove_link(store.session().root, &Name::from("_LOG")).unwrap();
    store.close().unwrap();
    drop(store);
    assert!(text(&path).contains("it has no group \"_LOG\""), "{}", text(&path));
    assert!(h5live_log::LogStore::is_log_file(&*native(&path, Mode::Read)).unwrap());
    let made = open(&path, Mode::Write).map(drop).expect_err("no new log is made over what is left");
    assert!(made.to_string().contains("it has no group"), "{made}");
}

/// A file of an earlier version, whose root group does not say that it has a log.
#[test]
fn a_file_without_the_mark_is_a_log_by_what_is_in_its_group() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    write_log(&path);
    remove_attribute(&path, |store| store.session().root, "_log_layout");
    assert!(h5live_log::LogStore::is_log_file(&*native(&path, Mode::Read)).unwrap());
    let store = open(&path, Mode::Read).unwrap();
    assert!(error_of(&store, 0, 0).is_none());
    drop(store);
    open(&path, Mode::Write).unwrap().close().unwrap();
    let marked = native(&path, Mode::Read);
    assert!(marked.attribute(marked.session().root, &Name::from("_log_layout")).unwrap().is_some());
    drop(marked);
    remove_attribute(&path, |store| store.session().root, "_log_layout");
    remove_attribute(&path, group_of_log, "layout_version");
    assert!(h5live_log::LogStore::is_log_file(&*native(&path, Mode::Read)).unwrap());
}

fn attribute(name: &str) -> AttributeData {
    AttributeData {
        name: Name::from(name),
        datatype: Datatype::integer(8, ByteOrder::Little, Sign::Signed),
        committed_datatype: None,
        dataspace: Dataspace::Scalar,
        value: vec![0; 8],
        creation_order: None,
    }
}

/// A user's group and attribute of the names are not taken for those of a log.
#[test]
fn a_group_of_a_user_is_no_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let store = native(&path, Mode::CreateNew);
    let writer = store.writer().unwrap();
    let group = writer
        .create(&NewObject::linked(store.session().root, &Name::from("_LOG"), &h5live_model::ObjectSpec::group()))
        .unwrap();
    writer.set_attribute(group, &attribute("mine")).unwrap();
    store.close().unwrap();
    drop(store);
    assert!(!h5live_log::LogStore::is_log_file(&*native(&path, Mode::Read)).unwrap());
}

/// What undoes deflate, as far as a test needs it: the bytes come back as they are, one less each.
#[derive(Debug)]
struct Minus;

impl h5live_model::FilterEngine for Minus {
    fn unfilter(
        &self,
        _: &[h5live_model::FilterSpec],
        _: u32,
        bytes: Vec<u8>,
        _: u64,
    ) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(bytes.into_iter().map(|byte| byte - 1).collect())
    }
}

/// Another program has added a dataset with a filter to the file.
#[test]
fn a_filtered_dataset_that_another_program_has_added_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    write_log(&path);
    let file = native(&path, Mode::Write);
    let spec = DatasetSpec {
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::fixed(&[6, 4])),
        layout: Layout::Chunked(vec![4, 4]),
        filters: vec![h5live_model::FilterSpec { id: 1, ..Default::default() }],
        ..DatasetSpec::default()
    };
    let name = Name::from("added");
    let new = (file.session().root, spec.into());
    let id = file.writer().unwrap().create(&NewObject::linked(new.0, &name, &new.1)).unwrap();
    let stored: Vec<u8> = (1..17).collect();
    file.dataset(id).unwrap().write_whole_chunk(&ChunkCoord::new(&[0, 0]), 0, &stored).unwrap();
    file.close().unwrap();
    drop(file);
    let request = LogOpenRequest { filter_engine: Arc::new(Minus), ..LogOpenRequest::new(Log::default()) };
    let store = LogStore::open_or_create(native(&path, Mode::Read), None, request).unwrap();
    let data = dataset(&store, "added").unwrap();
    let chunk = data.locate(&ChunkCoord::new(&[0, 0])).unwrap().unwrap();
    assert_eq!((chunk.size, chunk.filter_mask), (16, 0));
    assert!(data.locate(&ChunkCoord::new(&[1, 0])).unwrap().is_none());
    let (mut all, mut part) = ([0; 16], [0; 4]);
    data.read(&chunk, 0, &mut all).unwrap();
    assert_eq!(all.to_vec(), (0..16).collect::<Vec<u8>>());
    data.read_block(&chunk, &[1, 2], &[2, 2], &mut part).unwrap();
    assert_eq!(part, [6, 7, 10, 11]);
    let refused = data.write_whole_chunk(&ChunkCoord::new(&[0, 0]), 0, &all).unwrap_err();
    assert!(matches!(refused, h5live_model::Error::ReadOnly | h5live_model::Error::Unsupported(_)), "{refused}");
}
