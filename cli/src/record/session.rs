//! A recording: what came in, what waits for the types of its columns, and what is stored.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::RecordCommand;
use super::input::{InputEvent, InputRow};
use super::kind::ColumnKind;
use super::on_error::OddRows;
use super::record_sink::{PREAMBLE, RecordFile, RecordSink};
use super::row::{InferRules, InputCell, RecordColumn, RowError, RowType, first_irregular_array};
use crate::error::{Error, Result};
use crate::model::Datatype;
use crate::progress;

/// How long the types of columns may stay open after the first row.
const SAMPLE_TIME: Duration = Duration::from_secs(1);

/// The longest row that is stored (bytes).
const MAX_ROW_BYTES: u64 = 1 << 30;

/// The state of a recording.
pub struct RecordSession<'a> {
    options: &'a RecordCommand,
    names: Vec<String>,
    /// Rows that wait for the types of their columns.
    sample: Vec<InputRow>,
    since: Option<Instant>,
    /// When the first row came in, if it came here later.
    begun: Option<Instant>,
    table: Option<RowType>,
    /// The file, until there is a sink.
    file: Option<RecordFile>,
    sink: Option<RecordSink>,
    odd: OddRows,
    /// The lines before the header, which no dataset has yet.
    preamble: Option<String>,
    frames: u64,
    bar: ProgressBar,
}

/// A recording that is over.
pub struct FinishedRecording {
    /// Rows that were stored; if it ended with an error of the file, those that came in.
    pub rows: u64,
    /// Rows that the closed file has got, also if something has failed.
    pub kept: u64,
    /// Those that were not.
    pub odd: OddRows,
    /// What became of the dataset or file without rows.
    pub unused: Option<UnusedOutput>,
    /// Why it ended, if not because there was nothing more.
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
    /// The dataset is there.
    #[error("no rows were recorded; the dataset has no more than before")]
    Dataset,
}

impl<'a> RecordSession<'a> {
    /// Opens the file. Nothing has come in. If the type of the rows is known, the dataset is there at once, too.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be opened; as [`OddRows::check_file`].
    pub fn new(options: &'a RecordCommand) -> Result<Self> {
        let file = RecordFile::open(&options.file)?;
        let odd = OddRows::new(options.on_error.clone());
        // Only now it is seen if it is the file of the recording.
        if let Err(error) = odd.check_file() {
            file.close_unused()?;
            return Err(error);
        }
        let mut session = RecordSession {
            options,
            names: Vec::new(),
            sample: Vec::new(),
            since: None,
            begun: None,
            table: None,
            file: Some(file),
            sink: None,
            odd,
            preamble: None,
            frames: 0,
            bar: progress::counter("row"),
        };
        if let Some(kind) = options.dtype {
            session.open_sink(&kind.datatype(), &options.shape, &[])?;
        }
        Ok(session)
    }

    fn open_sink(&mut self, datatype: &Datatype, row: &[u64], times: &[String]) -> Result<()> {
        if let Some(file) = self.file.take() {
            self.sink = Some(self.options.open(file, datatype, row, times)?);
        }
        Ok(())
    }

    /// The columns of the dataset that is there; `None` if it is not, or the input has others.
    fn known_columns(&self) -> Result<Option<RowType>> {
        let Some(file) = &self.file else { return Ok(None) };
        let table = file.table(&self.options.path, &self.names)?;
        let is_like = |given: &RecordColumn, column: &RecordColumn| {
            given.kind == column.kind && (given.dims.is_empty() || given.dims == column.dims)
        };
        let as_given = |column: &RecordColumn| {
            self.options.types.iter().filter(|given| given.name == column.name).all(|given| is_like(given, column))
        };
        Ok(table.filter(|table| table.columns().iter().all(as_given)))
    }

    /// Whether rows are needed as they came in.
    pub fn needs_text(&self) -> bool {
        self.odd.need_text()
    }

    /// Takes what came in.
    ///
    /// # Errors
    /// [`Error::Row`] if reading is to stop at a row; as [`crate::error::Error`] says if nothing can be stored.
    pub fn take(&mut self, event: InputEvent) -> Result<()> {
        match event {
            InputEvent::Columns { names, header, begun } => {
                self.names = names;
                self.begun = begun;
                self.odd.set_header(header);
                let unknown = |column: &&RecordColumn| !self.names.contains(&column.name);
                match self.options.types.iter().find(unknown) {
                    Some(column) => Err(Error::NoColumn(column.name.clone())),
                    None => Ok(()),
                }
            }
            InputEvent::Preamble(text) => {
                self.preamble = Some(text);
                Ok(())
            }
            InputEvent::Row(InputRow { number, cells: Err(error), text, .. }) if self.odd.stops() => {
                self.odd.take(number, error, &text)
            }
            InputEvent::Row(row) if self.table.is_none() => {
                self.sample.push(row);
                let since = *self.since.get_or_insert_with(|| self.begun.take().unwrap_or_else(Instant::now));
                let is_full = self.sample.len() as u64 >= self.options.infer_rows;
                if is_full || since.elapsed() >= SAMPLE_TIME { self.begin() } else { Ok(()) }
            }
            InputEvent::Row(row) => self.store(row),
            InputEvent::Frame(bytes) => self.store_frame(&bytes),
            InputEvent::Failed(error) => Err(error.into()),
        }
    }

    /// The input rests.
    ///
    /// # Errors
    /// As [`RecordSession::take`].
    pub fn rest(&mut self) -> Result<()> {
        if self.table.is_none() && self.since.is_some_and(|since| since.elapsed() >= SAMPLE_TIME) {
            self.begin()?;
        }
        self.sink.as_mut().map_or(Ok(()), RecordSink::flush)
    }

    /// Decides on the types of the columns, and stores the rows that waited for it.
    fn begin(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.sample);
        if self.names.is_empty() {
            // Rows that are none do not say what the columns are.
            return waiting.into_iter().try_for_each(|row| self.odd.take_row(row));
        }
        // Rows of another length are odd ones.
        let whole = |row: &&InputRow| row.cells.as_ref().is_ok_and(|cells| cells.len() == self.names.len());
        let cells = waiting.iter().filter(whole).filter_map(|row| row.cells.as_deref().ok());
        let cells: Vec<&[InputCell]> = cells.collect();
        if cells.is_empty() {
            // None of them says what the columns hold.
            let expected = self.names.len();
            let odd = |row: InputRow| match row.cells {
                Ok(cells) => self.odd.take(row.number, RowError::Fields { found: cells.len(), expected }, &row.text),
                Err(error) => self.odd.take(row.number, error, &row.text),
            };
            self.since = None;
            return waiting.into_iter().try_for_each(odd);
        }
        let empty = self.options.empty.map(|value| value.to_string());
        let rules = InferRules { has_empty_value: empty.is_some(), str_width: self.options.str_width };
        let table = match self.known_columns()? {
            Some(table) => table,
            None => {
                let inferred = RowType::infer_columns(&self.names, &cells, &rules);
                self.tell_odd_texts(&inferred, &waiting, &rules);
                RowType::new(inferred.into_iter().map(|column| self.as_given(column)).collect())
            }
        };
        let bytes = table.row_bytes();
        if bytes > MAX_ROW_BYTES {
            return Err(Error::RowTooLarge { bytes, max_bytes: MAX_ROW_BYTES });
        }
        self.open_sink(&table.datatype(), &[], &table.times())?;
        self.store_preamble()?;
        if let Some(sink) = &mut self.sink {
            sink.key_datasets().learn(&waiting, &rules);
        }
        self.table = Some(table.with_empty(empty));
        waiting.into_iter().try_for_each(|row| self.store(row))
    }

    /// Makes the lines before the header an attribute of a new dataset, and says so.
    fn store_preamble(&mut self) -> Result<()> {
        let (Some(text), Some(sink)) = (self.preamble.take(), &self.sink) else { return Ok(()) };
        let path = &self.options.path;
        let lines = match text.lines().count() {
            1 => "1 line before the header is".to_owned(),
            lines => format!("{lines} lines before the header are"),
        };
        if sink.set_preamble(&text)? {
            eprintln!("h5live: {path}: {lines} its attribute {PREAMBLE:?}");
        } else {
            eprintln!("h5live: {path}: {lines} left out; it has rows already");
        }
        Ok(())
    }

    /// Says which columns begin with a number or an array and are texts all the same, and why.
    fn tell_odd_texts(&self, inferred: &[RecordColumn], rows: &[InputRow], rules: &InferRules) {
        for (at, column) in inferred.iter().enumerate() {
            let is_given = self.options.types.iter().any(|given| given.name == column.name);
            let cell = |row: &InputRow| row.cells.as_ref().ok()?.get(at).cloned();
            let cells: Vec<_> = rows.iter().filter_map(|row| Some((row.number, cell(row)?))).collect();
            let (path, name) = (&self.options.path, &column.name);
            if is_given {
                continue;
            }
            if let Some((row, text)) = column.first_text(&cells, rules) {
                eprintln!("h5live: {path}: column {name:?} has texts, not numbers, because of {text:?} in row {row}");
            }
            let irregular = first_irregular_array(&cells.iter().map(|(_, cell)| cell).collect::<Vec<_>>());
            if let Some((row, _)) = irregular.and_then(|at| cells.get(at)) {
                eprintln!(
                    "h5live: {path}: column {name:?} has texts of JSON: row {row} does not have an array of numbers or \
                     texts of one shape"
                );
            }
        }
    }

    /// A column with the type that was given for it, if one was.
    fn as_given(&self, column: RecordColumn) -> RecordColumn {
        match self.options.types.iter().find(|given| given.name == column.name) {
            None => column,
            Some(given) if given.dims.is_empty() => RecordColumn { dims: column.dims, ..given.clone() },
            Some(given) => given.clone(),
        }
    }

    fn store(&mut self, row: InputRow) -> Result<()> {
        let (Some(table), Some(sink)) = (&self.table, &mut self.sink) else {
            return Ok(());
        };
        let InputRow { number, cells, new_keys, text } = row;
        let fit = self.options.lossy.conversion();
        let mut value = cells.and_then(|cells| table.value(&cells, fit));
        if value.is_ok()
            && !new_keys.is_empty()
            && let Err(error) = sink.stage_new_keys(&new_keys, fit)?
        {
            value = Err(error);
        }
        match value {
            Ok(value) => {
                sink.push(value)?;
                self.bar.inc(1);
                Ok(())
            }
            Err(error) => self.odd.take(number, error, &text),
        }
    }

    fn store_frame(&mut self, bytes: &[u8]) -> Result<()> {
        self.frames += 1;
        let kind = self.options.dtype.unwrap_or(ColumnKind::F64);
        let expected = self.options.frame_bytes(kind)?;
        if bytes.len() != expected {
            return self.odd.take(self.frames, RowError::Frame { found: bytes.len(), expected }, bytes);
        }
        if let Some(sink) = &mut self.sink {
            sink.push_frame(bytes)?;
            self.bar.inc(1);
        }
        Ok(())
    }

    /// Stores what still waits, and closes the file.
    pub fn close(mut self, ended: Result<()>) -> FinishedRecording {
        let begun = if self.sample.is_empty() { Ok(()) } else { self.begin() };
        let rows = self.sink.as_ref().map_or(0, RecordSink::rows);
        let mut kept = 0;
        let (closed, unused) = match (self.sink.take(), self.file.take()) {
            (Some(sink), _) => {
                let closed;
                (kept, closed) = sink.close();
                (closed, Some(UnusedOutput::Dataset))
            }
            (None, Some(file)) => match file.close_unused() {
                Ok(true) => (Ok(()), Some(UnusedOutput::Removed)),
                closed => (closed.map(drop), Some(UnusedOutput::Kept)),
            },
            (None, None) => (Ok(()), None),
        };
        self.bar.finish_and_clear();
        // Rows that waited came before the one at which reading stopped.
        let unused = unused.filter(|_| rows == 0);
        FinishedRecording { rows, kept, odd: self.odd, unused, ended: begun.and(ended).and(closed) }
    }
}
