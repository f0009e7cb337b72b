//! Stands in for one side of libhdf5's own SWMR programs: `swmr_writer`, `swmr_reader`, `swmr_remove_writer`,
//! `swmr_remove_reader`, `use_append_chunk` and `use_append_mchunks`.
//!
//! The first four have datasets of one row, which grows; each record begins with its own number (8 bytes). The last two
//! have a dataset of planes, in which each element is the number of its plane (2 bytes).

use std::collections::HashMap;
use std::io::Read;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use h5live::{Dataset, File, Object, Selection, WalkItem};

use h5live_cli::{CommandOutcome, Result, StdoutWriter, error_with_causes};
use h5live_lab::mix;

/// Records at the end of each dataset that are read each time.
const TAIL: u64 = 40;
/// Records, or planes, after which the writer flushes.
const FLUSH: u64 = 200;

/// The role of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Role {
    /// Reads what a writer publishes, until standard input ends.
    Follow,
    /// The same. A dataset may become smaller, and elements may be gone when they are read.
    FollowRemoval,
    /// Appends.
    Write,
    /// Makes datasets smaller.
    Remove,
}

/// Does what libhdf5's own SWMR programs do
#[derive(Debug, clap::Args)]
pub struct Swmr {
    /// The file
    file: PathBuf,
    #[arg(long, value_enum)]
    role: Role,
    /// The file has planes, not records
    #[arg(long)]
    planes: bool,
    /// The number of records, or planes, that are appended or removed
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// The seed of the choice of datasets
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The elements that were read.
#[derive(Debug, Default)]
struct Seen {
    reads: u64,
    elements: u64,
    errors: u64,
    faults: Vec<String>,
}

impl Swmr {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`h5live_cli::Error`] says.
    pub fn run(self) -> Result<CommandOutcome> {
        match self.role {
            Role::Write => self.write().map(|()| CommandOutcome::Clean),
            Role::Remove => self.remove().map(|()| CommandOutcome::Clean),
            Role::Follow | Role::FollowRemoval => self.follow(),
        }
    }

    /// The dimension along which datasets grow.
    fn axis(&self) -> usize {
        usize::from(!self.planes)
    }

    fn datasets(&self, file: &File) -> Vec<Dataset> {
        let visits = file.walk().filter_map(|visit| match visit {
            Ok(WalkItem::Object(Object::Dataset(dataset))) => Some(dataset),
            _ => None,
        });
        visits
            .filter(|dataset| dataset.shape().is_ok_and(|shape| shape.len() == 2 + usize::from(self.planes)))
            .collect()
    }

    fn follow(&self) -> Result<CommandOutcome> {
        let file = File::options().swmr_read().open(&self.file)?;
        let datasets = self.datasets(&file);
        let end = thread::spawn(|| std::io::stdin().read_to_end(&mut Vec::new()));
        let mut seen = Seen::default();
        let mut known = HashMap::new();
        let mut over = false;
        while !over {
            over = end.is_finished();
            for dataset in &datasets {
                if let Err(error) = self.look(dataset, &mut known, over, &mut seen) {
                    seen.errors += 1;
                    seen.faults.push(error_with_causes(&error));
                }
            }
        }
        let mut out = StdoutWriter::stdout();
        let lengths: u64 = known.values().sum();
        out.line(serde_json::json!({
            "datasets": datasets.len(), "length": lengths, "reads": seen.reads, "elements": seen.elements,
            "errors": seen.errors, "faults": seen.faults.iter().take(5).collect::<Vec<_>>(), "wrong": seen.faults.len(),
        }))?;
        out.flush()?;
        Ok(if seen.faults.is_empty() { CommandOutcome::Clean } else { CommandOutcome::Findings })
    }

    /// Reads the newest records of a dataset if there are new ones; all of them in the end.
    fn look(
        &self,
        dataset: &Dataset,
        known: &mut HashMap<String, u64>,
        all: bool,
        seen: &mut Seen,
    ) -> h5live::Result<()> {
        dataset.refresh()?;
        let shape = dataset.shape()?;
        let len = shape.get(self.axis()).copied().unwrap_or(0);
        let before = known.insert(dataset.path().to_owned(), len).unwrap_or(0);
        if self.role == Role::Follow && len < before {
            seen.faults.push(format!("{}: {before} became {len}", dataset.path()));
        }
        if len == 0 || (len == before && !all) {
            return Ok(());
        }
        let first = if all { 0 } else { len.saturating_sub(TAIL) };
        let (mut start, mut count) = (vec![0; shape.len()], shape.clone());
        start[self.axis()] = first;
        count[self.axis()] = len - first;
        let bytes = dataset.read_raw(Selection::block(&start, &count))?;
        seen.reads += 1;
        seen.elements += len - first;
        let size = bytes.len() / (len - first).max(1) as usize;
        for (number, element) in (first..).zip(bytes.chunks_exact(size.max(1))) {
            if !self.is_right(number, element) {
                let begin: Vec<_> = element.iter().take(8).collect();
                seen.faults.push(format!("{}: {number} of {len} begins with {begin:?}", dataset.path()));
                return Ok(());
            }
        }
        Ok(())
    }

    fn is_right(&self, number: u64, element: &[u8]) -> bool {
        if self.planes {
            return element.chunks_exact(2).all(|value| value == (number as u16).to_le_bytes());
        }
        let found = element.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
        // What was removed after the extent was read is not there any more: libhdf5's reader takes 0 and the fill value
        // then.
        found == Some(number) || self.role == Role::FollowRemoval && matches!(found, Some(0 | u64::MAX))
    }

    fn write(&self) -> Result<()> {
        let file = File::options().swmr_write().open(&self.file)?;
        let datasets = self.datasets(&file);
        for number in 0..self.count {
            let Some(dataset) = datasets.get(mix(self.seed ^ mix(number)) as usize % datasets.len().max(1)) else {
                break;
            };
            let mut shape = dataset.shape()?;
            let (len, size) = (shape.get(self.axis()).copied().unwrap_or(0), dataset.datatype()?.size() as usize);
            let elements = if self.planes { shape.iter().skip(1).product::<u64>() as usize } else { 1 };
            let mut bytes = vec![0; elements * size];
            if self.planes {
                bytes.chunks_exact_mut(2).for_each(|value| value.copy_from_slice(&(len as u16).to_le_bytes()));
            } else if let Some(begin) = bytes.first_chunk_mut::<8>() {
                *begin = len.to_le_bytes();
            }
            shape[self.axis()] = len + 1;
            dataset.resize(&shape)?;
            let (mut start, mut count) = (vec![0; shape.len()], shape);
            start[self.axis()] = len;
            count[self.axis()] = 1;
            dataset.write_raw(Selection::block(&start, &count), &bytes)?;
            if number % FLUSH == 0 || self.planes {
                file.flush()?;
                thread::sleep(Duration::from_micros(200));
            }
        }
        Ok(file.close()?)
    }

    fn remove(&self) -> Result<()> {
        let file = File::options().swmr_write().open(&self.file)?;
        let datasets = self.datasets(&file);
        for number in 0..self.count {
            let random = mix(self.seed ^ mix(number));
            let Some(dataset) = datasets.get(random as usize % datasets.len().max(1)) else { break };
            let mut shape = dataset.shape()?;
            shape[self.axis()] = shape[self.axis()].saturating_sub((random >> 32) % 10);
            dataset.resize(&shape)?;
            if number % 20 == 0 {
                file.flush()?;
                thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(file.close()?)
    }
}
