//! New domains that nobody sees before they are complete, and that leave nothing if they never are.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use h5live_hsds::engine::{FolderEngine, MemoryEngine, ObjectEngine, ObjectPut};
use h5live_hsds::{HsdsOpenRequest, HsdsStore};
use h5live_model::{
    ByteOrder, ChunkBatch, ChunkCoord, ChunkWrite, DatasetSpec, Dataspace, Datatype, Layout, LinkTarget, Mode,
    NewObject, ObjectSpec, PublishLevel, Result, Shape, Sign, Store,
};

use crate::lost_answer::LostAnswer;
use crate::shared::request;

const DOMAIN: &str = "home/me/run";

fn draft(mode: Mode) -> HsdsOpenRequest {
    HsdsOpenRequest { creates_draft: true, ..request(mode, DOMAIN) }
}

/// Makes a dataset of two chunks that begin with `value`.
fn fill(store: &HsdsStore, value: u8) -> Result<()> {
    let spec: ObjectSpec = DatasetSpec {
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::fixed(&[4])),
        layout: Layout::Chunked(vec![2]),
        ..DatasetSpec::default()
    }
    .into();
    let id = store.writer()?.create(&NewObject::linked(store.session().root, &"a".into(), &spec))?;
    let data = store.dataset(id)?;
    for at in 0..2 {
        let (coord, bytes) = (ChunkCoord::new(&[at]), [value, at as u8]);
        let writes = [ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: &bytes }];
        data.write(&ChunkBatch {
            writes: &writes,
            extent: None,
            publish_after: &[],
            publish: Some(PublishLevel::Visible),
        })?;
    }
    Ok(())
}

/// What the chunks of the domain begin with; `None` if it is not there.
fn read(engine: impl ObjectEngine + 'static) -> Option<u8> {
    let store = match HsdsStore::open(engine, &request(Mode::Read, DOMAIN)) {
        Ok(store) => store,
        Err(error) => {
            assert!(error.to_string().contains("no domain is at"), "{error}");
            return None;
        }
    };
    let link = store.link(store.session().root, &"a".into()).unwrap().expect("the domain is complete");
    let LinkTarget::Hard(id) = link.target else { panic!("a hard link") };
    let data = store.dataset(id).unwrap();
    let values = [0, 1].map(|at| {
        let chunk = data.locate(&ChunkCoord::new(&[at])).unwrap().expect("a chunk");
        let mut found = [9; 2];
        data.read(&chunk, 0, &mut found).unwrap();
        assert_eq!(u64::from(found[1]), at);
        found[0]
    });
    assert_eq!(values[0], values[1]);
    Some(values[0])
}

/// Objects without a domain, or with one whose chunks begin with 1.
fn objects(has_domain: bool) -> MemoryEngine {
    let objects = MemoryEngine::new();
    if has_domain {
        let store = HsdsStore::open(objects.clone(), &request(Mode::CreateNew, DOMAIN)).unwrap();
        fill(&store, 1).unwrap();
        store.close().unwrap();
    }
    objects
}

#[test]
fn nobody_sees_a_draft_before_it_is_published() {
    for has_domain in [false, true] {
        let before = has_domain.then_some(1);
        let objects = objects(has_domain);
        let store = HsdsStore::open(objects.reopen_writer(), &draft(Mode::Create)).unwrap();
        fill(&store, 2).unwrap();
        store.writer().unwrap().commit(h5live_model::ObjectScope::All, PublishLevel::Visible).unwrap();
        assert_eq!(read(objects.reader()), before);
        store.publish_domain().unwrap();
        assert_eq!(read(objects.reader()), Some(2));
        store.close().unwrap();
        assert_eq!(read(objects.reader()), Some(2));
    }
}

#[test]
fn a_draft_that_fails_at_any_change_leaves_what_was_there_before() {
    for has_domain in [false, true] {
        let (mut failed, mut is_done) = (0, false);
        while !is_done {
            let objects = objects(has_domain);
            let before = objects.keys();
            let writer = objects.reopen_writer();
            writer.fail_after(Some(failed));
            let made = HsdsStore::open(writer.clone(), &draft(Mode::Create));
            let filled = made
                .as_ref()
                .map_err(|_| ())
                .and_then(|store| fill(store, 2).and_then(|()| store.publish_domain()).map_err(|_| ()));
            writer.fail_after(None);
            is_done = filled.is_ok();
            if let (Ok(store), false) = (made, is_done) {
                store.close().unwrap();
            }
            let is_published = read(objects.reader()) == Some(2);
            match is_published {
                // Of the domain that was replaced, objects may be left.
                true => assert!(is_done || has_domain, "after {failed} changes"),
                false => assert_eq!(objects.keys(), before, "after {failed} changes"),
            }
            failed += 1;
        }
        assert!(failed > 8, "{failed} changes");
    }
}

#[test]
fn a_draft_that_nobody_closes_leaves_nothing() {
    let objects = objects(false);
    let store = HsdsStore::open(objects.reopen_writer(), &draft(Mode::CreateNew)).unwrap();
    fill(&store, 2).unwrap();
    assert!(!objects.keys().is_empty());
    drop(store);
    assert_eq!(objects.keys(), Vec::<String>::new());
    // One that is no draft is there from the start, or not at all.
    let writer = objects.reopen_writer();
    writer.fail_after(Some(2));
    HsdsStore::open(writer.clone(), &request(Mode::CreateNew, DOMAIN)).unwrap_err();
    assert_eq!(read(objects.reader()), None);
}

#[test]
fn a_domain_whose_last_write_may_have_succeeded_is_taken_back() {
    for has_domain in [false, true] {
        let objects = objects(has_domain);
        let before = objects.keys();
        let engine = LostAnswer::to(".domain.json", objects.reopen_writer());
        let store = HsdsStore::open(engine.clone(), &draft(Mode::Create)).unwrap();
        fill(&store, 2).unwrap();
        store.publish_domain().unwrap_err();
        assert!(engine.is_lost());
        store.close().unwrap();
        assert_eq!(objects.keys(), before);
        assert_eq!(read(objects.reader()), has_domain.then_some(1));
    }
}

#[test]
fn a_write_of_the_domain_whose_answer_was_lost_is_repeated() {
    for has_domain in [false, true] {
        let objects = objects(has_domain);
        let engine = LostAnswer::to(".domain.json", objects.reopen_writer());
        let store = HsdsStore::open(engine.clone(), &draft(Mode::Create)).unwrap();
        fill(&store, 2).unwrap();
        store.publish_domain().unwrap_err();
        // Its own first attempt is no change by another program.
        store.publish_domain().unwrap();
        store.close().unwrap();
        assert_eq!(read(objects.reader()), Some(2));
    }
}

/// Another program writes the object of the domain with another member. Returns what it wrote.
fn edit_domain(objects: &MemoryEngine) -> Vec<u8> {
    let key = format!("{DOMAIN}/.domain.json");
    let mut document: serde_json::Value = serde_json::from_slice(&objects.get(&key).unwrap().unwrap().bytes).unwrap();
    document["edited"] = true.into();
    let bytes = serde_json::to_vec(&document).unwrap();
    objects.put_many(vec![ObjectPut { key, bytes: bytes.clone() }]).unwrap();
    bytes
}

#[test]
fn what_another_program_has_changed_of_a_domain_stays() {
    let key = format!("{DOMAIN}/.domain.json");
    let objects = objects(true);
    // A session that goes on with the domain takes it up.
    let store = HsdsStore::open(objects.reopen_writer(), &request(Mode::Write, DOMAIN)).unwrap();
    let edited = edit_domain(&objects);
    let target = LinkTarget::Soft("/a".into());
    store.writer().unwrap().add_link(store.session().root, &"b".into(), &target).unwrap();
    store.close().unwrap();
    let found = objects.get(&key).unwrap().unwrap().bytes;
    assert!(found[..] != edited[..] && String::from_utf8_lossy(&found).contains("edited"), "with another time");
    // One that replaces the domain does not do so: it would be another one than it was asked to replace.
    let store = HsdsStore::open(objects.reopen_writer(), &draft(Mode::Create)).unwrap();
    fill(&store, 2).unwrap();
    let edited = edit_domain(&objects);
    let error = store.publish_domain().unwrap_err();
    assert!(error.to_string().contains("was changed by a program"), "{error}");
    store.close().unwrap();
    assert!(objects.get(&key).unwrap().unwrap().bytes[..] == edited[..]);
    assert_eq!(read(objects.reader()), Some(1));
}

fn entries(folder: &Path) -> Vec<String> {
    let found = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn of_a_draft_in_a_folder_no_lock_and_no_folder_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = folder.path().join("new/bucket");
    let open = |mode| FolderEngine::open(&bucket, DOMAIN, mode);
    let store = HsdsStore::open(open(Mode::CreateNew).unwrap(), &draft(Mode::CreateNew)).unwrap();
    fill(&store, 2).unwrap();
    assert!(bucket.join("db").is_dir() && bucket.join(DOMAIN).join(".h5live.lock").is_file());
    let second = open(Mode::CreateNew).unwrap_err();
    assert!(second.to_string().contains("another process writes"), "{second}");
    drop(store);
    assert_eq!(entries(folder.path()), Vec::<String>::new());
    // What was there before stays.
    std::fs::create_dir_all(bucket.join("home")).unwrap();
    let store = HsdsStore::open(open(Mode::CreateNew).unwrap(), &draft(Mode::CreateNew)).unwrap();
    fill(&store, 2).unwrap();
    store.close().unwrap();
    assert_eq!((entries(&bucket), entries(&bucket.join("home"))), (vec!["home".to_owned()], Vec::new()));
    let store = HsdsStore::open(open(Mode::CreateNew).unwrap(), &draft(Mode::CreateNew)).unwrap();
    fill(&store, 3).unwrap();
    store.publish_domain().unwrap();
    store.close().unwrap();
    assert_eq!(read(open(Mode::Read).unwrap()), Some(3));
}

#[test]
fn sessions_that_end_beside_a_writer_do_not_take_its_folder_away() {
    let folder = tempfile::tempdir().unwrap();
    let open = |domain: &str, mode| {
        let engine = FolderEngine::open(folder.path(), domain, mode).unwrap();
        HsdsStore::open(engine, &request(mode, domain))
    };
    let store = open("run", Mode::CreateNew).unwrap();
    fill(&store, 1).unwrap();
    let data = store.dataset(match store.link(store.session().root, &"a".into()).unwrap().unwrap().target {
        LinkTarget::Hard(id) => id,
        other => panic!("{other:?}"),
    });
    let (data, is_done) = (data.unwrap(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        // One that writes another domain, and one that reads: their ends remove what is empty.
        for (domain, mode) in [("other", Mode::Create), ("run", Mode::Read)] {
            let (open, is_done) = (&open, &is_done);
            scope.spawn(move || {
                while !is_done.load(Ordering::Relaxed) {
                    open(domain, mode).unwrap().close().unwrap();
                }
            });
        }
        let put = |value: u8| {
            let coord = ChunkCoord::new(&[0]);
            let writes = [ChunkWrite::Whole { coord: &coord, filter_mask: 0, bytes: &[value, 0] }];
            data.write(&ChunkBatch { writes: &writes, extent: None, publish_after: &[], publish: None })
        };
        let done: Result<Vec<()>> = (0..4000).map(|n| put(n as u8)).collect();
        is_done.store(true, Ordering::Relaxed);
        done.unwrap();
    });
}
