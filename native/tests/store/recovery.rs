//! A writer that died: what state its file is in, and what the next one, or a repair, makes of it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use h5live_cache::{MemoryStorage, RecordingStorage, Storage, StorageOp, replay_operations};
use h5live_format::RedoRecord;
use h5live_model::{
    ByteOrder, ChunkCoord, ChunkStore, DatasetSpec, Dataspace, Datatype, FileHolderProcess, Layout, LinkTarget, Name,
    NewObject, ObjectScope, PublishLevel, Shape, Sign, Store, StoreWriter, UNLIMITED, VarLenKind, VarLenType,
    read_blob,
};
use h5live_native::{Clock, Error, LibVer, Mode, MutantOptions, NativeFile, OpenOptions, RetryPolicy, repair};
use h5live_swmr::{Error as SwmrError, FileOpenState, diagnose_open_state};

fn options(mode: Mode) -> OpenOptions {
    OpenOptions { mode, ..OpenOptions::default() }
}

fn bytes(unlimited: usize) -> DatasetSpec {
    let max = if unlimited == 2 { [UNLIMITED; 2] } else { [UNLIMITED, 64] };
    DatasetSpec {
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::with_max(&[0, 64], &max).unwrap()),
        layout: Layout::Chunked(vec![1, 64]),
        ..DatasetSpec::default()
    }
}

fn dataset(file: &NativeFile, name: &str) -> Arc<dyn ChunkStore> {
    match file.link(file.session().root, &Name::from(name)).unwrap().unwrap().target {
        LinkTarget::Hard(id) => file.dataset(id).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn append(data: &Arc<dyn ChunkStore>, rows: std::ops::Range<u64>) {
    for n in rows {
        data.write_whole_chunk(&ChunkCoord::new(&[n, 0]), 0, &[n as u8; 64]).unwrap();
        data.set_extent(&[n + 1, 64]).unwrap();
    }
}

fn check(file: &NativeFile, name: &str, rows: u64) {
    let data = dataset(file, name);
    assert_eq!(data.spec().unwrap().dataspace.dims()[0], rows);
    for n in 0..rows {
        let chunk = data.locate(&ChunkCoord::new(&[n, 0])).unwrap().unwrap();
        let mut found = [0; 64];
        data.read(&chunk, 0, &mut found).unwrap();
        assert_eq!(found, [n as u8; 64], "row {n}");
    }
}

/// Fills the file at `path` live, and leaves it as a writer that dies does; returns where a clean one would end.
fn die(path: &Path, options: &OpenOptions) -> u64 {
    let living = path.with_extension("living");
    let file = NativeFile::open(&living, options).unwrap();
    for (name, unlimited) in [("one", 1), ("two", 2)] {
        file.create(&NewObject::linked(file.session().root, &Name::from(name), &bytes(unlimited).into())).unwrap();
    }
    file.start_swmr().unwrap();
    for name in ["one", "two"] {
        append(&dataset(&file, name), 0..200);
    }
    file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    fs::copy(&living, path).unwrap();
    file.close().unwrap();
    let clean = fs::metadata(&living).unwrap().len();
    // Unpublished bytes.
    let mut dead = fs::OpenOptions::new().append(true).open(path).unwrap();
    std::io::Write::write_all(&mut dead, &[0xaa; 10_000]).unwrap();
    clean
}

/// The model of who gets in found that such a reader took nothing anew.
#[test]
fn a_plain_reader_of_a_dead_writers_file_follows_the_writer_that_takes_it_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    die(&path, &options(Mode::Create));
    let reader = NativeFile::open(&path, &options(Mode::Read)).unwrap();
    check(&reader, "one", 200);
    let held = dataset(&reader, "two");
    let writer = NativeFile::open(&path, &options(Mode::SwmrWrite)).unwrap();
    for name in ["one", "two"] {
        append(&dataset(&writer, name), 200..300);
    }
    writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    check(&reader, "one", 300);
    held.refresh().unwrap();
    check(&reader, "two", 300);
    writer.close().unwrap();
}

#[test]
fn a_repaired_file_is_as_one_that_was_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    for headroom in [0, 128 << 20] {
        let clean = die(&path, &OpenOptions { eof_headroom_bytes: headroom, ..options(Mode::Create) });
        let before = diagnose_open_state(&path).unwrap();
        assert_eq!(before.open_state, FileOpenState::Abandoned { live: true });
        assert!(before.needs_repair() && before.announced_length >= clean.max(headroom));
        assert!(NativeFile::open(&path, &options(Mode::Read)).is_ok(), "readers need no repair");
        let done = repair(&path, &OpenOptions::default()).unwrap();
        assert_eq!(done.before, before);
        assert_eq!(done.after.open_state, FileOpenState::Closed);
        assert_eq!(done.after.length, done.after.announced_length);
        assert!(done.after.length <= clean, "{} of {clean}", done.after.length);
        assert!(!done.after.needs_repair() && !repair(&path, &OpenOptions::default()).unwrap().has_diagnosis_changed());
        let file = NativeFile::open(&path, &options(Mode::Read)).unwrap();
        check(&file, "one", 200);
        check(&file, "two", 200);
    }
}

#[test]
fn the_next_writer_goes_on_where_the_dead_one_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    for (mode, headroom) in [(Mode::SwmrWrite, 0), (Mode::Write, 0), (Mode::SwmrWrite, 128 << 20)] {
        let clean = die(&path, &OpenOptions { eof_headroom_bytes: headroom, ..options(Mode::Create) });
        let file = NativeFile::open(&path, &options(mode)).unwrap();
        for name in ["one", "two"] {
            append(&dataset(&file, name), 200..300);
        }
        file.close().unwrap();
        let after = fs::metadata(&path).unwrap().len();
        assert!(after < clean + (256 << 10), "{after} after {clean}");
        let file = NativeFile::open(&path, &options(Mode::Read)).unwrap();
        check(&file, "one", 300);
        check(&file, "two", 300);
    }
}

#[test]
fn a_file_that_is_being_written_is_not_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    let file = NativeFile::open(&path, &options(Mode::Create)).unwrap();
    file.start_swmr().unwrap();
    if let FileOpenState::OpenForWriting { live, .. } = diagnose_open_state(&path).unwrap().open_state {
        assert!(live);
        assert!(matches!(repair(&path, &OpenOptions::default()), Err(Error::Swmr(SwmrError::InUse { .. }))));
    }
    file.close().unwrap();
    assert_eq!(diagnose_open_state(&path).unwrap().open_state, FileOpenState::Closed);
}

/// On a machine with many processes, looking through all of them is most of what a refusal costs.
#[test]
fn who_does_not_ask_for_the_process_of_a_live_writer_is_refused_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    let file = NativeFile::open(&path, &options(Mode::Create)).unwrap();
    file.start_swmr().unwrap();
    for mode in [Mode::Read, Mode::Write, Mode::SwmrWrite] {
        for names_writer in [false, true] {
            let refused =
                NativeFile::open(&path, &OpenOptions { reports_writer_process: names_writer, ..options(mode) })
                    .unwrap_err();
            let Error::Swmr(SwmrError::InUse { holders, .. }) = refused else { panic!("{mode:?}: {refused:?}") };
            let is_named = names_writer && cfg!(target_os = "linux");
            assert_eq!(holders.iter().any(FileHolderProcess::is_this_process), is_named, "{mode:?}: {holders:?}");
        }
    }
    file.close().unwrap();
}

#[test]
fn a_file_that_is_shorter_than_it_says_is_repaired_if_nothing_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    let clean = die(&path, &OpenOptions { eof_headroom_bytes: 1 << 20, ..options(Mode::Create) });
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(clean + 100).unwrap();
    drop(file);
    let done = repair(&path, &OpenOptions::default()).unwrap();
    assert!(done.after.length <= clean);
    check(&NativeFile::open(&path, &options(Mode::Read)).unwrap(), "two", 200);
}

#[test]
fn strings_at_the_end_of_a_dead_writers_file_are_kept() {
    let storage = MemoryStorage::new();
    let file = NativeFile::open_storage(Arc::new(storage.clone()), &options(Mode::Create)).unwrap();
    let spec = DatasetSpec {
        datatype: Datatype::VarLen(VarLenType { kind: VarLenKind::Sequence, size: 16, base: Box::default() }),
        dataspace: Dataspace::Simple(Shape::with_max(&[0], &[UNLIMITED]).unwrap()),
        layout: Layout::Chunked(vec![1]),
        ..DatasetSpec::default()
    };
    file.create(&NewObject::linked(file.session().root, &Name::from("texts"), &spec.into())).unwrap();
    file.start_swmr().unwrap();
    let data = dataset(&file, "texts");
    let text = |n: u64| vec![b'a' + n as u8; 3000];
    for n in 0..20 {
        let element = file.put_blob(&text(n), 3000).unwrap();
        data.write_whole_chunk(&ChunkCoord::new(&[n]), 0, &element).unwrap();
        data.set_extent(&[n + 1]).unwrap();
        file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    }
    let dead = MemoryStorage::from(storage.to_vec());
    let next = NativeFile::open_storage(Arc::new(dead.clone()), &options(Mode::Write)).unwrap();
    for n in 0..20 {
        next.create(&NewObject::linked(next.session().root, &Name::from(&*format!("{n}")), &bytes(2).into())).unwrap();
        append(&dataset(&next, &format!("{n}")), 0..20);
    }
    next.close().unwrap();
    let file = NativeFile::open_storage(Arc::new(dead), &options(Mode::Read)).unwrap();
    let data = dataset(&file, "texts");
    for n in 0..20 {
        let chunk = data.locate(&ChunkCoord::new(&[n])).unwrap().unwrap();
        let mut element = vec![0; 16];
        data.read(&chunk, 0, &mut element).unwrap();
        assert_eq!(read_blob(&file, &element).unwrap(), text(n));
    }
    assert!(storage.len().unwrap() > 0);
}

#[test]
fn a_writer_whose_file_was_replaced_stops() {
    // It looks before it writes what comes two milliseconds after the last look, and after it has written what comes
    // one millisecond after that.
    for (later, is_seen_before) in [(2, true), (1, false)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.h5");
        let time = Arc::new(AtomicU64::new(0));
        let shown = time.clone();
        let clock = Clock::new(move || Duration::from_millis(shown.load(Ordering::Relaxed)));
        let file = NativeFile::open(&path, &OpenOptions { clock, ..options(Mode::Create) }).unwrap();
        file.start_swmr().unwrap();
        fs::rename(&path, folder.path().join("moved.h5")).unwrap();
        file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
        fs::write(&path, b"another").unwrap();
        time.fetch_add(later, Ordering::Relaxed);
        assert_eq!(file.commit(ObjectScope::All, PublishLevel::Visible).is_err(), is_seen_before, "{later} ms later");
        assert!(
            matches!(file.commit(ObjectScope::All, PublishLevel::Visible), Err(h5live_model::Error::Store(_))),
            "{later} ms later"
        );
        assert_eq!(fs::read(&path).unwrap(), b"another");
    }
}

/// A file that is emptied, though nothing was in it, is written to the disk when it is closed, by some file systems.
#[test]
fn only_what_holds_something_is_emptied_for_a_new_file() {
    let storage = RecordingStorage::new(MemoryStorage::default());
    for is_emptied in [false, true] {
        let file = NativeFile::open_storage(Arc::new(storage.clone()), &options(Mode::Create)).unwrap();
        assert_eq!(storage.take_log().contains(&StorageOp::SetLen(0)), is_emptied);
        file.close().unwrap();
        storage.take_log();
    }
}

/// A redo record was taken for zeros, because nothing had been allocated there.
#[test]
fn chunks_where_a_dead_writers_intent_was_hold_nothing_of_it() {
    let storage = RecordingStorage::new(MemoryStorage::default());
    let file = NativeFile::open_storage(Arc::new(storage.clone()), &options(Mode::Create)).unwrap();
    // The changes of a page of the large array get a redo record first: it is longer than a page of memory.
    for (name, chunks) in [("large", 2048), ("small", 400)] {
        let len = 64 * chunks;
        let spec = DatasetSpec {
            datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
            dataspace: Dataspace::Simple(Shape::with_max(&[len], &[len]).unwrap()),
            layout: Layout::Chunked(vec![64]),
            ..DatasetSpec::default()
        };
        file.create(&NewObject::linked(file.session().root, &Name::from(name), &spec.into())).unwrap();
    }
    file.start_swmr().unwrap();
    let mut image = Vec::new();
    replay_operations(&mut image, &storage.take_log()).unwrap();
    for n in 0..4 {
        dataset(&file, "large").write_whole_chunk(&ChunkCoord::new(&[n * 250]), 0, &[0xaa; 64]).unwrap();
        file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    }
    let mut redo_records = 0;
    for operation in storage.take_log() {
        replay_operations(&mut image, [&operation]).unwrap();
        redo_records += u32::from(image.windows(4).any(|bytes| bytes == RedoRecord::SIGNATURE));
        let trial = MutantOptions { cache_shard_count: Some(1), ..MutantOptions::default() };
        let options =
            OpenOptions { mode: Mode::SwmrWrite, take_over_if_unknown: true, mutant: trial, ..OpenOptions::default() };
        let file = NativeFile::open_storage(Arc::new(MemoryStorage::from(image.clone())), &options).unwrap();
        let data = dataset(&file, "small");
        for n in 0..400 {
            let coord = ChunkCoord::new(&[n]);
            data.write_byte_range(&coord, 7, &[0xbb]).unwrap();
            file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            let mut found = [0; 64];
            data.read(&data.locate(&coord).unwrap().unwrap(), 0, &mut found).unwrap();
            assert!(found.iter().enumerate().all(|(at, byte)| *byte == if at == 7 { 0xbb } else { 0 }), "chunk {n}");
        }
    }
    assert!(redo_records > 0);
}

/// Readers of what a dead writer has left torn tried again and again, each time that they looked there.
#[test]
fn what_a_dead_writer_has_left_torn_is_found_out_once() {
    let storage = RecordingStorage::new(MemoryStorage::default());
    let file = NativeFile::open_storage(Arc::new(storage.clone()), &options(Mode::Create)).unwrap();
    let spec = DatasetSpec {
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::with_max(&[64 * 2048], &[64 * 2048]).unwrap()),
        layout: Layout::Chunked(vec![64]),
        ..DatasetSpec::default()
    };
    file.create(&NewObject::linked(file.session().root, &Name::from("large"), &spec.into())).unwrap();
    file.start_swmr().unwrap();
    let write = |n: u64| {
        dataset(&file, "large").write_whole_chunk(&ChunkCoord::new(&[n]), 0, &[0xaa; 64]).unwrap();
        file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    };
    write(0);
    let mut image = Vec::new();
    replay_operations(&mut image, &storage.take_log()).unwrap();
    write(1);
    let mut torn = 0;
    for operation in storage.take_log() {
        if let StorageOp::Write { at, bytes } = &operation
            && bytes.starts_with(b"FADB") | (bytes.len() > 8000)
            && !bytes.starts_with(&RedoRecord::SIGNATURE)
        {
            let cut = StorageOp::Write { at: *at, bytes: bytes[..4096 - (*at % 4096) as usize].to_vec() };
            let mut left = image.clone();
            replay_operations(&mut left, [&cut]).unwrap();
            let waits = Arc::new(AtomicU64::new(0));
            let counted = waits.clone();
            let policy = RetryPolicy::new(12, move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
            });
            let options = OpenOptions { take_over_if_unknown: true, retry: policy, ..options(Mode::SwmrRead) };
            let reader = NativeFile::open_storage(Arc::new(MemoryStorage::from(left)), &options).unwrap();
            let data = dataset(&reader, "large");
            for n in 0..100 {
                data.refresh().unwrap();
                assert_eq!(data.locate(&ChunkCoord::new(&[n])).unwrap().is_some(), n < 2);
            }
            torn += u64::from(waits.load(Ordering::Relaxed) > 0);
            assert!(waits.load(Ordering::Relaxed) < 12, "{waits:?}");
        }
        replay_operations(&mut image, [&operation]).unwrap();
    }
    assert!(torn > 0, "nothing was torn");
}

/// The writer dies at each of its writes; the next one extends the dataset past all that was ever written.
#[test]
fn what_a_dead_writer_left_beyond_the_extent_never_shows() {
    let rows = |max: [u64; 2], profile| {
        let dataspace = Dataspace::Simple(Shape::with_max(&[0, 64], &max).unwrap());
        (DatasetSpec { dataspace, ..bytes(1) }, profile)
    };
    let kinds = [
        rows([UNLIMITED, 64], LibVer::V110),
        rows([4000, 64], LibVer::V110),
        rows([UNLIMITED, UNLIMITED], LibVer::V110),
        rows([UNLIMITED, 64], LibVer::Earliest),
    ];
    for (spec, profile) in kinds {
        let storage = RecordingStorage::new(MemoryStorage::default());
        let create = OpenOptions { profile, ..options(Mode::Create) };
        let file = NativeFile::open_storage(Arc::new(storage.clone()), &create).unwrap();
        file.create(&NewObject::linked(file.session().root, &"data".into(), &spec.clone().into())).unwrap();
        file.start_swmr().unwrap();
        let data = dataset(&file, "data");
        append(&data, 0..2);
        file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
        let mut image = Vec::new();
        replay_operations(&mut image, &storage.take_log()).unwrap();
        // One row is published, many are written.
        for n in [2, 3, 5, 9, 17, 40] {
            data.write_whole_chunk(&ChunkCoord::new(&[n, 0]), 0, &[n as u8; 64]).unwrap();
        }
        data.set_extent(&[3, 64]).unwrap();
        file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
        for operation in storage.take_log() {
            replay_operations(&mut image, [&operation]).unwrap();
            let left = Arc::new(MemoryStorage::from(image.clone()));
            let writer =
                NativeFile::open_storage(left, &OpenOptions { take_over_if_unknown: true, ..options(Mode::SwmrWrite) })
                    .unwrap();
            let data = dataset(&writer, "data");
            let published = data.spec().unwrap().dataspace.dims()[0];
            data.write_whole_chunk(&ChunkCoord::new(&[50, 0]), 0, &[50; 64]).unwrap();
            data.set_extent(&[60, 64]).unwrap();
            writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            for n in 0..60 {
                let mut found = [0; 64];
                if let Some(chunk) = data.locate(&ChunkCoord::new(&[n, 0])).unwrap() {
                    data.read(&chunk, 0, &mut found).unwrap();
                }
                let expected = if n < published || n == 50 { n as u8 } else { 0 };
                assert_eq!(found, [expected; 64], "row {n}, {published} were published");
            }
            writer.close().unwrap();
        }
    }
}
