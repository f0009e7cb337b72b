//! The suite that every store runs, on HDF5 files with a log.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5live_checker::file::{CheckOptions, check_path_with};
use h5live_log::{Log, LogLayout, LogOpenRequest, LogStore};
use h5live_model::conformance::{self, ChecksumCoverage, DamageableStoreFixture, StoreFixture};
use h5live_model::{Mode, Store};
use h5live_native::{NativeFile, OpenOptions};

struct LogFiles {
    options: Log,
    folder: tempfile::TempDir,
    made: AtomicU64,
}

impl LogFiles {
    fn new(options: Log) -> Self {
        LogFiles { options, folder: tempfile::tempdir().unwrap(), made: AtomicU64::new(0) }
    }

    fn last(&self) -> PathBuf {
        self.folder.path().join(format!("{}.h5", self.made.load(Ordering::Relaxed)))
    }

    fn open(&self, mode: Mode) -> LogStore {
        let file = NativeFile::open(&self.last(), &OpenOptions { mode, ..Default::default() }).unwrap();
        LogStore::open_or_create(Arc::new(file), None, LogOpenRequest::new(self.options.clone())).unwrap()
    }
}

impl StoreFixture for LogFiles {
    type Store = LogStore;

    fn create(&self) -> LogStore {
        self.made.fetch_add(1, Ordering::Relaxed);
        self.open(Mode::CreateNew)
    }

    fn reopen(&self, closed: LogStore) -> LogStore {
        closed.close().unwrap();
        drop(closed);
        let options = CheckOptions { reports_harmless_mismatches: true, ..CheckOptions::default() };
        check_path_with(&self.last(), options).unwrap().expect_clean();
        self.open(Mode::Write)
    }

    fn open_reader(&self, writer: &LogStore) -> Option<LogStore> {
        writer.session().capabilities.supports_live_reads.then(|| self.open(Mode::SwmrRead))
    }
}

impl DamageableStoreFixture for LogFiles {
    fn closed_store_files(&self) -> Vec<PathBuf> {
        vec![self.last()]
    }

    fn reopen_read_only(&self) -> h5live_model::Result<LogStore> {
        let file = NativeFile::open(&self.last(), &OpenOptions { mode: Mode::Read, ..OpenOptions::default() })?;
        LogStore::open_or_create(Arc::new(file), None, LogOpenRequest::new(self.options.clone()))
    }

    fn checksum_coverage(&self) -> ChecksumCoverage {
        ChecksumCoverage::All
    }
}

conformance::suite!(LogFiles::new(Log::default()));
conformance::damage_suite!(LogFiles::new(Log::default()));

/// Log datasets that are full after a few entries, and writes that do not wait in memory.
mod small_log_datasets {
    use super::*;

    conformance::suite!(LogFiles::new(Log { staging: 100, min_log_size: 256, max_log_size: 256, ..Log::default() }));
}

/// Log VOL's layout. It does not claim shrinking, references to regions, virtual datasets, raw files and followers: groups
/// about these check that they are refused. `log_vol.rs` checks what no feature stands for.
mod log_vol {
    use super::*;

    conformance::suite!(LogFiles::new(Log { layout: LogLayout::LogVol, ..Log::default() }));

    /// Data logs of one entry or two.
    mod small_data_logs {
        use super::*;

        conformance::suite!(LogFiles::new(Log { layout: LogLayout::LogVol, staging: 100, ..Log::default() }));
    }
}
