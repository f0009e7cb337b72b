//! Threads read chunks of a session that replaces them: they find the old bytes or the new ones, or are told that the
//! chunk has moved.

use std::fmt;
use std::io;
use std::sync::Arc;

use h5live_cache::{MemoryStorage, Storage};
use h5live_model::{
    ByteOrder, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Dataspace, Datatype, Error, FilterSpec,
    Layout, LinkTarget, Name, NewObject, ObjectScope, PublishLevel, Shape, Sign, Store, StoreWriter,
};
use h5live_native::{Mode, NativeFile, OpenOptions};
use parking_lot::Mutex;

type Hook = Box<dyn FnOnce() + Send>;

/// A storage that calls something before the next read.
#[derive(Clone, Default)]
struct HookedStorage {
    storage: MemoryStorage,
    before_read: Arc<Mutex<Option<Hook>>>,
}

impl fmt::Debug for HookedStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.storage.fmt(f)
    }
}

impl Storage for HookedStorage {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let before_read = self.before_read.lock().take();
        before_read.into_iter().for_each(|before_read| before_read());
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

/// Bytes of a chunk as it is stored. They are written at once, not gathered.
const STORED: usize = 100_000;

/// A file with one dataset of two chunks with a filter, which says nothing of the bytes that are stored.
fn new_file() -> (HookedStorage, Arc<NativeFile>, Arc<dyn ChunkStore>) {
    let storage = HookedStorage::default();
    let options = OpenOptions { mode: Mode::Create, ..OpenOptions::default() };
    let file = NativeFile::open_storage(Arc::new(storage.clone()), &options).unwrap();
    let spec = DatasetSpec {
        datatype: Datatype::integer(1, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::fixed(&[2_000_000])),
        layout: Layout::Chunked(vec![1_000_000]),
        filters: vec![FilterSpec { id: 1, ..FilterSpec::default() }],
        ..DatasetSpec::default()
    };
    let name = Name::from("data");
    file.create(&NewObject::linked(file.session().root, &name, &spec.into())).unwrap();
    let LinkTarget::Hard(id) = file.link(file.session().root, &name).unwrap().unwrap().target else { panic!() };
    let data = file.dataset(id).unwrap();
    (storage, Arc::new(file), data)
}

fn coord(number: u64) -> ChunkCoord {
    ChunkCoord::new(&[number])
}

/// Replaces a chunk, and flushes.
fn store(file: &NativeFile, data: &dyn ChunkStore, number: u64, byte: u8) {
    let write = ChunkWrite::Whole { coord: &coord(number), filter_mask: 0, bytes: &vec![byte; STORED] };
    data.write(&ChunkBatch { writes: &[write], ..ChunkBatch::default() }).unwrap();
    file.commit(ObjectScope::All, PublishLevel::Visible).unwrap();
}

#[test]
fn a_chunk_that_was_found_before_it_was_replaced_has_moved() {
    let (_, file, data) = new_file();
    store(&file, &*data, 0, 1);
    let old = data.locate(&coord(0)).unwrap().unwrap();
    store(&file, &*data, 0, 2);
    store(&file, &*data, 1, 3);
    assert_eq!(data.locate(&coord(1)).unwrap().unwrap().file_offset, old.file_offset, "the space is used again");
    let mut bytes = vec![0; STORED];
    let read = data.read(&old, 0, &mut bytes);
    assert!(matches!(read, Err(Error::Moved)), "{read:?}, {}", bytes[0]);
    data.read(&data.locate(&coord(0)).unwrap().unwrap(), 0, &mut bytes).unwrap();
    assert_eq!(bytes, [2; STORED]);
}

#[test]
fn space_of_a_chunk_is_not_used_again_while_a_thread_reads_it() {
    let (storage, file, data) = new_file();
    store(&file, &*data, 0, 1);
    let old = data.locate(&coord(0)).unwrap().unwrap();
    let other = (file.clone(), data.clone());
    *storage.before_read.lock() = Some(Box::new(move || {
        let (file, data) = other;
        store(&file, &*data, 0, 2);
        store(&file, &*data, 1, 3);
    }));
    let mut bytes = vec![0; STORED];
    data.read(&old, 0, &mut bytes).unwrap();
    assert_eq!(bytes, [1; STORED], "the old chunk is whole");
    assert_ne!(data.locate(&coord(1)).unwrap().unwrap().file_offset, old.file_offset);
    store(&file, &*data, 1, 4);
    let reused = data.locate(&coord(1)).unwrap().unwrap().file_offset;
    assert_eq!(reused, old.file_offset, "when the read is over, the space is used again");
}
