//! Statistics of a session.

use std::time::Duration;

/// Statistics of a session. No code depends on these numbers; they are for people who operate a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Bytes read from the file.
    pub bytes_read: u64,
    /// Bytes written to the file.
    pub bytes_written: u64,
    /// Writes.
    pub writes: u64,
    /// Structures that were needed and known.
    pub hits: u64,
    /// Structures that were needed and had to be read.
    pub misses: u64,
    /// Operations that met a half-written structure, or took too long, and were repeated.
    pub torn: u64,
    /// How often they did.
    pub retries: u64,
    /// Looks at what a writer has published since.
    pub refreshes: u64,
    /// Flushes.
    pub flushes: u64,
    /// The time of all flushes together.
    pub flush_time: Duration,
    /// The time of the longest flush.
    pub longest_flush: Duration,
    /// Bytes of a live file to which nothing leads any more, and that are not used again: until nobody else has the file
    /// open, for the grace, or in this session.
    pub resting_bytes: u64,
    /// Decoded chunks that were needed and known.
    pub chunk_hits: u64,
    /// Decoded chunks that were needed and had to be read.
    pub chunk_misses: u64,
    /// Bytes of decoded chunks that are kept in memory; of files that share a limit of memory, of all of them.
    pub chunk_cache_bytes: u64,
    /// Bytes of elements that wait in memory to be stored, of all files that share a limit of memory; 0 without one.
    pub staged_bytes: u64,
    /// How often elements were stored at once, or a chunk was not kept, because that memory was used up.
    pub early_stores: u64,
}
