//! Waiting for commits of an LMDB store.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use h5live_model::WatchEvent;
use h5live_swmr::{Poller, ProbeResult, SystemWakeSource};

use super::environment::Environment;
use super::files::{DATA_FILE, WRITER_LOCK_FILE};
use crate::engine::{EngineError, EngineWatch, Result};

/// Watches the number of the newest commit. That the lock of writers is closed ends a wait, too.
#[derive(Debug)]
pub struct LmdbWatch {
    environment: Arc<Environment>,
    seen: u64,
    poller: Poller<SystemWakeSource>,
}

impl LmdbWatch {
    /// # Errors
    /// [`EngineError::Io`] if a file cannot be opened.
    pub fn new(environment: Arc<Environment>, folder: &Path) -> Result<Self> {
        let open = |name| File::open(folder.join(name)).map_err(EngineError::io("the store cannot be watched"));
        let (data, writer) = (open(DATA_FILE)?, open(WRITER_LOCK_FILE)?);
        // In this order: later commits are reported.
        let poller = Poller::new(SystemWakeSource::of_files(&[&data, &writer]));
        let seen = environment.newest_commit();
        Ok(LmdbWatch { environment, seen, poller })
    }
}

impl EngineWatch for LmdbWatch {
    fn wait(&mut self, timeout: Duration) -> Result<WatchEvent> {
        let LmdbWatch { environment, seen, poller } = self;
        poller.wait(timeout, || {
            let new = environment.newest_commit();
            let is_new = std::mem::replace(seen, new) != new;
            Ok(if is_new { ProbeResult::Changed } else { ProbeResult::Same })
        })
    }
}
