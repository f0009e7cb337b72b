//! The thread that watches a file.

use std::sync::Arc;
use std::time::{Duration, Instant};

use h5live::model::{ObjectId, Watch, WatchEvent};
use tokio::sync::watch;

use super::snapshot::Snapshot;
use super::watched::{Look, Watched};
use crate::catalog::Place;
use crate::sessions::{FileSession, FileSessions, FileStamp};
use crate::writers::WriterState;

/// Two looks are at least so far apart.
const MIN_PAUSE: Duration = Duration::from_millis(20);
/// How often it is looked whether the thread is to end, and whether the writer lives.
const MAX_WAIT: Duration = Duration::from_millis(200);
/// The pause between two looks at what the file system says of a file at rest.
const REST_PAUSE: Duration = Duration::from_millis(50);
/// A file that cannot be opened is tried again after this, though the file system says nothing of it.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// How long it is relied on who writes.
const MAX_WRITER_AGE: Duration = Duration::from_secs(2);

/// What a thread knows of the file that it watches.
#[derive(Debug)]
pub(super) struct Watcher {
    place: Place,
    path: String,
    sessions: Arc<FileSessions>,
    max_objects: usize,
    /// The session that is followed, and what wakes this thread when its objects change.
    followed: Option<Followed>,
    ids: Vec<ObjectId>,
    has_virtual: bool,
    stamp: Option<FileStamp>,
    writer: WriterState,
    asked_for_writer: Option<Instant>,
    was_live: Option<bool>,
}

#[derive(Debug)]
struct Followed {
    session: Arc<FileSession>,
    watch: Box<dyn Watch>,
}

/// What to do after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// There are new objects, which nothing watched while they were looked at.
    LookAgain,
    Follow,
    /// Nobody writes the file.
    Rest,
    /// It cannot be opened.
    Retry,
}

impl Watcher {
    pub fn new(place: Place, path: String, sessions: Arc<FileSessions>, max_objects: usize) -> Self {
        let (followed, ids, stamp, was_live) = (None, Vec::new(), None, None);
        let (writer, has_virtual) = (WriterState::Closed, false);
        Watcher {
            place,
            path,
            sessions,
            max_objects,
            followed,
            ids,
            has_virtual,
            stamp,
            writer,
            asked_for_writer: None,
            was_live,
        }
    }

    /// Looks at the file whenever it changes, until the server ends or `is_over` says that nobody listens.
    pub fn run(&mut self, watched: &Watched, stop: &watch::Receiver<bool>, is_over: impl Fn() -> bool) {
        let is_stopped = || *stop.borrow() || stop.has_changed().is_err();
        while !is_stopped() && !is_over() {
            let next = self.look(watched);
            if next == Next::LookAgain {
                continue;
            }
            std::thread::sleep(MIN_PAUSE);
            while !is_stopped() && !is_over() && !self.wait(next) {}
        }
    }

    /// Looks at the file, and tells of what is new.
    fn look(&mut self, watched: &Watched) -> Next {
        let stamp = FileStamp::of(&self.place);
        let is_written = stamp != self.stamp && self.stamp.is_some();
        self.stamp = stamp;
        let opened = self.sessions.open_or_refresh(&self.place);
        let is_live = opened.as_ref().ok().map(|session| session.follows_writer());
        // Another writer may have come after the one that is known.
        let is_old = self.asked_for_writer.is_none_or(|asked| asked.elapsed() >= MAX_WRITER_AGE);
        if is_live != self.was_live || is_live.is_none() || is_written && (is_old || is_live == Some(false)) {
            self.writer = WriterState::of(&self.place, self.sessions.open_options());
            self.asked_for_writer = Some(Instant::now());
            self.was_live = is_live;
        }
        let session = match opened {
            Ok(session) => session,
            Err(fault) => {
                self.followed = None;
                watched.apply_look_and_notify(Look {
                    snapshot: Err(fault.message),
                    writer: self.writer.clone(),
                    is_written,
                });
                return Next::Retry;
            }
        };
        let snapshot = Snapshot::take(&session.file, &self.path, self.max_objects);
        self.has_virtual = snapshot.as_ref().is_ok_and(|snapshot| snapshot.has_virtual);
        let is_watched = self.followed.as_ref().is_some_and(|followed| Arc::ptr_eq(&followed.session, &session));
        let mut next = if session.follows_writer() { Next::Follow } else { Next::Rest };
        if let Ok(snapshot) = &snapshot
            && next == Next::Follow
            && (!is_watched || snapshot.ids != self.ids)
        {
            self.ids.clone_from(&snapshot.ids);
            let watch = session.file.store().watch(&self.ids).ok();
            self.followed = watch.map(|watch| Followed { session: session.clone(), watch });
            next = if self.followed.is_some() { Next::LookAgain } else { Next::Follow };
        }
        if next == Next::Rest {
            // The session would keep a writer out.
            self.followed = None;
        }
        let snapshot = snapshot.map_err(|error| format!("{error:#}"));
        watched.apply_look_and_notify(Look { snapshot, writer: self.writer.clone(), is_written });
        next
    }

    /// Waits for a moment. Returns whether the file is to be looked at.
    fn wait(&mut self, next: Next) -> bool {
        match (next, &mut self.followed) {
            (Next::Follow, Some(followed)) => {
                let found = followed.watch.wait(MAX_WAIT);
                // What was overwritten in place shows in the file system alone.
                self.has_virtual
                    || !matches!(found, Ok(WatchEvent::Timeout))
                    || FileStamp::of(&self.place) != self.stamp
                    || !matches!(followed.session.file.is_live(), Ok(true))
            }
            (Next::Follow, None) => {
                std::thread::sleep(REST_PAUSE);
                true
            }
            (Next::Rest, _) => {
                self.wait_for_stamp(if self.has_virtual { MAX_WAIT } else { REST_PAUSE })
                    || self.has_virtual
                    || self.place.path.is_none()
            }
            (Next::Retry, _) => self.wait_for_stamp(RETRY_PAUSE) || self.was_live.is_none(),
            (Next::LookAgain, _) => true,
        }
    }

    /// Waits until the file system says something else of the file, at most so long. Returns whether it does.
    fn wait_for_stamp(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            if FileStamp::of(&self.place) != self.stamp {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            std::thread::sleep(left.min(REST_PAUSE));
        }
    }
}
