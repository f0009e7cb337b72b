//! The options that only a key-value store has.

use h5live_model::settings;

use crate::engine::SyncPolicy;
use crate::session::KvOpenRequest;

settings! {
    connector "kv";
    /// The options of a key-value store in a folder.
    pub struct Kv {
        /// The most bytes that the store can have: addresses are taken for them, and no memory.
        map_size: u64 = 1 << 40,
        /// The most states that all processes read at a time.
        max_readers: u32 = 4096,
        /// Which commits wait for the disk: all, durable flushes, or none, and then a power failure may lose the store.
        sync: SyncPolicy = SyncPolicy::DurableOnly,
        /// The most bytes of changes in memory that are not flushed: beyond them, a change is refused.
        max_uncommitted: u64 = KvOpenRequest::DEFAULT_MAX_UNCOMMITTED_BYTES,
        /// Whether values of a new store get checksums, which are verified when they are read.
        checksums: bool = true,
    }
}
