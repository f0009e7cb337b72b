//! What a session keeps to read it again, and what it must not keep.

use std::thread;

use h5live_hsds::engine::MemoryEngine;
use h5live_hsds::{HsdsOpenRequest, HsdsStore};
use h5live_model::{ChunkCoord, Mode, ObjectId, ObjectScope, PublishLevel, Store};

use crate::requests::create;
use crate::shared::request;

/// What one thread has read may be dropped by another one before it has looked at it.
#[test]
fn threads_of_a_session_that_keeps_little_find_all_objects() {
    let engine = MemoryEngine::new();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "home/run")).unwrap();
    let ids: Vec<ObjectId> = (0..300).map(|number| create(&store, &format!("{number}"), 1)).collect();
    store.close().unwrap();
    let little = HsdsOpenRequest { cache_bytes: 1 << 10, ..request(Mode::SwmrRead, "home/run") };
    let reader = HsdsStore::open(engine.reader(), &little).unwrap();
    thread::scope(|scope| {
        for thread in 0..4 {
            let (reader, ids) = (&reader, &ids);
            scope.spawn(move || {
                for step in 0..3_000 {
                    let id = ids[(step * (thread * 2 + 7) + thread * 71) % ids.len()];
                    reader.dataset(id).unwrap_or_else(|error| panic!("step {step} of {thread}: {error}"));
                }
            });
        }
    });
}

/// A dataset that is opened again is read anew, also if an earlier handle has looked the chunk up.
#[test]
fn a_reopened_dataset_shows_what_was_written_since() {
    let engine = MemoryEngine::new();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "home/run")).unwrap();
    let id = create(&store, "a", 4);
    let (data, first) = (store.dataset(id).unwrap(), ChunkCoord::new(&[0]));
    data.write_whole_chunk(&first, 0, &[1; 4]).unwrap();
    store.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    for mode in [Mode::Read, Mode::SwmrRead] {
        let reader = HsdsStore::open(engine.reader(), &request(mode, "home/run")).unwrap();
        for value in 1..4 {
            data.write_whole_chunk(&first, 0, &[value; 4]).unwrap();
            store.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            let seen = reader.dataset(id).unwrap();
            let chunk = seen.locate(&first).unwrap().unwrap();
            let mut bytes = [0; 4];
            seen.read(&chunk, 0, &mut bytes).unwrap();
            assert_eq!(bytes, [value; 4], "{mode:?}");
        }
    }
}
