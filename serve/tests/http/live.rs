//! Files that are written while they are served.

use std::sync::atomic::{AtomicBool, Ordering};

use h5live::File;
use serde_json::json;

use crate::client::{Served, make, request};

#[test]
fn each_request_sees_what_was_flushed_before_it() {
    let served = Served::new();
    let file = File::create(served.file("a.h5")).unwrap();
    let rows = file.new_dataset::<u32>().unlimited_rows(&[2]).chunk_shape(&[4, 2]).create("rows").unwrap();
    file.start_swmr().unwrap();
    for n in 0..20u32 {
        rows.append(&[n, n * n]).unwrap();
        rows.flush().unwrap();
        let shape = served.json("/meta?file=a.h5&path=/rows")["shape"].clone();
        assert_eq!(shape, json!([n + 1, 2]));
        assert_eq!(served.json("/data?file=a.h5&path=/rows&selection=-1"), json!([n, n * n]));
    }
    file.set_attribute("state", "running").unwrap();
    file.new_dataset::<u8>().create("new").unwrap();
    file.flush().unwrap();
    assert_eq!(served.json("/attr?file=a.h5"), json!({ "state": "running" }));
    assert_eq!(served.json("/meta?file=a.h5&path=/new")["kind"], "dataset");
    let entry = &served.json("/api/files")["entries"][0];
    assert_eq!((&entry["name"], &entry["writer"]["state"]), (&json!("a.h5"), &json!("writing")));
    file.close().unwrap();
    assert_eq!(served.json("/meta?file=a.h5&path=/rows")["shape"], json!([20, 2]));
    assert_eq!(served.json("/api/files")["entries"][0]["writer"]["state"], "closed");
}

#[test]
fn a_file_at_rest_can_be_written_and_replaced() {
    let served = Served::new();
    let fill = |value: u8| move |file: &File| file.new_dataset::<u8>().create("data")?.write_scalar(&value);
    make(&served.file("a.h5"), fill(1));
    assert_eq!(served.json("/data?file=a.h5&path=/data"), json!(1));
    // The session of the request ends by itself, and lets the writer in.
    let writer = loop {
        match File::options().write().open(served.file("a.h5")) {
            Err(error) if error.is_in_use() => std::thread::yield_now(),
            opened => break opened.unwrap(),
        }
    };
    writer.dataset("data").unwrap().write_scalar(&2u8).unwrap();
    writer.close().unwrap();
    assert_eq!(served.json("/data?file=a.h5&path=/data"), json!(2));
    make(&served.file("new.h5"), fill(3));
    std::fs::rename(served.file("new.h5"), served.file("a.h5")).unwrap();
    assert_eq!(served.json("/data?file=a.h5&path=/data"), json!(3));
    std::fs::remove_file(served.file("a.h5")).unwrap();
    served.refused("/data?file=a.h5&path=/data", 404, "File not found!");
}

#[test]
fn a_writer_that_lets_nobody_read_is_told() {
    let served = Served::new();
    let file = File::create(served.file("a.h5")).unwrap();
    let answer = served.get("/meta?file=a.h5");
    assert_eq!((answer.status, &*answer.headers["retry-after"]), (503, "1"));
    drop(file);
}

#[test]
fn the_number_of_the_publication_comes_with_each_answer() {
    let served = Served::new();
    let file = File::options().create().publication_counter("/").open(served.file("a.h5")).unwrap();
    let rows = file.new_dataset::<u32>().unlimited_rows(&[]).create("rows").unwrap();
    file.start_swmr().unwrap();
    rows.append(&[1]).unwrap();
    file.flush().unwrap();
    let number = || served.get("/meta?file=a.h5").headers["h5live-publication"].parse::<u64>().unwrap();
    let first = number();
    rows.append(&[2]).unwrap();
    file.flush().unwrap();
    assert_eq!(number(), first + 1);
}

#[test]
fn clients_of_a_growing_dataset_never_see_a_row_that_is_not_final() {
    let served = Served::new();
    let file = File::create(served.file("a.h5")).unwrap();
    let rows = file.new_dataset::<u64>().unlimited_rows(&[3]).chunk_shape(&[5, 3]).deflate(1).create("rows").unwrap();
    file.start_swmr().unwrap();
    let (is_over, address) = (AtomicBool::new(false), served.server.address());
    let read = || {
        let mut seen = 0;
        while !is_over.load(Ordering::Acquire) {
            let answer = request(address, "GET", "/data?file=a.h5&path=/rows&format=bin", &[]);
            assert_eq!(answer.status, 200, "{}", answer.text());
            let numbers: Vec<_> =
                answer.body.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect();
            assert!(numbers.len() % 3 == 0 && numbers.len() >= seen, "{} after {seen}", numbers.len());
            seen = numbers.len();
            for (n, row) in numbers.chunks(3).enumerate() {
                assert_eq!(row, [n as u64, n as u64 + 1, n as u64 * 7 + 1]);
            }
        }
        seen
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..4).map(|_| scope.spawn(read)).collect();
        for n in 0..300u64 {
            rows.append(&[n, n + 1, n * 7 + 1]).unwrap();
            rows.flush().unwrap();
        }
        is_over.store(true, Ordering::Release);
        assert!(readers.into_iter().all(|reader| reader.join().unwrap() <= 900));
    });
    assert_eq!(served.get("/data?file=a.h5&path=/rows&format=bin").body.len(), 300 * 24);
}
