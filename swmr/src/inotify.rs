//! The clock of the system, and its reports of changes of files (inotify).

use std::fmt;
use std::fs::File;
use std::thread;
use std::time::{Duration, Instant};

use crate::locking::LockHandle;
use crate::poller::{FileEvent, WakeSource};

/// The clock, and inotify where the system has it and has not run out of watches.
pub struct SystemWakeSource {
    begin: Instant,
    #[cfg(target_os = "linux")]
    inotify: Option<nix::sys::inotify::Inotify>,
}

impl fmt::Debug for SystemWakeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemWakeSource").finish_non_exhaustive()
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::os::fd::{AsFd, AsRawFd};
    use std::time::Duration;

    use nix::errno::Errno;
    use nix::poll::{PollFd, PollFlags, ppoll};
    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
    use nix::sys::time::TimeSpec;

    use super::FileEvent;

    /// Events that may be the end: a handle for writing was closed, or the number of the file's names has changed.
    const ENDS: AddWatchFlags = AddWatchFlags::IN_CLOSE_WRITE.union(AddWatchFlags::IN_ATTRIB);

    /// Watches files with inotify, whatever their names are now. `None` if there are none, or one cannot be watched.
    pub fn open(files: &[&File]) -> Option<Inotify> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).ok()?;
        let events = AddWatchFlags::IN_MODIFY | ENDS;
        for file in files {
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            inotify.add_watch(path.as_str(), events).ok()?;
        }
        (!files.is_empty()).then_some(inotify)
    }

    /// `None` if inotify is of no use any more.
    pub fn poll_inotify(inotify: &Inotify, timeout: Duration) -> Option<FileEvent> {
        let mut fds = [PollFd::new(inotify.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut fds, Some(TimeSpec::from_duration(timeout)), None) {
            Ok(0) | Err(Errno::EINTR) => return Some(FileEvent::Timeout),
            Ok(_) => {}
            Err(_) => return None,
        }
        let mut event = FileEvent::Write;
        loop {
            match inotify.read_events() {
                Ok(events) if events.iter().any(|event| event.mask.intersects(ENDS)) => {
                    event = FileEvent::CloseOrAttributeChange;
                }
                Ok(_) => {}
                Err(Errno::EAGAIN) => return Some(event),
                Err(_) => return None,
            }
        }
    }
}

impl SystemWakeSource {
    /// Watches the file of `lock`.
    pub fn new(lock: &LockHandle) -> Self {
        match lock.any_open_file() {
            Some(file) => SystemWakeSource::of_files(&[&file]),
            None => SystemWakeSource::of_files(&[]),
        }
    }

    /// Watches open files.
    pub fn of_files(files: &[&File]) -> Self {
        #[cfg(not(target_os = "linux"))]
        let _ = files;
        SystemWakeSource {
            begin: Instant::now(),
            #[cfg(target_os = "linux")]
            inotify: linux::open(files),
        }
    }
}

impl WakeSource for SystemWakeSource {
    fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    fn wait_event(&mut self, rest: Duration) -> FileEvent {
        #[cfg(target_os = "linux")]
        if let Some(inotify) = &self.inotify {
            match linux::poll_inotify(inotify, rest) {
                Some(event) => return event,
                None => self.inotify = None,
            }
        }
        self.sleep(rest);
        FileEvent::Timeout
    }

    fn can_report_events(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.inotify.is_some();
        #[cfg(not(target_os = "linux"))]
        false
    }

    fn sleep(&mut self, rest: Duration) {
        thread::sleep(rest);
    }

    fn yield_now(&mut self) {
        thread::yield_now();
    }
}
