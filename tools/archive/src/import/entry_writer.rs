//! Entries that were read, on their way into the file: a thread writes them while the next ones are read.

use std::io::Read;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::object_placer::PlacementError;
use super::objects::EntryObjectWriter;
use super::options::MAX_COMPACT_BYTES;
use crate::contents::EntryContents;
use crate::entry::TarEntry;
use crate::error::{Error, Result};
use crate::scanner::NonContentSink;
use crate::tables::ImportTablesWriter;
use crate::worker_thread::WorkerThread;

/// Bytes of contents, bytes of records, and entries, with which a batch is full.
const BATCH_CONTENT_BYTES: usize = 2 << 20;
const BATCH_RECORD_BYTES: usize = 1 << 20;
const BATCH_ENTRIES: usize = 4096;

/// Batches that wait for the thread at most.
const WAITING_BATCHES: usize = 4;

/// What the contents of an entry are, if it is a file.
#[derive(Debug)]
pub enum FileContents {
    /// They are in the batch; this is their digest.
    InBatchWithDigest(Range<usize>, Vec<u8>),
    /// They are stored already; this is their digest.
    StoredWithDigest(Vec<u8>),
}

impl FileContents {
    fn digest(&self) -> &[u8] {
        let (FileContents::InBatchWithDigest(_, digest) | FileContents::StoredWithDigest(digest)) = self;
        digest
    }
}

/// An entry that was read to its end.
#[derive(Debug)]
struct ReadEntry {
    entry: TarEntry,
    contents: Option<FileContents>,
    /// Where its records end in those of the batch.
    records_end: usize,
    /// Where it ends in the archive (byte).
    end: u64,
}

/// Entries, with their records and contents, in the order of the archive.
#[derive(Debug, Default)]
struct EntryBatch {
    entries: Vec<ReadEntry>,
    /// The records of all entries, and those behind the last one.
    records: Vec<u8>,
    contents: Vec<u8>,
    /// Bytes of `contents` that belong to entries.
    filled: usize,
}

impl EntryBatch {
    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.records.is_empty()
    }

    fn is_full(&self) -> bool {
        self.filled >= BATCH_CONTENT_BYTES
            || self.records.len() >= BATCH_RECORD_BYTES
            || self.entries.len() >= BATCH_ENTRIES
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.records.clear();
        self.filled = 0;
    }
}

/// Writes entries: their rows in the tables, and their objects in layouts that have some.
#[derive(Debug)]
pub struct EntryWriter {
    pub tables: ImportTablesWriter,
    pub objects: Option<Box<EntryObjectWriter>>,
    /// What errors call the archive.
    archive: String,
}

impl EntryWriter {
    fn write_batch(&mut self, batch: &EntryBatch) -> Result<()> {
        let mut at = 0;
        for read in &batch.entries {
            self.tables.push_non_content(&batch.records[at..read.records_end])?;
            at = read.records_end;
            let added = self.add_object(read, &batch.contents);
            added.map_err(|error| self.placement_error(error, &read.entry, read.end))?;
            self.tables.push_entry(&read.entry, read.contents.as_ref().map(FileContents::digest))?;
        }
        self.tables.push_non_content(&batch.records[at..])
    }

    fn add_object(&mut self, read: &ReadEntry, contents: &[u8]) -> Result<(), PlacementError> {
        let Some(objects) = &mut self.objects else { return Ok(()) };
        match &read.contents {
            None => objects.add_entry_without_contents(&read.entry),
            Some(FileContents::InBatchWithDigest(range, digest)) => {
                objects.add_compact_file(&read.entry, self.tables.sample_count(), &contents[range.clone()], digest)
            }
            Some(FileContents::StoredWithDigest(_)) => Ok(()),
        }
    }

    /// Adds the object of a file whose contents are read piece by piece, before its entry; returns their digest. Only
    /// layouts with objects have such files.
    ///
    /// # Errors
    /// [`PlacementError`].
    pub fn add_large_object_return_digest<R: Read>(
        &mut self,
        entry: &TarEntry,
        contents: EntryContents<'_, R>,
    ) -> Result<Vec<u8>, PlacementError> {
        match &mut self.objects {
            Some(objects) => objects.add_large_file(entry, self.tables.sample_count(), contents),
            None => unreachable!("the layout `shredder` has its own place for contents"),
        }
    }

    /// An error of an entry, which ends at a byte of the archive.
    fn placement_error(&self, error: PlacementError, entry: &TarEntry, at: u64) -> Error {
        match error {
            PlacementError::Failed(error) => error,
            PlacementError::PathFault(fault) => {
                let path = String::from_utf8_lossy(&entry.path).into_owned();
                Error::Archive { archive: self.archive.clone(), at, entry: Some(path), fault }
            }
        }
    }

    /// Publishes everything: objects first, and the rows of entries last.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn commit(&mut self) -> Result<()> {
        if let Some(objects) = &mut self.objects {
            objects.commit()?;
        }
        self.tables.commit()
    }
}

/// What the thread does next.
#[derive(Debug)]
enum WriteTask {
    Batch(EntryBatch),
    Commit,
}

/// The writer, and how its last task ended.
type WriterAndResult = (Box<EntryWriter>, Result<()>);

fn run_tasks(
    mut writer: Box<EntryWriter>,
    tasks: Receiver<WriteTask>,
    written: &SyncSender<EntryBatch>,
) -> WriterAndResult {
    for task in tasks {
        let done = match task {
            WriteTask::Commit => writer.commit(),
            WriteTask::Batch(mut batch) => {
                let done = writer.write_batch(&batch);
                batch.clear();
                // Nobody may need the memory any more.
                let _given_back = written.try_send(batch);
                done
            }
        };
        if done.is_err() {
            return (writer, done);
        }
    }
    (writer, Ok(()))
}

/// The thread that has the writer. It ends with the last task, or at the first error.
#[derive(Debug)]
struct WriterThread {
    worker: WorkerThread<WriteTask, Option<WriterAndResult>>,
    /// Memory of batches that are written.
    written: Receiver<EntryBatch>,
}

impl WriterThread {
    /// Gives the writer back if the system has no thread.
    fn start(writer: Box<EntryWriter>) -> Result<Self, Box<EntryWriter>> {
        let (give_back, written) = sync_channel(WAITING_BATCHES + 1);
        // The writer goes to a thread that is there: a thread that cannot start takes nothing with it.
        let (hand_writer, taken) = sync_channel(1);
        let run = move |tasks| taken.recv().ok().map(|writer| run_tasks(writer, tasks, &give_back));
        let Some(worker) = WorkerThread::start("h5live-entries", WAITING_BATCHES, run) else { return Err(writer) };
        hand_writer.send(writer).map_err(|refused| refused.0)?;
        Ok(WriterThread { worker, written })
    }

    /// Whether the thread took a task. If not, it has ended with an error.
    fn send(&self, task: WriteTask) -> bool {
        self.worker.send(task).is_ok()
    }

    /// Waits until all tasks are done, or one has failed. A panic in the thread is one of the caller.
    fn join(self) -> WriterAndResult {
        let ended = self.worker.join();
        ended.unwrap_or_else(|| unreachable!("a thread gets its writer before it is seen"))
    }
}

/// A writer of entries, to which whole batches are handed over. The records of an archive are pushed to it as the archive
/// has them, each entry behind its records.
#[derive(Debug)]
pub struct BackgroundEntryWriter {
    /// `None` while the thread has it.
    writer: Option<Box<EntryWriter>>,
    thread: Option<WriterThread>,
    batch: EntryBatch,
}

impl BackgroundEntryWriter {
    /// A writer for the entries of an archive that errors call `archive`.
    pub fn new(tables: ImportTablesWriter, objects: Option<Box<EntryObjectWriter>>, archive: &str) -> Self {
        let writer = EntryWriter { tables, objects, archive: archive.to_owned() };
        BackgroundEntryWriter { writer: Some(Box::new(writer)), thread: None, batch: EntryBatch::default() }
    }

    /// Memory for the contents of the next entry: so many bytes, at most [`MAX_COMPACT_BYTES`].
    pub fn reserve_contents(&mut self, bytes: usize) -> &mut [u8] {
        let start = self.batch.filled;
        if self.batch.contents.is_empty() {
            self.batch.contents.resize(BATCH_CONTENT_BYTES + MAX_COMPACT_BYTES as usize, 0);
        }
        &mut self.batch.contents[start..start + bytes]
    }

    /// Takes so many bytes of what was reserved as the contents of the next entry, which have this digest.
    pub fn claim_reserved_contents(&mut self, bytes: usize, digest: Vec<u8>) -> FileContents {
        let start = self.batch.filled;
        self.batch.filled += bytes;
        FileContents::InBatchWithDigest(start..self.batch.filled, digest)
    }

    /// Adds an entry, which ends at a byte of the archive, behind its records.
    ///
    /// # Errors
    /// Those of earlier entries: [`Error::File`], [`Error::Archive`].
    pub fn push(&mut self, entry: TarEntry, contents: Option<FileContents>, end_in_archive: u64) -> Result<()> {
        self.batch.entries.push(ReadEntry {
            entry,
            contents,
            records_end: self.batch.records.len(),
            end: end_in_archive,
        });
        if self.batch.is_full() { self.hand_over() } else { Ok(()) }
    }

    /// Hands the batch to the thread. Without a thread, it is written at once.
    fn hand_over(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            match WriterThread::start(writer) {
                Ok(thread) => self.thread = Some(thread),
                Err(writer) => self.writer = Some(writer),
            }
        }
        let Some(thread) = &self.thread else { return self.flush_to_writer().map(drop) };
        let memory = thread.written.try_recv().unwrap_or_default();
        let batch = std::mem::replace(&mut self.batch, memory);
        if thread.send(WriteTask::Batch(batch)) { Ok(()) } else { self.flush_to_writer().map(drop) }
    }

    /// Publishes all entries so far, while the next ones are read.
    ///
    /// # Errors
    /// As [`BackgroundEntryWriter::push`].
    pub fn commit_in_background(&mut self) -> Result<()> {
        self.hand_over()?;
        match &self.thread {
            Some(thread) if thread.send(WriteTask::Commit) => Ok(()),
            _ => self.flush_to_writer()?.commit(),
        }
    }

    /// Writes all that was pushed, and hands the writer out. After an error, which is said once, the entries from the one
    /// on that failed are dropped.
    ///
    /// # Errors
    /// As [`BackgroundEntryWriter::push`].
    pub fn flush_to_writer(&mut self) -> Result<&mut EntryWriter> {
        let mut ended = Ok(());
        if let Some(thread) = self.thread.take() {
            let (writer, result) = thread.join();
            (self.writer, ended) = (Some(writer), result);
        }
        let Some(writer) = &mut self.writer else { unreachable!("no thread has the writer") };
        if ended.is_ok() && !self.batch.is_empty() {
            ended = writer.write_batch(&self.batch);
        }
        self.batch.clear();
        ended.map(|()| &mut **writer)
    }
}

impl NonContentSink for BackgroundEntryWriter {
    fn push_non_content(&mut self, bytes: &[u8]) -> Result<()> {
        self.batch.records.extend_from_slice(bytes);
        if self.batch.is_full() { self.hand_over() } else { Ok(()) }
    }
}
