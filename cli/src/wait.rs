//! `--wait [SECONDS]`: waiting for a file, and for something in it, that another process has yet to make.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use h5live::{File, Location, StoreErrorKind};

use crate::error::{Awaited, Error, Result};

/// Pauses between two looks grow from the first to the second.
const PAUSES: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(100)];

/// A change that is younger than this may be followed by another one that the clock of the file system does not tell
/// from it.
const CLOCK_STEP: Duration = Duration::from_millis(50);

/// Whether to wait for what is not there yet.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct WaitArgs {
    /// Wait for a file or object that is not there yet, or that its writer does not let be read yet: for so many
    /// SECONDS, or without them until Ctrl-C
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, value_parser = seconds)]
    wait: Option<Option<f64>>,
}

/// A number of seconds.
pub fn seconds(text: &str) -> Result<f64, &'static str> {
    text.parse().ok().filter(|s: &f64| *s > 0.0 && *s <= 1e9).ok_or("a number of seconds above 0")
}

/// Joins the word `--wait` with a number that follows it, so that a path that follows is not taken for one.
pub fn join_words(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    for word in words {
        let is_number = word.to_str().is_some_and(|text| seconds(text).is_ok());
        match joined.last_mut() {
            Some(last) if is_number && last == "--wait" => {
                last.push("=");
                last.push(word);
            }
            _ => joined.push(word),
        }
    }
    joined
}

/// What tells a file from what it was at another moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    len: u64,
    modified: Option<SystemTime>,
}

impl FileStamp {
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(FileStamp { len: found.len(), modified: found.modified().ok() })
    }

    /// Whether a later change will have another time.
    fn is_settled(&self) -> bool {
        self.modified.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > CLOCK_STEP)
    }
}

/// A file that is opened when it is worth it.
struct AwaitedFile<'a> {
    location: &'a Location,
    open: &'a dyn Fn() -> Result<File>,
    /// The state in which there was nothing to be found, and nobody wrote it. To open it for a look might keep a writer
    /// out that comes at this moment.
    in_vain: Option<FileStamp>,
    file: Option<File>,
    awaited: Awaited,
}

impl AwaitedFile<'_> {
    /// Opens the file unless it is open, cannot be, or has not changed.
    fn open(&mut self) -> Result<()> {
        // Another store than a native file is opened in any case.
        let path = crate::open::file_path(self.location).ok().flatten();
        let stamp = path.as_deref().map(FileStamp::of);
        match stamp {
            // An empty file is about to become one.
            Some(None | Some(FileStamp { len: 0, .. })) => {
                self.awaited = Awaited::File;
                return Ok(());
            }
            Some(stamp) if stamp == self.in_vain => return Ok(()),
            _ => {}
        }
        match (self.open)() {
            Ok(file) => {
                self.file = Some(file);
                self.in_vain = stamp.flatten().filter(FileStamp::is_settled);
                Ok(())
            }
            Err(Error::File(error)) if error.store_kind() == Some(&StoreErrorKind::NotThere) => {
                self.awaited = Awaited::File;
                Ok(())
            }
            Err(Error::File(error)) if error.is_in_use() => {
                self.awaited = Awaited::Access;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Looks once.
    fn look<T>(&mut self, find: &dyn Fn(&File) -> Result<T>) -> Result<Option<T>> {
        if self.file.is_none() {
            self.open()?;
        }
        let Some(file) = &self.file else { return Ok(None) };
        // What its writer does before the end is still seen.
        let is_live = matches!(file.is_live(), Ok(true));
        match find(file) {
            Err(Error::File(error)) if error.is_not_found() => self.awaited = Awaited::Object,
            // It was replaced or deleted, and may come again.
            Err(Error::File(error)) if error.file_change().is_some() => self.awaited = Awaited::File,
            found => return found.map(Some),
        }
        if !is_live {
            self.file = None;
        }
        Ok(None)
    }
}

impl WaitArgs {
    /// Whether to wait.
    pub fn is_asked(self) -> bool {
        self.wait.is_some()
    }

    /// Finds something, which is called `path`, in a file; waits for both, if that was asked for. `None`, if the user interrupts it.
    ///
    /// # Errors
    /// Those of `open` and `find`; [`Error::Waited`] if it was not there in time.
    pub fn find<T>(
        self,
        location: &Location,
        path: &str,
        interrupted: &AtomicBool,
        open: &dyn Fn() -> Result<File>,
        find: &dyn Fn(&File) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(limit) = self.wait else { return find(&open()?).map(Some) };
        let until = limit.map(|seconds| (seconds, Instant::now() + Duration::from_secs_f64(seconds)));
        let [mut pause, longest] = PAUSES;
        let mut file = AwaitedFile { location, open, in_vain: None, file: None, awaited: Awaited::File };
        loop {
            if let Some(found) = file.look(find)? {
                return Ok(Some(found));
            }
            if interrupted.load(Ordering::Acquire) {
                return Ok(None);
            }
            let left = until.map(|(_, until)| until.saturating_duration_since(Instant::now()));
            if let Some((seconds, _)) = until.filter(|_| left == Some(Duration::ZERO)) {
                let place = match file.awaited {
                    Awaited::Object => format!("{location}: {path}"),
                    _ => location.to_string(),
                };
                return Err(Error::Waited { place, seconds, awaited: file.awaited });
            }
            thread::sleep(left.unwrap_or(pause).min(pause));
            pause = (pause * 2).min(longest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_after_wait_belongs_to_it_and_a_path_does_not() {
        let joined = |words: &[&str]| join_words(words.iter().map(OsString::from));
        assert_eq!(joined(&["watch", "--wait", "2.5", "f", "x"]), ["watch", "--wait=2.5", "f", "x"]);
        assert_eq!(joined(&["watch", "--wait", "f", "x"]), ["watch", "--wait", "f", "x"]);
        assert_eq!(joined(&["watch", "f", "--wait", "./5"]), ["watch", "f", "--wait", "./5"]);
        assert_eq!(joined(&["watch", "f", "5"]), ["watch", "f", "5"]);
    }
}
