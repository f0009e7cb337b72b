//! The command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::Outcome;
use crate::{demo, dump, ls, manifest, record, stress, watch};

/// HDF5 files that stay readable while they are being written.
#[derive(Debug, Parser)]
#[command(name = "h5live", version, about, max_term_width = 100)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Dump(dump::Dump),
    Ls(ls::Ls),
    Manifest(manifest::Manifest),
    Record(record::Record),
    Watch(watch::Watch),
    Stress(stress::Stress),
    Demo(demo::Demo),
}

/// Runs what the command line says. Exit code 0: all is well; 1: violations or differences; 2: an error.
pub fn run() -> ExitCode {
    let result = match Args::parse().command {
        Command::Dump(command) => command.run(),
        Command::Ls(command) => command.run(),
        Command::Manifest(command) => command.run(),
        Command::Record(command) => command.run(),
        Command::Watch(command) => command.run(),
        Command::Stress(command) => command.run(),
        Command::Demo(command) => command.run(),
    };
    match result {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::from(1),
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("h5live: {error}");
            ExitCode::from(2)
        }
    }
}
