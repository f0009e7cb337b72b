//! One open file.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use h5live_cache::{Cache, Clock, EdgeKind, EntryPatch, FlushScope, Handle, Owner, ReusePolicy, UnpublishedPart};
use h5live_format::{Addr, EncodeError, LibVer, ObjectHeader, StatusFlags, Superblock};
use h5live_indexes::ObjectMetadata;
use h5live_model::{self as model, Liveness, Name, ObjectId, Stats, Unfilter};
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Mode;
use crate::bootstrap::read_superblock;
use crate::dataset::{NativeDataset, NewDataset, PreallocatedChunks, SpecCache, SpecMessageCache};
use crate::deletion::PendingDelete;
use crate::error::NotLiveReason;
use crate::file_change::OpenedFile;
use crate::global_heap::{GlobalHeapReader, GlobalHeapWriter};
use crate::header::CachedHeader;
use crate::heap_reuse::HeapReuse;
use crate::links::LinkCache;
use crate::locking::{LockHandle, LockKind, WriterPresence};
use crate::open::OpenOptions;
use crate::seen_names::{NameScope, SeenNames};
use crate::superblock_extension::SuperblockExtension;
use crate::superblock_status::SuperblockStatus;
use crate::{Error, Result, RetryPolicy};

const HEADER_LOCKS: usize = 64;

/// Least freed bytes that are worth a flush, so that they can be used again.
const MIN_RECLAIM_BYTES: u64 = 4 << 10;

/// Operations between two such flushes: structures that a flush has written are copied when they next change.
const MAX_OPERATIONS_BETWEEN_RECLAIMS: u64 = 128;
const MIN_OPERATIONS_BETWEEN_RECLAIMS: u64 = 16;

/// Bytes of a file for each operation between two such flushes.
const FILE_BYTES_PER_OPERATION: u64 = 256 << 10;

/// Bytes of a heap of names that are written for each operation, at most, so that names can be used again: if they
/// cannot, the heap is moved sooner or later.
const MAX_NAME_BYTES_PER_OPERATION: u64 = 512;

/// The time for which a check of the ownership of the file is valid...
const OWNERSHIP_CHECK_INTERVAL: Duration = Duration::from_millis(1);
/// ...and this long for a flush that is followed by another check. So the check delays nobody who waits for the flush.
const FLUSH_OWNERSHIP_CHECK_INTERVAL: Duration = Duration::from_millis(2);
/// There was no look yet, or it found that they are not.
const NEVER_CHECKED: u64 = u64::MAX;

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
    /// Whether all space that was never allocated is taken for zeros.
    pub trusts_zeros: bool,
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
    closed: Mutex<bool>,
    is_closed: AtomicBool,
    /// Taken to change an object header; which one is a matter of its address.
    headers: Vec<Mutex<()>>,
    pub datasets: Mutex<FxHashMap<Addr, Weak<NativeDataset>>>,
    /// Chunks of datasets that were made ready for appends last.
    pub preallocated: Mutex<FxHashMap<Addr, PreallocatedChunks>>,
    /// The dataset that was created last, kept until it is opened.
    pub new_dataset: Mutex<Option<NewDataset>>,
    /// How it is described.
    pub spec_messages: SpecMessageCache,
    /// Deleted objects to which the file still leads.
    pub pending_deletes: Mutex<Vec<PendingDelete>>,
    /// Objects that nothing leads to yet, though their headers count one link.
    pub unlinked: Mutex<FxHashSet<Addr>>,
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
    pub spec_cache: SpecCache,
}

impl NativeSession {
    /// # Errors
    /// If the superblock extension cannot be read.
    pub fn new(
        cache: Arc<Cache>,
        status: Arc<SuperblockStatus>,
        superblock: Superblock,
        lock: Arc<LockHandle>,
        patience: RetryPolicy,
        options: &OpenOptions,
        path: &Path,
    ) -> Result<Self> {
        let base = superblock.base.get().unwrap_or(0);
        let opened = Arc::new(OpenedFile::new(lock.clone(), path, cache.storage().clone(), base));
        let patience = patience.of_file(opened.clone());
        let extension = patience.retry(|| SuperblockExtension::load(&cache, &superblock))?;
        let heap_reader = patience.generations().map_or_else(Arc::default, |generations| generations.heap.clone());
        let beacon = options.mode.writes() && lock.is_liveness_locked();
        Ok(NativeSession {
            cache,
            status,
            superblock,
            lock,
            mode: options.mode,
            path: path.to_owned(),
            opened,
            retry: patience,
            profile: options.profile,
            unfilter: options.unfilter.clone(),
            extension,
            swmr: AtomicBool::new(options.mode == Mode::SwmrWrite),
            durable: options.durable,
            trusts_zeros: options.mutant.trusts_zeros,
            has_liveness_lock: beacon,
            grace: options.grace,
            reuse_unread: options.reuse_unread,
            clock: options.clock.clone(),
            ownership_checked_at: AtomicU64::new(NEVER_CHECKED),
            has_barriers: options.durable.into(),
            headroom: options.headroom,
            flush_nanos: AtomicU64::new(0),
            longest_flush_nanos: AtomicU64::new(0),
            closed: Mutex::new(false),
            is_closed: AtomicBool::new(false),
            headers: (0..HEADER_LOCKS).map(|_| Mutex::new(())).collect(),
            datasets: Mutex::default(),
            preallocated: Mutex::default(),
            new_dataset: Mutex::default(),
            spec_messages: SpecMessageCache::default(),
            unlinked: Mutex::default(),
            pending_deletes: Mutex::default(),
            heap: Mutex::default(),
            heap_reader,
            operations_since_reclaim: AtomicU32::new(0),
            end_at_reclaim: AtomicU64::new(0),
            heap_reuse: HeapReuse::default(),
            seen_names: SeenNames::default(),
            link_cache: LinkCache::default(),
            spec_cache: SpecCache::default(),
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
        if self.is_closed.load(Ordering::Acquire) { Err(Error::Model(model::Error::Closed)) } else { Ok(()) }
    }

    /// Counts a further link to an object, or a further use of a committed type.
    ///
    /// # Errors
    /// If the header cannot be changed.
    pub fn count_use(&self, addr: Addr) -> Result<()> {
        if self.unlinked.lock().remove(&addr) {
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
        let number = addr.get().unwrap_or(0) / 8 % HEADER_LOCKS as u64;
        self.headers[number as usize].lock()
    }

    /// Keeps other threads from changing the header at `addr` while several of its messages are read, or the structures
    /// to which they lead.
    pub fn lock_to_read(&self, addr: Addr) -> Option<MutexGuard<'_, ()>> {
        self.mode.writes().then(|| self.header_lock(addr))
    }

    pub fn metadata(&self, addr: Addr) -> ObjectMetadata {
        ObjectMetadata::new(self.cache.clone(), Owner::new(addr))
    }

    /// Reads the current header of an object.
    pub fn header(&self, addr: Addr) -> Result<CachedHeader> {
        self.check_open()?;
        if !addr.is_defined() {
            return Err(Error::Object { header: addr, rule: "its address is defined" });
        }
        self.retry.retry(|| {
            if self.is_follower() {
                self.cache.evict_owner(Owner::new(addr));
            }
            let header = CachedHeader::load(&self.metadata(addr), self.mode.writes())?;
            self.heap_reader.forget();
            // Its last link went while it was followed, or is about to go.
            if header.is_empty() || self.has_followers() && self.is_pending_delete(addr) {
                return Err(Error::Model(model::Error::NoObject(ObjectId(addr.get().unwrap_or(u64::MAX).into()))));
            }
            Ok(header)
        })
    }

    /// Calls `each` with everything that `list` lists. A follower may have to start again, and a writer must not keep
    /// others from writing meanwhile. So both first gather the whole list.
    pub fn for_each_listed<T>(
        &self,
        each: &mut dyn FnMut(T) -> bool,
        (of, name_of): (NameScope, impl Fn(&T) -> &Name),
        mut list: impl FnMut(&mut dyn FnMut(T) -> bool) -> Result<()>,
    ) -> Result<()> {
        if !self.is_follower() && !self.mode.writes() {
            return list(each);
        }
        let all = self.list_stable(of, name_of, list)?;
        all.into_iter().all(each);
        Ok(())
    }

    pub fn object(&self, id: ObjectId) -> Result<Addr> {
        let addr = u64::try_from(id.0).map(Addr::new).ok().filter(|addr| addr.is_defined());
        addr.ok_or(Error::Model(model::Error::NoObject(id)))
    }

    /// Makes the operation that is under way atomic: it changes several structures that belong together. They are there
    /// as a whole or not at all, even if the flush fails that writes them. Followers of a live file see one structure
    /// after the other in any case.
    pub fn require_atomic_flush(&self) {
        if !self.has_followers() {
            self.cache.require_atomic_flush();
        }
    }

    /// Whether flushes are durable.
    pub fn is_durable(&self) -> bool {
        self.durable
    }

    pub fn flush(&self, scope: FlushScope) -> Result<()> {
        self.check_open()?;
        if !self.mode.writes() {
            return Ok(());
        }
        let doomed =
            if scope == FlushScope::All { std::mem::take(&mut *self.pending_deletes.lock()) } else { Vec::new() };
        let flushed = self.flush_once(scope);
        match flushed {
            Ok(()) if doomed.is_empty() => return Ok(()),
            Ok(()) => self.finalize_deletes(doomed)?,
            Err(error) => {
                self.pending_deletes.lock().extend(doomed);
                return Err(error);
            }
        }
        self.flush_once(scope)
    }

    /// Refuses to write on where nobody reads it, or where others may write too, as far as was seen `hold` ago at most.
    fn check_ownership(&self, now: Duration, hold: Duration) -> Result<()> {
        let looked = self.ownership_checked_at.load(Ordering::Relaxed);
        if looked != NEVER_CHECKED && nanos(now).saturating_sub(looked) < nanos(hold) {
            return Ok(());
        }
        self.ownership_checked_at.store(NEVER_CHECKED, Ordering::Relaxed);
        self.opened.check(self.cache.space().least_length())?;
        if self.has_liveness_lock && !self.lock.is_liveness_locked() {
            return Err(Error::LockLost);
        }
        self.ownership_checked_at.store(nanos(now), Ordering::Relaxed);
        Ok(())
    }

    /// As [`NativeSession::check_ownership`], as of now: nothing is promised to last that does not.
    fn check_hold_now(&self) -> Result<()> {
        self.ownership_checked_at.store(NEVER_CHECKED, Ordering::Relaxed);
        self.check_ownership(self.clock.now(), OWNERSHIP_CHECK_INTERVAL)
    }

    /// Makes everything that was flushed durable.
    fn sync(&self) -> Result<()> {
        self.cache.sync()?;
        self.check_hold_now()
    }

    fn flush_once(&self, scope: FlushScope) -> Result<()> {
        self.timed_flush(|| self.flush_untimed(scope))
    }

    /// Publishes elements that no reader can see yet by the fast path, with the header that states them. Returns
    /// `false` if the fast path cannot be used.
    pub fn publish_fast<'a>(
        &self,
        part: UnpublishedPart<'_>,
        header: &Handle<ObjectHeader>,
        change: impl FnOnce(&mut ObjectHeader, u64) -> Option<std::result::Result<EntryPatch<'a>, EncodeError>>,
    ) -> Result<bool> {
        let len = header.read().prefix.chunk_len();
        self.timed_flush(|| Ok(self.cache.publish_part(part, header, len, change)?))
    }

    fn timed_flush<T>(&self, write: impl FnOnce() -> Result<T>) -> Result<T> {
        let begin = self.clock.now();
        self.check_ownership(begin, FLUSH_OWNERSHIP_CHECK_INTERVAL)?;
        if self.reuse_unread && self.has_followers() {
            self.cache.space().reclaim_if(|| self.lock.is_sole_handle());
        }
        let flushed = write();
        let end = self.clock.now();
        // The write has been made. If the file is no longer ours, the next flush is refused.
        let _refused = self.check_ownership(end, OWNERSHIP_CHECK_INTERVAL);
        let took = nanos(end.saturating_sub(begin));
        self.flush_nanos.fetch_add(took, Ordering::Relaxed);
        self.longest_flush_nanos.fetch_max(took, Ordering::Relaxed);
        flushed
    }

    /// Statistics of this session.
    pub fn stats(&self) -> Stats {
        let totals = self.cache.stats();
        let counts = self.retry.counts();
        let time = |count: &AtomicU64| Duration::from_nanos(count.load(Ordering::Relaxed));
        let mut stats = Stats::default();
        stats.bytes_read = totals.bytes_read;
        stats.bytes_written = totals.bytes_written;
        stats.writes = totals.writes;
        stats.hits = totals.hits;
        stats.misses = totals.misses;
        stats.torn = counts.torn.load(Ordering::Relaxed);
        stats.retries = counts.retries.load(Ordering::Relaxed);
        stats.flushes = totals.flushes;
        stats.flush_time = time(&self.flush_nanos);
        stats.longest_flush = time(&self.longest_flush_nanos);
        stats
    }

    fn flush_untimed(&self, scope: FlushScope) -> Result<()> {
        let generation = self.heap.lock().begin_flush();
        if scope == FlushScope::All {
            self.begin_name_flush();
        }
        self.cache.flush(scope)?;
        if scope == FlushScope::All {
            self.heap.lock().end_flush(generation);
        }
        if self.durable && scope == FlushScope::All { self.sync() } else { Ok(()) }
    }

    /// Flushes now and then if much was given back that can be used again only after a flush. Call it after operations
    /// that give space back or take some, between operations.
    ///
    /// # Errors
    /// If the flush fails; the operation is done then, and is flushed later.
    pub fn reclaim_space(&self) -> Result<()> {
        // While others follow, only the flushes of the program decide what they see.
        if self.has_followers() {
            return Ok(());
        }
        self.cache.flush_excess()?;
        let operations = self.operations_since_reclaim.fetch_add(1, Ordering::Relaxed);
        // In a small file, the waiting space is much of the file.
        let many = (self.cache.space().end() / FILE_BYTES_PER_OPERATION)
            .clamp(MIN_OPERATIONS_BETWEEN_RECLAIMS, MAX_OPERATIONS_BETWEEN_RECLAIMS);
        if u64::from(operations) < many {
            return Ok(());
        }
        let space = self.cache.space();
        // The end need not have moved if there had been a flush before.
        let share = if space.end() > self.end_at_reclaim.load(Ordering::Relaxed) { 512 } else { 128 };
        let names = self.pending_name_heap_bytes();
        let are_names_worth_it = names > 0 && u64::from(operations) >= names / MAX_NAME_BYTES_PER_OPERATION;
        if space.pending_free_bytes() <= (space.end() / share).max(MIN_RECLAIM_BYTES) && !are_names_worth_it {
            return Ok(());
        }
        self.operations_since_reclaim.store(0, Ordering::Relaxed);
        self.end_at_reclaim.store(space.end(), Ordering::Relaxed);
        self.flush(FlushScope::All)
    }

    /// Flushes, and returns when everything of that will outlast a power failure.
    pub fn flush_durable(&self, scope: FlushScope) -> Result<()> {
        self.check_open()?;
        if !self.mode.writes() {
            return Ok(());
        }
        self.cache.enable_barriers();
        self.has_barriers.store(true, Ordering::Release);
        self.check_hold_now()?;
        self.flush(scope)?;
        self.sync()
    }

    /// Orders two headers: later changes of the header at `later` are written only after the present changes of the
    /// header at `earlier`, and after everything to which that leads.
    pub fn publish_after(&self, later: Addr, earlier: Addr) -> Result<()> {
        self.check_writable()?;
        let circle = {
            let _operation = self.cache.begin_operation();
            let (later, earlier) = (self.header(later)?, self.header(earlier)?);
            later.chunk_nodes().any(|parent| {
                let mut children = earlier.chunk_nodes();
                children.any(|child| self.cache.add_dependency_once(parent, child, EdgeKind::PublishAfter).is_err())
            })
        };
        // Something of the earlier one already waits for the later one, which is thus to be written first and again.
        if circle { self.flush(FlushScope::Owner(Owner::new(earlier))) } else { Ok(()) }
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
            return Err(Error::NotLive(NotLiveReason::ReadOnly));
        }
        if self.superblock.version == 1 {
            return Err(Error::NotLive(NotLiveReason::Superblock(self.superblock.version)));
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

    /// The dataset at `addr`, if somebody has it open.
    pub fn open_dataset(&self, addr: Addr) -> Option<Arc<NativeDataset>> {
        self.datasets.lock().get(&addr).and_then(Weak::upgrade)
    }

    /// Takes up what the writer has published since of all datasets that are open.
    ///
    /// # Errors
    /// If one of them cannot be read any more, and was not deleted.
    pub fn refresh_datasets(&self) -> Result<()> {
        self.check_open()?;
        let open: Vec<_> = self.datasets.lock().values().filter_map(Weak::upgrade).collect();
        open.iter().filter(|_| self.is_follower()).try_for_each(|dataset| match dataset.refresh_published() {
            Err(Error::Model(model::Error::NoObject(_))) => Ok(()),
            refreshed => refreshed.map(drop),
        })
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
        let mut closed = self.closed.lock();
        if *closed {
            return Ok(());
        }
        if self.mode.writes() {
            self.check_hold_now()?;
            self.flush(FlushScope::All)?;
            if self.free_preallocated()? {
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
        *closed = true;
        self.is_closed.store(true, Ordering::Release);
        // Others tell a live writer by whether the file is open for writing, whatever handles are left here.
        self.cache.storage().close();
        self.lock.close();
        if self.mode.writes() && self.has_generations() {
            self.lock.release_generation_lock().map_err(Error::io("unlock the file"))?;
        }
        self.lock.release().map_err(Error::io("unlock the file"))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl NativeSession {
    /// Ends the session without writing anything.
    pub fn abandon(&self) {
        *self.closed.lock() = true;
        self.is_closed.store(true, Ordering::Release);
    }
}

impl Drop for NativeSession {
    fn drop(&mut self) {
        // Call `close` to know whether the last flush succeeded.
        let _ = self.close();
    }
}
