//! The suite that every store runs, on HDF5 files and files in memory with maps as tables.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5live_checker::file::{CheckOptions, check_path_with};
use h5live_map_table::MapTableStore;
use h5live_model::Store;
use h5live_model::conformance::{self, StoreFixture};
use h5live_native::{LibVer, Mode, NativeFile, OpenOptions};

struct Files {
    profile: LibVer,
    folder: tempfile::TempDir,
    made: AtomicU64,
}

impl Files {
    fn new(profile: LibVer) -> Self {
        Files { profile, folder: tempfile::tempdir().unwrap(), made: AtomicU64::new(0) }
    }

    fn last(&self) -> PathBuf {
        self.folder.path().join(format!("{}.h5", self.made.load(Ordering::Relaxed)))
    }

    fn open(&self, mode: Mode) -> MapTableStore {
        let options = OpenOptions { mode, profile: self.profile, ..Default::default() };
        MapTableStore::over(Arc::new(NativeFile::open(&self.last(), &options).unwrap()))
    }
}

impl StoreFixture for Files {
    type Store = MapTableStore;

    fn create(&self) -> MapTableStore {
        self.made.fetch_add(1, Ordering::Relaxed);
        self.open(Mode::CreateNew)
    }

    fn reopen(&self, closed: MapTableStore) -> MapTableStore {
        closed.close().unwrap();
        drop(closed);
        let options = CheckOptions { reports_harmless_mismatches: true, ..CheckOptions::default() };
        check_path_with(&self.last(), options).unwrap().expect_clean();
        self.open(Mode::Write)
    }

    fn open_reader(&self, _writer: &MapTableStore) -> Option<MapTableStore> {
        Some(self.open(Mode::SwmrRead))
    }
}

conformance::suite!(Files::new(LibVer::V110));

/// What files hold that every release of libhdf5 reads.
mod earliest {
    use super::*;

    conformance::suite!(Files::new(LibVer::Earliest));
}
