//! Opening and creating files: modes and locks.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use h5live_cache::{Clock, EdgeKinds, FileStorage, Storage};
use h5live_format::{StatusFlags, Superblock};
use h5live_model::{AllocationLimit, FileSpace, LibVer, Mode, NoFilters, ObjectSpec, Unfilter};

use crate::bootstrap::{LocatedSuperblock, SessionMedium, has_write_flags, locate_superblock};
use crate::error::OpenConflict;
use crate::file_change::is_different_file;
use crate::locking::{LockAttempt, LockHandle, LockKind, LockPolicy, WriterPresence};
use crate::session::NativeSession;
use crate::{Error, Result, RetryPolicy, member_files};

/// How often a process checks whether another one that is just opening the file lets it in: once in a millisecond.
const OPEN_WAIT_POLLS: u32 = 200;

/// How often a SWMR reader checks this, if the file says that its writer never lets readers in. The process that is
/// opening the file may have to finish the work of its predecessor, and wait for the disk.
const TAKEOVER_WAIT_POLLS: u32 = 10_000;

/// How often a file is looked at that another process changes between the look and the moment when it is this one's.
const MAX_RECHECKS: u32 = 4;

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
    pub take_over: bool,
    /// The first bytes of a new file, before the superblock; padded with zeros.
    pub user_block: Vec<u8>,
    /// The root group of a new file.
    pub root: ObjectSpec,
    /// How a new file allocates its space. Settings other than the default need version 1.10 to be used and version 1.8
    /// to be read, whatever the version bounds.
    pub space: FileSpace,
    /// Whether each flush of the whole file is durable. A durable flush returns when everything survives a power
    /// failure. It orders its writes so that durable data is not lost meanwhile.
    pub durable: bool,
    /// The grace: while others follow, freed space (copied index nodes, replaced chunks, deleted objects) is used again
    /// this long after the flush that made it unreachable. At least one second, on which h5live's readers rely;
    /// [`Duration::MAX`] for never. Readers of libhdf5 must refresh what they have open at least as often.
    pub grace: Duration,
    /// Whether such space is used again at once while the system says that nobody else has the file open (Linux, file
    /// systems of this machine).
    pub reuse_unread: bool,
    /// Headroom: bytes beyond its end that a file announces as soon as others may follow. Readers of libhdf5 never look
    /// at the end again. With headroom they can follow new objects, dense links and attributes, elements of variable
    /// length and contiguous data that come to lie there. Without it, they can follow only elements of datasets that
    /// existed. The file is made that long, without contents, until it is closed; after the death of its writer, until
    /// it is next written or repaired.
    pub headroom: u64,
    /// The clock by which writers and readers measure the grace.
    pub clock: Clock,
    /// Whether the file may be mapped, so that small pieces are read and written without a call to the system for each
    /// (Linux, file systems of this machine). About 64 MiB of it are mapped at a time, which count as memory of the
    /// process but are the system's.
    pub mapped: bool,
    /// Bytes of the addresses in a new file: 2, 4 or 8. It cannot grow larger than they can tell.
    pub offset_size: u32,
    /// Most bytes that are allocated at once for a length that the file or a description states.
    pub max_allocation: AllocationLimit,
    /// Undoes the filters of groups that keep their links in filtered heaps.
    pub unfilter: Arc<dyn Unfilter>,
    /// Options that only the model checker uses.
    #[doc(hidden)]
    pub mutant: MutantOptions,
    /// For them too: by way of what a file that exists is written.
    #[doc(hidden)]
    pub wrapper: StorageWrapper,
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

    fn wrap(&self, storage: Arc<dyn Storage>) -> Arc<dyn Storage> {
        match &self.0 {
            Some(wrap) => wrap(storage),
            None => storage,
        }
    }
}

impl std::fmt::Debug for StorageWrapper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Through").field(&self.0.is_some()).finish()
    }
}

/// Options that only the model checker uses: each disables one protection.
#[derive(Debug, Clone, Copy, Default)]
pub struct MutantOptions {
    /// Flush dependencies of these kinds are violated on purpose.
    pub disabled_edges: EdgeKinds,
    /// Durable flushes have no barrier between new data and the structures that lead to it.
    pub disable_barriers: bool,
    /// Changes in place have no redo record.
    pub disable_redo: bool,
    /// Space that was never allocated is taken for zeros, although redo records may have been there.
    pub trusts_zeros: bool,
    /// Structures of a dead writer that contradict each other are not corrected.
    pub without_recount: bool,
    /// As [`CacheOptions::shards`](h5live_cache::CacheOptions::shards), for a session of a single thread.
    pub shards: Option<usize>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            mode: Mode::default(),
            locking: LockPolicy::default(),
            retry: RetryPolicy::default(),
            profile: LibVer::default(),
            take_over: false,
            user_block: Vec::new(),
            root: ObjectSpec::group(),
            space: FileSpace::default(),
            durable: false,
            grace: Duration::from_secs(5),
            reuse_unread: true,
            headroom: 0,
            mapped: true,
            offset_size: 8,
            max_allocation: AllocationLimit::default(),
            clock: Clock::default(),
            unfilter: Arc::new(NoFilters),
            mutant: MutantOptions::default(),
            wrapper: StorageWrapper::default(),
        }
    }
}

impl OpenOptions {
    /// A session on a storage that is no file, and that nobody else uses.
    pub(crate) fn open_storage(&self, storage: Arc<dyn Storage>) -> Result<NativeSession> {
        let medium = SessionMedium { path: PathBuf::new(), storage, lock: LockHandle::detached() };
        match self.mode {
            Mode::Read | Mode::SwmrRead => self.start_reading(medium),
            Mode::Write | Mode::SwmrWrite => {
                let found = self.check_writable(&medium.storage, &medium.lock, true)?;
                self.start_writing(medium, found)
            }
            Mode::Create | Mode::CreateNew => self.start_new(medium),
        }
    }

    pub(crate) fn open(&self, path: &Path) -> Result<NativeSession> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(Error::Directory),
            Ok(_) if self.mode == Mode::CreateNew => return Err(Error::Exists(path.to_owned())),
            _ => {}
        }
        match self.mode {
            Mode::Read | Mode::SwmrRead => self.open_for_reading(path),
            Mode::Write | Mode::SwmrWrite => self.open_for_writing(path),
            Mode::Create | Mode::CreateNew => self.create(path),
        }
    }

    fn lock_handle(&self, path: &Path) -> Result<LockHandle> {
        let locking = LockPolicy::from_environment().unwrap_or(self.locking);
        LockHandle::open(path, locking).map_err(Error::io("open the file"))
    }

    fn open_for_reading(&self, path: &Path) -> Result<NativeSession> {
        let path = &*member_files::first_member_path(path);
        let lock = self.lock_handle(path)?;
        let mut taken = lock.try_lock(LockKind::Shared).map_err(Error::io("lock the file"))?;
        if taken == LockAttempt::Conflict && self.mode == Mode::SwmrRead {
            taken = self.wait_for_writer_to_begin(path, &lock)?;
        }
        if taken == LockAttempt::Conflict {
            return Err(Error::InUse { reason: OpenConflict::Writer, holders: lock.holders() });
        }
        let file = File::open(path).map_err(Error::io("open the file"))?;
        self.start_reading(SessionMedium { path: path.to_owned(), storage: Arc::new(self.storage(file)), lock })
    }

    fn storage(&self, file: File) -> FileStorage {
        let storage = FileStorage::new(file);
        if self.mapped { storage } else { storage.without_mmap() }
    }

    /// A SWMR writer holds the lock until the superblock says that the writer is there. A process that opens the file
    /// before that waits. A writer that keeps the lock has said so in the superblock.
    fn wait_for_writer_to_begin(&self, path: &Path, lock: &LockHandle) -> Result<LockAttempt> {
        let storage = FileStorage::new(File::open(path).map_err(Error::io("open the file"))?);
        let writes_alone =
            |status: StatusFlags| status.contains(StatusFlags::WRITE) && !status.contains(StatusFlags::SWMR);
        for look in 0..TAKEOVER_WAIT_POLLS {
            match locate_superblock(&storage).ok().map(|(_, superblock)| superblock) {
                // Its writer keeps the lock.
                Some(old) if old.version < 3 && has_write_flags(&old) && lock.is_generation_locked() => {
                    return Ok(LockAttempt::Acquired);
                }
                Some(alone) if writes_alone(alone.status) => break,
                Some(telling) if telling.version >= 3 || has_write_flags(&telling) => {}
                _ if look >= OPEN_WAIT_POLLS => break,
                _ => {}
            }
            thread::sleep(Duration::from_millis(1));
            if lock.try_lock(LockKind::Shared).map_err(Error::io("lock the file"))? == LockAttempt::Acquired {
                return Ok(LockAttempt::Acquired);
            }
        }
        Ok(LockAttempt::Conflict)
    }

    fn open_for_writing(&self, path: &Path) -> Result<NativeSession> {
        self.open_checked(path, |storage, lock, locked| self.check_writable(storage, lock, locked))
    }

    /// Opens a file for writing though it may end before it says.
    pub(crate) fn open_for_repair(&self, path: &Path) -> Result<NativeSession> {
        self.open_checked(path, |storage, lock, locked| {
            Ok(self.check_repairable(storage, lock, locked)?.assume_unclean())
        })
    }

    fn open_checked(
        &self,
        path: &Path,
        check: impl Fn(&FileStorage, &LockHandle, bool) -> Result<LocatedSuperblock>,
    ) -> Result<NativeSession> {
        for _ in 0..MAX_RECHECKS {
            let lock = self.lock_handle(path)?;
            let probe = FileStorage::new(File::open(path).map_err(Error::io("open the file"))?);
            let locked = self.lock_with_readers(&lock, &probe)?;
            let before = locate_superblock(&probe).ok();
            let found = check(&probe, &lock, locked)?;
            let file = File::options().read(true).write(true).open(path);
            let file = file.map_err(Error::io("open the file for writing"))?;
            light_beacon(&file, &lock)?;
            // Another writer may have closed the file, or taken it over and closed it, between the look and the beacon.
            if locate_superblock(&probe).ok() == before {
                let storage = self.wrapper.wrap(Arc::new(self.storage(file)));
                return self.start_writing(SessionMedium { path: path.to_owned(), storage, lock }, found);
            }
        }
        Err(Error::InUse { reason: OpenConflict::Writer, holders: Vec::new() })
    }

    /// Whether the exclusive lock is free. If the writer showed generations and is dead, readers of the file hold the
    /// lock only while they read.
    fn lock_with_readers(&self, lock: &LockHandle, file: &FileStorage) -> Result<bool> {
        for _ in 0..OPEN_WAIT_POLLS {
            if lock.try_lock(LockKind::Exclusive).map_err(Error::io("lock the file"))? == LockAttempt::Acquired {
                lock.set_writer_waiting(false);
                return Ok(true);
            }
            let is_left = |superblock: &Superblock| {
                superblock.version < 3 && has_write_flags(superblock) && !lock.is_generation_locked()
            };
            if !locate_superblock(file).is_ok_and(|(_, superblock)| is_left(&superblock)) {
                break;
            }
            lock.set_writer_waiting(true);
            thread::sleep(Duration::from_millis(1));
        }
        lock.set_writer_waiting(false);
        Ok(false)
    }

    fn create(&self, path: &Path) -> Result<NativeSession> {
        for _ in 0..MAX_RECHECKS {
            // Locked before anything else, so that no writer comes between the look for one and the lock.
            let lock = match self.lock_new_file(path) {
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
                _ if self.mode == Mode::CreateNew => return Err(Error::Exists(path.to_owned())),
                lock => Some(lock?),
            };
            let mut options = File::options();
            options.read(true).write(true).truncate(false).create_new(lock.is_none());
            let file = match options.open(path) {
                Ok(file) => file,
                // Another process has created or removed it since. If it is never there, its folder does not exist.
                Err(error) if is_race(&error, lock.is_some()) => continue,
                Err(source) => return Err(Error::Io { action: "create the file", source }),
            };
            let lock = match lock {
                Some(lock) => lock,
                None => {
                    let lock = self.lock_handle(path)?;
                    if lock.try_lock(LockKind::Exclusive).map_err(Error::io("lock the file"))? == LockAttempt::Conflict
                    {
                        return Err(Error::InUse { reason: OpenConflict::Lock, holders: lock.own_lock() });
                    }
                    lock
                }
            };
            if is_different_file(&lock, path) {
                continue;
            }
            light_beacon(&file, &lock)?;
            return self.start_new(SessionMedium {
                path: path.to_owned(),
                storage: Arc::new(self.storage(file)),
                lock,
            });
        }
        Err(Error::InUse { reason: OpenConflict::Writer, holders: Vec::new() })
    }

    /// The lock of a new file.
    fn lock_new_file(&self, path: &Path) -> Result<LockHandle> {
        let lock = self.lock_handle(path)?;
        let taken = lock.try_lock(LockKind::Exclusive).map_err(Error::io("lock the file"))?;
        refuse_writers(path, &lock)?;
        match taken {
            LockAttempt::Conflict => Err(Error::InUse { reason: OpenConflict::Lock, holders: lock.own_lock() }),
            LockAttempt::Acquired => Ok(lock),
        }
    }
}

/// Whether another process has made the file meanwhile, or removed it if it was there.
fn is_race(error: &io::Error, was_there: bool) -> bool {
    error.kind() == if was_there { io::ErrorKind::NotFound } else { io::ErrorKind::AlreadyExists }
}

/// Refuses to replace what a process writes, or may be writing as far as the system can tell.
pub(crate) fn refuse_writers(path: &Path, lock: &LockHandle) -> Result<()> {
    let marked = || -> Result<bool> {
        let file = FileStorage::new(File::open(path).map_err(Error::io("open the file"))?);
        // A file without a superblock has no flags.
        Ok(locate_superblock(&file).is_ok_and(|(_, superblock)| has_write_flags(&superblock)))
    };
    match lock.writer() {
        WriterPresence::Alive(holders) => Err(Error::InUse { reason: OpenConflict::Writer, holders }),
        WriterPresence::Unknown if marked()? => {
            Err(Error::InUse { reason: OpenConflict::UnknownWriter, holders: Vec::new() })
        }
        _ => Ok(()),
    }
}

/// Shows that this process writes the file, where nothing else does.
fn light_beacon(file: &File, lock: &LockHandle) -> Result<()> {
    lock.acquire_liveness_lock(file).map_err(|source| match source.kind() {
        io::ErrorKind::WouldBlock => {
            Error::InUse { reason: OpenConflict::SwmrWriter, holders: lock.holders_beside_one() }
        }
        _ => Error::Io { action: "mark the file as written by this process", source },
    })
}

#[cfg(test)]
mod tests;
