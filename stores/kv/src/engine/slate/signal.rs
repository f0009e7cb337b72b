//! What sessions and their watches tell each other: the newest state, and whether a writer is there.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use h5live_model::WatchEvent;
use parking_lot::{Condvar, Mutex};

use crate::engine::{EngineError, EngineWatch, Result};

/// How long looking for commits may fail before waits say so.
const FAILURE_PATIENCE: Duration = Duration::from_secs(30);

/// What is known of the newest commit.
#[derive(Debug, Default)]
struct Known {
    version: u64,
    has_writer: bool,
    /// The first of the failures since the last success, and why the last one happened.
    failing: Option<(Instant, String)>,
    is_closed: bool,
}

/// Tells watches of commits.
#[derive(Debug, Default)]
pub struct CommitSignal {
    known: Mutex<Known>,
    changed: Condvar,
}

impl CommitSignal {
    fn update(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.known.lock());
        self.changed.notify_all();
    }

    /// There is a commit of this number.
    pub fn announce_commit(&self, version: u64) {
        self.update(|known| {
            known.version = known.version.max(version);
            known.failing = None;
        });
    }

    /// Somebody writes, or nobody.
    pub fn set_has_writer(&self, has_writer: bool) {
        self.update(|known| known.has_writer = has_writer);
    }

    /// Looking for commits has failed.
    pub fn announce_poll_failure(&self, why: &EngineError) {
        self.update(|known| {
            let since = known.failing.as_ref().map_or_else(Instant::now, |(since, _)| *since);
            known.failing = Some((since, why.to_string()));
        });
    }

    /// The session has ended.
    pub fn close(&self) {
        self.update(|known| {
            known.has_writer = false;
            known.is_closed = true;
        });
    }

    /// Whether the last look for commits has failed.
    #[cfg(test)]
    pub fn is_poll_failing(&self) -> bool {
        self.known.lock().failing.is_some()
    }

    /// The number of the newest commit that is known.
    pub fn newest_version(&self) -> u64 {
        self.known.lock().version
    }
}

/// Waits for commits that a session hears of.
pub struct SlateWatch {
    signal: Arc<CommitSignal>,
    seen: u64,
    had_writer: bool,
}

impl SlateWatch {
    /// A watch for commits from now on.
    pub fn new(signal: Arc<CommitSignal>) -> Self {
        let (seen, had_writer) = {
            let known = signal.known.lock();
            (known.version, known.has_writer)
        };
        SlateWatch { signal, seen, had_writer }
    }
}

impl fmt::Debug for SlateWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlateWatch").field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl EngineWatch for SlateWatch {
    fn wait(&mut self, timeout: Duration) -> Result<WatchEvent> {
        let until = Instant::now().checked_add(timeout);
        let mut known = self.signal.known.lock();
        loop {
            if known.version != self.seen {
                self.seen = known.version;
                return Ok(WatchEvent::Changed);
            }
            if std::mem::replace(&mut self.had_writer, known.has_writer) && !known.has_writer {
                return Ok(WatchEvent::Ended);
            }
            if let Some((_, why)) = known.failing.as_ref().filter(|(since, _)| since.elapsed() > FAILURE_PATIENCE) {
                return Err(EngineError::io("commits cannot be looked for")(std::io::Error::other(why.clone())));
            }
            let now = Instant::now();
            if known.is_closed || until.is_some_and(|until| now >= until) {
                return Ok(WatchEvent::Timeout);
            }
            // Failures age without a signal.
            let patience = now + FAILURE_PATIENCE;
            self.signal.changed.wait_until(&mut known, until.map_or(patience, |until| until.min(patience)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_tells_of_commits_and_of_the_end_once() {
        let signal = Arc::new(CommitSignal::default());
        signal.announce_commit(4);
        signal.set_has_writer(true);
        let mut watch = SlateWatch::new(signal.clone());
        assert_eq!(watch.wait(Duration::ZERO).unwrap(), WatchEvent::Timeout);
        signal.announce_commit(5);
        signal.set_has_writer(false);
        assert_eq!(watch.wait(Duration::MAX).unwrap(), WatchEvent::Changed);
        assert_eq!(watch.wait(Duration::MAX).unwrap(), WatchEvent::Ended);
        assert_eq!(watch.wait(Duration::ZERO).unwrap(), WatchEvent::Timeout);
    }

    #[test]
    fn a_failure_that_is_over_is_forgotten() {
        let signal = Arc::new(CommitSignal::default());
        let mut watch = SlateWatch::new(signal.clone());
        signal.announce_poll_failure(&EngineError::ReadOnly);
        let long_ago = Instant::now().checked_sub(FAILURE_PATIENCE * 2).unwrap();
        signal.update(|known| known.failing = Some((long_ago, "no route".to_owned())));
        assert!(watch.wait(Duration::MAX).unwrap_err().to_string().contains("no route"));
        signal.announce_commit(1);
        assert_eq!(watch.wait(Duration::MAX).unwrap(), WatchEvent::Changed);
        assert_eq!(watch.wait(Duration::ZERO).unwrap(), WatchEvent::Timeout);
    }
}
