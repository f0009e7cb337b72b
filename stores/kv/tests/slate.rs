//! Key-value stores in SlateDB: in folders, and on an S3 server of this machine.

mod shared;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use h5live_kv::KvStore;
use h5live_kv::engine::{
    EditBatch, Engine, EngineError, KeySpan, LongKeyEngine, SlateEngine, SlateLocation, SlateOptions, SyncPolicy, View,
    ViewWithEdits,
};
use h5live_model::conformance::{self, StoreFixture};
use h5live_model::{Mode, Name, NewObject, ObjectScope, ObjectSpec, PublishLevel, Store, StoreErrorKind, WatchEvent};
use h5live_objects::testing::{S3Server, has_aws_env_credentials};
use h5live_objects::{Cloud, ObjectOptions};

use self::shared::{StoreLab, folder_lab, request, session_number};

fn options() -> SlateOptions {
    SlateOptions { poll_interval: Duration::from_millis(10), ..SlateOptions::default() }
}

fn folder_engine(folder: &Path, mode: Mode) -> Result<SlateEngine, EngineError> {
    let makes = matches!(mode, Mode::Create | Mode::CreateNew);
    SlateEngine::open(SlateLocation::folder(folder, makes, false)?, mode, &options(), session_number())
}

/// A session on an engine.
fn session(engine: SlateEngine, mode: Mode) -> KvStore {
    let request = request(mode, SyncPolicy::Always.durability(), session_number());
    KvStore::open(LongKeyEngine::new(engine), &request).unwrap()
}

/// Stores in folders.
fn slate_folders() -> StoreLab<impl Fn(&str, Mode) -> KvStore> {
    folder_lab(|folder, mode| session(folder_engine(folder, mode).unwrap(), mode))
}

conformance::suite!(slate_folders());

/// Gives 200 keys a value that says a number, and one key that only this number has.
fn commit(engine: &SlateEngine, number: u64, publish: PublishLevel) -> Result<(), EngineError> {
    let mut edits = EditBatch::new();
    for key in 0..200u8 {
        edits.put(&[key, 1], number.to_le_bytes().repeat(1 + usize::from(key)));
    }
    edits.put(format!("only {number:04}").as_bytes(), Vec::new());
    engine.commit(&edits, publish)
}

/// The number that all keys of a state say; each way of reading it says the same.
fn number(view: &Arc<dyn View>) -> u64 {
    let state = ViewWithEdits::without_edits(view);
    let mut scanned = Vec::new();
    view.scan(&KeySpan::prefix(&[7]), &mut |key, value| {
        scanned.push((key.to_vec(), value.to_vec()));
        true
    })
    .unwrap();
    let (key, value) = scanned.pop().unwrap();
    assert!(scanned.is_empty() && key == [7, 1]);
    let number = u64::from_le_bytes(value[..8].try_into().unwrap());
    for key in 0..200u8 {
        let value = state.get(&[key, 1]).unwrap().unwrap();
        assert_eq!(value, number.to_le_bytes().repeat(1 + usize::from(key)), "key {key}");
    }
    let mut commits = Vec::new();
    view.scan(&KeySpan::prefix(b"only "), &mut |key, _| {
        commits.push(String::from_utf8_lossy(key).into_owned());
        true
    })
    .unwrap();
    assert_eq!(commits.last(), Some(&format!("only {number:04}")));
    number
}

#[test]
fn a_reader_sees_each_commit_whole_and_its_states_stay() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("run");
    let writer = folder_engine(&store, Mode::CreateNew).unwrap();
    commit(&writer, 1, PublishLevel::Visible).unwrap();
    let reader = folder_engine(&store, Mode::SwmrRead).unwrap();
    let mut watch = reader.watch().unwrap();
    let mut states = vec![reader.view().unwrap()];
    for next in 2..20 {
        commit(&writer, next, PublishLevel::Visible).unwrap();
        assert_eq!(watch.wait(Duration::MAX).unwrap(), WatchEvent::Changed);
        states.push(reader.view().unwrap());
    }
    for (state, expected) in states.iter().zip(1..) {
        assert_eq!(number(state), expected);
    }
    assert!(states.windows(2).all(|pair| pair[0].version() < pair[1].version()));
    // The states stay, too, when the log is in tables and the writer has ended.
    writer.close().unwrap();
    assert_eq!(watch.wait(Duration::MAX).unwrap(), WatchEvent::Ended);
    assert!(!reader.has_writer().unwrap());
    for (state, expected) in states.iter().zip(1..) {
        assert_eq!(number(state), expected);
    }
    assert!(matches!(commit(&reader, 30, PublishLevel::Visible), Err(EngineError::ReadOnly)));
    reader.close().unwrap();
    assert_eq!(number(&folder_engine(&store, Mode::Read).unwrap().view().unwrap()), 19);
}

#[test]
fn a_reader_moves_from_the_log_to_tables() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("run");
    let writer = folder_engine(&store, Mode::CreateNew).unwrap();
    commit(&writer, 1, PublishLevel::Visible).unwrap();
    let reader = folder_engine(&store, Mode::SwmrRead).unwrap();
    let first = reader.view().unwrap();
    // That a writer closes puts all into tables. The log goes on behind them.
    for next in 2..5 {
        commit(&writer, next, PublishLevel::Visible).unwrap();
    }
    let between = reader.view().unwrap();
    writer.close().unwrap();
    let writer = folder_engine(&store, Mode::Write).unwrap();
    for next in 5..8 {
        commit(&writer, next, PublishLevel::Visible).unwrap();
        assert_eq!(number(&reader.view().unwrap()), next);
    }
    // A reader that opens the store now reads these tables.
    let late = folder_engine(&store, Mode::SwmrRead).unwrap();
    assert_eq!(number(&late.view().unwrap()), 7);
    commit(&writer, 8, PublishLevel::Visible).unwrap();
    assert_eq!(number(&late.view().unwrap()), 8);
    assert_eq!(number(&reader.view().unwrap()), 8);
    assert_eq!((number(&first), number(&between)), (1, 4));
}

#[test]
fn a_second_writer_fences_the_first_which_has_lost_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("run");
    let first = folder_engine(&store, Mode::CreateNew).unwrap();
    commit(&first, 1, PublishLevel::Visible).unwrap();
    let second = folder_engine(&store, Mode::Write).unwrap();
    let error = commit(&first, 2, PublishLevel::Visible).unwrap_err();
    assert!(matches!(error, EngineError::Fenced(_)), "{error:?}");
    assert_eq!(error.kind(), StoreErrorKind::Fenced);
    let text = error.to_string();
    assert!(text.starts_with("another writer has taken over: ") && text.contains("run: "), "{text}");
    assert_eq!(number(&second.view().unwrap()), 1, "what was acknowledged is there, and nothing else");
    commit(&second, 3, PublishLevel::Durable).unwrap();
    assert!(matches!(commit(&first, 4, PublishLevel::Durable), Err(EngineError::Fenced(_))));
    // The end of the first one does not end the second one.
    let _ = first.close();
    drop(first);
    let reader = folder_engine(&store, Mode::SwmrRead).unwrap();
    assert!(reader.has_writer().unwrap());
    commit(&second, 5, PublishLevel::Visible).unwrap();
    assert_eq!(number(&reader.view().unwrap()), 5);
    let mut commits = 0;
    reader
        .view()
        .unwrap()
        .scan(&KeySpan::prefix(b"only "), &mut |_, _| {
            commits += 1;
            true
        })
        .unwrap();
    assert_eq!(commits, 3, "the commits 1, 3 and 5");
}

#[test]
fn a_flush_of_a_session_whose_store_was_taken_over_says_so() {
    let lab = slate_folders();
    let first = lab.create();
    let root = first.session().root;
    let second = lab.open(Mode::Write);
    let spec = ObjectSpec::group();
    let (lost, kept) = (Name::from("lost"), Name::from("kept"));
    let group = |name| NewObject::linked(root, name, &spec);
    first.writer().unwrap().create(&group(&lost)).unwrap();
    let error = first.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible).unwrap_err();
    assert!(error.to_string().contains("another writer has taken over"), "{error}");
    second.writer().unwrap().create(&group(&kept)).unwrap();
    second.close().unwrap();
    let reader = lab.open(Mode::Read);
    assert!(reader.link(root, &kept).unwrap().is_some());
    assert!(reader.link(root, &lost).unwrap().is_none());
}

#[test]
fn a_writer_that_dies_has_lost_nothing_that_it_committed() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("run");
    let engine = folder_engine(&store, Mode::CreateNew).unwrap();
    (1..10).for_each(|next| commit(&engine, next, PublishLevel::Visible).unwrap());
    // It is not closed: its threads stop where they are, and its heartbeat stays.
    drop(engine);
    let reader = folder_engine(&store, Mode::SwmrRead).unwrap();
    assert!(reader.has_writer().unwrap(), "nobody knows yet that it has died");
    assert_eq!(number(&reader.view().unwrap()), 9);
    let engine = folder_engine(&store, Mode::Write).unwrap();
    assert_eq!(number(&engine.view().unwrap()), 9);
    commit(&engine, 10, PublishLevel::Visible).unwrap();
    assert_eq!(number(&reader.view().unwrap()), 10);
}

#[test]
fn readers_hear_that_a_writer_has_died() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("run");
    let options = SlateOptions { heartbeat_interval: Duration::from_millis(50), ..options() };
    let location = SlateLocation::folder(&store, true, false).unwrap();
    let writer = SlateEngine::open(location, Mode::CreateNew, &options, session_number()).unwrap();
    let reader = folder_engine(&store, Mode::SwmrRead).unwrap();
    let mut watch = reader.watch().unwrap();
    drop(writer);
    assert_eq!(watch.wait(Duration::MAX).unwrap(), WatchEvent::Ended);
    assert!(!reader.has_writer().unwrap());
}

#[test]
fn commits_that_do_not_wait_come_to_readers_later_and_a_durable_one_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("run");
    let open = |mode, sync, flush_interval| {
        let location = SlateLocation::folder(&store, true, false).unwrap();
        SlateEngine::open(location, mode, &SlateOptions { sync, flush_interval, ..options() }, session_number())
            .unwrap()
    };
    // By itself, nothing is written in the time of this test.
    let writer = open(Mode::CreateNew, SyncPolicy::DurableOnly, Duration::from_secs(3600));
    commit(&writer, 1, PublishLevel::Durable).unwrap();
    let reader = folder_engine(&store, Mode::SwmrRead).unwrap();
    commit(&writer, 2, PublishLevel::Visible).unwrap();
    assert_eq!(number(&writer.view().unwrap()), 2);
    assert_eq!(number(&reader.view().unwrap()), 1);
    commit(&writer, 3, PublishLevel::Visible).unwrap();
    writer.commit(&EditBatch::new(), PublishLevel::Durable).unwrap();
    assert_eq!(number(&reader.view().unwrap()), 3);
    writer.close().unwrap();
    let writer = open(Mode::Write, SyncPolicy::Never, Duration::from_millis(5));
    let mut watch = reader.watch().unwrap();
    commit(&writer, 4, PublishLevel::Visible).unwrap();
    assert!(matches!(writer.commit(&EditBatch::new(), PublishLevel::Durable), Err(EngineError::DurabilityDisabled)));
    assert_eq!(watch.wait(Duration::MAX).unwrap(), WatchEvent::Changed);
    assert_eq!(number(&reader.view().unwrap()), 4);
}

#[test]
fn what_is_not_there_or_is_there_already_is_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let (missing, empty, store) =
        (folder.path().join("missing"), folder.path().join("empty"), folder.path().join("run"));
    std::fs::create_dir(&empty).unwrap();
    for (at, mode) in [(&missing, Mode::Read), (&missing, Mode::Write), (&empty, Mode::SwmrRead), (&empty, Mode::Write)]
    {
        let error = folder_engine(at, mode).unwrap_err();
        assert!(matches!(error, EngineError::NoStoreAt(_)), "{error:?}");
        assert!(error.to_string().contains(&*at.to_string_lossy()), "{error}");
    }
    assert!(!missing.exists() && std::fs::read_dir(&empty).unwrap().next().is_none(), "nothing was made");
    let engine = folder_engine(&store, Mode::CreateNew).unwrap();
    folder_engine(&store, Mode::CreateNew).unwrap();
    drop(engine);
    let engine = folder_engine(&store, Mode::Write).unwrap();
    commit(&engine, 1, PublishLevel::Visible).unwrap();
    let error = folder_engine(&store, Mode::CreateNew).unwrap_err();
    assert!(matches!(error, EngineError::AlreadyExists(_)), "{error:?}");
    commit(&engine, 2, PublishLevel::Visible).unwrap();
    assert!(SlateEngine::is_at(&store) && !SlateEngine::is_at(&empty));
}

/// Stores in a bucket.
struct Bucket {
    server: S3Server,
}

impl Bucket {
    fn start() -> Option<Self> {
        let server = S3Server::start_if_available()?;
        server.make_bucket("bucket");
        Some(Bucket { server })
    }

    fn location(&self, prefix: &str) -> SlateLocation {
        SlateLocation::cloud(Cloud::S3, "bucket", prefix, &self.server.client_options()).unwrap()
    }

    fn engine(&self, prefix: &str, mode: Mode) -> Result<SlateEngine, EngineError> {
        SlateEngine::open(self.location(prefix), mode, &options(), session_number())
    }
}

/// Of eight that create an object at a time, one succeeds: SlateDB's fencing is built on this.
#[test]
fn the_s3_server_creates_an_object_once() {
    let Some(server) = S3Server::start_if_available() else { return };
    server.make_bucket("bucket");
    for round in 0..20 {
        let (server, path) = (&server, format!("/bucket/object{round}"));
        let statuses: Vec<_> = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..8u8)
                .map(|racer| {
                    let path = &path;
                    scope.spawn(move || server.put_with_header(path, "If-None-Match: *\r\n", &[racer]))
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        let created = statuses.iter().filter(|status| **status == 200).count();
        assert_eq!(created, 1, "round {round}: {statuses:?}");
    }
}

/// Runs groups of the suite on one lab.
macro_rules! run_groups {
    ($lab:expr; $($group:ident)*) => {
        $(
            println!("{}", stringify!($group));
            conformance::$group($lab);
        )*
    };
}

/// All groups, with one server.
#[test]
fn a_store_on_an_s3_server_passes_the_suite() {
    let Some(bucket) = Bucket::start() else { return };
    let lab = StoreLab::new(|name: &str, mode| session(bucket.engine(&format!("runs/{name}"), mode).unwrap(), mode));
    run_groups!(&lab; test_groups test_links test_last_link_removal test_attributes test_committed_types test_unchunked_datasets test_compact_created_with_elements test_chunks test_filtered_chunks
        test_growing_extents test_shrinking_extents test_blobs test_removed_blobs test_object_references test_region_and_standard_references test_link_renaming test_objects_created_unlinked test_creation_order
        test_committed_type_uses test_comments test_write_batches test_refused_batches test_partial_chunk_writes test_uncommitted_writes test_multi_chunk_reads test_block_reads
        test_dataset_publish_order test_commit_levels test_concurrent_writes test_unclaimed_features test_map_pairs test_refused_map_edits test_map_range_scans test_map_key_types test_map_persistence
        test_live_map_reads test_persistence test_live_reads);
}

#[test]
fn a_second_writer_on_an_s3_server_fences_the_first() {
    let Some(bucket) = Bucket::start() else { return };
    let first = bucket.engine("run", Mode::CreateNew).unwrap();
    commit(&first, 1, PublishLevel::Durable).unwrap();
    let reader = bucket.engine("run", Mode::SwmrRead).unwrap();
    let mut watch = reader.watch().unwrap();
    let second = bucket.engine("run", Mode::Write).unwrap();
    let error = commit(&first, 2, PublishLevel::Durable).unwrap_err();
    assert!(matches!(&error, EngineError::Fenced(text) if text.contains("s3://bucket/run")), "{error:?}");
    commit(&second, 3, PublishLevel::Durable).unwrap();
    assert_eq!(watch.wait(Duration::MAX).unwrap(), WatchEvent::Changed);
    assert_eq!(number(&reader.view().unwrap()), 3);
    drop(second);
    let third = bucket.engine("run", Mode::Write).unwrap();
    assert_eq!(number(&third.view().unwrap()), 3);
    let error = bucket.engine("nothing", Mode::Read).unwrap_err();
    assert!(matches!(error, EngineError::NoStoreAt(_)) && error.to_string().contains("s3://bucket/nothing"), "{error}");
}

#[test]
fn a_server_that_is_not_there_is_an_error_that_names_the_location() {
    if !has_aws_env_credentials() {
        return;
    }
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = format!("http://{address}");
    let options =
        ObjectOptions { endpoint, region: "us-east-1".to_owned(), allow_http: true, ..ObjectOptions::default() };
    let location = SlateLocation::cloud(Cloud::S3, "bucket", "run", &options).unwrap();
    let error = SlateEngine::open(location, Mode::Read, &self::options(), session_number()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("s3://bucket/run") && text.contains("cannot be reached"), "{text}");
}
