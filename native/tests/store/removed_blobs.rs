//! Variable-length data that is given up: it stays until a flush, and for as long as others may follow.

use std::collections::BTreeSet;
use std::sync::Arc;

use h5live_cache::MemoryStorage;
use h5live_model::{ObjectScope, PublishLevel, Store, StoreWriter, read_blob};
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
    file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    file.remove_blobs(&[&old]).unwrap();
    put(&file, 3);
    assert!(is_there(&file, &old, 1), "a writer that dies now leaves elements that lead there");
    file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let new = put(&file, 4);
    assert!(!is_there(&file, &old, 1), "its room was used again");
    assert!(is_there(&file, &kept, 2) && is_there(&file, &new, 4));
}

#[test]
fn what_is_given_up_stays_while_others_follow() {
    let file = new_file();
    let [first, second] = [1, 2].map(|byte| put(&file, byte));
    file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    file.remove_blobs(&[&first]).unwrap();
    file.start_swmr().unwrap();
    file.remove_blobs(&[&second]).unwrap();
    for byte in 3..20 {
        put(&file, byte);
        file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    }
    assert!(is_there(&file, &first, 1) && is_there(&file, &second, 2));
}

#[test]
fn what_leads_nowhere_takes_nothing() {
    let file = new_file();
    let kept = put(&file, 1);
    file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let nothing = file.put_blob(&[], 0).unwrap();
    let mut elsewhere = kept.clone();
    elsewhere[4] ^= 0x40;
    let mut other = kept.clone();
    other[12] = 99;
    file.remove_blobs(&[&nothing, &[0; 16], &elsewhere, &other, &kept[..7]]).unwrap();
    file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    put(&file, 2);
    assert!(is_there(&file, &kept, 1));
}

#[test]
fn many_that_are_put_at_once_fill_few_collections() {
    let file = new_file();
    let texts: Vec<Vec<u8>> = (0..20_000_u32).map(|n| vec![n as u8; 10 + n as usize % 7]).collect();
    let blobs: Vec<(&[u8], u32)> = texts.iter().map(|text| (&text[..], text.len() as u32)).collect();
    let elements = file.put_blobs(&blobs).unwrap();
    let collections: BTreeSet<&[u8]> = elements.chunks(16).map(|element| &element[4..12]).collect();
    // 32 bytes each, in collections of 64 KiB.
    assert!((10..=12).contains(&collections.len()), "{}", collections.len());
    file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let elements: Vec<&[u8]> = elements.chunks(16).collect();
    file.read_blobs(&elements, &mut |at, bytes| assert_eq!(bytes, texts[at])).unwrap();
}

#[test]
fn many_are_read_in_any_order() {
    let file = new_file();
    let texts: Vec<Vec<u8>> = (0..3000_u32).map(|n| vec![n as u8; n as usize % 50]).collect();
    let mut elements: Vec<Vec<u8>> = texts.iter().map(|text| file.put_blob(text, text.len() as u32).unwrap()).collect();
    let check = |elements: &[Vec<u8>]| {
        let elements: Vec<&[u8]> = elements.iter().map(Vec::as_slice).collect();
        let mut found = vec![None; elements.len()];
        file.read_blobs(&elements, &mut |at, bytes| assert_eq!(found[at].replace(bytes.to_vec()), None)).unwrap();
        found.into_iter().map(Option::unwrap).collect::<Vec<_>>()
    };
    assert_eq!(check(&elements), texts);
    elements.reverse();
    assert_eq!(check(&elements), texts.iter().rev().cloned().collect::<Vec<_>>());
    // From one collection to the other and back.
    let shuffled = |n: usize| n * 1009 % 3000;
    let mixed: Vec<_> = (0..3000).map(|n| elements[shuffled(n)].clone()).collect();
    assert_eq!(check(&mixed), (0..3000).map(|n| texts[2999 - shuffled(n)].clone()).collect::<Vec<_>>());
    // One that is not there, behind others of its collection.
    let mut missing = mixed[1].clone();
    missing[12..16].copy_from_slice(&60_000_u32.to_le_bytes());
    let mut given = 0;
    let wanted = [&mixed[1][..], &mixed[1], &missing, &mixed[2]];
    assert!(file.read_blobs(&wanted, &mut |_, _| given += 1).is_err());
    assert_eq!(given, 2);
}
