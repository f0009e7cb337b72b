//! The native HDF5 store: open modes and locks, the writer's publish protocol, the reader's retry protocol, recovery.
//!
//! [`NativeFile`] implements the two traits of the data model's seam on an HDF5 file. A writer changes structures in
//! the cache and states in which order they must reach the file (data, index, extent); a flush writes them in that
//! order. A reader takes what it finds, and reads again what it finds half-written, from the object header on, a
//! bounded number of times ([`RetryPolicy`]).

mod attributes;
mod bootstrap;
mod connector;
mod creation;
mod dataset;
mod deletion;
mod described_session;
mod error;
mod file;
mod file_change;
mod free_space;
mod generation;
mod global_heap;
mod header;
mod heap_reuse;
mod lease;
mod links;
mod locking;
mod member_files;
mod open;
mod recount;
mod recovery;
mod recovery_scan;
mod redo;
mod references;
mod replace;
mod retry;
mod seen_names;
mod session;
mod shared_messages;
mod superblock_extension;
mod superblock_status;
mod watch;
mod writer;

pub use connector::{Locking, Native, NativeConnector};
pub use dataset::NativeDataset;
pub use error::{Error, NotLiveReason, OpenConflict, Result};
pub use file::NativeFile;
pub use h5live_cache::{Clock, FileStorage, MemoryStorage, Storage};
pub use h5live_model::{Diagnosis, FileChange, FileCondition, Holder, Invariant, LibVer, Mode, Repair};
pub use locking::{LockPolicy, WriterPresence};
pub use open::{MutantOptions, OpenOptions, StorageWrapper};
pub use recovery::{diagnose, repair};
pub use replace::Replacement;
#[doc(hidden)]
pub use retry::RetryEvent;
pub use retry::RetryPolicy;
