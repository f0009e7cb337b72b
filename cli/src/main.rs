//! The `h5live` command.

#![allow(dead_code, unused_imports)]

use std::process::ExitCode;

use h5live_model as model;

mod args;
mod demo;
mod dump;
mod error;
mod manifest;
mod output;
mod record;
mod stress;
mod value;
mod watch;

fn main() -> ExitCode {
    args::run()
}
