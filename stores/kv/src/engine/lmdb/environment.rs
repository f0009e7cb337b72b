//! LMDB's environment and its read transactions.
#![allow(unsafe_code, reason = "LMDB maps files, and values stay where they are as long as their transaction lives")]

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use h5live_model::{FileBackedBytes, MappedMemory};
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, MdbError, RoTxn, WithoutTls};
use parking_lot::Mutex;

use super::super::{EngineError, KeySpan, Result};
use super::files::{DATA_FILE, LOCK_FILE, WRITER_LOCK_FILE};
use super::page::{
    MetaPage, NODE_HEAD_BYTES, PAGE_HEAD_BYTES, check_overflow_head, max_node_bytes, overflow_page_count,
};
use super::page_check::{PageCheckScope, PageFile};
use super::reader_table;

/// Bytes of which the size of a page is a divisor on every system.
const PAGE_MULTIPLE: u64 = 64 << 10;
/// The least address space that is tried (bytes).
const MIN_MAP_BYTES: u64 = 1 << 30;
/// How often a state is looked for whose meta page a writer has replaced meanwhile.
const MAX_STATES: usize = 1000;

/// An open environment: this process has one for each folder.
pub struct Environment {
    env: Env<WithoutTls>,
    pairs: Database<Bytes, Bytes>,
    /// Held if LMDB's table of readers cannot be used: then writers are kept away.
    without_writers: Option<File>,
    /// Whether the pages that readers follow were found to be sound.
    are_pages_checked: Mutex<bool>,
    /// Where the mapping begins (an address); 0 if that is not known, as in an empty database.
    mapping: AtomicUsize,
}

/// How the files of an environment are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileAccess {
    /// For writing, if only of the table of readers.
    Write,
    /// The keys and values for reading.
    Read,
    /// All files for reading: there is no table of readers.
    ReadWithoutTable,
}

impl FileAccess {
    fn flags(self) -> EnvFlags {
        let flags = EnvFlags::NO_SYNC | EnvFlags::NO_READ_AHEAD;
        match self {
            FileAccess::Write => flags,
            FileAccess::Read => flags | EnvFlags::READ_ONLY,
            FileAccess::ReadWithoutTable => flags | EnvFlags::READ_ONLY | EnvFlags::NO_LOCK,
        }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Environment").field(&self.env.path()).finish()
    }
}

/// The error of the system for input or output that has failed.
const EIO: i32 = 5;

/// The environments that are open in this process.
fn open_environments() -> &'static Mutex<HashMap<PathBuf, Weak<Environment>>> {
    static OPEN: OnceLock<Mutex<HashMap<PathBuf, Weak<Environment>>>> = OnceLock::new();
    OPEN.get_or_init(Mutex::default)
}

/// Names what was tried when LMDB refused.
pub fn lmdb_error(context: &'static str) -> impl FnOnce(heed::Error) -> EngineError {
    move |source| match source {
        heed::Error::Io(source) => EngineError::io(context)(source),
        heed::Error::Mdb(MdbError::MapFull) => {
            EngineError::Full("the store has reached the option map_size".to_owned())
        }
        heed::Error::Mdb(MdbError::MapResized) => {
            EngineError::Full("another process has made the store larger than the option map_size here".to_owned())
        }
        heed::Error::Mdb(MdbError::Invalid | MdbError::Corrupted | MdbError::PageNotFound) => {
            EngineError::Damaged("a page of its database is not what it should be")
        }
        source => EngineError::Library { context, source: Box::new(source) },
    }
}

/// Names what was tried when LMDB could not write `bytes` bytes, more or less, to the files of a folder. Of a write that ended
/// in its middle it says only EIO, also where the disk is full.
pub fn lmdb_write_error(context: &'static str, folder: &Path, bytes: usize) -> impl FnOnce(heed::Error) -> EngineError {
    move |source| match &source {
        heed::Error::Io(failure)
            if failure.raw_os_error() == Some(EIO) && free_bytes(folder).is_some_and(|free| free < bytes as u64) =>
        {
            EngineError::Full(std::io::Error::from(std::io::ErrorKind::StorageFull).to_string())
        }
        _ => lmdb_error(context)(source),
    }
}

/// Bytes that may still be written to the file system of a folder; `None` if that cannot be found out.
fn free_bytes(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let system = nix::sys::statvfs::statvfs(folder).ok()?;
        // Numbers of 32 bits on some systems.
        u64::try_from(u128::from(system.blocks_available()) * u128::from(system.fragment_size())).ok()
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        None
    }
}

/// Whether the system does not let this process write.
fn is_denied(error: &heed::Error) -> bool {
    let kinds = [std::io::ErrorKind::PermissionDenied, std::io::ErrorKind::ReadOnlyFilesystem];
    matches!(error, heed::Error::Io(error) if kinds.contains(&error.kind()))
}

/// Keeps writers away from a folder as long as the file is open. Where nothing can be written, no writer comes either.
fn keep_writers_away(folder: &Path) -> Result<File> {
    let path = folder.join(WRITER_LOCK_FILE);
    let lock = File::open(&path).map_err(EngineError::io_at("the lock of writers cannot be opened", &path))?;
    match lock.try_lock_shared() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(EngineError::ReaderTableNotWritable(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(EngineError::io("the lock of writers fails")(error)),
    }
}

/// Gives files that LMDB has just made the permissions that new files have here, as the file of the lock of writers: LMDB lets
/// nobody else read what it makes.
fn share_new_files(folder: &Path, files: &[PathBuf]) -> Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    let context = "the permissions of a new file cannot be set";
    let like = folder.join(WRITER_LOCK_FILE);
    let permissions = fs::metadata(&like).map_err(EngineError::io_at(context, &like))?.permissions();
    let share =
        |path: &PathBuf| fs::set_permissions(path, permissions.clone()).map_err(EngineError::io_at(context, path));
    files.iter().filter(|path| path.exists()).try_for_each(share)
}

impl Environment {
    /// The environment in a folder, which is there. Its first opening in this process takes up to `map_size` bytes of
    /// addresses, or as many as the system gives.
    ///
    /// # Errors
    /// [`EngineError`] if LMDB cannot open it.
    pub fn get_or_open(folder: &Path, map_size: u64, max_readers: u32) -> Result<Arc<Self>> {
        let folder = folder.canonicalize().map_err(EngineError::io("the folder cannot be found"))?;
        let mut open = open_environments().lock();
        if let Some(environment) = open.get(&folder).and_then(Weak::upgrade) {
            return Ok(environment);
        }
        let environment = Arc::new(Environment::open_first(&folder, map_size, max_readers)?);
        open.retain(|_, environment| environment.strong_count() > 0);
        open.insert(folder, Arc::downgrade(&environment));
        Ok(environment)
    }

    /// Opens the files as far as this process may: readers do without what they may not write.
    fn open_first(folder: &Path, map_size: u64, max_readers: u32) -> Result<Self> {
        let context = "the database cannot be opened";
        let mut without_writers = None;
        let new_files: Vec<PathBuf> = [DATA_FILE, LOCK_FILE].map(|name| folder.join(name)).into();
        let new_files: Vec<PathBuf> = new_files.into_iter().filter(|path| !path.exists()).collect();
        reader_table::allocate_reader_table(folder, max_readers)?;
        let opened = Environment::open_files(folder, map_size, max_readers, FileAccess::Write);
        let opened = match opened {
            Err(error) if is_denied(&error) => Environment::open_files(folder, map_size, max_readers, FileAccess::Read),
            opened => opened,
        };
        let env = match opened {
            // Without the table a writer uses pages again that are being read.
            Err(error) if is_denied(&error) => {
                without_writers = Some(keep_writers_away(folder)?);
                Environment::open_files(folder, map_size, max_readers, FileAccess::ReadWithoutTable)
            }
            opened => opened,
        };
        let env = env.map_err(|error| match error {
            heed::Error::Io(source) => EngineError::io_at(context, &folder.join(DATA_FILE))(source),
            error => lmdb_error(context)(error),
        })?;
        share_new_files(folder, &new_files)?;
        let txn = env.read_txn().map_err(lmdb_error(context))?;
        let pairs = env.open_database(&txn, None).map_err(lmdb_error(context))?;
        let pairs = pairs.ok_or(EngineError::Damaged("it has no main database"))?;
        txn.commit().map_err(lmdb_error(context))?;
        let (are_pages_checked, mapping) = (Mutex::new(false), AtomicUsize::new(0));
        Ok(Environment { env, pairs, without_writers, are_pages_checked, mapping })
    }

    /// Checks the pages that readers follow, unless that was done since the environment was opened: what commits change
    /// later are pages that LMDB has written.
    ///
    /// # Errors
    /// As [`Environment::check_pages`].
    pub fn check_pairs_tree_once(&self) -> Result<()> {
        let mut are_checked = self.are_pages_checked.lock();
        if !*are_checked {
            self.check_state(PageCheckScope::Pairs)?;
            *are_checked = true;
        }
        Ok(())
    }

    /// Checks pages of the newest state by reads, before LMDB follows them in its mapping.
    ///
    /// # Errors
    /// [`EngineError::DamagedPage`] if a page is damaged, [`EngineError::Io`] if the file cannot be read.
    pub fn check_pages(&self, what: PageCheckScope) -> Result<()> {
        let mut are_checked = self.are_pages_checked.lock();
        self.check_state(what)?;
        *are_checked = true;
        Ok(())
    }

    fn check_state(&self, what: PageCheckScope) -> Result<()> {
        let context = "the database cannot be read";
        let path = self.env.path().join(DATA_FILE);
        let pages = PageFile::new(File::open(&path).map_err(EngineError::io_at(context, &path))?);
        for _ in 0..MAX_STATES {
            let pair: [MetaPage; 2] = pages.meta_pages()?.ok_or(EngineError::Damaged("its file is empty"))?;
            let txn = self.env.read_txn().map_err(lmdb_error(context))?;
            let Some(meta) = pair.iter().find(|meta| meta.commit == txn.id() as u64) else { continue };
            let first = pages.check_and_locate_first_key(meta, what)?;
            if let (Some(first), Some((key, _))) = (first, self.pairs.first(&txn).map_err(lmdb_error(context))?) {
                self.mapping.store(key.as_ptr().addr().wrapping_sub(first.0 as usize), Ordering::Relaxed);
            }
            return Ok(());
        }
        Err(EngineError::Damaged("no meta page has the number of the commit in the table of readers"))
    }

    /// Refuses a value that is to be deleted or replaced, and whose first page does not say which pages are freed then.
    /// The value is that of a committed state.
    ///
    /// # Errors
    /// [`EngineError::DamagedPage`] if that page is damaged.
    pub fn check_overflow_page(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let page_size = self.env.stat().page_size as usize;
        let mapping = self.mapping.load(Ordering::Relaxed);
        let at = value.as_ptr().addr().wrapping_sub(mapping);
        let is_large = NODE_HEAD_BYTES + key.len() + value.len() > max_node_bytes(page_size);
        // Values that this commit has written are elsewhere.
        let is_mapped = mapping != 0 && at < self.env.info().map_size && at % page_size == PAGE_HEAD_BYTES;
        if !is_large || !is_mapped {
            return Ok(());
        }
        // SAFETY: a value that begins behind the head of a page of the mapping has that head before it.
        let head = unsafe { slice::from_raw_parts(value.as_ptr().sub(PAGE_HEAD_BYTES), PAGE_HEAD_BYTES) };
        check_overflow_head(head, (at / page_size) as u64, overflow_page_count(value.len() as u64, page_size))?;
        Ok(())
    }

    fn open_files(
        folder: &Path,
        mut map_size: u64,
        max_readers: u32,
        access: FileAccess,
    ) -> std::result::Result<Env<WithoutTls>, heed::Error> {
        loop {
            let mut options = EnvOpenOptions::new().read_txn_without_tls();
            let whole_pages = usize::try_from(map_size / PAGE_MULTIPLE * PAGE_MULTIPLE).unwrap_or(usize::MAX);
            options.map_size(whole_pages).max_readers(max_readers);
            // SAFETY: what unsynchronised commits may lose is kept by `LmdbCheckpoint`. Without the table of readers, no
            // writer is there: `keep_writers_away`.
            unsafe { options.flags(access.flags()) };
            // SAFETY: the files in the folder are changed through LMDB alone, and this process opens them once.
            match unsafe { options.open(folder) } {
                // The system has not so many addresses.
                Err(heed::Error::Io(error))
                    if error.kind() == std::io::ErrorKind::OutOfMemory && map_size > MIN_MAP_BYTES =>
                {
                    map_size /= 2;
                }
                opened => return opened,
            }
        }
    }

    /// Whether LMDB's table of readers is used.
    pub fn uses_reader_table(&self) -> bool {
        self.without_writers.is_none()
    }

    /// LMDB's own handle.
    pub fn env(&self) -> &Env<WithoutTls> {
        &self.env
    }

    /// The keys and values.
    pub fn pairs(&self) -> Database<Bytes, Bytes> {
        self.pairs
    }

    /// The number of the newest commit.
    pub fn newest_commit(&self) -> u64 {
        self.env.info().last_txn_id as u64
    }

    /// Bytes of the file that were ever used.
    pub fn ever_used_bytes(&self) -> u64 {
        (self.env.info().last_page_number as u64 + 1) * u64::from(self.env.stat().page_size)
    }

    /// Bytes of the pages that the keys and values of the newest state take.
    pub fn live_bytes(&self) -> u64 {
        let stat = self.env.stat();
        (stat.branch_pages + stat.leaf_pages + stat.overflow_pages) as u64 * u64::from(stat.page_size)
    }

    /// Waits until the disk has what was committed so far. Others may commit meanwhile.
    ///
    /// # Errors
    /// [`EngineError`] if the disk refuses.
    pub fn force_sync(&self) -> Result<()> {
        self.env.force_sync().map_err(lmdb_error("the disk does not take the database"))
    }

    /// Takes up the newest commit that is in the file. A writer that was killed at the end of a commit has written it, and
    /// has not said so in the table of readers: reads find the commit before it then, until somebody takes LMDB's lock of
    /// writers. The caller has the lock of writers.
    ///
    /// # Errors
    /// [`EngineError`] if LMDB refuses.
    pub fn adopt_newest_commit(&self) -> Result<()> {
        let txn = self.env.write_txn().map_err(lmdb_error("the last commit cannot be taken up"))?;
        txn.abort();
        Ok(())
    }

    /// A transaction that reads the newest state.
    ///
    /// # Errors
    /// [`EngineError`] if there is none to be had.
    pub fn read(self: &Arc<Self>) -> Result<ReadTransaction> {
        let txn = self.env.clone().static_read_txn().map_err(lmdb_error("the database cannot be read"))?;
        Ok(ReadTransaction { version: txn.id() as u64, txn: Mutex::new(txn), environment: self.clone() })
    }
}

/// A transaction that reads one state, from any thread.
pub struct ReadTransaction {
    version: u64,
    /// LMDB wants one thread at a time to look things up.
    txn: Mutex<RoTxn<'static, WithoutTls>>,
    environment: Arc<Environment>,
}

impl fmt::Debug for ReadTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadTransaction").field(&self.version).finish()
    }
}

/// Where a value is in the mapping.
#[derive(Clone, Copy)]
struct MappedValue {
    at: *const u8,
    len: usize,
}

// SAFETY: the memory may be read from any thread.
unsafe impl Send for MappedValue {}
// SAFETY: as above.
unsafe impl Sync for MappedValue {}

impl ReadTransaction {
    /// The number of the commit whose state it reads.
    pub fn version(&self) -> u64 {
        self.version
    }

    fn find(&self, key: &[u8]) -> Result<Option<MappedValue>> {
        let txn = self.txn.lock();
        let value = self.environment.pairs.get(&txn, key).map_err(lmdb_error("the database cannot be read"))?;
        Ok(value.map(|value| MappedValue { at: value.as_ptr(), len: value.len() }))
    }

    /// Calls `found` with the value of a key, under no lock, and says whether there is one.
    ///
    /// # Errors
    /// [`EngineError`] if the database cannot be read.
    pub fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let Some(value) = self.find(key)? else { return Ok(false) };
        // SAFETY: LMDB does not use the pages of a state again before the last transaction that reads it has ended, and
        // this one ends when `self` is dropped.
        found(unsafe { slice::from_raw_parts(value.at, value.len) });
        Ok(true)
    }

    /// Calls `each` with the keys of a range and their values, in order, until it returns `false`.
    ///
    /// # Errors
    /// [`EngineError`] if the database cannot be read.
    pub fn scan(&self, range: &KeySpan, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let context = "the database cannot be listed";
        let txn = self.txn.lock();
        // LMDB takes no empty key.
        let start = if range.start.is_empty() { Bound::Unbounded } else { Bound::Included(&*range.start) };
        let end = range.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let found = self.environment.pairs.range(&txn, &(start, end)).map_err(lmdb_error(context))?;
        for pair in found {
            let (key, value) = pair.map_err(lmdb_error(context))?;
            if !each(key, value) {
                break;
            }
        }
        Ok(())
    }

    /// The first `len` bytes of the value of a key where they are, which stay as long as they are held; `None` if there
    /// are not so many.
    ///
    /// # Errors
    /// [`EngineError`] if the database cannot be read.
    pub fn share_value_prefix(self: &Arc<Self>, key: &[u8], len: u64) -> Result<Option<FileBackedBytes>> {
        let value = self.find(key)?.filter(|value| value.len as u64 >= len);
        let value = value.map(|value| MappedValue { len: len as usize, ..value });
        let shared = |value| FileBackedBytes::new(Arc::new(MappedBytes { value, _state: self.clone() }));
        Ok(value.map(shared))
    }
}

/// A value in the mapping, with the transaction that keeps it there.
struct MappedBytes {
    value: MappedValue,
    _state: Arc<ReadTransaction>,
}

// SAFETY: the value stays as it is as long as the transaction lives, which this keeps alive.
unsafe impl MappedMemory for MappedBytes {
    fn as_ptr(&self) -> *const u8 {
        self.value.at
    }

    fn len(&self) -> usize {
        self.value.len
    }

    fn copy_to(&self, at: usize, into: &mut [u8]) -> bool {
        // SAFETY: as for `ReadTransaction::get`: the state is kept.
        let value = unsafe { slice::from_raw_parts(self.value.at, self.value.len) };
        let found = value.get(at..).and_then(|value| value.get(..into.len()));
        found.into_iter().for_each(|found| into.copy_from_slice(found));
        found.is_some()
    }

    /// Nobody shortens the file.
    fn has_not_been_truncated(&self) -> bool {
        true
    }

    fn has_faulted(&self) -> bool {
        false
    }
}
