//! The native HDF5 store: open modes and locks, the writer's publish protocol, the reader's retry protocol, recovery.
//!
//! [`NativeFile`] implements the two traits of the data model's seam on an HDF5 file. A writer changes structures in
//! the cache and states in which order they must reach the file (data, index, extent); a flush writes them in that
//! order. A reader takes what it finds, and reads again what it finds half-written, from the object header on, a
//! bounded number of times ([`Patience`]).

mod attributes;
mod begin;
mod creation;
mod dataset;
mod deletion;
mod error;
mod extension;
mod file;
mod file_change;
mod free_space;
mod generation;
mod header;
mod heap;
mod inner_space;
mod intent;
mod lease;
mod links;
mod locking;
mod members;
mod open;
mod recount;
mod recovery;
mod references;
mod replace;
mod retry;
mod session;
mod shared;
mod sightings;
mod status;
mod survey;
mod watch;

pub use dataset::NativeDataset;
pub use error::{Conflict, Error, NotLive, Result};
pub use file::NativeFile;
pub use h5live_cache::{Clock, FileStorage, MemoryStorage, Storage};
pub use h5live_model::{Condition, Diagnosis, FileChange, Holder, Invariant, Mode, Profile, Repair};
pub use locking::{Locking, Writer};
pub use open::{OpenOptions, Through, Trial};
pub use recovery::{diagnose, repair};
pub use replace::Replacement;
#[doc(hidden)]
pub use retry::Moment;
pub use retry::Patience;
