//! Datasets that are given chunks which lie in a native file.

use h5live_filters::{Pipeline, Registry};
use h5live_hsds::HsdsStore;
use h5live_hsds::engine::{MemoryEngine, ObjectEngine, ObjectPut};
use h5live_model::{
    ByteOrder, ChunkBytes, ChunkCoord, ChunkReadRequest, DatasetSpec, Dataspace, Datatype, Error, FilterSpec, Layout,
    LinkTarget, Mode, NewObject, ObjectId, ReferenceKind, ReferenceType, Shape, Sign, Store, StoredChunk,
};
use parking_lot::Mutex;
use serde_json::Value;

use crate::shared::request;

const URI: &str = "memory/native.h5";
const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
/// Bytes before the superblock of a file.
const USER_BLOCK: usize = 512;

fn filter(id: u16, param: u32) -> FilterSpec {
    FilterSpec { id, params: vec![param], ..FilterSpec::default() }
}

/// A dataset of numbers of two bytes.
fn spec(extent: &[u64], chunk: Option<&[u64]>, filters: Vec<FilterSpec>) -> DatasetSpec {
    DatasetSpec {
        datatype: Datatype::integer(2, ByteOrder::Big, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::fixed(extent)),
        layout: chunk.map_or(Layout::Contiguous, |dims| Layout::Chunked(dims.into())),
        filters,
        ..DatasetSpec::default()
    }
}

/// The elements of a chunk: its coordinates, one after the other, and then each plus one, and so on.
fn elements(coord: &ChunkCoord, bytes: u64) -> Vec<u8> {
    let scaled = coord.scaled();
    (0..bytes as usize).map(|at| (scaled[at % scaled.len()] as usize + at / scaled.len()) as u8).collect()
}

/// A native file with the chunks of these coordinates, and where they lie, from the superblock on.
fn file_with(spec: &DatasetSpec, coords: &[ChunkCoord]) -> (Vec<u8>, Vec<StoredChunk>) {
    let pipeline = Pipeline::new(&spec.filters, &Registry::default()).unwrap();
    let (mut file, mut chunks) = ([&[9; USER_BLOCK], SIGNATURE.as_slice()].concat(), Vec::new());
    for coord in coords {
        let (stored, filter_mask) = pipeline.encode(&elements(coord, spec.chunk_bytes_or_total().unwrap())).unwrap();
        let (offset, size) = (Some((file.len() - USER_BLOCK) as u64), stored.len() as u64);
        chunks.push(StoredChunk { coord: coord.clone(), file_offset: offset, size, filter_mask });
        file.extend(stored);
    }
    (file, chunks)
}

fn create(store: &HsdsStore, spec: &DatasetSpec) -> ObjectId {
    let (root, spec) = (store.session().root, spec.clone().into());
    store.writer().unwrap().create(&NewObject::linked(root, &"data".into(), &spec)).unwrap()
}

fn find(store: &HsdsStore) -> ObjectId {
    match store.link(store.session().root, &"data".into()).unwrap().unwrap().target {
        LinkTarget::Hard(id) => id,
        other => panic!("{other:?}"),
    }
}

/// A domain whose dataset has these chunks in a file, and the layout that its document has.
fn linked(spec: &DatasetSpec, coords: &[ChunkCoord]) -> (MemoryEngine, Value) {
    let engine = MemoryEngine::new();
    let (file, chunks) = file_with(spec, coords);
    engine.put_many(vec![ObjectPut { key: "native.h5".to_owned(), bytes: file }]).unwrap();
    let store = HsdsStore::open(engine.clone(), &request(Mode::CreateNew, "run")).unwrap();
    let native = store.probe_native_file(URI).unwrap();
    store.link_chunks(create(&store, spec), spec, &native, &chunks).unwrap();
    store.close().unwrap();
    let documents = engine.keys().into_iter().filter(|key| key.ends_with(".dataset.json"));
    let parsed = documents.map(|key| serde_json::from_slice(&engine.get(&key).unwrap().unwrap().bytes).unwrap());
    let creation = parsed.map(|document: Value| document["creationProperties"].clone());
    let layout = creation.into_iter().find(|creation| creation["layout"].get("file_uri").is_some());
    (engine, layout.unwrap())
}

/// Checks that a reader finds these chunks, and no others.
fn check_read(engine: &MemoryEngine, spec: &DatasetSpec, coords: &[ChunkCoord]) {
    let store = HsdsStore::open(engine.reader(), &request(Mode::Read, "run")).unwrap();
    let data = store.dataset(find(&store)).unwrap();
    let counts = spec.grid_or_single_chunk().unwrap().chunk_counts(spec.dataspace.dims());
    for number in 0..counts.iter().product::<u64>() {
        let mut rest = number;
        let mut scaled: Vec<u64> = counts
            .iter()
            .rev()
            .map(|count| {
                let at = rest % count;
                rest /= count;
                at
            })
            .collect();
        scaled.reverse();
        let coord = ChunkCoord::new(&scaled);
        let found = data.locate(&coord).unwrap();
        assert_eq!(found.is_some(), coords.contains(&coord), "{coord}");
        if let Some(chunk) = found {
            let mut bytes = vec![0; chunk.size as usize];
            data.read(&chunk, 0, &mut bytes).unwrap();
            assert_eq!(bytes, elements(&coord, chunk.size), "{coord}");
        }
    }
    let mut listed = Vec::new();
    data.for_each_chunk(&mut |chunk| {
        listed.push(chunk.coord);
        true
    })
    .unwrap();
    listed.sort();
    let mut wanted = coords.to_vec();
    wanted.sort();
    assert_eq!(listed, wanted);
}

#[test]
fn a_contiguous_dataset_stays_in_one_run_of_the_file() {
    let spec = spec(&[3, 8], None, Vec::new());
    let coords = [ChunkCoord::new(&[0, 0])];
    let (engine, creation) = linked(&spec, &coords);
    let layout = &creation["layout"];
    assert_eq!(
        (&layout["class"], &layout["offset"], &layout["size"]),
        (&"H5D_CONTIGUOUS_REF".into(), &(USER_BLOCK + 8).into(), &48.into())
    );
    check_read(&engine, &spec, &coords);
}

#[test]
fn few_chunks_are_listed_and_go_through_the_filters_of_the_file() {
    for filters in [vec![], vec![filter(2, 2)], vec![filter(1, 4)], vec![filter(2, 2), filter(1, 4)]] {
        let spec = spec(&[5, 20], Some(&[2, 8]), filters.clone());
        let coords = [[0, 0], [2, 2], [1, 0]].map(|at| ChunkCoord::new(&at));
        let (engine, creation) = linked(&spec, &coords);
        assert_eq!(creation["layout"]["class"], "H5D_CHUNKED_REF");
        assert_eq!(creation["layout"]["chunks"].as_object().unwrap().len(), 3);
        // Shuffling alone is shown, too: it was applied.
        assert_eq!(creation["filters"].as_array().map_or(0, Vec::len), filters.len());
        check_read(&engine, &spec, &coords);
    }
}

#[test]
fn many_chunks_are_in_a_table_which_is_deleted_with_its_dataset() {
    let spec = spec(&[3, 160], Some(&[1, 1]), vec![filter(2, 2), filter(1, 4)]);
    let coords: Vec<ChunkCoord> =
        (0..3 * 160u64).filter(|at| at % 3 != 1).map(|at| ChunkCoord::new(&[at / 160, at % 160])).collect();
    let (engine, creation) = linked(&spec, &coords);
    assert_eq!(creation["layout"]["class"], "H5D_CHUNKED_REF_INDIRECT");
    check_read(&engine, &spec, &coords);
    let datasets = || engine.keys().into_iter().filter(|key| key.contains("/d/")).count();
    assert_eq!(datasets(), 3, "the dataset, its table, and a chunk of the table");
    let store = HsdsStore::open(engine.clone(), &request(Mode::Write, "run")).unwrap();
    store.writer().unwrap().remove_link(store.session().root, &"data".into()).unwrap();
    store.close().unwrap();
    assert_eq!(datasets(), 0);
}

#[test]
fn a_table_has_several_chunks_if_there_are_many_and_only_those_with_entries() {
    let spec = spec(&[3, 70_000], Some(&[1, 1]), Vec::new());
    let coords: Vec<ChunkCoord> = (0..200).map(|at| ChunkCoord::new(&[at % 2 * 2, at * 349])).collect();
    let (engine, _) = linked(&spec, &coords);
    let chunks = engine.keys().into_iter().filter(|key| key.contains("/d/") && !key.ends_with("json")).count();
    assert_eq!(chunks, 4, "of six");
    let store = HsdsStore::open(engine.reader(), &request(Mode::Read, "run")).unwrap();
    let data = store.dataset(find(&store)).unwrap();
    for (at, coord) in coords.iter().enumerate() {
        let chunk = data.locate(coord).unwrap().unwrap();
        let mut bytes = [0; 2];
        data.read(&chunk, 0, &mut bytes).unwrap();
        assert_eq!(bytes.as_slice(), elements(coord, 2), "{at}");
    }
    assert!(data.locate(&ChunkCoord::new(&[1, 0])).unwrap().is_none());
}

#[test]
fn what_cannot_be_read_there_is_refused_with_the_reason_and_nothing_has_changed() {
    let plain = spec(&[4], Some(&[2]), Vec::new());
    let chunk = StoredChunk { coord: ChunkCoord::new(&[0]), file_offset: Some(8), size: 4, filter_mask: 0 };
    let try_link = |source: &DatasetSpec, target: &DatasetSpec, chunk: &StoredChunk| {
        let engine = MemoryEngine::new();
        engine.put_many(vec![ObjectPut { key: "native.h5".to_owned(), bytes: SIGNATURE.to_vec() }]).unwrap();
        let store = HsdsStore::open(engine, &request(Mode::CreateNew, "run")).unwrap();
        let id = create(&store, target);
        let native = store.probe_native_file(URI).unwrap();
        let before = store.spec(id).unwrap();
        let refused = store.link_chunks(id, source, &native, std::slice::from_ref(chunk));
        assert_eq!(store.spec(id).unwrap(), before);
        match refused {
            Err(Error::Unsupported(cause)) => cause,
            other => panic!("{other:?}"),
        }
    };
    let filtered = |filters: Vec<FilterSpec>| DatasetSpec { filters, ..plain.clone() };
    for filters in [vec![filter(3, 0)], vec![filter(1, 4), filter(2, 2)], vec![filter(32015, 3)]] {
        let cause = try_link(&filtered(filters.clone()), &filtered(filters), &chunk);
        assert!(cause.contains("but shuffling and deflate"), "{cause}");
    }
    let masked = StoredChunk { filter_mask: 1, ..chunk.clone() };
    let deflated = filtered(vec![filter(1, 4)]);
    assert!(try_link(&deflated, &deflated, &masked).contains("was skipped"));
    let edges = DatasetSpec { unfiltered_partial_chunks: true, ..deflated.clone() };
    assert!(try_link(&edges, &edges, &chunk).contains("at its edges"));
    let placeless = StoredChunk { file_offset: None, ..chunk.clone() };
    assert!(try_link(&plain, &plain, &placeless).contains("no place of their own"));
    let large = StoredChunk { size: 1 << 31, ..chunk.clone() };
    assert!(try_link(&plain, &plain, &large).contains("2 GiB"));
    let other = DatasetSpec { layout: Layout::Chunked(vec![4]), ..plain.clone() };
    assert!(try_link(&plain, &other, &chunk).contains("or others"));
    let swapped = DatasetSpec { datatype: Datatype::integer(2, ByteOrder::Little, Sign::Unsigned), ..plain.clone() };
    assert!(try_link(&plain, &swapped, &chunk).contains("another form"));
    let scalar = DatasetSpec { dataspace: Dataspace::Scalar, layout: Layout::Contiguous, ..plain.clone() };
    let at_origin = StoredChunk { coord: ChunkCoord::new(&[]), ..chunk.clone() };
    assert!(try_link(&scalar, &scalar, &at_origin).contains("scalar"));
    let references = |size| DatasetSpec {
        datatype: Datatype::Reference(ReferenceType { size, kind: ReferenceKind::Object1 }),
        ..plain.clone()
    };
    assert!(try_link(&references(8), &references(48), &chunk).contains("references"));
}

#[test]
fn what_is_no_native_file_is_not_linked() {
    let engine = MemoryEngine::new();
    let files = [
        ("text", b"no HDF5 file".repeat(99)),
        ("short", b"x".to_vec()),
        ("late", [&[0; 4096], SIGNATURE.as_slice()].concat()),
    ];
    for (key, bytes) in files {
        engine.put_many(vec![ObjectPut { key: key.to_owned(), bytes }]).unwrap();
    }
    let store = HsdsStore::open(engine, &request(Mode::CreateNew, "run")).unwrap();
    let said = |uri| store.probe_native_file(uri).unwrap_err().to_string();
    assert!(said("memory/text").contains("memory/text is not an HDF5 file"));
    assert!(said("memory/short").contains("short") && said("memory/none").contains("none"));
    assert!(said("other/late").contains("another bucket"));
    assert_eq!(store.probe_native_file("memory/late").unwrap().uri(), "memory/late");
}

#[test]
fn many_chunks_are_read_at_once_and_the_first_error_ends_it() {
    let spec = spec(&[160], Some(&[1]), vec![filter(1, 4)]);
    let coords: Vec<ChunkCoord> = (0..160).filter(|at| at % 3 != 1).map(|at| ChunkCoord::new(&[at])).collect();
    let (engine, _) = linked(&spec, &coords);
    let all: Vec<ChunkCoord> = (0..160).map(|at| ChunkCoord::new(&[at])).collect();
    let wanted: Vec<ChunkReadRequest<'_>> =
        all.iter().map(|coord| ChunkReadRequest { coord, byte_range: None }).collect();
    let read = || {
        let store = HsdsStore::open(engine.reader(), &request(Mode::Read, "run")).unwrap();
        let found = Mutex::new(vec![None; all.len()]);
        let data = store.dataset(find(&store)).unwrap();
        let sink = |number: usize, chunk: Option<ChunkBytes<'_>>| {
            assert_eq!(found.lock()[number].replace(chunk.map(|chunk| chunk.bytes.to_vec())), None, "given once");
            Ok(())
        };
        data.read_many(&wanted, 64, &sink).map(|()| found.into_inner())
    };
    let expected = |coord: &ChunkCoord| Some(coords.contains(coord).then(|| elements(coord, 2)));
    assert_eq!(read().unwrap(), all.iter().map(expected).collect::<Vec<_>>());
    engine.delete_many(&["native.h5".to_owned()]).unwrap();
    assert!(read().unwrap_err().to_string().contains("native.h5"));
}
