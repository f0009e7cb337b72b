//! The `h5live` command.

use std::process::ExitCode;

use h5live::model;

mod args;
#[cfg(feature = "attack")]
mod attack;
mod check;
mod condition;
mod copy;
mod demo;
mod diff;
mod dump;
mod error;
mod from_json;
mod guard;
mod latency;
mod live;
mod ls;
mod manifest;
mod mv;
mod new;
mod open;
mod output;
mod place;
mod progress;
mod record;
mod repair;
mod rm;
mod scenario;
mod set;
mod space;
mod stress;
mod type_parse;
mod unfinished;
mod value;
mod watch;

fn main() -> ExitCode {
    args::run()
}
