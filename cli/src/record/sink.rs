//! The dataset that rows or frames are appended to, in a file that other processes may follow.

use std::path::PathBuf;

use h5live::{Conversion, Dataset, File, Location, StoreErrorKind};

use crate::error::{Error, FileProblem, Result};
use crate::manifest::type_text;
use crate::model::{CharacterSet, Datatype};
use crate::temp_output::{self, Force};

use super::key_datasets::KeyDatasets;
use super::kind::TIME_UNITS;
use super::row::{InputCell, RowError, RowType};

/// A chunk of small rows has about this many bytes.
const CHUNK_BYTES: u64 = 64 << 10;
/// Rows are handed to the dataset in batches of about this many bytes.
const BATCH_BYTES: usize = 256 << 10;

/// How a new dataset is stored.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordLayout {
    /// Rows of a chunk; as many as suit their size if it is not said.
    pub chunk_rows: Option<u64>,
    /// The level of deflate, with shuffle before it.
    pub deflate: Option<u32>,
}

/// A dataset that is being recorded.
#[derive(Debug)]
pub struct RecordSink {
    file: File,
    dataset: Dataset,
    row_bytes: usize,
    /// Rows that are not in the dataset yet.
    batch: Vec<u8>,
    /// Rows since the last flush.
    unflushed: u64,
    /// Rows after which to flush.
    every: u64,
    rows: u64,
    /// Rows of the dataset before.
    first_row: u64,
    /// The datasets of keys that the first row does not have.
    keys: KeyDatasets,
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
    /// [`Error::File`].
    pub fn open(location: &Location) -> Result<Self> {
        temp_output::sweep_beside(location)?;
        let mut is_new = false;
        let file = match crate::open::options().swmr_write().open(location) {
            Err(error) if error.store_kind() == Some(&StoreErrorKind::NotThere) => {
                let file = crate::open::options().create_new().open(location)?;
                file.start_swmr()?;
                is_new = true;
                file
            }
            opened => opened?,
        };
        Ok(RecordFile { file, location: location.clone(), is_new })
    }

    /// The columns of a dataset for rows with these names; `None` if the dataset is not there, or has others.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn table(&self, dataset: &str, names: &[String]) -> Result<Option<RowType>> {
        match self.file.dataset(dataset) {
            Err(error) if error.is_not_found() => Ok(None),
            found => table(&found?, names),
        }
    }

    /// Opens the dataset for appending, and makes it if it is not there. Its rows are `row` (`[rank - 1]`, elements) of
    /// `datatype`. The columns `times` are times.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::InvalidFile`] if the dataset has rows of another type or shape.
    pub fn into_sink(
        self,
        dataset: &str,
        datatype: &Datatype,
        row: &[u64],
        times: &[String],
        storage: RecordLayout,
        every: u64,
    ) -> Result<RecordSink> {
        let RecordFile { file, location, .. } = self;
        let keys = KeyDatasets::new(location.clone(), dataset, storage);
        let dataset = open_or_create(&file, &location, dataset, datatype, row, times, storage)?;
        let row_bytes = row.iter().product::<u64>() as usize * datatype.size() as usize;
        let first_row = dataset.shape()?.first().copied().unwrap_or(0);
        Ok(RecordSink { file, dataset, row_bytes, batch: Vec::new(), unflushed: 0, every, rows: 0, first_row, keys })
    }

    /// Closes the file, in which nothing was recorded. Removes it if it was not there before; whether it has.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn close_unused(self) -> Result<bool> {
        self.file.close()?;
        let path = if self.is_new { crate::open::file_path(&self.location)? } else { None };
        // If somebody else has opened it meanwhile, it stays.
        let claim = |path: PathBuf| Some((temp_output::claim(&path, Force { force: true }).ok()??, path));
        Ok(path.and_then(claim).is_some_and(|(_claimed, path)| std::fs::remove_file(path).is_ok()))
    }
}

impl RecordSink {
    /// Where the next row is to be put. A row that is not whole must be taken away again.
    pub fn row_buffer(&mut self) -> &mut Vec<u8> {
        &mut self.batch
    }

    /// The datasets of keys that the first row does not have.
    pub fn key_datasets(&mut self) -> &mut KeyDatasets {
        &mut self.keys
    }

    /// Puts the values of keys that the first row does not have, of the row that was put into the buffer, before their
    /// datasets. If one cannot be stored, none is.
    ///
    /// # Errors
    /// [`Error::File`] or [`Error::InvalidFile`] if a dataset cannot be made or takes no such values.
    pub fn stage_new_keys(&mut self, values: &[(String, InputCell)], fit: Conversion) -> Result<Result<(), RowError>> {
        let row = self.first_row.saturating_add(self.rows);
        self.keys.stage(&self.file, row, values, fit)
    }

    /// Appends the row that was put into the buffer.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot take it.
    pub fn push(&mut self) -> Result<()> {
        self.rows += 1;
        self.unflushed += 1;
        if self.unflushed >= self.every {
            self.flush()?;
        } else if self.batch.len() + self.row_bytes > BATCH_BYTES {
            self.append()?;
        }
        Ok(())
    }

    fn append(&mut self) -> Result<()> {
        if !self.batch.is_empty() {
            self.dataset.append_raw(&self.batch)?;
            self.batch.clear();
        }
        self.keys.append()
    }

    /// Makes all rows visible to other processes.
    ///
    /// # Errors
    /// [`Error::File`]; rows that were flushed before stay readable.
    pub fn flush(&mut self) -> Result<()> {
        if self.unflushed > 0 {
            self.append()?;
            self.dataset.flush()?;
            self.keys.flush()?;
            self.unflushed = 0;
        }
        Ok(())
    }

    /// Rows recorded.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Flushes and closes the file.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn close(mut self) -> Result<()> {
        self.flush()?;
        Ok(self.file.close()?)
    }
}

/// Opens a dataset for appending, and makes it if it is not there.
///
/// # Errors
/// As [`RecordFile::into_sink`].
pub fn open_or_create(
    file: &File,
    location: &Location,
    path: &str,
    datatype: &Datatype,
    row: &[u64],
    times: &[String],
    storage: RecordLayout,
) -> Result<Dataset> {
    match file.dataset(path) {
        Err(error) if error.is_not_found() => {
            let made = create(file, path, datatype, row, storage)?;
            for column in times {
                let units = Datatype::fixed_string(TIME_UNITS.len() as u32, CharacterSet::Ascii);
                made.new_attribute(&units_name(column)).datatype(units).write_raw(TIME_UNITS.as_bytes())?;
            }
            file.flush()?;
            Ok(made)
        }
        found => check(location, found?, datatype, row),
    }
}

/// The columns of a dataset for rows with these names; `None` if it has others.
///
/// # Errors
/// [`Error::File`].
pub fn table(dataset: &Dataset, names: &[String]) -> Result<Option<RowType>> {
    let Some(table) = RowType::of(&dataset.datatype()?, names) else { return Ok(None) };
    let is_time = |column: &str| {
        let units = dataset.attribute(&units_name(column)).ok();
        units.and_then(|units| units.values().ok()?.first()?.text().map(|text| text == TIME_UNITS)).unwrap_or(false)
    };
    Ok(Some(table.with_times(is_time)))
}

/// The attribute of a dataset that says what the integers of a column of times are.
fn units_name(column: &str) -> String {
    format!("{column}.units")
}

fn create(file: &File, path: &str, datatype: &Datatype, row: &[u64], storage: RecordLayout) -> Result<Dataset> {
    let row_bytes = row.iter().product::<u64>().saturating_mul(u64::from(datatype.size()));
    let chunk_rows = storage.chunk_rows.unwrap_or((CHUNK_BYTES / row_bytes.max(1)).clamp(1, 4096));
    let chunk: Vec<_> = std::iter::once(chunk_rows).chain(row.iter().copied()).collect();
    let mut builder = file.root().new_dataset_with_type(datatype.clone()).unlimited_rows(row).chunk_shape(&chunk);
    if let Some(level) = storage.deflate {
        builder = builder.shuffle().deflate(level);
    }
    Ok(builder.create(path)?)
}

fn check(location: &Location, dataset: Dataset, datatype: &Datatype, row: &[u64]) -> Result<Dataset> {
    let spec = dataset.spec()?;
    let text = |datatype: &Datatype, row: &[u64]| format!("rows {row:?} of {}", type_text(datatype));
    let found = spec.dataspace.dims().get(1..).unwrap_or_default();
    // By what they say: the padding of unused bits, of which there are none, may differ.
    let (found, given) = (text(&spec.datatype, found), text(datatype, row));
    if found == given && spec.dataspace.rank() > 0 {
        return Ok(dataset);
    }
    let problem = FileProblem::OtherType { path: dataset.path().to_owned(), found, given };
    Err(Error::InvalidFile { path: location.to_string().into(), problem })
}
