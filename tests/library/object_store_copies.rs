//! Copies to and from an object store: how often they wait for it.

#[cfg(unix)]
use std::path::{Path, PathBuf};
use std::sync::Arc;

use h5live::File;
use h5live::model::{AllocationLimit, Mode, NoFilters, ObjectSpec};
use h5live_hsds::engine::MemoryEngine;
use h5live_hsds::{HsdsOpenRequest, HsdsStore};

fn open(engine: MemoryEngine, mode: Mode) -> HsdsStore {
    let request = HsdsOpenRequest {
        mode,
        root: ObjectSpec::group(),
        domain: "home/run".to_owned(),
        new_domain_owner: "somebody".to_owned(),
        creates_draft: false,
        acl_user: None,
        shard_above: 0,
        cache_bytes: 128 << 20,
        max_allocation: AllocationLimit::default(),
        filter_engine: Arc::new(NoFilters),
    };
    HsdsStore::open(engine, &request).unwrap()
}

/// 500 datasets of one chunk, and one of 300 chunks.
fn fill(file: &File) {
    for number in 0..500u32 {
        let data = file.new_dataset::<u32>().shape(&[8]).chunk_shape(&[8]).create(&format!("small/{number}")).unwrap();
        data.write(&[number; 8]).unwrap();
    }
    let large = file.new_dataset::<u32>().shape(&[300, 16]).chunk_shape(&[1, 16]).create("large").unwrap();
    large.write(&(0..4800).collect::<Vec<u32>>()).unwrap();
}

fn check(file: &File) {
    for number in 0..500u32 {
        assert_eq!(file.dataset(&format!("small/{number}")).unwrap().read::<u32>().unwrap(), [number; 8]);
    }
    assert_eq!(file.dataset("large").unwrap().read::<u32>().unwrap(), (0..4800).collect::<Vec<u32>>());
}

#[test]
fn a_copy_of_many_chunks_waits_for_few_waves_of_requests() {
    let (from, engine) = (File::in_memory(), MemoryEngine::new());
    fill(&from);
    let store = open(engine.clone(), Mode::CreateNew);
    let to = File::with_store(Arc::new(store.clone()), "run", File::options().create_new()).unwrap();
    for name in ["small", "large"] {
        from.object(name).unwrap().copy_to(&to.root(), name).unwrap();
    }
    to.close().unwrap();
    let written = store.request_counts();
    assert!(written.puts <= 800 + 501 + 10, "chunks, datasets, and some groups and domains: {written:?}");
    assert!(written.waves <= 26, "{written:?}");

    let store = open(engine.reader(), Mode::Read);
    let from = File::with_store(Arc::new(store.clone()), "run", File::options()).unwrap();
    let back = File::in_memory();
    for name in ["small", "large"] {
        from.object(name).unwrap().copy_to(&back.root(), name).unwrap();
    }
    check(&back);
    let read = store.request_counts();
    assert!(read.gets <= 800 + 501 + 10, "{read:?}");
    assert!(read.waves <= 30, "the chunks of small datasets are read ahead: {read:?}");
}

/// The first file with this name below a folder.
#[cfg(unix)]
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let found = files.into_iter().find(|path| path.file_name().is_some_and(|found| found == name));
    found.or_else(|| folders.iter().find_map(|folder| find(folder, name)))
}

#[test]
#[cfg(unix)]
fn a_chunk_that_cannot_be_read_is_an_error_of_its_own_dataset_only() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let location = format!("hsds:{}", run.display());
    let file = File::options().create().open(&*location).unwrap();
    for number in 0..40u8 {
        file.new_dataset::<u8>().shape(&[4]).chunk_shape(&[4]).create(&format!("{number:02}")).unwrap();
        file.dataset(&format!("{number:02}")).unwrap().write(&[number; 4]).unwrap();
    }
    file.close().unwrap();
    // A link that leads to itself.
    let chunk = find(&run, "0").unwrap();
    std::fs::remove_file(&chunk).unwrap();
    std::os::unix::fs::symlink(&chunk, &chunk).unwrap();
    let file = File::open(&*location).unwrap();
    let data: Vec<_> = (0..40).map(|number| file.dataset(&format!("{number:02}")).unwrap()).collect();
    let mut failed = 0;
    for (number, data) in (0..).zip(&data) {
        match data.read::<u8>() {
            Ok(found) => assert_eq!(found, [number; 4]),
            Err(error) => {
                failed += 1;
                assert!(error.to_string().contains(&format!("/{number:02}")), "{error}");
            }
        }
    }
    assert_eq!(failed, 1);
}
