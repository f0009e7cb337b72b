//! The parts of `make attack` that run in separate processes: `h5live-attack attack PART`. With other words, it is the
//! `h5live-lab` program, with the same allocator.

mod allocator;
mod edits;
mod file_changes;
mod mutants;
mod mutator;
mod operations;
mod swmr;

use std::process::ExitCode;

use clap::Parser;
use h5live_cli::{CommandOutcome, Result};

/// Does one part of `make attack`
#[derive(Debug, clap::Parser)]
struct Attack {
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
    fn run(self) -> Result<CommandOutcome> {
        match self.part {
            Part::Cut(part) => part.run(),
            Part::Edits(part) => part.run(),
            Part::Mutants(part) => part.run(),
            Part::Swmr(part) => part.run(),
        }
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1).peekable();
    match words.peek() {
        Some(first) if first == "attack" => h5live_cli::report_exit_code(Attack::parse_from(words).run()),
        _ => h5live_lab::run(),
    }
}
