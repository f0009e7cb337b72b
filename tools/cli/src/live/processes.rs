//! Processes of this same program that work on one file, and their messages.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use h5live_output::without_ignored_signals;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::message::WorkerMessage;

/// An event of a process.
#[derive(Debug)]
pub enum ProcessEvent {
    /// A line that it wrote.
    Message(WorkerMessage),
    /// A line that is no message.
    Noise(String),
    /// Its output has ended: it is gone, or about to be.
    OutputEnd,
}

/// A process. When its standard input ends it is to come to its own end.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
}

/// Starts processes, and collects their messages under their names.
#[derive(Debug)]
pub struct ProcessSpawner<Name> {
    sender: Sender<(Name, ProcessEvent)>,
    /// The messages of all processes.
    pub events: Receiver<(Name, ProcessEvent)>,
}

impl<Name> Default for ProcessSpawner<Name> {
    /// One without processes.
    fn default() -> Self {
        let (sender, events) = channel();
        ProcessSpawner { sender, events }
    }
}

impl<Name: Copy + Send + 'static> ProcessSpawner<Name> {
    /// Starts this program with other arguments.
    ///
    /// # Errors
    /// An I/O error if it cannot be started.
    pub fn start_self(&self, name: Name, arguments: &[&str], file: &Path) -> io::Result<Process> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments).arg("--").arg(file);
        self.start_command(name, command)
    }

    /// Starts another program.
    ///
    /// # Errors
    /// An I/O error if it cannot be started.
    pub fn start_command(&self, name: Name, mut command: Command) -> io::Result<Process> {
        new_process_group(&mut command);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let sender = self.sender.clone();
        thread::spawn(move || {
            let lines = stdout.into_iter().flat_map(|out| BufReader::new(out).lines());
            for line in lines.map_while(Result::ok) {
                let event = line.parse().map_or_else(|_| ProcessEvent::Noise(line), ProcessEvent::Message);
                if sender.send((name, event)).is_err() {
                    return;
                }
            }
            let _ = sender.send((name, ProcessEvent::OutputEnd));
        });
        Ok(Process { child, stdin })
    }
}

/// Ctrl-C is for the process that starts others: it tells them to come to their end.
#[cfg(unix)]
pub fn new_process_group(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

/// There are no groups of processes on this system.
#[cfg(not(unix))]
pub fn new_process_group(_: &mut Command) {}

impl Process {
    /// Tells the process to come to its end.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Stops the process wherever it is (SIGSTOP), or lets it go on. Without effect on one that has ended, and on systems
    /// without such signals.
    pub fn suspend_or_resume(&self, suspend: bool) {
        #[cfg(unix)]
        if let Ok(pid) = i32::try_from(self.child.id()) {
            use nix::sys::signal::{Signal, kill};

            let signal = if suspend { Signal::SIGSTOP } else { Signal::SIGCONT };
            // It may have ended.
            let _ = kill(nix::unistd::Pid::from_raw(pid), signal);
        }
        #[cfg(not(unix))]
        let _ = suspend;
    }

    /// Kills the process (SIGKILL) and waits until it is gone.
    ///
    /// # Errors
    /// An I/O error if there is no such process.
    pub fn kill_and_wait(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// Waits for the end of the process, at most for `limit`. Returns whether it ended, and with success.
    ///
    /// # Errors
    /// An I/O error if there is no such process.
    pub fn wait(&mut self, limit: Duration) -> io::Result<ExitResult> {
        let until = Instant::now() + limit;
        loop {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(ExitResult::Success),
                Some(status) => return Ok(ExitResult::Failure(status.to_string())),
                None if Instant::now() >= until => return Ok(ExitResult::Timeout),
                None => thread::sleep(Duration::from_millis(2)),
            }
        }
    }
}

impl Drop for Process {
    /// No process outlives the one that started it.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExitResult {
    /// With exit code 0.
    Success,
    /// Otherwise.
    Failure(String),
    /// Not at all.
    Timeout,
}

/// In such a process: a flag that is set when it is to come to its end, because standard input has ended.
pub fn stop_flag_on_stdin_eof() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = flag.clone();
    thread::spawn(move || {
        let mut rest = Vec::new();
        let _ = io::stdin().lock().read_to_end(&mut rest);
        set.store(true, Ordering::Release);
    });
    flag
}

/// A flag that is set by Ctrl-C, by a polite request to end, and when the terminal is closed.
pub fn register_interrupt_flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in without_ignored_signals(&[SIGINT, SIGTERM, SIGHUP]) {
        // Without it the signal ends the process at once, which no live file suffers from.
        let _ = signal_hook::flag::register(signal, flag.clone());
    }
    flag
}
