//! Large maps in key-value stores: a process goes through all pairs in little memory.
#![cfg(target_os = "linux")]

use std::process::Command;

use h5live::File;

/// The store that a process of this test reads.
const LOCATION: &str = "H5LIVE_TEST_LOCATION";
/// How many pairs there are, for long runs.
const PAIRS: &str = "H5LIVE_TEST_PAIRS";
/// Pairs that are flushed together.
const BATCH: u64 = 50_000;
/// Most memory of the process that reads, beside the pages of the store that LMDB has mapped (bytes).
const MAX_MEMORY_BYTES: u64 = 64 << 20;

fn pairs() -> u64 {
    std::env::var(PAIRS).ok().map_or(400_000, |text| text.parse().expect("a number"))
}

/// Each number has one, and their order is not that of the numbers.
fn key(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The memory that this process has for itself (bytes): no pages of files.
fn own_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

/// The part of the process that reads. It does nothing where the test has not started it.
#[test]
fn reader() {
    let Ok(location) = std::env::var(LOCATION) else { return };
    let map = File::open(&*location).unwrap().map::<u64, u64>("map").unwrap();
    let (mut count, mut sum, mut last, mut most) = (0, 0u64, None, own_memory());
    for pair in map.iter() {
        let (key, value) = pair.unwrap();
        assert!(last < Some(key), "pairs come in the order of their keys");
        (count, sum, last) = (count + 1, sum.wrapping_add(value), Some(key));
        if count % 4096 == 0 {
            most = most.max(own_memory());
        }
    }
    let expected = (0..pairs()).fold(0u64, |sum, number| sum.wrapping_add(number));
    assert_eq!((count, sum), (pairs(), expected));
    println!("{count} pairs in {} KiB", most >> 10);
    assert!(most < MAX_MEMORY_BYTES, "{most} bytes");
}

#[test]
fn all_pairs_of_a_map_are_read_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let location = format!("kv:{}", folder.path().join("run").display());
    let file = File::options().create().open(&*location).unwrap();
    let map = file.new_map::<u64, u64>().create("map").unwrap();
    for first in (0..pairs()).step_by(BATCH as usize) {
        let batch: Vec<_> = (first..pairs().min(first + BATCH)).map(|number| (key(number), number)).collect();
        map.put_many(&batch).unwrap();
        map.flush().unwrap();
    }
    drop(map);
    file.close().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(["kv_maps::reader", "--exact", "--nocapture"]).env(LOCATION, &location).output().unwrap();
    print!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
