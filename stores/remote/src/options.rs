//! The options of files on object stores.

use h5live_model::settings;
use h5live_objects::ObjectOptions;

settings! {
    connector "s3";
    /// How native files on object stores and web servers are read.
    pub struct Remote {
        /// The most bytes of blocks that are kept in memory.
        cache_size: u64 = 64 << 20,
        /// The bytes of a block, the unit in which metadata is read and kept.
        block_size: u64 = 256 << 10,
        /// The bytes that are read at once from the beginning of a file.
        first_read: u64 = 1 << 20,
        /// A folder in which blocks are kept for later sessions and other processes; if it is empty, none are.
        disk_cache: String = String::new(),
        /// The most bytes of blocks in that folder.
        disk_cache_size: u64 = 4 << 30,
    }
    included {
        /// How the object store is reached.
        objects: ObjectOptions,
    }
}
