//! Running the program.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod manifests;

use std::path::PathBuf;
use std::process::{Child, Command, Output};

pub use h5live_test_support::program::{child_with, error, h5py, text, until};
pub use h5live_test_support::{made_corpus as corpus, program, python, shared, workspace};

/// The program.
pub fn h5live() -> Command {
    Command::new(env!("CARGO_BIN_EXE_h5live"))
}

/// A file that is not there yet: its folder, its path, and its path as text.
pub fn new_file() -> (tempfile::TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let name = path.to_str().unwrap().to_owned();
    (folder, path, name)
}

/// Runs the program with arguments, and with this on standard input.
pub fn run_with(arguments: &[&str], input: &[u8]) -> Output {
    program::run_with(h5live(), arguments, input)
}

/// Runs the program with arguments.
pub fn run(arguments: &[&str]) -> Output {
    run_with(arguments, b"")
}

/// Starts the program.
pub fn start(arguments: &[&str]) -> Child {
    program::start(h5live(), arguments)
}

/// What a recording that failed has said: the error, and the line with the number of rows that are stored, if there are any.
pub fn failed_recording(output: &Output) -> (String, Option<String>) {
    let errors = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    let mut lines = errors.lines().map(str::to_owned);
    let said = (lines.next().unwrap(), lines.next());
    assert_eq!(lines.next(), None, "{errors}");
    said
}

/// Runs a script in a folder of a file system of `bytes` bytes. In it, `$0` is the program and `$1` the first of the
/// arguments; `mounted` is printed first. `None`, with a line that says so, if this user may not mount one.
#[cfg(target_os = "linux")]
pub fn on_small_disk(bytes: u64, script: &str, arguments: &[&str]) -> Option<Output> {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    let mounted = format!("mount -t tmpfs -o size={bytes} none {at} && cd {at} && echo mounted && {{ {script}\n}}");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "bash", "-c", &mounted, env!("CARGO_BIN_EXE_h5live")]);
    let output = command.args(arguments).output();
    let mounted = output.ok().filter(|output| output.stdout.starts_with(b"mounted"));
    if mounted.is_none() {
        println!("skipped: no file system can be mounted here");
    }
    mounted
}
