//! Waiting for what a writer commits, by asking for objects again and again.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use h5live_model::{ObjectId, Result, Watch, WatchEvent};

use crate::engine::{ObjectChangeTag, ObjectEngine, PollPauses, Revalidation};
use crate::session::HsdsSession;

/// Waits for commits of some objects.
#[derive(Debug)]
pub struct HsdsWatch {
    session: Arc<HsdsSession>,
    /// Keys, and the tags that their objects had.
    seen: HashMap<String, Option<ObjectChangeTag>>,
    had_writer: bool,
    pauses: PollPauses,
    /// The pause before the next look, and when that is due.
    pause: Duration,
    next_look: Instant,
}

impl HsdsWatch {
    /// # Errors
    /// [`h5live_model::Error::Closed`], and those of the engine.
    pub fn new(session: Arc<HsdsSession>, objects: &[ObjectId]) -> Result<Self> {
        session.check_open()?;
        let had_writer = session.engine.has_writer()?;
        let mut seen = HashMap::new();
        for id in objects {
            session.document(*id)?;
            let key = session.domain.document_key(*id);
            let tag = session.engine.get(&key)?.map(|found| found.tag);
            seen.insert(key, tag);
        }
        let pauses = session.engine.poll_pauses();
        Ok(HsdsWatch { session, seen, had_writer, pauses, pause: pauses.first, next_look: Instant::now() })
    }

    /// Begins anew, with a look at once.
    fn begin_pauses(&mut self) {
        (self.pause, self.next_look) = (self.pauses.first, Instant::now());
    }

    /// Whether an object has changed since the last look.
    fn look(&mut self) -> Result<bool> {
        let mut has_changed = false;
        for (key, seen) in &mut self.seen {
            let now = match seen {
                Some(tag) => match self.session.engine.revalidate(key, tag)? {
                    Revalidation::Same => continue,
                    Revalidation::Newer(found) => Some(found.tag),
                    Revalidation::Gone => None,
                },
                None => self.session.engine.get(key)?.map(|found| found.tag),
            };
            has_changed |= now != *seen;
            *seen = now;
        }
        Ok(has_changed)
    }
}

impl Watch for HsdsWatch {
    fn wait(&mut self, timeout: Duration) -> Result<WatchEvent> {
        let start = Instant::now();
        if !self.pauses.continues_across_waits {
            self.begin_pauses();
        }
        loop {
            self.session.check_open()?;
            let due = self.next_look.saturating_duration_since(Instant::now());
            let left = timeout.saturating_sub(start.elapsed());
            if due > left && self.pauses.continues_across_waits {
                thread::sleep(left);
                return Ok(WatchEvent::Timeout);
            }
            thread::sleep(due.min(left));
            // The writer is asked for first: what it committed before it ended is seen.
            let has_writer = self.session.engine.has_writer()?;
            if self.look()? {
                self.begin_pauses();
                return Ok(WatchEvent::Changed);
            }
            if std::mem::replace(&mut self.had_writer, has_writer) && !has_writer {
                return Ok(WatchEvent::Ended);
            }
            self.next_look = Instant::now() + self.pause;
            self.pause = (self.pause * 2).min(self.pauses.longest);
            if left.is_zero() {
                return Ok(WatchEvent::Timeout);
            }
        }
    }
}
