//! The files of a store in its folder.

/// LMDB's keys and values.
pub const DATA_FILE: &str = "data.mdb";
/// LMDB's table of readers.
pub const LOCK_FILE: &str = "lock.mdb";
/// Locked by the session that writes.
pub const WRITER_LOCK_FILE: &str = "h5live.writer";
/// The meta pages of the last durable state.
pub const CHECKPOINT_FILE: &str = "h5live.durable";
