//! A thread appends while another one closes the file. An append that has returned `Ok` is in the file; one that comes too late is
//! an error.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use h5live::model::Error as ModelError;
use h5live::{Dataset, Error, ErrorKind, File, H5Type, H5Write};

const STORES: [&str; 4] = ["", "log:", "kv:", "hsds:"];
const ROUNDS: u64 = 24;

fn is_closed(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Store(ModelError::Closed))
}

/// Appends until it is refused. Returns how many rows were accepted.
fn append_until_closed<T: H5Write>(data: &Dataset, accepted: &AtomicU64, row: impl Fn(u64) -> T) -> u64 {
    for number in 0.. {
        match data.append(&[row(number)]) {
            Ok(()) => accepted.store(number + 1, Ordering::Release),
            Err(error) => {
                assert!(is_closed(&error), "{error}");
                break;
            }
        }
    }
    accepted.load(Ordering::Acquire)
}

fn race<T: H5Type + H5Write + PartialEq + std::fmt::Debug>(store: &str, row: impl Fn(u64) -> T + Sync) {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..ROUNDS {
        let location = format!("{store}{}", folder.path().join(format!("{round}")).display());
        let file = File::create(&*location).unwrap();
        let data = file.new_dataset::<T>().unlimited_rows(&[]).chunk_shape(&[16]).create("data").unwrap();
        let accepted = AtomicU64::new(0);
        let rows = thread::scope(|threads| {
            let appending = threads.spawn(|| append_until_closed(&data, &accepted, &row));
            // It is closed in the middle of an append, at another one in each round.
            while accepted.load(Ordering::Acquire) < round {
                std::hint::spin_loop();
            }
            file.close().unwrap();
            appending.join().unwrap()
        });
        drop((data, file));
        let found: Vec<T> = File::open(&*location).unwrap().dataset("data").unwrap().read().unwrap();
        assert_eq!(found.len() as u64, rows, "{location}: rows that were accepted are in the file, and no others");
        assert!((0..).zip(&found).all(|(number, found)| *found == row(number)), "{location}");
    }
}

#[test]
fn rows_that_were_accepted_before_the_close_are_in_the_file() {
    for store in STORES {
        println!("{store:?}");
        race(store, |number| number);
        race(store, |number| format!("row {number}"));
    }
}

/// A thread makes changes, each with a number, until the file is closed. `found` counts those that are in the file.
fn race_changes(change: impl Fn(&File, u64) -> h5live::Result<()> + Sync, found: impl Fn(&File) -> u64) {
    for store in STORES {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..ROUNDS {
            let location = format!("{store}{}", folder.path().join(format!("{round}")).display());
            let file = File::create(&*location).unwrap();
            let accepted = AtomicU64::new(0);
            let last = thread::scope(|threads| {
                let changing = threads.spawn(|| {
                    for number in 1.. {
                        match change(&file, number) {
                            Ok(()) => accepted.store(number, Ordering::Release),
                            Err(error) => {
                                assert!(is_closed(&error), "{error}");
                                break;
                            }
                        }
                    }
                    accepted.load(Ordering::Acquire)
                });
                while accepted.load(Ordering::Acquire) < round {
                    std::hint::spin_loop();
                }
                file.close().unwrap();
                changing.join().unwrap()
            });
            drop(file);
            assert_eq!(found(&File::open(&*location).unwrap()), last, "{location}: the changes that were accepted");
        }
    }
}

#[test]
fn attributes_that_were_accepted_before_the_close_are_in_the_file() {
    let set = |file: &File, number: u64| file.root().set_attribute("last", &number);
    race_changes(set, |file| file.root().attribute("last").map_or(0, |last| last.read_scalar().unwrap()));
}

#[test]
fn groups_and_links_that_were_accepted_before_the_close_are_in_the_file() {
    let make = |file: &File, number: u64| match number % 2 {
        0 => file.create_group(&format!("group {number}")).map(drop),
        _ => file.root().link_soft(&format!("link {number}"), "anywhere"),
    };
    race_changes(make, |file| file.root().names().unwrap().len() as u64);
}
