//! What the `h5live` command does. The program itself, and that of `make attack`, only call it.

use h5live::model;

#[cfg(feature = "hsds")]
mod acl;
mod args;
mod block;
mod check;
mod checked_json;
mod completions;
mod copy;
mod counted;
mod demo;
mod diagnosis_text;
mod diff;
#[cfg(feature = "hsds")]
mod draft_domain;
mod dump;
mod error;
mod examples;
mod file_space_args;
mod from_json;
mod guard;
#[cfg(feature = "kv")]
mod kv;
mod latency;
mod leak_text;
mod list_stores;
mod live;
mod log;
mod lossy_args;
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
mod number_arg;
mod number_text;
mod open;
mod output;
mod path_target;
mod progress;
mod record;
mod reference_json;
mod references;
mod repair;
mod rm;
mod scenario;
#[cfg(feature = "serve")]
mod serve;
mod set;
mod stress;
mod tar;
mod temp_output;
mod times;
mod type_parse;
#[cfg(feature = "remote")]
mod upload;
mod utc;
mod value;
mod wait;
mod watch;

pub use args::{exit_code, run, run_words};
pub use error::{Error, Outcome, Result, whole_text};
pub use output::Output;
pub use stress::rule::mix;
