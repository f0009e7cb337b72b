//! Writers that are killed, again and again, beside processes that read all the time: what was committed is there, nothing
//! leads to nothing, and nothing goes back.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use h5live_model::Mode;
use h5live_objects::testing::{FaultyProxy, ProxyFaults, S3Server};
use h5live_objects::{GetCondition, GetOutcome, ObjectClient, PutCondition};

use crate::processes::{client_of_test, start_part};
use crate::steps::{StepReader, StepWriter};
use crate::{BUCKET, DOMAIN, client, long_lease, objects, open, with_lease};

/// How often writers are killed, for long runs.
const KILLS: &str = "H5LIVE_TEST_KILLS";
const DEFAULT_KILLS: u64 = 12;
const READERS: usize = 4;
/// A writer is killed after so many requests at most. A step has about ten.
const MAX_REQUESTS_OF_WRITER: u64 = 61;

/// Becomes true at the end of the input: when the test that has started this process lets it end, or has ended itself.
fn end_of_input() -> Arc<AtomicBool> {
    let is_ended = Arc::new(AtomicBool::new(false));
    let flag = is_ended.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        flag.store(true, Ordering::Relaxed);
    });
    is_ended
}

/// The part of the process that writes until it is killed. It does nothing where no test has started it.
#[test]
fn writer() {
    let Some(client) = client_of_test() else { return };
    let is_ended = end_of_input();
    let store = open(&client, DOMAIN, Mode::Write, &with_lease(Duration::from_secs(600), true));
    let writer = StepWriter::new(store.unwrap()).unwrap();
    let begin = writer.next().unwrap();
    println!("\nopened {begin}");
    for number in begin.. {
        if is_ended.load(Ordering::Relaxed) {
            break;
        }
        writer.step(number).unwrap();
        println!("\ndid {number}");
    }
}

/// The part of a process that reads until its input ends. It does nothing where no test has started it.
#[test]
fn reader() {
    let Some(client) = client_of_test() else { return };
    let is_ended = end_of_input();
    let mut reader = StepReader::open(&client, 0).unwrap();
    loop {
        // The last look begins after the end.
        let is_last = is_ended.load(Ordering::Relaxed);
        if let Err(fault) = reader.look() {
            return println!("\nwrong {fault}");
        }
        if is_last {
            break;
        }
    }
    println!("\nread {} {:?}", reader.found.rows, reader.found);
}

/// The rest of what a process has said, by its first words.
fn said(process: &mut Child) -> Vec<(String, String)> {
    let mut text = String::new();
    process.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let words = ["opened ", "did ", "wrong ", "read "];
    let lines = text.lines().filter(|line| words.iter().any(|word| line.starts_with(word)));
    lines.filter_map(|line| line.split_once(' ')).map(|(word, rest)| (word.to_owned(), rest.to_owned())).collect()
}

/// Lets a writer make so many requests, and kills it. Returns what it has said when the server has answered all of them.
fn kill_writer(proxy: &FaultyProxy, requests: u64) -> Vec<(String, String)> {
    let until = proxy.request_count() + requests;
    let mut writer = start_part("kills::writer", &proxy.endpoint(), &[]);
    while proxy.request_count() < until {
        assert!(writer.try_wait().unwrap().is_none(), "a writer has ended: {:?}", said(&mut writer));
        std::thread::sleep(Duration::from_millis(1));
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
    proxy.wait_for_all_disconnects().unwrap();
    said(&mut writer)
}

/// The rows of a domain that nobody writes, of which everything from a row on is read.
fn rows_at_rest(client: &ObjectClient, first: u64) -> u64 {
    let mut reader = StepReader::open(client, first).unwrap();
    assert_eq!(reader.look(), Ok(()));
    reader.found.rows
}

#[test]
fn killed_writers_lose_nothing_that_they_committed_and_show_nothing_else() {
    let Some(server) = S3Server::start_if_available() else { return };
    server.make_bucket(BUCKET);
    let client = client(&server.client_options());
    StepWriter::create_domain(&client).unwrap();
    let proxy = FaultyProxy::start(server.address(), ProxyFaults::default()).unwrap();
    let kills = std::env::var(KILLS).ok().map_or(DEFAULT_KILLS, |text| text.parse().expect("a number"));
    let mut readers: Vec<Child> = (0..READERS).map(|_| start_part("kills::reader", &server.endpoint(), &[])).collect();
    let (mut rows, mut within_steps) = (0, 0);
    for kill in 0..kills {
        let words = kill_writer(&proxy, 1 + kill * 7 % MAX_REQUESTS_OF_WRITER);
        let numbers: Vec<u64> = words.iter().map(|(_, number)| number.parse().unwrap()).collect();
        // It goes on where the one before has ended, and says each step that it has done.
        let expected = std::iter::once(rows).chain(rows..).take(numbers.len());
        assert!(numbers.iter().copied().eq(expected), "kill {kill}: {words:?} after {rows} rows");
        let done = rows + numbers.len().saturating_sub(1) as u64;
        let found = rows_at_rest(&client, rows);
        assert!((done..=done + 1).contains(&found), "kill {kill}: {found} rows, {done} steps were done");
        (rows, within_steps) = (found, within_steps + u64::from(found > done));
        for reader in &mut readers {
            assert!(reader.try_wait().unwrap().is_none(), "a reader has ended: {:?}", said(reader));
        }
    }
    assert_eq!(rows_at_rest(&client, 0), rows);
    println!("{kills} writers killed, {within_steps} of them before they said what was done; {rows} rows");
    readers.iter_mut().for_each(|reader| drop(reader.stdin.take()));
    for (number, mut reader) in readers.into_iter().enumerate() {
        let words = said(&mut reader);
        assert!(reader.wait().unwrap().success());
        let [(word, text)] = words.as_slice() else { panic!("reader {number}: {words:?}") };
        println!("reader {number}: {word} {text}");
        assert!(
            word == "read" && text.starts_with(&format!("{rows} ")),
            "reader {number} of {rows} rows: {word} {text}"
        );
    }
}

/// All objects with their bytes.
fn snapshot(client: &ObjectClient) -> BTreeMap<String, Vec<u8>> {
    let bytes = |key: &str| match client.get(key, &GetCondition::Always).unwrap() {
        GetOutcome::Object(found) => found.bytes.to_vec(),
        GetOutcome::NotModified => panic!("without a condition"),
    };
    objects(client).into_iter().map(|(key, _)| (key.clone(), bytes(&key))).collect()
}

/// What a reader says of a domain of nine steps, of which `damage` changes an object. It gets the objects as they were
/// before the last step, and the folders of the rows, the number of steps, and a dataset that a step has made.
fn fault_after(damage: impl Fn(&ObjectClient, &BTreeMap<String, Vec<u8>>, [&str; 3])) -> String {
    let client = ObjectClient::memory();
    StepWriter::create_domain(&client).unwrap();
    let store = open(&client, DOMAIN, Mode::Write, &long_lease()).unwrap();
    let writer = StepWriter::new(store).unwrap();
    let mut reader = StepReader::open(&client, 0).unwrap();
    let (mut step, mut before) = (0, BTreeMap::new());
    while step < 9 {
        before = snapshot(&client);
        writer.step(step).unwrap();
        step += 1;
        assert_eq!(reader.look(), Ok(()));
    }
    let folder_with = |chunk: &str, others: &[&str]| {
        let folders = before.keys().filter_map(|key| key.strip_suffix(chunk));
        folders.into_iter().find(|folder| !others.contains(folder)).unwrap()
    };
    let rows = folder_with("/7", &[]);
    let made = folder_with("/1", &[rows]);
    let with_two: Vec<&str> = before.keys().filter_map(|key| key.strip_suffix("/1")).collect();
    let steps = folder_with("/0", &with_two);
    damage(&client, &before, [rows, steps, made]);
    reader.look().unwrap_err()
}

#[test]
fn the_reader_finds_links_to_nothing_and_wrong_values_and_what_goes_back() {
    let put = |client: &ObjectClient, key: &str, bytes: &[u8]| {
        client.put(key, bytes.to_vec(), &PutCondition::Always).unwrap();
    };
    let fault = fault_after(|client, before, [rows, ..]| {
        before
            .keys()
            .filter(|key| key.starts_with(rows) && !key.ends_with("json"))
            .for_each(|key| put(client, key, &[7; 16]));
    });
    assert!(fault.starts_with("row "), "{fault}");
    let fault = fault_after(|client, before, [rows, ..]| {
        let key = format!("{rows}/.dataset.json");
        put(client, &key, &before[&key]);
    });
    assert_eq!(fault, "8 rows, 8 by the attribute, after 9");
    let fault = fault_after(|client, before, [_, steps, _]| {
        let key = format!("{steps}/0");
        put(client, &key, &before[&key]);
    });
    assert_eq!(fault, "Some(8) steps with 9 rows, after 9");
    let fault = fault_after(|client, _, [.., made]| client.delete(&format!("{made}/.dataset.json")).unwrap());
    assert!(fault.starts_with("the link ") && fault.ends_with("which is not there"), "{fault}");
    let fault = fault_after(|client, _, [.., made]| client.delete(&format!("{made}/1")).unwrap());
    assert!(fault.starts_with("dataset ") && fault.contains("None"), "{fault}");
    // The group without its last link.
    let fault = fault_after(|client, before, _| {
        let is_group = |key: &&String| key.ends_with("/.group.json") && key.contains("/g/");
        let key = before.keys().find(is_group).unwrap();
        put(client, key, &before[key]);
    });
    assert_eq!(fault, "dataset 8 with 9 to 9 rows: false");
}
