//! Rows of CSV.

use std::io::BufRead;

use csv::ByteRecord;

use super::input::{InputError, RowOutput};
use super::row::{InputCell, RowError};

/// Separators that are looked for, the best sign of CSV first. A comma may also stand inside numbers.
const SEPARATORS: [u8; 4] = [b'\t', b';', b',', b'|'];
/// Lines that are looked at to find the separator.
const MAX_SNIFFED_LINES: usize = 20;

/// How CSV is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsvOptions {
    /// The byte between fields; found out if it is not said.
    pub delimiter: Option<u8>,
    /// Whether the first line has the names of the columns.
    pub has_header: bool,
    /// Lines before it.
    pub skipped_lines: u64,
    /// Whether numbers have a decimal comma, whatever the separator is. With semicolons, they may.
    pub has_decimal_comma: bool,
}

/// Reads rows to the end, or until nobody listens any more.
///
/// # Errors
/// [`InputError`] if there is no line, or the input cannot be read.
pub fn read(options: CsvOptions, mut input: impl BufRead, out: &mut RowOutput<'_>) -> Result<(), InputError> {
    for _ in 0..options.skipped_lines {
        input.skip_until(b'\n')?;
    }
    let delimiter = match options.delimiter {
        Some(delimiter) => delimiter,
        None => separator(input.fill_buf()?),
    };
    let has_comma = options.has_decimal_comma || delimiter == b';';
    let mut builder = csv::ReaderBuilder::new();
    let mut reader = builder.flexible(true).has_headers(false).delimiter(delimiter).from_reader(input);
    let mut record = ByteRecord::new();
    let mut has_row = reader.read_byte_record(&mut record).map_err(read_error)?;
    if !has_row {
        return Err(InputError::NoHeader);
    }
    let line = |record: &ByteRecord| line(record, delimiter);
    let (names, header) =
        if options.has_header { (names(&record), line(&record)) } else { (numbered(record.len()), vec![]) };
    let mut listens = out.columns(&names, header);
    if options.has_header {
        has_row = reader.read_byte_record(&mut record).map_err(read_error)?;
    }
    while has_row && listens {
        listens = out.row(cells(&record, has_comma), || line(&record));
        has_row = reader.read_byte_record(&mut record).map_err(read_error)?;
    }
    Ok(())
}

fn read_error(error: csv::Error) -> InputError {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => InputError::Read(error),
        // Records of bytes and of any length have no other faults.
        other => InputError::Read(std::io::Error::other(format!("{other:?}"))),
    }
}

/// The byte between fields: the first of [`SEPARATORS`] that all lines have equally often, or else the one that the
/// first line has most often.
fn separator(start: &[u8]) -> u8 {
    // The last line may be there in part.
    let whole = start.iter().rposition(|byte| *byte == b'\n').map_or(start, |end| &start[..end]);
    let lines: Vec<_> = whole.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).collect();
    let lines = &lines[..lines.len().min(MAX_SNIFFED_LINES)];
    let counts = |separator: u8| lines.iter().map(move |line| count(line, separator));
    let first = |separator: u8| counts(separator).next().unwrap_or(0);
    let even = SEPARATORS.into_iter().find(|s| first(*s) > 0 && counts(*s).all(|n| n == first(*s)));
    let commonest = SEPARATORS.into_iter().rev().max_by_key(|s| first(*s)).filter(|s| first(*s) > 0);
    even.or(commonest).unwrap_or(b',')
}

/// How often a separator stands in a line outside of quotes.
fn count(line: &[u8], separator: u8) -> usize {
    let mut quoted = false;
    let is_one = |byte: &&u8| {
        quoted ^= **byte == b'"';
        **byte == separator && !quoted
    };
    line.iter().filter(is_one).count()
}

/// Names for columns that have none.
pub fn numbered(columns: usize) -> Vec<String> {
    (0..columns).map(|i| format!("c{i}")).collect()
}

/// The names of a header line. A column without a name is numbered, and a name that is taken gets a number.
fn names(header: &ByteRecord) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (i, name) in header.iter().enumerate() {
        let name = String::from_utf8_lossy(name).trim().to_owned();
        let name = if name.is_empty() { format!("c{i}") } else { name };
        let free = |name: &String| !names.contains(name);
        let numbered = (2u64..).map(|n| format!("{name}_{n}"));
        let name = std::iter::once(name.clone()).chain(numbered).find(free).unwrap_or_default();
        names.push(name);
    }
    names
}

fn cells(record: &ByteRecord, has_comma: bool) -> Result<Vec<InputCell>, RowError> {
    let cell = |(column, bytes): (usize, &[u8])| match std::str::from_utf8(bytes) {
        Ok("") => Ok(InputCell::Empty),
        Ok(text) => Ok(match text.split_once(',').filter(|_| has_comma) {
            Some((whole, fraction)) if !fraction.contains([',', '.']) && !whole.contains('.') => {
                InputCell::DecimalComma(text.to_owned(), format!("{whole}.{fraction}"))
            }
            _ => InputCell::Plain(text.to_owned()),
        }),
        Err(source) => Err(RowError::Utf8 { column: column + 1, source }),
    };
    record.iter().enumerate().map(cell).collect()
}

/// A record as a line.
fn line(record: &ByteRecord, delimiter: u8) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).flexible(true).from_writer(Vec::new());
    // Memory takes every record.
    let _ = writer.write_byte_record(record);
    writer.into_inner().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_separator_is_the_one_that_all_lines_have_equally_often() {
        for (text, want) in [
            ("a,b\n1,2\n", b','),
            ("a;b\n1,5;2,5\n3;4\n", b';'),
            ("1,5;2,5\n2,5;3,5\n", b';'),
            ("a\tb c\n1\t2,5\n", b'\t'),
            ("name,note\nx,a;b\n", b','),
            ("\"a;b\",c\n1,2\n", b','),
            ("a|b\n1|2\n", b'|'),
            ("a,b\n1\n", b','),
            ("single\n1\n", b','),
            ("a,b", b','),
        ] {
            assert_eq!(separator(text.as_bytes()), want, "{text:?}");
        }
    }

    #[test]
    fn every_column_has_a_name_of_its_own() {
        assert_eq!(names(&ByteRecord::from(vec!["t", "", "t", " v ", "t_2"])), ["t", "c1", "t_2", "v", "t_2_2"]);
    }
}
