//! A thread that publishes now and then, for as long as a file is open.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, ReentrantMutex};

/// Keeps the thread from being the last one that has a file open: then the file would be closed by it, some time after
/// its user has let go of it.
#[derive(Debug, Default)]
pub(crate) struct HandleGate {
    /// Handles of users.
    handles: AtomicUsize,
    /// Held by the thread while it has the file open. A handle may be dropped in it, too.
    publishing: ReentrantMutex<()>,
}

impl HandleGate {
    /// There is one more handle.
    pub(crate) fn add(&self) {
        self.handles.fetch_add(1, Ordering::AcqRel);
    }

    /// A handle is dropped. If it is the last one, the thread does not have the file open from now on.
    pub(crate) fn remove(&self) {
        if self.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            drop(self.publishing.lock());
        }
    }

    /// Runs `publish`, unless there is no handle any more. Everything that it has open is let go of before this returns.
    pub(crate) fn run(&self, publish: impl FnOnce()) {
        let _publishing = self.publishing.lock();
        if self.handles.load(Ordering::Acquire) > 0 {
            publish();
        }
    }
}

/// The thread. It ends when this is dropped, which does not wait for it.
#[derive(Debug)]
pub(crate) struct PublishTimer(Arc<StopSignal>);

#[derive(Debug, Default)]
struct StopSignal {
    stopped: Mutex<bool>,
    stop_requested: Condvar,
}

impl StopSignal {
    /// Waits for `time`. Returns whether to go on.
    fn wait(&self, time: Duration) -> bool {
        let mut stopped = self.stopped.lock();
        self.stop_requested.wait_while_for(&mut stopped, |stopped| !*stopped, time);
        !*stopped
    }
}

impl PublishTimer {
    /// Starts a thread that calls `publish` each time that `every` has passed, until it returns `false`.
    ///
    /// # Errors
    /// Errors of the system if the thread cannot be started.
    pub(crate) fn start(every: Duration, publish: impl Fn() -> bool + Send + 'static) -> std::io::Result<Self> {
        let stop = Arc::new(StopSignal::default());
        let stop_signal = stop.clone();
        thread::Builder::new()
            .name("h5live publisher".into())
            .spawn(move || while stop_signal.wait(every) && publish() {})?;
        Ok(PublishTimer(stop))
    }
}

impl Drop for PublishTimer {
    fn drop(&mut self) {
        *self.0.stopped.lock() = true;
        self.0.stop_requested.notify_all();
    }
}
