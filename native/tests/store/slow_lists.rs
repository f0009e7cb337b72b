//! Lists of links and attributes: of a live file, where they take longer than addresses may be trusted, and where they are
//! ended early.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use h5live_cache::{MemoryStorage, Storage};
use h5live_model::{
    AttributeData, ByteOrder, Dataspace, Datatype, GroupSpec, LinkTarget, Name, NewObject, ObjectId, Sign, Store,
    StoreWriter,
};
use h5live_native::{Clock, Mode, NativeFile, OpenOptions};

/// A storage of which each read takes some time.
#[derive(Clone, Default)]
struct SlowStorage {
    storage: MemoryStorage,
    /// What has passed, in milliseconds.
    now: Arc<AtomicU64>,
    millis_for_each_read: u64,
}

impl fmt::Debug for SlowStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.storage.fmt(f)
    }
}

impl Storage for SlowStorage {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.now.fetch_add(self.millis_for_each_read, Relaxed);
        self.storage.read_at(into, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.storage.write_at(bytes, at)
    }

    fn len(&self) -> io::Result<u64> {
        self.storage.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.storage.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

const ITEMS: usize = 3000;

fn name(n: usize) -> Name {
    Name::from(format!("item {n}"))
}

fn names() -> Vec<Name> {
    let mut names: Vec<Name> = (0..ITEMS).map(name).collect();
    names.sort();
    names
}

/// Adds links and attributes to a group.
fn add(writer: &NativeFile, group: ObjectId, items: usize) {
    for n in 0..items {
        writer.add_link(group, &name(n), &LinkTarget::Hard(writer.session().root)).unwrap();
        let value = AttributeData {
            name: name(n),
            datatype: Datatype::integer(8, ByteOrder::Little, Sign::Unsigned),
            committed_datatype: None,
            dataspace: Dataspace::Scalar,
            value: n.to_le_bytes().into(),
            creation_order: None,
        };
        writer.set_attribute(group, &value).unwrap();
    }
}

/// A live file in which a group has many links and many attributes, its writer, and a follower that needs twenty
/// milliseconds for each read and remembers little.
fn live() -> (NativeFile, NativeFile, ObjectId) {
    let storage = SlowStorage::default();
    let options = OpenOptions { mode: Mode::Create, ..OpenOptions::default() };
    let writer = NativeFile::open_storage(Arc::new(storage.clone()), &options).unwrap();
    let root = writer.session().root;
    let group = writer.create(&NewObject::linked(root, &Name::from("all"), &GroupSpec::default().into())).unwrap();
    add(&writer, group, ITEMS);
    writer.start_swmr().unwrap();
    let slow = SlowStorage { millis_for_each_read: 20, ..storage };
    let now = slow.now.clone();
    let clock = Clock::new(move || Duration::from_millis(now.load(Relaxed)));
    let options = OpenOptions { mode: Mode::SwmrRead, clock, metadata_cache_bytes: 16 << 10, ..OpenOptions::default() };
    let reader = NativeFile::open_storage(Arc::new(slow), &options).unwrap();
    (writer, reader, group)
}

#[test]
fn links_are_listed_in_parts_if_all_take_too_long() {
    let (_writer, reader, group) = live();
    let mut links = Vec::new();
    reader
        .for_each_link(group, &mut |link| {
            links.push(link.name);
            true
        })
        .unwrap();
    links.sort();
    assert_eq!(links, names());
}

#[test]
fn attributes_are_listed_in_parts_if_all_take_too_long() {
    let (_writer, reader, group) = live();
    let mut values = Vec::new();
    reader
        .for_each_attribute(group, &mut |attribute| {
            values.push((attribute.name, attribute.value));
            true
        })
        .unwrap();
    values.sort();
    let mut expected: Vec<_> = (0..ITEMS).map(|n| (name(n), n.to_le_bytes().to_vec())).collect();
    expected.sort();
    assert_eq!(values, expected);
    let mut listed = reader.attribute_names(group).unwrap();
    listed.sort();
    assert_eq!(listed, names());
}

#[test]
fn a_list_ends_where_it_is_told_to() {
    // In the header, and dense.
    for items in [3, 50] {
        let storage = MemoryStorage::new();
        let open = |mode| {
            let options = OpenOptions { mode, ..OpenOptions::default() };
            NativeFile::open_storage(Arc::new(storage.clone()), &options).unwrap()
        };
        let writer = open(Mode::Create);
        let (root, all) = (writer.session().root, Name::from("all"));
        let group = writer.create(&NewObject::linked(root, &all, &GroupSpec::default().into())).unwrap();
        add(&writer, group, items);
        writer.close().unwrap();
        for mode in [Mode::Read, Mode::Write, Mode::SwmrRead] {
            let file = open(mode);
            let (mut links, mut attributes) = (0, 0);
            file.for_each_link(group, &mut |_| {
                links += 1;
                links < 2
            })
            .unwrap();
            file.for_each_attribute(group, &mut |_| {
                attributes += 1;
                attributes < 2
            })
            .unwrap();
            assert_eq!((links, attributes), (2, 2), "{items} items, {mode:?}");
        }
    }
}
