//! Records of CSV, each of one line or of several if it has quotes.

use std::collections::VecDeque;
use std::io::{self, BufRead};

use csv::ByteRecord;
use csv_core::ReadRecordResult;

use super::csv_dialect::BLANKS_DELIMITER;

/// The most lines that a record may have. So a stray quote does not swallow all rows behind it.
const MAX_RECORD_LINES: usize = 1000;
/// The longest record of several lines (bytes).
const MAX_RECORD_BYTES: usize = 1 << 20;
/// Bytes and fields of a record for which there is room at first.
const START: usize = 1 << 10;

/// Reads the records of CSV.
pub struct CsvRecords<R> {
    input: R,
    parser: csv_core::Reader,
    delimiter: u8,
    /// The byte that stands before a quote inside quotes, if there is one.
    escape: Option<u8>,
    /// Lines that were read and are not used yet.
    waiting: VecDeque<Vec<u8>>,
    /// The fields of the record that is being read, one behind the other.
    bytes: Vec<u8>,
    /// Where each field ends.
    ends: Vec<usize>,
}

/// A record as it came in, with a line end.
#[derive(Debug, PartialEq, Eq)]
pub struct CsvRecord {
    /// The fields, or the number of lines in which a quote was not closed. Then the text is the first line only, and
    /// the next record begins with the second one.
    pub fields_or_unclosed_quote_lines: Result<ByteRecord, usize>,
    /// The text.
    pub text: Vec<u8>,
}

impl<R: BufRead> CsvRecords<R> {
    /// Nothing was read yet.
    pub fn new(input: R, delimiter: u8, escape: Option<u8>) -> Self {
        let parser = csv_core::ReaderBuilder::new().delimiter(delimiter).build();
        CsvRecords {
            input,
            parser,
            delimiter,
            escape,
            waiting: VecDeque::new(),
            bytes: vec![0; START],
            ends: vec![0; START],
        }
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub fn next_record(&mut self) -> io::Result<Option<CsvRecord>> {
        let mut lines: Vec<Vec<u8>> = Vec::new();
        let (mut bytes, mut fields) = (0, 0);
        let mut plain = LinePlainer {
            state: FieldState::Start,
            delimiter: self.delimiter,
            escape: self.escape,
            merges: self.delimiter == BLANKS_DELIMITER,
        };
        while let Some(line) = self.line(lines.is_empty())? {
            let used = if plain.changes_lines() {
                // A record ends at the end of a line.
                self.parse(&plain.plain(&line), &mut bytes, &mut fields).map(|_| line.len())
            } else {
                self.parse(&line, &mut bytes, &mut fields)
            };
            lines.push(line);
            if let Some(used) = used {
                let rest = lines.last_mut().map(|line| line.split_off(used)).unwrap_or_default();
                self.waiting.push_front(rest);
                return Ok(Some(CsvRecord {
                    fields_or_unclosed_quote_lines: Ok(self.record(fields)),
                    text: on_a_line(lines.concat()),
                }));
            }
            if lines.len() >= MAX_RECORD_LINES || lines.iter().map(Vec::len).sum::<usize>() >= MAX_RECORD_BYTES {
                break;
            }
        }
        let count = lines.len();
        lines.drain(1.min(count)..).rev().for_each(|line| self.waiting.push_front(line));
        self.parser.reset();
        Ok(lines.pop().map(|text| CsvRecord { fields_or_unclosed_quote_lines: Err(count), text: on_a_line(text) }))
    }

    /// The next line with its end, also where the input ends without one. `skips_blank` leaves out empty ones.
    fn line(&mut self, skips_blank: bool) -> io::Result<Option<Vec<u8>>> {
        loop {
            let line = match self.waiting.pop_front() {
                Some(line) => line,
                None => match self.read_line()? {
                    Some(line) => line,
                    None => return Ok(None),
                },
            };
            let is_blank = line.iter().all(|byte| matches!(byte, b'\n' | b'\r'));
            if !is_blank || !skips_blank && !line.is_empty() {
                return Ok(Some(line));
            }
        }
    }

    /// Reads to the end of a line, which may be a carriage return alone.
    fn read_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        loop {
            let start = self.input.fill_buf()?;
            if start.is_empty() && line.is_empty() {
                return Ok(None);
            }
            let end = start.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let bytes = end.map_or(start.len(), |end| end + 1);
            line.extend_from_slice(&start[..bytes]);
            let has_ended = bytes == 0;
            self.input.consume(bytes);
            if has_ended {
                line.push(b'\n');
            }
            if has_ended || end.is_some() {
                return Ok(Some(line));
            }
        }
    }

    /// Parses a line. Returns how many of its bytes belong to the record, or `None` if the record goes on behind it.
    fn parse(&mut self, line: &[u8], bytes: &mut usize, fields: &mut usize) -> Option<usize> {
        let mut used = 0;
        while used < line.len() {
            let (found, read, written, ended) =
                self.parser.read_record(&line[used..], &mut self.bytes[*bytes..], &mut self.ends[*fields..]);
            used += read;
            *bytes += written;
            *fields += ended;
            match found {
                ReadRecordResult::Record | ReadRecordResult::End => return Some(used),
                ReadRecordResult::OutputFull => self.bytes.resize(2 * self.bytes.len(), 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
                ReadRecordResult::InputEmpty => {}
            }
        }
        None
    }

    /// The record that was parsed.
    fn record(&self, fields: usize) -> ByteRecord {
        let ends = &self.ends[..fields];
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(ends).map(|(start, end)| &self.bytes[start..*end]).collect()
    }
}

/// Where in a record a byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldState {
    /// At the start of a field.
    Start,
    /// In a field, or behind its quotes.
    Plain,
    /// Inside quotes.
    Quoted,
    /// Behind a quote inside quotes, which is their end unless there is another one.
    Quote,
}

/// Makes lines that every parser of CSV reads: with the quotes inside quotes twice, where another byte stands before them, and
/// with one delimiter in place of several that follow each other.
struct LinePlainer {
    state: FieldState,
    delimiter: u8,
    /// The byte that stands before a quote inside quotes.
    escape: Option<u8>,
    /// Whether several delimiters are one, and those at the ends of a line none.
    merges: bool,
}

impl LinePlainer {
    fn changes_lines(&self) -> bool {
        self.merges || self.escape.is_some()
    }

    /// The next line of the record. What stands behind the escaping byte and is no quote stays as it is, with that byte.
    fn plain(&mut self, line: &[u8]) -> Vec<u8> {
        let mut doubled = Vec::with_capacity(line.len() + 8);
        let mut bytes = line.iter().copied();
        while let Some(byte) = bytes.next() {
            if self.state == FieldState::Quoted && Some(byte) == self.escape {
                match bytes.next() {
                    Some(b'"') => doubled.extend(b"\"\""),
                    next => doubled.extend(std::iter::once(byte).chain(next)),
                }
                continue;
            }
            if self.merges && self.state == FieldState::Start {
                match byte {
                    byte if byte == self.delimiter => continue,
                    b'\n' | b'\r' if doubled.last() == Some(&self.delimiter) => drop(doubled.pop()),
                    _ => {}
                }
            }
            self.state = match (self.state, byte) {
                (FieldState::Start | FieldState::Quote, b'"') => FieldState::Quoted,
                (FieldState::Quoted, b'"') => FieldState::Quote,
                (FieldState::Quoted, _) => FieldState::Quoted,
                (_, byte) if byte == self.delimiter => FieldState::Start,
                _ => FieldState::Plain,
            };
            doubled.push(byte);
        }
        doubled
    }
}

/// A text with a line feed at its end, whatever ended it.
fn on_a_line(mut text: Vec<u8>) -> Vec<u8> {
    if text.last() == Some(&b'\r') {
        text.pop();
    }
    if text.last() != Some(&b'\n') {
        text.push(b'\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The records, each with its fields and a bar between them, and its text; or of how many lines an odd one is.
    fn records(input: &str) -> Vec<(String, String)> {
        records_with(input, None)
    }

    fn records_with(input: &str, escape: Option<u8>) -> Vec<(String, String)> {
        records_between(b',', input, escape)
    }

    fn records_between(delimiter: u8, input: &str, escape: Option<u8>) -> Vec<(String, String)> {
        let mut records = CsvRecords::new(input.as_bytes(), delimiter, escape);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let mut found = Vec::new();
        while let Some(record) = records.next_record().unwrap() {
            let fields = record.fields_or_unclosed_quote_lines.map_or_else(
                |lines| format!("{lines} lines"),
                |fields| fields.iter().map(text).collect::<Vec<_>>().join("|"),
            );
            found.push((fields, text(&record.text)));
        }
        found
    }

    #[test]
    fn several_blanks_are_one_and_empty_quotes_are_a_field() {
        for escape in [None, Some(b'\\')] {
            let found =
                records_between(BLANKS_DELIMITER, "x \"\" 1  up\n  \"\" y   2 \"a  b\" \r\nx \"\" 3 \"\"\n", escape);
            let fields: Vec<_> = found.iter().map(|(fields, _)| fields.as_str()).collect();
            assert_eq!(fields, ["x||1|up", "|y|2|a  b", "x||3|"], "{escape:?}");
        }
    }

    fn fields(input: &str) -> Vec<String> {
        records(input).into_iter().map(|(fields, _)| fields).collect()
    }

    #[test]
    fn lines_end_in_any_way_and_empty_ones_are_left_out() {
        for end in ["\n", "\r\n", "\r"] {
            assert_eq!(fields(&["a,b", "", "1,", ",2"].join(end)), ["a|b", "1|", "|2"], "{end:?}");
        }
        assert_eq!(fields(""), Vec::<String>::new());
        assert_eq!(fields("\n\r\n"), Vec::<String>::new());
    }

    #[test]
    fn quotes_hold_separators_and_lines() {
        let input = "\"a,\"\"b\",c\n\"x\r\n\ny\",z\n1,q\"r\"s\n";
        let texts = ["\"a,\"\"b\",c\n", "\"x\r\n\ny\",z\n", "1,q\"r\"s\n"];
        let wanted = ["a,\"b|c", "x\r\n\ny|z", "1|q\"r\"s"];
        let wanted: Vec<_> = wanted.into_iter().zip(texts).map(|(f, t)| (f.to_owned(), t.to_owned())).collect();
        assert_eq!(records(input), wanted);
        let long = format!("\"{}\",1\n", "x\n".repeat(MAX_RECORD_LINES - 1));
        assert_eq!(fields(&long).len(), 1);
        let wide = format!("{}\n", vec!["ab"; 3 * START].join(","));
        assert_eq!(fields(&wide)[0].len(), 9 * START - 1);
    }

    #[test]
    fn a_quote_may_stand_behind_another_byte() {
        let input = "1,\"a \\\"b\\\", c\",2\n\"\\\\\",\"\\x16\",\\\"\n\"x\\\"\ny\"\"\",5\\\",z\n";
        let wanted = ["1|a \"b\", c|2", "\\\\|\\x16|\\\"", "x\"\ny\"|5\\\"|z"];
        let found = records_with(input, Some(b'\\'));
        assert_eq!(found.iter().map(|(fields, _)| &**fields).collect::<Vec<_>>(), wanted);
        assert_eq!(found.into_iter().map(|(_, text)| text).collect::<String>(), input);
    }

    #[test]
    fn a_quote_that_is_not_closed_takes_its_line_only() {
        assert_eq!(
            records("a,b\n1,\"open\n2,x\n3,y"),
            [("a|b", "a,b\n"), ("3 lines", "1,\"open\n"), ("2|x", "2,x\n"), ("3|y", "3,y\n")]
                .map(|(f, t)| (f.to_owned(), t.to_owned()))
        );
        let input = format!("\"\n{}", "1,2\n".repeat(MAX_RECORD_LINES));
        let found = fields(&input);
        assert_eq!((&*found[0], &*found[1], found.len()), ("1000 lines", "1|2", MAX_RECORD_LINES + 1));
        let input = format!("\"{}\n1\n", "x".repeat(MAX_RECORD_BYTES));
        assert_eq!(fields(&input), ["1 lines", "1"]);
    }
}
