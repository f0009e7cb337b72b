//! The suite that every store runs, on HDF5 files.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use h5live_cache::{FaultyStorage, InjectedFailure};
use h5live_checker::file::{CheckOptions, check_path_with};
use h5live_model::Store;
use h5live_model::conformance::{self, ChecksumCoverage, DamageableStoreFixture, FaultyStoreFixture, StoreFixture};
use h5live_native::{LibVer, MemoryStorage, Mode, NativeFile, OpenOptions};

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

    fn open(&self, mode: Mode) -> NativeFile {
        NativeFile::open(&self.last(), &OpenOptions { mode, profile: self.profile, ..Default::default() }).unwrap()
    }
}

impl StoreFixture for Files {
    type Store = NativeFile;

    fn create(&self) -> NativeFile {
        self.made.fetch_add(1, Ordering::Relaxed);
        self.open(Mode::CreateNew)
    }

    fn reopen(&self, closed: NativeFile) -> NativeFile {
        closed.close().unwrap();
        drop(closed);
        let options = CheckOptions { reports_harmless_mismatches: true, ..CheckOptions::default() };
        check_path_with(&self.last(), options).unwrap().expect_clean();
        self.open(Mode::Write)
    }

    fn open_reader(&self, _writer: &NativeFile) -> Option<NativeFile> {
        Some(self.open(Mode::SwmrRead))
    }
}

impl DamageableStoreFixture for Files {
    fn closed_store_files(&self) -> Vec<PathBuf> {
        vec![self.last()]
    }

    fn reopen_read_only(&self) -> h5live_model::Result<NativeFile> {
        Ok(NativeFile::open(&self.last(), &OpenOptions { mode: Mode::Read, ..OpenOptions::default() })?)
    }

    fn checksum_coverage(&self) -> ChecksumCoverage {
        match self.profile {
            // Headers of the first version and symbol tables have none.
            LibVer::Earliest => ChecksumCoverage::None,
            _ => ChecksumCoverage::Structures,
        }
    }
}

conformance::suite!(Files::new(LibVer::V110));
conformance::damage_suite!(Files::new(LibVer::V110));

/// What files hold that every release of libhdf5 reads.
mod earliest {
    use super::*;

    conformance::suite!(Files::new(LibVer::Earliest));
    conformance::damage_suite!(Files::new(LibVer::Earliest));
}

/// Files whose bytes are in memory, and whose medium fails when it should.
struct FailingFiles(Mutex<FaultyStorage<MemoryStorage>>);

impl FailingFiles {
    fn new() -> Self {
        FailingFiles(Mutex::new(FaultyStorage::new(MemoryStorage::new())))
    }

    fn open(&self, bytes: MemoryStorage, mode: Mode) -> NativeFile {
        let storage = FaultyStorage::new(bytes);
        *self.0.lock().unwrap() = storage.clone();
        NativeFile::open_storage(Arc::new(storage), &OpenOptions { mode, ..OpenOptions::default() }).unwrap()
    }

    /// What the file of the last session holds now.
    fn image(&self) -> MemoryStorage {
        MemoryStorage::from(self.0.lock().unwrap().inner().to_vec())
    }
}

impl StoreFixture for FailingFiles {
    type Store = NativeFile;

    fn create(&self) -> NativeFile {
        self.open(MemoryStorage::new(), Mode::Create)
    }

    fn reopen(&self, closed: NativeFile) -> NativeFile {
        closed.close().unwrap();
        self.open(self.image(), Mode::Write)
    }

    fn open_reader(&self, _writer: &NativeFile) -> Option<NativeFile> {
        // A storage in memory has one session. What another process sees is what is left when the writer dies.
        None
    }
}

impl FaultyStoreFixture for FailingFiles {
    fn fail_after(&self, _store: &NativeFile, changes: Option<u64>) {
        let storage = self.0.lock().unwrap();
        match changes {
            Some(changes) => storage.fail_after(changes, InjectedFailure::StorageFull, true),
            None => storage.clear_fault(),
        }
    }

    fn crash_and_reopen(&self, _died: NativeFile) -> NativeFile {
        // Before the session is dropped, which would write the rest.
        self.open(self.image(), Mode::Write)
    }
}

conformance::fault_suite!(FailingFiles::new());
