//! A thread that publishes now and then, for as long as a file is open.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

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
