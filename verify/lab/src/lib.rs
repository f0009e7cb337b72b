//! The laboratory: runs in which processes write and read one file at once, and every value is checked. With words of
//! another command, its program is the `h5live` command, as what a run has left is looked at with it.

use std::process::ExitCode;

use clap::Parser;
use h5live_cli::{CommandOutcome, Result, open};

mod latency;
mod reader_stalls;
mod scenario;
mod stress;

pub use stress::rule::mix;

/// Lets processes write and read one file at once, and checks what they see. Any other command is one of `h5live`
#[derive(Debug, clap::Parser)]
#[command(name = "h5live-lab", version, max_term_width = 100)]
struct Lab {
    #[command(flatten)]
    open: open::OpenArgs,
    #[command(subcommand)]
    run: Run,
}

#[derive(Debug, clap::Subcommand)]
enum Run {
    Latency(latency::Latency),
    Scenario(scenario::Scenario),
    Stress(Box<stress::Stress>),
}

impl Run {
    fn run(self) -> Result<CommandOutcome> {
        match self {
            Run::Latency(run) => run.run(),
            Run::Scenario(run) => run.run(),
            Run::Stress(run) => run.run(),
        }
    }
}

/// Runs what the command line says. Exit code 0: all is well; 1: violations or differences; 2: an error.
pub fn run() -> ExitCode {
    let command = std::env::args_os().nth(1).unwrap_or_default();
    let is_run = |name: &str| command == name;
    match ["latency", "scenario", "stress", "help", "--help", "-h"].into_iter().any(is_run) || command.is_empty() {
        true => {
            let lab = Lab::parse();
            open::set_args_once(lab.open);
            h5live_cli::report_exit_code(lab.run.run())
        }
        false => h5live_cli::run(),
    }
}
