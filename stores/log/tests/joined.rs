//! The suite that every store runs, for a writer that has joined a file, beside another one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use h5live_log::joined_files::JoinedFiles;
use h5live_log::shared_files::SharedFiles;
use h5live_log::{Log, LogRequest, LogStore};
use h5live_model::conformance::{self, Lab};
use h5live_model::{AllocationLimit, ConnectorRegistry, Mode, NoFilters, ObjectSpec, OpenRequest, Store};
use h5live_native::{Native, NativeConnector};

/// Files with a log, which are opened by their paths.
struct JoinedLab {
    folder: tempfile::TempDir,
    made: AtomicU64,
}

fn files(main: &Path) -> Arc<JoinedFiles> {
    let request = OpenRequest {
        mode: Mode::Read,
        root: &ObjectSpec::group(),
        options: &Native::default(),
        max_allocation: AllocationLimit::default(),
        unfilter: Arc::new(NoFilters),
        registry: &ConnectorRegistry::new(NativeConnector),
    };
    Arc::new(JoinedFiles::new(Arc::new(NativeConnector), main.to_owned(), Duration::from_secs(30), &request))
}

fn join(main: &Path, creates: bool) -> LogStore {
    LogStore::join(files(main), creates, LogRequest::new(joining())).unwrap()
}

fn read(main: &Path, mode: Mode) -> LogStore {
    let files = files(main);
    LogStore::open(files.open_main(mode).unwrap(), Some(files), LogRequest::new(Log::default())).unwrap()
}

fn joining() -> Log {
    Log { join: true, staging: 300, min_log_size: 1 << 10, max_log_size: 1 << 12, ..Log::default() }
}

impl JoinedLab {
    fn new() -> Self {
        JoinedLab { folder: tempfile::tempdir().unwrap(), made: AtomicU64::new(0) }
    }

    fn last(&self) -> PathBuf {
        self.folder.path().join(format!("{}.h5", self.made.load(Ordering::Relaxed)))
    }
}

impl Lab for JoinedLab {
    type Store = LogStore;

    fn create(&self) -> LogStore {
        self.made.fetch_add(1, Ordering::Relaxed);
        // Another writer has made the file, and has left.
        join(&self.last(), true).close().unwrap();
        join(&self.last(), false)
    }

    fn reopen(&self, closed: LogStore) -> LogStore {
        closed.close().unwrap();
        drop(closed);
        join(&self.last(), false)
    }

    fn reader(&self, _: &LogStore) -> Option<LogStore> {
        Some(read(&self.last(), Mode::SwmrRead))
    }
}

conformance::suite!(JoinedLab::new());
