//! `h5live record`: appends rows from standard input to a live file.

pub mod input;
mod kind;
mod reader;
pub mod row;
mod sink;

use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::error::{Error, Outcome, Result};
use crate::live::processes::interrupt_flag;
use crate::progress;

use kind::ColumnKind;
use reader::{Format, InputEvent};
use row::{InputCell, RecordColumn, RowType};
use sink::{RecordLayout, RecordSink};

/// Rows from which the types of columns are inferred, if they come soon enough.
const SAMPLE_ROWS: usize = 100;
/// How long the types of columns may stay open after the first row.
const SAMPLE_TIME: Duration = Duration::from_secs(1);
/// After this long without input, what there is is flushed.
const IDLE_FLUSH_DELAY: Duration = Duration::from_millis(50);

/// Appends rows from standard input to a dataset that other processes can follow meanwhile
#[derive(Debug, clap::Args)]
pub struct RecordCommand {
    /// The file; made if it is not there
    file: h5live::Location,
    /// The dataset; made if it is not there
    path: String,
    /// The format of the input; by default raw with `--dtype`, and otherwise guessed from the first character
    #[arg(long, value_enum)]
    format: Option<InputFormat>,
    /// The character between fields of CSV
    #[arg(long, default_value = ",", value_parser = delimiter)]
    delimiter: u8,
    /// Types of columns as NAME=TYPE,...: i8 to i64, u8 to u64, f32, f64 (with `be` for big-endian), bool, str1 to
    /// str65535; types of other columns are inferred from the first rows
    #[arg(long, value_delimiter = ',', value_parser = named_kind)]
    types: Vec<RecordColumn>,
    /// The type of an element of a raw frame
    #[arg(long, required_if_eq("format", "raw"))]
    dtype: Option<ColumnKind>,
    /// The shape of a raw frame, as ROWS,COLUMNS,...
    #[arg(long, requires = "dtype", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..))]
    shape: Vec<u64>,
    /// Flush after this many rows, and whenever the input pauses
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Rows of a chunk of a new dataset
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    chunk: Option<u64>,
    /// Shuffle and deflate the chunks of a new dataset, from 1 (fast) to 9 (small)
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=9))]
    deflate: Option<u32>,
    /// For programs: at the end, the number of rows as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum InputFormat {
    /// Rows of CSV after a header line
    Csv,
    /// A JSON object per line
    Ndjson,
    /// Frames of numbers of one type, one after the other
    Raw,
}

fn delimiter(text: &str) -> Result<u8, &'static str> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] => Ok(*byte),
        _ => Err("a delimiter is one character, or \\t"),
    }
}

fn named_kind(text: &str) -> Result<RecordColumn, Box<dyn std::error::Error + Send + Sync>> {
    let (name, kind) = text.rsplit_once('=').ok_or("a type of a column is NAME=TYPE")?;
    Ok(RecordColumn { name: name.to_owned(), kind: kind.parse()? })
}

impl RecordCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`crate::error::Error`] says; all rows before the error are in the file.
    pub fn run(self) -> Result<Outcome> {
        let interrupted = interrupt_flag();
        let format = match (self.format, self.dtype) {
            (Some(InputFormat::Ndjson), _) => Format::Ndjson,
            (Some(InputFormat::Csv), _) => Format::Csv(self.delimiter),
            (Some(InputFormat::Raw) | None, Some(kind)) => Format::Raw(self.frame_bytes(kind)?),
            (Some(InputFormat::Raw) | None, None) => Format::Text(self.delimiter),
        };
        let mut recording = RecordSession::new(&self);
        let events = reader::start(format, std::io::stdin());
        let ended = loop {
            if interrupted.load(Ordering::Acquire) {
                break Ok(());
            }
            match events.recv_timeout(IDLE_FLUSH_DELAY) {
                Ok(InputEvent::Failed(error)) => break Err(error),
                Ok(event) => {
                    if let Err(error) = recording.take(event) {
                        break Err(error);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(error) = recording.rest() {
                        break Err(error);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            }
        };
        // Whatever ended the input, what came before it is kept.
        let closed = recording.close();
        ended?;
        let rows = closed?;
        if self.json {
            let mut out = crate::output::Output::stdout();
            out.line(serde_json::json!({ "file": self.file.to_string(), "path": self.path, "rows": rows }))?;
            out.flush()?;
        }
        Ok(Outcome::Clean)
    }

    fn frame_bytes(&self, kind: ColumnKind) -> Result<usize> {
        let bytes = self.shape.iter().try_fold(u64::from(kind.size()), |n, d| n.checked_mul(*d));
        let fits = bytes.filter(|n| *n <= u64::from(u32::MAX)).and_then(|n| usize::try_from(n).ok());
        fits.ok_or_else(|| Error::FrameTooLarge { shape: self.shape.clone() })
    }

    fn storage(&self) -> RecordLayout {
        RecordLayout { chunk_rows: self.chunk, deflate: self.deflate }
    }

    fn open(&self, datatype: &crate::model::Datatype, row: &[u64]) -> Result<RecordSink> {
        RecordSink::open(&self.file, &self.path, datatype, row, self.storage(), self.every)
    }
}

/// The state of a recording.
struct RecordSession<'a> {
    options: &'a RecordCommand,
    names: Vec<String>,
    /// Rows that wait for the types of their columns.
    sample: Vec<Vec<InputCell>>,
    since: Option<Instant>,
    table: Option<RowType>,
    sink: Option<RecordSink>,
    bar: ProgressBar,
}

impl<'a> RecordSession<'a> {
    fn new(options: &'a RecordCommand) -> Self {
        RecordSession {
            options,
            names: Vec::new(),
            sample: Vec::new(),
            since: None,
            table: None,
            sink: None,
            bar: progress::counter("rows"),
        }
    }

    fn take(&mut self, event: InputEvent) -> Result<()> {
        match event {
            InputEvent::Columns(names) => {
                self.names = names;
                let unknown = |column: &&RecordColumn| !self.names.contains(&column.name);
                match self.options.types.iter().find(unknown) {
                    Some(column) => Err(Error::NoColumn(column.name.clone())),
                    None => Ok(()),
                }
            }
            InputEvent::Row(cells) if self.table.is_none() => {
                self.sample.push(cells);
                let since = *self.since.get_or_insert_with(Instant::now);
                if self.sample.len() >= SAMPLE_ROWS || since.elapsed() >= SAMPLE_TIME { self.begin() } else { Ok(()) }
            }
            InputEvent::Row(cells) => self.store(&cells),
            InputEvent::Frame(bytes) => {
                if self.sink.is_none() {
                    let kind = self.options.dtype.unwrap_or(ColumnKind::F64);
                    self.sink = Some(self.options.open(&kind.datatype(), &self.options.shape)?);
                }
                self.push(|out| {
                    out.extend_from_slice(&bytes);
                    Ok(())
                })
            }
            InputEvent::Failed(error) => Err(error),
        }
    }

    /// The input rests.
    fn rest(&mut self) -> Result<()> {
        if self.table.is_none() && self.since.is_some_and(|since| since.elapsed() >= SAMPLE_TIME) {
            self.begin()?;
        }
        self.sink.as_mut().map_or(Ok(()), RecordSink::flush)
    }

    /// Decides on the types of the columns, and stores the rows that waited for it.
    fn begin(&mut self) -> Result<()> {
        let inferred = RowType::infer_columns(&self.names, &self.sample);
        let given =
            |column: &RecordColumn| self.options.types.iter().find(|c| c.name == column.name).unwrap_or(column).clone();
        let table = RowType::new(inferred.columns().iter().map(given).collect());
        self.sink = Some(self.options.open(&table.datatype(), &[])?);
        self.table = Some(table);
        std::mem::take(&mut self.sample).iter().try_for_each(|cells| self.store(cells))
    }

    fn store(&mut self, cells: &[InputCell]) -> Result<()> {
        let (Some(table), Some(sink)) = (&self.table, &mut self.sink) else {
            return Ok(());
        };
        let row = sink.rows() + 1;
        sink.push(|out| table.encode(cells, out).map_err(|source| Error::Row { row, source }))?;
        self.bar.inc(1);
        Ok(())
    }

    fn push(&mut self, encode: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        if let Some(sink) = &mut self.sink {
            sink.push(encode)?;
            self.bar.inc(1);
        }
        Ok(())
    }

    /// Stores what still waits and closes the file; the number of rows recorded.
    fn close(mut self) -> Result<u64> {
        let begun = if self.table.is_none() && !self.names.is_empty() { self.begin() } else { Ok(()) };
        let closed = self.sink.take().map_or(Ok(0), RecordSink::close);
        self.bar.finish_and_clear();
        begun.and(closed)
    }
}
