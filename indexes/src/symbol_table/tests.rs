use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use h5live_cache::{
    Cache, CacheOptions, DependencyKind, DependencyNode, FlushScope, MemoryStorage, Owner, RecordingStorage,
    ReusePolicy, replay_operations,
};
use proptest::{prelude::*, test_runner::RngSeed};

use super::*;
use crate::Error;
use crate::tests::{NoSuperblock, cache, cache_from};

const OWNER: Owner = Owner::new(Addr::new(48));

fn k(leaf: u16, internal: u16) -> BtreeK {
    BtreeK { group_leaf: leaf, group_internal: internal, ..BtreeK::default() }
}

fn create(cache: &Arc<Cache>, k: BtreeK) -> SymbolTable {
    let metadata = ObjectMetadataAccess::new(cache.clone(), OWNER);
    SymbolTable::create(metadata, k, Arc::default()).unwrap()
}

/// The table as another session finds it.
fn reopened(cache: Arc<Cache>, table: &SymbolTable) -> SymbolTable {
    let (btree, heap) = table.tree_and_heap_addrs();
    SymbolTable::new(ObjectMetadataAccess::new(cache, OWNER), btree, heap, table.k, Arc::default())
}

fn target(number: u64) -> SymbolTarget {
    match number % 3 {
        0 => SymbolTarget::Soft(format!("/{}", "p".repeat(number as usize % 50 + 1)).into()),
        _ => SymbolTarget::Hard(Addr::new(number * 8)),
    }
}

fn listed(table: &SymbolTable) -> Vec<(Name, SymbolTarget)> {
    let mut found = Vec::new();
    table
        .for_each_link(&mut |name, target| {
            found.push((name, target));
            Ok::<_, Error>(true)
        })
        .unwrap();
    found
}

fn check(table: &SymbolTable, links: &BTreeMap<Name, u64>) {
    let expected: Vec<_> = links.iter().map(|(name, number)| (name.clone(), target(*number))).collect();
    assert_eq!(listed(table), expected);
    for (name, number) in links {
        assert_eq!(table.find_link(name).unwrap(), Some(target(*number)));
    }
}

#[test]
fn thousands_of_names_are_found_and_removed() {
    let storage = MemoryStorage::default();
    let cache = cache(&storage);
    let start = cache.space().allocated_end();
    let table = create(&cache, k(4, 16));
    let mut links = BTreeMap::new();
    for number in 0..3000 {
        let name: Name = format!("name {}", number * 7919 % 3000).into();
        table.insert_link_known_absent(&name, &target(number), None, &[]).unwrap();
        links.insert(name, number);
    }
    check(&table, &links);
    cache.flush(FlushScope::All).unwrap();
    check(&reopened(cache_from(&storage, cache.space().allocated_end()), &table), &links);
    let end = cache.space().allocated_end();
    for _ in 0..3 {
        let names: Vec<_> = links.keys().step_by(2).cloned().collect();
        for name in &names {
            assert_eq!(table.remove_link(name).unwrap(), Some(target(links[name])));
        }
        assert_eq!(table.remove_link(&names[0]).unwrap(), None);
        cache.flush(FlushScope::All).unwrap();
        names.iter().for_each(|name| table.insert_link_known_absent(name, &target(links[name]), None, &[]).unwrap());
        cache.flush(FlushScope::All).unwrap();
        check(&table, &links);
    }
    assert!(cache.space().allocated_end() < end * 2, "names that were removed make room for others");
    for name in links.keys() {
        table.remove_link(name).unwrap().unwrap();
    }
    check(&table, &BTreeMap::new());
    cache.flush(FlushScope::All).unwrap();
    table.delete_table().unwrap();
    cache.flush(FlushScope::All).unwrap();
    assert_eq!(cache.space().free_bytes(), cache.space().allocated_end() - start);
}

#[test]
fn a_heap_whose_writer_died_is_not_larger_than_before() {
    let storage = MemoryStorage::default();
    let mut open = cache(&storage);
    let mut table = create(&open, k(4, 16));
    let mut links = BTreeMap::new();
    for number in 0..200 {
        let name: Name = format!("name {number}").into();
        table.insert_link_known_absent(&name, &target(1), None, &[]).unwrap();
        links.insert(name, 1);
        open.flush(FlushScope::All).unwrap();
        open = cache_from(&storage, open.space().allocated_end());
        table = reopened(open.clone(), &table);
    }
    check(&table, &links);
    assert!(table.name_heap().unwrap().segment_bytes() < 16 * 200 * 2);
}

#[test]
fn a_heap_that_is_put_away_has_no_room_at_its_end_and_lists_the_rest() {
    let storage = MemoryStorage::default();
    let cache = cache(&storage);
    let table = create(&cache, k(4, 16));
    let mut links = BTreeMap::new();
    for number in 0..300 {
        let name: Name = format!("name {number:08}").into();
        table.insert_link_known_absent(&name, &target(1), None, &[]).unwrap();
        links.insert(name, 1);
    }
    for number in 0..10 {
        let name: Name = format!("name {:08}", 20 * number).into();
        table.remove_link(&name).unwrap().unwrap();
        links.remove(&name);
    }
    cache.flush(FlushScope::All).unwrap();
    assert!(table.finalize_name_heap_if_changed().unwrap());
    assert!(!table.finalize_name_heap_if_changed().unwrap());
    cache.flush(FlushScope::All).unwrap();
    let cache = cache_from(&storage, cache.space().allocated_end());
    let table = reopened(cache.clone(), &table);
    check(&table, &links);
    let names = table.name_heap().unwrap();
    assert_eq!((names.segment_bytes(), names.listed_free_bytes()), (8 + 16 * 300, 16 * 10));
    let size = names.segment_bytes();
    for number in 0..10 {
        table.insert_link_known_absent(&format!("NAME {number:08}").into(), &target(1), None, &[]).unwrap();
    }
    assert_eq!(table.name_heap().unwrap().segment_bytes(), size);
}

#[test]
fn a_packed_table_is_whole_before_and_after_it_leads_to_the_copies() {
    let storage = MemoryStorage::default();
    let cache = cache(&storage);
    let table = create(&cache, k(4, 16));
    let mut links = BTreeMap::new();
    for number in 0..3000 {
        let name: Name = format!("name {}", number * 7919 % 3001).into();
        table.insert_link_known_absent(&name, &target(number), None, &[]).unwrap();
        links.insert(name, number);
        if number % 100 == 0 {
            cache.flush(FlushScope::All).unwrap();
        }
    }
    for number in 0..1000 {
        let name: Name = format!("name {}", number * 7919 % 3001).into();
        table.remove_link(&name).unwrap().unwrap();
        links.remove(&name);
    }
    cache.flush(FlushScope::All).unwrap();
    let space = cache.space();
    let (end, free) = (space.allocated_end(), space.free_bytes());
    let copies = table.copy_nodes_before(end - free).unwrap().unwrap();
    cache.flush(FlushScope::All).unwrap();
    check(&reopened(cache_from(&storage, end), &table), &links);
    copies.switch_to_copies().unwrap();
    check(&table, &links);
    cache.flush(FlushScope::All).unwrap();
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
                        table.insert_link_known_absent(&name, &target(number), None, &[]).unwrap();
                        entry.insert(number);
                    }
                }
                Step::Remove(at) => {
                    let chosen = links.keys().nth(at.checked_rem(links.len()).unwrap_or(0)).cloned();
                    if let Some(name) = chosen {
                        prop_assert!(table.remove_link(&name).unwrap().is_some());
                        links.remove(&name);
                    }
                }
                Step::Flush => open.flush(FlushScope::All).unwrap(),
                Step::PutAway => {
                    open.flush(FlushScope::All).unwrap();
                    table.finalize_name_heap_if_changed().unwrap();
                }
                Step::Pack(limit) => {
                    open.flush(FlushScope::All).unwrap();
                    if let Some(copies) = table.copy_nodes_before(limit).unwrap() {
                        open.flush(FlushScope::All).unwrap();
                        check(&reopened(cache_from(&storage, open.space().allocated_end()), &table), &links);
                        copies.switch_to_copies().unwrap();
                    }
                }
                Step::Reopen => {
                    open.flush(FlushScope::All).unwrap();
                    open = cache_from(&storage, open.space().allocated_end());
                    table = reopened(open.clone(), &table);
                }
            }
        }
        check(&table, &links);
        open.flush(FlushScope::All).unwrap();
        check(&reopened(cache_from(&storage, open.space().allocated_end()), &table), &links);
    }
}

type Links = BTreeMap<Name, SymbolTarget>;

/// Checks the table as a reader finds it while `old` becomes `new`: what is not among `touched` is there and listed
/// once, nothing is seen that neither was nor is to be, and objects are there before links to them.
fn check_between(bytes: &[u8], table: &SymbolTable, old: &Links, new: &Links, touched: &BTreeSet<Name>) {
    let storage = Arc::new(MemoryStorage::from(bytes.to_vec()));
    let table = reopened(Arc::new(Cache::new_read_only(storage, CacheOptions::default())), table);
    let listed = listed(&table);
    assert!(listed.windows(2).all(|pair| pair[0].0 < pair[1].0), "{listed:?}");
    let listed: Links = listed.into_iter().collect();
    for (name, target) in &listed {
        if let SymbolTarget::Hard(addr) = target {
            table.load_node(*addr).unwrap();
        }
        assert!(old.contains_key(name) || touched.contains(name), "{name:?}");
    }
    for name in old.keys().filter(|name| !touched.contains(*name)) {
        assert_eq!((table.find_link(name).unwrap().as_ref(), listed.get(name)), (old.get(name), old.get(name)));
    }
    for name in touched {
        // What was removed for some time may be missing.
        let right = [old.get(name), new.get(name), None];
        assert!(
            right.contains(&table.find_link(name).unwrap().as_ref()) && right.contains(&listed.get(name)),
            "{name:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_by_a_writer_that_dies(
        rounds in prop::collection::vec(prop::collection::vec(0u64..400, 1..60), 1..8),
        leaf in 1u16..4,
        internal in 1u16..4,
        reuse in prop_oneof![Just(ReusePolicy::AfterFlush), Just(ReusePolicy::Never)],
    ) {
        let memory = MemoryStorage::default();
        let recording = RecordingStorage::new(memory.clone());
        let storage = Arc::new(recording.clone());
        let open = Arc::new(Cache::new_writable(storage, CacheOptions::default(), 4096, Arc::new(NoSuperblock)));
        open.space().set_reuse_policy(reuse);
        let objects = ObjectMetadataAccess::new(open.clone(), Owner::new(Addr::new(96)));
        let object = SymbolTableNode::for_k(k(leaf, internal));
        let len = object.size(open.widths()) as u64;
        let table = create(&open, k(leaf, internal));
        open.flush(FlushScope::All).unwrap();
        recording.take_log();
        let mut image = memory.to_vec();
        let (mut old, mut new) = (Links::new(), Links::new());
        for numbers in rounds {
            let mut touched = BTreeSet::new();
            for number in numbers {
                let name: Name = format!("{}{}", number % 97, "n".repeat(number as usize % 7)).into();
                touched.insert(name.clone());
                if new.remove(&name).is_some() {
                    table.remove_link(&name).unwrap();
                    continue;
                }
                let made = (number % 3 > 0).then(|| objects.create(len, object.clone()).unwrap());
                let target = made.as_ref().map_or(target(0), |made| SymbolTarget::Hard(made.addr()));
                let before = made.as_ref().map(|made| (made as &dyn DependencyNode, DependencyKind::Link));
                table.insert_link_known_absent(&name, &target, None, before.as_slice()).unwrap();
                new.insert(name, target);
            }
            open.flush(FlushScope::All).unwrap();
            for write in recording.take_log() {
                replay_operations(&mut image, [&write]).unwrap();
                check_between(&image, &table, &old, &new, &touched);
            }
            old = new.clone();
        }
    }
}
