//! The suite that every store runs, on object stores.

use crate::shared;

use h5live_hsds::HsdsStore;
use h5live_hsds::engine::{FolderEngine, MemoryEngine};
use h5live_model::conformance::{self, FaultyLab, Lab};
use h5live_model::{Mode, Store};
use parking_lot::Mutex;

use self::shared::request;

/// Stores in folders.
struct Folders {
    folder: tempfile::TempDir,
    made: Mutex<u64>,
}

impl Folders {
    fn new() -> Self {
        Folders { folder: tempfile::tempdir().unwrap(), made: Mutex::new(0) }
    }

    fn open(&self, mode: Mode) -> HsdsStore {
        let domain = format!("home/run{}", self.made.lock());
        let engine = FolderEngine::open(self.folder.path(), &domain, mode).unwrap();
        HsdsStore::open(engine, &request(mode, &domain)).unwrap()
    }
}

impl Lab for Folders {
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

    fn reader(&self, _: &HsdsStore) -> Option<HsdsStore> {
        Some(self.open(Mode::SwmrRead))
    }
}

conformance::suite!(Folders::new());

/// Stores in memory.
mod memory {
    use super::*;

    #[derive(Default)]
    struct Engines {
        last: Mutex<Option<MemoryEngine>>,
    }

    impl Engines {
        fn engine(&self) -> MemoryEngine {
            self.last.lock().clone().unwrap()
        }
    }

    impl Lab for Engines {
        type Store = HsdsStore;

        fn create(&self) -> HsdsStore {
            let engine = MemoryEngine::new();
            *self.last.lock() = Some(engine.clone());
            HsdsStore::open(engine, &request(Mode::CreateNew, "run")).unwrap()
        }

        fn reopen(&self, closed: HsdsStore) -> HsdsStore {
            closed.close().unwrap();
            HsdsStore::open(self.engine().writer(), &request(Mode::Write, "run")).unwrap()
        }

        fn reader(&self, _: &HsdsStore) -> Option<HsdsStore> {
            Some(HsdsStore::open(self.engine().reader(), &request(Mode::SwmrRead, "run")).unwrap())
        }
    }

    impl FaultyLab for Engines {
        fn fail_after(&self, _: &HsdsStore, changes: Option<u64>) {
            self.engine().fail_after(changes);
        }

        fn recover(&self, died: HsdsStore) -> HsdsStore {
            drop(died);
            self.engine().fail_after(None);
            HsdsStore::open(self.engine().writer(), &request(Mode::Write, "run")).unwrap()
        }
    }

    conformance::suite!(Engines::default());
    conformance::fault_suite!(Engines::default());
}
