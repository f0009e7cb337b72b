//! A writer that changes links and attributes is killed at any write: the file opens, and nothing that was flushed and
//! not changed since is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use h5live_cache::{MemoryStorage, RecordingStorage, StorageOp, replay_operations};
use h5live_model::{
    AttributeData, ByteOrder, CreationOrder, Dataspace, Datatype, GroupSpec, Link, LinkOrAttributeStorageSpec,
    LinkTarget, Name, NewObject, ObjectId, ObjectScope, ObjectSpec, PublishLevel, Shape, Sign, Store, StoreWriter,
};
use h5live_native::{LibVer, Mode, NativeFile, OpenOptions};

/// What a group holds, by number: links, and attributes with the seed of their values.
#[derive(Debug, Clone, Default, PartialEq)]
struct State {
    links: BTreeSet<u32>,
    attributes: BTreeMap<u32, u32>,
}

/// What one flush wrote: the state before and after it, and all that was there in between.
struct Epoch {
    before: State,
    after: State,
    links: BTreeSet<u32>,
    attributes: BTreeSet<(u32, u32)>,
}

fn link_name(number: u32) -> Name {
    format!("link {number} {}", "x".repeat(number as usize * 13 % 50)).into()
}

fn attribute_name(number: u32) -> Name {
    format!("attribute {number}").into()
}

fn value(number: u32, seed: u32) -> Vec<u8> {
    let len = match seed % 17 {
        3 => 5000,
        other => 10 + (number + other) as usize * 7 % 300,
    };
    (0..len).map(|at| (at as u32 * 3 + number * 5 + seed) as u8).collect()
}

fn attribute(number: u32, seed: u32) -> AttributeData {
    let value = value(number, seed);
    AttributeData {
        name: attribute_name(number),
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        committed_datatype: None,
        dataspace: Dataspace::Simple(Shape::fixed(&[value.len() as u64])),
        value,
        creation_order: None,
    }
}

/// A small generator, so that each run is the same.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn options(profile: LibVer, mode: Mode) -> OpenOptions {
    OpenOptions { mode, profile, ..Default::default() }
}

fn change(
    file: &NativeFile,
    group: ObjectId,
    random: &mut Random,
    state: &mut State,
    epoch: &mut Epoch,
    max_entries: u64,
) {
    let number = random.below(max_entries) as u32;
    if random.below(2) == 0 {
        if state.links.remove(&number) {
            file.remove_link(group, &link_name(number)).unwrap();
        } else {
            match number % 3 {
                0 => file.add_link(group, &link_name(number), &LinkTarget::Soft("/".into())).unwrap(),
                _ => drop(file.create(&NewObject::linked(group, &link_name(number), &ObjectSpec::group())).unwrap()),
            }
            state.links.insert(number);
            epoch.links.insert(number);
        }
    } else if state.attributes.contains_key(&number) && random.below(2) == 0 {
        state.attributes.remove(&number);
        file.remove_attribute(group, &attribute_name(number)).unwrap();
    } else {
        let seed = random.below(1000) as u32;
        file.set_attribute(group, &attribute(number, seed)).unwrap();
        state.attributes.insert(number, seed);
        epoch.attributes.insert((number, seed));
    }
}

fn hard(target: &LinkTarget) -> Option<ObjectId> {
    match target {
        LinkTarget::Hard(id) => Some(*id),
        _ => None,
    }
}

/// What the file of a killed writer holds.
fn check(image: &[u8], profile: LibVer, epoch: &Epoch) -> Result<(), String> {
    let say = |error: h5live_model::Error| format!("{error} {error:?}");
    let storage = MemoryStorage::from(image.to_vec());
    let file = NativeFile::open_storage(Arc::new(storage), &options(profile, Mode::Read))
        .map_err(|error| format!("{error:?}"))?;
    let root = file.session().root;
    let LinkTarget::Hard(group) = file.link(root, &"g".into()).map_err(say)?.ok_or("no group")?.target else {
        return Err("no hard link".into());
    };
    // One that moves to another part of the header, or is made anew there, is there twice for a moment.
    let mut links: BTreeMap<Name, Vec<LinkTarget>> = BTreeMap::new();
    let each = &mut |link: Link| {
        links.entry(link.name).or_default().push(link.target);
        true
    };
    file.for_each_link(group, each).map_err(say)?;
    for number in epoch.before.links.intersection(&epoch.after.links) {
        // One that was removed and made anew may be away.
        if !epoch.links.contains(number) && !links.contains_key(&link_name(*number)) {
            return Err(format!("link {number} is lost"));
        }
    }
    let known: BTreeSet<_> = epoch.before.links.union(&epoch.links).map(|number| link_name(*number)).collect();
    for (name, targets) in &links {
        if !known.contains(name) {
            return Err(format!("link {name:?} is from nowhere"));
        }
        let found = file.link(group, name).map_err(say)?;
        if !found.is_some_and(|link| targets.contains(&link.target)) {
            return Err(format!("link {name:?} is listed but not found"));
        }
        for id in targets.iter().filter_map(hard) {
            file.for_each_link(id, &mut |_| true).map_err(|error| format!("what {name:?} leads to: {error:?}"))?;
        }
    }
    // One that moves to another part of the header is there twice for a moment, old and new.
    let mut attributes = BTreeSet::new();
    let each = &mut |held: AttributeData| {
        attributes.insert((held.name, held.value));
        true
    };
    file.for_each_attribute(group, each).map_err(say)?;
    for (number, seed) in &epoch.before.attributes {
        let untouched = epoch.after.attributes.get(number) == Some(seed)
            && !epoch.attributes.iter().any(|(changed, _)| changed == number);
        if untouched && !attributes.contains(&(attribute_name(*number), value(*number, *seed))) {
            return Err(format!("attribute {number} is lost"));
        }
    }
    let known: BTreeSet<_> =
        epoch.before.attributes.iter().map(|(n, s)| (*n, *s)).chain(epoch.attributes.iter().copied()).collect();
    for (name, held) in &attributes {
        let is_known = known.iter().any(|(n, seed)| attribute_name(*n) == *name && value(*n, *seed) == *held);
        if !is_known {
            return Err(format!("attribute {name:?} has a value from nowhere"));
        }
    }
    Ok(())
}

fn kill_everywhere(profile: LibVer, seed: u64, max_entries: u64, flushes: u32, changes: u64) {
    let storage = RecordingStorage::new(MemoryStorage::default());
    let file = NativeFile::open_storage(Arc::new(storage.clone()), &options(profile, Mode::Create)).unwrap();
    let order =
        if seed % 2 == 1 && profile > LibVer::Earliest { CreationOrder::Indexed } else { CreationOrder::Untracked };
    let entries = LinkOrAttributeStorageSpec { order, ..Default::default() };
    let spec = ObjectSpec { attribute_storage: entries, ..GroupSpec { link_storage: entries }.into() };
    let group = file.create(&NewObject::linked(file.session().root, &"g".into(), &spec)).unwrap();
    file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let mut random = Random(seed);
    let mut state = State::default();
    let mut image = Vec::new();
    replay_operations(&mut image, &storage.take_log()).unwrap();
    for flush in 0..flushes {
        let (links, attributes) = (BTreeSet::new(), BTreeSet::new());
        let mut epoch = Epoch { before: state.clone(), after: State::default(), links, attributes };
        for _ in 0..1 + random.below(changes) {
            change(&file, group, &mut random, &mut state, &mut epoch, max_entries);
        }
        file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
        epoch.after = state.clone();
        let log: Vec<StorageOp> = storage.take_log();
        for (at, operation) in log.iter().enumerate() {
            replay_operations(&mut image, [operation]).unwrap();
            if let Err(error) = check(&image, profile, &epoch) {
                panic!("seed {seed}, flush {flush}, killed after write {at} of {}: {error}", log.len());
            }
        }
    }
}

#[test]
fn a_killed_writer_loses_nothing_of_small_groups() {
    (0..6).for_each(|seed| kill_everywhere(LibVer::V110, seed, 14, 25, 6));
}

#[test]
fn a_killed_writer_loses_nothing_of_large_groups() {
    (0..2).for_each(|seed| kill_everywhere(LibVer::V110, seed, 300, 25, 60));
}

#[test]
fn a_killed_writer_loses_nothing_of_groups_of_the_old_style() {
    (0..3).for_each(|seed| kill_everywhere(LibVer::Earliest, seed, 120, 25, 25));
}
