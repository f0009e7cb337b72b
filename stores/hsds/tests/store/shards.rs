//! Links and attributes in shards.

use std::collections::BTreeMap;
use std::path::Path;

use h5live_hsds::engine::{MemoryEngine, ObjectEngine, ObjectPut};
use h5live_hsds::{Hsds, HsdsFolderConnector, HsdsOpenRequest, HsdsStore};
use h5live_model::{
    AllocationLimit, AttributeData, ByteOrder, Connector, ConnectorOptions, ConnectorRegistry, CreationOrder,
    Dataspace, Datatype, GroupSpec, Link, LinkOrAttributeStorageSpec, LinkTarget, Location, Maintenance, Mode, Name,
    NewObject, ObjectId, ObjectScope, ObjectSpec, OpenRequest, PublishLevel, Result, Sign, Store, StoreCheckOptions,
    StoreCheckReport,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::shared::request;

/// Opens a domain; with more entries than `above` in one object, they are in shards.
pub fn sharded(mode: Mode, above: u64) -> HsdsOpenRequest {
    HsdsOpenRequest { shard_above: above, ..request(mode, "run") }
}

pub fn create(engine: &MemoryEngine, above: u64) -> HsdsStore {
    HsdsStore::open(engine.clone(), &sharded(Mode::CreateNew, above)).unwrap()
}

pub fn reader(engine: &MemoryEngine) -> HsdsStore {
    HsdsStore::open(engine.reader(), &request(Mode::SwmrRead, "run")).unwrap()
}

pub fn name(number: u64) -> Name {
    Name::from(format!("name {number}"))
}

pub fn soft(number: u64) -> LinkTarget {
    LinkTarget::Soft(name(number))
}

pub fn attribute(name: Name, value: u8) -> AttributeData {
    AttributeData {
        name,
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        committed_datatype: None,
        dataspace: Dataspace::Scalar,
        value: vec![value],
        creation_order: None,
    }
}

pub fn commit(store: &HsdsStore) -> Result<()> {
    store.writer()?.commit(ObjectScope::All, PublishLevel::Visible)
}

fn links(store: &HsdsStore, group: ObjectId) -> Result<Vec<Link>> {
    let mut found = Vec::new();
    store.for_each_link(group, &mut |link| {
        found.push(link);
        true
    })?;
    Ok(found)
}

fn shard_keys(engine: &MemoryEngine) -> Vec<String> {
    engine.keys().into_iter().filter(|key| key.contains("/.h5live.")).collect()
}

/// The objects as files, as the check of a folder finds them.
pub fn to_folder(engine: &MemoryEngine) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for key in engine.keys() {
        let path = folder.path().join(&key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, &engine.get(&key).unwrap().unwrap().bytes).unwrap();
    }
    folder
}

pub fn with_request<T>(folder: &TempDir, act: impl FnOnce(&dyn Maintenance, &Location, &OpenRequest<'_>) -> T) -> T {
    let (root, options, registry) =
        (ObjectSpec::group(), Hsds::default(), ConnectorRegistry::new(HsdsFolderConnector::default()));
    let HsdsOpenRequest { filter_engine: unfilter, .. } = request(Mode::Read, "run");
    let how = OpenRequest {
        mode: Mode::Read,
        root: &root,
        options: &options,
        max_allocation: AllocationLimit::default(),
        filter_engine: unfilter,
        registry: &registry,
    };
    let connector = HsdsFolderConnector::default();
    act(connector.maintenance().unwrap(), &Location::from(folder.path().join("run")), &how)
}

pub fn check(folder: &TempDir) -> StoreCheckReport {
    with_request(folder, |maintenance, at, how| {
        maintenance.check(at, how, &StoreCheckOptions { verify_data: true, find_lost_domains: false }).unwrap()
    })
}

#[test]
fn a_lookup_among_100000_links_reads_one_shard_and_a_new_link_writes_one() {
    let engine = MemoryEngine::new();
    let store = create(&engine, 100_000);
    let (root, count) = (store.session().root, 100_001);
    (0..count).for_each(|at| store.writer().unwrap().add_link(root, &name(at), &soft(at)).unwrap());
    store.close().unwrap();
    assert_eq!(shard_keys(&engine).len(), 128);
    let finder = reader(&engine);
    assert_eq!(finder.link(root, &name(70_000)).unwrap().unwrap().target, soft(70_000));
    assert_eq!(finder.link(root, &"none".into()).unwrap(), None);
    let counts = finder.request_counts();
    assert!(counts.gets <= 4 && counts.lists == 0, "the domain, the group, two shards: {counts:?}");
    let lister = reader(&engine);
    assert_eq!(links(&lister, root).unwrap().len(), 100_001);
    assert_eq!((lister.request_counts().gets, lister.request_counts().waves), (2 + 128, 3));
    // A writer that does not ask for shards keeps them.
    let store = HsdsStore::open(engine.reopen_writer(), &request(Mode::Write, "run")).unwrap();
    store.writer().unwrap().add_link(root, &"one more".into(), &soft(0)).unwrap();
    assert_eq!((store.request_counts().gets, store.request_counts().puts), (3, 0));
    commit(&store).unwrap();
    let counts = store.request_counts();
    assert_eq!((counts.puts, counts.deletes, counts.lists), (2, 3, 0), "two summaries and the old shard are deleted");
    assert_eq!(shard_keys(&engine).len(), 128);
    assert!(reader(&engine).link(root, &"one more".into()).unwrap().is_some());
}

/// Numbers that can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

type Contents = (BTreeMap<Name, Link>, BTreeMap<Name, AttributeData>);

/// What the groups of a domain hold: their hard links lead to other objects in another domain.
fn contents(store: &HsdsStore) -> Vec<Contents> {
    let of = |group: ObjectId| {
        let links = links(store, group).unwrap();
        let by_name = |link: Link| match link.target {
            LinkTarget::Hard(_) => (link.name.clone(), Link { target: soft(0), ..link }),
            _ => (link.name.clone(), link),
        };
        let names = store.attribute_names(group).unwrap();
        let attributes = names.into_iter().map(|name| (name.clone(), store.attribute(group, &name).unwrap().unwrap()));
        (links.into_iter().map(by_name).collect(), attributes.collect())
    };
    let root = store.session().root;
    let groups = ["tracked", "untracked"].map(|name| match store.link(root, &name.into()).unwrap().unwrap().target {
        LinkTarget::Hard(id) => of(id),
        other => panic!("{other:?}"),
    });
    groups.into()
}

fn group(store: &HsdsStore, at: &str, order: CreationOrder) -> ObjectId {
    let kept = LinkOrAttributeStorageSpec { order, ..LinkOrAttributeStorageSpec::default() };
    let spec = ObjectSpec { attribute_storage: kept, ..GroupSpec { link_storage: kept }.into() };
    store.writer().unwrap().create(&NewObject::linked(store.session().root, &at.into(), &spec)).unwrap()
}

/// Does the same changes by one session or several.
fn change(store: &HsdsStore, group: ObjectId, dice: &mut Dice) {
    let (writer, one, other) = (store.writer().unwrap(), name(dice.roll(60)), name(dice.roll(60)));
    // Each of them may be refused, and then changes nothing.
    match dice.roll(8) {
        0..=2 => drop(writer.add_link(group, &one, &soft(dice.roll(9)))),
        3 => drop(writer.remove_link(group, &one)),
        4 => drop(writer.rename_link((group, &one), (group, &other))),
        5 => drop(writer.set_attribute(group, &attribute(one, dice.roll(9) as u8))),
        6 => drop(writer.remove_attribute(group, &one)),
        _ => {
            let spec = ObjectSpec::group();
            drop(writer.create(&NewObject::linked(group, &one, &spec)));
        }
    }
}

#[test]
fn random_changes_agree_with_those_of_a_domain_without_shards() {
    for seed in 0..6 {
        let engines = [MemoryEngine::new(), MemoryEngine::new()];
        let mut above = 8;
        let mut found = engines.each_ref().map(|engine| {
            let mut store = create(engine, above);
            let groups = [
                group(&store, "tracked", CreationOrder::Indexed),
                group(&store, "untracked", CreationOrder::Untracked),
            ];
            let (mut dice, mut states) = (Dice(seed), Vec::new());
            for step in 0..400u64 {
                let at = dice.roll(2) as usize;
                change(&store, groups[at], &mut dice);
                match dice.roll(12) {
                    0 => commit(&store).unwrap(),
                    1 => {
                        store.close().unwrap();
                        // With other limits, the number of shards grows.
                        let above = if above == 0 { 0 } else { 2 + step / 40 };
                        store = HsdsStore::open(engine.reopen_writer(), &sharded(Mode::Write, above)).unwrap();
                    }
                    2 => states.push(contents(&store)),
                    _ => {}
                }
            }
            store.close().unwrap();
            states.push(contents(&reader(engine)));
            above = 0;
            states
        });
        let [sharded, plain] = &mut found;
        assert!(sharded == plain, "seed {seed}");
        assert!(shard_keys(&engines[0]).len() > 16 && shard_keys(&engines[1]).is_empty());
        let folder = to_folder(&engines[0]);
        let report = check(&folder);
        assert_eq!((report.findings.len(), report.leak_count), (0, 0), "seed {seed}: {:?}", report.findings);
    }
}

/// A domain with 40 links and 20 attributes in shards, committed.
pub fn sample() -> MemoryEngine {
    sample_above(8)
}

pub fn sample_above(above: u64) -> MemoryEngine {
    let engine = MemoryEngine::new();
    let store = create(&engine, above);
    let (root, writer) = (store.session().root, store.writer().unwrap());
    (0..40).for_each(|at| writer.add_link(root, &name(at), &soft(at)).unwrap());
    (0..20).for_each(|at| writer.set_attribute(root, &attribute(name(at), at as u8)).unwrap());
    store.close().unwrap();
    engine
}

/// The names of links and attributes of the root.
pub fn names(store: &HsdsStore) -> Result<(Vec<Name>, Vec<Name>)> {
    let root = store.session().root;
    let mut names =
        (links(store, root)?.into_iter().map(|link| link.name).collect::<Vec<_>>(), store.attribute_names(root)?);
    names.0.sort();
    names.1.sort();
    Ok(names)
}

#[test]
fn the_option_of_a_location_makes_shards_and_no_option_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let open = |mode, query: &str| {
        with_request(&folder, |_, _, how| {
            let mut options = Hsds::default();
            if let Some((name, value)) = query.split_once('=') {
                options.set(name, value).unwrap();
            }
            let how = OpenRequest { mode, options: &options, filter_engine: how.filter_engine.clone(), ..*how };
            HsdsFolderConnector::default().open(&Location::from(folder.path().join("run")), &how).unwrap()
        })
    };
    let store = open(Mode::CreateNew, "shard_above=8");
    let root = store.session().root;
    (0..20).for_each(|at| store.writer().unwrap().add_link(root, &name(at), &soft(at)).unwrap());
    store.close().unwrap();
    drop(store);
    let store = open(Mode::Read, "");
    assert_eq!(store.link(root, &name(7)).unwrap().unwrap().target, soft(7));
    let listed: Vec<_> = walk(folder.path());
    assert!(listed.iter().filter(|path| path.contains(".h5live.links/")).count() > 8, "{listed:?}");
    drop(store);
    let store = open(Mode::Write, "");
    store.writer().unwrap().remove_link(root, &name(7)).unwrap();
    store.close().unwrap();
    drop(store);
    assert_eq!(open(Mode::Read, "").link(root, &name(7)).unwrap(), None);
    let report = with_request(&folder, |maintenance, _, how| {
        maintenance.check(&Location::from(folder.path().join("run")), how, &StoreCheckOptions::default()).unwrap()
    });
    assert_eq!((report.findings.len(), report.leak_count), (0, 0), "{report:?}");
}

/// All files below a folder.
fn walk(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: std::path::PathBuf| if path.is_dir() { walk(&path) } else { vec![path.display().to_string()] };
    entries.flat_map(below).collect()
}

#[test]
fn a_reader_whose_shard_was_replaced_takes_up_the_newer_document() {
    let engine = sample();
    let (one, all, attributes) = (reader(&engine), reader(&engine), reader(&engine));
    let root = one.session().root;
    // This one has read one shard, and keeps it.
    assert!(all.link(root, &name(5)).unwrap().is_some());
    let store = HsdsStore::open(engine.reopen_writer(), &sharded(Mode::Write, 8)).unwrap();
    for at in 0..40 {
        store.writer().unwrap().remove_link(root, &name(at)).unwrap();
        store.writer().unwrap().add_link(root, &name(at), &soft(at + 1)).unwrap();
    }
    (0..20).for_each(|at| store.writer().unwrap().set_attribute(root, &attribute(name(at), 99)).unwrap());
    commit(&store).unwrap();
    assert_eq!(one.link(root, &name(3)).unwrap().unwrap().target, soft(4));
    let listed = links(&all, root).unwrap();
    assert!(listed.len() == 40 && listed.iter().all(|link| link.name == name(5) || link.target != soft(99)));
    let is_of_one_state = |link: &Link| (0..40).any(|at| link.name == name(at) && link.target == soft(at + 1));
    assert!(listed.iter().all(is_of_one_state), "no two states are mixed");
    assert_eq!(attributes.attribute(root, &name(3)).unwrap().unwrap().value, [99]);
}

#[test]
fn a_listing_of_shards_is_in_the_order_of_creation_or_by_name() {
    let engine = MemoryEngine::new();
    let store = create(&engine, 8);
    let orders = [CreationOrder::Tracked, CreationOrder::Untracked];
    let groups = orders.map(|order| group(&store, &format!("{order:?}"), order));
    for at in (10..50).rev() {
        for group in groups {
            store.writer().unwrap().add_link(group, &name(at), &soft(at)).unwrap();
            store.writer().unwrap().set_attribute(group, &attribute(name(at), 1)).unwrap();
        }
    }
    store.close().unwrap();
    let reader = reader(&engine);
    let listed =
        groups.map(|group| links(&reader, group).unwrap().into_iter().map(|link| link.name).collect::<Vec<_>>());
    let expected = [(10..50).rev().map(name).collect::<Vec<_>>(), (10..50).map(name).collect()];
    assert_eq!(listed, expected);
    assert_eq!(groups.map(|group| reader.attribute_names(group).unwrap()), expected);
}

#[test]
fn a_group_that_is_deleted_takes_its_shards_along() {
    let engine = MemoryEngine::new();
    let store = create(&engine, 8);
    let group = group(&store, "group", CreationOrder::Untracked);
    let writer = store.writer().unwrap();
    (0..20).for_each(|at| writer.add_link(group, &name(at), &soft(at)).unwrap());
    let spec = ObjectSpec::group();
    for at in 20..40 {
        writer.create(&NewObject::linked(group, &name(at), &spec)).unwrap();
    }
    commit(&store).unwrap();
    assert!(shard_keys(&engine).len() > 8);
    store.close().unwrap();
    let store = HsdsStore::open(engine.reopen_writer(), &request(Mode::Write, "run")).unwrap();
    store.writer().unwrap().remove_link(store.session().root, &"group".into()).unwrap();
    store.close().unwrap();
    // The domain, its root group, and its summary.
    assert_eq!(engine.keys().len(), 3, "{:?}", engine.keys());
}

fn document(engine: &MemoryEngine, key: &str) -> Value {
    serde_json::from_slice(&engine.get(key).unwrap().unwrap().bytes).unwrap()
}

fn put(engine: &MemoryEngine, key: &str, value: &Value) {
    engine.put_many(vec![ObjectPut { key: key.to_owned(), bytes: serde_json::to_vec(value).unwrap() }]).unwrap();
}

fn root_key(engine: &MemoryEngine) -> String {
    engine.keys().into_iter().find(|key| key.ends_with("/.group.json")).unwrap()
}

#[test]
fn links_that_another_program_has_added_to_the_document_count() {
    let engine = sample();
    let key = root_key(&engine);
    let mut root = document(&engine, &key);
    assert_eq!(root["links"], json!({}));
    let link = |path: &str| json!({"class": "H5L_TYPE_SOFT", "h5path": path, "created": 1.5});
    root["links"] = json!({"name 3": link("/other"), "added": link("/added")});
    put(&engine, &key, &root);
    let found = names(&reader(&engine)).unwrap().0;
    assert_eq!(found.len(), 41);
    let store = HsdsStore::open(engine.reopen_writer(), &request(Mode::Write, "run")).unwrap();
    let root = store.session().root;
    assert_eq!(store.link(root, &name(3)).unwrap().unwrap().target, LinkTarget::Soft("/other".into()));
    store.writer().unwrap().remove_link(root, &name(3)).unwrap();
    store.writer().unwrap().rename_link((root, &"added".into()), (root, &name(3))).unwrap();
    store.close().unwrap();
    let reader = reader(&engine);
    assert_eq!(reader.link(root, &name(3)).unwrap().unwrap().target, LinkTarget::Soft("/added".into()));
    assert_eq!(names(&reader).unwrap().0.len(), 40);
}

#[test]
fn a_document_or_a_shard_that_leads_elsewhere_is_an_error() {
    let engine = sample();
    let (key, shards) = (root_key(&engine), shard_keys(&engine));
    let links_of = |engine: &MemoryEngine| names(&reader(engine)).map_err(|error| error.to_string());
    let refused = |what: &str, key: &str, value: &Value, cause: &str| {
        let sound = document(&engine, key);
        put(&engine, key, value);
        let found = HsdsStore::open(engine.reader(), &request(Mode::Read, "run"));
        let found = found.and_then(|store| names(&store)).map_err(|error| error.to_string());
        assert!(found.as_ref().is_err_and(|error| error.contains(cause)), "{what}: {found:?}");
        put(&engine, key, &sound);
    };
    let sound = document(&engine, &key);
    let with_table = |table: Value| {
        let mut changed = sound.clone();
        changed["h5live"]["link_shards"] = table;
        changed
    };
    let elsewhere = with_table(json!({"count": 1, "generations": ["../../../../../x"]}));
    refused("a path", &key, &elsewhere, "link_shards");
    refused("another number", &key, &with_table(json!({"count": 1, "generations": [null, null, null]})), "link_shards");
    let many = with_table(json!({"count": 1, "generations": vec![Value::Null; 1 << 17]}));
    refused("many", &key, &many, "link_shards");
    let missing = with_table(json!({"count": 1, "generations": ["00000000000000ab"]}));
    refused(
        "no shard",
        &key,
        &missing,
        "0-00000000000000ab.json is damaged: the document of its object names this shard",
    );
    let is_link = |key: &&String| key.contains("links/");
    let (one, other) = (shards.iter().find(is_link).unwrap(), shards.iter().rfind(is_link).unwrap());
    refused("another shard", one, &document(&engine, other), "the number of the shard");
    let mut named = document(&engine, one);
    let stolen = document(&engine, other)["links"].clone();
    named["links"] = stolen;
    refused("names of another shard", one, &named, "does not belong to this shard");
    let mut foreign = document(&engine, one);
    foreign["id"] = json!("g-00000000-00000000-0000-000000-000001");
    refused("of another object", one, &foreign, "the id of the object");
    // A count that is not true spreads nothing over more shards than its entries need.
    let mut counted = sound.clone();
    counted["h5live"]["link_shards"]["count"] = json!(u64::MAX);
    put(&engine, &key, &counted);
    let store = HsdsStore::open(engine.reopen_writer(), &request(Mode::Write, "run")).unwrap();
    store.writer().unwrap().add_link(store.session().root, &"new".into(), &soft(1)).unwrap();
    store.close().unwrap();
    assert!(shard_keys(&engine).len() <= shards.len() + 1);
    assert_eq!(links_of(&engine).unwrap().0.len(), 41);
}

#[test]
fn damaged_shards_are_errors_or_other_values() {
    let engine = sample();
    let mut refused = 0;
    for key in shard_keys(&engine).into_iter().step_by(7).chain([root_key(&engine)]) {
        let sound = engine.get(&key).unwrap().unwrap().bytes.to_vec();
        let changed = (0..sound.len()).flat_map(|at| {
            let sound = &sound;
            [b'"', b'0', 0xff].map(|byte| [&sound[..at], &[byte], &sound[at + 1..]].concat())
        });
        let shorter = (0..sound.len()).step_by(5).map(|end| sound[..end].to_vec());
        for bytes in changed.chain(shorter).collect::<Vec<_>>() {
            engine.put_many(vec![ObjectPut { key: key.clone(), bytes }]).unwrap();
            let store = HsdsStore::open(engine.reader(), &request(Mode::Read, "run"));
            refused += u32::from(store.and_then(|store| names(&store)).is_err());
        }
        engine.put_many(vec![ObjectPut { key: key.clone(), bytes: sound }]).unwrap();
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn a_shard_that_is_not_there_is_a_finding_and_nothing_is_deleted() {
    let folder = to_folder(&sample());
    assert_eq!(check(&folder).leak_count, 0);
    let engine = sample();
    let lost = shard_keys(&engine).remove(0);
    engine.delete_many(&[lost]).unwrap();
    let folder = to_folder(&engine);
    let report = check(&folder);
    assert_eq!(report.findings.len(), 1);
    assert!(report.findings[0].to_string().contains("names this shard"), "{}", report.findings[0]);
    let refused =
        with_request(&folder, |maintenance, at, how| maintenance.repair_and_reclaim_unreachable(at, how).unwrap_err());
    assert!(refused.to_string().contains("nothing is deleted"), "{refused}");
}
