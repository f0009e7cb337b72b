//! Counters.

use crate::primitive::atomic::{AtomicU64, Ordering::Relaxed};

/// What a cache has done so far.
#[derive(Debug)]
pub struct Stats {
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) evictions: AtomicU64,
    pub(crate) bytes_read: AtomicU64,
    pub(crate) bytes_written: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) flushes: AtomicU64,
    pub(crate) torn_retries: AtomicU64,
}

impl Default for Stats {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Stats {
            hits: zero(),
            misses: zero(),
            evictions: zero(),
            bytes_read: zero(),
            bytes_written: zero(),
            writes: zero(),
            flushes: zero(),
            torn_retries: zero(),
        }
    }
}

pub(crate) fn count(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Relaxed);
}

impl Stats {
    /// Notes that a torn block was read again.
    pub fn count_torn_retry(&self) {
        count(&self.torn_retries, 1);
    }

    /// The counts at this moment.
    pub fn totals(&self) -> Totals {
        Totals {
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            evictions: self.evictions.load(Relaxed),
            bytes_read: self.bytes_read.load(Relaxed),
            bytes_written: self.bytes_written.load(Relaxed),
            writes: self.writes.load(Relaxed),
            flushes: self.flushes.load(Relaxed),
            torn_retries: self.torn_retries.load(Relaxed),
        }
    }
}

/// The counts of [`Stats`] at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Loads that found the entry.
    pub hits: u64,
    /// Loads that had to read.
    pub misses: u64,
    /// Entries dropped to stay in the budget.
    pub evictions: u64,
    /// Bytes read from the storage.
    pub bytes_read: u64,
    /// Bytes written to the storage.
    pub bytes_written: u64,
    /// Write calls to the storage.
    pub writes: u64,
    /// Flushes and trims that wrote something.
    pub flushes: u64,
    /// Torn blocks that were read again.
    pub torn_retries: u64,
}
