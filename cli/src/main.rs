//! The `h5live` command.

#![allow(dead_code, unused_imports)]

use h5live_model as model;

mod demo;
mod manifest;
mod record;
mod stress;
mod value;
mod watch;

fn main() {}
