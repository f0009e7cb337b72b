//! `h5live stress`: a writer and readers in processes of their own, every value checked against a rule.

mod joined;
pub mod matrix;
mod names;
mod report;
pub mod rule;
mod writer;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use h5live::Location;

use crate::reader_stalls::ReaderStalls;
use h5live_cli::counted::counted;
use h5live_cli::error::{CommandOutcome, Error, Result};
use h5live_cli::live::location;
use h5live_cli::live::message::StressInvariant;
use h5live_cli::live::processes::{register_interrupt_flag, stop_flag_on_stdin_eof};
use h5live_cli::live::reader::LiveReader;
use h5live_cli::live::role::WorkerRole;
use h5live_cli::live::writer_and_readers::{WriterAndReaders, row_counts_of_last_flush};
use h5live_cli::number_arg::{at_least, positive};
use h5live_cli::output::StdoutWriter;
use h5live_cli::temp_output::ForceArgs;
use h5live_cli::wait::seconds;
use h5live_cli::watch::{read_raw_rows_with_first, row_count};
use h5live_cli::{open, progress};
use h5live_output::ScratchFolder;

use report::{StressReport, WriterCounts};
use rule::all_series;

/// How long a writer lives before it is killed.
const WRITER_LIFETIME: Duration = Duration::from_secs(1);
/// Rows at the end of each dataset that are checked after each kill.
const CHECKED_TAIL_ROWS: u64 = 200;

/// Lets processes write and read one file at once, and checks every value that is seen
#[derive(Debug, clap::Args)]
pub struct Stress {
    /// The file, or another store that others can follow (kv:run); a temporary file if it is not said
    file: Option<Location>,
    #[command(flatten)]
    force: ForceArgs,
    /// Processes that read
    #[arg(long, default_value_t = 2, value_parser = at_least::<0, usize>)]
    readers: usize,
    /// How long it goes on
    #[arg(long, default_value_t = 10.0, value_parser = seconds)]
    seconds: f64,
    /// Kill the writer every second, and see that nothing flushed is lost
    #[arg(long)]
    kill: bool,
    /// End the writer every second and start another one, under the readers that stay
    #[arg(long, conflicts_with = "kill")]
    restart: bool,
    /// Kill writers that set and remove attributes and links of all kinds, as often as --kills says; after each kill
    /// the file is brought into order, and must be sound. --peer tests/python/names.py looks at it, and writes on, with
    /// h5py
    #[arg(long)]
    names: bool,
    /// Kill writers that have joined one file with a log, one to four at a time, as often as --kills says; the others go
    /// on, and a follower looks at everything meanwhile
    #[arg(long)]
    log: bool,
    /// The number of a writer that has joined
    #[arg(long, hide = true, default_value_t = 0, value_parser = at_least::<0, u64>)]
    number: u64,
    /// How many writers have joined
    #[arg(long, hide = true, default_value_t = 1, value_parser = at_least::<1, u64>)]
    writers: u64,
    /// A command that checks the file too after each kill and at the end: it gets the file's name, the seed and the
    /// number of flushed rows of each dataset, and fails if something is wrong
    #[arg(long, value_name = "COMMAND")]
    check: Option<String>,
    /// Stop all readers again and again for this many seconds, wherever they are; the other program also waits so long
    /// between looking at the extent and reading
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    stall: Option<f64>,
    /// The seed from which all values follow
    #[arg(long, default_value_t = 1, value_parser = at_least::<0, u64>)]
    seed: u64,
    /// Flushes that the writer attempts in a second (1000, or what suits a cell of the matrix)
    #[arg(long, value_parser = positive)]
    rate: Option<f64>,
    /// For programs: the report as JSON
    #[arg(long)]
    json: bool,
    /// The role of this process in a run that another one has started
    #[arg(long, hide = true, value_enum)]
    role: Option<WorkerRole>,
    #[command(flatten)]
    matrix: matrix::MatrixArgs,
}

impl Stress {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`h5live_cli::error::Error`] says.
    pub fn run(mut self) -> Result<CommandOutcome> {
        match (&self.file, self.role) {
            (_, Some(_)) => self.go(),
            (Some(_), None) => {
                // A run without cells makes its store itself.
                if let Some(path) = self.path()? {
                    h5live_output::claim_existing_file(&path, self.force.replaces_file)?;
                }
                self.go()
            }
            (None, None) => {
                let scratch = ScratchFolder::new("stress", false)?;
                self.file = Some(scratch.path().join("stress.h5").into());
                let outcome = self.go();
                if !matches!(outcome, Ok(CommandOutcome::Clean)) {
                    eprintln!("h5live: {}: kept", scratch.keep().display());
                }
                outcome
            }
        }
    }

    fn go(&self) -> Result<CommandOutcome> {
        match self.path()? {
            Some(path) => self.go_in_files(&path),
            None => self.go_at(&self.location()),
        }
    }

    /// Runs in files of one kind, or beside them.
    fn go_in_files(&self, path: &Path) -> Result<CommandOutcome> {
        match self.role {
            Some(WorkerRole::Writer) if self.names => {
                names::write(path, self.seed, self.matrix.first_step(), &stop_flag_on_stdin_eof())
                    .map(|()| CommandOutcome::Clean)
            }
            None if self.names => self.kill_writers_of_names(path),
            Some(WorkerRole::Writer) if self.log => {
                let (terms, first) = ((self.writers, self.seed), self.matrix.first_step());
                joined::write(path, self.number, terms, first, &stop_flag_on_stdin_eof())
                    .map(|()| CommandOutcome::Clean)
            }
            None if self.log => self.kill_joined_writers(path),
            Some(role) => {
                let stop = stop_flag_on_stdin_eof();
                self.matrix
                    .run_worker(role == WorkerRole::Writer, path, &self.terms(), &stop)
                    .map(|()| CommandOutcome::Clean)
            }
            None if self.matrix.ends_badly() => self.end_badly(path),
            None => self.try_matrix(path),
        }
    }

    /// Runs in a store of any kind.
    fn go_at(&self, location: &Location) -> Result<CommandOutcome> {
        match self.role {
            Some(WorkerRole::Writer) => {
                writer::run(location, self.seed, self.rate(), &stop_flag_on_stdin_eof()).map(|()| CommandOutcome::Clean)
            }
            Some(WorkerRole::Reader) => self.read(location).map(|()| CommandOutcome::Clean),
            None => {
                let report = self.coordinate(location)?;
                let mut out = StdoutWriter::stdout();
                if self.json {
                    out.line(report.json())?
                } else {
                    out.line(&report)?
                }
                out.flush()?;
                if !report.violations.is_empty() {
                    eprintln!("h5live: {location}: kept, for there are violations");
                    return Ok(CommandOutcome::Findings);
                }
                Ok(CommandOutcome::Clean)
            }
        }
    }

    fn location(&self) -> Location {
        self.file.clone().unwrap_or_else(|| PathBuf::new().into())
    }

    /// The path, if the run makes files of its own there; `None` if it goes on in one store of any kind.
    fn path(&self) -> Result<Option<PathBuf>> {
        let location = self.location();
        match () {
            () if self.log => open::require_any_file_path(&location).map(Some),
            () if self.names => location::require_new_native_file_path(&location, "--names").map(Some),
            () if self.matrix.is_made() || self.matrix.ends_badly() => {
                location::require_new_native_file_path(&location, "a cell of the matrix").map(Some)
            }
            () => Ok(None),
        }
    }

    fn rate(&self) -> f64 {
        self.rate.unwrap_or(1000.0)
    }

    fn terms(&self) -> matrix::terms::MatrixTerms {
        let length = Duration::from_secs_f64(self.seconds);
        let stall = self.stall();
        matrix::terms::MatrixTerms { readers: self.readers, length, seed: self.seed, rate: self.rate, stall }
    }

    /// How long readers are stopped.
    fn stall(&self) -> Option<Duration> {
        self.stall.map(Duration::from_secs_f64)
    }

    /// Tries the cells of the matrix.
    fn try_matrix(&self, base: &Path) -> Result<CommandOutcome> {
        let mut out = StdoutWriter::stdout();
        if !self.json {
            let (cells, seconds) = (counted(self.matrix.at_once(), "cell"), self.seconds);
            let readers = counted(self.readers, "reader");
            out.line(format_args!("{cells} at a time, {seconds} s each, {readers}"))?;
            out.line(matrix::head())?;
            out.flush()?;
        }
        let mut clean = true;
        let rows = self.matrix.coordinate(base, &self.terms(), &register_interrupt_flag(), |row, path| {
            if self.json {
                out.line(row.json())?
            } else {
                out.line(row)?
            }
            out.flush()?;
            if !row.is_clean() {
                clean = false;
                keep(base, path, row.cell);
            }
            Ok(())
        })?;
        if !self.json {
            out.line(matrix::sum(&rows))?;
            out.flush()?;
        }
        Ok(if clean { CommandOutcome::Clean } else { CommandOutcome::Findings })
    }

    /// Kills writers of attributes and links.
    fn kill_writers_of_names(&self, path: &Path) -> Result<CommandOutcome> {
        let mut peer = self.matrix.start_peer()?;
        let found = names::kill(path, self.seed, self.matrix.kills(), peer.as_mut(), &register_interrupt_flag())?;
        let mut out = StdoutWriter::stdout();
        out.line(&found)?;
        out.flush()?;
        // It is not there if it was never made.
        let _ = if self.file.is_none() { std::fs::remove_file(path) } else { Ok(()) };
        Ok(if found.violations.is_empty() { CommandOutcome::Clean } else { CommandOutcome::Findings })
    }

    /// Kills writers that have joined a log.
    fn kill_joined_writers(&self, path: &Path) -> Result<CommandOutcome> {
        let found = joined::kill(path, self.seed, self.matrix.kills(), &register_interrupt_flag())?;
        let mut out = StdoutWriter::stdout();
        out.line(&found)?;
        out.flush()?;
        Ok(if found.violations.is_empty() { CommandOutcome::Clean } else { CommandOutcome::Findings })
    }

    /// Kills writers, or lets their storage fail, in all cells of the matrix.
    fn end_badly(&self, base: &Path) -> Result<CommandOutcome> {
        let mut out = StdoutWriter::stdout();
        if !self.json {
            out.line(matrix::lives_head())?;
            out.flush()?;
        }
        let (mut lives, mut cut, mut steps, mut violations) = (0, 0, 0, 0);
        self.matrix.end_badly(base, &self.terms(), &register_interrupt_flag(), |row, path| {
            lives += row.lives;
            cut += row.cut;
            steps += row.steps;
            violations += row.violations.len();
            if !row.violations.is_empty() {
                keep(base, path, row.cell);
            }
            if self.json {
                out.line(row.json())?
            } else {
                out.line(row)?
            }
            out.flush()
        })?;
        if !self.json {
            let sum = format_args!("{} ended badly, {cut} in the middle of a structure", counted(lives, "writer"));
            let (steps, violations) = (counted(steps, "flush"), counted(violations, "violation"));
            out.line(format_args!("{sum}, {steps}: {violations}"))?;
            out.flush()?;
        }
        Ok(if violations == 0 { CommandOutcome::Clean } else { CommandOutcome::Findings })
    }

    fn read(&self, location: &Location) -> Result<()> {
        let all = all_series();
        let names: Vec<_> = all.iter().map(|series| series.name).collect();
        let check = |i: usize, first: u64, stored: &[u8]| {
            let difference = all.get(i)?.first_difference(self.seed, first, stored)?;
            Some(difference.to_string())
        };
        LiveReader::new(location, &names, &check).run(&stop_flag_on_stdin_eof())
    }

    /// Starts the processes, kills the writer now and then if asked to, and gathers the messages.
    fn coordinate(&self, location: &Location) -> Result<StressReport> {
        location::create_live_store(location, self.force, writer::make_datasets)?;
        let interrupted = register_interrupt_flag();
        let (seed, rate) = (self.seed.to_string(), self.rate().to_string());
        let mut troupe =
            WriterAndReaders::new(location, &["stress", "--role=writer", "--seed", &seed, "--rate", &rate]);
        let begin = Instant::now();
        let length = Duration::from_secs_f64(self.seconds);
        let (mut kills, mut restarts) = (0, 0);
        let mut going = troupe.start_writer_await_flush().map_err(Error::Process)?;
        for _ in 0..self.readers {
            troupe.start_reader(&["stress", "--role=reader", "--seed", &seed]).map_err(Error::Process)?;
        }
        let bar = progress::bar(self.seconds.ceil() as usize, "second");
        let mut next_end = Instant::now() + WRITER_LIFETIME;
        let mut stalls = self.stall().map(ReaderStalls::new);
        while going && begin.elapsed() < length && !interrupted.load(std::sync::atomic::Ordering::Acquire) {
            troupe.collect_events_for(Duration::from_millis(20).min(length.saturating_sub(begin.elapsed())));
            bar.set_position(begin.elapsed().as_secs());
            stalls.iter_mut().for_each(|stalls| stalls.tick(&troupe));
            if troupe.writer_is_gone() {
                troupe.record_violation(StressInvariant::Progress, "the writer has ended too early");
                break;
            }
            if (self.kill || self.restart) && Instant::now() >= next_end {
                if self.kill {
                    troupe.kill_writer().map_err(Error::Process)?;
                    kills += 1;
                } else {
                    troupe.end_writer().map_err(Error::Process)?;
                    restarts += 1;
                }
                self.after_death(location, &mut troupe);
                going = troupe.start_writer_await_flush().map_err(Error::Process)?;
                next_end = Instant::now() + WRITER_LIFETIME;
            }
        }
        stalls.iter_mut().for_each(|stalls| stalls.end(&troupe));
        troupe.end_all_and_check(row_counts_of_last_flush).map_err(Error::Process)?;
        bar.finish_and_clear();
        self.after_death(location, &mut troupe);
        let all = all_series();
        let rows = troupe.last_flushed_row_counts();
        Ok(StressReport {
            seed: self.seed,
            seconds: begin.elapsed().as_secs_f64(),
            written: WriterCounts {
                rows: rows.iter().sum(),
                bytes: rows.iter().zip(&all).map(|(rows, series)| rows * series.row_bytes() as u64).sum(),
                flushes: troupe.flushes.len() as u64,
                kills,
                restarts,
            },
            readers: troupe.reader_results(0),
            violations: troupe.violations,
        })
    }

    /// The file of a writer that is gone must open at once, with everything flushed.
    fn after_death(&self, location: &Location, troupe: &mut WriterAndReaders) {
        let flushed = troupe.last_flushed_row_counts().to_vec();
        for (series, &flushed) in all_series().iter().zip(&flushed) {
            let look = || -> Result<Option<String>> {
                let file = open::for_reading(location)?;
                let dataset = file.dataset(series.name)?;
                let rows = row_count(&dataset)?;
                if rows < flushed {
                    return Ok(Some(format!("{rows} of {flushed} flushed rows")));
                }
                let (first, stored) = read_raw_rows_with_first(
                    &dataset,
                    &*dataset.spec()?,
                    rows.saturating_sub(CHECKED_TAIL_ROWS),
                    rows,
                )?;
                Ok(series.first_difference(self.seed, first, &stored).map(|difference| difference.to_string()))
            };
            match look() {
                Ok(None) => {}
                Ok(Some(detail)) => troupe
                    .record_violation(StressInvariant::SurvivesWriterDeath, &format!("/{}: {detail}", series.name)),
                Err(error) => troupe.record_violation(StressInvariant::SurvivesWriterDeath, &error.to_string()),
            }
        }
        if let Some(fault) = location::first_check_finding(location) {
            troupe.record_violation(StressInvariant::SurvivesWriterDeath, &fault);
        }
        if let Some(fault) = self.check.as_deref().and_then(|command| self.checked_by(command, location, &flushed)) {
            troupe.record_violation(StressInvariant::SurvivesWriterDeath, &fault);
        }
    }

    /// The faults that another program finds in the file.
    fn checked_by(&self, command: &str, location: &Location, flushed: &[u64]) -> Option<String> {
        let mut shell = Command::new("sh");
        // The command's own words, and behind them the words of this run, whatever is in them.
        shell
            .arg("-c")
            .arg(format!("{command} \"$@\""))
            .arg("sh")
            .arg(location::to_argument(location))
            .arg(self.seed.to_string());
        let output = match shell.args(flushed.iter().map(u64::to_string)).stdin(Stdio::null()).output() {
            Ok(output) if output.status.success() => return None,
            Ok(output) => output,
            Err(error) => return Some(format!("{command}: {error}")),
        };
        let said = String::from_utf8_lossy(&output.stderr);
        Some(format!("{command}: {}: {}", output.status, said.trim_end().lines().last().unwrap_or_default()))
    }
}

/// Keeps a file that has shown violations.
fn keep(base: &Path, path: &Path, cell: matrix::cell::MatrixCell) {
    let kept = matrix::path_of(base, cell).with_extension("kept.h5");
    // The violations are told in any case.
    let kept = std::fs::rename(path, &kept).map_or_else(|e| e.to_string(), |()| kept.display().to_string());
    eprintln!("h5live: {kept}: kept, for there are violations");
}
