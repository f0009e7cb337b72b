//! A counterexample as a person reads it: what the writer did on the left, what the reader found on the right.

use std::fmt;

use h5live_format::dump::{self, Dump, DumpContext};
use h5live_format::{Superblock, Widths};

use super::explore::Counterexample;
use super::position::{Tear, WriterPosition};
use super::query::ReaderQuery;
use super::timeline::Timeline;
use crate::trace::{StorageOp, Trace};

/// One line of a story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CounterexampleEvent {
    /// The writer did something, the operation of this number.
    Writer {
        /// Which operation, from 0.
        operation: u32,
        /// The kind of operation.
        what: String,
        /// Its changes, or the visible part of them.
        changes: Vec<String>,
    },
    /// The reader asked for something.
    Reader {
        /// The kind of query.
        what: String,
    },
}

/// The events of a counterexample, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterexampleLog {
    /// How many operations had been done before.
    pub prior_op_count: u32,
    /// The events.
    pub events: Vec<CounterexampleEvent>,
    /// The fault, in words.
    pub fault: String,
}

/// Most changes of one write that are listed.
const MAX_LISTED_CHANGES: usize = 6;

/// Bytes that are read to recognise a structure.
const MAX_RECOGNIZED_BYTES: usize = 16 << 10;

impl CounterexampleLog {
    /// The story of a counterexample.
    pub fn new(trace: &Trace, found: &Counterexample) -> Self {
        let teller = StoryBuilder::new(trace);
        let begins = found.queries.first().map_or(0, |seen| seen.position.prefix);
        let mut story = CounterexampleLog { prior_op_count: begins, events: Vec::new(), fault: found.fault.clone() };
        let mut before = WriterPosition { prefix: begins, tear: Tear::None };
        for seen in &found.queries {
            for operation in before.prefix..seen.position.prefix {
                story.events.extend(teller.describe_operation(operation, Tear::None));
            }
            if seen.position.is_torn() && seen.position != before {
                story.events.extend(teller.describe_operation(seen.position.prefix, seen.position.tear));
            }
            before = seen.position;
            let what = teller.describe_query(seen.query, seen.position);
            match story.events.last_mut() {
                // The same again is told once.
                Some(CounterexampleEvent::Reader { what: last }) if *last == what => {}
                _ => story.events.push(CounterexampleEvent::Reader { what }),
            }
        }
        story
    }
}

struct StoryBuilder {
    timeline: Timeline,
    widths: Widths,
}

impl StoryBuilder {
    fn new(trace: &Trace) -> Self {
        let timeline = Timeline::new(trace.clone());
        let start = timeline.read_at_position(WriterPosition::default(), 0, Superblock::MAX_SIZE);
        let widths = Superblock::decode(&start).map(|superblock| superblock.widths).unwrap_or_default();
        StoryBuilder { timeline, widths }
    }

    fn dump_structure(&self, position: WriterPosition, at: u64, bytes: &[u8]) -> Option<Dump> {
        // Blocks of arrays name their header, with which they are understood.
        let owner = bytes
            .get(6..6 + self.widths.offset.bytes())
            .map(|field| field.iter().rev().fold(0u64, |addr, byte| addr << 8 | u64::from(*byte)));
        let header = owner.filter(|_| at != 0).map(|owner| self.timeline.read_at_position(position, owner, 256));
        let context = DumpContext { widths: self.widths, owner_header: header.as_deref(), ..DumpContext::default() };
        dump::dump_any(bytes, &context)
    }

    fn describe_operation(&self, number: u32, tear: Tear) -> Option<CounterexampleEvent> {
        let before = WriterPosition { prefix: number, tear: Tear::None };
        let (what, changes) = match self.timeline.operation(number)? {
            StorageOp::Mark(text) => (format!("({text})"), Vec::new()),
            StorageOp::Sync => ("barrier".into(), Vec::new()),
            StorageOp::SetLen(len) => (format!("the file has {len} bytes"), Vec::new()),
            StorageOp::Write { at, bytes } => {
                let after = WriterPosition { prefix: number + 1, tear: Tear::None };
                let new = self.dump_structure(after, *at, bytes);
                let old = self.timeline.read_at_position(before, *at, bytes.len());
                let old = self.dump_structure(before, *at, &old);
                let name = new.as_ref().map_or("bytes", |new| new.name);
                let changes = match (&old, &new) {
                    (Some(old), Some(new)) if old.name == new.name => changed_fields(old, new),
                    (_, Some(_)) => vec!["new".into()],
                    _ => Vec::new(),
                };
                (format!("{name} at {at:#x}, {} bytes{}", bytes.len(), visible_part_text(tear)), changes)
            }
        };
        Some(CounterexampleEvent::Writer { operation: number, what, changes })
    }

    fn describe_query(&self, query: ReaderQuery, position: WriterPosition) -> String {
        match query {
            ReaderQuery::Length => format!("asks for the length: {}", self.timeline.file_len_at(position)),
            ReaderQuery::Bytes { at, len } => {
                let bytes = self.timeline.read_at_position(position, at, len.max(MAX_RECOGNIZED_BYTES));
                let structure = self.dump_structure(position, at, &bytes);
                let found = bytes.len().min(len);
                let short = if found < len { format!(", of {len}") } else { String::new() };
                let Some(structure) = structure else { return format!("reads {found} bytes at {at:#x}{short}") };
                let broken = if position.is_torn() && structure.result.is_err() { ", half-written" } else { "" };
                format!("reads {} at {at:#x}, {found} bytes{short}{broken}", structure.name)
            }
        }
    }
}

fn visible_part_text(tear: Tear) -> String {
    match tear {
        Tear::None => String::new(),
        Tear::Cut(bytes) => format!(", of which the first {bytes} can be seen"),
        Tear::PageMask(pages) => format!(", of which the pages {pages:#b} can be seen"),
    }
}

/// The fields that differ.
fn changed_fields(old: &Dump, new: &Dump) -> Vec<String> {
    let same_shape = old.fields.len() == new.fields.len();
    let pairs = old.fields.iter().zip(&new.fields);
    let differ = pairs.filter(|(old, new)| old.value != new.value && new.field != "checksum");
    let mut lines: Vec<String> =
        differ.map(|(old, new)| format!("{}: {} -> {}", new.field, old.value, new.value)).collect();
    if !same_shape {
        lines.push(format!("{} fields, which were {}", new.fields.len(), old.fields.len()));
    }
    if lines.len() > MAX_LISTED_CHANGES {
        let more = lines.len() - MAX_LISTED_CHANGES;
        lines.truncate(MAX_LISTED_CHANGES);
        lines.push(format!("and {more} more"));
    }
    lines
}

/// Columns of the writer's side.
const WRITER_COLUMNS: usize = 64;

impl fmt::Display for CounterexampleLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<WRITER_COLUMNS$} | reader", format!("writer, after {} operations", self.prior_op_count))?;
        for line in &self.events {
            match line {
                CounterexampleEvent::Writer { operation, what, changes } => {
                    writeln!(f, "{:<WRITER_COLUMNS$} |", format!("{operation:>4} {what}"))?;
                    changes.iter().try_for_each(|change| {
                        let text: String = change.chars().take(WRITER_COLUMNS - 7).collect();
                        writeln!(f, "{:<WRITER_COLUMNS$} |", format!("       {text}"))
                    })?;
                }
                CounterexampleEvent::Reader { what } => writeln!(f, "{:<WRITER_COLUMNS$} | {what}", "")?,
            }
        }
        write!(f, "{:<WRITER_COLUMNS$} | {}", "", self.fault)
    }
}
