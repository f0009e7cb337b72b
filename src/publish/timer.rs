//! A thread that publishes now and then, for as long as a file is open.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use h5live_model as model;
use parking_lot::{Condvar, Mutex};

use crate::ErrorKind;
use crate::file::FileShared;

/// The thread. It ends when this is dropped, which does not wait for it.
#[derive(Debug)]
pub(crate) struct PublishTimer(Arc<StopSignal>);

#[derive(Debug, Default)]
struct StopSignal {
    stopped: Mutex<bool>,
    said: Condvar,
}

impl StopSignal {
    /// Waits for `time`. Returns whether to go on.
    fn wait(&self, time: Duration) -> bool {
        let mut stopped = self.stopped.lock();
        self.said.wait_while_for(&mut stopped, |stopped| !*stopped, time);
        !*stopped
    }
}

impl PublishTimer {
    /// Starts a thread that publishes new data of a file each time that `every` has passed.
    ///
    /// # Errors
    /// Errors of the system if the thread cannot be started.
    pub(crate) fn start(file: &Arc<FileShared>, every: Duration) -> std::io::Result<Self> {
        let (stop, file) = (Arc::new(StopSignal::default()), Arc::downgrade(file));
        let told = stop.clone();
        thread::Builder::new().name("h5live publisher".into()).spawn(
            move || {
                while told.wait(every) && tick(&file) {}
            },
        )?;
        Ok(PublishTimer(stop))
    }
}

impl Drop for PublishTimer {
    fn drop(&mut self) {
        *self.0.stopped.lock() = true;
        self.0.said.notify_all();
    }
}

/// Publishes new data. Returns whether the file is still open.
fn tick(file: &Weak<FileShared>) -> bool {
    let Some(shared) = file.upgrade() else { return false };
    let _only = shared.publisher.lock();
    if shared.is_dirty()
        && let Err(error) = shared.publish()
        && !matches!(error.kind(), ErrorKind::Store(model::Error::Closed))
    {
        shared.publisher.defer(error);
    }
    true
}
