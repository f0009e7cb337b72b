//! Writes of entries that a thread of their own does, while the next entries are gathered.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use h5live_model::ChunkStore;
use parking_lot::Mutex;

use crate::error::{LogError, Result};
use crate::log_datasets::write_entries;

/// Entries on their way to a log dataset.
#[derive(Debug, Clone)]
pub struct PendingWrite {
    /// The log dataset.
    pub log_dataset: Arc<dyn ChunkStore>,
    /// Where they go in it (bytes).
    pub log_dataset_offset: u64,
    /// Their position in the log (bytes).
    pub log_offset: u64,
    /// Their bytes.
    pub bytes: Arc<Vec<u8>>,
}

/// The thread.
#[derive(Debug)]
struct WriterThread {
    /// `None` while the thread ends.
    writes: Option<SyncSender<PendingWrite>>,
    results: Mutex<Receiver<Result<()>>>,
    thread: Option<JoinHandle<()>>,
}

/// Writes entries in the background, one run of them at a time. Until it has written one, it has it in memory.
#[derive(Debug, Default)]
pub struct BackgroundWriter {
    thread: Option<WriterThread>,
    pending: Option<PendingWrite>,
    /// Whether the thread has the pending write.
    is_begun: bool,
    /// Memory that is used again.
    spare: Vec<u8>,
}

impl PendingWrite {
    fn run(&self) -> Result<()> {
        write_entries(&*self.log_dataset, self.log_dataset_offset, &self.bytes)
    }
}

impl WriterThread {
    /// `None` if the system has no thread.
    fn start() -> Option<Self> {
        let (writes, jobs) = sync_channel::<PendingWrite>(1);
        let (done, results) = sync_channel(1);
        let work = move || {
            for write in jobs {
                let result = write.run();
                // The one who waits may have the memory again.
                drop(write);
                if done.send(result).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("h5live-log".to_owned()).spawn(work).ok()?;
        Some(WriterThread { writes: Some(writes), results: Mutex::new(results), thread: Some(thread) })
    }
}

impl Drop for WriterThread {
    /// Waits until nothing is written any more.
    fn drop(&mut self) {
        self.writes = None;
        // If it has panicked, it has written nothing more.
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

impl BackgroundWriter {
    /// Begins to write. What was begun before has been [finished](BackgroundWriter::finish_write).
    pub fn begin_write(&mut self, write: PendingWrite) {
        debug_assert!(self.pending.is_none());
        self.thread = self.thread.take().or_else(WriterThread::start);
        let writes = self.thread.as_ref().and_then(|thread| thread.writes.as_ref());
        self.is_begun = writes.is_some_and(|writes| writes.send(write.clone()).is_ok());
        self.pending = Some(write);
    }

    /// Waits until what was begun is written.
    ///
    /// # Errors
    /// Those of the store. Then the next call tries it again.
    pub fn finish_write(&mut self) -> Result<()> {
        let Some(pending) = &self.pending else { return Ok(()) };
        let result = match &self.thread {
            Some(thread) if std::mem::take(&mut self.is_begun) => thread.results.lock().recv().ok(),
            _ => None,
        };
        // What no thread has written is written here.
        result.unwrap_or_else(|| pending.run())?;
        self.spare = self.pending.take().and_then(|written| Arc::into_inner(written.bytes)).unwrap_or_default();
        self.spare.clear();
        Ok(())
    }

    /// Memory for the next entries.
    pub fn take_spare_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.spare)
    }

    /// Fills `into` with bytes of the log from `at` on: those that are still to be written from memory, those before them
    /// by `read`.
    ///
    /// # Errors
    /// Those of `read`; if there are not so many bytes.
    pub fn read(&self, at: u64, into: &mut [u8], read: impl FnOnce(u64, &mut [u8]) -> Result<()>) -> Result<()> {
        let Some(pending) = self.pending.as_ref().filter(|pending| at + into.len() as u64 > pending.log_offset) else {
            return read(at, into);
        };
        let (written, waiting) = into.split_at_mut(pending.log_offset.saturating_sub(at) as usize);
        if !written.is_empty() {
            read(at, written)?;
        }
        let from = usize::try_from(at.saturating_sub(pending.log_offset)).ok();
        let bytes = from.and_then(|from| pending.bytes.get(from..)?.get(..waiting.len()));
        let outside = LogError::EntryDatasetMismatch { dataset: u64::MAX, rule: "leads outside of the log" };
        waiting.copy_from_slice(bytes.ok_or(outside)?);
        Ok(())
    }
}
