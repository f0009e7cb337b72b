//! Waiting for commits.

use std::sync::Arc;
use std::time::Duration;

use h5live_model::{Result, Watch, WatchEvent};

use crate::engine::EngineWatch;
use crate::session::KvSession;

/// Waits for commits of a container. Each commit wakes it, whatever it has changed.
#[derive(Debug)]
pub struct KvWatch {
    session: Arc<KvSession>,
    commits: Box<dyn EngineWatch>,
}

impl KvWatch {
    /// # Errors
    /// Those of the engine.
    pub fn new(session: Arc<KvSession>) -> Result<Self> {
        let commits = session.engine.watch()?;
        Ok(KvWatch { session, commits })
    }
}

impl Watch for KvWatch {
    fn wait(&mut self, timeout: Duration) -> Result<WatchEvent> {
        self.session.check_open()?;
        Ok(self.commits.wait(timeout)?)
    }
}
