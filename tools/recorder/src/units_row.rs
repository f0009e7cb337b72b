//! A row of CSV with the units of the columns, which comes below their names.

use h5live_text::utc;

use super::input::InputRow;
use super::input_cell::InputCell;

/// Rows of numbers that must be there behind it.
const MIN_ROWS: usize = 2;

/// Texts that stand for a value that is not there: a row of them has no units.
const NO_VALUES: [&str; 8] = ["n/a", "na", "nan", "null", "none", "nil", "-", "?"];

/// What the first rows say of the units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitsRow {
    /// The first row is none of units.
    Absent,
    /// It may be one: more rows will show it.
    Undecided,
    /// It is one: for each column its unit.
    Found(Vec<Option<String>>),
}

/// Whether the first of these rows of so many columns has units: a text in each cell that is not empty, where the others
/// have numbers or times. Columns of texts are told by `is_text`.
pub fn find_in_first_row(rows: &[InputRow], columns: usize, is_text: impl Fn(usize) -> bool) -> UnitsRow {
    let mut rows = rows.iter();
    let first = rows.next().filter(|row| row.row_number == 1).and_then(|row| row.cells.as_deref().ok());
    let Some(first) = first.filter(|cells| cells.len() == columns) else { return UnitsRow::Absent };
    let units: Vec<_> = first.iter().map(|cell| cell.text().map(|text| text.trim().to_owned())).collect();
    let is_unit = |(at, unit): (usize, &Option<String>)| {
        unit.as_ref().is_none_or(|unit| !is_text(at) && !first[at].is_number() && utc::parse_iso8601_ns(unit).is_none())
    };
    let is_known = |unit: &&String| !unit.is_empty() && !NO_VALUES.contains(&&*unit.to_lowercase());
    if !units.iter().enumerate().all(is_unit) || !units.iter().flatten().any(|unit| is_known(&unit)) {
        return UnitsRow::Absent;
    }
    let others = rows.filter_map(|row| row.cells.as_deref().ok()).filter(|cells| cells.len() == columns);
    let others: Vec<_> = others.collect();
    let is_value =
        |cell: &InputCell| cell.is_number() || cell.text().is_some_and(|text| utc::parse_iso8601_ns(text).is_some());
    let with_unit = || (0..columns).filter(|at| units[*at].is_some());
    let fits = |cells: &&[InputCell]| with_unit().all(|at| cells[at] == InputCell::Empty || is_value(&cells[at]));
    let count = |at: usize| others.iter().filter(|cells| is_value(&cells[at])).count();
    match with_unit().map(count).min() {
        _ if !others.iter().all(fits) => UnitsRow::Absent,
        Some(values) if values >= MIN_ROWS => UnitsRow::Found(units),
        _ => UnitsRow::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rows: &[&[&str]]) -> UnitsRow {
        let cell = |text: &&str| match *text {
            "" => InputCell::Empty,
            text => InputCell::Untyped(text.to_owned()),
        };
        let row = |(number, cells): (u64, &&[&str])| InputRow {
            row_number: number,
            cells: Ok(cells.iter().map(cell).collect()),
            new_keys: Vec::new(),
            raw_text_if_kept: Vec::new(),
        };
        find_in_first_row(&(1..).zip(rows).map(row).collect::<Vec<_>>(), rows[0].len(), |at| at == 9)
    }

    #[test]
    fn units_are_texts_above_numbers() {
        let units = |units: &[&str]| {
            let unit = |unit: &&str| if unit.is_empty() { None } else { Some((*unit).to_owned()) };
            UnitsRow::Found(units.iter().map(unit).collect())
        };
        assert_eq!(found(&[&["s", "°C"], &["1", "2.5"], &["2", "3"]]), units(&["s", "°C"]));
        assert_eq!(found(&[&["s", "-", ""], &["1", "2", "ok"], &["2", "3", "off"]]), units(&["s", "-", ""]));
        assert_eq!(
            found(&[&["UTC", "V"], &["2026-11-24T08:00:00Z", "1"], &["2026-11-24T08:00:01Z", "2"]]),
            units(&["UTC", "V"])
        );
        assert_eq!(found(&[&["s", "V"], &["1", "2"]]), UnitsRow::Undecided);
        assert_eq!(found(&[&["s", "V"], &["1", "2"], &["2", ""]]), UnitsRow::Undecided);
    }

    #[test]
    fn other_rows_have_no_units() {
        for rows in [
            &[&["1", "V"][..], &["1", "2"], &["2", "3"]][..],
            &[&["s", "V"], &["1", "x"], &["2", "3"]],
            &[&["n/a", "NA"], &["1", "2"], &["2", "3"]],
            &[&["", ""], &["1", "2"], &["2", "3"]],
            &[&["s", "NaN"], &["1", "2"], &["2", "3"]],
        ] {
            assert_eq!(found(rows), UnitsRow::Absent, "{rows:?}");
        }
    }
}
