//! The writer dies between any two writes to its file, or a reader looks at that moment: each finds all of a batch or
//! nothing of it, everything that was acknowledged, and no object before its elements.

use std::sync::Arc;

use h5live_cache::{MemoryStorage, RecordingStorage, StorageOp, replay_operations};
use h5live_log::{Log, LogOpenRequest, LogStore};
use h5live_model::{
    ByteOrder, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Dataspace, Datatype, Layout, LinkTarget,
    Mode, Name, NewObject, ObjectScope, PublishLevel, Shape, Sign, Store, UNLIMITED, VarLenKind, VarLenType, read_blob,
};
use h5live_native::{NativeFile, OpenOptions};

/// Batches of the writer.
const BATCHES: u16 = 24;
/// Cells of the grid.
const CELLS: u64 = 40;

fn u16le() -> Datatype {
    Datatype::integer(2, ByteOrder::Little, Sign::Unsigned)
}

fn growing(datatype: Datatype) -> DatasetSpec {
    DatasetSpec {
        datatype,
        dataspace: Dataspace::Simple(Shape::with_max(&[0], &[UNLIMITED]).unwrap()),
        layout: Layout::Chunked(vec![1]),
        ..DatasetSpec::default()
    }
}

fn create(store: &LogStore, name: &str, spec: DatasetSpec) -> Arc<dyn ChunkStore> {
    let root = store.session().root;
    let id = store.writer().unwrap().create(&NewObject::linked(root, &Name::from(name), &spec.into())).unwrap();
    store.dataset(id).unwrap()
}

/// Writes an element, and makes the extent reach behind it; nothing is published.
fn put(data: &dyn ChunkStore, at: u64, element: &[u8]) {
    let coord = ChunkCoord::new(&[at]);
    let writes = [ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: element }];
    let now = data.spec().unwrap().dataspace.dims()[0];
    let extent = [now.max(at + 1)];
    data.write(&ChunkBatch { writes: &writes, extent: Some(&extent), ..ChunkBatch::default() }).unwrap();
}

/// The cell of the grid that a batch writes.
fn cell(batch: u16) -> u64 {
    u64::from(batch) * 17 % CELLS
}

fn word(batch: u16) -> Vec<u8> {
    // Long ones, so that the heap grows by collections behind the log.
    vec![b'a' + (batch % 26) as u8; 300 + usize::from(batch) * 60]
}

fn open(storage: impl h5live_cache::Storage + 'static, mode: Mode) -> LogStore {
    let options = OpenOptions { mode, take_over_if_unknown: true, ..OpenOptions::default() };
    let file = NativeFile::open_storage(Arc::new(storage), &options).unwrap();
    let options = Log { staging: 64, min_log_size: 512, max_log_size: 512, ..Log::default() };
    LogStore::open_or_create(Arc::new(file), None, LogOpenRequest::new(options)).unwrap()
}

/// What a writer of batches does to its storage. A mark says how many batches are acknowledged.
fn record() -> Vec<StorageOp> {
    let storage = RecordingStorage::new(MemoryStorage::default());
    let store = open(storage.clone(), Mode::Create);
    let base = Box::new(Datatype::integer(1, ByteOrder::Little, Sign::Unsigned));
    let word_type = Datatype::VarLen(VarLenType {
        kind: VarLenKind::Sequence,
        size: store.session().vlen_and_reference_sizes.vlen,
        base,
    });
    let (a, b, words) = (
        create(&store, "a", growing(u16le())),
        create(&store, "b", growing(u16le())),
        create(&store, "words", growing(word_type)),
    );
    let grid = create(&store, "grid", growing(u16le()));
    grid.set_extent(&[CELLS]).unwrap();
    let writer = store.writer().unwrap();
    writer.start_swmr().unwrap();
    for batch in 0..BATCHES {
        storage.log_mark(batch.to_string());
        let number = (batch + 1).to_le_bytes();
        put(&*a, batch.into(), &number);
        put(&*grid, cell(batch), &number);
        let blob = writer.put_blob(&word(batch), word(batch).len() as u32).unwrap();
        put(&*words, batch.into(), &blob);
        put(&*b, batch.into(), &number);
        if batch % 3 == 0 {
            put(&*create(&store, &format!("new{batch}"), growing(u16le())), 0, &number);
        }
        writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    }
    storage.log_mark(BATCHES.to_string());
    store.close().unwrap();
    storage.take_log()
}

fn dataset(store: &LogStore, name: &str) -> Option<Arc<dyn ChunkStore>> {
    let link = store.link(store.session().root, &Name::from(name)).unwrap()?;
    let LinkTarget::Hard(id) = link.target else { panic!("a hard link") };
    Some(store.dataset(id).unwrap())
}

fn elements(data: &dyn ChunkStore, size: usize) -> Vec<Vec<u8>> {
    let read = |at: u64| {
        let mut element = vec![0; size];
        if let Some(chunk) = data.locate(&ChunkCoord::new(&[at])).unwrap() {
            data.read(&chunk, 0, &mut element).unwrap();
        }
        element
    };
    (0..data.spec().unwrap().dataspace.dims()[0]).map(read).collect()
}

/// Looks at everything, and returns how many batches there are.
fn check(store: &LogStore, acknowledged: u16) -> u16 {
    let numbers = |name: &str| -> Vec<u16> {
        let Some(data) = dataset(store, name) else { return Vec::new() };
        elements(&*data, 2).iter().map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]])).collect()
    };
    let a = numbers("a");
    let batches = a.len() as u16;
    assert!(batches >= acknowledged, "{batches} batches of {acknowledged} that were acknowledged");
    assert_eq!(a, (1..=batches).collect::<Vec<_>>());
    assert_eq!(numbers("b"), a, "a batch is seen as a whole");
    let mut grid = vec![0; CELLS as usize];
    (0..batches).for_each(|batch| grid[cell(batch) as usize] = batch + 1);
    let found = numbers("grid");
    assert!(found == grid || (batches == 0 && found.is_empty()), "{found:?} after {batches} batches");
    if let Some(words) = dataset(store, "words") {
        let size = words.spec().unwrap().datatype.size() as usize;
        let found: Vec<_> = elements(&*words, size).iter().map(|element| read_blob(store, element).unwrap()).collect();
        assert_eq!(found, (0..batches).map(word).collect::<Vec<_>>(), "entries lead to blobs that are there");
    }
    for batch in (0..BATCHES).step_by(3) {
        let found = numbers(&format!("new{batch}"));
        let is_there = dataset(store, &format!("new{batch}")).is_some();
        assert!(is_there || batch >= acknowledged);
        assert!(!is_there || found == [batch + 1], "no object before its elements: {batch}, {found:?}");
    }
    batches
}

#[test]
fn every_moment_shows_whole_batches() {
    let operations = record();
    let (mut image, mut acknowledged, mut moments) = (Vec::new(), None, 0);
    let mut last = 0;
    for operation in &operations {
        replay_operations(&mut image, [operation]).unwrap();
        match operation {
            StorageOp::Mark(batches) => acknowledged = Some(batches.parse::<u16>().unwrap()),
            StorageOp::Write { .. } | StorageOp::SetLen(_) => {
                let Some(acknowledged) = acknowledged else { continue };
                let reader = open(MemoryStorage::from(image.clone()), Mode::SwmrRead);
                let seen = check(&reader, acknowledged);
                assert!(seen >= last, "data goes back in time");
                last = seen;
                let alone = open(MemoryStorage::from(image.clone()), Mode::Read);
                assert_eq!(check(&alone, acknowledged), seen, "who reads what a dead writer has left finds the same");
                let successor = open(MemoryStorage::from(image.clone()), Mode::Write);
                assert_eq!(check(&successor, acknowledged), seen, "the next writer finds what readers saw");
                moments += 1;
            }
            StorageOp::Sync => {}
        }
    }
    println!("{moments} moments");
    assert!(moments > 4 * u32::from(BATCHES) && last == BATCHES);
}
