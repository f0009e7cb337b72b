//! The dataset that rows or frames are appended to, in a file that other processes may follow.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use h5live::{Conversion, Dataset, File, Location, StoreErrorKind};
use h5live_log::joined_files::is_shared;

use crate::error::Result;
use crate::model::Datatype;
use crate::temp_output::{self, ForceArgs};
use crate::times::units_name;
use crate::value::Value;

use super::input_cell::InputCell;
use super::key_datasets::KeyDatasets;
use super::row::{RowError, RowType};
use super::target::{self, RecordLayout, RecordTarget};

/// Rows are handed to the dataset in batches of about this many bytes.
const BATCH_BYTES: usize = 256 << 10;

/// A row that came in is flushed with the next one that comes this much later, even if others came between them.
const MAX_FLUSH_DELAY: Duration = Duration::from_millis(100);

/// The first rows are flushed when they have so many bytes.
const FIRST_FLUSH_BYTES: usize = 1 << 20;

/// The attribute of a dataset for the lines that came before its rows.
pub const PREAMBLE: &str = "preamble";

/// Rows that are not in the dataset yet.
#[derive(Debug, Default)]
struct RowBatch {
    /// Values of rows.
    rows: Vec<Value>,
    /// Elements of frames, as they are stored.
    frames: Vec<u8>,
}

/// A dataset that is being recorded.
#[derive(Debug)]
pub struct RecordSink {
    file: RecordFile,
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
    /// Rows after which to flush.
    every: u64,
    rows: u64,
    /// Rows recorded before the last flush.
    flushed: u64,
    /// Rows of the dataset before.
    first_row: u64,
    /// The datasets of keys that the first row does not have.
    keys: KeyDatasets,
}

/// A dataset that was recorded, in a file that is closed.
#[derive(Debug)]
pub struct ClosedSink {
    /// How many rows the file has got.
    pub kept: u64,
    /// What became of a dataset without rows.
    pub unused: Option<UnusedOutput>,
    /// [`Error::File`](crate::error::Error::File) if not all was stored.
    pub ended: Result<()>,
}

/// What became of the output of a recording without rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnusedOutput {
    /// The file was there before, or somebody else has opened it.
    #[error("no rows were recorded; the file stays as it is")]
    Kept,
    /// The file had been made for the recording.
    #[error("no rows were recorded; the new file, which would be empty, was removed")]
    Removed,
    /// The dataset had been made for the recording.
    #[error("no rows were recorded; the new dataset, which would be empty, was removed")]
    DatasetRemoved,
    /// The dataset is there.
    #[error("no rows were recorded; the dataset has no more than before")]
    Dataset,
}

/// The file of a recording, open for appending. Other processes may read it.
#[derive(Debug)]
pub struct RecordFile {
    file: File,
    location: Location,
    /// Whether it was not there before.
    is_new: bool,
}

impl RecordFile {
    /// Opens the file, and makes it at once if it is not there.
    ///
    /// # Errors
    /// [`Error::File`](crate::error::Error::File).
    pub fn open(location: &Location) -> Result<Self> {
        temp_output::sweep_beside(location)?;
        let mut is_new = false;
        let file = match crate::open::options().swmr_write().open(location) {
            Err(error) if error.store_kind() == Some(&StoreErrorKind::NotThere) => {
                let file = crate::open::options().create_new().open(location)?;
                is_new = true;
                if let Err(error) = file.start_swmr() {
                    // The same cause as of the error may keep the file from being removed.
                    let _ = RecordFile { file, location: location.clone(), is_new }.close_unused();
                    return Err(error.into());
                }
                file
            }
            opened => opened?,
        };
        Ok(RecordFile { file, location: location.clone(), is_new })
    }

    /// The columns of a dataset for rows with these names; `None` if the dataset is not there, or has others.
    ///
    /// # Errors
    /// [`Error::File`](crate::error::Error::File).
    pub fn table(&self, dataset: &str, names: &[String]) -> Result<Option<RowType>> {
        match self.file.dataset(dataset) {
            Err(error) if error.is_not_found() => Ok(None),
            found => target::table(&found?, names),
        }
    }

    /// The columns of a dataset for rows without names; `None` if the dataset is not there, or has no columns.
    ///
    /// # Errors
    /// [`Error::File`](crate::error::Error::File).
    pub fn table_by_position(&self, dataset: &str) -> Result<Option<RowType>> {
        match self.file.dataset(dataset) {
            Err(error) if error.is_not_found() => Ok(None),
            found => target::table_by_position(&found?),
        }
    }

    /// Opens the dataset for appending, and makes it if it is not there. Its rows are `row` (`[rank - 1]`, elements) of
    /// `datatype`. The columns `times` are times.
    ///
    /// # Errors
    /// As [`target::open_or_create`].
    pub fn open_dataset(
        &self,
        dataset: &str,
        datatype: &Datatype,
        row: &[u64],
        times: &[String],
        storage: RecordLayout,
    ) -> Result<RecordTarget> {
        target::open_or_create(&self.file, &self.location, dataset, datatype, row, times, storage)
    }

    /// Begins to append to a dataset with rows of so many bytes. They are flushed after `every` rows.
    ///
    /// # Errors
    /// [`Error::File`](crate::error::Error::File).
    pub fn into_sink(
        self,
        target: RecordTarget,
        path: &str,
        row_bytes: usize,
        storage: RecordLayout,
        every: u64,
    ) -> Result<RecordSink> {
        let keys = KeyDatasets::new(self.location.clone(), path, storage);
        let RecordTarget { dataset, made } = target;
        let first_row = dataset.shape()?.first().copied().unwrap_or(0);
        Ok(RecordSink {
            file: self,
            dataset,
            made,
            row_bytes,
            batch: RowBatch::default(),
            unflushed: 0,
            unflushed_since: Instant::now(),
            unflushed_bytes: 0,
            every,
            rows: 0,
            flushed: 0,
            first_row,
            keys,
        })
    }

    /// Closes the file, in which nothing was recorded. Removes it if it was not there before; whether it has.
    ///
    /// # Errors
    /// [`Error::File`](crate::error::Error::File).
    pub fn close_unused(self) -> Result<bool> {
        let is_empty = self.file.root().names().is_ok_and(|names| names.is_empty());
        self.file.close()?;
        let path = if self.is_new && is_empty { crate::open::path_of_any_store(&self.location)? } else { None };
        // Others may have joined a log.
        let path = path.filter(|path| !is_shared(path));
        // If somebody else has opened it meanwhile, it stays.
        let claim = |path: PathBuf| Some((temp_output::claim(&path, ForceArgs { replaces_file: true }).ok()??, path));
        Ok(path.and_then(claim).is_some_and(|(_claimed, path)| std::fs::remove_file(path).is_ok()))
    }
}

impl RecordSink {
    /// The datasets of keys that the first row does not have.
    pub fn key_datasets(&mut self) -> &mut KeyDatasets {
        &mut self.keys
    }

    /// Puts the values of keys that the first row does not have, of the row that is pushed next, before their datasets.
    /// If one cannot be stored, none is.
    ///
    /// # Errors
    /// [`Error::File`](crate::error::Error::File) or [`Error::InvalidFile`](crate::error::Error::InvalidFile) if a dataset
    /// cannot be made or takes no such values.
    pub fn stage_new_keys(&mut self, values: &[(String, InputCell)], fit: Conversion) -> Result<Result<(), RowError>> {
        let row = self.first_row.saturating_add(self.rows);
        self.keys.stage(&self.file.file, row, values, fit)
    }

    /// Sets the attribute for the lines that came before the rows, if there are no rows yet. Whether it was set.
    ///
    /// # Errors
    /// [`Error::File`](crate::error::Error::File).
    pub fn set_preamble(&self, text: &str) -> Result<bool> {
        if self.first_row > 0 {
            return Ok(false);
        }
        self.dataset.new_attribute(PREAMBLE).write(&[text.to_owned()])?;
        Ok(true)
    }

    /// Sets the units of columns as attributes of the dataset. If it has rows already, its attributes stay as they are. Those
    /// that were not set.
    ///
    /// # Errors
    /// [`Error::File`](crate::error::Error::File).
    pub fn set_units(&self, units: &[(String, String)]) -> Result<Vec<String>> {
        let mut left = Vec::new();
        for (column, unit) in units {
            let name = units_name(column);
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

    /// Appends a row.
    ///
    /// # Errors
    /// [`Error::File`](crate::error::Error::File) if the file cannot take it.
    pub fn push(&mut self, row: Value) -> Result<()> {
        self.batch.rows.push(row);
        self.count(self.row_bytes)
    }

    /// Appends a frame, which is a row of elements as they are stored.
    ///
    /// # Errors
    /// [`Error::File`](crate::error::Error::File) if the file cannot take it.
    pub fn push_frame(&mut self, elements: &[u8]) -> Result<()> {
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
        let RowBatch { rows, frames } = &self.batch;
        // What fails later leaves these rows, at least.
        let is_first = self.flushed == 0 && self.unflushed_bytes >= FIRST_FLUSH_BYTES;
        if is_first || self.unflushed >= self.every || self.unflushed_since.elapsed() >= MAX_FLUSH_DELAY {
            self.flush()?;
        } else if frames.len() + (rows.len() + 1) * self.row_bytes > BATCH_BYTES {
            self.append()?;
        }
        Ok(())
    }

    fn append(&mut self) -> Result<()> {
        let RowBatch { rows, frames } = &mut self.batch;
        if !rows.is_empty() {
            self.dataset.append_values(rows)?;
            rows.clear();
        }
        if !frames.is_empty() {
            self.dataset.append_raw(frames)?;
            frames.clear();
        }
        self.keys.append()
    }

    /// Makes all rows visible to other processes.
    ///
    /// # Errors
    /// [`Error::File`](crate::error::Error::File); rows that were flushed before stay readable.
    pub fn flush(&mut self) -> Result<()> {
        if self.unflushed > 0 {
            self.append()?;
            self.dataset.flush()?;
            self.keys.flush()?;
            (self.unflushed, self.unflushed_bytes) = (0, 0);
            self.flushed = self.rows;
        }
        Ok(())
    }

    /// Rows recorded.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether the dataset was there before.
    pub fn was_there(&self) -> bool {
        self.made.is_empty()
    }

    /// Flushes and closes the file. What cannot be flushed does not keep the file from being closed with all that is in it.
    /// What was made for the recording is removed again if no row came in.
    pub fn close(mut self) -> ClosedSink {
        if self.rows == 0
            && let Some(unused) = self.remove_made()
        {
            return match self.file.close_unused() {
                Ok(true) => ClosedSink { kept: 0, unused: Some(UnusedOutput::Removed), ended: Ok(()) },
                closed => ClosedSink { kept: 0, unused: Some(unused), ended: closed.map(drop) },
            };
        }
        let flushed = self.flush();
        let rows = self.dataset.shape().ok().and_then(|shape| shape.first().copied()).unwrap_or(0);
        let closed = self.file.file.close();
        let kept = if closed.is_ok() { rows.saturating_sub(self.first_row) } else { self.flushed };
        let unused = (self.rows == 0).then_some(UnusedOutput::Dataset);
        ClosedSink { kept, unused, ended: flushed.and_then(|()| Ok(closed?)) }
    }

    /// Removes the dataset if it was made for the recording and nobody else has put rows into it, and then its groups if
    /// nothing is in them.
    fn remove_made(&self) -> Option<UnusedOutput> {
        let (dataset, groups) = self.made.split_last()?;
        if self.dataset.shape().ok()?.first() != Some(&0) {
            return None;
        }
        let root = self.file.file.root();
        root.unlink(dataset).ok()?;
        let is_empty = |group: &String| {
            self.file.file.group(group).and_then(|group| group.names()).is_ok_and(|names| names.is_empty())
        };
        let _ = groups.iter().rev().take_while(|group| is_empty(group)).try_for_each(|group| root.unlink(group));
        Some(UnusedOutput::DatasetRemoved)
    }
}
