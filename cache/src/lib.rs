//! The layer between the bytes of a file and its structures: storage, the metadata cache with flush dependencies, raw
//! data that is not written yet, and the allocation of space.
//!
//! [`Cache`] is one open file. It keeps decoded structures ([`Entry`]) by their address. A change makes an entry dirty.
//! [`Cache::flush`] writes dirty entries in such an order that a parent is never written before its dirty children
//! ([`Cache::add_dependency`]). Raw data waits too ([`Cache::enqueue_raw_write`]). Each waiting chunk has a [`ChunkProxy`]
//! among the entries, so that no index element reaches the file before the chunk to which it points. [`FileSpaceAllocator`]
//! allocates addresses.
//!
//! Locks, outermost first: flush, gate, value of an entry, graph. The locks of shards, of space and of waiting raw
//! data are taken and released within one step (the last one may take the graph's). While bytes are read or written,
//! only the flush lock is held. Only other flushes wait for it. While the length of the file is changed, the lock of
//! the length is held, too.

mod barrier_kind;
mod cache;
mod cache_counters;
mod clock;
mod dependency_kind;
mod dependency_node;
mod entry;
mod entry_header;
mod entry_id;
mod error;
mod metadata;
mod mutant;
mod primitive;
mod raw_data;
mod reentry;
mod space;
mod storage;
#[cfg(test)]
mod test_superblock;

pub use barrier_kind::BarrierKind;
pub use cache::{AtomicChangeGuard, Cache, CacheOptions, SuperblockEncoder};
pub use cache_counters::CacheStats;
pub use clock::Clock;
pub use dependency_kind::{DependencyKind, DependencyKinds};
pub use dependency_node::{ChunkProxy, DependencyNode};
pub use entry::{Entry, EntryReadGuard, Handle};
pub use entry_id::{EntryId, Owner};
pub use error::{DependencyCycle, Error, Result, StorageAction};
pub use metadata::{EntryPatch, FlushScope, FlushStep, ImageRange, PendingFlush, UnpublishedChunkData};
#[doc(hidden)]
pub use mutant::CacheMutantOptions;
pub use raw_data::{ATOMIC_READ_WINDOW_BYTES, ChunkFlushWrite, ReplacedBytesVisibility};
pub use space::{FileSpaceAllocator, FreeEpoch, FreeList, QuarantineStats, RawReadGuard, ReusePolicy, SpaceKind};
pub use storage::{
    BaseOffsetStorage, BatchReadHints, FaultyStorage, FileStorage, InjectedFailure, MemoryStorage, StorageOp,
};
#[cfg(target_os = "linux")]
pub use storage::{FileLeaseKind, probe_lease};
pub use storage::{ReadOnlyMultiFileStorage, RecordingStorage, RedoOverlay, StaticOverlay, Storage, replay_operations};
