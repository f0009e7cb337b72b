//! The `h5live` command.

use std::process::ExitCode;

use h5live::model;

mod args;
mod check;
mod copy;
mod demo;
mod diff;
mod dump;
mod error;
mod live;
mod ls;
mod manifest;
mod open;
mod output;
mod progress;
mod record;
mod stress;
mod value;
mod watch;

fn main() -> ExitCode {
    args::run()
}
