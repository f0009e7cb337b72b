//! One open file.

use std::path::Path;
use std::sync::Arc;

use h5live_cache::{BatchReadHints, Cache, FlushScope};
use h5live_format::{Addr, LibVer, StatusFlags, Superblock};
use h5live_indexes::ObjectMetadataAccess;
use h5live_model::{self as model, ObjectId, WriterLiveness};
use h5live_swmr::{
    Error as SwmrError, ForeignFileChangeDetector, LockHandle, PendingSuperblock, RetryPolicy, SwmrUnsupportedReason,
};
use parking_lot::{Mutex, MutexGuard};

mod deleted_objects;
mod durable_flushes;
mod extension;
mod file_hold;
mod flush;
mod flush_times;
mod follower_policy;
mod name_lookups;
mod pack;
mod reclaim_schedule;

use self::durable_flushes::DurableFlushes;
use self::file_hold::FileHold;
use self::flush_times::FlushTimes;
pub(crate) use self::follower_policy::{FollowerPolicy, reuse_policy_without_followers};
use self::name_lookups::NameLookups;
use self::reclaim_schedule::ReclaimSchedule;
use crate::dataset::DatasetRegistry;
use crate::global_heap::{GlobalHeap, GlobalHeapReader};
use crate::header::CachedHeader;
use crate::heap_structures::HeapStructures;
use crate::links::LinkCache;
use crate::object_headers::{ObjectHeaders, no_object_error};
use crate::open_options::{MutantOptions, OpenOptions};
use crate::superblock_extension::SuperblockExtension;
use crate::unlinked_objects::UnlinkedObjects;
use crate::{Error, Mode, Result};

/// What a session is made of.
#[derive(Debug)]
pub(crate) struct SessionParts {
    pub cache: Arc<Cache>,
    pub status: Arc<PendingSuperblock>,
    pub superblock: Superblock,
    pub lock: Arc<LockHandle>,
    pub retry: RetryPolicy,
    pub heap_reader: Arc<GlobalHeapReader>,
}

/// An open file, as all handles of it share it. It is put together of types that own their parts; none of them knows the
/// session.
#[derive(Debug)]
pub(crate) struct NativeSession {
    pub cache: Arc<Cache>,
    pub superblock: Superblock,
    pub status: Arc<PendingSuperblock>,
    pub extension: SuperblockExtension,
    pub mode: Mode,
    /// Which versions of structures are written.
    pub profile: LibVer,
    pub retry: RetryPolicy,
    /// The protections that a mutant lacks.
    pub mutant: MutantOptions,
    pub hold: FileHold,
    pub headers: Arc<ObjectHeaders>,
    pub datasets: Arc<DatasetRegistry>,
    pub unlinked: UnlinkedObjects,
    pub heaps: HeapStructures,
    pub global_heap: GlobalHeap,
    pub names: NameLookups,
    /// Empty unless the file is at rest.
    pub link_cache: LinkCache,
    followers: FollowerPolicy,
    durable_flushes: DurableFlushes,
    flush_times: FlushTimes,
    reclaims: ReclaimSchedule,
    /// Held while the session is closed.
    closing: Mutex<()>,
}

impl NativeSession {
    /// # Errors
    /// If the superblock extension cannot be read.
    pub fn new(parts: SessionParts, options: &OpenOptions, path: &Path) -> Result<Self> {
        let SessionParts { cache, status, superblock, lock, retry, heap_reader } = parts;
        let mode = options.mode;
        let base = superblock.base.get().unwrap_or(0);
        let opened = Arc::new(ForeignFileChangeDetector::new(lock.clone(), path, cache.storage().clone(), base));
        let retry = retry.with_truncation_check(opened.clone());
        let extension = retry.retry(|| SuperblockExtension::load(&cache, &superblock))?;
        let hold = FileHold::new(path, lock.clone(), opened, mode, options.clock.clone());
        if mode == Mode::SwmrRead && superblock.version >= 3 && lock.holds_flock() {
            hold.start_yielding_to_swmr_writers();
        }
        Ok(NativeSession {
            hold,
            headers: Arc::new(ObjectHeaders::new(cache.clone(), mode, retry.clone(), heap_reader.clone())),
            datasets: Arc::default(),
            unlinked: UnlinkedObjects::default(),
            heaps: HeapStructures::new(options.filter_engine.clone(), extension.btree_k),
            global_heap: GlobalHeap::new(cache.clone(), retry.clone(), mode, heap_reader),
            names: NameLookups::new(mode, retry.clone(), lock),
            link_cache: LinkCache::default(),
            followers: FollowerPolicy::new(options, superblock.version < 3),
            durable_flushes: DurableFlushes::new(options.durable_flushes),
            flush_times: FlushTimes::default(),
            reclaims: ReclaimSchedule::default(),
            closing: Mutex::default(),
            mutant: options.mutant,
            profile: options.profile,
            cache,
            superblock,
            status,
            extension,
            mode,
            retry,
        })
    }

    /// Whether another process may be changing the file.
    pub fn is_follower(&self) -> bool {
        self.mode == Mode::SwmrRead
    }

    /// Whether other processes may read what this one writes.
    pub fn may_be_followed(&self) -> bool {
        self.followers.may_be_followed()
    }

    /// Whether chunks that are not full yet are best filled in place.
    pub fn prefers_unfiltered_until_full(&self) -> bool {
        self.followers.may_be_followed() && !self.followers.leaves_live()
    }

    /// Whether nobody changes the file while this session has it open. The file of a dead writer may get a new writer
    /// at any time.
    pub fn file_cannot_change(&self) -> bool {
        self.mode == Mode::Read && self.retry.redo_reader().is_none()
    }

    /// How raw data is best read, if many reads at a time are better than one by one.
    pub fn batch_read_hints(&self) -> Option<BatchReadHints> {
        if self.file_cannot_change() { self.cache.storage().batch_read_hints() } else { None }
    }

    pub fn check_open(&self) -> Result<()> {
        self.headers.check_open()
    }

    /// Counts a further link to an object, or a further use of a committed type.
    ///
    /// # Errors
    /// If the header cannot be changed.
    pub fn add_object_use(&self, addr: Addr) -> Result<()> {
        if self.unlinked.take_new_object(addr) {
            return Ok(());
        }
        let _lock = self.lock_header(addr);
        self.load_header(addr)?.change_link_count(1)
    }

    pub fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        if self.mode.writes() { Ok(()) } else { Err(Error::Model(model::Error::ReadOnly)) }
    }

    /// Keeps others from changing the header at `addr`.
    pub fn lock_header(&self, addr: Addr) -> MutexGuard<'_, ()> {
        self.headers.lock_header(addr)
    }

    /// Keeps other threads from changing the header at `addr` while several of its messages are read, or the structures
    /// to which they lead.
    pub fn lock_header_if_writable(&self, addr: Addr) -> Option<MutexGuard<'_, ()>> {
        self.mode.writes().then(|| self.lock_header(addr))
    }

    pub fn object_metadata(&self, addr: Addr) -> ObjectMetadataAccess {
        self.headers.object_metadata(addr)
    }

    /// Reads the current header of an object.
    ///
    /// # Errors
    /// If it cannot be read, or the object was deleted or is about to be.
    pub fn load_header(&self, addr: Addr) -> Result<CachedHeader> {
        if self.may_be_followed() && self.unlinked.is_pending_delete(addr) {
            return Err(no_object_error(addr));
        }
        self.headers.load_header(addr)
    }

    pub fn header_addr_of(&self, id: ObjectId) -> Result<Addr> {
        let addr = u64::try_from(id.0).map(Addr::new).ok().filter(|addr| addr.is_defined());
        addr.ok_or(Error::Model(model::Error::NoObject(id)))
    }

    pub fn start_swmr(&self) -> Result<()> {
        self.check_open()?;
        if !self.mode.writes() {
            return Err(SwmrError::SwmrUnsupported(SwmrUnsupportedReason::ReadOnly).into());
        }
        if self.superblock.version == 1 {
            return Err(
                SwmrError::SwmrUnsupported(SwmrUnsupportedReason::SuperblockVersion(self.superblock.version)).into()
            );
        }
        if self.may_be_followed() {
            return Ok(());
        }
        self.global_heap.disable_object_removal();
        self.cache.flush(FlushScope::All)?;
        self.followers.apply_reuse_policy(self.cache.space());
        if self.has_generations() {
            self.cache.start_publishing_generations(None)?;
        }
        self.status.set_flags(self.followers.live_flags(self.has_generations()));
        self.followers.write_superblock_with_headroom(&self.cache)?;
        self.followers.set_may_be_followed();
        self.let_readers_in()
    }

    /// Whether followers go by generations, because the file has structures without checksums.
    fn has_generations(&self) -> bool {
        self.superblock.version < 3
    }

    /// Lets readers in, now that the superblock says that they can follow. A file with generations keeps its lock,
    /// because writers of other programs ignore the flags of such a superblock.
    ///
    /// # Errors
    /// If the system does not release the lock, or has no lock that shows a live writer.
    pub fn let_readers_in(&self) -> Result<()> {
        self.hold.let_readers_in(self.has_generations())
    }

    /// Whether a writer may still be at work. Once it is gone, plain writers are kept out again.
    pub fn writer_liveness_with_relock(&self) -> Result<WriterLiveness> {
        self.check_open()?;
        match self.is_follower() {
            true => self.hold.writer_liveness_with_relock(&**self.cache.storage(), &self.retry),
            false => Ok(WriterLiveness::AtRest),
        }
    }

    /// As [`NativeSession::writer_liveness_with_relock`], without other checks. For a storage that is no file, the superblock decides.
    pub fn may_have_live_writer(&self) -> Result<bool> {
        self.hold.may_have_live_writer(&**self.cache.storage(), &self.retry)
    }

    /// Gives back what only a live file needs, announces the true end, and clears the flags.
    fn finish_file(&self, durable: bool) -> Result<()> {
        if self.datasets.free_unused_preallocated_chunks(&self.headers)? {
            self.flush(FlushScope::All)?;
        }
        if self.reclaim_heap_space()? {
            self.cache.flush(FlushScope::All)?;
        }
        self.move_structures_from_file_end()?;
        self.persist_free_space()?;
        if self.has_generations() {
            // At once with the true end: there is no generation behind that.
            self.status.set_flags(StatusFlags::CLEAR);
        }
        if let Err(error) = self.cache.finalize_and_truncate(durable) {
            if self.cache.publishes_generations() {
                self.status.set_flags(StatusFlags::WRITE | StatusFlags::SWMR);
            }
            return Err(error.into());
        }
        self.status.set_flags(StatusFlags::CLEAR);
        self.cache.write_superblock()?;
        if durable {
            self.cache.sync_flushed()?;
        }
        Ok(())
    }

    /// Flushes, clears the flags in the superblock, and closes the file.
    ///
    /// The true end is announced, and the file is cut there, before the flags are cleared. As soon as they are clear,
    /// another writer may come and allocate space behind the end.
    pub fn close(&self) -> Result<()> {
        let _closing = self.closing.lock();
        if self.headers.is_closed() {
            return Ok(());
        }
        if self.mode.writes() {
            self.check_file_held()?;
            self.flush(FlushScope::All)?;
            let durable = self.durable_flushes.has_barriers();
            if self.followers.leaves_live() && !self.has_generations() {
                self.cache.finalize_superblock_eof(durable)?;
                if self.followers.truncates_when_left_live() {
                    self.cache.truncate_to_allocated_end()?;
                }
            } else {
                self.followers.release_quarantined_if_exclusive(self.cache.space(), self.hold.lock_handle());
                self.finish_file(durable)?;
            }
            self.check_file_held()?;
        }
        self.headers.mark_closed();
        // Others tell a live writer by whether the file is open for writing, whatever handles are left here.
        self.cache.storage().close();
        self.hold.release_file(self.mode.writes() && self.has_generations())
    }
}

impl NativeSession {
    /// Ends the session without writing anything.
    pub fn abandon(&self) {
        let _closing = self.closing.lock();
        self.headers.mark_closed();
    }
}

impl Drop for NativeSession {
    fn drop(&mut self) {
        // Call `close` to know whether the last flush succeeded.
        let _ = self.close();
    }
}
