//! Every interleaving of a reader's requests with a writer's puts and deletions, and every state in which a writer may
//! die: within a wave of requests, any of them may have been done.
//!
//! A reader sees of an object only what was put at its key. So for each request it is enough to try each version that the
//! object has from now on, at the earliest moment when it has it.

use crate::shared;

use std::collections::BTreeMap;
use std::sync::Arc;

use h5live_hsds::engine::{
    DocumentPut, FetchedObject, ListedObject, MemoryEngine, ObjectChangeTag, ObjectEngine, ObjectPut, ObjectSink,
    RequestCounts, Revalidation,
};
use h5live_hsds::{HsdsOpenRequest, HsdsStore};
use h5live_model::{
    ByteOrder, ChunkBatch, ChunkCoord, ChunkReadRequest, ChunkWrite, DatasetSpec, Dataspace, Datatype,
    DurabilitySupport, Error, Layout, LinkTarget, Mode, Name, NewObject, ObjectId, ObjectKind, ObjectScope, ObjectSpec,
    PublishLevel, Result, Shape, Sign, Store, UNLIMITED,
};
use parking_lot::Mutex;

use self::shared::request;

/// A change of an object: its new bytes, or `None` if it was deleted; and the wave to which it belongs.
#[derive(Debug, Clone)]
struct Change {
    key: String,
    bytes: Option<Arc<[u8]>>,
    wave: usize,
}

/// Passes requests on, and records what they change.
#[derive(Debug, Clone, Default)]
struct Recorder {
    objects: MemoryEngine,
    log: Arc<Mutex<Vec<Change>>>,
}

impl Recorder {
    fn record(&self, changes: impl Iterator<Item = (String, Option<Arc<[u8]>>)>) {
        let mut log = self.log.lock();
        let wave = log.last().map_or(0, |change| change.wave + 1);
        log.extend(changes.map(|(key, bytes)| Change { key, bytes, wave }));
    }
}

impl ObjectEngine for Recorder {
    pass_on! {
        get(key: &str) -> Result<Option<FetchedObject>>;
        get_many(keys: &[String], each: &ObjectSink<'_>) -> Result<()>;
        get_file_range(uri: &str, start: u64, bytes: u64) -> Result<Vec<u8>>;
        revalidate(key: &str, tag: &ObjectChangeTag) -> Result<Revalidation>;
        list(prefix: &str) -> Result<Vec<ListedObject>>;
        durability() -> DurabilitySupport;
        sync() -> Result<()>;
        has_writer() -> Result<bool>;
        close() -> Result<()>;
        close_never_created() -> Result<()>;
        counts() -> RequestCounts;
    }

    fn put_many(&self, puts: Vec<ObjectPut>) -> Result<Vec<ObjectChangeTag>> {
        self.record(puts.iter().map(|put| (put.key.clone(), Some(put.bytes.clone().into()))));
        self.objects.put_many(puts)
    }

    fn put_documents(&self, puts: Vec<DocumentPut>) -> Result<Vec<ObjectChangeTag>> {
        self.record(puts.iter().map(|put| (put.object.key.clone(), Some(put.object.bytes.clone().into()))));
        self.objects.put_documents(puts)
    }

    fn delete_many(&self, keys: &[String]) -> Result<()> {
        self.record(keys.iter().map(|key| (key.clone(), None)));
        self.objects.delete_many(keys)
    }
}

/// What is tried for each request of a reader.
#[derive(Debug, Default)]
struct Choices {
    /// The version that is taken, and how many there are.
    taken: Vec<(usize, usize)>,
    next: usize,
}

impl Choices {
    fn take(&mut self, versions: usize) -> usize {
        if self.next == self.taken.len() {
            self.taken.push((0, versions));
        }
        let (choice, _) = self.taken[self.next];
        self.next += 1;
        choice
    }

    /// Goes on to the next combination.
    fn advance(&mut self) -> bool {
        self.taken.truncate(self.next);
        self.next = 0;
        while let Some((choice, versions)) = self.taken.pop() {
            if choice + 1 < versions {
                self.taken.push((choice + 1, versions));
                return true;
            }
        }
        false
    }
}

/// Objects that change while a reader reads them.
#[derive(Debug, Clone)]
struct Replay {
    log: Arc<Vec<Change>>,
    /// Changes that have been done.
    done: Arc<Mutex<usize>>,
    choices: Arc<Mutex<Choices>>,
}

impl Replay {
    fn at(&self, key: &str, done: usize) -> Option<FetchedObject> {
        let changes = self.log[..done].iter().enumerate();
        let (number, change) = changes.rev().find(|(_, change)| change.key == key)?;
        let tag = ObjectChangeTag(number.to_string());
        change.bytes.clone().map(|bytes| FetchedObject { bytes, tag })
    }

    fn fetch(&self, key: &str) -> Option<FetchedObject> {
        let mut done = self.done.lock();
        let later = (*done..self.log.len()).filter(|at| self.log[*at].key == key).map(|at| at + 1);
        let moments: Vec<usize> = std::iter::once(*done).chain(later).collect();
        *done = moments[self.choices.lock().take(moments.len())];
        self.at(key, *done)
    }
}

impl ObjectEngine for Replay {
    fn get(&self, key: &str) -> Result<Option<FetchedObject>> {
        Ok(self.fetch(key))
    }

    fn get_many(&self, keys: &[String], each: &ObjectSink<'_>) -> Result<()> {
        keys.iter().enumerate().try_for_each(|(number, key)| each(number, self.fetch(key)))
    }

    fn get_file_range(&self, _: &str, _: u64, _: u64) -> Result<Vec<u8>> {
        Err(Error::Unsupported("files"))
    }

    fn revalidate(&self, key: &str, tag: &ObjectChangeTag) -> Result<Revalidation> {
        Ok(match self.fetch(key) {
            None => Revalidation::Gone,
            Some(found) if found.tag == *tag => Revalidation::Same,
            Some(found) => Revalidation::Newer(found),
        })
    }

    fn put_many(&self, _: Vec<ObjectPut>) -> Result<Vec<ObjectChangeTag>> {
        Err(Error::ReadOnly)
    }

    fn put_documents(&self, _: Vec<DocumentPut>) -> Result<Vec<ObjectChangeTag>> {
        Err(Error::ReadOnly)
    }

    fn delete_many(&self, _: &[String]) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn list(&self, _: &str) -> Result<Vec<ListedObject>> {
        Err(Error::Unsupported("listings"))
    }

    fn durability(&self) -> DurabilitySupport {
        DurabilitySupport::Never
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn has_writer(&self) -> Result<bool> {
        Ok(true)
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }

    fn close_never_created(&self) -> Result<()> {
        Err(Error::ReadOnly)
    }

    fn counts(&self) -> RequestCounts {
        RequestCounts::default()
    }
}

fn numbers() -> ObjectSpec {
    DatasetSpec {
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::with_max(&[0], &[UNLIMITED]).unwrap()),
        layout: Layout::Chunked(vec![2]),
        ..DatasetSpec::default()
    }
    .into()
}

/// Element `i` of every dataset is `i + 1`.
fn append(store: &HsdsStore, id: ObjectId, rows: std::ops::Range<u64>) {
    let coords: Vec<ChunkCoord> = (rows.start / 2..rows.end.div_ceil(2)).map(|at| ChunkCoord::new(&[at])).collect();
    let bytes: Vec<[u8; 2]> = coords.iter().map(|at| [1, 2].map(|n| 2 * at.scaled()[0] as u8 + n)).collect();
    let writes: Vec<ChunkWrite<'_>> =
        coords.iter().zip(&bytes).map(|(coord, bytes)| ChunkWrite::Whole { coord, filter_mask: 0, bytes }).collect();
    let extent = [rows.end];
    let batch =
        ChunkBatch { writes: &writes, extent: Some(&extent), publish_after: &[], publish: Some(PublishLevel::Visible) };
    store.dataset(id).unwrap().write(&batch).unwrap();
}

/// What a writer does: new objects, rows, a group with a dataset, a smaller dataset, deletions.
fn write_all(recorder: Recorder) -> Vec<Change> {
    write_with_shards(recorder, 0)
}

/// The same, with shards where an object has more links than this.
fn write_with_shards(recorder: Recorder, shard_above: u64) -> Vec<Change> {
    let log = recorder.log.clone();
    let request = HsdsOpenRequest { shard_above, ..request(Mode::CreateNew, "run") };
    let store = HsdsStore::open(recorder, &request).unwrap();
    let (writer, root) = (store.writer().unwrap(), store.session().root);
    let create = |group, name: &str, spec: &ObjectSpec| {
        writer.create(&NewObject::linked(group, &Name::from(name), spec)).unwrap()
    };
    let commit = || writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let first = create(root, "first", &numbers());
    append(&store, first, 0..3);
    commit();
    append(&store, first, 2..6);
    let group = create(root, "group", &ObjectSpec::group());
    let inner = create(group, "inner", &numbers());
    append(&store, inner, 0..2);
    commit();
    store.dataset(first).unwrap().set_extent(&[2]).unwrap();
    commit();
    writer.remove_link(root, &"first".into()).unwrap();
    commit();
    writer.remove_link(root, &"group".into()).unwrap();
    commit();
    store.close().unwrap();
    log.lock().clone()
}

/// Reads everything, and says what is wrong.
fn look(replay: &Replay) -> std::result::Result<(), String> {
    let store = match HsdsStore::open(replay.clone(), &request(Mode::SwmrRead, "run")) {
        Ok(store) => store,
        // There is no domain yet.
        Err(error) if error.to_string().contains("no domain") => return Ok(()),
        Err(error) => return Err(format!("a domain that cannot be opened: {error}")),
    };
    let mut left = vec![store.session().root];
    while let Some(group) = left.pop() {
        let mut links = Vec::new();
        let each = &mut |link: h5live_model::Link| {
            links.push(link);
            true
        };
        match store.for_each_link(group, each) {
            Err(Error::NoObject(_)) => expect_unlinked(replay, group)?,
            listed => listed.map_err(|error| format!("links: {error}"))?,
        }
        for link in links {
            let LinkTarget::Hard(id) = link.target else { continue };
            match store.kind(id) {
                Ok(ObjectKind::Group) => left.push(id),
                Ok(_) => look_at(&store, replay, id)?,
                Err(error) => return Err(format!("{:?}: {error}", link.name)),
            }
        }
    }
    Ok(())
}

/// The links of a group, from its document and the shards that it names.
fn links_of(log: &[Change], document: &[u8]) -> Vec<serde_json::Value> {
    let parse = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
    let links =
        |document: &serde_json::Value| document["links"].as_object().unwrap().values().cloned().collect::<Vec<_>>();
    let document = parse(document);
    let mut found = links(&document);
    let named = document["h5live"]["link_shards"]["generations"].as_array().into_iter().flatten();
    for name in named.enumerate().filter_map(|(number, shard)| Some(format!("/{number}-{}.json", shard.as_str()?))) {
        let shard = log.iter().rev().find(|change| change.key.ends_with(&name)).and_then(|change| change.bytes.clone());
        found.extend(shard.iter().flat_map(|bytes| links(&parse(bytes))));
    }
    found
}

/// An object that is not there must have lost its links before: then a reader with an old list has met it.
fn expect_unlinked(replay: &Replay, id: ObjectId) -> std::result::Result<(), String> {
    let done = *replay.done.lock();
    let digits =
        format!("{:04x}-{:06x}-{:06x}", (id.0 as u64) >> 48, (id.0 as u64 >> 24) & 0xff_ffff, id.0 as u64 & 0xff_ffff);
    let mut groups: BTreeMap<&str, &Option<Arc<[u8]>>> = BTreeMap::new();
    for change in replay.log[..done].iter().filter(|change| change.key.ends_with(".group.json")) {
        groups.insert(&change.key, &change.bytes);
    }
    // A group that nothing leads to may still be there, with its links.
    let root = groups.iter().find(|(key, _)| key.split('/').count() == 3);
    let mut reachable = vec![root.and_then(|(_, bytes)| (*bytes).clone())];
    while let Some(bytes) = reachable.pop().flatten() {
        for link in links_of(&replay.log[..done], &bytes) {
            let target = link["id"].as_str().unwrap();
            if target.ends_with(&digits) {
                return Err(format!("a link leads to {target}, which is not there"));
            }
            let inner = groups.iter().find(|(key, _)| key.contains(&target[20..]));
            reachable.push(inner.and_then(|(_, bytes)| (*bytes).clone()));
        }
    }
    Ok(())
}

fn look_at(store: &HsdsStore, replay: &Replay, id: ObjectId) -> std::result::Result<(), String> {
    let data = match store.dataset(id) {
        Err(Error::NoObject(_)) => return expect_unlinked(replay, id),
        opened => opened.map_err(|error| format!("a dataset: {error}"))?,
    };
    let extent = data.spec().map_err(|error| error.to_string())?.dataspace.dims()[0];
    let coords: Vec<ChunkCoord> = (0..extent.div_ceil(2)).map(|at| ChunkCoord::new(&[at])).collect();
    let wanted: Vec<ChunkReadRequest<'_>> =
        coords.iter().map(|coord| ChunkReadRequest { coord, byte_range: None }).collect();
    let found = Mutex::new(vec![0u8; 2 * coords.len()]);
    let read = data.read_many(&wanted, 1 << 20, &|number, chunk| {
        if let Some(chunk) = chunk {
            found.lock()[2 * number..2 * number + 2].copy_from_slice(chunk.bytes);
        }
        Ok(())
    });
    match read {
        // It was deleted, or became smaller.
        Err(Error::NoObject(_)) => return expect_unlinked(replay, id),
        Err(Error::Moved) => return Ok(()),
        read => read.map_err(|error| format!("chunks: {error}"))?,
    }
    let found = found.into_inner();
    let wrong = (0..extent).find(|at| found[*at as usize] != *at as u8 + 1);
    wrong.map_or(Ok(()), |at| Err(format!("element {at} of {extent} is {}", found[at as usize])))
}

/// Tries everything that a reader may see. Returns how many schedules that were, and the first fault.
fn explore(log: &[Change], first: usize, last: usize) -> (u64, Option<String>) {
    let choices = Arc::new(Mutex::new(Choices::default()));
    let log = Arc::new(log[..last].to_vec());
    for schedules in 1.. {
        let replay = Replay { log: log.clone(), done: Arc::new(Mutex::new(first)), choices: choices.clone() };
        if let Err(fault) = look(&replay) {
            return (schedules, Some(fault));
        }
        if !choices.lock().advance() {
            return (schedules, None);
        }
    }
    unreachable!()
}

/// A reader from each moment on, over all that comes later.
fn explore_all(log: &[Change]) -> (u64, Option<String>) {
    let mut all = 0;
    for first in 0..=log.len() {
        let (schedules, fault) = explore(log, first, log.len());
        all += schedules;
        if fault.is_some() {
            return (all, fault);
        }
    }
    (all, None)
}

/// The states that a dead writer may leave: all waves before one, and any part of that.
fn crash_states(log: &[Change]) -> Vec<Vec<Change>> {
    let waves = log.last().map_or(0, |change| change.wave);
    let mut states = Vec::new();
    for wave in 0..=waves {
        let before: Vec<Change> = log.iter().filter(|change| change.wave < wave).cloned().collect();
        let within: Vec<Change> = log.iter().filter(|change| change.wave == wave).cloned().collect();
        for parts in 0..1u32 << within.len() {
            let part =
                within.iter().enumerate().filter(|(at, _)| parts >> at & 1 == 1).map(|(_, change)| change.clone());
            states.push(before.iter().cloned().chain(part).collect());
        }
    }
    states
}

#[test]
fn no_reader_meets_a_dangling_link_or_a_missing_chunk() {
    let log = write_all(Recorder::default());
    let (schedules, fault) = explore_all(&log);
    println!("{} changes, {schedules} schedules", log.len());
    assert_eq!(fault, None);
    assert!(schedules > 500);
}

#[test]
fn what_a_dead_writer_leaves_is_sound() {
    let log = write_all(Recorder::default());
    let states = crash_states(&log);
    println!("{} states", states.len());
    for (number, state) in states.iter().enumerate() {
        assert_eq!(explore(state, state.len(), state.len()).1, None, "state {number}");
    }
}

/// Moves a change to before another one.
fn moved(log: &[Change], from: usize, to: usize) -> Vec<Change> {
    let mut log = log.to_vec();
    let change = log.remove(from);
    log.insert(to, change);
    log
}

#[test]
fn no_reader_meets_a_shard_that_is_not_there() {
    let log = write_with_shards(Recorder::default(), 1);
    assert!(log.iter().filter(|change| change.key.contains(".h5live.links")).count() >= 4);
    let (schedules, fault) = explore_all(&log);
    println!("{} changes, {schedules} schedules", log.len());
    assert_eq!(fault, None);
    for (number, state) in crash_states(&log).iter().enumerate() {
        assert_eq!(explore(state, state.len(), state.len()).1, None, "state {number}");
    }
}

#[test]
fn each_step_of_the_order_of_shards_is_needed() {
    let log = write_with_shards(Recorder::default(), 1);
    let is_root = |change: &Change| change.key.ends_with("/.group.json") && change.key.split('/').count() == 3;
    let is_shard = |change: &Change| change.key.contains(".h5live.links");
    let put = log.iter().position(is_shard).unwrap();
    let named = (put..log.len()).find(|at| is_root(&log[*at])).unwrap();
    let deleted = log.iter().position(|change| is_shard(change) && change.bytes.is_none()).unwrap();
    let unnamed = (0..deleted).rev().find(|at| is_root(&log[*at])).unwrap();
    let object = log.iter().position(|change| change.key.ends_with("/.dataset.json")).unwrap();
    assert!(object < put, "an object comes before the shard with its link");
    let mutants = [
        ("document before its shards", moved(&log, named, put)),
        ("old shard deleted before the document that does not name it", moved(&log, deleted, unnamed)),
    ];
    for (mutant, log) in mutants {
        let (schedules, fault) = explore_all(&log);
        println!("{mutant}: {fault:?} after {schedules} schedules");
        assert!(fault.is_some(), "{mutant} is not found");
    }
}

#[test]
fn each_step_of_the_order_is_needed() {
    let log = write_all(Recorder::default());
    let find = |what: &str, from: usize, is: &dyn Fn(&Change) -> bool| {
        (from..log.len()).find(|at| is(&log[*at])).unwrap_or_else(|| panic!("{what}"))
    };
    let is_root = |change: &Change| change.key.ends_with("/.group.json") && change.key.split('/').count() == 3;
    let is_dataset = |change: &Change| change.key.ends_with("/.dataset.json") && change.bytes.is_some();
    let is_chunk = |change: &Change| !change.key.ends_with(".json");
    let dataset = find("a dataset", 0, &is_dataset);
    let root = find("its link", dataset, &is_root);
    let chunk = find("a chunk", root, &|change| is_chunk(change) && change.bytes.is_some());
    let shape = find("its shape", chunk, &is_dataset);
    let dropped = find("a chunk that is dropped", shape, &|change| is_chunk(change) && change.bytes.is_none());
    let smaller = (0..dropped).rev().find(|at| is_dataset(&log[*at])).unwrap();
    let deleted = find("a dataset that is deleted", dropped, &|change| {
        change.key.ends_with(".dataset.json") && change.bytes.is_none()
    });
    let unlinked = (0..deleted).rev().find(|at| is_root(&log[*at])).unwrap();
    let last_chunk = find("its chunk", deleted, &|change| is_chunk(change) && change.bytes.is_none());
    let mutants = [
        ("link before object", moved(&log, root, dataset)),
        ("shape before chunks", moved(&log, shape, chunk)),
        ("chunks dropped before the smaller shape", moved(&log, dropped, smaller)),
        ("object deleted before its link", moved(&log, deleted, unlinked)),
        ("chunks deleted before their object", moved(&log, last_chunk, unlinked)),
    ];
    for (mutant, log) in mutants {
        let (schedules, fault) = explore_all(&log);
        println!("{mutant}: {fault:?} after {schedules} schedules");
        assert!(fault.is_some(), "{mutant} is not found");
    }
}

#[test]
fn summaries_are_removed_before_anything_is_changed() {
    let log = write_all(Recorder::default());
    let summary = log.iter().position(|change| change.key.ends_with("/.summary.json")).unwrap();
    assert!(log[summary].bytes.is_none());
    assert!(log[..summary].iter().all(|change| change.key.ends_with(".info.json")), "nothing comes before");
}
