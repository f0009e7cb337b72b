//! Counters. Nothing depends on them, so they are not among what loom explores.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Statistics of a cache. Each shard counts its hits and misses.
#[derive(Debug, Default)]
pub(crate) struct CacheCounters {
    pub(crate) evictions: AtomicU64,
    pub(crate) bytes_read: AtomicU64,
    pub(crate) bytes_written: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) flushes: AtomicU64,
}

pub(crate) fn add_to_counter(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Relaxed);
}

/// Statistics of a cache at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
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
}
