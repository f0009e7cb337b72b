//! Appends of writers that have joined: a writer gives its rows numbers behind those that it knows, and at the flush they
//! are put behind those that there are.

use std::ops::Range;

use crate::entry::{DimVec, EntryChange, EntryHead, RowShift};

impl RowShift {
    fn row(&self, row: u64) -> Option<u64> {
        let has_row = self.start <= row && row < self.end;
        has_row.then(|| self.new_start.saturating_add(row - self.start))
    }
}

/// Gives an entry the rows that it has by the shifts of its batch.
pub fn shift_entry(shifts: &[RowShift], head: &mut EntryHead) {
    let shifted =
        |row: u64| shifts.iter().filter(|shift| shift.dataset == head.dataset).find_map(|shift| shift.row(row));
    match &mut head.change {
        EntryChange::Block { start, .. } => {
            if let Some(row) = start.first_mut() {
                *row = shifted(*row).unwrap_or(*row);
            }
        }
        EntryChange::GrowToAtLeast(dims) => {
            if let Some(end) = dims.first_mut()
                && let Some(last) = end.checked_sub(1).and_then(shifted)
            {
                *end = last.saturating_add(1);
            }
        }
        EntryChange::PointCoords(_) | EntryChange::ShrinkTo(_) | EntryChange::EndOfBatch { .. } => {}
    }
}

/// Rows that a batch appends to a dataset.
#[derive(Debug, Default)]
pub struct AppendedRows {
    runs: Vec<AppendedRun>,
    /// The extent that the writer has set in the batch, beside that of its appends (rows).
    floor: u64,
    /// What the extent is at most, and what it is along the other dimensions.
    max: DimVec,
    dims: DimVec,
    /// The extent that entries of the batch say (rows).
    grown_to: u64,
    /// Whether the writer has made the dataset smaller: then its rows stay where they are.
    is_fixed: bool,
}

#[derive(Debug)]
struct AppendedRun {
    from: u64,
    to: u64,
    floor: u64,
}

impl AppendedRows {
    /// Notes rows that lie behind the extent that the writer knows. `known_dims` is that extent, and `max_dims` the largest one.
    pub fn push(&mut self, Range { start: from, end: to }: Range<u64>, known_dims: &[u64], max_dims: &[u64]) {
        if self.runs.is_empty() {
            self.floor = self.floor.max(known_dims.first().copied().unwrap_or(0));
        }
        (self.dims, self.max) = (DimVec::from_slice(known_dims), DimVec::from_slice(max_dims));
        match self.runs.last_mut().filter(|last| from <= last.to && last.from <= from) {
            Some(last) => last.to = last.to.max(to),
            None => self.runs.push(AppendedRun { from, to, floor: self.floor }),
        }
    }

    /// Whether rows that begin here are appended: right behind the extent, which has so many rows, or behind those before.
    /// Who writes elsewhere has named the places.
    pub fn is_append(&self, first_row: u64, known_rows: u64) -> bool {
        first_row == known_rows || self.runs.last().is_some_and(|last| last.from <= first_row && first_row <= last.to)
    }

    /// Notes that the writer makes the extent so large.
    pub fn record_growth_to(&mut self, row_count: u64) {
        self.grown_to = self.grown_to.max(row_count);
        if self.runs.last().is_none_or(|last| row_count > last.to) {
            self.floor = self.floor.max(row_count);
        }
    }

    /// Notes that the writer makes the dataset smaller.
    pub fn record_shrink(&mut self) {
        self.is_fixed = true;
    }

    /// Whether there are rows to be placed.
    pub fn has_rows_to_place(&self) -> bool {
        !self.runs.is_empty() && !self.is_fixed
    }

    /// The extent that covers the rows, under the numbers that the writer has given them, if no entry says it.
    pub fn unrecorded_extent(&self) -> Option<DimVec> {
        let last = self.runs.last().filter(|last| last.to > self.grown_to)?;
        let mut dims = self.dims.clone();
        *dims.first_mut()? = last.to;
        Some(dims)
    }

    /// Whether a dataset may have so many rows.
    pub fn fits_max_extent(&self, rows: u64) -> bool {
        self.max.first().is_none_or(|max| rows <= *max)
    }

    /// Where the rows go in a dataset that has so many, and how many it has then.
    pub fn assign_row_numbers(&self, dataset: u64, existing_rows: u64) -> (Vec<RowShift>, u64) {
        let (mut shifts, mut next) = (Vec::new(), existing_rows);
        for run in &self.runs {
            next = next.max(run.floor);
            if next != run.from {
                shifts.push(RowShift { dataset, start: run.from, end: run.to, new_start: next });
            }
            next = next.saturating_add(run.to - run.from);
        }
        (shifts, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(rows: &AppendedRows, there: u64) -> Vec<(u64, u64, u64)> {
        rows.assign_row_numbers(1, there).0.iter().map(|shift| (shift.start, shift.end, shift.new_start)).collect()
    }

    #[test]
    fn rows_go_behind_those_that_there_are() {
        let mut rows = AppendedRows::default();
        rows.push(2..5, &[2], &[u64::MAX]);
        rows.push(5..6, &[2], &[u64::MAX]);
        assert_eq!(place(&rows, 2), []);
        assert_eq!(place(&rows, 7), [(2, 6, 7)]);
        // Those of others are known by now.
        rows.push(9..10, &[9], &[u64::MAX]);
        assert_eq!((place(&rows, 9), rows.assign_row_numbers(1, 9).1), (vec![(2, 6, 9), (9, 10, 13)], 14));
        // What the writer has set itself is kept.
        rows.record_growth_to(10);
        rows.record_growth_to(100);
        rows.push(100..101, &[100], &[u64::MAX]);
        assert_eq!(place(&rows, 9), [(2, 6, 9), (9, 10, 13)]);
        assert_eq!(place(&rows, 98), [(2, 6, 98), (9, 10, 102), (100, 101, 103)]);
    }

    #[test]
    fn entries_of_the_rows_are_moved_and_others_are_not() {
        let shifts = [RowShift { dataset: 1, start: 2, end: 6, new_start: 9 }];
        let moved = |dataset: u64, change: EntryChange| {
            let mut head =
                EntryHead { batch_number: 0, file: 1, dataset, change, filter_id: 0, data_len: 0, data_crc: 0 };
            shift_entry(&shifts, &mut head);
            head.change
        };
        let block =
            |row| EntryChange::Block { start: DimVec::from_slice(&[row, 3]), count: DimVec::from_slice(&[1, 1]) };
        let grow = |rows| EntryChange::GrowToAtLeast(DimVec::from_slice(&[rows, 4]));
        assert_eq!((moved(1, block(2)), moved(1, block(5))), (block(9), block(12)));
        assert_eq!((moved(1, block(1)), moved(1, block(6)), moved(2, block(2))), (block(1), block(6), block(2)));
        assert_eq!((moved(1, grow(6)), moved(1, grow(2)), moved(1, grow(7))), (grow(13), grow(2), grow(7)));
    }
}
