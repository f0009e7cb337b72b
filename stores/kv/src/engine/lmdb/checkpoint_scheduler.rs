//! When states of an LMDB file become durable.
//!
//! LMDB keeps all pages that were freed since the last durable state ([`LmdbCheckpoint`]). A session that never asks for a
//! durable commit would make the file longer with each commit. So when the file has grown by more than the records in it, or
//! much of it was written again, the present state is made durable by a thread of its own, while commits go on. When it was
//! very much, commits wait for that. What the file has grown by for new records waits longer: an earlier durable state would
//! make none of it free.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;

use super::environment::Environment;
use super::lmdb_checkpoint::{LmdbCheckpoint, PendingCheckpoint};
use crate::engine::{EngineError, Result};

/// How many times as much the file may grow before commits wait.
const MAX_GROWTHS: u64 = 16;
/// How many times the most growth new records may take before their state is made durable: a durable commit, and the end of
/// the session, wait for all of it.
const MAX_NEW_DATA_GROWTHS: u64 = 4;
/// Bytes of pages that a commit takes beside those of its values: the way to them, and the list of pages that it frees.
const COMMIT_PAGE_BYTES: u64 = 16 << 10;
/// How many times the least growth may be written into pages that were free before commits wait.
const MAX_REWRITES: u64 = 4;

/// What makes states of a session durable that writes.
#[derive(Debug)]
pub struct CheckpointScheduler {
    point: Arc<Mutex<LmdbCheckpoint>>,
    /// The least and the most bytes by which the file grows before a state is made durable.
    growth: RangeInclusive<u64>,
    /// The file when the present durable state, or the one that is on its way, was taken.
    before: FileUse,
    /// Bytes that were written since then, about.
    written_bytes: u64,
    running: Option<JoinHandle<()>>,
    /// Why the disk did not take a state. Whether it has the ones before and behind it is not known then.
    failure: Arc<Mutex<Option<String>>>,
}

/// What a file has (bytes).
#[derive(Debug, Clone, Copy)]
struct FileUse {
    /// Pages that were ever used.
    used: u64,
    /// Pages of the keys and values.
    live: u64,
}

impl FileUse {
    fn of(environment: &Environment) -> Self {
        FileUse { used: environment.ever_used_bytes(), live: environment.live_bytes() }
    }
}

impl CheckpointScheduler {
    /// Makes the present state durable. The caller has the lock of writers.
    ///
    /// # Errors
    /// [`EngineError`] if something cannot be written.
    pub fn begin_with_checkpoint(
        folder: &Path,
        environment: &Arc<Environment>,
        growth_before_sync: RangeInclusive<u64>,
    ) -> Result<Self> {
        Ok(CheckpointScheduler {
            point: Arc::new(Mutex::new(LmdbCheckpoint::checkpoint_now(folder, environment)?)),
            growth: growth_before_sync,
            before: FileUse::of(environment),
            written_bytes: 0,
            running: None,
            failure: Arc::default(),
        })
    }

    fn check(&self) -> Result<()> {
        let lost = |text: &String| {
            EngineError::io("the disk has refused an earlier state")(std::io::Error::other(text.clone()))
        };
        self.failure.lock().as_ref().map(lost).map_or(Ok(()), Err)
    }

    /// Makes the present state durable, and waits for it. Nobody commits meanwhile.
    ///
    /// # Errors
    /// [`EngineError`] if something cannot be written, now or earlier.
    pub fn make_durable(&mut self, environment: &Arc<Environment>) -> Result<()> {
        self.check()?;
        let pending = self.point.lock().prepare(environment)?;
        let present = FileUse::of(environment);
        let done = environment.force_sync().and_then(|()| self.point.lock().install_unless_older(pending));
        if let Err(error) = &done {
            *self.failure.lock() = Some(error.to_string());
        }
        (self.before, self.written_bytes) = (present, 0);
        done
    }

    /// Looks after a commit of so many bytes whether the file has grown so much, or so much of it was written again, that its
    /// state is to be made durable. Nobody commits meanwhile.
    ///
    /// # Errors
    /// [`EngineError`] if the state cannot be read.
    pub fn start_checkpoint_if_due(&mut self, environment: &Arc<Environment>, edit_bytes: usize) -> Result<()> {
        let (present, before) = (FileUse::of(environment), self.before);
        // The file of a small store does not become much larger than what is in it.
        let growth = (before.used / 2).max(*self.growth.start()).min(*self.growth.end());
        let grown = present.used.saturating_sub(before.used);
        // Pages that would be free if the present state were durable.
        let held = (grown + before.live).saturating_sub(present.live);
        let max_grown = self.growth.end().saturating_mul(MAX_NEW_DATA_GROWTHS);
        self.written_bytes = self.written_bytes.saturating_add(edit_bytes as u64).saturating_add(COMMIT_PAGE_BYTES);
        // What did not make the file longer took pages that were free. If these were used up before the next state is begun,
        // the file would be longer by that each time, however little is in it.
        let (rewritten, least) = (self.written_bytes.saturating_sub(grown), *self.growth.start());
        let is_due = held >= growth || rewritten >= least || grown >= max_grown;
        let is_overdue = held / MAX_GROWTHS >= growth
            || rewritten / MAX_REWRITES >= least
            || grown / MAX_GROWTHS >= *self.growth.end();
        let is_running = self.running.as_ref().is_some_and(|thread| !thread.is_finished());
        if !is_due || is_running && !is_overdue {
            return Ok(());
        }
        self.wait();
        // Later durable commits say what has failed.
        if self.failure.lock().is_some() {
            return Ok(());
        }
        let pending = self.point.lock().prepare(environment)?;
        (self.before, self.written_bytes) = (present, 0);
        self.start(environment.clone(), pending);
        Ok(())
    }

    fn start(&mut self, environment: Arc<Environment>, pending: PendingCheckpoint) {
        let (point, failure) = (self.point.clone(), self.failure.clone());
        let work = move || {
            if let Err(error) = environment.force_sync().and_then(|()| point.lock().install_unless_older(pending)) {
                *failure.lock() = Some(error.to_string());
            }
        };
        // Without a thread, the next commit tries again when the file has grown further.
        self.running = thread::Builder::new().name("h5live-kv-sync".to_owned()).spawn(work).ok();
    }

    /// Waits for the thread.
    fn wait(&mut self) {
        if let Some(thread) = self.running.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for CheckpointScheduler {
    /// The thread writes files that belong to who has the lock of writers.
    fn drop(&mut self) {
        self.wait();
    }
}
