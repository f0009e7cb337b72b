//! `h5live dump FILE PATH`: the values of a dataset or an attribute.

use std::ops::Range;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use h5live::Dataset;

use crate::error::{Error, Result};
use crate::model::{Dataspace, Selection};
use crate::output::Output;
use crate::value::{Value, json};
use crate::{open, progress, watch};

/// Values are read in blocks of about this many bytes.
const BLOCK_BYTES: u64 = 4 << 20;

/// Which rows are meant: `A..B`, `A..`, `..B`, `A`, or `-N` for the last N.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowRange {
    /// From the first to the one before the second, if there is one.
    Range(u64, Option<u64>),
    /// The last ones.
    Last(u64),
}

/// A text that names no rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rows are A..B, A.., ..B, A, or -N for the last N")]
pub struct RowRangeError;

impl FromStr for RowRange {
    type Err = RowRangeError;

    fn from_str(text: &str) -> Result<Self, RowRangeError> {
        let number = |text: &str| text.parse().map_err(|_| RowRangeError);
        if let Some(last) = text.strip_prefix('-') {
            return Ok(RowRange::Last(number(last)?));
        }
        match text.split_once("..") {
            None => number(text).map(|row| RowRange::Range(row, Some(row.saturating_add(1)))),
            Some((first, end)) => {
                let first = if first.is_empty() { 0 } else { number(first)? };
                let end = if end.is_empty() { None } else { Some(number(end)?) };
                Ok(RowRange::Range(first, end))
            }
        }
    }
}

impl RowRange {
    /// The rows that a dataset of `len` rows has of these.
    pub fn clip(self, len: u64) -> Range<u64> {
        match self {
            RowRange::Range(first, end) => first.min(len)..end.unwrap_or(len).clamp(first.min(len), len),
            RowRange::Last(count) => len.saturating_sub(count)..len,
        }
    }

    /// The rows that follow when some were shown, which are all that there were.
    fn after(self, shown: &Range<u64>) -> Self {
        match self {
            // Nothing yet of what is meant.
            RowRange::Range(first, end) if shown.is_empty() => RowRange::Range(first, end),
            RowRange::Range(_, end) => RowRange::Range(shown.end, end),
            RowRange::Last(_) => RowRange::Range(shown.end, None),
        }
    }

    fn is_empty(self) -> bool {
        matches!(self, RowRange::Range(first, Some(end)) if first >= end)
    }
}

/// How values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueStyle {
    /// Text, behind the index of the row.
    Text,
    /// A JSON value per line.
    Json,
    /// The elements as stored, without lines.
    Raw,
}

impl ValueStyle {
    fn line(self, row: Option<u64>, value: &Value, out: &mut Output) -> Result<()> {
        match (self, row) {
            (ValueStyle::Json, _) => out.line(json(value)),
            (_, Some(row)) => out.line(format_args!("{row}: {value}")),
            (_, None) => out.line(value),
        }
    }
}

/// Writes the rows of a dataset, each on a line, and then those that its writer adds, until it ends or the user
/// interrupts.
///
/// # Errors
/// As [`crate::error::Error`] says.
pub fn follow(
    dataset: &Dataset,
    rows: RowRange,
    style: ValueStyle,
    interrupted: &AtomicBool,
    out: &mut Output,
) -> Result<()> {
    let file = dataset.file().name();
    let store_error = |source| Error::Store { file: file.into(), path: dataset.path().into(), source };
    let mut watch = dataset.file().store().watch(&[dataset.id()]).map_err(store_error)?;
    let mut rest = rows;
    loop {
        let last = watch::is_last(dataset, None, interrupted);
        let show = (|| {
            dataset.refresh()?;
            let shown = rest.clip(watch::length(dataset)?);
            self::dataset(dataset, RowRange::Range(shown.start, Some(shown.end)), style, out)?;
            rest = rest.after(&shown);
            out.flush()
        })();
        if watch::after(last, show)? || rest.is_empty() {
            return Ok(());
        }
        watch.wait(watch::PAUSE).map_err(store_error)?;
    }
}

/// Writes the rows of a dataset, each on a line.
///
/// # Errors
/// As [`crate::error::Error`] says.
pub fn dataset(dataset: &Dataset, rows: RowRange, style: ValueStyle, out: &mut Output) -> Result<()> {
    let spec = dataset.spec()?;
    let [length, row @ ..] = spec.dataspace.dims() else {
        return match style {
            ValueStyle::Raw => out.bytes(&dataset.read_raw(Selection::All)?),
            _ => lines(&[], dataset.read_values(Selection::All)?, None, style, out),
        };
    };
    let rows = rows.clip(*length);
    let row_bytes = row.iter().fold(u64::from(spec.datatype.size()), |n, d| n.saturating_mul(*d));
    let step = (BLOCK_BYTES / row_bytes.max(1)).max(1);
    if style != ValueStyle::Raw {
        // A row is a line.
        open::check_values(dataset, row.iter().fold(1, |n: u64, d| n.saturating_mul(*d)))?;
    }
    let bar = progress::bar(usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX), "rows");
    let mut first = rows.start;
    while first < rows.end {
        let count = step.min(rows.end - first);
        let start: Vec<_> = std::iter::once(first).chain(row.iter().map(|_| 0)).collect();
        let counts: Vec<_> = std::iter::once(count).chain(row.iter().copied()).collect();
        match style {
            ValueStyle::Raw => raw(dataset, &start, &counts, spec.datatype.size().into(), out)?,
            _ => lines(row, dataset.read_values(Selection::block(&start, &counts))?, Some(first), style, out)?,
        }
        first += count;
        bar.inc(count);
    }
    bar.finish_and_clear();
    Ok(())
}

/// Writes the elements of a block as stored, in pieces.
fn raw(dataset: &Dataset, start: &[u64], counts: &[u64], size: u64, out: &mut Output) -> Result<()> {
    let bytes = counts.iter().fold(size, |n, count| n.saturating_mul(*count));
    let cut = counts.iter().position(|count| *count > 1).filter(|_| bytes > BLOCK_BYTES);
    let Some((cut, count)) = cut.and_then(|cut| Some((cut, *counts.get(cut)?))) else {
        return out.bytes(&dataset.read_raw(Selection::block(start, counts))?);
    };
    let step = (BLOCK_BYTES / (bytes / count)).clamp(1, count - 1);
    let mut done = 0;
    while done < count {
        let now = step.min(count - done);
        let (mut start, mut counts) = (start.to_vec(), counts.to_vec());
        start.iter_mut().skip(cut).take(1).for_each(|start| *start += done);
        counts.iter_mut().skip(cut).take(1).for_each(|count| *count = now);
        raw(dataset, &start, &counts, size, out)?;
        done += now;
    }
    Ok(())
}

/// Writes the value of an attribute.
///
/// # Errors
/// As [`crate::error::Error`] says.
pub fn attribute(attribute: &h5live::Attribute, style: ValueStyle, out: &mut Output) -> Result<()> {
    match (style, attribute.dataspace()) {
        (ValueStyle::Raw, _) => out.bytes(attribute.raw()),
        (_, Dataspace::Simple(shape)) => {
            lines(shape.dims().get(1..).unwrap_or_default(), attribute.values()?, Some(0), style, out)
        }
        _ => lines(&[], attribute.values()?, None, style, out),
    }
}

/// Writes values, `row` (`[rank - 1]`, elements) of them on a line.
fn lines(row: &[u64], values: Vec<Value>, first: Option<u64>, style: ValueStyle, out: &mut Output) -> Result<()> {
    let per_line = row.iter().fold(1, |n: usize, dim| n.saturating_mul(*dim as usize)).max(1);
    let mut values = values.into_iter();
    let mut index = first;
    while values.len() >= per_line {
        style.line(index, &nested(row, &mut values), out)?;
        index = index.map(|index| index.saturating_add(1));
    }
    Ok(())
}

/// The next elements, which make up a row, as lists within lists.
pub fn nested(dims: &[u64], values: &mut dyn Iterator<Item = Value>) -> Value {
    match dims {
        [] => values.next().unwrap_or_default(),
        [length, inner @ ..] => Value::List((0..*length).map(|_| nested(inner, values)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_to_those_that_are_there() {
        let within = |text: &str| text.parse::<RowRange>().unwrap().clip(10);
        assert_eq!(within("2..5"), 2..5);
        assert_eq!(within("2.."), 2..10);
        assert_eq!(within("..3"), 0..3);
        assert_eq!(within("9"), 9..10);
        assert_eq!(within("-3"), 7..10);
        assert_eq!(within("-30"), 0..10);
        assert_eq!(within("8..20"), 8..10);
        assert_eq!(within("15..20"), 10..10);
        assert_eq!(within("5..2"), 5..5);
    }

    #[test]
    fn refuses_other_texts() {
        for text in ["", "a", "1..b", "--1", "-"] {
            assert!(text.parse::<RowRange>().is_err(), "{text}");
        }
    }
}
