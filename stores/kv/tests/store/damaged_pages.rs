//! Files of LMDB in which a byte was changed: who opens them is told, or finds what was there. No byte ends the process by
//! a signal, or keeps it for ever.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use h5live_kv::engine::{EditBatch, Engine, EngineError, KeySpan, LmdbEngine, LmdbOptions};
use h5live_model::{Mode, PublishLevel};

fn options() -> LmdbOptions {
    LmdbOptions { map_size: 1 << 30, ..LmdbOptions::default() }
}

/// The next number of a sequence, below `end`.
fn below(random: &mut u64, end: u64) -> u64 {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*random >> 33) % end
}

/// Values of some bytes, of pages, or of more; a part is removed again, so that there are free pages.
fn make_store(folder: &Path, random: &mut u64) {
    let engine = LmdbEngine::open(folder, Mode::CreateNew, &options()).unwrap();
    for round in 0..4 {
        let mut edits = EditBatch::new();
        for key in 0..400u32 {
            let len = if key % 40 == 0 { below(random, 20_000) } else { below(random, 60) };
            match below(random, 3) {
                0 if round > 0 => edits.delete(&key.to_be_bytes()),
                _ => edits.put(&key.to_be_bytes(), vec![round; len as usize]),
            }
        }
        engine.commit(&edits, PublishLevel::Durable).unwrap();
    }
    engine.close().unwrap();
}

fn pairs(engine: &LmdbEngine) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, EngineError> {
    let mut found = BTreeMap::new();
    engine.view()?.scan(&KeySpan::all(), &mut |key, value| {
        found.insert(key.to_vec(), value.to_vec());
        true
    })?;
    Ok(found)
}

/// Reads everything, one by one and in order; returns how many keys there are.
fn read_all(folder: &Path) -> Result<usize, EngineError> {
    let engine = LmdbEngine::open(folder, Mode::Read, &options())?;
    engine.check_pages()?;
    let found = pairs(&engine)?;
    for key in 0..401u32 {
        engine.view()?.get(&key.to_be_bytes(), &mut |_| {})?;
    }
    Ok(found.len())
}

/// Changes and deletes keys, and writes so much that free pages are used again.
fn write_some(folder: &Path) -> Result<(), EngineError> {
    let engine = LmdbEngine::open(folder, Mode::Write, &options())?;
    for round in 0..4u8 {
        let mut edits = EditBatch::new();
        for key in 0..400u32 {
            match (key + u32::from(round)) % 4 {
                0 => edits.delete(&key.to_be_bytes()),
                1 => edits.put(&key.to_be_bytes(), vec![9; 40 * key as usize]),
                _ => {}
            }
        }
        engine.commit(&edits, PublishLevel::Visible)?;
    }
    engine.close()
}

#[test]
fn no_byte_of_the_database_ends_who_reads_or_writes_it() {
    let flips: u64 = std::env::var("H5LIVE_TEST_FLIPS").map_or(400, |flips| flips.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let (store, copy, mut random) = (folder.path().join("run"), folder.path().join("copy"), 5u64);
    make_store(&store, &mut random);
    let count = read_all(&store).unwrap();
    let data = fs::read(store.join("data.mdb")).unwrap();
    let (mut refused, mut sound) = (0, 0);
    for _ in 0..flips {
        // A third of them in the meta pages, whose bytes lead to all others, or where pages begin.
        let at = match below(&mut random, 3) {
            0 => below(&mut random, 2) * 4096 + below(&mut random, 160),
            1 => below(&mut random, data.len() as u64 / 4096) * 4096 + below(&mut random, 200),
            _ => below(&mut random, data.len() as u64),
        };
        let bit = 1 << below(&mut random, 8);
        fs::create_dir(&copy).unwrap();
        for name in ["data.mdb", "h5live.writer", "h5live.durable"] {
            fs::copy(store.join(name), copy.join(name)).unwrap();
        }
        let file = fs::File::options().write(true).open(copy.join("data.mdb")).unwrap();
        file.write_all_at(&[data[at as usize] ^ bit], at).unwrap();
        match read_all(&copy) {
            Ok(found) => {
                assert_eq!(found, count, "bit {bit:#x} of byte {at}: no key is lost without a word");
                sound += 1;
            }
            Err(_) => refused += 1,
        }
        let _ = write_some(&copy);
        fs::remove_dir_all(&copy).unwrap();
    }
    println!("{refused} refused, {sound} read");
    assert!(refused > flips / 8 && sound > flips / 8, "{refused} refused, {sound} read");
}

#[test]
fn a_meta_page_that_makes_an_earlier_state_the_newest_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (store, mut random) = (folder.path().join("run"), 5u64);
    make_store(&store, &mut random);
    let data = fs::read(store.join("data.mdb")).unwrap();
    let commit = |page: usize| u64::from_ne_bytes(*data[page * 4096 + 144..].first_chunk().unwrap());
    let older = usize::from(commit(0) > commit(1));
    let file = fs::File::options().write(true).open(store.join("data.mdb")).unwrap();
    file.write_all_at(&(commit(older) + 2).to_ne_bytes(), older as u64 * 4096 + 144).unwrap();
    let error = LmdbEngine::open(&store, Mode::Read, &options()).unwrap_err().to_string();
    assert!(error.contains("the state of one commit and the number of another one"), "{error}");
}

#[test]
fn a_large_value_that_states_other_pages_is_not_freed() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("run");
    let engine = LmdbEngine::open(&store, Mode::CreateNew, &options()).unwrap();
    let mut edits = EditBatch::new();
    edits.put(b"large", vec![1; 30_000]);
    edits.put(b"small", vec![2; 30]);
    engine.commit(&edits, PublishLevel::Durable).unwrap();
    engine.close().unwrap();
    drop(engine);
    let data = fs::read(store.join("data.mdb")).unwrap();
    let is_large = |page: &u64| data[*page as usize * 4096 + 10..].starts_with(&[4, 0, 8, 0, 0, 0]);
    let page = (2..data.len() as u64 / 4096).find(is_large).unwrap();
    let file = fs::File::options().write(true).open(store.join("data.mdb")).unwrap();
    file.write_all_at(&[200], page * 4096 + 12).unwrap();
    let engine = LmdbEngine::open(&store, Mode::Write, &options()).unwrap();
    let mut edits = EditBatch::new();
    edits.delete(b"large");
    let error = engine.commit(&edits, PublishLevel::Visible).unwrap_err().to_string();
    assert!(error.contains("how many they are"), "{error}");
    assert!(matches!(engine.check_pages(), Err(EngineError::DamagedPage(_))));
}
