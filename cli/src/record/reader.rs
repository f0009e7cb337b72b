//! The thread that reads standard input, so that the one that writes the file never waits for it for long.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use crate::error::Error;

use super::input::{CsvRows, InputError, NdjsonRows, RowInput};
use super::row::InputCell;

/// Rows that may be read ahead of the file.
const MAX_ROWS_AHEAD: usize = 4096;

/// Memory for a frame before it is known that there is one (bytes).
const START: usize = 1 << 20;

/// An event of the input.
#[derive(Debug)]
pub enum InputEvent {
    /// The names of the columns; comes first.
    Columns(Vec<String>),
    /// A row.
    Row(Vec<InputCell>),
    /// A frame.
    Frame(Vec<u8>),
    /// The input cannot be understood from here on.
    Failed(Error),
}

/// The format of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// CSV with a header line; the fields are separated by this byte.
    Csv(u8),
    /// A JSON object per line.
    Ndjson,
    /// NDJSON if the first character is a brace, and otherwise CSV with this byte between fields.
    Text(u8),
    /// Frames of this many bytes.
    Raw(usize),
}

/// Starts to read. The channel ends with the input.
pub fn start(format: Format, input: impl Read + Send + 'static) -> Receiver<InputEvent> {
    let (sender, receiver) = sync_channel(MAX_ROWS_AHEAD);
    thread::spawn(move || {
        let input = BufReader::with_capacity(1 << 20, input);
        if let Err(error) = read(format, input, &sender) {
            // Nobody listens any more if the file has failed.
            let _ = sender.send(InputEvent::Failed(error));
        }
    });
    receiver
}

fn read(format: Format, mut input: impl BufRead + Send, sender: &SyncSender<InputEvent>) -> Result<(), Error> {
    match format {
        Format::Csv(delimiter) => rows(CsvRows::new(input, delimiter), sender),
        Format::Ndjson => rows(NdjsonRows::new(input), sender),
        Format::Text(delimiter) => {
            let start = input.fill_buf().map_err(InputError::Read)?.trim_ascii_start();
            let format = if start.starts_with(b"{") { Format::Ndjson } else { Format::Csv(delimiter) };
            read(format, input, sender)
        }
        Format::Raw(size) => frames(size, input, sender),
    }
}

fn rows(rows: Result<impl RowInput, InputError>, sender: &SyncSender<InputEvent>) -> Result<(), Error> {
    let mut rows = rows?;
    let mut listening = sender.send(InputEvent::Columns(rows.names().to_vec())).is_ok();
    while listening {
        match rows.next_row() {
            None => return Ok(()),
            Some(row) => listening = sender.send(InputEvent::Row(row?)).is_ok(),
        }
    }
    Ok(())
}

fn frames(size: usize, mut input: impl BufRead, sender: &SyncSender<InputEvent>) -> Result<(), Error> {
    for frame in 1.. {
        // As much memory as there is input, whatever the size.
        let mut bytes = Vec::with_capacity(size.min(START));
        let found = input.by_ref().take(size as u64).read_to_end(&mut bytes).map_err(InputError::Read)?;
        if found == 0 {
            break;
        }
        if found < size {
            return Err(Error::Frame { frame, found, expected: size });
        }
        if sender.send(InputEvent::Frame(bytes)).is_err() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(format: Format, input: &'static [u8]) -> Vec<String> {
        start(format, input).into_iter().map(|event| format!("{event:?}")).collect()
    }

    #[test]
    fn rows_come_after_their_columns() {
        assert_eq!(
            all(Format::Csv(b';'), b"a;b\n1;2\n"),
            ["Columns([\"a\", \"b\"])", "Row([Plain(\"1\"), Plain(\"2\")])"]
        );
        assert_eq!(all(Format::Ndjson, b"{\"a\": 1}\n"), ["Columns([\"a\"])", "Row([Plain(\"1\")])"]);
    }

    #[test]
    fn what_rows_look_like_is_told_by_their_first_character() {
        assert_eq!(all(Format::Text(b','), b"a\n1\n"), all(Format::Csv(b','), b"a\n1\n"));
        assert_eq!(all(Format::Text(b','), b"\n {\"a\": 1}\n"), all(Format::Ndjson, b"{\"a\": 1}\n"));
        assert_eq!(all(Format::Text(b','), b""), ["Failed(Input(NoHeader))"]);
    }

    #[test]
    fn frames_are_whole_or_refused_by_number() {
        let events = all(Format::Raw(2), &[1, 2, 3, 4, 5]);
        assert_eq!(events[..2], ["Frame([1, 2])", "Frame([3, 4])"]);
        assert_eq!(events[2], "Failed(Frame { frame: 3, found: 1, expected: 2 })");
    }

    #[test]
    fn an_input_that_fails_says_so_after_what_was_good() {
        let events = all(Format::Ndjson, b"{\"a\": 1}\n{\n");
        assert_eq!(events.len(), 3);
        assert!(events[2].starts_with("Failed(Input(Json { row: 2"), "{}", events[2]);
        assert_eq!(all(Format::Csv(b','), b""), ["Failed(Input(NoHeader))"]);
    }
}
