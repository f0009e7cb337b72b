//! Waiting for what a writer publishes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use h5live_model::{ObjectId, Result, Watch, WatchEvent};

use crate::session::{LogSession, WatchedFile};

/// How long one of several files is watched before the next one is looked at.
const TURN: Duration = Duration::from_millis(2);

/// Watches objects of the main file, and the logs. Entries are published in the last log dataset of each file, so a new
/// one has to be watched from when it is known.
#[derive(Debug)]
pub struct LogWatch {
    session: Arc<LogSession>,
    objects: Vec<ObjectId>,
    /// How many log datasets there were when the watches were made.
    log_datasets: usize,
    /// That of the main file, and those of the subfiles.
    watches: Vec<Box<dyn Watch>>,
}

impl LogWatch {
    /// Watches objects.
    ///
    /// # Errors
    /// As [`h5live_model::Store::watch`].
    pub fn new(session: &Arc<LogSession>, objects: &[ObjectId]) -> Result<Self> {
        let (watched, log_datasets) = session.files_and_log_dataset_count();
        let watch = |(number, (store, log)): (usize, &WatchedFile)| match number {
            0 => store.watch(&[objects, log].concat()),
            _ => store.watch(log),
        };
        let watches = watched.iter().enumerate().map(watch).collect::<Result<_>>()?;
        Ok(LogWatch { session: session.clone(), objects: objects.to_vec(), log_datasets, watches })
    }

    /// Looks at one file after the other.
    fn wait_for_any(&mut self, timeout: Duration) -> Result<WatchEvent> {
        let end = Instant::now().checked_add(timeout);
        loop {
            for watch in &mut self.watches {
                let left = end.map_or(TURN, |end| end.saturating_duration_since(Instant::now()).min(TURN));
                match watch.wait(left)? {
                    WatchEvent::Timeout => {}
                    event => return Ok(event),
                }
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return Ok(WatchEvent::Timeout);
            }
        }
    }
}

impl Watch for LogWatch {
    fn wait(&mut self, timeout: Duration) -> Result<WatchEvent> {
        if self.session.files_and_log_dataset_count().1 != self.log_datasets {
            *self = LogWatch::new(&self.session, &self.objects)?;
            // Something may have been published there before it was watched.
            return Ok(WatchEvent::Changed);
        }
        match &mut self.watches[..] {
            [only] => only.wait(timeout),
            _ => self.wait_for_any(timeout),
        }
    }
}
