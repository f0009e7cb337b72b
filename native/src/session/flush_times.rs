//! How long the flushes of a session took.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use h5live_model::Stats;

/// The time that all flushes took together, and the longest of them (nanoseconds).
#[derive(Debug, Default)]
pub(crate) struct FlushTimes {
    total: AtomicU64,
    longest: AtomicU64,
}

impl FlushTimes {
    /// Counts a flush.
    pub fn record_flush(&self, took: Duration) {
        let took = nanos(took);
        self.total.fetch_add(took, Ordering::Relaxed);
        self.longest.fetch_max(took, Ordering::Relaxed);
    }

    /// Puts the times into the statistics of a session.
    pub fn copy_to_stats(&self, stats: &mut Stats) {
        let time = |count: &AtomicU64| Duration::from_nanos(count.load(Ordering::Relaxed));
        stats.flush_time = time(&self.total);
        stats.longest_flush = time(&self.longest);
    }
}

/// A time in nanoseconds.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
