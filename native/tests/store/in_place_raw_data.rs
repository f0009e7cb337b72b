//! Raw data that is rewritten where it is, under readers, and by writers that die or fail meanwhile: old or new.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use h5live_cache::{
    FaultyStorage, InjectedFailure, MemoryStorage, RecordingStorage, Storage, StorageOp, replay_operations,
};
use h5live_model::{
    AllocationTime, ByteOrder, ChunkCoord, ChunkStore, DatasetSpec, Dataspace, Datatype, Layout, LinkTarget, Name,
    NewObject, ObjectScope, PublishLevel, Shape, Sign, Store, StoreWriter, UNLIMITED,
};
use h5live_native::{LibVer, Mode, NativeFile, OpenOptions, RetryPolicy};

const BYTES: usize = 9000;

fn options(mode: Mode) -> OpenOptions {
    OpenOptions { mode, take_over_if_unknown: true, retry: RetryPolicy::new(12, |_| ()), ..OpenOptions::default() }
}

/// Bytes in one run, or in two chunks that cannot move.
fn spec(layout: Layout) -> DatasetSpec {
    let dims = if layout == Layout::Contiguous { BYTES } else { 2 * BYTES } as u64;
    let mut spec = DatasetSpec {
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::fixed(&[dims])),
        layout,
        ..DatasetSpec::default()
    };
    spec.fill.allocation = AllocationTime::Early;
    spec
}

fn layouts() -> [Layout; 2] {
    [Layout::Contiguous, Layout::Chunked(vec![BYTES as u64])]
}

fn dataset(file: &NativeFile) -> Arc<dyn ChunkStore> {
    match file.link(file.session().root, &Name::from("data")).unwrap().unwrap().target {
        LinkTarget::Hard(id) => file.dataset(id).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn fill(data: &Arc<dyn ChunkStore>, value: u8) {
    data.write_whole_chunk(&ChunkCoord::new(&[0]), 0, &[value; BYTES]).unwrap();
}

/// The value that all bytes have.
fn value(data: &Arc<dyn ChunkStore>) -> u8 {
    let chunk = data.locate(&ChunkCoord::new(&[0])).unwrap().unwrap();
    let mut found = vec![0; BYTES];
    data.read(&chunk, 0, &mut found).unwrap();
    assert!(found.iter().all(|byte| *byte == found[0]), "{} and others", found[0]);
    found[0]
}

fn followed(storage: &Arc<dyn Storage>, spec: DatasetSpec, profile: LibVer, durable: bool) -> NativeFile {
    let file = NativeFile::open_storage(
        storage.clone(),
        &OpenOptions { profile, durable_flushes: durable, ..options(Mode::Create) },
    )
    .unwrap();
    file.create(&NewObject::linked(file.session().root, &"data".into(), &spec.into())).unwrap();
    fill(&dataset(&file), 1);
    file.start_swmr().unwrap();
    file
}

/// Whoever comes after a writer that was killed, at any operation or between any two pages of one, finds the old or the
/// new, and so does everybody later.
#[test]
fn what_a_killed_writer_was_rewriting_is_found_old_or_new() {
    for (layout, durable) in layouts().into_iter().flat_map(|layout| [(layout.clone(), false), (layout, true)]) {
        let recording = Arc::new(RecordingStorage::new(MemoryStorage::new()));
        let storage: Arc<dyn Storage> = recording.clone();
        let writer = followed(&storage, spec(layout.clone()), LibVer::default(), durable);
        let data = dataset(&writer);
        let mut image = recording.inner().to_vec();
        drop(recording.take_log());
        for new in 2..5 {
            fill(&data, new);
            writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            let log = recording.take_log();
            let mut seen = new - 1;
            for operation in &log {
                let parts = match operation {
                    StorageOp::Write { at, bytes } => (0..bytes.len())
                        .filter(|cut| *cut == 0 || (at + *cut as u64).is_multiple_of(4096))
                        .map(|cut| StorageOp::Write { at: *at, bytes: bytes[..cut].to_vec() })
                        .collect(),
                    _ => Vec::new(),
                };
                for part in &parts {
                    let mut left = image.clone();
                    replay_operations(&mut left, [part]).unwrap();
                    let left: Arc<dyn Storage> = Arc::new(memory(&left));
                    let reader = NativeFile::open_storage(left.clone(), &options(Mode::SwmrRead)).unwrap();
                    let found = value(&dataset(&reader));
                    assert!(found == new || found == new - 1 && found >= seen, "{layout:?}: {found} after {seen}");
                    seen = found;
                    drop(reader);
                    let next = NativeFile::open_storage(left.clone(), &options(Mode::SwmrWrite)).unwrap();
                    assert_eq!(value(&dataset(&next)), found, "{layout:?}, {durable}");
                    drop(next);
                    assert_eq!(value(&dataset(&NativeFile::open_storage(left, &options(Mode::Read)).unwrap())), found);
                }
                replay_operations(&mut image, [operation]).unwrap();
            }
            assert_eq!(seen, new);
        }
        drop((data, writer));
    }
}

fn memory(image: &[u8]) -> MemoryStorage {
    let memory = MemoryStorage::new();
    memory.write_at(image, 0).unwrap();
    memory
}

#[test]
fn readers_find_the_old_or_the_new_while_it_is_rewritten() {
    for (layout, profile) in
        layouts().into_iter().map(|layout| (layout, LibVer::default())).chain([(Layout::Contiguous, LibVer::V18)])
    {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.h5");
        let open = |mode| NativeFile::open(&path, &OpenOptions { mode, ..OpenOptions::default() }).unwrap();
        let create = OpenOptions { mode: Mode::Create, profile, ..OpenOptions::default() };
        let writer = NativeFile::open(&path, &create).unwrap();
        writer.create(&NewObject::linked(writer.session().root, &"data".into(), &spec(layout).into())).unwrap();
        let data = dataset(&writer);
        fill(&data, 1);
        writer.start_swmr().unwrap();
        let reader = open(Mode::SwmrRead);
        let seen = dataset(&reader);
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut last = 0;
                while !ended.load(Ordering::Acquire) {
                    let found = value(&seen);
                    assert!(found >= last, "{found} after {last}");
                    last = found;
                }
            });
            for new in 2..=250 {
                fill(&data, new);
                writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            }
            ended.store(true, Ordering::Release);
        });
        assert_eq!(value(&seen), 250);
    }
}

#[test]
fn a_rewrite_that_fails_is_finished_by_the_next_flush() {
    for layout in layouts() {
        for fails in 0..8 {
            let memory = MemoryStorage::new();
            let faulty = FaultyStorage::new(memory.clone());
            let storage: Arc<dyn Storage> = Arc::new(faulty.clone());
            let writer = followed(&storage, spec(layout.clone()), LibVer::default(), false);
            let (data, there) = (dataset(&writer), Arc::new(memory) as Arc<dyn Storage>);
            let reader = NativeFile::open_storage(there, &options(Mode::SwmrRead)).unwrap();
            let seen = dataset(&reader);
            fill(&data, 2);
            faulty.fail_after(fails, InjectedFailure::PartialWrite(4096), false);
            let flushed = writer.commit(ObjectScope::All, PublishLevel::Visible).is_ok();
            let left = value(&seen);
            assert!(left == 2 || !flushed && left == 1, "{fails}: {left}");
            fill(&data, 3);
            // The fault comes once, now or before.
            writer
                .commit(ObjectScope::All, PublishLevel::Visible)
                .or_else(|_| writer.commit(ObjectScope::All, PublishLevel::Visible))
                .unwrap();
            assert_eq!(value(&seen), 3, "{fails}");
        }
    }
}

/// Rows that are appended to a chunk are not seen before the extent: they are written once.
#[test]
fn only_what_may_be_read_is_written_twice() {
    let recording = Arc::new(RecordingStorage::new(MemoryStorage::new()));
    let storage: Arc<dyn Storage> = recording.clone();
    let growing = DatasetSpec {
        dataspace: Dataspace::Simple(Shape::with_max(&[0], &[UNLIMITED]).unwrap()),
        ..spec(Layout::Chunked(vec![BYTES as u64]))
    };
    let writer = NativeFile::open_storage(storage, &options(Mode::Create)).unwrap();
    writer.create(&NewObject::linked(writer.session().root, &"data".into(), &growing.into())).unwrap();
    writer.start_swmr().unwrap();
    let (data, coord) = (dataset(&writer), ChunkCoord::new(&[0]));
    let writes = |from: u64, to: u64| {
        data.write_byte_range(&coord, from, &vec![7; (to - from) as usize]).unwrap();
        if to > data.spec().unwrap().dataspace.dims()[0] {
            data.set_extent(&[to]).unwrap();
        }
        drop(recording.take_log());
        writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
        let is_long = |operation: &StorageOp| matches!(operation, StorageOp::Write { bytes, .. } if bytes.len() >= 500);
        recording.take_log().iter().filter(|operation| is_long(operation)).count()
    };
    assert_eq!(writes(0, 1000), 1);
    assert_eq!(writes(1000, 1500), 1);
    assert_eq!(writes(200, 800), 2);
    assert_eq!(writes(1400, 2000), 2);
    assert_eq!(writes(2000, 2600), 1);
}
