//! Options that every store has, by their names: they are of the facade.

use h5live_model::settings;

/// Bytes of decoded chunks that are kept by default.
pub const DEFAULT_CHUNK_CACHE_BYTES: usize = 32 << 20;

settings! {
    connector "every store";
    /// The options that every store has.
    pub(crate) struct CommonOptions {
        /// Bytes of decoded chunks that are kept in memory for reads of their other parts.
        chunk_cache: u64 = DEFAULT_CHUNK_CACHE_BYTES as u64,
        /// Bytes that all files opened with this number share, for what can be stored or read again.
        memory: u64 = u64::MAX,
    }
}
