//! Between a file's bytes and its structures: storage, the metadata cache with flush dependencies, raw data that
//! is not yet written, and the allocation of space.
//!
//! [`Cache`] is one open file. It keeps decoded structures ([`Entry`]) by their address; a change makes an entry
//! dirty, and [`Cache::flush`] writes what is dirty so that a parent is never written before its dirty children
//! ([`Cache::depend`]). Raw data waits too ([`Cache::write_raw`]), and each waiting chunk is represented among the entries by a
//! [`Proxy`], so that no index entry reaches the file before the chunk that it points to. [`Space`] hands out
//! addresses at the end of the file.
//!
//! Locks, outermost first: flush, gate, an entry's value, ledger. Those of shards, of space and of waiting raw data
//! are taken and released within one step (the last may take the ledger's). While bytes are read or written, only
//! the flush lock is held, which just other flushes wait for; and, while the file's length is changed, the length's.

mod cache;
mod chunks;
mod clock;
mod edge;
mod entry;
mod error;
mod metadata;
mod primitive;
mod reentry;
mod space;
mod stats;
mod storage;

pub use cache::{Cache, Operation, Settings, Superblock};
pub use chunks::{Beneath, RawFlight};
pub use clock::Clock;
pub use edge::{EdgeKind, EdgeKinds};
pub use entry::{Entry, EntryId, Handle, Node, Owner, Proxy, Read};
pub use error::{Action, Cycle, Error, Result};
pub use metadata::{FlushPlan, Scope, Step, Told, UnseenPart};
pub use space::{FreeList, Kind, Moment, Reuse, Space};
pub use stats::Totals;
pub use storage::{Based, Failure, FaultyStorage, FileStorage, MemoryStorage, Operation as StorageOperation};
pub use storage::{Members, Mended, Overlay, RecordingStorage, Storage, replay};
