//! Datasets whose chunks the service has spread over folders.

use h5live_hsds::HsdsStore;
use h5live_hsds::engine::{MemoryEngine, ObjectEngine, ObjectPut};
use h5live_model::{
    ByteOrder, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Dataspace, Datatype, Layout, LinkTarget,
    Mode, NewObject, PublishLevel, Shape, Sign, Store, UNLIMITED,
};
use serde_json::Value;

use crate::shared::request;

/// A domain with a dataset of five chunks of one number each, whose chunks are in three folders.
fn domain() -> MemoryEngine {
    let engine = MemoryEngine::new();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "run")).unwrap();
    let spec = DatasetSpec {
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::with_max(&[5], &[UNLIMITED]).unwrap()),
        layout: Layout::Chunked(vec![1]),
        ..DatasetSpec::default()
    };
    let root = store.session().root;
    store.writer().unwrap().create(&NewObject::linked(root, &"a".into(), &spec.into())).unwrap();
    store.close().unwrap();
    let key = engine.keys().into_iter().find(|key| key.ends_with(".dataset.json")).unwrap();
    let mut document: Value = serde_json::from_slice(&engine.get(&key).unwrap().unwrap().bytes).unwrap();
    document["creationProperties"]["layout"]["partition_count"] = 3.into();
    let chunks = (0..5u8).map(|at| ObjectPut {
        // As the service has them: the index times 29, modulo 3.
        key: key.replace(".dataset.json", &format!("p{}/{at}", 29 * u64::from(at) % 3)),
        bytes: vec![10 + at],
    });
    let document = ObjectPut { key: key.clone(), bytes: serde_json::to_vec(&document).unwrap() };
    engine.put_many(chunks.chain([document]).collect()).unwrap();
    engine
}

fn open(engine: MemoryEngine, mode: Mode) -> (HsdsStore, std::sync::Arc<dyn ChunkStore>) {
    let store = HsdsStore::open(engine, &request(mode, "run")).unwrap();
    let link = store.link(store.session().root, &"a".into()).unwrap().unwrap();
    let LinkTarget::Hard(id) = link.target else { panic!("a hard link") };
    let data = store.dataset(id).unwrap();
    (store, data)
}

fn read(data: &dyn ChunkStore) -> Vec<Option<u8>> {
    let chunk = |at| {
        let chunk = data.locate(&ChunkCoord::new(&[at])).unwrap()?;
        let mut byte = [0];
        data.read(&chunk, 0, &mut byte).unwrap();
        Some(byte[0])
    };
    (0..data.spec().unwrap().dataspace.dims()[0]).map(chunk).collect()
}

#[test]
fn chunks_are_read_written_listed_and_deleted_in_their_folders() {
    let engine = domain();
    let (_, data) = open(engine.reader(), Mode::Read);
    assert_eq!(read(&*data), [10, 11, 12, 13, 14].map(Some));
    let mut listed = 0;
    data.for_each_chunk(&mut |_| {
        listed += 1;
        true
    })
    .unwrap();
    assert_eq!(listed, 5);
    let (store, data) = open(engine.reopen_writer(), Mode::Write);
    let (coord, extent) = (ChunkCoord::new(&[5]), [6]);
    let writes = [ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: &[15] }];
    let publish = Some(PublishLevel::Visible);
    data.write(&ChunkBatch { writes: &writes, extent: Some(&extent), publish_after: &[], publish }).unwrap();
    assert!(engine.keys().iter().any(|key| key.ends_with("/p1/5")), "29 times 5 modulo 3");
    data.write(&ChunkBatch { writes: &[], extent: Some(&[2]), publish_after: &[], publish }).unwrap();
    store.close().unwrap();
    let is_chunk = |key: &&String| !key.ends_with(".json");
    assert_eq!(engine.keys().iter().filter(is_chunk).count(), 2);
    let (_, data) = open(engine.reader(), Mode::Read);
    assert_eq!(read(&*data), [10, 11].map(Some));
}

#[test]
fn a_chunk_in_the_folder_of_another_partition_is_not_listed() {
    let engine = domain();
    let stray = engine.keys().into_iter().find(|key| key.ends_with("/p0/0")).unwrap().replace("/p0/0", "/p0/1");
    engine.put_many(vec![ObjectPut { key: stray, bytes: vec![99] }]).unwrap();
    let (_, data) = open(engine.reader(), Mode::Read);
    assert_eq!(read(&*data)[1], Some(11));
    let mut coords = Vec::new();
    data.for_each_chunk(&mut |chunk| {
        coords.push(chunk.coord);
        true
    })
    .unwrap();
    assert_eq!(coords, (0..5).map(|at| ChunkCoord::new(&[at])).collect::<Vec<_>>());
}
