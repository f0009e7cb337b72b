//! Objects in a bucket whose domain is not there: whose lease says that their maker lives.

use std::time::Duration;

use h5live_hsds::engine::{BucketEngine, BucketOptions};
use h5live_hsds::{HsdsOpenRequest, HsdsStore, delete_lost_domains, find_lost_domains};
use h5live_model::{Leak, Mode, ObjectScope, PublishLevel, Store, StoreErrorKind};
use h5live_objects::{ListEntry, ObjectClient, PutCondition};

use crate::shared::request;
use crate::{BUCKET, DOMAIN, create_seen, long_lease, open, with_lease};

fn keys(client: &ObjectClient) -> Vec<String> {
    let mut keys = Vec::new();
    let list = &mut |entry| {
        if let ListEntry::Object { key, .. } = entry {
            keys.push(key);
        }
        true
    };
    client.list_objects_recursively("", list).unwrap();
    keys
}

fn looker(client: &ObjectClient) -> BucketEngine {
    BucketEngine::open(client, BUCKET, "none", Mode::Read, &long_lease()).unwrap()
}

fn lost(client: &ObjectClient) -> usize {
    find_lost_domains(&looker(client), None).unwrap().len()
}

fn reclaim(client: &ObjectClient) -> Vec<Leak> {
    let engine = looker(client);
    delete_lost_domains(&engine, find_lost_domains(&engine, None).unwrap()).unwrap()
}

fn draft(client: &ObjectClient, mode: Mode, how: &BucketOptions) -> HsdsStore {
    let engine = BucketEngine::open(client, BUCKET, DOMAIN, mode, how).unwrap();
    let store = HsdsStore::open(engine, &HsdsOpenRequest { creates_draft: true, ..request(mode, DOMAIN) }).unwrap();
    store.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    store
}

#[test]
fn a_draft_is_lost_when_another_session_has_its_lease_and_its_maker_is_fenced() {
    let client = ObjectClient::memory();
    let maker = draft(&client, Mode::CreateNew, &long_lease());
    assert_eq!((lost(&client), reclaim(&client)), (0, Vec::new()), "its maker lives");
    // Somebody takes over, and ends.
    draft(&client, Mode::CreateNew, &with_lease(Duration::from_secs(600), true)).close().unwrap();
    assert_eq!(lost(&client), 1);
    assert_eq!(reclaim(&client).len(), 1);
    assert_eq!(keys(&client), Vec::<String>::new());
    let error = maker.publish_domain().unwrap_err();
    assert_eq!(error.store_error_kind(), Some(&StoreErrorKind::Fenced), "{error}");
    drop(maker);
    assert_eq!(keys(&client), Vec::<String>::new());
}

#[test]
fn a_draft_is_lost_when_its_lease_was_not_renewed_for_its_period() {
    let client = ObjectClient::memory();
    let put = |key: &str, text: &str| drop(client.put(key, text.to_owned(), &PutCondition::Always).unwrap());
    put("db/01234567-89abcdef/.group.json", "{}");
    assert_eq!(lost(&client), 0, "nobody has claimed it, and it is new");
    let claim = r#"{"format": "h5live claim", "version": 1, "domain": "home/run", "session": "0000000000000007"}"#;
    put("db/01234567-89abcdef/.h5live.claim.json", claim);
    let lease = r#"{"format": "h5live lease", "version": 1, "holder": "process 1", "session": "0000000000000007",
        "epoch": 1, "renewals": 0, "milliseconds": 1000, "released": false, "hasConditions": true}"#;
    put("home/run/.h5live.lease.json", lease);
    assert_eq!(lost(&client), 0, "its maker may live");
    std::thread::sleep(Duration::from_millis(3200));
    assert_eq!(lost(&client), 1);
    // It was slow, and comes back before anything is deleted.
    let engine = looker(&client);
    let found = find_lost_domains(&engine, None).unwrap();
    put("home/run/.h5live.lease.json", lease);
    assert_eq!(delete_lost_domains(&engine, found).unwrap(), []);
    std::thread::sleep(Duration::from_millis(3200));
    assert_eq!(reclaim(&client).len(), 1);
    assert_eq!(keys(&client), Vec::<String>::new());
}

#[test]
fn a_domain_that_is_there_keeps_its_objects_and_no_claim() {
    let client = ObjectClient::memory();
    let store = open(&client, DOMAIN, Mode::CreateNew, &long_lease()).unwrap();
    create_seen(&store, "a");
    store.close().unwrap();
    let replacing = draft(&client, Mode::Create, &long_lease());
    let claims = || keys(&client).iter().filter(|key| key.ends_with(".h5live.claim.json")).count();
    assert_eq!((claims(), lost(&client)), (2, 0), "of the old objects and of the new ones");
    replacing.publish_domain().unwrap();
    assert_eq!((claims(), lost(&client)), (0, 0));
    replacing.close_without_commit().unwrap();
    open(&client, DOMAIN, Mode::Write, &long_lease()).unwrap().close().unwrap();
}
