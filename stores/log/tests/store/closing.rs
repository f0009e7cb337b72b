//! The end of a session: what comes before it is in the file, what comes later is an error, and it ends also if it fails.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use h5live_log::{Log, LogOpenRequest, LogStore};
use h5live_model::{
    ByteOrder, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Dataspace, Datatype, Error, Layout,
    LinkTarget, Mode, Name, NewObject, ObjectScope, PublishLevel, Shape, Sign, Store, UNLIMITED,
};
use h5live_native::{MemoryStorage, NativeFile, OpenOptions, Storage};

/// A storage that may be full.
#[derive(Debug, Default)]
struct FullStorage {
    inner: MemoryStorage,
    is_full: AtomicBool,
}

impl Storage for FullStorage {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.inner.read_at(into, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        if self.is_full.load(Ordering::Acquire) && at + bytes.len() as u64 > self.inner.len()? {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.inner.write_at(bytes, at)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if self.is_full.load(Ordering::Acquire) && len > self.inner.len()? {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.inner.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
}

fn open(storage: &Arc<FullStorage>, mode: Mode) -> LogStore {
    let options = OpenOptions { mode, take_over_if_unknown: true, ..OpenOptions::default() };
    let file = NativeFile::open_storage(storage.clone(), &options).unwrap();
    let options = Log { min_log_size: 4 << 10, max_log_size: 64 << 10, ..Log::default() };
    LogStore::open_or_create(Arc::new(file), None, LogOpenRequest::new(options)).unwrap()
}

fn create(store: &LogStore, name: &str) -> Arc<dyn ChunkStore> {
    let spec = DatasetSpec {
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::with_max(&[0], &[UNLIMITED]).unwrap()),
        layout: Layout::Chunked(vec![1]),
        ..DatasetSpec::default()
    };
    let name = Name::from(name);
    let id = store.writer().unwrap().create(&NewObject::linked(store.session().root, &name, &spec.into())).unwrap();
    store.dataset(id).unwrap()
}

fn append(data: &dyn ChunkStore, at: u64, bytes: &[u8]) -> Result<(), Error> {
    let coord = ChunkCoord::new(&[at]);
    let writes = [ChunkWrite::ChunksAlongFirstDim { first: &coord, chunk_bytes: 1, bytes }];
    let extent = [at + bytes.len() as u64];
    data.write(&ChunkBatch { writes: &writes, extent: Some(&extent), ..ChunkBatch::default() })
}

fn rows(store: &LogStore, name: &str) -> u64 {
    let link = store.link(store.session().root, &Name::from(name)).unwrap().unwrap();
    let LinkTarget::Hard(id) = link.target else { panic!("a hard link") };
    store.dataset(id).unwrap().spec().unwrap().dataspace.dims()[0]
}

#[test]
fn a_session_that_could_not_be_closed_has_ended_all_the_same() {
    let storage = Arc::new(FullStorage::default());
    let store = open(&storage, Mode::CreateNew);
    store.writer().unwrap().start_swmr().unwrap();
    let data = create(&store, "rows");
    append(&*data, 0, &[1; 3]).unwrap();
    data.publish(PublishLevel::Visible).unwrap();
    append(&*data, 3, &[2; 100_000]).unwrap();
    storage.is_full.store(true, Ordering::Release);
    assert!(store.close().is_err(), "nothing more fits");
    let is_closed = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Closed)), "{result:?}");
    is_closed(append(&*data, 3, &[3]));
    is_closed(data.publish(PublishLevel::Visible));
    is_closed(data.spec().map(drop));
    is_closed(store.writer().map(drop));
    store.close().unwrap();
    storage.is_full.store(false, Ordering::Release);
    assert_eq!(rows(&open(&storage, Mode::Read), "rows"), 3, "what was published");
}

/// Each append that returned before the session ended is in the file; one that came later is an error.
#[test]
fn an_append_beside_the_close_is_in_the_file_or_an_error() {
    for run in 0..60 {
        let storage = Arc::new(FullStorage::default());
        let store = open(&storage, Mode::CreateNew);
        let datasets: Vec<_> = (0..3).map(|number| create(&store, &format!("rows{number}"))).collect();
        let done = [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)];
        thread::scope(|scope| {
            for (number, data) in datasets.iter().enumerate() {
                let done = &done[number];
                scope.spawn(move || {
                    loop {
                        let at = done.load(Ordering::Acquire);
                        match append(&**data, at, &[at as u8]) {
                            Ok(()) => done.store(at + 1, Ordering::Release),
                            Err(error) => break assert!(matches!(error, Error::Closed), "{error}"),
                        }
                        if at.is_multiple_of(7) {
                            let _ = data.publish(PublishLevel::Visible);
                        }
                    }
                });
            }
            while done.iter().any(|done| done.load(Ordering::Acquire) < 5 + run) {
                thread::yield_now();
            }
            store.close().unwrap();
        });
        let reader = open(&storage, Mode::Read);
        for (number, done) in done.iter().enumerate() {
            assert_eq!(rows(&reader, &format!("rows{number}")), done.load(Ordering::Acquire), "run {run}");
        }
        reader.refresh(ObjectScope::All).unwrap();
    }
}
