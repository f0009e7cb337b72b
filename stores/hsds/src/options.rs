//! The options that only an object store has.

use h5live_model::settings;

/// The default of the option of this name (bytes).
pub const DEFAULT_METADATA_CACHE_BYTES: u64 = 128 << 20;

settings! {
    connector "hsds";
    /// The options of an object store in the schema of the Highly Scalable Data Service.
    pub struct Hsds {
        /// The domain in the bucket, as /home/me/run; without it, the location is that of the domain.
        domain: String = String::new(),
        /// The owner of a new domain; without it, the user of the service (HS_USERNAME), or of this machine.
        owner: String = String::new(),
        /// The user whose rights count; without it, everything is allowed.
        user: String = String::new(),
        /// Most links, and most attributes, of one object; more are spread over objects that HSDS does not read; 0: no limit.
        shard_above: u64 = 0,
        /// Bytes of objects and elements that are kept in memory to be read again.
        metadata_cache: u64 = DEFAULT_METADATA_CACHE_BYTES,
    }
}
