//! `--wait [SECONDS]`: waiting for a file, and for something in it, that another process has yet to make.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use h5live::{AwaitedChange, File, FileWaiter, Location, Mode, Options};

use crate::error::{Error, Result, WaitTarget};

/// A pause between two looks whether the user has interrupted.
const PAUSE: Duration = Duration::from_millis(50);
/// After this long, a terminal is told what is waited for.
const TOLD_AFTER: Duration = Duration::from_millis(500);

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
    text.parse()
        .ok()
        .filter(|s: &f64| *s > 0.0 && *s <= 1e9)
        .ok_or("this is not a number of seconds above 0 and up to 1e9")
}

/// Joins the word `--wait` with a number that follows it, so that a path that follows is not taken for one.
pub fn join_wait_seconds(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
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

impl WaitArgs {
    /// Whether to wait.
    pub fn is_asked(self) -> bool {
        self.wait.is_some()
    }

    /// Finds something, which is called `shown_path`, in a file that is followed if a process writes it; waits for both, if that
    /// was asked for. `None`, if the user interrupts it.
    ///
    /// # Errors
    /// Those of opening and of `find`; [`Error::WaitTimeout`] if it was not there in time.
    pub fn open_and_find_waiting<T>(
        self,
        location: &Location,
        shown_path: &str,
        interrupted: &AtomicBool,
        options: Options,
        find: &dyn Fn(&File) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(limit) = self.wait else {
            let file = match options.open(location) {
                Err(error) if error.is_in_use() && options.get_mode() == Mode::Read => {
                    options.swmr_read().open(location)
                }
                opened => opened,
            };
            return find(&file?).map(Some);
        };
        let begin = Instant::now();
        let mut told = None;
        let limit = limit.map(|seconds| (seconds, Duration::from_secs_f64(seconds)));
        let mut waiter = FileWaiter::new(options, location)?.follow_if_in_use();
        // What the library does not know of ends the wait.
        let find = |file: &File| match find(file) {
            Err(Error::File(error)) => Err(error),
            found => Ok(found),
        };
        loop {
            let left = limit.map_or(PAUSE, |(_, limit)| limit.saturating_sub(begin.elapsed()));
            if let Some(found) = waiter.wait_for(left.min(PAUSE), find)? {
                return found.map(Some);
            }
            if interrupted.load(Ordering::Acquire) {
                return Ok(None);
            }
            let (place, awaited) = match waiter.awaited_change() {
                AwaitedChange::ObjectCreated => (format!("{location}: {shown_path}"), WaitTarget::ObjectCreation),
                AwaitedChange::FileReleased => (location.to_string(), WaitTarget::FileRelease),
                _ => (location.to_string(), WaitTarget::FileCreation),
            };
            if let Some((seconds, _)) = limit.filter(|(_, limit)| begin.elapsed() >= *limit) {
                return Err(Error::WaitTimeout { place, seconds, awaited });
            }
            if begin.elapsed() >= TOLD_AFTER && io::stderr().is_terminal() && told.replace(awaited) != Some(awaited) {
                eprintln!("h5live: {place}: waiting for {awaited}; Ctrl-C ends it");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_after_wait_belongs_to_it_and_a_path_does_not() {
        let joined = |words: &[&str]| join_wait_seconds(words.iter().map(OsString::from));
        assert_eq!(joined(&["watch", "--wait", "2.5", "f", "x"]), ["watch", "--wait=2.5", "f", "x"]);
        assert_eq!(joined(&["watch", "--wait", "f", "x"]), ["watch", "--wait", "f", "x"]);
        assert_eq!(joined(&["watch", "f", "--wait", "./5"]), ["watch", "f", "--wait", "./5"]);
        assert_eq!(joined(&["watch", "f", "5"]), ["watch", "f", "5"]);
    }
}
