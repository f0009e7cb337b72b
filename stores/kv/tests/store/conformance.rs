//! The suite that every store runs, on key-value stores.

use crate::shared;

use h5live_kv::engine::{Engine, LmdbEngine, LmdbOptions, LongKeyEngine, MemoryEngine, SyncPolicy};
use h5live_kv::{KvStore, check_container};
use std::path::PathBuf;

use h5live_model::conformance::{self, ChecksumCoverage, DamageableStoreFixture, FaultyStoreFixture, StoreFixture};
use h5live_model::{AllocationLimit, DurabilitySupport, Mode, NoFilters, Store, StoreCheckOptions};
use parking_lot::Mutex;

use self::shared::{StoreLab, folder_lab, request, session_number};

/// Stores in files of LMDB.
fn lmdb(sync: SyncPolicy) -> StoreLab<impl Fn(&str, Mode) -> KvStore> {
    folder_lab(move |folder, mode| {
        let options = LmdbOptions { sync, map_size: 1 << 30, ..LmdbOptions::default() };
        let engine = LongKeyEngine::new(LmdbEngine::open(folder, mode, &options).unwrap());
        KvStore::open(engine, &request(mode, sync.durability(), session_number())).unwrap()
    })
}

conformance::suite!(lmdb(SyncPolicy::DurableOnly));

/// Stores in a folder that tests look into.
struct DamagedFolders(tempfile::TempDir);

impl DamagedFolders {
    fn open(&self, mode: Mode) -> h5live_model::Result<KvStore> {
        let options = LmdbOptions { map_size: 1 << 30, ..LmdbOptions::default() };
        let engine = LmdbEngine::open(&self.0.path().join("x.kv"), mode, &options)?;
        KvStore::open(LongKeyEngine::new(engine), &request(mode, DurabilitySupport::OnRequest, session_number()))
    }
}

impl StoreFixture for DamagedFolders {
    type Store = KvStore;

    fn create(&self) -> KvStore {
        self.open(Mode::CreateNew).unwrap()
    }

    fn reopen(&self, closed: KvStore) -> KvStore {
        closed.close().unwrap();
        self.open(Mode::Write).unwrap()
    }

    fn open_reader(&self, _: &KvStore) -> Option<KvStore> {
        Some(self.open(Mode::SwmrRead).unwrap())
    }
}

impl DamageableStoreFixture for DamagedFolders {
    fn closed_store_files(&self) -> Vec<PathBuf> {
        vec![self.0.path().join("x.kv/data.mdb")]
    }

    fn reopen_read_only(&self) -> h5live_model::Result<KvStore> {
        self.open(Mode::Read)
    }

    fn checksum_coverage(&self) -> ChecksumCoverage {
        ChecksumCoverage::All
    }

    fn closed_store_fails_check(&self) -> bool {
        // A record whose key was changed is not where it is looked for.
        let options = LmdbOptions { map_size: 1 << 30, ..LmdbOptions::default() };
        let engine = LmdbEngine::open(&self.0.path().join("x.kv"), Mode::Read, &options).unwrap();
        let what = StoreCheckOptions { verify_data: true, find_lost_domains: false };
        let report = check_container(&LongKeyEngine::new(engine), what, &NoFilters, AllocationLimit::default());
        report.map_or(true, |report| !report.findings.is_empty())
    }
}

conformance::damage_suite!(DamagedFolders(tempfile::tempdir().unwrap()));

/// Commits that all wait for the disk.
mod always_durable {
    use super::*;

    conformance::suite!(lmdb(SyncPolicy::Always));
}

/// Commits of which none waits for the disk.
mod never_durable {
    use super::*;

    conformance::suite!(lmdb(SyncPolicy::Never));
}

/// Stores in memory, with keys of few bytes.
mod memory {
    use super::*;

    #[derive(Default)]
    struct Engines {
        last: Mutex<Option<MemoryEngine>>,
    }

    impl Engines {
        fn open(&self, engine: MemoryEngine, mode: Mode) -> KvStore {
            let request = request(mode, DurabilitySupport::Always, session_number());
            KvStore::open(LongKeyEngine::new(engine), &request).unwrap()
        }

        fn engine(&self) -> MemoryEngine {
            self.last.lock().clone().unwrap()
        }
    }

    impl StoreFixture for Engines {
        type Store = KvStore;

        fn create(&self) -> KvStore {
            let engine = MemoryEngine::new();
            *self.last.lock() = Some(engine.clone());
            self.open(engine, Mode::CreateNew)
        }

        fn reopen(&self, closed: KvStore) -> KvStore {
            closed.close().unwrap();
            assert!(!self.engine().has_writer().unwrap(), "a closed store has no writer");
            self.open(self.engine().reopen_writer(), Mode::Write)
        }

        fn open_reader(&self, _: &KvStore) -> Option<KvStore> {
            Some(self.open(self.engine().reader(), Mode::SwmrRead))
        }
    }

    impl FaultyStoreFixture for Engines {
        fn fail_after(&self, _: &KvStore, changes: Option<u64>) {
            self.engine().fail_after(changes);
        }

        fn crash_and_reopen(&self, died: KvStore) -> KvStore {
            drop(died);
            self.engine().fail_after(None);
            self.open(self.engine().reopen_writer(), Mode::Write)
        }
    }

    conformance::suite!(Engines::default());
    conformance::fault_suite!(Engines::default());
}
