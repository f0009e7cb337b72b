//! How a CSV is written: its separator, the lines before its header, and the numbers that it has.

/// Separators that are looked for, the best sign of CSV first. A comma may also stand inside numbers.
const SEPARATORS: [u8; 4] = [b'\t', b';', b',', b'|'];
/// The separator of columns between which there are one or more blanks.
pub const BLANKS_DELIMITER: u8 = b' ';
/// Lines that are looked at.
pub const MAX_SNIFFED_LINES: usize = 200;
/// Rows that a table needs at least, so that what comes before it is not taken for one.
const MIN_TABLE_ROWS: usize = 2;

/// How CSV is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsvOptions {
    /// The byte between fields; found out if it is not said. A blank stands for any number of them.
    pub delimiter: Option<u8>,
    /// Whether the first line may have the names of the columns.
    pub may_have_header: bool,
    /// Lines before it; found out if it is not said.
    pub skipped_lines: Option<u64>,
    /// Whether numbers have a decimal comma, whatever the separator is. With semicolons, they may.
    pub forces_decimal_comma: bool,
    /// How a quote is written inside quotes.
    pub quote_escape: QuoteEscape,
}

impl Default for CsvOptions {
    /// Everything is found out from how the input begins.
    fn default() -> Self {
        CsvOptions {
            delimiter: None,
            may_have_header: true,
            skipped_lines: None,
            forces_decimal_comma: false,
            quote_escape: QuoteEscape::DependsOnDelimiter,
        }
    }
}

/// How a quote is written inside quotes. It may be there twice in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QuoteEscape {
    /// Behind a backslash between blanks, as in the logs of web servers.
    #[default]
    DependsOnDelimiter,
    /// Twice only.
    Doubled,
    /// Behind this byte.
    EscapeByte(u8),
}

/// How a CSV is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsvDialect {
    /// The byte between fields; [`BLANKS_DELIMITER`] for any number of blanks.
    pub delimiter: u8,
    /// Lines before the header, which belong to none of the rows.
    pub preamble_lines_after_comments: usize,
    /// Whether the first line behind them has the names of the columns.
    pub has_header: bool,
    /// How fractions are written.
    pub decimals: DecimalStyle,
    /// The byte before a quote inside quotes, if there is one.
    pub escape: Option<u8>,
}

/// How fractions are written in all of a CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecimalStyle {
    /// With a point.
    Point,
    /// With a comma.
    Comma,
    /// The first number that is clear says it.
    Undecided,
}

impl CsvDialect {
    /// The dialect of a CSV that begins so, behind its comments. What the options say counts.
    pub fn sniff(after_skipped_lines: &[u8], options: &CsvOptions) -> Self {
        // The last line may be there in part.
        let newline = after_skipped_lines.iter().rposition(|byte| *byte == b'\n');
        let whole = newline.map_or(after_skipped_lines, |end| &after_skipped_lines[..end]);
        let numbered: Vec<_> = whole.split(|byte| *byte == b'\n').enumerate().take(MAX_SNIFFED_LINES).collect();
        let numbered: Vec<_> = numbered.into_iter().filter(|(_, line)| !line.trim_ascii().is_empty()).collect();
        let lines: Vec<_> = numbered.iter().map(|(_, line)| *line).collect();
        let delimiter = options.delimiter.unwrap_or_else(|| separator(&lines));
        let rows: Vec<_> = lines.iter().map(|line| fields(line, delimiter)).collect();
        let header = if options.skipped_lines.is_none() { header_row(&rows) } else { None };
        let line_numbers: Vec<_> = numbered.iter().map(|(number, _)| *number).collect();
        let header =
            header.map(|header| if has_names_above(&rows, &line_numbers, header) { header - 1 } else { header });
        let (preamble_lines, table) = match header {
            Some(header) => (numbered[header].0, rows.get(header..).unwrap_or_default()),
            None => (0, &*rows),
        };
        let decimals = match (options.forces_decimal_comma, delimiter) {
            (true, _) => DecimalStyle::Comma,
            (false, b';') if table.iter().flatten().any(|field| decimal_comma_to_point(field).is_some()) => {
                DecimalStyle::Comma
            }
            (false, b';') => DecimalStyle::Undecided,
            (false, _) => DecimalStyle::Point,
        };
        let has_header = options.may_have_header && !begins_with_a_row(table, delimiter);
        let escape = match options.quote_escape {
            QuoteEscape::DependsOnDelimiter if delimiter == BLANKS_DELIMITER => Some(b'\\'),
            QuoteEscape::DependsOnDelimiter | QuoteEscape::Doubled => None,
            QuoteEscape::EscapeByte(byte) => Some(byte),
        };
        CsvDialect { delimiter, preamble_lines_after_comments: preamble_lines, has_header, decimals, escape }
    }
}

/// The byte between fields: the first of [`SEPARATORS`] that all lines have equally often, or with which a table comes
/// behind a preamble. Otherwise blanks, if a table has them, or else the separator that the first line has most often.
fn separator(lines: &[&[u8]]) -> u8 {
    let counts = |separator: u8| lines.iter().map(move |line| fields(line, separator).len());
    let first = |separator: u8| counts(separator).next().unwrap_or(0);
    let is_even = |s: &u8| first(*s) > 1 && counts(*s).all(|n| n == first(*s));
    let has_table = |s: &u8| {
        let rows: Vec<_> = lines.iter().map(|line| fields(line, *s)).collect();
        header_row(&rows).is_some()
    };
    let even = SEPARATORS.into_iter().find(is_even);
    let table = || SEPARATORS.into_iter().chain([BLANKS_DELIMITER]).find(has_table);
    let most = || SEPARATORS.into_iter().rev().max_by_key(|s| first(*s)).filter(|s| first(*s) > 1);
    even.or_else(table).or_else(most).unwrap_or(b',')
}

/// The fields of a line, without their quotes.
fn fields(line: &[u8], separator: u8) -> Vec<String> {
    let mut quoted = false;
    let split = line.split(|byte| {
        quoted ^= *byte == b'"';
        *byte == separator && !quoted
    });
    let text = |field: &[u8]| String::from_utf8_lossy(field.trim_ascii()).trim_matches('"').trim().to_owned();
    // Several blanks are one; empty quotes are a field.
    split.filter(|field| separator != BLANKS_DELIMITER || !field.trim_ascii().is_empty()).map(text).collect()
}

/// Whether a field is a number, also one with a decimal comma.
pub fn is_number(field: &str) -> bool {
    field.parse::<f64>().is_ok() || decimal_comma_to_point(field).is_some()
}

/// The row of the header of a table of numbers that comes behind a preamble, or at once. `None` if it cannot be told.
fn header_row(rows: &[Vec<String>]) -> Option<usize> {
    let width = rows.last()?.len();
    let even_from = rows.iter().rposition(|row| row.len() != width).map_or(0, |other| other + 1);
    let is_data =
        |row: &Vec<String>| row.iter().any(|f| is_number(f)) && row.iter().all(|f| f.is_empty() || is_number(f));
    let is_names = |row: &Vec<String>| row.iter().any(|f| !f.is_empty()) && !row.iter().any(|f| is_number(f));
    let has_number = |row: &Vec<String>| row.iter().any(|f| is_number(f));
    if width < 2 {
        return None;
    }
    // Rows of numbers alone: the header is the line before them.
    let data_from = rows.iter().rposition(|row| row.len() != width || !is_data(row)).map_or(0, |other| other + 1);
    let header = data_from.checked_sub(1).filter(|header| *header >= even_from && is_names(&rows[*header]));
    if let Some(header) = header.filter(|_| rows.len() - data_from >= MIN_TABLE_ROWS) {
        let preamble = &rows[..header];
        // One line of as many names may be a header, and the next one the units.
        let is_preamble = even_from > 0 || header != 1;
        let has_keys = preamble.iter().all(|row| row.first().is_some_and(|key| !key.is_empty() && !is_number(key)));
        return (is_preamble && has_keys).then_some(header);
    }
    // Rows with numbers and texts: no line before them is as long.
    let data = rows.get(even_from + 1..)?;
    let is_table = data.len() >= MIN_TABLE_ROWS && data.iter().all(has_number) && is_names(&rows[even_from]);
    let is_first = rows[..even_from].iter().all(|row| row.len() != width);
    (is_table && is_first).then_some(even_from)
}

/// Whether the line above a header has as many names, and begins after a blank line: then the names are there, and the
/// header has the units.
fn has_names_above(rows: &[Vec<String>], line_numbers: &[usize], header: usize) -> bool {
    let gap = |at: usize| line_numbers[at] - line_numbers[at - 1] - 1;
    let is_alone = header >= 2 && gap(header) == 0 && gap(header - 1) > 0;
    let is_names = |row: &[String]| row.iter().any(|f| !f.is_empty()) && !row.iter().any(|f| is_number(f));
    is_alone && rows[header - 1].len() == rows[header].len() && is_names(&rows[header - 1])
}

/// Whether the first line is a row: it has nothing but numbers. Between blanks, one number is enough, if the other lines
/// have some in the same places.
fn begins_with_a_row(rows: &[Vec<String>], delimiter: u8) -> bool {
    let Some((first, others)) = rows.split_first() else { return false };
    let numbers: Vec<_> = (0..first.len()).filter(|at| is_number(&first[*at])).collect();
    let is_number_in = |row: &Vec<String>| numbers.iter().all(|at| row.get(*at).is_some_and(|field| is_number(field)));
    let is_alike = delimiter == BLANKS_DELIMITER && !others.is_empty() && others.iter().all(is_number_in);
    !numbers.is_empty() && (numbers.len() == first.len() || is_alike)
}

/// Whether the last line of the comments before a table, without its marks, has the names of the columns.
pub fn is_commented_header(comment: &[u8], following_lines: &[u8], options: &CsvOptions) -> bool {
    let whole =
        following_lines.iter().rposition(|byte| *byte == b'\n').map_or(following_lines, |end| &following_lines[..end]);
    let lines: Vec<_> = whole.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).collect();
    let lines = &lines[..lines.len().min(MAX_SNIFFED_LINES)];
    let delimiter = options.delimiter.unwrap_or_else(|| separator(&[&[comment], lines].concat()));
    let names = fields(comment, delimiter);
    let is_row = |line: &&[u8]| {
        let row = fields(line, delimiter);
        row.len() == names.len() && row.iter().any(|field| is_number(field))
    };
    !names.iter().any(|name| is_number(name)) && lines.first().is_some_and(is_row)
}

/// A number with a decimal comma, and maybe points between groups of thousands: the same number with a decimal point.
pub fn decimal_comma_to_point(text: &str) -> Option<String> {
    let (whole, fraction) = text.split_once(',')?;
    let whole = if has_grouping_points(whole) { whole.replace('.', "") } else { whole.to_owned() };
    if whole.contains('.')
        || fraction.contains([',', '.'])
        || !fraction.trim_start().starts_with(|c: char| c.is_ascii_digit())
    {
        return None;
    }
    let number = format!("{whole}.{fraction}");
    number.trim().parse::<f64>().is_ok().then_some(number)
}

/// Whether a number has points as they stand between groups of thousands: `1.234`, `12.345.678`.
pub fn has_grouping_points(text: &str) -> bool {
    let unsigned = text.trim().trim_start_matches(['+', '-']);
    let Some((first, groups)) = unsigned.split_once('.') else { return false };
    let is_digits = |group: &str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
    first.len() <= 3 && is_digits(first) && groups.split('.').all(|group| group.len() == 3 && is_digits(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: CsvOptions = CsvOptions {
        delimiter: None,
        may_have_header: true,
        skipped_lines: None,
        forces_decimal_comma: false,
        quote_escape: QuoteEscape::DependsOnDelimiter,
    };

    fn sniffed(text: &str) -> CsvDialect {
        CsvDialect::sniff(text.as_bytes(), &ANY)
    }

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
            ("r  b swpd\n 1 0 7\n10 0 8\n", b' '),
            ("some words\nand others\n", b','),
        ] {
            assert_eq!(sniffed(text).delimiter, want, "{text:?}");
        }
    }

    #[test]
    fn a_preamble_ends_at_the_header_of_the_table() {
        let preamble = |text| sniffed(text).preamble_lines_after_comments;
        assert_eq!(preamble("Model,DPO\nInterval,4e-9,s\n\nTIME,CH1\n0,1\n1,2\n"), 3);
        assert_eq!(preamble("Model,DPO\nInterval,4e-9\nTIME,CH1\n0,1\n1,\n"), 2);
        assert_eq!(preamble("Station: Berlin\ntime,t,note\n1,2,a\n2,3,b\n"), 1);
        assert_eq!(preamble("procs ---memory--- --swap--\n r b swpd free\n 1 0 2 3\n 1 0 2 3\n"), 1);
        // None of these has one.
        assert_eq!(preamble("a,b\n1,1\n2\n3,3\n4,4\n"), 0);
        assert_eq!(preamble("name,v\nfoo\nbar,x\nbaz,2\nq,3\n"), 0);
        assert_eq!(preamble("time,v\ns,mV\n0,1\n1,2\n"), 0);
        assert_eq!(preamble("a,b,c\n1,2\n3,4\n5,6\n"), 0);
        assert_eq!(preamble("name,note\nx,y\nz,w\n"), 0);
    }

    #[test]
    fn a_line_of_numbers_is_no_header() {
        assert!(!sniffed("1,2\n3,4\n").has_header);
        assert!(!sniffed("1\n").has_header);
        assert!(!sniffed("a 200 [x] \"b c\"\nb 404 [y] \"d\"\n").has_header || sniffed("a 1\n").delimiter == b',');
        assert!(sniffed("t,2020,2021\na,1,2\n").has_header);
        assert!(sniffed("a,b\n1,2\n").has_header);
    }

    #[test]
    fn a_comment_may_have_the_names() {
        let is_header = |comment: &str, start: &str| is_commented_header(comment.as_bytes(), start.as_bytes(), &ANY);
        assert!(is_header(" t, v", "0,1\n1,2\n"));
        assert!(is_header("t v", "0 1\n1 2\n"));
        assert!(!is_header(" made by x, y", "t,v\n1,2\n"));
        assert!(!is_header(" made by x", "1,2\n"));
        assert!(!is_header(" 1,2", "1,2\n"));
    }

    #[test]
    fn a_decimal_comma_is_known_by_its_numbers() {
        assert_eq!(decimal_comma_to_point("1,5").as_deref(), Some("1.5"));
        assert_eq!(decimal_comma_to_point("-1.234,5e3").as_deref(), Some("-1234.5e3"));
        for text in ["1", "1.5", "1,2,3", "1,2.5", "1.23,5", "a,5", "1,", ",5x", "1, a"] {
            assert_eq!(decimal_comma_to_point(text), None, "{text}");
        }
        for (text, grouped) in
            [("1.234", true), ("-12.345.678", true), ("1.23", false), ("1234.567", false), ("1", false)]
        {
            assert_eq!(has_grouping_points(text), grouped, "{text}");
        }
        assert_eq!(sniffed("a;b\n1;0,5\n").decimals, DecimalStyle::Comma);
        assert_eq!(sniffed("a;b\n1;2.5\n").decimals, DecimalStyle::Undecided);
        assert_eq!(sniffed("a,b\n1,2.5\n").decimals, DecimalStyle::Point);
    }
}
