//! Files that are truncated, deleted and replaced under readers, followers and writers. Every read is right or an
//! error.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use h5live::{Dataset, File, UNLIMITED};
use serde_json::json;

use h5live_cli::{CommandOutcome, Result, StdoutWriter, error_with_causes};
use h5live_lab::mix;

/// Within this a follower must have learnt that its file is gone.
const NOTICE: Duration = Duration::from_secs(10);
/// Reads of a reader after the change.
const READS: u64 = 40;

/// Cuts files under readers and writers, and counts their mistakes
#[derive(Debug, clap::Args)]
pub struct ChangeFiles {
    /// A folder for the files
    folder: PathBuf,
    /// The seed from which everything follows
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The first case
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// The number of cases
    #[arg(long, default_value_t = 1)]
    count: u64,
}

/// The change of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Truncate,
    Delete,
    Replace,
}

/// The session that has the file open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Reader,
    Follower,
    Writer,
}

/// A case.
#[derive(Debug, Clone, Copy)]
struct Case {
    who: Who,
    change: Change,
    layout: u64,
    elements: u64,
    random: u64,
}

/// The results of the cases.
#[derive(Debug, Default)]
struct Counts {
    right: u64,
    errors: u64,
    wrong: Vec<String>,
}

fn value(salt: u64, index: u64) -> u64 {
    mix(salt ^ mix(index)) | 1 << 56 | 1
}

impl Case {
    fn new(seed: u64, number: u64) -> Self {
        let random = mix(seed ^ mix(number));
        Case {
            who: [Who::Reader, Who::Reader, Who::Follower, Who::Writer][(number % 4) as usize],
            change: [Change::Truncate, Change::Truncate, Change::Delete, Change::Replace][(random % 4) as usize],
            layout: (random >> 8) % 4,
            elements: 2000 + (random >> 16) % 60_000,
            random: mix(random),
        }
    }

    /// Makes a file whose values have a salt.
    fn make(&self, path: &Path, salt: u64) -> h5live::Result<File> {
        let file = File::create(path)?;
        let builder = file.new_dataset::<u64>().shape(&[self.elements]);
        let chunked =
            |chunk| file.new_dataset::<u64>().shape(&[self.elements]).max_shape(&[UNLIMITED]).chunk_shape(&[chunk]);
        let data = match self.layout {
            0 if self.who != Who::Writer && self.who != Who::Follower => builder,
            1 => chunked(1000).deflate(1),
            2 => chunked(4096),
            _ => chunked(64),
        };
        data.create("data")?.write(&(0..self.elements).map(|index| value(salt, index)).collect::<Vec<_>>())?;
        Ok(file)
    }

    /// Makes the change.
    fn change(&self, path: &Path) -> std::io::Result<()> {
        match self.change {
            Change::Truncate => {
                let file = fs::OpenOptions::new().write(true).open(path)?;
                let len = file.metadata()?.len();
                // A writer has announced more than it needs: the last third may be of no use to anybody.
                let end = if self.who == Who::Reader { len } else { len / 2 };
                file.set_len(self.random % end)
            }
            Change::Delete => fs::remove_file(path),
            Change::Replace => {
                let other = path.with_extension("other.h5");
                self.make(&other, self.random ^ 1).and_then(|file| file.close()).map_err(std::io::Error::other)?;
                fs::rename(other, path)
            }
        }
    }

    /// Reads parts of the dataset and compares them.
    fn read(&self, data: &Dataset, reads: u64, counts: &mut Counts) {
        for number in 0..reads {
            let random = mix(self.random ^ mix(number));
            let longest = [1, 30, 2000, self.elements][(random % 4) as usize];
            let first = (random >> 8) % self.elements;
            let end = (first + 1 + (random >> 32) % longest).min(self.elements);
            match data.read_slice::<u64>(first..end) {
                Err(_) => counts.errors += 1,
                Ok(values) if values.iter().copied().eq((first..end).map(|index| value(self.random, index))) => {
                    counts.right += 1;
                }
                Ok(values) => {
                    let at = (first..end).zip(&values).find(|(index, found)| **found != value(self.random, *index));
                    counts.wrong.push(format!("Ok with a wrong value in {first}..{end}: {at:?}"));
                }
            }
        }
    }

    fn run(&self, path: &Path, counts: &mut Counts) -> h5live::Result<()> {
        let file = self.make(path, self.random)?;
        match self.who {
            Who::Reader => {
                file.close()?;
                self.run_reader(path, counts)
            }
            Who::Follower => self.run_follower(path, file, counts),
            Who::Writer => self.run_writer(path, &file, counts),
        }
    }

    /// Changes the file, or says why it could not be changed.
    fn try_change(&self, path: &Path) {
        self.change(path).unwrap_or_else(|error| eprintln!("{}: {error}", path.display()));
    }

    fn run_reader(&self, path: &Path, counts: &mut Counts) -> h5live::Result<()> {
        let reader = File::options().use_mmap(!self.random.is_multiple_of(5)).open(path)?;
        let data = reader.dataset("data")?;
        self.read(&data, self.random % 100, counts);
        if self.random.is_multiple_of(2) {
            self.try_change(path);
            self.read(&data, READS, counts);
        } else {
            thread::scope(|scope| {
                scope.spawn(|| {
                    thread::sleep(Duration::from_micros(self.random >> 20 & 0xfff));
                    self.try_change(path);
                });
                self.read(&data, 3 * READS, counts);
            });
        }
        Ok(())
    }

    fn run_follower(&self, path: &Path, file: File, counts: &mut Counts) -> h5live::Result<()> {
        file.start_swmr()?;
        let reader = File::options().swmr_read().open(path)?;
        let data = reader.dataset("data")?;
        self.read(&data, self.random % 100, counts);
        let followed: Dataset = data.clone();
        let noticed = thread::scope(|scope| {
            let followed = scope.spawn(|| self.follow(&followed));
            thread::sleep(Duration::from_millis(self.random >> 20 & 0x3f));
            self.try_change(path);
            self.read(&data, READS, counts);
            followed.join()
        });
        match noticed {
            Ok(None) => counts.right += 1,
            Ok(Some(fault)) => counts.wrong.push(fault),
            Err(_) => counts.wrong.push("the follower has panicked".to_owned()),
        }
        // The writer is not asked here: its file may be gone.
        let _ = file.close();
        Ok(())
    }

    fn run_writer(&self, path: &Path, file: &File, counts: &mut Counts) -> h5live::Result<()> {
        if self.random.is_multiple_of(2) {
            file.start_swmr()?;
        }
        file.flush()?;
        self.try_change(path);
        let data = file.dataset("data")?;
        // How often a writer looks is bounded by time: 2 ms.
        let flushed = (0..3).find_map(|_| {
            thread::sleep(Duration::from_millis(3));
            data.append(&[1_u64]).and_then(|()| file.flush()).err()
        });
        match flushed.or_else(|| file.close().err()) {
            Some(_) => counts.errors += 1,
            None => counts.wrong.push("flush and close of the writer are Ok".to_owned()),
        }
        Ok(())
    }

    /// The mistake of a follower: a wrong value, or a wrong cause of its end.
    fn follow(&self, data: &Dataset) -> Option<String> {
        let mut next = 0;
        for batch in data.follow::<u64>().timeout(NOTICE) {
            let Ok(values) = batch else { return None };
            let end = next + values.len() as u64;
            if !values.iter().copied().eq((next..end).map(|index| value(self.random, index))) {
                return Some(format!("a follower gets wrong values in {next}..{end}"));
            }
            next = end;
        }
        Some(format!("a follower ends without a cause in {:?} after {next} of {} rows", self.change, self.elements))
    }
}

impl ChangeFiles {
    /// Runs the command.
    ///
    /// # Errors
    /// If files cannot be made.
    pub fn run(self) -> Result<CommandOutcome> {
        let mut out = StdoutWriter::stdout();
        let mut sum = Counts::default();
        for number in self.first..self.first + self.count {
            let case = Case::new(self.seed, number);
            let path = self.folder.join("cut.h5");
            let mut counts = Counts::default();
            if let Err(error) = case.run(&path, &mut counts) {
                counts.wrong.push(error_with_causes(&error));
            }
            // It is not there if it was deleted.
            let _ = fs::remove_file(&path);
            for wrong in &counts.wrong {
                let what = wrong.split(" in ").next();
                let kind = format!("{:?}, {:?}: {}", case.who, case.change, what.unwrap_or_default());
                out.line(json!({ "case": number, "of": format!("{case:?}"), "kind": kind, "wrong": wrong }))?;
            }
            sum.right += counts.right;
            sum.errors += counts.errors;
            sum.wrong.extend(counts.wrong);
            out.flush()?;
        }
        out.line(json!({ "right": sum.right, "errors": sum.errors, "wrong": sum.wrong.len() }))?;
        out.flush()?;
        Ok(if sum.wrong.is_empty() { CommandOutcome::Clean } else { CommandOutcome::Findings })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_not_the_files_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.h5");
        let case = Case { who: Who::Reader, change: Change::Delete, layout: 3, elements: 3000, random: 7 };
        case.make(&path, 8).unwrap().close().unwrap();
        let mut counts = Counts::default();
        case.read(&File::open(&path).unwrap().dataset("data").unwrap(), 5, &mut counts);
        assert_eq!((counts.right, counts.wrong.len()), (0, 5));
        case.make(&path, 7).unwrap().close().unwrap();
        case.read(&File::open(&path).unwrap().dataset("data").unwrap(), 5, &mut counts);
        assert_eq!((counts.right, counts.wrong.len()), (5, 5));
    }
}
