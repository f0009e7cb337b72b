//! Objects as files in a folder, as the service keeps them on POSIX file systems.
//!
//! A file is written beside the others and then renamed, so that readers see all of it or nothing. A session that writes
//! holds a lock on a file (`flock`), which ends with its process. The file has a mark as long as the session has not been closed:
//! a file with a mark that nobody has locked was left by a process that has died.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use h5live_model::{DurabilitySupport, Error as ModelError, Mode, Result};
use parking_lot::Mutex;
use rayon::prelude::*;

use super::{
    ClaimState, DocumentPut, FetchedObject, ListedObject, OBJECTS_FOLDER, OTHER_BUCKET, ObjectChangeTag, ObjectEngine,
    ObjectPut, ObjectSink, RequestCounters, RequestCounts, Revalidation, is_domain_key, key_in_bucket,
};
use crate::error::HsdsError;
use crate::layout::DOMAIN_FILE;

/// The file that a writer of a domain locks, beside the object of the domain.
const LOCK_FILE: &str = ".h5live.lock";
/// What is in this file while a session writes.
const WRITING: &[u8] = b"writing\n";
/// The folder of files that are being written, in the bucket.
const TEMP_FOLDER: &str = ".h5live.tmp";

/// A file that is being written is written at once: one that is as old as that was left by a process that has died.
const MIN_UNFINISHED_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Threads that write or delete files, and how many files each has at least.
const MAX_THREADS: usize = 8;
const MIN_WRITTEN_BY_THREAD: usize = 8;
const MIN_DELETED_BY_THREAD: usize = 64;

/// How often a writer tries to lock a file that another one removes.
const MAX_LOCK_ROUNDS: u32 = 16;
/// How often a folder is made that others remove, because nothing is in it.
const MAX_FOLDER_ROUNDS: u32 = 64;

/// The number of the next file that is being written.
static NEXT_TEMP: AtomicU64 = AtomicU64::new(0);

/// Objects as files in a folder.
#[derive(Debug)]
pub struct FolderEngine {
    bucket: PathBuf,
    lock_path: PathBuf,
    /// The lock of a session that writes.
    lock: Mutex<Option<File>>,
    /// Whether the file of the lock was made by this session, and the outermost folder that was made for it.
    is_lock_new: bool,
    made: Option<PathBuf>,
    counters: RequestCounters,
    /// The locks by which this session has claimed objects, by their prefixes.
    claims: Mutex<BTreeMap<String, File>>,
    /// Files that were written, and are not on disk for certain.
    unsynced: Mutex<HashSet<PathBuf>>,
    /// Held while files are synced.
    syncing: Mutex<()>,
    /// Whether each file goes to disk before it is seen.
    is_durable: AtomicBool,
}

fn failed(key: &str) -> impl FnOnce(io::Error) -> h5live_model::Error {
    let key = key.to_owned();
    move |source| HsdsError::Io { key, source }.into()
}

impl FolderEngine {
    /// The objects of a bucket, for a session on the domain whose folder in it is `domain`. A session that writes
    /// excludes others that write the same domain.
    ///
    /// # Errors
    /// [`h5live_model::Error::Store`]: another process writes the domain, or the system refuses.
    pub fn open(bucket: &Path, domain: &str, mode: Mode) -> Result<Self> {
        let lock_path = bucket.join(domain).join(LOCK_FILE);
        // Nothing is made where a domain should be and is not.
        let is_missing = !matches!(mode, Mode::Create | Mode::CreateNew) && !bucket.join(domain).is_dir();
        let is_lock_new = !lock_path.exists();
        let is_made = |folder: &&Path| !folder.exists();
        let made = lock_path.ancestors().skip(1).take_while(is_made).last().map(Path::to_owned);
        let lock = if mode.writes() && !is_missing { Some(FolderEngine::take_lock(&lock_path)?) } else { None };
        if let Some(mut lock) = lock.as_ref() {
            let marked = lock.set_len(0).and_then(|()| lock.write_all(WRITING));
            marked.map_err(failed(&lock_path.display().to_string()))?;
        }
        Ok(FolderEngine {
            bucket: bucket.to_owned(),
            lock_path,
            lock: Mutex::new(lock),
            is_lock_new,
            made,
            claims: Mutex::default(),
            counters: RequestCounters::default(),
            unsynced: Mutex::default(),
            syncing: Mutex::default(),
            is_durable: AtomicBool::new(false),
        })
    }

    fn take_lock(path: &Path) -> Result<File> {
        let name = path.display().to_string();
        let in_use = || {
            let domain = path.parent().unwrap_or(path).display().to_string();
            HsdsError::InUse(domain).into()
        };
        // A session whose domain never came to be removes the file, and its folder, while it has the lock.
        for _ in 0..MAX_LOCK_ROUNDS {
            let open = || File::options().create(true).truncate(false).write(true).open(path);
            let file = match in_folder(path, open) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened.map_err(failed(&name))?,
            };
            match file.try_lock() {
                Ok(()) if is_at(&file, path) => return Ok(file),
                Ok(()) => {}
                Err(fs::TryLockError::WouldBlock) => return Err(in_use()),
                Err(fs::TryLockError::Error(error)) => return Err(failed(&name)(error)),
            }
        }
        Err(in_use())
    }

    fn path(&self, key: &str) -> PathBuf {
        self.bucket.join(key)
    }

    fn read(&self, key: &str) -> Result<Option<FetchedObject>> {
        let missing = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory)
        };
        let mut file = match File::open(self.path(key)) {
            Ok(file) => file,
            Err(error) if missing(&error) => return Ok(None),
            Err(error) => return Err(failed(key)(error)),
        };
        let stat = file.metadata().map_err(failed(key))?;
        let mut bytes = Vec::with_capacity(usize::try_from(stat.len()).unwrap_or_default().min(1 << 30));
        match file.read_to_end(&mut bytes) {
            Ok(_) => {}
            Err(error) if missing(&error) => return Ok(None),
            Err(error) => return Err(failed(key)(error)),
        }
        RequestCounters::add_bytes(&self.counters.bytes_read, bytes.len());
        Ok(Some(FetchedObject { bytes: bytes.into(), tag: tag_of(&stat) }))
    }

    fn write(&self, put: &ObjectPut) -> io::Result<ObjectChangeTag> {
        let path = self.path(&put.key);
        let number = NEXT_TEMP.fetch_add(1, Ordering::Relaxed);
        let temp = self.bucket.join(TEMP_FOLDER).join(format!("{}-{number}", process::id()));
        let written = self.write_beside(put, &temp, &path);
        if written.is_err() {
            let _ = fs::remove_file(&temp);
        }
        RequestCounters::add_bytes(&self.counters.bytes_written, put.bytes.len());
        written
    }

    fn write_beside(&self, put: &ObjectPut, temp: &Path, path: &Path) -> io::Result<ObjectChangeTag> {
        let mut file = in_folder(temp, || File::create(temp))?;
        file.write_all(&put.bytes)?;
        let is_durable = self.is_durable.load(Ordering::Acquire);
        if is_durable {
            file.sync_all()?;
        }
        let tag = tag_of(&file.metadata()?);
        drop(file);
        in_folder(path, || fs::rename(temp, path))?;
        match is_durable {
            true => sync_folders(&self.bucket, path)?,
            false => drop(self.unsynced.lock().insert(path.to_owned())),
        }
        Ok(tag)
    }

    fn delete(&self, key: &str) -> io::Result<()> {
        let path = self.path(key);
        // Before: whoever writes it again meanwhile notes it anew.
        let is_unsynced = self.unsynced.lock().remove(&path);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                // The file stays, and is not on disk for certain.
                if is_unsynced {
                    self.unsynced.lock().insert(path);
                }
                return Err(error);
            }
            _ => {}
        }
        self.remove_empty_folders(&path);
        Ok(())
    }

    /// A folder is there for what is in it.
    fn remove_empty_folders(&self, path: &Path) {
        let folders = path.ancestors().skip(1).take_while(|folder| *folder != self.bucket);
        for folder in folders {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }

    /// The file that says who makes the objects with a prefix.
    fn claim_path(&self, prefix: &str) -> PathBuf {
        self.path(prefix).join(LOCK_FILE)
    }

    fn end_claim(&self, prefix: &str, lock: File) -> Result<()> {
        let path = self.claim_path(prefix);
        let removed = match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&path.display().to_string())(error)),
            _ => Ok(()),
        };
        self.remove_empty_folders(&path);
        drop(lock);
        removed
    }

    /// Gives up the lock of a session that ends, which has left nothing unfinished. Whether there was one.
    fn end_writing(&self) -> bool {
        let lock = self.lock.lock().take();
        // If that fails, it is said that the session has died: too much, and not too little.
        lock.as_ref().iter().for_each(|lock| drop(lock.set_len(0)));
        lock.is_some()
    }

    fn end_claims(&self) -> Result<()> {
        let claims = std::mem::take(&mut *self.claims.lock());
        claims.into_iter().try_for_each(|(prefix, lock)| self.end_claim(&prefix, lock))
    }

    fn list_folder(&self, folder: &Path, key: &str, found: &mut Vec<ListedObject>) -> io::Result<()> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let key = format!("{key}{name}");
            // One that was deleted meanwhile is not there.
            let Ok(stat) = entry.metadata() else { continue };
            match stat.is_dir() {
                true if name != TEMP_FOLDER => self.list_folder(&entry.path(), &format!("{key}/"), found)?,
                false if name != LOCK_FILE => {
                    found.push(ListedObject { key, size: stat.len(), modified: stat.modified().ok() });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Drop for FolderEngine {
    fn drop(&mut self) {
        self.end_writing();
    }
}

/// Whether a file is the one at a path, or the system does not tell.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let number = |stat: fs::Metadata| (stat.dev(), stat.ino());
        file.metadata().map(number).ok() == fs::metadata(path).map(number).ok()
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

/// Does something in the folder of a path, which is made if it is not there.
fn in_folder<T>(path: &Path, mut act: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut refused = None;
    for _ in 0..MAX_FOLDER_ROUNDS {
        match act() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => return done,
        }
        // A session that ends may take each of the folders away as soon as it is there.
        refused = match path.parent().map_or(Ok(()), fs::create_dir_all) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Some(error),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => None,
        };
    }
    act().map_err(|error| refused.unwrap_or(error))
}

/// Puts the entries of a path on disk, up to those of the bucket.
fn sync_folders(bucket: &Path, path: &Path) -> io::Result<()> {
    for folder in path.ancestors().skip(1) {
        match File::open(folder) {
            Ok(opened) => opened.sync_all()?,
            // Another thread has deleted what was in it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        if folder == bucket {
            break;
        }
    }
    Ok(())
}

/// What changes when a file is replaced, or written in place as the service does.
fn tag_of(stat: &fs::Metadata) -> ObjectChangeTag {
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(stat);
    #[cfg(not(unix))]
    let inode = 0;
    let time = stat.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    ObjectChangeTag(format!("{inode:x}-{:x}-{:x}", time.map_or(0, |time| time.as_nanos()), stat.len()))
}

/// Does work on parts of `items`, in threads of its own: those of the pool may wait for the caller, because it holds a lock, or
/// ends their session in the middle of their work. Each thread has `min` items at least. What they return is in order.
fn in_threads<T: Sync, R: Send>(items: &[T], min: usize, work: impl Fn(&[T]) -> Result<R> + Sync) -> Result<Vec<R>> {
    let work = &work;
    thread::scope(|scope| {
        let mut parts = items.chunks(items.len().div_ceil(MAX_THREADS).max(min));
        let Some(first) = parts.next() else { return Ok(Vec::new()) };
        let others: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
        let first = work(first);
        let others = others.into_iter().map(|other| other.join().unwrap_or(Err(ModelError::Closed)));
        // All have ended before the first error is returned.
        [first].into_iter().chain(others).collect::<Vec<_>>().into_iter().collect()
    })
}

impl ObjectEngine for FolderEngine {
    fn get(&self, key: &str) -> Result<Option<FetchedObject>> {
        self.counters.wave(&self.counters.gets, 1);
        self.read(key)
    }

    fn get_many(&self, keys: &[String], each: &ObjectSink<'_>) -> Result<()> {
        self.counters.wave(&self.counters.gets, keys.len());
        match keys {
            [key] => each(0, self.read(key)?),
            _ => keys.par_iter().enumerate().try_for_each(|(number, key)| each(number, self.read(key)?)),
        }
    }

    fn get_file_range(&self, uri: &str, start: u64, bytes: u64) -> Result<Vec<u8>> {
        let name = self.bucket.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let path = self.path(key_in_bucket(uri, name)?);
        self.counters.wave(&self.counters.gets, 1);
        // A document names a file, and a link in the bucket may lead anywhere.
        let (path, bucket) =
            (path.canonicalize().map_err(failed(uri))?, self.bucket.canonicalize().map_err(failed(uri))?);
        if !path.starts_with(bucket) {
            return Err(OTHER_BUCKET);
        }
        let mut found = Vec::new();
        let mut file = File::open(path).map_err(failed(uri))?;
        file.seek(SeekFrom::Start(start)).map_err(failed(uri))?;
        file.take(bytes).read_to_end(&mut found).map_err(failed(uri))?;
        match found.len() as u64 == bytes {
            true => Ok(found),
            false => Err(failed(uri)(io::ErrorKind::UnexpectedEof.into())),
        }
    }

    fn revalidate(&self, key: &str, tag: &ObjectChangeTag) -> Result<Revalidation> {
        self.counters.wave(&self.counters.gets, 1);
        match fs::metadata(self.path(key)) {
            Ok(stat) if tag_of(&stat) == *tag => return Ok(Revalidation::Same),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Revalidation::Gone),
            _ => {}
        }
        Ok(self.read(key)?.map_or(Revalidation::Gone, Revalidation::Newer))
    }

    fn put_many(&self, puts: Vec<ObjectPut>) -> Result<Vec<ObjectChangeTag>> {
        self.counters.wave(&self.counters.puts, puts.len());
        let write = |put: &ObjectPut| self.write(put).map_err(failed(&put.key));
        let written =
            in_threads(&puts, MIN_WRITTEN_BY_THREAD, |puts| puts.iter().map(write).collect::<Result<Vec<_>>>())?;
        Ok(written.into_iter().flatten().collect())
    }

    /// Folders have no conditional writes.
    fn put_documents(&self, puts: Vec<DocumentPut>) -> Result<Vec<ObjectChangeTag>> {
        self.put_many(puts.into_iter().map(|put| put.object).collect())
    }

    fn delete_many(&self, keys: &[String]) -> Result<()> {
        self.counters.wave(&self.counters.deletes, keys.len());
        let delete = |keys: &[String]| keys.iter().try_for_each(|key| self.delete(key).map_err(failed(key)));
        in_threads(keys, MIN_DELETED_BY_THREAD, delete).map(drop)
    }

    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>> {
        self.counters.wave(&self.counters.lists, 1);
        let mut found = Vec::new();
        self.list_folder(&self.path(prefix), prefix, &mut found).map_err(failed(prefix))?;
        Ok(found)
    }

    fn folder_names(&self, prefix: &str) -> Result<Vec<String>> {
        self.counters.wave(&self.counters.lists, 1);
        let entries = match fs::read_dir(self.path(prefix)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed(prefix))?,
        };
        let folder = |entry: io::Result<fs::DirEntry>| {
            let entry = entry.map_err(failed(prefix))?;
            Ok(entry.file_name().into_string().ok().filter(|_| entry.file_type().is_ok_and(|kind| kind.is_dir())))
        };
        entries.filter_map(|entry| folder(entry).transpose()).collect()
    }

    fn all_domain_document_keys(&self) -> Result<Vec<String>> {
        let tops = self.folder_names("")?.into_iter().filter(|name| name != OBJECTS_FOLDER && name != TEMP_FOLDER);
        let mut keys = vec![DOMAIN_FILE.to_owned()];
        for top in tops {
            let listed = self.list(&format!("{top}/"))?.into_iter().map(|object| object.key);
            keys.extend(listed.filter(|key| is_domain_key(key)));
        }
        Ok(keys)
    }

    fn claim(&self, prefix: &str) -> Result<()> {
        let mut claims = self.claims.lock();
        if !claims.contains_key(prefix) {
            claims.insert(prefix.to_owned(), FolderEngine::take_lock(&self.claim_path(prefix))?);
        }
        Ok(())
    }

    fn release_claim(&self, prefix: &str) -> Result<()> {
        let lock = self.claims.lock().remove(prefix);
        lock.map_or(Ok(()), |lock| self.end_claim(prefix, lock))
    }

    fn find_claim(&self, prefix: &str) -> Result<ClaimState> {
        let path = self.claim_path(prefix);
        let lock = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ClaimState::Absent),
            lock => lock.map_err(failed(&path.display().to_string()))?,
        };
        match lock.try_lock_shared() {
            Ok(()) => Ok(ClaimState::Abandoned),
            Err(fs::TryLockError::WouldBlock) => Ok(ClaimState::Held),
            Err(fs::TryLockError::Error(error)) => Err(failed(&path.display().to_string())(error)),
        }
    }

    fn remove_abandoned_writes(&self) -> Result<()> {
        let folder = self.bucket.join(TEMP_FOLDER);
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let modified = entry.metadata().and_then(|stat| stat.modified()).ok();
            let age = modified.and_then(|at| SystemTime::now().duration_since(at).ok());
            if age.is_some_and(|age| age >= MIN_UNFINISHED_AGE) {
                // Another process may do the same.
                let _ = fs::remove_file(entry.path());
            }
        }
        let _ = fs::remove_dir(folder);
        Ok(())
    }

    fn durability(&self) -> DurabilitySupport {
        DurabilitySupport::OnRequest
    }

    fn sync(&self) -> Result<()> {
        self.is_durable.store(true, Ordering::Release);
        // What another thread is about to sync is synced when this ends.
        let _alone = self.syncing.lock();
        let paths = std::mem::take(&mut *self.unsynced.lock());
        let sync = |path: &PathBuf| match File::open(path) {
            Ok(file) => file.sync_all().and_then(|()| sync_folders(&self.bucket, path)),
            // It was deleted since.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        };
        let synced = paths.iter().try_for_each(|path| sync(path).map_err(failed(&path.display().to_string())));
        if synced.is_err() {
            self.unsynced.lock().extend(paths);
        }
        synced
    }

    fn has_writer(&self) -> Result<bool> {
        if self.lock.lock().is_some() {
            return Ok(true);
        }
        match File::open(&self.lock_path) {
            Ok(file) => Ok(matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock))),
            Err(_) => Ok(false),
        }
    }

    fn is_abandoned(&self) -> Result<bool> {
        let file = match File::open(&self.lock_path) {
            Ok(file) if self.lock.lock().is_none() => file,
            _ => return Ok(false),
        };
        // Locked first: who closes takes the mark away while the lock is still held.
        let is_free = file.try_lock_shared().is_ok();
        Ok(is_free && file.metadata().is_ok_and(|stat| stat.len() > 0))
    }

    fn close(&self) -> Result<()> {
        let claims = self.end_claims();
        if self.end_writing() {
            // Unless others write there.
            let _ = fs::remove_dir(self.bucket.join(TEMP_FOLDER));
        }
        claims
    }

    fn close_never_created(&self) -> Result<()> {
        self.end_claims()?;
        let Some(lock) = self.lock.lock().take() else { return Ok(()) };
        let _ = fs::remove_dir(self.bucket.join(TEMP_FOLDER));
        let removed = if self.is_lock_new { fs::remove_file(&self.lock_path) } else { Ok(()) };
        // Others may have put something there: a folder that is not empty stays.
        let made = |folder: &&Path| self.made.as_deref().is_some_and(|made| folder.starts_with(made));
        let mut folders = self.lock_path.ancestors().skip(1).take_while(made);
        while folders.next().is_some_and(|folder| fs::remove_dir(folder).is_ok()) {}
        drop(lock);
        removed.map_err(failed(&self.lock_path.display().to_string()))
    }

    fn close_after_deletion(&self) -> Result<()> {
        self.end_claims()?;
        let Some(lock) = self.lock.lock().take() else { return Ok(()) };
        let _ = fs::remove_dir(self.bucket.join(TEMP_FOLDER));
        // Whoever waits for the lock finds that its file is another one.
        let removed = fs::remove_file(&self.lock_path);
        self.remove_empty_folders(&self.lock_path);
        drop(lock);
        removed.map_err(failed(&self.lock_path.display().to_string()))
    }

    fn counts(&self) -> RequestCounts {
        self.counters.counts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_written_again_wait_for_the_disk_once() {
        let bucket = tempfile::tempdir().unwrap();
        let engine = FolderEngine::open(bucket.path(), "run", Mode::CreateNew).unwrap();
        let put = |key: &str| engine.put_many(vec![ObjectPut { key: key.to_owned(), bytes: vec![1] }]).unwrap();
        (0..100).for_each(|_| drop((put("db/1/.group.json"), put("db/2/.group.json"))));
        assert_eq!(engine.unsynced.lock().len(), 2);
        engine.delete_many(&["db/1/.group.json".to_owned()]).unwrap();
        assert_eq!(engine.unsynced.lock().len(), 1);
        // What cannot be deleted is still to be synced: here a folder lies in the place of a file.
        let path = bucket.path().join("db/3");
        fs::create_dir_all(&path).unwrap();
        engine.unsynced.lock().insert(path.clone());
        engine.delete_many(&["db/3".to_owned()]).unwrap_err();
        assert!(engine.unsynced.lock().contains(&path));
        engine.sync().unwrap();
        assert!(engine.unsynced.lock().is_empty());
    }

    #[test]
    fn folders_that_another_thread_has_removed_need_no_sync() {
        let bucket = tempfile::tempdir().unwrap();
        fs::create_dir(bucket.path().join("db")).unwrap();
        sync_folders(bucket.path(), &bucket.path().join("db/gone/d/.dataset.json")).unwrap();
    }
}
