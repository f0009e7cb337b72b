//! `h5live latency`: how late other processes see rows that were appended and flushed.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use h5live::{File, Location};
use serde_json::json;

use h5live_cli::counted::counted;
use h5live_cli::error::{CommandOutcome, Error, Result};
use h5live_cli::live::latency::{Latencies, duration_text};
use h5live_cli::live::location;
use h5live_cli::live::message::unix_nanos_now;
use h5live_cli::live::role::WorkerRole;
use h5live_cli::number_arg::positive;
use h5live_cli::open;
use h5live_cli::output::StdoutWriter;
use h5live_cli::temp_output::ForceArgs;
use h5live_cli::wait::seconds;
use h5live_output::ScratchFolder;

/// The dataset: row by row the time at which its append began (ns since 1970).
const DATASET: &str = "times";
/// The reader of another library.
const REFRESH: &str = include_str!("refresh.py");

/// Measures how late other processes see appended and flushed rows, from before the append to after the read
#[derive(Debug, clap::Args)]
pub struct Latency {
    /// The file, or another store that others can follow (kv:run); a temporary file if it is not said
    file: Option<Location>,
    #[command(flatten)]
    force: ForceArgs,
    /// Appends in a second, each flushed
    #[arg(long, default_value_t = 1000.0, value_parser = positive)]
    rate: f64,
    /// How long it goes on
    #[arg(long, default_value_t = 5.0, value_parser = seconds)]
    seconds: f64,
    /// A Python with h5py, which follows beside it
    #[arg(long, value_name = "PYTHON")]
    h5py: Option<PathBuf>,
    /// For programs: the report as JSON
    #[arg(long)]
    json: bool,
    /// The role of this process in a run that another one has started
    #[arg(long, hide = true, value_enum)]
    role: Option<WorkerRole>,
}

impl Latency {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`h5live_cli::error::Error`] says.
    pub fn run(self) -> Result<CommandOutcome> {
        let scratch = if self.file.is_none() { Some(ScratchFolder::new("latency", true)?) } else { None };
        let temporary = scratch.as_ref().map(|scratch| scratch.path().join("latency.h5").into());
        let Some(location) = self.file.clone().or(temporary) else { return Ok(CommandOutcome::Clean) };
        match self.role {
            Some(WorkerRole::Writer) => self.write(&location)?,
            Some(WorkerRole::Reader) => follow(&location)?,
            None => {
                let reports = self.coordinate(&location)?;
                let mut out = StdoutWriter::stdout();
                for report in reports {
                    if self.json { out.line(report.json())? } else { out.line(report)? }
                }
                out.flush()?;
            }
        }
        Ok(CommandOutcome::Clean)
    }

    fn rows(&self) -> u64 {
        (self.rate * self.seconds).ceil() as u64
    }

    /// Waits for the start, and then appends, flushes, and waits for the next turn.
    fn write(&self, location: &Location) -> Result<()> {
        let file = File::options().swmr_write().open(location)?;
        let dataset = file.dataset(DATASET)?;
        say("ready")?;
        std::io::stdin().lock().read_line(&mut String::new()).map_err(Error::Process)?;
        let mut next = Instant::now();
        for _ in 0..self.rows() {
            dataset.append(&[unix_nanos_now()])?;
            dataset.flush()?;
            next += Duration::from_secs_f64(1.0 / self.rate);
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        Ok(file.close()?)
    }

    /// Starts the processes and gathers what the readers say.
    fn coordinate(&self, location: &Location) -> Result<Vec<LatencyReport>> {
        let with_path =
            |python| -> Result<_> { Ok((python, location::require_new_native_file_path(location, "--h5py")?)) };
        let h5py = self.h5py.as_ref().map(with_path).transpose()?;
        location::create_live_store(location, self.force, |file| {
            file.new_dataset::<u64>().unlimited_rows(&[]).chunk_shape(&[1024]).create(DATASET)?;
            Ok(())
        })?;
        let program = std::env::current_exe().map_err(Error::Process)?;
        let numbers = [self.rate, self.seconds].map(|number| number.to_string());
        let role = |role: &str| {
            let mut command = Command::new(&program);
            command.args(["latency", "--role", role, "--rate", &numbers[0], "--seconds", &numbers[1], "--"]);
            command.arg(location::to_argument(location));
            command
        };
        let mut writer = LatencyWorker::start(role("writer"))?;
        let mut readers = vec![("h5live", LatencyWorker::start(role("reader"))?)];
        if let Some((python, path)) = h5py {
            let mut command = Command::new(python);
            command.args(["-c", REFRESH, &self.rows().to_string()]).arg(path);
            readers.push(("h5py", LatencyWorker::start(command)?));
        }
        writer.go()?;
        let reports = readers.iter_mut().map(|(name, reader)| {
            let times = reader.line()?;
            let times = times.split_whitespace().filter_map(|word| word.parse().ok());
            Ok(LatencyReport { reader: name, expected: self.rows(), late: Latencies::from_nanos(times) })
        });
        reports.collect()
    }
}

/// Follows the dataset to its end, and says how late each row was seen (ns).
fn follow(location: &Location) -> Result<()> {
    let file = open::for_following(location)?;
    let dataset = file.dataset(DATASET)?;
    let mut late = Vec::new();
    let rows = dataset.follow::<u64>();
    say("ready")?;
    for batch in rows {
        let times = batch?;
        let now = unix_nanos_now();
        late.extend(times.into_iter().map(|at| now.saturating_sub(at).to_string()));
    }
    say(&late.join(" "))
}

fn say(line: &str) -> Result<()> {
    let mut out = StdoutWriter::stdout();
    out.line(line)?;
    out.flush()
}

/// A process of a run. It is gone when this is dropped.
struct LatencyWorker {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl LatencyWorker {
    /// Starts a process and waits until it is ready.
    fn start(mut command: Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(Error::Process)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = BufReader::new(output.ok_or_else(|| Error::Process(std::io::ErrorKind::BrokenPipe.into()))?);
        let mut player = LatencyWorker { child, input, output };
        match player.line()?.as_str() {
            "ready" => Ok(player),
            _ => Err(Error::Process(std::io::ErrorKind::UnexpectedEof.into())),
        }
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(Error::Process)?;
        Ok(line.trim().to_owned())
    }

    fn go(&mut self) -> Result<()> {
        self.input.take().map_or(Ok(()), |mut input| writeln!(input)).map_err(Error::Process)
    }
}

impl Drop for LatencyWorker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The times of one reader.
struct LatencyReport {
    reader: &'static str,
    expected: u64,
    late: Latencies,
}

impl LatencyReport {
    fn json(&self) -> serde_json::Value {
        let micros = |part| self.late.quantile(part).map(|nanos| nanos as f64 / 1e3);
        json!({
            "reader": self.reader,
            "rows": self.late.count(),
            "expected": self.expected,
            "latency_us": { "median": micros(0.5), "p99": micros(0.99), "worst": micros(1.0) },
        })
    }
}

impl fmt::Display for LatencyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |part| self.late.quantile(part).map_or_else(|| "none".into(), duration_text);
        let (seen, expected) = (self.late.count(), self.expected);
        write!(
            f,
            "{:7} {seen} of {}; append to seen: median {}, 99 % {}, worst {}",
            self.reader,
            counted(expected, "row"),
            text(0.5),
            text(0.99),
            text(1.0)
        )
    }
}
