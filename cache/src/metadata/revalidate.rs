//! Revalidation: a reader compares the bytes of a stale entry with the file. If they are equal, the entry is not
//! decoded again.

use std::{fmt, sync::atomic};

use rustc_hash::FxHashMap;

use crate::{
    entry_id::Owner,
    primitive::{
        RwLock,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

/// Later than every doubt.
const NEVER_STALE: u64 = u64::MAX;

/// Whose entries were doubted, and when. The times count from 0; with each doubt a new one begins.
#[derive(Default)]
pub(crate) struct StaleOwners {
    epoch: AtomicU64,
    stale_since: RwLock<FxHashMap<Owner, u64>>,
}

/// The origin of an entry.
pub(crate) struct ReadOrigin {
    /// The time at which the last read of its bytes began. It only grows. A thread that finds an old time reads once
    /// too often, so loom does not explore it.
    read_epoch: atomic::AtomicU64,
    /// The bytes, if they are kept.
    bytes: Option<Box<[u8]>>,
}

impl StaleOwners {
    pub(super) fn current_epoch(&self) -> u64 {
        self.epoch.load(SeqCst)
    }

    /// Makes everything stale that has been read of `owner` so far.
    pub(super) fn mark_stale(&self, owner: Owner) {
        let mut raised = self.stale_since.write();
        let now = self.epoch.load(SeqCst) + 1;
        raised.insert(owner, now);
        self.epoch.store(now, SeqCst);
    }

    /// Whether entries of `owner` were doubted before, and so will be again.
    pub(super) fn is_tracked(&self, owner: Owner) -> bool {
        self.current_epoch() > 0 && self.stale_since.read().contains_key(&owner)
    }

    /// Whether an entry of `owner` may be old.
    #[inline]
    pub(crate) fn is_stale(&self, owner: Owner, origin: &ReadOrigin) -> bool {
        let since = origin.read_epoch.load(atomic::Ordering::SeqCst);
        since != NEVER_STALE && self.is_stale_since(since, owner)
    }

    fn is_stale_since(&self, since: u64, owner: Owner) -> bool {
        since < self.current_epoch() && self.stale_since.read().get(&owner).is_some_and(|raised| since < *raised)
    }
}

impl ReadOrigin {
    /// The origin of an entry that never becomes stale, because nobody else writes the file.
    pub(super) fn exclusive() -> Self {
        ReadOrigin::from_file(NEVER_STALE, None)
    }

    /// The origin of an entry whose bytes were read after `since`. `bytes` are kept.
    pub(super) fn from_file(since: u64, bytes: Option<Box<[u8]>>) -> Self {
        ReadOrigin { read_epoch: since.into(), bytes }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.as_ref().map_or(0, |bytes| bytes.len())
    }

    /// The bytes of an entry of `len` bytes, if they are kept.
    pub(super) fn bytes(&self, len: usize) -> Option<&[u8]> {
        self.bytes.as_deref().filter(|bytes| bytes.len() == len)
    }

    /// They were read once more after `since`, and were the same.
    pub(super) fn set_read_epoch(&self, since: u64) {
        self.read_epoch.fetch_max(since, atomic::Ordering::SeqCst);
    }
}

impl fmt::Debug for StaleOwners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doubts").field("now", &self.current_epoch()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{cell::Cell, io, sync::Arc};

    use h5live_format::Addr;
    use parking_lot::Mutex;

    use super::super::tests::Block;
    use super::*;
    use crate::test_superblock::EofOnlySuperblock;
    use crate::{Cache, CacheOptions, Error, FlushScope, MemoryStorage, SpaceKind, Storage};

    const OWNER: Owner = Owner::new(Addr::new(8));

    #[test]
    fn what_was_doubted_is_made_again_only_if_its_bytes_have_changed() {
        let storage = MemoryStorage::from(b"old, and the rest".to_vec());
        let cache = Cache::new_read_only(Arc::new(storage.clone()), CacheOptions::default());
        let made = Cell::new(0);
        let load_as = |owner: Owner, len: usize| {
            let make = |bytes: &[u8]| {
                made.set(made.get() + 1);
                Ok::<_, Error>(Block(bytes.to_vec()))
            };
            cache.load_block(Addr::new(0), owner, len, make).unwrap()
        };
        let load = |len: usize| {
            let before = made.get();
            let handle = load_as(OWNER, len);
            let bytes = handle.read().0.clone();
            (handle, bytes, made.get() - before)
        };
        let (first, bytes, times) = load(3);
        assert_eq!((&bytes[..], times), (&b"old"[..], 1));
        let lean = cache.metadata_memory_bytes();
        cache.revalidate_owner_on_load(Owner::FILE);
        assert_eq!(load(3).2, 0, "another owner");
        cache.revalidate_owner_on_load(OWNER);
        assert!(first.is_invalidated() && cache.get_cached::<Block>(Addr::new(0)).unwrap().is_none());
        assert_eq!(load(3).2, 1, "the bytes are kept from now on");
        assert_eq!(cache.metadata_memory_bytes(), lean + 3);
        cache.revalidate_owner_on_load(OWNER);
        cache.revalidate_owner_on_load(OWNER);
        let (same, bytes, times) = load(3);
        assert_eq!((&bytes[..], times), (&b"old"[..], 0));
        assert!(!same.is_invalidated() && cache.get_cached::<Block>(Addr::new(0)).unwrap().is_some());
        storage.write_at(b"new", 0).unwrap();
        assert_eq!(load(3).2, 0, "nobody doubts it");
        cache.revalidate_owner_on_load(OWNER);
        let (_, bytes, times) = load(3);
        assert_eq!((&bytes[..], times), (&b"new"[..], 1));
        assert!(same.is_invalidated() && same.read().0 == b"old");
        cache.revalidate_owner_on_load(OWNER);
        assert_eq!(load(8).2, 1, "of another length");
        load_as(Owner::FILE, 8);
        assert_eq!(load(8).2, 1, "another owner has had it");
        cache.revalidate_owner_on_load(OWNER);
        storage.set_len(4).unwrap();
        assert!(cache.load_block(Addr::new(0), OWNER, 8, |_| Ok::<_, Error>(Block(Vec::new()))).is_err());
        assert!(cache.get_cached::<Block>(Addr::new(0)).unwrap().is_none());
    }

    #[test]
    fn what_is_doubted_while_it_is_read_is_read_again() {
        let storage = MemoryStorage::from(vec![0]);
        let cache = Cache::new_read_only(Arc::new(storage.clone()), CacheOptions::default());
        let at = Addr::new(0);
        // What others do while a structure is made of what was read, or right after that.
        let load = |meanwhile: &dyn Fn()| {
            let make = |bytes: &[u8]| {
                meanwhile();
                Ok::<_, Error>(Block(bytes.to_vec()))
            };
            let handle = cache.load_block(at, OWNER, 1, make).unwrap();
            handle.read().0[0]
        };
        let change = |to: u8| {
            storage.write_at(&[to], 0).unwrap();
            cache.revalidate_owner_on_load(OWNER);
        };
        assert_eq!(load(&|| change(1)), 0);
        assert_eq!(load(&|| ()), 1);
        cache.revalidate_owner_on_load(OWNER);
        assert_eq!(load(&|| panic!("the bytes were kept")), 1);
        change(2);
        assert_eq!(load(&|| change(3)), 2);
        assert_eq!(load(&|| change(4)), 3);
        assert_eq!(load(&|| ()), 4);
    }

    /// Runs something each time that it was read from.
    struct HookedStorage {
        storage: MemoryStorage,
        after_read: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    }

    impl fmt::Debug for HookedStorage {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.storage.fmt(f)
        }
    }

    impl Storage for HookedStorage {
        fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
            let found = self.storage.read_at(into, at);
            let after_read = self.after_read.lock().take();
            after_read.into_iter().for_each(|after_read| after_read());
            found
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

    #[test]
    fn what_is_doubted_while_it_is_compared_is_read_again() {
        let watched = Arc::new(HookedStorage { storage: MemoryStorage::from(vec![1]), after_read: Default::default() });
        let cache = Arc::new(Cache::new_read_only(watched.clone(), CacheOptions::default()));
        let load = || {
            let make = |bytes: &[u8]| Ok::<_, Error>(Block(bytes.to_vec()));
            let handle = cache.load_block(Addr::new(0), OWNER, 1, make).unwrap();
            handle.read().0[0]
        };
        cache.revalidate_owner_on_load(OWNER);
        assert_eq!(load(), 1);
        cache.revalidate_owner_on_load(OWNER);
        let (other, storage) = (cache.clone(), watched.storage.clone());
        *watched.after_read.lock() = Some(Box::new(move || {
            storage.write_at(&[2], 0).unwrap();
            other.revalidate_owner_on_load(OWNER);
        }));
        assert_eq!(load(), 1, "as it was when it was read");
        assert_eq!(load(), 2);
    }

    #[test]
    fn a_writer_forgets_what_it_doubts() {
        let cache = Cache::new_writable(
            Arc::new(MemoryStorage::new()),
            CacheOptions::default(),
            8,
            Arc::new(EofOnlySuperblock),
        );
        let at = cache.space().alloc(5, SpaceKind::Metadata).unwrap();
        let block = cache.insert_entry(at, OWNER, Block(b"block".to_vec()));
        cache.flush(FlushScope::All).unwrap();
        cache.revalidate_owner_on_load(OWNER);
        assert!(cache.get_cached::<Block>(at).unwrap().is_some(), "it is held");
        drop(block);
        cache.revalidate_owner_on_load(OWNER);
        assert!(cache.get_cached::<Block>(at).unwrap().is_none());
    }
}
