//! The suite that every store runs, for a writer that has joined a file, beside another one.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use h5live_log::LogStore;
use h5live_model::conformance::{self, StoreFixture};
use h5live_model::{Mode, Store};

use super::files::{join, read};

/// Files with a log, which are opened by their paths.
struct JoinedLab {
    folder: tempfile::TempDir,
    made: AtomicU64,
}

impl JoinedLab {
    fn new() -> Self {
        JoinedLab { folder: tempfile::tempdir().unwrap(), made: AtomicU64::new(0) }
    }

    fn last(&self) -> PathBuf {
        self.folder.path().join(format!("{}.h5", self.made.load(Ordering::Relaxed)))
    }
}

impl StoreFixture for JoinedLab {
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

    fn open_reader(&self, _: &LogStore) -> Option<LogStore> {
        Some(read(&self.last(), Mode::SwmrRead))
    }
}

conformance::suite!(JoinedLab::new());
