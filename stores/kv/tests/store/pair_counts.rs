//! The number of pairs of a map, which the commit finds out unless somebody asks for it before.

use std::collections::BTreeMap;

use crate::shared;

use h5live_kv::engine::{Engine, LmdbEngine, LmdbOptions, LongKeyEngine, MemoryEngine};
use h5live_kv::layout::oid;
use h5live_kv::{KvStore, check_container};
use h5live_model::{
    AllocationLimit, CharacterSet, Datatype, DurabilitySupport, MapEdit, MapKey, MapSpec, MapStore, Mode, NewObject,
    NoFilters, ObjectId, ObjectKindSpec, ObjectScope, ObjectSpec, PublishLevel, Store, StoreCheckOptions,
    StringPadding, VarLenKind, VarLenType,
};

use self::shared::request;

/// Random numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn create_map(store: &KvStore, name: &str) -> ObjectId {
    let kind = VarLenKind::String { padding: StringPadding::NullTerminated, character_set: CharacterSet::Utf8 };
    let key = Datatype::VarLen(VarLenType { kind, size: 20, base: Box::default() });
    let value = Datatype::integer(1, Default::default(), Default::default());
    let spec = ObjectSpec {
        body: ObjectKindSpec::Map(Box::new(MapSpec { key_type: key, value_type: value })),
        ..ObjectSpec::group()
    };
    store.writer().unwrap().create(&NewObject::linked(oid::ROOT, &name.into(), &spec)).unwrap()
}

/// Changes two maps, asks for their sizes now and then, and compares both with what they should be.
fn change_maps(store: &KvStore, check: &dyn Fn(), numbers: &mut Numbers) {
    let writer = store.writer().unwrap();
    let commit = || writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let mut maps = ["a", "b"].map(|name| (name, create_map(store, name), BTreeMap::new()));
    for _ in 0..400 {
        let (name, map, model) = &mut maps[numbers.below(2) as usize];
        match numbers.below(20) {
            0..12 => {
                // Some are longer than the engine's keys, and some come more than once.
                let keys: Vec<_> = (0..numbers.below(6)).map(|_| "k".repeat(numbers.below(90) as usize)).collect();
                let is_put: Vec<_> = keys.iter().map(|_| numbers.below(3) > 0).collect();
                let edit = |(key, is_put): (&String, &bool)| match is_put {
                    true => (key.clone(), Some(1u8)),
                    false => (key.clone(), None),
                };
                let edits: Vec<_> = keys.iter().zip(&is_put).map(edit).collect();
                let stored = edits.iter().map(|(key, value)| match value {
                    Some(_) => MapEdit::Put { key: MapKey::Bytes(key.as_bytes()), value: &[1] },
                    None => MapEdit::Remove { key: MapKey::Bytes(key.as_bytes()) },
                });
                store.maps().unwrap().write(*map, &stored.collect::<Vec<_>>()).unwrap();
                for (key, value) in edits {
                    match value {
                        Some(value) => drop(model.insert(key, value)),
                        None => drop(model.remove(&key)),
                    }
                }
            }
            12..15 => assert_eq!(MapStore::len(store, *map).unwrap(), model.len() as u64),
            15..19 => {
                commit();
                check();
                for (_, map, model) in &maps {
                    assert_eq!(MapStore::len(store, *map).unwrap(), model.len() as u64);
                }
            }
            _ => {
                writer.remove_link(oid::ROOT, &(*name).into()).unwrap();
                (*map, *model) = (create_map(store, name), BTreeMap::new());
            }
        }
    }
    commit();
    check();
}

fn assert_sound(engine: &LongKeyEngine<impl Engine>) {
    let report = check_container(engine, StoreCheckOptions::default(), &NoFilters, AllocationLimit::default());
    let report = report.unwrap();
    assert!(report.has_no_findings(), "{:?}", report.findings);
}

#[test]
fn maps_have_the_number_of_their_pairs_whoever_counts_them() {
    let mut numbers = Numbers(1);
    for _ in 0..6 {
        let engine = MemoryEngine::new();
        let request = request(Mode::CreateNew, DurabilitySupport::Always, 5);
        let store = KvStore::open(LongKeyEngine::new(engine.clone()), &request).unwrap();
        change_maps(&store, &|| assert_sound(&LongKeyEngine::new(engine.clone())), &mut numbers);
    }
    for _ in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let open = |mode| LmdbEngine::open(folder.path(), mode, &LmdbOptions::default()).unwrap();
        let request = request(Mode::CreateNew, DurabilitySupport::OnRequest, 5);
        let store = KvStore::open(LongKeyEngine::new(open(Mode::CreateNew)), &request).unwrap();
        let reader = LongKeyEngine::new(open(Mode::Read));
        change_maps(&store, &|| assert_sound(&reader), &mut numbers);
    }
}
