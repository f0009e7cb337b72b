//! The room of variable-length elements that were overwritten is used again, and nobody misses them.
//!
//! libhdf5 looks at the files through the Python that `H5LIVE_PYTHON` names.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use h5live::model::FileSpaceSettings;
use h5live::{AllowedReaders, File, Mode, Options, Value};
use h5live_cache::{MemoryStorage, RecordingStorage, StorageOp, replay_operations};
use h5live_native::{NativeFile, OpenOptions};

/// Elements of the datasets.
const ELEMENTS: usize = 20;

/// The text of an element in a round. Each has another length.
fn text(round: usize, element: usize) -> String {
    format!("{round}/{element}/{}", "x".repeat((round * 7 + element * 13) % 90))
}

fn texts(round: usize) -> Vec<String> {
    (0..ELEMENTS).map(|element| text(round, element)).collect()
}

/// A file with texts that are stored in each way: chunks with and without filters, contiguous, in an attribute.
fn make(file: &File) {
    let texts = texts(0);
    let new = || file.new_dataset::<String>();
    new().shape(&[ELEMENTS as u64]).chunk_shape(&[8]).deflate(3).create("filtered").unwrap().write(&texts).unwrap();
    new().shape(&[ELEMENTS as u64]).chunk_shape(&[8]).create("chunked").unwrap().write(&texts).unwrap();
    new().create_with_data("contiguous", &texts).unwrap();
    file.root().set_attribute("text", &texts[0]).unwrap();
}

const DATASETS: [&str; 3] = ["filtered", "chunked", "contiguous"];

/// A file of the native store in memory.
fn new_file_in_memory() -> File {
    let options = OpenOptions { mode: h5live_native::Mode::Create, ..OpenOptions::default() };
    let native = NativeFile::open_storage(Arc::new(MemoryStorage::new()), &options).unwrap();
    File::with_store(Arc::new(native), "memory", Options::default()).unwrap()
}

/// Overwrites everything by the texts of a round.
fn overwrite(file: &File, round: usize) {
    overwrite_datasets(file, round);
    file.root().set_attribute("text", &text(round, 0)).unwrap();
}

/// Overwrites the elements of the datasets by the texts of a round.
fn overwrite_datasets(file: &File, round: usize) {
    let texts = texts(round);
    for name in DATASETS {
        let data = file.dataset(name).unwrap();
        match round % 3 {
            0 => data.write(&texts).unwrap(),
            1 => {
                data.write_slice(..7, &texts[..7]).unwrap();
                let values: Vec<_> = texts[7..].iter().map(|text| Value::Text(text.clone())).collect();
                data.write_values(7.., &values).unwrap();
            }
            _ => texts
                .iter()
                .enumerate()
                .for_each(|(at, text)| data.write_slice(at, std::slice::from_ref(text)).unwrap()),
        }
    }
}

fn check(file: &File, round: usize) {
    for name in DATASETS {
        assert_eq!(file.dataset(name).unwrap().read::<String>().unwrap(), texts(round), "{name} of round {round}");
    }
    assert_eq!(file.root().attribute("text").unwrap().read_scalar::<String>().unwrap(), text(round, 0));
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

/// Has h5py read the texts of a round, write others, and read these.
fn h5py_reads_and_writes(path: &Path, round: usize) {
    let Some(python) = h5live_test_support::python() else { return };
    let program = "import sys, h5py\n\
        path, texts = sys.argv[1], sys.argv[2:]\n\
        others = ['other ' + text for text in texts]\n\
        with h5py.File(path, 'r+') as file:\n\
        \x20   for name in ('filtered', 'chunked', 'contiguous'):\n\
        \x20       assert list(file[name].asstr()[...]) == texts, name\n\
        \x20       for turn in range(50):\n\
        \x20           file[name][...] = others\n\
        \x20   assert file.attrs['text'] == texts[0]\n\
        \x20   file.attrs['text'] = others[0]\n\
        with h5py.File(path) as file:\n\
        \x20   for name in ('filtered', 'chunked', 'contiguous'):\n\
        \x20       assert list(file[name].asstr()[...]) == others, name\n\
        \x20   assert file.attrs['text'] == others[0]\n";
    let done = Command::new(python).args(["-c", program]).arg(path).args(texts(round)).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    h5live_checker::file::check_path(path).unwrap().expect_clean();
}

#[test]
fn a_file_whose_strings_are_overwritten_ten_thousand_times_does_not_grow() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("texts.h5");
    let file = File::create(&path).unwrap();
    make(&file);
    let (mut early, rounds) = (0, 500);
    for round in 1..=rounds {
        overwrite(&file, round);
        if round % 5 == 0 {
            file.flush().unwrap();
        }
        if round == 100 {
            early = size(&path);
        }
        if round % 100 == 0 {
            check(&file, round);
        }
    }
    assert!(rounds * ELEMENTS >= 10_000);
    let late = size(&path);
    assert!(late <= early + early / 4, "{late} bytes after {rounds} rounds, {early} after 100");
    file.close().unwrap();
    assert!(size(&path) < 200_000, "{} bytes", size(&path));
    check(&File::open(&path).unwrap(), rounds);
    h5live_checker::file::check_path(&path).unwrap().expect_clean();
    h5py_reads_and_writes(&path, rounds);
}

#[test]
fn a_file_that_is_not_flushed_does_not_grow_either() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("texts.h5");
    let file = File::create(&path).unwrap();
    let data = file.new_dataset::<String>().create_with_data("texts", &texts(0)).unwrap();
    for round in 1..2000 {
        data.write(&texts(round)).unwrap();
    }
    assert_eq!(data.read::<String>().unwrap(), texts(1999));
    drop(data);
    file.close().unwrap();
    assert!(size(&path) < 1 << 20, "{} bytes of {} that were written", size(&path), 2000 * ELEMENTS * 60);
}

/// The file keeps a list of its free space: otherwise no session knows what an earlier one has left.
#[test]
fn sessions_that_overwrite_strings_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("texts.h5");
    let space = FileSpaceSettings { persist: true, ..FileSpaceSettings::default() };
    let file = File::options().create().file_space(space).open(&path).unwrap();
    make(&file);
    file.close().unwrap();
    let mut early = 0;
    for round in 1..60 {
        let file = File::options().write().open(&path).unwrap();
        overwrite(&file, round);
        file.close().unwrap();
        check(&File::open(&path).unwrap(), round);
        if round == 10 {
            early = size(&path);
        }
    }
    assert!(size(&path) <= early + 8192, "{} bytes, {early} after ten sessions", size(&path));
    h5live_checker::file::check_path(&path).unwrap().expect_clean();
    h5py_reads_and_writes(&path, 59);
}

#[test]
fn a_smaller_extent_gives_its_strings_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("texts.h5");
    let file = File::create(&path).unwrap();
    let data = file.new_dataset::<String>().unlimited_rows(&[]).chunk_shape(&[8]).create("texts").unwrap();
    let mut early = 0;
    for round in 0..300 {
        data.resize(&[3]).unwrap();
        data.append(&texts(round)).unwrap();
        file.flush().unwrap();
        let kept = data.read_slice::<String>(3..).unwrap();
        assert_eq!(kept, texts(round));
        if round == 50 {
            early = size(&path);
        }
    }
    assert!(size(&path) <= early + early / 4, "{} bytes, {early} after 50 rounds", size(&path));
    drop(data);
    file.close().unwrap();
    h5live_checker::file::check_path(&path).unwrap().expect_clean();
}

#[test]
fn a_string_that_a_fill_value_or_another_element_leads_to_stays() {
    let file = new_file_in_memory();
    let data = file.new_dataset::<String>().shape(&[10]).chunk_shape(&[10]).fill("none").create("filled").unwrap();
    for round in 0..50 {
        data.write_slice(round % 9, &[text(round, 1)]).unwrap();
        file.flush().unwrap();
    }
    assert_eq!(data.read_slice::<String>(9..).unwrap(), ["none"]);
    // Elements that are copied as they are stored share their texts.
    let stored = data.read_raw(0..1).unwrap();
    data.write_raw(9..10, &stored).unwrap();
    let shared = data.read_slice::<String>(9..).unwrap();
    for round in 0..50 {
        data.write_slice(0, &[text(round, 2)]).unwrap();
        file.flush().unwrap();
    }
    assert_eq!(data.read_slice::<String>(9..).unwrap(), shared);
}

/// Whenever the writer dies, whatever part of its last write is there: each element has the text of the last flush or
/// that of the round after it.
#[test]
fn a_writer_that_dies_loses_no_string() {
    let storage = RecordingStorage::new(MemoryStorage::new());
    let options = OpenOptions { mode: h5live_native::Mode::Create, ..OpenOptions::default() };
    let native = NativeFile::open_storage(Arc::new(storage.clone()), &options).unwrap();
    let file = File::with_store(Arc::new(native), "recorded", Options::default()).unwrap();
    make(&file);
    file.flush().unwrap();
    for round in 1..12 {
        storage.log_mark(round.to_string());
        // With an attribute, the flush is atomic.
        overwrite_datasets(&file, round);
        file.flush().unwrap();
    }
    let operations = storage.log();
    let (mut image, mut last) = (Vec::new(), None);
    for operation in &operations {
        if let StorageOp::Mark(round) = operation {
            last = Some(round.parse::<usize>().unwrap() - 1);
        }
        if let (StorageOp::Write { at, bytes }, Some(last)) = (operation, last) {
            // The system copies whole pages.
            let first = 4096 - *at as usize % 4096;
            for cut in (first..bytes.len()).step_by(4096) {
                let mut torn = image.clone();
                let part = StorageOp::Write { at: *at, bytes: bytes[..cut].to_vec() };
                replay_operations(&mut torn, [&part]).unwrap();
                check_recovered(torn, last);
            }
        }
        replay_operations(&mut image, [operation]).unwrap();
        if let Some(last) = last {
            check_recovered(image.clone(), last);
        }
    }
    drop(file);
}

fn check_recovered(image: Vec<u8>, last: usize) {
    let options = OpenOptions { mode: h5live_native::Mode::Write, ..OpenOptions::default() };
    let native = NativeFile::open_storage(Arc::new(MemoryStorage::from(image)), &options).unwrap();
    let file = File::with_store(Arc::new(native), "recovered", Options::default()).unwrap();
    for name in DATASETS {
        let found = file.dataset(name).unwrap().read::<String>().unwrap();
        for (element, found) in found.iter().enumerate() {
            let is_right = [last, last + 1].iter().any(|round| *found == text(*round, element));
            assert!(is_right, "{name}[{element}] after round {last}: {found}");
        }
    }
}

/// Threads of the writer's process read while others write: they see the text of some round. Chunks with filters, which
/// move when they are written, are another matter.
#[test]
fn other_threads_see_no_string_that_was_never_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = File::create(folder.path().join("texts.h5")).unwrap();
    make(&file);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let kept = file.root().attribute("text").unwrap();
                while !stop.load(Ordering::Relaxed) {
                    for name in ["chunked", "contiguous"] {
                        let found = file.dataset(name).unwrap().read::<String>().unwrap();
                        found.iter().enumerate().for_each(|(at, found)| check_text(found, at));
                    }
                    check_text(&file.root().attribute("text").unwrap().read_scalar::<String>().unwrap(), 0);
                    check_text(&kept.read_scalar::<String>().unwrap(), 0);
                }
            });
        }
        for round in 1..200 {
            overwrite(&file, round);
            file.flush().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    check(&file, 199);
}

/// A text of any round.
fn check_text(found: &str, element: usize) {
    let round = found.split('/').next().and_then(|round| round.parse().ok());
    assert_eq!(round.map(|round| text(round, element)).as_deref(), Some(found), "element {element}");
}

/// A follower sees the text of some round, even if it has read long ago where the text is.
#[test]
fn a_follower_of_a_live_file_sees_no_string_that_was_never_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("texts.h5");
    let grace = Duration::from_secs(1);
    let file = File::options().create().readers(AllowedReaders::H5live).reuse_grace(grace).open(&path).unwrap();
    make(&file);
    for round in 1..20 {
        overwrite(&file, round);
        file.flush().unwrap();
    }
    // Of these, some wait to be removed.
    overwrite(&file, 20);
    file.start_swmr().unwrap();
    let reader = File::options().mode(Mode::SwmrRead).open(&path).unwrap();
    let data = reader.dataset("chunked").unwrap();
    let stored = data.read_raw(..).unwrap();
    let end = Instant::now() + 2 * grace;
    for round in 21.. {
        if Instant::now() > end {
            break;
        }
        overwrite(&file, round);
        file.flush().unwrap();
        std::thread::sleep(Duration::from_millis(10));
        data.refresh().unwrap();
        data.read::<String>().unwrap().iter().enumerate().for_each(|(at, found)| check_text(found, at));
        let old = h5live::Value::decode_all(&data.datatype().unwrap(), &stored, Some(reader.store())).unwrap();
        for (at, value) in old.iter().enumerate() {
            assert_eq!(value.text(), Some(&*text(20, at)), "as it was when the element was read");
        }
    }
    file.close().unwrap();
}
