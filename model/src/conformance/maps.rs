//! Maps: their pairs, the order of their keys, and what readers see of them.

use std::ops::Bound;
use std::time::Duration;

use super::claims::has_claimed_features;
use super::store_fixture::{StoreFixture, name, number, u16le};
use crate::{
    ByteOrder, CharacterSet, CompoundMember, CompoundType, Datatype, Error, LinkTarget, MapEdit, MapKey, MapKeyBuf,
    MapPrefetch, MapScan, MapSpec, MapStore, NewObject, ObjectId, ObjectKind, ObjectScope, ObjectSpec, PublishLevel,
    Result, Sign, Store, StoreFeatures, StringPadding, VarLenKind, VarLenType, WatchEvent,
};

fn text(store: &impl Store) -> Datatype {
    let kind = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: CharacterSet::Utf8 };
    Datatype::VarLen(VarLenType { kind, size: store.session().vlen_and_reference_sizes.vlen, base: Box::default() })
}

fn sequence(store: &impl Store, base: Datatype) -> Datatype {
    let size = store.session().vlen_and_reference_sizes.vlen;
    Datatype::VarLen(VarLenType { kind: VarLenKind::Sequence, size, base: Box::new(base) })
}

fn maps(store: &impl Store) -> &dyn MapStore {
    store.maps().expect("a store that claims maps has them")
}

pub(super) fn make_map(store: &impl Store, at: &str, key: Datatype, value: Datatype) -> ObjectId {
    let spec = ObjectSpec::from(MapSpec { key_type: key, value_type: value });
    store.writer().unwrap().create(&NewObject::linked(store.session().root, &name(at), &spec)).unwrap()
}

fn find(store: &impl Store, at: &str) -> ObjectId {
    match store.link(store.session().root, &name(at)).unwrap().unwrap().target {
        LinkTarget::Hard(id) => id,
        other => panic!("{other:?}"),
    }
}

pub(super) fn put(store: &impl Store, map: ObjectId, pairs: &[(&[u8], &[u8])]) -> Result<()> {
    let edits: Vec<_> = pairs.iter().map(|(key, value)| MapEdit::Put { key: MapKey::Bytes(key), value }).collect();
    maps(store).write(map, &edits)
}

fn get(store: &impl Store, map: ObjectId, key: MapKey<'_>) -> Option<Vec<u8>> {
    let mut found = Vec::new();
    maps(store).get(map, &[key], &mut |number, value| found.push((number, value.map(<[u8]>::to_vec)))).unwrap();
    assert_eq!(found.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0], "each key comes once");
    assert_eq!(found[0].1.is_some(), maps(store).contains(map, key).unwrap());
    found.remove(0).1
}

fn list(store: &impl Store, map: ObjectId, scan: &MapScan<'_>) -> Vec<(MapKeyBuf, Vec<u8>)> {
    let mut found = Vec::new();
    maps(store)
        .for_each(map, scan, &mut |key, value| {
            found.push((key.to_buf(), value.to_vec()));
            true
        })
        .unwrap();
    found
}

fn keys(store: &impl Store, map: ObjectId, scan: &MapScan<'_>) -> Vec<Vec<u8>> {
    list(store, map, scan).into_iter().map(|(key, _)| key.as_key().bytes_or_empty().to_vec()).collect()
}

/// Pairs are put, replaced, found, listed and removed; a map is an object with links and attributes like others.
pub fn test_map_pairs(lab: &impl StoreFixture) {
    let store = lab.create();
    if !has_claimed_features(&store, StoreFeatures::MAPS) {
        assert!(store.maps().is_none());
        return;
    }
    let (writer, root) = (store.writer().unwrap(), store.session().root);
    let spec = MapSpec { key_type: u16le(), value_type: Datatype::integer(4, ByteOrder::Little, Sign::Signed) };
    let map = make_map(&store, "map", spec.key_type.clone(), spec.value_type.clone());
    assert_eq!(store.kind(map).unwrap(), ObjectKind::Map);
    assert_eq!(store.spec(map).unwrap().into_map().unwrap(), spec);
    assert_eq!(maps(&store).len(map).unwrap(), 0);
    assert_eq!(list(&store, map, &MapScan::default()), []);
    put(&store, map, &[(&[2, 0], &[1; 4]), (&[1, 0], &[2; 4]), (&[2, 0], &[3; 4])]).unwrap();
    assert_eq!(maps(&store).len(map).unwrap(), 2);
    assert_eq!(get(&store, map, MapKey::Bytes(&[2, 0])), Some(vec![3; 4]));
    assert_eq!(get(&store, map, MapKey::Bytes(&[3, 0])), None);
    let mut found = [const { Vec::new() }; 3];
    let wanted = [MapKey::Bytes(&[1, 0]), MapKey::Bytes(&[9, 0]), MapKey::Bytes(&[1, 0])];
    maps(&store).get(map, &wanted, &mut |number, value| found[number].push(value.map(<[u8]>::to_vec))).unwrap();
    assert_eq!(found, [vec![Some(vec![2; 4])], vec![None], vec![Some(vec![2; 4])]]);
    let edits = [
        MapEdit::Remove { key: MapKey::Bytes(&[2, 0]) },
        MapEdit::Remove { key: MapKey::Bytes(&[7, 0]) },
        MapEdit::Put { key: MapKey::Bytes(&[3, 0]), value: &[4; 4] },
    ];
    maps(&store).write(map, &edits).unwrap();
    assert_eq!(keys(&store, map, &MapScan::default()), [[1, 0], [3, 0]]);
    maps(&store).write(map, &[]).unwrap();
    writer.set_attribute(map, &number(name("a"), 7)).unwrap();
    assert_eq!(store.attribute_names(map).unwrap(), [name("a")]);
    assert_eq!(store.info(map).unwrap().hard_link_count, 1);
    let again = writer.create(&NewObject::linked(root, &name("map"), &spec.clone().into()));
    assert!(matches!(again, Err(Error::Exists(_))));
    writer.remove_link(root, &name("map")).unwrap();
    assert_eq!(store.link(root, &name("map")).unwrap(), None);
    assert!(matches!(maps(&store).len(map), Err(Error::NoObject(_))));
    if has_claimed_features(&store, StoreFeatures::UNLINKED) {
        let map = writer.create(&NewObject::unlinked(&spec.into())).unwrap();
        put(&store, map, &[(&[5, 0], &[5; 4])]).unwrap();
        writer.add_link(root, &name("later"), &LinkTarget::Hard(map)).unwrap();
        assert_eq!(maps(&store).len(find(&store, "later")).unwrap(), 1);
    }
}

/// What is no map, no key and no value is refused, and nothing is changed by the batch.
pub fn test_refused_map_edits(lab: &impl StoreFixture) {
    let store = lab.create();
    if !has_claimed_features(&store, StoreFeatures::MAPS) {
        return;
    }
    let map = make_map(&store, "map", u16le(), u16le());
    put(&store, map, &[(&[1, 0], &[1, 1])]).unwrap();
    for (key, value) in [(&[1][..], &[9, 9][..]), (&[1, 2, 3], &[9, 9]), (&[2, 0], &[9]), (&[2, 0], &[])] {
        let refused = put(&store, map, &[(&[1, 0], &[8, 8]), (key, value)]);
        assert!(matches!(refused, Err(Error::Invalid(_))), "{key:?} {value:?}: {refused:?}");
    }
    let null = MapEdit::Put { key: MapKey::Null, value: &[9, 9] };
    assert!(matches!(maps(&store).write(map, &[null]), Err(Error::Invalid(_))));
    assert!(matches!(maps(&store).contains(map, MapKey::Bytes(&[1])), Err(Error::Invalid(_))));
    let all = list(&store, map, &MapScan::default());
    assert_eq!(all, [(MapKeyBuf::Bytes(vec![1, 0]), vec![1, 1])]);
    assert!(matches!(maps(&store).len(store.session().root), Err(Error::WrongKind { .. })));
    let nested = sequence(&store, text(&store));
    let spec = ObjectSpec::from(MapSpec { key_type: nested, value_type: u16le() });
    let root = store.session().root;
    let refused = store.writer().unwrap().create(&NewObject::linked(root, &name("bad"), &spec));
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    assert_eq!(store.link(root, &name("bad")).unwrap(), None);
}

/// Pairs come in the order of their keys, from any key to any other, however few are fetched at a time.
pub fn test_map_range_scans(lab: &impl StoreFixture) {
    let store = lab.create();
    if !has_claimed_features(&store, StoreFeatures::MAPS) {
        return;
    }
    let map = make_map(&store, "map", Datatype::integer(2, ByteOrder::Little, Sign::Signed), u16le());
    let stored: Vec<_> = (0..300i16).map(|i| ((i * 77 % 300 - 150).to_le_bytes(), (i as u16).to_le_bytes())).collect();
    let pairs: Vec<(&[u8], &[u8])> = stored.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    put(&store, map, &pairs).unwrap();
    let numbers = |scan: &MapScan<'_>| -> Vec<i16> {
        keys(&store, map, scan).iter().map(|key| i16::from_le_bytes([key[0], key[1]])).collect()
    };
    for prefetch in [MapPrefetch::default(), MapPrefetch { keys: 7, bytes: 1 << 20 }, MapPrefetch { keys: 0, bytes: 1 }]
    {
        let all = MapScan { prefetch, ..MapScan::default() };
        assert_eq!(numbers(&all), (-150..150).collect::<Vec<_>>());
        let [low, high] = [-3i16, 5].map(i16::to_le_bytes);
        let [low, high] = [&low, &high].map(|key| MapKey::Bytes(key));
        let range = |start, end| MapScan { start, end, prefetch, ..MapScan::default() };
        let (after, to) = (Bound::Excluded(low), Bound::Included(high));
        assert_eq!(numbers(&range(Bound::Included(low), Bound::Excluded(high))), (-3..5).collect::<Vec<_>>());
        assert_eq!(numbers(&range(after, to)), (-2..=5).collect::<Vec<_>>());
        assert_eq!(numbers(&range(Bound::Unbounded, Bound::Excluded(low))), (-150..-3).collect::<Vec<_>>());
        assert_eq!(numbers(&range(Bound::Included(low), Bound::Included(low))), [-3]);
        for (start, end) in [
            (Bound::Excluded(low), Bound::Excluded(low)),
            (Bound::Included(low), Bound::Excluded(low)),
            (Bound::Included(high), Bound::Included(low)),
            (Bound::Excluded(high), Bound::Excluded(low)),
        ] {
            assert_eq!(numbers(&range(start, end)), Vec::<i16>::new(), "{start:?} {end:?}");
        }
    }
    let mut values = 0;
    let keys_only = MapScan { with_values: false, ..MapScan::default() };
    maps(&store)
        .for_each(map, &keys_only, &mut |_, value| {
            values += value.len();
            true
        })
        .unwrap();
    assert_eq!(values, 0);
    let mut calls = 0;
    maps(&store)
        .for_each(map, &MapScan::default(), &mut |_, _| {
            calls += 1;
            calls < 3
        })
        .unwrap();
    assert_eq!(calls, 3, "an iteration ends when it is told to");
}

/// Keys and values of variable length, null and empty strings, and compounds are kept as they are.
pub fn test_map_key_types(lab: &impl StoreFixture) {
    let store = lab.create();
    if !has_claimed_features(&store, StoreFeatures::MAPS.with(StoreFeatures::VARIABLE_LENGTH)) {
        return;
    }
    let texts = make_map(&store, "texts", text(&store), text(&store));
    let long = vec![b'x'; 10_000];
    let edits = [
        (MapKey::Bytes(b""), &b"empty"[..]),
        (MapKey::Null, b"null"),
        (MapKey::Bytes(&long), b""),
        (MapKey::Bytes(b"b"), &long),
        (MapKey::Bytes("\u{e4}".as_bytes()), b"a"),
    ];
    let edits = edits.map(|(key, value)| MapEdit::Put { key, value });
    maps(&store).write(texts, &edits).unwrap();
    let expected: Vec<_> = [1, 0, 3, 2, 4]
        .map(|at: usize| match edits[at] {
            MapEdit::Put { key, value } => (key.to_buf(), value.to_vec()),
            MapEdit::Remove { key } => (key.to_buf(), Vec::new()),
        })
        .into();
    assert_eq!(list(&store, texts, &MapScan::default()), expected);
    assert_eq!(get(&store, texts, MapKey::Null).as_deref(), Some(&b"null"[..]));
    assert_eq!(get(&store, texts, MapKey::Bytes(&long)).as_deref(), Some(&b""[..]));
    maps(&store).write(texts, &[MapEdit::Remove { key: MapKey::Null }]).unwrap();
    assert_eq!(get(&store, texts, MapKey::Bytes(b"")).as_deref(), Some(&b"empty"[..]));
    assert_eq!(get(&store, texts, MapKey::Null), None);

    let lists = make_map(&store, "lists", sequence(&store, u16le()), sequence(&store, u16le()));
    put(&store, lists, &[(&[2, 0], &[]), (&[1, 0, 9, 0], &[7, 0]), (&[1, 0], &[8, 0, 9, 0])]).unwrap();
    assert_eq!(keys(&store, lists, &MapScan::default()), [&[1, 0][..], &[1, 0, 9, 0], &[2, 0]]);
    assert!(matches!(put(&store, lists, &[(&[], &[])]), Err(Error::Invalid(_))), "an empty sequence is no key");

    let member = |at: u32, label: &str, datatype| CompoundMember { name: name(label), offset: at, datatype };
    let inner = text(&store);
    let size = inner.size() + 2;
    let value =
        Datatype::Compound(CompoundType { size, members: vec![member(0, "n", u16le()), member(2, "t", inner)] });
    let key =
        Datatype::Compound(CompoundType { size: 4, members: vec![member(0, "a", u16le()), member(2, "b", u16le())] });
    let records = make_map(&store, "records", key, value);
    let mut record = vec![3, 0];
    record.extend(store.writer().unwrap().put_blob(b"inside", 6).unwrap());
    put(&store, records, &[(&[1, 0, 2, 0], &record)]).unwrap();
    store.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let found = get(&store, records, MapKey::Bytes(&[1, 0, 2, 0])).unwrap();
    assert_eq!(super::store_fixture::blob(&store, &found[2..]), b"inside");
}

/// All pairs are there after the store was closed and opened again.
pub fn test_map_persistence(lab: &impl StoreFixture) {
    let store = lab.create();
    if !has_claimed_features(&store, StoreFeatures::MAPS.with(StoreFeatures::VARIABLE_LENGTH)) {
        return;
    }
    let map = make_map(&store, "map", text(&store), u16le());
    let empty = make_map(&store, "empty", u16le(), u16le());
    put(&store, map, &[(b"a", &[1, 0]), (b"", &[2, 0])]).unwrap();
    maps(&store).write(map, &[MapEdit::Put { key: MapKey::Null, value: &[3, 0] }]).unwrap();
    store.writer().unwrap().commit(ObjectScope::Objects(&[map]), PublishLevel::Visible).unwrap();
    maps(&store).write(map, &[MapEdit::Remove { key: MapKey::Bytes(b"a") }]).unwrap();
    assert!(store.writer().unwrap().is_dirty());
    store.close().unwrap();
    assert!(put(&store, map, &[(b"late", &[1, 0])]).is_err());

    let store = lab.reopen(store);
    let expected = [(MapKeyBuf::Null, vec![3, 0]), (MapKeyBuf::Bytes(Vec::new()), vec![2, 0])];
    let map = find(&store, "map");
    assert_eq!(list(&store, map, &MapScan::default()), expected);
    put(&store, map, &[(b"", &[4, 0]), (b"more", &[5, 0])]).unwrap();
    assert_eq!(maps(&store).len(map).unwrap(), 3);
    assert_eq!(get(&store, map, MapKey::Bytes(b"")), Some(vec![4, 0]));
    assert_eq!(maps(&store).len(find(&store, "empty")).unwrap(), 0);
    let _ = empty;
    store.close().unwrap();
}

/// A reader keeps its snapshot until it refreshes, and sees each batch whole; it cannot write.
pub fn test_live_map_reads(lab: &impl StoreFixture) {
    let writer = lab.create();
    let capabilities = writer.session().capabilities;
    if !has_claimed_features(&writer, StoreFeatures::MAPS) || !capabilities.supports_live_reads {
        return;
    }
    let map = make_map(&writer, "map", u16le(), u16le());
    put(&writer, map, &[(&[0, 0], &[0, 0])]).unwrap();
    writer.writer().unwrap().start_swmr().unwrap();
    let Some(reader) = lab.open_reader(&writer) else { return };
    let seen = find(&reader, "map");
    let mut watch = reader.watch(&[seen]).unwrap();
    let all = |store| list(store, seen, &MapScan::default());
    assert_eq!(all(&reader).len(), 1);
    for i in 1..20u8 {
        let before = all(&reader);
        let edits = [
            MapEdit::Put { key: MapKey::Bytes(&[i, 0]), value: &[i, 0] },
            MapEdit::Put { key: MapKey::Bytes(&[i, 1]), value: &[i, 0] },
            MapEdit::Put { key: MapKey::Bytes(&[0, 0]), value: &[i, 0] },
            MapEdit::Remove { key: MapKey::Bytes(&[i - 1, 1]) },
        ];
        maps(&writer).write(map, &edits).unwrap();
        assert_eq!(all(&reader), before, "nobody sees what is not committed");
        writer.writer().unwrap().commit(ObjectScope::Objects(&[map]), PublishLevel::Visible).unwrap();
        assert_eq!(watch.wait(Duration::MAX).unwrap(), WatchEvent::Changed);
        assert_eq!(all(&reader), before, "nothing but a refresh moves what a reader sees");
        match i % 2 {
            0 => reader.refresh(ObjectScope::All).unwrap(),
            _ => reader.refresh(ObjectScope::Objects(&[seen])).unwrap(),
        }
        assert_eq!(all(&reader), list(&writer, map, &MapScan::default()));
        assert_eq!(maps(&reader).len(seen).unwrap(), u64::from(i) + 2);
        assert_eq!(get(&reader, seen, MapKey::Bytes(&[0, 0])), Some(vec![i, 0]));
    }
    assert!(matches!(put(&reader, seen, &[(&[1, 1], &[1, 1])]), Err(Error::ReadOnly)));
    writer.close().unwrap();
}
