//! Memory is bounded by options, and not by what a file says or by the size of a dataset.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use h5live::model::{self, AllocationError};
use h5live::{Copier, Error, ErrorKind, File, Options};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Elements of 8 bytes that make 32 GB.
const MANY: u64 = 4_000_000_000;

/// More than what reading and writing takes in pieces (bytes).
const LITTLE: usize = 160 << 20;

/// One test at a time counts what is allocated.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(|error| error.into_inner());
    MEMORY.reset_peak_usage();
    alone
}

#[track_caller]
fn assert_little_was_taken() {
    let peak = MEMORY.peak_usage();
    assert!(peak < LITTLE, "{peak} bytes were allocated");
}

/// Bytes that the file system has a place for.
fn stored(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().blocks() * 512
}

#[track_caller]
fn assert_over_limit(error: &Error, object: &str) {
    assert_eq!(error.object(), Some(object), "{error}");
    let text = error.to_string();
    assert!(text.contains("max_allocation"), "{text}");
}

fn with_large_dataset(path: &Path) {
    let file = File::create(path).unwrap();
    let data = file.new_dataset::<f64>().shape(&[MANY]).contiguous().create("large").unwrap();
    data.write_slice(5..6, &[1.0]).unwrap();
    data.write_slice(MANY - 1..MANY, &[2.0]).unwrap();
    file.close().unwrap();
}

fn check_large_dataset(path: &Path) {
    let file = File::open(path).unwrap();
    let data = file.dataset("large").unwrap();
    assert_eq!(data.read_slice::<f64>(4..7).unwrap(), [0.0, 1.0, 0.0]);
    assert_eq!(data.read_slice::<f64>(MANY - 2..MANY).unwrap(), [0.0, 2.0]);
    assert_eq!(data.read_slice::<f64>(MANY / 2..MANY / 2 + 1).unwrap(), [0.0]);
}

#[test]
fn one_element_of_a_large_contiguous_dataset_is_written_into_a_hole() {
    let (_alone, folder) = (alone(), tempfile::tempdir().unwrap());
    let path = folder.path().join("large.h5");
    with_large_dataset(&path);
    assert_little_was_taken();
    assert!(stored(&path) < 1 << 20, "{} bytes are stored", stored(&path));
    check_large_dataset(&path);
    assert_little_was_taken();
}

#[test]
fn early_space_of_a_large_dataset_is_a_hole() {
    let (_alone, folder) = (alone(), tempfile::tempdir().unwrap());
    let path = folder.path().join("early.h5");
    let file = File::create(&path).unwrap();
    let early = model::AllocationTime::Early;
    let data = file.new_dataset::<f64>().shape(&[MANY]).contiguous().alloc_time(early).create("large").unwrap();
    data.write_slice(5..6, &[1.0]).unwrap();
    data.write_slice(MANY - 1..MANY, &[2.0]).unwrap();
    file.close().unwrap();
    assert_little_was_taken();
    assert!(stored(&path) < 1 << 20, "{} bytes are stored", stored(&path));
    check_large_dataset(&path);
}

#[test]
fn fill_values_of_a_large_contiguous_dataset_are_written_in_pieces() {
    let (_alone, folder) = (alone(), tempfile::tempdir().unwrap());
    let path = folder.path().join("filled.h5");
    let file = File::create(&path).unwrap();
    let elements = 3 * (LITTLE as u64) / 12;
    let data = file.new_dataset::<[i32; 3]>().shape(&[elements]).fill([7, 8, 9]).contiguous().create("filled").unwrap();
    data.write_slice(elements / 2..elements / 2 + 1, &[[1, 2, 3]]).unwrap();
    file.close().unwrap();
    assert_little_was_taken();
    let data = File::open(&path).unwrap().dataset("filled").unwrap();
    for at in [0, elements / 2 - 1, elements - 2] {
        let found = data.read_slice::<[i32; 3]>(at..at + 2).unwrap();
        let second = if at == elements / 2 - 1 { [1, 2, 3] } else { [7, 8, 9] };
        assert_eq!(found, [[7, 8, 9], second], "at {at}");
    }
    assert_little_was_taken();
}

#[test]
fn space_that_held_something_else_is_cleared_in_pieces() {
    let (_alone, folder) = (alone(), tempfile::tempdir().unwrap());
    let file = File::create(folder.path().join("again.h5")).unwrap();
    let bytes = 12 << 20;
    let new = || file.new_dataset::<u8>().shape(&[bytes]).contiguous();
    let first = new().create("first").unwrap();
    first.write(&vec![255u8; bytes as usize]).unwrap();
    file.flush().unwrap();
    file.root().unlink("first").unwrap();
    drop(first);
    file.flush().unwrap();
    let second = new().create("second").unwrap();
    second.write_slice(77..78, &[1u8]).unwrap();
    file.flush().unwrap();
    let found = second.read::<u8>().unwrap();
    assert!(found.iter().enumerate().all(|(at, byte)| *byte == u8::from(at == 77)));
}

#[test]
fn a_large_contiguous_dataset_is_copied_with_its_holes() {
    let (_alone, folder) = (alone(), tempfile::tempdir().unwrap());
    let [from, to] = ["from.h5", "to.h5"].map(|name| folder.path().join(name));
    with_large_dataset(&from);
    let (old, new) = (File::open(&from).unwrap(), File::create(&to).unwrap());
    let (mut copied, mut calls) = (0, 0);
    let mut copy = Copier::new(&old, &new).progress(|bytes| {
        copied += bytes;
        calls += 1;
    });
    copy.contents(&old.root(), &new.root()).unwrap();
    copy.copy_data_and_finish().unwrap();
    new.close().unwrap();
    assert_little_was_taken();
    assert_eq!(copied, MANY * 8);
    assert!(calls < 10, "{calls} pieces were read");
    assert!(stored(&to) < 1 << 20, "{} bytes are stored", stored(&to));
    check_large_dataset(&to);
}

#[test]
fn chunks_that_nobody_wrote_are_not_there_in_a_copy_with_other_chunks() {
    let (_alone, from, to) = (alone(), File::in_memory(), File::in_memory());
    let new = || from.new_dataset::<i32>().shape(&[1_000_000, 1_000_000]).chunk_shape(&[100, 100]).fill(-1);
    let plain = new().create("plain").unwrap();
    let packed = new().deflate(1).create("packed").unwrap();
    for data in [&plain, &packed] {
        data.write_slice((500_020..500_022, 70..72), &[1, 2, 3, 4]).unwrap();
        data.write_slice((999_999, 999_999), &[5]).unwrap();
    }
    for chunk in [[64, 64], [150, 999], [1, 1000]] {
        let mut copy = Copier::new(&from, &to).chunk(&chunk);
        let name = format!("{chunk:?}");
        copy.object(&from.object("/").unwrap(), &to.root(), &name).unwrap();
        copy.copy_data_and_finish().unwrap();
        for data in ["plain", "packed"] {
            let copy = to.dataset(&format!("{name}/{data}")).unwrap();
            let found = copy.read_slice::<i32>((500_019..500_023, 70..72)).unwrap();
            assert_eq!(found, [-1, -1, 1, 2, 3, 4, -1, -1]);
            assert_eq!(copy.read_slice::<i32>((999_998..1_000_000, 999_999)).unwrap(), [-1, 5]);
            let chunks = copy.stored_chunks().unwrap().len();
            assert!(chunks <= 201, "{chunks} chunks of {chunk:?} are stored");
        }
    }
    assert_little_was_taken();
}

#[test]
fn a_chunk_behind_filters_that_is_larger_than_the_option_is_an_error() {
    let (_alone, folder) = (alone(), tempfile::tempdir().unwrap());
    let path = folder.path().join("packed.h5");
    let file = Options::default().create().open(&path).unwrap();
    let data =
        file.new_dataset::<u32>().shape(&[8 << 20]).chunk_shape(&[4 << 20]).shuffle().deflate(1).create("a").unwrap();
    data.write_slice(0..1, &[7u32]).unwrap();
    file.close().unwrap();
    let limited = |bytes| Options::default().max_allocation(bytes).write().open(&path).unwrap();
    let file = limited(1 << 20);
    let data = file.dataset("a").unwrap();
    assert_over_limit(&data.read_slice::<u32>(0..1).unwrap_err(), "/a");
    assert_over_limit(&data.write_slice(0..1, &[1u32]).unwrap_err(), "/a");
    assert_over_limit(&data.read::<u32>().unwrap_err(), "/a");
    drop((data, file));
    let data = limited(16 << 20).dataset("a").unwrap();
    assert_eq!(data.read_slice::<u32>(0..2).unwrap(), [7, 0]);
}

#[test]
fn a_part_of_a_large_chunk_in_memory_is_an_error() {
    let _alone = alone();
    let file = File::in_memory();
    let data = file.new_dataset::<f64>().shape(&[MANY]).contiguous().create("large").unwrap();
    let written = data.write_slice(5..6, &[1.0]).and_then(|()| data.flush());
    let error = written.unwrap_err();
    assert!(matches!(
        error.kind(),
        ErrorKind::Store(model::Error::Allocation(AllocationError::OverLimit { bytes: 32_000_000_000, .. }))
    ));
    assert_over_limit(&error, "/large");
    assert_little_was_taken();
}

#[test]
fn an_element_that_is_larger_than_the_option_is_an_error() {
    let _alone = alone();
    let file = File::options().create().max_allocation(256 << 20).open("mem:large-element").unwrap();
    let size = 1 << 30;
    let datatype = h5live::Datatype::Opaque(model::OpaqueType { size, tag: "large".into() });
    let data = file.root().new_dataset_with_type(datatype).shape(&[1]).create("large").unwrap();
    assert_over_limit(&data.read_raw(..).unwrap_err(), "/large");
    assert_over_limit(&data.read_values(..).unwrap_err(), "/large");
    assert_little_was_taken();
}

#[test]
fn what_lies_within_dynamic_values_is_bounded_by_the_option() {
    let (_alone, folder) = (alone(), tempfile::tempdir().unwrap());
    let path = folder.path().join("within.h5");
    let file = File::create(&path).unwrap();
    // Each value has a list of 64 more.
    let arrays = file.new_dataset::<[u8; 64]>().shape(&[100_000]).create("arrays").unwrap();
    arrays.write_slice(0..1, &[[7; 64]]).unwrap();
    let unwritten = file.new_dataset::<[u8; 64]>().shape(&[100_000]).create("unwritten").unwrap();
    let texts = file.new_dataset::<String>().shape(&[1000]).create("texts").unwrap();
    texts.write(&vec!["x".repeat(2000); 1000]).unwrap();
    drop((arrays, unwritten, texts));
    file.close().unwrap();
    let file = Options::default().max_allocation(1 << 20).read().open(&path).unwrap();
    for name in ["arrays", "unwritten", "texts"] {
        let data = file.dataset(name).unwrap();
        let error = data.read_values(..).unwrap_err();
        assert_over_limit(&error, &format!("/{name}"));
        assert!(error.is_over_max_allocation());
        assert_eq!(data.read_values(0..100).unwrap().len(), 100);
    }
    assert_little_was_taken();
    assert_eq!(file.dataset("texts").unwrap().read::<String>().unwrap().len(), 1000);
}

/// Bytes in the file, or in all files of the folder.
fn size(path: &Path) -> u64 {
    let meta = std::fs::metadata(path).unwrap();
    if !meta.is_dir() {
        return meta.len();
    }
    std::fs::read_dir(path).unwrap().map(|entry| size(&entry.unwrap().path())).sum()
}

/// Makes a dataset of one row, and deletes it, so many times in one session.
fn make_and_delete(file: &File, times: std::ops::Range<u64>) {
    for number in times {
        let name = format!("dataset {number}");
        let data = file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[16]).create(&name).unwrap();
        data.append(&[number]).unwrap();
        file.flush().unwrap();
        drop(data);
        file.unlink(&name).unwrap();
        file.flush().unwrap();
    }
}

#[test]
fn datasets_that_come_and_go_in_one_session_leave_nothing() {
    let _alone = alone();
    /// More than what a session may keep of each one that is gone (bytes).
    const LITTLE_OF_EACH: f64 = 64.0;
    // While others follow a file, what is freed is kept apart, for readers that stall: docs/live-sizes.md. A log keeps its
    // entries until it is compacted.
    for store in ["", "kv:"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let file = File::create(format!("{store}{}", path.display())).unwrap();
        make_and_delete(&file, 0..1000);
        let (memory, stored) = (MEMORY.current_usage() as f64, size(folder.path()) as f64);
        make_and_delete(&file, 1000..9000);
        let memory = (MEMORY.current_usage() as f64 - memory) / 8000.0;
        println!("{store}: {memory:.1} bytes of memory for each");
        assert!(memory < LITTLE_OF_EACH, "{store}: {memory}");
        // A key-value store takes up what was freed since its last state that is durable.
        let most = if store == "kv:" { (128 << 20) as f64 } else { stored + LITTLE_OF_EACH * 8000.0 };
        let last = size(folder.path()) as f64;
        assert!(last <= most, "{store}: {stored} bytes, then {last}");
        file.close().unwrap();
    }
}
