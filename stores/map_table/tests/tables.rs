//! Maps as tables in HDF5 files: what is in the file, damaged tables, deaths, and what other sessions see.

use std::path::Path;
use std::sync::Arc;

use h5live_map_table::{MapTableStore, layout};
use h5live_model::{
    AttributeData, ByteOrder, CharacterSet, ChunkCoord, Datatype, Error, LinkTarget, MapEdit, MapKey, MapScan, MapSpec,
    Mode, Name, NewObject, ObjectId, ObjectKind, ObjectScope, ObjectSpec, PublishLevel, Sign, Store, StoreErrorKind,
    StringPadding, VarLenKind, VarLenType,
};
use h5live_native::{NativeFile, OpenOptions};

fn native(path: &Path, mode: Mode) -> NativeFile {
    NativeFile::open(path, &OpenOptions { mode, ..OpenOptions::default() }).unwrap()
}

fn open(path: &Path, mode: Mode) -> MapTableStore {
    MapTableStore::over(Arc::new(native(path, mode)))
}

fn u32le() -> Datatype {
    Datatype::integer(4, ByteOrder::Little, Sign::Unsigned)
}

fn text() -> Datatype {
    let kind = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: CharacterSet::Utf8 };
    Datatype::VarLen(VarLenType { kind, size: 16, base: Box::default() })
}

fn make(store: &MapTableStore, key: Datatype, value: Datatype) -> ObjectId {
    let spec = ObjectSpec::from(MapSpec { key_type: key, value_type: value });
    let name = Name::from("map");
    store.writer().unwrap().create(&NewObject::linked(store.session().root, &name, &spec)).unwrap()
}

fn find(store: &dyn Store) -> ObjectId {
    match store.link(store.session().root, &"map".into()).unwrap().unwrap().target {
        LinkTarget::Hard(id) => id,
        other => panic!("{other:?}"),
    }
}

fn put(store: &MapTableStore, map: ObjectId, numbers: impl Iterator<Item = u32>) {
    let stored: Vec<_> = numbers.map(u32::to_le_bytes).collect();
    let edits: Vec<_> =
        stored.iter().map(|number| MapEdit::Put { key: MapKey::Bytes(number), value: number }).collect();
    store.maps().unwrap().write(map, &edits).unwrap();
}

fn count(store: &MapTableStore, map: ObjectId) -> u64 {
    store.maps().unwrap().len(map).unwrap()
}

#[test]
fn other_programs_see_a_group_with_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.h5");
    let store = open(&path, Mode::Create);
    let map = make(&store, u32le(), u32le());
    put(&store, map, [7, 1, 7].into_iter());
    store.maps().unwrap().write(map, &[MapEdit::Remove { key: MapKey::Bytes(&1u32.to_le_bytes()) }]).unwrap();
    store.close().unwrap();
    let plain = native(&path, Mode::Read);
    let map = find(&plain);
    assert_eq!(plain.kind(map).unwrap(), ObjectKind::Group);
    let mark = plain.attribute(map, &layout::MARK_ATTRIBUTE.into()).unwrap().unwrap();
    assert_eq!(mark.value, 1u32.to_le_bytes());
    let table = plain.dataset(layout::find_table(&plain, map).unwrap()).unwrap();
    let spec = table.spec().unwrap();
    assert_eq!(spec.dataspace.dims(), [4]);
    assert_eq!(spec.datatype.size(), 9);
    let chunk = table.locate(&ChunkCoord::new(&[0])).unwrap().unwrap();
    let mut rows = [0; 36];
    table.read(&chunk, 0, &mut rows).unwrap();
    let row = |key: u8, value: u8, change: u8| [key, 0, 0, 0, value, 0, 0, 0, change];
    assert_eq!(rows[..], [row(7, 7, 1), row(1, 1, 1), row(7, 7, 1), row(1, 0, 0)].concat());
}

#[test]
fn a_batch_larger_than_what_waits_in_memory_is_seen_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.h5");
    let writer = open(&path, Mode::Create);
    let map = make(&writer, u32le(), Datatype::fixed_string(100, CharacterSet::Utf8));
    writer.writer().unwrap().start_swmr().unwrap();
    let reader = open(&path, Mode::SwmrRead);
    let seen = find(&reader);
    assert_eq!(count(&reader, seen), 0);
    // 105 bytes a row: over 1 MiB each.
    const BATCH: u32 = 11_000;
    let value = |number: u32| format!("{number:0100}").into_bytes();
    for batch in 0..3 {
        let pairs: Vec<_> =
            (batch * BATCH..(batch + 1) * BATCH).map(|number| (number.to_le_bytes(), value(number))).collect();
        let edits: Vec<_> = pairs.iter().map(|(key, value)| MapEdit::Put { key: MapKey::Bytes(key), value }).collect();
        writer.maps().unwrap().write(map, &edits).unwrap();
        reader.refresh(ObjectScope::All).unwrap();
        assert_eq!(count(&reader, seen) % u64::from(BATCH), 0);
    }
    writer.writer().unwrap().commit(ObjectScope::Objects(&[map]), PublishLevel::Visible).unwrap();
    reader.refresh(ObjectScope::Objects(&[seen])).unwrap();
    assert_eq!(count(&reader, seen), u64::from(3 * BATCH));
    let mut next = 0u32;
    let check = &mut |key: MapKey<'_>, found: &[u8]| {
        assert_eq!((key, found), (MapKey::Bytes(&next.to_le_bytes()), &value(next)[..]));
        next += 1;
        true
    };
    reader.maps().unwrap().for_each(seen, &MapScan::default(), check).unwrap();
    assert_eq!(next, 3 * BATCH);
}

#[test]
fn what_was_not_committed_is_gone_with_its_writer() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("f.h5"), folder.path().join("copy.h5"));
    let writer = open(&path, Mode::Create);
    let map = make(&writer, u32le(), u32le());
    put(&writer, map, 0..10);
    writer.writer().unwrap().start_swmr().unwrap();
    put(&writer, map, 10..20);
    writer.writer().unwrap().commit(ObjectScope::Objects(&[map]), PublishLevel::Visible).unwrap();
    put(&writer, map, 20..30);
    // The file as the death of the writer leaves it.
    std::fs::copy(&path, &copy).unwrap();
    let left = open(&copy, Mode::SwmrRead);
    assert_eq!(count(&left, find(&left)), 20);
}

#[test]
fn keys_of_variable_length_are_read_again_with_null_apart_from_the_empty_string() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.h5");
    let store = open(&path, Mode::Create);
    let map = make(&store, text(), text());
    let keys = [MapKey::Null, MapKey::Bytes(b""), MapKey::Bytes(b"a")];
    let edits = keys.map(|key| MapEdit::Put { key, value: b"v" });
    store.maps().unwrap().write(map, &edits).unwrap();
    store.maps().unwrap().write(map, &[MapEdit::Remove { key: MapKey::Null }]).unwrap();
    store.close().unwrap();
    let store = open(&path, Mode::Read);
    let map = find(&store);
    let contains = |key| store.maps().unwrap().contains(map, key).unwrap();
    assert_eq!(keys.map(contains), [false, true, true]);
    assert_eq!(count(&store, map), 2);
}

#[test]
fn the_mark_is_hidden_and_cannot_be_changed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("f.h5"), Mode::Create);
    let map = make(&store, u32le(), u32le());
    let mark = AttributeData { value: vec![2, 0, 0, 0], ..layout::map_mark_attribute() };
    assert!(matches!(store.writer().unwrap().set_attribute(map, &mark), Err(Error::Invalid(_))));
    assert!(matches!(store.writer().unwrap().remove_attribute(map, &mark.name), Err(Error::NotFound(_))));
    assert!(store.attribute_names(map).unwrap().is_empty());
    assert_eq!(store.attribute(map, &mark.name).unwrap(), None);
    store.for_each_attribute(map, &mut |found| panic!("{found:?}")).unwrap();
    let group = store.writer().unwrap().create(&NewObject::unlinked(&ObjectSpec::group())).unwrap();
    assert!(matches!(store.writer().unwrap().set_attribute(group, &mark), Err(Error::Invalid(_))));
}

#[test]
fn the_links_of_a_map_cannot_be_changed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("f.h5"), Mode::Create);
    let (writer, root) = (store.writer().unwrap(), store.session().root);
    let map = make(&store, u32le(), u32le());
    let (name, spec) = ("x".into(), ObjectSpec::group());
    let table = layout::TABLE_LINK.into();
    let refused = [
        writer.create(&NewObject::linked(map, &name, &spec)).map(drop),
        writer.add_link(map, &name, &LinkTarget::Soft("/y".into())),
        writer.remove_link(map, &table),
        writer.rename_link((map, &table), (root, &name)),
        writer.rename_link((root, &"map".into()), (map, &name)),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(Error::WrongKind { .. })), "{refused:?}");
    }
    put(&store, map, 0..3);
    assert_eq!(count(&store, map), 3);
}

#[test]
fn a_deleted_map_is_neither_read_nor_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.h5");
    let store = open(&path, Mode::Create);
    let map = make(&store, u32le(), u32le());
    put(&store, map, 0..10);
    store.writer().unwrap().start_swmr().unwrap();
    let reader = open(&path, Mode::SwmrRead);
    let seen = find(&reader);
    assert_eq!(count(&reader, seen), 10);
    put(&store, map, 10..20);
    store.writer().unwrap().remove_link(store.session().root, &"map".into()).unwrap();
    assert!(matches!(store.maps().unwrap().len(map), Err(Error::NoObject(_))));
    let late = MapEdit::Put { key: MapKey::Bytes(&[0; 4]), value: &[0; 4] };
    assert!(store.maps().unwrap().write(map, &[late]).is_err());
    store.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let other = make(&store, u32le(), text());
    assert_eq!(count(&store, other), 0);
    store.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    // The old map, or no map at all, but nothing else.
    if reader.refresh(ObjectScope::All).is_ok() && reader.kind(seen).is_ok_and(|kind| kind == ObjectKind::Map) {
        assert!(reader.maps().unwrap().len(seen).is_ok_and(|count| count == 10) || seen == find(&reader));
    }
}

/// Damages the file of a map with ten numbers, and returns what opening the map says.
fn damaged(damage: impl FnOnce(&NativeFile, ObjectId)) -> Error {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.h5");
    let store = open(&path, Mode::Create);
    let map = make(&store, u32le(), u32le());
    put(&store, map, 0..10);
    store.close().unwrap();
    let plain = native(&path, Mode::Write);
    damage(&plain, find(&plain));
    plain.close().unwrap();
    let store = open(&path, Mode::Read);
    let map = find(&store);
    assert_eq!(store.kind(map).unwrap(), ObjectKind::Map);
    store.maps().unwrap().len(map).unwrap_err()
}

#[test]
fn damaged_tables_are_refused() {
    let newer = AttributeData { value: vec![2, 0, 0, 0], ..layout::map_mark_attribute() };
    let error = damaged(|file, map| file.writer().unwrap().set_attribute(map, &newer).unwrap());
    assert_eq!(error.store_error_kind(), Some(&StoreErrorKind::NotThisFormat), "{error}");
    let error = damaged(|file, map| file.writer().unwrap().remove_link(map, &layout::TABLE_LINK.into()).unwrap());
    assert_eq!(error.store_error_kind(), Some(&StoreErrorKind::Damaged), "{error}");
    let table = |file: &NativeFile, map| file.dataset(layout::find_table(file, map).unwrap()).unwrap();
    // The kind of change of the second row.
    let error = damaged(|file, map| table(file, map).write_byte_range(&ChunkCoord::new(&[0]), 17, &[4]).unwrap());
    assert_eq!(error.to_string(), "the map is damaged: row 1 of its table has an unknown kind of change");
    let error = damaged(|file, map| table(file, map).set_extent(&[1 << 40]).unwrap());
    assert_eq!(error.store_error_kind(), Some(&StoreErrorKind::Damaged), "{error}");
    let numbers = ObjectSpec::from(h5live_model::DatasetSpec { datatype: u32le(), ..Default::default() });
    let error = damaged(|file, map| {
        file.writer().unwrap().remove_link(map, &layout::TABLE_LINK.into()).unwrap();
        file.writer().unwrap().create(&NewObject::linked(map, &layout::TABLE_LINK.into(), &numbers)).unwrap();
    });
    assert_eq!(error.store_error_kind(), Some(&StoreErrorKind::Damaged), "{error}");
}
