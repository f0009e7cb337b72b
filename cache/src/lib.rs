//! Between a file's bytes and its structures: storage, the metadata cache with flush dependencies, raw data that
//! is not yet written, and the allocation of space.
//!
//! [`Cache`] is one open file. It keeps decoded structures ([`Entry`]) by their address; a change makes an entry dirty,
//! and [`Cache::flush`] writes what is dirty so that a parent is never written before its dirty children
//! ([`Cache::add_dependency`]). Raw data waits too ([`Cache::write_raw`]), and each waiting chunk is represented among
//! the entries by a [`ChunkProxy`], so that no index entry reaches the file before the chunk that it points to.
//! [`Space`] hands out addresses at the end of the file.
//!
//! Locks, outermost first: flush, gate, an entry's value, ledger. Those of shards, of space and of waiting raw data
//! are taken and released within one step (the last may take the ledger's). While bytes are read or written, only
//! the flush lock is held, which just other flushes wait for; and, while the file's length is changed, the length's.

mod cache;
mod clock;
mod edge_kind;
mod entry;
mod error;
mod metadata;
#[cfg(unix)]
mod os;
mod primitive;
mod raw_data;
mod reentry;
mod space;
mod stats;
mod storage;

pub use cache::{Cache, CacheOptions, OperationGuard, SuperblockEncoder};
pub use clock::Clock;
pub use edge_kind::{EdgeKind, EdgeKinds};
pub use entry::{ChunkProxy, DependencyNode, Entry, EntryId, EntryReadGuard, Handle, Owner};
pub use error::{DependencyCycle, Error, Result, StorageAction};
pub use metadata::{EntryPatch, FlushPlan, FlushScope, FlushStep, UnpublishedPart};
#[cfg(target_os = "linux")]
pub use os::{LeaseKind, try_lease};
pub use raw_data::{MAX_ATOMIC_READ_BYTES, RawWrite, Visibility};
pub use space::{FreeEpoch, FreeList, ReusePolicy, Space, SpaceKind};
pub use stats::CacheStats;
pub use storage::{BaseOffsetStorage, FaultyStorage, FileStorage, MemoryStorage, StorageOp, WriteFailure};
pub use storage::{MemberStorage, RecordingStorage, RedoOverlay, StaticOverlay, Storage, replay};
