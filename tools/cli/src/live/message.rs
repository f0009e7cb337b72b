//! Messages of the processes of a stress run to the one that started them: lines on their standard output.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerMessage {
    /// The writer has flushed.
    Flushed(TimedExtents),
    /// The reader has seen, read and checked rows up to here.
    Seen(TimedExtents),
    /// The reader ends. Its work.
    Done(WorkCounts),
    /// The writer has stopped, and why.
    WriterFailed(String),
    /// Something must never happen, and did.
    Violation(Violation),
}

/// How many rows each dataset has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimedExtents {
    /// When: for the writer the moment at which the flush began (ns since 1970).
    pub unix_nanos: u64,
    /// Rows of each dataset.
    pub row_counts: Vec<u64>,
}

/// The work of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkCounts {
    /// Rows that it checked when they were new.
    pub new_rows: u64,
    /// Rows that it checked again later.
    pub reread_rows: u64,
    /// How often it looked for something new.
    pub refreshes_or_flushes: u64,
    /// How often it opened the file.
    pub opens: u64,
}

/// Which invariant is broken (DESIGN.md, "What always holds").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StressInvariant {
    /// Something that a reader can reach cannot be read.
    NoDanglingAddress,
    /// An element below the extent has not its final value.
    WholeAppends,
    /// An extent, a link or a value went back.
    MonotonicReads,
    /// Something was seen half-written: part of it new, part of it old.
    NoTornReads,
    /// After the writer's death, the file does not open, or flushed rows are lost.
    SurvivesWriterDeath,
    /// Another program met an error.
    OtherProgramsSucceed,
    /// A process does not come to its end.
    Progress,
}

/// A broken invariant and how it showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: StressInvariant,
    /// How it showed, on one line.
    pub detail: String,
}

impl StressInvariant {
    const ALL: [(StressInvariant, &'static str); 7] = [
        (StressInvariant::NoDanglingAddress, "I1"),
        (StressInvariant::WholeAppends, "I2"),
        (StressInvariant::MonotonicReads, "I3"),
        (StressInvariant::NoTornReads, "I4"),
        (StressInvariant::SurvivesWriterDeath, "I5"),
        (StressInvariant::OtherProgramsSucceed, "I8"),
        (StressInvariant::Progress, "progress"),
    ];

    /// Its number in DESIGN.md, or a word.
    pub fn code(self) -> &'static str {
        Self::ALL.iter().find(|(i, _)| *i == self).map_or("", |(_, name)| name)
    }
}

impl TimedExtents {
    /// These rows at this moment.
    pub fn now(rows: Vec<u64>) -> Self {
        TimedExtents { unix_nanos: unix_nanos_now(), row_counts: rows }
    }
}

/// Nanoseconds since 1970, the same clock for all processes.
pub fn unix_nanos_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
}

impl fmt::Display for TimedExtents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.unix_nanos)?;
        self.row_counts.iter().try_for_each(|rows| write!(f, " {rows}"))
    }
}

impl fmt::Display for WorkerMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkerMessage::Flushed(extents) => write!(f, "flushed {extents}"),
            WorkerMessage::Seen(extents) => write!(f, "seen {extents}"),
            WorkerMessage::Done(WorkCounts {
                new_rows: rows,
                reread_rows: rereads,
                refreshes_or_flushes: refreshes,
                opens,
            }) => {
                write!(f, "done {rows} {rereads} {refreshes} {opens}")
            }
            WorkerMessage::WriterFailed(why) => write!(f, "stopped {}", why.replace(['\n', '\r'], " ")),
            WorkerMessage::Violation(Violation { invariant, detail }) => {
                write!(f, "violation {} {}", invariant.code(), detail.replace(['\n', '\r'], " "))
            }
        }
    }
}

/// A line that no process of a stress run writes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a message: {0:?}")]
pub struct MessageParseError(String);

impl FromStr for WorkerMessage {
    type Err = MessageParseError;

    fn from_str(line: &str) -> Result<Self, MessageParseError> {
        parse(line).ok_or_else(|| MessageParseError(line.to_owned()))
    }
}

fn parse(line: &str) -> Option<WorkerMessage> {
    let (word, rest) = line.split_once(' ')?;
    if word == "violation" {
        let (name, detail) = rest.split_once(' ')?;
        let (invariant, _) = StressInvariant::ALL.into_iter().find(|(_, n)| *n == name)?;
        return Some(WorkerMessage::Violation(Violation { invariant, detail: detail.to_owned() }));
    }
    if word == "stopped" {
        return Some(WorkerMessage::WriterFailed(rest.to_owned()));
    }
    let numbers = rest.split(' ').map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
    match (word, numbers.as_slice()) {
        ("flushed", [at, rows @ ..]) => {
            Some(WorkerMessage::Flushed(TimedExtents { unix_nanos: *at, row_counts: rows.to_vec() }))
        }
        ("seen", [at, rows @ ..]) => {
            Some(WorkerMessage::Seen(TimedExtents { unix_nanos: *at, row_counts: rows.to_vec() }))
        }
        ("done", &[rows, rereads, refreshes, opens]) => Some(WorkerMessage::Done(WorkCounts {
            new_rows: rows,
            reread_rows: rereads,
            refreshes_or_flushes: refreshes,
            opens,
        })),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_survives_being_a_line() {
        let extents = TimedExtents { unix_nanos: 12, row_counts: vec![3, 4] };
        let violation = Violation { invariant: StressInvariant::WholeAppends, detail: "row 3 is fill".into() };
        for message in [
            WorkerMessage::Flushed(extents.clone()),
            WorkerMessage::Seen(extents),
            WorkerMessage::Seen(TimedExtents { unix_nanos: 1, row_counts: vec![] }),
            WorkerMessage::Done(WorkCounts { new_rows: 1, reread_rows: 2, refreshes_or_flushes: 3, opens: 4 }),
            WorkerMessage::WriterFailed("no space is left".into()),
            WorkerMessage::Violation(violation),
        ] {
            assert_eq!(message.to_string().parse(), Ok(message));
        }
    }

    #[test]
    fn a_violation_is_one_line() {
        let violation = Violation { invariant: StressInvariant::SurvivesWriterDeath, detail: "a\nb".into() };
        assert_eq!(WorkerMessage::Violation(violation).to_string(), "violation I5 a b");
    }

    #[test]
    fn refuses_other_lines() {
        for line in ["", "seen", "seen x", "flushed 1 -2", "done 1 2 3", "violation I9 x", "thread panicked at"] {
            assert!(line.parse::<WorkerMessage>().is_err(), "{line}");
        }
    }
}
