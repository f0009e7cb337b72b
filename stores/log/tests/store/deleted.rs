//! Datasets that are deleted, and others that get their addresses: nothing of the old one is written to the new one.

use std::sync::Arc;

use h5live_log::{Log, LogLayout, LogOpenRequest, LogStore};
use h5live_model::{
    AttributeData, ByteOrder, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Dataspace, Datatype, Layout,
    Mode, Name, NewObject, ObjectId, ObjectScope, ObjectSpec, PublishLevel, Shape, Sign, Store, UNLIMITED,
};
use h5live_native::{MemoryStorage, NativeFile, OpenOptions};

fn open(storage: &Arc<MemoryStorage>, mode: Mode, layout: LogLayout) -> LogStore {
    let file = NativeFile::open_storage(storage.clone(), &OpenOptions { mode, ..OpenOptions::default() }).unwrap();
    LogStore::open_or_create(Arc::new(file), None, LogOpenRequest::new(Log { layout, ..Log::default() })).unwrap()
}

fn spec(dims: &[u64], max: &[u64]) -> ObjectSpec {
    DatasetSpec {
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::with_max(dims, max).unwrap()),
        layout: Layout::Chunked(vec![if dims.len() > 1 { 2 } else { 4 }; dims.len()]),
        ..DatasetSpec::default()
    }
    .into()
}

fn create(store: &LogStore, name: &str, spec: &ObjectSpec) -> ObjectId {
    let name = Name::from(name);
    store.writer().unwrap().create(&NewObject::linked(store.session().root, &name, spec)).unwrap()
}

fn unlink(store: &LogStore, name: &str) {
    store.writer().unwrap().remove_link(store.session().root, &Name::from(name)).unwrap();
}

fn commit(store: &LogStore) {
    store.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible).unwrap();
}

/// Makes a dataset of `rows` elements, all of them `value`, which had fewer before.
fn append(data: &dyn ChunkStore, rows: u64, value: u8) {
    let chunks: Vec<_> = (0..rows.div_ceil(4)).map(|at| ChunkCoord::new(&[at])).collect();
    let bytes = [value; 4];
    let writes: Vec<_> =
        chunks.iter().map(|coord| ChunkWrite::Whole { coord, filter_mask: 0, bytes: &bytes }).collect();
    data.write(&ChunkBatch { writes: &writes, extent: Some(&[rows]), ..ChunkBatch::default() }).unwrap();
}

fn dims(store: &LogStore, id: ObjectId) -> Vec<u64> {
    store.dataset(id).unwrap().spec().unwrap().dataspace.dims().to_vec()
}

/// The object that a name leads to.
fn find(store: &LogStore, name: &str) -> ObjectId {
    match store.link(store.session().root, &Name::from(name)).unwrap().unwrap().target {
        h5live_model::LinkTarget::Hard(id) => id,
        other => panic!("{other:?}"),
    }
}

/// The extents of the new dataset: one dimension with fewer elements, and two dimensions.
const NEW: [&[u64]; 2] = [&[6], &[2, 3]];

#[test]
fn the_extent_of_a_deleted_dataset_is_not_given_to_the_one_at_its_address() {
    let mut reused = 0;
    for (layout, extent, commits) in [
        (LogLayout::H5live, NEW[0], 2),
        (LogLayout::H5live, NEW[1], 2),
        (LogLayout::H5live, NEW[1], 1),
        (LogLayout::H5live, NEW[0], 0),
        (LogLayout::LogVol, NEW[0], 0),
        (LogLayout::LogVol, NEW[1], 1),
    ] {
        let storage = Arc::new(MemoryStorage::default());
        let store = open(&storage, Mode::CreateNew, layout);
        let old = create(&store, "old", &spec(&[0], &[UNLIMITED]));
        append(&*store.dataset(old).unwrap(), 3, 7);
        (1..commits).for_each(|_| commit(&store));
        unlink(&store, "old");
        (0..commits.min(1)).for_each(|_| commit(&store));
        let new = create(&store, "new", &spec(extent, extent));
        reused += usize::from(new == old);
        commit(&store);
        assert_eq!(dims(&store, new), extent);
        store.close().unwrap();
        let store = open(&storage, Mode::Read, layout);
        assert_eq!(dims(&store, find(&store, "new")), extent, "{layout:?}, {commits} commits");
    }
    assert!(reused > 0, "no address was given again");
}

/// What is made and removed before a commit leaves nothing that fails it, whatever comes to its address.
#[test]
fn a_dataset_that_is_removed_before_a_commit_does_not_fail_it() {
    for kind in 0..4 {
        let storage = Arc::new(MemoryStorage::default());
        let store = open(&storage, Mode::CreateNew, LogLayout::H5live);
        let rows = store.dataset(create(&store, "rows", &spec(&[0], &[UNLIMITED]))).unwrap();
        append(&*rows, 2, 1);
        let gone = create(&store, "tmp", &spec(&[4], &[4]));
        unlink(&store, "tmp");
        match kind {
            // A group, or another attribute of the dataset, or another dataset.
            0 => drop(create(&store, "group", &ObjectSpec::group())),
            1 => {
                let attribute = AttributeData {
                    name: Name::from("large"),
                    datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
                    committed_datatype: None,
                    dataspace: Dataspace::Simple(Shape::fixed(&[600])),
                    value: vec![0xAA; 600],
                    creation_order: None,
                };
                store.writer().unwrap().set_attribute(rows.id(), &attribute).unwrap();
            }
            2 => drop(create(&store, "other", &spec(&[2, 3], &[2, 3]))),
            _ => {}
        }
        commit(&store);
        append(&*rows, 5, 2);
        commit(&store);
        store.close().unwrap();
        let store = open(&storage, Mode::Read, LogLayout::H5live);
        assert_eq!(dims(&store, find(&store, "rows")), [5], "kind {kind}, at {gone:?}");
    }
}
