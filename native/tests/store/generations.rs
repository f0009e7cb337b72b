//! Files whose structures have no checksums, or not all of them, are followed by the generations that their writer
//! shows.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use h5live_cache::{FaultyStorage, InjectedFailure, MemoryStorage};
use h5live_model::{
    AttributeData, ByteOrder, ChunkCoord, ChunkStore, DatasetSpec, Dataspace, Datatype, Layout, LinkTarget, Name,
    NewObject, ObjectScope, ObjectSpec, PublishLevel, Shape, Sign, Store, StoreWriter, UNLIMITED, WriterLiveness,
};
use h5live_native::{Error, LibVer, Mode, NativeFile, OpenOptions, RetryPolicy, repair};
use h5live_swmr::{Error as SwmrError, FileOpenState, GenerationReadEvent, OpenConflict, diagnose_open_state};

const OLD: [LibVer; 2] = [LibVer::Earliest, LibVer::V18];

fn options(mode: Mode, profile: LibVer) -> OpenOptions {
    OpenOptions { mode, profile, ..OpenOptions::default() }
}

fn open(path: &Path, mode: Mode) -> Result<NativeFile, Error> {
    NativeFile::open(path, &options(mode, LibVer::default()))
}

fn spec() -> DatasetSpec {
    DatasetSpec {
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::with_max(&[0, 8], &[UNLIMITED, 8]).unwrap()),
        layout: Layout::Chunked(vec![1, 8]),
        ..DatasetSpec::default()
    }
}

fn dataset(file: &NativeFile, name: &str) -> Arc<dyn ChunkStore> {
    match file.link(file.session().root, &Name::from(name)).unwrap().unwrap().target {
        LinkTarget::Hard(id) => file.dataset(id).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn append(data: &Arc<dyn ChunkStore>, row: u64) {
    data.write_whole_chunk(&ChunkCoord::new(&[row, 0]), 0, &[(row as u8).wrapping_add(1); 8]).unwrap();
    data.set_extent(&[row + 1, 8]).unwrap();
}

/// How many rows there are, all of which have their values.
fn rows(data: &Arc<dyn ChunkStore>) -> u64 {
    data.refresh().unwrap();
    let rows = data.spec().unwrap().dataspace.dims()[0];
    for row in 0..rows {
        let chunk = data.locate(&ChunkCoord::new(&[row, 0])).unwrap().unwrap_or_else(|| panic!("row {row} of {rows}"));
        let mut found = [0; 8];
        data.read(&chunk, 0, &mut found).unwrap();
        assert_eq!(found, [(row as u8).wrapping_add(1); 8], "row {row} of {rows}");
    }
    rows
}

fn attribute(name: &str, value: u8) -> AttributeData {
    AttributeData {
        name: name.into(),
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        committed_datatype: None,
        dataspace: Dataspace::Simple(Shape::fixed(&[1])),
        value: vec![value],
        creation_order: None,
    }
}

/// A new file that others may follow.
fn live(path: &Path, profile: LibVer) -> NativeFile {
    let file = NativeFile::open(path, &options(Mode::Create, profile)).unwrap();
    file.create(&NewObject::linked(file.session().root, &"data".into(), &spec().into())).unwrap();
    file.start_swmr().unwrap();
    file
}

/// The writer dies: what it holds is let go of by the system, and nothing is written any more.
fn die(path: &Path, profile: LibVer, rows_left: u64) {
    let copy = path.with_extension("copy");
    let file = live(path, profile);
    let data = dataset(&file, "data");
    (0..rows_left).for_each(|row| append(&data, row));
    file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    std::fs::copy(path, &copy).unwrap();
    drop((data, file));
    std::fs::rename(copy, path).unwrap();
}

#[test]
fn everything_that_is_flushed_is_followed() {
    for profile in OLD {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.h5");
        let writer = live(&path, profile);
        let reader = open(&path, Mode::SwmrRead).unwrap();
        let (data, seen) = (dataset(&writer, "data"), dataset(&reader, "data"));
        for row in 0..150 {
            append(&data, row);
            writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            assert_eq!(rows(&seen), row + 1);
        }
        assert!(reader.liveness().unwrap() != WriterLiveness::AtRest);
        for number in 0..40 {
            let name = Name::from(format!("new {number}").as_str());
            let group = writer.create(&NewObject::linked(writer.session().root, &name, &ObjectSpec::group())).unwrap();
            writer.set_attribute(group, &attribute("number", number)).unwrap();
            writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            let LinkTarget::Hard(found) = reader.link(reader.session().root, &name).unwrap().unwrap().target else {
                panic!()
            };
            assert_eq!(reader.attribute(found, &"number".into()).unwrap().unwrap().value, [number]);
            if number % 3 == 0 {
                writer.remove_link(writer.session().root, &name).unwrap();
                writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
                assert!(reader.link(reader.session().root, &name).unwrap().is_none());
                assert!(reader.attribute(found, &"number".into()).is_err());
            }
        }
        drop(data);
        writer.close().unwrap();
        assert_eq!(rows(&seen), 150);
        assert!(reader.liveness().unwrap() == WriterLiveness::AtRest);
        assert_eq!(diagnose_open_state(&path).unwrap().open_state, FileOpenState::Closed);
        // It takes the file for one that nobody changes, and sees to it.
        assert!(matches!(open(&path, Mode::SwmrWrite), Err(Error::Swmr(SwmrError::InUse { .. }))));
        drop((seen, reader));
        drop(open(&path, Mode::SwmrWrite).unwrap());
    }
}

#[test]
fn only_those_who_go_by_generations_are_let_in() {
    for profile in OLD {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.h5");
        let writer = live(&path, profile);
        for mode in [Mode::Read, Mode::Write, Mode::SwmrWrite] {
            let refused = open(&path, mode).unwrap_err();
            assert!(
                matches!(refused, Error::Swmr(SwmrError::InUse { reason: OpenConflict::Writer, .. })),
                "{mode:?}: {refused:?}"
            );
        }
        // As other programs do it.
        let other = File::open(&path).unwrap();
        assert!(other.try_lock_shared().is_err());
        drop(writer);
        other.try_lock_shared().unwrap();
        assert!(open(&path, Mode::Read).is_ok());
    }
}

#[test]
fn a_dead_writer_is_replaced_under_its_readers() {
    for profile in OLD {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.h5");
        die(&path, profile, 5);
        assert_eq!(diagnose_open_state(&path).unwrap().open_state, FileOpenState::Abandoned { live: true });
        let reader = open(&path, Mode::SwmrRead).unwrap();
        let seen = dataset(&reader, "data");
        assert_eq!(rows(&seen), 5);
        let writer = open(&path, Mode::SwmrWrite).unwrap();
        let data = dataset(&writer, "data");
        for row in 5..10 {
            append(&data, row);
            writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            assert_eq!(rows(&seen), row + 1);
        }
    }
}

#[test]
fn another_program_that_writes_after_a_death_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.h5");
    die(&path, LibVer::Earliest, 5);
    let policy = RetryPolicy::new(12, |_| ());
    let few_retries = OpenOptions { retry: policy, ..options(Mode::SwmrRead, LibVer::default()) };
    let reader = NativeFile::open(&path, &few_retries).unwrap();
    let seen = dataset(&reader, "data");
    assert_eq!(rows(&seen), 5);
    let other = File::open(&path).unwrap();
    other.try_lock().unwrap();
    assert!(seen.locate(&ChunkCoord::new(&[0, 0])).is_err());
    other.unlock().unwrap();
    assert_eq!(rows(&seen), 5);
}

#[test]
fn a_repaired_file_ends_where_it_did() {
    for profile in OLD {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.h5");
        die(&path, profile, 5);
        assert!(repair(&path, &OpenOptions::default()).unwrap().has_diagnosis_changed());
        let found = diagnose_open_state(&path).unwrap();
        assert_eq!((found.open_state, found.length), (FileOpenState::Closed, found.announced_length));
        assert_eq!(rows(&dataset(&open(&path, Mode::Read).unwrap(), "data")), 5);
    }
}

/// Each write in turn fails, once, in part; the writer goes on with its next flush.
#[test]
fn a_flush_that_failed_is_finished_by_the_next() {
    for profile in OLD {
        for at in 0.. {
            let storage = MemoryStorage::new();
            let faulty = Arc::new(FaultyStorage::new(storage.clone()));
            let writer = NativeFile::open_storage(faulty.clone(), &options(Mode::Create, profile)).unwrap();
            writer.create(&NewObject::linked(writer.session().root, &"data".into(), &spec().into())).unwrap();
            let data = dataset(&writer, "data");
            append(&data, 0);
            writer.start_swmr().unwrap();
            let reader =
                NativeFile::open_storage(Arc::new(storage), &options(Mode::SwmrRead, LibVer::default())).unwrap();
            let seen = dataset(&reader, "data");
            faulty.fail_after(at, InjectedFailure::PartialWrite(100), false);
            let mut failed = false;
            for row in 1..5 {
                let coord = ChunkCoord::new(&[row, 0]);
                while data.write_whole_chunk(&coord, 0, &[(row as u8).wrapping_add(1); 8]).is_err() {
                    failed = true;
                }
                data.set_extent(&[row + 1, 8]).unwrap();
                let name = format!("group {row}");
                writer
                    .create(&NewObject::linked(writer.session().root, &name.as_str().into(), &ObjectSpec::group()))
                    .unwrap();
                let before = rows(&seen);
                if writer.commit(ObjectScope::All, PublishLevel::Visible).is_err() {
                    failed = true;
                    let between = rows(&seen);
                    assert!(between == before || between == row + 1, "write {at}: {between} rows");
                    writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
                }
                assert_eq!(rows(&seen), row + 1, "write {at}");
                assert!(reader.link(reader.session().root, &name.as_str().into()).unwrap().is_some(), "write {at}");
            }
            if !failed {
                assert!(at > 20);
                break;
            }
        }
    }
}

/// Structures that a reader reads until the writer has flushed again.
const STRUCTURES_PER_FLUSH: u64 = 100;

/// A reader whose writer calls `flush` whenever the reader takes long for an operation, until the reader is done.
fn slow_reader(path: &Path, flush: impl Fn() + Send + Sync + 'static) -> Arc<NativeFile> {
    let (reader, before) = (Arc::new(OnceLock::<Arc<NativeFile>>::new()), AtomicU64::new(0));
    let known = reader.clone();
    let retry = RetryPolicy::new(60, |_| ()).with_hook(move |event| {
        let Some(reader) = known.get() else { return };
        match event {
            GenerationReadEvent::ReadStarted(..) => before.store(reader.stats().misses, Ordering::Relaxed),
            GenerationReadEvent::ReadFinished
                if reader.stats().misses > before.load(Ordering::Relaxed) + STRUCTURES_PER_FLUSH =>
            {
                flush();
            }
            _ => {}
        }
    });
    let options = OpenOptions { mode: Mode::SwmrRead, retry, ..OpenOptions::default() };
    let opened = Arc::new(NativeFile::open(path, &options).unwrap());
    reader.get_or_init(|| opened).clone()
}

#[test]
fn a_list_that_takes_longer_than_the_pause_between_flushes_is_read_in_parts() {
    const LINKS: usize = 3000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.h5");
    let file = NativeFile::open(&path, &options(Mode::Create, LibVer::Earliest)).unwrap();
    let root = file.session().root;
    file.create(&NewObject::linked(root, &"data".into(), &spec().into())).unwrap();
    let target = LinkTarget::Soft("/data".into());
    (0..LINKS).for_each(|number| file.add_link(root, &Name::from(format!("link {number}").as_str()), &target).unwrap());
    file.start_swmr().unwrap();
    let (data, writer) = (dataset(&file, "data"), Arc::new(file));
    let flushes = Arc::new(AtomicU64::new(0));
    let (flushed, flushing) = (flushes.clone(), writer.clone());
    let reader = slow_reader(&path, move || {
        append(&data, flushed.fetch_add(1, Ordering::Relaxed));
        flushing.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    });
    let mut names = Vec::new();
    reader
        .for_each_link(root, &mut |link| {
            names.push(link.name);
            true
        })
        .unwrap();
    assert!(flushes.load(Ordering::Relaxed) > 3, "the writer goes on meanwhile");
    assert_eq!(names.len(), LINKS + 1);
    assert!(names.is_sorted());
    names.dedup();
    assert_eq!(names.len(), LINKS + 1, "each is there once");
}

#[test]
fn an_operation_that_is_always_overtaken_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("busy.h5");
    let file = live(&path, LibVer::Earliest);
    let (data, writer, rows) = (dataset(&file, "data"), Arc::new(file), AtomicU64::new(0));
    let reader = Arc::new(OnceLock::<()>::new());
    let is_open = reader.clone();
    let retry = RetryPolicy::new(5, |_| ()).with_hook(move |event| {
        if let (GenerationReadEvent::ReadFinished, Some(())) = (event, is_open.get()) {
            append(&data, rows.fetch_add(1, Ordering::Relaxed));
            writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
        }
    });
    let options = OpenOptions { mode: Mode::SwmrRead, retry, ..OpenOptions::default() };
    let opened = NativeFile::open(&path, &options).unwrap();
    reader.set(()).unwrap();
    let said = opened.link(opened.session().root, &"data".into()).unwrap_err().to_string();
    assert!(said.contains("5 attempts to read this took longer than the writer takes"), "{said}");
}

#[test]
fn chunks_that_take_longer_than_the_pause_between_flushes_are_listed_in_parts() {
    const ROWS: u64 = 6000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chunks.h5");
    let file = NativeFile::open(&path, &options(Mode::Create, LibVer::Earliest)).unwrap();
    for name in ["data", "many"] {
        file.create(&NewObject::linked(file.session().root, &name.into(), &spec().into())).unwrap();
    }
    let many = dataset(&file, "many");
    (0..ROWS).for_each(|row| append(&many, row));
    file.start_swmr().unwrap();
    let (data, writer) = (dataset(&file, "data"), Arc::new(file));
    let flushes = Arc::new(AtomicU64::new(0));
    let (flushed, flushing) = (flushes.clone(), writer.clone());
    let reader = slow_reader(&path, move || {
        append(&data, flushed.fetch_add(1, Ordering::Relaxed));
        flushing.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    });
    let mut coords = Vec::new();
    dataset(&reader, "many")
        .for_each_chunk(&mut |chunk| {
            coords.push(chunk.coord.scaled()[0]);
            true
        })
        .unwrap();
    assert!(flushes.load(Ordering::Relaxed) > 0, "the first attempt is in vain");
    assert_eq!(coords, (0..ROWS).collect::<Vec<_>>());
}
