//! Running a program, and what it says.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long [`until`] waits: longer than anything takes that works.
const LIMIT: Duration = Duration::from_secs(60);

/// Starts a program, with its input and its output in pipes.
///
/// # Panics
/// If it cannot be started.
pub fn start(mut program: Command, arguments: &[&str]) -> Child {
    program.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    program.spawn().expect("the program starts")
}

/// Runs a program with this on standard input.
///
/// # Panics
/// If it cannot be started.
pub fn run_with(program: Command, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = start(program, arguments);
    // A program that has seen enough closes its input.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input));
    child.wait_with_output().expect("the program ends")
}

/// What a program wrote, if it ended well.
///
/// # Panics
/// If it did not.
#[track_caller]
pub fn text(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    String::from_utf8(output.stdout.clone()).expect("it writes UTF-8")
}

/// What a program wrote on standard error, when it failed with exit code 2: one line.
///
/// # Panics
/// If it ended in another way.
#[track_caller]
pub fn error(output: &Output) -> String {
    let errors = String::from_utf8(output.stderr.clone()).expect("it writes UTF-8");
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    errors.trim_end().to_owned()
}

/// Waits until something holds.
///
/// # Panics
/// If it does not within a minute.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < limit, "{what}: not within a minute");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The child of a process that has an argument, as soon as there is one.
///
/// # Panics
/// If there is none within a minute.
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
    found.expect("it was found")
}

/// What h5py says: the output of a Python program, in which `path` is its argument.
///
/// # Panics
/// If the program fails.
#[track_caller]
pub fn h5py(python: &Path, program: &str, path: &Path) -> String {
    let program = format!("import sys, h5py, numpy as np\npath = sys.argv[1]\n{program}");
    text(&Command::new(python).arg("-c").arg(program).arg(path).output().expect("Python starts"))
}
