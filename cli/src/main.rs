//! The `h5live` command.
//!
//! Everything but this file waits for the library's files: build with `--features files` once they are there.

use std::process::ExitCode;

#[cfg(feature = "files")]
use h5live_model as model;

#[cfg(feature = "files")]
mod args;
#[cfg(feature = "files")]
mod demo;
#[cfg(feature = "files")]
mod dump;
#[cfg(feature = "files")]
mod error;
#[cfg(feature = "files")]
mod live;
#[cfg(feature = "files")]
mod ls;
#[cfg(feature = "files")]
mod manifest;
#[cfg(feature = "files")]
mod open;
#[cfg(feature = "files")]
mod output;
#[cfg(feature = "files")]
mod progress;
#[cfg(feature = "files")]
mod record;
#[cfg(feature = "files")]
mod stress;
#[cfg(feature = "files")]
mod value;
#[cfg(feature = "files")]
mod watch;

#[cfg(feature = "files")]
fn main() -> ExitCode {
    args::run()
}

#[cfg(not(feature = "files"))]
fn main() -> ExitCode {
    eprintln!("h5live: built without files");
    ExitCode::from(2)
}
