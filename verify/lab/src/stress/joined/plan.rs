//! What each of several writers of one log does, and what a reader must find.

use std::path::Path;

use h5live::model::Url;
use h5live::{Dataset, File, Location, Selection, UNLIMITED};

use crate::stress::rule::mix;
use h5live_cli::error::Result;

/// Rows of the grid, of which each writer has a column.
const CELLS: u64 = 40;
/// Elements that all writers write with each flush.
const SHARED: u64 = 24;
/// Cells that a step writes.
const CELLS_OF_STEP: u64 = 3;
/// The most rows that a step appends to the dataset of all writers.
const MAX_ROWS_OF_STEP: u64 = 5;
/// One in this many steps makes a dataset.
const STEPS_OF_DATASET: u64 = 5;

/// Which writers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Writers.
    pub writers: u64,
    /// The seed of words and positions.
    pub seed: u64,
}

/// What a file has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The steps of each writer.
    pub steps: Vec<u64>,
    /// The writer whose batch counts last, and its step; `None` if nobody has written.
    pub last: Option<(u64, u64)>,
    /// The dataset to which all writers append rows.
    pub rows: Vec<u64>,
}

/// The location of the log in a file, for a writer that joins or for others.
pub fn location(path: &Path, joins: bool) -> Location {
    let text = path.to_string_lossy();
    match joins {
        true => {
            Location::from(format!("{}?join=yes&min_log_size=16KiB&max_log_size=256KiB", Url::literal("log", &text)))
        }
        false => Url::literal("log", &text).into(),
    }
}

/// A dataset as it is now.
fn fresh(file: &File, name: &str) -> h5live::Result<Dataset> {
    let data = file.dataset(name)?;
    data.refresh()?;
    Ok(data)
}

fn words_of(writer: u64) -> String {
    format!("words{writer}")
}

impl Plan {
    /// Makes the datasets.
    ///
    /// # Errors
    /// As [`h5live_cli::error::Error`] says.
    pub fn create(&self, path: &Path) -> Result<()> {
        let file = File::options().create().open(location(path, true))?;
        file.new_dataset::<u64>().shape(&[CELLS, self.writers]).create("grid")?;
        file.new_dataset::<u64>().shape(&[SHARED]).create("shared")?;
        file.new_dataset::<u64>().unlimited_rows(&[]).create("rows")?;
        for writer in 0..self.writers {
            file.new_dataset::<String>().shape(&[0]).max_shape(&[UNLIMITED]).create(&words_of(writer))?;
        }
        file.create_group("made")?;
        Ok(file.close()?)
    }

    fn word(&self, writer: u64, step: u64) -> String {
        let random = mix(self.seed ^ mix(step * self.writers + writer));
        let letter = char::from(b'a' + (random % 26) as u8);
        letter.to_string().repeat(1 + (random >> 8) as usize % 600)
    }

    fn cell(&self, writer: u64, step: u64, number: u64) -> u64 {
        mix(self.seed ^ mix(step * CELLS_OF_STEP + number) ^ writer) % CELLS
    }

    /// The value that all shared elements have after a step.
    fn mark(&self, writer: u64, step: u64) -> u64 {
        step * self.writers + writer + 1
    }

    /// The rows that a step appends to the dataset of all writers.
    fn rows(&self, writer: u64, step: u64) -> Vec<u64> {
        let mark = self.mark(writer, step);
        vec![mark; 1 + (mix(self.seed ^ mark) % MAX_ROWS_OF_STEP) as usize]
    }

    fn made(&self, writer: u64, step: u64) -> String {
        format!("made/{writer}-{step}")
    }

    /// Makes a step of a writer; nothing is flushed.
    ///
    /// # Errors
    /// As [`h5live_cli::error::Error`] says.
    pub fn apply_step(&self, file: &File, writer: u64, step: u64) -> Result<()> {
        let (grid, shared) = (file.dataset("grid")?, file.dataset("shared")?);
        for number in 0..CELLS_OF_STEP {
            let at = [self.cell(writer, step, number), writer];
            grid.write_slice(Selection::block(&at, &[1, 1]), &[step + 1])?;
        }
        let mark = self.mark(writer, step);
        // In pieces, each an entry of its own.
        let cut = 1 + mix(mark) % (SHARED - 1);
        shared.write_slice(Selection::block(&[cut], &[SHARED - cut]), &vec![mark; (SHARED - cut) as usize])?;
        shared.write_slice(Selection::block(&[0], &[cut]), &vec![mark; cut as usize])?;
        if step.is_multiple_of(STEPS_OF_DATASET) && !file.group("made")?.contains(&format!("{writer}-{step}"))? {
            file.new_dataset::<u64>().shape(&[1]).create(&self.made(writer, step))?;
        }
        if step.is_multiple_of(STEPS_OF_DATASET) {
            file.dataset(&self.made(writer, step))?.write(&[mark])?;
        }
        file.dataset("rows")?.append(&self.rows(writer, step))?;
        file.dataset(&words_of(writer))?.append(&[self.word(writer, step)])?;
        Ok(())
    }

    /// Reads all of a file, and says what is wrong. Writers may be at work: each dataset is read as it is at that moment,
    /// and what is read later is as new as what was read before, or newer.
    ///
    /// # Errors
    /// The fault.
    pub fn found(&self, file: &File) -> std::result::Result<Found, String> {
        let text = |what: &str, error: h5live::Error| format!("{what}: {error:#}");
        let read = |name: &str| -> std::result::Result<Vec<u64>, String> {
            fresh(file, name).and_then(|data| data.read()).map_err(|error| text(name, error))
        };
        let mut found = Found::default();
        for writer in 0..self.writers {
            let name = words_of(writer);
            let words: Vec<String> =
                fresh(file, &name).and_then(|data| data.read()).map_err(|error| text(&name, error))?;
            if let Some(step) = (0..words.len()).find(|step| words[*step] != self.word(writer, *step as u64)) {
                return Err(format!("{name}[{step}] is {:?}", words[step]));
            }
            found.steps.push(words.len() as u64);
        }
        self.check_grid(&read("grid")?, &found.steps)?;
        let shared = read("shared")?;
        let mark = shared.first().copied().unwrap_or(0);
        if shared.iter().any(|value| *value != mark) {
            return Err(format!("a batch is seen in part: shared is {shared:?}"));
        }
        found.last = mark.checked_sub(1).map(|mark| (mark % self.writers, mark / self.writers));
        match found.last {
            Some((writer, step)) if found.steps[writer as usize] > step + 1 => {
                let steps = found.steps[writer as usize];
                return Err(format!("shared has step {step} of writer {writer}, which has made {steps}"));
            }
            None if found.steps.iter().any(|steps| *steps > 0) => return Err("shared has nothing".to_owned()),
            _ => {}
        }
        found.rows = read("rows")?;
        self.check_rows(&found.rows, &found.steps)?;
        self.check_made(file, &found.steps)?;
        Ok(found)
    }

    /// The rows of each step are there once, together, and in the order of its writer's steps; nothing is between them.
    fn check_rows(&self, rows: &[u64], steps: &[u64]) -> std::result::Result<(), String> {
        let (mut made, mut at) = (vec![0; steps.len()], 0);
        while let Some(mark) = rows.get(at) {
            let Some((writer, step)) = mark.checked_sub(1).map(|mark| (mark % self.writers, mark / self.writers))
            else {
                return Err(format!("rows[{at}] is of no writer, before {} others", rows.len() - at - 1));
            };
            let wanted = self.rows(writer, step);
            let next = made[writer as usize];
            if step != next || !rows[at..].starts_with(&wanted) {
                let found = &rows[at..rows.len().min(at + wanted.len())];
                return Err(format!("rows[{at}..] are {found:?}, where step {next} of writer {writer} comes next"));
            }
            made[writer as usize] += 1;
            at += wanted.len();
        }
        match made.iter().zip(steps).all(|(made, steps)| made >= steps) {
            true => Ok(()),
            false => Err(format!("rows has {made:?} steps of the {steps:?} that were made")),
        }
    }

    /// Each column is as a step of its writer has left it, none before those of `steps`.
    fn check_grid(&self, grid: &[u64], steps: &[u64]) -> std::result::Result<(), String> {
        for (writer, steps) in (0..).zip(steps) {
            let column: Vec<u64> = grid.iter().skip(writer as usize).step_by(self.writers as usize).copied().collect();
            let made = column.iter().copied().max().unwrap_or(0);
            let mut wanted = vec![0; column.len()];
            for (step, number) in (0..made).flat_map(|step| (0..CELLS_OF_STEP).map(move |number| (step, number))) {
                wanted[self.cell(writer, step, number) as usize] = step + 1;
            }
            if made < *steps {
                return Err(format!("the grid has {made} steps of writer {writer}, which has made {steps}"));
            }
            if let Some(at) = (0..column.len()).find(|at| column[*at] != wanted[*at]) {
                let (found, wanted) = (column[at], wanted[at]);
                return Err(format!("grid[{at}, {writer}] is {found} and not {wanted} after {made} steps"));
            }
        }
        Ok(())
    }

    /// The datasets that steps have made: of those that are flushed all are there, with their elements.
    fn check_made(&self, file: &File, steps: &[u64]) -> std::result::Result<(), String> {
        for (writer, steps) in (0..).zip(steps) {
            let flushed = (0..*steps).filter(|step| step.is_multiple_of(STEPS_OF_DATASET));
            // The old ones were looked at before.
            for step in flushed.rev().take(20) {
                let name = self.made(writer, step);
                let read = || fresh(file, &name).and_then(|data| data.read::<u64>());
                // Objects are there before the batches that came after them: a refresh finds them.
                let again = |_| file.group("made").and_then(|made| made.refresh()).and_then(|()| read());
                let values = read().or_else(again).map_err(|error| format!("{name}: {error:#}"))?;
                if values != [self.mark(writer, step)] {
                    return Err(format!("{name} is {values:?}"));
                }
            }
        }
        Ok(())
    }
}

/// Opens a log to be followed.
pub fn follow(path: &Path) -> Result<File> {
    Ok(File::options().swmr_read().open(location(path, false))?)
}
