//! Processes that write stores in SlateDB and are killed: in a folder, and on an S3 server of this machine. Nothing is
//! lost that was acknowledged, and no commit is seen in part.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use h5live_kv::engine::{EditBatch, Engine, KeySpan, SlateEngine, SlateLocation, SlateOptions, View, ViewWithEdits};
use h5live_model::{Mode, PublishLevel};
use h5live_objects::testing::S3Server;
use h5live_objects::{Cloud, ObjectOptions};

/// Where the process writes that a test has started: a folder, or the URL of a server.
const FOLDER: &str = "H5LIVE_TEST_FOLDER";
const ENDPOINT: &str = "H5LIVE_TEST_ENDPOINT";
/// How often writers are killed, for long runs.
const KILLS: &str = "H5LIVE_TEST_KILLS";

const KEYS: [&[u8]; 5] = [b"a", b"b", b"c", b"d", b"e"];

fn kills(default: u64) -> u64 {
    std::env::var(KILLS).ok().map_or(default, |text| text.parse().expect("a number"))
}

fn in_folder(folder: &Path, mode: Mode) -> SlateEngine {
    let location = SlateLocation::folder(folder, mode == Mode::CreateNew, true).unwrap();
    open(location, mode)
}

fn on_server(endpoint: &str, mode: Mode) -> SlateEngine {
    let (endpoint, region) = (endpoint.to_owned(), "us-east-1".to_owned());
    let options = ObjectOptions { endpoint, region, allow_http: true, ..ObjectOptions::default() };
    open(SlateLocation::cloud(Cloud::S3, "bucket", "run", &options).unwrap(), mode)
}

fn open(location: SlateLocation, mode: Mode) -> SlateEngine {
    let options = SlateOptions { poll_interval: Duration::from_millis(10), ..SlateOptions::default() };
    let session = u64::from(std::process::id()) << 32 | mode as u64;
    SlateEngine::open(location, mode, &options, session).unwrap()
}

fn commit(engine: &SlateEngine, number: u64) {
    let mut edits = EditBatch::new();
    for key in KEYS {
        edits.put(key, number.to_le_bytes().to_vec());
    }
    edits.put(format!("only {number:08}").as_bytes(), Vec::new());
    engine.commit(&edits, PublishLevel::Visible).unwrap();
}

/// The number of the last commit of a state, which has all commits up to it.
fn last_commit(view: &Arc<dyn View>) -> u64 {
    let numbers = KEYS.map(|key| {
        ViewWithEdits::without_edits(view)
            .get(key)
            .unwrap()
            .map_or(0, |value| u64::from_le_bytes(value.try_into().unwrap()))
    });
    let mut commits = 0;
    view.scan(&KeySpan::prefix(b"only "), &mut |key, _| {
        commits += 1;
        assert_eq!(key, format!("only {commits:08}").as_bytes());
        true
    })
    .unwrap();
    assert_eq!(numbers, [commits; 5], "a commit is seen in part");
    commits
}

/// The part of the process that writes until it is killed. It does nothing where no test has started it.
#[test]
fn writer() {
    let engine = match (std::env::var(FOLDER), std::env::var(ENDPOINT)) {
        (Ok(folder), _) => in_folder(Path::new(&folder), Mode::Write),
        (_, Ok(endpoint)) => on_server(&endpoint, Mode::Write),
        _ => return,
    };
    for next in last_commit(&engine.view().unwrap()) + 1.. {
        commit(&engine, next);
        println!("\nflushed {next}");
    }
}

/// Kills writers that `variable` tells where to write; `reader` has the store open.
fn kill_writers(variable: &str, place: &str, reader: &SlateEngine, kills: u64) {
    let mut last = 0;
    for kill in 0..kills {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["writer", "--exact", "--nocapture", "--test-threads=1"]).env(variable, place);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (said, flushed) = mpsc::channel();
        let listener = thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok);
            lines.filter_map(|line| line.strip_prefix("flushed ")?.parse::<u64>().ok()).for_each(|number| {
                let _ = said.send(number);
            });
        });
        // It is killed after so many flushes, wherever it is by then.
        let mut newest = last;
        for _ in 0..1 + kill * 7 % 23 {
            newest = flushed.recv().expect("the writer writes");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        listener.join().unwrap();
        newest = flushed.try_iter().last().unwrap_or(newest);
        let found = last_commit(&reader.view().unwrap());
        assert!(found >= newest, "kill {kill}: {found} of {newest} acknowledged commits");
        // The next writer may find a file of the log that this one had begun.
        assert!(found <= newest + 1, "kill {kill}: {found} after {newest}");
        last = found;
    }
    println!("{kills} writers killed, {last} commits");
}

#[test]
fn killed_writers_of_a_folder_lose_nothing_that_they_committed() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("run");
    drop(in_folder(&store, Mode::CreateNew));
    let reader = in_folder(&store, Mode::SwmrRead);
    kill_writers(FOLDER, store.to_str().unwrap(), &reader, kills(8));
    let after = in_folder(&store, Mode::Read);
    assert_eq!(last_commit(&after.view().unwrap()), last_commit(&reader.view().unwrap()));
}

#[test]
fn killed_writers_on_an_s3_server_lose_nothing_that_they_committed() {
    let Some(server) = S3Server::start_if_available() else { return };
    server.make_bucket("bucket");
    let endpoint = server.endpoint();
    drop(on_server(&endpoint, Mode::CreateNew));
    let reader = on_server(&endpoint, Mode::SwmrRead);
    kill_writers(ENDPOINT, &endpoint, &reader, kills(8));
    let after = on_server(&endpoint, Mode::Read);
    assert_eq!(last_commit(&after.view().unwrap()), last_commit(&reader.view().unwrap()));
}
