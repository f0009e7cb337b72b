//! A writer and its readers: who they are, and everything that they have said so far.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use super::latency::Latencies;
use super::message::{Extents, Invariant, Message, Violation, Work};
use super::processes::{Ended, Event, Process, Stage};

/// After this a process hangs that has not begun, or ended.
const PATIENCE: Duration = Duration::from_secs(300);

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The writer.
    Writer,
    /// A reader, by number.
    Reader(usize),
    /// A reader that is another program.
    Peer,
}

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Who::Writer => f.write_str("writer"),
            Who::Reader(number) => write!(f, "reader {number}"),
            Who::Peer => f.write_str("reader of another program"),
        }
    }
}

/// What a reader has said.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Story {
    /// What it saw.
    pub seen: Vec<Extents>,
    /// What it did, once it has ended.
    pub work: Option<Work>,
}

/// A writer and its readers.
#[derive(Debug)]
pub struct Troupe {
    stage: Stage<Who>,
    file: PathBuf,
    writer: Option<Process>,
    writer_arguments: Vec<String>,
    readers: Vec<Process>,
    other: Option<Process>,
    open: Vec<Who>,
    /// What the writer flushed.
    pub flushes: Vec<Extents>,
    /// What the readers saw.
    pub stories: Vec<Story>,
    /// What must never happen.
    pub violations: Vec<Violation>,
    /// What the writer did, once it has ended.
    pub written: Option<Work>,
    /// Why the writer has stopped, if it said so.
    pub stopped: Option<String>,
    /// What the other program saw and did.
    pub peer: Story,
    /// What the other program met that it should not.
    pub peer_violations: Vec<Violation>,
}

impl Troupe {
    /// A troupe for a file. Its writer is this program with these arguments, and the file's name behind them.
    pub fn new(file: &Path, writer_arguments: &[&str]) -> Self {
        Troupe {
            stage: Stage::new(),
            file: file.to_owned(),
            writer: None,
            writer_arguments: writer_arguments.iter().map(|a| (*a).to_owned()).collect(),
            readers: Vec::new(),
            other: None,
            open: Vec::new(),
            flushes: Vec::new(),
            stories: Vec::new(),
            violations: Vec::new(),
            written: None,
            stopped: None,
            peer: Story::default(),
            peer_violations: Vec::new(),
        }
    }

    /// Starts the writer and waits until it has flushed for the first time; `false` if it does not come to that.
    ///
    /// # Errors
    /// An I/O error if it cannot be started.
    pub fn start_writer(&mut self) -> io::Result<bool> {
        let arguments: Vec<_> = self.writer_arguments.iter().map(String::as_str).collect();
        let flushed = self.flushes.len();
        self.writer = Some(self.stage.start(Who::Writer, &arguments, &self.file)?);
        self.open.push(Who::Writer);
        let until = Instant::now() + PATIENCE;
        while self.flushes.len() == flushed {
            if Instant::now() >= until || !self.open.contains(&Who::Writer) {
                self.violation(Invariant::Progress, "the writer does not begin");
                return Ok(false);
            }
            self.listen(Duration::from_millis(10));
        }
        Ok(true)
    }

    /// Starts a writer with these arguments, and does not wait for it.
    ///
    /// # Errors
    /// An I/O error if it cannot be started.
    pub fn spawn_writer(&mut self, arguments: &[&str]) -> io::Result<()> {
        self.writer = Some(self.stage.start(Who::Writer, arguments, &self.file)?);
        self.open.push(Who::Writer);
        Ok(())
    }

    /// Listens until something has come about, the writer is gone, or the time is over; whether it has come about.
    pub fn await_writer(&mut self, limit: Duration, come: impl Fn(&Troupe) -> bool) -> bool {
        let until = Instant::now() + limit;
        while !come(self) {
            if Instant::now() >= until || self.writer_is_gone() {
                return false;
            }
            self.listen(Duration::from_millis(1));
        }
        true
    }

    /// Starts a reader.
    ///
    /// # Errors
    /// An I/O error if it cannot be started.
    pub fn start_reader(&mut self, arguments: &[&str]) -> io::Result<()> {
        let who = Who::Reader(self.readers.len());
        self.readers.push(self.stage.start(who, arguments, &self.file)?);
        self.open.push(who);
        self.stories.push(Story::default());
        Ok(())
    }

    /// Starts another program that reads.
    ///
    /// # Errors
    /// An I/O error if it cannot be started.
    pub fn start_peer(&mut self, command: Command) -> io::Result<()> {
        self.other = Some(self.stage.start_command(Who::Peer, command)?);
        self.open.push(Who::Peer);
        Ok(())
    }

    /// Takes up what is said for so long.
    pub fn listen(&mut self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            match self.stage.events.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok((who, event)) => self.take(who, event),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn take(&mut self, who: Who, event: Event) {
        let story = match who {
            Who::Reader(i) => self.stories.get_mut(i),
            Who::Peer => Some(&mut self.peer),
            Who::Writer => None,
        };
        match (event, story) {
            (Event::End, _) => self.open.retain(|open| *open != who),
            (Event::Message(Message::Flushed(extents)), _) => self.flushes.push(extents),
            (Event::Message(Message::Seen(extents)), Some(story)) => story.seen.push(extents),
            (Event::Message(Message::Done(work)), Some(story)) => story.work = Some(work),
            (Event::Message(Message::Stopped(why)), None) => self.stopped = Some(why),
            (Event::Message(Message::Done(work)), None) => self.written = Some(work),
            (Event::Message(Message::Violation(violation)), _) if who == Who::Peer => {
                self.peer_violations.push(violation);
            }
            (Event::Message(Message::Violation(mut violation)), _) => {
                violation.detail = format!("{who}: {}", violation.detail);
                self.violations.push(violation);
            }
            (Event::Message(message), _) => self.violation_of(who, &format!("says {message}")),
            (Event::Noise(line), _) => self.violation_of(who, &format!("says {line:?}")),
        }
    }

    /// Whether the writer's output has ended without its having been told to end.
    pub fn writer_is_gone(&self) -> bool {
        !self.open.contains(&Who::Writer)
    }

    /// Kills the writer. All that it has flushed and said is taken up.
    ///
    /// # Errors
    /// An I/O error if there is none.
    pub fn kill_writer(&mut self) -> io::Result<()> {
        if let Some(mut writer) = self.writer.take() {
            writer.kill()?;
        }
        self.hear_out(Who::Writer);
        Ok(())
    }

    /// Tells the writer, and after it the readers, to come to their end, and waits for it. A reader that has then not
    /// seen all that was flushed, which is what `all` makes of the flushes, is a violation.
    ///
    /// # Errors
    /// An I/O error if a process is not there.
    pub fn finish(&mut self, all: impl FnOnce(&[Extents]) -> Vec<u64>) -> io::Result<()> {
        if let Some(mut writer) = self.writer.take() {
            writer.finish();
            self.await_end(Who::Writer, &mut writer)?;
        }
        let written = all(&self.flushes);
        let peer = self.other.take();
        if let Some(mut peer) = peer {
            peer.finish();
            self.await_end(Who::Peer, &mut peer)?;
            self.compare(Who::Peer, all_seen(&self.peer), &written);
        }
        self.end_readers(&written)
    }

    /// Has the readers come to their end, by which they must have seen `written`, and forgets them.
    ///
    /// # Errors
    /// An I/O error if a process is not there.
    pub fn dismiss_readers(&mut self, written: &[u64]) -> io::Result<()> {
        self.end_readers(written)?;
        self.stories.clear();
        Ok(())
    }

    fn end_readers(&mut self, written: &[u64]) -> io::Result<()> {
        let mut readers = std::mem::take(&mut self.readers);
        readers.iter_mut().for_each(Process::finish);
        for (i, reader) in readers.iter_mut().enumerate() {
            self.await_end(Who::Reader(i), reader)?;
        }
        for i in 0..self.stories.len() {
            let seen = self.stories.get(i).map(all_seen).unwrap_or_default();
            self.compare(Who::Reader(i), seen, written);
        }
        Ok(())
    }

    fn compare(&mut self, who: Who, seen: Vec<u64>, written: &[u64]) {
        if seen != written {
            self.violation_of(who, &format!("has seen {seen:?} of {written:?}"));
        }
    }

    fn violation_of(&mut self, who: Who, detail: &str) {
        match who {
            Who::Peer => {
                let violation = Violation { invariant: Invariant::Progress, detail: detail.to_owned() };
                self.peer_violations.push(violation);
            }
            Who::Reader(i) => self.violation(Invariant::Progress, &format!("reader {i} {detail}")),
            Who::Writer => self.violation(Invariant::Progress, &format!("the writer {detail}")),
        }
    }

    fn await_end(&mut self, who: Who, process: &mut Process) -> io::Result<()> {
        self.hear_out(who);
        match process.wait(PATIENCE)? {
            Ended::Well => Ok(()),
            Ended::Badly(status) => {
                self.violation_of(who, &format!("ended with {status}"));
                Ok(())
            }
            Ended::Not => {
                self.violation_of(who, "does not end");
                process.kill()
            }
        }
    }

    /// Listens until the output of a process has ended.
    fn hear_out(&mut self, who: Who) {
        let until = Instant::now() + PATIENCE;
        while self.open.contains(&who) && Instant::now() < until {
            self.listen(Duration::from_millis(2));
        }
    }

    /// Notes a violation.
    pub fn violation(&mut self, invariant: Invariant, detail: &str) {
        self.violations.push(Violation { invariant, detail: detail.to_owned() });
    }

    /// What each reader did, and how late it saw the flushes of dataset `series`.
    pub fn readers(&self, series: usize) -> Vec<(Work, Latencies)> {
        let reader =
            |story: &Story| (story.work.unwrap_or_default(), Latencies::between(&self.flushes, &story.seen, series));
        self.stories.iter().map(reader).collect()
    }

    /// Rows of each dataset as of the last flush that the writer spoke of.
    pub fn flushed_rows(&self) -> &[u64] {
        self.flushes.last().map_or(&[], |flush| &flush.rows)
    }
}

/// What a reader has seen when it ended.
fn all_seen(story: &Story) -> Vec<u64> {
    story.seen.last().map(|seen| seen.rows.clone()).unwrap_or_default()
}

/// What there is to see when the flushes say how many rows each dataset has.
pub fn rows(flushes: &[Extents]) -> Vec<u64> {
    flushes.last().map(|flush| flush.rows.clone()).unwrap_or_default()
}
