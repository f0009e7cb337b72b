//! The thread that reads standard input, so that the one that writes the file never waits for it for long.

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use super::csv_dialect::CsvOptions;
use super::csv_rows;
use super::input::{InputColumns, InputError, InputEvent, InputEventSender};
use super::input_cell::InputCell;
use super::json_rows::{self, NewKeyPolicy};
use super::look_ahead_input::{LookAheadDecision, LookAheadInput};
use super::row_error::RowError;
use super::text_decoder::TextDecoder;

/// Rows that may be read ahead of the file.
const MAX_ROWS_AHEAD: usize = 4096;

/// Memory for a frame before it is known that there is one (bytes).
const START: usize = 1 << 20;

/// The most blank text before the rows that is read before their format is guessed (bytes).
const MAX_BLANK_BYTES: usize = 1 << 20;

/// The format of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputReaderFormat {
    /// CSV.
    Csv(CsvOptions),
    /// Rows of JSON: an object or an array per line, or one array of them.
    Json(NewKeyPolicy),
    /// Lines of text.
    Lines,
    /// JSON if the input begins so, and otherwise CSV.
    Guess(CsvOptions, NewKeyPolicy),
    /// Frames of this many bytes.
    FramesOfSize(usize),
}

/// Starts to read. The channel ends with the input, and when it rests after `interrupted` was set. `keeps_raw_text` says whether
/// rows are handed on as they came in, too; `row_nesting_depth`, how deep the arrays are that are rows of JSON (0 if rows have columns).
pub fn spawn_input_reader(
    format: InputReaderFormat,
    keeps_raw_text: bool,
    row_nesting_depth: usize,
    input: impl Read + Send + 'static,
    interrupted: Arc<AtomicBool>,
) -> Receiver<InputEvent> {
    let (sender, receiver) = sync_channel(MAX_ROWS_AHEAD);
    thread::spawn(move || {
        let ended = match format {
            InputReaderFormat::FramesOfSize(size) => {
                frames(size, BufReader::with_capacity(1 << 20, input), &InputEventSender::new(&sender, keeps_raw_text))
            }
            format => read(
                format,
                LookAheadInput::start(TextDecoder::new(input), interrupted),
                keeps_raw_text,
                row_nesting_depth,
                &sender,
            ),
        };
        if let Err(error) = ended {
            // Nobody listens any more if the file has failed.
            let _ = sender.send(InputEvent::Failed(error));
        }
    });
    receiver
}

fn read(
    format: InputReaderFormat,
    mut input: LookAheadInput,
    keeps_text: bool,
    row_rank: usize,
    sender: &SyncSender<InputEvent>,
) -> Result<(), InputError> {
    let mut out = InputEventSender::new(sender, keeps_text).with_row_nesting_depth(row_rank);
    match format {
        InputReaderFormat::Csv(options) => csv_rows::read_csv_rows(options, input, &mut out),
        InputReaderFormat::Json(new_keys) => json_rows::read_json_rows(input, new_keys, &mut out),
        InputReaderFormat::Lines => lines(input, &mut out),
        InputReaderFormat::Guess(options, new_keys) => {
            // Blank lines may come first, and later the rest.
            let is_blank = |start: &[u8]| start.len() < MAX_BLANK_BYTES && start.trim_ascii().is_empty();
            let more = |start: &[u8]| {
                if is_blank(start) { LookAheadDecision::Wait } else { LookAheadDecision::Enough }
            };
            input.look_ahead(Duration::ZERO, more);
            if json_rows::looks_like_json_rows(input.fill_buf()?) {
                json_rows::read_json_rows(input, new_keys, &mut out)
            } else {
                csv_rows::read_csv_rows(options, input, &mut out)
            }
        }
        InputReaderFormat::FramesOfSize(size) => frames(size, input, &out),
    }
}

/// Hands on lines, each as a row of one text.
fn lines(mut input: impl BufRead, out: &mut InputEventSender<'_>) -> Result<(), InputError> {
    let mut listens = out.send_columns(InputColumns { names: vec!["line".to_owned()], ..InputColumns::default() });
    let mut bytes = Vec::new();
    while listens && input.read_until(b'\n', &mut bytes)? > 0 {
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let line = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line));
        let cells = line.map(|line| vec![InputCell::Text(line.to_owned())]);
        listens = out.send_row(cells.map_err(|source| RowError::NotUtf8 { column: 1, source }), || bytes.clone());
        bytes.clear();
    }
    Ok(())
}

/// Hands on frames. The last one is short if the input ends within it.
fn frames(size: usize, mut input: impl BufRead, out: &InputEventSender<'_>) -> Result<(), InputError> {
    loop {
        // As much memory as there is input, whatever the size.
        let mut bytes = Vec::with_capacity(size.min(START));
        let found = input.by_ref().take(size as u64).read_to_end(&mut bytes)?;
        if found == 0 || !out.send_frame(bytes) || found < size {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv_dialect::QuoteEscape;
    use crate::input::InputRow;

    const CSV: CsvOptions = CsvOptions {
        delimiter: None,
        may_have_header: true,
        skipped_lines: None,
        forces_decimal_comma: false,
        quote_escape: QuoteEscape::DependsOnDelimiter,
    };

    fn events(format: InputReaderFormat, input: &str) -> Vec<InputEvent> {
        spawn_input_reader(format, true, 0, std::io::Cursor::new(input.to_owned()), Arc::default())
            .into_iter()
            .collect()
    }

    /// What came in: names and cells as texts, or why a row has none.
    fn all(format: InputReaderFormat, input: &str) -> Vec<String> {
        let cell = |cell: &InputCell| match cell {
            InputCell::Empty => "-".to_owned(),
            InputCell::List(_) | InputCell::Object(_) => format!("{cell:?}"),
            InputCell::Untyped(text) => text.clone(),
            InputCell::DecimalComma(text, number) => format!("{text}={number}"),
            InputCell::Text(text) => format!("{text:?}"),
            InputCell::AmbiguousPoint(text) => format!("{text}?"),
        };
        let shown = |event| match event {
            InputEvent::Columns(columns) => columns.names.join("|"),
            InputEvent::Preamble(text) => format!("before: {text:?}"),
            InputEvent::Row(row) => match row.cells {
                Ok(cells) => cells.iter().map(cell).collect::<Vec<_>>().join("|"),
                Err(error) => format!("row {}: {error}", row.row_number),
            },
            InputEvent::Frame(bytes) => format!("{bytes:?}"),
            InputEvent::Failed(error) => format!("failed: {error}"),
        };
        events(format, input).into_iter().map(shown).collect()
    }

    #[test]
    fn csv_yields_its_header_and_rows() {
        assert_eq!(all(InputReaderFormat::Csv(CSV), "t, v\n1,\"a,\nb\"\n,x\n1\n"), ["t|v", "1|a,\nb", "-|x", "1"]);
        assert_eq!(all(InputReaderFormat::Csv(CSV), ""), ["failed: no header line"]);
        let skipping = CsvOptions { may_have_header: false, skipped_lines: Some(2), ..CSV };
        assert_eq!(all(InputReaderFormat::Csv(skipping), "scope\n\n1;2,5\n"), ["c0|c1", "1|2,5=2.5"]);
    }

    #[test]
    fn lines_before_the_header_are_handed_on_by_themselves() {
        let csv = |text: &str| all(InputReaderFormat::Csv(CSV), text);
        assert_eq!(
            csv("\u{feff}# a scope\r\n# 5 GS/s\r\nt,v\r\n0,1\r\n"),
            ["before: \"# a scope\\r\\n# 5 GS/s\\r\\n\"", "t|v", "0|1"]
        );
        assert_eq!(csv("# by numpy\n# t v\n0 1\n1 2\n"), ["before: \"# by numpy\\n\"", "t|v", "0|1", "1|2"]);
        assert_eq!(csv("#,v\n0,1\n"), ["#|v", "0|1"]);
        assert_eq!(csv("# no names\n0,1\n"), ["before: \"# no names\\n\"", "c0|c1", "0|1"]);
        assert_eq!(
            csv("Model,X\nStep,2,s\nt,v\n0,1\n2,1\n"),
            ["before: \"Model,X\\nStep,2,s\\n\"", "t|v", "0|1", "2|1"]
        );
        let skipping = InputReaderFormat::Csv(CsvOptions { skipped_lines: Some(0), ..CSV });
        assert_eq!(all(skipping, "# a\n1\n")[0], "# a");
    }

    #[test]
    fn names_that_are_not_utf_8_are_refused() {
        let events: Vec<_> =
            spawn_input_reader(InputReaderFormat::Csv(CSV), false, 0, &b"Gr\xF6\xDFe\n1\n"[..], Arc::default())
                .into_iter()
                .collect();
        let InputEvent::Failed(error) = &events[0] else { panic!("{events:?}") };
        assert!(error.to_string().starts_with("the names of the columns are not UTF-8"), "{error}");
    }

    #[test]
    fn numbers_with_a_point_between_decimal_commas_are_not_clear() {
        assert_eq!(
            all(InputReaderFormat::Csv(CSV), "a;b\n1,5;1.234,5\n1.234;2.5\n"),
            ["a|b", "1,5=1.5|1.234,5=1234.5", "1.234?|2.5"]
        );
        // A point comes first.
        let start = format!("a;b\n{}", "2.125;x\n".repeat(300));
        assert_eq!(all(InputReaderFormat::Csv(CSV), &format!("{start}1,5;x\n")).last().unwrap(), "1,5|x");
    }

    #[test]
    fn lines_are_rows_of_one_text() {
        assert_eq!(all(InputReaderFormat::Lines, "\u{feff}a,b\r\n\n1"), ["line", "\"a,b\"", "\"\"", "\"1\""]);
    }

    #[test]
    fn what_rows_look_like_is_told_by_how_they_begin() {
        assert_eq!(all(InputReaderFormat::Guess(CSV, NewKeyPolicy::ErrorAfterFirstRows), "a\n1\n"), ["a", "1"]);
        assert_eq!(
            all(InputReaderFormat::Guess(CSV, NewKeyPolicy::ErrorAfterFirstRows), "[s],[V]\n1,2\n"),
            ["[s]|[V]", "1|2"]
        );
        assert_eq!(
            all(InputReaderFormat::Guess(CSV, NewKeyPolicy::ErrorAfterFirstRows), "\n {\"a\": 1}\n"),
            ["a", "1"]
        );
        assert_eq!(
            all(InputReaderFormat::Guess(CSV, NewKeyPolicy::ErrorAfterFirstRows), "\u{feff}[{\"a\": 1}]"),
            ["a", "1"]
        );
        let blank = format!("{}{{\"a\": 1}}\n", "\n".repeat(300_000));
        assert_eq!(all(InputReaderFormat::Guess(CSV, NewKeyPolicy::ErrorAfterFirstRows), &blank), ["a", "1"]);
        assert_eq!(
            all(InputReaderFormat::Guess(CSV, NewKeyPolicy::ErrorAfterFirstRows), ""),
            ["failed: no header line"]
        );
    }

    #[test]
    fn an_array_of_rows_is_as_good_as_lines() {
        let rows = ["a|b", "1|\"x\"", "-|\"y\""];
        assert_eq!(
            all(
                InputReaderFormat::Json(NewKeyPolicy::ErrorAfterFirstRows),
                "{\"a\": 1, \"b\": \"x\"}\n{\"b\": \"y\"}\n"
            ),
            rows
        );
        assert_eq!(
            all(
                InputReaderFormat::Json(NewKeyPolicy::ErrorAfterFirstRows),
                "[{\"a\": 1, \"b\": \"x\"},\n {\"b\": \"y\", \"a\": null}\n]\n"
            ),
            rows
        );
        assert_eq!(
            all(
                InputReaderFormat::Json(NewKeyPolicy::ErrorAfterFirstRows),
                "{\"a\": 1, \"b\": \"x\"}{\n\"b\":\n\"y\"}"
            ),
            rows
        );
        assert_eq!(
            all(InputReaderFormat::Json(NewKeyPolicy::ErrorAfterFirstRows), "[1, \"x\"]\n[null, \"y\"]\n"),
            ["c0|c1", "1|\"x\"", "-|\"y\""]
        );
        assert_eq!(
            all(InputReaderFormat::Json(NewKeyPolicy::ErrorAfterFirstRows), "[[1, \"x\"], [null, \"y\"]]"),
            ["c0|c1", "1|\"x\"", "-|\"y\""]
        );
        assert_eq!(all(InputReaderFormat::Json(NewKeyPolicy::ErrorAfterFirstRows), "[]"), Vec::<String>::new());
    }

    #[test]
    fn numbers_come_as_they_are_written() {
        let numbers = "{\"a\": 9007199254740993, \"b\": 18446744073709551616, \"c\": 0.10000000000000000001}";
        assert_eq!(
            all(InputReaderFormat::Json(NewKeyPolicy::ErrorAfterFirstRows), numbers)[1],
            "9007199254740993|18446744073709551616|0.10000000000000000001"
        );
    }

    #[test]
    fn a_new_key_is_left_out_on_demand() {
        let lines = "{\"a\": 1}\n{\"b\": [7], \"a\": 2}\n";
        assert_eq!(all(InputReaderFormat::Json(NewKeyPolicy::Ignore), lines), ["a", "1", "2"]);
    }

    #[test]
    fn a_new_key_is_handed_on_by_its_name() {
        let lines = "{\"a\": 1}\n{\"b\": 7, \"a\": 2, \"c\": null}\n";
        let new_keys = |rule| {
            let events = events(InputReaderFormat::Json(rule), lines);
            let InputEvent::Row(row) = &events[2] else { panic!("{events:?}") };
            assert_eq!(row.cells.as_ref().unwrap(), &[InputCell::Untyped("2".into())]);
            row.new_keys.clone()
        };
        let b = ("b".to_owned(), InputCell::Untyped("7".into()));
        assert_eq!(new_keys(NewKeyPolicy::DatasetPerKey), std::slice::from_ref(&b));
        // It may become a column.
        assert_eq!(new_keys(NewKeyPolicy::ErrorAfterFirstRows), [b, ("c".to_owned(), InputCell::Empty)]);
    }

    #[test]
    fn objects_in_objects_are_flattened() {
        let rows = "{\"t\": 1, \"p\": {\"x\": 2, \"y\": {\"z\": 3}}}\n{\"t\": 2, \"p\": null}\n";
        assert_eq!(
            all(InputReaderFormat::Json(NewKeyPolicy::ErrorAfterFirstRows), rows),
            ["t|p.x|p.y.z", "1|2|3", "2|-|-"]
        );
    }

    #[test]
    fn a_row_with_two_values_of_a_key_is_told() {
        let rows = ["{\"a\": 1}", "{\"a\": 2, \"a\": 3}", "{\"a\": 4}"];
        let want = ["a", "1", "row 2: \"a\" is there twice", "4"];
        assert_eq!(all(InputReaderFormat::Json(NewKeyPolicy::ErrorAfterFirstRows), &rows.join("\n")), want);
        assert_eq!(
            all(InputReaderFormat::Json(NewKeyPolicy::ErrorAfterFirstRows), &format!("[{}]", rows.join(","))),
            want
        );
        assert_eq!(
            all(InputReaderFormat::Json(NewKeyPolicy::ErrorAfterFirstRows), "{\"a\": {\"b\": 1, \"b\": 2}}"),
            ["row 1: \"a.b\" is there twice"]
        );
    }

    #[test]
    fn a_line_that_is_no_row_is_told_and_the_next_ones_are_read() {
        let lines = "{\"a\"\n{\"a\": 1}\n{\"a\": 0, \"b\": 1, \"b\": 2}\n{\"a\": [1]}\n7\n{\"a\": 2\n{\"a\": 3}\n";
        let found = all(InputReaderFormat::Json(NewKeyPolicy::ErrorAfterFirstRows), lines);
        assert!(found[0].starts_with("row 1: not valid JSON: EOF while parsing an object"), "{}", found[0]);
        assert_eq!(found[1..3], ["a", "1"]);
        assert_eq!(found[3], "row 3: \"b\" is there twice");
        assert_eq!(found[4], "List([Untyped(\"1\")])");
        assert_eq!(found[5], "row 5: neither an object nor an array with values");
        assert!(found[6].starts_with("row 6: not valid JSON: EOF while parsing an object"), "{}", found[6]);
        assert_eq!(found[7], "3");
    }

    #[test]
    fn an_array_with_a_fault_ends_there() {
        let found =
            all(InputReaderFormat::Json(NewKeyPolicy::ErrorAfterFirstRows), "[{\"a\": 1}, {\"a\" 2}, {\"a\": 3}]");
        assert_eq!(found[..2], ["a", "1"]);
        assert!(found[2].ends_with("; the rest of the array cannot be read"), "{}", found[2]);
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn rows_are_handed_on_as_they_came_in() {
        let texts = |format, input| {
            let text = |event| match event {
                InputEvent::Columns(InputColumns { header: text, .. })
                | InputEvent::Row(InputRow { raw_text_if_kept: text, .. }) => text,
                _ => Vec::new(),
            };
            String::from_utf8(events(format, input).into_iter().flat_map(text).collect()).unwrap()
        };
        assert_eq!(
            texts(InputReaderFormat::Guess(CSV, NewKeyPolicy::ErrorAfterFirstRows), "a;b\n1;\"x;y\"\n3\n"),
            "a;b\n1;\"x;y\"\n3\n"
        );
        assert_eq!(
            texts(InputReaderFormat::Guess(CSV, NewKeyPolicy::ErrorAfterFirstRows), "{\"a\": 1}\n{\"a\n{\"b\": 2}"),
            "{\"a\": 1}\n{\"a\n{\"b\": 2}\n"
        );
    }

    #[test]
    fn csv_that_is_no_text_names_the_field() {
        let events: Vec<_> =
            spawn_input_reader(InputReaderFormat::Csv(CSV), false, 0, &b"a,b\n1,\xFF\n2,x\n"[..], Arc::default())
                .into_iter()
                .collect();
        let InputEvent::Row(InputRow { row_number: 1, cells: Err(error), .. }) = &events[1] else {
            panic!("{events:?}")
        };
        assert!(error.to_string().starts_with("field 2 is not valid UTF-8: "), "{error}");
        assert!(matches!(&events[2], InputEvent::Row(InputRow { row_number: 2, cells: Ok(_), .. })));
    }

    #[test]
    fn the_last_frame_may_be_short() {
        assert_eq!(all(InputReaderFormat::FramesOfSize(2), "abcde"), ["[97, 98]", "[99, 100]", "[101]"]);
    }
}
