//! What a power failure may leave of a store in files of LMDB, and what is found in it then.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;

use h5live_kv::engine::{EditBatch, Engine, LmdbEngine, LmdbOptions, ViewWithEdits};
use h5live_model::{Mode, PublishLevel};

const PAGE: usize = 4096;

fn options() -> LmdbOptions {
    LmdbOptions { map_size: 1 << 30, ..LmdbOptions::default() }
}

/// Has each key say the number of the commit.
fn commit(engine: &LmdbEngine, number: u8, publish: PublishLevel) {
    let mut edits = EditBatch::new();
    for key in 0..200u8 {
        edits.put(&[key], vec![number; 100 + usize::from(key) * 40]);
    }
    engine.commit(&edits, publish).unwrap();
}

/// The number that all keys say.
fn number(folder: &Path) -> u8 {
    let engine = LmdbEngine::open(folder, Mode::Read, &options()).unwrap();
    let view = engine.view().unwrap();
    let values: Vec<_> =
        (0..200u8).map(|key| ViewWithEdits::without_edits(&view).get(&[key]).unwrap().unwrap()).collect();
    let number = values[0][0];
    for (key, value) in values.iter().enumerate() {
        assert_eq!(*value, vec![number; 100 + key * 40], "key {key}");
    }
    number
}

/// Another start of the machine: what the file says of it is changed, with the checksum.
fn start_anew(folder: &Path) {
    let path = folder.join("h5live.durable");
    let mut bytes = fs::read(&path).unwrap();
    for slot in [0, 128 << 10] {
        let Some(head) = bytes.get(slot..slot + 60).filter(|head| head.starts_with(b"h5lvmeta")) else { continue };
        let meta = u64::from_le_bytes(head[16..24].try_into().unwrap()) as usize;
        let end = slot + 60 + meta;
        if crc32c::crc32c(&bytes[slot..end]).to_le_bytes() != bytes[end..end + 4] {
            continue;
        }
        bytes[slot + 24..slot + 60].copy_from_slice(&[b'x'; 36]);
        let checksum = crc32c::crc32c(&bytes[slot..end]).to_le_bytes();
        bytes[end..end + 4].copy_from_slice(&checksum);
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn the_state_of_the_last_durable_commit_comes_back_after_a_power_failure() {
    let folder = tempfile::tempdir().unwrap();
    let (store, seed) = (folder.path().join("run"), 7u64);
    println!("seed {seed}");
    // No state is made durable that nobody asks for.
    let rarely = LmdbOptions { growth_before_sync: 64 << 20..=64 << 20, ..options() };
    let engine = LmdbEngine::open(&store, Mode::CreateNew, &rarely).unwrap();
    commit(&engine, 1, PublishLevel::Visible);
    commit(&engine, 2, PublishLevel::Durable);
    let durable = fs::read(store.join("data.mdb")).unwrap();
    // LMDB would use the pages of earlier states again.
    (3..40).for_each(|number| commit(&engine, number, PublishLevel::Visible));
    let written = fs::read(store.join("data.mdb")).unwrap();
    drop(engine);
    assert_eq!(number(&store), 39, "the process has died: all is there");
    let mut random = seed;
    for round in 0..20 {
        // Of the pages that were written since, the disk has some; the meta pages are always among them.
        let mut found = written.clone();
        for page in (2 * PAGE..durable.len().max(written.len())).step_by(PAGE) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if (random >> 33).is_multiple_of(2) && page < found.len() {
                let end = (page + PAGE).min(found.len());
                match durable.get(page..end) {
                    Some(old) => found[page..end].copy_from_slice(old),
                    None => found[page..end].fill(0),
                }
            }
        }
        let lost = folder.path().join(format!("lost{round}"));
        fs::create_dir(&lost).unwrap();
        for file in ["h5live.writer", "h5live.durable"] {
            fs::copy(store.join(file), lost.join(file)).unwrap();
        }
        fs::write(lost.join("data.mdb"), found).unwrap();
        start_anew(&lost);
        assert_eq!(number(&lost), 2, "round {round}");
        let engine = LmdbEngine::open(&lost, Mode::Write, &options()).unwrap();
        commit(&engine, 50, PublishLevel::Visible);
        engine.close().unwrap();
        drop(engine);
        assert_eq!(number(&lost), 50, "round {round}");
    }
}

#[test]
fn a_half_written_durable_state_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("run");
    let engine = LmdbEngine::open(&store, Mode::CreateNew, &options()).unwrap();
    commit(&engine, 1, PublishLevel::Durable);
    let before = fs::read(store.join("h5live.durable")).unwrap();
    commit(&engine, 2, PublishLevel::Durable);
    drop(engine);
    let after = fs::read(store.join("h5live.durable")).unwrap();
    let changed: Vec<_> = (0..after.len()).filter(|at| before.get(*at) != Some(&after[*at])).collect();
    // Only the first half of the newest slot was written.
    let mut torn = after.clone();
    for at in &changed[changed.len() / 2..] {
        torn[*at] = before.get(*at).copied().unwrap_or_default();
    }
    fs::write(store.join("h5live.durable"), torn).unwrap();
    start_anew(&store);
    assert_eq!(number(&store), 1);
}

#[test]
fn a_file_whose_commits_never_wait_for_the_disk_stays_short() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("run");
    let options = LmdbOptions { growth_before_sync: 64 << 10..=64 << 10, ..options() };
    let engine = LmdbEngine::open(&store, Mode::CreateNew, &options).unwrap();
    // Each commit writes some 800 KiB anew.
    for number in 0..40 {
        commit(&engine, number, PublishLevel::Visible);
    }
    let bytes = fs::metadata(LmdbEngine::data_file(&store)).unwrap().len();
    // It grows by 1 MiB at most while one state is on its way to the disk.
    assert!(bytes < 24 << 20, "more than 32 MiB were written, of which 1 MiB counts; the file has {bytes} bytes");
    println!("{bytes} bytes");
    drop(engine);
    start_anew(&store);
    assert!(number(&store) < 40, "it is one of the states");
    let engine = LmdbEngine::open(&store, Mode::Write, &options).unwrap();
    commit(&engine, 100, PublishLevel::Durable);
    drop(engine);
    start_anew(&store);
    assert_eq!(number(&store), 100);
}

/// Each commit takes new pages, and those that are freed before a durable state wait for it: for days of commits to a few
/// values the file must not grow.
#[test]
fn the_file_does_not_grow_with_the_number_of_small_commits() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("run");
    let options = LmdbOptions { growth_before_sync: 64 << 10..=1 << 20, ..LmdbOptions::default() };
    let engine = LmdbEngine::open(&store, Mode::CreateNew, &options).unwrap();
    let commit = |rounds: std::ops::Range<u32>| {
        for round in rounds {
            let mut edits = EditBatch::new();
            // Now and then a large one.
            let bytes = if round % 10 == 0 { 40_000 } else { 4 };
            edits.put(b"value", vec![round as u8; bytes]);
            engine.commit(&edits, PublishLevel::Visible).unwrap();
        }
        let stat = engine.stat().unwrap();
        stat.ever_used_pages * stat.page_size
    };
    commit(0..2_000);
    let early = commit(2_000..6_000);
    let late = commit(6_000..30_000);
    // How long the disk takes for a state decides how much is written meanwhile, up to 256 KiB.
    assert!(late < 2 * early.max(4 << 20), "after 6,000 commits {early} bytes, after 30,000 {late}");
    drop(engine);
    start_anew(&store);
    // One of the states is there, as it was, and it can be written on.
    let engine = LmdbEngine::open(&store, Mode::Write, &options).unwrap();
    let bytes = ViewWithEdits::without_edits(&engine.view().unwrap()).get(b"value").unwrap().unwrap();
    assert!(matches!(bytes.len(), 4 | 40_000) && bytes.iter().all(|byte| *byte == bytes[0]));
    engine.commit(&EditBatch::new(), PublishLevel::Durable).unwrap();
}

#[test]
fn the_file_of_a_small_store_whose_commits_never_wait_for_the_disk_stays_small() {
    let folder = tempfile::tempdir().unwrap();
    let engine = LmdbEngine::open(&folder.path().join("run"), Mode::CreateNew, &LmdbOptions::default()).unwrap();
    let number = |engine: &LmdbEngine| engine.stat().unwrap().durable_state.unwrap().checkpoint_number;
    let begun = number(&engine);
    for round in 0..300u32 {
        let mut edits = EditBatch::new();
        (0..12u32).for_each(|key| edits.put(&key.to_be_bytes(), vec![round as u8; 4000]));
        engine.commit(&edits, PublishLevel::Visible).unwrap();
    }
    // This waits for a state that is on its way to the disk.
    drop(engine);
    let engine = LmdbEngine::open(&folder.path().join("run"), Mode::Read, &LmdbOptions::default()).unwrap();
    assert!(number(&engine) > begun, "some 20 MiB were written to a store of 50 KB");
}
