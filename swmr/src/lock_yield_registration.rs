//! Followers let a SWMR writer through.
//!
//! A follower keeps plain writers out of a file that nobody writes: it holds the shared lock. A SWMR writer does not harm it, but
//! cannot tell its lock from that of a plain reader. So the writer shows that it waits
//! ([`LockHandle::announce_writer_waiting`]) and opens the file once more. A thread of each process with such followers hears of that,
//! and releases their locks. A follower shows that it will do so ([`LockHandle::announce_willing_to_yield`]).

use std::sync::Arc;

use crate::locking::LockHandle;

/// For as long as this lives, the shared lock of a follower is released for SWMR writers.
#[derive(Debug)]
pub struct LockYieldRegistration {
    #[cfg(target_os = "linux")]
    _registration: linux::FollowerRegistration,
}

impl LockYieldRegistration {
    /// `None` for a storage that is no file, and where the system does not report who opens a file: then the lock is
    /// kept.
    pub fn new(lock: &Arc<LockHandle>) -> Option<Self> {
        #[cfg(target_os = "linux")]
        return Some(LockYieldRegistration { _registration: linux::FollowerRegistration::new(lock)? });
        #[cfg(not(target_os = "linux"))]
        {
            let _ = lock;
            None
        }
    }
}

/// Releases the lock of a follower, if a SWMR writer waits for that.
#[cfg(target_os = "linux")]
fn yield_if_awaited(lock: &LockHandle) {
    if lock.is_writer_waiting() {
        // The writer says who holds a lock that is not released.
        let _ = lock.release_flock();
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::os::fd::AsRawFd;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Weak};
    use std::thread;
    use std::time::Duration;

    use nix::errno::Errno;
    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
    use nix::sys::signal::SigSet;
    use parking_lot::Mutex;

    use super::yield_if_awaited;
    use crate::locking::LockHandle;

    /// The watcher of this process. A process that was forked has that of its parent, and needs one of its own.
    static WATCHER: Mutex<Option<Arc<Watcher>>> = Mutex::new(None);

    /// In a process that was forked at a bad moment the watcher stays locked for ever.
    const MAX_LOCK_WAIT: Duration = Duration::from_millis(100);

    /// Hears of processes that open the files of followers.
    #[derive(Debug)]
    struct Watcher {
        pid: u32,
        inotify: Inotify,
        followers: Mutex<HashMap<WatchDescriptor, HashMap<u64, Weak<LockHandle>>>>,
        next_id: AtomicU64,
    }

    /// A follower that the watcher of its process knows.
    #[derive(Debug)]
    pub struct FollowerRegistration {
        watcher: Arc<Watcher>,
        watch: WatchDescriptor,
        id: u64,
    }

    impl Watcher {
        /// The watcher of this process, which is started if there is none.
        fn of_this_process() -> Option<Arc<Self>> {
            let mut known = WATCHER.try_lock_for(MAX_LOCK_WAIT)?;
            let pid = std::process::id();
            if let Some(watcher) = known.as_ref().filter(|watcher| watcher.pid == pid) {
                return Some(watcher.clone());
            }
            let inotify = Inotify::init(InitFlags::IN_CLOEXEC).ok()?;
            let (followers, next_id) = Default::default();
            let watcher = Arc::new(Watcher { pid, inotify, followers, next_id });
            let watching = watcher.clone();
            thread::Builder::new().name("h5live-yield".into()).spawn(move || watching.run()).ok()?;
            *known = Some(watcher.clone());
            Some(watcher)
        }

        fn run(&self) {
            // Signals are for the threads of the program.
            let _ = SigSet::all().thread_block();
            loop {
                match self.inotify.read_events() {
                    Ok(events) => events.iter().for_each(|event| self.yield_locks(event)),
                    Err(Errno::EINTR) => {}
                    Err(_) => return,
                }
            }
        }

        fn yield_locks(&self, event: &InotifyEvent) {
            let is_overflow = event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW);
            let followers = self.followers.lock();
            let of_file = followers.iter().filter(|(watch, _)| is_overflow || **watch == event.wd);
            let locks: Vec<_> = of_file.flat_map(|(_, locks)| locks.values().filter_map(Weak::upgrade)).collect();
            drop(followers);
            locks.iter().for_each(|lock| yield_if_awaited(lock));
        }
    }

    impl FollowerRegistration {
        pub fn new(lock: &Arc<LockHandle>) -> Option<Self> {
            let file = lock.any_open_file()?;
            let watcher = Watcher::of_this_process()?;
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            let mut followers = watcher.followers.lock();
            let watch = watcher.inotify.add_watch(path.as_str(), AddWatchFlags::IN_OPEN).ok()?;
            let id = watcher.next_id.fetch_add(1, Ordering::Relaxed);
            followers.entry(watch).or_default().insert(id, Arc::downgrade(lock));
            drop(followers);
            Some(FollowerRegistration { watcher, watch, id })
        }
    }

    impl Drop for FollowerRegistration {
        fn drop(&mut self) {
            let FollowerRegistration { watcher, watch, id } = self;
            if watcher.pid != std::process::id() {
                return;
            }
            let mut followers = watcher.followers.lock();
            let Some(of_file) = followers.get_mut(watch) else { return };
            of_file.remove(id);
            if of_file.is_empty() {
                followers.remove(watch);
                // The watch of a file that is gone is gone, too.
                let _ = watcher.inotify.rm_watch(*watch);
            }
        }
    }
}
