//! Mutants of one file, one after the other. A report has one line for each defect. The parent process sees it if this
//! process dies.

use std::fs::{self, File};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use serde_json::json;

use super::allocator::take_largest;
use super::mutator::Seed;
use super::operations::{OPERATIONS, Place};
use h5live_cli::{CommandOutcome, Error, Result};
use h5live_lab::mix;

/// Opens, reads, copies, checks and edits mutants of a file
#[derive(Debug, clap::Args)]
pub struct Mutants {
    /// The file
    file: PathBuf,
    /// The seed from which all mutants follow
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The first mutant
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// The number of mutants
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// Use the file itself instead of its mutants
    #[arg(long)]
    as_it_is: bool,
    /// Only these operations
    #[arg(long)]
    only: Vec<String>,
    /// Seconds after which an operation is reported as slow
    #[arg(long, default_value_t = 5.0)]
    limit: f64,
    /// A folder for the mutant and the files made from it
    #[arg(long)]
    folder: PathBuf,
    /// The report, to which lines are added
    #[arg(long)]
    report: PathBuf,
}

static PANIC: Mutex<String> = Mutex::new(String::new());

impl Mutants {
    /// Runs the command.
    ///
    /// # Errors
    /// If files cannot be read or written.
    pub fn run(self) -> Result<CommandOutcome> {
        std::panic::set_hook(Box::new(|panic| {
            if let Ok(mut last) = PANIC.lock() {
                *last = panic.to_string().replace('\n', " ");
            }
        }));
        let fault = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Io { path, source }
        };
        let bytes = fs::read(&self.file).map_err(fault(&self.file))?;
        let options = fs::OpenOptions::new().append(true).create(true).open(&self.report);
        let mut report = options.map_err(fault(&self.report))?;
        let seed = (!self.as_it_is).then(|| Seed::new(bytes.clone()));
        // Of the name, not of the folder: so that a mutant can be made again elsewhere.
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        let salt = name.bytes().fold(self.seed, |state, byte| mix(state ^ u64::from(byte)));
        for number in self.first..self.first + self.count {
            let mutant = seed.as_ref().map_or_else(|| bytes.clone(), |seed| seed.mutant(salt ^ mix(number)));
            let place = Place { file: self.folder.join("mutant.h5"), folder: self.folder.clone() };
            fs::write(&place.file, mutant).map_err(fault(&place.file))?;
            self.attack(&place, number, &mut report).map_err(fault(&self.report))?;
        }
        Ok(CommandOutcome::Clean)
    }

    fn attack(&self, place: &Place, number: u64, report: &mut File) -> std::io::Result<()> {
        for (name, operation) in OPERATIONS {
            if !self.only.is_empty() && !self.only.iter().any(|only| only == name) {
                continue;
            }
            writeln!(report, "{}", json!({ "begins": name, "mutant": number }))?;
            take_largest();
            let begin = Instant::now();
            let end = catch_unwind(AssertUnwindSafe(|| operation(place)));
            let seconds = begin.elapsed().as_secs_f64();
            let (largest, refused) = take_largest();
            let panic = end.is_err().then(|| PANIC.lock().map(|last| last.clone()).unwrap_or_default());
            let error = end.ok().and_then(Result::err);
            writeln!(
                report,
                "{}",
                json!({
                    "ends": name, "mutant": number, "seconds": seconds, "slow": seconds > self.limit,
                    "largest": largest, "refused": refused, "panic": panic, "error": error,
                })
            )?;
        }
        Ok(())
    }
}
