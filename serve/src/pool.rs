//! Where requests read: a bounded number of them at the same time, each on a thread that may wait for a disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::Semaphore;

use crate::config::ServerLimits;
use crate::fault::Fault;

/// Where requests read.
#[derive(Debug)]
pub(crate) struct ReadPool {
    running: Arc<Semaphore>,
    waiting: Semaphore,
    time: Duration,
}

impl ReadPool {
    pub fn new(limits: &ServerLimits) -> Self {
        ReadPool {
            running: Arc::new(Semaphore::new(limits.max_concurrent_reads)),
            waiting: Semaphore::new(limits.max_waiting_reads),
            time: limits.answer_start_timeout,
        }
    }

    /// Does some work that blocks.
    ///
    /// # Errors
    /// Those of the work; [`Fault::busy`] if too many wait already; if the time is over. The work itself then goes on, and
    /// keeps its place, until it ends.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let busy = || Fault::busy("Too many requests wait to read: ask again");
        let slow = || {
            let message = format!("Reading took longer than {} s: ask for less", self.time.as_secs());
            Fault { is_transient: true, ..Fault::new(StatusCode::GATEWAY_TIMEOUT, message) }
        };
        let whole = async {
            let waiting = self.waiting.try_acquire().map_err(|_| busy())?;
            let running = self.running.clone().acquire_owned().await.map_err(|_| busy())?;
            drop(waiting);
            let done = tokio::task::spawn_blocking(move || {
                let _running = running;
                work()
            });
            match done.await {
                Ok(done) => done,
                // The thread has told of the panic.
                Err(_) => Err(Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "The server has failed to read this")),
            }
        };
        tokio::time::timeout(self.time, whole).await.unwrap_or_else(|_| Err(slow()))
    }
}

/// Up to so many bytes, an answer has a place beside those that have more. There is one for each connection, so that answers
/// which are taken slowly keep no small one out.
const SMALL_ANSWER_BYTES: u64 = 64 << 10;

/// The memory of answers.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    used: AtomicU64,
    /// Up to where answers take it that are not small.
    limit: u64,
    limit_with_small: u64,
    max_answer: u64,
}

impl MemoryBudget {
    pub fn new(limits: &ServerLimits) -> Self {
        let max_answer = limits.max_answer_bytes;
        let limit = limits.max_total_answer_bytes.max(max_answer);
        let limit_with_small = limit.saturating_add(SMALL_ANSWER_BYTES.saturating_mul(limits.max_connections as u64));
        MemoryBudget { used: AtomicU64::new(0), limit, limit_with_small, max_answer }
    }

    /// Bytes that are in use.
    pub fn used_bytes(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Most bytes of one answer.
    pub fn max_answer_bytes(&self) -> u64 {
        self.max_answer
    }

    /// Takes memory for an answer.
    ///
    /// # Errors
    /// [`Fault::answer_too_large`]; [`Fault::busy`] if other answers have it.
    pub fn reserve(self: &Arc<Self>, bytes: u64) -> Result<MemoryReservation, Fault> {
        if bytes > self.max_answer {
            return Err(Fault::answer_too_large(bytes, self.max_answer));
        }
        let limit = if bytes <= SMALL_ANSWER_BYTES { self.limit_with_small } else { self.limit };
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|sum| *sum <= limit)
        });
        match taken {
            Ok(_) => Ok(MemoryReservation { budget: self.clone(), bytes }),
            Err(_) => Err(Fault::busy("Other answers use the memory of this server: ask again")),
        }
    }
}

/// Memory of one answer, which is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct MemoryReservation {
    budget: Arc<MemoryBudget>,
    bytes: u64,
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_and_has_limits() {
        const LARGE: u64 = 10 * SMALL_ANSWER_BYTES;
        let limits = ServerLimits {
            max_answer_bytes: LARGE,
            max_total_answer_bytes: 2 * LARGE,
            max_connections: 2,
            ..ServerLimits::default()
        };
        let budget = Arc::new(MemoryBudget::new(&limits));
        let large = [(); 2].map(|()| budget.reserve(LARGE).unwrap());
        assert_eq!(budget.reserve(LARGE + 1).unwrap_err().status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(budget.reserve(LARGE).unwrap_err().status, StatusCode::SERVICE_UNAVAILABLE);
        let small = [(); 2].map(|()| budget.reserve(SMALL_ANSWER_BYTES).unwrap());
        assert_eq!(budget.reserve(1).unwrap_err().status, StatusCode::SERVICE_UNAVAILABLE);
        drop((large, small));
        assert_eq!(budget.used_bytes(), 0);
    }
}
