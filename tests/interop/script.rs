//! Python scripts that stand for libhdf5.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A Python script of tests/python that runs beside the test.
pub struct Script {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Script {
    /// Starts a script; `None`, with a line that says so, where there is no Python for it.
    pub fn start(name: &str, args: &[&str]) -> Option<Script> {
        let python = h5live_test_support::python()?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(name);
        let mut command = Command::new(python);
        command.arg(script).args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.env_remove("HDF5_USE_FILE_LOCKING").spawn().expect("Python starts");
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().expect("piped")));
        Some(Script { child, input, output })
    }

    /// The next line that it writes.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the script writes text");
        line.trim().to_owned()
    }

    /// Writes it a line.
    pub fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().expect("open"), "{line}").expect("the script listens");
    }

    /// Ends the script's input, and waits until it has ended; it must have succeeded.
    pub fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().expect("the script ends").success());
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
