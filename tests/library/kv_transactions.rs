//! Key-value stores that one process writes while others read: a flush of many objects is seen whole or not at all, and a
//! killed writer loses nothing that it has flushed.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use h5live::{File, StoreCheckOptions, UNLIMITED};

/// What a process is that a test has started.
const ROLE: &str = "H5LIVE_TEST_ROLE";
const LOCATION: &str = "H5LIVE_TEST_LOCATION";
/// How often writers are killed, for long runs.
const KILLS: &str = "H5LIVE_TEST_KILLS";
/// Transactions of the writer beside readers, for long runs.
const TRANSACTIONS: &str = "H5LIVE_TEST_TRANSACTIONS";

const DATASETS: [&str; 5] = ["a", "b/c", "b/d", "e", "f"];
/// Rows after which a transaction makes the datasets empty again.
const MAX_ROWS: u64 = 50;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

fn make(location: &str) {
    let file = File::options().create().open(location).unwrap();
    for name in DATASETS {
        let new = file.new_dataset::<u64>().shape(&[0]).max_shape(&[UNLIMITED]).chunk_shape(&[8]);
        new.create(name).unwrap();
    }
    file.new_dataset::<String>().shape(&[1]).create("text").unwrap().write(&["0".to_owned()]).unwrap();
    file.new_map::<u64, u64>().create("map").unwrap();
    file.close().unwrap();
}

/// Changes all objects, so that each says the number of the transaction.
fn transact(file: &File, number: u64) {
    for name in DATASETS {
        let data = file.dataset(name).unwrap();
        if data.shape().unwrap()[0] == MAX_ROWS {
            data.resize(&[0]).unwrap();
        }
        data.append(&[number]).unwrap();
    }
    file.dataset("text").unwrap().write(&[number.to_string()]).unwrap();
    let map = file.map::<u64, u64>("map").unwrap();
    map.put(&0, &number).unwrap();
    map.put(&(1 + number % 7), &number).unwrap();
    map.remove(&(1 + (number + 3) % 7)).unwrap();
    let root = file.root();
    root.new_attribute("number").write_scalar(&number).unwrap();
    let (old, new) = (format!("links/{}", number.wrapping_sub(1)), format!("links/{number}"));
    if number > 1 {
        root.unlink(&old).unwrap();
    }
    root.create_group(&new).unwrap();
    file.flush().unwrap();
}

/// The transaction whose state a file shows: that of all its objects.
fn seen(file: &File) -> Result<u64, String> {
    let text = |error: h5live::Error| format!("{error:#}");
    let number: u64 = match file.root().attribute("number") {
        Ok(attribute) => attribute.read_scalar().map_err(text)?,
        Err(_) => 0,
    };
    for name in DATASETS {
        let rows = file.dataset(name).map_err(text)?.read::<u64>().map_err(text)?;
        let begin = number.saturating_sub(number.saturating_sub(1) % MAX_ROWS);
        let wanted: Vec<u64> = if number == 0 { Vec::new() } else { (begin..=number).collect() };
        if rows != wanted {
            return Err(format!("{name} has {rows:?} in transaction {number}"));
        }
    }
    let stored = file.dataset("text").map_err(text)?.read::<String>().map_err(text)?;
    let newest = file.map::<u64, u64>("map").map_err(text)?.get(&0).map_err(text)?.unwrap_or_default();
    let linked = number == 0 || file.root().group(&format!("links/{number}")).is_ok();
    if stored != [number.to_string()] || newest != number || !linked {
        return Err(format!("transaction {number}: text {stored:?}, map {newest}, link {linked}"));
    }
    Ok(number)
}

/// The part of a process that a test has started. It does nothing where no test has.
#[test]
fn worker() {
    let (Ok(role), Ok(location)) = (std::env::var(ROLE), std::env::var(LOCATION)) else { return };
    let mut input = [0];
    match &*role {
        "writer" => {
            let file = File::options().swmr_write().open(&*location).unwrap();
            let mut next = seen(&file).unwrap() + 1;
            let end = number(TRANSACTIONS, u64::MAX);
            while next <= end {
                transact(&file, next);
                println!("\nflushed {next}");
                next += 1;
            }
            file.close().unwrap();
        }
        _ => {
            let file = File::options().swmr_read().open(&*location).unwrap();
            let (end, mut newest, mut looks) = (number(TRANSACTIONS, 1), 0, 0u64);
            println!("\nready");
            while newest < end {
                file.refresh().unwrap();
                let now = seen(&file).unwrap_or_else(|fault| panic!("{fault}"));
                assert!(now >= newest, "{now} after {newest}");
                newest = now;
                looks += 1;
            }
            println!("\nlooked {looks}");
            // The test reads what was said before it lets the process end.
            let _ = std::io::stdin().read(&mut input);
        }
    }
}

fn start(role: &str, location: &str, transactions: Option<u64>) -> (Child, BufReader<ChildStdout>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["kv_transactions::worker", "--exact", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(LOCATION, location).stdin(Stdio::piped()).stdout(Stdio::piped());
    if let Some(transactions) = transactions {
        command.env(TRANSACTIONS, transactions.to_string());
    }
    let mut child = command.spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

/// The number behind a word, in the next line that begins with it.
fn next_number(output: &mut impl BufRead, word: &str) -> Option<u64> {
    let mut lines = output.lines().map_while(Result::ok);
    lines.find_map(|line| line.strip_prefix(word).map(|rest| rest.trim().parse().unwrap_or_default()))
}

#[test]
fn no_reader_sees_a_part_of_a_flush() {
    let folder = tempfile::tempdir().unwrap();
    let location = format!("kv:{}", folder.path().join("run").display());
    make(&location);
    let transactions = number(TRANSACTIONS, 400);
    let mut readers: Vec<_> = (0..4).map(|_| start("reader", &location, Some(transactions))).collect();
    for (_, output) in &mut readers {
        next_number(output, "ready").expect("the reader begins");
    }
    let (mut writer, mut output) = start("writer", &location, Some(transactions));
    while next_number(&mut output, "flushed").is_some() {}
    assert!(writer.wait().unwrap().success());
    for (mut reader, mut output) in readers {
        let looks = next_number(&mut output, "looked").expect("the reader has seen all transactions whole");
        assert!(looks > 0);
        reader.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert!(reader.wait().unwrap().success());
    }
}

#[test]
fn a_killed_writer_loses_nothing_that_it_has_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let location = format!("kv:{}", folder.path().join("run").display());
    make(&location);
    let follower = File::options().swmr_read().open(&*location).unwrap();
    let mut last = 0;
    for kill in 0..number(KILLS, 12) {
        let (mut writer, mut output) = start("writer", &location, None);
        let (said, flushed) = mpsc::channel();
        let reader = thread::spawn(move || {
            while let Some(number) = next_number(&mut output, "flushed") {
                let _ = said.send(number);
            }
        });
        // It is killed after so many flushes, wherever it is by then.
        let mut newest = last;
        for _ in 0..1 + kill * 7 % 23 {
            newest = flushed.recv().expect("the writer writes");
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        reader.join().unwrap();
        newest = flushed.try_iter().last().unwrap_or(newest);
        follower.refresh().unwrap();
        let found = seen(&follower).unwrap_or_else(|fault| panic!("kill {kill}: {fault}"));
        assert!(found >= newest, "kill {kill}: {found} of {newest} flushed transactions");
        assert!(found <= newest + 1, "kill {kill}: {found} after {newest}");
        let report = h5live::check(&*location, StoreCheckOptions::default()).unwrap();
        let findings: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
        assert!(findings.is_empty() && report.leak_count == 0, "kill {kill}: {findings:?}, {:?}", report.leaks);
        last = found;
    }
    let file = File::open(&*location).unwrap();
    assert_eq!(seen(&file).unwrap(), last);
}
