//! The options with which a file is opened.

use std::sync::Arc;
use std::time::Duration;

use h5live_cache::{CacheMutantOptions, CacheOptions, Clock, ReusePolicy, Storage};
use h5live_format::Superblock;
use h5live_format::messages::BtreeK;
use h5live_model::{AllocationLimit, FileSpaceSettings, FilterEngine, LibVer, Mode, NoFilters, ObjectSpec};
use h5live_swmr::{LockPolicy, RetryPolicy};

use crate::{Error, Result};

/// A node has at most 65,535 children, for which K counts twice: what libhdf5 takes, too.
const MAX_BTREE_K: u16 = 32_767;

/// Who may follow a live file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum AllowedReaders {
    /// Readers of h5live and of libhdf5. The latter follow what they have read for as long as they like.
    #[default]
    Any,
    /// Readers of h5live only. They know how old their pointers are, so that freed space is used again after a time. Other
    /// programs refuse the file until it is closed.
    H5live,
}

/// How a file is opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// The access mode.
    pub mode: Mode,
    /// Whether the file is locked, if the environment does not say.
    pub locking: LockPolicy,
    /// How long a SWMR reader waits for half-written structures.
    pub retry: RetryPolicy,
    /// Which versions of structures are written.
    pub profile: LibVer,
    /// Write a file that its superblock says is being written, when the system cannot tell whether its writer lives.
    pub take_over_if_unknown: bool,
    /// Other processes that have the file open for writing are ignored: they have agreed that it is the turn of this one.
    pub ignores_other_writers: bool,
    /// Closing leaves a live file as it is, with the flags that say that it is being written: another writer takes its
    /// turn next, and readers go on following. Without effect on files with superblocks before version 3.
    pub leaves_live: bool,
    /// The last writer has closed the file so that it stays live, and the power has not failed since: the file needs no
    /// recovery, whatever its flags say.
    pub skips_recovery: bool,
    /// Who cannot write a file because it has a live writer is told its process, which is looked for among all.
    pub reports_writer_process: bool,
    /// The first bytes of a new file, before the superblock; padded with zeros.
    pub user_block: Vec<u8>,
    /// The root group of a new file.
    pub root: ObjectSpec,
    /// How a new file allocates its space. Settings other than the default need version 1.10 to be used and version 1.8
    /// to be read, whatever the version bounds.
    pub space: FileSpaceSettings,
    /// Whether each flush of the whole file is durable. A durable flush returns when everything survives a power
    /// failure. It orders its writes so that durable data is not lost meanwhile.
    pub durable_flushes: bool,
    /// Who may follow a live file.
    pub readers: AllowedReaders,
    /// The grace: while only readers of h5live follow, freed space (copied index nodes, replaced chunks, deleted objects)
    /// is used again this long after the flush that made it unreachable. At least one second, on which h5live's readers
    /// rely; [`Duration::MAX`] for never.
    pub reuse_grace: Duration,
    /// Whether such space of a live file for any readers is used again when the system says that nobody else has the file
    /// open (Linux, file systems of this machine). Else it is never used again in the session.
    pub reuse_when_exclusive: bool,
    /// Most bytes of such space that wait for readers to close the file.
    pub max_bytes_awaiting_no_readers: u64,
    /// Headroom: bytes beyond its end that a file announces as soon as others may follow. Readers of libhdf5 never look
    /// at the end again. With headroom they can follow new objects, dense links and attributes, elements of variable
    /// length and contiguous data that come to lie there. Without it, they can follow only elements of datasets that
    /// existed. The file is made that long, without contents, until it is closed; after the death of its writer, until
    /// it is next written or repaired.
    pub eof_headroom_bytes: u64,
    /// The clock by which writers and readers measure the grace.
    pub clock: Clock,
    /// Whether the file may be mapped, so that small pieces are read and written without a call to the system for each
    /// (Linux, file systems of this machine). About 64 MiB of it are mapped at a time, which count as memory of the
    /// process but are the system's.
    pub use_mmap: bool,
    /// Bytes of the addresses in a new file: 2, 4 or 8. It cannot grow larger than they can tell.
    pub offset_size: u32,
    /// Most bytes that are allocated at once for a length that the file or a description states.
    pub max_allocation: AllocationLimit,
    /// Bytes in memory of structures of the file, beyond which unused ones are dropped. A quarter of it, or 16 MiB, may
    /// be unwritten before some is written early.
    pub metadata_cache_bytes: usize,
    /// The sizes of version 1 B-tree nodes in a new file.
    pub btree_k: RequestedBtreeK,
    /// Undoes the filters of groups that keep their links in filtered heaps.
    pub filter_engine: Arc<dyn FilterEngine>,
    /// Options that only the model checker uses.
    #[doc(hidden)]
    pub mutant: MutantOptions,
    /// For them too: by way of what a file that exists is written.
    #[doc(hidden)]
    pub existing_file_write_wrapper: StorageWrapper,
}

/// Sizes of version 1 B-tree nodes, as the user gives them: K, for at most 2K children.
#[derive(Debug, Clone, Copy)]
pub struct RequestedBtreeK {
    /// Of B-trees of chunks.
    pub chunk: u32,
    /// Of B-trees of groups.
    pub group_internal: u32,
    /// Of symbol table nodes.
    pub group_leaf: u32,
}

impl From<BtreeK> for RequestedBtreeK {
    fn from(k: BtreeK) -> Self {
        let BtreeK { chunk, group_internal, group_leaf } = k;
        RequestedBtreeK { chunk: chunk.into(), group_internal: group_internal.into(), group_leaf: group_leaf.into() }
    }
}

impl RequestedBtreeK {
    /// What is stored.
    ///
    /// # Errors
    /// [`Error::Model`] if a value is not between 1 and [`MAX_BTREE_K`].
    pub(crate) fn validate(self) -> Result<BtreeK> {
        let checked = |name: &str, k: u32| match u16::try_from(k) {
            Ok(k @ 1..=MAX_BTREE_K) => Ok(k),
            _ => {
                let text = format!("{name} is 1 to {MAX_BTREE_K}, and not {k}");
                Err(Error::Model(h5live_model::Error::Invalid(text)))
            }
        };
        Ok(BtreeK {
            chunk: checked("the K of B-trees of chunks", self.chunk)?,
            group_internal: checked("the K of B-trees of groups", self.group_internal)?,
            group_leaf: checked("the K of symbol table nodes", self.group_leaf)?,
        })
    }
}

/// By way of what a file that exists is written.
#[derive(Clone, Default)]
pub struct StorageWrapper(Option<Arc<WrapFn>>);

/// Wraps a storage.
type WrapFn = dyn Fn(Arc<dyn Storage>) -> Arc<dyn Storage> + Send + Sync;

impl StorageWrapper {
    /// A wrapper that calls `wrap`.
    pub fn new(wrap: impl Fn(Arc<dyn Storage>) -> Arc<dyn Storage> + Send + Sync + 'static) -> Self {
        StorageWrapper(Some(Arc::new(wrap)))
    }

    pub(crate) fn wrap(&self, storage: Arc<dyn Storage>) -> Arc<dyn Storage> {
        match &self.0 {
            Some(wrap) => wrap(storage),
            None => storage,
        }
    }
}

impl std::fmt::Debug for StorageWrapper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StorageWrapper").field(&self.0.is_some()).finish()
    }
}

/// Options that only the model checker uses: each disables one protection.
#[derive(Debug, Clone, Copy, Default)]
pub struct MutantOptions {
    /// What the cache lacks.
    pub cache: CacheMutantOptions,
    /// Durable flushes have no barrier between new data and the structures that lead to it.
    #[cfg(feature = "mutants")]
    pub disable_barriers: bool,
    /// Space that was never allocated is taken for zeros, although redo records may have been there.
    #[cfg(feature = "mutants")]
    pub assumes_unallocated_is_zero: bool,
    /// Structures of a dead writer that contradict each other are not corrected.
    #[cfg(feature = "mutants")]
    pub disable_recovery_recount: bool,
    /// Others have a storage open that is no file.
    pub simulates_other_handles: bool,
    /// While readers of libhdf5 may follow, freed space is used again after a grace.
    #[cfg(feature = "mutants")]
    pub reuses_space_despite_libhdf5_readers: bool,
    /// As [`CacheOptions::shard_count`](h5live_cache::CacheOptions::shard_count), for a session of a single thread.
    pub cache_shard_count: Option<usize>,
}

impl MutantOptions {
    /// Whether durable flushes have no barrier.
    pub(crate) fn lacks_barriers(self) -> bool {
        #[cfg(feature = "mutants")]
        {
            self.disable_barriers
        }
        #[cfg(not(feature = "mutants"))]
        {
            false
        }
    }

    /// Whether space that was never allocated is taken for zeros.
    pub(crate) fn trusts_unallocated_zeros(self) -> bool {
        #[cfg(feature = "mutants")]
        {
            self.assumes_unallocated_is_zero
        }
        #[cfg(not(feature = "mutants"))]
        {
            false
        }
    }

    /// Whether time alone frees what any reader may follow.
    pub(crate) fn reuses_freed_space_by_time(self) -> bool {
        #[cfg(feature = "mutants")]
        {
            self.reuses_space_despite_libhdf5_readers
        }
        #[cfg(not(feature = "mutants"))]
        {
            false
        }
    }

    /// Whether contradictions of a dead writer are left.
    pub(crate) fn lacks_recount(self) -> bool {
        #[cfg(feature = "mutants")]
        {
            self.disable_recovery_recount
        }
        #[cfg(not(feature = "mutants"))]
        {
            false
        }
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            mode: Mode::default(),
            locking: LockPolicy::default(),
            retry: RetryPolicy::default(),
            profile: LibVer::default(),
            take_over_if_unknown: false,
            ignores_other_writers: false,
            leaves_live: false,
            skips_recovery: false,
            reports_writer_process: true,
            user_block: Vec::new(),
            root: ObjectSpec::group(),
            space: FileSpaceSettings::default(),
            durable_flushes: false,
            readers: AllowedReaders::default(),
            reuse_grace: Duration::from_secs(5),
            reuse_when_exclusive: true,
            max_bytes_awaiting_no_readers: u64::MAX,
            eof_headroom_bytes: 0,
            use_mmap: true,
            offset_size: 8,
            max_allocation: AllocationLimit::default(),
            metadata_cache_bytes: CacheOptions::default().metadata_budget_bytes,
            btree_k: BtreeK::default().into(),
            clock: Clock::default(),
            filter_engine: Arc::new(NoFilters),
            mutant: MutantOptions::default(),
            existing_file_write_wrapper: StorageWrapper::default(),
        }
    }
}

impl OpenOptions {
    /// What becomes of freed space while others follow. A file with generations can be followed by readers of h5live
    /// only.
    pub(crate) fn reuse_policy(&self, has_generations: bool) -> ReusePolicy {
        let any = self.readers == AllowedReaders::Any && !self.mutant.reuses_freed_space_by_time();
        match any {
            true if !has_generations && self.reuse_when_exclusive => ReusePolicy::WhenExclusive,
            true if !has_generations => ReusePolicy::Never,
            _ if self.reuse_grace == Duration::MAX => ReusePolicy::Never,
            _ => ReusePolicy::AfterGrace(self.reuse_grace),
        }
    }

    /// The options of the cache of a file with this superblock.
    pub(crate) fn cache_options(&self, superblock: &Superblock) -> CacheOptions {
        let mut settings = CacheOptions::default();
        settings.widths = superblock.widths;
        settings.base_addr = superblock.base.get().unwrap_or(0);
        settings.has_barriers = self.durable_flushes && !self.mutant.lacks_barriers();
        settings.max_allocation = self.max_allocation;
        settings.metadata_budget_bytes = self.metadata_cache_bytes;
        settings.dirty_metadata_budget_bytes = settings.dirty_metadata_budget_bytes.min(self.metadata_cache_bytes / 4);
        settings.dirty_raw_budget_bytes =
            settings.dirty_raw_budget_bytes.min(self.metadata_cache_bytes.saturating_mul(2));
        settings.clock = self.clock.clone();
        settings.mutant = self.mutant.cache;
        settings.shard_count = self.mutant.cache_shard_count.unwrap_or(settings.shard_count);
        settings
    }
}
