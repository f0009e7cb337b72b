//! The suite that every store runs, on object stores.

use std::path::{Path, PathBuf};

use crate::shared;

use h5live_hsds::engine::{FolderEngine, MemoryEngine};
use h5live_hsds::{HsdsOpenRequest, HsdsStore};
use h5live_model::conformance::{self, ChecksumCoverage, DamageableStoreFixture, FaultyStoreFixture, StoreFixture};
use h5live_model::{Mode, Store};
use parking_lot::Mutex;

use self::shared::request;

/// Stores in folders.
struct Folders {
    folder: tempfile::TempDir,
    made: Mutex<u64>,
    shard_above: u64,
}

impl Folders {
    fn new() -> Self {
        Folders { folder: tempfile::tempdir().unwrap(), made: Mutex::new(0), shard_above: 0 }
    }

    /// With links and attributes in shards, wherever there are two.
    fn sharded() -> Self {
        Folders { shard_above: 1, ..Folders::new() }
    }

    fn open(&self, mode: Mode) -> HsdsStore {
        self.try_open(mode).unwrap()
    }

    fn try_open(&self, mode: Mode) -> h5live_model::Result<HsdsStore> {
        let domain = format!("home/run{}", self.made.lock());
        let engine = FolderEngine::open(self.folder.path(), &domain, mode)?;
        let request = HsdsOpenRequest { shard_above: self.shard_above, ..request(mode, &domain) };
        HsdsStore::open(engine, &request)
    }
}

/// The files below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, mut files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    files.extend(folders.iter().flat_map(|folder| files_below(folder)));
    files.sort();
    files
}

impl DamageableStoreFixture for Folders {
    fn closed_store_files(&self) -> Vec<PathBuf> {
        files_below(self.folder.path())
    }

    fn reopen_read_only(&self) -> h5live_model::Result<HsdsStore> {
        self.try_open(Mode::Read)
    }

    fn checksum_coverage(&self) -> ChecksumCoverage {
        // The documents of HSDS have no place for them.
        ChecksumCoverage::None
    }
}

impl StoreFixture for Folders {
    type Store = HsdsStore;

    fn create(&self) -> HsdsStore {
        *self.made.lock() += 1;
        self.open(Mode::CreateNew)
    }

    fn reopen(&self, closed: HsdsStore) -> HsdsStore {
        closed.close().unwrap();
        drop(closed);
        self.open(Mode::Write)
    }

    fn open_reader(&self, _: &HsdsStore) -> Option<HsdsStore> {
        Some(self.open(Mode::SwmrRead))
    }
}

conformance::suite!(Folders::new());
conformance::damage_suite!(Folders::new());

mod sharded {
    use super::*;

    conformance::suite!(Folders::sharded());
}

/// Stores in memory.
mod memory {
    use super::*;

    #[derive(Default)]
    pub struct Engines {
        last: Mutex<Option<MemoryEngine>>,
        shard_above: u64,
    }

    impl Engines {
        /// With links and attributes in shards, wherever there are two.
        pub fn sharded() -> Self {
            Engines { shard_above: 1, ..Engines::default() }
        }

        fn request(&self, mode: Mode) -> HsdsOpenRequest {
            HsdsOpenRequest { shard_above: self.shard_above, ..request(mode, "run") }
        }

        fn engine(&self) -> MemoryEngine {
            self.last.lock().clone().unwrap()
        }
    }

    impl StoreFixture for Engines {
        type Store = HsdsStore;

        fn create(&self) -> HsdsStore {
            let engine = MemoryEngine::new();
            *self.last.lock() = Some(engine.clone());
            HsdsStore::open(engine, &self.request(Mode::CreateNew)).unwrap()
        }

        fn reopen(&self, closed: HsdsStore) -> HsdsStore {
            closed.close().unwrap();
            HsdsStore::open(self.engine().reopen_writer(), &self.request(Mode::Write)).unwrap()
        }

        fn open_reader(&self, _: &HsdsStore) -> Option<HsdsStore> {
            Some(HsdsStore::open(self.engine().reader(), &request(Mode::SwmrRead, "run")).unwrap())
        }
    }

    impl FaultyStoreFixture for Engines {
        fn fail_after(&self, _: &HsdsStore, changes: Option<u64>) {
            self.engine().fail_after(changes);
        }

        fn crash_and_reopen(&self, died: HsdsStore) -> HsdsStore {
            drop(died);
            self.engine().fail_after(None);
            HsdsStore::open(self.engine().reopen_writer(), &self.request(Mode::Write)).unwrap()
        }
    }

    conformance::suite!(Engines::default());
    conformance::fault_suite!(Engines::default());
}

/// Stores in memory with shards.
mod memory_sharded {
    use super::*;

    conformance::suite!(memory::Engines::sharded());
    conformance::fault_suite!(memory::Engines::sharded());
}
