//! A storage that remembers, in order, everything that was done to it: the trace that the model checker explores.

use std::{io, ops::Range, sync::Arc};

use super::{Storage, memory};
use crate::primitive::Mutex;

/// One thing that was done to a storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageOp {
    /// Bytes were written.
    Write {
        /// Bytes from the start of the storage.
        at: u64,
        /// What was written.
        bytes: Vec<u8>,
    },
    /// The length was set, in bytes.
    SetLen(u64),
    /// A barrier: what came before is durable.
    Sync,
    /// A remark of the workload; it changes nothing.
    Mark(String),
}

/// Passes everything on to another storage, and keeps a log of what succeeded, in the order in which it took
/// effect. Clones share the log.
#[derive(Debug, Clone)]
pub struct RecordingStorage<S> {
    inner: S,
    log: Arc<Mutex<Vec<StorageOp>>>,
}

impl<S: Storage> RecordingStorage<S> {
    /// Records what is done to `inner` from now on.
    pub fn new(inner: S) -> Self {
        RecordingStorage { inner, log: Arc::new(Mutex::new(Vec::new())) }
    }

    /// The storage beneath.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Adds a remark to the log.
    pub fn log_mark(&self, remark: impl Into<String>) {
        self.log.lock().push(StorageOp::Mark(remark.into()));
    }

    /// A copy of the log so far.
    pub fn log(&self) -> Vec<StorageOp> {
        self.log.lock().clone()
    }

    /// The log so far, which begins anew.
    pub fn take_log(&self) -> Vec<StorageOp> {
        std::mem::take(&mut *self.log.lock())
    }

    fn record(&self, operation: StorageOp, apply: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut log = self.log.lock();
        apply()?;
        log.push(operation);
        Ok(())
    }
}

impl<S: Storage> Storage for RecordingStorage<S> {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.inner.read_at(into, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.record(StorageOp::Write { at, bytes: bytes.to_vec() }, || self.inner.write_at(bytes, at))
    }

    fn try_store_mapped(&self, bytes: &[u8], at: u64) -> bool {
        self.write_at(bytes, at).is_ok()
    }

    fn try_store_crash_atomic(&self, image: &[u8], changed: Range<usize>, at: u64) -> bool {
        image.get(changed.clone()).is_some_and(|part| self.write_at(part, at + changed.start as u64).is_ok())
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.record(StorageOp::SetLen(len), || self.inner.set_len(len))
    }

    fn sync(&self) -> io::Result<()> {
        self.record(StorageOp::Sync, || self.inner.sync())
    }

    fn preferred_prefill_len(&self) -> usize {
        self.inner.preferred_prefill_len()
    }

    fn reserve(&self, at: u64, len: u64) -> io::Result<()> {
        self.inner.reserve(at, len)
    }

    fn close(&self) {
        self.inner.close();
    }
}

/// Does again to `image` what `operations` did: the bytes of the file after that prefix of a log.
///
/// # Errors
/// When the image would not fit in memory.
pub fn replay_operations<'a>(
    image: &mut Vec<u8>,
    operations: impl IntoIterator<Item = &'a StorageOp>,
) -> io::Result<()> {
    for operation in operations {
        match operation {
            StorageOp::Write { at, bytes } => memory::write(image, bytes, *at)?,
            StorageOp::SetLen(len) => memory::resize(image, *len, 0)?,
            StorageOp::Sync | StorageOp::Mark(_) => {}
        }
    }
    Ok(())
}
