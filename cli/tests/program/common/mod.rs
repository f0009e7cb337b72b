//! Running the program, and what stands beside it.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod manifests;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

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
    let mut child = start(arguments);
    // A program that has seen enough closes its input.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// Runs the program with arguments.
pub fn run(arguments: &[&str]) -> Output {
    run_with(arguments, b"")
}

/// Starts the program.
pub fn start(arguments: &[&str]) -> Child {
    let mut command = h5live();
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// What the program wrote, if it ended well.
#[track_caller]
pub fn text(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What the program wrote on standard error, when it failed with exit code 2.
#[track_caller]
pub fn error(output: &Output) -> String {
    let errors = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    errors.trim_end().to_owned()
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

/// Waits until something holds.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < limit, "{what}: not within a minute");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The child of a process that has an argument, as soon as there is one.
pub fn child_with(parent: u32, argument: &str) -> u32 {
    let mut found = None;
    until("the process has such a child", || {
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        let has = |id: &&str| {
            let arguments = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            arguments.split(|b| *b == 0).any(|a| a == argument.as_bytes())
        };
        found = children.split_whitespace().find(has).and_then(|id| id.parse().ok());
        found.is_some()
    });
    found.unwrap()
}

/// The folder of the workspace.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn folder(variable: &str, default: PathBuf, what: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map_or(default, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: {what} ({} is not there)", folder.display());
    None
}

/// The shared test material; `None`, and a line that says so, where it is not there.
pub fn shared() -> Option<PathBuf> {
    folder("H5LIVE_SHARED", workspace().join("../shared"), "what needs the shared corpus")
}

/// The files that `make corpus` made; `None`, and a line that says so, where they are not there.
pub fn corpus() -> Option<PathBuf> {
    folder("H5LIVE_CORPUS", workspace().join("target/corpus"), "what needs `make corpus`")
}

/// Python with h5py; `None`, and a line that says so, where it is not there.
pub fn python() -> Option<PathBuf> {
    let default = workspace().join(".venv/bin/python");
    let python = std::env::var_os("H5LIVE_PYTHON").map_or(default, PathBuf::from);
    if python.is_file() {
        return Some(python);
    }
    eprintln!("skipped: what needs h5py ({} is not there; `make setup`)", python.display());
    None
}

/// What h5py says: the output of a Python program, in which `path` is its argument.
#[track_caller]
pub fn h5py(python: &Path, program: &str, path: &Path) -> String {
    let program = format!("import sys, h5py, numpy as np\npath = sys.argv[1]\n{program}");
    text(&Command::new(python).arg("-c").arg(program).arg(path).output().unwrap())
}
