//! The `h5live-lab` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    h5live_lab::run()
}
