//! A writer and its readers, with all their messages so far.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use h5live::Location;

use super::latency::Latencies;
use super::location::to_argument;
use super::message::{StressInvariant, TimedExtents, Violation, WorkCounts, WorkerMessage};
use super::processes::{ExitResult, Process, ProcessEvent, ProcessSpawner};

/// After this a process hangs that has not begun, or ended.
const HANG_TIMEOUT: Duration = Duration::from_secs(300);

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Participant {
    /// The writer.
    Writer,
    /// A reader, by number.
    Reader(usize),
    /// A reader that is another program.
    PeerReader,
}

impl std::fmt::Display for Participant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Participant::Writer => f.write_str("writer"),
            Participant::Reader(number) => write!(f, "reader {number}"),
            Participant::PeerReader => f.write_str("reader of another program"),
        }
    }
}

/// The messages of a reader.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReaderLog {
    /// The extents that it has seen.
    pub seen: Vec<TimedExtents>,
    /// Its work, once it has ended.
    pub work: Option<WorkCounts>,
}

/// A writer and its readers.
#[derive(Debug)]
pub struct WriterAndReaders {
    stage: ProcessSpawner<Participant>,
    file: PathBuf,
    writer: Option<Process>,
    writer_arguments: Vec<String>,
    readers: Vec<Process>,
    other: Option<Process>,
    open: Vec<Participant>,
    /// The flushes of the writer.
    pub flushes: Vec<TimedExtents>,
    /// The messages of the readers.
    pub reader_logs: Vec<ReaderLog>,
    /// Violations: events that must never happen.
    pub violations: Vec<Violation>,
    /// The work of the writer, once it has ended.
    pub writer_work: Option<WorkCounts>,
    /// Why the writer has stopped, if it said so.
    pub writer_failure: Option<String>,
    /// The messages of the other program.
    pub peer_log: ReaderLog,
    /// The violations that the other program has met.
    pub peer_violations: Vec<Violation>,
}

impl WriterAndReaders {
    /// A group for a store. Its writer is this program with these arguments, and the location behind them.
    pub fn new(location: &Location, writer_arguments: &[&str]) -> Self {
        WriterAndReaders {
            stage: ProcessSpawner::default(),
            file: to_argument(location),
            writer: None,
            writer_arguments: writer_arguments.iter().map(|a| (*a).to_owned()).collect(),
            readers: Vec::new(),
            other: None,
            open: Vec::new(),
            flushes: Vec::new(),
            reader_logs: Vec::new(),
            violations: Vec::new(),
            writer_work: None,
            writer_failure: None,
            peer_log: ReaderLog::default(),
            peer_violations: Vec::new(),
        }
    }

    /// Starts the writer and waits until it has flushed for the first time; `false` if it does not come to that.
    ///
    /// # Errors
    /// An I/O error if it cannot be started.
    pub fn start_writer_await_flush(&mut self) -> io::Result<bool> {
        let arguments: Vec<_> = self.writer_arguments.iter().map(String::as_str).collect();
        let flushed = self.flushes.len();
        self.writer = Some(self.stage.start_self(Participant::Writer, &arguments, &self.file)?);
        self.open.push(Participant::Writer);
        let until = Instant::now() + HANG_TIMEOUT;
        while self.flushes.len() == flushed {
            if Instant::now() >= until || !self.open.contains(&Participant::Writer) {
                self.record_violation(StressInvariant::Progress, "the writer does not begin");
                return Ok(false);
            }
            self.collect_events_for(Duration::from_millis(10));
        }
        Ok(true)
    }

    /// Starts a writer with these arguments, and does not wait for it.
    ///
    /// # Errors
    /// An I/O error if it cannot be started.
    pub fn spawn_writer(&mut self, arguments: &[&str]) -> io::Result<()> {
        self.writer = Some(self.stage.start_self(Participant::Writer, arguments, &self.file)?);
        self.open.push(Participant::Writer);
        Ok(())
    }

    /// Waits until `condition` is true, the writer is gone, or the time is over. Returns whether `condition` is true.
    pub fn wait_until_or_writer_gone(
        &mut self,
        limit: Duration,
        condition: impl Fn(&WriterAndReaders) -> bool,
    ) -> bool {
        let until = Instant::now() + limit;
        while !condition(self) {
            if Instant::now() >= until || self.writer_is_gone() {
                return false;
            }
            self.collect_events_for(Duration::from_millis(1));
        }
        true
    }

    /// Starts a reader.
    ///
    /// # Errors
    /// An I/O error if it cannot be started.
    pub fn start_reader(&mut self, arguments: &[&str]) -> io::Result<()> {
        let who = Participant::Reader(self.readers.len());
        self.readers.push(self.stage.start_self(who, arguments, &self.file)?);
        self.open.push(who);
        self.reader_logs.push(ReaderLog::default());
        Ok(())
    }

    /// Starts another program that reads.
    ///
    /// # Errors
    /// An I/O error if it cannot be started.
    pub fn start_peer_reader(&mut self, command: Command) -> io::Result<()> {
        self.other = Some(self.stage.start_command(Participant::PeerReader, command)?);
        self.open.push(Participant::PeerReader);
        Ok(())
    }

    /// Stops all readers wherever they are, or lets them go on.
    pub fn suspend_or_resume_readers(&self, suspend: bool) {
        self.readers.iter().chain(&self.other).for_each(|reader| reader.suspend_or_resume(suspend));
    }

    /// Collects messages for this long.
    pub fn collect_events_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            match self.stage.events.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok((who, event)) => self.handle_event(who, event),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn handle_event(&mut self, who: Participant, event: ProcessEvent) {
        let story = match who {
            Participant::Reader(i) => self.reader_logs.get_mut(i),
            Participant::PeerReader => Some(&mut self.peer_log),
            Participant::Writer => None,
        };
        match (event, story) {
            (ProcessEvent::OutputEnd, _) => self.open.retain(|open| *open != who),
            (ProcessEvent::Message(WorkerMessage::Flushed(extents)), _) => self.flushes.push(extents),
            (ProcessEvent::Message(WorkerMessage::Seen(extents)), Some(story)) => story.seen.push(extents),
            (ProcessEvent::Message(WorkerMessage::Done(work)), Some(story)) => story.work = Some(work),
            (ProcessEvent::Message(WorkerMessage::WriterFailed(why)), None) => self.writer_failure = Some(why),
            (ProcessEvent::Message(WorkerMessage::Done(work)), None) => self.writer_work = Some(work),
            (ProcessEvent::Message(WorkerMessage::Violation(violation)), _) if who == Participant::PeerReader => {
                self.peer_violations.push(violation);
            }
            (ProcessEvent::Message(WorkerMessage::Violation(mut violation)), _) => {
                violation.detail = format!("{who}: {}", violation.detail);
                self.violations.push(violation);
            }
            (ProcessEvent::Message(message), _) => self.violation_of(who, &format!("says {message}")),
            (ProcessEvent::Noise(line), _) => self.violation_of(who, &format!("says {line:?}")),
        }
    }

    /// Whether the writer has ended without being told to.
    pub fn writer_is_gone(&self) -> bool {
        !self.open.contains(&Participant::Writer)
    }

    /// Kills the writer. All that it has flushed and said is taken up.
    ///
    /// # Errors
    /// An I/O error if there is none.
    pub fn kill_writer(&mut self) -> io::Result<()> {
        if let Some(mut writer) = self.writer.take() {
            writer.kill_and_wait()?;
        }
        self.drain_output(Participant::Writer);
        Ok(())
    }

    /// Tells the writer to end, and waits for it. All that it has flushed and said is taken up.
    ///
    /// # Errors
    /// An I/O error if it is gone.
    pub fn end_writer(&mut self) -> io::Result<()> {
        if let Some(mut writer) = self.writer.take() {
            writer.close_stdin();
            self.await_end(Participant::Writer, &mut writer)?;
        }
        Ok(())
    }

    /// Tells the writer, and then the readers, to end, and waits for them. `expected_row_counts` computes the rows that must be seen
    /// from the flushes. A reader that has not seen all of them is a violation.
    ///
    /// # Errors
    /// An I/O error if a process is gone.
    pub fn end_all_and_check(
        &mut self,
        expected_row_counts: impl FnOnce(&[TimedExtents]) -> Vec<u64>,
    ) -> io::Result<()> {
        self.end_writer()?;
        let written = expected_row_counts(&self.flushes);
        let peer = self.other.take();
        if let Some(mut peer) = peer {
            peer.close_stdin();
            self.await_end(Participant::PeerReader, &mut peer)?;
            self.compare(Participant::PeerReader, last_seen(&self.peer_log), &written);
        }
        self.end_readers(&written)
    }

    /// Ends the readers, which must have seen `expected_row_counts` then, and drops them.
    ///
    /// # Errors
    /// An I/O error if a process is gone.
    pub fn end_readers_clear_logs(&mut self, expected_row_counts: &[u64]) -> io::Result<()> {
        self.end_readers(expected_row_counts)?;
        self.reader_logs.clear();
        Ok(())
    }

    fn end_readers(&mut self, written: &[u64]) -> io::Result<()> {
        let mut readers = std::mem::take(&mut self.readers);
        readers.iter_mut().for_each(Process::close_stdin);
        for (i, reader) in readers.iter_mut().enumerate() {
            self.await_end(Participant::Reader(i), reader)?;
        }
        for i in 0..self.reader_logs.len() {
            let seen = self.reader_logs.get(i).map(last_seen).unwrap_or_default();
            self.compare(Participant::Reader(i), seen, written);
        }
        Ok(())
    }

    fn compare(&mut self, who: Participant, seen: Vec<u64>, written: &[u64]) {
        if seen != written {
            self.violation_of(who, &format!("has seen {seen:?} of {written:?}"));
        }
    }

    fn violation_of(&mut self, who: Participant, detail: &str) {
        match who {
            Participant::PeerReader => {
                let violation = Violation { invariant: StressInvariant::Progress, detail: detail.to_owned() };
                self.peer_violations.push(violation);
            }
            Participant::Reader(i) => self.record_violation(StressInvariant::Progress, &format!("reader {i} {detail}")),
            Participant::Writer => self.record_violation(StressInvariant::Progress, &format!("the writer {detail}")),
        }
    }

    fn await_end(&mut self, who: Participant, process: &mut Process) -> io::Result<()> {
        self.drain_output(who);
        match process.wait(HANG_TIMEOUT)? {
            ExitResult::Success => Ok(()),
            ExitResult::Failure(status) => {
                self.violation_of(who, &format!("ended with {status}"));
                Ok(())
            }
            ExitResult::Timeout => {
                self.violation_of(who, "does not end");
                process.kill_and_wait()
            }
        }
    }

    /// Listens until the output of a process has ended.
    fn drain_output(&mut self, who: Participant) {
        let until = Instant::now() + HANG_TIMEOUT;
        while self.open.contains(&who) && Instant::now() < until {
            self.collect_events_for(Duration::from_millis(2));
        }
    }

    /// Notes a violation.
    pub fn record_violation(&mut self, invariant: StressInvariant, detail: &str) {
        self.violations.push(Violation { invariant, detail: detail.to_owned() });
    }

    /// The work of each reader, and how late it saw the flushes of dataset `dataset_index`.
    pub fn reader_results(&self, dataset_index: usize) -> Vec<(WorkCounts, Latencies)> {
        let reader = |story: &ReaderLog| {
            (story.work.unwrap_or_default(), Latencies::from_extents(&self.flushes, &story.seen, dataset_index))
        };
        self.reader_logs.iter().map(reader).collect()
    }

    /// Rows of each dataset as of the last flush that the writer spoke of.
    pub fn last_flushed_row_counts(&self) -> &[u64] {
        self.flushes.last().map_or(&[], |flush| &flush.row_counts)
    }
}

/// The rows that a reader had seen when it ended.
fn last_seen(story: &ReaderLog) -> Vec<u64> {
    story.seen.last().map(|seen| seen.row_counts.clone()).unwrap_or_default()
}

/// The rows that must be seen, if each flush says how many rows each dataset has.
pub fn row_counts_of_last_flush(flushes: &[TimedExtents]) -> Vec<u64> {
    flushes.last().map(|flush| flush.row_counts.clone()).unwrap_or_default()
}
