//! Waiting for what a writer publishes.

use std::sync::Arc;
use std::time::Duration;

use h5live_model::{ObjectId, Result, Watch, WatchEvent};

use crate::session::LogSession;

/// Watches objects of the store beneath, and the log. Entries are published in the last log dataset, so a new one has to
/// be watched from when it is known.
#[derive(Debug)]
pub struct LogWatch {
    session: Arc<LogSession>,
    objects: Vec<ObjectId>,
    /// How many log datasets there were when the inner watch was made.
    log_datasets: usize,
    inner: Box<dyn Watch>,
}

impl LogWatch {
    /// Watches objects.
    ///
    /// # Errors
    /// As [`h5live_model::Store::watch`].
    pub fn new(session: &Arc<LogSession>, objects: &[ObjectId]) -> Result<Self> {
        let (log, log_datasets) = session.watched();
        let inner = session.inner.watch(&[objects, &log].concat())?;
        Ok(LogWatch { session: session.clone(), objects: objects.to_vec(), log_datasets, inner })
    }
}

impl Watch for LogWatch {
    fn wait(&mut self, timeout: Duration) -> Result<WatchEvent> {
        if self.session.watched().1 != self.log_datasets {
            *self = LogWatch::new(&self.session, &self.objects)?;
            // Something may have been published there before it was watched.
            return Ok(WatchEvent::Changed);
        }
        self.inner.wait(timeout)
    }
}
