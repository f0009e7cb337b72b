//! A thread that publishes now and then, for as long as a file is open.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use h5live_model as model;
use parking_lot::{Condvar, Mutex};

use crate::ErrorKind;
use crate::file::Shared;

/// The thread. It ends when this is dropped, which does not wait for it.
#[derive(Debug)]
pub(crate) struct Ticker(Arc<Stop>);

#[derive(Debug, Default)]
struct Stop {
    stopped: Mutex<bool>,
    said: Condvar,
}

impl Stop {
    /// Waits so long; whether to go on.
    fn rest(&self, time: Duration) -> bool {
        let mut stopped = self.stopped.lock();
        self.said.wait_while_for(&mut stopped, |stopped| !*stopped, time);
        !*stopped
    }
}

impl Ticker {
    /// Starts a thread that publishes what is new of a file each time that `every` is over.
    ///
    /// # Errors
    /// Those of the system if there can be no thread.
    pub(crate) fn start(file: &Arc<Shared>, every: Duration) -> std::io::Result<Self> {
        let (stop, file) = (Arc::new(Stop::default()), Arc::downgrade(file));
        let told = stop.clone();
        thread::Builder::new().name("h5live publisher".into()).spawn(
            move || {
                while told.rest(every) && tick(&file) {}
            },
        )?;
        Ok(Ticker(stop))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        *self.0.stopped.lock() = true;
        self.0.said.notify_all();
    }
}

/// Publishes what is new; whether the file is still open.
fn tick(file: &Weak<Shared>) -> bool {
    let Some(shared) = file.upgrade() else { return false };
    let _only = shared.publisher.only();
    if (shared.has_staged() || shared.store.is_dirty())
        && let Err(error) = shared.publish()
        && !matches!(error.kind(), ErrorKind::Store(model::Error::Closed))
    {
        shared.publisher.defer(error);
    }
    true
}
