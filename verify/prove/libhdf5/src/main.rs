//! Runs the model checker with libhdf5 in one of the roles, and prints the results.
//!
//! `prove-libhdf5 [--quick] [--seconds=N] [--story] [reader|writer|openings]... [=NAME]`: all parts, or the named ones;
//! all workloads, or those with NAME in their names. Each exploration takes at most N seconds. With --story,
//! counterexamples are printed.
//!
//! libhdf5 is searched at the paths in H5LIVE_LIBHDF5 (with colons between them), in the h5py of the Python that
//! H5LIVE_PYTHON names, and among the libraries of the system. Missing libraries are skipped.

use std::process::ExitCode;
#[cfg(target_os = "linux")]
use std::time::Duration;

#[cfg(target_os = "linux")]
mod call_scheduler;
#[cfg(target_os = "linux")]
mod library;
#[cfg(target_os = "linux")]
mod locate;
#[cfg(target_os = "linux")]
mod open_races;
#[cfg(target_os = "linux")]
mod reader;
#[cfg(target_os = "linux")]
mod reader_explorations;
#[cfg(target_os = "linux")]
mod syscalls;
#[cfg(target_os = "linux")]
mod virtual_file;
#[cfg(target_os = "linux")]
mod writer_cases;

#[cfg(target_os = "linux")]
const USAGE: &str = "prove-libhdf5 [--quick] [--seconds=N] [--story] [reader|writer|openings]... [=NAME]";

/// Whether this program knows the argument. An unknown one would be skipped, and its part would seem to be sound.
#[cfg(target_os = "linux")]
fn is_known(argument: &str) -> bool {
    ["--quick", "--story", "reader", "writer", "openings"].contains(&argument)
        || ["--seconds=", "="].iter().any(|start| argument.starts_with(start))
}

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(job) = reader_explorations::ExplorationJob::parse(&arguments) {
        return job.run();
    }
    if !arguments.iter().all(|argument| is_known(argument)) {
        println!("{USAGE}");
        return ExitCode::from(2);
    }
    let seconds = arguments.iter().find_map(|argument| argument.strip_prefix("--seconds=")?.parse().ok());
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let story = arguments.iter().any(|argument| argument == "--story");
    let name = arguments.iter().find_map(|argument| argument.strip_prefix('=')).unwrap_or_default();
    let parts: Vec<&str> = arguments.iter().map(String::as_str).filter(|text| !text.starts_with(['-', '='])).collect();
    let wanted = |part| parts.is_empty() || parts.contains(&part);
    let mut sound = true;
    if wanted("reader") {
        sound &= reader_explorations::explore_all(seconds.unwrap_or(if quick { 1 } else { 5 }), story, name);
    }
    if wanted("writer") {
        let limit = seconds.map_or(Duration::from_millis(if quick { 150 } else { 8_000 }), Duration::from_secs);
        sound &= writer_cases::explore_all_cases(limit, story, name);
    }
    if wanted("openings") {
        sound &= open_races::explore_all(quick, name);
    }
    println!("\nwith libhdf5: {}", if sound { "sound" } else { "NOT SOUND" });
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    println!("skipped: libhdf5 in the model checker needs Linux");
    ExitCode::SUCCESS
}
