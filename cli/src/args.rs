//! The command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::{Outcome, Result, whole_text};
use crate::{
    check, copy, demo, diff, dump, guard, latency, list_stores, ls, manifest, mv, new, open, record, repair, rm,
    scenario, set, stress, wait, watch,
};

/// HDF5 files that stay readable while they are being written.
#[derive(Debug, Parser)]
#[command(name = "h5live", version, about, max_term_width = 100)]
struct Args {
    #[command(flatten)]
    open: open::OpenArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::CheckCommand),
    Copy(copy::CopyCommand),
    Diff(diff::Diff),
    Dump(dump::DumpCommand),
    Guard(guard::Guard),
    Latency(latency::Latency),
    Ls(ls::Ls),
    Manifest(manifest::Manifest),
    Mv(mv::Mv),
    New(new::New),
    Record(record::RecordCommand),
    Repair(repair::RepairCommand),
    Rm(rm::Rm),
    Scenario(scenario::Scenario),
    Set(set::Set),
    Stores(list_stores::ListStores),
    Watch(watch::WatchCommand),
    Stress(stress::Stress),
    Demo(demo::Demo),
    #[cfg(feature = "attack")]
    #[command(hide = true)]
    Attack(crate::attack::Attack),
}

impl Command {
    fn run(self) -> Result<Outcome> {
        match self {
            Command::Check(command) => command.run(),
            Command::Copy(command) => command.run(),
            Command::Diff(command) => command.run(),
            Command::Dump(command) => command.run(),
            Command::Guard(command) => command.run(),
            Command::Latency(command) => command.run(),
            Command::Ls(command) => command.run(),
            Command::Manifest(command) => command.run(),
            Command::Mv(command) => command.run(),
            Command::New(command) => command.run(),
            Command::Record(command) => command.run(),
            Command::Repair(command) => command.run(),
            Command::Rm(command) => command.run(),
            Command::Scenario(command) => command.run(),
            Command::Set(command) => command.run(),
            Command::Stores(command) => command.run(),
            Command::Watch(command) => command.run(),
            Command::Stress(command) => command.run(),
            Command::Demo(command) => command.run(),
            #[cfg(feature = "attack")]
            Command::Attack(command) => command.run(),
        }
    }
}

/// Runs what the command line says. Exit code 0: all is well; 1: violations or differences; 2: an error.
pub fn run() -> ExitCode {
    let args = Args::parse_from(wait::join_words(record::on_error::join_words(std::env::args_os())));
    open::set_args(args.open);
    match args.command.run() {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::from(1),
        Ok(Outcome::Status(code)) => ExitCode::from(code),
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("h5live: {}", whole_text(&error));
            ExitCode::from(2)
        }
    }
}

/// Runs a command in this process.
///
/// # Errors
/// What the program would print.
#[cfg(feature = "attack")]
pub fn run_words(words: &[&str]) -> std::result::Result<Outcome, String> {
    let words = std::iter::once("h5live").chain(words.iter().copied());
    let args = Args::try_parse_from(words).map_err(|error| error.to_string())?;
    args.command.run().map_err(|error| whole_text(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read")]
    struct Outer(#[source] std::num::ParseIntError);

    #[derive(Debug, thiserror::Error)]
    #[error("file.h5: {0}")]
    struct Shown(#[source] Outer);

    #[test]
    fn causes_are_shown_once() {
        let cause = "x".parse::<u8>().unwrap_err();
        let text = whole_text(&Shown(Outer(cause)));
        assert_eq!(text, "file.h5: cannot read: invalid digit found in string");
    }

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }
}
