//! One writer at a time, by a lease.

use std::time::Duration;

use h5live_hsds::engine::{BucketEngine, BucketOptions};
use h5live_hsds::{HsdsOpenRequest, HsdsStore};
use h5live_model::{Error, Mode, ObjectScope, PublishLevel, Store, StoreErrorKind, WriterLiveness};
use h5live_objects::testing::{FaultyProxy, ProxyFaults, S3Server};
use h5live_objects::{GetCondition, GetOutcome, ObjectClient, PutCondition};

use crate::shared::request;
use crate::{
    BUCKET, DOMAIN, append, check_appended, client, create, create_seen, find, long_lease, objects, open, with_lease,
};

const LEASE_KEY: &str = "home/run/.h5live.lease.json";

fn taking_over() -> BucketOptions {
    with_lease(Duration::from_secs(600), true)
}

fn is_in_use(error: &Error) -> bool {
    matches!(error.store_error_kind(), Some(StoreErrorKind::InUse(_)))
}

fn is_fenced(error: &Error) -> bool {
    error.store_error_kind() == Some(&StoreErrorKind::Fenced)
}

fn lease_text(client: &ObjectClient) -> String {
    match client.get(LEASE_KEY, &GetCondition::Always).unwrap() {
        GetOutcome::Object(found) => String::from_utf8(found.bytes.to_vec()).unwrap(),
        GetOutcome::NotModified => panic!("without a condition"),
    }
}

fn on_server(test: impl Fn(&ObjectClient)) {
    test(&ObjectClient::memory());
    let Some(server) = S3Server::start_if_available() else { return };
    server.make_bucket(crate::BUCKET);
    test(&client(&server.client_options()));
}

#[test]
fn a_second_writer_is_refused_and_told_who_writes() {
    on_server(|client| {
        let first = open(client, DOMAIN, Mode::CreateNew, &long_lease()).unwrap();
        let me = format!("process {} (", std::process::id());
        for mode in [Mode::Write, Mode::Create, Mode::CreateNew] {
            let error = open(client, DOMAIN, mode, &long_lease()).unwrap_err();
            let text = error.to_string();
            assert!(is_in_use(&error) && text.starts_with(&me) && text.contains("home/run"), "{mode:?}: {text}");
        }
        // Readers, and writers of other domains, are not kept out.
        let reader = open(client, DOMAIN, Mode::SwmrRead, &long_lease()).unwrap();
        assert_eq!(reader.liveness().unwrap(), WriterLiveness::Live);
        open(client, "home/other", Mode::CreateNew, &long_lease()).unwrap();
        first.close().unwrap();
        assert_eq!(reader.liveness().unwrap(), WriterLiveness::AtRest);
        assert!(lease_text(client).contains("\"epoch\":1"), "{}", lease_text(client));
        let next = open(client, DOMAIN, Mode::Write, &long_lease()).unwrap();
        assert!(lease_text(client).contains("\"epoch\":2"), "{}", lease_text(client));
        drop(next);
        // A session that was dropped has ended, too.
        open(client, DOMAIN, Mode::Write, &long_lease()).unwrap();
    });
}

#[test]
fn a_writer_that_has_lost_its_lease_is_fenced_and_nothing_of_it_is_seen() {
    on_server(|client| {
        let first = open(client, DOMAIN, Mode::CreateNew, &long_lease()).unwrap();
        let id = create(&first, "rows", 0);
        first.writer().unwrap().start_swmr().unwrap();
        let data = first.dataset(id).unwrap();
        append(&*data, 0).unwrap();
        create(&first, "never seen", 0);
        let second = open(client, DOMAIN, Mode::Write, &taking_over()).unwrap();
        let before = objects(client);
        let by = format!("process {} (", std::process::id());
        let failed = [
            append(&*data, 0),
            append(&*data, 1),
            first.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible),
            first.close(),
        ];
        for error in failed.map(Result::unwrap_err) {
            let text = error.to_string();
            assert!(is_fenced(&error) && text.starts_with(&by) && text.contains("has taken over"), "{text}");
        }
        drop((data, first));
        assert_eq!(objects(client), before, "nothing was written, and the lease was not released");
        let data = second.dataset(find(&second, "rows").unwrap()).unwrap();
        append(&*data, 1).unwrap();
        assert_eq!((check_appended(&*data), find(&second, "never seen")), (2, None));
        second.close().unwrap();
    });
}

#[test]
fn a_deleted_or_damaged_lease_fences_its_writer() {
    let client = &ObjectClient::memory();
    for damage in [false, true] {
        let store = open(client, DOMAIN, Mode::Create, &long_lease()).unwrap();
        let data = store.dataset(create(&store, "rows", 0)).unwrap();
        append(&*data, 0).unwrap();
        match damage {
            true => drop(client.put(LEASE_KEY, "{}", &PutCondition::Always).unwrap()),
            false => client.delete(LEASE_KEY).unwrap(),
        }
        let error = append(&*data, 1).unwrap_err();
        let said = if damage { "overwritten its lease" } else { "deleted its lease" };
        assert!(is_fenced(&error) && error.to_string().contains(said), "{error}");
    }
    let error = open(client, DOMAIN, Mode::Write, &long_lease()).unwrap_err();
    assert!(error.to_string().contains("home/run/.h5live.lease.json is no lease of a writer"), "{error}");
    open(client, DOMAIN, Mode::Write, &taking_over()).unwrap();
}

#[test]
fn a_lease_is_renewed_while_its_writer_does_nothing() {
    let client = &ObjectClient::memory();
    let _store = open(client, DOMAIN, Mode::CreateNew, &with_lease(Duration::from_secs(1), false)).unwrap();
    let first = lease_text(client);
    let begin = std::time::Instant::now();
    while lease_text(client) == first {
        assert!(begin.elapsed() < Duration::from_secs(60), "it is not renewed");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn where_no_domain_is_no_lease_is_left() {
    let client = &ObjectClient::memory();
    let error = open(client, DOMAIN, Mode::Write, &long_lease()).unwrap_err();
    assert_eq!(error.store_error_kind(), Some(&StoreErrorKind::NotFound));
    assert_eq!(objects(client), []);
    open(client, DOMAIN, Mode::CreateNew, &long_lease()).unwrap().close().unwrap();
    let error = open(client, DOMAIN, Mode::CreateNew, &long_lease()).unwrap_err();
    assert_eq!(error.store_error_kind(), Some(&StoreErrorKind::AlreadyExists));
    open(client, DOMAIN, Mode::Write, &long_lease()).unwrap();
}

fn open_draft(client: &ObjectClient, how: &BucketOptions) -> h5live_model::Result<HsdsStore> {
    let draft = HsdsOpenRequest { creates_draft: true, ..request(Mode::Create, DOMAIN) };
    HsdsStore::open(BucketEngine::open(client, BUCKET, DOMAIN, Mode::Create, how)?, &draft)
}

#[test]
fn of_a_draft_that_is_never_published_no_object_is_left() {
    let client = &ObjectClient::memory();
    let store = open_draft(client, &long_lease()).unwrap();
    create(&store, "rows", 0);
    assert!(open_draft(client, &long_lease()).unwrap_err().to_string().contains(" writes "), "it has the lease");
    store.close().unwrap();
    assert_eq!(objects(client), []);
    // A lease that was there before stays, and is free.
    open(client, DOMAIN, Mode::CreateNew, &long_lease()).unwrap().close().unwrap();
    let lease = |(key, _): &(String, _)| key.ends_with(".h5live.lease.json");
    let mut before = objects(client);
    drop(open_draft(client, &long_lease()).unwrap());
    let mut after = objects(client);
    before.retain(|object| !lease(object));
    assert!(after.iter().any(lease));
    after.retain(|object| !lease(object));
    assert_eq!(before, after);
    open(client, DOMAIN, Mode::Write, &long_lease()).unwrap();
}

#[test]
fn a_draft_whose_lease_was_taken_away_deletes_nothing() {
    let client = &ObjectClient::memory();
    let store = open_draft(client, &long_lease()).unwrap();
    create(&store, "rows", 0);
    let other = open(client, DOMAIN, Mode::CreateNew, &with_lease(Duration::from_secs(600), true)).unwrap();
    let data = create_seen(&other, "rows");
    append(&*data, 0).unwrap();
    let before = objects(client);
    let error = store.publish_domain().unwrap_err();
    assert_eq!(error.store_error_kind(), Some(&StoreErrorKind::Fenced));
    drop(store);
    assert_eq!(objects(client), before);
    append(&*data, 1).unwrap();
    assert_eq!(check_appended(&*data), 2);
}

#[test]
fn a_server_that_keeps_no_conditions_is_written_on_request_only() {
    let Some(server) = S3Server::start_if_available() else { return };
    server.make_bucket(crate::BUCKET);
    let faults = ProxyFaults { drops_write_conditions: true, ..ProxyFaults::default() };
    let proxy = FaultyProxy::start(server.address(), faults).unwrap();
    let client = &client(&proxy.client_options());
    for _ in 0..2 {
        let error = open(client, DOMAIN, Mode::CreateNew, &long_lease()).unwrap_err().to_string();
        assert!(error.contains("does not keep conditions of writes") && error.contains("unfenced=yes"), "{error}");
    }
    let mut unfenced = long_lease();
    unfenced.lease.is_unfenced = true;
    let store = open(client, DOMAIN, Mode::CreateNew, &unfenced).unwrap();
    let data = create_seen(&store, "rows");
    append(&*data, 0).unwrap();
    let reader = open(client, DOMAIN, Mode::SwmrRead, &unfenced).unwrap();
    assert_eq!(reader.liveness().unwrap(), WriterLiveness::Live);
    assert_eq!(check_appended(&*reader.dataset(find(&reader, "rows").unwrap()).unwrap()), 1);
    let other = open(client, DOMAIN, Mode::Write, &unfenced).unwrap();
    other.close().unwrap();
    append(&*data, 1).unwrap();
    store.close().unwrap();
    assert_eq!(reader.liveness().unwrap(), WriterLiveness::AtRest);
}
