//! Every chunk index under every kind of change, with and without filters and heaps: what readers of h5live and of
//! libhdf5 see of it while it happens.

pub mod cell;
mod crashes;
mod faults;
mod link_names;
mod link_reader;
pub mod peer;
mod plan;
mod read_model;
mod reader;
mod table;
pub mod terms;
mod value;
mod writer;

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use h5live::File;

use crate::reader_stalls::ReaderStalls;
use h5live_cli::error::error_with_causes;
use h5live_cli::error::{Error, Result};
use h5live_cli::live::message::{StressInvariant, TimedExtents, WorkerMessage};
use h5live_cli::live::writer_and_readers::WriterAndReaders;
use h5live_cli::number_arg::at_least;
use h5live_cli::output::StdoutWriter;

use cell::{ChangeKind, ElementKind, FilterChoice, IndexChoice, MatrixCell};
pub use crashes::head as lives_head;
use peer::Peer;
use plan::{CellPlan, FileModel};
pub use table::{CellOutcome, MatrixRow, head, sum};
use terms::{MatrixTerms, arguments};

/// Which cells of the matrix are tried
#[derive(Debug, Clone, clap::Args)]
pub struct MatrixArgs {
    /// Try every chunk index under every kind of change, each for this many seconds, and print a table
    #[arg(long)]
    matrix: bool,
    /// Only cells with these indexes
    #[arg(long, value_enum)]
    index: Vec<IndexChoice>,
    /// Only cells with these kinds of change
    #[arg(long, value_enum)]
    work: Vec<ChangeKind>,
    /// Only cells with these filters
    #[arg(long, value_enum)]
    filter: Vec<FilterChoice>,
    /// Only cells with these types of elements
    #[arg(long = "type", value_enum)]
    kind: Vec<ElementKind>,
    /// Another program that reads each cell too (tests/python/matrix.py does it with h5py)
    #[arg(long, num_args = 2, value_names = ["PYTHON", "SCRIPT"])]
    peer: Vec<PathBuf>,
    /// The number of cells at a time, each with its own writer, readers and file
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = at_least::<1, NonZero<usize>>)]
    parallel: NonZero<usize>,
    /// With --kill or --io-faults: this many writers, spread over the cells
    #[arg(long, value_name = "NUMBER", value_parser = at_least::<0, u64>)]
    kills: Option<u64>,
    /// Let the storage of the writers fail (full, broken, short writes) or be slow, and see that nothing flushed is
    /// lost
    #[arg(long)]
    io_faults: bool,
    /// The first step of a writer
    #[arg(long, hide = true, default_value_t = 0, value_parser = at_least::<0, u64>)]
    step: u64,
    /// The fault of the writer's storage
    #[arg(long, hide = true, value_parser = faults::parse)]
    fault: Option<faults::StorageFault>,
}

impl MatrixArgs {
    /// The cells of these indexes.
    pub fn of(indexes: &[IndexChoice], work: ChangeKind, filter: FilterChoice, kind: ElementKind) -> MatrixArgs {
        MatrixArgs {
            matrix: true,
            index: indexes.to_vec(),
            work: vec![work],
            filter: vec![filter],
            kind: vec![kind],
            peer: Vec::new(),
            parallel: NonZero::<usize>::MIN,
            kills: None,
            io_faults: false,
            step: 0,
            fault: None,
        }
    }

    /// Whether the matrix is asked for.
    pub fn is_made(&self) -> bool {
        let cells = self.index.len() + self.work.len() + self.filter.len() + self.kind.len();
        self.matrix || cells > 0 || self.ends_badly()
    }

    /// Whether it is about writers that end badly.
    pub fn ends_badly(&self) -> bool {
        self.kills.is_some() || self.io_faults
    }

    /// How many writers are to end badly.
    pub fn kills(&self) -> u64 {
        self.kills.unwrap_or(100)
    }

    /// The first step of a writer.
    pub fn first_step(&self) -> u64 {
        self.step
    }

    /// Starts the other program, if there is one.
    ///
    /// # Errors
    /// [`Error::Process`].
    pub fn start_peer(&self) -> Result<Option<Peer>> {
        match &*self.peer {
            [program, script] => Peer::start(program, script).map(Some),
            _ => Ok(None),
        }
    }

    /// How many cells are tried at a time.
    pub fn at_once(&self) -> usize {
        self.parallel.get()
    }

    fn cells(&self) -> Vec<MatrixCell> {
        MatrixCell::all(&self.index, &self.work, &self.filter, &self.kind)
    }

    /// Does the part of a writer or a reader in the one cell that is chosen.
    ///
    /// # Errors
    /// As [`h5live_cli::error::Error`] says.
    pub fn run_worker(&self, writes: bool, path: &Path, terms: &MatrixTerms, stop: &AtomicBool) -> Result<()> {
        let Some(cell) = self.cells().first().copied() else { return Ok(()) };
        let plan = CellPlan::new(cell, terms.seed);
        match (writes, cell.kind) {
            (true, ElementKind::Fixed) => self.write::<u64>(path, &plan, terms, stop),
            (true, ElementKind::Vlen) => self.write::<String>(path, &plan, terms, stop),
            (false, ElementKind::Fixed) => reader::MatrixReader::new(path, &plan).run::<u64>(terms.reopen(), stop),
            (false, ElementKind::Vlen) => reader::MatrixReader::new(path, &plan).run::<String>(terms.reopen(), stop),
        }
    }

    fn write<T: value::RuleValue>(
        &self,
        path: &Path,
        plan: &CellPlan,
        terms: &MatrixTerms,
        stop: &AtomicBool,
    ) -> Result<()> {
        let rate = terms.rate(plan.cell);
        let Some(fault) = self.fault else {
            return writer::run::<T>(&File::options().swmr_write().open(path)?, plan, self.step, rate, stop);
        };
        let end = faults::open(path, fault).and_then(|file| writer::run::<T>(&file, plan, self.step, rate, stop));
        let Err(error) = end else { return Ok(()) };
        let mut out = StdoutWriter::stdout();
        out.line(WorkerMessage::WriterFailed(error_with_causes(&error)))?;
        out.flush()
    }

    /// Kills writers of all cells, or lets their storage fail. Calls `each` with the result of a cell, and with the
    /// file that its writers have left.
    ///
    /// # Errors
    /// If processes cannot be started, or as `each` has it.
    pub fn end_badly(
        &self,
        path: &Path,
        terms: &MatrixTerms,
        interrupted: &AtomicBool,
        each: impl FnMut(&crashes::CrashRow, &Path) -> Result<()>,
    ) -> Result<()> {
        let cells = self.cells().into_iter().filter(|cell| cell.impossible_reason().is_none());
        let cells: Vec<_> = cells.collect();
        let kills = self.kills();
        let before = |n: usize| (u128::from(kills) * n as u128 / cells.len() as u128) as u64;
        let shares = cells.iter().enumerate().map(|(n, cell)| (*cell, before(n + 1) - before(n)));
        let shares: Vec<_> = shares.filter(|(_, share)| *share > 0).collect();
        let begin = || {
            let mut peer = self.start_peer()?;
            Ok(move |(cell, share): (MatrixCell, u64), path: &Path| {
                crashes::CrashRunner { path, terms, faults: self.io_faults, peer: peer.as_mut() }.run(cell, share)
            })
        };
        self.run_parallel(&shares, |(cell, _)| *cell, path, interrupted, begin, each)
    }

    /// Tries the cells, and calls `each` with what came of each and the file that it has left.
    ///
    /// # Errors
    /// If processes cannot be started, or as `each` has it.
    pub fn coordinate(
        &self,
        path: &Path,
        terms: &MatrixTerms,
        interrupted: &AtomicBool,
        mut each: impl FnMut(&MatrixRow, &Path) -> Result<()>,
    ) -> Result<Vec<MatrixRow>> {
        let mut rows = Vec::new();
        let begin = || Ok(|cell: MatrixCell, path: &Path| self.row(cell, path, terms, interrupted));
        let keep = |row: &MatrixRow, path: &Path| {
            each(row, path)?;
            rows.push(row.clone());
            Ok(())
        };
        self.run_parallel(&self.cells(), |cell| *cell, path, interrupted, begin, keep)?;
        Ok(rows)
    }

    /// Runs each task, several at a time if wanted, each with its own file. Calls `each` with the result and the file.
    /// `begin` makes a worker for tasks that are done one after the other.
    fn run_parallel<T: Copy + Sync, R: Send, W: FnMut(T, &Path) -> Result<R> + Send>(
        &self,
        tasks: &[T],
        cell_of: impl Fn(&T) -> MatrixCell + Sync,
        path: &Path,
        interrupted: &AtomicBool,
        begin: impl Fn() -> Result<W>,
        mut each: impl FnMut(&R, &Path) -> Result<()>,
    ) -> Result<()> {
        let workers: Vec<W> = (0..self.at_once()).map(|_| begin()).collect::<Result<_>>()?;
        let next = AtomicUsize::new(0);
        let (sender, tried) = channel();
        thread::scope(|scope| {
            for mut work in workers {
                let (sender, next, cell_of) = (sender.clone(), &next, &cell_of);
                scope.spawn(move || {
                    while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed))
                        && !interrupted.load(Ordering::Acquire)
                    {
                        let path = if self.at_once() > 1 { path_of(path, cell_of(task)) } else { path.to_owned() };
                        let done = work(*task, &path);
                        let (seen, goes_on) = channel();
                        // Whoever does not listen any more has had enough, or has failed.
                        if sender.send((done, path, seen)).is_err() {
                            return;
                        }
                        let _: Result<(), _> = goes_on.recv();
                    }
                });
            }
            drop(sender);
            for (done, path, _seen) in tried {
                each(&done?, &path)?;
                if self.at_once() > 1 {
                    // It is not there if it was kept, or never made.
                    let _ = std::fs::remove_file(&path);
                }
            }
            Ok(())
        })
    }

    fn row(&self, cell: MatrixCell, path: &Path, terms: &MatrixTerms, interrupted: &AtomicBool) -> Result<MatrixRow> {
        let outcome = match cell.impossible_reason() {
            Some(why) => CellOutcome::Impossible(why),
            None => self.cell(cell, path, terms, interrupted)?,
        };
        Ok(MatrixRow { cell, outcome })
    }

    fn cell(
        &self,
        cell: MatrixCell,
        path: &Path,
        terms: &MatrixTerms,
        interrupted: &AtomicBool,
    ) -> Result<CellOutcome> {
        let plan = CellPlan::new(cell, terms.seed);
        match cell.kind {
            ElementKind::Fixed => writer::create::<u64>(path, &plan)?,
            ElementKind::Vlen => writer::create::<String>(path, &plan)?,
        }
        let arguments = |role| arguments(role, cell, terms, terms.rate(cell));
        let (writer, reader) = (arguments("--role=writer"), arguments("--role=reader"));
        let [writer, reader] = [&writer, &reader].map(|list| list.iter().map(String::as_str).collect::<Vec<_>>());
        let mut troupe = WriterAndReaders::new(&path.into(), &writer);
        if troupe.start_writer_await_flush().map_err(Error::Process)? {
            for _ in 0..terms.readers {
                troupe.start_reader(&reader).map_err(Error::Process)?;
            }
            if let Some(peer) = self.peer(&plan, path, terms) {
                troupe.start_peer_reader(peer).map_err(Error::Process)?;
            }
        }
        let until = Instant::now() + terms.length;
        let mut stalls = terms.stall.map(ReaderStalls::new);
        while Instant::now() < until && !interrupted.load(Ordering::Acquire) {
            troupe.collect_events_for(Duration::from_millis(20).min(until.saturating_duration_since(Instant::now())));
            stalls.iter_mut().for_each(|stalls| stalls.tick(&troupe));
            if troupe.writer_is_gone() {
                troupe.record_violation(StressInvariant::Progress, "the writer has ended too early");
                break;
            }
        }
        stalls.iter_mut().for_each(|stalls| stalls.end(&troupe));
        troupe.end_all_and_check(|flushes| vec![digest(&plan, flushes)]).map_err(Error::Process)?;
        h5live_cli::live::location::first_file_check_finding(path)
            .into_iter()
            .for_each(|fault| troupe.record_violation(StressInvariant::NoDanglingAddress, &fault));
        Ok(CellOutcome::tried(troupe, self.peer.is_empty()))
    }

    /// The other program, where it can follow.
    fn peer(&self, plan: &CellPlan, path: &Path, terms: &MatrixTerms) -> Option<Command> {
        let [program, script] = &*self.peer else { return None };
        if plan.cell.libhdf5_unsupported().is_some() {
            return None;
        }
        let mut command = Command::new(program);
        let reopen = terms.reopen().as_secs_f64().to_string();
        let stall = terms.stall.unwrap_or_default().as_secs_f64().to_string();
        command.arg(script).arg("follow").arg(path).arg(plan.json().to_string()).arg(reopen).arg(stall);
        Some(command)
    }
}

/// The file of a cell, beside the files of others.
pub fn path_of(path: &Path, cell: MatrixCell) -> PathBuf {
    path.with_extension(format!("{}.h5", cell.to_string().replace(' ', "-")))
}

/// A number that stands for the contents of a file after all flushes.
fn digest(plan: &CellPlan, flushes: &[TimedExtents]) -> u64 {
    let steps = flushes.last().and_then(|flush| flush.row_counts.first()).copied().unwrap_or(0);
    let mut model = FileModel::initial(plan);
    for step in 0..steps {
        plan.changes(step, &model.extents).iter().for_each(|change| model.apply(plan, change));
    }
    model.digest()
}
