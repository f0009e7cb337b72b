//! What libhdf5 refuses to open, `check` finds; and what `copy` writes without a word, libhdf5 opens.

use std::process::Command;

use crate::common::{corpus, python, shared, text, workspace};

/// Runs the comparison, which fails if there is an object of which only libhdf5 says something.
#[track_caller]
fn compare(arguments: &[&std::ffi::OsStr]) {
    let Some(python) = python() else { return };
    let script = workspace().join("tests/python/opens.py");
    let mut command = Command::new(python);
    command.arg(script).arg(env!("CARGO_BIN_EXE_h5live")).arg("--copies").args(arguments);
    let output = command.output().unwrap();
    print!("{}", String::from_utf8_lossy(&output.stdout));
    text(&output);
}

#[test]
fn check_finds_what_libhdf5_refuses_in_real_and_hostile_files() {
    let Some(shared) = shared() else { return };
    compare(&["--folder".as_ref(), shared.join("corpus").as_ref()]);
}

#[test]
fn check_finds_what_libhdf5_refuses_in_mutants_of_small_files() {
    let Some(corpus) = corpus() else { return };
    let seed = std::env::var("H5LIVE_SEED").unwrap_or_else(|_| "1".to_owned());
    println!("H5LIVE_SEED={seed}");
    let count = "200".as_ref();
    compare(&["--seeds".as_ref(), corpus.as_ref(), "--count".as_ref(), count, "--seed".as_ref(), seed.as_ref()]);
}
