//! Who may open a file, and in which mode.
//!
//! As libhdf5 has it: a writer has an exclusive lock, a reader a shared one, until the status flags of the superblock say
//! that a SWMR writer is at work. Beyond that, a writer that died is told from one that lives ([`LockHandle::find_writer`]),
//! so that its file can be opened again.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use h5live_cache::{FileStorage, Storage};
use h5live_format::{StatusFlags, Superblock};
use h5live_model::Mode;

use crate::error::{OpenConflict, SwmrUnsupportedReason};
use crate::file_change::is_different_file;
use crate::lease::OtherHandlePresence;
use crate::locking::{LockAttempt, LockHandle, LockKind, LockPolicy, WriterPresence};
use crate::superblock::{check_file_len, is_marked_open_for_writing, locate_and_rebase_superblock};
use crate::{Error, Result};

/// How often a process checks whether another one that is just opening the file lets it in: once in a millisecond.
const OPEN_WAIT_POLLS: u32 = 200;

/// How often a process that wants to write checks whether readers leave a file at rest. `h5live serve` leaves one a quarter of
/// a second after the last request, when it looks next.
const LEAVE_WAIT_POLLS: u32 = 800;

/// How often a SWMR reader checks this, if the file says that its writer never lets readers in. The process that is
/// opening the file may have to finish the work of its predecessor, and wait for the disk.
const TAKEOVER_WAIT_POLLS: u32 = 10_000;

/// How often a file is looked at that another process changes between the look and the moment when it is this one's.
const MAX_RECHECKS: u32 = 4;

/// How a process wants to open a file.
#[derive(Debug, Clone, Copy)]
pub struct AccessOptions {
    /// The access mode.
    pub mode: Mode,
    /// Whether the file is locked, if the environment does not say.
    pub locking: LockPolicy,
    /// Write a file that its superblock says is being written, when the system cannot tell whether its writer lives.
    pub take_over: bool,
    /// Whether other processes that have the file open for writing are ignored: this one has agreed with them, by other
    /// means, that it is its turn to write.
    pub takes_turns: bool,
    /// Whether an error that the file has a live writer names its process, which is looked for among all of the machine.
    pub reports_writer_process: bool,
}

/// The superblock of a file that will be written, and where it is.
#[derive(Debug)]
pub struct FoundFileState {
    /// Where the superblock is (bytes from the start of the file).
    pub superblock_offset: u64,
    /// The superblock.
    pub superblock: Superblock,
    /// The state that a writer left that did not close the file.
    pub unclean_close: Option<UncleanClose>,
    /// Who else had the file open at that moment. A reader of an earlier session may still follow its pointers.
    pub other_handles: OtherHandlePresence,
}

/// The state that a writer left that did not close the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UncleanClose {
    /// Others may still be following it.
    pub may_have_followers: bool,
}

/// A file that this process may write from now on, and nobody else.
#[derive(Debug)]
pub struct FileOpenedForWriting {
    /// The handle for reading and writing.
    pub file: File,
    /// The handle that holds the locks.
    pub lock: LockHandle,
    /// The superblock as it was when the locks were taken.
    pub found_state: FoundFileState,
}

impl FoundFileState {
    /// Treats the file as one that a writer has not closed, whatever its flags say.
    fn assume_unclean(self) -> Self {
        FoundFileState {
            unclean_close: self.unclean_close.or(Some(UncleanClose { may_have_followers: false })),
            ..self
        }
    }
}

/// Whether the file, which is opened to be read, is one that a SWMR writer left behind when it died.
/// `access` says whether it is opened to be followed, and whether a writer of which nothing is known counts as dead.
///
/// # Errors
/// [`Error::InUse`] if a writer has the file, and readers of this kind are not for its files.
pub fn has_dead_swmr_writer(superblock: &Superblock, lock: &LockHandle, access: AccessOptions) -> Result<bool> {
    let is_follower = access.mode == Mode::SwmrRead;
    let flags = superblock.status;
    let (write, swmr) = (flags.contains(StatusFlags::WRITE), flags.allows_concurrent_readers());
    let in_use = |reason, holders| Err(Error::InUse { reason, holders });
    if superblock.version < 3 {
        return match (swmr && !is_follower).then(|| lock.find_writer()) {
            Some(WriterPresence::Alive(holders)) => in_use(OpenConflict::SwmrWriter, holders),
            _ => Ok(false),
        };
    }
    if (!write && !swmr || is_follower) && write == swmr {
        return Ok(false);
    }
    if !access.reports_writer_process && lock.observe_liveness_lock() {
        return in_use(if swmr { OpenConflict::SwmrWriter } else { OpenConflict::Writer }, Vec::new());
    }
    match lock.find_writer() {
        WriterPresence::None => Ok(write && swmr),
        WriterPresence::Unknown if access.take_over => Ok(write && swmr),
        WriterPresence::Alive(holders) if swmr => in_use(OpenConflict::SwmrWriter, holders),
        WriterPresence::Alive(holders) => in_use(OpenConflict::Writer, holders),
        WriterPresence::Unknown => in_use(OpenConflict::PossiblyDeadWriter, Vec::new()),
    }
}

/// Refuses a path at which there is a directory or a pipe. Opening a pipe would wait for its other end.
///
/// # Errors
/// [`Error::IsDirectory`], [`Error::NotSeekable`].
pub fn refuse_directory_or_pipe(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(Error::IsDirectory),
        Ok(found) if is_stream(found.file_type()) => Err(Error::NotSeekable),
        _ => Ok(()),
    }
}

/// Whether this is a pipe, a socket or a character device.
#[cfg(unix)]
fn is_stream(file_type: fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    file_type.is_fifo() || file_type.is_socket() || file_type.is_char_device()
}

#[cfg(not(unix))]
fn is_stream(_file_type: fs::FileType) -> bool {
    false
}

impl AccessOptions {
    /// Refuses a path at which there is a directory, or a pipe, or a file where the mode asks for a new one.
    ///
    /// # Errors
    /// [`Error::IsDirectory`], [`Error::NotSeekable`], [`Error::Exists`].
    pub fn check_path_kind_and_newness(&self, path: &Path) -> Result<()> {
        refuse_directory_or_pipe(path)?;
        match fs::metadata(path) {
            Ok(_) if self.mode == Mode::CreateNew => Err(Error::Exists(path.to_owned())),
            _ => Ok(()),
        }
    }

    fn lock_handle(&self, path: &Path) -> Result<LockHandle> {
        let locking = LockPolicy::from_environment().unwrap_or(self.locking);
        LockHandle::open(path, locking).map_err(Error::io("open the file"))
    }

    /// Opens a file to be read or followed, and takes the lock for that.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::InUse`] if a writer has the file for itself.
    pub fn open_for_reading(&self, path: &Path) -> Result<(File, LockHandle)> {
        let lock = self.lock_handle(path)?;
        Self::let_writer_go_first(&lock, || thread::sleep(Duration::from_millis(1)));
        let mut taken = lock.try_flock(LockKind::Shared).map_err(Error::io("lock the file"))?;
        if taken == LockAttempt::Conflict && self.mode == Mode::SwmrRead {
            taken = Self::wait_for_writer_to_begin(path, &lock)?;
        }
        if taken == LockAttempt::Conflict {
            return Err(Error::InUse { reason: OpenConflict::Writer, holders: lock.writer_processes() });
        }
        if self.mode == Mode::SwmrRead {
            lock.observe_liveness_lock();
        }
        Ok((File::open(path).map_err(Error::io("open the file"))?, lock))
    }

    /// Waits a moment if a SWMR writer waits for readers to leave: it would never begin if others came all the time.
    fn let_writer_go_first(lock: &LockHandle, mut pause: impl FnMut()) {
        for _ in 0..OPEN_WAIT_POLLS {
            if !lock.is_writer_waiting() {
                return;
            }
            pause();
        }
    }

    /// A SWMR writer holds the lock until the superblock says that the writer is there. A process that opens the file
    /// before that waits. A writer that keeps the lock has said so in the superblock.
    fn wait_for_writer_to_begin(path: &Path, lock: &LockHandle) -> Result<LockAttempt> {
        let storage = FileStorage::new(File::open(path).map_err(Error::io("open the file"))?);
        let writes_alone =
            |status: StatusFlags| status.contains(StatusFlags::WRITE) && !status.allows_concurrent_readers();
        for look in 0..TAKEOVER_WAIT_POLLS {
            match locate_and_rebase_superblock(&storage).ok().map(|(_, superblock)| superblock) {
                // Its writer keeps the lock.
                Some(old)
                    if old.version < 3 && is_marked_open_for_writing(&old) && lock.may_have_generation_writer() =>
                {
                    return Ok(LockAttempt::AcquiredOrOff);
                }
                Some(alone) if writes_alone(alone.status) => break,
                Some(marked) if marked.version >= 3 || is_marked_open_for_writing(&marked) => {}
                _ if look >= OPEN_WAIT_POLLS => break,
                _ => {}
            }
            thread::sleep(Duration::from_millis(1));
            if lock.try_flock(LockKind::Shared).map_err(Error::io("lock the file"))? == LockAttempt::AcquiredOrOff {
                return Ok(LockAttempt::AcquiredOrOff);
            }
        }
        Ok(LockAttempt::Conflict)
    }

    /// Opens an existing file for writing, and takes the locks for that.
    ///
    /// # Errors
    /// [`Error::Io`]; as [`AccessOptions::check_writable`].
    pub fn open_for_writing(&self, path: &Path) -> Result<FileOpenedForWriting> {
        self.open_for_writing_checked(path, |storage, lock, locked| self.check_writable(storage, lock, locked))
    }

    /// Opens a file for writing though it may end before it says.
    ///
    /// # Errors
    /// As [`AccessOptions::open_for_writing`].
    pub fn open_for_repair(&self, path: &Path) -> Result<FileOpenedForWriting> {
        self.open_for_writing_checked(path, |storage, lock, locked| {
            Ok(self.check_repairable(storage, lock, locked)?.assume_unclean())
        })
    }

    /// Opens a file for writing if `check` lets it. `check` gets the file, its locks, and whether the exclusive lock was
    /// free.
    fn open_for_writing_checked(
        &self,
        path: &Path,
        check: impl Fn(&FileStorage, &LockHandle, bool) -> Result<FoundFileState>,
    ) -> Result<FileOpenedForWriting> {
        for _ in 0..MAX_RECHECKS {
            let lock = self.lock_handle(path)?;
            // The same open handle, so that the system can tell whether there is any other.
            let probe = FileStorage::new(lock.clone_any_open_file().map_err(Error::io("open the file"))?);
            let locked = self.lock_beside_readers(path, &lock, &probe, || thread::sleep(Duration::from_millis(1)))?;
            let before = locate_and_rebase_superblock(&probe).ok();
            let found = check(&probe, &lock, locked)?;
            let file = File::options().read(true).write(true).open(path);
            let file = file.map_err(Error::io("open the file for writing"))?;
            mark_as_written(&file, &lock)?;
            // Another writer may have closed the file, or taken it over and closed it, between the check and the lock.
            if locate_and_rebase_superblock(&probe).ok() == before {
                return Ok(FileOpenedForWriting { file, lock, found_state: found });
            }
        }
        Err(Error::InUse { reason: OpenConflict::Writer, holders: Vec::new() })
    }

    /// Tries to take the exclusive lock. Waits a moment for readers that may release theirs at once: those that look
    /// whether the file has what they wait for, and, if the writer showed generations and is dead, all of them. A SWMR
    /// writer waits longer for followers that have said that they let it through.
    fn lock_beside_readers(
        &self,
        path: &Path,
        lock: &LockHandle,
        file: &FileStorage,
        mut pause: impl FnMut(),
    ) -> Result<bool> {
        let awaits_yielding = || self.mode == Mode::SwmrWrite && lock.has_readers_willing_to_yield();
        for poll in 0..TAKEOVER_WAIT_POLLS {
            if lock.try_flock(LockKind::Exclusive).map_err(Error::io("lock the file"))? == LockAttempt::AcquiredOrOff {
                lock.announce_writer_waiting(false);
                return Ok(true);
            }
            if poll >= LEAVE_WAIT_POLLS && !awaits_yielding() {
                break;
            }
            match locate_and_rebase_superblock(file).map(|(_, superblock)| superblock) {
                Ok(old)
                    if old.version < 3 && is_marked_open_for_writing(&old) && !lock.may_have_generation_writer() =>
                {
                    lock.announce_writer_waiting(true);
                }
                // A handle of this process does not go while this one waits.
                _ if poll == 0 && !lock.this_process_if_flock_holder().is_empty() && !awaits_yielding() => break,
                Ok(at_rest) if !is_marked_open_for_writing(&at_rest) && lock.find_writer() == WriterPresence::None => {
                    if self.mode == Mode::SwmrWrite {
                        // New readers wait from now on, and followers hear of the file being opened.
                        lock.announce_writer_waiting(true);
                        let _ = File::open(path);
                    }
                }
                _ => break,
            }
            pause();
        }
        lock.announce_writer_waiting(false);
        Ok(false)
    }

    /// Checks whether a file may be written, and reads its superblock. `got_lock` says whether the lock was free.
    ///
    /// # Errors
    /// [`Error::InUse`]; [`Error::Truncated`]; [`Error::SwmrUnsupported`] if its superblock has no place for what readers go by;
    /// errors of reading the superblock.
    pub fn check_writable(&self, storage: &dyn Storage, lock: &LockHandle, got_lock: bool) -> Result<FoundFileState> {
        let found = self.check_repairable(storage, lock, got_lock)?;
        if found.unclean_close.is_none() {
            check_file_len(storage, &found.superblock)?;
        }
        Ok(found)
    }

    /// As [`AccessOptions::check_writable`], of a file that may end before it says.
    fn check_repairable(&self, storage: &dyn Storage, lock: &LockHandle, locked: bool) -> Result<FoundFileState> {
        let (at, superblock) = locate_and_rebase_superblock(storage)?;
        let marked = is_marked_open_for_writing(&superblock);
        let swmr = superblock.status.allows_concurrent_readers();
        // A process that holds a lock on a file with the SWMR flag can only be a SWMR reader. A SWMR writer does not
        // harm it.
        let among_swmr_readers = marked && swmr && self.mode == Mode::SwmrWrite && superblock.version >= 3;
        if !locked && !among_swmr_readers {
            return Err(match lock.find_writer() {
                WriterPresence::Alive(holders) => Error::InUse { reason: OpenConflict::Writer, holders },
                WriterPresence::None => Error::InUse { reason: OpenConflict::Readers, holders: lock.flock_holders() },
                WriterPresence::Unknown => Error::InUse { reason: OpenConflict::Lock, holders: lock.flock_holders() },
            });
        }
        if marked && !self.takes_turns {
            let reason = if swmr { OpenConflict::SwmrWriter } else { OpenConflict::Writer };
            if !self.reports_writer_process && lock.observe_liveness_lock() {
                return Err(Error::InUse { reason, holders: Vec::new() });
            }
            match lock.find_writer() {
                WriterPresence::None => {}
                WriterPresence::Unknown if self.take_over => {}
                WriterPresence::Alive(holders) => return Err(Error::InUse { reason, holders }),
                WriterPresence::Unknown => {
                    return Err(Error::InUse { reason: OpenConflict::PossiblyDeadWriter, holders: Vec::new() });
                }
            }
        }
        if self.mode == Mode::SwmrWrite && superblock.version == 1 {
            return Err(Error::SwmrUnsupported(SwmrUnsupportedReason::SuperblockVersion(superblock.version)));
        }
        Ok(FoundFileState {
            superblock_offset: at,
            superblock,
            unclean_close: marked.then_some(UncleanClose { may_have_followers: swmr }),
            other_handles: lock.probe_other_handles(),
        })
    }

    /// Creates a file, or opens one to be emptied, and takes the locks for that. Nothing in it is changed yet. A file that
    /// somebody may have open is not emptied: it loses its name, and a new file gets it.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::InUse`]; [`Error::Exists`] if it is there and must not be.
    pub fn create_or_open_to_overwrite(&self, path: &Path) -> Result<CreatedOrOpenedFile> {
        let mut permissions = None;
        for _ in 0..MAX_RECHECKS {
            // Locked before anything else, so that no writer comes between the look for one and the lock.
            let lock = match self.lock_existing_file(path) {
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
                _ if self.mode == Mode::CreateNew => return Err(Error::Exists(path.to_owned())),
                lock => Some(lock?),
            };
            if let Some(lock) = &lock
                && lock.probe_other_handles() != OtherHandlePresence::None
                && !is_different_file(lock, path)
            {
                permissions = Some(leave_to_readers(path, lock)?);
                continue;
            }
            let mut options = File::options();
            options.read(true).write(true).truncate(false).create_new(lock.is_none());
            let file = match options.open(path) {
                Ok(file) => file,
                // Another process has created or removed it since. If it is never there, its folder does not exist.
                Err(error) if is_creation_race(&error, lock.is_some()) => continue,
                Err(source) => return Err(Error::Io { action: "create the file", source }),
            };
            let is_new = lock.is_none();
            let lock = match lock {
                Some(lock) => lock,
                None => self.lock_created_file(path)?,
            };
            if is_different_file(&lock, path) {
                continue;
            }
            if let Some(permissions) = permissions.take() {
                file.set_permissions(permissions).map_err(Error::io("set the permissions of the file"))?;
            }
            mark_as_written(&file, &lock)?;
            return Ok(CreatedOrOpenedFile { file, lock, is_new });
        }
        Err(Error::InUse { reason: OpenConflict::Writer, holders: Vec::new() })
    }

    /// Removes a file that was created and could not be begun, unless a process has opened it for writing meanwhile.
    pub fn remove_failed_creation(&self, path: &Path) {
        if let Ok(_lock) = self.lock_existing_file(path) {
            // The error of the caller says more than that of the removal.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Takes the lock of a file that exists and will be made anew, unless a process writes it.
    fn lock_existing_file(&self, path: &Path) -> Result<LockHandle> {
        let lock = self.lock_handle(path)?;
        Self::lock_to_create(&lock, || refuse_if_written(path, &lock), || thread::sleep(Duration::from_millis(1)))?;
        Ok(lock)
    }

    /// Takes the lock of a file that this process has just created.
    fn lock_created_file(&self, path: &Path) -> Result<LockHandle> {
        let lock = self.lock_handle(path)?;
        Self::lock_to_create(&lock, || Ok(()), || thread::sleep(Duration::from_millis(1)))?;
        Ok(lock)
    }

    /// Takes the exclusive lock, and runs `check` once it has been tried. Waits a moment for readers that only look
    /// whether the file has what they wait for.
    fn lock_to_create(lock: &LockHandle, check: impl Fn() -> Result<()>, mut pause: impl FnMut()) -> Result<()> {
        for _ in 0..LEAVE_WAIT_POLLS {
            let taken = lock.try_flock(LockKind::Exclusive).map_err(Error::io("lock the file"))?;
            check()?;
            match taken {
                LockAttempt::AcquiredOrOff => return Ok(()),
                // A handle of this process does not go while this one waits.
                LockAttempt::Conflict if !lock.this_process_if_flock_holder().is_empty() => break,
                LockAttempt::Conflict => pause(),
            }
        }
        Err(Error::InUse { reason: OpenConflict::Lock, holders: lock.flock_holders() })
    }
}

/// A file that was created, or is to be emptied.
#[derive(Debug)]
pub struct CreatedOrOpenedFile {
    /// The file.
    pub file: File,
    /// Its lock.
    pub lock: LockHandle,
    /// Whether it was not there before.
    pub is_new: bool,
}

/// Takes its name from a file that others may have open, for a new one. Returns its permissions.
fn leave_to_readers(path: &Path, lock: &LockHandle) -> Result<fs::Permissions> {
    // What a symbolic link leads to, not the link.
    let path = fs::canonicalize(path).map_err(Error::io("open the file"))?;
    let permissions = fs::metadata(&path).map_err(Error::io("open the file"))?.permissions();
    match fs::remove_file(&path) {
        Ok(()) => Ok(permissions),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(Error::InUse { reason: OpenConflict::Readers, holders: lock.other_openers() })
        }
        Err(source) => Err(Error::Io { action: "replace the file", source }),
    }
}

/// Whether another process has made the file meanwhile, or removed it if it was there.
fn is_creation_race(error: &io::Error, was_there: bool) -> bool {
    error.kind() == if was_there { io::ErrorKind::NotFound } else { io::ErrorKind::AlreadyExists }
}

/// Refuses to replace what a process writes, or may be writing as far as the system can tell.
pub(crate) fn refuse_if_written(path: &Path, lock: &LockHandle) -> Result<()> {
    let marked = || -> Result<bool> {
        let file = FileStorage::new(File::open(path).map_err(Error::io("open the file"))?);
        // A file without a superblock has no flags.
        Ok(locate_and_rebase_superblock(&file).is_ok_and(|(_, superblock)| is_marked_open_for_writing(&superblock)))
    };
    match lock.find_writer() {
        WriterPresence::Alive(holders) => Err(Error::InUse { reason: OpenConflict::Writer, holders }),
        WriterPresence::Unknown if marked()? => {
            Err(Error::InUse { reason: OpenConflict::PossiblyDeadWriter, holders: Vec::new() })
        }
        _ => Ok(()),
    }
}

/// Shows other processes that this one writes the file, where nothing else does.
fn mark_as_written(file: &File, lock: &LockHandle) -> Result<()> {
    lock.acquire_liveness_lock(file).map_err(|source| match source.kind() {
        io::ErrorKind::WouldBlock => {
            Error::InUse { reason: OpenConflict::SwmrWriter, holders: lock.writers_beside_this_handle() }
        }
        _ => Error::Io { action: "mark the file as written by this process", source },
    })
}

#[cfg(test)]
mod tests;
