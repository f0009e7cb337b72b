//! The native HDF5 store: the data model in the bytes that libhdf5 reads and writes.
//!
//! [`NativeFile`] implements the traits of a store (`h5live_model::Store`, `StoreWriter`, `ChunkStore`) on an HDF5
//! file. It puts together the structures of the format (`h5live_format`), the metadata cache (`h5live_cache`), the
//! indexes (`h5live_indexes`) and the protocol between one writer and many readers (`h5live_swmr`). A writer changes structures in
//! the cache and states in which order they must reach the file (data, index, extent); a flush writes them in that
//! order. A reader takes what it finds, and reads again what it finds half-written, from the object header on, a
//! bounded number of times ([`RetryPolicy`]).

mod adaptive_batch_limit;
mod attributes;
mod bootstrap;
mod connector;
mod dataset;
mod dense_storage;
mod error;
mod file;
mod free_space;
mod global_heap;
mod header;
mod heap_structures;
mod links;
mod member_files;
mod object_creation;
mod object_deletion;
mod object_headers;
mod object_kind;
mod open;
mod open_options;
mod reclaim;
mod recount;
mod recovery;
mod recovery_scan;
mod references;
mod seen_names;
mod session;
mod session_description;
mod shared_message_uses;
mod shared_messages;
mod shared_table_use;
mod superblock_extension;
mod unlinked_objects;
mod unreachable;
mod watch;
mod writer;

pub use connector::{Locking, Native, NativeConnector};
pub use dataset::{NativeDataset, existing_raw_file};
pub use error::{Error, Result};
pub use file::NativeFile;
pub use h5live_cache::{Clock, FileStorage, MemoryStorage, Storage};
pub use h5live_model::{LibVer, Mode};
pub use h5live_swmr::{LockPolicy, RetryPolicy};
pub use open_options::{AllowedReaders, MutantOptions, OpenOptions, StorageWrapper};
pub use reclaim::repair_and_reclaim_unreachable;
pub use recovery::repair;
