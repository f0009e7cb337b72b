//! What the `h5live` command does. The program itself, and that of `make attack`, only call it.

use h5live::model;
pub use h5live_text::counted;
use h5live_text::{checked_json, from_json, reference_json, references, times, type_parse, utc, value};

#[cfg(feature = "hsds")]
mod acl;
mod args;
mod check;
mod completions;
mod conversion_args;
mod copy;
mod demo;
mod diagnosis_text;
mod diff;
#[cfg(feature = "hsds")]
mod draft_domain;
mod dump;
pub mod error;
mod escaped_path;
mod examples;
mod file_space_args;
mod guard;
#[cfg(feature = "kv")]
mod kv;
mod leak_text;
mod list_stores;
pub mod live;
mod log;
mod ls;
mod man;
mod manifest;
mod map;
mod map_location;
mod map_put;
mod map_text;
mod missing_sources;
mod mv;
mod new;
mod new_output;
pub mod number_arg;
mod object_or_attribute;
pub mod open;
pub mod output;
pub mod progress;
mod record;
mod repair;
mod rm;
#[cfg(feature = "serve")]
mod serve;
mod set;
mod tar;
pub mod temp_output;
#[cfg(feature = "remote")]
mod upload;
pub mod wait;
pub mod watch;

pub use args::{report_exit_code, run, run_words};
pub use error::{CommandOutcome, Error, Result, error_with_causes};
pub use output::StdoutWriter;
