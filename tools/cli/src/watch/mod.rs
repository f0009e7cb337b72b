//! `h5live watch`: follows a dataset that another process is writing.

pub mod chart;
mod image;
pub mod screen;
mod spark;
mod stats;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use h5live::{Dataset, File, FileOpenState, Location, Object};

use crate::counted::counted;
use crate::error::{CommandOutcome, Error, Result};
use crate::escaped_path;
use crate::live::processes::register_interrupt_flag;
use crate::model::{DatasetSpec, Selection, Store};
use crate::number_arg::at_least;
use crate::output::StdoutWriter;
use crate::references::ReferenceFormatter;
use crate::times::TimeColumns;
use crate::value::{self, Value};
use crate::wait::{WaitArgs, seconds};

use chart::Chart;
use screen::Screen;

/// A pause between two looks whether to end.
pub const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Rows that are read at a time.
const BLOCK_ROWS: u64 = 1024;

/// Follows a dataset that another process is writing
///
/// It ends when the writer does. Exit code 0: the writer has closed the file; 1: it has died; 2: the dataset cannot be read.
#[derive(Debug, clap::Args)]
pub struct WatchCommand {
    /// The file
    file: Location,
    /// The dataset
    path: String,
    /// Seconds between two pictures or lines
    #[arg(long, default_value_t = 0.5, value_parser = seconds)]
    interval: f64,
    /// Newest rows that are shown as text
    #[arg(long, default_value_t = 3, value_parser = at_least::<0, u64>)]
    rows: u64,
    /// End after this many seconds; by default when the writer ends, or at Ctrl-C
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
    /// For programs: every new row as a line of JSON
    #[arg(long)]
    json: bool,
    /// Show times as they are stored: nanoseconds since 1970. JSON has them so anyway
    #[arg(long)]
    raw_times: bool,
    /// If the writer dies, bring the file into order, so that programs open it that do not follow
    #[arg(long)]
    recover: bool,
    #[command(flatten)]
    wait: WaitArgs,
    /// Print statistics on standard error at the end
    #[arg(long)]
    stats: bool,
}

impl WatchCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`crate::error::Error`] says.
    pub fn run(self) -> Result<CommandOutcome> {
        let interrupted = register_interrupt_flag();
        let options = crate::open::command_line_options().swmr_read().recover(self.recover);
        let dataset = self.wait.open_and_find_waiting(&self.file, &self.path, &interrupted, options, &|file| {
            match escaped_path::object_at_maybe_escaped_path(file, &self.path)? {
                (Object::Dataset(dataset), _) => Ok(dataset.ignore_busy_sources_in_extent()),
                _ => Ok(file.dataset(&self.path)?.ignore_busy_sources_in_extent()),
            }
        })?;
        let Some(dataset) = dataset else { return Ok(CommandOutcome::INTERRUPTED) };
        let until = self.seconds.map(|s| Instant::now() + Duration::from_secs_f64(s));
        if self.json {
            self.rows_as_json(&dataset, until, &interrupted)
        } else {
            self.draw_charts(&dataset, until, &interrupted)
        }?;
        if self.stats {
            eprintln!("{}", stats::text(&dataset.file().stats()));
        }
        Ok(report_if_writer_died(&self.file, dataset.file()))
    }

    fn rows_as_json(&self, dataset: &Dataset, until: Option<Instant>, interrupted: &AtomicBool) -> Result<()> {
        let mut out = StdoutWriter::stdout();
        let mut next = 0;
        let watch = dataset.file().store().watch(&[dataset.id()]);
        let store_error = |source| Error::Store { file: self.file.to_string().into(), path: self.path.clone(), source };
        let mut watch = watch.map_err(store_error)?;
        loop {
            let last = should_stop_following(dataset, until, interrupted);
            if tolerate_busy_unless_last(last, new_rows_as_json(dataset, &mut next, &mut out))? {
                return Ok(());
            }
            watch.wait(POLL_INTERVAL).map_err(store_error)?;
        }
    }

    fn draw_charts(&self, dataset: &Dataset, until: Option<Instant>, interrupted: &AtomicBool) -> Result<()> {
        let mut screen = Screen::for_terminal();
        let mut before: Option<(Instant, u64)> = None;
        let mut draw = || {
            dataset.refresh()?;
            let now = (Instant::now(), row_count(dataset)?);
            let rate = before.map(|(then, rows)| now.1.saturating_sub(rows) as f64 / (now.0 - then).as_secs_f64());
            before = Some(now);
            match &mut screen {
                Some(screen) => screen.draw(&self.chart_lines(dataset, now.1, rate)?),
                None => {
                    let mut out = StdoutWriter::stdout();
                    out.line(self.line(dataset, now.1, rate)?)?;
                    out.flush()
                }
            }
        };
        loop {
            let next = Instant::now() + Duration::from_secs_f64(self.interval);
            let last = should_stop_following(dataset, until, interrupted);
            if tolerate_busy_unless_last(last, draw())? {
                return Ok(());
            }
            // In small steps, so that the end is seen soon.
            while Instant::now() < next && matches!(should_stop_following(dataset, until, interrupted), Ok(false)) {
                thread::sleep(POLL_INTERVAL.min(next.saturating_duration_since(Instant::now())));
            }
        }
    }

    fn line(&self, dataset: &Dataset, rows: u64, rate: Option<f64>) -> Result<String> {
        let spec = dataset.spec()?;
        let (_, newest) = read_raw_rows_with_first(dataset, &spec, rows.saturating_sub(1), rows)?;
        let rate = rate.map_or(String::new(), |rate| format!("  {rate:.0} rows/s"));
        let value = if rows == 0 { String::new() } else { self.row_text(dataset, &spec, &newest) };
        let value: String = value.chars().take(120).collect();
        Ok(format!("{}{rate}  {value}", counted(rows, "row")))
    }

    fn row_text(&self, dataset: &Dataset, spec: &DatasetSpec, row: &[u8]) -> String {
        let times = if self.raw_times { TimeColumns::default() } else { TimeColumns::of(dataset) };
        times.times_to_texts(row_value(spec, row, dataset.file().store())).to_string()
    }

    fn chart_lines(&self, dataset: &Dataset, rows: u64, rate: Option<f64>) -> Result<Vec<String>> {
        let spec = dataset.spec()?;
        let width = Screen::width();
        let picture = Chart::for_spec(&spec);
        let (_, bytes) =
            read_raw_rows_with_first(dataset, &spec, rows.saturating_sub(picture.rows_needed(width)), rows)?;
        let live = match dataset.is_live() {
            Ok(true) => "live",
            Ok(false) => "closed",
            // Which of them is said at the end.
            Err(_) => "deleted, replaced or cut",
        };
        let rate = rate.map_or(String::new(), |rate| format!(", {rate:.0} rows/s"));
        let mut lines = vec![format!("{}:{}  {live}  {}{rate}", self.file, self.path, counted(rows, "row"))];
        lines.extend(picture.draw(&spec.datatype, elements_per_row(&spec), &bytes, width));
        if picture == Chart::SparklinePerMember {
            let (first, bytes) = read_raw_rows_with_first(dataset, &spec, rows.saturating_sub(self.rows), rows)?;
            let row = |(i, bytes)| format!("{}: {}", first + i, self.row_text(dataset, &spec, bytes));
            lines.extend((0u64..).zip(bytes.chunks_exact(row_bytes(&spec))).map(row));
        }
        Ok(lines)
    }
}

/// Whether this look at the file is the last: the writer has closed it, the time is over, or the user has interrupted.
pub fn should_stop_following(dataset: &Dataset, until: Option<Instant>, interrupted: &AtomicBool) -> Result<bool> {
    let over = interrupted.load(Ordering::Acquire) || until.is_some_and(|until| Instant::now() >= until);
    Ok(over || !dataset.is_live()?)
}

/// Says on standard error if the writer has died instead of closing the file, which `followed` has followed.
pub fn report_if_writer_died(location: &Location, followed: &File) -> CommandOutcome {
    let mut found = crate::open::command_line_options().diagnose(location).map(|found| found.open_state);
    // Some stores tell only those who have followed their writer.
    if matches!(followed.store().is_abandoned(), Ok(true)) {
        found = Ok(FileOpenState::Abandoned { live: true });
    }
    // A follower may have seen that the writer went, where the system does not tell it afterwards.
    let has_seen_end = || matches!(followed.is_live(), Ok(false));
    match found {
        Ok(FileOpenState::OpenOrAbandoned { .. }) if !has_seen_end() => {
            eprintln!(
                "h5live: {location}: it is marked as being written, and the system does not tell this user whether its \
                 writer lives"
            );
            CommandOutcome::Clean
        }
        Ok(FileOpenState::Abandoned { .. } | FileOpenState::OpenOrAbandoned { .. }) => {
            eprintln!(
                "h5live: {location}: its writer has died; what it flushed is there (`h5live repair` puts the file in order)"
            );
            CommandOutcome::Findings
        }
        // A store may have none, and what was to be shown was shown.
        _ => CommandOutcome::Clean,
    }
}

/// Whether the look was the last one. A change of the file by another program is reported after everything that could
/// still be shown. A source whose writer lets nobody read it yet is waited for.
pub fn tolerate_busy_unless_last(last: Result<bool>, shown: Result<()>) -> Result<bool> {
    let last = last?;
    match shown {
        Err(Error::File(error)) if error.is_in_use() && !last => Ok(false),
        shown => shown.map(|()| last),
    }
}

/// Prints the rows that are there from `next` on.
fn new_rows_as_json(dataset: &Dataset, next: &mut u64, out: &mut StdoutWriter) -> Result<()> {
    dataset.refresh()?;
    let rows = row_count(dataset)?;
    let spec = dataset.spec()?;
    let places = dataset.file().store();
    let references = ReferenceFormatter::new(dataset.file());
    let mut step = BLOCK_ROWS;
    while *next < rows {
        let end = rows.min(*next + step);
        let (_, bytes) = match read_raw_rows_with_first(dataset, &spec, *next, end) {
            // Rows before those of a source that cannot be read yet are shown.
            Err(Error::File(error)) if error.is_in_use() && end - *next > 1 => {
                step = (end - *next) / 2;
                continue;
            }
            read => read?,
        };
        for row in bytes.chunks_exact(row_bytes(&spec)) {
            out.line(value::json_nan_as_null(&row_value(&spec, row, places), &|reference| references.json(reference)))?;
        }
        *next = end;
    }
    out.flush()
}

/// The number of rows.
pub fn row_count(dataset: &Dataset) -> Result<u64> {
    Ok(dataset.shape()?.first().copied().unwrap_or(1))
}

/// The number of elements of a row.
pub fn elements_per_row(spec: &DatasetSpec) -> usize {
    let elements = spec.dataspace.dims().iter().skip(1).fold(1u64, |n, d| n.saturating_mul(*d));
    usize::try_from(elements).unwrap_or(usize::MAX)
}

/// Bytes of a stored row; at least 1.
fn row_bytes(spec: &DatasetSpec) -> usize {
    (spec.datatype.size() as usize).saturating_mul(elements_per_row(spec)).max(1)
}

/// The rows from `first` to before `end`, as stored, and the first of them.
pub fn read_raw_rows_with_first(dataset: &Dataset, spec: &DatasetSpec, first: u64, end: u64) -> Result<(u64, Vec<u8>)> {
    let [_, row @ ..] = spec.dataspace.dims() else {
        return Ok((0, dataset.read_raw(Selection::All)?));
    };
    crate::open::check_memory(dataset, (row_bytes(spec) as u64).saturating_mul(end - first))?;
    let start: Vec<_> = std::iter::once(first).chain(row.iter().map(|_| 0)).collect();
    let count: Vec<_> = std::iter::once(end - first).chain(row.iter().copied()).collect();
    Ok((first, dataset.read_raw(Selection::block(&start, &count))?))
}

/// A row as a value.
fn row_value(spec: &DatasetSpec, row: &[u8], heap: &dyn Store) -> Value {
    let element = |bytes| value::decode_or_unreadable(&spec.datatype, bytes, Some(heap));
    if elements_per_row(spec) == 1 && spec.dataspace.rank() <= 1 {
        return element(row);
    }
    Value::List(row.chunks_exact((spec.datatype.size() as usize).max(1)).map(element).collect())
}
