//! Every schedule of threads that share the cache of decoded chunks, explored by loom:
//! `make loom`.
#![cfg(loom)]

mod explore;

use std::sync::Arc;

use h5live_model::{ChunkCoord, ObjectId};
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use self::explore::explore;

#[path = "../../src/dataset/read/chunk_cache.rs"]
#[allow(dead_code)]
mod chunk_cache;

/// What `src/dataset/read/primitive.rs` has, as loom has it.
mod primitive {
    pub(crate) use loom::sync::atomic::AtomicU64;

    #[derive(Debug)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Mutex(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }
}

const DATASET: ObjectId = ObjectId(1);

/// A dataset of one chunk of one byte, as `src/dataset/read/chunk_reader.rs` reads and `src/dataset/store/writer.rs` writes it.
struct Dataset {
    cache: chunk_cache::ChunkCache,
    /// What is stored.
    stored: AtomicU64,
    changes: AtomicU64,
    coord: ChunkCoord,
    /// Looks whether a chunk was changed when it has been kept, not before.
    late: bool,
}

impl Dataset {
    fn new() -> Self {
        let (cache, stored, changes) = (chunk_cache::ChunkCache::new(64), AtomicU64::new(1), AtomicU64::new(0));
        Dataset { cache, stored, changes, coord: ChunkCoord::new(&[0]), late: false }
    }

    fn read(&self) -> u8 {
        let changes = self.changes.load(Ordering::Acquire);
        if let Some(bytes) = self.cache.get(DATASET, &self.coord) {
            return bytes[0];
        }
        let value = self.stored.load(Ordering::Acquire) as u8;
        let is_old = || self.changes.load(Ordering::Acquire) != changes;
        if self.late {
            self.cache.insert(DATASET, &self.coord, Arc::new(vec![value]), || false);
            if is_old() {
                self.cache.remove(DATASET, &self.coord);
            }
        } else {
            self.cache.insert(DATASET, &self.coord, Arc::new(vec![value]), is_old);
        }
        value
    }

    fn write(&self, value: u8) {
        self.stored.store(value.into(), Ordering::Release);
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.cache.remove(DATASET, &self.coord);
    }

    fn refresh(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.cache.forget_dataset(DATASET);
    }
}

fn write_and_read(late: bool) {
    explore("write and read against read", None, move || {
        let dataset = Arc::new(Dataset { late, ..Dataset::new() });
        let other = dataset.clone();
        let thread = thread::spawn(move || assert!(matches!(other.read(), 1 | 2)));
        dataset.write(2);
        assert_eq!(dataset.read(), 2, "what was written is read");
        thread.join().unwrap();
        assert_eq!(dataset.read(), 2);
    });
}

#[test]
fn who_wrote_a_chunk_reads_what_it_wrote() {
    write_and_read(false);
}

#[test]
#[should_panic(expected = "what was written is read")]
fn to_look_when_the_chunk_was_kept_is_too_late() {
    write_and_read(true);
}

#[test]
fn nothing_of_before_is_read_after_a_refresh() {
    explore("refresh against read", None, || {
        let dataset = Arc::new(Dataset::new());
        let other = dataset.clone();
        let thread = thread::spawn(move || assert!(matches!(other.read(), 1 | 2)));
        // The writer is another process.
        dataset.stored.store(2, Ordering::Release);
        dataset.refresh();
        assert_eq!(dataset.read(), 2);
        thread.join().unwrap();
        assert_eq!(dataset.read(), 2);
    });
}
