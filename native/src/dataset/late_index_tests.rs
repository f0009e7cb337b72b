use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use h5live_cache::{MemoryStorage, RecordingStorage, StorageOp, replay_operations};
use h5live_format::messages::MessageType;
use h5live_model::{
    ByteOrder, ChunkCoord, ChunkStore, DatasetSpec, Dataspace, Datatype, Layout, NewObject, ObjectId, ObjectScope,
    PublishLevel, Shape, Sign, Store, StoreWriter, UNLIMITED,
};

use crate::{Mode, NativeFile, OpenOptions, RetryPolicy};

const ROW: [u8; 8] = [7; 8];

/// What a writer did that appended one row to each of two datasets, whose dataspaces are in the second chunks of their
/// headers.
struct Recorded {
    base: Vec<u8>,
    log: Vec<StorageOp>,
    datasets: [ObjectId; 2],
}

/// A version 2 B-tree for two dimensions without limit, an extensible array for one.
fn spec(rank: usize) -> DatasetSpec {
    let mut dims = vec![1; rank];
    dims[0] = 0;
    DatasetSpec {
        datatype: Datatype::integer(8, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::with_max(&dims, &vec![UNLIMITED; rank]).unwrap()),
        layout: Layout::Chunked(vec![1; rank]),
        ..DatasetSpec::default()
    }
}

fn coord(dataset: &dyn ChunkStore) -> ChunkCoord {
    ChunkCoord::origin(dataset.spec().unwrap().dataspace.rank())
}

fn rows(dataset: &dyn ChunkStore) -> u64 {
    dataset.spec().unwrap().dataspace.dims()[0]
}

fn recorded() -> Recorded {
    let storage = RecordingStorage::new(MemoryStorage::new());
    let options = OpenOptions { mode: Mode::Create, ..OpenOptions::default() };
    let file = NativeFile::open_storage(Arc::new(storage.clone()), &options).unwrap();
    let datasets = [1, 2].map(|rank| {
        let id = file
            .create(&NewObject::linked(file.session().root, &format!("{rank}").into(), &spec(rank).into()))
            .unwrap();
        let session = file.native_session();
        let mut header = session.load_header(session.header_addr_of(id).unwrap()).unwrap();
        header.move_to_new_chunk(MessageType::DATASPACE).unwrap();
        assert!(header.may_be_written_before(MessageType::DATASPACE, MessageType::LAYOUT));
        id
    });
    file.close().unwrap();
    let options = OpenOptions { mode: Mode::SwmrWrite, ..OpenOptions::default() };
    let file = NativeFile::open_storage(Arc::new(storage.clone()), &options).unwrap();
    let base = storage.inner().to_vec();
    storage.take_log();
    for id in datasets {
        let dataset = file.dataset(id).unwrap();
        dataset.write_whole_chunk(&coord(&*dataset), 0, &ROW).unwrap();
        let mut dims = dataset.spec().unwrap().dataspace.dims().to_vec();
        dims[0] = 1;
        dataset.set_extent(&dims).unwrap();
        file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    }
    std::mem::forget(file);
    Recorded { base, log: storage.take_log(), datasets }
}

fn reader(storage: &MemoryStorage, sleep: impl Fn() + Send + Sync + 'static) -> NativeFile {
    let retry = RetryPolicy::new(60, move |_| sleep());
    let options = OpenOptions { mode: Mode::SwmrRead, retry, ..OpenOptions::default() };
    NativeFile::open_storage(Arc::new(storage.clone()), &options).unwrap()
}

/// Whether an operation writes what is at the beginning of the header of an object.
fn is_first_chunk(operation: &StorageOp, id: ObjectId) -> bool {
    let StorageOp::Write { at, bytes } = operation else { return false };
    let header = id.0 as u64;
    (*at..*at + bytes.len() as u64).contains(&header)
}

/// The file as libhdf5 leaves it for a moment: all is there but the first chunk of the header, and how that would be.
fn without_first_chunk(recorded: &Recorded, id: ObjectId) -> (MemoryStorage, MemoryStorage) {
    let (mut early, mut whole) = (recorded.base.clone(), recorded.base.clone());
    assert!(recorded.log.iter().any(|operation| is_first_chunk(operation, id)));
    replay_operations(&mut early, recorded.log.iter().filter(|operation| !is_first_chunk(operation, id))).unwrap();
    replay_operations(&mut whole, &recorded.log).unwrap();
    (early.into(), whole.into())
}

#[test]
fn the_extent_comes_after_the_index_when_they_are_in_different_chunks_of_the_header() {
    let recorded = recorded();
    let mut seen = [0; 2];
    for end in 0..=recorded.log.len() {
        let mut image = recorded.base.clone();
        replay_operations(&mut image, &recorded.log[..end]).unwrap();
        let slept = Arc::new(AtomicU32::new(0));
        let sleeps = slept.clone();
        let file = reader(&image.into(), move || _ = sleeps.fetch_add(1, Relaxed));
        for (id, seen) in recorded.datasets.into_iter().zip(&mut seen) {
            let dataset = file.dataset(id).unwrap();
            if rows(&*dataset) == 1 {
                let chunk = dataset.locate(&coord(&*dataset)).unwrap();
                let chunk = chunk.unwrap_or_else(|| panic!("after {end} operations, a row is below the extent"));
                let mut row = [0; 8];
                dataset.read(&chunk, 0, &mut row).unwrap();
                assert_eq!(row, ROW, "after {end} operations");
                *seen += 1;
            }
        }
        assert_eq!(slept.load(Relaxed), 0, "after {end} operations");
    }
    assert!(seen.iter().all(|seen| *seen > 0), "{seen:?}");
}

#[test]
fn a_reader_waits_for_an_index_that_comes_after_the_extent() {
    let recorded = recorded();
    for id in recorded.datasets {
        for listed in [false, true] {
            let (early, whole) = without_first_chunk(&recorded, id);
            let (slept, late) = (Arc::new(AtomicU32::new(0)), early.clone());
            let sleeps = slept.clone();
            let file = reader(&early, move || {
                if sleeps.fetch_add(1, Relaxed) == 10 {
                    h5live_cache::Storage::write_at(&late, &whole.to_vec(), 0).unwrap();
                }
            });
            let dataset = file.dataset(id).unwrap();
            assert_eq!(rows(&*dataset), 1);
            let mut chunks = dataset.locate(&coord(&*dataset)).unwrap().map_or(0, |_| 1);
            if listed {
                chunks = 0;
                dataset
                    .for_each_chunk(&mut |_| {
                        chunks += 1;
                        true
                    })
                    .unwrap();
            }
            assert_eq!((chunks, slept.load(Relaxed)), (1, 11));
        }
    }
}

#[test]
fn a_reader_waits_once_for_each_extent_that_has_no_index() {
    let recorded = recorded();
    for id in recorded.datasets {
        let (early, _) = without_first_chunk(&recorded, id);
        let slept = Arc::new(AtomicU32::new(0));
        let sleeps = slept.clone();
        let file = reader(&early, move || _ = sleeps.fetch_add(1, Relaxed));
        let dataset = file.dataset(id).unwrap();
        let look = |dataset: &dyn ChunkStore| {
            assert!(dataset.locate(&coord(dataset)).unwrap().is_none());
            dataset.for_each_chunk(&mut |_| panic!("there is no index")).unwrap();
            slept.swap(0, Relaxed)
        };
        assert_eq!(look(&*dataset), 19);
        for _ in 0..3 {
            dataset.refresh().unwrap();
            assert_eq!(look(&*dataset), 0);
        }
        let mut beyond = coord(&*dataset).scaled().to_vec();
        beyond[0] = 1;
        assert!(dataset.locate(&ChunkCoord::new(&beyond)).unwrap().is_none());
        assert_eq!(slept.load(Relaxed), 0);
    }
}

#[test]
fn nobody_waits_for_an_index_where_nobody_writes() {
    let recorded = recorded();
    for id in recorded.datasets {
        let (early, _) = without_first_chunk(&recorded, id);
        let mut image = early.to_vec();
        let mut superblock = h5live_format::Superblock::decode(&image).unwrap();
        superblock.status = Default::default();
        let closed = h5live_format::encode(&superblock, superblock.widths).unwrap();
        image[..closed.len()].copy_from_slice(&closed);
        let file = reader(&image.into(), || panic!("there is nothing to wait for"));
        let dataset = file.dataset(id).unwrap();
        assert_eq!(rows(&*dataset), 1);
        assert!(dataset.locate(&coord(&*dataset)).unwrap().is_none());
    }
}
