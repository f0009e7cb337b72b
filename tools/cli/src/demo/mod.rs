//! `h5live demo`: this machine's own metrics in a live file, followed by two other processes.

mod chart;
mod machine;
mod page;
mod row;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use h5live::{Dataset, File, FixedStr, Location};

use crate::counted::counted;
use crate::error::{CommandOutcome, Error, Result};
use crate::live::latency::{Latencies, duration_text};
use crate::live::location;
use crate::live::message::{TimedExtents, WorkerMessage, unix_nanos_now};
use crate::live::processes::{register_interrupt_flag, stop_flag_on_stdin_eof};
use crate::live::reader::LiveReader;
use crate::live::role::WorkerRole;
use crate::live::writer_and_readers::{WriterAndReaders, row_counts_of_last_flush};
use crate::number_arg::positive;
use crate::open;
use crate::output::StdoutWriter;
use crate::temp_output::ForceArgs;
use crate::wait::seconds;
use crate::watch::screen::Screen;
use crate::watch::{read_raw_rows_with_first, row_count};

use machine::{METRIC_NAMES_AND_UNITS, MachineSampler, ProcessorLoadMeter};

/// The dataset of the demo.
const DATASET: &str = "machine/samples";
/// The dataset that the page draws: how much of the processors was busy (percent), by times of the samples.
const LINE: &str = "machine/busy";
/// Samples of which one is a point of the line.
const SAMPLES_PER_POINT: u64 = 20;
/// Rows of a chunk.
const CHUNK_ROWS: u64 = 512;
/// How far the writer may be behind its rate and still catch up.
const MAX_LAG: Duration = Duration::from_millis(250);
/// Processes that follow.
const READERS: usize = 2;

/// Writes this machine's metrics into a live file for some seconds, with two processes that follow and check it
#[derive(Debug, clap::Args)]
pub struct DemoCommand {
    /// The file, or another store that others can follow (kv:run); by default a file in the folder for temporary files,
    /// which is replaced
    file: Option<Location>,
    #[command(flatten)]
    force: ForceArgs,
    /// How long it goes on
    #[arg(long, default_value_t = 10.0, value_parser = seconds)]
    seconds: f64,
    /// Samples in a second, each flushed at once
    #[arg(long, default_value_t = 1000.0, value_parser = positive)]
    rate: f64,
    /// For programs: the summary as JSON
    #[arg(long)]
    json: bool,
    /// The role of this process in a demo that another one has started
    #[arg(long, hide = true, value_enum)]
    role: Option<WorkerRole>,
}

impl DemoCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`crate::error::Error`] says.
    pub fn run(self) -> Result<CommandOutcome> {
        let location = self.file.clone().unwrap_or_else(|| std::env::temp_dir().join("h5live-demo.h5").into());
        match self.role {
            Some(WorkerRole::Writer) => {
                write(&location, self.rate, &stop_flag_on_stdin_eof()).map(|()| CommandOutcome::Clean)
            }
            Some(WorkerRole::Reader) => {
                let check = |_: usize, first: u64, rows: &[u8]| row::find_row_fault(first, rows);
                LiveReader::new(&location, &[DATASET], &check)
                    .run(&stop_flag_on_stdin_eof())
                    .map(|()| CommandOutcome::Clean)
            }
            None => self.coordinate(&location),
        }
    }

    fn coordinate(&self, location: &Location) -> Result<CommandOutcome> {
        // Its own file, at the usual place, is there to be replaced.
        let force = ForceArgs { replaces_file: self.force.replaces_file || self.file.is_none() };
        location::create_live_store(location, force, make)?;
        let interrupted = register_interrupt_flag();
        let rate = self.rate.to_string();
        let mut troupe = WriterAndReaders::new(location, &["demo", "--role=writer", "--rate", &rate]);
        if troupe.start_writer_await_flush().map_err(Error::Process)? {
            for _ in 0..READERS {
                troupe.start_reader(&["demo", "--role=reader"]).map_err(Error::Process)?;
            }
            let page = page::DemoServer::start(location, !self.json)?;
            self.show(location, &mut troupe, &interrupted, page.as_ref())?;
        }
        troupe.end_all_and_check(row_counts_of_last_flush).map_err(Error::Process)?;
        self.sum_up(location, &troupe)?;
        Ok(if troupe.violations.is_empty() { CommandOutcome::Clean } else { CommandOutcome::Findings })
    }

    /// Follows the file like any other reader, and draws the rows.
    fn show(
        &self,
        location: &Location,
        troupe: &mut WriterAndReaders,
        interrupted: &AtomicBool,
        page: Option<&page::DemoServer>,
    ) -> Result<()> {
        let file = open::for_following(location)?;
        let dataset = file.dataset(DATASET)?;
        let mut screen = Screen::for_terminal();
        let interval = Duration::from_millis(if screen.is_some() { 100 } else { 1000 });
        let until = Instant::now() + Duration::from_secs_f64(self.seconds);
        while Instant::now() < until && !troupe.writer_is_gone() && !interrupted.load(Ordering::Acquire) {
            troupe.collect_events_for(interval.min(until.saturating_duration_since(Instant::now())));
            dataset.refresh()?;
            let rows = row_count(&dataset)?;
            let seen: Vec<_> = troupe
                .reader_logs
                .iter()
                .map(|s| s.seen.last().and_then(|s| s.row_counts.first()).unwrap_or(&0))
                .collect();
            let (written, violations) = (counted(rows, "row"), counted(troupe.violations.len(), "violation"));
            let state = format!("{written} written, seen by the readers: {seen:?}, {violations}");
            match &mut screen {
                Some(screen) => {
                    let width = Screen::width();
                    let wanted = (width * chart::ROWS_PER_CHARACTER) as u64;
                    let (_, stored) =
                        read_raw_rows_with_first(&dataset, &*dataset.spec()?, rows.saturating_sub(wanted), rows)?;
                    let mut lines = vec![format!("{}:/{DATASET}", location)];
                    lines.extend(page.map(|page| format!("drawn at {}", page.url_with_token())));
                    lines.extend(chart::sparkline_lines(&stored, width));
                    lines.push(state);
                    screen.draw(&lines)?;
                }
                // The answer of a program for programs has no lines in between.
                None if self.json => {}
                None => {
                    let mut out = StdoutWriter::stdout();
                    out.line(state)?;
                    out.flush()?;
                }
            }
        }
        Ok(())
    }

    fn sum_up(&self, location: &Location, troupe: &WriterAndReaders) -> Result<()> {
        let written = troupe.last_flushed_row_counts().first().copied().unwrap_or(0);
        let readers = troupe.reader_results(0);
        let all = Latencies::merge(readers.iter().map(|(_, latencies)| latencies.clone()));
        let (median, worst) = (all.quantile(0.5), all.quantile(1.0));
        let violations: Vec<_> =
            troupe.violations.iter().map(|v| format!("{}: {}", v.invariant.code(), v.detail)).collect();
        let mut out = StdoutWriter::stdout();
        if self.json {
            out.line(serde_json::json!({
                "file": location.to_string(),
                "rows": written,
                "seen": readers.iter().map(|(work, _)| work.new_rows).collect::<Vec<_>>(),
                "flush_to_visible_us": { "median": median.map(|n| n as f64 / 1e3), "worst": worst.map(|n| n as f64 / 1e3) },
                "violations": violations,
            }))?;
            return out.flush();
        }
        out.line(format_args!("rows written      {written}"))?;
        for (i, (work, _)) in readers.iter().enumerate() {
            out.line(format_args!(
                "seen by reader {}  {}, and {} one of them again",
                i + 1,
                work.new_rows,
                counted(work.reread_rows, "time")
            ))?;
        }
        if let (Some(median), Some(worst)) = (median, worst) {
            let (median, worst) = (duration_text(median), duration_text(worst));
            out.line(format_args!("flush to visible  median {median}, worst {worst}"))?;
        }
        for violation in &violations {
            out.line(format_args!("violation of {violation}"))?;
        }
        out.line(format_args!("violations        {}", violations.len()))?;
        out.line(format_args!("look at it        h5live ls {}   (`make install` gives you the program)", location))?;
        out.flush()
    }
}

/// Makes the dataset in a new file, still empty.
fn make(file: &File) -> Result<()> {
    let samples = file
        .root()
        .new_dataset_with_type(row::row_datatype())
        .unlimited_rows(&[])
        .chunk_shape(&[CHUNK_ROWS])
        .create(DATASET)?;
    let line = file.new_dataset::<f32>().unlimited_rows(&[]).chunk_shape(&[CHUNK_ROWS]).create(LINE)?;
    line.set_attribute("units", "%")?;
    // What the page shows first, by the convention of NeXus.
    file.set_attribute("default", "machine")?;
    let group = file.group("machine")?;
    group.set_attribute("NX_class", "NXdata")?;
    group.set_attribute("signal", "busy")?;
    let units = METRIC_NAMES_AND_UNITS.iter().filter(|(_, unit)| !unit.is_empty());
    for (name, unit) in units.filter_map(|(name, unit)| Some((name, FixedStr::<8>::new(unit)?))) {
        samples.set_attribute(&format!("unit of {name}"), &unit)?;
    }
    Ok(())
}

/// Appends a sample of the machine `rate` times in a second, each flushed at once, until `stop` is set.
fn write(location: &Location, rate: f64, stop: &AtomicBool) -> Result<()> {
    let mut machine = MachineSampler::open().map_err(Error::MachineCounters)?;
    let file = File::options().swmr_write().open(location)?;
    let samples: Dataset = file.dataset(DATASET)?;
    let line: Dataset = file.dataset(LINE)?;
    let mut load = ProcessorLoadMeter::default();
    let mut out = StdoutWriter::stdout();
    let pause = Duration::from_secs_f64(1.0 / rate);
    let mut next = Instant::now();
    for index in row_count(&samples)?.. {
        if stop.load(Ordering::Acquire) {
            break;
        }
        let sample = machine.sample().map_err(Error::MachineCounters)?;
        samples.append_raw(&row::encode(index, unix_nanos_now(), &sample))?;
        let at = unix_nanos_now();
        samples.flush()?;
        out.line(WorkerMessage::Flushed(TimedExtents { unix_nanos: at, row_counts: vec![index + 1] }))?;
        out.flush()?;
        if index % SAMPLES_PER_POINT == 0 {
            line.append(&[load.percent_since_last(&sample)])?;
            line.flush()?;
        }
        next += pause;
        thread::sleep(next.saturating_duration_since(Instant::now()));
        // Samples that are late are made up for; those of a long standstill are not.
        next = next.max(Instant::now().checked_sub(MAX_LAG).unwrap_or(next));
    }
    Ok(file.close()?)
}
