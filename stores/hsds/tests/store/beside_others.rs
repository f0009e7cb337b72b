//! Threads of one session that change and read the same dataset: each step of one comes in the middle of a step of the other.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use h5live_hsds::HsdsStore;
use h5live_hsds::engine::{
    DocumentPut, FetchedObject, ListedObject, MemoryEngine, ObjectChangeTag, ObjectEngine, ObjectPut, ObjectSink,
    RequestCounts, Revalidation,
};
use h5live_model::{
    ByteOrder, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Dataspace, Datatype, DurabilitySupport,
    Layout, Mode, NewObject, ObjectScope, PublishLevel, Result, Shape, Sign, Store, UNLIMITED, VarLenKind, VarLenType,
};

use crate::shared::request;

/// How long a write waits for a commit that may be waiting for this write.
const PAUSE: Duration = Duration::from_millis(200);

/// More than wait together before they are written.
const CHUNKS: u64 = 100;

type Step = dyn Fn() + Send + Sync;

/// Objects in memory. The first write after [`Interrupted::arm`] is followed by another step.
#[derive(Clone, Default)]
struct Interrupted {
    objects: MemoryEngine,
    is_armed: Arc<AtomicBool>,
    step: Arc<OnceLock<Box<Step>>>,
}

impl std::fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.objects.fmt(f)
    }
}

impl Interrupted {
    fn arm(&self, step: impl Fn() + Send + Sync + 'static) {
        assert!(self.step.set(Box::new(step)).is_ok(), "one step");
        self.is_armed.store(true, Ordering::Release);
    }
}

impl ObjectEngine for Interrupted {
    pass_on! {
        get(key: &str) -> Result<Option<FetchedObject>>;
        get_many(keys: &[String], each: &ObjectSink<'_>) -> Result<()>;
        get_file_range(uri: &str, start: u64, bytes: u64) -> Result<Vec<u8>>;
        revalidate(key: &str, tag: &ObjectChangeTag) -> Result<Revalidation>;
        delete_many(keys: &[String]) -> Result<()>;
        put_documents(puts: Vec<DocumentPut>) -> Result<Vec<ObjectChangeTag>>;
        list(prefix: &str) -> Result<Vec<ListedObject>>;
        durability() -> DurabilitySupport;
        sync() -> Result<()>;
        has_writer() -> Result<bool>;
        close() -> Result<()>;
        close_never_created() -> Result<()>;
        counts() -> RequestCounts;
    }

    fn put_many(&self, puts: Vec<ObjectPut>) -> Result<Vec<ObjectChangeTag>> {
        let tags = self.objects.put_many(puts);
        if self.is_armed.swap(false, Ordering::AcqRel) {
            self.step.get().unwrap()();
        }
        tags
    }
}

/// A new dataset of one dimension, in chunks of two elements.
fn make(store: &HsdsStore, datatype: Datatype) -> Arc<dyn ChunkStore> {
    let spec = DatasetSpec {
        datatype,
        dataspace: Dataspace::Simple(Shape::with_max(&[0], &[UNLIMITED]).unwrap()),
        layout: Layout::Chunked(vec![2]),
        ..DatasetSpec::default()
    };
    let new = ("data".into(), spec.into());
    let root = store.session().root;
    store.dataset(store.writer().unwrap().create(&NewObject::linked(root, &new.0, &new.1)).unwrap()).unwrap()
}

fn bytes() -> Datatype {
    Datatype::integer(1, ByteOrder::Little, Sign::Unsigned)
}

fn sequences() -> Datatype {
    Datatype::VarLen(VarLenType { base: Box::new(bytes()), kind: VarLenKind::Sequence, size: 16 })
}

/// Writes chunks, and an extent that ends with the last one.
fn put(data: &dyn ChunkStore, chunks: Range<u64>, bytes: &[u8]) {
    let coords: Vec<ChunkCoord> = chunks.clone().map(|at| ChunkCoord::new(&[at])).collect();
    let writes: Vec<ChunkWrite<'_>> =
        coords.iter().map(|coord| ChunkWrite::Whole { coord, filter_mask: 0, bytes }).collect();
    let extent = [2 * chunks.end];
    data.write(&ChunkBatch { writes: &writes, extent: Some(&extent), publish_after: &[], publish: None }).unwrap();
}

fn read(data: &dyn ChunkStore, at: u64, bytes: Range<usize>) -> Vec<u8> {
    let chunk = data.locate(&ChunkCoord::new(&[at])).unwrap().expect("a chunk that was written");
    let mut read = vec![0; bytes.len()];
    data.read(&chunk, bytes.start as u64, &mut read).unwrap();
    read
}

/// A commit deletes the chunks of an extent that became smaller. It leaves those that another thread writes anew meanwhile.
#[test]
fn chunks_that_are_written_while_a_commit_deletes_them_stay() {
    let engine = Interrupted::default();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "run")).unwrap();
    let commit = || store.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let data = make(&store, bytes());
    put(&*data, 0..CHUNKS, &[1, 2]);
    commit();
    data.set_extent(&[2]).unwrap();
    let (start, started) = mpsc::channel();
    let (end, ended) = mpsc::channel();
    let ended = parking_lot::Mutex::new(ended);
    engine.arm(move || {
        start.send(()).unwrap();
        // The commit has ended then, or waits for this write.
        let _ = ended.lock().recv_timeout(PAUSE);
    });
    thread::scope(|threads| {
        let commit = &commit;
        threads.spawn(move || {
            started.recv().unwrap();
            commit();
            end.send(()).unwrap();
        });
        put(&*data, 1..CHUNKS, &[5, 6]);
    });
    commit();
    for at in 1..CHUNKS {
        assert_eq!(read(&*data, at, 0..2), [5, 6], "chunk {at}");
    }
    store.close().unwrap();
}

/// Whoever has read elements finds their data after another thread, which has other tokens of them, has stored them again.
#[test]
fn tokens_of_a_reader_outlast_those_who_store_the_elements_again() {
    let store = HsdsStore::open(MemoryEngine::new(), &request(Mode::CreateNew, "run")).unwrap();
    let data = make(&store, sequences());
    let writer = store.writer().unwrap();
    let blob = |element: &[u8]| {
        let mut found = Vec::new();
        store.read_blobs(&[element], &mut |_, bytes| found = bytes.to_vec()).unwrap();
        found
    };
    let first = writer.put_blob(b"first", 5).unwrap();
    let size = first.len();
    put(&*data, 0..1, &[first.clone(), vec![0; size]].concat());
    // Tokens of each version, and those that were staged.
    let mut tokens = vec![first.clone(), read(&*data, 0, 0..size)];
    for round in 0..20u8 {
        let other = writer.put_blob(&[round], 1).unwrap();
        put(&*data, 0..1, &[first.clone(), other].concat());
        for token in &tokens {
            assert_eq!(blob(token), b"first", "round {round}");
        }
        assert_eq!(blob(&read(&*data, 0, size..2 * size)), [round]);
        tokens.push(read(&*data, 0, 0..size));
    }
    store.close().unwrap();
}
