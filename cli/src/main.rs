//! The `h5live` command.

#![allow(dead_code, unused_imports)]

use h5live_model as model;

mod manifest;
mod record;
mod value;
mod watch;

fn main() {}
