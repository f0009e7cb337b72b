//! Readers that stall: all of them are stopped for a time, wherever they are, and go on.

use std::time::{Duration, Instant};

use h5live_cli::live::writer_and_readers::WriterAndReaders;

/// When the readers of a group are stopped, again and again.
#[derive(Debug)]
pub struct ReaderStalls {
    /// How long they are stopped, and how long they run in between.
    length: Duration,
    stopped: bool,
    /// When that changes.
    next: Instant,
}

impl ReaderStalls {
    /// Stalls of this length. The first one begins soon.
    pub fn new(length: Duration) -> Self {
        ReaderStalls { length, stopped: false, next: Instant::now() + length.min(Duration::from_millis(300)) }
    }

    /// Stops the readers, or lets them go on, if it is time.
    pub fn tick(&mut self, group: &WriterAndReaders) {
        let now = Instant::now();
        if now >= self.next {
            self.stopped = !self.stopped;
            group.suspend_or_resume_readers(self.stopped);
            // Long enough for several looks.
            self.next = now + if self.stopped { self.length } else { self.length / 4 };
        }
    }

    /// Lets the readers go on.
    pub fn end(&mut self, group: &WriterAndReaders) {
        if std::mem::take(&mut self.stopped) {
            group.suspend_or_resume_readers(false);
        }
    }
}
