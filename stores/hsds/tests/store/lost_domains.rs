//! Objects whose domain is not there: who counts as their maker.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use h5live_hsds::engine::{FolderEngine, ObjectEngine};
use h5live_hsds::{HsdsOpenRequest, HsdsStore, delete_lost_domains, find_lost_domains};
use h5live_model::{Leak, LeakLocation, Mode, ObjectScope, Store};

use crate::shared::request;

fn draft(bucket: &Path, domain: &str, mode: Mode) -> HsdsStore {
    let engine = FolderEngine::open(bucket, domain, mode).unwrap();
    let request = HsdsOpenRequest { creates_draft: true, ..request(mode, domain) };
    let store = HsdsStore::open(engine, &request).unwrap();
    store.writer().unwrap().commit(ObjectScope::All, h5live_model::PublishLevel::Visible).unwrap();
    store
}

fn looker(bucket: &Path) -> FolderEngine {
    FolderEngine::open(bucket, "none", Mode::Read).unwrap()
}

fn lost(bucket: &Path) -> Vec<u64> {
    let found = find_lost_domains(&looker(bucket), None).unwrap();
    let objects = |leak: &Leak| match leak.place {
        LeakLocation::LostDomain { objects, .. } => objects,
        _ => panic!("another place"),
    };
    found.iter().map(|(_, leak)| objects(leak)).collect()
}

/// Writes a root group of a domain that is not there, which was changed so long ago.
fn foreign(bucket: &Path, age: Duration) {
    let folder = bucket.join("db/01234567-89abcdef");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(".group.json"), "{}").unwrap();
    let file = fs::File::options().write(true).open(folder.join(".group.json")).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

#[test]
fn a_draft_is_not_lost_while_its_maker_lives_nor_after_it_is_published_or_discarded() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = folder.path();
    let store = draft(bucket, "a", Mode::CreateNew);
    assert_eq!(lost(bucket), [0; 0]);
    assert_eq!(looker(bucket).folder_names("db/").unwrap().len(), 1);
    store.publish_domain().unwrap();
    assert_eq!(lost(bucket), [0; 0]);
    store.close().unwrap();
    let locks =
        || fs::read_dir(bucket.join("db")).unwrap().any(|entry| entry.unwrap().path().join(".h5live.lock").exists());
    assert!(!locks(), "the claim has ended");
    // One that replaces it: the old objects are claimed, too.
    let store = draft(bucket, "a", Mode::Create);
    fs::remove_file(bucket.join("a/.domain.json")).unwrap();
    assert_eq!(lost(bucket), [0; 0], "neither the old objects nor the new ones");
    store.close().unwrap();
    assert_eq!(lost(bucket), [0; 0], "not old enough, and nobody claims them");
}

#[test]
fn objects_of_another_program_are_lost_after_a_day_without_a_domain() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = folder.path();
    foreign(bucket, Duration::from_secs(23 * 3600));
    assert_eq!(lost(bucket), [0; 0]);
    foreign(bucket, Duration::from_secs(25 * 3600));
    assert_eq!(lost(bucket), [1]);
    // A domain that names them now is there before they are deleted.
    let engine = looker(bucket);
    let found = find_lost_domains(&engine, None).unwrap();
    fs::create_dir_all(bucket.join("home/other")).unwrap();
    let root = r#"{"root": "g-01234567-89abcdef-89ab-cdef01-234567", "owner": "me", "acls": {}}"#;
    fs::write(bucket.join("home/other/.domain.json"), root).unwrap();
    assert_eq!(delete_lost_domains(&engine, found).unwrap(), []);
    assert!(bucket.join("db/01234567-89abcdef/.group.json").exists());
    assert_eq!(lost(bucket), [0; 0]);
    // Of a damaged one nobody knows what it names.
    fs::write(bucket.join("home/other/.domain.json"), "{").unwrap();
    let error = find_lost_domains(&engine, None).unwrap_err().to_string();
    assert!(error.contains("home/other/.domain.json is damaged"), "{error}");
    fs::remove_file(bucket.join("home/other/.domain.json")).unwrap();
    let found = find_lost_domains(&engine, None).unwrap();
    assert_eq!(delete_lost_domains(&engine, found).unwrap().len(), 1);
    assert!(!bucket.join("db").exists());
}

#[test]
fn a_session_that_is_ended_by_another_thread_leaves_nothing_and_writes_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = folder.path().join("bucket");
    let store = draft(&bucket, "a", Mode::CreateNew);
    store.close_without_commit().unwrap();
    assert!(!bucket.exists());
    assert!(store.publish_domain().is_err() && store.writer().is_err());
    store.close_without_commit().unwrap();
    store.close().unwrap();
    drop(store);
    assert!(!bucket.exists());
}

#[test]
fn files_that_were_not_finished_are_removed_after_a_day() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = folder.path();
    let temps = bucket.join(".h5live.tmp");
    fs::create_dir(&temps).unwrap();
    for (name, hours) in [("1-1", 25), ("1-2", 23)] {
        fs::write(temps.join(name), "half").unwrap();
        let file = fs::File::options().write(true).open(temps.join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(hours * 3600)).unwrap();
    }
    looker(bucket).remove_abandoned_writes().unwrap();
    let left: Vec<_> = fs::read_dir(&temps).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["1-2"]);
}
