//! A recording: what came in, what waits for the types of its columns, and what is stored.

use std::time::{Duration, Instant};

use h5live::File;

use h5live::model::Datatype;
use h5live_text::times::units_attribute_name;

use super::error::{DatasetProblem, Error, Result};
use super::input::{InputColumns, InputEvent, InputRow};
use super::input_cell::InputCell;
use super::json_rows::NewKeyPolicy;
use super::observer::{RecordNotice, RecordObserver};
use super::on_error::RefusedRowHandler;
use super::options::{FrameFormat, RecordOptions};
use super::row::{InferRules, RecordColumn, RowType, TextTypeCause, first_array_shape_mismatch};
use super::row_error::RowError;
use super::row_sink::{NoRowsDatasetOutcome, PREAMBLE_ATTRIBUTE, RowSink, RowSinkReport};
use super::target;
use super::units_row::{self, UnitsRow};

/// How long the types of columns may stay open after the first row.
const SAMPLE_TIME: Duration = Duration::from_secs(1);

/// How long they may stay open if the first row may have units, which the rows behind it show.
const UNITS_TIME: Duration = Duration::from_secs(5);

/// The longest row that is stored (bytes).
const MAX_ROW_BYTES: u64 = 1 << 30;

/// The state of a recording.
pub struct RecordSession<'a> {
    options: RecordOptions,
    file: File,
    path: String,
    observer: &'a mut dyn RecordObserver,
    /// The columns of the input. Of JSON, the first rows may have more of them.
    columns: InputColumns,
    /// Rows that wait for the types of their columns.
    sample: Vec<InputRow>,
    since: Option<Instant>,
    table: Option<RowType>,
    sink: Option<RowSink>,
    refused: RefusedRowHandler,
    /// The lines before the header, which no dataset has yet.
    preamble: Option<String>,
    frames: u64,
}

/// A row with its new keys in the columns that have their names.
fn with_columns(mut row: InputRow, names: &[String]) -> InputRow {
    let new_keys = std::mem::take(&mut row.new_keys);
    let Ok(cells) = &mut row.cells else { return row };
    cells.resize(names.len().max(cells.len()), InputCell::Empty);
    for (key, cell) in new_keys {
        match names.iter().position(|name| *name == key) {
            Some(at) => cells[at] = cell,
            None => {
                row.cells = Err(RowError::NewKey(key));
                break;
            }
        }
    }
    row
}

/// What a recording has stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordSummary {
    /// Rows or frames that came in and were taken.
    pub accepted_rows: u64,
    /// Those of them that were flushed, and so are there whatever happens to the file.
    pub flushed_rows: u64,
    /// Rows that the dataset has more than before.
    pub dataset_row_growth: u64,
    /// Rows that were skipped or rejected.
    pub skipped_or_rejected_rows: u64,
    /// What became of the dataset, if no rows came in.
    pub no_rows_outcome: Option<NoRowsDatasetOutcome>,
}

/// A recording that is over.
#[derive(Debug)]
pub struct RecordingResult {
    /// What was stored, also if something has failed.
    pub summary: RecordSummary,
    /// Why it ended, if not because there was nothing more.
    pub outcome: Result<()>,
}

impl<'a> RecordSession<'a> {
    /// Nothing has come in. If the type of the rows is known, the dataset is there at once.
    ///
    /// # Errors
    /// As [`RefusedRowHandler::check_reject_file`]; [`Error::File`] and [`Error::Dataset`] if there is no such dataset.
    pub fn new(file: &File, path: &str, options: RecordOptions, observer: &'a mut dyn RecordObserver) -> Result<Self> {
        let refused = RefusedRowHandler::new(options.on_error.clone());
        // Only now that the file is open it is seen if it is that of the recording.
        refused.check_reject_file()?;
        let mut session = RecordSession {
            options,
            file: file.clone(),
            path: path.to_owned(),
            observer,
            columns: InputColumns::default(),
            sample: Vec::new(),
            since: None,
            table: None,
            sink: None,
            refused,
            preamble: None,
            frames: 0,
        };
        if let Some(frames) = session.options.frames.clone() {
            session.open_sink(&frames.element_kind().datatype(), frames.shape(), &[])?;
        }
        Ok(session)
    }

    /// The options.
    pub fn options(&self) -> &RecordOptions {
        &self.options
    }

    fn open_sink(&mut self, datatype: &Datatype, row: &[u64], times: &[String]) -> Result<()> {
        let RecordOptions { layout, flush, .. } = self.options;
        let target = target::open_or_create(&self.file, &self.path, datatype, row, times, layout)?;
        let row_bytes = row.iter().product::<u64>() as usize * datatype.size() as usize;
        let sink = RowSink::new(self.file.clone(), target, &self.path, row_bytes, layout, flush)?;
        let ignored = if sink.dataset_existed() { self.options.layout_settings() } else { Vec::new() };
        if !ignored.is_empty() {
            self.observer.notice(&RecordNotice::IgnoredLayoutSettings(ignored));
        }
        self.sink = Some(sink);
        Ok(())
    }

    /// The columns of the dataset that is there; `None` if it is not, or the input has others.
    fn known_columns(&mut self) -> Result<Option<RowType>> {
        let found = match self.file.dataset(&self.path) {
            Err(error) if error.is_not_found_in_file() => return Ok(None),
            found => found?,
        };
        let table = if self.columns.is_numbered {
            let table = target::row_type_for_unnamed(&found)?;
            table.map(|table| self.by_position(table)).transpose()?
        } else {
            target::row_type_for_names(&found, &self.columns.names)?
        };
        let names = &self.columns.names;
        let is_like = |given: &RecordColumn, column: &RecordColumn| {
            given.kind == column.kind && (given.dims.is_empty() || given.dims == column.dims)
        };
        let as_given = |(at, column): (usize, &RecordColumn)| {
            let name = if self.columns.is_numbered { &names[at] } else { &column.name };
            self.options
                .given_column_types
                .iter()
                .filter(|given| given.name == *name)
                .all(|given| is_like(given, column))
        };
        Ok(table.filter(|table| table.columns().iter().enumerate().all(as_given)))
    }

    /// The columns of the dataset that is there, for rows without names. It is said if nobody asked for it.
    fn by_position(&mut self, table: RowType) -> Result<RowType> {
        let (found, given) = (table.columns().len(), self.columns.names.len());
        if found != given {
            return Err(DatasetProblem::ColumnCountMismatch { path: self.path.clone(), found, given }.into());
        }
        let names: Vec<_> = table.columns().iter().map(|column| column.name.clone()).collect();
        if self.options.csv.may_have_header && names != self.columns.names {
            self.observer.notice(&RecordNotice::ColumnsByPosition { names });
        }
        Ok(table)
    }

    /// How deep the arrays are that are rows; 0 if rows have columns.
    pub fn row_nesting_depth(&self) -> usize {
        self.file.dataset(&self.path).ok().and_then(|dataset| target::row_nesting_depth(&dataset).ok()).unwrap_or(0)
    }

    /// Whether rows are needed as they came in.
    pub fn needs_raw_text(&self) -> bool {
        self.refused.needs_raw_text()
    }

    /// Takes what came in.
    ///
    /// # Errors
    /// [`Error::Row`] if reading is to stop at a row; as [`Error`] says if nothing can be stored.
    pub fn handle_event(&mut self, event: InputEvent) -> Result<()> {
        match event {
            InputEvent::Columns(columns) => self.take_columns(columns),
            InputEvent::Preamble(text) => {
                self.preamble = Some(text);
                Ok(())
            }
            InputEvent::Row(InputRow { row_number: number, cells: Err(error), raw_text_if_kept: text, .. })
                if self.refused.stops_at_first() =>
            {
                self.refused.handle_refused_row(number, error, &text, self.observer)
            }
            InputEvent::Row(row) if self.table.is_none() => {
                self.sample.push(row);
                self.since.get_or_insert_with(|| self.columns.first_row_time.unwrap_or_else(Instant::now));
                let is_full = self.sample.len() as u64 >= self.options.infer_rows;
                match is_full {
                    true => self.begin(false),
                    false if self.is_sample_time_over() => self.begin(true),
                    false => Ok(()),
                }
            }
            InputEvent::Row(row) => self.store(row),
            InputEvent::Frame(bytes) => self.store_frame(&bytes),
            InputEvent::Failed(error) => Err(error.into()),
        }
    }

    /// The input rests.
    ///
    /// # Errors
    /// As [`RecordSession::handle_event`].
    pub fn on_idle(&mut self) -> Result<()> {
        if self.table.is_none() && self.is_sample_time_over() {
            self.begin(true)?;
        }
        self.sink.as_mut().map_or(Ok(()), RowSink::flush)
    }

    /// Takes the names of the columns.
    fn take_columns(&mut self, columns: InputColumns) -> Result<()> {
        self.columns = columns;
        self.refused.set_header(self.columns.header.clone());
        if !self.columns.header_names_left_out.is_empty() {
            self.observer
                .notice(&RecordNotice::HeaderNamesLeftOut(std::mem::take(&mut self.columns.header_names_left_out)));
        }
        if let Some(doubt) = self.columns.doubt.clone()
            && self.known_columns()?.is_none()
        {
            self.observer.notice(&RecordNotice::DoubtfulHeader(doubt));
        }
        if self.columns.may_have_new_keys { Ok(()) } else { self.check_given_columns() }
    }

    /// Checks that each column with a type that was given is there.
    fn check_given_columns(&self) -> Result<()> {
        let unknown = |column: &&RecordColumn| !self.columns.names.contains(&column.name);
        let unknown = self.options.given_column_types.iter().find(unknown);
        unknown.map_or(Ok(()), |column| Err(Error::NoSuchInputColumn(column.name.clone())))
    }

    /// Whether the first rows were waited for as long as the types of columns may stay open.
    fn is_sample_time_over(&self) -> bool {
        let Some(waited) = self.since.map(|since| since.elapsed()) else { return false };
        waited >= SAMPLE_TIME && (waited >= UNITS_TIME || self.units_row(None) != UnitsRow::Undecided)
    }

    /// What the first rows say of the units of columns. `table` has the columns of the dataset, if it is there.
    fn units_row(&self, table: Option<&RowType>) -> UnitsRow {
        if self.columns.header.is_empty() || !self.options.may_have_units_row {
            return UnitsRow::Absent;
        }
        let names = &self.columns.names;
        units_row::find_in_first_row(&self.sample, names.len(), |at| {
            let columns =
                table.map(RowType::columns).unwrap_or_default().iter().chain(&self.options.given_column_types);
            columns.filter(|column| column.name == names[at]).any(|column| column.kind.is_text())
        })
    }

    /// Takes the rows that waited. Keys that only some of them have are columns, too, unless something else is to become of
    /// them.
    fn take_sample(&mut self) -> Vec<InputRow> {
        let waiting = std::mem::take(&mut self.sample);
        if !self.columns.may_have_new_keys || self.options.new_keys != NewKeyPolicy::ErrorAfterFirstRows {
            return waiting;
        }
        let names = &mut self.columns.names;
        for (key, _) in waiting.iter().flat_map(|row| &row.new_keys) {
            if !names.contains(key) {
                names.push(key.clone());
            }
        }
        waiting.into_iter().map(|row| with_columns(row, names)).collect()
    }

    /// Decides on the types of the columns, and stores the rows that waited for it. It `is_early` if fewer rows than were
    /// asked for have come in time.
    fn begin(&mut self, is_early: bool) -> Result<()> {
        if self.columns.names.is_empty() {
            // Rows that are none do not say what the columns are.
            let waiting = std::mem::take(&mut self.sample);
            return waiting.into_iter().try_for_each(|row| self.refused.handle_unparsed_row(row, self.observer));
        }
        let known = if self.columns.may_have_new_keys { None } else { self.known_columns()? };
        let units = self.units_row(known.as_ref());
        let mut waiting = self.take_sample();
        if matches!(units, UnitsRow::Found(_)) {
            waiting.remove(0);
        }
        // Rows of another length are odd ones.
        let expected = self.columns.names.len();
        let whole = |row: &&InputRow| row.cells.as_ref().is_ok_and(|cells| cells.len() == expected);
        let cells = waiting.iter().filter(whole).filter_map(|row| row.cells.as_deref().ok());
        let cells: Vec<&[InputCell]> = cells.collect();
        if cells.is_empty() {
            // None of them says what the columns hold.
            let reason = |cells: Vec<InputCell>| RowError::FieldCountMismatch { found: cells.len(), expected };
            self.since = None;
            return waiting.into_iter().try_for_each(
                |InputRow { row_number: number, cells, raw_text_if_kept: text, .. }| {
                    let source = cells.map_or_else(|error| error, reason);
                    self.refused.handle_refused_row(number, source, &text, self.observer)
                },
            );
        }
        self.check_given_columns()?;
        let empty = self.options.integer_for_empty.map(|value| value.to_string());
        let rules =
            InferRules { has_integer_for_empty: empty.is_some(), fixed_text_bytes: self.options.fixed_text_bytes };
        let known = if self.columns.may_have_new_keys { self.known_columns()? } else { known };
        let table = match known {
            Some(table) => table,
            None => self.inferred_columns(&waiting, &cells, &rules, is_early),
        };
        let bytes = table.row_bytes();
        if bytes > MAX_ROW_BYTES {
            return Err(Error::RowTooLarge { bytes, max_bytes: MAX_ROW_BYTES });
        }
        self.open_sink(&table.datatype(), &table.row_dims(), &table.time_column_names())?;
        self.store_preamble()?;
        self.store_units(units)?;
        if let Some(sink) = &mut self.sink {
            sink.datasets_of_new_keys_mut().infer_key_types(&waiting, &rules);
        }
        self.table = Some(table.with_integer_for_empty(empty));
        waiting.into_iter().try_for_each(|row| self.store(row))
    }

    /// The columns of a new dataset, as the first rows say them. Rows that come slowly say little: numbers that are whole in
    /// the first rows may have fractions later.
    fn inferred_columns(
        &mut self,
        rows: &[InputRow],
        cells: &[&[InputCell]],
        rules: &InferRules,
        is_early: bool,
    ) -> RowType {
        let inferred = RowType::infer_columns(&self.columns.names, cells, rules);
        self.tell_odd_texts(&inferred, rows, rules);
        let mut widened = Vec::new();
        let columns = inferred.into_iter().enumerate().map(|(at, column)| {
            let is_given = self.options.given_column_types.iter().any(|given| given.name == column.name);
            if is_given || !is_early || rules.has_integer_for_empty {
                return self.as_given(column);
            }
            let cells: Vec<_> = cells.iter().filter_map(|row| row.get(at)).collect();
            let (column, is_widened) = column.widened_to_floats(&cells);
            widened.extend(is_widened.then(|| column.name.clone()));
            column
        });
        let table = RowType::new(columns.collect());
        if !widened.is_empty() {
            self.observer.notice(&RecordNotice::IntegersStoredAsFloats { names: widened, rows: rows.len() as u64 });
        }
        table
    }

    /// Makes the units of columns attributes of the dataset, and says so.
    fn store_units(&mut self, units: UnitsRow) -> Result<()> {
        let (UnitsRow::Found(units), Some(sink)) = (units, &self.sink) else { return Ok(()) };
        let units: Vec<_> =
            self.columns.names.iter().cloned().zip(units).filter_map(|(name, unit)| Some((name, unit?))).collect();
        let left_out = sink.set_units_return_skipped(&units)?;
        let set = units.iter().filter(|(name, _)| !left_out.contains(name)).map(|(name, _)| units_attribute_name(name));
        self.observer.notice(&RecordNotice::UnitsRow { attributes: set.collect(), left_out });
        Ok(())
    }

    /// Makes the lines before the header an attribute of a new dataset, and says so.
    fn store_preamble(&mut self) -> Result<()> {
        let (Some(text), Some(sink)) = (self.preamble.take(), &self.sink) else { return Ok(()) };
        let attribute = sink.write_preamble_if_empty(&text)?.then_some(PREAMBLE_ATTRIBUTE);
        self.observer.notice(&RecordNotice::Preamble { lines: text.lines().count(), attribute });
        Ok(())
    }

    /// Says which columns begin with a number or an array and are texts all the same, and why.
    fn tell_odd_texts(&mut self, inferred: &[RecordColumn], rows: &[InputRow], rules: &InferRules) {
        for (at, column) in inferred.iter().enumerate() {
            let is_given = self.options.given_column_types.iter().any(|given| given.name == column.name);
            // The cells of a shorter row may belong to other columns.
            let is_whole = |cells: &&Vec<InputCell>| cells.len() == inferred.len();
            let cell = |row: &InputRow| row.cells.as_ref().ok().filter(is_whole)?.get(at).cloned();
            let cells: Vec<_> = rows.iter().filter_map(|row| Some((row.row_number, cell(row)?))).collect();
            if is_given {
                continue;
            }
            if let Some(TextTypeCause { row_number: row, text, others_are_numbers: are_numbers }) =
                column.text_type_cause(&cells, rules)
            {
                let (column, text) = (column.name.clone(), text.map(str::to_owned));
                self.observer.notice(&RecordNotice::TextColumnDueToCell { column, are_numbers, row, text });
            }
            let irregular = first_array_shape_mismatch(&cells.iter().map(|(_, cell)| cell).collect::<Vec<_>>());
            if let Some((row, _)) = irregular.and_then(|at| cells.get(at)) {
                self.observer.notice(&RecordNotice::JsonColumn { column: column.name.clone(), row: *row });
            }
        }
    }

    /// A column with the type that was given for it, if one was.
    fn as_given(&self, column: RecordColumn) -> RecordColumn {
        match self.options.given_column_types.iter().find(|given| given.name == column.name) {
            None => column,
            Some(given) if given.dims.is_empty() => RecordColumn { dims: column.dims, ..given.clone() },
            Some(given) => given.clone(),
        }
    }

    fn store(&mut self, row: InputRow) -> Result<()> {
        let (Some(table), Some(sink)) = (&self.table, &mut self.sink) else {
            return Ok(());
        };
        let is_open = self.columns.may_have_new_keys && self.options.new_keys == NewKeyPolicy::ErrorAfterFirstRows;
        let row = if is_open { with_columns(row, &self.columns.names) } else { row };
        let InputRow { row_number: number, cells, new_keys, raw_text_if_kept: text } = row;
        let fit = self.options.conversion;
        let mut value = cells.and_then(|cells| table.row_value(&cells, fit));
        if value.is_ok()
            && !new_keys.is_empty()
            && let Err(error) = sink.open_and_stage_new_keys(&new_keys, fit)?
        {
            value = Err(error);
        }
        match value {
            Ok(value) => {
                sink.push_row(table.split_into_elements(value))?;
                self.observer.row_accepted();
                Ok(())
            }
            Err(error) => self.refused.handle_refused_row(number, error, &text, self.observer),
        }
    }

    fn store_frame(&mut self, bytes: &[u8]) -> Result<()> {
        self.frames += 1;
        let expected = self.options.frames.as_ref().map_or(0, FrameFormat::frame_bytes);
        if bytes.len() != expected {
            let source = RowError::TruncatedFrame { found: bytes.len(), expected };
            return self.refused.handle_refused_row(self.frames, source, bytes, self.observer);
        }
        if let Some(sink) = &mut self.sink {
            sink.push_frame(bytes)?;
            self.observer.row_accepted();
        }
        Ok(())
    }

    /// Stores what still waits.
    pub fn end(mut self, outcome_so_far: Result<()>) -> RecordingResult {
        let begun = if self.sample.is_empty() { Ok(()) } else { self.begin(false) };
        let stored = self.sink.as_ref().map_or(0, RowSink::pushed_rows);
        let sink = self.sink.take().map(RowSink::flush_or_remove_empty).unwrap_or_default();
        let RowSinkReport {
            flushed_rows: flushed,
            dataset_row_growth: appended,
            no_rows_outcome: unused,
            final_flush: flush,
        } = sink;
        let summary = RecordSummary {
            accepted_rows: stored,
            flushed_rows: flushed,
            dataset_row_growth: appended,
            skipped_or_rejected_rows: self.refused.skipped_or_rejected_rows(),
            no_rows_outcome: unused,
        };
        // Rows that waited came before the one at which reading stopped.
        RecordingResult { summary, outcome: begun.and(outcome_so_far).and(flush) }
    }
}
