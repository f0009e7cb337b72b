//! Which processes may open a file at the same time: file locks as libhdf5 takes them, and how a dead writer is told
//! from a live one.
//!
//! libhdf5 takes a `flock` when it opens a file (exclusive to write, shared to read). A SWMR writer releases it as soon
//! as the status flags in the superblock say that a writer is there. From then on, only the flags keep a second writer
//! out, and they stay when the writer dies. The kernel knows whether a process still has the file open for writing: it
//! grants a read lease on the file only if none has. Network file systems and files of other users have no leases.
//! There a record lock of the open file description, at a fixed offset far beyond any data, stands for a live h5live
//! writer. A follower that has seen the lock, and sees it no more, knows that the writer is dead. A writer of another
//! library cannot be told from a dead one there.

#[cfg(target_os = "linux")]
mod holders;
#[cfg(not(target_os = "linux"))]
#[path = "locking/unknown_holders.rs"]
mod holders;

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use h5live_model::{FileHolderProcess, WriterLiveness};
use parking_lot::Mutex;

use crate::lease::{self, LeaseProbe, OtherHandlePresence};

/// Looks for a process that has a file open for writing before it counts as one that cannot be seen...
const MAX_HOLDER_SCANS: u32 = 10;
/// ...and the time in which a process that was just started closes the file.
const HOLDER_EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether files are locked while they are open (`HDF5_USE_FILE_LOCKING`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LockPolicy {
    /// A file that cannot be locked is not opened.
    #[default]
    On,
    /// Where the file system has no locks, files are opened without.
    BestEffort,
    /// Files are not locked. The status flags in the superblock are still heeded.
    Off,
}

impl LockPolicy {
    /// The policy of the environment variable. It overrides the policy of the program.
    pub fn from_environment() -> Option<Self> {
        Self::from_setting(&std::env::var_os("HDF5_USE_FILE_LOCKING")?.to_string_lossy())
    }

    fn from_setting(setting: &str) -> Option<Self> {
        match setting {
            "FALSE" | "0" => Some(LockPolicy::Off),
            "TRUE" | "1" => Some(LockPolicy::On),
            "BEST_EFFORT" => Some(LockPolicy::BestEffort),
            _ => None,
        }
    }
}

/// A kind of `flock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Others may hold it too.
    Shared,
    /// Nobody else holds any.
    Exclusive,
}

/// A handle of a file through which it is locked, apart from the one through which it is read and written, so that
/// the lock can be taken before anything is opened for writing.
#[derive(Debug)]
pub struct LockHandle {
    /// `None` for a storage that is no file (nobody else uses it), and after the handle was given up.
    file: Mutex<Option<Arc<File>>>,
    /// The one through which the file is written.
    liveness_file: Mutex<Option<Arc<File>>>,
    locking: LockPolicy,
    /// Held while the lock is taken or released: a follower's is released by another thread ([`crate::LockYieldRegistration`]).
    changes: Mutex<()>,
    /// Whether a lock is held.
    holds_lock: AtomicBool,
    /// Whether other processes see that the lock is released for SWMR writers.
    is_yielding: AtomicBool,
    /// Whether the writer of which the flags speak was seen to hold the record lock that stands for a live one.
    has_seen_liveness_lock: AtomicBool,
    /// The process that was last seen to have the file open for writing; 0 for none.
    seen_writer: AtomicU32,
}

/// Whether a lock was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockAttempt {
    /// It is held now, or locking is off.
    AcquiredOrOff,
    /// Another process holds one that excludes it.
    Conflict,
}

/// The known state of a process that writes the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriterPresence {
    /// No process on this machine has the file open for writing.
    None,
    /// One has. The processes, where the system names them.
    Alive(Vec<FileHolderProcess>),
    /// The system does not tell.
    Unknown,
}

impl LockHandle {
    /// A handle of the file at `path`.
    ///
    /// # Errors
    /// If the file cannot be opened for reading.
    pub fn open(path: &Path, locking: LockPolicy) -> io::Result<Self> {
        Ok(LockHandle::new(Some(Arc::new(File::open(path)?)), locking))
    }

    /// A handle for a storage that is no file, and that nobody else uses.
    pub fn without_file() -> Self {
        LockHandle::new(None, LockPolicy::Off)
    }

    fn new(file: Option<Arc<File>>, locking: LockPolicy) -> Self {
        LockHandle {
            file: Mutex::new(file),
            liveness_file: Mutex::default(),
            locking,
            changes: Mutex::default(),
            holds_lock: AtomicBool::default(),
            is_yielding: AtomicBool::default(),
            has_seen_liveness_lock: AtomicBool::default(),
            seen_writer: AtomicU32::default(),
        }
    }

    /// The file, unless the storage is none.
    pub fn any_open_file(&self) -> Option<Arc<File>> {
        self.file.lock().clone().or_else(|| self.liveness_file.lock().clone())
    }

    /// Another descriptor of this handle.
    ///
    /// # Errors
    /// If the handle was given up, or the system has no more descriptors.
    pub fn clone_any_open_file(&self) -> io::Result<File> {
        self.any_open_file().ok_or(io::ErrorKind::NotFound)?.try_clone()
    }

    /// The file, if locks are used.
    fn file_to_lock(&self) -> Option<Arc<File>> {
        self.any_open_file().filter(|_| self.locking != LockPolicy::Off)
    }

    /// Takes or changes the lock, without waiting.
    ///
    /// # Errors
    /// If the file system has no locks, and they are not optional.
    pub fn try_flock(&self, lock: LockKind) -> io::Result<LockAttempt> {
        let Some(file) = self.file_to_lock() else { return Ok(LockAttempt::AcquiredOrOff) };
        let _changes = self.changes.lock();
        let taken = match lock {
            LockKind::Shared => file.try_lock_shared(),
            LockKind::Exclusive => file.try_lock(),
        };
        match taken {
            Ok(()) => {
                self.holds_lock.store(true, Ordering::Release);
                Ok(LockAttempt::AcquiredOrOff)
            }
            Err(TryLockError::WouldBlock) => Ok(LockAttempt::Conflict),
            Err(TryLockError::Error(e)) if self.locking == LockPolicy::BestEffort && has_no_locks(&e) => {
                Ok(LockAttempt::AcquiredOrOff)
            }
            Err(TryLockError::Error(e)) => Err(e),
        }
    }

    /// Lets go of the lock.
    ///
    /// # Errors
    /// As the system has it.
    pub fn release_flock(&self) -> io::Result<()> {
        let _changes = self.changes.lock();
        self.holds_lock.store(false, Ordering::Release);
        let released = self.file_to_lock().map_or(Ok(()), |file| file.unlock());
        self.show_yielding(false);
        released
    }

    /// Whether this handle holds a lock.
    pub fn holds_flock(&self) -> bool {
        self.holds_lock.load(Ordering::Acquire)
    }

    /// Takes the record lock that stands for a live writer, for as long as `written`, through which the file is
    /// written, stays open: here until [`LockHandle::release_liveness_lock_and_close`].
    ///
    /// # Errors
    /// If another process holds it, or the system has no more descriptors.
    pub fn acquire_liveness_lock(&self, written: &File) -> io::Result<()> {
        acquire_liveness_lock(written, self.locking)?;
        *self.liveness_file.lock() = Some(Arc::new(written.try_clone()?));
        Ok(())
    }

    /// Releases the lock. On a file system of this machine alone it also closes this handle; only the handle for
    /// writing stays open. From now on [`LockHandle::is_writing_handle_sole`] can tell.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn release_flock_close_if_local(&self) -> io::Result<()> {
        self.release_flock()?;
        if self.liveness_file.lock().as_deref().is_some_and(lease::is_known_local) {
            *self.file.lock() = None;
        }
        Ok(())
    }

    /// Whether the handle for writing is the only open handle of the file, in this process and all others. `false` if
    /// the system does not tell, or if processes on other machines may have the file open.
    pub fn is_writing_handle_sole(&self) -> bool {
        let written = self.liveness_file.lock();
        self.has_released() && written.as_deref().map(lease::probe_other_handles) == Some(OtherHandlePresence::None)
    }

    /// Who has the file open beside this handle, before it is opened through any other. Nobody uses a storage that is no
    /// file.
    pub fn probe_other_handles(&self) -> OtherHandlePresence {
        self.file.lock().as_deref().map_or(OtherHandlePresence::None, lease::probe_other_handles)
    }

    /// The processes other than this one that have the file open, as far as the system lets this one see them.
    pub fn other_openers(&self) -> Vec<FileHolderProcess> {
        let openers = self.any_open_file().and_then(|file| holders::find_openers(&file).ok()).unwrap_or_default();
        openers.into_iter().filter(|holder| !holder.is_this_process()).collect()
    }

    fn has_released(&self) -> bool {
        self.file.lock().is_none()
    }

    /// Lets go of the handle through which the file is written.
    pub fn release_liveness_lock_and_close(&self) {
        let written = self.liveness_file.lock().take();
        #[cfg(target_os = "linux")]
        if let (Some(file), false) = (&written, self.locking == LockPolicy::Off) {
            // A lock that cannot be released ends with the last handle.
            let _ = beacon::release_liveness_lock(file);
        }
        drop(written);
    }

    /// Lets go of the locks and of all handles: nobody sees any more that this process had the file open.
    ///
    /// # Errors
    /// As [`LockHandle::release_flock`].
    pub fn release_flock_and_close(&self) -> io::Result<()> {
        let released = self.release_flock();
        *self.file.lock() = None;
        released
    }

    /// Looks whether a writer holds the record lock that stands for a live one. If it does, and later does no more, it is
    /// known to be dead, also where the system grants no leases. Without locks nothing is known.
    pub fn observe_liveness_lock(&self) -> bool {
        let is_held = self.file_to_lock().is_some_and(|file| holds_liveness_lock(&file));
        if is_held {
            self.has_seen_liveness_lock.store(true, Ordering::Release);
        }
        is_held
    }

    /// Forgets the writer that was seen, because it has closed the file. Another may follow, of another library.
    pub fn forget_seen_liveness_lock(&self) {
        self.has_seen_liveness_lock.store(false, Ordering::Release);
    }

    /// Whether the writer of which the flags speak is known to be dead by the lock that it held.
    fn has_lost_liveness_lock(&self) -> bool {
        self.has_seen_liveness_lock.load(Ordering::Acquire) && !self.observe_liveness_lock()
    }

    /// Whether any process has the file open for writing, this one included.
    pub fn find_writer(&self) -> WriterPresence {
        let Some(file) = self.any_open_file() else { return WriterPresence::None };
        let (begin, mut looks) = (Instant::now(), 0);
        loop {
            let holders = match lease::probe_read_lease(&file) {
                LeaseProbe::Granted => return WriterPresence::None,
                LeaseProbe::Refused => self.writer_processes(),
                LeaseProbe::Unavailable if self.observe_liveness_lock() => {
                    return WriterPresence::Alive(self.writer_processes());
                }
                LeaseProbe::Unavailable if self.has_lost_liveness_lock() => return WriterPresence::None,
                LeaseProbe::Unavailable => return WriterPresence::Unknown,
            };
            looks += 1;
            let may_pass = match &*holders {
                [] => looks < MAX_HOLDER_SCANS,
                some => {
                    begin.elapsed() < HOLDER_EXIT_TIMEOUT
                        && !some.iter().any(|holder| holders::is_writer_not_forked_child(&file, holder.pid))
                }
            };
            if !may_pass {
                return WriterPresence::Alive(holders);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether any process has the file open for writing, for who asks again and again: the process that was found last is
    /// looked at before all others of the machine.
    pub fn probe_writer_liveness(&self) -> WriterLiveness {
        let seen = self.seen_writer.load(Ordering::Acquire);
        if seen != 0
            && let Some(file) = self.any_open_file()
            && lease::probe_read_lease(&file) == LeaseProbe::Refused
            && holders::is_writer_not_forked_child(&file, seen)
        {
            return WriterLiveness::Live;
        }
        match self.find_writer() {
            WriterPresence::None => WriterLiveness::AtRest,
            WriterPresence::Unknown => WriterLiveness::Unknown,
            WriterPresence::Alive(holders) => {
                self.seen_writer.store(holders.first().map_or(0, |holder| holder.pid), Ordering::Release);
                WriterLiveness::Live
            }
        }
    }

    /// Whether any process may be writing the file, this one included. Not known for a storage that is no file.
    pub fn may_have_writer(&self) -> bool {
        let Some(file) = self.any_open_file() else { return true };
        match lease::probe_read_lease(&file) {
            LeaseProbe::Granted => false,
            LeaseProbe::Refused => true,
            // Every writer takes the exclusive lock first, and then lets readers take theirs only after it has said in
            // the superblock that it is there.
            LeaseProbe::Unavailable => {
                self.observe_liveness_lock()
                    || !self.has_lost_liveness_lock() && !self.holds_lock.load(Ordering::Acquire)
            }
        }
    }

    /// Whether the record lock that stands for a live writer is held, by this process or another.
    pub fn is_liveness_locked(&self) -> bool {
        // A handle does not see its own locks. But where it has given way it holds them itself, and the kernel of this
        // machine does not forget them; a server may.
        self.file_to_lock().is_some_and(|file| self.has_released() || holds_liveness_lock(&file))
    }

    /// Whether the file can be locked, and nobody holds that record lock: no live writer of h5live.
    pub fn is_lockable_without_liveness_lock(&self) -> bool {
        self.file_to_lock().is_some_and(|file| !holds_liveness_lock(&file))
    }

    /// Takes the record lock that says that this process writes the file by generations, so that others can follow it.
    /// It holds until it is released, or until the handle is closed.
    ///
    /// # Errors
    /// Errors of the system. Without this lock nobody can follow.
    pub fn announce_generation_writer(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        return self.file_to_lock().map_or(Ok(()), |file| beacon::announce_generation_writer(&file));
        #[cfg(not(target_os = "linux"))]
        Ok(())
    }

    /// Takes back what [`LockHandle::announce_generation_writer`] says.
    ///
    /// # Errors
    /// As the system has it.
    pub fn withdraw_generation_writer(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        return self.file_to_lock().map_or(Ok(()), |file| beacon::withdraw_generation_writer(&file));
        #[cfg(not(target_os = "linux"))]
        Ok(())
    }

    /// Whether a process writes the file so that others can follow it by its generations. Without locks there is
    /// nothing to tell that from.
    pub fn may_have_generation_writer(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.file_to_lock().is_none_or(|file| beacon::has_generation_writer(&file));
        #[cfg(not(target_os = "linux"))]
        true
    }

    /// Says that a writer waits for readers that take their looks under the lock, until it is taken back or the handle
    /// goes.
    pub fn announce_writer_waiting(&self, is_waiting: bool) {
        #[cfg(target_os = "linux")]
        if let Some(file) = self.file_to_lock() {
            // Without it the writer may have to wait longer.
            let _ = beacon::announce_writer_waiting(&file, is_waiting);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = is_waiting;
    }

    /// Whether a writer waits for readers to release the lock.
    pub fn is_writer_waiting(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.file_to_lock().is_some_and(|file| beacon::has_waiting_writer(&file));
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Says that the lock of this handle is released as soon as a SWMR writer waits for it, if it is still held.
    pub fn announce_willing_to_yield(&self) {
        let _changes = self.changes.lock();
        if self.holds_flock() {
            self.show_yielding(true);
        }
    }

    fn show_yielding(&self, is_yielding: bool) {
        if self.is_yielding.swap(is_yielding, Ordering::AcqRel) == is_yielding {
            return;
        }
        #[cfg(target_os = "linux")]
        if let Some(file) = self.file_to_lock() {
            // Without it the writer waits a shorter time.
            let _ = beacon::announce_reader_willing_to_yield(&file, is_yielding);
        }
    }

    /// Whether another handle holds a lock that is released as soon as a SWMR writer waits for it.
    pub fn has_readers_willing_to_yield(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.file_to_lock().is_some_and(|file| beacon::has_reader_willing_to_yield(&file));
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// The processes that have the file open for writing, as far as the system lets this one see them.
    pub fn writer_processes(&self) -> Vec<FileHolderProcess> {
        self.any_open_file().and_then(|file| holders::find_writers(&file).ok()).unwrap_or_default()
    }

    /// As [`LockHandle::writer_processes`], when this process has opened the file for writing once just to try.
    pub fn writers_beside_this_handle(&self) -> Vec<FileHolderProcess> {
        let own = self.any_open_file().map_or(0, |file| holders::count_own_writing_handles(&file));
        self.writer_processes().into_iter().filter(|holder| own > 1 || !holder.is_this_process()).collect()
    }

    /// The processes that hold the file's lock, as far as the system lets this one see them.
    pub fn flock_holders(&self) -> Vec<FileHolderProcess> {
        self.any_open_file().and_then(|file| holders::find_flock_holders(&file).ok()).unwrap_or_default()
    }

    /// This process, if it holds the file's lock itself, through another handle.
    pub fn this_process_if_flock_holder(&self) -> Vec<FileHolderProcess> {
        let own = self.any_open_file().is_some_and(|file| holders::is_flocked_by_this_process(&file));
        own.then(FileHolderProcess::this_process).into_iter().collect()
    }
}

impl Drop for LockHandle {
    /// Lets go of everything. Closing would do, if it were not for processes that another thread starts right now:
    /// until they become other programs they have all handles of this one.
    fn drop(&mut self) {
        self.release_liveness_lock_and_close();
        // Locks that cannot be released end with the handles.
        let _ = self.release_flock();
    }
}

#[cfg(target_os = "linux")]
fn holds_liveness_lock(file: &File) -> bool {
    beacon::is_liveness_lock_held(file)
}

#[cfg(not(target_os = "linux"))]
fn holds_liveness_lock(_: &File) -> bool {
    false
}

fn has_no_locks(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported)
}

/// Takes the record lock that stands for a live writer, for as long as `file`, open for writing, stays open.
///
/// # Errors
/// If another process holds it.
fn acquire_liveness_lock(file: &File, locking: LockPolicy) -> io::Result<()> {
    match locking {
        LockPolicy::Off => Ok(()),
        #[cfg(target_os = "linux")]
        LockPolicy::BestEffort => beacon::acquire_liveness_lock(file).or(Ok(())),
        #[cfg(target_os = "linux")]
        LockPolicy::On => match beacon::acquire_liveness_lock(file) {
            Err(e) if has_no_locks(&e) || e.raw_os_error() == Some(nix::libc::EINVAL) => Ok(()),
            lit => lit,
        },
        #[cfg(not(target_os = "linux"))]
        _ => {
            let _ = file;
            Ok(())
        }
    }
}

#[cfg(target_os = "linux")]
mod beacon {
    use std::fs::File;
    use std::io;

    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc;

    /// Far beyond any data, below the largest signed offset.
    const LIVENESS_OFFSET: i64 = i64::MAX - 0x4835;

    /// Beside it, for writers that are followed by their generations. Handles that only read can hold it, too.
    const GENERATION_OFFSET: i64 = LIVENESS_OFFSET + 1;

    /// Beside that, for writers that wait for such readers.
    const WAITING_OFFSET: i64 = LIVENESS_OFFSET + 2;

    /// Beside that, for followers that release their locks for such writers.
    const YIELDING_OFFSET: i64 = LIVENESS_OFFSET + 3;

    fn flock_record(at: i64, kind: libc::c_int) -> libc::flock {
        libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: at,
            l_len: 1,
            l_pid: 0,
        }
    }

    fn set_lock(file: &File, at: i64, kind: libc::c_int) -> io::Result<()> {
        fcntl(file, FcntlArg::F_OFD_SETLK(&flock_record(at, kind))).map(drop).map_err(io::Error::from)
    }

    fn is_held(file: &File, at: i64) -> bool {
        let mut found = flock_record(at, libc::F_WRLCK);
        let asked = fcntl(file, FcntlArg::F_OFD_GETLK(&mut found));
        asked.is_ok() && libc::c_int::from(found.l_type) != libc::F_UNLCK
    }

    pub fn acquire_liveness_lock(file: &File) -> io::Result<()> {
        set_lock(file, LIVENESS_OFFSET, libc::F_WRLCK)
    }

    pub fn release_liveness_lock(file: &File) -> io::Result<()> {
        set_lock(file, LIVENESS_OFFSET, libc::F_UNLCK)
    }

    pub fn is_liveness_lock_held(file: &File) -> bool {
        is_held(file, LIVENESS_OFFSET)
    }

    pub fn announce_generation_writer(file: &File) -> io::Result<()> {
        set_lock(file, GENERATION_OFFSET, libc::F_RDLCK)
    }

    pub fn withdraw_generation_writer(file: &File) -> io::Result<()> {
        set_lock(file, GENERATION_OFFSET, libc::F_UNLCK)
    }

    pub fn has_generation_writer(file: &File) -> bool {
        is_held(file, GENERATION_OFFSET)
    }

    pub fn announce_writer_waiting(file: &File, is_waiting: bool) -> io::Result<()> {
        set_lock(file, WAITING_OFFSET, if is_waiting { libc::F_RDLCK } else { libc::F_UNLCK })
    }

    pub fn has_waiting_writer(file: &File) -> bool {
        is_held(file, WAITING_OFFSET)
    }

    pub fn announce_reader_willing_to_yield(file: &File, is_willing: bool) -> io::Result<()> {
        set_lock(file, YIELDING_OFFSET, if is_willing { libc::F_RDLCK } else { libc::F_UNLCK })
    }

    pub fn has_reader_willing_to_yield(file: &File) -> bool {
        is_held(file, YIELDING_OFFSET)
    }
}

#[cfg(test)]
mod tests;
