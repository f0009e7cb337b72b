//! Every schedule of small programs that use a session from two threads, explored by loom:
//! `make loom`.
//!
//! Engines are steps that nothing interrupts here: each has locks of its own, which it holds in no call of a session.
#![cfg(loom)]

mod explore;
#[path = "../../stores/kv/tests/shared/request.rs"]
mod request;

use std::sync::Arc;

use h5live_kv::engine::{LongKeyEngine, MemoryEngine};
use h5live_kv::layout::oid;
use h5live_kv::{KvStore, check_container};
use h5live_model::{
    AllocationLimit, ChunkBatch, ChunkCoord, ChunkWrite, DatasetSpec, Dataspace, Datatype, DurabilitySupport, Error,
    Layout, MapEdit, MapKey, MapSpec, MapStore, Mode, NewObject, NoFilters, ObjectId, ObjectKindSpec, ObjectScope,
    ObjectSpec, PublishLevel, Result, Shape, Store, StoreCheckOptions, StoreWriter,
};
use loom::thread;

use self::explore::explore;
use self::request::request;

fn open(engine: &MemoryEngine, mode: Mode) -> KvStore {
    KvStore::open(LongKeyEngine::new(engine.clone()), &request(mode, DurabilitySupport::Always, 3)).unwrap()
}

fn byte() -> Datatype {
    Datatype::integer(1, Default::default(), Default::default())
}

fn make(store: &KvStore, name: &str, body: ObjectKindSpec) -> Result<ObjectId> {
    store.create(&NewObject::linked(oid::ROOT, &name.into(), &ObjectSpec { body, ..ObjectSpec::group() }))
}

fn make_dataset(store: &KvStore, name: &str) -> Result<ObjectId> {
    let dataspace = Dataspace::Simple(Shape::with_max(&[0], &[8]).unwrap());
    let layout = Layout::Chunked(vec![4]);
    let spec = DatasetSpec { datatype: byte(), dataspace, layout, ..DatasetSpec::default() };
    make(store, name, ObjectKindSpec::Dataset(Box::new(spec)))
}

fn make_map(store: &KvStore, name: &str) -> Result<ObjectId> {
    make(store, name, ObjectKindSpec::Map(Box::new(MapSpec { key_type: byte(), value_type: byte() })))
}

/// Gives a dataset a chunk whose bytes are all `value`, and the extent with it.
fn write_chunk(store: &KvStore, id: ObjectId, at: u64, value: u8) -> Result<()> {
    let coord = ChunkCoord::new(&[at]);
    let writes = [ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: &[value; 4] }];
    let extent = [(at + 1) * 4];
    let batch = ChunkBatch { writes: &writes, extent: Some(&extent), ..ChunkBatch::default() };
    store.dataset(id)?.write(&batch)
}

/// The extent of a dataset, and its bytes.
fn read_all(store: &KvStore, id: ObjectId) -> Result<Vec<u8>> {
    let data = store.dataset(id)?;
    let extent = data.spec()?.dataspace.dims()[0];
    let mut bytes = Vec::new();
    for at in 0..extent / 4 {
        let chunk = data.locate(&ChunkCoord::new(&[at]))?.expect("what lies below the extent was written");
        let mut chunk_bytes = [0; 4];
        data.read(&chunk, 0, &mut chunk_bytes)?;
        bytes.extend(chunk_bytes);
    }
    Ok(bytes)
}

fn assert_sound(engine: &MemoryEngine) {
    let engine = LongKeyEngine::new(engine.clone());
    let report =
        check_container(&engine, StoreCheckOptions::default(), &NoFilters, AllocationLimit::default()).unwrap();
    assert!(report.has_no_findings() && report.leak_count == 0, "{:?}", report.findings);
}

fn put(store: &KvStore, map: ObjectId, value: u8) -> Result<()> {
    let edit = |key: &'static [u8], value| MapEdit::Put { key: MapKey::Bytes(key), value };
    store.write(map, &[edit(&[1], &[value]), edit(&[2], &[value])])
}

fn pairs(store: &KvStore, map: ObjectId) -> Result<Vec<u8>> {
    let mut found = Vec::new();
    store.for_each(map, &Default::default(), &mut |_, value| {
        found.push(value[0]);
        true
    })?;
    Ok(found)
}

#[test]
fn what_was_changed_before_a_session_closed_is_there_and_what_comes_later_is_refused() {
    explore("change against close", 3, || {
        let engine = MemoryEngine::new();
        let store = open(&engine, Mode::CreateNew);
        let map = make_map(&store, "map").unwrap();
        let other = store.clone();
        let thread = thread::spawn(move || put(&other, map, 7));
        store.close().unwrap();
        let expected = match thread.join().unwrap() {
            Ok(()) => vec![7, 7],
            Err(Error::Closed) => vec![],
            Err(error) => panic!("{error}"),
        };
        assert_eq!(pairs(&open(&engine.reader(), Mode::Read), map).unwrap(), expected);
    });
}

#[test]
fn objects_that_two_threads_make_are_two() {
    explore("create against create", 2, || {
        let engine = MemoryEngine::new();
        let store = open(&engine, Mode::CreateNew);
        let other = store.clone();
        let thread = thread::spawn(move || make_map(&other, "a").unwrap());
        let mine = make_map(&store, "b").unwrap();
        assert_ne!(mine, thread.join().unwrap());
        store.close().unwrap();
        assert_sound(&engine);
    });
}

#[test]
fn a_commit_has_all_of_a_change_or_nothing_of_it() {
    explore("change against commit", 3, || {
        let engine = MemoryEngine::new();
        let store = open(&engine, Mode::CreateNew);
        let map = make_map(&store, "map").unwrap();
        let other = store.clone();
        let thread = thread::spawn(move || put(&other, map, 7).unwrap());
        store.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
        let seen = pairs(&open(&engine.reader(), Mode::Read), map).unwrap();
        assert!([vec![], vec![7, 7]].contains(&seen), "{seen:?}");
        thread.join().unwrap();
        store.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
        assert_eq!(pairs(&open(&engine.reader(), Mode::Read), map).unwrap(), [7, 7]);
    });
}

#[test]
fn a_thread_reads_one_state_while_another_refreshes() {
    explore("read against refresh", 3, || {
        let engine = MemoryEngine::new();
        let writer = open(&engine, Mode::CreateNew);
        let id = make_dataset(&writer, "data").unwrap();
        write_chunk(&writer, id, 0, 1).unwrap();
        writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
        let reader = open(&engine.reader(), Mode::SwmrRead);
        assert_eq!(read_all(&reader, id).unwrap(), [1; 4]);
        write_chunk(&writer, id, 1, 2).unwrap();
        writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
        let other = reader.clone();
        let thread = thread::spawn(move || other.refresh(ObjectScope::All).unwrap());
        let seen = read_all(&reader, id).unwrap();
        assert!([vec![1; 4], [[1; 4], [2; 4]].concat()].contains(&seen), "{seen:?}");
        thread.join().unwrap();
        assert_eq!(read_all(&reader, id).unwrap(), [[1; 4], [2; 4]].concat());
    });
}

#[test]
fn threads_that_open_one_dataset_share_it() {
    explore("open against open", 3, || {
        let engine = MemoryEngine::new();
        let store = open(&engine, Mode::CreateNew);
        let id = make_dataset(&store, "data").unwrap();
        let other = store.clone();
        let thread = thread::spawn(move || other.dataset(id).unwrap());
        let mine = store.dataset(id).unwrap();
        assert!(
            Arc::ptr_eq(&mine, &thread.join().unwrap()),
            "one of them would not see the extent that the other sets"
        );
    });
}

#[test]
fn what_is_written_while_its_dataset_is_deleted_leaves_nothing() {
    explore("write against delete", 3, || {
        let engine = MemoryEngine::new();
        let store = open(&engine, Mode::CreateNew);
        let id = make_dataset(&store, "data").unwrap();
        let other = store.clone();
        let thread = thread::spawn(move || write_chunk(&other, id, 0, 1));
        store.remove_link(oid::ROOT, &"data".into()).unwrap();
        assert!(matches!(thread.join().unwrap(), Ok(()) | Err(Error::NoObject(_))));
        assert!(matches!(read_all(&store, id), Err(Error::NoObject(_))));
        store.close().unwrap();
        assert_sound(&engine);
    });
}

#[test]
fn what_is_known_of_a_map_does_not_outlast_it() {
    explore("get against delete", 3, || {
        let engine = MemoryEngine::new();
        let store = open(&engine, Mode::CreateNew);
        let map = make_map(&store, "map").unwrap();
        put(&store, map, 7).unwrap();
        let other = store.clone();
        let thread = thread::spawn(move || pairs(&other, map));
        store.remove_link(oid::ROOT, &"map".into()).unwrap();
        match thread.join().unwrap() {
            Ok(seen) => assert_eq!(seen, [7, 7]),
            Err(error) => assert!(matches!(error, Error::NoObject(_)), "{error}"),
        }
        assert!(matches!(pairs(&store, map), Err(Error::NoObject(_))));
        assert!(matches!(put(&store, map, 8), Err(Error::NoObject(_))));
    });
}
