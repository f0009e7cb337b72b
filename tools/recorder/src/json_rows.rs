//! Rows of JSON: an object or an array per line, or one array of them.

use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead, BufReader};

use serde::de::{Deserializer as _, Error as _, SeqAccess, Visitor};
use serde_json::Value as Json;
use serde_json::value::RawValue;

use h5live_text::checked_json::DuplicateCheckedJson;

use super::input::{
    CellsAndNewKeys, InputColumns, InputError, InputEventSender, VALUE_COLUMN_NAME, numbered_column_names,
};
use super::input_cell::InputCell;
use super::non_finite::{NonFiniteMarkingReader, unmark_non_finite_in_json};
use super::row_error::RowError;

/// The longest row that goes over several lines (bytes).
const MAX_ROW_BYTES: usize = 64 << 20;

/// What to do with a key that the first row does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NewKeyPolicy {
    /// It becomes a column if it is among the first rows. Later, the row cannot be stored.
    #[default]
    ErrorAfterFirstRows,
    /// The value is left out if the first row does not have the key.
    Ignore,
    /// The value goes to a dataset of its own, `PATH.KEY`, together with the number of the row, if the first row does not
    /// have the key.
    DatasetPerKey,
}

/// Whether a text begins as rows of JSON do.
pub fn looks_like_json_rows(start: &[u8]) -> bool {
    let start = start.trim_ascii_start();
    let next = start.get(1..).unwrap_or_default().trim_ascii_start().first();
    match start.first() {
        Some(b'{') => true,
        Some(b'[') => next.is_none_or(|next| b"[{]\"-0123456789tfnNI".contains(next)),
        _ => false,
    }
}

/// Reads rows to the end, or until nobody listens any more.
///
/// # Errors
/// [`InputError`] if there is no row, or the input cannot be read.
pub fn read_json_rows(
    mut input: impl BufRead,
    new_keys: NewKeyPolicy,
    out: &mut InputEventSender<'_>,
) -> Result<(), InputError> {
    loop {
        let start = input.fill_buf()?;
        let (len, blank) = (start.len(), start.iter().take_while(|byte| byte.is_ascii_whitespace()).count());
        input.consume(blank);
        if blank < len || len == 0 {
            break;
        }
    }
    let start = input.fill_buf()?;
    if start.is_empty() {
        return Err(InputError::EmptyInput);
    }
    let next = start.get(1..).unwrap_or_default().trim_ascii_start().first().copied();
    let is_array = start.starts_with(b"[");
    let (row_rank, opening) = (out.row_nesting_depth(), opening_brackets(start));
    let input = BufReader::new(NonFiniteMarkingReader::new(input));
    // An array that begins with a number or a text is itself a row, or one of arrays if rows are such.
    let has_rows = match (row_rank, opening) {
        (0, _) | (_, None) => next.is_none_or(|next| b"[{]".contains(&next)),
        (rank, Some((depth, next))) => depth > rank || next == b'{',
    };
    if is_array && has_rows {
        return read_array(input, new_keys, out);
    }
    read_lines(input, new_keys, out)
}

/// How many brackets open before anything else, and what that is; `None` if it is not there yet.
fn opening_brackets(start: &[u8]) -> Option<(usize, u8)> {
    let mut letters = start.iter().filter(|letter| !letter.is_ascii_whitespace());
    let mut depth = 0;
    loop {
        match letters.next()? {
            b'[' => depth += 1,
            other => return Some((depth, *other)),
        }
    }
}

/// One array of rows, each of which is handed on as soon as it is there.
fn read_array(input: impl BufRead, new_keys: NewKeyPolicy, out: &mut InputEventSender<'_>) -> Result<(), InputError> {
    let mut json = serde_json::Deserializer::from_reader(input);
    let mut rows = RowColumns { names: Vec::new(), new_keys };
    let mut is_open = true;
    let visitor = ArrayVisitor { rows: &mut rows, out: &mut *out, is_open: &mut is_open };
    let ended = json.deserialize_seq(visitor).and_then(|()| json.end());
    match ended {
        Err(error) if error.is_io() => Err(InputError::Read(error.into())),
        Err(error) if is_open => {
            // What comes after a fault in an array cannot be told apart.
            out.send_row(Err(RowError::RestOfJsonArrayUnreadable(error.to_string())), Vec::new);
            Ok(())
        }
        _ => Ok(()),
    }
}

struct ArrayVisitor<'a, 'b> {
    rows: &'a mut RowColumns,
    out: &'a mut InputEventSender<'b>,
    is_open: &'a mut bool,
}

impl<'de> Visitor<'de> for ArrayVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        while let Some(text) = rows.next_element::<Box<RawValue>>()? {
            let text = text.get();
            let listens = match serde_json::from_str(text) {
                Ok(row) => self.rows.hand_on(row, || unmark_non_finite_in_json(on_one_line(text)), self.out),
                Err(error) => self.out.send_row(Err(RowError::InvalidJson(json_fault(&error))), || {
                    unmark_non_finite_in_json(format!("{text}\n").into_bytes())
                }),
            };
            if !listens {
                *self.is_open = false;
                return Err(A::Error::custom("nobody listens"));
            }
        }
        Ok(())
    }
}

/// A text of JSON as a line.
fn on_one_line(text: &str) -> Vec<u8> {
    let value = serde_json::from_str::<Json>(text);
    value.map_or_else(|_| format!("{text}\n"), |value| format!("{value}\n")).into_bytes()
}

fn read_lines(input: impl BufRead, new_keys: NewKeyPolicy, out: &mut InputEventSender<'_>) -> Result<(), InputError> {
    let mut lines = JsonLines { input, waiting: VecDeque::new() };
    let mut rows = RowColumns { names: Vec::new(), new_keys };
    while let Some(text) = lines.next_value()? {
        let listens = match text {
            Ok((row, text)) => rows.hand_on(row, || unmark_non_finite_in_json(text), out),
            Err((error, text)) => {
                out.send_row(Err(RowError::InvalidJson(json_fault(&error))), || unmark_non_finite_in_json(text))
            }
        };
        if !listens {
            break;
        }
    }
    Ok(())
}

/// What is wrong with the JSON of a row. A row that is one line has no lines to count.
fn json_fault(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " at column ")
}

/// Lines of JSON. A value may go over several lines, and a line may have several values.
struct JsonLines<R> {
    input: R,
    /// Lines that were read and are not used yet.
    waiting: VecDeque<Vec<u8>>,
}

type ReadValue = Result<(DuplicateCheckedJson, Vec<u8>), (serde_json::Error, Vec<u8>)>;

impl<R: BufRead> JsonLines<R> {
    fn line(&mut self) -> Result<Option<Vec<u8>>, InputError> {
        loop {
            let line = match self.waiting.pop_front() {
                Some(line) => line,
                None => {
                    let mut line = Vec::new();
                    if self.input.read_until(b'\n', &mut line)? == 0 {
                        return Ok(None);
                    }
                    line
                }
            };
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
    }

    /// The next value with its text, or a line that is none. What comes after such a line is read again.
    fn next_value(&mut self) -> Result<Option<ReadValue>, InputError> {
        let Some(first) = self.line()? else { return Ok(None) };
        let mut lines = vec![first];
        loop {
            let text = lines.concat();
            let mut values = serde_json::Deserializer::from_slice(&text).into_iter::<DuplicateCheckedJson>();
            let error = match values.next() {
                Some(Ok(value)) => {
                    let (text, rest) = text.split_at(values.byte_offset());
                    self.waiting.push_front(rest.to_vec());
                    return Ok(Some(Ok((value, [text, b"\n"].concat()))));
                }
                Some(Err(error)) => error,
                None => return Ok(None),
            };
            if error.is_eof()
                && text.len() < MAX_ROW_BYTES
                && let Some(line) = self.line()?
            {
                lines.push(line);
                continue;
            }
            lines.drain(1..).rev().for_each(|line| self.waiting.push_front(line));
            let first = lines.pop().unwrap_or_default();
            // The fault of the line alone.
            let own = serde_json::from_slice::<Json>(&first).err();
            return Ok(Some(Err((own.unwrap_or(error), first))));
        }
    }
}

/// The columns, of which the first row decides.
struct RowColumns {
    names: Vec<String>,
    new_keys: NewKeyPolicy,
}

impl RowColumns {
    /// Hands on a row. Returns `false` if nobody listens any more.
    fn hand_on(
        &mut self,
        row: DuplicateCheckedJson,
        text: impl FnOnce() -> Vec<u8>,
        out: &mut InputEventSender<'_>,
    ) -> bool {
        let is_numbered = row.value.is_array();
        let unique = row.repeated_key_path.map_or(Ok(row.value), |key| Err(RowError::RepeatedKey(key)));
        let cells = unique.and_then(|row| named_cells(row, out.row_nesting_depth())).and_then(|cells| {
            if self.names.is_empty() {
                self.names = cells.iter().map(|(name, _)| name.clone()).collect();
                let names = self.names.clone();
                let columns = InputColumns { names, is_numbered, may_have_new_keys: true, ..InputColumns::default() };
                if !out.send_columns(columns) {
                    return Ok(None);
                }
            }
            self.in_order(cells).map(Some)
        });
        match cells.transpose() {
            Some(cells) => out.send_row_with_new_keys(cells, text),
            None => false,
        }
    }

    /// The cells in the order of the columns, and those with new names, unless these are left out. A name that the row has not
    /// is an empty cell.
    fn in_order(&self, named: Vec<(String, InputCell)>) -> Result<CellsAndNewKeys, RowError> {
        let mut cells = vec![InputCell::Empty; self.names.len()];
        let mut new_keys: Vec<(String, InputCell)> = Vec::new();
        for (at, (name, cell)) in named.into_iter().enumerate() {
            // Names nearly always come in the order of the first row.
            let known =
                if self.names.get(at) == Some(&name) { Some(at) } else { self.names.iter().position(|n| *n == name) };
            match known.and_then(|at| cells.get_mut(at)) {
                Some(place) if *place != InputCell::Empty => return Err(RowError::RepeatedKey(name)),
                Some(place) => *place = cell,
                None if self.new_keys == NewKeyPolicy::Ignore => {}
                // No object instead of one that the first row has.
                None if cell == InputCell::Empty && self.names.iter().any(|n| is_inside(n, &name)) => {}
                None if new_keys.iter().any(|(of, _)| *of == name) => return Err(RowError::RepeatedKey(name)),
                None if cell == InputCell::Empty && self.new_keys == NewKeyPolicy::DatasetPerKey => {}
                None => new_keys.push((name, cell)),
            }
        }
        Ok((cells, new_keys))
    }
}

/// Whether a name is that of a member of an object.
fn is_inside(name: &str, object: &str) -> bool {
    name.strip_prefix(object).is_some_and(|rest| rest.starts_with('.'))
}

fn named_cells(row: Json, row_rank: usize) -> Result<Vec<(String, InputCell)>, RowError> {
    let mut cells = Vec::new();
    match row {
        row @ Json::Array(_) if row_rank > 0 => cells.push((VALUE_COLUMN_NAME.to_owned(), InputCell::from_json(row))),
        Json::Object(members) if !members.is_empty() => {
            members.into_iter().try_for_each(|(name, value)| flatten(name, value, &mut cells))?;
        }
        Json::Array(values) if !values.is_empty() => {
            let names = numbered_column_names(values.len());
            names.into_iter().zip(values).try_for_each(|(name, value)| flatten(name, value, &mut cells))?;
        }
        _ => return Err(RowError::NotARow),
    }
    Ok(cells)
}

/// The cells of a value: those of an object's members are called `object.member`.
fn flatten(name: String, value: Json, cells: &mut Vec<(String, InputCell)>) -> Result<(), RowError> {
    match value {
        _ if name.is_empty() => return Err(RowError::EmptyKey),
        Json::Object(members) if members.contains_key("") => return Err(RowError::EmptyKey),
        Json::Object(members) => {
            members.into_iter().try_for_each(|(member, value)| flatten(format!("{name}.{member}"), value, cells))?;
        }
        value => cells.push((name, InputCell::from_json(value))),
    }
    Ok(())
}
