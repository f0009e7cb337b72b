//! What the processes of a stress run tell the one that started them: lines on their standard output.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// The writer has flushed.
    Flushed(Extents),
    /// The reader has seen, read and checked rows up to here.
    Seen(Extents),
    /// The reader ends, and what it did.
    Done(Work),
    /// The writer has stopped, and why.
    Stopped(String),
    /// Something must never happen, and did.
    Violation(Violation),
}

/// How many rows each dataset has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extents {
    /// When: for the writer the moment at which the flush began (ns since 1970).
    pub at: u64,
    /// Rows of each dataset.
    pub rows: Vec<u64>,
}

/// What a reader did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Rows that it checked when they were new.
    pub rows: u64,
    /// Rows that it checked again later.
    pub rereads: u64,
    /// How often it looked for something new.
    pub refreshes: u64,
    /// How often it opened the file.
    pub opens: u64,
}

/// Which invariant is broken (DESIGN.md, "What always holds").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Invariant {
    /// Something that a reader can reach cannot be read.
    NoDanglingAddress,
    /// An element below the extent has not its final value.
    WholeAppends,
    /// An extent, a link or a value went back.
    NoWayBack,
    /// Something was seen half-written: in part new, in part as it was.
    TornWrites,
    /// After the writer's death the file does not open, or has lost what was flushed.
    ProcessDeath,
    /// Another program met an error.
    OtherProgram,
    /// A process does not come to its end.
    Progress,
}

/// A broken invariant and how it showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// How it showed, on one line.
    pub detail: String,
}

impl Invariant {
    const ALL: [(Invariant, &'static str); 7] = [
        (Invariant::NoDanglingAddress, "I1"),
        (Invariant::WholeAppends, "I2"),
        (Invariant::NoWayBack, "I3"),
        (Invariant::TornWrites, "I4"),
        (Invariant::ProcessDeath, "I5"),
        (Invariant::OtherProgram, "I8"),
        (Invariant::Progress, "progress"),
    ];

    /// Its number in DESIGN.md, or a word.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(i, _)| *i == self).map_or("", |(_, name)| name)
    }
}

impl Extents {
    /// These rows at this moment.
    pub fn now(rows: Vec<u64>) -> Self {
        Extents { at: now(), rows }
    }
}

/// Nanoseconds since 1970, the same clock for all processes.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
}

impl fmt::Display for Extents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.at)?;
        self.rows.iter().try_for_each(|rows| write!(f, " {rows}"))
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Flushed(extents) => write!(f, "flushed {extents}"),
            Message::Seen(extents) => write!(f, "seen {extents}"),
            Message::Done(Work { rows, rereads, refreshes, opens }) => {
                write!(f, "done {rows} {rereads} {refreshes} {opens}")
            }
            Message::Stopped(why) => write!(f, "stopped {}", why.replace(['\n', '\r'], " ")),
            Message::Violation(Violation { invariant, detail }) => {
                write!(f, "violation {} {}", invariant.name(), detail.replace(['\n', '\r'], " "))
            }
        }
    }
}

/// A line that no process of a stress run writes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a message: {0:?}")]
pub struct NoMessage(String);

impl FromStr for Message {
    type Err = NoMessage;

    fn from_str(line: &str) -> Result<Self, NoMessage> {
        parse(line).ok_or_else(|| NoMessage(line.to_owned()))
    }
}

fn parse(line: &str) -> Option<Message> {
    let (word, rest) = line.split_once(' ')?;
    if word == "violation" {
        let (name, detail) = rest.split_once(' ')?;
        let (invariant, _) = Invariant::ALL.into_iter().find(|(_, n)| *n == name)?;
        return Some(Message::Violation(Violation { invariant, detail: detail.to_owned() }));
    }
    if word == "stopped" {
        return Some(Message::Stopped(rest.to_owned()));
    }
    let numbers = rest.split(' ').map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
    match (word, numbers.as_slice()) {
        ("flushed", [at, rows @ ..]) => Some(Message::Flushed(Extents { at: *at, rows: rows.to_vec() })),
        ("seen", [at, rows @ ..]) => Some(Message::Seen(Extents { at: *at, rows: rows.to_vec() })),
        ("done", &[rows, rereads, refreshes, opens]) => Some(Message::Done(Work { rows, rereads, refreshes, opens })),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_survives_being_a_line() {
        let extents = Extents { at: 12, rows: vec![3, 4] };
        let violation = Violation { invariant: Invariant::WholeAppends, detail: "row 3 is fill".into() };
        for message in [
            Message::Flushed(extents.clone()),
            Message::Seen(extents),
            Message::Seen(Extents { at: 1, rows: vec![] }),
            Message::Done(Work { rows: 1, rereads: 2, refreshes: 3, opens: 4 }),
            Message::Stopped("no space is left".into()),
            Message::Violation(violation),
        ] {
            assert_eq!(message.to_string().parse(), Ok(message));
        }
    }

    #[test]
    fn a_violation_is_one_line() {
        let violation = Violation { invariant: Invariant::ProcessDeath, detail: "a\nb".into() };
        assert_eq!(Message::Violation(violation).to_string(), "violation I5 a b");
    }

    #[test]
    fn refuses_other_lines() {
        for line in ["", "seen", "seen x", "flushed 1 -2", "done 1 2 3", "violation I9 x", "thread panicked at"] {
            assert!(line.parse::<Message>().is_err(), "{line}");
        }
    }
}
