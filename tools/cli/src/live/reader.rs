//! A process that follows datasets of a live file and checks every row that it sees.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use h5live::{Dataset, File, Location};

use crate::counted::counted;
use crate::error::Result;
use crate::open;
use crate::output::StdoutWriter;
use crate::watch::{read_raw_rows_with_first, row_count};

use super::message::{StressInvariant, TimedExtents, Violation, WorkCounts, WorkerMessage};

/// A pause when there was nothing new.
const PAUSE: Duration = Duration::from_micros(200);
/// After this long the file is opened again, because a late reader must see the right state, too.
const REOPEN_INTERVAL: Duration = Duration::from_secs(1);
/// Rows that are read at a time.
const BLOCK_ROWS: u64 = 1024;
/// A reader stops after this many violations.
const MAX_VIOLATIONS: u32 = 100;

/// Checks rows: gets the number of the dataset, the first row, and the stored rows. Returns the fault.
pub type RowBlockCheck<'a> = &'a dyn Fn(usize, u64, &[u8]) -> Option<String>;

/// A reader of some datasets of a file.
pub struct LiveReader<'a> {
    location: Location,
    names: Vec<String>,
    check: RowBlockCheck<'a>,
    /// Rows of each dataset that were seen and right.
    known: Vec<u64>,
    work: WorkCounts,
    violations: u32,
    out: StdoutWriter,
}

impl<'a> LiveReader<'a> {
    /// A reader of the datasets `dataset_names` of the store at a location.
    pub fn new(location: &Location, dataset_names: &[&str], check: RowBlockCheck<'a>) -> Self {
        LiveReader {
            location: location.clone(),
            names: dataset_names.iter().map(|name| (*name).to_owned()).collect(),
            check,
            known: vec![0; dataset_names.len()],
            work: WorkCounts::default(),
            violations: 0,
            out: StdoutWriter::stdout(),
        }
    }

    /// Follows the file until `stop` is set, and looks at it once more after that.
    ///
    /// # Errors
    /// [`crate::error::Error::Stdout`]; faults of the file are reported as violations instead.
    pub fn run(mut self, stop: &AtomicBool) -> Result<()> {
        let mut ended = false;
        while !ended && self.violations < MAX_VIOLATIONS {
            match self.session(stop) {
                Ok(last) => ended = last,
                Err(LiveReadError::Output(error)) => return Err(error),
                Err(LiveReadError::File(error)) => {
                    self.violation(StressInvariant::NoDanglingAddress, error.to_string())?;
                    ended = stop.load(Ordering::Acquire);
                    thread::sleep(Duration::from_millis(10));
                }
            }
        }
        self.say(&WorkerMessage::Done(self.work))
    }

    /// Opens the file and follows it for a while; whether that was to the end.
    fn session(&mut self, stop: &AtomicBool) -> Result<bool, LiveReadError> {
        let file = open::for_following(&self.location).map_err(LiveReadError::File)?;
        self.work.opens += 1;
        let datasets = self.datasets(&file)?;
        let reopen = Instant::now() + REOPEN_INTERVAL;
        let mut first = true;
        while Instant::now() < reopen {
            // In this order: what was written before the end is still seen.
            let last = stop.load(Ordering::Acquire);
            let new = self.read_new(&datasets)?;
            if new || first {
                self.say(&WorkerMessage::Seen(TimedExtents::now(self.known.clone()))).map_err(LiveReadError::Output)?;
            }
            first = false;
            if last {
                return Ok(true);
            }
            if !new {
                // A reader that has seen the end of a writer must not be in the way of the next one.
                file.is_live().map_err(|error| LiveReadError::File(error.into()))?;
                self.reread_old(&datasets)?;
                thread::sleep(PAUSE);
            }
        }
        Ok(false)
    }

    fn datasets(&mut self, file: &File) -> Result<Vec<Dataset>, LiveReadError> {
        let open = |name: &String| file.dataset(name).map_err(|error| LiveReadError::File(error.into()));
        self.names.iter().map(open).collect()
    }

    /// Reads and checks new rows. Returns whether there were any.
    fn read_new(&mut self, datasets: &[Dataset]) -> Result<bool, LiveReadError> {
        let mut new = false;
        self.work.refreshes_or_flushes += 1;
        for (i, dataset) in datasets.iter().enumerate() {
            dataset.refresh().map_err(|error| LiveReadError::File(error.into()))?;
            let rows = row_count(dataset).map_err(LiveReadError::File)?;
            let known = self.known.get(i).copied().unwrap_or(0);
            if rows < known {
                let detail = format!("{}: {} after {known}", dataset.path(), counted(rows, "row"));
                self.violation(StressInvariant::MonotonicReads, detail).map_err(LiveReadError::Output)?;
            }
            for first in (known..rows).step_by(BLOCK_ROWS as usize) {
                let end = rows.min(first + BLOCK_ROWS);
                self.rows(dataset, i, first, end, StressInvariant::WholeAppends)?;
                self.work.new_rows += end - first;
                new = true;
            }
            if let Some(known) = self.known.get_mut(i) {
                *known = rows.max(*known);
            }
        }
        Ok(new)
    }

    /// Reads and checks a block that was right before.
    fn reread_old(&mut self, datasets: &[Dataset]) -> Result<(), LiveReadError> {
        // Spread over everything, and the same in every run.
        let turn = self.work.refreshes_or_flushes.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let i = (self.work.refreshes_or_flushes % datasets.len().max(1) as u64) as usize;
        let (Some(dataset), Some(known)) = (datasets.get(i), self.known.get(i).copied()) else {
            return Ok(());
        };
        if known > 0 {
            let first = (turn >> 32) % known;
            let end = known.min(first + 16);
            self.rows(dataset, i, first, end, StressInvariant::MonotonicReads)?;
            self.work.reread_rows += end - first;
        }
        Ok(())
    }

    fn rows(
        &mut self,
        dataset: &Dataset,
        i: usize,
        first: u64,
        end: u64,
        broken: StressInvariant,
    ) -> Result<(), LiveReadError> {
        let spec = dataset.spec().map_err(|error| LiveReadError::File(error.into()))?;
        let (_, stored) = read_raw_rows_with_first(dataset, &spec, first, end).map_err(LiveReadError::File)?;
        match (self.check)(i, first, &stored) {
            Some(detail) => {
                self.violation(broken, format!("{}: {detail}", dataset.path())).map_err(LiveReadError::Output)
            }
            None => Ok(()),
        }
    }

    fn violation(&mut self, invariant: StressInvariant, detail: String) -> Result<()> {
        self.violations += 1;
        self.say(&WorkerMessage::Violation(Violation { invariant, detail }))
    }

    fn say(&mut self, message: &WorkerMessage) -> Result<()> {
        self.out.line(message)?;
        self.out.flush()
    }
}

enum LiveReadError {
    File(crate::error::Error),
    Output(crate::error::Error),
}
