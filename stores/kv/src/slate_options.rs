//! The options that only a key-value store in SlateDB has.

use std::time::Duration;

use h5live_model::settings;
use h5live_objects::ObjectOptions;

use crate::engine::SyncPolicy;
use crate::session::KvOpenRequest;

settings! {
    connector "kv+s3";
    /// The options of a key-value store in an object store or, by SlateDB, in a folder.
    pub struct KvSlate {
        /// Which commits wait for the object store: all, durable flushes, or none.
        sync: SyncPolicy = SyncPolicy::Always,
        /// How often a reader looks for commits.
        poll_interval: Duration = Duration::from_millis(100),
        /// How long commits that do not wait stay in the memory of the writer at most.
        flush_interval: Duration = Duration::from_millis(100),
        /// The most bytes of changes in memory that are not flushed: beyond them, a change is refused.
        max_uncommitted: u64 = KvOpenRequest::DEFAULT_MAX_UNCOMMITTED_BYTES,
        /// Whether values of a new store get checksums, which are verified when they are read.
        checksums: bool = true,
        /// The most bytes of blocks that are kept in memory.
        cache_size: u64 = 64 << 20,
    }
    included {
        /// How the object store is reached.
        objects: ObjectOptions,
    }
}
