//! How many requests an operation takes, and how many waves of them.

use crate::shared;

use std::sync::atomic::{AtomicU64, Ordering};

use h5live_hsds::HsdsStore;
use h5live_hsds::engine::{MemoryEngine, RequestCounts};
use h5live_model::{
    ByteOrder, ChunkBatch, ChunkCoord, ChunkReadRequest, ChunkWrite, DatasetSpec, Dataspace, Datatype, Layout,
    LinkTarget, Mode, Name, NewObject, ObjectId, ObjectScope, ObjectSpec, PublishLevel, Shape, Sign, Store, UNLIMITED,
};

use self::shared::request;

fn numbers(dims: u64) -> ObjectSpec {
    DatasetSpec {
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::with_max(&[dims], &[UNLIMITED]).unwrap()),
        layout: Layout::Chunked(vec![4]),
        ..DatasetSpec::default()
    }
    .into()
}

pub(crate) fn create(store: &HsdsStore, at: &str, dims: u64) -> ObjectId {
    let spec = numbers(dims);
    let new = (store.session().root, Name::from(at));
    store.writer().unwrap().create(&NewObject::linked(new.0, &new.1, &spec)).unwrap()
}

/// What an operation adds to the requests of a session.
fn added(store: &HsdsStore, operation: impl FnOnce()) -> RequestCounts {
    let before = store.request_counts();
    operation();
    let after = store.request_counts();
    RequestCounts {
        gets: after.gets - before.gets,
        puts: after.puts - before.puts,
        deletes: after.deletes - before.deletes,
        lists: after.lists - before.lists,
        waves: after.waves - before.waves,
        bytes_read: 0,
        bytes_written: 0,
    }
}

fn reader(engine: &MemoryEngine) -> HsdsStore {
    HsdsStore::open(engine.reader(), &request(Mode::SwmrRead, "home/run")).unwrap()
}

fn names(store: &HsdsStore) -> Vec<(Name, ObjectId)> {
    let mut found = Vec::new();
    let each = &mut |link: h5live_model::Link| {
        if let LinkTarget::Hard(id) = link.target {
            found.push((link.name, id));
        }
        true
    };
    store.for_each_link(store.session().root, each).unwrap();
    found
}

#[test]
fn opening_a_domain_and_listing_its_root_takes_two_requests() {
    let engine = MemoryEngine::new();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "home/run")).unwrap();
    create(&store, "a", 1);
    store.close().unwrap();
    let reader = reader(&engine);
    assert_eq!(names(&reader).len(), 1);
    let counts = reader.request_counts();
    assert_eq!((counts.gets, counts.lists, counts.puts), (2, 0, 0));
}

#[test]
fn a_slice_takes_one_request_for_the_dataset_and_its_chunks_in_one_wave() {
    let engine = MemoryEngine::new();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "home/run")).unwrap();
    let id = create(&store, "a", 40);
    let data = store.dataset(id).unwrap();
    (0..10).for_each(|at| data.write_whole_chunk(&ChunkCoord::new(&[at]), 0, &[at as u8; 4]).unwrap());
    store.close().unwrap();
    let reader = reader(&engine);
    let opened = added(&reader, || drop(reader.dataset(id).unwrap()));
    assert_eq!((opened.gets, opened.waves), (1, 1));
    let data = reader.dataset(id).unwrap();
    let coords: Vec<ChunkCoord> = (2..9).map(|at| ChunkCoord::new(&[at])).collect();
    let wanted: Vec<ChunkReadRequest<'_>> =
        coords.iter().map(|coord| ChunkReadRequest { coord, byte_range: None }).collect();
    let sum = AtomicU64::new(0);
    let read = added(&reader, || {
        data.read_many(&wanted, 1 << 20, &|_, found| {
            sum.fetch_add(found.unwrap().bytes.iter().map(|byte| u64::from(*byte)).sum(), Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
    });
    assert_eq!((read.gets, read.waves, sum.into_inner()), (7, 1, 4 * (2..9).sum::<u64>()));
}

#[test]
fn appended_rows_take_their_chunks_and_one_put() {
    let engine = MemoryEngine::new();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "home/run")).unwrap();
    let data = store.dataset(create(&store, "a", 0)).unwrap();
    store.writer().unwrap().start_swmr().unwrap();
    for rows in 1..4u64 {
        let coords = [2 * rows, 2 * rows + 1].map(|at| ChunkCoord::new(&[at]));
        let writes = coords.each_ref().map(|coord| ChunkWrite::Whole { coord, filter_mask: 0, bytes: &[1; 4] });
        let extent = [8 * rows + 8];
        let batch = ChunkBatch {
            writes: &writes,
            extent: Some(&extent),
            publish_after: &[],
            publish: Some(PublishLevel::Visible),
        };
        let append = added(&store, || data.write(&batch).unwrap());
        assert_eq!((append.puts, append.waves), (3, 2), "{append:?}");
        assert_eq!((append.gets, append.lists, append.deletes), (0, 0, 0), "{append:?}");
    }
}

/// Writes a chunk of the number `value`.
fn put(store: &HsdsStore, id: ObjectId, at: u64, value: u8) {
    store.dataset(id).unwrap().write_whole_chunk(&ChunkCoord::new(&[at]), 0, &[value; 4]).unwrap();
}

/// The elements of a chunk.
fn stored(store: &HsdsStore, id: ObjectId, at: u64) -> Option<Vec<u8>> {
    let data = store.dataset(id).unwrap();
    let found = data.locate(&ChunkCoord::new(&[at])).unwrap()?;
    let mut bytes = vec![0; found.size as usize];
    data.read(&found, 0, &mut bytes).unwrap();
    Some(bytes)
}

#[test]
fn chunks_that_come_one_by_one_are_written_in_waves_and_before_what_leads_to_them() {
    let engine = MemoryEngine::new();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "home/run")).unwrap();
    let ids: Vec<ObjectId> = (0..200).map(|number| create(&store, &format!("{number}"), 8)).collect();
    let written = added(&store, || {
        ids.iter().for_each(|id| put(&store, *id, 0, 1));
        ids.iter().for_each(|id| put(&store, *id, 1, 2));
    });
    assert_eq!((written.puts, written.waves), (384, 6), "six waves of 64");
    let committed = added(&store, || store.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible).unwrap());
    assert_eq!((committed.puts, committed.waves), (16 + 200 + 1, 3), "chunks, datasets, the root: {committed:?}");
    let reader = reader(&engine);
    assert!(ids.iter().all(|id| stored(&reader, *id, 0) == Some(vec![1; 4])));
    assert!(ids.iter().all(|id| stored(&reader, *id, 1) == Some(vec![2; 4])));
}

#[test]
fn a_chunk_that_is_written_again_before_it_was_written_is_written_once() {
    let engine = MemoryEngine::new();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "home/run")).unwrap();
    let id = create(&store, "a", 8);
    store.writer().unwrap().start_swmr().unwrap();
    let written = added(&store, || {
        (1..=100).for_each(|value| put(&store, id, 0, value));
        put(&store, id, 1, 7);
        assert_eq!(stored(&store, id, 0), Some(vec![100; 4]), "the session reads what it has written");
    });
    assert_eq!(written.puts, 2);
    // No document has changed. Still, a commit shows them.
    put(&store, id, 0, 9);
    assert_eq!(stored(&reader(&engine), id, 0), Some(vec![100; 4]));
    store.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    assert_eq!(stored(&reader(&engine), id, 0), Some(vec![9; 4]));
}

#[test]
fn following_a_dataset_that_has_not_changed_transfers_nothing() {
    let engine = MemoryEngine::new();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "home/run")).unwrap();
    let id = create(&store, "a", 4);
    store.writer().unwrap().start_swmr().unwrap();
    let reader = reader(&engine);
    let data = reader.dataset(id).unwrap();
    let refreshed = added(&reader, || assert!(!data.refresh().unwrap()));
    assert_eq!((refreshed.gets, refreshed.waves), (1, 1));
}

#[test]
fn a_thousand_datasets_are_described_in_few_waves() {
    let engine = MemoryEngine::new();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "home/run")).unwrap();
    for number in 0..1000 {
        create(&store, &format!("{number:04}"), number);
    }
    let committed = added(&store, || store.close().unwrap());
    let what = "datasets, the root, the domain, a listing for the summary, and this";
    assert_eq!((committed.puts, committed.lists, committed.waves), (1003, 1, 5), "{what}: {committed:?}");
    assert_eq!(committed.gets, 0, "the session has the documents: {committed:?}");
    let reader = reader(&engine);
    let listed = added(&reader, || {
        for (name, id) in names(&reader) {
            let dims = reader.dataset(id).unwrap().spec().unwrap().dataspace.dims().to_vec();
            assert_eq!(name, Name::from(format!("{:04}", dims[0])));
        }
    });
    assert!(listed.gets == 1000 && listed.waves <= 12, "{listed:?}");
    // The number of links of each is known from one reading of all documents.
    let other = self::reader(&engine);
    let counted = added(&other, || {
        for (_, id) in names(&other) {
            assert_eq!(other.info(id).unwrap().hard_link_count, 1);
        }
    });
    assert!(counted.gets <= 1000 && counted.waves <= 3, "{counted:?}");
}

#[test]
fn links_are_counted_right_in_a_domain_with_more_objects_than_a_session_keeps() {
    let engine = MemoryEngine::new();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "home/run")).unwrap();
    let (root, group, writer) = (store.session().root, ObjectSpec::group(), store.writer().unwrap());
    let mut others = Vec::new();
    for number in 0..66_000 {
        let id = writer.create(&NewObject::linked(root, &Name::from(format!("{number}")), &group)).unwrap();
        if number < 8 {
            others.push(id);
        }
    }
    // Eight datasets with a link each from another group than the root.
    let data: Vec<ObjectId> = (0..8).map(|number| create(&store, &format!("data {number}"), 1)).collect();
    for (group, data) in others.iter().zip(&data) {
        writer.add_link(*group, &"data".into(), &LinkTarget::Hard(*data)).unwrap();
    }
    store.close().unwrap();
    let store = HsdsStore::open(engine.reopen_writer(), &request(Mode::Write, "home/run")).unwrap();
    for number in 0..8 {
        store.writer().unwrap().remove_link(root, &Name::from(format!("data {number}"))).unwrap();
    }
    store.close().unwrap();
    let reader = reader(&engine);
    data.iter().for_each(|id| drop(reader.dataset(*id).unwrap()));
}

#[test]
fn what_a_reader_keeps_is_not_written_by_a_writer_that_died() {
    let engine = MemoryEngine::new();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "home/run")).unwrap();
    let id = create(&store, "a", 4);
    store.writer().unwrap().start_swmr().unwrap();
    let keys = engine.keys();
    let data = store.dataset(id).unwrap();
    data.write_whole_chunk(&ChunkCoord::new(&[0]), 0, &[7; 4]).unwrap();
    assert!(data.locate(&ChunkCoord::new(&[0])).unwrap().is_some(), "what is read comes after what was written");
    create(&store, "never seen", 4);
    drop((data, store));
    let reader = reader(&engine);
    assert_eq!(names(&reader).len(), 1);
    let added: Vec<String> = engine.keys().into_iter().filter(|key| !keys.contains(key)).collect();
    assert!(added.len() == 1 && added[0].ends_with("/0"), "only the chunk is there: {added:?}");
}
