//! The `h5live` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    h5live_cli::run()
}
