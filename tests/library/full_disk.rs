//! A disk that is full for a while: the error says which rows are not written, and a later flush writes them.

use h5live::{Error, File, StoreErrorKind, UnpublishedRows};
use h5live_cache::{FaultyStorage, InjectedFailure, MemoryStorage};
use h5live_native::{Mode, NativeFile, OpenOptions};

type Faulty = FaultyStorage<MemoryStorage>;

/// A live file with an empty dataset for each kind of staging: rows in the append buffer, and chunks with filters.
fn live() -> (Faulty, File) {
    let storage = Faulty::new(MemoryStorage::new());
    let options = OpenOptions { mode: Mode::Create, ..OpenOptions::default() };
    let store = NativeFile::open_storage(std::sync::Arc::new(storage.clone()), &options).unwrap();
    let file = File::with_store(std::sync::Arc::new(store), "file", h5live::Options::default()).unwrap();
    file.new_dataset::<u32>().unlimited_rows(&[4]).create("plain").unwrap();
    file.new_dataset::<u32>().unlimited_rows(&[4]).deflate(1).create("packed").unwrap();
    file.start_swmr().unwrap();
    (storage, file)
}

fn rows(dataset: &str, rows: std::ops::Range<u64>) -> UnpublishedRows {
    UnpublishedRows { dataset: format!("/{dataset}"), rows }
}

fn expect(error: &Error, unpublished: &[UnpublishedRows], text: &str) {
    assert_eq!(error.store_error_kind(), Some(&StoreErrorKind::StorageFull), "{error}");
    assert_eq!(error.unpublished_rows(), unpublished, "{error}");
    assert!(error.to_string().ends_with(text), "{error}");
}

/// The rows of both datasets as another process finds them.
fn published(storage: &Faulty) -> [Vec<u32>; 2] {
    let storage = MemoryStorage::from(storage.inner().to_vec());
    let options = OpenOptions { mode: Mode::SwmrRead, ..OpenOptions::default() };
    let store = NativeFile::open_storage(std::sync::Arc::new(storage), &options).unwrap();
    let file = File::with_store(std::sync::Arc::new(store), "file", h5live::Options::default()).unwrap();
    ["plain", "packed"].map(|path| file.dataset(path).unwrap().read().unwrap())
}

#[test]
fn a_failed_flush_says_which_rows_are_not_written_and_the_next_one_writes_them() {
    for name in ["plain", "packed"] {
        let (storage, file) = live();
        let dataset = file.dataset(name).unwrap();
        dataset.append(&[0u32, 1, 2, 3]).unwrap();
        dataset.flush().unwrap();
        dataset.append(&[4u32, 5, 6, 7, 8, 9, 10, 11]).unwrap();
        storage.fail_after(0, InjectedFailure::StorageFull, true);
        let text = format!("(not written yet: rows 1 to 2 of /{name})");
        expect(&dataset.flush().unwrap_err(), &[rows(name, 1..3)], &text);
        // The rows are there for this process, and for no other.
        assert_eq!(dataset.read::<u32>().unwrap(), (0..12).collect::<Vec<_>>());
        expect(&file.flush().unwrap_err(), &[rows(name, 1..3)], &text);
        storage.clear_fault();
        dataset.flush().unwrap();
        let [plain, packed] = published(&storage);
        assert_eq!(if name == "plain" { plain } else { packed }, (0..12).collect::<Vec<_>>());
        // Nothing of that is left to tell.
        dataset.append(&[12u32, 13, 14, 15]).unwrap();
        storage.fail_after(0, InjectedFailure::StorageFull, true);
        expect(&dataset.flush().unwrap_err(), &[rows(name, 3..4)], &format!("rows 3 to 3 of /{name})"));
        storage.clear_fault();
        file.close().unwrap();
    }
}

#[test]
fn a_failed_flush_of_the_file_names_every_dataset() {
    let (storage, file) = live();
    let (plain, packed) = (file.dataset("plain").unwrap(), file.dataset("packed").unwrap());
    plain.append(&[0u32; 8]).unwrap();
    packed.append(&[1u32; 4]).unwrap();
    file.flush().unwrap();
    plain.append(&[2u32; 4]).unwrap();
    packed.append(&[3u32; 8]).unwrap();
    storage.fail_after(0, InjectedFailure::StorageFull, true);
    let text = "(not written yet: rows 1 to 2 of /packed, rows 2 to 2 of /plain)";
    expect(&file.flush().unwrap_err(), &[rows("packed", 1..3), rows("plain", 2..3)], text);
    storage.clear_fault();
    file.flush().unwrap();
    let found = published(&storage);
    assert_eq!(found.map(|rows| rows.len()), [12, 12]);
}

#[test]
fn an_append_that_does_not_fit_is_refused_and_says_which_rows_before_it_wait() {
    let (storage, file) = live();
    let plain = file.dataset("plain").unwrap();
    plain.append(&[7u32; 40]).unwrap();
    storage.fail_after(0, InjectedFailure::StorageFull, true);
    let much = vec![8u32; 1 << 20];
    let error = plain.append(&much).unwrap_err();
    expect(&error, &[rows("plain", 0..10)], "(not written yet: rows 0 to 9 of /plain)");
    assert_eq!(plain.shape().unwrap(), [10, 4], "rows that were refused are not there");
    storage.clear_fault();
    plain.append(&much).unwrap();
    plain.flush().unwrap();
    let [found, _] = published(&storage);
    assert_eq!((found.len(), found[39], found[40]), (40 + much.len(), 7, 8));
}

#[test]
fn a_close_that_cannot_put_growing_chunks_through_their_filters_loses_no_row_and_names_what_is_missing() {
    for fault in 0.. {
        let (storage, file) = live();
        let packed = file.dataset("packed").unwrap();
        for row in 0..4 {
            packed.append(&[row * 4, row * 4 + 1, row * 4 + 2, row * 4 + 3]).unwrap();
            packed.flush().unwrap();
        }
        packed.append(&(16..24).collect::<Vec<u32>>()).unwrap();
        storage.fail_after(fault, InjectedFailure::StorageFull, true);
        let closed = file.close();
        storage.clear_fault();
        let [_, found] = published(&storage);
        let expected: Vec<u32> = (0..24).collect();
        let missing = closed.as_ref().err().map_or(&[][..], Error::unpublished_rows);
        let there = missing.iter().map(|missing| missing.rows.start).min().unwrap_or(6);
        assert_eq!(found, expected[..there as usize * 4], "fault {fault}: {closed:?}");
        match closed {
            Ok(()) => {
                assert!(fault > 5, "{fault}");
                return;
            }
            Err(error) => assert_eq!(error.store_error_kind(), Some(&StoreErrorKind::StorageFull), "{error}"),
        }
    }
}
