//! How many requests a client has made.

use std::sync::atomic::{AtomicU64, Ordering};

/// Requests of a client by their kind. Each attempt counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Reads of objects, whole or in part.
    pub gets: u64,
    /// Looks at the size and the tag of an object.
    pub heads: u64,
    /// Writes of objects, and of parts of them.
    pub puts: u64,
    /// Deletions of objects.
    pub deletes: u64,
    /// Pages of listings.
    pub lists: u64,
    /// Of all these, attempts that were not the first.
    pub retries: u64,
    /// Bytes of objects that were read.
    pub bytes_read: u64,
    /// Bytes of objects that were written.
    pub bytes_written: u64,
}

impl RequestCounts {
    /// All requests.
    pub fn total_requests(&self) -> u64 {
        self.gets + self.heads + self.puts + self.deletes + self.lists
    }
}

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    Get,
    Head,
    Put,
    Delete,
    List,
}

/// Counts requests.
#[derive(Debug, Default)]
pub struct Counters {
    requests: [AtomicU64; 5],
    retries: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
}

impl Counters {
    /// Another attempt of a request.
    pub fn record_attempt(&self, kind: RequestKind, is_retry: bool) {
        self.requests[kind as usize].fetch_add(1, Ordering::Relaxed);
        self.retries.fetch_add(u64::from(is_retry), Ordering::Relaxed);
    }

    /// Bytes that were read.
    pub fn record_bytes_read(&self, bytes: u64) {
        self.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that were written.
    pub fn record_bytes_written(&self, bytes: u64) {
        self.bytes_written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What was counted.
    pub fn counts(&self) -> RequestCounts {
        let of = |kind: RequestKind| self.requests[kind as usize].load(Ordering::Relaxed);
        RequestCounts {
            gets: of(RequestKind::Get),
            heads: of(RequestKind::Head),
            puts: of(RequestKind::Put),
            deletes: of(RequestKind::Delete),
            lists: of(RequestKind::List),
            retries: self.retries.load(Ordering::Relaxed),
            bytes_read: self.bytes_read.load(Ordering::Relaxed),
            bytes_written: self.bytes_written.load(Ordering::Relaxed),
        }
    }
}
