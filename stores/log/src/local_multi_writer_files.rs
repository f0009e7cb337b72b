//! The files of this machine that writers share: `run.h5`, `run.h5.subfiles/run.h5.1` and so on, and two files beside
//! these. One is locked by who changes the main file, and one has the number of the last batch.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use h5live_model::{
    AllocationLimit, Connector, ConnectorOptions, ConnectorRegistry, Error, FilterEngine, Location, Mode, ObjectSpec,
    OpenError, OpenRequest, Store, StoreErrorKind,
};
use parking_lot::Mutex;

use crate::multi_writer_files::{AppendLock, MainFileLease, MainFileUse, MultiWriterFiles};
use crate::order_file::{BatchOrderFile, boot_id};
use crate::position::LogPosition;
use crate::subfile_opener::{has_live_writer, is_in_use};

/// How often a lock is asked for without a pause.
const EAGER_TRIES: u32 = 50;
/// Between two of the later tries.
const TRY_PAUSE: Duration = Duration::from_micros(500);
/// How long a process may take to end that was killed while it had the lease.
const EXIT_PATIENCE: Duration = Duration::from_secs(2);
/// The options of native files for taking turns.
const LOCKING: &str = "locking";
const TAKES_TURNS: &str = "takes_turns";
const LEAVES_LIVE: &str = "leaves_live";
const LEFT_WHOLE: &str = "left_whole";
const NAMES_WRITER: &str = "names_writer";
/// The endings of the file that is locked by who changes the main file, and of the one with the number of the last batch.
const LEASE: &str = "lease";
const ORDER: &str = "order";
/// That of the file that is locked by who publishes rows that it has appended.
const APPENDS: &str = "appends";

/// The main file at a path, and the files beside it.
#[derive(Debug)]
pub struct LocalMultiWriterFiles {
    opener: Arc<MainOpener>,
    orders: Mutex<Option<BatchOrderFile>>,
    /// The main file, open for writing while this writer has joined: other programs see by it that the file is in use.
    presence: Arc<Mutex<Option<File>>>,
}

/// How the main file and the files beside it are opened.
#[derive(Debug)]
struct MainOpener {
    connector: Arc<dyn Connector>,
    main: PathBuf,
    /// How long a lock is waited for.
    patience: Duration,
    root: ObjectSpec,
    max_allocation: AllocationLimit,
    unfilter: Arc<dyn FilterEngine>,
    registry: ConnectorRegistry,
}

/// The lock of the main file.
#[derive(Debug)]
struct FileLease {
    opener: Arc<MainOpener>,
    file: File,
    main: Option<Arc<dyn Store>>,
    presence: Arc<Mutex<Option<File>>>,
}

/// The folder of the subfiles of the main file at `main`: `run.h5.subfiles`.
pub fn subfile_folder(main: &Path) -> PathBuf {
    let mut folder = main.file_name().unwrap_or_default().to_owned();
    folder.push(".subfiles");
    main.with_file_name(folder)
}

/// The file with this ending in the folder of subfiles of a main file.
fn beside(main: &Path, ending: &str) -> PathBuf {
    let mut file = main.file_name().unwrap_or_default().to_owned();
    file.push(".");
    file.push(ending);
    subfile_folder(main).join(file)
}

/// The path of a subfile of the main file at `main`: `run.h5.subfiles/run.h5.1`.
pub fn subfile_path(main: &Path, number: u32) -> PathBuf {
    beside(main, &number.to_string())
}

/// Whether writers join the main file at this path, or have done so.
pub fn has_multi_writer_files(main: &Path) -> bool {
    beside(main, LEASE).exists()
}

/// The settings of native files for a follower of a file with a log; none in another mode. A follower has no lock, which
/// would keep writers from joining: they change nothing that it could not follow.
pub fn follower_lock_settings(mode: Mode) -> Vec<(&'static str, &'static str)> {
    if mode == Mode::SwmrRead { vec![(LOCKING, "never")] } else { Vec::new() }
}

fn yes_or_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

fn io_error(action: &str, path: &Path, source: &io::Error) -> OpenError {
    let text = format!("{action} {}: {source}", path.display());
    OpenError::Store(Error::store(StoreErrorKind::Io, io::Error::new(source.kind(), text)))
}

impl LocalMultiWriterFiles {
    /// The files of the main file at `main`, which are opened like `how`. A lock is waited for as long as `patience`.
    pub fn new(connector: Arc<dyn Connector>, main: PathBuf, patience: Duration, how: &OpenRequest<'_>) -> Self {
        let opener = Arc::new(MainOpener {
            connector,
            main,
            patience,
            root: how.root.clone(),
            max_allocation: how.max_allocation,
            unfilter: how.filter_engine.clone(),
            registry: how.registry.clone(),
        });
        LocalMultiWriterFiles { opener, orders: Mutex::default(), presence: Arc::default() }
    }

    /// Changes the file of orders, while it is locked.
    fn change_orders<T>(
        &self,
        action: &str,
        change: impl FnOnce(&BatchOrderFile) -> io::Result<T>,
    ) -> Result<T, OpenError> {
        let mut orders = self.orders.lock();
        if orders.as_ref().is_some_and(BatchOrderFile::is_deleted) {
            *orders = None;
        }
        let orders = match &mut *orders {
            Some(orders) => orders,
            none => none.insert(BatchOrderFile(self.opener.open_lock_file(ORDER)?)),
        };
        self.opener.lock(&orders.0, ORDER)?;
        let changed = change(orders);
        // Whether it is or not: others do not wait for it.
        let unlocked = orders.0.unlock();
        changed
            .and_then(|changed| unlocked.map(|()| changed))
            .map_err(|error| io_error(action, &self.opener.beside(ORDER), &error))
    }
}

impl MainOpener {
    /// The file with this ending in the folder of subfiles.
    fn beside(&self, ending: &str) -> PathBuf {
        beside(&self.main, ending)
    }

    fn open(&self, path: PathBuf, mode: Mode, settings: &[(&str, &str)]) -> Result<Arc<dyn Store>, OpenError> {
        let mut options = self.connector.options();
        for (name, value) in settings {
            options.set(name, value)?;
        }
        let request = OpenRequest {
            mode,
            root: &self.root,
            options: &*options as &dyn ConnectorOptions,
            max_allocation: self.max_allocation,
            filter_engine: self.unfilter.clone(),
            registry: &self.registry,
        };
        self.connector.open(&Location::Path(path), &request)
    }

    /// Opens a file for locks, and makes it if it is not there.
    fn open_lock_file(&self, ending: &str) -> Result<File, OpenError> {
        let path = self.beside(ending);
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder).map_err(|error| io_error("make the folder", folder, &error))?;
        let opened = File::options().read(true).write(true).create(true).truncate(false).open(&path);
        opened.map_err(|error| io_error("open", &path, &error))
    }

    /// Locks a file, which has this ending.
    fn lock(&self, file: &File, ending: &str) -> Result<(), OpenError> {
        let failed = |error: &io::Error| io_error("lock", &self.beside(ending), error);
        let begin = Instant::now();
        for number in 0u32.. {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(failed(&error)),
                Err(TryLockError::WouldBlock) if begin.elapsed() > self.patience => {
                    let waited = format!("another writer has had its turn for {:?}", self.patience);
                    return Err(failed(&io::Error::new(io::ErrorKind::TimedOut, waited)));
                }
                Err(TryLockError::WouldBlock) if number < EAGER_TRIES => std::thread::yield_now(),
                Err(TryLockError::WouldBlock) => std::thread::sleep(TRY_PAUSE),
            }
        }
        Ok(())
    }

    /// Whether a live writer has joined.
    fn has_writers(&self) -> bool {
        let paths = (1..=LogPosition::MAX_FILE_NUMBER).map(|number| subfile_path(&self.main, number));
        let open = |path| self.open(path, Mode::Read, &[(NAMES_WRITER, "no")]);
        paths.take_while(|path| path.exists()).any(|path| has_live_writer(open(path)))
    }

    /// What the file of the lease says if the main file was left whole since this machine was started; `None` if nothing
    /// tells when that was.
    fn whole_mark() -> Option<Vec<u8>> {
        Some([b"whole ", boot_id()?].concat())
    }
}

/// Reads all of a small file, from its beginning.
fn read_all(mut file: &File) -> io::Result<Vec<u8>> {
    use std::io::{Read, Seek};
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(1 << 10).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a small file anew.
fn write_all(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    use std::io::{Seek, Write};
    file.rewind()?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)
}

impl MultiWriterFiles for LocalMultiWriterFiles {
    fn lease(&self) -> Result<Box<dyn MainFileLease>, OpenError> {
        let file = self.opener.open_lock_file(LEASE)?;
        self.opener.lock(&file, LEASE)?;
        let (opener, presence) = (self.opener.clone(), self.presence.clone());
        Ok(Box::new(FileLease { opener, file, main: None, presence }))
    }

    fn open_main(&self, mode: Mode) -> Result<Arc<dyn Store>, OpenError> {
        self.opener.open(self.opener.main.clone(), mode, &follower_lock_settings(mode))
    }

    fn open_subfile(&self, number: u32, mode: Mode, stays_live: bool) -> Result<Arc<dyn Store>, OpenError> {
        // Nobody is told which process has one.
        let settings = [(LEAVES_LIVE, yes_or_no(stays_live)), (NAMES_WRITER, "no")];
        let settings = [&follower_lock_settings(mode)[..], &settings].concat();
        self.opener.open(subfile_path(&self.opener.main, number), mode, &settings)
    }

    fn release_presence(&self) {
        *self.presence.lock() = None;
    }

    fn lock_appends(&self) -> Result<Box<dyn AppendLock>, OpenError> {
        let file = self.opener.open_lock_file(APPENDS)?;
        self.opener.lock(&file, APPENDS)?;
        Ok(Box::new(LockedFile(file)))
    }

    fn take_next_batch_order(&self, own: u32, last: u64, knows_all: bool) -> Result<Option<u64>, OpenError> {
        self.change_orders("take a number from", |orders| orders.take_next_batch_order(own, last, knows_all))
    }

    fn set_last_batch_order(&self, own: u32, last: u64) -> Result<(), OpenError> {
        self.change_orders("write a number to", |orders| orders.set_last_batch_order(own, last))
    }

    fn last_batch_orders(&self) -> Vec<Option<u64>> {
        // Without them, each file is looked at.
        self.orders.lock().as_ref().and_then(|orders| orders.last_batch_orders().ok()).unwrap_or_default()
    }
}

/// A locked file.
#[derive(Debug)]
struct LockedFile(File);

impl AppendLock for LockedFile {}

impl Drop for LockedFile {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl FileLease {
    fn mark(&self, bytes: &[u8]) -> Result<(), OpenError> {
        write_all(&self.file, bytes).map_err(|error| io_error("write", &self.opener.beside(LEASE), &error))
    }
}

impl MainFileLease for FileLease {
    fn open_main_for_writing(&mut self, usage: MainFileUse) -> Result<Arc<dyn Store>, OpenError> {
        let mark = read_all(&self.file).ok();
        let is_whole = mark.is_some() && mark == MainOpener::whole_mark();
        self.mark(b"")?;
        let is_missing = usage == MainFileUse::CreateIfMissing && !self.opener.main.exists();
        let mode = if is_missing { Mode::CreateNew } else { Mode::SwmrWrite };
        let leaves_live = yes_or_no(usage != MainFileUse::LastWriter);
        let open = |takes_turns: bool, names_writer: bool| {
            let settings = [
                (TAKES_TURNS, yes_or_no(takes_turns)),
                (LEAVES_LIVE, leaves_live),
                (LEFT_WHOLE, yes_or_no(is_whole)),
                (NAMES_WRITER, yes_or_no(names_writer)),
            ];
            self.opener.open(self.opener.main.clone(), mode, &settings)
        };
        let has_joined = matches!(usage, MainFileUse::Turn | MainFileUse::LastWriter);
        let begin = Instant::now();
        let main = loop {
            let is_last_try = begin.elapsed() >= EXIT_PATIENCE;
            let opened = match open(has_joined, is_last_try) {
                // Those that have it open are writers that have joined.
                Err(error) if !has_joined && is_in_use(&error) && self.opener.has_writers() => open(true, is_last_try),
                opened => opened,
            };
            match opened {
                // A writer that is killed lets go of the lease before it lets go of the main file.
                Err(error) if is_in_use(&error) && !is_last_try => std::thread::sleep(TRY_PAUSE),
                opened => break opened?,
            }
        };
        let mut presence = self.presence.lock();
        if presence.is_none() {
            let path = &self.opener.main;
            let opened = File::options().write(true).open(path).map_err(|error| io_error("open", path, &error))?;
            *presence = Some(opened);
        }
        Ok(self.main.insert(main).clone())
    }

    fn close_main_and_release(mut self: Box<Self>) -> Result<(), OpenError> {
        if let Some(main) = self.main.take() {
            main.close()?;
            if let Some(mark) = MainOpener::whole_mark() {
                self.mark(&mark)?;
            }
        }
        Ok(())
    }
}

impl Drop for FileLease {
    /// Lets others have their turn. A main file that was not closed is brought into order by the next writer.
    fn drop(&mut self) {
        if let Some(main) = self.main.take() {
            let _ = main.close();
        }
        let _ = self.file.unlock();
    }
}
