//! A storage that fails when a test wants it to.

use std::{io, sync::Arc};

use super::Storage;
use crate::primitive::Mutex;

/// How a write fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedFailure {
    /// Nothing is written: the medium is full.
    StorageFull,
    /// Nothing is written: the medium is broken.
    Broken,
    /// The first bytes, this many at most, are written; then the medium is full.
    PartialWrite(usize),
}

impl InjectedFailure {
    fn error(self) -> io::Error {
        match self {
            InjectedFailure::StorageFull | InjectedFailure::PartialWrite(_) => io::ErrorKind::StorageFull.into(),
            InjectedFailure::Broken => io::Error::other("injected failure"),
        }
    }
}

/// Passes everything on to another storage, but lets chosen changes (writes, length changes, barriers) fail.
/// Clones share the choice.
#[derive(Debug, Clone)]
pub struct FaultyStorage<S> {
    inner: S,
    fault: Arc<Mutex<PlannedFault>>,
}

#[derive(Debug, Default)]
struct PlannedFault {
    done: u64,
    at: Option<(u64, InjectedFailure)>,
    lasting: bool,
}

impl<S: Storage> FaultyStorage<S> {
    /// A storage that works until [`FaultyStorage::fail_after`] is called.
    pub fn new(inner: S) -> Self {
        FaultyStorage { inner, fault: Arc::default() }
    }

    /// The storage beneath.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Lets `changes` more changes succeed and the next one fail. Later ones succeed again, unless `keep_failing`.
    pub fn fail_after(&self, changes: u64, failure: InjectedFailure, keep_failing: bool) {
        let mut fault = self.fault.lock();
        fault.at = Some((fault.done.saturating_add(changes), failure));
        fault.lasting = keep_failing;
    }

    /// Lets everything succeed again.
    pub fn clear_fault(&self) {
        self.fault.lock().at = None;
    }

    /// The number of changes that were asked for so far, failed ones included.
    pub fn attempted_change_count(&self) -> u64 {
        self.fault.lock().done
    }

    fn next_failure(&self) -> Option<InjectedFailure> {
        let mut fault = self.fault.lock();
        let now = fault.done;
        fault.done += 1;
        let (at, failure) = fault.at?;
        (now == at || fault.lasting && now > at).then_some(failure)
    }
}

impl<S: Storage> Storage for FaultyStorage<S> {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.inner.read_at(into, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let Some(failure) = self.next_failure() else { return self.inner.write_at(bytes, at) };
        if let InjectedFailure::PartialWrite(n) = failure {
            self.inner.write_at(&bytes[..n.min(bytes.len())], at)?;
        }
        Err(failure.error())
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.next_failure().map_or_else(|| self.inner.set_len(len), |failure| Err(failure.error()))
    }

    fn sync(&self) -> io::Result<()> {
        self.next_failure().map_or_else(|| self.inner.sync(), |failure| Err(failure.error()))
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
