//! Variable-length data that is given up: it stays until a flush, and for as long as others may follow.

use std::sync::Arc;

use h5live_cache::MemoryStorage;
use h5live_model::{Publish, Scope, StoreWriter, read_blob};
use h5live_native::{Mode, NativeFile, OpenOptions};

fn new_file() -> NativeFile {
    let options = OpenOptions { mode: Mode::Create, ..OpenOptions::default() };
    NativeFile::open_storage(Arc::new(MemoryStorage::new()), &options).unwrap()
}

fn put(file: &NativeFile, byte: u8) -> Vec<u8> {
    file.put_blob(&[byte; 100], 100).unwrap()
}

fn is_there(file: &NativeFile, element: &[u8], byte: u8) -> bool {
    read_blob(file, element).is_ok_and(|bytes| bytes == [byte; 100])
}

#[test]
fn what_is_given_up_stays_until_a_flush() {
    let file = new_file();
    let [old, kept] = [1, 2].map(|byte| put(&file, byte));
    file.commit(Scope::All, Publish::Visible).unwrap();
    file.remove_blobs(&[&old]).unwrap();
    put(&file, 3);
    assert!(is_there(&file, &old, 1), "a writer that dies now leaves elements that lead there");
    file.commit(Scope::All, Publish::Visible).unwrap();
    let new = put(&file, 4);
    assert!(!is_there(&file, &old, 1), "its room was used again");
    assert!(is_there(&file, &kept, 2) && is_there(&file, &new, 4));
}

#[test]
fn what_is_given_up_stays_while_others_follow() {
    let file = new_file();
    let [first, second] = [1, 2].map(|byte| put(&file, byte));
    file.commit(Scope::All, Publish::Visible).unwrap();
    file.remove_blobs(&[&first]).unwrap();
    file.start_swmr().unwrap();
    file.remove_blobs(&[&second]).unwrap();
    for byte in 3..20 {
        put(&file, byte);
        file.commit(Scope::All, Publish::Visible).unwrap();
    }
    assert!(is_there(&file, &first, 1) && is_there(&file, &second, 2));
}

#[test]
fn what_leads_nowhere_takes_nothing() {
    let file = new_file();
    let kept = put(&file, 1);
    file.commit(Scope::All, Publish::Visible).unwrap();
    let nothing = file.put_blob(&[], 0).unwrap();
    let mut elsewhere = kept.clone();
    elsewhere[4] ^= 0x40;
    let mut other = kept.clone();
    other[12] = 99;
    file.remove_blobs(&[&nothing, &[0; 16], &elsewhere, &other, &kept[..7]]).unwrap();
    file.commit(Scope::All, Publish::Visible).unwrap();
    put(&file, 2);
    assert!(is_there(&file, &kept, 1));
}
