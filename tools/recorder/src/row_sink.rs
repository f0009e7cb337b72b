//! The dataset that rows or frames are appended to, in a file that other processes may follow.

use std::time::Instant;

use h5live::{ConversionPolicy, Dataset, File, Value};

use h5live_text::times::units_attribute_name;

use super::error::Result;
use super::flush_policy::FlushPolicy;
use super::input_cell::InputCell;
use super::key_datasets::NewKeyDatasets;
use super::row_error::RowError;
use super::target::{RecordLayout, RecordTarget};

/// Rows are handed to the dataset in batches of about this many bytes.
const BATCH_BYTES: usize = 256 << 10;

/// The first rows are flushed when they have so many bytes.
const FIRST_FLUSH_BYTES: usize = 1 << 20;

/// The attribute of a dataset for the lines that came before its rows.
pub const PREAMBLE_ATTRIBUTE: &str = "preamble";

/// Rows that are not in the dataset yet.
#[derive(Debug, Default)]
struct RowBatch {
    /// Values of elements.
    rows: Vec<Value>,
    /// Elements of frames, as they are stored.
    frames: Vec<u8>,
    /// Bytes of both.
    bytes: usize,
}

/// A dataset that is being recorded.
#[derive(Debug)]
pub struct RowSink {
    file: File,
    dataset: Dataset,
    /// What was made for the recording: groups, the outer ones first, and the dataset.
    made: Vec<String>,
    row_bytes: usize,
    batch: RowBatch,
    /// Rows since the last flush.
    unflushed: u64,
    /// When the first of them came.
    unflushed_since: Instant,
    /// Bytes since the last flush.
    unflushed_bytes: usize,
    flush: FlushPolicy,
    rows: u64,
    /// Rows recorded before the last flush.
    flushed: u64,
    /// Rows of the dataset before.
    first_row: u64,
    /// The datasets of keys that the first row does not have.
    keys: NewKeyDatasets,
}

/// A dataset that was recorded.
#[derive(Debug)]
pub struct RowSinkReport {
    /// Rows that others could see before the last flush, at least.
    pub flushed_rows: u64,
    /// Rows that the dataset has got.
    pub dataset_row_growth: u64,
    /// What became of the dataset, if no rows came in.
    pub no_rows_outcome: Option<NoRowsDatasetOutcome>,
    /// [`Error::File`](super::error::Error::File) if not all was stored.
    pub final_flush: Result<()>,
}

impl Default for RowSinkReport {
    /// There was none.
    fn default() -> Self {
        RowSinkReport {
            flushed_rows: 0,
            dataset_row_growth: 0,
            no_rows_outcome: Some(NoRowsDatasetOutcome::NotOpened),
            final_flush: Ok(()),
        }
    }
}

/// What became of the dataset of a recording without rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRowsDatasetOutcome {
    /// The recording did not come to the point of making it.
    NotOpened,
    /// It had been made for the recording, and was removed.
    Removed,
    /// It is there, because it was there before or others have put rows into it.
    Kept,
}

impl RowSink {
    /// Begins to append to a dataset of a file, with rows of so many bytes.
    ///
    /// # Errors
    /// [`Error::File`](super::error::Error::File).
    pub fn new(
        file: File,
        target: RecordTarget,
        path: &str,
        row_bytes: usize,
        key_dataset_layout: RecordLayout,
        flush: FlushPolicy,
    ) -> Result<Self> {
        let RecordTarget { dataset, created_paths: made } = target;
        let first_row = dataset.shape()?.first().copied().unwrap_or(0);
        Ok(RowSink {
            file,
            dataset,
            made,
            row_bytes,
            batch: RowBatch::default(),
            unflushed: 0,
            unflushed_since: Instant::now(),
            unflushed_bytes: 0,
            flush,
            rows: 0,
            flushed: 0,
            first_row,
            keys: NewKeyDatasets::new(path, key_dataset_layout),
        })
    }

    /// The datasets of keys that the first row does not have.
    pub fn datasets_of_new_keys_mut(&mut self) -> &mut NewKeyDatasets {
        &mut self.keys
    }

    /// Puts the values of keys that the first row does not have, of the row that is pushed next, before their datasets.
    /// If one cannot be stored, none is.
    ///
    /// # Errors
    /// [`Error::File`](super::error::Error::File) or [`Error::Dataset`](super::error::Error::Dataset) if a dataset
    /// cannot be made or takes no such values.
    pub fn open_and_stage_new_keys(
        &mut self,
        values: &[(String, InputCell)],
        conversion: ConversionPolicy,
    ) -> Result<Result<(), RowError>> {
        let row = self.first_row.saturating_add(self.rows);
        self.keys.open_and_stage(&self.file, row, values, conversion)
    }

    /// Sets the attribute for the lines that came before the rows, if there are no rows yet. Whether it was set.
    ///
    /// # Errors
    /// [`Error::File`](super::error::Error::File).
    pub fn write_preamble_if_empty(&self, text: &str) -> Result<bool> {
        if self.first_row > 0 {
            return Ok(false);
        }
        self.dataset.new_attribute(PREAMBLE_ATTRIBUTE).write(&[text.to_owned()])?;
        Ok(true)
    }

    /// Sets the units of columns as attributes of the dataset. If it has rows already, its attributes stay as they are. Those
    /// that were not set.
    ///
    /// # Errors
    /// [`Error::File`](super::error::Error::File).
    pub fn set_units_return_skipped(&self, units: &[(String, String)]) -> Result<Vec<String>> {
        let mut left = Vec::new();
        for (column, unit) in units {
            let name = units_attribute_name(column);
            let found = self.dataset.attribute(&name).ok();
            let found = found.and_then(|found| found.values().ok()?.first()?.text().map(str::to_owned));
            match found {
                Some(found) if found == *unit => {}
                // The unit of times is there.
                None if self.first_row == 0 => self.dataset.new_attribute(&name).write_scalar(unit)?,
                _ => left.push(column.clone()),
            }
        }
        Ok(left)
    }

    /// Appends a row: its elements, of which there is one if the dataset has one dimension.
    ///
    /// # Errors
    /// [`Error::File`](super::error::Error::File) if the file cannot take it.
    pub fn push_row(&mut self, elements: Vec<Value>) -> Result<()> {
        self.batch.bytes += self.row_bytes;
        self.batch.rows.extend(elements);
        self.count(self.row_bytes)
    }

    /// Appends a frame, which is a row of elements as they are stored.
    ///
    /// # Errors
    /// [`Error::File`](super::error::Error::File) if the file cannot take it.
    pub fn push_frame(&mut self, elements: &[u8]) -> Result<()> {
        self.batch.bytes += elements.len();
        self.batch.frames.extend_from_slice(elements);
        self.count(elements.len())
    }

    fn count(&mut self, bytes: usize) -> Result<()> {
        if self.unflushed == 0 {
            self.unflushed_since = Instant::now();
        }
        self.rows += 1;
        self.unflushed += 1;
        self.unflushed_bytes += bytes;
        // What fails later leaves these rows, at least.
        let is_first = self.flushed == 0 && self.unflushed_bytes >= FIRST_FLUSH_BYTES;
        if is_first
            || self.unflushed >= self.flush.max_unflushed_rows
            || self.unflushed_since.elapsed() >= self.flush.max_unflushed_age
        {
            self.flush()?;
        } else if self.batch.bytes + self.row_bytes > BATCH_BYTES {
            self.append()?;
        }
        Ok(())
    }

    fn append(&mut self) -> Result<()> {
        let RowBatch { rows, frames, bytes } = &mut self.batch;
        *bytes = 0;
        if !rows.is_empty() {
            self.dataset.append_values(rows)?;
            rows.clear();
        }
        if !frames.is_empty() {
            self.dataset.append_raw(frames)?;
            frames.clear();
        }
        self.keys.append_staged()
    }

    /// Makes all rows visible to other processes.
    ///
    /// # Errors
    /// [`Error::File`](super::error::Error::File); rows that were flushed before stay readable.
    pub fn flush(&mut self) -> Result<()> {
        if self.unflushed > 0 {
            self.append()?;
            self.dataset.flush()?;
            self.keys.flush_appended()?;
            (self.unflushed, self.unflushed_bytes) = (0, 0);
            self.flushed = self.rows;
        }
        Ok(())
    }

    /// Rows recorded.
    pub fn pushed_rows(&self) -> u64 {
        self.rows
    }

    /// Whether the dataset was there before.
    pub fn dataset_existed(&self) -> bool {
        self.made.is_empty()
    }

    /// Flushes what is there. What was made for the recording is removed again if no row came in.
    pub fn flush_or_remove_empty(mut self) -> RowSinkReport {
        if self.rows == 0 && self.remove_made() {
            return RowSinkReport {
                flushed_rows: 0,
                dataset_row_growth: 0,
                no_rows_outcome: Some(NoRowsDatasetOutcome::Removed),
                final_flush: Ok(()),
            };
        }
        let ended = self.flush();
        let rows = self.dataset.shape().ok().and_then(|shape| shape.first().copied()).unwrap_or(0);
        let unused = (self.rows == 0).then_some(NoRowsDatasetOutcome::Kept);
        RowSinkReport {
            flushed_rows: self.flushed,
            dataset_row_growth: rows.saturating_sub(self.first_row),
            no_rows_outcome: unused,
            final_flush: ended,
        }
    }

    /// Removes the dataset if it was made for the recording and nobody else has put rows into it, and then its groups if
    /// nothing is in them. Whether it has.
    fn remove_made(&self) -> bool {
        let Some((dataset, groups)) = self.made.split_last() else { return false };
        let root = self.file.root();
        let is_empty = self.dataset.shape().is_ok_and(|shape| shape.first() == Some(&0));
        if !is_empty || root.unlink(dataset).is_err() {
            return false;
        }
        let is_empty =
            |group: &String| self.file.group(group).and_then(|group| group.names()).is_ok_and(|names| names.is_empty());
        let _ = groups.iter().rev().take_while(|group| is_empty(group)).try_for_each(|group| root.unlink(group));
        true
    }
}
