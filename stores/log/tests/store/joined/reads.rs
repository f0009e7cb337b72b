//! What a writer that joins reads of what others have written.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use h5live_log::LogStore;
use h5live_log::multi_writer_files::{AppendLock, MainFileLease, MultiWriterFiles};
use h5live_model::{
    ByteOrder, ChunkBatch, ChunkCoord, ChunkStore, ChunkWrite, DatasetSpec, Dataspace, Datatype, Layout, Mode, Name,
    NewObject, ObjectScope, OpenError, PublishLevel, Shape, Sign, Store,
};
use h5live_native::NativeConnector;
use parking_lot::Mutex;

use super::files::{create, dataset, element, files_of, join, put, read, request};

/// Elements of a large dataset, each of which has two bytes.
const ELEMENTS: u64 = 1 << 18;

/// Files that say how much was read of them.
#[derive(Debug)]
struct CountedFiles {
    files: Arc<dyn MultiWriterFiles>,
    opened: Mutex<Vec<Arc<dyn Store>>>,
}

impl CountedFiles {
    fn note(&self, opened: Result<Arc<dyn Store>, OpenError>) -> Result<Arc<dyn Store>, OpenError> {
        let store = opened?;
        self.opened.lock().push(store.clone());
        Ok(store)
    }

    fn bytes_read(&self) -> u64 {
        self.opened.lock().iter().map(|store| store.stats().bytes_read).sum()
    }
}

impl MultiWriterFiles for CountedFiles {
    fn lease(&self) -> Result<Box<dyn MainFileLease>, OpenError> {
        self.files.lease()
    }

    fn open_main(&self, mode: Mode) -> Result<Arc<dyn Store>, OpenError> {
        self.note(self.files.open_main(mode))
    }

    fn open_subfile(&self, number: u32, mode: Mode, stays_live: bool) -> Result<Arc<dyn Store>, OpenError> {
        self.note(self.files.open_subfile(number, mode, stays_live))
    }

    fn release_presence(&self) {
        self.files.release_presence();
    }

    fn lock_appends(&self) -> Result<Box<dyn AppendLock>, OpenError> {
        self.files.lock_appends()
    }

    fn take_next_batch_order(&self, own: u32, last: u64, knows_all: bool) -> Result<Option<u64>, OpenError> {
        self.files.take_next_batch_order(own, last, knows_all)
    }

    fn set_last_batch_order(&self, own: u32, last: u64) -> Result<(), OpenError> {
        self.files.set_last_batch_order(own, last)
    }

    fn last_batch_orders(&self) -> Vec<Option<u64>> {
        self.files.last_batch_orders()
    }
}

/// Makes a dataset that never has another extent.
fn create_fixed(store: &LogStore, name: &str) -> Arc<dyn ChunkStore> {
    let spec = DatasetSpec {
        datatype: Datatype::integer(2, ByteOrder::Little, Sign::Unsigned),
        dataspace: Dataspace::Simple(Shape::fixed(&[ELEMENTS])),
        layout: Layout::Contiguous,
        ..DatasetSpec::default()
    };
    let name = Name::from(name);
    let id = store.writer().unwrap().create(&NewObject::linked(store.session().root, &name, &spec.into())).unwrap();
    store.dataset(id).unwrap()
}

/// Writes all elements of a dataset that is one chunk.
fn fill(data: &dyn ChunkStore) {
    let bytes: Vec<u8> = (0..ELEMENTS).flat_map(|at| (at as u16).to_le_bytes()).collect();
    let writes =
        [ChunkWrite::ElementBlock { coord: &ChunkCoord::origin(1), start: &[0], count: &[ELEMENTS], bytes: &bytes }];
    data.write(&ChunkBatch { writes: &writes, ..ChunkBatch::default() }).unwrap();
}

/// Writes an element of a dataset that is one chunk.
fn set(data: &dyn ChunkStore, at: u64, value: u16) {
    let bytes = value.to_le_bytes();
    let writes = [ChunkWrite::ElementBlock { coord: &ChunkCoord::origin(1), start: &[at], count: &[1], bytes: &bytes }];
    data.write(&ChunkBatch { writes: &writes, ..ChunkBatch::default() }).unwrap();
}

/// Reads an element of a dataset that is one chunk.
fn get(data: &dyn ChunkStore, at: u64) -> u16 {
    let chunk = data.locate(&ChunkCoord::origin(1)).unwrap().unwrap();
    let mut bytes = [0; 2];
    data.read(&chunk, 2 * at, &mut bytes).unwrap();
    u16::from_le_bytes(bytes)
}

#[test]
fn a_writer_that_only_writes_does_not_read_what_others_have_written() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let first = join(&main, true);
    let large = create_fixed(&first, "large");
    create(&first, "growing", 4);
    fill(&*large);
    large.publish(PublishLevel::Visible).unwrap();
    let files = Arc::new(CountedFiles { files: files_of(&main, NativeConnector), opened: Mutex::default() });
    let second = LogStore::join_as_writer(files.clone(), false, request()).unwrap();
    let data = dataset(&second, "large").unwrap();
    set(&*data, 7, 999);
    let own = create(&second, "own", 0);
    own.set_extent(&[9]).unwrap();
    put(&*own, 8, 5);
    second.writer().unwrap().commit(ObjectScope::All, PublishLevel::Visible).unwrap();
    let written = files.bytes_read();
    assert!(written < ELEMENTS / 4, "{written} bytes were read to write");
    assert_eq!((get(&*data, 6), get(&*data, 7), get(&*data, 8)), (6, 999, 8));
    let more = files.bytes_read() - written;
    assert!(more >= 2 * ELEMENTS, "{more} bytes were read to read");
    // The order of both batches is right.
    set(&*large, 8, 111);
    large.publish(PublishLevel::Visible).unwrap();
    second.close().unwrap();
    first.close().unwrap();
    let reader = read(&main, Mode::Read);
    let large = dataset(&reader, "large").unwrap();
    assert_eq!((get(&*large, 7), get(&*large, 8)), (999, 111));
    assert_eq!(element(&*dataset(&reader, "own").unwrap(), 8).unwrap(), 5);
}

#[test]
fn the_extent_that_others_have_set_counts_before_anything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let first = join(&main, true);
    let data = create(&first, "a", 0);
    data.set_extent(&[6]).unwrap();
    put(&*data, 5, 1);
    data.publish(PublishLevel::Visible).unwrap();
    let second = join(&main, false);
    let data = dataset(&second, "a").unwrap();
    assert_eq!(data.spec().unwrap().dataspace.dims(), [6]);
    data.set_extent(&[7]).unwrap();
    second.close().unwrap();
    first.close().unwrap();
    assert_eq!(dataset(&read(&main, Mode::Read), "a").unwrap().spec().unwrap().dataspace.dims(), [7]);
}

#[test]
fn damage_that_one_read_has_met_is_met_by_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("run.h5");
    let first = join(&main, true);
    let data = create_fixed(&first, "a");
    for at in 0..3 {
        set(&*data, at, 5);
        data.publish(PublishLevel::Visible).unwrap();
    }
    let subfile = h5live_log::local_multi_writer_files::subfile_path(&main, 1);
    let sound = std::fs::read(&subfile).unwrap();
    let last = (0..sound.len() - 4).rfind(|at| sound[*at..].starts_with(b"LENT")).unwrap();
    overwrite(&subfile, last, b"X");
    let second = join(&main, false);
    let data = dataset(&second, "a").unwrap();
    for _ in 0..3 {
        let text = data.locate(&ChunkCoord::origin(1)).unwrap_err().to_string();
        assert!(text.contains("of subfile 1: no entry begins here"), "{text}");
    }
    // What it writes is there nevertheless.
    let own = create(&second, "own", 0);
    own.set_extent(&[2]).unwrap();
    put(&*own, 1, 7);
    let text = second.close().unwrap_err().to_string();
    assert!(text.contains("of subfile 1: no entry begins here"), "{text}");
    overwrite(&subfile, last, b"L");
    assert_eq!(element(&*dataset(&read(&main, Mode::SwmrRead), "own").unwrap(), 1).unwrap(), 7);
}

/// Changes bytes of a file in place.
fn overwrite(path: &Path, at: usize, bytes: &[u8]) {
    let mut file = File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at as u64)).unwrap();
    file.write_all(bytes).unwrap();
}
