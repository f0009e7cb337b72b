//! `h5live scenario`: the scenarios of libhdf5's own tests of SWMR, each by one command that checks itself.

mod scripts;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use h5live::Location;

use crate::stress::matrix::{self, cell};
use h5live::model::ConsistencyScope;
use h5live_cli::counted::counted;
use h5live_cli::error::error_with_causes;
use h5live_cli::error::{CommandOutcome, Error, Result};
use h5live_cli::live::location;
use h5live_cli::live::message::{StressInvariant, TimedExtents, Violation, WorkCounts, WorkerMessage};
use h5live_cli::live::processes::{register_interrupt_flag, stop_flag_on_stdin_eof};
use h5live_cli::live::role::WorkerRole;
use h5live_cli::live::writer_and_readers::{WriterAndReaders, row_counts_of_last_flush};
use h5live_cli::number_arg::at_least;
use h5live_cli::open;
use h5live_cli::output::StdoutWriter;
use h5live_cli::temp_output::ForceArgs;
use h5live_cli::wait::seconds;
use h5live_output::ScratchFolder;

use scripts::ScenarioScript;

/// A pause of the writer between two steps, and of a reader between two looks.
const PAUSE: Duration = Duration::from_millis(1);
/// A reader stops after this many violations.
const MAX_VIOLATIONS: u32 = 20;

/// Plays a scenario in which one process writes and others read, and checks everything that they see
///
/// They are those of libhdf5's own tests of SWMR. Exit code 0: all was as it should be; 1: there are violations.
#[derive(Debug, clap::Args)]
pub struct Scenario {
    /// Which
    #[arg(value_enum)]
    name: ScenarioName,
    /// The file, or another store that others can follow (kv:run), for generator, start-write, append-multi and refresh; a
    /// temporary file if it is not said
    file: Option<Location>,
    #[command(flatten)]
    force: ForceArgs,
    /// Processes that read
    #[arg(long, default_value_t = 2, value_parser = at_least::<0, usize>)]
    readers: usize,
    /// How long it goes on, each scenario if it is all of them
    #[arg(long, default_value_t = 5.0, value_parser = seconds)]
    seconds: f64,
    /// The role of this process in a run that another one has started
    #[arg(long, hide = true, value_enum)]
    role: Option<WorkerRole>,
}

/// A scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ScenarioName {
    /// Many datasets on several levels, appended to at random (generator, writer, reader)
    Generator,
    /// Elements here and there of large datasets (sparse writer and reader)
    Sparse,
    /// Extents that go up and down (add and remove)
    AddRemove,
    /// An existing file is opened for writing, and only then others may follow (start write)
    StartWrite,
    /// A whole plane of chunks at a time (append chunk)
    AppendChunk,
    /// Several datasets flushed together (append to several datasets)
    AppendMulti,
    /// A virtual dataset whose sources are written live, in separate files
    Virtual,
    /// Attributes of groups, datasets and named types (flush and refresh)
    Refresh,
    /// One after the other; of a store that is no native file, those in one store
    All,
}

impl ScenarioName {
    const EACH: [ScenarioName; 8] = [
        ScenarioName::Generator,
        ScenarioName::Sparse,
        ScenarioName::AddRemove,
        ScenarioName::StartWrite,
        ScenarioName::AppendChunk,
        ScenarioName::AppendMulti,
        ScenarioName::Virtual,
        ScenarioName::Refresh,
    ];

    /// The script of the scenario; `None` if it consists of cells of the matrix.
    fn scene(self) -> Option<Box<dyn ScenarioScript>> {
        Some(match self {
            ScenarioName::Generator => Box::new(scripts::NestedDatasets),
            ScenarioName::StartWrite => Box::new(scripts::StartWrite),
            ScenarioName::AppendMulti => Box::new(scripts::SeveralDatasets),
            ScenarioName::Virtual => Box::new(scripts::VirtualDataset),
            ScenarioName::Refresh => Box::new(scripts::ChangingAttributes),
            ScenarioName::Sparse | ScenarioName::AddRemove | ScenarioName::AppendChunk | ScenarioName::All => {
                return None;
            }
        })
    }

    /// Whether it is played in one store of any kind.
    fn is_portable(self) -> bool {
        self.scene().is_some() && self != ScenarioName::Virtual
    }

    fn work(self) -> cell::ChangeKind {
        match self {
            ScenarioName::AddRemove => cell::ChangeKind::Shrink,
            ScenarioName::AppendChunk => cell::ChangeKind::AppendRows,
            _ => cell::ChangeKind::Sparse,
        }
    }
}

impl Scenario {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`h5live_cli::error::Error`] says.
    pub fn run(self) -> Result<CommandOutcome> {
        if let (Some(role), Some(scene), Some(location)) = (self.role, self.name.scene(), &self.file) {
            return match role {
                WorkerRole::Writer => write(&*scene, location),
                WorkerRole::Reader => read(&*scene, location),
            }
            .map(|()| CommandOutcome::Clean);
        }
        let scratch = if self.file.is_none() { Some(ScratchFolder::new("scenario", false)?) } else { None };
        let temporary = scratch.as_ref().map(|scratch| scratch.path().join("scenario.h5").into());
        let Some(location) = self.file.clone().or(temporary) else { return Ok(CommandOutcome::Clean) };
        let native = open::new_native_file_path(&location)?;
        let names = match self.name {
            ScenarioName::All => &ScenarioName::EACH[..],
            _ => &[self.name],
        };
        if let Some(path) = &native {
            h5live_output::claim_existing_file(path, self.force.replaces_file)?;
        }
        let mut clean = true;
        for name in names.iter().filter(|name| native.is_some() || self.name != ScenarioName::All || name.is_portable())
        {
            clean &= match name.scene() {
                Some(scene) => self.play(*name, &*scene, &location)?,
                None => {
                    self.play_cells(*name, &location::require_new_native_file_path(&location, &cell::name(*name))?)?
                }
            };
        }
        if let Some(scratch) = scratch.filter(|_| !clean) {
            eprintln!("h5live: {}: kept, for there are violations", scratch.keep().display());
        }
        Ok(if clean { CommandOutcome::Clean } else { CommandOutcome::Findings })
    }

    /// Plays a scenario; whether nothing was seen that must not be.
    fn play(&self, name: ScenarioName, scene: &dyn ScenarioScript, location: &Location) -> Result<bool> {
        // What an earlier scenario has left at the same place is replaced.
        let force = ForceArgs {
            replaces_file: self.force.replaces_file || self.file.is_none() || self.name == ScenarioName::All,
        };
        location::create_live_store(location, force, |file| scene.make(file, location))?;
        let word = cell::name(name);
        let mut troupe = WriterAndReaders::new(location, &["scenario", "--role=writer", &word]);
        if troupe.start_writer_await_flush().map_err(Error::Process)? {
            for _ in 0..self.readers {
                troupe.start_reader(&["scenario", "--role=reader", &word]).map_err(Error::Process)?;
            }
        }
        let interrupted = register_interrupt_flag();
        let until = Instant::now() + Duration::from_secs_f64(self.seconds);
        while Instant::now() < until && !interrupted.load(Ordering::Acquire) {
            troupe.collect_events_for(Duration::from_millis(20).min(until.saturating_duration_since(Instant::now())));
            if troupe.writer_is_gone() {
                troupe.record_violation(StressInvariant::Progress, "the writer has ended too early");
                break;
            }
        }
        troupe.end_all_and_check(row_counts_of_last_flush).map_err(Error::Process)?;
        let looks: u64 =
            troupe.reader_logs.iter().filter_map(|story| story.work).map(|work| work.refreshes_or_flushes).sum();
        let mut out = StdoutWriter::stdout();
        let (steps, violations) =
            (troupe.last_flushed_row_counts().first().copied().unwrap_or(0), troupe.violations.len());
        out.line(format_args!(
            "{word:<14} {:>8}, {:>8}, {}",
            counted(steps, "step"),
            counted(looks, "look"),
            counted(violations, "violation")
        ))?;
        for violation in troupe.violations.iter().take(5) {
            out.line(format_args!("    {}: {}", violation.invariant.code(), violation.detail))?;
        }
        out.flush()?;
        Ok(violations == 0)
    }

    /// Plays a scenario that is made of cells of the matrix.
    fn play_cells(&self, name: ScenarioName, path: &Path) -> Result<bool> {
        let indexes = [cell::IndexChoice::ExtensibleArray, cell::IndexChoice::FixedArray, cell::IndexChoice::Btree2];
        let choice = matrix::MatrixArgs::of(&indexes, name.work(), cell::FilterChoice::None, cell::ElementKind::Fixed);
        let length = Duration::from_secs_f64(self.seconds / indexes.len() as f64);
        let terms = matrix::terms::MatrixTerms { readers: self.readers, length, seed: 1, rate: None, stall: None };
        let rows = choice.coordinate(path, &terms, &register_interrupt_flag(), |_, _| Ok(()))?;
        let mut out = StdoutWriter::stdout();
        let (mut elements, mut looks, mut violations) = (0, 0, Vec::new());
        for row in &rows {
            if let matrix::CellOutcome::Tested { written, read, violations: found, .. } = &row.outcome {
                elements += written.refreshes_or_flushes;
                looks += read.refreshes_or_flushes;
                violations.extend(found);
            }
        }
        let word = cell::name(name);
        out.line(format_args!(
            "{word:<14} {:>8}, {:>8}, {}",
            counted(elements, "step"),
            counted(looks, "look"),
            counted(violations.len(), "violation")
        ))?;
        for violation in violations.iter().take(5) {
            out.line(format_args!("    {}: {}", violation.invariant.code(), violation.detail))?;
        }
        out.flush()?;
        Ok(violations.is_empty())
    }
}

fn write(scene: &dyn ScenarioScript, location: &Location) -> Result<()> {
    let stop = stop_flag_on_stdin_eof();
    let files = scene.begin(location)?;
    let mut out = StdoutWriter::stdout();
    for number in 0.. {
        let at = TimedExtents::now(vec![number + 1]);
        scene.step(&files, number)?;
        out.line(WorkerMessage::Flushed(at))?;
        out.flush()?;
        if stop.load(Ordering::Acquire) {
            break;
        }
        thread::sleep(PAUSE);
    }
    Ok(files.iter().try_for_each(h5live::File::close)?)
}

fn read(scene: &dyn ScenarioScript, location: &Location) -> Result<()> {
    let stop = stop_flag_on_stdin_eof();
    // Of a store that is seen as of one moment, and of one whose objects are kept as they were read until they are refreshed.
    let refreshes_all = open::new_store_capabilities(location)?.view != ConsistencyScope::Object;
    let mut out = StdoutWriter::stdout();
    let (mut known, mut work, mut violations, mut ended) = (0, WorkCounts::default(), 0, false);
    while !ended && violations < MAX_VIOLATIONS {
        let reopen = Instant::now() + Duration::from_secs(1);
        work.opens += 1;
        let mut session = || -> Result<Option<Violation>> {
            let file = scripts::follow(location)?;
            while Instant::now() < reopen {
                // In this order: what was written before the end is still seen.
                let last = stop.load(Ordering::Acquire);
                work.refreshes_or_flushes += 1;
                if refreshes_all {
                    file.refresh()?;
                }
                let detail = match scene.look(&file, work.refreshes_or_flushes)? {
                    Err(detail) => Some((StressInvariant::WholeAppends, detail)),
                    Ok(steps) if steps < known => {
                        Some((StressInvariant::MonotonicReads, format!("{} after {known}", counted(steps, "step"))))
                    }
                    Ok(steps) => {
                        known = steps;
                        None
                    }
                };
                if let Some((invariant, detail)) = detail {
                    return Ok(Some(Violation { invariant, detail }));
                }
                if last {
                    ended = true;
                    return Ok(None);
                }
                thread::sleep(PAUSE);
            }
            Ok(None)
        };
        let found = session();
        let violation = found.unwrap_or_else(|error| {
            Some(Violation { invariant: StressInvariant::NoDanglingAddress, detail: error_with_causes(&error) })
        });
        if let Some(violation) = violation {
            violations += 1;
            ended |= stop.load(Ordering::Acquire);
            out.line(WorkerMessage::Violation(violation))?;
        }
        out.flush()?;
    }
    out.line(WorkerMessage::Seen(TimedExtents::now(vec![known])))?;
    out.line(WorkerMessage::Done(work))?;
    out.flush()
}
