//! Open files. Requests for one file share a session, which is kept for a while.
//!
//! A session that follows a writer keeps nobody out, so it stays. One on a file at rest holds the shared lock of a reader,
//! so it is closed as soon as nobody asks any more: a writer that comes is not kept out.

use std::collections::HashMap;
use std::fs::Metadata;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use h5live::{File, Mode, Options};
use parking_lot::Mutex;

use crate::catalog::Place;
use crate::fault::Fault;

/// How long a session on a file at rest is kept without a request.
pub(crate) const AT_REST_LINGER: Duration = Duration::from_millis(250);
/// The same for a session that follows a writer.
const LIVE_LINGER: Duration = Duration::from_secs(60);

/// Open files.
#[derive(Debug)]
pub(crate) struct FileSessions {
    options: Options,
    slots: Mutex<HashMap<String, Arc<Slot>>>,
    capacity: usize,
    opened: AtomicU64,
    refreshed: AtomicU64,
}

#[derive(Debug)]
struct Slot {
    session: Mutex<Option<Arc<FileSession>>>,
    used: Mutex<Instant>,
}

/// An open file.
#[derive(Debug)]
pub(crate) struct FileSession {
    pub file: File,
    /// Whether it follows a writer.
    is_live: bool,
    /// What the file was when it was opened; `None` if it is no file.
    stamp: Option<FileStamp>,
    refreshed_at: Mutex<Instant>,
}

/// What the file system says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    identity: (u64, u64),
    length: u64,
    modified: Option<SystemTime>,
}

impl FileStamp {
    /// The stamp of what is at a place; `None` if it is not a file, or not there.
    pub fn of(place: &Place) -> Option<Self> {
        let found = place.path.as_ref()?.metadata().ok().filter(Metadata::is_file)?;
        Some(FileStamp { identity: identity(&found), length: found.len(), modified: found.modified().ok() })
    }
}

impl FileStamp {
    /// By which numbers the system knows the file.
    pub fn device_and_inode(&self) -> (u64, u64) {
        self.identity
    }
}

#[cfg(unix)]
fn identity(found: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (found.dev(), found.ino())
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

impl FileSession {
    /// Whether it follows a writer.
    pub fn follows_writer(&self) -> bool {
        self.is_live
    }

    /// Takes up what was published before `asked`. `false` if the file has to be opened again.
    fn refresh_since(&self, place: &Place, asked: Instant, refreshes: &AtomicU64) -> bool {
        let now = FileStamp::of(place);
        if !self.follows_writer() {
            return now.is_some() && now == self.stamp;
        }
        if now.map(|stamp| stamp.identity) != self.stamp.map(|stamp| stamp.identity) {
            return false;
        }
        if !matches!(self.file.is_live(), Ok(true)) {
            return false;
        }
        let mut at = self.refreshed_at.lock();
        // What another request has taken up meanwhile is new enough.
        if *at < asked {
            let begun = Instant::now();
            if self.file.refresh().is_err() {
                return false;
            }
            refreshes.fetch_add(1, Ordering::Relaxed);
            *at = begun;
        }
        true
    }
}

impl FileSessions {
    pub fn new(options: Options, capacity: usize) -> Self {
        let (opened, refreshed) = (AtomicU64::new(0), AtomicU64::new(0));
        FileSessions { options, slots: Mutex::default(), capacity: capacity.max(1), opened, refreshed }
    }

    /// How files are opened.
    pub fn open_options(&self) -> &Options {
        &self.options
    }

    /// The session on a place, which sees everything that was published before this call.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open_or_refresh(&self, place: &Place) -> Result<Arc<FileSession>, Fault> {
        let asked = Instant::now();
        let slot = self.slot(&place.name);
        let mut kept = slot.session.lock();
        *slot.used.lock() = Instant::now();
        if let Some(session) = &*kept
            && session.refresh_since(place, asked, &self.refreshed)
        {
            return Ok(session.clone());
        }
        // The old one has to be closed first: its lock may keep this process out.
        *kept = None;
        let session = Arc::new(self.open_new(place)?);
        *kept = Some(session.clone());
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(session)
    }

    /// A file that is open for its caller alone, as long as it is kept.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open_unshared(&self, place: &Place) -> Result<File, Fault> {
        Ok(self.open_new(place)?.file)
    }

    fn open_new(&self, place: &Place) -> Result<FileSession, Fault> {
        let (stamp, refreshed_at) = (FileStamp::of(place), Mutex::new(Instant::now()));
        let (read, follow) = (self.options.clone().read(), self.options.clone().swmr_read());
        let file = match stamp {
            Some(_) => match read.open(&place.location) {
                Err(error) if error.is_in_use() => follow.open(&place.location)?,
                opened => opened?,
            },
            // Such a store tells by itself whether somebody writes it, and has no lock that keeps writers out.
            None => match follow.open(&place.location) {
                Ok(file) => file,
                Err(_) => read.open(&place.location)?,
            },
        };
        // A file whose writer has died may be opened in no other way than to follow it.
        let is_live = file.session().mode == Mode::SwmrRead && matches!(file.is_live(), Ok(true));
        Ok(FileSession { file, is_live, stamp, refreshed_at })
    }

    fn slot(&self, name: &str) -> Arc<Slot> {
        // Declared first, so that what is closed is closed after the lock was given back.
        let mut closed = Vec::new();
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get(name) {
            return slot.clone();
        }
        let new = || Slot { session: Mutex::new(None), used: Mutex::new(Instant::now()) };
        while slots.len() >= self.capacity {
            let unused = slots.iter().filter(|(_, slot)| Arc::strong_count(slot) == 1);
            let Some(oldest) = unused.min_by_key(|(_, slot)| *slot.used.lock()).map(|(name, _)| name.clone()) else {
                break;
            };
            closed.extend(slots.remove(&oldest));
        }
        slots.entry(name.to_owned()).or_insert_with(|| Arc::new(new())).clone()
    }

    /// Closes what nobody has asked for lately. A session that is in use is closed when its request ends.
    pub fn close_idle(&self) {
        let is_over = |slot: &Slot| {
            let idle = slot.used.lock().elapsed();
            // A slot that is locked is in use.
            slot.session.try_lock().is_some_and(|session| match &*session {
                Some(session) if session.follows_writer() => idle >= LIVE_LINGER,
                _ => idle >= AT_REST_LINGER,
            })
        };
        let mut closed = Vec::new();
        self.slots.lock().retain(|_, slot| {
            let is_kept = Arc::strong_count(slot) > 1 || !is_over(slot);
            if !is_kept {
                closed.push(slot.clone());
            }
            is_kept
        });
        // Not under the lock: closing may wait for the store.
        drop(closed);
    }

    /// Keeps nothing any more. What is not in use is closed.
    pub fn release_all(&self) {
        let all = std::mem::take(&mut *self.slots.lock());
        drop(all);
    }

    /// Sessions that are kept, those of them that follow a writer, all that were opened, and refreshes.
    pub fn kept_live_opened_refreshed_counts(&self) -> [u64; 4] {
        let slots: Vec<_> = self.slots.lock().values().cloned().collect();
        let is_live =
            |slot: &Arc<Slot>| slot.session.try_lock().is_some_and(|s| s.as_ref().is_some_and(|s| s.follows_writer()));
        let live = slots.iter().filter(|slot| is_live(slot)).count();
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [slots.len() as u64, live as u64, count(&self.opened), count(&self.refreshed)]
    }
}
