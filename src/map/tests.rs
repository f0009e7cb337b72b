//! Tests of maps.

use std::ops::Bound;
use std::sync::Arc;

use h5live_model::memory::MemoryStore;
use h5live_model::{Error as ModelError, MapPrefetch, VarLenType};

use crate::{Copier, Datatype, ErrorKind, File, FixedStr, H5Type, Map, Object, Result, Value};

#[derive(Debug, Clone, PartialEq, H5Type)]
struct Position {
    x: i32,
    y: i32,
}

#[derive(Debug, Clone, PartialEq, H5Type)]
struct Station {
    name: String,
    height: f64,
}

#[derive(Debug, Clone, PartialEq, H5Type)]
struct Height {
    height: f64,
}

/// A file in memory, and an HDF5 file.
fn files(folder: &std::path::Path) -> [File; 2] {
    [File::in_memory(), File::create(folder.join("f.h5")).unwrap()]
}

fn pairs<K: H5Type, V: H5Type>(map: &Map<K, V>) -> Vec<(K, V)> {
    map.iter().collect::<Result<_>>().unwrap()
}

#[test]
fn maps_hold_keys_and_values_of_every_type() {
    let folder = tempfile::tempdir().unwrap();
    for file in files(folder.path()) {
        let stations = file.new_map::<Position, Station>().create("a/stations").unwrap();
        let station = |name: &str, height| Station { name: name.into(), height };
        stations.put(&Position { x: 1, y: -1 }, &station("one", 1.5)).unwrap();
        stations.put(&Position { x: 1, y: -2 }, &station("two", 2.5)).unwrap();
        stations.put(&Position { x: -1, y: 5 }, &station("three", 3.5)).unwrap();
        let names: Vec<_> = pairs(&stations).into_iter().map(|(_, station)| station.name).collect();
        assert_eq!(names, ["three", "two", "one"]);
        let found = stations.get_many(&[Position { x: 1, y: -1 }, Position { x: 9, y: 9 }]).unwrap();
        assert_eq!(found, [Some(station("one", 1.5)), None]);
        // A type with fewer members changes those alone.
        let heights = file.map::<Position, Height>("a/stations").unwrap();
        heights.put(&Position { x: 1, y: -1 }, &Height { height: 9.0 }).unwrap();
        assert_eq!(stations.get(&Position { x: 1, y: -1 }).unwrap(), Some(station("one", 9.0)));
        let lists = file.new_map::<Vec<u16>, Vec<String>>().create("lists").unwrap();
        lists.put(&vec![1, 2], &vec!["a".to_owned(), String::new()]).unwrap();
        assert_eq!(lists.get(&vec![1, 2]).unwrap(), Some(vec!["a".to_owned(), String::new()]));
        assert!(matches!(lists.put(&vec![], &vec![]).unwrap_err().kind(), ErrorKind::Store(ModelError::Invalid(_))));
        let fixed = file.new_map::<FixedStr<4>, [u8; 2]>().create("fixed").unwrap();
        fixed.put(&FixedStr::new("ab").unwrap(), &[1, 2]).unwrap();
        assert_eq!(fixed.get(&FixedStr::new("ab").unwrap()).unwrap(), Some([1, 2]));
        file.close().unwrap();
    }
}

#[test]
fn keys_and_values_are_converted_and_never_changed_silently() {
    let file = File::in_memory();
    let map = file.new_map::<u64, f64>().key_type(u8::datatype()).value_type(f32::datatype()).create("map").unwrap();
    map.put(&7, &0.5).unwrap();
    assert_eq!(map.get(&7).unwrap(), Some(0.5));
    assert!(matches!(map.put(&256, &1.0).unwrap_err().kind(), ErrorKind::Convert(_)));
    assert!(matches!(map.get(&256).unwrap_err().kind(), ErrorKind::Convert(_)));
    let error = map.put_many(&[(1u64, 1.0), (2, 1e300)]).unwrap_err();
    assert!(error.to_string().starts_with("memory: /map: values[1]: "), "{error}");
    assert_eq!(map.len().unwrap(), 1, "nothing of the batch was put");
    let signed = file.map::<i16, f32>("map").unwrap();
    assert_eq!(pairs(&signed), [(7, 0.5)]);
    assert!(signed.put(&-1, &1.0).is_err());
    assert!(matches!(file.map::<String, f32>("map").unwrap_err().kind(), ErrorKind::Convert(_)));
}

#[test]
fn the_empty_string_and_null_are_two_keys() {
    let folder = tempfile::tempdir().unwrap();
    for file in files(folder.path()) {
        let map = file.new_map::<String, u8>().create("map").unwrap();
        map.put("", &1).unwrap();
        let object = map.as_untyped();
        object.put_pairs(&[(Value::Null, Value::Integer(2))]).unwrap();
        assert_eq!((map.len().unwrap(), map.get("").unwrap()), (2, Some(1)));
        let all: Vec<_> = object.pairs(..).unwrap().collect::<Result<_>>().unwrap();
        let text = |text: &str| Value::Text(text.into());
        assert_eq!(all, [(Value::Null, Value::Integer(2)), (text(""), Value::Integer(1))]);
        assert!(map.iter().next().unwrap().is_err(), "a String is not null");
        assert_eq!(object.remove_keys(&[Value::Null, text("none"), Value::Null]).unwrap(), 1);
        assert!(map.put("a\0b", &1).is_err());
    }
}

#[test]
fn ranges_and_iterations_go_on_where_they_ended() {
    let folder = tempfile::tempdir().unwrap();
    for file in files(folder.path()) {
        let map = file.new_map::<i16, u32>().create("map").unwrap();
        let all: Vec<_> = (-50..50i16).map(|key| (key, key.unsigned_abs().into())).collect::<Vec<(i16, u32)>>();
        let mixed: Vec<_> = (0..100).map(|n| all[n * 37 % 100]).collect();
        map.put_many(&mixed).unwrap();
        for prefetch in
            [MapPrefetch::default(), MapPrefetch { keys: 7, bytes: 1 << 20 }, MapPrefetch { keys: 1, bytes: 1 }]
        {
            let map = map.clone().with_prefetch(prefetch);
            assert_eq!(pairs(&map), all);
            let keys = map.keys().collect::<Result<Vec<_>>>().unwrap();
            assert_eq!(keys, (-50..50).collect::<Vec<_>>());
            let range: Vec<_> = map.range(-3..=3).unwrap().map(|pair| pair.unwrap().0).collect();
            assert_eq!(range, [-3, -2, -1, 0, 1, 2, 3]);
            let mut first: Vec<_> = map.iter().take(30).collect::<Result<_>>().unwrap();
            let rest = map.range((Bound::Excluded(first[29].0), Bound::Unbounded)).unwrap();
            first.extend(rest.map(|pair| pair.unwrap()));
            assert_eq!(first, all);
        }
        // The map may be used while it is iterated.
        for pair in map.iter() {
            map.remove(&pair.unwrap().0).unwrap();
        }
        assert!(map.is_empty().unwrap());
    }
}

#[test]
fn an_iteration_stays_on_one_snapshot_while_another_session_writes() {
    let store = MemoryStore::new();
    let writer = File::with_store(Arc::new(store.clone()), "w", File::options()).unwrap();
    let map = writer.new_map::<u32, u32>().create("map").unwrap();
    let first: Vec<_> = (0..100).map(|key| (key, 0)).collect::<Vec<(u32, u32)>>();
    map.put_many(&first).unwrap();
    writer.flush().unwrap();
    let reader = File::with_store(Arc::new(store.open_reader()), "r", File::options()).unwrap();
    let seen = reader.map::<u32, u32>("map").unwrap().with_prefetch(MapPrefetch { keys: 3, bytes: 1 << 20 });
    let found = seen.iter().map(|pair| {
        let pair = pair.unwrap();
        map.put(&pair.0, &1).unwrap();
        map.put(&(pair.0 + 1000), &1).unwrap();
        map.flush().unwrap();
        pair
    });
    assert_eq!(found.collect::<Vec<_>>(), first);
    let mut follower = seen.follow().timeout(std::time::Duration::ZERO);
    assert_eq!(follower.next().unwrap().unwrap(), 200);
    assert_eq!(seen.get(&5).unwrap(), Some(1));
    writer.close().unwrap();
    assert!(matches!(seen.put(&1, &1).unwrap_err().kind(), ErrorKind::Store(ModelError::ReadOnly)));
}

#[test]
fn maps_are_objects_with_attributes_and_are_copied() {
    let folder = tempfile::tempdir().unwrap();
    for file in files(folder.path()) {
        let map = file.new_map::<String, Vec<String>>().create_unlinked().unwrap();
        file.root().link_hard("map", map.id()).unwrap();
        map.put("a", &vec!["b".to_owned(), "c".to_owned()]).unwrap();
        map.as_untyped().set_attribute("unit", "none").unwrap();
        let Object::Map(found) = file.object("map").unwrap() else { panic!("a map") };
        assert_eq!(found.attribute_names().unwrap(), ["unit"]);
        let texts = Vec::<String>::datatype();
        assert!(matches!((found.value_type(), &texts), (Datatype::VarLen(VarLenType { .. }), Datatype::VarLen(_))));
        for target in [File::in_memory(), File::create(folder.path().join("copy.h5")).unwrap(), file.clone()] {
            let mut copier = Copier::new(&file, &target);
            copier.object(&Object::Map(found.clone()), &target.root(), "copy").unwrap();
            copier.copy_data_and_finish().unwrap();
            let copy = target.map::<String, Vec<String>>("copy").unwrap();
            assert_eq!(pairs(&copy), [("a".to_owned(), vec!["b".to_owned(), "c".to_owned()])]);
            assert_eq!(copy.as_untyped().attribute("unit").unwrap().read_scalar::<String>().unwrap(), "none");
        }
        file.root().unlink("map").unwrap();
        assert!(file.map::<String, Vec<String>>("map").unwrap_err().is_not_found_in_file());
    }
}
