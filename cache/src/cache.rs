//! One open file: its entries, its raw data under way, its space.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use h5live_format::{Addr, EncodeError, Widths};
use h5live_model::AllocationLimit;

use crate::{
    cache_counters::{CacheCounters, CacheStats, add_to_counter},
    clock::Clock,
    dependency_kind::DependencyKind,
    dependency_node::DependencyNode,
    error::{Error, Result, StorageAction},
    metadata::{EntryImages, EntryShard, GenerationPublisher, RedoState, SharedGraph},
    mutant::CacheMutantOptions,
    primitive::{Mutex, RwLock, RwLockReadGuard},
    raw_data::{DirtyRawData, WriteBuffer},
    reentry::{ReentryGuard, ReentryScope, enter_scope},
    space::FileSpaceAllocator,
    storage::Storage,
};

#[cfg(not(loom))]
const SHARDS: usize = 64;
#[cfg(loom)]
const SHARDS: usize = 1;

/// A block that is claimed to be larger than this is first compared with the length of the file.
const MAX_UNCHECKED_BLOCK_BYTES: usize = 1 << 20;

/// Sizes and other choices of a cache.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CacheOptions {
    /// The widths that the superblock states.
    pub widths: Widths,
    /// Bytes in memory of cached entries, beyond which unused ones are evicted.
    pub metadata_budget_bytes: usize,
    /// Bytes in memory of dirty entries, beyond which [`Cache::flush_over_budget`] writes some.
    pub dirty_metadata_budget_bytes: usize,
    /// Bytes of raw data not yet written, beyond which [`Cache::flush_over_budget`] writes them.
    pub dirty_raw_budget_bytes: usize,
    /// Pieces of new raw data of at most this many bytes are gathered (up to 1 MiB) before they are written.
    pub max_buffered_piece_bytes: usize,
    /// The base address, in bytes from the start of the file: pages and sectors are counted from there.
    pub base_addr: u64,
    /// Whether each flush has barriers: it writes new data first, then a barrier, and then changes structures that the
    /// file leads to. So after a power failure everything of an earlier flush that was followed by [`Cache::sync_flushed`] is
    /// there, and no file is shorter than announced. A flush writes its changes in place first to a
    /// [`RedoRecord`](h5live_format::RedoRecord). So a later flush is there as a whole, once the record was replayed,
    /// or not at all.
    pub has_barriers: bool,
    /// Most bytes that are allocated at once for a length that the file states.
    pub max_allocation: AllocationLimit,
    /// The clock by which the grace of freed space is measured.
    pub clock: Clock,
    /// Parts with locks of their own, for threads that work at once; 0 counts as 1.
    pub shard_count: usize,
    /// The protections that a mutant lacks.
    #[doc(hidden)]
    pub mutant: CacheMutantOptions,
}

impl Default for CacheOptions {
    fn default() -> Self {
        CacheOptions {
            widths: Widths::default(),
            base_addr: 0,
            metadata_budget_bytes: 64 << 20,
            dirty_metadata_budget_bytes: 16 << 20,
            dirty_raw_budget_bytes: 64 << 20,
            max_buffered_piece_bytes: 64 << 10,
            has_barriers: false,
            max_allocation: AllocationLimit::default(),
            clock: Clock::default(),
            shard_count: SHARDS,
            mutant: CacheMutantOptions::default(),
        }
    }
}

/// The superblock, which the store knows and the cache has to announce new ends of file with.
pub trait SuperblockEncoder: Send + Sync + fmt::Debug {
    /// The address and the bytes of the superblock, as it will be from now on, with the end of file at `end` (bytes
    /// from the base address). Must not call the cache.
    ///
    /// # Errors
    /// If a value does not fit its field.
    fn encode_with_eof(&self, end: u64) -> std::result::Result<(Addr, Vec<u8>), EncodeError>;
}

/// One open file. All methods may be called by any number of threads at once.
pub struct Cache {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) options: CacheOptions,
    pub(crate) shards: Box<[EntryShard]>,
    pub(crate) shared_graph: Arc<SharedGraph>,
    pub(crate) dirty_raw_data: DirtyRawData,
    pub(crate) write_buffer: WriteBuffer,
    pub(crate) space: FileSpaceAllocator,
    pub(crate) counters: CacheCounters,
    /// As [`CacheOptions::has_barriers`].
    has_barriers: AtomicBool,
    /// The next flush must be atomic.
    pub(crate) atomic_flush: AtomicBool,
    superblock: Option<Arc<dyn SuperblockEncoder>>,
    pub(crate) redo_state: RedoState,
    pub(crate) generation_publisher: GenerationPublisher,
    /// Held by the one flush that is under way, with memory for what it writes.
    pub(crate) flush_lock: Mutex<EntryImages>,
    /// Shared by operations; taken alone by a flush for its snapshot.
    pub(crate) operation_gate: RwLock<()>,
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("storage", &self.storage)
            .field("settings", &self.options)
            .field("totals", &self.stats())
            .finish_non_exhaustive()
    }
}

impl Drop for Cache {
    /// Entries that were never written, or are pinned, lead to the graph, and the graph leads to them.
    fn drop(&mut self) {
        let graph = std::mem::take(&mut *self.shared_graph.graph.lock());
        drop(graph);
    }
}

/// Changes that a flush writes all or none of. A flush waits for it to be dropped, so it must be short, and must
/// neither contain another operation of the same thread, nor a flush.
#[must_use = "the operation ends when this is dropped"]
#[derive(Debug)]
pub struct AtomicChangeGuard<'a> {
    _gate: RwLockReadGuard<'a, ()>,
    _inside: ReentryGuard,
}

impl Cache {
    /// A cache for a file that is only read. `storage` begins at the base address (see
    /// [`BaseOffsetStorage`](crate::BaseOffsetStorage)).
    pub fn new_read_only(storage: Arc<dyn Storage>, settings: CacheOptions) -> Self {
        Cache::new_cache(storage, settings, 0, None)
    }

    /// A cache for a file that is also written. Its superblock announces the end of file at `superblock_eof` (bytes from the
    /// base address); space is allocated from there on.
    pub fn new_writable(
        storage: Arc<dyn Storage>,
        settings: CacheOptions,
        superblock_eof: u64,
        superblock: Arc<dyn SuperblockEncoder>,
    ) -> Self {
        Cache::new_cache(storage, settings, superblock_eof, Some(superblock))
    }

    fn new_cache(
        storage: Arc<dyn Storage>,
        settings: CacheOptions,
        end: u64,
        superblock: Option<Arc<dyn SuperblockEncoder>>,
    ) -> Self {
        let shards = settings.shard_count.max(1);
        Cache {
            storage,
            shards: (0..shards).map(|_| EntryShard::new()).collect(),
            shared_graph: Arc::new(SharedGraph::new(settings.mutant)),
            dirty_raw_data: DirtyRawData::new(shards),
            write_buffer: WriteBuffer::default(),
            space: FileSpaceAllocator::new(end, settings.widths.offset, settings.clock.clone(), settings.has_barriers),
            counters: CacheCounters::default(),
            has_barriers: settings.has_barriers.into(),
            atomic_flush: false.into(),
            superblock,
            redo_state: RedoState::default(),
            generation_publisher: GenerationPublisher::default(),
            flush_lock: Mutex::new(EntryImages::default()),
            operation_gate: RwLock::new(()),
            options: settings,
        }
    }

    /// Begins changes that belong together.
    pub fn begin_atomic_change(&self) -> AtomicChangeGuard<'_> {
        let _inside = enter_scope(self, ReentryScope::Operation, &[ReentryScope::Operation]);
        AtomicChangeGuard { _gate: self.operation_gate.read(), _inside }
    }

    /// Whether this cache was made by [`Cache::new_read_only`].
    pub fn is_read_only(&self) -> bool {
        self.superblock.is_none()
    }

    /// The storage, which begins at the base address.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// Whether a mutant lacks flush dependencies of `kind`.
    #[doc(hidden)]
    #[inline]
    pub fn mutant_lacks_dependency(&self, kind: DependencyKind) -> bool {
        self.options.mutant.lacks_edge(kind)
    }

    /// The widths of addresses and lengths.
    pub fn widths(&self) -> Widths {
        self.options.widths
    }

    /// The file's space.
    pub fn space(&self) -> &FileSpaceAllocator {
        &self.space
    }

    /// Refuses a structure at `at` that takes more memory than may be allocated at once; its length is what the file or
    /// a description states (bytes).
    ///
    /// # Errors
    /// [`Error::MemoryAllocation`].
    pub fn check_memory_allocation(&self, at: Addr, len: u64) -> Result<()> {
        let checked = self.options.max_allocation.check(len);
        checked.map(drop).map_err(|source| Error::MemoryAllocation { at, source })
    }

    /// Reads `len` bytes at `at` from the storage: for the `read` of [`Cache::load`].
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::PastEnd`] if the file ends within them; [`Error::UndefinedAddr`].
    pub fn read_block_uncached(&self, at: Addr, len: usize) -> Result<Vec<u8>> {
        let bytes = self.read_uncached_to_eof(at, len)?;
        if bytes.len() < len {
            return Err(Error::PastEnd { at, wanted: len as u64, found: bytes.len() as u64 });
        }
        Ok(bytes)
    }

    /// Reads `len` bytes at `at` from the storage, or fewer if the file ends before.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::UndefinedAddr`].
    pub fn read_uncached_to_eof(&self, at: Addr, len: usize) -> Result<Vec<u8>> {
        let start = at.get().ok_or(Error::UndefinedAddr)?;
        let mut bytes = if len <= MAX_UNCHECKED_BLOCK_BYTES {
            vec![0; len]
        } else {
            let end = self.storage.len().map_err(Error::io(StorageAction::QueryLength, 0, 0))?;
            let len = end.saturating_sub(start).min(len as u64);
            self.options.max_allocation.zeroed(len).map_err(|source| Error::MemoryAllocation { at, source })?
        };
        let found = self.read_uncached_to_eof_into(at, &mut bytes)?.len();
        bytes.truncate(found);
        Ok(bytes)
    }

    /// Fills `into` with bytes at `at` from the storage, or a part of it if the file ends before. Returns that part.
    ///
    /// # Errors
    /// As [`Cache::read_uncached_to_eof`].
    #[inline]
    pub fn read_uncached_to_eof_into<'a>(&self, at: Addr, into: &'a mut [u8]) -> Result<&'a [u8]> {
        let (start, wanted) = (at.get().ok_or(Error::UndefinedAddr)?, into.len() as u64);
        let found = self.storage.read_at(into, start).map_err(Error::io(StorageAction::Read, start, wanted))?;
        add_to_counter(&self.counters.bytes_read, found as u64);
        Ok(&into[..found])
    }

    pub(crate) fn read_exact(&self, at: Addr, into: &mut [u8]) -> Result<()> {
        let wanted = into.len() as u64;
        let found = self.read_uncached_to_eof_into(at, into)?.len() as u64;
        if found < wanted { Err(Error::PastEnd { at, wanted, found }) } else { Ok(()) }
    }

    pub(crate) fn write_counted(&self, action: StorageAction, at: Addr, bytes: &[u8]) -> Result<()> {
        let at = at.get().ok_or(Error::UndefinedAddr)?;
        let len = bytes.len() as u64;
        self.storage.write_at(bytes, at).map_err(Error::io(action, at, len))?;
        self.count_written_bytes(bytes.len());
        Ok(())
    }

    pub(crate) fn count_written_bytes(&self, bytes: usize) {
        add_to_counter(&self.counters.writes, 1);
        add_to_counter(&self.counters.bytes_written, bytes as u64);
    }

    /// Writes the superblock now, as the store wants it to be: its status flags have changed. Never announces an
    /// end beyond the length of the file.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Encode`], [`Error::ReadOnly`].
    pub fn write_superblock(&self) -> Result<()> {
        let _inside = enter_scope(self, ReentryScope::Flush, &[ReentryScope::Operation, ReentryScope::Flush]);
        let _only = self.flush_lock.lock();
        let end = self.space.superblock_eof();
        self.space.ensure_len(end, &*self.storage)?;
        self.write_superblock_with_eof(end)
    }

    /// Announces an end of file `bytes_ahead` bytes beyond the allocated space, and makes the file that long: readers
    /// that open it now can follow what will be allocated there, also those that never look at the end again.
    ///
    /// # Errors
    /// As [`Cache::write_superblock`].
    pub fn preextend_file_and_eof(&self, bytes_ahead: u64) -> Result<()> {
        let _inside = enter_scope(self, ReentryScope::Flush, &[ReentryScope::Operation, ReentryScope::Flush]);
        let _only = self.flush_lock.lock();
        let end = self.space.allocated_end().saturating_add(bytes_ahead).max(self.space.superblock_eof());
        self.space.ensure_len(end, &*self.storage)?;
        if self.has_barriers() {
            // The file must not be shorter than announced after a power failure either.
            self.sync_flushed()?;
        }
        self.write_superblock_with_eof(end)
    }

    /// As [`CacheOptions::has_barriers`], from the next flush on.
    pub fn enable_barriers(&self) {
        self.has_barriers.store(true, Ordering::Release);
        self.space.require_durable_flushes();
    }

    /// Makes the next flush atomic: it writes everything that is dirty, whatever its scope. If it fails, or if its
    /// process dies, a process that opens the file later finds all of it or nothing, by a redo record. Call this inside
    /// the operation that needs it.
    ///
    /// Other programs know nothing of redo records. So it must not make up for a flush dependency that a mutant
    /// violates.
    pub fn make_next_flush_atomic(&self) {
        self.atomic_flush.fetch_or(!self.options.mutant.lacks_edges(), Ordering::AcqRel);
    }

    pub(crate) fn has_barriers(&self) -> bool {
        self.has_barriers.load(Ordering::Acquire)
    }

    /// Whether a flush would write something.
    pub fn is_dirty(&self) -> bool {
        self.shared_graph.graph.lock().is_dirty()
    }

    /// Whether the present state of an entry or proxy is not in the file yet, or is being written now.
    pub fn is_unwritten(&self, node: &impl DependencyNode) -> bool {
        self.shared_graph.graph.lock().is_unwritten(node.id())
    }

    /// Makes everything that was flushed durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync_flushed(&self) -> Result<()> {
        let flushed = self.space.flush_mark();
        self.storage.sync().map_err(Error::io(StorageAction::Sync, 0, 0))?;
        self.space.end_sync(flushed);
        Ok(())
    }

    /// Announces the true end of the file and cuts the storage there: the last thing that is done to a file. If
    /// `durable`, everything outlasts a power failure, the file being valid at each moment.
    ///
    /// # Errors
    /// [`Error::UnflushedEntries`] if not everything has been flushed; [`Error::Io`], [`Error::Encode`], [`Error::ReadOnly`].
    pub fn finalize_and_truncate(&self, durable: bool) -> Result<()> {
        self.finish(durable, true)
    }

    /// Announces the true end of the file. Free space before it stays: readers may still look at it.
    ///
    /// # Errors
    /// As [`Cache::finalize_and_truncate`].
    pub fn finalize_superblock_eof(&self, durable: bool) -> Result<()> {
        self.finish(durable, false)
    }

    /// Cuts the storage at the end that was announced. Nobody was led to what lies behind.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn truncate_to_allocated_end(&self) -> Result<()> {
        let _only = self.flush_lock.lock();
        self.space.truncate_storage(self.space.allocated_end(), &*self.storage)
    }

    /// Announces the true end, and cuts the storage there if `cuts`.
    fn finish(&self, durable: bool, cuts: bool) -> Result<()> {
        let _inside = enter_scope(self, ReentryScope::Flush, &[ReentryScope::Operation, ReentryScope::Flush]);
        let _only = self.flush_lock.lock();
        let dirty = self.shared_graph.graph.lock().dirty_count();
        if dirty > 0 {
            return Err(Error::UnflushedEntries(dirty));
        }
        if cuts {
            self.space.shrink_allocated_end();
        }
        let sync = || if durable { self.sync_flushed() } else { Ok(()) };
        let end = self.space.allocated_end();
        self.space.ensure_len(end, &*self.storage)?;
        sync()?;
        self.complete_generation()?;
        self.clear_generation_at(end)?;
        if self.erase_redo_at_eof(end)? {
            sync()?;
        }
        self.write_superblock_with_eof(end)?;
        sync()?;
        if !cuts {
            return Ok(());
        }
        self.space.truncate_storage(end, &*self.storage)?;
        sync()
    }

    pub(crate) fn write_superblock_with_eof(&self, end: u64) -> Result<()> {
        let superblock = self.superblock.as_ref().ok_or(Error::ReadOnly)?;
        if let Some(generation) = self.generation().filter(|_| end != self.space.superblock_eof()) {
            self.init_generation_at(end, generation)?;
        }
        let (at, bytes) =
            superblock.encode_with_eof(end).map_err(|source| Error::Encode { at: Addr::UNDEFINED, source })?;
        self.write_counted(StorageAction::WriteSuperblock, at, &bytes)?;
        self.space.set_superblock_eof(end);
        Ok(())
    }

    /// The superblock that must be written before space that is allocated now becomes reachable, and the end of file
    /// that it announces.
    pub(crate) fn superblock_update(&self) -> Result<Option<(Addr, Vec<u8>, u64)>> {
        let (Some(end), Some(superblock)) = (self.space.next_superblock_eof(), &self.superblock) else {
            return Ok(None);
        };
        match superblock.encode_with_eof(end) {
            Ok((at, bytes)) => Ok(Some((at, bytes, end))),
            Err(source) => Err(Error::Encode { at: Addr::UNDEFINED, source }),
        }
    }

    /// Statistics of the cache so far.
    pub fn stats(&self) -> CacheStats {
        let (hits, misses) =
            self.shards.iter().map(EntryShard::hit_and_miss_counts).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        let CacheCounters { evictions, bytes_read, bytes_written, writes, flushes } = &self.counters;
        CacheStats {
            hits,
            misses,
            evictions: evictions.load(Ordering::Relaxed),
            bytes_read: bytes_read.load(Ordering::Relaxed),
            bytes_written: bytes_written.load(Ordering::Relaxed),
            writes: writes.load(Ordering::Relaxed),
            flushes: flushes.load(Ordering::Relaxed),
        }
    }
}
