//! `h5live record`: appends rows from standard input to a live file.

mod console;
#[cfg_attr(not(feature = "hsds"), path = "no_mirror.rs")]
mod mirror;
pub mod on_error_arg;
mod recorded_file;

use h5live::StoreErrorKind;
use h5live_recorder::{
    ColumnKind, CsvOptions, FlushPolicy, FrameFormat, InputFormat, NewKeyPolicy, OnError, QuoteEscape, RecordColumn,
    RecordLayout, RecordOptions, RecordSummary, Recorder, RecordingResult, RefusedRow,
};

use crate::conversion_args::ConversionArgs;
use crate::counted::counted;
use crate::error::{CommandOutcome, Error, Result, error_with_causes};
use crate::escaped_path;
use crate::live::processes::register_interrupt_flag;
use crate::number_arg::{at_least, integer, within};
use crate::output::eprint_prefixed;

use console::RecordProgressPrinter;
use mirror::{Mirror, MirrorArgs, MirrorReport};
use on_error_arg::parse_on_error;
use recorded_file::{CloseReport, NoRowsOutcome, RecordedFile};

/// Appends rows from standard input to a dataset that other processes can follow meanwhile
#[derive(Debug, clap::Args)]
pub struct RecordCommand {
    /// The file; made if it is not there, and removed again if no row came in
    file: h5live::Location,
    /// The dataset; made if it is not there, and removed again if no row came in. If one that is there has more dimensions than
    /// that of the rows, each row is a list of lists of JSON, or with two dimensions a line of CSV
    path: String,
    /// The format of the input; by default raw with `--dtype`, and otherwise guessed from how it begins
    #[arg(long, value_enum)]
    format: Option<FormatArg>,
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
    on_new_key: NewKeysArg,
    /// Infer the types of columns from this many rows, or from those of the first second: then integers are stored as f64,
    /// because fractions may come later, unless --types says otherwise
    #[arg(long, value_name = "ROWS", default_value_t = 100, value_parser = at_least::<1, u64>)]
    infer_rows: u64,
    /// Store the texts of a new dataset in this many bytes each; by default texts may have any length
    #[arg(long, value_name = "BYTES", value_parser = within::<1, 65535, u16>)]
    str_width: Option<u16>,
    /// What to do with a row that cannot be stored: stop reading (what was read is kept), skip it, or append it to
    /// FILE (reject-to FILE)
    #[arg(long, value_name = "stop|skip|reject-to FILE", default_value = "stop", value_parser = parse_on_error)]
    on_error: OnError,
    #[command(flatten)]
    lossy: ConversionArgs,
    /// Types of columns as NAME=TYPE,... or NAME:TYPE,...: i8 to i64, u8 to u64, f16, f32, f64 (with `be` for big-endian),
    /// bool, bool3 (false, true, or none for an empty cell), str (text of any length; also arrays of JSON, as they are), str1 to str65535, time (ISO 8601, stored as
    /// nanoseconds since 1970), and `[N]` or `[NxM]` behind it for arrays;
    /// types of other columns are inferred from the first rows
    #[arg(long, value_delimiter = ',')]
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
enum FormatArg {
    /// Rows of CSV
    Csv,
    /// A JSON object or array per line, or one array of them
    Ndjson,
    /// Lines of text, each as a row with the column `line`: for logs
    Lines,
    /// Frames of numbers of one type, one after the other
    Raw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum NewKeysArg {
    /// It becomes a column if it is among the first rows (see --infer-rows). Later, the row cannot be stored (see --on-error)
    Error,
    /// The value is left out if the first row does not have the key
    Ignore,
    /// The value goes to a dataset of its own, PATH.KEY, together with the number of the row, if the first row does not have
    /// the key
    Dataset,
}

/// Whether there was no room for what was written.
fn is_full(error: &Error) -> bool {
    matches!(error, Error::File(error) if error.store_error_kind() == Some(&StoreErrorKind::StorageFull))
}

/// Says what is at fault: standard input, the file at a location, or another one.
fn placed(error: h5live_recorder::Error, location: &h5live::Location) -> Error {
    let placed = |place: String, error| Error::Record { place, source: Box::new(error) };
    match error {
        h5live_recorder::Error::File(error) => Error::File(error),
        error if error.is_input_at_fault() => placed("standard input".to_owned(), error),
        error @ h5live_recorder::Error::Dataset(_) => placed(location.to_string(), error),
        other => Error::RecordWithoutPlace(Box::new(other)),
    }
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
        [byte] => Ok(QuoteEscape::EscapeByte(*byte)),
        _ => Err("allowed are one character and none"),
    }
}

impl RecordCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`crate::error::Error`] says; all rows before the error are in the file.
    pub fn run(self) -> Result<CommandOutcome> {
        let interrupted = register_interrupt_flag();
        let options = self.options()?;
        let mirror = self.mirror.prepare_mirror(&self.file, &self.path)?;
        let file = RecordedFile::open_or_create(&self.file)?;
        escaped_path::refuse_escaped_existing(file.file(), &self.path)?;
        let mut console = RecordProgressPrinter::new(&self.path);
        let recorder = match Recorder::new(file.file(), &self.path, options, &mut console) {
            Ok(recorder) => recorder,
            Err(error) => {
                file.close_and_remove_if_new()?;
                return Err(placed(error, &self.file));
            }
        };
        mirror.iter().for_each(Mirror::start);
        let RecordingResult { summary, outcome: ended } = recorder.record(std::io::stdin(), &interrupted);
        let CloseReport { kept_rows: kept, no_rows_outcome: unused, close_result: closed } =
            file.close_and_remove_if_unused(&summary);
        console.finish_and_clear();
        let is_kept = !matches!(unused, Some(NoRowsOutcome::FileRemoved | NoRowsOutcome::DatasetRemoved));
        let mirrored = mirror.and_then(|mirror| mirror.finish(is_kept)).filter(|_| is_kept);
        let stopped = match ended {
            Err(h5live_recorder::Error::Row(refused)) => Some(refused),
            ended => {
                if let Err(error) = ended.map_err(|error| placed(error, &self.file)).and(closed) {
                    return self.failed(error, kept, unused);
                }
                None
            }
        };
        if let Some(refused) = &stopped {
            eprint_prefixed(format_args!("standard input: {refused}"));
        }
        if let Some(unused) = unused {
            eprint_prefixed(format_args!("{}: {unused}", self.file));
        }
        self.report(&summary, stopped.as_ref(), mirrored.as_ref())?;
        let is_mirrored = mirrored.is_none_or(|mirror| mirror.is_complete());
        Ok(if stopped.is_some() || !is_mirrored { CommandOutcome::Findings } else { CommandOutcome::Clean })
    }

    /// The end of a recording that has failed. The closed file has got `kept` rows.
    fn failed(&self, error: Error, kept: u64, unused: Option<NoRowsOutcome>) -> Result<CommandOutcome> {
        if is_full(&error) && kept > 0 {
            eprint_prefixed(error_with_causes(&error));
            eprint_prefixed(format_args!("{}: {} stored{}", self.file, counted(kept, "row"), self.way_on()));
            return Ok(CommandOutcome::FAILED);
        }
        let removed = unused.filter(|unused| *unused == NoRowsOutcome::DatasetRemoved);
        removed.iter().for_each(|unused| eprint_prefixed(format_args!("{}: {unused}", self.file)));
        Err(error)
    }

    fn options(&self) -> Result<RecordOptions> {
        let csv = CsvOptions {
            delimiter: self.delimiter,
            may_have_header: !self.no_header,
            skipped_lines: self.skip_lines,
            forces_decimal_comma: self.decimal_comma,
            quote_escape: self.escape.unwrap_or_default(),
        };
        let format = match self.format {
            Some(FormatArg::Ndjson) => InputFormat::Json,
            Some(FormatArg::Csv) => InputFormat::Csv,
            Some(FormatArg::Lines) => InputFormat::Lines,
            Some(FormatArg::Raw) | None if self.no_header || self.skip_lines.is_some() => InputFormat::Csv,
            Some(FormatArg::Raw) | None => InputFormat::Guess,
        };
        let text = match self.format {
            Some(FormatArg::Ndjson) => Some("ndjson"),
            Some(FormatArg::Csv) => Some("csv"),
            Some(FormatArg::Lines) => Some("lines"),
            Some(FormatArg::Raw) | None => None,
        };
        if let (Some(_), Some(text)) = (self.dtype, text) {
            return Err(Error::DtypeForTextInput(text));
        }
        let frames = self.dtype.map(|kind| FrameFormat::new(kind, &self.shape));
        Ok(RecordOptions {
            format,
            csv,
            frames: frames.transpose().map_err(|error| Error::RecordWithoutPlace(Box::new(error)))?,
            new_keys: match self.on_new_key {
                NewKeysArg::Error => NewKeyPolicy::ErrorAfterFirstRows,
                NewKeysArg::Ignore => NewKeyPolicy::Ignore,
                NewKeysArg::Dataset => NewKeyPolicy::DatasetPerKey,
            },
            may_have_units_row: !self.no_units,
            integer_for_empty: self.empty,
            infer_rows: self.infer_rows,
            given_column_types: self.types.clone(),
            fixed_text_bytes: self.str_width,
            conversion: self.lossy.conversion(),
            on_error: self.on_error.clone(),
            flush: FlushPolicy { max_unflushed_rows: self.every, ..FlushPolicy::default() },
            layout: RecordLayout { chunk_rows: self.chunk, deflate: self.deflate },
        })
    }

    /// Tells how many rows were stored, and how many were not.
    fn report(
        &self,
        recorded: &RecordSummary,
        stopped: Option<&RefusedRow>,
        mirrored: Option<&MirrorReport>,
    ) -> Result<()> {
        if recorded.skipped_or_rejected_rows > 0 || stopped.is_some() {
            let refused = counted(recorded.skipped_or_rejected_rows, "row");
            let left = match &self.on_error {
                _ if recorded.skipped_or_rejected_rows == 0 => String::new(),
                OnError::RejectTo(path) => format!(", {refused} rejected to {}", path.display()),
                _ => format!(", {refused} skipped"),
            };
            let stopped = stopped.map(|refused| format!(", stopped at row {}", refused.row_number)).unwrap_or_default();
            eprint_prefixed(format_args!(
                "{}: {} stored{left}{stopped}",
                self.file,
                counted(recorded.accepted_rows, "row")
            ));
        }
        mirrored.iter().for_each(eprint_prefixed);
        if self.json {
            let mut summary = serde_json::Map::new();
            summary.insert("file".to_owned(), self.file.to_string().into());
            summary.insert("path".to_owned(), self.path.clone().into());
            summary.insert("rows".to_owned(), recorded.accepted_rows.into());
            if recorded.skipped_or_rejected_rows > 0 {
                let is_rejected = matches!(self.on_error, OnError::RejectTo(_));
                let name = if is_rejected { "rejected" } else { "skipped" };
                summary.insert(name.to_owned(), recorded.skipped_or_rejected_rows.into());
            }
            if let Some(refused) = stopped {
                summary.insert("stopped_at".to_owned(), refused.row_number.into());
            }
            mirrored.iter().for_each(|mirror| mirror.add_to(&mut summary));
            let mut out = crate::output::StdoutWriter::stdout();
            out.line(serde_json::Value::Object(summary))?;
            out.flush()?;
        }
        Ok(())
    }

    /// What helps after the disk was full, if the file is one that other programs may refuse until then.
    fn way_on(&self) -> String {
        match crate::open::native_file_path(&self.file) {
            Ok(Some(_)) => format!(
                "; when there is room again, record goes on there, and `h5live repair {}` closes it for other programs",
                self.file
            ),
            _ => String::new(),
        }
    }
}
