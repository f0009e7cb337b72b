//! The client on stores in memory and in folders, and on one that fails.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use h5live_model::{Error as ModelError, StoreErrorKind};
use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use object_store::{
    CopyOptions, Error as LibraryError, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta as LibraryMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as LibraryResult,
};

use crate::cause::{AttemptTimedOutAfterSecs, object_store_error};
use crate::*;

/// A store in memory whose next requests fail; of writes, before or after they were done.
#[derive(Debug, Default)]
struct FailingStore {
    inner: InMemory,
    failures: AtomicU32,
    is_done_first: bool,
    /// What the fields of answers say, if they lie.
    ignores_conditions: bool,
}

impl std::fmt::Display for FailingStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("failing")
    }
}

impl FailingStore {
    fn fails(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

fn no_answer() -> LibraryError {
    object_store_error(AttemptTimedOutAfterSecs(1))
}

#[async_trait]
impl ObjectStore for FailingStore {
    async fn put_opts(&self, at: &ObjectPath, bytes: PutPayload, how: PutOptions) -> LibraryResult<PutResult> {
        match self.fails() {
            true if self.is_done_first => {
                let _ = self.inner.put_opts(at, bytes, how).await;
                Err(no_answer())
            }
            true => Err(no_answer()),
            false => self.inner.put_opts(at, bytes, how).await,
        }
    }

    async fn put_multipart_opts(
        &self,
        at: &ObjectPath,
        how: PutMultipartOptions,
    ) -> LibraryResult<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, how).await
    }

    async fn get_opts(&self, at: &ObjectPath, mut how: GetOptions) -> LibraryResult<GetResult> {
        if self.fails() {
            return Err(no_answer());
        }
        if self.ignores_conditions {
            (how.if_match, how.if_none_match) = (None, None);
        }
        self.inner.get_opts(at, how).await
    }

    fn delete_stream(
        &self,
        keys: BoxStream<'static, LibraryResult<ObjectPath>>,
    ) -> BoxStream<'static, LibraryResult<ObjectPath>> {
        self.inner.delete_stream(keys)
    }

    fn list(&self, prefix: Option<&ObjectPath>) -> BoxStream<'static, LibraryResult<LibraryMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&ObjectPath>) -> LibraryResult<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &ObjectPath, to: &ObjectPath, how: CopyOptions) -> LibraryResult<()> {
        self.inner.copy_opts(from, to, how).await
    }
}

fn failing(failures: u32, is_done_first: bool) -> ObjectClient {
    let store = FailingStore { failures: failures.into(), is_done_first, ..FailingStore::default() };
    over(store)
}

fn over(store: FailingStore) -> ObjectClient {
    let limits = RequestLimits { max_attempts: 4, first_pause: Duration::from_millis(1), ..RequestLimits::default() };
    ObjectClient::over("s3://bucket", Arc::new(store), limits)
}

/// Both kinds of stores that need no server.
fn each_place(check: impl Fn(&ObjectClient)) {
    let folder = tempfile::tempdir().unwrap();
    check(&ObjectClient::folder(folder.path(), false).unwrap());
    check(&ObjectClient::memory());
}

fn read(client: &ObjectClient, key: &str) -> ObjectBytes {
    match client.get(key, &GetCondition::Always).unwrap() {
        GetOutcome::Object(found) => found,
        GetOutcome::NotModified => panic!("without a condition"),
    }
}

#[test]
fn what_was_written_is_read_whole_in_part_and_on_conditions() {
    each_place(|client| {
        let first = client.put("a/b", "0123456789", &PutCondition::Absent).unwrap();
        let found = read(client, "a/b");
        assert_eq!((&*found.bytes, found.meta.size, &found.meta.tag), (b"0123456789".as_slice(), 10, &first));
        assert_eq!(client.get("a/b", &GetCondition::NotMatching(first.clone())).unwrap(), GetOutcome::NotModified);
        assert_eq!(client.head("a/b").unwrap(), found.meta);
        let same = GetCondition::Matching(first.clone());
        assert_eq!(client.get_range("a/b", 2..5, &same).unwrap().bytes, "234");
        assert_eq!(client.get_range("a/b", 8..500, &same).unwrap().bytes, "89");
        assert_eq!(client.get_suffix("a/b", 3, &same).unwrap().bytes, "789");
        assert_eq!(client.get_suffix("a/b", 300, &same).unwrap().bytes, "0123456789");
        let second = client.put("a/b", "other", &PutCondition::Always).unwrap();
        assert_ne!(first, second);
        for error in [client.get("a/b", &same).unwrap_err(), client.get_range("a/b", 0..1, &same).unwrap_err()] {
            assert_eq!(error.kind, ObjectErrorKind::Changed);
            assert!(error.to_string().contains("a/b: the object has been replaced"), "{error}");
        }
        assert!(matches!(client.get("a/b", &GetCondition::NotMatching(first)).unwrap(), GetOutcome::Object(_)));
        client.delete("a/b").unwrap();
        client.delete("a/b").unwrap();
        let error = client.get("a/b", &GetCondition::Always).unwrap_err();
        assert_eq!(error.kind, ObjectErrorKind::NotThere);
        assert!(matches!(ModelError::from(error).store_error_kind(), Some(StoreErrorKind::NotFound)));
    });
}

#[test]
fn conditions_of_writes_are_kept() {
    each_place(|client| {
        let first = client.put("a", "1", &PutCondition::Absent).unwrap();
        let error = client.put("a", "2", &PutCondition::Absent).unwrap_err();
        assert_eq!(error.kind, ObjectErrorKind::Exists);
        assert_eq!(read(client, "a").bytes, "1");
        let none = client.put("a", "2", &PutCondition::Matching(ObjectChangeTag::default())).unwrap_err();
        assert_eq!(none.kind, ObjectErrorKind::Unsupported);
        let matching = PutCondition::Matching(first);
        match client.put("a", "2", &matching) {
            Ok(_) => {
                assert_eq!(client.put("a", "3", &matching).unwrap_err().kind, ObjectErrorKind::Changed);
                assert_eq!(client.put("none", "3", &matching).unwrap_err().kind, ObjectErrorKind::Changed);
                assert_eq!(read(client, "a").bytes, "2");
            }
            Err(error) => {
                assert!(client.location_name() != "memory");
                assert_eq!(error.kind, ObjectErrorKind::Unsupported);
                assert_eq!(read(client, "a").bytes, "1");
            }
        }
    });
}

#[test]
fn of_eight_that_create_an_object_at_a_time_one_succeeds() {
    each_place(|client| {
        for round in 0..20 {
            let key = format!("race/{round}");
            let created: Vec<_> = std::thread::scope(|scope| {
                let racers: Vec<_> = (0..8u8)
                    .map(|racer| {
                        scope.spawn({
                            let key = &key;
                            move || client.put(key, vec![racer], &PutCondition::Absent)
                        })
                    })
                    .collect();
                racers.into_iter().map(|racer| racer.join().unwrap()).collect()
            });
            assert_eq!(created.iter().filter(|result| result.is_ok()).count(), 1, "round {round}: {created:?}");
            let winner = created.iter().position(Result::is_ok).unwrap();
            assert_eq!(read(client, &key).bytes, vec![winner as u8]);
        }
    });
}

#[test]
fn a_write_whose_answer_is_lost_has_succeeded() {
    for condition in [PutCondition::Always, PutCondition::Absent] {
        let client = failing(1, true);
        let tag = client.put("a", "mine", &condition).unwrap();
        assert_eq!(read(&client, "a").meta.tag, tag);
        // Somebody else's object is not taken for ours.
        assert_eq!(client.put("a", "yours", &PutCondition::Absent).unwrap_err().kind, ObjectErrorKind::Exists);
    }
    let store = FailingStore { is_done_first: true, ..FailingStore::default() };
    let store = Arc::new(store);
    let limits = RequestLimits { first_pause: Duration::from_millis(1), ..RequestLimits::default() };
    let client = ObjectClient::over("s3://bucket", store.clone(), limits);
    let first = client.put("a", "1", &PutCondition::Absent).unwrap();
    store.failures.store(1, Ordering::Relaxed);
    let second = client.put("a", "2", &PutCondition::Matching(first.clone())).unwrap();
    assert_eq!((read(&client, "a").bytes, &read(&client, "a").meta.tag), (Bytes::from("2"), &second));
    // The condition did not hold from the beginning, whatever was lost.
    store.failures.store(1, Ordering::Relaxed);
    let error = client.put("a", "3", &PutCondition::Matching(first)).unwrap_err();
    assert_eq!(error.kind, ObjectErrorKind::Changed);
}

#[test]
fn requests_are_made_again_within_bounds_and_counted() {
    let client = failing(3, false);
    client.put("a", "1", &PutCondition::Absent).unwrap();
    let counts = client.request_counts();
    assert_eq!((counts.puts, counts.retries, counts.gets), (4, 3, 0));
    let client = failing(4, false);
    let error = client.put("a", "1", &PutCondition::Absent).unwrap_err();
    assert_eq!((error.kind, client.request_counts().puts), (ObjectErrorKind::Unavailable, 4));
    assert_eq!(error.to_string(), "s3://bucket/a: the object store cannot be reached: no answer in 1 s (4 attempts)");
    assert!(matches!(ModelError::from(error).store_error_kind(), Some(StoreErrorKind::Unreachable)));
    // What cannot pass is not tried again.
    assert_eq!(client.get("none", &GetCondition::Always).unwrap_err().kind, ObjectErrorKind::NotThere);
    assert_eq!((client.request_counts().gets, client.request_counts().total_requests()), (1, 5));
    // Neither is it when the time is over.
    let hurried = failing(9, false).with_limits(RequestLimits { retry_timeout: Duration::ZERO, ..*client.limits() });
    assert!(hurried.put("a", "1", &PutCondition::Always).is_err());
    assert_eq!(hurried.request_counts().puts, 1);
}

#[test]
fn a_server_that_ignores_conditions_is_noticed() {
    let client = over(FailingStore { ignores_conditions: true, ..FailingStore::default() });
    let first = client.put("a", "1", &PutCondition::Always).unwrap();
    assert_eq!(client.get("a", &GetCondition::NotMatching(first.clone())).unwrap(), GetOutcome::NotModified);
    client.put("a", "2", &PutCondition::Always).unwrap();
    let matching = GetCondition::Matching(first);
    assert_eq!(client.get("a", &matching).unwrap_err().kind, ObjectErrorKind::Changed);
    assert_eq!(client.get_range("a", 0..1, &matching).unwrap_err().kind, ObjectErrorKind::Changed);
}

#[test]
fn ranges_are_read_by_few_requests_and_each_comes_once() {
    each_place(|client| {
        let bytes: Vec<u8> = (0..100_000u32).map(|at| (at % 251) as u8).collect();
        let tag = client.put("a", bytes.clone(), &PutCondition::Always).unwrap();
        let ranges: Vec<Range<u64>> = (0..100).map(|n| ((n * 37) % 100) * 1000).map(|at| at..at + 10).collect();
        let ranges = [ranges, vec![5..5, 99_999..100_000, 0..100_000]].concat();
        for (gap, most, requests) in [(0, 1 << 20, 1), (1000, 5010, 2)] {
            let before = client.request_counts().gets;
            let mut seen = vec![0; ranges.len()];
            let plan = RangeMergeLimits { max_gap_bytes: gap, max_bytes: most };
            let condition = GetCondition::Matching(tag.clone());
            let limits = InFlightLimits { max_requests: 3, max_bytes: 20_000 };
            let done = client.get_ranges("a", &ranges, &condition, &plan, limits, &mut |number, found| {
                let range = &ranges[number];
                assert_eq!(found, bytes[range.start as usize..range.end as usize]);
                seen[number] += 1;
                Ok::<(), ObjectError>(())
            });
            done.unwrap();
            assert!(seen.iter().all(|count| *count == 1));
            assert_eq!(client.request_counts().gets - before, requests, "{gap} {most}");
        }
        let before = client.request_counts().gets;
        let few = &ranges[..100];
        let plan = RangeMergeLimits { max_gap_bytes: 1000, max_bytes: 5010 };
        client
            .get_ranges::<ObjectError>(
                "a",
                few,
                &GetCondition::Always,
                &plan,
                InFlightLimits::default(),
                &mut |_, _| Ok(()),
            )
            .unwrap();
        assert_eq!(client.request_counts().gets - before, 17);
        // A range that is not there, and an error of whoever takes the bytes.
        let beyond = [0..10, 99_990..100_010];
        let all = GetCondition::Always;
        let near = RangeMergeLimits { max_gap_bytes: 0, max_bytes: 1 };
        let error =
            client.get_ranges::<ObjectError>("a", &beyond, &all, &near, InFlightLimits::default(), &mut |_, _| Ok(()));
        assert_eq!(error.unwrap_err().kind, ObjectErrorKind::Changed);
        let refuse = |_, _| Err(ObjectError::new(ObjectErrorKind::Other, "a", "enough"));
        let error = client.get_ranges("a", few, &all, &plan, InFlightLimits::default(), &mut { refuse });
        assert_eq!(error.unwrap_err().cause, "enough");
    });
}

#[test]
fn many_objects_are_written_read_listed_and_deleted() {
    each_place(|client| {
        let key = |n: usize| format!("many/{}/{n:04}", n % 3);
        let items = (0..2500).map(|n| PutItem { key: key(n), bytes: n.to_string().into(), ..PutItem::default() });
        let mut written = 0;
        let limits = InFlightLimits { max_requests: 8, max_bytes: 40 };
        client
            .put_many(items, limits, &mut |_, tag| {
                assert!(!tag.lacks_etag());
                written += 1;
                Ok::<(), ObjectError>(())
            })
            .unwrap();
        assert_eq!((written, client.request_counts().puts), (2500, 2500));
        let items = (0..2600).map(|n| GetItem { key: key(n), estimated_bytes: 4, ..GetItem::default() });
        let mut missing = 0;
        client
            .get_many(items, limits, &mut |number, found| {
                match found {
                    Some(GetOutcome::Object(found)) => assert_eq!(found.bytes, number.to_string()),
                    Some(GetOutcome::NotModified) => panic!("without a condition"),
                    None => missing += 1,
                }
                Ok::<(), ObjectError>(())
            })
            .unwrap();
        assert_eq!(missing, 100);
        let (mut listed, mut some) = (Vec::new(), 0);
        client
            .list_objects_recursively("many/1", &mut |entry| {
                let ListEntry::Object { key, meta } = entry else { panic!("no prefixes") };
                assert_eq!(meta.size, key.rsplit('/').next().unwrap().trim_start_matches('0').len() as u64);
                listed.push(key);
                true
            })
            .unwrap();
        assert_eq!(listed.len(), 833);
        client
            .list_objects_recursively("many", &mut |_| {
                some += 1;
                some < 10
            })
            .unwrap();
        assert_eq!(some, 10);
        client.put("many/here", "x", &PutCondition::Always).unwrap();
        let mut children = Vec::new();
        client
            .list_children("many", &mut |entry| {
                children.push(match entry {
                    ListEntry::Prefix(prefix) => prefix,
                    ListEntry::Object { key, .. } => key,
                });
                true
            })
            .unwrap();
        children.sort();
        assert_eq!(children, ["many/0", "many/1", "many/2", "many/here"]);
        client.delete_many::<ObjectError>((0..2500).map(key), limits).unwrap();
        client.list_objects_recursively("many/1", &mut |entry| panic!("{entry:?}")).unwrap();
    });
}

#[test]
fn names_that_cannot_be_are_refused() {
    each_place(|client| {
        for key in ["/a", "a/", "a//b", "../a", "a/./b", "a\nb"] {
            let error = client.put(key, "1", &PutCondition::Always).unwrap_err();
            assert_eq!(error.kind, ObjectErrorKind::InvalidInput, "{key:?}: {error}");
        }
        for key in ["a b", "ü", "100%", "%20", "a?b"] {
            client.put(key, key.to_owned(), &PutCondition::Absent).unwrap();
            assert_eq!(read(client, key).bytes, key.to_owned());
        }
    });
}

#[test]
fn options_without_a_meaning_for_a_place_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let place = ObjectStoreLocation::Folder { path: folder.path().to_owned(), is_durable: false };
    place.build_client(&ObjectOptions::default()).unwrap();
    let bucket = |cloud| ObjectStoreLocation::Bucket { cloud, bucket: "b".to_owned() };
    let region = ObjectOptions { region: "x".to_owned(), ..ObjectOptions::default() };
    let secret = ObjectOptions { endpoint: "http://u:SECRET@h".to_owned(), ..ObjectOptions::default() };
    let error =
        |place: &ObjectStoreLocation, options: &ObjectOptions| place.build_client(options).unwrap_err().to_string();
    for refused in [&place, &bucket(Cloud::Google), &bucket(Cloud::Azure)] {
        let text = error(refused, &region);
        assert!(text.contains(r#"the option "region" has no meaning"#), "{text}");
    }
    let web = ObjectStoreLocation::WebFile { url: "https://u:SECRET@host/a?sig=SECRET".to_owned() };
    assert!(error(&web, &ObjectOptions { allow_http: true, ..ObjectOptions::default() }).contains("allow_http"));
    assert_eq!(web.display_name(), "https://host/a");
    let text = error(&bucket(Cloud::S3), &secret);
    assert!(text.contains("environment") && !text.contains("SECRET"), "{text}");
}

#[test]
fn texts_of_errors_have_no_secrets_and_say_what_servers_say() {
    let source = "error sending request for url (https://host/a?sig=SECRET): refused".into();
    let error = LibraryError::Generic { store: "S3", source };
    let text = ObjectError::of_library("s3://bucket/run", &error, 1).to_string();
    assert!(text.starts_with("s3://bucket/run: ") && text.contains("(https://host/a): refused"), "{text}");
    let xml = "no: <?xml version='1'?><Error><Code>NoSuchBucket</Code><Message>not there</Message></Error>".into();
    let error = LibraryError::NotFound { path: "a".to_owned(), source: xml };
    let text = ObjectError::of_library("s3://b/a", &error, 1).to_string();
    assert_eq!(text, "s3://b/a: there is no such object: NoSuchBucket: not there");
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    let error = LibraryError::Generic { store: "LocalFileSystem", source: Box::new(full) };
    assert_eq!(ObjectError::of_library("a", &error, 1).kind, ObjectErrorKind::Full);
}

#[test]
fn a_large_file_is_written_in_parts_and_appears_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    each_place(|client| {
        for len in [0, 1000, 20_000_000] {
            let bytes: Vec<u8> = (0..len).map(|at: u32| (at % 251) as u8).collect();
            std::fs::write(&file, &bytes).unwrap();
            let key = format!("large/{len}");
            let tag = client.put_file(&key, &file, false).unwrap();
            let found = read(client, &key);
            assert!(found.bytes == bytes && found.meta.tag == tag);
            assert_eq!(client.put_file(&key, &file, false).unwrap_err().kind, ObjectErrorKind::Exists);
            client.put_file(&key, &file, true).unwrap();
        }
        let error = client.put_file("a", &folder.path().join("none"), false).unwrap_err();
        assert!(error.to_string().contains("none cannot be read"), "{error}");
    });
}
