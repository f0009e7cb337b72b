//! A recording: what came in, what waits for the types of its columns, and what is stored.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::RecordCommand;
use super::input::{InputColumns, InputEvent, InputRow};
use super::input_cell::InputCell;
use super::json_rows::NewKeys;
use super::kind::ColumnKind;
use super::on_error::OddRows;
use super::record_sink::{ClosedSink, PREAMBLE, RecordFile, RecordSink, UnusedOutput};
use super::row::{InferRules, OddText, RecordColumn, RowError, RowType, first_irregular_array};
use super::units_row::{self, UnitsRow};
use crate::counted::counted;
use crate::error::{Error, FileProblem, Result, names_text};
use crate::model::Datatype;
use crate::output::tell;
use crate::progress;
use crate::times::units_name;

/// How long the types of columns may stay open after the first row.
const SAMPLE_TIME: Duration = Duration::from_secs(1);

/// How long they may stay open if the first row may have units, which the rows behind it show.
const UNITS_TIME: Duration = Duration::from_secs(5);

/// The longest row that is stored (bytes).
const MAX_ROW_BYTES: u64 = 1 << 30;

/// The state of a recording.
pub struct RecordSession<'a> {
    options: &'a RecordCommand,
    /// The columns of the input. Of JSON, the first rows may have more of them.
    columns: InputColumns,
    /// Rows that wait for the types of their columns.
    sample: Vec<InputRow>,
    since: Option<Instant>,
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

/// A row with its new keys in the columns that have their names.
fn with_columns(mut row: InputRow, names: &[String]) -> InputRow {
    let new_keys = std::mem::take(&mut row.new_keys);
    let Ok(cells) = &mut row.cells else { return row };
    cells.resize(names.len().max(cells.len()), InputCell::Empty);
    for (key, cell) in new_keys {
        match names.iter().position(|name| *name == key) {
            Some(at) => cells[at] = cell,
            None => {
                row.cells = Err(RowError::NewName(key));
                break;
            }
        }
    }
    row
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
            columns: InputColumns::default(),
            sample: Vec::new(),
            since: None,
            table: None,
            file: Some(file),
            sink: None,
            odd,
            preamble: None,
            frames: 0,
            bar: progress::counter("row"),
        };
        if let Some(kind) = options.dtype {
            let opened = session.open_sink(&kind.datatype(), &options.shape, &[]);
            if let (Err(error), Some(file)) = (opened, session.file.take()) {
                file.close_unused()?;
                return Err(error);
            }
        }
        Ok(session)
    }

    fn open_sink(&mut self, datatype: &Datatype, row: &[u64], times: &[String]) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let (path, storage) = (&self.options.path, self.options.storage());
        let target = file.open_dataset(path, datatype, row, times, storage)?;
        let row_bytes = row.iter().product::<u64>() as usize * datatype.size() as usize;
        if let Some(file) = self.file.take() {
            let sink = file.into_sink(target, path, row_bytes, storage, self.options.every)?;
            let ignored = if sink.was_there() { self.options.layout_options() } else { Vec::new() };
            if !ignored.is_empty() {
                tell(format_args!("{path}: it is there already and keeps its layout; {} left out", ignored.join(", ")));
            }
            self.sink = Some(sink);
        }
        Ok(())
    }

    /// The columns of the dataset that is there; `None` if it is not, or the input has others.
    fn known_columns(&self) -> Result<Option<RowType>> {
        let Some(file) = &self.file else { return Ok(None) };
        let (path, names) = (&self.options.path, &self.columns.names);
        let table = if self.columns.is_numbered {
            let table = file.table_by_position(path)?;
            table.map(|table| self.by_position(table)).transpose()?
        } else {
            file.table(path, names)?
        };
        let is_like = |given: &RecordColumn, column: &RecordColumn| {
            given.kind == column.kind && (given.dims.is_empty() || given.dims == column.dims)
        };
        let as_given = |(at, column): (usize, &RecordColumn)| {
            let name = if self.columns.is_numbered { &names[at] } else { &column.name };
            self.options.types.iter().filter(|given| given.name == *name).all(|given| is_like(given, column))
        };
        Ok(table.filter(|table| table.columns().iter().enumerate().all(as_given)))
    }

    /// The columns of the dataset that is there, for rows without names. It is said if nobody asked for it.
    fn by_position(&self, table: RowType) -> Result<RowType> {
        let (path, fields) = (&self.options.path, self.columns.names.len());
        let found = table.columns().len();
        if found != fields {
            let problem = FileProblem::OtherColumnCount { path: path.clone(), found, given: fields };
            return Err(Error::InvalidFile { path: self.options.file.to_string().into(), problem });
        }
        let names: Vec<_> = table.columns().iter().map(|column| column.name.clone()).collect();
        if !self.options.no_header && names != self.columns.names {
            let names = names_text(&names);
            tell(format_args!(
                "{path}: the input has no names; its columns are those of the dataset in order: {names}"
            ));
        }
        Ok(table)
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
            InputEvent::Columns(columns) => self.take_columns(columns),
            InputEvent::Preamble(text) => {
                self.preamble = Some(text);
                Ok(())
            }
            InputEvent::Row(InputRow { number, cells: Err(error), text, .. }) if self.odd.stops() => {
                self.odd.take(number, error, &text)
            }
            InputEvent::Row(row) if self.table.is_none() => {
                self.sample.push(row);
                self.since.get_or_insert_with(|| self.columns.begun.unwrap_or_else(Instant::now));
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
    /// As [`RecordSession::take`].
    pub fn rest(&mut self) -> Result<()> {
        if self.table.is_none() && self.is_sample_time_over() {
            self.begin(true)?;
        }
        self.sink.as_mut().map_or(Ok(()), RecordSink::flush)
    }

    /// Takes the names of the columns.
    fn take_columns(&mut self, columns: InputColumns) -> Result<()> {
        self.columns = columns;
        self.odd.set_header(self.columns.header.clone());
        if let Some(doubt) = &self.columns.doubt
            && self.known_columns()?.is_none()
        {
            let path = &self.options.path;
            tell(format_args!("{path}: the first line was taken for the names of the columns, although {doubt}"));
        }
        if self.columns.has_keys { Ok(()) } else { self.check_given_columns() }
    }

    /// Checks that each column with a type that was given is there.
    fn check_given_columns(&self) -> Result<()> {
        let unknown = |column: &&RecordColumn| !self.columns.names.contains(&column.name);
        let unknown = self.options.types.iter().find(unknown);
        unknown.map_or(Ok(()), |column| Err(Error::NoColumn(column.name.clone())))
    }

    /// Whether the first rows were waited for as long as the types of columns may stay open.
    fn is_sample_time_over(&self) -> bool {
        let Some(waited) = self.since.map(|since| since.elapsed()) else { return false };
        waited >= SAMPLE_TIME && (waited >= UNITS_TIME || self.units_row(None) != UnitsRow::Open)
    }

    /// What the first rows say of the units of columns. `table` has the columns of the dataset, if it is there.
    fn units_row(&self, table: Option<&RowType>) -> UnitsRow {
        if self.columns.header.is_empty() || self.options.no_units {
            return UnitsRow::Absent;
        }
        let names = &self.columns.names;
        units_row::find(&self.sample, names.len(), |at| {
            let columns = table.map(RowType::columns).unwrap_or_default().iter().chain(&self.options.types);
            columns.filter(|column| column.name == names[at]).any(|column| column.kind.is_text())
        })
    }

    /// Takes the rows that waited. Keys that only some of them have are columns, too, unless something else is to become of
    /// them.
    fn take_sample(&mut self) -> Vec<InputRow> {
        let waiting = std::mem::take(&mut self.sample);
        if !self.columns.has_keys || self.options.on_new_key != NewKeys::Error {
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
            return std::mem::take(&mut self.sample).into_iter().try_for_each(|row| self.odd.take_row(row));
        }
        let known = if self.columns.has_keys { None } else { self.known_columns()? };
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
            let odd = |row: InputRow| match row.cells {
                Ok(cells) => self.odd.take(row.number, RowError::Fields { found: cells.len(), expected }, &row.text),
                Err(error) => self.odd.take(row.number, error, &row.text),
            };
            self.since = None;
            return waiting.into_iter().try_for_each(odd);
        }
        self.check_given_columns()?;
        let empty = self.options.empty.map(|value| value.to_string());
        let rules = InferRules { has_empty_value: empty.is_some(), str_width: self.options.str_width };
        let known = if self.columns.has_keys { self.known_columns()? } else { known };
        let table = match known {
            Some(table) => table,
            None => self.inferred_columns(&waiting, &cells, &rules, is_early),
        };
        let bytes = table.row_bytes();
        if bytes > MAX_ROW_BYTES {
            return Err(Error::RowTooLarge { bytes, max_bytes: MAX_ROW_BYTES });
        }
        self.open_sink(&table.datatype(), &[], &table.times())?;
        self.store_preamble()?;
        self.store_units(units)?;
        if let Some(sink) = &mut self.sink {
            sink.key_datasets().learn(&waiting, &rules);
        }
        self.table = Some(table.with_empty(empty));
        waiting.into_iter().try_for_each(|row| self.store(row))
    }

    /// The columns of a new dataset, as the first rows say them. Rows that come slowly say little: numbers that are whole in
    /// the first rows may have fractions later.
    fn inferred_columns(
        &self,
        rows: &[InputRow],
        cells: &[&[InputCell]],
        rules: &InferRules,
        is_early: bool,
    ) -> RowType {
        let inferred = RowType::infer_columns(&self.columns.names, cells, rules);
        self.tell_odd_texts(&inferred, rows, rules);
        let mut widened = Vec::new();
        let columns = inferred.into_iter().enumerate().map(|(at, column)| {
            let is_given = self.options.types.iter().any(|given| given.name == column.name);
            if is_given || !is_early || rules.has_empty_value {
                return self.as_given(column);
            }
            let cells: Vec<_> = cells.iter().filter_map(|row| row.get(at)).collect();
            let (column, is_widened) = column.with_floats(&cells);
            widened.extend(is_widened.then(|| column.name.clone()));
            column
        });
        let table = RowType::new(columns.collect());
        if let Some(first) = widened.first() {
            let (path, names) = (&self.options.path, names_text(&widened));
            let rows = counted(rows.len() as u64, "row");
            tell(format_args!(
                "{path}: columns of integers are stored as f64, because {rows} came in the first second, and later ones may have \
                 fractions: {names} (--types {first}=i64 stores integers)"
            ));
        }
        table
    }

    /// Makes the units of columns attributes of the dataset, and says so.
    fn store_units(&mut self, units: UnitsRow) -> Result<()> {
        let (UnitsRow::Found(units), Some(sink)) = (units, &self.sink) else { return Ok(()) };
        let units: Vec<_> =
            self.columns.names.iter().cloned().zip(units).filter_map(|(name, unit)| Some((name, unit?))).collect();
        let left = sink.set_units(&units)?;
        let set = units.iter().filter(|(name, _)| !left.contains(name)).map(|(name, _)| units_name(name));
        let set: Vec<_> = set.collect();
        let set = if set.is_empty() { String::new() } else { format!("; attributes: {}", names_text(&set)) };
        let left = if left.is_empty() { String::new() } else { format!("; left out: those of {}", names_text(&left)) };
        let path = &self.options.path;
        tell(format_args!("{path}: row 1 has the units of the columns (--no-units makes it a row){set}{left}"));
        Ok(())
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
            tell(format_args!("{path}: {lines} its attribute {PREAMBLE:?}"));
        } else {
            tell(format_args!("{path}: {lines} left out; it has rows already"));
        }
        Ok(())
    }

    /// Says which columns begin with a number or an array and are texts all the same, and why.
    fn tell_odd_texts(&self, inferred: &[RecordColumn], rows: &[InputRow], rules: &InferRules) {
        for (at, column) in inferred.iter().enumerate() {
            let is_given = self.options.types.iter().any(|given| given.name == column.name);
            // The cells of a shorter row may belong to other columns.
            let is_whole = |cells: &&Vec<InputCell>| cells.len() == inferred.len();
            let cell = |row: &InputRow| row.cells.as_ref().ok().filter(is_whole)?.get(at).cloned();
            let cells: Vec<_> = rows.iter().filter_map(|row| Some((row.number, cell(row)?))).collect();
            let (path, name) = (&self.options.path, &column.name);
            if is_given {
                continue;
            }
            if let Some(OddText { row, text, are_numbers }) = column.first_text(&cells, rules) {
                let others = if are_numbers { "numbers" } else { "truth values" };
                let text = text.map_or_else(|| "an empty cell".to_owned(), |text| format!("{text:?}"));
                tell(format_args!("{path}: column {name:?} has texts, not {others}, because of {text} in row {row}"));
            }
            let irregular = first_irregular_array(&cells.iter().map(|(_, cell)| cell).collect::<Vec<_>>());
            if let Some((row, _)) = irregular.and_then(|at| cells.get(at)) {
                tell(format_args!(
                    "{path}: column {name:?} has texts of JSON: row {row} does not have an array of numbers or \
                     texts of one shape"
                ));
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
        let is_open = self.columns.has_keys && self.options.on_new_key == NewKeys::Error;
        let row = if is_open { with_columns(row, &self.columns.names) } else { row };
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
        let begun = if self.sample.is_empty() { Ok(()) } else { self.begin(false) };
        let rows = self.sink.as_ref().map_or(0, RecordSink::rows);
        let mut kept = 0;
        let (closed, unused) = match (self.sink.take(), self.file.take()) {
            (Some(sink), _) => {
                let ClosedSink { kept: rows, unused, ended } = sink.close();
                kept = rows;
                (ended, unused)
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
