//! When recorded rows become visible to other processes.

use std::time::Duration;

/// When recorded rows are flushed. Whatever comes first counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlushPolicy {
    /// After so many rows (`--every`).
    pub max_unflushed_rows: u64,
    /// With a row that comes this much later than the first one that was not flushed.
    pub max_unflushed_age: Duration,
    /// When the input rests for so long.
    pub idle: Duration,
}

impl Default for FlushPolicy {
    /// After 1000 rows or 100 ms, and when the input rests for 50 ms.
    fn default() -> Self {
        FlushPolicy {
            max_unflushed_rows: 1000,
            max_unflushed_age: Duration::from_millis(100),
            idle: Duration::from_millis(50),
        }
    }
}
