//! Boxes and runs of elements are what was written last there, wherever in the log that is.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use h5live_log::{Log, LogOpenRequest, LogStore};
use h5live_model::{
    ByteOrder, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Dataspace, Datatype, Fill, FillValue,
    Layout, LinkTarget, Mode, Name, NewObject, ObjectId, PublishLevel, Shape, Sign, Store,
};
use h5live_native::{MemoryStorage, NativeFile, OpenOptions, Storage};
use proptest::prelude::*;

const DIMS: [u64; 2] = [12, 17];
const FILL: [u8; 2] = [0xFE, 0xCA];

/// A box in the dataset.
type Table = [Range<u64>; 2];

fn table() -> impl Strategy<Value = Table> {
    let side = |len: u64| (0..len, 1..=len).prop_map(move |(start, count)| start..(start + count).min(len));
    (side(DIMS[0]), side(DIMS[1])).prop_map(Into::into)
}

fn start_and_count(table: &Table) -> ([u64; 2], [u64; 2]) {
    (table.clone().map(|side| side.start), table.clone().map(|side| side.end - side.start))
}

fn positions(table: &Table) -> impl Iterator<Item = usize> {
    let [rows, columns] = table.clone();
    rows.flat_map(move |row| columns.clone().map(move |column| (row * DIMS[1] + column) as usize))
}

fn open(storage: Arc<dyn Storage>, mode: Mode, options: &Log) -> LogStore {
    let file = NativeFile::open_storage(storage, &OpenOptions { mode, ..OpenOptions::default() }).unwrap();
    LogStore::open_or_create(Arc::new(file), None, LogOpenRequest::new(options.clone())).unwrap()
}

fn open_path(path: &Path, mode: Mode) -> LogStore {
    let file = NativeFile::open(path, &OpenOptions { mode, ..OpenOptions::default() }).unwrap();
    LogStore::open_or_create(Arc::new(file), None, LogOpenRequest::new(Log::default())).unwrap()
}

fn open_data(store: &LogStore) -> Arc<dyn ChunkStore> {
    let link = store.link(store.session().root, &Name::from("data")).unwrap().unwrap();
    let LinkTarget::Hard(id) = link.target else { panic!("{link:?}") };
    store.dataset(id).unwrap()
}

fn write(data: &dyn ChunkStore, table: &Table, values: &[[u8; 2]]) {
    let (start, count) = start_and_count(table);
    let (coord, bytes) = (ChunkCoord::origin(2), values.concat());
    let writes = [ChunkWrite::ElementBlock { coord: &coord, start: &start, count: &count, bytes: &bytes }];
    data.write(&ChunkBatch { writes: &writes, ..ChunkBatch::default() }).unwrap();
}

/// Writes all columns, one after the other, and returns the elements.
fn write_columns(data: &dyn ChunkStore, seed: u8) -> Vec<[u8; 2]> {
    let mut plain = vec![FILL; (DIMS[0] * DIMS[1]) as usize];
    for column in 0..DIMS[1] {
        let table = [0..DIMS[0], column..column + 1];
        let values: Vec<_> = positions(&table).map(|at| [seed, at as u8 | 1]).collect();
        write(data, &table, &values);
        positions(&table).zip(values).for_each(|(at, value)| plain[at] = value);
    }
    plain
}

/// How often a file is mapped by this process.
#[cfg(target_os = "linux")]
fn mappings(path: &Path) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter(|line| line.ends_with(path.to_str().unwrap())).count()
}

#[test]
#[cfg(target_os = "linux")]
fn a_log_that_was_read_often_is_mapped_and_what_is_cut_off_is_not_read_as_zeros() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.h5");
    let store = open_path(&path, Mode::CreateNew);
    let data = store.dataset(create(&store)).unwrap();
    let plain = write_columns(&*data, 7);
    store.close().unwrap();
    let store = open_path(&path, Mode::Read);
    let data = open_data(&store);
    let rows = [0..DIMS[0], 0..DIMS[1]];
    (0..20).for_each(|_| check(&*data, std::slice::from_ref(&rows), &plain));
    assert!(mappings(&path) > 0);
    store.close().unwrap();
    assert_eq!(mappings(&path), 0, "the file is closed");

    let store = open_path(&path, Mode::Read);
    let data = open_data(&store);
    (0..20).for_each(|_| check(&*data, std::slice::from_ref(&rows), &plain));
    assert!(mappings(&path) > 0);
    let bytes = std::fs::read(&path).unwrap();
    // Behind the log, the index table has the heads of entries, too.
    let first = bytes.windows(4).position(|window| window == b"LENT").unwrap();
    let chunk = data.locate(&ChunkCoord::origin(2)).unwrap().unwrap();
    // In the middle of a page, and of all pages.
    for len in [first + 500, 1] {
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(len as u64).unwrap();
        let mut found = vec![0x55; 2 * plain.len()];
        data.read_block(&chunk, &[0, 0], &DIMS, &mut found).unwrap_err();
    }
}

#[test]
fn an_index_table_that_is_read_in_several_pieces_has_all_entries() {
    let storage = Arc::new(MemoryStorage::from(Vec::new()));
    let store = open(storage.clone(), Mode::CreateNew, &Log::default());
    let data = store.dataset(create(&store)).unwrap();
    // Some 100 bytes of the table for each column.
    let plain = (0..250).fold(Vec::new(), |_, seed| write_columns(&*data, seed));
    store.close().unwrap();
    let store = open(storage, Mode::Read, &Log::default());
    check(&*open_data(&store), &[[0..DIMS[0], 0..DIMS[1]], [3..5, 2..9]], &plain);
}

fn create(store: &LogStore) -> ObjectId {
    let spec = DatasetSpec {
        datatype: Datatype::integer(2, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::fixed(&DIMS)),
        layout: Layout::Contiguous,
        fill: Fill { value: FillValue::Value(FILL.to_vec()), ..Fill::default() },
        ..DatasetSpec::default()
    };
    let (root, name) = (store.session().root, Name::from("data"));
    store.writer().unwrap().create(&NewObject::linked(root, &name, &spec.into())).unwrap()
}

/// Reads boxes, and the runs from their first to their last elements.
fn check(data: &dyn ChunkStore, tables: &[Table], plain: &[[u8; 2]]) {
    let Some(chunk) = data.locate(&ChunkCoord::origin(2)).unwrap() else { return };
    for table in tables {
        let (start, count) = start_and_count(table);
        let wanted: Vec<u8> = positions(table).flat_map(|at| plain[at]).collect();
        let mut found = vec![0x55; wanted.len()];
        data.read_block(&chunk, &start, &count, &mut found).unwrap();
        assert_eq!(found, wanted, "{table:?}");
        let run = positions(table).min().unwrap()..positions(table).max().unwrap() + 1;
        let mut found = vec![0x55; 2 * run.len()];
        data.read(&chunk, 2 * run.start as u64, &mut found).unwrap();
        assert_eq!(found, plain[run].concat(), "{table:?}");
    }
}

proptest! {
    #[test]
    fn boxes_and_runs_are_what_was_written_last(
        writes in prop::collection::vec((table(), any::<bool>()), 1..40),
        tables in prop::collection::vec(table(), 1..8),
        (log_size, staging) in (prop::sample::select(vec![512u64, 1 << 20]), prop::sample::select(vec![0u64, 700, 1 << 20])),
    ) {
        let options = Log { staging, min_log_size: log_size, max_log_size: log_size, ..Log::default() };
        let storage = Arc::new(MemoryStorage::from(Vec::new()));
        let store = open(storage.clone(), Mode::CreateNew, &options);
        let data = store.dataset(create(&store)).unwrap();
        let mut plain = vec![FILL; (DIMS[0] * DIMS[1]) as usize];
        for (number, (table, publishes)) in writes.iter().enumerate() {
            let values: Vec<_> = positions(table).map(|at| [number as u8, at as u8]).collect();
            write(&*data, table, &values);
            if *publishes {
                data.publish(PublishLevel::Visible).unwrap();
            }
            positions(table).zip(values).for_each(|(at, value)| plain[at] = value);
            if number % 8 == 0 {
                check(&*data, &tables, &plain);
            }
        }
        check(&*data, &tables, &plain);
        store.close().unwrap();
        let store = open(storage, Mode::Read, &options);
        check(&*open_data(&store), &tables, &plain);
    }
}
