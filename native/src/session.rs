//! One open file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use h5live_cache::{Cache, Clock, FlushScope, ReusePolicy};
use h5live_format::{Addr, LibVer, StatusFlags, Superblock};
use h5live_indexes::ObjectMetadata;
use h5live_model::{self as model, Liveness, ObjectId, Unfilter};
use h5live_swmr::{
    Error as SwmrError, LockHandle, LockKind, NotLiveReason, OpenedFile, RetryPolicy, SuperblockStatus, WriterPresence,
    read_superblock,
};
use parking_lot::{Mutex, MutexGuard};

mod deleted_objects;
mod extension;
mod flush;
mod heap_objects;
mod heap_structures;
mod stable_names;

use crate::dataset::DatasetRegistry;
use crate::global_heap::{GlobalHeapReader, GlobalHeapWriter};
use crate::header::CachedHeader;
use crate::heap_reuse::HeapReuse;
use crate::links::LinkCache;
use crate::object_headers::{ObjectHeaders, no_object};
use crate::open_options::{MutantOptions, OpenOptions};
use crate::seen_names::SeenNames;
use crate::superblock_extension::SuperblockExtension;
use crate::unlinked_objects::UnlinkedObjects;
use crate::{Error, Mode, Result};

/// There was no look yet, or it found that they are not.
const NEVER_CHECKED: u64 = u64::MAX;

/// What a session is made of.
#[derive(Debug)]
pub(crate) struct SessionParts {
    pub cache: Arc<Cache>,
    pub status: Arc<SuperblockStatus>,
    pub superblock: Superblock,
    pub lock: Arc<LockHandle>,
    pub retry: RetryPolicy,
    pub heap_reader: Arc<GlobalHeapReader>,
}

/// The state that all handles of one open file share.
#[derive(Debug)]
pub(crate) struct NativeSession {
    pub cache: Arc<Cache>,
    pub status: Arc<SuperblockStatus>,
    pub superblock: Superblock,
    pub lock: Arc<LockHandle>,
    pub mode: Mode,
    /// The path under which the file was opened.
    pub path: PathBuf,
    pub opened: Arc<OpenedFile>,
    pub retry: RetryPolicy,
    pub profile: LibVer,
    pub unfilter: Arc<dyn Unfilter>,
    pub extension: SuperblockExtension,
    /// Whether other processes may read what this one writes.
    swmr: AtomicBool,
    /// Whether flushes are durable.
    durable: bool,
    /// The protections that a mutant lacks.
    pub mutant: MutantOptions,
    /// Whether the record lock that stands for a live writer was taken.
    has_liveness_lock: bool,
    /// Bytes beyond its end that the file announces once others may follow.
    headroom: u64,
    /// How long space that became unreachable rests while others follow.
    grace: Duration,
    /// Whether freed space rests only while another process has the file open.
    reuse_unread: bool,
    clock: Clock,
    /// When it was last seen that others are kept out (nanoseconds of the clock).
    ownership_checked_at: AtomicU64,
    /// Whether flushes keep the order that a power failure needs.
    has_barriers: AtomicBool,
    flush_nanos: AtomicU64,
    longest_flush_nanos: AtomicU64,
    /// Held while the session is closed.
    closing: Mutex<()>,
    pub headers: Arc<ObjectHeaders>,
    pub datasets: Arc<DatasetRegistry>,
    pub unlinked: UnlinkedObjects,
    pub heap: Mutex<GlobalHeapWriter>,
    pub heap_reader: Arc<GlobalHeapReader>,
    /// Operations since the last flush for the sake of space.
    operations_since_reclaim: AtomicU32,
    /// Where the allocated space ended at the last of them.
    end_at_reclaim: AtomicU64,
    pub heap_reuse: HeapReuse,
    pub seen_names: SeenNames,
    /// Empty unless the file is at rest.
    pub link_cache: LinkCache,
}

impl NativeSession {
    /// # Errors
    /// If the superblock extension cannot be read.
    pub fn new(parts: SessionParts, options: &OpenOptions, path: &Path) -> Result<Self> {
        let SessionParts { cache, status, superblock, lock, retry, heap_reader } = parts;
        let base = superblock.base.get().unwrap_or(0);
        let opened = Arc::new(OpenedFile::new(lock.clone(), path, cache.storage().clone(), base));
        let retry = retry.of_file(opened.clone());
        let extension = retry.retry(|| SuperblockExtension::load(&cache, &superblock))?;
        let has_liveness_lock = options.mode.writes() && lock.is_liveness_locked();
        let headers = ObjectHeaders::new(cache.clone(), options.mode, retry.clone(), heap_reader.clone());
        Ok(NativeSession {
            cache,
            status,
            superblock,
            lock,
            mode: options.mode,
            path: path.to_owned(),
            opened,
            retry,
            profile: options.profile,
            unfilter: options.unfilter.clone(),
            extension,
            swmr: AtomicBool::new(options.mode == Mode::SwmrWrite),
            durable: options.durable,
            mutant: options.mutant,
            has_liveness_lock,
            grace: options.grace,
            reuse_unread: options.reuse_unread,
            clock: options.clock.clone(),
            ownership_checked_at: AtomicU64::new(NEVER_CHECKED),
            has_barriers: options.durable.into(),
            headroom: options.headroom,
            flush_nanos: AtomicU64::new(0),
            longest_flush_nanos: AtomicU64::new(0),
            closing: Mutex::default(),
            headers: Arc::new(headers),
            datasets: Arc::default(),
            unlinked: UnlinkedObjects::default(),
            heap: Mutex::default(),
            heap_reader,
            operations_since_reclaim: AtomicU32::new(0),
            end_at_reclaim: AtomicU64::new(0),
            heap_reuse: HeapReuse::default(),
            seen_names: SeenNames::default(),
            link_cache: LinkCache::default(),
        })
    }

    /// Whether another process may be changing the file.
    pub fn is_follower(&self) -> bool {
        self.mode == Mode::SwmrRead
    }

    /// Whether other processes may read what this one writes.
    pub fn has_followers(&self) -> bool {
        self.swmr.load(Ordering::Acquire)
    }

    /// Whether nobody changes the file while this session has it open. The file of a dead writer may get a new writer
    /// at any time.
    pub fn is_at_rest(&self) -> bool {
        self.mode == Mode::Read && self.retry.redo_reader().is_none()
    }

    pub fn check_open(&self) -> Result<()> {
        self.headers.check_open()
    }

    /// Counts a further link to an object, or a further use of a committed type.
    ///
    /// # Errors
    /// If the header cannot be changed.
    pub fn count_use(&self, addr: Addr) -> Result<()> {
        if self.unlinked.take_new(addr) {
            return Ok(());
        }
        let _lock = self.header_lock(addr);
        self.header(addr)?.count_link(1)
    }

    pub fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        if self.mode.writes() { Ok(()) } else { Err(Error::Model(model::Error::ReadOnly)) }
    }

    /// Keeps others from changing the header at `addr`.
    pub fn header_lock(&self, addr: Addr) -> MutexGuard<'_, ()> {
        self.headers.lock(addr)
    }

    /// Keeps other threads from changing the header at `addr` while several of its messages are read, or the structures
    /// to which they lead.
    pub fn lock_to_read(&self, addr: Addr) -> Option<MutexGuard<'_, ()>> {
        self.mode.writes().then(|| self.header_lock(addr))
    }

    pub fn metadata(&self, addr: Addr) -> ObjectMetadata {
        self.headers.metadata(addr)
    }

    /// Reads the current header of an object.
    ///
    /// # Errors
    /// If it cannot be read, or the object was deleted or is about to be.
    pub fn header(&self, addr: Addr) -> Result<CachedHeader> {
        if self.has_followers() && self.unlinked.is_pending_delete(addr) {
            return Err(no_object(addr));
        }
        self.headers.load(addr)
    }

    pub fn object(&self, id: ObjectId) -> Result<Addr> {
        let addr = u64::try_from(id.0).map(Addr::new).ok().filter(|addr| addr.is_defined());
        addr.ok_or(Error::Model(model::Error::NoObject(id)))
    }

    /// Writes the superblock, which announces as much headroom as was asked for.
    ///
    /// # Errors
    /// If it cannot be written, or the file system has no files of that length.
    pub fn announce_headroom(&self) -> Result<()> {
        match self.headroom {
            0 => self.cache.write_superblock()?,
            headroom => self.cache.extend_superblock_eof(headroom)?,
        }
        Ok(())
    }

    pub fn start_swmr(&self) -> Result<()> {
        self.check_open()?;
        if !self.mode.writes() {
            return Err(SwmrError::NotLive(NotLiveReason::ReadOnly).into());
        }
        if self.superblock.version == 1 {
            return Err(SwmrError::NotLive(NotLiveReason::Superblock(self.superblock.version)).into());
        }
        if self.has_followers() {
            return Ok(());
        }
        self.cache.flush(FlushScope::All)?;
        self.cache.space().set_reuse_policy(ReusePolicy::AfterGrace(self.grace));
        if self.has_generations() {
            self.cache.start_generations(None)?;
        }
        self.status.set_flags(StatusFlags::WRITE | StatusFlags::SWMR);
        self.announce_headroom()?;
        self.swmr.store(true, Ordering::Release);
        self.allow_readers()
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
    pub fn allow_readers(&self) -> Result<()> {
        match self.has_generations() {
            true => self.lock.acquire_generation_lock().map_err(Error::io("show readers that they can follow")),
            false => self.lock.release_for_readers().map_err(Error::io("unlock the file")),
        }
    }

    /// Whether a writer may still be at work. Once it is gone, plain writers are kept out again.
    pub fn liveness(&self) -> Result<Liveness> {
        self.check_open()?;
        if !self.is_follower() {
            return Ok(Liveness::AtRest);
        }
        let superblock = self.retry.retry(|| read_superblock(&**self.cache.storage(), 0))?;
        if superblock.status.contains(StatusFlags::SWMR) {
            self.opened.check_as_reader()?;
            return Ok(match self.lock.writer() {
                WriterPresence::None => Liveness::AtRest,
                WriterPresence::Alive(_) => Liveness::Live,
                WriterPresence::Unknown => Liveness::Unknown,
            });
        }
        self.opened.check_length_as_reader()?;
        self.lock.try_lock(LockKind::Shared).map_err(Error::io("lock the file"))?;
        Ok(Liveness::AtRest)
    }

    /// As [`NativeSession::liveness`], without other checks. For a storage that is no file, the superblock decides.
    pub fn may_be_written(&self) -> Result<bool> {
        let superblock = self.retry.retry(|| read_superblock(&**self.cache.storage(), 0))?;
        Ok(superblock.status.contains(StatusFlags::SWMR) && self.lock.may_be_written())
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
            self.check_hold_now()?;
            self.flush(FlushScope::All)?;
            if self.datasets.free_preallocated(&self.headers)? {
                self.flush(FlushScope::All)?;
            }
            if self.reclaim_heap_space()? {
                self.cache.flush(FlushScope::All)?;
            }
            self.pack()?;
            self.persist_free_space()?;
            let durable = self.has_barriers.load(Ordering::Acquire);
            if self.has_generations() {
                // At once with the true end: there is no generation behind that.
                self.status.set_flags(StatusFlags::CLEAR);
            }
            if let Err(error) = self.cache.finish(durable) {
                if self.cache.has_generations() {
                    self.status.set_flags(StatusFlags::WRITE | StatusFlags::SWMR);
                }
                return Err(error.into());
            }
            self.status.set_flags(StatusFlags::CLEAR);
            self.cache.write_superblock()?;
            if durable {
                self.cache.sync()?;
            }
            self.check_hold_now()?;
        }
        self.headers.close();
        // Others tell a live writer by whether the file is open for writing, whatever handles are left here.
        self.cache.storage().close();
        self.lock.close();
        if self.mode.writes() && self.has_generations() {
            self.lock.release_generation_lock().map_err(Error::io("unlock the file"))?;
        }
        self.lock.release().map_err(Error::io("unlock the file"))
    }
}

impl NativeSession {
    /// Ends the session without writing anything.
    pub fn abandon(&self) {
        let _closing = self.closing.lock();
        self.headers.close();
    }
}

impl Drop for NativeSession {
    fn drop(&mut self) {
        // Call `close` to know whether the last flush succeeded.
        let _ = self.close();
    }
}
