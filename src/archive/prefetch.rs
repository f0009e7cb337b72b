//! Samples that are read ahead.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};

use super::epoch_sample_numbers::EpochSampleNumbers;
use super::{Archive, ArchiveFault};
use crate::Result;

/// Samples in their order, which threads read ahead: number and contents. After an error, it goes on with the next sample.
///
/// Dropping it ends the threads.
pub struct PrefetchedSamples {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

/// A sample on its way.
enum Ticket {
    /// A thread reads it.
    InWork,
    Read(Result<Vec<u8>>),
}

struct QueueState {
    numbers: EpochSampleNumbers,
    /// In order; the first one is the next to be handed out. With each its number and its bytes.
    tickets: VecDeque<(u64, u64, Ticket)>,
    /// How many were handed out.
    taken: u64,
    /// Bytes of all tickets.
    bytes: u64,
    is_closed: bool,
}

struct Queue {
    archive: Archive,
    memory: u64,
    state: Mutex<QueueState>,
    /// A ticket may have been read, or there may be room for one.
    changed: Condvar,
}

impl PrefetchedSamples {
    pub(super) fn start(
        archive: Archive,
        numbers: EpochSampleNumbers,
        threads: usize,
        memory: u64,
    ) -> Result<PrefetchedSamples> {
        let state = QueueState { numbers, tickets: VecDeque::new(), taken: 0, bytes: 0, is_closed: false };
        let queue = Arc::new(Queue { archive, memory, state: Mutex::new(state), changed: Condvar::new() });
        let mut prefetch = PrefetchedSamples { queue, threads: Vec::new() };
        for _ in 0..threads.max(1) {
            let queue = prefetch.queue.clone();
            let thread = thread::Builder::new().name("read ahead".to_owned()).spawn(move || queue.work());
            match thread {
                Ok(thread) => prefetch.threads.push(thread),
                Err(_) if !prefetch.threads.is_empty() => break,
                Err(_) => return Err(prefetch.queue.archive.error(ArchiveFault::ThreadSpawn)),
            }
        }
        Ok(prefetch)
    }

    /// The position of the next sample in the epoch, as [`EpochSampleNumbers::next_position_in_epoch`] gives it. Samples that were read ahead
    /// and not taken do not count.
    pub fn next_position_in_epoch(&self) -> u64 {
        let state = self.queue.state.lock();
        state.tickets.iter().fold(state.numbers.clone(), |numbers, _| numbers.before()).next_position_in_epoch()
    }
}

impl Queue {
    /// Reads samples until there are no more.
    fn work(&self) {
        while let Some((ticket, sample)) = self.next_ticket() {
            let read = self.archive.read(sample);
            let mut state = self.state.lock();
            let at = usize::try_from(ticket - state.taken).ok();
            if let Some((_, _, place)) = at.and_then(|at| state.tickets.get_mut(at)) {
                *place = Ticket::Read(read);
            }
            self.changed.notify_all();
        }
    }

    /// The next sample, with the number of its ticket, as soon as there is memory for it.
    fn next_ticket(&self) -> Option<(u64, u64)> {
        let mut state = self.state.lock();
        loop {
            if state.is_closed {
                return None;
            }
            // Threads come one after another here, so that the sample that is wanted first gets memory first.
            let sample = state.numbers.clone().next()?;
            let bytes = self.archive.sample_len(sample).unwrap_or(0);
            if state.tickets.is_empty() || state.bytes.saturating_add(bytes) <= self.memory {
                state.numbers.next();
                state.bytes = state.bytes.saturating_add(bytes);
                state.tickets.push_back((sample, bytes, Ticket::InWork));
                return Some((state.taken + state.tickets.len() as u64 - 1, sample));
            }
            self.changed.wait(&mut state);
        }
    }
}

impl Iterator for PrefetchedSamples {
    type Item = Result<(u64, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut state = self.queue.state.lock();
        loop {
            match state.tickets.front() {
                Some((_, _, Ticket::Read(_))) => break,
                Some(_) => {}
                None if state.numbers.clone().next().is_none() => return None,
                None => {}
            }
            self.queue.changed.wait(&mut state);
        }
        let (sample, bytes, ticket) = state.tickets.pop_front()?;
        state.taken += 1;
        state.bytes -= bytes;
        drop(state);
        self.queue.changed.notify_all();
        match ticket {
            Ticket::Read(read) => Some(read.map(|contents| (sample, contents))),
            Ticket::InWork => None,
        }
    }
}

impl Drop for PrefetchedSamples {
    fn drop(&mut self) {
        self.queue.state.lock().is_closed = true;
        self.queue.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for PrefetchedSamples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrefetchedSamples").field("threads", &self.threads.len()).finish()
    }
}
