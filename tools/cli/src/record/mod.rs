//! `h5live record`: appends rows from standard input to a live file.

mod csv_dialect;
mod csv_records;
mod csv_rows;
pub mod input;
mod input_cell;
mod json_rows;
mod key_datasets;
mod kind;
#[cfg_attr(not(feature = "hsds"), path = "no_mirror.rs")]
mod mirror;
pub mod non_finite;
pub mod on_error;
mod paced_input;
mod reader;
mod record_sink;
pub mod row;
mod row_part;
mod session;
mod stored_type;
mod target;
mod text_decoder;
mod units_row;

use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use h5live::StoreErrorKind;

use crate::counted::counted;
use crate::error::{Error, Outcome, Result, whole_text};
use crate::live::processes::interrupt_flag;
use crate::lossy_args::LossyArgs;
use crate::number_arg::{at_least, integer, within};
use crate::output::tell;

use csv_dialect::{CsvOptions, QuoteEscape};
use input::InputEvent;
use json_rows::NewKeys;
use kind::ColumnKind;
use mirror::{Mirror, MirrorArgs, MirrorReport};
use on_error::{OddRows, OnError};
use reader::Format;
use record_sink::UnusedOutput;
use row::RecordColumn;
use session::RecordSession;
use target::RecordLayout;

/// After this long without input, what there is is flushed.
const IDLE_FLUSH_DELAY: Duration = Duration::from_millis(50);
/// How long rows that came in before an interruption are still taken.
const INTERRUPTED_TIME: Duration = Duration::from_secs(1);

/// Appends rows from standard input to a dataset that other processes can follow meanwhile
#[derive(Debug, clap::Args)]
pub struct RecordCommand {
    /// The file; made if it is not there, and removed again if no row came in
    file: h5live::Location,
    /// The dataset; made if it is not there, and removed again if no row came in
    path: String,
    /// The format of the input; by default raw with `--dtype`, and otherwise guessed from how it begins
    #[arg(long, value_enum)]
    format: Option<InputFormat>,
    /// The character between fields of CSV; by default the one of comma, semicolon, tab, bar and blank that fits. A blank
    /// stands for one or more
    #[arg(long, value_parser = delimiter)]
    delimiter: Option<u8>,
    /// The first line of CSV is a row, too, as a line of numbers always is; columns are called c0, c1, ..., or are those of
    /// the dataset that is there, in their order
    #[arg(long)]
    no_header: bool,
    /// The first row of CSV is a row, too, if it has texts where the next ones have numbers; by default such texts are the units
    /// of the columns, and become attributes NAME.units of the dataset
    #[arg(long)]
    no_units: bool,
    /// Leave out so many lines before the CSV begins; by default, lines before the header that are comments (#) or that
    /// have other fields than the table become the attribute `preamble` of a new dataset
    #[arg(long, value_name = "LINES", value_parser = at_least::<0, u64>)]
    skip_lines: Option<u64>,
    /// The character before a quote inside quotes, or none if a quote is there twice; by default a backslash between blanks, as
    /// in the logs of web servers. Behind it, other characters stay as they are
    #[arg(long, value_name = "CHAR|none", value_parser = quote_escape)]
    escape: Option<QuoteEscape>,
    /// Numbers of CSV have a decimal comma; between semicolons they may have one anyway
    #[arg(long)]
    decimal_comma: bool,
    /// The integer that stands for an empty cell; empty cells of floats are NaN, and those of times the smallest integer
    #[arg(long, value_name = "INTEGER", allow_hyphen_values = true, value_parser = integer)]
    empty: Option<i128>,
    /// What to do with a key of JSON that the first row does not have
    #[arg(long, value_enum, default_value = "error")]
    on_new_key: NewKeys,
    /// Infer the types of columns from this many rows, or from those of the first second: then integers are stored as f64,
    /// because fractions may come later, unless --types says otherwise
    #[arg(long, value_name = "ROWS", default_value_t = 100, value_parser = at_least::<1, u64>)]
    infer_rows: u64,
    /// Store the texts of a new dataset in this many bytes each; by default texts may have any length
    #[arg(long, value_name = "BYTES", value_parser = within::<1, 65535, u16>)]
    str_width: Option<u16>,
    /// What to do with a row that cannot be stored: stop reading (what was read is kept), skip it, or append it to
    /// FILE (reject-to FILE)
    #[arg(long, value_name = "stop|skip|reject-to FILE", default_value = "stop")]
    on_error: OnError,
    #[command(flatten)]
    lossy: LossyArgs,
    /// Types of columns as NAME=TYPE,... or NAME:TYPE,...: i8 to i64, u8 to u64, f16, f32, f64 (with `be` for big-endian),
    /// bool, bool3 (false, true, or none for an empty cell), str (text of any length; also arrays of JSON, as they are), str1 to str65535, time (ISO 8601, stored as
    /// nanoseconds since 1970), and `[N]` or `[NxM]` behind it for arrays;
    /// types of other columns are inferred from the first rows
    #[arg(long, value_delimiter = ',', value_parser = named_kind)]
    types: Vec<RecordColumn>,
    /// The type of an element of a raw frame
    #[arg(long, required_if_eq("format", "raw"))]
    dtype: Option<ColumnKind>,
    /// The shape of a raw frame, as ROWS,COLUMNS,...
    #[arg(long, requires = "dtype", value_delimiter = ',', value_parser = at_least::<1, u64>)]
    shape: Vec<u64>,
    /// Flush after this many rows, when the first of them has waited for 100 ms, and whenever the input pauses
    #[arg(long, default_value_t = 1000, value_parser = at_least::<1, u64>)]
    every: u64,
    /// Rows of a chunk of a new dataset
    #[arg(long, value_parser = at_least::<1, u64>)]
    chunk: Option<u64>,
    /// Shuffle and deflate the chunks of a new dataset, from 1 (fast) to 9 (small)
    #[arg(long, value_parser = within::<0, 9, u32>)]
    deflate: Option<u32>,
    #[command(flatten)]
    mirror: MirrorArgs,
    /// For programs: at the end, the number of rows as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum InputFormat {
    /// Rows of CSV
    Csv,
    /// A JSON object or array per line, or one array of them
    Ndjson,
    /// Lines of text, each as a row with the column `line`: for logs
    Lines,
    /// Frames of numbers of one type, one after the other
    Raw,
}

/// Whether there was no room for what was written.
fn is_full(error: &Error) -> bool {
    matches!(error, Error::File(error) if error.store_kind() == Some(&StoreErrorKind::Full))
}

fn delimiter(text: &str) -> Result<u8, &'static str> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] => Ok(*byte),
        _ => Err("a delimiter is one character, or \\t"),
    }
}

fn quote_escape(text: &str) -> Result<QuoteEscape, &'static str> {
    match text.as_bytes() {
        b"none" | b"\"" => Ok(QuoteEscape::Doubled),
        [byte] => Ok(QuoteEscape::Behind(*byte)),
        _ => Err("allowed are one character and none"),
    }
}

fn named_kind(text: &str) -> Result<RecordColumn, Box<dyn std::error::Error + Send + Sync>> {
    let (name, kind) = text.rsplit_once(['=', ':']).ok_or("a type of a column is NAME=TYPE or NAME:TYPE")?;
    let (kind, dims) = match kind.strip_suffix(']').and_then(|kind| kind.split_once('[')) {
        Some((kind, dims)) => (kind, dims.split('x').map(dimension).collect::<Result<_, _>>()?),
        None => (kind, Vec::new()),
    };
    Ok(RecordColumn { name: name.to_owned(), kind: kind.parse()?, dims, stored: None })
}

fn dimension(text: &str) -> Result<u32, &'static str> {
    text.parse().ok().filter(|dim| *dim > 0).ok_or("the shape of an array is [N] or [NxM], in elements")
}

impl RecordCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`crate::error::Error`] says; all rows before the error are in the file.
    pub fn run(self) -> Result<Outcome> {
        let interrupted = interrupt_flag();
        let format = self.input_format()?;
        let mirror = self.mirror.start(&self.file, &self.path)?;
        let mut session = RecordSession::new(&self)?;
        mirror.iter().for_each(Mirror::begin);
        let events = reader::start(format, session.needs_text(), std::io::stdin(), interrupted.clone());
        let mut deadline = None;
        let ended = loop {
            if interrupted.load(Ordering::Acquire) {
                deadline.get_or_insert_with(|| Instant::now() + INTERRUPTED_TIME);
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                break Ok(());
            }
            let taken = match events.recv_timeout(IDLE_FLUSH_DELAY) {
                Ok(InputEvent::Failed(_)) if interrupted.load(Ordering::Acquire) => break Ok(()),
                Ok(event) => session.take(event),
                Err(RecvTimeoutError::Timeout) if deadline.is_none() => session.rest(),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break Ok(()),
            };
            if taken.is_err() {
                break taken;
            }
        };
        // Whatever ended the input, what came before it is kept.
        let finished = session.close(ended);
        let is_kept = !matches!(finished.unused, Some(UnusedOutput::Removed | UnusedOutput::DatasetRemoved));
        let mirrored = mirror.and_then(|mirror| mirror.finish(is_kept)).filter(|_| is_kept);
        let stopped = match finished.ended {
            Err(error @ Error::Row { .. }) => Some(error),
            Err(error) => {
                if is_full(&error) && finished.kept > 0 {
                    tell(whole_text(&error));
                    tell(format_args!("{}: {} stored{}", self.file, counted(finished.kept, "row"), self.way_on()));
                    return Ok(Outcome::FAILED);
                }
                let removed = finished.unused.filter(|unused| *unused == UnusedOutput::DatasetRemoved);
                removed.iter().for_each(|unused| tell(format_args!("{}: {unused}", self.file)));
                return Err(error);
            }
            Ok(()) => None,
        };
        if let Some(error) = &stopped {
            tell(error);
        }
        if let Some(unused) = finished.unused {
            tell(format_args!("{}: {unused}", self.file));
        }
        self.report(finished.rows, &finished.odd, mirrored.as_ref())?;
        let is_mirrored = mirrored.is_none_or(|mirror| mirror.is_complete());
        Ok(if stopped.is_some() || !is_mirrored { Outcome::Findings } else { Outcome::Clean })
    }

    fn input_format(&self) -> Result<Format> {
        let csv = CsvOptions {
            delimiter: self.delimiter,
            has_header: !self.no_header,
            skipped_lines: self.skip_lines,
            has_decimal_comma: self.decimal_comma,
            quote_escape: self.escape.unwrap_or_default(),
        };
        Ok(match (self.format, self.dtype) {
            (Some(InputFormat::Ndjson), _) => Format::Json(self.on_new_key),
            (Some(InputFormat::Csv), _) => Format::Csv(csv),
            (Some(InputFormat::Lines), _) => Format::Lines,
            (Some(InputFormat::Raw) | None, Some(kind)) => Format::Raw(self.frame_bytes(kind)?),
            (Some(InputFormat::Raw) | None, None) if self.no_header || self.skip_lines.is_some() => Format::Csv(csv),
            (Some(InputFormat::Raw) | None, None) => Format::Text(csv, self.on_new_key),
        })
    }

    /// Tells how many rows were stored, and how many were not.
    fn report(&self, rows: u64, odd: &OddRows, mirrored: Option<&MirrorReport>) -> Result<()> {
        if let Some(summary) = odd.summary(rows) {
            tell(format_args!("{}: {summary}", self.file));
        }
        mirrored.iter().for_each(tell);
        if self.json {
            let mut summary = serde_json::Map::new();
            summary.insert("file".to_owned(), self.file.to_string().into());
            summary.insert("path".to_owned(), self.path.clone().into());
            summary.insert("rows".to_owned(), rows.into());
            odd.add_to(&mut summary);
            mirrored.iter().for_each(|mirror| mirror.add_to(&mut summary));
            let mut out = crate::output::Output::stdout();
            out.line(serde_json::Value::Object(summary))?;
            out.flush()?;
        }
        Ok(())
    }

    fn frame_bytes(&self, kind: ColumnKind) -> Result<usize> {
        let bytes = self.shape.iter().try_fold(u64::from(kind.size()), |n, d| n.checked_mul(*d));
        let fits = bytes.filter(|n| *n <= u64::from(u32::MAX)).and_then(|n| usize::try_from(n).ok());
        fits.ok_or_else(|| Error::FrameTooLarge { shape: self.shape.clone() })
    }

    fn storage(&self) -> RecordLayout {
        RecordLayout { chunk_rows: self.chunk, deflate: self.deflate }
    }

    /// What helps after the disk was full, if the file is one that other programs may refuse until then.
    fn way_on(&self) -> String {
        match crate::open::file_path(&self.file) {
            Ok(Some(_)) => format!(
                "; when there is room again, record goes on there, and `h5live repair {}` closes it for other programs",
                self.file
            ),
            _ => String::new(),
        }
    }

    /// The options that say how a new dataset is stored.
    fn layout_options(&self) -> Vec<&'static str> {
        let given = [
            (self.chunk.is_some(), "--chunk"),
            (self.deflate.is_some(), "--deflate"),
            (self.str_width.is_some(), "--str-width"),
        ];
        given.into_iter().filter(|(is_given, _)| *is_given).map(|(_, name)| name).collect()
    }
}
