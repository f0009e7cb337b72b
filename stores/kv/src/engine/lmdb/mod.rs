//! LMDB: keys and values in one file of a folder, which many processes read while one writes.
//!
//! Commits do not wait for the disk unless they are to be durable. After a power failure LMDB's file may then have any
//! part of what was written since. [`LmdbCheckpoint`] goes back to the state of the last durable commit.

mod checkpoint_scheduler;
mod environment;
mod files;
mod lmdb_checkpoint;
mod page;
mod page_check;
mod page_set;
mod reader_table;
mod stat;
mod watch;

use std::fs::{self, File};
use std::io::Write as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use h5live_model::{FileBackedBytes, FileHolderProcess, Mode, PublishLevel};
use h5live_swmr::{LockHandle, LockPolicy};
use heed::RwTxn;
use parking_lot::Mutex;

use self::checkpoint_scheduler::CheckpointScheduler;
use self::environment::{Environment, ReadTransaction, lmdb_error, lmdb_write_error};
use self::files::{CHECKPOINT_FILE, DATA_FILE, LOCK_FILE, WRITER_LOCK_FILE};
pub use self::lmdb_checkpoint::DurableState;
use self::lmdb_checkpoint::LmdbCheckpoint;
pub use self::page::DamagedPage;
use self::page_check::{PageCheckScope, PageFile};
pub use self::stat::{LmdbReaderEntry, LmdbStat};
use self::watch::LmdbWatch;
use super::{EditBatch, Engine, EngineError, EngineWatch, KeySpan, Result, SyncPolicy, View};

/// How long a writer waits for readers that only look whether somebody writes.
const WRITER_LOCK_WAIT: Duration = Duration::from_millis(200);

/// A commit that fails where less than its size and these bytes are free has failed for want of room.
const MIN_FREE_BYTES: usize = 64 << 10;

/// Bytes of pages of a commit whose memory the process may keep for the next one.
const KEPT_COMMIT_BYTES: usize = 4 << 20;

/// How an LMDB store is opened.
#[derive(Debug, Clone)]
pub struct LmdbOptions {
    /// Most bytes that the store can have.
    pub map_size: u64,
    /// Most states that all processes read at a time.
    pub max_readers: u32,
    /// Which commits wait for the disk.
    pub sync: SyncPolicy,
    /// The least and the most bytes by which the file grows, beside what new records take, before its state is made durable
    /// though nobody asks for it: the pages that were freed since the last durable state are not used again before. Between
    /// them, it is half of the file. Of what is written into free pages, it is the least; of new records, a few times the most.
    pub growth_before_sync: RangeInclusive<u64>,
}

impl Default for LmdbOptions {
    /// A TiB, 4,096 states, 8 to 64 MiB.
    fn default() -> Self {
        LmdbOptions {
            map_size: 1 << 40,
            max_readers: 4096,
            sync: SyncPolicy::DurableOnly,
            growth_before_sync: 8 << 20..=64 << 20,
        }
    }
}

/// A session on keys and values in a folder.
#[derive(Debug)]
pub struct LmdbEngine {
    folder: PathBuf,
    environment: Arc<Environment>,
    sync: SyncPolicy,
    growth: RangeInclusive<u64>,
    /// Entries of dead processes in LMDB's table of readers that were removed when it was opened.
    dead_readers: u64,
    /// The last view that was made: as long as nothing is committed, it serves all.
    newest: Mutex<Weak<ReadTransaction>>,
    writer: Mutex<Option<LmdbWriter>>,
}

/// What a session holds that writes.
#[derive(Debug)]
struct LmdbWriter {
    /// `None` if nothing is durable. It ends before the lock does.
    durable: Option<CheckpointScheduler>,
    /// Locked, and marked, as long as the session writes.
    _lock: File,
}

/// What is in the file of the lock while a session writes. What a process that was killed has left there says so.
const WRITING: &[u8] = b"writing\n";

impl Drop for LmdbWriter {
    fn drop(&mut self) {
        // If that fails, it is said that the session has died: too much, and not too little.
        let _ = self._lock.set_len(0);
    }
}

/// A store that no writer can open as long as this lives.
#[derive(Debug)]
pub struct WriterLock {
    _lock: File,
}

impl WriterLock {
    /// Keeps writers away from the store in a folder.
    ///
    /// # Errors
    /// [`EngineError::NoStoreAt`] if there is none, [`EngineError::InUseByWriter`] if a process writes it.
    pub fn acquire(folder: &Path) -> Result<Self> {
        match LmdbEngine::has_store(folder) {
            true => Ok(WriterLock { _lock: lock_for_writing(folder)? }),
            false => Err(EngineError::NoStoreAt(folder.to_owned())),
        }
    }
}

impl LmdbEngine {
    /// Whether a folder has such a store.
    pub fn has_store(folder: &Path) -> bool {
        folder.join(DATA_FILE).is_file() && folder.join(WRITER_LOCK_FILE).is_file()
    }

    /// The file of keys and values of a folder.
    pub fn data_file(folder: &Path) -> PathBuf {
        folder.join(DATA_FILE)
    }

    /// The processes that have the store in a folder open for writing, where the system names them; `None` if there are
    /// none.
    ///
    /// # Errors
    /// [`EngineError::Io`] if a file cannot be opened.
    pub fn writers_if_locked(folder: &Path) -> Result<Option<Vec<FileHolderProcess>>> {
        let path = folder.join(WRITER_LOCK_FILE);
        let handle =
            || LockHandle::open(&path, LockPolicy::Off).map(|lock| lock.writer_processes()).unwrap_or_default();
        Ok(is_locked(&path)?.then(handle))
    }

    /// Whether the process that wrote the store in a folder last has died. The caller knows that none writes it.
    pub fn is_abandoned_unless_locked(folder: &Path) -> bool {
        fs::metadata(folder.join(WRITER_LOCK_FILE)).is_ok_and(|file| file.len() > 0)
    }

    /// Whether the machine was started anew, and the state of the last durable commit is to be put back.
    ///
    /// # Errors
    /// [`EngineError::Io`] if a file cannot be opened.
    pub fn needs_recovery(folder: &Path) -> Result<bool> {
        LmdbCheckpoint::needs_recovery(folder)
    }

    /// Opens a folder, or makes it. A store that is to be replaced is emptied by its next commit.
    ///
    /// # Errors
    /// [`EngineError::NoStoreAt`], [`EngineError::AlreadyExists`], [`EngineError::InUseByWriter`], [`EngineError::InUseByUnregisteredReader`],
    /// and others if a file cannot be opened.
    pub fn open(folder: &Path, mode: Mode, options: &LmdbOptions) -> Result<Self> {
        let is_there = LmdbEngine::has_store(folder);
        match mode {
            Mode::CreateNew if is_there => return Err(EngineError::AlreadyExists(folder.to_owned())),
            Mode::Create | Mode::CreateNew if !is_there => make_folder(folder)?,
            Mode::Create | Mode::CreateNew => {}
            _ if !is_there => return Err(EngineError::NoStoreAt(folder.to_owned())),
            _ => {}
        }
        let lock = if mode.writes() { Some(lock_for_writing(folder)?) } else { None };
        match &lock {
            Some(_) => LmdbCheckpoint::recover_if_needed(folder)?,
            None if LmdbCheckpoint::needs_recovery(folder)? => {
                let _lock = lock_for_writing(folder)?;
                LmdbCheckpoint::recover_if_needed(folder)?;
            }
            None => {}
        }
        check_meta_pages(folder)?;
        let environment = Environment::get_or_open(folder, options.map_size, options.max_readers)?;
        let dead_readers = environment.env().clear_stale_readers();
        let engine = LmdbEngine {
            folder: folder.to_owned(),
            environment,
            sync: options.sync,
            growth: options.growth_before_sync.clone(),
            dead_readers: dead_readers.map_err(lmdb_error("dead readers cannot be cleared"))? as u64,
            newest: Mutex::default(),
            writer: Mutex::default(),
        };
        if let Some(mut lock) = lock {
            keep_memory_of_commits();
            // Else the session would change one state, and commit to another one.
            engine.environment.adopt_newest_commit()?;
            engine.environment.check_pages(PageCheckScope::PairsAndFreeLists)?;
            let marked = lock.set_len(0).and_then(|()| lock.write_all(WRITING));
            marked.map_err(EngineError::io_at("the lock of writers cannot be written", folder))?;
            let durable = engine.begin_durability()?;
            *engine.writer.lock() = Some(LmdbWriter { durable, _lock: lock });
        } else {
            engine.environment.check_pairs_tree_once()?;
        }
        Ok(engine)
    }

    /// Checks all pages of the newest state.
    ///
    /// # Errors
    /// [`EngineError::DamagedPage`] if one is damaged.
    pub fn check_pages(&self) -> Result<()> {
        self.environment.check_pages(PageCheckScope::AllTreesAndOverflowHeads)
    }

    fn begin_durability(&self) -> Result<Option<CheckpointScheduler>> {
        if self.sync == SyncPolicy::Never {
            LmdbCheckpoint::remove(&self.folder)?;
            return Ok(None);
        }
        CheckpointScheduler::begin_with_checkpoint(&self.folder, &self.environment, self.growth.clone()).map(Some)
    }

    fn read(&self) -> Result<Arc<ReadTransaction>> {
        let mut newest = self.newest.lock();
        let version = self.newest_version()?;
        if let Some(view) = newest.upgrade().filter(|view| view.version() == version) {
            return Ok(view);
        }
        let view = Arc::new(self.environment.read()?);
        *newest = Arc::downgrade(&view);
        Ok(view)
    }

    fn write(&self, edits: &EditBatch) -> Result<()> {
        let context = "the database cannot be written";
        // Beside the values, the pages of the tree on the way to them.
        let bytes = edits.memory_bytes().saturating_mul(2).saturating_add(MIN_FREE_BYTES);
        let failed = || lmdb_write_error(context, &self.folder, bytes);
        let mut txn = self.environment.env().write_txn().map_err(lmdb_error(context))?;
        let mut counter = edits.key_counter();
        for (key, value) in edits.iter() {
            let was_there = match value {
                Some(value) => self.put(&mut txn, key, value, failed)?,
                None => self.delete(&mut txn, key, failed)?,
            };
            counter.note_edit_in_key_order(key, value.is_some(), was_there);
        }
        for (key, number) in counter.into_records() {
            self.put(&mut txn, key, &number, failed)?;
        }
        txn.commit().map_err(failed())
    }

    /// Gives a key a value, and says whether it had one. A key that is new, as most are, is looked for once.
    fn put<F: FnOnce(heed::Error) -> EngineError>(
        &self,
        txn: &mut RwTxn<'_>,
        key: &[u8],
        value: &[u8],
        failed: impl Fn() -> F,
    ) -> Result<bool> {
        let pairs = self.environment.pairs();
        let Some(old) = pairs.get_or_put(txn, key, value).map_err(failed())? else { return Ok(false) };
        self.environment.check_overflow_page(key, old)?;
        pairs.put(txn, key, value).map_err(failed())?;
        Ok(true)
    }

    /// Deletes a key, and says whether it was there.
    fn delete<F: FnOnce(heed::Error) -> EngineError>(
        &self,
        txn: &mut RwTxn<'_>,
        key: &[u8],
        failed: impl Fn() -> F,
    ) -> Result<bool> {
        let pairs = self.environment.pairs();
        let Some(old) = pairs.get(txn, key).map_err(failed())? else { return Ok(false) };
        self.environment.check_overflow_page(key, old)?;
        pairs.delete(txn, key).map_err(failed())
    }
}

/// Lets the allocator keep the memory of a commit for the next one. LMDB allocates the pages of a commit, and frees them after
/// it. glibc gives the free end of its heap back to the system beyond a limit, 128 KiB at first, and the next commit would
/// take it again page by page. The limit rises when a larger block is freed: mallopt(3), `M_MMAP_THRESHOLD`.
fn keep_memory_of_commits() {
    let mut block = Vec::<u8>::new();
    // Where there is no such memory, nothing is to be kept.
    let _is_there = block.try_reserve_exact(KEPT_COMMIT_BYTES);
    drop(std::hint::black_box(block));
}

/// Looks at the meta pages before LMDB does; a folder without the file, or with an empty one, is a new database.
fn check_meta_pages(folder: &Path) -> Result<()> {
    let path = folder.join(DATA_FILE);
    let file = match File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(EngineError::io_at("the database cannot be read", &path))?,
    };
    match PageFile::new(file).meta_pages()? {
        Some(pair) => LmdbCheckpoint::refuse_renumbered_state(folder, &pair),
        None => Ok(()),
    }
}

/// Makes the folder of a new store. One that has something else in it is refused.
fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(EngineError::io_at("the folder cannot be made", folder))?;
    let mut entries = fs::read_dir(folder).map_err(EngineError::io_at("the folder cannot be listed", folder))?;
    // A store that was not finished has these.
    let is_ours = |name: &std::ffi::OsStr| {
        [DATA_FILE, LOCK_FILE, WRITER_LOCK_FILE, CHECKPOINT_FILE].iter().any(|ours| name == *ours)
    };
    if entries.any(|entry| entry.is_ok_and(|entry| !is_ours(&entry.file_name()))) {
        return Err(EngineError::AlreadyExists(folder.to_owned()));
    }
    let made = File::options().write(true).create(true).truncate(false).open(folder.join(WRITER_LOCK_FILE));
    made.map(drop).map_err(EngineError::io_at("the folder cannot be written", folder))
}

fn lock_for_writing(folder: &Path) -> Result<File> {
    // That such a handle is closed tells readers that the writer may have ended.
    let path = folder.join(WRITER_LOCK_FILE);
    let lock = File::options().read(true).write(true).open(&path);
    let lock = lock.map_err(EngineError::io_at("the lock of writers cannot be opened", &path))?;
    let until = Instant::now() + WRITER_LOCK_WAIT;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(fs::TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(Duration::from_millis(5)),
            // A writer has it alone. Who reads without the table of readers shares it.
            Err(fs::TryLockError::WouldBlock) if lock.try_lock_shared().is_err() => {
                return Err(EngineError::InUseByWriter(folder.to_owned()));
            }
            // If nobody does, the writer has just left.
            Err(fs::TryLockError::WouldBlock) => {
                let readers = |_| EngineError::InUseByUnregisteredReader(folder.to_owned());
                return lock.try_lock().map(|()| lock).map_err(readers);
            }
            Err(fs::TryLockError::Error(error)) => return Err(EngineError::io("the lock of writers fails")(error)),
        }
    }
}

/// Whether a session that writes has locked this file.
fn is_locked(path: &Path) -> Result<bool> {
    let lock = File::open(path);
    match lock.map_err(EngineError::io_at("the lock of writers cannot be opened", path))?.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(fs::TryLockError::WouldBlock) => Ok(true),
        Err(fs::TryLockError::Error(error)) => Err(EngineError::io("the lock of writers fails")(error)),
    }
}

impl Engine for LmdbEngine {
    fn view(&self) -> Result<Arc<dyn View>> {
        Ok(Arc::new(LmdbView(self.read()?)))
    }

    fn newest_version(&self) -> Result<u64> {
        Ok(self.environment.newest_commit())
    }

    fn commit(&self, edits: &EditBatch, publish: PublishLevel) -> Result<()> {
        let mut writer = self.writer.lock();
        let writer = writer.as_mut().ok_or(EngineError::ReadOnly)?;
        if !edits.is_empty() {
            self.write(edits)?;
        }
        if publish == PublishLevel::Durable || self.sync == SyncPolicy::Always {
            let durable = writer.durable.as_mut().ok_or(EngineError::DurabilityDisabled)?;
            return durable.make_durable(&self.environment);
        }
        match &mut writer.durable {
            Some(durable) if !edits.is_empty() => {
                durable.start_checkpoint_if_due(&self.environment, edits.memory_bytes())
            }
            _ => Ok(()),
        }
    }

    fn max_key_bytes(&self) -> usize {
        self.environment.env().max_key_size()
    }

    fn has_writer(&self) -> Result<bool> {
        is_locked(&self.folder.join(WRITER_LOCK_FILE))
    }

    fn watch(&self) -> Result<Box<dyn EngineWatch>> {
        Ok(Box::new(LmdbWatch::new(self.environment.clone(), &self.folder)?))
    }

    fn close(&self) -> Result<()> {
        let Some(mut writer) = self.writer.lock().take() else { return Ok(()) };
        match &mut writer.durable {
            Some(durable) => durable.make_durable(&self.environment),
            None => Ok(()),
        }
    }
}

/// One state of the store.
#[derive(Debug)]
struct LmdbView(Arc<ReadTransaction>);

impl View for LmdbView {
    fn version(&self) -> u64 {
        self.0.version()
    }

    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.0.get(key, found)
    }

    fn scan(&self, range: &KeySpan, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        self.0.scan(range, each)
    }

    fn share_value_prefix(&self, key: &[u8], len: u64) -> Result<Option<FileBackedBytes>> {
        self.0.share_value_prefix(key, len)
    }
}
