//! The suite that every store runs, on key-value stores.

mod shared;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use h5live_kv::KvStore;
use h5live_kv::engine::{Engine, LmdbEngine, LmdbOptions, LongKeys, MemoryEngine, SyncPolicy};
use h5live_model::conformance::{self, FaultyLab, Lab};
use h5live_model::{Durability, Mode, Store};
use parking_lot::Mutex;

use self::shared::request;

/// Stores in folders.
struct Folders {
    sync: SyncPolicy,
    folder: tempfile::TempDir,
    made: AtomicU64,
    opened: AtomicU64,
}

impl Folders {
    fn new(sync: SyncPolicy) -> Self {
        Folders { sync, folder: tempfile::tempdir().unwrap(), made: AtomicU64::new(0), opened: AtomicU64::new(0) }
    }

    fn last(&self) -> PathBuf {
        self.folder.path().join(format!("{}.kv", self.made.load(Ordering::Relaxed)))
    }

    fn open(&self, mode: Mode) -> KvStore {
        let options = LmdbOptions { sync: self.sync, map_size: 1 << 30, ..LmdbOptions::default() };
        let engine = LmdbEngine::open(&self.last(), mode, &options).unwrap();
        let random = self.opened.fetch_add(1, Ordering::Relaxed);
        KvStore::open(LongKeys::new(engine), &request(mode, self.sync.durability(), random)).unwrap()
    }
}

impl Lab for Folders {
    type Store = KvStore;

    fn create(&self) -> KvStore {
        self.made.fetch_add(1, Ordering::Relaxed);
        self.open(Mode::CreateNew)
    }

    fn reopen(&self, closed: KvStore) -> KvStore {
        closed.close().unwrap();
        drop(closed);
        self.open(Mode::Write)
    }

    fn reader(&self, _: &KvStore) -> Option<KvStore> {
        Some(self.open(Mode::SwmrRead))
    }
}

conformance::suite!(Folders::new(SyncPolicy::Durable));

/// Commits that all wait for the disk.
mod always_durable {
    use super::*;

    conformance::suite!(Folders::new(SyncPolicy::Always));
}

/// Commits of which none waits for the disk.
mod never_durable {
    use super::*;

    conformance::suite!(Folders::new(SyncPolicy::Never));
}

/// Stores in memory, with keys of few bytes.
mod memory {
    use super::*;

    #[derive(Default)]
    struct Engines {
        last: Mutex<Option<MemoryEngine>>,
        opened: AtomicU64,
    }

    impl Engines {
        fn open(&self, engine: MemoryEngine, mode: Mode) -> KvStore {
            let random = self.opened.fetch_add(1, Ordering::Relaxed);
            KvStore::open(LongKeys::new(engine), &request(mode, Durability::Always, random)).unwrap()
        }

        fn engine(&self) -> MemoryEngine {
            self.last.lock().clone().unwrap()
        }
    }

    impl Lab for Engines {
        type Store = KvStore;

        fn create(&self) -> KvStore {
            let engine = MemoryEngine::new();
            *self.last.lock() = Some(engine.clone());
            self.open(engine, Mode::CreateNew)
        }

        fn reopen(&self, closed: KvStore) -> KvStore {
            closed.close().unwrap();
            assert!(!self.engine().has_writer().unwrap(), "a closed store has no writer");
            self.open(self.engine().reopen(), Mode::Write)
        }

        fn reader(&self, _: &KvStore) -> Option<KvStore> {
            Some(self.open(self.engine().reader(), Mode::SwmrRead))
        }
    }

    impl FaultyLab for Engines {
        fn fail_after(&self, _: &KvStore, changes: Option<u64>) {
            self.engine().fail_after(changes);
        }

        fn recover(&self, died: KvStore) -> KvStore {
            drop(died);
            self.engine().fail_after(None);
            self.open(self.engine().reopen(), Mode::Write)
        }
    }

    conformance::suite!(Engines::default());
    conformance::fault_suite!(Engines::default());
}
