//! Watched files: a thread for each looks at what its writer publishes, and clients are told what is new.

mod snapshot;
mod watched;
mod watcher;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::catalog::Place;
use crate::config::ServerLimits;
use crate::fault::Fault;
use crate::sessions::FileSessions;
use watched::Watched;
use watcher::Watcher;

/// The file, and the path in it.
type WatchKey = (String, String);

/// All watched files.
#[derive(Debug)]
pub(crate) struct Watches {
    sessions: Arc<FileSessions>,
    max_files: usize,
    max_objects: usize,
    stop: watch::Receiver<bool>,
    running: Arc<Mutex<HashMap<WatchKey, Arc<Watched>>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// A client of a watched file.
#[derive(Debug)]
pub(crate) struct Subscription(Arc<Watched>);

impl Watches {
    pub fn new(sessions: Arc<FileSessions>, limits: &ServerLimits, stop: watch::Receiver<bool>) -> Self {
        Watches {
            sessions,
            max_files: limits.max_watches,
            max_objects: limits.max_objects_per_watch,
            stop,
            running: Arc::default(),
            threads: Mutex::default(),
        }
    }

    /// Watches that run.
    pub fn len(&self) -> usize {
        self.running.lock().len()
    }

    /// Becomes true when the server ends.
    pub fn stop_signal(&self) -> watch::Receiver<bool> {
        self.stop.clone()
    }

    /// Watches everything below a path of a file.
    ///
    /// # Errors
    /// [`Fault::busy`] if too many files are watched already.
    pub fn subscribe(&self, place: &Place, path: &str) -> Result<Subscription, Fault> {
        let key = (place.name.clone(), path.to_owned());
        let mut running = self.running.lock();
        if let Some(watched) = running.get(&key) {
            watched.subscribers.fetch_add(1, Ordering::AcqRel);
            return Ok(Subscription(watched.clone()));
        }
        if running.len() >= self.max_files {
            return Err(Fault::busy("Too many files are watched: ask again later"));
        }
        let watched = Arc::new(Watched::default());
        watched.subscribers.fetch_add(1, Ordering::AcqRel);
        let mut watcher = Watcher::new(place.clone(), path.to_owned(), self.sessions.clone(), self.max_objects);
        let (shared, stop, all, thread_key) = (watched.clone(), self.stop.clone(), self.running.clone(), key.clone());
        let run = move || {
            watcher.run(&shared, &stop, || {
                // Under the lock, so that nobody subscribes to a watch that is about to end.
                let mut running = all.lock();
                let is_over = shared.subscribers.load(Ordering::Acquire) == 0;
                if is_over {
                    running.remove(&thread_key);
                }
                is_over
            });
            let mut running = all.lock();
            // Another one may watch the same file by now.
            if running.get(&thread_key).is_some_and(|watched| Arc::ptr_eq(watched, &shared)) {
                running.remove(&thread_key);
            }
        };
        let thread = thread::Builder::new().name("h5live-watch".to_owned()).spawn(run);
        let thread = thread.map_err(|error| Fault::busy(format!("No thread can watch the file: {error}")))?;
        running.insert(key, watched.clone());
        let mut threads = self.threads.lock();
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        Ok(Subscription(watched))
    }

    /// Waits for the threads, after the server was told to end.
    pub fn join(&self) {
        let threads = std::mem::take(&mut *self.threads.lock());
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}

impl Subscription {
    /// Changes with each change of the file.
    pub fn change_counter(&self) -> watch::Receiver<u64> {
        self.0.change_counter()
    }

    /// The message of everything that has changed since an event; of everything, without one or if it is too old. `None`
    /// if nothing has.
    pub fn message_since(&self, last_event_id: Option<&str>) -> Option<(String, String)> {
        self.0.message_since(last_event_id)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.subscribers.fetch_sub(1, Ordering::AcqRel);
    }
}
