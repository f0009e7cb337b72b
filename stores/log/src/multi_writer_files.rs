//! What writers that join a file agree by: the lease of the main file, the subfile of each writer, and the order of
//! batches.

use std::fmt;
use std::sync::Arc;

use h5live_model::{Mode, OpenError, Store};

/// How the main file is opened by who has its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MainFileUse {
    /// It is made, unless it is there.
    CreateIfMissing,
    /// It is there, and a writer joins.
    Join,
    /// This writer has joined; the file stays live for others.
    Turn,
    /// It is there, and this is the last writer that has joined.
    LastWriter,
}

/// The main file and its subfiles, and what the writers of all processes agree by.
pub trait MultiWriterFiles: Send + Sync + fmt::Debug {
    /// Waits until no other writer changes the main file, and keeps others from it.
    ///
    /// # Errors
    /// If another writer does not end its turn.
    fn lease(&self) -> Result<Box<dyn MainFileLease>, OpenError>;

    /// Opens the main file to be read.
    ///
    /// # Errors
    /// As [`h5live_model::Connector::open`].
    fn open_main(&self, mode: Mode) -> Result<Arc<dyn Store>, OpenError>;

    /// Opens the subfile with this number. With `stays_live`, readers go on following when it is closed, and the next
    /// writer to join can have it.
    ///
    /// # Errors
    /// As [`h5live_model::Connector::open`].
    fn open_subfile(&self, number: u32, mode: Mode, stays_live: bool) -> Result<Arc<dyn Store>, OpenError>;

    /// The writer does not count as one any more.
    fn release_presence(&self);

    /// The next number in the order of batches, for the writer of subfile `own`: higher than `last`, and than all that any
    /// writer was given before. `None` if what was given before is not known for certain, and `last_is_highest` does not say that
    /// `last` is the highest one of all files.
    ///
    /// # Errors
    /// If the number cannot be taken.
    fn take_next_batch_order(&self, own: u32, last: u64, last_is_highest: bool) -> Result<Option<u64>, OpenError>;

    /// Tells all writers that the writer of subfile `own`, which has joined, has given its last batch the number `last`; 0 if
    /// there is none.
    ///
    /// # Errors
    /// If they cannot be told.
    fn set_last_batch_order(&self, own: u32, last: u64) -> Result<(), OpenError>;

    /// The last number in the order of batches that the writer of each file was given, by the number of the file; `None`
    /// if that is not known for certain. A writer publishes a batch after it was given its number.
    fn last_batch_orders(&self) -> Vec<Option<u64>>;

    /// Waits until no other writer publishes rows that it has appended, and keeps others from it until the lock is dropped.
    ///
    /// # Errors
    /// If another writer does not end.
    fn lock_appends(&self) -> Result<Box<dyn AppendLock>, OpenError>;
}

/// The right to publish rows that were appended.
pub trait AppendLock: Send + fmt::Debug {}

/// The right to change the main file.
pub trait MainFileLease: Send + fmt::Debug {
    /// Opens the main file for writing.
    ///
    /// # Errors
    /// As [`h5live_model::Connector::open`].
    fn open_main_for_writing(&mut self, usage: MainFileUse) -> Result<Arc<dyn Store>, OpenError>;

    /// Closes the main file, and lets other writers have their turn.
    ///
    /// # Errors
    /// If it cannot be closed. The next writer brings it into order.
    fn close_main_and_release(self: Box<Self>) -> Result<(), OpenError>;
}
