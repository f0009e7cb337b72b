//! What the program of the laboratory does.

mod joined;
mod latency;
mod replace;
mod scenario;
mod stores;
mod stress;

use std::process::{Child, Command, Output};

use h5live_test_support::program;

fn lab() -> Command {
    Command::new(env!("CARGO_BIN_EXE_h5live-lab"))
}

fn run(arguments: &[&str]) -> Output {
    program::run_with(lab(), arguments, b"")
}

fn start(arguments: &[&str]) -> Child {
    program::start(lab(), arguments)
}
