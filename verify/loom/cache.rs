//! Every schedule of small programs that use a cache from several threads, explored by loom:
//! `make loom`.
#![cfg(loom)]

mod explore;

use std::sync::Arc;

use h5live_cache::{
    Cache, CacheOptions, DependencyKind, Entry, Error, FaultyStorage, FlushScope, Handle, InjectedFailure,
    MemoryStorage, Owner, SpaceKind, Storage, SuperblockEncoder,
};
use h5live_format::{Addr, EncodeError, Widths};
use loom::{sync::Mutex, thread};

use self::explore::explore;

/// One byte: a version number.
#[derive(Debug)]
struct Version(u8);

impl Entry for Version {
    fn encode_image(&self, _: Widths) -> Result<Vec<u8>, EncodeError> {
        Ok(vec![self.0])
    }

    fn weight(&self) -> usize {
        1
    }
}

/// A version, and the version of the child that is pointed to.
#[derive(Debug)]
struct Pointer {
    child: u8,
}

impl Entry for Pointer {
    fn encode_image(&self, _: Widths) -> Result<Vec<u8>, EncodeError> {
        Ok(vec![self.child])
    }

    fn weight(&self) -> usize {
        1
    }
}

#[derive(Debug)]
struct EofOnlySuperblock;

impl SuperblockEncoder for EofOnlySuperblock {
    fn encode_with_eof(&self, end: u64) -> Result<(Addr, Vec<u8>), EncodeError> {
        Ok((Addr::new(0), end.to_le_bytes().to_vec()))
    }
}

const OWNER: Owner = Owner::new(Addr::new(8));
const PARENT: u64 = 8;
const CHILD: u64 = 16;
const CHUNK: Addr = Addr::new(24);

/// A cache whose whole space is announced, so that a flush writes just what is dirty.
fn cache(storage: &(impl Storage + Clone + 'static)) -> Arc<Cache> {
    Arc::new(Cache::new_writable(Arc::new(storage.clone()), CacheOptions::default(), 64, Arc::new(EofOnlySuperblock)))
}

fn load(cache: &Cache, at: u64) -> Handle<Version> {
    let at = Addr::new(at);
    cache.load(at, OWNER, || cache.read_block_uncached(at, 1).map(|bytes| Version(bytes[0]))).unwrap()
}

fn byte(storage: &impl Storage, at: u64) -> u8 {
    let mut byte = [0];
    storage.read_at(&mut byte, at).unwrap();
    byte[0]
}

#[test]
fn threads_that_miss_the_same_entry_get_one() {
    explore("load against load", None, || {
        let cache = cache(&MemoryStorage::from(vec![7; 64]));
        let other = Arc::clone(&cache);
        let thread = thread::spawn(move || load(&other, CHILD));
        let mine = load(&cache, CHILD);
        let theirs = thread.join().unwrap();
        assert_eq!(mine.id(), theirs.id());
        assert_eq!(cache.stats().bytes_read, 1);
    });
}

#[test]
fn a_failed_load_lets_the_waiting_thread_load() {
    explore("failing load against load", None, || {
        let cache = cache(&MemoryStorage::from(vec![7; 64]));
        let other = Arc::clone(&cache);
        let thread = thread::spawn(move || {
            let failed = other.load::<Version, _>(Addr::new(CHILD), OWNER, || Err(Error::UndefinedAddr));
            failed.map(|entry| entry.read().0)
        });
        assert_eq!(load(&cache, CHILD).read().0, 7);
        assert!(matches!(thread.join().unwrap(), Ok(7) | Err(Error::UndefinedAddr)));
        assert_eq!(load(&cache, CHILD).read().0, 7);
    });
}

#[test]
fn a_change_during_a_flush_is_written_by_it_or_by_the_next() {
    for scope in [FlushScope::All, FlushScope::Owner(OWNER)] {
        change_during(scope);
    }
}

fn change_during(scope: FlushScope) {
    explore("update against flush", None, move || {
        let storage = MemoryStorage::from(vec![0; 64]);
        let cache = cache(&storage);
        let entry = cache.insert_entry(Addr::new(CHILD), OWNER, Version(1));
        let (other, changed) = (Arc::clone(&cache), entry.clone());
        let thread = thread::spawn(move || {
            // Outside an operation: the dirty bit must not depend on the gate.
            changed.update(|version| version.0 = 2);
            drop(other);
        });
        cache.flush(scope).unwrap();
        assert!(matches!(byte(&storage, CHILD), 1 | 2));
        thread.join().unwrap();
        cache.flush(scope).unwrap();
        assert_eq!(byte(&storage, CHILD), 2);
        assert!(cache.begin_flush(FlushScope::All).unwrap().steps().is_empty());
    });
}

#[test]
fn a_pointer_never_reaches_the_storage_before_what_it_points_to() {
    explore("operation against flush", None, || {
        let storage = MemoryStorage::from(vec![0; 64]);
        let cache = cache(&storage);
        let parent = cache.insert_entry(Addr::new(PARENT), OWNER, Pointer { child: 0 });
        let writer = Arc::clone(&cache);
        let thread = thread::spawn(move || {
            let _operation = writer.begin_atomic_change();
            let child = writer.insert_entry(Addr::new(CHILD), OWNER, Version(1));
            parent.update(|pointer| pointer.child = 1);
            writer.add_dependency(&parent, &child, DependencyKind::ExtensibleArrayDataBlock).unwrap();
        });
        let flusher = Arc::clone(&cache);
        let flush = thread::spawn(move || flusher.flush(FlushScope::All).unwrap());
        // Like a reader in another process: the pointer first, then what it points to.
        let pointer = byte(&storage, PARENT);
        assert!(byte(&storage, CHILD) >= pointer);
        thread.join().unwrap();
        flush.join().unwrap();
        cache.flush(FlushScope::All).unwrap();
        assert_eq!((byte(&storage, PARENT), byte(&storage, CHILD)), (1, 1));
    });
}

#[test]
fn a_pointer_that_is_changed_never_reaches_the_storage_before_what_it_points_to() {
    explore("operation against flush of a chain", None, || {
        let storage = MemoryStorage::from(vec![0; 64]);
        let cache = cache(&storage);
        let parent = load(&cache, PARENT);
        let writer = Arc::clone(&cache);
        let thread = thread::spawn(move || {
            let _operation = writer.begin_atomic_change();
            let child = writer.insert_entry(Addr::new(CHILD), OWNER, Version(1));
            parent.update(|pointer| pointer.0 = 1);
            writer.add_dependency(&parent, &child, DependencyKind::ExtensibleArrayDataBlock).unwrap();
        });
        let flusher = Arc::clone(&cache);
        let flush = thread::spawn(move || flusher.flush(FlushScope::Owner(OWNER)).unwrap());
        let pointer = byte(&storage, PARENT);
        assert!(byte(&storage, CHILD) >= pointer);
        thread.join().unwrap();
        flush.join().unwrap();
        cache.flush(FlushScope::Owner(OWNER)).unwrap();
        assert_eq!((byte(&storage, PARENT), byte(&storage, CHILD)), (1, 1));
        assert!(!cache.is_dirty());
    });
}

#[test]
fn an_index_never_reaches_the_storage_before_the_chunk() {
    explore("raw data against flush", None, || {
        let storage = MemoryStorage::from(vec![0; 64]);
        let cache = cache(&storage);
        let parent = cache.insert_entry(Addr::new(PARENT), OWNER, Pointer { child: 0 });
        let writer = Arc::clone(&cache);
        let thread = thread::spawn(move || {
            for version in 1..=2 {
                let _operation = writer.begin_atomic_change();
                let proxy = writer.enqueue_raw_write(OWNER, CHUNK, 0, vec![version]);
                parent.update(|pointer| pointer.child = version);
                writer.add_dependency(&parent, &proxy, DependencyKind::ExtensibleArrayChunk).unwrap();
            }
        });
        cache.flush(FlushScope::All).unwrap();
        let pointer = byte(&storage, PARENT);
        assert!(byte(&storage, CHUNK.get().unwrap()) >= pointer);
        thread.join().unwrap();
        cache.flush(FlushScope::Owner(OWNER)).unwrap();
        assert_eq!((byte(&storage, PARENT), byte(&storage, 24)), (2, 2));
    });
}

#[test]
fn an_evicted_entry_comes_back_with_its_last_value() {
    explore("eviction against update", None, || {
        let storage = MemoryStorage::from(vec![1; 64]);
        let cache = cache(&storage);
        drop(load(&cache, CHILD));
        let other = Arc::clone(&cache);
        let thread = thread::spawn(move || load(&other, CHILD).update(|version| version.0 = 2));
        cache.evict_all();
        cache.flush(FlushScope::All).unwrap();
        cache.evict_all();
        assert!(matches!(load(&cache, CHILD).read().0, 1 | 2));
        thread.join().unwrap();
        assert_eq!(load(&cache, CHILD).read().0, 2);
        cache.flush(FlushScope::All).unwrap();
        assert_eq!(byte(&storage, CHILD), 2);
    });
}

#[test]
fn what_is_loaded_after_a_refresh_is_new() {
    explore("refresh against load", None, || {
        let storage = MemoryStorage::from(vec![1; 64]);
        let cache = Arc::new(Cache::new_read_only(Arc::new(storage.clone()), CacheOptions::default()));
        let other = Arc::clone(&cache);
        let thread = thread::spawn(move || assert!(matches!(load(&other, CHILD).read().0, 1 | 2)));
        storage.write_at(&[2], CHILD).unwrap();
        cache.evict_owner(OWNER);
        assert_eq!(load(&cache, CHILD).read().0, 2);
        thread.join().unwrap();
        assert_eq!(load(&cache, CHILD).read().0, 2);
    });
}

#[test]
fn what_is_loaded_after_a_doubt_is_new() {
    fn load_block(cache: &Cache) -> Handle<Version> {
        let make = |bytes: &[u8]| Ok::<_, h5live_cache::Error>(Version(bytes[0]));
        cache.load_block(Addr::new(CHILD), OWNER, 1, make).unwrap()
    }
    explore("doubt against load", 3, || {
        let storage = MemoryStorage::from(vec![1; 64]);
        let cache = Arc::new(Cache::new_read_only(Arc::new(storage.clone()), CacheOptions::default()));
        // The bytes are kept from now on.
        cache.revalidate_owner_on_load(OWNER);
        assert_eq!(load_block(&cache).read().0, 1);
        cache.revalidate_owner_on_load(OWNER);
        let other = Arc::clone(&cache);
        let thread = thread::spawn(move || assert!(matches!(load_block(&other).read().0, 1 | 2)));
        storage.write_at(&[2], CHILD).unwrap();
        cache.revalidate_owner_on_load(OWNER);
        assert_eq!(load_block(&cache).read().0, 2);
        thread.join().unwrap();
        assert_eq!(load_block(&cache).read().0, 2);
    });
}

#[test]
fn raw_data_is_read_as_written_also_while_it_is_flushed() {
    explore("read of raw data against flush", None, || {
        let storage = MemoryStorage::from(vec![0; 64]);
        let cache = cache(&storage);
        cache.enqueue_raw_write(OWNER, CHUNK, 0, vec![1, 1]);
        let flusher = Arc::clone(&cache);
        let thread = thread::spawn(move || flusher.flush(FlushScope::All).unwrap());
        let mut read = [0; 3];
        cache.read_raw(CHUNK, 0, &mut read).unwrap();
        assert_eq!(read, [1, 1, 0]);
        cache.enqueue_raw_write(OWNER, CHUNK, 1, vec![2, 2]);
        cache.read_raw(CHUNK, 0, &mut read).unwrap();
        assert_eq!(read, [1, 2, 2]);
        thread.join().unwrap();
        cache.read_raw(CHUNK, 0, &mut read).unwrap();
        assert_eq!(read, [1, 2, 2]);
    });
}

#[test]
fn a_reader_beside_an_append_and_a_flush_finds_what_the_index_says() {
    explore("append against read against flush", 3, || {
        let storage = MemoryStorage::from(vec![0; 64]);
        let cache = cache(&storage);
        let index = cache.insert_entry(Addr::new(PARENT), OWNER, Pointer { child: 0 });
        let (writer, appended) = (Arc::clone(&cache), index.clone());
        let thread = thread::spawn(move || {
            let _operation = writer.begin_atomic_change();
            let proxy = writer.enqueue_raw_write(OWNER, CHUNK, 0, vec![1]);
            appended.update(|pointer| pointer.child = 1);
            writer.add_dependency(&appended, &proxy, DependencyKind::ExtensibleArrayChunk).unwrap();
        });
        let flusher = Arc::clone(&cache);
        let flush = thread::spawn(move || flusher.flush(FlushScope::All).unwrap());
        let pointer = index.read().child;
        let mut read = [0];
        cache.read_raw(CHUNK, 0, &mut read).unwrap();
        assert!(read[0] >= pointer);
        thread.join().unwrap();
        flush.join().unwrap();
        cache.read_raw(CHUNK, 0, &mut read).unwrap();
        assert_eq!(read, [1]);
    });
}

#[test]
fn a_write_through_does_not_overtake_what_came_later() {
    explore("write-through against write-through and flush", None, || {
        let storage = MemoryStorage::from(vec![0; 64]);
        let cache = cache(&storage);
        let writer = Arc::clone(&cache);
        let thread = thread::spawn(move || writer.write_or_enqueue_new_raw(OWNER, CHUNK, 0, &[1]).unwrap());
        let mine = cache.write_or_enqueue_new_raw(OWNER, CHUNK, 0, &[2]).unwrap();
        cache.flush(FlushScope::All).unwrap();
        let theirs = thread.join().unwrap();
        cache.flush(FlushScope::All).unwrap();
        // Who had to wait for the other came later.
        match (mine, theirs) {
            (Some(_), None) => assert_eq!(byte(&storage, 24), 2),
            (None, Some(_)) => assert_eq!(byte(&storage, 24), 1),
            (None, None) => assert!(matches!(byte(&storage, 24), 1 | 2)),
            (Some(_), Some(_)) => panic!("nobody was first"),
        }
    });
}

#[test]
fn a_failed_flush_loses_nothing_that_came_meanwhile() {
    explore("failing flush against writes", None, || {
        let storage = FaultyStorage::new(MemoryStorage::from(vec![0; 64]));
        let cache = cache(&storage);
        cache.enqueue_raw_write(OWNER, CHUNK, 0, vec![1, 1]);
        let entry = cache.insert_entry(Addr::new(CHILD), OWNER, Version(1));
        storage.fail_after(0, InjectedFailure::Broken, false);
        let writer = Arc::clone(&cache);
        let thread = thread::spawn(move || {
            let _operation = writer.begin_atomic_change();
            let proxy = writer.enqueue_raw_write(OWNER, CHUNK, 1, vec![2]);
            entry.update(|version| version.0 = 2);
            writer.add_dependency(&entry, &proxy, DependencyKind::LayoutRaw).unwrap();
        });
        cache.flush(FlushScope::All).unwrap_err();
        thread.join().unwrap();
        cache.flush(FlushScope::All).unwrap();
        assert_eq!((byte(&storage, 24), byte(&storage, 25), byte(&storage, CHILD)), (1, 2, 2));
        assert!(cache.begin_flush(FlushScope::All).unwrap().steps().is_empty());
    });
}

#[test]
fn space_is_given_out_once() {
    explore("allocation against allocation", None, || {
        let cache = cache(&MemoryStorage::from(vec![0; 64]));
        let other = Arc::clone(&cache);
        let thread = thread::spawn(move || other.space().alloc(8, SpaceKind::Metadata).unwrap());
        let mine = cache.space().alloc(8, SpaceKind::Metadata).unwrap();
        assert_ne!(mine, thread.join().unwrap());
    });
}

#[test]
fn freed_raw_data_is_not_overwritten_while_it_is_read() {
    explore("read of raw data against its reuse", None, || {
        let storage = MemoryStorage::from(vec![0; 64]);
        let cache = cache(&storage);
        let chunk = cache.space().alloc(1, SpaceKind::Raw).unwrap();
        let at = chunk.get().unwrap();
        storage.write_at(&[1], at).unwrap();
        let is_indexed = Arc::new(Mutex::new(true));
        let (other, index, writer) = (Arc::clone(&cache), Arc::clone(&is_indexed), storage.clone());
        let thread = thread::spawn(move || {
            *index.lock().unwrap() = false;
            other.free_raw(None, chunk, 1);
            other.flush(FlushScope::All).unwrap();
            let new = other.space().alloc(1, SpaceKind::Raw).unwrap();
            writer.write_at(&[2], new.get().unwrap()).unwrap();
        });
        let reading = cache.space().begin_raw_read();
        let is_indexed = *is_indexed.lock().unwrap();
        if is_indexed {
            thread::yield_now();
            assert_eq!(byte(&storage, at), 1);
        }
        drop(reading);
        thread.join().unwrap();
        assert_eq!(cache.space().alloc(1, SpaceKind::Raw).map(|new| new == chunk).unwrap(), byte(&storage, at) == 1);
    });
}
