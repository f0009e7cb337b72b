//! A session that reads, while another process may write.
//!
//! SlateDB's own reader moves to newer states by itself, and ends at a failure of the object store. A session needs states
//! that stay. So it pins tables by a checkpoint, and takes up the write-ahead log itself.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use slatedb::{Error as SlateError, WalReader};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::AbortHandle;

use super::heartbeat::WriterProbe;
use super::pinned::{CheckpointContext, PinnedTables, RELEASE_TIMEOUT};
use super::reader_view::ReaderView;
use super::session::SlateSession;
use super::tables_with_wal_tail::TablesWithWalTail;
use crate::engine::{EngineError, Result};

/// How often a reader looks for newer tables, and whether the writer is there.
const TABLES_INTERVAL: Duration = Duration::from_secs(2);
/// Newer tables are taken when the writes of the log take so many bytes, or the tables are so old.
const MAX_MEMTABLE_BYTES: usize = 16 << 20;
const MAX_TABLES_AGE: Duration = Duration::from_secs(60);
/// The longest pause after failed polls, and the longest time of a poll.
const MAX_POLL_PAUSE: Duration = Duration::from_secs(5);
const MAX_POLL_TIME: Duration = Duration::from_secs(120);
const CONTEXT: &str = "the key-value store cannot be read";

/// A session that reads.
pub struct SlateReader {
    session: Arc<SlateSession>,
    pins: Arc<CheckpointContext>,
    log: WalReader,
    progress: AsyncMutex<ReadProgress>,
    newest: Mutex<Arc<ReaderView>>,
    probe: AsyncMutex<WriterProbe>,
    poll: Mutex<Option<AbortHandle>>,
}

/// How far a reader has come.
struct ReadProgress {
    tail: TablesWithWalTail,
    looked_for_tables: Instant,
    /// Tables of earlier states that may be in use.
    earlier: Vec<Weak<PinnedTables>>,
}

impl fmt::Debug for SlateReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlateReader").field("location", &self.session.location.name).finish_non_exhaustive()
    }
}

impl SlateReader {
    /// Takes up the newest state, and looks for commits from now on.
    ///
    /// # Errors
    /// [`EngineError::Io`] and others if it cannot be read.
    pub fn open(session: Arc<SlateSession>) -> Result<Arc<Self>> {
        let pins = Arc::new(CheckpointContext {
            location: session.location.clone(),
            admin: session.new_admin(),
            cache: session.new_cache(),
            lifetime: session.options.checkpoint_lifetime,
            runtime: session.runtime.clone(),
        });
        let log = || WalReader::new(session.location.prefix.clone(), session.location.store.clone());
        let (first_log, first_pins) = (log(), pins.clone());
        let tail = session.block_on_slate(CONTEXT, async move {
            let mut tail = TablesWithWalTail::with_empty_tail(PinnedTables::pin_newest(first_pins).await?);
            tail.replay_new_files(&first_log).await?;
            Ok(tail)
        })?;
        let newest = Arc::new(ReaderView { session: session.clone(), state: tail.clone() });
        session.signal.announce_commit(tail.last_sequence);
        let progress = ReadProgress { tail, looked_for_tables: Instant::now(), earlier: Vec::new() };
        let reader = Arc::new(SlateReader {
            log: log(),
            session,
            pins,
            progress: AsyncMutex::new(progress),
            newest: Mutex::new(newest),
            probe: AsyncMutex::default(),
            poll: Mutex::default(),
        });
        reader.has_writer()?;
        let poll = poll_until_dropped(Arc::downgrade(&reader), reader.session.options.poll_interval);
        *reader.poll.lock() = reader.session.runtime.spawn(poll);
        Ok(reader)
    }

    /// The newest state: all commits that were in the object store before this call are in it.
    ///
    /// # Errors
    /// As [`SlateReader::open`].
    pub fn refreshed_view(self: &Arc<Self>) -> Result<Arc<ReaderView>> {
        let reader = self.clone();
        self.session.block_on_slate(CONTEXT, async move { reader.catch_up().await })?;
        Ok(self.newest.lock().clone())
    }

    /// Whether a writer is there.
    ///
    /// # Errors
    /// As [`SlateReader::open`].
    pub fn has_writer(self: &Arc<Self>) -> Result<bool> {
        let reader = self.clone();
        self.session
            .block_on_object_store("the writer cannot be looked for", async move { reader.look_for_writer().await })
    }

    async fn look_for_writer(&self) -> object_store::Result<bool> {
        let has_writer = self.probe.lock().await.has_writer(&self.session.location).await?;
        self.session.signal.set_has_writer(has_writer);
        Ok(has_writer)
    }

    async fn catch_up(&self) -> std::result::Result<(), SlateError> {
        let mut progress = self.progress.lock().await;
        let read = progress.tail.replay_new_files(&self.log).await;
        // What was read is shown, even if more could not be read.
        self.publish(&progress.tail);
        if read.is_err() || progress.looked_for_tables.elapsed() >= TABLES_INTERVAL {
            self.take_newer_tables(&mut progress).await?;
            progress.tail.replay_new_files(&self.log).await?;
            self.publish(&progress.tail);
        }
        Ok(())
    }

    fn publish(&self, tail: &TablesWithWalTail) {
        let mut newest = self.newest.lock();
        let is_same =
            newest.state.last_sequence == tail.last_sequence && Arc::ptr_eq(&newest.state.tables, &tail.tables);
        if !is_same {
            *newest = Arc::new(ReaderView { session: self.session.clone(), state: tail.clone() });
        }
        drop(newest);
        self.session.signal.announce_commit(tail.last_sequence);
    }

    /// Moves to newer tables if it is time to, and keeps alive what is in use.
    async fn take_newer_tables(&self, progress: &mut ReadProgress) -> std::result::Result<(), SlateError> {
        let manifest = self.pins.admin.read_manifest(None).await?;
        let manifest = manifest.ok_or_else(|| SlateError::data("the store is no longer there".to_owned()))?;
        let tail = &progress.tail;
        // Files of the log that are in tables are deleted after a while.
        let is_behind = manifest.replay_after_wal_id() > tail.last_included_wal_file;
        let is_large =
            tail.memtable.memory_bytes() > MAX_MEMTABLE_BYTES || tail.tables.pinned_at.elapsed() > MAX_TABLES_AGE;
        let is_newer = manifest.last_l0_seq() > tail.tables.last_sequence;
        if is_behind || (is_large && is_newer) || tail.tables.renew_if_due().await.is_err() {
            let tables = PinnedTables::pin_newest(self.pins.clone()).await?;
            let newer = progress.tail.rebase_onto(tables);
            let earlier = std::mem::replace(&mut progress.tail, newer);
            progress.earlier.push(Arc::downgrade(&earlier.tables));
        }
        progress.earlier.retain(|tables| tables.strong_count() > 0);
        for tables in progress.earlier.iter().filter_map(Weak::upgrade) {
            // A state whose checkpoint is gone may be lost to its views; others go on.
            let _ = tables.renew_if_due().await;
        }
        progress.looked_for_tables = Instant::now();
        Ok(())
    }

    /// One poll by the task of the session.
    async fn poll(&self, looks_for_writer: bool) -> bool {
        let failures = self.session.location.failures();
        let work = async {
            self.catch_up().await.map_err(failures.slate_error(CONTEXT))?;
            if looks_for_writer {
                self.look_for_writer().await.map_err(failures.object_store_error(CONTEXT))?;
            }
            Ok::<_, EngineError>(())
        };
        let late = || failures.io_error(CONTEXT)(std::io::ErrorKind::TimedOut.into());
        let polled = tokio::time::timeout(MAX_POLL_TIME, work).await.unwrap_or_else(|_| Err(late()));
        polled.inspect_err(|error| self.session.signal.announce_poll_failure(error)).is_ok()
    }

    /// Ends looking for commits, and lets go of the newest state.
    pub fn close(&self) {
        let Some(poll) = self.poll.lock().take() else { return };
        poll.abort();
        self.session.signal.close();
        let tables = self.newest.lock().state.tables.clone();
        // If this fails, the life of the checkpoint ends by itself.
        let _ = self.session.runtime.block_on(RELEASE_TIMEOUT, async move { tables.release().await });
    }
}

impl Drop for SlateReader {
    fn drop(&mut self) {
        self.poll.lock().take().iter().for_each(AbortHandle::abort);
    }
}

/// Looks for commits as long as the session is there. A failure ends nothing: the next poll may succeed.
async fn poll_until_dropped(reader: Weak<SlateReader>, interval: Duration) {
    let (mut pause, mut looked_for_writer) = (interval, Instant::now());
    loop {
        tokio::time::sleep(pause).await;
        let Some(reader) = reader.upgrade() else { return };
        let looks_for_writer = looked_for_writer.elapsed() >= TABLES_INTERVAL;
        if looks_for_writer {
            looked_for_writer = Instant::now();
        }
        pause = match reader.poll(looks_for_writer).await {
            true => interval,
            false => (pause * 2).min(MAX_POLL_PAUSE).max(interval),
        };
    }
}
