//! Documents are written on condition that they are as the session has them.

use h5live_model::{
    AttributeData, ByteOrder, Dataspace, Datatype, Mode, ObjectScope, PublishLevel, Sign, Store, StoreErrorKind,
};
use h5live_objects::testing::{FaultyProxy, ProxyFaults, S3Server};
use h5live_objects::{GetCondition, GetOutcome, ObjectClient, PutCondition};

use crate::{BUCKET, DOMAIN, append, check_appended, client, create_seen, find, long_lease, objects, open};

fn number(value: u8) -> AttributeData {
    AttributeData {
        name: "number".into(),
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        committed_datatype: None,
        dataspace: Dataspace::Scalar,
        value: vec![value],
        creation_order: None,
    }
}

/// Somebody else writes the same document anew, with another member, as a service would.
fn edit(client: &ObjectClient, key: &str) {
    let Ok(GetOutcome::Object(found)) = client.get(key, &GetCondition::Always) else { panic!("{key} is there") };
    let mut document: serde_json::Value = serde_json::from_slice(&found.bytes).unwrap();
    document["edited"] = true.into();
    client.put(key, document.to_string(), &PutCondition::Always).unwrap();
}

fn check_edit_beneath(client: &ObjectClient) {
    let store = open(client, DOMAIN, Mode::CreateNew, &long_lease()).unwrap();
    let data = create_seen(&store, "rows");
    append(&*data, 0).unwrap();
    append(&*data, 1).unwrap();
    let root = store.session().root;
    let keys: Vec<String> = objects(client).into_iter().map(|(key, _)| key).collect();
    let key_of = |end: &str| keys.iter().find(|key| key.ends_with(end) && key.starts_with("db/")).unwrap();
    edit(client, key_of(".dataset.json"));
    let before = objects(client);
    let error = append(&*data, 2).unwrap_err();
    assert!(matches!(error.store_error_kind(), Some(StoreErrorKind::Changed(_))), "{error}");
    assert!(error.to_string().contains(".dataset.json was changed by a program"), "{error}");
    let is_document = |(key, _): &&(String, _)| key.starts_with("db/") && key.ends_with(".json");
    let documents = |objects: &[(String, _)]| objects.iter().filter(is_document).cloned().collect::<Vec<_>>();
    assert_eq!(documents(&objects(client)), documents(&before), "what was edited stays");
    // The lease is still there, and other objects are written.
    store.writer().unwrap().set_attribute(root, &number(1)).unwrap();
    store.writer().unwrap().commit(ObjectScope::Objects(&[root]), PublishLevel::Visible).unwrap();
    drop((data, store));
    let next = open(client, DOMAIN, Mode::Write, &long_lease()).unwrap();
    let data = next.dataset(find(&next, "rows").unwrap()).unwrap();
    assert_eq!(check_appended(&*data), 2);
    append(&*data, 2).unwrap();
    next.close().unwrap();
    let Ok(GetOutcome::Object(found)) = client.get(key_of(".dataset.json"), &GetCondition::Always) else { panic!() };
    assert!(String::from_utf8_lossy(&found.bytes).contains("edited"), "what another program has added is kept");
}

#[test]
fn a_document_that_somebody_has_changed_is_not_overwritten() {
    check_edit_beneath(&ObjectClient::memory());
    let Some(server) = S3Server::start_if_available() else { return };
    server.make_bucket(BUCKET);
    check_edit_beneath(&client(&server.client_options()));
}

#[test]
fn a_write_whose_answer_was_lost_is_no_change_by_others() {
    let Some(server) = S3Server::start_if_available() else { return };
    server.make_bucket(BUCKET);
    let faults = ProxyFaults { per_mille: 300, seed: 4, ..ProxyFaults::default() };
    let proxy = FaultyProxy::start(server.address(), faults).unwrap();
    // One attempt each: a commit fails often, also after its write.
    let patient = client(&proxy.client_options());
    let limits = h5live_objects::RequestLimits { max_attempts: 1, ..*patient.limits() };
    let store = loop {
        match open(&patient, DOMAIN, Mode::Create, &crate::with_lease(std::time::Duration::from_secs(600), true)) {
            Ok(store) => break store,
            Err(error) => println!("{error}"),
        }
    };
    store.close().unwrap();
    let impatient = patient.with_limits(limits);
    let store = loop {
        let how = crate::with_lease(std::time::Duration::from_secs(600), true);
        if let Ok(store) = open(&impatient, DOMAIN, Mode::Write, &how) {
            break store;
        }
    };
    let (root, mut failures) = (store.session().root, 0);
    for value in 0..60 {
        store.writer().unwrap().set_attribute(root, &number(value)).unwrap();
        while let Err(error) = store.writer().unwrap().commit(ObjectScope::Objects(&[root]), PublishLevel::Visible) {
            let is_lasting =
                matches!(error.store_error_kind(), Some(StoreErrorKind::Changed(_) | StoreErrorKind::Fenced));
            assert!(!is_lasting, "{error}");
            failures += 1;
        }
        let direct = open(&client(&server.client_options()), DOMAIN, Mode::Read, &long_lease()).unwrap();
        assert_eq!(direct.attribute(root, &"number".into()).unwrap().unwrap().value, [value]);
    }
    assert!(failures > 20, "{failures} failures");
}
