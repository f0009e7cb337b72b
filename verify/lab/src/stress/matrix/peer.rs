//! Another program that reads whole files, one after the other.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use h5live_cli::error::{Error, Result};
use h5live_cli::live::processes::new_process_group;

use super::plan::CellPlan;

/// After this it hangs that reads a file.
const HANG_TIMEOUT: Duration = Duration::from_secs(600);

/// The program, and its answers.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Peer {
    /// Starts it.
    ///
    /// # Errors
    /// [`Error::Process`].
    pub fn start(program: &Path, script: &PathBuf) -> Result<Peer> {
        let mut command = Command::new(program);
        command.arg(script).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped());
        new_process_group(&mut command);
        let mut child = command.spawn().map_err(Error::Process)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (sender, lines) = channel();
        thread::spawn(move || {
            let read = stdout.into_iter().flat_map(|out| BufReader::new(out).lines()).map_while(Result::ok);
            // Whoever does not listen any more has ended.
            read.map(|line| sender.send(line)).all(|sent| sent.is_ok())
        });
        Ok(Peer { child, stdin, lines })
    }

    /// The number that stands for what a file holds.
    ///
    /// # Errors
    /// What it says instead, or that it says nothing.
    pub fn digest(&mut self, path: &Path, plan: &CellPlan, swmr: bool) -> Result<u64, String> {
        let how = if swmr { "as a SWMR reader" } else { "as a reader" };
        let answer = self.ask(&json!({ "path": path, "plan": plan.json(), "swmr": swmr }));
        let answer = answer.map_err(|error| format!("the other program {how}: {error}"))?;
        answer.parse().map_err(|_| format!("the other program {how}: {answer}"))
    }

    /// Sends a request, and returns the answer.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn ask(&mut self, wish: &Value) -> Result<String, String> {
        let sent = self.stdin.as_mut().map(|stdin| writeln!(stdin, "{wish}").and_then(|()| stdin.flush()));
        match sent {
            Some(Ok(())) => self.lines.recv_timeout(HANG_TIMEOUT).map_err(|error| error.to_string()),
            _ => Err("it has ended".to_owned()),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
