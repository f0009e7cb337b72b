//! What users can tell of a failure without knowing the store.

use std::error::Error as _;
use std::fs;

use h5live::{File, OpenError, StoreErrorKind};

fn kind_of(error: &h5live::Error) -> &StoreErrorKind {
    error.store_error_kind().unwrap_or_else(|| panic!("no failure of the store: {error}"))
}

#[test]
fn a_file_that_is_not_there_and_one_that_is_no_hdf5_file_have_their_kinds() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(*kind_of(&File::open(folder.path().join("none.h5")).unwrap_err()), StoreErrorKind::NotFound);
    let text = folder.path().join("text.h5");
    fs::write(&text, "not this").unwrap();
    assert_eq!(*kind_of(&File::open(&text).unwrap_err()), StoreErrorKind::NotThisFormat);
    let there = File::options().create_new().open(&text).unwrap_err();
    assert_eq!(*kind_of(&there), StoreErrorKind::AlreadyExists);
}

#[test]
fn a_file_that_a_writer_holds_is_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("held.h5");
    let file = File::create(&path).unwrap();
    let error = File::options().write().open(&path).unwrap_err();
    assert!(error.is_in_use(), "{error}");
    assert!(matches!(kind_of(&error), StoreErrorKind::InUse(_)), "{error}");
    file.close().unwrap();
}

#[test]
fn a_damaged_structure_is_damage_and_the_error_of_the_store_is_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.h5");
    let file = File::create(&path).unwrap();
    file.new_dataset::<u8>().unlimited_rows(&[]).create("data").unwrap().append(&[1, 2, 3]).unwrap();
    file.close().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let header = bytes.windows(4).rposition(|window| window == b"OHDR").unwrap();
    bytes[header + 9] ^= 0x10;
    fs::write(&path, bytes).unwrap();
    let error = File::open(&path).and_then(|file| file.dataset("data")?.read::<u8>()).unwrap_err();
    assert_eq!(*kind_of(&error), StoreErrorKind::Damaged, "{error}");
    let source = error.source().unwrap();
    assert!(source.downcast_ref::<h5live_native::Error>().is_some(), "{source:?}");
}

#[test]
fn opening_holds_the_same_error_as_any_other_call_of_a_store() {
    let error = File::open("/nowhere/at.all").unwrap_err();
    let h5live::ErrorKind::Open(open) = error.kind() else { panic!("{error:?}") };
    let OpenError::Store(store) = &**open else { panic!("{error:?}") };
    assert_eq!(store.store_error_kind(), error.store_error_kind());
}
