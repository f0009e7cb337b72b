//! Several recordings that have joined one log, on the command line.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::thread;

use h5live_log::local_multi_writer_files::{subfile_folder, subfile_path};

use crate::common::{new_file, run, run_with, text};

/// Rows of each recording.
const ROWS: u64 = 5_000;

#[test]
fn recordings_into_one_dataset_have_all_their_rows_in_their_order() {
    let (_folder, _path, name) = new_file();
    let joined = format!("log:{name}?join=yes");
    thread::scope(|scope| {
        for recording in 1..=3u64 {
            let joined = &joined;
            scope.spawn(move || {
                let rows = (0..ROWS).map(|row| format!("{}\n", recording * 1_000_000 + row));
                let input = std::iter::once("v\n".to_owned()).chain(rows).collect::<String>();
                text(&run_with(&["record", "--types=v=i64", joined, "rows"], input.as_bytes()));
            });
        }
    });
    let dumped = text(&run(&["dump", "--csv", &format!("log:{name}"), "rows"]));
    let mut found: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for value in dumped.lines().filter_map(|line| line.rsplit(',').next()?.trim().parse::<u64>().ok()) {
        found.entry(value / 1_000_000).or_default().push(value % 1_000_000);
    }
    for recording in 1..=3 {
        assert_eq!(found[&recording], (0..ROWS).collect::<Vec<_>>(), "recording {recording}");
    }
    assert!(text(&run(&["check", "--data", &name])).contains("sound"));
}

/// Bytes of a file with a log and its subfiles.
fn bytes(path: &std::path::Path) -> u64 {
    let subfiles = (1..).map(|number| subfile_path(path, number)).take_while(|path| path.exists());
    let files = std::iter::once(path.to_owned()).chain(subfiles);
    files.map(|path| std::fs::metadata(path).unwrap().len()).sum()
}

#[test]
fn rounds_of_joined_recordings_keep_no_more_than_their_log_and_compact_says_the_sizes() {
    const ROUNDS: u64 = 6;
    let (_folder, path, name) = new_file();
    let joined = format!("log:{name}?join=yes&min_log_size=64KiB");
    let mut sizes = Vec::new();
    for round in 0..ROUNDS {
        thread::scope(|scope| {
            for recording in 0..3 {
                let joined = &joined;
                scope.spawn(move || {
                    let input = format!("v\n{round}\n{recording}\n");
                    text(&run_with(
                        &["record", "--types=v=i64", joined, &format!("rows{recording}")],
                        input.as_bytes(),
                    ));
                });
            }
        });
        sizes.push(bytes(&path));
    }
    println!("{sizes:?}");
    // Each of the subfiles has its log, of 64 KiB, and some structures.
    assert!(sizes[ROUNDS as usize - 1] < 3 * (128 << 10), "{sizes:?}");
    let said = text(&run(&["log", "compact", &name]));
    let numbers: Vec<u64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(numbers[0] >= sizes[ROUNDS as usize - 1] && numbers[1] == bytes(&path), "{said}: {sizes:?}");
    assert!(numbers[1] < 64 << 10 && !subfile_folder(&path).exists(), "{said}");
    assert_eq!(text(&run(&["dump", "--csv", &name, "rows1"])).lines().count() as u64, 2 * ROUNDS + 1);
}
