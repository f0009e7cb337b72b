//! The client on an S3 server of this machine, also behind a proxy that fails.

use std::time::Duration;

use h5live_objects::testing::{FaultyProxy, ProxyFaults, S3Server, has_aws_env_credentials};
use h5live_objects::{
    Cloud, GetCondition, GetItem, GetOutcome, InFlightLimits, ListEntry, ObjectClient, ObjectError, ObjectErrorKind,
    ObjectOptions, ObjectStoreLocation, PutCondition, PutItem, RangeMergeLimits, RequestLimits,
};

fn bucket(name: &str) -> ObjectStoreLocation {
    ObjectStoreLocation::Bucket { cloud: Cloud::S3, bucket: name.to_owned() }
}

fn client(options: &ObjectOptions) -> ObjectClient {
    bucket("bucket").build_client(options).unwrap()
}

fn read(client: &ObjectClient, key: &str) -> Vec<u8> {
    match client.get(key, &GetCondition::Always).unwrap() {
        GetOutcome::Object(found) => found.bytes.to_vec(),
        GetOutcome::NotModified => panic!("without a condition"),
    }
}

#[test]
fn an_s3_server_keeps_conditions_pages_ranges_and_parts() {
    let Some(server) = S3Server::start_if_available() else { return };
    server.make_bucket("bucket");
    let client = client(&server.client_options());
    // Of eight that write at a time on the same condition, one succeeds.
    for round in 0..10 {
        for is_update in [false, true] {
            let key = format!("race/{round}{is_update}");
            let condition = match is_update {
                true => PutCondition::Matching(client.put(&key, "first", &PutCondition::Always).unwrap()),
                false => PutCondition::Absent,
            };
            let results: Vec<_> = std::thread::scope(|scope| {
                let race = |racer: u8| {
                    let (client, key, condition) = (&client, &key, &condition);
                    scope.spawn(move || client.put(key, vec![racer], condition))
                };
                let racers: Vec<_> = (0..8).map(race).collect();
                racers.into_iter().map(|racer| racer.join().unwrap()).collect()
            });
            let winner = results.iter().position(Result::is_ok).unwrap();
            assert_eq!(read(&client, &key), [winner as u8]);
            let lost = if is_update { ObjectErrorKind::Changed } else { ObjectErrorKind::Exists };
            let losers = results.iter().filter(|result| result.as_ref().is_err_and(|error| error.kind == lost));
            assert_eq!(losers.count(), 7, "round {round}: {results:?}");
        }
    }
    // Pages of a thousand.
    let items = (0..2100).map(|n| PutItem { key: format!("many/{n}"), bytes: "x".into(), ..PutItem::default() });
    client
        .put_many::<ObjectError>(items, InFlightLimits { max_requests: 16, max_bytes: 1 << 20 }, &mut |_, _| Ok(()))
        .unwrap();
    let (before, mut count) = (client.request_counts().lists, 0);
    client
        .list_objects_recursively("many", &mut |entry| {
            count += usize::from(matches!(entry, ListEntry::Object { .. }));
            true
        })
        .unwrap();
    assert_eq!((count, client.request_counts().lists - before), (2100, 3));
    let mut prefixes = Vec::new();
    client
        .list_children("", &mut |entry| {
            prefixes.push(entry);
            true
        })
        .unwrap();
    assert_eq!(prefixes, [ListEntry::Prefix("many".to_owned()), ListEntry::Prefix("race".to_owned())]);
    // A file in parts, and what is read of it.
    let file = tempfile::NamedTempFile::new().unwrap();
    let bytes: Vec<u8> = (0..20_000_000u32).map(|at| (at % 251) as u8).collect();
    std::fs::write(file.path(), &bytes).unwrap();
    let tag = client.put_file("large", file.path(), false).unwrap();
    let (condition, mut found) = (GetCondition::Matching(tag.clone()), Vec::new());
    let ranges = [5..10, 19_999_990..20_000_000, 20..30u64];
    let plan = RangeMergeLimits::default();
    client
        .get_ranges::<ObjectError>(
            "large",
            &ranges,
            &condition,
            &plan,
            InFlightLimits::default(),
            &mut |number, bytes| {
                found.push((number, bytes.to_vec()));
                Ok(())
            },
        )
        .unwrap();
    found.sort();
    for (number, found) in &found {
        assert_eq!(*found, bytes[ranges[*number].start as usize..ranges[*number].end as usize]);
    }
    assert_eq!(found.len(), 3);
    assert_eq!(client.get("large", &GetCondition::NotMatching(tag)).unwrap(), GetOutcome::NotModified);
    client.put("large", "other", &PutCondition::Always).unwrap();
    assert_eq!(client.get_range("large", 0..5, &condition).unwrap_err().kind, ObjectErrorKind::Changed);
}

#[test]
fn nothing_wrong_is_returned_by_a_server_that_fails_at_random() {
    let Some(server) = S3Server::start_if_available() else { return };
    server.make_bucket("bucket");
    for seed in [1, 2, 3] {
        println!("seed {seed}");
        let proxy =
            FaultyProxy::start(server.address(), ProxyFaults { per_mille: 250, seed, ..ProxyFaults::default() });
        let proxy = proxy.unwrap();
        let limits =
            RequestLimits { max_attempts: 12, first_pause: Duration::from_millis(2), ..RequestLimits::default() };
        let client = client(&proxy.client_options()).with_limits(limits);
        let text = |n: usize, round: usize| format!("{seed} {n} {round} ").repeat(1 + n * 7);
        for n in 0..60 {
            let key = format!("{seed}/{n}");
            // None of these is taken for a conflict with itself.
            let mut tag = client.put(&key, text(n, 0), &PutCondition::Absent).unwrap();
            for round in 1..3 {
                tag = client.put(&key, text(n, round), &PutCondition::Matching(tag)).unwrap();
            }
            let error = client.put(&key, "wrong", &PutCondition::Absent).unwrap_err();
            assert_eq!(error.kind, ObjectErrorKind::Exists);
        }
        let items =
            (0..61).map(|n| GetItem { key: format!("{seed}/{n}"), estimated_bytes: 1000, ..GetItem::default() });
        let mut seen = 0;
        client
            .get_many::<ObjectError>(items, InFlightLimits { max_requests: 8, max_bytes: 1 << 20 }, &mut |n, found| {
                match found {
                    Some(GetOutcome::Object(found)) => assert_eq!(found.bytes, text(n, 2)),
                    other => assert!(n == 60 && other.is_none()),
                }
                seen += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!(seen, 61);
        assert!(
            proxy.injected_failure_count() > 60,
            "{} of {} requests failed",
            proxy.injected_failure_count(),
            proxy.request_count()
        );
        assert_eq!(client.request_counts().total_requests(), proxy.request_count(), "each request is counted");
    }
}

#[test]
fn what_cannot_be_reached_is_said_with_its_name_and_the_cause() {
    if !has_aws_env_credentials() {
        return;
    }
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let options = ObjectOptions {
        endpoint: format!("http://{address}"),
        region: "us-east-1".to_owned(),
        allow_http: true,
        attempts: 2,
        ..ObjectOptions::default()
    };
    let error = client(&options).get("run.h5", &GetCondition::Always).unwrap_err();
    assert_eq!(error.kind, ObjectErrorKind::Unavailable);
    let text = error.to_string();
    assert!(text.starts_with("s3://bucket/run.h5: the object store cannot be reached: "), "{text}");
    assert!(text.contains("Connection refused") && text.contains("(2 attempts)"), "{text}");
    let encrypted = ObjectOptions { allow_http: false, ..options.clone() };
    let text = client(&encrypted).get("run.h5", &GetCondition::Always).unwrap_err().to_string();
    println!("{text}");
    let Some(server) = S3Server::start_if_available() else { return };
    let options = ObjectOptions { endpoint: server.endpoint(), ..options };
    let error = client(&options).get("run.h5", &GetCondition::Always).unwrap_err();
    assert_eq!(error.kind, ObjectErrorKind::NotThere);
    assert!(error.to_string().contains("NoSuchBucket"), "{error}");
    server.make_bucket("bucket");
    let error = client(&options).get("run.h5", &GetCondition::Always).unwrap_err();
    assert!(error.to_string().contains("NoSuchKey"), "{error}");
}
