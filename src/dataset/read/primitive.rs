//! The lock and the counter of the chunk cache; its loom models (`verify/loom/chunk_cache.rs`) put their own here.

pub(crate) use std::sync::atomic::AtomicU64;

pub(crate) use parking_lot::Mutex;
