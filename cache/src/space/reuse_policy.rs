//! When freed space is used again.

use std::time::Duration;

/// When freed space is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReusePolicy {
    /// It is allocated again as soon as a flush has written the structures that no longer point to it. Nobody else reads
    /// the file.
    #[default]
    AfterFlush,
    /// It is allocated again when it is known that no other process has the file open, and a moment later
    /// ([`ReusePolicy::MIN_GRACE`]). Readers may follow old pointers for as long as they like.
    WhenExclusive,
    /// It is allocated again this long after that flush, at least [`ReusePolicy::MIN_GRACE`]. Every reader drops older
    /// pointers, as those of h5live do.
    AfterGrace(Duration),
    /// It is never allocated again in this session.
    Never,
}

impl ReusePolicy {
    /// The longest time for which a reader of h5live follows pointers that it has read. No writer uses space again
    /// earlier while others read.
    pub const MIN_GRACE: Duration = Duration::from_secs(1);
}

/// Freed space that is not free yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuarantineStats {
    /// Bytes to which nothing in the file leads any more, and that rest.
    pub unreachable_bytes: u64,
    /// Bytes that nobody gets in this session.
    pub abandoned_bytes: u64,
    /// What they rest for.
    pub policy: ReusePolicy,
}
