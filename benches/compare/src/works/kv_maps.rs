//! Maps in the key-value store, beside LMDB with the same pairs, and SQLite.

use std::path::Path;

use h5live::{File, Map};

use super::kv::{kv, remove};
use crate::lmdb::Lmdb;
use crate::work::{Done, Ground, Numbers, Unit, Work, timed};
use crate::{Error, Result, Side};

/// Pairs of one batch.
const TOGETHER: u64 = 1000;

fn pairs(ground: &Ground) -> u64 {
    ground.times(1_000_000)
}

/// A key that is not near the one before, and that no other number has.
fn key(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn text_key(number: u64) -> String {
    format!("sample/{:016x}", key(number))
}

fn open_map(path: &Path) -> Result<Map<u64, u64>> {
    Ok(File::open(&*kv(path))?.map("map")?)
}

fn put(side: Side, path: &Path, number: u64) -> Result<Done> {
    let batches = || (0..number).step_by(TOGETHER as usize).map(|first| first..number.min(first + TOGETHER));
    let (done, ()) = match side {
        Side::H5live => {
            let file = File::options().create().open(&*kv(path))?;
            let map = file.new_map::<u64, u64>().create("map")?;
            timed(number, || {
                for batch in batches() {
                    let pairs: Vec<_> = batch.map(|n| (key(n), n)).collect();
                    map.put_many(&pairs)?;
                    map.flush()?;
                }
                // Closing waits for the disk, which nobody else does here.
                Ok(file.flush()?)
            })?
        }
        _ => {
            let lmdb = Lmdb::with_checksums(path)?;
            timed(number, || {
                batches().try_for_each(|batch| {
                    lmdb.write(|to| {
                        let mut batch = batch;
                        batch.try_for_each(|n| to.put(&key(n).to_be_bytes(), &n.to_le_bytes()))
                    })
                })
            })?
        }
    };
    Ok(done)
}

fn number_of(value: Option<&[u8]>) -> u64 {
    value.and_then(|value| value.try_into().ok()).map_or(u64::MAX, u64::from_le_bytes)
}

fn get(side: Side, path: &Path, number: u64) -> Result<Done> {
    let (mut numbers, mut total) = (Numbers::new(), 0u64);
    let mut add = |value: u64| total = total.wrapping_mul(3).wrapping_add(value);
    let (done, ()) = match side {
        Side::H5live => {
            let map = open_map(path)?;
            timed(number, || {
                for _ in 0..number {
                    add(map.get(&key(numbers.below(number)))?.unwrap_or(u64::MAX));
                }
                Ok(())
            })?
        }
        _ => {
            let lmdb = Lmdb::with_checksums(path)?;
            timed(number, || {
                let state = lmdb.read()?;
                (0..number).try_for_each(|_| {
                    add(number_of(state.get(&key(numbers.below(number)).to_be_bytes())?));
                    Ok(())
                })
            })?
        }
    };
    Ok(done.sum(total))
}

fn scan(side: Side, path: &Path, number: u64) -> Result<Done> {
    let mut total = 0u64;
    let mut add = |key: u64, value: u64| total = total.wrapping_mul(3).wrapping_add(key ^ value);
    let (done, ()) = match side {
        Side::H5live => {
            let map = open_map(path)?;
            timed(number, || {
                for pair in map.iter() {
                    let (key, value) = pair?;
                    add(key, value);
                }
                Ok(())
            })?
        }
        _ => {
            let lmdb = Lmdb::with_checksums(path)?;
            timed(number, || {
                lmdb.read()?.for_each(|key, value| {
                    add(key.try_into().map_or(0, u64::from_be_bytes), number_of(Some(value)));
                })
            })?
        }
    };
    Ok(done.sum(total))
}

fn run_put(side: Side, ground: &Ground) -> Result<Done> {
    let (path, number) = (ground.file(&format!("map-{side}")), pairs(ground));
    let done = put(side, &path, number)?;
    let sum = scan(side, &path, number)?.sum;
    remove(&path)?;
    Ok(done.sum(sum))
}

fn prepare(ground: &Ground) -> Result<()> {
    [Side::H5live, Side::Bare].into_iter().try_for_each(|side| {
        let path = ground.file(&format!("map-read-{side}"));
        if path.exists() {
            remove(&path)?;
        }
        put(side, &path, pairs(ground)).map(drop)
    })
}

fn sqlite(error: rusqlite::Error) -> Error {
    Error::Other(format!("SQLite: {error}"))
}

fn prepare_texts(ground: &Ground) -> Result<()> {
    let number = pairs(ground);
    let (ours, theirs) = (ground.file("texts-h5live"), ground.file("texts-bare"));
    for path in [&ours, &theirs] {
        if path.exists() {
            remove(path)?;
        }
    }
    let file = File::options().create().open(&*kv(&ours))?;
    let map = file.new_map::<String, u64>().create("map")?;
    let all: Vec<_> = (0..number).map(|n| (text_key(n), n)).collect();
    map.put_many(&all)?;
    drop(map);
    file.close()?;
    let mut database = rusqlite::Connection::open(&theirs).map_err(sqlite)?;
    let table = "CREATE TABLE map (key TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID";
    database.execute(table, ()).map_err(sqlite)?;
    let transaction = database.transaction().map_err(sqlite)?;
    {
        let mut insert = transaction.prepare("INSERT INTO map VALUES (?1, ?2)").map_err(sqlite)?;
        for (key, value) in &all {
            insert.execute((key, *value as i64)).map_err(sqlite)?;
        }
    }
    transaction.commit().map_err(sqlite)
}

/// Looks up texts at random.
fn get_texts(side: Side, ground: &Ground) -> Result<Done> {
    let (number, times) = (pairs(ground), pairs(ground) / 4);
    let (mut numbers, mut total) = (Numbers::new(), 0u64);
    let mut add = |value: u64| total = total.wrapping_mul(3).wrapping_add(value);
    let path = ground.file(&format!("texts-{side}"));
    let (done, ()) = match side {
        Side::H5live => {
            let map: Map<String, u64> = File::open(&*kv(&path))?.map("map")?;
            timed(times, || {
                for _ in 0..times {
                    add(map.get(&*text_key(numbers.below(number)))?.unwrap_or(u64::MAX));
                }
                Ok(())
            })?
        }
        _ => {
            let database = rusqlite::Connection::open(&path).map_err(sqlite)?;
            let mut select = database.prepare("SELECT value FROM map WHERE key = ?1").map_err(sqlite)?;
            // A transaction, so that it does not lock the file for each.
            database.execute_batch("BEGIN").map_err(sqlite)?;
            timed(times, || {
                (0..times).try_for_each(|_| {
                    let value: i64 =
                        select.query_row([text_key(numbers.below(number))], |row| row.get(0)).map_err(sqlite)?;
                    add(value as u64);
                    Ok(())
                })
            })?
        }
    };
    Ok(done.sum(total))
}

pub fn works() -> Vec<Work> {
    let work = Work {
        name: "map-put",
        title: "map of 1,000,000 pairs of u64 and u64, put in batches of 1,000 (bare: LMDB with checksums)",
        unit: Unit::Things("pairs"),
        bare_aim: Some(0.6),
        sides: &[Side::H5live, Side::Bare],
        run: run_put,
        ..Work::PLAIN
    };
    let read = |run| Work { prepare, run, ..work };
    vec![
        work,
        Work {
            name: "map-get",
            title: "a million pairs got from it one by one, at random (bare: LMDB with checksums)",
            ..read(|side, ground| get(side, &ground.file(&format!("map-read-{side}")), pairs(ground)))
        },
        Work {
            name: "map-scan",
            title: "all of its pairs, in order (bare: LMDB with checksums)",
            ..read(|side, ground| scan(side, &ground.file(&format!("map-read-{side}")), pairs(ground)))
        },
        Work {
            name: "map-texts",
            title: "map of 1,000,000 texts to u64: 250,000 got at random (bare: SQLite, primary key)",
            bare_aim: Some(3.0),
            prepare: prepare_texts,
            run: get_texts,
            ..work
        },
    ]
}
