//! `h5live attack`, with the feature `attack` only: the parts of `make attack` that run in separate processes.

mod allocator;
mod edits;
mod file_changes;
mod mutants;
mod mutator;
mod operations;
mod swmr;

use crate::error::{Outcome, Result};

/// Does one part of `make attack`
#[derive(Debug, clap::Args)]
pub struct Attack {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, clap::Subcommand)]
enum Part {
    Cut(file_changes::ChangeFiles),
    Edits(edits::Edits),
    Mutants(mutants::Mutants),
    Swmr(swmr::Swmr),
}

impl Attack {
    /// Runs the command.
    ///
    /// # Errors
    /// As [`crate::error::Error`] says.
    pub fn run(self) -> Result<Outcome> {
        match self.part {
            Part::Cut(part) => part.run(),
            Part::Edits(part) => part.run(),
            Part::Mutants(part) => part.run(),
            Part::Swmr(part) => part.run(),
        }
    }
}
