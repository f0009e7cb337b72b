//! Watches what is at a path, from before it is there: by inotify of its folder, and by its length and time.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use h5live_model::LocationWatch;

/// Where nothing is reported, pauses between two looks at the path grow from the first to the second.
const PAUSES: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(100)];
/// Reports may be missing on network file systems, so the path is looked at after this time in any case.
const MAX_PAUSE_WITH_REPORTS: Duration = Duration::from_secs(1);
/// A change that is younger than this may be followed by another one that the clock of the file system does not tell
/// from it.
const CLOCK_STEP: Duration = Duration::from_millis(50);

/// What tells a file from what it was at another moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PathStamp {
    /// The device and the number on it.
    #[cfg(unix)]
    inode: (u64, u64),
    len: u64,
    modified: Option<SystemTime>,
}

impl PathStamp {
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(PathStamp {
            #[cfg(unix)]
            inode: (std::os::unix::fs::MetadataExt::dev(&found), std::os::unix::fs::MetadataExt::ino(&found)),
            len: found.len(),
            modified: found.modified().ok(),
        })
    }

    /// Whether a later change will have another time.
    fn is_settled(&self) -> bool {
        self.modified.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > CLOCK_STEP)
    }
}

/// Watches a path.
#[derive(Debug)]
pub struct PathWatch {
    path: PathBuf,
    stamp: Option<PathStamp>,
    /// Whether a later change than that of the stamp has another stamp.
    is_settled: bool,
    pause: Duration,
    #[cfg(target_os = "linux")]
    reports: Option<linux::PathInotify>,
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsString;
    use std::os::fd::AsFd;
    use std::path::Path;
    use std::time::Duration;

    use nix::errno::Errno;
    use nix::poll::{PollFd, PollFlags, ppoll};
    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
    use nix::sys::time::TimeSpec;

    /// The reports of changes of one name in a folder.
    #[derive(Debug)]
    pub struct PathInotify {
        inotify: Inotify,
        name: OsString,
    }

    impl PathInotify {
        /// `None` if there is no such folder, or the path is a link: what it leads to is in another folder.
        pub fn new(path: &Path) -> Option<Self> {
            if path.is_symlink() {
                return None;
            }
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let name = path.file_name()?.to_owned();
            let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).ok()?;
            let events = AddWatchFlags::IN_CREATE
                | AddWatchFlags::IN_MOVED_TO
                | AddWatchFlags::IN_MODIFY
                | AddWatchFlags::IN_CLOSE_WRITE
                | AddWatchFlags::IN_ATTRIB
                | AddWatchFlags::IN_DELETE
                | AddWatchFlags::IN_MOVED_FROM;
            inotify.add_watch(folder, events | AddWatchFlags::IN_ONLYDIR).ok()?;
            Some(PathInotify { inotify, name })
        }

        /// Waits for a report, at most so long. Whether one of the name came; `None` if no more will come.
        pub fn wait(&self, timeout: Duration) -> Option<bool> {
            let mut fds = [PollFd::new(self.inotify.as_fd(), PollFlags::POLLIN)];
            match ppoll(&mut fds, Some(TimeSpec::from_duration(timeout)), None) {
                Ok(0) | Err(Errno::EINTR) => return Some(false),
                Ok(_) => {}
                Err(_) => return None,
            }
            let mut is_changed = false;
            loop {
                match self.inotify.read_events() {
                    Ok(events) => {
                        let gone = AddWatchFlags::IN_IGNORED | AddWatchFlags::IN_UNMOUNT;
                        if events.iter().any(|event| event.mask.intersects(gone)) {
                            return None;
                        }
                        let lost = AddWatchFlags::IN_Q_OVERFLOW;
                        let is_of_name = |name: &Option<OsString>| name.as_ref() == Some(&self.name);
                        is_changed |= events.iter().any(|e| is_of_name(&e.name) || e.mask.intersects(lost));
                    }
                    Err(Errno::EAGAIN) => return Some(is_changed),
                    Err(_) => return None,
                }
            }
        }
    }
}

impl PathWatch {
    /// Watches a path from now on.
    pub fn new(path: &Path) -> Self {
        let [pause, _] = PAUSES;
        let mut watch = PathWatch {
            path: path.to_owned(),
            stamp: None,
            is_settled: true,
            pause,
            #[cfg(target_os = "linux")]
            reports: linux::PathInotify::new(path),
        };
        watch.update_stamp();
        watch
    }

    /// Takes a new stamp. Whether it may be another one.
    fn update_stamp(&mut self) -> bool {
        let stamp = PathStamp::of(&self.path);
        let is_changed = stamp != self.stamp || !self.is_settled;
        self.stamp = stamp;
        self.is_settled = stamp.is_none_or(|stamp| stamp.is_settled());
        is_changed
    }

    /// Waits for a report, at most so long, or for a pause if there are none. Whether something was reported.
    fn wait_for_report(&mut self, rest: Duration) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(reports) = &self.reports {
            match reports.wait(rest.min(MAX_PAUSE_WITH_REPORTS)) {
                Some(is_changed) => return is_changed,
                None => self.reports = None,
            }
        }
        thread::sleep(rest.min(self.pause));
        let [_, longest] = PAUSES;
        self.pause = (self.pause * 2).min(longest);
        false
    }
}

impl LocationWatch for PathWatch {
    fn is_there(&self) -> bool {
        // A file that is empty is about to become one.
        PathStamp::of(&self.path).is_some_and(|stamp| stamp.len > 0)
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        let begin = Instant::now();
        loop {
            let rest = timeout.saturating_sub(begin.elapsed());
            let is_reported = self.wait_for_report(rest);
            if self.update_stamp() || is_reported {
                [self.pause, _] = PAUSES;
                return true;
            }
            if begin.elapsed() >= timeout {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_tells_of_a_file_that_is_made_filled_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        for has_folder in [true, false] {
            let at = folder.path().join(format!("run-{has_folder}"));
            if has_folder {
                fs::create_dir(&at).unwrap();
            }
            let path = at.join("run.h5");
            let mut watch = PathWatch::new(&path);
            assert!(!watch.is_there());
            assert!(!watch.wait(Duration::ZERO));
            fs::create_dir_all(&at).unwrap();
            fs::write(&path, b"").unwrap();
            assert!(watch.wait(Duration::from_secs(60)));
            assert!(!watch.is_there());
            fs::write(&path, b"1").unwrap();
            assert!(watch.wait(Duration::from_secs(60)));
            assert!(watch.is_there());
            fs::write(at.join("other"), b"22").unwrap();
            fs::rename(at.join("other"), &path).unwrap();
            assert!(watch.wait(Duration::from_secs(60)));
            fs::remove_file(&path).unwrap();
            while watch.is_there() {
                assert!(watch.wait(Duration::from_secs(60)));
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_happens_to_other_files_of_the_folder_is_not_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.h5");
        let mut watch = PathWatch::new(&path);
        fs::write(folder.path().join("run.h5.part"), b"1").unwrap();
        assert!(!watch.wait(Duration::from_millis(1)));
    }
}
