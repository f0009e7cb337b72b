//! Chunks that lie in a native file, which a document names.

use crate::shared;

use h5live_filters::{Pipeline, Registry};
use h5live_hsds::HsdsStore;
use h5live_hsds::engine::{MemoryEngine, ObjectEngine, ObjectPut};
use h5live_model::{
    ByteOrder, ChunkCoord, DatasetSpec, Dataspace, Datatype, Error, FilterSpec, Layout, LinkTarget, Mode, NewObject,
    Result, Shape, Sign, Store,
};
use serde_json::{Value, json};

use self::shared::request;

/// The elements of the chunk with this number.
fn elements(number: u8) -> Vec<u8> {
    (0..8).flat_map(|at| [number, at]).collect()
}

fn filters() -> Vec<FilterSpec> {
    let filter = |id, param| FilterSpec { id, params: vec![param], ..FilterSpec::default() };
    vec![filter(2, 2), filter(1, 4)]
}

/// A domain with a dataset of three chunks of eight numbers, whose layout becomes `layout`, beside a file `native.h5` with
/// these bytes.
fn domain_with(layout: Value, chunk_dims: Option<u64>, filters: Vec<FilterSpec>, file: Vec<u8>) -> MemoryEngine {
    let engine = MemoryEngine::new();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "run")).unwrap();
    let spec = DatasetSpec {
        datatype: Datatype::integer(2, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::fixed(&[24])),
        layout: chunk_dims.map_or(Layout::Contiguous, |dims| Layout::Chunked(vec![dims])),
        filters,
        ..DatasetSpec::default()
    };
    let root = store.session().root;
    store.writer().unwrap().create(&NewObject::linked(root, &"data".into(), &spec.into())).unwrap();
    store.close().unwrap();
    let key = engine.keys().into_iter().find(|key| key.ends_with(".dataset.json")).unwrap();
    let mut document: Value = serde_json::from_slice(&engine.get(&key).unwrap().unwrap().bytes).unwrap();
    document["creationProperties"]["layout"] = layout;
    let document = ObjectPut { key, bytes: serde_json::to_vec(&document).unwrap() };
    engine.put_many(vec![document, ObjectPut { key: "native.h5".to_owned(), bytes: file }]).unwrap();
    engine
}

fn read(engine: &MemoryEngine, at: u64) -> Result<Option<Vec<u8>>> {
    let store = HsdsStore::open(engine.reader(), &request(Mode::Read, "run")).unwrap();
    let link = store.link(store.session().root, &"data".into()).unwrap().unwrap();
    let LinkTarget::Hard(id) = link.target else { panic!("a hard link") };
    let data = store.dataset(id)?;
    let Some(chunk) = data.locate(&ChunkCoord::new(&[at]))? else { return Ok(None) };
    let mut bytes = vec![0; chunk.size as usize];
    data.read(&chunk, 0, &mut bytes)?;
    Ok(Some(bytes))
}

#[test]
fn a_contiguous_dataset_lies_in_one_run_of_a_file() {
    let all: Vec<u8> = (0..3).flat_map(elements).collect();
    let layout = json!({"class": "H5D_CONTIGUOUS_REF", "file_uri": "memory/native.h5", "offset": 5, "size": 48});
    let engine = domain_with(layout, None, Vec::new(), [&[9; 5][..], &all].concat());
    assert_eq!(read(&engine, 0).unwrap(), Some(all));
}

#[test]
fn chunks_are_listed_and_go_through_the_filters_of_the_file() {
    let pipeline = Pipeline::new(&filters(), &Registry::default()).unwrap();
    let (mut file, mut places) = (vec![0; 7], serde_json::Map::new());
    for number in [2, 0] {
        let (stored, _) = pipeline.encode(&elements(number)).unwrap();
        places.insert(number.to_string(), json!([file.len(), stored.len()]));
        file.extend(stored);
    }
    let layout = json!({
        "class": "H5D_CHUNKED_REF", "dims": [8], "file_uri": "s3://memory/native.h5", "chunks": places,
    });
    let engine = domain_with(layout, Some(8), filters(), file);
    assert_eq!(read(&engine, 0).unwrap(), Some(elements(0)));
    assert_eq!(read(&engine, 1).unwrap(), None);
    assert_eq!(read(&engine, 2).unwrap(), Some(elements(2)));
}

#[cfg(unix)]
#[test]
fn a_link_in_the_bucket_leads_to_no_file_outside_of_it() {
    use h5live_hsds::engine::FolderEngine;
    let folder = tempfile::tempdir().unwrap();
    let bucket = folder.path().join("bucket");
    std::fs::create_dir_all(bucket.join("inside")).unwrap();
    std::fs::write(folder.path().join("secret"), [7; 16]).unwrap();
    std::fs::write(bucket.join("inside/own"), [1; 16]).unwrap();
    for (link, target) in [("out", ".."), ("secret", "../secret"), ("in", "inside"), ("own", "inside/own")] {
        std::os::unix::fs::symlink(target, bucket.join(link)).unwrap();
    }
    let engine = FolderEngine::open(&bucket, "run", Mode::Read).unwrap();
    for uri in ["bucket/secret", "bucket/out/secret", "bucket/in/../../secret"] {
        assert!(matches!(engine.get_file_range(uri, 0, 16), Err(Error::Unsupported(_))), "{uri}");
    }
    for uri in ["bucket/own", "bucket/in/own", "bucket/inside/own"] {
        assert_eq!(engine.get_file_range(uri, 0, 16).unwrap(), [1; 16], "{uri}");
    }
}

#[test]
fn files_elsewhere_and_places_outside_are_refused() {
    let layout =
        |uri: &str, size: u64| json!({"class": "H5D_CONTIGUOUS_REF", "file_uri": uri, "offset": 1, "size": size});
    let engine = |uri, size| domain_with(layout(uri, size), None, Vec::new(), vec![1; 49]);
    assert!(read(&engine("memory/native.h5", 48), 0).is_ok());
    for uri in ["other/native.h5", "native.h5", "memory/../native.h5", "memory//native.h5"] {
        assert!(matches!(read(&engine(uri, 48), 0), Err(Error::Unsupported(_))), "{uri}");
    }
    for (uri, size) in
        [("memory/native.h5", 49), ("memory/native.h5", 47), ("memory/no.h5", 48), ("memory/native.h5", u64::MAX)]
    {
        assert!(read(&engine(uri, size), 0).is_err(), "{uri} {size}");
    }
}
