//! The files of this machine that writers share: `run.h5`, `run.h5.subfiles/run.h5.1` and so on, and two files beside
//! these. One is locked by who changes the main file, and one has the number of the last batch.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use h5live_model::{
    AllocationLimit, Connector, ConnectorOptions, ConnectorRegistry, Error, Location, Mode, ObjectSpec, OpenError,
    OpenRequest, Store, StoreErrorKind, Unfilter,
};
use parking_lot::Mutex;

use crate::shared_files::{MainLease, MainUse, SharedFiles};

/// How often a lock is asked for without a pause.
const EAGER_TRIES: u32 = 50;
/// Between two of the later tries.
const TRY_PAUSE: Duration = Duration::from_micros(500);
/// What changes when the machine starts: what was written before may not be what is on the disk.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// The options of native files for taking turns.
const LEAVES_LIVE: &str = "leaves_live";
const LEFT_WHOLE: &str = "left_whole";

/// The main file at a path, and the files beside it.
#[derive(Debug)]
pub struct JoinedFiles {
    connector: Arc<dyn Connector>,
    main: PathBuf,
    /// How long a lock is waited for.
    patience: Duration,
    root: ObjectSpec,
    max_allocation: AllocationLimit,
    unfilter: Arc<dyn Unfilter>,
    registry: ConnectorRegistry,
    lease: Mutex<Option<File>>,
    order: Mutex<Option<File>>,
}

/// The lock of the main file.
struct FileLease<'a> {
    files: &'a JoinedFiles,
    file: parking_lot::MutexGuard<'a, Option<File>>,
    main: Option<Arc<dyn Store>>,
}

/// The file with this ending in the folder of subfiles of a main file.
fn beside(main: &Path, ending: &str) -> PathBuf {
    let name = main.file_name().unwrap_or_default();
    let mut folder = name.to_owned();
    folder.push(".subfiles");
    let mut file = name.to_owned();
    file.push(".");
    file.push(ending);
    main.with_file_name(folder).join(file)
}

/// The path of a subfile of the main file at `main`: `run.h5.subfiles/run.h5.1`.
pub fn subfile_path(main: &Path, number: u32) -> PathBuf {
    beside(main, &number.to_string())
}

fn io_error(action: &str, path: &Path, source: &io::Error) -> OpenError {
    let text = format!("{action} {}: {source}", path.display());
    OpenError::Store(Error::store(StoreErrorKind::Io, io::Error::new(source.kind(), text)))
}

impl JoinedFiles {
    /// The files of the main file at `main`, which are opened like `how`. A lock is waited for as long as `patience`.
    pub fn new(connector: Arc<dyn Connector>, main: PathBuf, patience: Duration, how: &OpenRequest<'_>) -> Self {
        JoinedFiles {
            connector,
            main,
            patience,
            root: how.root.clone(),
            max_allocation: how.max_allocation,
            unfilter: how.unfilter.clone(),
            registry: how.registry.clone(),
            lease: Mutex::default(),
            order: Mutex::default(),
        }
    }

    /// The file with this ending in the folder of subfiles.
    fn beside(&self, ending: &str) -> PathBuf {
        beside(&self.main, ending)
    }

    fn open(&self, path: PathBuf, mode: Mode, settings: &[(&str, bool)]) -> Result<Arc<dyn Store>, OpenError> {
        let mut options = self.connector.options();
        for (name, value) in settings {
            options.set(name, if *value { "yes" } else { "no" })?;
        }
        let request = OpenRequest {
            mode,
            root: &self.root,
            options: &*options as &dyn ConnectorOptions,
            max_allocation: self.max_allocation,
            unfilter: self.unfilter.clone(),
            registry: &self.registry,
        };
        self.connector.open(&Location::Path(path), &request)
    }

    /// Opens a file beside the subfiles, and locks it.
    fn lock<'a>(
        &self,
        file: &'a Mutex<Option<File>>,
        ending: &str,
    ) -> Result<parking_lot::MutexGuard<'a, Option<File>>, OpenError> {
        let path = self.beside(ending);
        let mut file = file.lock();
        if file.is_none() {
            let folder = path.parent().unwrap_or(&path);
            fs::create_dir_all(folder).map_err(|error| io_error("make the folder", folder, &error))?;
            let opened = File::options().read(true).write(true).create(true).truncate(false).open(&path);
            *file = Some(opened.map_err(|error| io_error("open", &path, &error))?);
        }
        let begin = Instant::now();
        for number in 0u32.. {
            match file.as_ref().map(File::try_lock) {
                None | Some(Ok(())) => break,
                Some(Err(TryLockError::Error(error))) => return Err(io_error("lock", &path, &error)),
                Some(Err(TryLockError::WouldBlock)) if begin.elapsed() > self.patience => {
                    let waited = format!("another writer has had its turn for {:?}", self.patience);
                    return Err(io_error("lock", &path, &io::Error::new(io::ErrorKind::TimedOut, waited)));
                }
                Some(Err(TryLockError::WouldBlock)) if number < EAGER_TRIES => std::thread::yield_now(),
                Some(Err(TryLockError::WouldBlock)) => std::thread::sleep(TRY_PAUSE),
            }
        }
        Ok(file)
    }

    /// What the file of the lease says if the main file was left whole since this machine was started; `None` if nothing
    /// tells when that was.
    fn whole_mark() -> Option<Vec<u8>> {
        Some([b"whole ", &fs::read(BOOT_ID).ok()?[..]].concat())
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

impl SharedFiles for JoinedFiles {
    fn lease(&self) -> Result<Box<dyn MainLease + '_>, OpenError> {
        Ok(Box::new(FileLease { files: self, file: self.lock(&self.lease, "lease")?, main: None }))
    }

    fn open_main(&self, mode: Mode) -> Result<Arc<dyn Store>, OpenError> {
        self.open(self.main.clone(), mode, &[])
    }

    fn open_subfile(&self, number: u32, mode: Mode, stays_live: bool) -> Result<Arc<dyn Store>, OpenError> {
        self.open(self.beside(&number.to_string()), mode, &[(LEAVES_LIVE, stays_live)])
    }

    fn next_order(&self, least: u64) -> Result<u64, OpenError> {
        let file = self.lock(&self.order, "order")?;
        let Some(file) = &*file else { return Ok(least.saturating_add(1)) };
        let failed = |error: io::Error| io_error("take a number from", &self.beside("order"), &error);
        let last = read_all(file).map_err(failed)?.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let next = last.max(least).saturating_add(1);
        write_all(file, &next.to_le_bytes()).map_err(failed)?;
        file.unlock().map_err(failed)?;
        Ok(next)
    }
}

impl FileLease<'_> {
    fn mark(&self, bytes: &[u8]) -> Result<(), OpenError> {
        let Some(file) = &*self.file else { return Ok(()) };
        write_all(file, bytes).map_err(|error| io_error("write", &self.files.beside("lease"), &error))
    }
}

impl MainLease for FileLease<'_> {
    fn open_main(&mut self, usage: MainUse) -> Result<Arc<dyn Store>, OpenError> {
        let mark = self.file.as_ref().and_then(|file| read_all(file).ok());
        let is_whole = mark.is_some() && mark == JoinedFiles::whole_mark();
        self.mark(b"")?;
        let settings = [(LEAVES_LIVE, usage != MainUse::Last), (LEFT_WHOLE, is_whole)];
        let is_missing = usage == MainUse::Create && !self.files.main.exists();
        let mode = if is_missing { Mode::CreateNew } else { Mode::SwmrWrite };
        let main = self.files.open(self.files.main.clone(), mode, &settings)?;
        Ok(self.main.insert(main).clone())
    }

    fn end(mut self: Box<Self>) -> Result<(), OpenError> {
        if let Some(main) = self.main.take() {
            main.close()?;
            if let Some(mark) = JoinedFiles::whole_mark() {
                self.mark(&mark)?;
            }
        }
        Ok(())
    }
}

impl Drop for FileLease<'_> {
    /// Lets others have their turn. A main file that was not closed is brought into order by the next writer.
    fn drop(&mut self) {
        if let Some(main) = self.main.take() {
            let _ = main.close();
        }
        if let Some(file) = &*self.file {
            let _ = file.unlock();
        }
    }
}
