//! Rows that the batch appends which is gathered.

use h5live_model::Error;

use super::LogState;
use crate::encode::UnstagedEntry;
use crate::entry::{EntryChange, RowShift};
use crate::error::Result;
use crate::logged_dataset::LoggedDataset;
use crate::row_shift::AppendedRows;

/// Appends that the end of a batch can put elsewhere. Its head stays below [`crate::entry::MAX_HEAD_BYTES`].
const MAX_SHIFTS: usize = 30_000;

impl LogState {
    /// What the batch that is gathered appends to a dataset.
    pub fn appended_rows_mut(&mut self, dataset: u64) -> &mut AppendedRows {
        self.appended.entry(dataset).or_default()
    }

    /// Whether the batch that is gathered has rows to which only its end gives their places.
    pub fn has_appended_rows(&self) -> bool {
        self.appended.values().any(AppendedRows::has_rows_to_place)
    }

    /// Whether those are rows of a dataset.
    pub fn has_rows_to_place_in(&self, dataset: u64) -> bool {
        self.appended.get(&dataset).is_some_and(AppendedRows::has_rows_to_place)
    }

    /// Puts the rows that were appended behind those that there are.
    pub(super) fn place_appended(&mut self) -> Result<Vec<RowShift>> {
        let mut shifts = Vec::new();
        for (number, rows) in self.appended.iter().filter(|(_, rows)| rows.has_rows_to_place()) {
            let there = self.datasets.get(number).and_then(LoggedDataset::published_first_dim).unwrap_or(0);
            let (of_dataset, end) = rows.assign_row_numbers(*number, there);
            if !rows.fits_max_extent(end) {
                return Err(Error::Invalid(format!(
                    "others have appended: {end} rows are more than the dataset may have"
                )));
            }
            shifts.extend(of_dataset);
        }
        if shifts.len() > MAX_SHIFTS {
            let text = format!("one flush appends to more than {MAX_SHIFTS} datasets to which others append, too");
            return Err(Error::Invalid(text));
        }
        for (number, rows) in
            std::mem::take(&mut self.appended).into_iter().filter(|(_, rows)| rows.has_rows_to_place())
        {
            // What is seen has an extent: later rows, also those of others, go behind it.
            if let Some(extent) = rows.unrecorded_extent() {
                self.append_dataset_entry(
                    number,
                    extent.len(),
                    UnstagedEntry::plain(EntryChange::GrowToAtLeast(extent), &[]),
                )?;
            }
            if let Some(dataset) = self.datasets.get_mut(&number) {
                dataset.shift_unended_entries(&shifts);
            }
        }
        Ok(shifts)
    }
}
