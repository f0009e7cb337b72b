//! What is known of objects, and which ones are best asked for next.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use h5live_model::{LinkTarget, ObjectId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::protocol::ObjectRecord;

/// Most objects that are kept.
const MAX_OBJECTS: usize = 64 << 10;
/// Most objects that are remembered as ones to ask for.
const MAX_WAITING: usize = 256 << 10;
/// How long a record of a file that is being written holds, unless an event says otherwise.
const MAX_LIVE_AGE: Duration = Duration::from_millis(500);

/// Objects.
#[derive(Debug, Default)]
pub(crate) struct ObjectCache {
    records: FxHashMap<ObjectId, KnownObject>,
    /// Objects to which known links lead, and of which nothing is known, in the order in which they were met.
    waiting: VecDeque<ObjectId>,
    met: FxHashSet<ObjectId>,
    /// Counts refreshes: records of earlier ones do not hold any more.
    generation: u64,
}

#[derive(Debug)]
struct KnownObject {
    record: Arc<ObjectRecord>,
    moment: Moment,
}

/// When something was asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    generation: u64,
    /// Messages of events before.
    messages: u64,
    at: Instant,
}

impl ObjectCache {
    /// This moment, after so many messages of events.
    pub fn freshness_stamp(&self, message_count: u64) -> Moment {
        Moment { generation: self.generation, messages: message_count, at: Instant::now() }
    }

    /// What is known of an object now. `may_change`: whether it may change.
    pub fn get(&self, id: ObjectId, now: Moment, may_change: bool) -> Option<Arc<ObjectRecord>> {
        let known = self.records.get(&id)?;
        let then = known.moment;
        let holds = !may_change
            || then.generation == now.generation
                && then.messages == now.messages
                && now.at.saturating_duration_since(then.at) <= MAX_LIVE_AGE;
        holds.then(|| known.record.clone())
    }

    /// The objects that are best asked for with this one. None, if it was known before.
    pub fn take_fetch_batch(&mut self, id: ObjectId, most: usize) -> Vec<ObjectId> {
        let mut wanted = vec![id];
        if self.records.contains_key(&id) {
            return wanted;
        }
        while wanted.len() < most
            && let Some(next) = self.waiting.pop_front()
        {
            if next != id && !self.records.contains_key(&next) {
                wanted.push(next);
            }
        }
        wanted
    }

    /// Keeps what was asked for at a moment.
    pub fn add(&mut self, records: Vec<ObjectRecord>, moment: Moment) {
        if self.records.len().saturating_add(records.len()) > MAX_OBJECTS {
            self.records.clear();
            self.waiting.clear();
            self.met.clear();
        }
        for record in records {
            for link in record.links_if_few.iter().flatten() {
                if let LinkTarget::Hard(id) = link.target
                    && self.waiting.len() < MAX_WAITING
                    && self.met.insert(id)
                {
                    self.waiting.push_back(id);
                }
            }
            self.met.insert(record.id);
            self.records.insert(record.id, KnownObject { record: Arc::new(record), moment });
        }
    }

    /// Nothing that is known holds any more.
    pub fn invalidate_all(&mut self) {
        self.generation += 1;
    }

    /// Forgets objects.
    pub fn invalidate(&mut self, ids: &[ObjectId]) {
        for id in ids {
            if let Some(known) = self.records.get_mut(id) {
                // Asked for by itself next time.
                known.moment.generation = u64::MAX;
            }
        }
    }
}
