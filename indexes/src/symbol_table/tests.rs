use std::collections::BTreeMap;
use std::sync::Arc;

use h5live_cache::{Cache, MemoryStorage, Owner, Scope};
use proptest::{prelude::*, test_runner::RngSeed};

use super::*;
use crate::Error;
use crate::tests::{cache, cache_from};

const OWNER: Owner = Owner::new(Addr::new(48));

fn k(leaf: u16, internal: u16) -> BtreeK {
    BtreeK { group_leaf: leaf, group_internal: internal, ..BtreeK::default() }
}

fn create(cache: &Arc<Cache>, k: BtreeK) -> SymbolTable {
    let metadata = ObjectMetadata::new(cache.clone(), OWNER);
    SymbolTable::create(metadata, k, Arc::default()).unwrap()
}

/// The table as another session finds it.
fn reopened(cache: Arc<Cache>, table: &SymbolTable) -> SymbolTable {
    let (btree, heap) = table.places();
    SymbolTable::new(ObjectMetadata::new(cache, OWNER), btree, heap, table.k, Arc::default())
}

fn target(number: u64) -> SymbolTarget {
    match number % 3 {
        0 => SymbolTarget::Path(format!("/{}", "p".repeat(number as usize % 50 + 1)).into()),
        _ => SymbolTarget::Object(Addr::new(number * 8)),
    }
}

fn check(table: &SymbolTable, links: &BTreeMap<Name, u64>) {
    let mut found = Vec::new();
    table
        .for_each(&mut |name, target| {
            found.push((name, target));
            Ok::<_, Error>(true)
        })
        .unwrap();
    let expected: Vec<_> = links.iter().map(|(name, number)| (name.clone(), target(*number))).collect();
    assert_eq!(found, expected);
    for (name, number) in links {
        assert_eq!(table.find(name).unwrap(), Some(target(*number)));
    }
}

#[test]
fn thousands_of_names_are_found_and_removed() {
    let storage = MemoryStorage::default();
    let cache = cache(&storage);
    let start = cache.space().end();
    let table = create(&cache, k(4, 16));
    let mut links = BTreeMap::new();
    for number in 0..3000 {
        let name: Name = format!("name {}", number * 7919 % 3000).into();
        table.insert(&name, &target(number), None, &[]).unwrap();
        links.insert(name, number);
    }
    check(&table, &links);
    cache.flush(Scope::All).unwrap();
    check(&reopened(cache_from(&storage, cache.space().end()), &table), &links);
    let end = cache.space().end();
    for _ in 0..3 {
        let names: Vec<_> = links.keys().step_by(2).cloned().collect();
        for name in &names {
            assert_eq!(table.remove(name).unwrap(), Some(target(links[name])));
        }
        assert_eq!(table.remove(&names[0]).unwrap(), None);
        cache.flush(Scope::All).unwrap();
        names.iter().for_each(|name| table.insert(name, &target(links[name]), None, &[]).unwrap());
        cache.flush(Scope::All).unwrap();
        check(&table, &links);
    }
    assert!(cache.space().end() < end * 2, "names that were removed make room for others");
    for name in links.keys() {
        table.remove(name).unwrap().unwrap();
    }
    check(&table, &BTreeMap::new());
    cache.flush(Scope::All).unwrap();
    table.delete().unwrap();
    cache.flush(Scope::All).unwrap();
    assert_eq!(cache.space().reusable(), cache.space().end() - start);
}

#[test]
fn a_heap_whose_writer_died_is_not_larger_than_before() {
    let storage = MemoryStorage::default();
    let mut open = cache(&storage);
    let mut table = create(&open, k(4, 16));
    let mut links = BTreeMap::new();
    for number in 0..200 {
        let name: Name = format!("name {number}").into();
        table.insert(&name, &target(1), None, &[]).unwrap();
        links.insert(name, 1);
        open.flush(Scope::All).unwrap();
        open = cache_from(&storage, open.space().end());
        table = reopened(open.clone(), &table);
    }
    check(&table, &links);
    assert!(table.names().unwrap().size() < 16 * 200 * 2);
}

#[test]
fn a_heap_that_is_put_away_has_no_room_at_its_end_and_lists_the_rest() {
    let storage = MemoryStorage::default();
    let cache = cache(&storage);
    let table = create(&cache, k(4, 16));
    let mut links = BTreeMap::new();
    for number in 0..300 {
        let name: Name = format!("name {number:08}").into();
        table.insert(&name, &target(1), None, &[]).unwrap();
        links.insert(name, 1);
    }
    for number in 0..10 {
        let name: Name = format!("name {:08}", 20 * number).into();
        table.remove(&name).unwrap().unwrap();
        links.remove(&name);
    }
    cache.flush(Scope::All).unwrap();
    assert!(table.put_away().unwrap());
    assert!(!table.put_away().unwrap());
    cache.flush(Scope::All).unwrap();
    let cache = cache_from(&storage, cache.space().end());
    let table = reopened(cache.clone(), &table);
    check(&table, &links);
    let names = table.names().unwrap();
    assert_eq!((names.size(), names.free()), (8 + 16 * 300, 16 * 10));
    let size = names.size();
    for number in 0..10 {
        table.insert(&format!("NAME {number:08}").into(), &target(1), None, &[]).unwrap();
    }
    assert_eq!(table.names().unwrap().size(), size);
}

#[test]
fn a_packed_table_is_whole_before_and_after_it_leads_to_the_copies() {
    let storage = MemoryStorage::default();
    let cache = cache(&storage);
    let table = create(&cache, k(4, 16));
    let mut links = BTreeMap::new();
    for number in 0..3000 {
        let name: Name = format!("name {}", number * 7919 % 3001).into();
        table.insert(&name, &target(number), None, &[]).unwrap();
        links.insert(name, number);
        if number % 100 == 0 {
            cache.flush(Scope::All).unwrap();
        }
    }
    for number in 0..1000 {
        let name: Name = format!("name {}", number * 7919 % 3001).into();
        table.remove(&name).unwrap().unwrap();
        links.remove(&name);
    }
    cache.flush(Scope::All).unwrap();
    let space = cache.space();
    let (end, free) = (space.end(), space.reusable());
    let copies = table.pack(end - free).unwrap().unwrap();
    cache.flush(Scope::All).unwrap();
    check(&reopened(cache_from(&storage, end), &table), &links);
    copies.lead().unwrap();
    check(&table, &links);
    cache.flush(Scope::All).unwrap();
    check(&reopened(cache_from(&storage, end), &table), &links);
}

#[derive(Debug, Clone)]
enum Step {
    Insert(u64, usize),
    Remove(usize),
    Flush,
    PutAway,
    Pack(u64),
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u64..2000, 0usize..40).prop_map(|(number, len)| Step::Insert(number, len)),
        4 => any::<usize>().prop_map(Step::Remove),
        1 => Just(Step::Flush),
        1 => Just(Step::PutAway),
        1 => (0u64..40_000).prop_map(Step::Pack),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40, failure_persistence: None, rng_seed: RngSeed::Fixed(0x5eed), ..ProptestConfig::default()
    })]

    #[test]
    fn holds_what_a_map_holds(steps in steps(), leaf in 1u16..4, internal in 1u16..4) {
        let storage = MemoryStorage::default();
        let mut open = cache(&storage);
        let mut table = create(&open, k(leaf, internal));
        let mut links = BTreeMap::new();
        for step in steps {
            match step {
                Step::Insert(number, len) => {
                    let name: Name = format!("{}{}", number % 97, "n".repeat(len)).into();
                    if let std::collections::btree_map::Entry::Vacant(entry) = links.entry(name.clone()) {
                        table.insert(&name, &target(number), None, &[]).unwrap();
                        entry.insert(number);
                    }
                }
                Step::Remove(at) => {
                    let chosen = links.keys().nth(at.checked_rem(links.len()).unwrap_or(0)).cloned();
                    if let Some(name) = chosen {
                        prop_assert!(table.remove(&name).unwrap().is_some());
                        links.remove(&name);
                    }
                }
                Step::Flush => open.flush(Scope::All).unwrap(),
                Step::PutAway => {
                    open.flush(Scope::All).unwrap();
                    table.put_away().unwrap();
                }
                Step::Pack(limit) => {
                    open.flush(Scope::All).unwrap();
                    if let Some(copies) = table.pack(limit).unwrap() {
                        open.flush(Scope::All).unwrap();
                        check(&reopened(cache_from(&storage, open.space().end()), &table), &links);
                        copies.lead().unwrap();
                    }
                }
                Step::Reopen => {
                    open.flush(Scope::All).unwrap();
                    open = cache_from(&storage, open.space().end());
                    table = reopened(open.clone(), &table);
                }
            }
        }
        check(&table, &links);
        open.flush(Scope::All).unwrap();
        check(&reopened(cache_from(&storage, open.space().end()), &table), &links);
    }
}
