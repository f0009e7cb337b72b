//! Files of LMDB that were cut short: who opens them is told, and is not ended by a signal.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;

use h5live_kv::engine::{EditBatch, Engine, EngineError, KeySpan, LmdbEngine, LmdbOptions};
use h5live_model::{Mode, PublishLevel};

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn options() -> LmdbOptions {
    LmdbOptions { map_size: 1 << 30, ..LmdbOptions::default() }
}

fn pairs(engine: &LmdbEngine) -> Pairs {
    let mut found = Pairs::new();
    let view = engine.view().unwrap();
    view.scan(&KeySpan::all(), &mut |key, value| {
        found.push((key.to_vec(), value.to_vec()));
        true
    })
    .unwrap();
    found
}

/// The next number of a sequence, below `end`.
fn below(random: &mut u64, end: u64) -> u64 {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*random >> 33) % end
}

/// Writes and removes a few hundred keys; values are of some bytes, of pages, or of more.
fn edit(random: &mut u64) -> EditBatch {
    let mut edits = EditBatch::new();
    for _ in 0..below(random, 300) {
        let key = (below(random, 1000) as u32).to_be_bytes();
        match below(random, 5) {
            0 | 1 => edits.delete(&key),
            2 => edits.put(&key, vec![7; below(random, 20_000) as usize]),
            _ => edits.put(&key, vec![8; below(random, 300) as usize]),
        }
    }
    edits
}

/// A copy of a store whose file has `len` bytes.
fn cut(store: &Path, into: &Path, len: u64) {
    fs::create_dir(into).unwrap();
    for name in ["data.mdb", "h5live.writer"] {
        fs::copy(store.join(name), into.join(name)).unwrap();
    }
    fs::File::options().write(true).open(into.join("data.mdb")).unwrap().set_len(len).unwrap();
}

#[test]
fn a_file_that_was_cut_short_is_refused_and_one_that_only_lacks_free_pages_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (store, mut random) = (folder.path().join("run"), 11u64);
    println!("seed {random}");
    let (mut refused, mut read) = (0, 0);
    for round in 0..60 {
        let mode = if round == 0 { Mode::CreateNew } else { Mode::Write };
        let engine = LmdbEngine::open(&store, mode, &options()).unwrap();
        engine.commit(&edit(&mut random), PublishLevel::Durable).unwrap();
        let (whole, len) = (pairs(&engine), fs::metadata(store.join("data.mdb")).unwrap().len());
        drop(engine);
        // Right behind the meta pages, near the end, anywhere, and in the middle of a page.
        for len in [2 * 4096, len - 4096, len - 2 * 4096, below(&mut random, len), len] {
            let copy = folder.path().join("cut");
            cut(&store, &copy, len.max(2 * 4096));
            match LmdbEngine::open(&copy, Mode::Read, &options()) {
                Ok(engine) => {
                    assert!(pairs(&engine) == whole, "round {round}, {len} bytes");
                    read += 1;
                }
                Err(EngineError::DamagedPage(fault)) => {
                    assert!(fault.rule.contains("cut short"), "{fault}");
                    refused += 1;
                }
                Err(error) => panic!("round {round}, {len} bytes: {error}"),
            }
            fs::remove_dir_all(&copy).unwrap();
        }
    }
    println!("{refused} refused, {read} read");
    assert!(refused > 100, "only {refused} files were refused");
    assert!(read > 60, "no file without its last free pages was read: {read}");
}
