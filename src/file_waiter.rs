//! Waiting for a file, and for something in it, that another process has yet to make.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use h5live_model::{Location, LocationWatch, Mode, StoreErrorKind};

use crate::{Error, File, Options, Result};

/// Two looks at the file are at least so far apart, however often it changes.
const MIN_PAUSE: Duration = Duration::from_millis(5);
/// If nothing tells of changes, pauses between two looks grow up to this.
const MAX_PAUSE_WITHOUT_WATCH: Duration = Duration::from_millis(100);
/// A file that is open, or that a process has for itself, is looked at after this time in any case.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// What a [`FileWaiter`] waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AwaitedChange {
    /// There is no file, or an empty one.
    FileCreated,
    /// A process has the file open and lets nobody else open it so.
    FileReleased,
    /// Something that is not in the file.
    ObjectCreated,
}

/// Waits for a file, and for something in it, that another process has yet to make. No file is opened again before it
/// has changed, so that a process that is about to write it is not kept out.
///
/// To wait for a file alone, use [`Options::wait`].
///
/// ```no_run
/// # use std::time::Duration;
/// use h5live::{File, FileWaiter};
///
/// let mut waiter = FileWaiter::new(File::options().swmr_read(), "run.h5")?;
/// match waiter.wait_for(Duration::from_secs(60), |file| file.dataset("frames"))? {
///     Some(frames) => println!("{} frames", frames.shape()?[0]),
///     None => println!("not within a minute: {:?}", waiter.awaited_change()),
/// }
/// # Ok::<(), h5live::Error>(())
/// ```
pub struct FileWaiter {
    options: Options,
    location: Location,
    /// `None` if nothing tells of changes.
    watch: Option<Box<dyn LocationWatch>>,
    is_follower_allowed: bool,
    file: Option<File>,
    awaited: AwaitedChange,
    /// Whether something may have changed since the last look.
    may_have_changed: bool,
    looked_at: Option<Instant>,
    current_pause: Duration,
}

impl FileWaiter {
    /// Waits for the file at a location, which is opened with these options.
    ///
    /// # Errors
    /// [`ErrorKind::Open`](crate::ErrorKind::Open) if no store can be at this location.
    pub fn new(options: Options, location: impl Into<Location>) -> Result<Self> {
        let location = location.into();
        let mut options = options;
        options.wait_timeout = None;
        let at = options.resolve_location(&location)?;
        let watch = at.connector().watch(at.location());
        Ok(FileWaiter {
            options,
            location,
            watch,
            is_follower_allowed: false,
            file: None,
            awaited: AwaitedChange::FileCreated,
            may_have_changed: true,
            looked_at: None,
            current_pause: MIN_PAUSE,
        })
    }

    /// Follows the file ([`Mode::SwmrRead`]) if it is to be opened for reading and a process writes it.
    pub fn follow_if_in_use(mut self) -> Self {
        self.is_follower_allowed = self.options.get_mode() == Mode::Read;
        self
    }

    /// What was not there at the last look.
    pub fn awaited_change(&self) -> AwaitedChange {
        self.awaited
    }

    /// Waits until `find` finds something in the file, at most so long. `None` if the time is over; the next call goes
    /// on. An error of `find` that says that something is not there ([`Error::is_not_found_in_file`]) makes the wait go on.
    ///
    /// # Errors
    /// Other errors of `find`, and those of [`Options::open`] that no time changes.
    pub fn wait_for<T>(&mut self, timeout: Duration, mut find: impl FnMut(&File) -> Result<T>) -> Result<Option<T>> {
        let begin = Instant::now();
        loop {
            if self.is_reopen_due() {
                self.looked_at = Some(Instant::now());
                self.may_have_changed = false;
                if let Some(found) = self.try_find(&mut find)? {
                    return Ok(Some(found));
                }
            }
            let left = timeout.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            self.wait_for_change(left);
        }
    }

    fn is_reopen_due(&self) -> bool {
        let Some(looked_at) = self.looked_at else { return true };
        // The end of a writer is not always told, and a lock may be given back without a change.
        let may_be_untold = self.file.is_some() || self.awaited == AwaitedChange::FileReleased;
        self.may_have_changed || may_be_untold && looked_at.elapsed() >= MAX_PAUSE
    }

    /// Rests until something may have changed, at most so long.
    fn wait_for_change(&mut self, left: Duration) {
        let since = self.looked_at.map_or(MIN_PAUSE, |at| at.elapsed());
        if since < MIN_PAUSE {
            thread::sleep((MIN_PAUSE - since).min(left));
            return;
        }
        match &mut self.watch {
            Some(watch) => self.may_have_changed |= watch.wait(left.min(MAX_PAUSE)),
            None => {
                thread::sleep(left.min(self.current_pause));
                self.current_pause = (self.current_pause * 2).min(MAX_PAUSE_WITHOUT_WATCH);
                self.may_have_changed = true;
            }
        }
    }

    /// Opens the file unless it is open, or is not there.
    fn open(&mut self) -> Result<()> {
        if self.watch.as_ref().is_some_and(|watch| !watch.is_there()) {
            self.awaited = AwaitedChange::FileCreated;
            return Ok(());
        }
        let opened = match self.options.open(&self.location) {
            Err(error) if error.is_in_use() && self.is_follower_allowed => {
                self.options.clone().swmr_read().open(&self.location)
            }
            opened => opened,
        };
        match opened {
            Ok(file) => self.file = Some(file),
            Err(error) if error.store_error_kind() == Some(&StoreErrorKind::NotFound) => {
                self.awaited = AwaitedChange::FileCreated
            }
            Err(error) if error.is_in_use() => self.awaited = AwaitedChange::FileReleased,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn try_find<T>(&mut self, find: &mut impl FnMut(&File) -> Result<T>) -> Result<Option<T>> {
        let is_open = self.file.is_some();
        if !is_open {
            self.open()?;
        }
        let Some(file) = &self.file else { return Ok(None) };
        // What its writer does before the end is still seen.
        let is_live = matches!(file.is_live(), Ok(true));
        let taken_up = if is_open { file.refresh() } else { Ok(()) };
        match taken_up.and_then(|()| find(file)) {
            Err(error) if error.is_not_found_in_file() => self.awaited = AwaitedChange::ObjectCreated,
            Err(error) if is_replaced(&error) => {
                // It may come again at once.
                self.awaited = AwaitedChange::FileCreated;
                self.may_have_changed = true;
            }
            found => return found.map(Some),
        }
        // Who does not follow sees what was there when the file was opened, in some stores.
        if !is_live || file.session().mode != Mode::SwmrRead {
            self.file = None;
        }
        Ok(None)
    }
}

/// Whether the file was replaced, deleted or cut since it was opened.
fn is_replaced(error: &Error) -> bool {
    error.file_change().is_some()
}

impl fmt::Debug for FileWaiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWaiter").field("location", &self.location).field("awaited", &self.awaited).finish()
    }
}

#[cfg(test)]
#[path = "file_waiter_tests.rs"]
mod tests;
