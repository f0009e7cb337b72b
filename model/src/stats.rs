//! What a session has done so far.

use std::time::Duration;

/// What a session has done so far. Nothing depends on these numbers; they are for people who look after a recording.
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
    /// Operations that met something half-written, or took too long, and began anew.
    pub torn: u64,
    /// How often they did.
    pub retries: u64,
    /// Looks at what a writer has published since.
    pub refreshes: u64,
    /// Flushes.
    pub flushes: u64,
    /// What all flushes took together.
    pub flush_time: Duration,
    /// What the longest flush took.
    pub longest_flush: Duration,
    /// Decoded chunks that were needed and known.
    pub chunk_hits: u64,
    /// Decoded chunks that were needed and had to be read.
    pub chunk_misses: u64,
}
