//! Many requests at a time, with bounds, whose results are handed on as they come.

use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::task::AbortHandle;

use crate::client::{ClientState, ObjectClient};
use crate::error::{ObjectError, ObjectErrorKind, Result};
use crate::runtime;

/// What bounds a wave of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlightLimits {
    /// Most requests at a time.
    pub max_requests: usize,
    /// Most bytes that are on their way or wait to be handed on. One request is made even if it alone has more.
    pub max_bytes: u64,
}

impl Default for InFlightLimits {
    fn default() -> Self {
        InFlightLimits { max_requests: 64, max_bytes: 64 << 20 }
    }
}

/// The requests of a wave that run.
struct Running<T> {
    sender: Sender<(usize, u64, Result<T>)>,
    receiver: Receiver<(usize, u64, Result<T>)>,
    handles: Vec<(usize, AbortHandle)>,
    bytes: u64,
}

impl<T> Drop for Running<T> {
    /// Whoever stops early does not leave requests behind.
    fn drop(&mut self) {
        self.handles.iter().for_each(|(_, handle)| handle.abort());
    }
}

impl ObjectClient {
    /// Starts the requests of `jobs` in their order, and gives each result to `sink` in the order in which they come, on
    /// the thread of the caller. A job is the number of bytes that it holds, and its work. It stops at the first error.
    pub(crate) fn run_wave<T, F, E>(
        &self,
        jobs: impl IntoIterator<Item = (u64, F)>,
        limits: InFlightLimits,
        sink: &mut dyn FnMut(usize, T) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
        E: From<ObjectError>,
    {
        let (sender, receiver) = channel();
        let mut running = Running { sender, receiver, handles: Vec::new(), bytes: 0 };
        let mut jobs = jobs.into_iter().enumerate().peekable();
        loop {
            while let Some((_, (bytes, _))) = jobs.peek() {
                let count = running.handles.len();
                let is_full =
                    count >= limits.max_requests.max(1) || running.bytes.saturating_add(*bytes) > limits.max_bytes;
                if count > 0 && is_full {
                    break;
                }
                let Some((number, (bytes, work))) = jobs.next() else { break };
                let sender = running.sender.clone();
                let handle = runtime::spawn(async move {
                    let _ = sender.send((number, bytes, work.await));
                });
                let handle = handle.map_err(|error| self.0.lost(&error.to_string()))?;
                running.handles.push((number, handle));
                running.bytes += bytes;
            }
            if running.handles.is_empty() {
                return Ok(());
            }
            let (number, bytes, result) = running.next().ok_or_else(|| self.0.lost("a request has ended"))?;
            sink(number, result?)?;
            // What waits to be handed on counts until it was.
            running.bytes -= bytes;
        }
    }
}

impl<T> Running<T> {
    /// The next result; `None` if a request has ended without one.
    fn next(&mut self) -> Option<(usize, u64, Result<T>)> {
        loop {
            match self.receiver.recv_timeout(std::time::Duration::from_secs(1)) {
                Ok(result) => {
                    self.handles.retain(|(number, _)| *number != result.0);
                    return Some(result);
                }
                Err(_) if self.handles.iter().any(|(_, handle)| !handle.is_finished()) => {}
                // A result may have come in between.
                Err(_) => {
                    let result = self.receiver.try_recv().ok()?;
                    self.handles.retain(|(number, _)| *number != result.0);
                    return Some(result);
                }
            }
        }
    }
}

impl ClientState {
    fn lost(self: &Arc<Self>, why: &str) -> ObjectError {
        ObjectError::new(ObjectErrorKind::Other, self.object_display_name(""), why)
    }
}
