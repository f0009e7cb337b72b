//! A writer that is this test program in a process of its own, and programs in Python that look at what it writes.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Set for the process that writes: the file.
pub const WRITER: &str = "H5LIVE_TEST_WRITER";

/// Starts the test `test`, which writes the file, with other variables, and waits until it says `begin`. Returns the lines
/// that it writes then.
pub fn start(test: &str, path: &Path, variables: &[(&str, String)]) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut writer = Command::new(std::env::current_exe().unwrap());
    writer.args(["--exact", test, "--test-threads", "1", "--nocapture"]).env(WRITER, path);
    let variables = variables.iter().map(|(name, value)| (name, value));
    let mut child = writer.envs(variables).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    lines.find(|line| line == "begin").expect("the writer begins");
    (child, lines)
}

/// In the process that writes: says a line.
pub fn tell(line: &str) {
    let mut out = std::io::stdout();
    out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).unwrap();
}

/// Calls of this process that have written.
pub fn write_calls() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    io.lines().find_map(|line| line.strip_prefix("syscw: ")?.parse().ok()).unwrap_or(0)
}

/// Starts a program of `tests/python`; `None`, and a line that says so, where there is no Python with h5py.
pub fn start_python(script: &str, arguments: &[&OsStr]) -> Option<Child> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(script);
    let mut command = Command::new(h5live_test_support::python()?);
    Some(command.arg(script).args(arguments).stderr(Stdio::piped()).spawn().unwrap())
}

/// Waits for a program, which must pass.
#[track_caller]
pub fn passes(child: Option<Child>) {
    if let Some(child) = child {
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}
