//! A session that writes: the one writer that SlateDB has at a time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use h5live_model::{FileBackedBytes, PublishLevel};
use parking_lot::Mutex;
use slatedb::config::{FlushOptions, FlushType, Settings};
use slatedb::{CloseReason, Db, DbSnapshot, WalReader, WriteBatch};

use super::heartbeat::Heartbeat;
use super::pinned::OBJECT_STORE_MAX_RETRIES;
use super::scan::{RangeReader, bounds, scan_options};
use super::session::SlateSession;
use crate::engine::{EditBatch, EngineError, KeyCountRecord, KeySpan, Result, SyncPolicy, View};

/// After so many files of the log their writes go into a table: a reader that opens the store reads the files behind it.
/// SlateDB by itself waits for 4,096 of them.
const MAX_LOG_FILES: u64 = 512;
/// Bytes of writes that are in no table when a session ends, at most about.
const MAX_TABLE_BYTES: u64 = 128 << 20;
/// A flush that has the writes of the log go into a table.
const TABLE_FLUSH: FlushOptions = FlushOptions { flush_type: FlushType::MemTable };
/// The number of this store in the cache, which has only one.
const CACHE_SCOPE: u64 = 1;
const READ_CONTEXT: &str = "the key-value store cannot be read";
const WRITE_CONTEXT: &str = "the key-value store cannot be written";
const HEARTBEAT_CONTEXT: &str = "the session cannot be announced";

/// A session that writes.
pub struct SlateWriter {
    session: Arc<SlateSession>,
    db: Arc<Db>,
    /// Files of the log since their writes went into a table.
    log_files: AtomicU64,
    /// Bytes of commits since one has waited.
    unwritten_bytes: AtomicU64,
    /// `None` after the session was closed.
    heartbeat: Mutex<Option<Heartbeat>>,
}

impl fmt::Debug for SlateWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlateWriter").field("location", &self.session.location.name).finish_non_exhaustive()
    }
}

impl SlateWriter {
    /// Opens a store for writing, or makes it. The writer before this one is fenced: it writes nothing more.
    ///
    /// # Errors
    /// [`EngineError::Io`] and others.
    pub fn open(session: Arc<SlateSession>, session_id: u64) -> Result<Self> {
        let options = &session.options;
        let settings = Settings {
            flush_interval: Some(options.flush_interval),
            object_store_max_retries: Some(OBJECT_STORE_MAX_RETRIES),
            ..Settings::default()
        };
        let builder = Db::builder(session.location.prefix.clone(), session.location.store.clone())
            .with_settings(settings)
            .with_db_cache(session.new_cache(), CACHE_SCOPE);
        let db = Arc::new(session.block_on_slate("the key-value store cannot be opened for writing", builder.build())?);
        let interval = options.heartbeat_interval;
        session.block_on_object_store(
            HEARTBEAT_CONTEXT,
            Heartbeat::write_first(session.location.clone(), session_id, interval),
        )?;
        let heartbeat =
            Heartbeat::start(&session.runtime, &session.location, Arc::downgrade(&db), session_id, interval);
        let log = WalReader::new(session.location.prefix.clone(), session.location.store.clone());
        let first = db.status().current_manifest.replay_after_wal_id().saturating_add(1);
        let log_files = session.block_on_slate(READ_CONTEXT, async move { log.list(first..).await })?.len() as u64;
        let writer = SlateWriter {
            session,
            db,
            log_files: AtomicU64::new(log_files),
            unwritten_bytes: AtomicU64::new(0),
            heartbeat: Mutex::new(Some(heartbeat)),
        };
        // Writers that died before they had written so many files have left them to this one.
        if log_files >= MAX_LOG_FILES {
            writer.log_files.store(0, Ordering::Relaxed);
            let db = writer.db.clone();
            let flushed = async move { db.flush_with_options(TABLE_FLUSH).await };
            writer.session.block_on_slate_scaled_timeout(WRITE_CONTEXT, MAX_TABLE_BYTES, flushed)?;
        }
        writer.session.signal.announce_commit(writer.view()?.version());
        writer.session.signal.set_has_writer(true);
        Ok(writer)
    }

    /// What is written, also what is not yet in the object store.
    ///
    /// # Errors
    /// [`EngineError::Fenced`] if another writer has taken over.
    pub fn view(&self) -> Result<WriterView> {
        let snapshot = self.db.snapshot().map_err(self.session.location.failures().slate_error(READ_CONTEXT))?;
        Ok(WriterView { session: self.session.clone(), snapshot })
    }

    /// Writes edits as one batch.
    ///
    /// # Errors
    /// [`EngineError::Fenced`], [`EngineError::DurabilityDisabled`], [`EngineError::Full`], [`EngineError::Io`]. After a failure
    /// of the object store, the batch may be in the store or not.
    pub fn commit(&self, edits: &EditBatch, publish: PublishLevel) -> Result<()> {
        if self.heartbeat.lock().is_none() {
            return Err(EngineError::ReadOnly);
        }
        let waits = match self.session.options.sync {
            SyncPolicy::Always => true,
            SyncPolicy::DurableOnly => publish == PublishLevel::Durable,
            SyncPolicy::Never if publish == PublishLevel::Durable => return Err(EngineError::DurabilityDisabled),
            SyncPolicy::Never => false,
        };
        let counts = if edits.deferred_key_counts().next().is_some() {
            let view = self.view()?;
            edits.key_count_records(|key| view.has(key))?
        } else {
            Vec::new()
        };
        let batch = (!edits.is_empty()).then(|| batch(edits, &counts));
        let db = self.db.clone();
        let bytes = self.unwritten_bytes.fetch_add(edits.memory_bytes() as u64, Ordering::Relaxed)
            + edits.memory_bytes() as u64;
        let written = self.session.block_on_slate_scaled_timeout(WRITE_CONTEXT, bytes, async move {
            let written = match batch {
                Some(batch) => Some(db.write(batch).await?.seqnum()),
                None => None,
            };
            if waits {
                db.flush().await?;
            }
            Ok(written)
        });
        let written = written.map_err(|error| self.fencing(error))?;
        if waits {
            self.unwritten_bytes.store(0, Ordering::Relaxed);
        }
        if waits && self.log_files.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_LOG_FILES {
            self.write_table();
        }
        written.into_iter().for_each(|sequence| self.session.signal.announce_commit(sequence));
        Ok(())
    }

    /// Has the writes of the log go into a table, and does not wait for it.
    fn write_table(&self) {
        self.log_files.store(0, Ordering::Relaxed);
        let db = self.db.clone();
        self.session.runtime.spawn(async move {
            // If it fails, the writes stay in the log, and a failure that is more than this meets the next commit.
            let _ = db.flush_with_options(TABLE_FLUSH).await;
        });
    }

    /// The error, or that another writer has taken over, if this is why.
    fn fencing(&self, error: EngineError) -> EngineError {
        match self.db.status().close_reason {
            Some(CloseReason::Fenced) => {
                let fenced = slatedb::Error::closed(String::new(), CloseReason::Fenced);
                self.session.location.failures().slate_error(WRITE_CONTEXT)(fenced)
            }
            _ => error,
        }
    }

    /// Writes what is in memory, and ends the session. A second call does nothing.
    ///
    /// # Errors
    /// As [`SlateWriter::commit`].
    pub fn close(&self) -> Result<()> {
        let Some(heartbeat) = self.heartbeat.lock().take() else { return Ok(()) };
        heartbeat.stop();
        let db = self.db.clone();
        let bytes = self.unwritten_bytes.load(Ordering::Relaxed) + MAX_TABLE_BYTES;
        let closed = self.session.block_on_slate_scaled_timeout(WRITE_CONTEXT, bytes, async move { db.close().await });
        let (location, session) = (self.session.location.clone(), heartbeat.session_id());
        let retracted = self.session.block_on_object_store(HEARTBEAT_CONTEXT, Heartbeat::retract(location, session));
        self.session.signal.close();
        closed.map_err(|error| self.fencing(error))?;
        retracted
    }
}

/// Edits as one batch, with the numbers of keys that they change.
fn batch(edits: &EditBatch, counts: &[KeyCountRecord<'_>]) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for (key, value) in edits.iter() {
        match value {
            Some(value) => batch.put_bytes(Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)),
            None => batch.delete(key),
        }
    }
    for (key, number) in counts {
        batch.put_bytes(Bytes::copy_from_slice(key), Bytes::copy_from_slice(number));
    }
    batch
}

/// A state that the session which writes sees. It ends with the session.
pub struct WriterView {
    session: Arc<SlateSession>,
    snapshot: Arc<DbSnapshot>,
}

impl fmt::Debug for WriterView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterView").field("version", &self.snapshot.seq()).finish_non_exhaustive()
    }
}

impl View for WriterView {
    fn version(&self) -> u64 {
        self.snapshot.seq()
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let (snapshot, key) = (self.snapshot.clone(), Bytes::copy_from_slice(key));
        let value = self.session.block_on_slate(READ_CONTEXT, async move { snapshot.get(key).await })?;
        value.iter().for_each(|value| found(value));
        Ok(value.is_some())
    }

    fn scan(&self, range: &KeySpan, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let (snapshot, range) = (self.snapshot.clone(), bounds(range));
        let work = async move {
            let keys = snapshot.scan_with_options(range, &scan_options()).await?;
            RangeReader::new(keys).next_batch().await
        };
        let (mut keys, mut piece) = self.session.block_on_slate(READ_CONTEXT, work)?;
        while piece.pairs.iter().all(|pair| each(&pair.key, &pair.value)) && !piece.is_last {
            (keys, piece) = self.session.block_on_slate(READ_CONTEXT, keys.next_batch())?;
        }
        Ok(())
    }

    fn share_value_prefix(&self, _: &[u8], _: u64) -> Result<Option<FileBackedBytes>> {
        Ok(None)
    }
}
