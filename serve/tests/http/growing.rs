//! Ten clients that read a growing dataset, by all APIs.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use h5live::File;

use crate::client::{Served, request};

/// How long it is written; `make follow-serve` has a minute.
const SECONDS: u64 = 2;
/// The variable that says it.
const SECONDS_VARIABLE: &str = "H5LIVE_FOLLOW_SECONDS";
/// Numbers of a row.
const WIDTH: usize = 3;

fn row(n: u64) -> [u64; WIDTH] {
    [n, n.wrapping_mul(0x9e37_79b9_7f4a_7c15), n * 7 + 1]
}

/// Refuses rows that are not final. Returns how many there are.
#[track_caller]
fn check_rows(numbers: &[u64], first: u64) -> u64 {
    assert!(numbers.len().is_multiple_of(WIDTH), "{} numbers are no whole rows", numbers.len());
    for (n, found) in (first..).zip(numbers.chunks(WIDTH)) {
        assert_eq!(found, row(n), "row {n}");
    }
    (numbers.len() / WIDTH) as u64
}

fn numbers_of(body: &[u8]) -> Vec<u64> {
    body.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
}

/// Asks again and again, until it is over. Each answer has all rows of those before.
fn ask_again(address: SocketAddr, path: &str, headers: &[(&str, &str)], is_over: &AtomicBool) -> u64 {
    let (mut seen, mut answers) = (0, 0);
    while !is_over.load(Ordering::Acquire) {
        let answer = request(address, "GET", path, headers);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let rows = check_rows(&numbers_of(&answer.body), 0);
        assert!(rows >= seen, "{rows} rows after {seen}");
        (seen, answers) = (rows, answers + 1);
    }
    answers
}

/// Follows from the first row to the last one.
fn follow(address: SocketAddr) -> u64 {
    let file = File::options().swmr_read().open(format!("h5live+http://{address}/a.h5")).unwrap();
    let mut seen = 0;
    for batch in file.dataset("rows").unwrap().follow::<u64>() {
        seen += check_rows(&batch.unwrap(), seen);
    }
    seen
}

/// Reads all rows again and again, by h5live's own client.
fn read_again(address: SocketAddr, is_over: &AtomicBool) -> u64 {
    let file = File::options().swmr_read().open(format!("h5live+http://{address}/a.h5")).unwrap();
    let rows = file.dataset("rows").unwrap();
    let (mut seen, mut reads) = (0, 0);
    while !is_over.load(Ordering::Acquire) {
        rows.refresh().unwrap();
        let found = check_rows(&rows.read::<u64>().unwrap(), 0);
        assert!(found >= seen, "{found} rows after {seen}");
        (seen, reads) = (found, reads + 1);
    }
    reads
}

#[test]
fn ten_clients_of_all_apis_never_see_a_row_that_is_not_final() {
    let seconds = std::env::var(SECONDS_VARIABLE).map_or(SECONDS, |text| text.parse().expect("a number of seconds"));
    let served = Served::new();
    let file = File::create(served.file("a.h5")).unwrap();
    let rows = file.new_dataset::<u64>().unlimited_rows(&[WIDTH as u64]).chunk_shape(&[50, WIDTH as u64]);
    let rows = rows.deflate(1).create("rows").unwrap();
    file.start_swmr().unwrap();
    let id = served.json("/?domain=/a.h5&h5path=/rows")["id"].as_str().unwrap().to_owned();
    let (is_over, address) = (AtomicBool::new(false), served.address());
    let grove = "/data?file=a.h5&path=/rows&format=bin";
    let hsds = format!("/datasets/{id}/value?domain=/a.h5");
    let binary = [("accept", "application/octet-stream")];
    std::thread::scope(|scope| {
        let over = &is_over;
        let ask = |path, headers| scope.spawn(move || ask_again(address, path, headers, over));
        let asking = [
            ask(grove, &[][..]),
            ask(grove, &[]),
            ask(grove, &[]),
            ask(&hsds, &binary[..]),
            ask(&hsds, &binary),
            ask(&hsds, &binary),
            scope.spawn(|| read_again(address, &is_over)),
            scope.spawn(|| read_again(address, &is_over)),
        ];
        let following = [scope.spawn(|| follow(address)), scope.spawn(|| follow(address))];
        let (begun, mut n) = (Instant::now(), 0);
        while begun.elapsed() < Duration::from_secs(seconds) {
            rows.append(&row(n)).unwrap();
            rows.flush().unwrap();
            n += 1;
            std::thread::sleep(Duration::from_millis(2));
        }
        is_over.store(true, Ordering::Release);
        file.close().unwrap();
        let asked: Vec<u64> = asking.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(asked.iter().all(|answers| *answers > 0), "{asked:?}");
        let followed = following.map(|thread| thread.join().unwrap());
        assert_eq!(followed, [n, n], "each follower sees each row");
        println!("{n} rows in {seconds} s; answers to each client: {asked:?}");
    });
}
