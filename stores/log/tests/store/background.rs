//! Entries that a thread of their own writes: they are there for readers before and after, and are not lost if that fails.

use std::io;
use std::sync::Arc;

use h5live_log::{Log, LogOpenRequest, LogStore};
use h5live_model::{
    ByteOrder, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Dataspace, Datatype, LinkTarget, Mode,
    Name, NewObject, PublishLevel, Shape, Sign, Store,
};
use h5live_native::{MemoryStorage, NativeFile, OpenOptions, Storage};
use parking_lot::{Condvar, Mutex};

/// Bytes that are staged, and of a row.
const STAGING: usize = 256 << 10;
const ROW: usize = 100 << 10;
const ROWS: u64 = 24;

/// What becomes of entries that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Open,
    /// They wait until the gate is open.
    Closed,
    Failing,
}

/// A storage in which entries meet a gate. Nothing else is as long as they are.
#[derive(Debug)]
struct GatedStorage {
    inner: MemoryStorage,
    gate: Mutex<Gate>,
    has_moved: Condvar,
}

impl GatedStorage {
    fn set(&self, gate: Gate) {
        *self.gate.lock() = gate;
        self.has_moved.notify_all();
    }
}

impl Storage for GatedStorage {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.inner.read_at(into, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        if bytes.len() > ROW {
            let mut gate = self.gate.lock();
            self.has_moved.wait_while(&mut gate, |gate| *gate == Gate::Closed);
            if *gate == Gate::Failing {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        self.inner.write_at(bytes, at)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
}

fn open(storage: &Arc<GatedStorage>, mode: Mode) -> LogStore {
    let file = NativeFile::open_storage(storage.clone(), &OpenOptions { mode, ..OpenOptions::default() }).unwrap();
    let options = Log { staging: STAGING as u64, ..Log::default() };
    LogStore::open_or_create(Arc::new(file), None, LogOpenRequest::new(options)).unwrap()
}

/// A new log with a dataset of rows.
fn create() -> (Arc<GatedStorage>, LogStore, Arc<dyn ChunkStore>) {
    let (gate, has_moved) = (Mutex::new(Gate::Open), Condvar::new());
    let storage = Arc::new(GatedStorage { inner: MemoryStorage::default(), gate, has_moved });
    let store = open(&storage, Mode::CreateNew);
    let spec = DatasetSpec {
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::fixed(&[ROWS, ROW as u64])),
        ..DatasetSpec::default()
    };
    let new = (store.session().root, Name::from("data"));
    let id = store.writer().unwrap().create(&NewObject::linked(new.0, &new.1, &spec.into())).unwrap();
    let data = store.dataset(id).unwrap();
    (storage, store, data)
}

fn write_row(data: &dyn ChunkStore, row: u64) -> h5live_model::Result<()> {
    let (coord, bytes) = (ChunkCoord::origin(2), vec![row as u8 + 1; ROW]);
    let writes = [ChunkWrite::ElementBlock { coord: &coord, start: &[row, 0], count: &[1, ROW as u64], bytes: &bytes }];
    data.write(&ChunkBatch { writes: &writes, ..ChunkBatch::default() })
}

/// All rows have their values; those from `end` on were not written.
fn assert_rows(data: &dyn ChunkStore, end: u64) {
    let chunk = data.locate(&ChunkCoord::origin(2)).unwrap().unwrap();
    let mut bytes = vec![0xAA; chunk.size as usize];
    data.read(&chunk, 0, &mut bytes).unwrap();
    for (row, found) in (0..).zip(bytes.chunks(ROW)) {
        let wanted = if row < end { row as u8 + 1 } else { 0 };
        assert!(found.iter().all(|byte| *byte == wanted), "row {row}");
    }
}

fn assert_rows_of_file(storage: &Arc<GatedStorage>, end: u64) {
    let store = open(storage, Mode::Read);
    let link = store.link(store.session().root, &Name::from("data")).unwrap().unwrap();
    let LinkTarget::Hard(id) = link.target else { panic!("{link:?}") };
    assert_rows(&*store.dataset(id).unwrap(), end);
}

#[test]
fn entries_that_are_still_being_written_are_read_from_memory() {
    // One processor writes before it goes on.
    if std::thread::available_parallelism().is_ok_and(|threads| threads.get() < 2) {
        return;
    }
    let (storage, store, data) = create();
    storage.set(Gate::Closed);
    // Three rows are more than is staged, and a fourth one is staged beside them.
    for row in 0..4 {
        write_row(&*data, row).unwrap();
        assert_rows(&*data, row + 1);
    }
    storage.set(Gate::Open);
    for row in 4..ROWS {
        write_row(&*data, row).unwrap();
    }
    assert_rows(&*data, ROWS);
    store.writer().unwrap().commit(h5live_model::ObjectScope::All, PublishLevel::Visible).unwrap();
    assert_rows(&*data, ROWS);
    store.close().unwrap();
    assert_rows_of_file(&storage, ROWS);
}

#[test]
fn entries_whose_writing_has_failed_are_kept_and_written_later() {
    let (storage, store, data) = create();
    storage.set(Gate::Failing);
    let failed = (0..ROWS).find(|row| write_row(&*data, *row).is_err()).expect("an error before memory is full");
    // The error is that of a write, and the row is staged nevertheless.
    assert_rows(&*data, failed + 1);
    let commit = || store.writer().unwrap().commit(h5live_model::ObjectScope::All, PublishLevel::Visible);
    assert!(commit().is_err());
    assert_rows(&*data, failed + 1);
    storage.set(Gate::Open);
    commit().unwrap();
    assert_rows(&*data, failed + 1);
    store.close().unwrap();
    assert_rows_of_file(&storage, failed + 1);
}
