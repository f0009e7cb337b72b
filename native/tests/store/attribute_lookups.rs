//! What a lookup of an attribute by its name takes: one attribute is decoded, however many there are.

use std::sync::Arc;

use h5live_cache::MemoryStorage;
use h5live_format::LibVer;
use h5live_model::{
    AttributeData, ByteOrder, Dataspace, Datatype, Name, ObjectId, ObjectScope, PublishLevel, Shape, Sign, Store,
    StoreWriter,
};
use h5live_native::{Mode, NativeFile, OpenOptions};

fn open(storage: &MemoryStorage, mode: Mode, profile: LibVer) -> NativeFile {
    let options = OpenOptions { mode, profile, ..OpenOptions::default() };
    NativeFile::open_storage(Arc::new(storage.clone()), &options).unwrap()
}

fn root(file: &NativeFile) -> ObjectId {
    file.session().root
}

fn name(number: u32) -> Name {
    format!("attribute {number:05}").into()
}

fn set(file: &NativeFile, number: u32, value: u32) {
    let attribute = AttributeData {
        name: name(number),
        datatype: Datatype::integer(4, ByteOrder::Little, Sign::Signed),
        committed_datatype: None,
        dataspace: Dataspace::Simple(Shape::fixed(&[1])),
        value: value.to_le_bytes().to_vec(),
        creation_order: None,
    };
    file.set_attribute(root(file), &attribute).unwrap();
}

fn get(file: &NativeFile, number: u32) -> h5live_model::Result<Option<Vec<u8>>> {
    Ok(file.attribute(root(file), &name(number))?.map(|found| found.value))
}

fn value(value: u32) -> Option<Vec<u8>> {
    Some(value.to_le_bytes().to_vec())
}

fn file_with(count: u32, profile: LibVer) -> MemoryStorage {
    let storage = MemoryStorage::new();
    let file = open(&storage, Mode::Create, profile);
    (0..count).for_each(|number| set(&file, number, number));
    file.close().unwrap();
    storage
}

/// Damages the datatype of all attributes but one, in a file whose headers have no checksums.
fn damage_all_but(storage: &MemoryStorage, count: u32, kept: u32) -> MemoryStorage {
    let mut bytes = storage.to_vec();
    for number in (0..count).filter(|number| *number != kept) {
        let name = name(number).to_string();
        let at = bytes.windows(name.len()).position(|window| window == name.as_bytes()).unwrap();
        // The datatype comes after the name with its NUL, padded to a multiple of 8 bytes. No datatype has this version.
        let datatype = at + (name.len() + 1).next_multiple_of(8);
        bytes[datatype] |= 0xf0;
    }
    MemoryStorage::from(bytes)
}

#[test]
fn one_attribute_of_a_header_is_decoded() {
    const COUNT: u32 = 1000;
    let storage = file_with(COUNT, LibVer::Earliest);
    for kept in [0, 1, COUNT / 2, COUNT - 1] {
        let damaged = damage_all_but(&storage, COUNT, kept);
        for mode in [Mode::Read, Mode::Write] {
            let file = open(&damaged, mode, LibVer::Earliest);
            assert_eq!(get(&file, kept).unwrap(), value(kept));
            assert_eq!(get(&file, COUNT).unwrap(), None);
            assert!(get(&file, (kept + 1) % COUNT).is_err());
            assert!(file.attribute_names(root(&file)).is_err());
        }
        // Replacing one, and removing it, decodes no other.
        let file = open(&damaged, Mode::Write, LibVer::Earliest);
        set(&file, kept, 7);
        assert_eq!(get(&file, kept).unwrap(), value(7));
        file.remove_attribute(root(&file), &name(kept)).unwrap();
        assert_eq!(get(&file, kept).unwrap(), None);
        set(&file, COUNT, 8);
        assert_eq!(get(&file, COUNT).unwrap(), value(8));
    }
}

/// Structures that a lookup needs.
fn structures_per_lookup(file: &NativeFile, count: u32) -> u64 {
    let needed = |file: &NativeFile| file.stats().hits + file.stats().misses;
    let before = needed(file);
    (0..count).for_each(|number| assert_eq!(get(file, number).unwrap(), value(number)));
    (needed(file) - before) / u64::from(count)
}

#[test]
fn dense_attributes_are_found_through_the_index_of_names() {
    let profile = LibVer::V110;
    let mut at_rest = Vec::new();
    for count in [20, 200, 2000, 20_000] {
        let storage = file_with(count, profile);
        at_rest.push(structures_per_lookup(&open(&storage, Mode::Read, profile), count));
        let writer = open(&storage, Mode::Write, profile);
        assert!(structures_per_lookup(&writer, count) <= at_rest[at_rest.len() - 1] + 2);
    }
    assert!(at_rest[3] <= at_rest[0] + 6, "{at_rest:?}");
}

#[test]
fn a_live_reader_finds_what_has_changed_since() {
    for count in [5, 500] {
        let storage = MemoryStorage::new();
        let writer = open(&storage, Mode::Create, LibVer::V110);
        (0..count).for_each(|number| set(&writer, number, number));
        writer.start_swmr().unwrap();
        writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
        let reader = open(&storage, Mode::SwmrRead, LibVer::V110);
        for round in 0..4 {
            let at = (round * 100 + 3) % count;
            set(&writer, at, 1000 + round);
            set(&writer, count + round, round);
            writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            reader.refresh(ObjectScope::All).unwrap();
            assert_eq!(get(&reader, at).unwrap(), value(1000 + round));
            assert_eq!(get(&reader, count + round).unwrap(), value(round));
            writer.remove_attribute(root(&writer), &name(count + round)).unwrap();
            writer.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
            reader.refresh(ObjectScope::All).unwrap();
            assert_eq!(get(&reader, count + round).unwrap(), None);
        }
    }
}
