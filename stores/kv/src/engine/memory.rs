//! An engine in memory, for tests and for the model checker.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use h5live_model::{FileBackedBytes, PublishLevel, WatchEvent};
use parking_lot::{Condvar, Mutex};

use super::{EditBatch, Engine, EngineError, EngineWatch, KeySpan, Result, View};

/// Most bytes of a key: few, so that tests meet long keys.
const MAX_KEY_BYTES: usize = 64;

type Pairs = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// One state of an engine in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryView {
    version: u64,
    pairs: Arc<Pairs>,
}

#[derive(Debug, Default)]
struct MemoryStates {
    newest: MemoryView,
    has_writer: bool,
    /// Commits that succeed before all fail, for tests.
    commits_before_failure: Option<u64>,
    /// All states so far, for the model checker, if it asks for them.
    history: Option<Vec<MemoryView>>,
}

#[derive(Debug, Default)]
struct SharedStates {
    states: Mutex<MemoryStates>,
    committed: Condvar,
}

/// A session on keys and values in memory. A clone is the same session.
#[derive(Debug, Clone)]
pub struct MemoryEngine {
    shared: Arc<SharedStates>,
    writable: bool,
}

impl Default for MemoryEngine {
    fn default() -> Self {
        MemoryEngine::new()
    }
}

impl MemoryEngine {
    /// An empty one, open for writing.
    pub fn new() -> Self {
        let engine = MemoryEngine { shared: Arc::default(), writable: true };
        engine.shared.states.lock().has_writer = true;
        engine
    }

    /// The state that a view has, as an engine of its own that is open for writing.
    pub fn from_view(view: &MemoryView) -> Self {
        let engine = MemoryEngine::new();
        engine.shared.states.lock().newest = view.clone();
        engine
    }

    /// A further session that reads.
    pub fn reader(&self) -> Self {
        MemoryEngine { shared: self.shared.clone(), writable: false }
    }

    /// A further session that writes, after the one before was closed or abandoned.
    pub fn reopen_writer(&self) -> Self {
        self.shared.states.lock().has_writer = true;
        MemoryEngine { shared: self.shared.clone(), writable: true }
    }

    /// Lets so many commits succeed from now on, and all later ones fail. With `None`, all succeed again.
    pub fn fail_after(&self, commits: Option<u64>) {
        self.shared.states.lock().commits_before_failure = commits;
    }

    /// Keeps each state from now on, for [`MemoryEngine::recorded_history`].
    pub fn start_history(&self) {
        let mut states = self.shared.states.lock();
        let first = states.newest.clone();
        states.history = Some(vec![first]);
    }

    /// The states since [`MemoryEngine::start_history`], the first one included.
    pub fn recorded_history(&self) -> Vec<MemoryView> {
        self.shared.states.lock().history.clone().unwrap_or_default()
    }
}

impl Engine for MemoryEngine {
    fn view(&self) -> Result<Arc<dyn View>> {
        Ok(Arc::new(self.shared.states.lock().newest.clone()))
    }

    fn newest_version(&self) -> Result<u64> {
        Ok(self.shared.states.lock().newest.version)
    }

    fn commit(&self, edits: &EditBatch, _: PublishLevel) -> Result<()> {
        if !self.writable {
            return Err(EngineError::ReadOnly);
        }
        if let Some((key, _)) = edits.iter().find(|(key, _)| key.len() > MAX_KEY_BYTES) {
            return Err(EngineError::KeyTooLong(key.len()));
        }
        let mut states = self.shared.states.lock();
        if let Some(left) = &mut states.commits_before_failure {
            *left = left.checked_sub(1).ok_or_else(|| EngineError::Full("a test says so".to_owned()))?;
        }
        let counts = edits.key_count_records(|key| Ok::<_, EngineError>(states.newest.pairs.contains_key(key)))?;
        let pairs = Arc::make_mut(&mut states.newest.pairs);
        for (key, value) in edits.iter() {
            match value {
                Some(value) => drop(pairs.insert(key.into(), value.into())),
                None => drop(pairs.remove(key)),
            }
        }
        pairs.extend(counts.into_iter().map(|(key, number)| (key.into(), number.into())));
        states.newest.version += 1;
        let newest = states.newest.clone();
        states.history.iter_mut().for_each(|history| history.push(newest.clone()));
        self.shared.committed.notify_all();
        Ok(())
    }

    fn max_key_bytes(&self) -> usize {
        MAX_KEY_BYTES
    }

    fn has_writer(&self) -> Result<bool> {
        Ok(self.shared.states.lock().has_writer)
    }

    fn watch(&self) -> Result<Box<dyn EngineWatch>> {
        let states = self.shared.states.lock();
        let (seen, had_writer) = (states.newest.version, states.has_writer);
        Ok(Box::new(MemoryEngineWatch { shared: self.shared.clone(), seen, had_writer }))
    }

    fn close(&self) -> Result<()> {
        if self.writable {
            self.shared.states.lock().has_writer = false;
            self.shared.committed.notify_all();
        }
        Ok(())
    }
}

impl View for MemoryView {
    fn version(&self) -> u64 {
        self.version
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.pairs.get(key);
        value.into_iter().for_each(|value| found(value));
        Ok(value.is_some())
    }

    fn scan(&self, range: &KeySpan, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        if !range.is_empty() {
            let end = range.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            self.pairs.range::<[u8], _>((Bound::Included(&*range.start), end)).all(|(key, value)| each(key, value));
        }
        Ok(())
    }

    fn share_value_prefix(&self, _: &[u8], _: u64) -> Result<Option<FileBackedBytes>> {
        Ok(None)
    }
}

#[derive(Debug)]
struct MemoryEngineWatch {
    shared: Arc<SharedStates>,
    seen: u64,
    had_writer: bool,
}

impl EngineWatch for MemoryEngineWatch {
    fn wait(&mut self, timeout: Duration) -> Result<WatchEvent> {
        let until = Instant::now().checked_add(timeout);
        let mut states = self.shared.states.lock();
        loop {
            if states.newest.version != self.seen {
                self.seen = states.newest.version;
                return Ok(WatchEvent::Changed);
            }
            if std::mem::replace(&mut self.had_writer, states.has_writer) && !states.has_writer {
                return Ok(WatchEvent::Ended);
            }
            match until {
                Some(until) if Instant::now() >= until => return Ok(WatchEvent::Timeout),
                Some(until) => drop(self.shared.committed.wait_until(&mut states, until)),
                None => self.shared.committed.wait(&mut states),
            }
        }
    }
}
