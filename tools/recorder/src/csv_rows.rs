//! Rows of CSV.

use std::collections::HashSet;
use std::io::{BufRead, Read as _};
use std::time::Duration;

use csv::ByteRecord;

use super::csv_dialect::{self, CsvDialect, CsvOptions, DecimalStyle, MAX_SNIFFED_LINES};
use super::csv_records::{CsvRecord, CsvRecords};
use super::input::{HeaderDoubt, InputColumns, InputError, InputEventSender, VALUE_COLUMN_NAME, numbered_column_names};
use super::input_cell::InputCell;
use super::look_ahead_input::{LookAheadDecision, LookAheadInput};
use super::row_error::RowError;

/// The longest text before the header that is kept (bytes).
const MAX_PREAMBLE_BYTES: usize = 1 << 20;

/// How long more lines are waited for before it is decided how rows are written, from when the first row may be there. The
/// types of the columns are decided a second after that: until then the other rows must have come to where this is done.
const DIALECT_TIME: Duration = Duration::from_millis(800);

/// Reads rows to the end, or until nobody listens any more.
///
/// # Errors
/// [`InputError`] if there is no line, if the names of the columns are not UTF-8, or if the input cannot be read.
pub fn read_csv_rows(
    options: CsvOptions,
    mut input: LookAheadInput,
    out: &mut InputEventSender<'_>,
) -> Result<(), InputError> {
    for _ in 0..options.skipped_lines.unwrap_or(0) {
        input.skip_until(b'\n')?;
    }
    let mut comments = if options.skipped_lines.is_none() { read_comments(&mut input)? } else { Vec::new() };
    // Without a row, there is nothing that could be stored: a preamble may come as slowly as it likes.
    let header_lines = usize::from(options.may_have_header && comments.is_empty());
    out.set_first_row_time(input.look_ahead(DIALECT_TIME, |start| judge_start(start, header_lines)));
    let header = commented_header(&mut comments, input.buffered(), &options);
    let mut preamble = comments.concat();
    let dialect = CsvDialect::sniff(&[&header, input.buffered()].concat(), &options);
    let mut input = header.chain(input);
    for _ in 0..dialect.preamble_lines_after_comments {
        input.by_ref().take(MAX_PREAMBLE_BYTES as u64).read_until(b'\n', &mut preamble)?;
    }
    let listens = preamble.is_empty() || out.send_preamble(text_of(preamble));
    if listens { read_rows(dialect, input, out) } else { Ok(()) }
}

/// Whether these bytes are enough to tell how rows are written. Rows may come behind `header_lines`.
fn judge_start(start: &[u8], header_lines: usize) -> LookAheadDecision {
    let whole = start.iter().rposition(|byte| *byte == b'\n').map_or(&[][..], |end| &start[..end]);
    let lines = whole.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    match lines.take(MAX_SNIFFED_LINES).count() {
        MAX_SNIFFED_LINES => LookAheadDecision::Enough,
        _ if start.len() >= MAX_PREAMBLE_BYTES => LookAheadDecision::Enough,
        lines if lines > header_lines => LookAheadDecision::WaitForLimitedTime,
        _ => LookAheadDecision::Wait,
    }
}

/// The lines at the start that begin with `#`, and blank ones between them.
fn read_comments(input: &mut impl BufRead) -> Result<Vec<Vec<u8>>, InputError> {
    let mut comments = Vec::new();
    let mut bytes = 0;
    while bytes < MAX_PREAMBLE_BYTES && input.fill_buf()?.starts_with(b"#") {
        let mut line = Vec::new();
        input.take(MAX_PREAMBLE_BYTES as u64).read_until(b'\n', &mut line)?;
        bytes += line.len();
        comments.push(line);
    }
    Ok(comments)
}

/// Takes the last comment away if it is the header, and returns it without its marks; otherwise nothing.
fn commented_header(comments: &mut Vec<Vec<u8>>, start: &[u8], options: &CsvOptions) -> Vec<u8> {
    let Some(last) = comments.last() else { return Vec::new() };
    let marks = last.iter().take_while(|byte| **byte == b'#').count();
    let names = &last[marks..];
    // A column may be called `#`.
    let is_name = names.first().is_some_and(|byte| [b',', b';', b'\t', b'|'].contains(byte)) && comments.len() == 1;
    let header = if is_name { last.clone() } else { names.trim_ascii_start().to_vec() };
    if options.may_have_header && (is_name || csv_dialect::is_commented_header(&header, start, options)) {
        comments.pop();
        return header;
    }
    Vec::new()
}

/// A text that is UTF-8, or else Latin-1.
fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| error.into_bytes().into_iter().map(char::from).collect())
}

fn read_rows(dialect: CsvDialect, input: impl BufRead, out: &mut InputEventSender<'_>) -> Result<(), InputError> {
    let CsvDialect { delimiter, has_header, mut decimals, escape, .. } = dialect;
    let mut records = CsvRecords::new(input, delimiter, escape);
    let mut next = || -> Result<Option<CsvRecord>, InputError> { Ok(records.next_record()?) };
    let first = next()?.ok_or(InputError::EmptyInput)?;
    let is_one_value = out.row_nesting_depth() == 1;
    let names_of_row = |names: Vec<String>| {
        if is_one_value { (vec![VALUE_COLUMN_NAME.to_owned()], names) } else { (names, Vec::new()) }
    };
    let (mut record, columns) = match first.fields_or_unclosed_quote_lines {
        Ok(fields) if has_header => {
            let names = names(&fields)?;
            let (columns, doubt) = (names.len(), header_doubt(&fields));
            let (names, unused_names) = names_of_row(names);
            let listens = out.send_columns(InputColumns {
                names,
                header_names_left_out: unused_names,
                header: first.text,
                doubt,
                ..InputColumns::default()
            });
            (if listens { next()? } else { None }, columns)
        }
        Err(_) if has_header => return Err(InputError::UnclosedHeaderQuote),
        fields => {
            let columns = fields.as_ref().map_or(1, ByteRecord::len);
            let (names, _) = names_of_row(numbered_column_names(columns));
            let listens = out.send_columns(InputColumns { names, is_numbered: true, ..InputColumns::default() });
            (listens.then_some(CsvRecord { fields_or_unclosed_quote_lines: fields, text: first.text }), columns)
        }
    };
    while let Some(CsvRecord { fields_or_unclosed_quote_lines: fields, text }) = record {
        let fields = fields.map(|fields| without_trailing_separator(fields, columns));
        let cells =
            fields.map_or_else(|lines| Err(RowError::UnclosedQuote { lines }), |fields| cells(&fields, &mut decimals));
        let cells = cells.map(|cells| if is_one_value { vec![InputCell::List(cells)] } else { cells });
        record = if out.send_row(cells, || text) { next()? } else { None };
    }
    Ok(())
}

/// A row without the empty field that a separator at its end makes, where the columns end without one.
fn without_trailing_separator(mut fields: ByteRecord, columns: usize) -> ByteRecord {
    if fields.len() == columns + 1 && fields.get(columns) == Some(b"") {
        fields.truncate(columns);
    }
    fields
}

/// The names of a header line. A column without a name is numbered, and a name that is taken gets a number.
fn names(header: &ByteRecord) -> Result<Vec<String>, InputError> {
    let (mut names, mut taken) = (Vec::new(), HashSet::new());
    for (i, name) in header.iter().enumerate() {
        let name = std::str::from_utf8(name).map_err(InputError::HeaderNotUtf8)?.trim().to_owned();
        let name = if name.is_empty() { format!("c{i}") } else { name };
        let free = |name: &String| !taken.contains(name);
        let numbered = (2u64..).map(|n| format!("{name}_{n}"));
        let name = std::iter::once(name.clone()).chain(numbered).find(free).unwrap_or_default();
        taken.insert(name.clone());
        names.push(name);
    }
    Ok(names)
}

/// Words from which on a line with a single name looks like a line of a log.
const SENTENCE_WORDS: usize = 4;

/// What makes a line with names look like a row.
fn header_doubt(header: &ByteRecord) -> Option<HeaderDoubt> {
    let names = header.iter().map(|name| String::from_utf8_lossy(name).trim().to_owned());
    let names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
    if let Some(number) = names.iter().find(|name| csv_dialect::is_number(name)) {
        return Some(HeaderDoubt::NumericName(number.clone()));
    }
    let mut before = HashSet::new();
    let twice = names.iter().find(|name| !before.insert(*name));
    let is_sentence = header.len() == 1 && names.iter().any(|name| name.split_whitespace().count() >= SENTENCE_WORDS);
    twice.map(|name| HeaderDoubt::RepeatedName(name.clone())).or(is_sentence.then_some(HeaderDoubt::Sentence))
}

fn cells(record: &ByteRecord, decimals: &mut DecimalStyle) -> Result<Vec<InputCell>, RowError> {
    let cell = |(column, bytes): (usize, &[u8])| match std::str::from_utf8(bytes) {
        Ok("") => Ok(InputCell::Empty),
        Ok(text) => Ok(cell(text, decimals)),
        Err(source) => Err(RowError::NotUtf8 { column: column + 1, source }),
    };
    record.iter().enumerate().map(cell).collect()
}

/// A cell with a text. The first number that is clear decides how the fractions of all others are written.
fn cell(text: &str, decimals: &mut DecimalStyle) -> InputCell {
    if *decimals == DecimalStyle::Point {
        return InputCell::Untyped(text.to_owned());
    }
    if let Some(number) = csv_dialect::decimal_comma_to_point(text) {
        *decimals = DecimalStyle::Comma;
        return InputCell::DecimalComma(text.to_owned(), number);
    }
    match (csv_dialect::has_grouping_points(text), *decimals) {
        (true, DecimalStyle::Comma) => InputCell::AmbiguousPoint(text.to_owned()),
        (true, _) => {
            *decimals = DecimalStyle::Point;
            InputCell::Untyped(text.to_owned())
        }
        (false, _) => InputCell::Untyped(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_a_name_of_its_own() {
        assert_eq!(
            names(&ByteRecord::from(vec!["t", "", "t", " v ", "t_2"])).unwrap(),
            ["t", "c1", "t_2", "v", "t_2_2"]
        );
    }
}
