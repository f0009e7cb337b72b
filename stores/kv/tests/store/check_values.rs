//! The check of values: their checksums, chunks without filters at edges, texts of maps.

use std::ops::Bound;
use std::sync::Arc;

use h5live_kv::engine::{EditBatch, Engine, LongKeyEngine, MemoryEngine, ViewWithEdits};
use h5live_kv::layout::value::{VarLenBlobRef, decode_link_target, encode_u64};
use h5live_kv::layout::{AttributeField, CHECKSUM_BYTES, EngineKey, MetadataField, key, oid};
use h5live_kv::{KvOpenRequest, KvStore, check_container};
use h5live_model::{
    AllocationLimit, ChunkBatch, ChunkCoord, ChunkWrite, DatasetSpec, DurabilitySupport, FilterSpec, Layout,
    LinkTarget, MapEdit, MapKey, MapPrefetch, MapScan, MapSpec, Mode, Name, NewObject, ObjectKindSpec, ObjectScope,
    PublishLevel, Store, StoreCheckOptions, StoreWriter,
};

use crate::check::{Container, FILTER, Undo, attribute, dataset, findings, number, put, spec, text_type, write};
use crate::shared::request;

/// Flips a bit of the stored value of a key.
fn flip(container: &Container, at: &EngineKey) {
    let value = ViewWithEdits::without_edits(&container.engine.view().unwrap()).get(at.as_bytes()).unwrap();
    let mut value = value.unwrap_or_else(|| panic!("there is no {at:?}"));
    let middle = (value.len() - CHECKSUM_BYTES) / 2;
    value[middle] ^= 0x10;
    let mut edits = EditBatch::new();
    edits.put(at.as_bytes(), value);
    container.engine.commit(&edits, PublishLevel::Visible).unwrap();
}

#[test]
fn a_flipped_bit_of_each_kind_of_record_is_found_and_is_never_read() {
    let container = Container::new();
    let with_data = StoreCheckOptions { verify_data: true, find_lost_domains: false };
    let records: [(EngineKey, bool, &str); 8] = [
        (key::metadata(container.plain, MetadataField::Dataspace), false, "Dataspace"),
        (key::attribute(container.typed, AttributeField::Value, b"typed"), false, "V-typed"),
        (key::link(oid::ROOT, b"group"), false, "Link of group"),
        (key::link_order(container.group, b"soft"), false, "Link Creation Order"),
        (key::chunk_piece(container.plain, &[100_000, 2], 0), true, "piece 0 of the chunk at [100000, 2]"),
        (key::filtered_chunk(container.filtered, &[2]), true, "the chunk at [2]"),
        (key::map_record(container.map, &[1]), true, "Map Record"),
        (key::blob(container.blobs[0]), true, "variable-length data"),
    ];
    for (at, is_data, text) in records {
        let container = Container::new();
        flip(&container, &at);
        let check = |what| check_container(&container.engine, what, &Undo, AllocationLimit::default()).unwrap();
        let found = findings(&check(with_data));
        assert!(found.iter().any(|(kind, found)| *kind == "checksum" && found.contains(text)), "{text}: {found:?}");
        let of_metadata = findings(&check(StoreCheckOptions::default()));
        assert_eq!(of_metadata.iter().any(|(kind, _)| *kind == "checksum"), !is_data, "{text}: {of_metadata:?}");
        let request = request(Mode::Read, DurabilitySupport::Always, 6);
        let reader = KvStore::open(LongKeyEngine::new(container.engine.inner().reader()), &request).unwrap();
        let error = read_everything(&reader, &container).unwrap_err();
        assert!(error.contains(text) && error.contains("checksum"), "{text}: {error}");
    }
}

/// Reads what the container has, one after the other.
fn read_everything(store: &KvStore, container: &Container) -> Result<(), String> {
    let text = |error: h5live_model::Error| {
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            text += &format!(": {error}");
            cause = error.source();
        }
        text
    };
    for group in [oid::ROOT, container.group, container.inner] {
        store.for_each_link(group, &mut |_| true).map_err(text)?;
        store.for_each_attribute(group, &mut |_| true).map_err(text)?;
    }
    store.for_each_attribute(container.typed, &mut |_| true).map_err(text)?;
    for dataset in [container.plain, container.filtered] {
        let chunks = store.dataset(dataset).map_err(text)?;
        let mut found = Vec::new();
        chunks
            .for_each_chunk(&mut |chunk| {
                found.push(chunk);
                true
            })
            .map_err(text)?;
        for chunk in found {
            chunks.read(&chunk, 0, &mut vec![0; chunk.size as usize]).map_err(text)?;
        }
    }
    store.maps().unwrap().get(container.map, &[MapKey::Bytes(&[1])], &mut |_, _| ()).map_err(text)?;
    let blobs = [(3, 0), (5, 1), (7, 2)]
        .map(|(length, at)| VarLenBlobRef { element_count: length, blob: container.blobs[at] }.encode());
    store.read_blobs(&blobs.each_ref().map(|element| &element[..]), &mut |_, _| ()).map_err(text)
}

#[test]
fn a_container_without_checksums_is_read_and_the_check_says_that_it_has_none() {
    let engine = MemoryEngine::new();
    let asked =
        KvOpenRequest { checksum_new_container: false, ..request(Mode::CreateNew, DurabilitySupport::Always, 5) };
    let store = KvStore::open(LongKeyEngine::new(engine.clone()), &asked).unwrap();
    store.set_attribute(oid::ROOT, &attribute("a", 7)).unwrap();
    store.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let check = |engine: &MemoryEngine| {
        let engine = LongKeyEngine::new(engine.clone());
        check_container(&engine, StoreCheckOptions::default(), &Undo, AllocationLimit::default()).unwrap()
    };
    let report = check(&engine);
    assert_eq!(findings(&report), []);
    assert_eq!(report.unchecksummed_bytes, Some(report.metadata_bytes));
    assert_eq!(check(Container::new().engine.inner()).unchecksummed_bytes, Some(0));
    // As the first version of the layout has it.
    let mut edits = EditBatch::new();
    let version = [&b"h5livekv"[..], &1u32.to_le_bytes()].concat();
    put(&mut edits, &key::metadata(oid::GLOBAL_METADATA, MetadataField::ContainerFormat), version);
    engine.commit(&edits, PublishLevel::Visible).unwrap();
    let writer =
        KvStore::open(LongKeyEngine::new(engine.clone()), &request(Mode::Write, DurabilitySupport::Always, 6)).unwrap();
    assert_eq!(writer.attribute(oid::ROOT, &"a".into()).unwrap().unwrap().value, [7]);
    writer.set_attribute(oid::ROOT, &attribute("b", 8)).unwrap();
    writer.close().unwrap();
    let reader =
        KvStore::open(LongKeyEngine::new(engine.reader()), &request(Mode::Read, DurabilitySupport::Always, 7)).unwrap();
    assert_eq!(reader.attribute(oid::ROOT, &"b".into()).unwrap().unwrap().value, [8]);
    assert_eq!(findings(&check(&engine)), []);
}

#[test]
fn chunks_at_the_edge_that_are_stored_without_filters_are_sound() {
    let engine = MemoryEngine::new();
    let asked =
        KvOpenRequest { filter_engine: Arc::new(Undo), ..request(Mode::CreateNew, DurabilitySupport::Always, 5) };
    let store = KvStore::open(LongKeyEngine::new(engine.clone()), &asked).unwrap();
    let filters = vec![FilterSpec { id: FILTER, ..FilterSpec::default() }];
    let edges = DatasetSpec {
        filters,
        unfiltered_partial_chunks: true,
        ..dataset(text_type(), &[3], Layout::Chunked(vec![2]))
    };
    let new = spec(ObjectKindSpec::Dataset(Box::new(edges)));
    let edges = store.create(&NewObject::linked(oid::ROOT, &"edges".into(), &new)).unwrap();
    let text = store.put_blob(b"text", 4).unwrap();
    write(&store, edges, &[0], 0, &[vec![7], vec![0; 40]].concat());
    write(&store, edges, &[1], 0, &[text, vec![0; 20]].concat());
    store.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let check = |store: &KvStore| {
        store.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
        let (engine, what) =
            (LongKeyEngine::new(engine.clone()), StoreCheckOptions { verify_data: true, find_lost_domains: false });
        check_container(&engine, what, &Undo, AllocationLimit::default()).unwrap()
    };
    let report = check(&store);
    assert_eq!((findings(&report), report.leak_count), (Vec::new(), 0));
    write(&store, edges, &[1], 0, &[0; 39]);
    assert_eq!(findings(&check(&store))[0].0, "chunk", "it is as long as all others");
    write(&store, edges, &[1], 0, &[0; 40]);
    store.remove_link(oid::ROOT, &"edges".into()).unwrap();
    let report = check(&store);
    assert_eq!(findings(&report), []);
}

#[test]
fn texts_of_maps_are_blobs_as_in_the_connector_and_are_in_their_records_in_older_containers() {
    for is_old in [false, true] {
        let engine = MemoryEngine::new();
        let created =
            KvStore::open(LongKeyEngine::new(engine.clone()), &request(Mode::CreateNew, DurabilitySupport::Always, 5));
        let mut store = created.unwrap();
        if is_old {
            // A container of the first version, without records that have checksums.
            let asked =
                KvOpenRequest { checksum_new_container: false, ..request(Mode::Create, DurabilitySupport::Always, 5) };
            store = KvStore::open(LongKeyEngine::new(engine.clone()), &asked).unwrap();
            store.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            let mut edits = EditBatch::new();
            let version = [&b"h5livekv"[..], &1u32.to_le_bytes()].concat();
            put(&mut edits, &key::metadata(oid::GLOBAL_METADATA, MetadataField::ContainerFormat), version);
            engine.commit(&edits, PublishLevel::Visible).unwrap();
            store =
                KvStore::open(LongKeyEngine::new(engine.clone()), &request(Mode::Write, DurabilitySupport::Always, 6))
                    .unwrap();
        }
        let map = MapSpec { key_type: number(), value_type: text_type() };
        let new = spec(ObjectKindSpec::Map(Box::new(map)));
        let map = store.create(&NewObject::linked(oid::ROOT, &"map".into(), &new)).unwrap();
        let put = |key: &'static [u8], value: &'static [u8]| MapEdit::Put { key: MapKey::Bytes(key), value };
        let maps = store.maps().unwrap();
        maps.write(map, &[put(&[1], b"one"), put(&[2], b""), put(&[3], b"three")]).unwrap();
        maps.write(map, &[put(&[1], b"another"), MapEdit::Remove { key: MapKey::Bytes(&[3]) }]).unwrap();
        let mut found = Vec::new();
        let all = MapScan {
            start: Bound::Unbounded,
            end: Bound::Unbounded,
            with_values: true,
            prefetch: MapPrefetch::default(),
        };
        let each = &mut |_: MapKey<'_>, value: &[u8]| {
            found.push(value.to_vec());
            true
        };
        maps.for_each(map, &all, each).unwrap();
        assert_eq!(found, [b"another".to_vec(), Vec::new()]);
        let check = |leaks| {
            store.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            let keys = LongKeyEngine::new(engine.clone());
            let what = StoreCheckOptions { verify_data: true, find_lost_domains: leaks };
            let report = check_container(&keys, what, &Undo, AllocationLimit::default()).unwrap();
            assert_eq!((findings(&report), report.leak_count), (Vec::new(), 0));
            let view = keys.view().unwrap();
            let stored = ViewWithEdits::without_edits(&view).get(key::map_record(map, &[1]).as_bytes()).unwrap();
            stored.map(|value| value.len())
        };
        assert_eq!(check(true), Some(if is_old { 7 } else { 20 + CHECKSUM_BYTES }));
        store.remove_link(oid::ROOT, &"map".into()).unwrap();
        assert_eq!(check(true), None, "the blobs are deleted with the map");
    }
}

/// Datasets of which nearly nothing is stored: the check looks where elements are, not how far the dataset reaches.
#[test]
fn elements_of_sparse_datasets_are_checked_where_they_are_stored() {
    const FAR: u64 = 1 << 38;
    let engine = MemoryEngine::new();
    let how = request(Mode::CreateNew, DurabilitySupport::Always, 7);
    let store = KvStore::open(LongKeyEngine::new(engine.clone()), &how).unwrap();
    let (writer, root) = (store.writer().unwrap(), store.session().root);
    let sparse: [(&str, &[u64], Layout, &[u64]); 3] = [
        ("contiguous", &[2 * FAR], Layout::Contiguous, &[0]),
        ("rows", &[1 << 18, 1 << 21], Layout::Contiguous, &[0, 0]),
        ("chunked", &[2 * FAR], Layout::Chunked(vec![2 * FAR]), &[0]),
    ];
    for (name, dims, layout, coord) in sparse {
        let spec = spec(ObjectKindSpec::Dataset(Box::new(dataset(text_type(), dims, layout))));
        let id = writer.create(&NewObject::linked(root, &name.into(), &spec)).unwrap();
        let coord = ChunkCoord::new(coord);
        // The second element lies in two pieces.
        for at in [0, (64 << 10) / 20, FAR] {
            let bytes = writer.put_blob(name.as_bytes(), name.len() as u32).unwrap();
            let part = ChunkWrite::ByteRange { coord: &coord, byte_offset: 20 * at, bytes: &bytes, unseen: false };
            store.dataset(id).unwrap().write(&ChunkBatch { writes: &[part], ..ChunkBatch::default() }).unwrap();
        }
    }
    writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let what = StoreCheckOptions { verify_data: true, find_lost_domains: true };
    let report =
        check_container(&LongKeyEngine::new(engine.reader()), what, &Undo, AllocationLimit::default()).unwrap();
    assert_eq!((findings(&report), report.leak_count), (vec![], 0), "each element was seen: its blob is in use");
}

#[test]
fn names_are_part_of_paths() {
    let container = Container::new();
    let mut edits = EditBatch::new();
    let id = {
        let view = container.engine.view().unwrap();
        let value = ViewWithEdits::without_edits(&view)
            .get(key::link(container.inner, container.long_name.as_bytes()).as_bytes());
        let value = value.unwrap().unwrap();
        match decode_link_target(&value[..value.len() - CHECKSUM_BYTES]).unwrap() {
            LinkTarget::Hard(id) => id,
            other => panic!("{other:?}"),
        }
    };
    put(&mut edits, &key::metadata(id, MetadataField::RefCount), encode_u64(7));
    edits.add_checksums();
    container.engine.commit(&edits, PublishLevel::Visible).unwrap();
    let report = container.check();
    let path = format!("/group/inner/{}", Name::from(container.long_name.as_bytes()));
    assert_eq!(report.findings[0].path.as_ref(), Some(&path));
    assert_eq!(report.findings[0].object, Some(id));
}
