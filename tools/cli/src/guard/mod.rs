//! `h5live guard`: runs a writer, and brings its files into order when it dies.

mod files;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

use h5live::{FileOpenState, diagnose, repair};
use h5live_output::without_ignored_signals;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::Signals;

use crate::error::error_with_causes;
use crate::error::{CommandOutcome, Error, Result};

use files::WrittenFileCandidates;

/// The signals that are passed on.
const SIGNALS: [i32; 7] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH];

/// The time between two looks at what the command has open.
const PAUSE: Duration = Duration::from_millis(5);

/// Runs a program that writes HDF5 files, and repairs them when it dies
///
/// When the program has ended or was killed, each file that it wrote and has not closed is repaired as `h5live repair`
/// does. So every program opens it at once, whether it follows or not. Everything that was flushed is there. The files
/// are those named with --file, those that arguments of the program name, and those that the program, or one that it
/// has started, had open for writing for longer than a few milliseconds.
///
/// Signals are passed on to the program. The exit code is that of the program, or 128 plus the number of the signal
/// that ended it; 127 or 126 if it cannot be started. A file that cannot be repaired is named on standard error, and
/// makes the exit code 1 if it would be 0.
#[derive(Debug, clap::Args)]
pub struct GuardCommand {
    /// A file that the program writes; may be given several times
    #[arg(long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Do not report repairs
    #[arg(short, long)]
    quiet: bool,
    /// The program, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl GuardCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// [`Error::Process`] if the program cannot be waited for.
    pub fn run(self) -> Result<CommandOutcome> {
        // Before the program is there, so that no signal is missed.
        let mut signals = Signals::new(without_ignored_signals(&SIGNALS)).map_err(Error::Process)?;
        let [program, arguments @ ..] = &self.command[..] else { return Ok(CommandOutcome::Clean) };
        let mut child = match Command::new(program).args(arguments).spawn() {
            Ok(child) => child,
            Err(error) => {
                eprintln!("h5live: {}: {error}", program.display());
                return Ok(CommandOutcome::Status(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }));
            }
        };
        let mut written = WrittenFileCandidates::from_files_and_arguments(&self.files, arguments);
        let status = attend(&mut child, &mut signals, &mut written)?;
        let failed = self.recover(&written.existing_files());
        Ok(CommandOutcome::Status(match (code(status), failed) {
            (0, true) => 1,
            (code, _) => code,
        }))
    }

    /// Brings the files into order that nobody writes any more; whether one could not be.
    fn recover(&self, files: &[PathBuf]) -> bool {
        // Each takes as long as readers may still need what is cut off.
        let done: Vec<_> = thread::scope(|scope| {
            let each: Vec<_> = files.iter().map(|file| scope.spawn(|| recover(file))).collect();
            each.into_iter().zip(files).map(|(done, file)| (file, done.join())).collect()
        });
        let mut failed = false;
        for (file, done) in done {
            match done {
                Ok(Ok(None)) => {}
                Ok(Ok(Some(left))) => {
                    if !self.quiet {
                        eprintln!("h5live: {}: brought into order; its writer had died", file.display());
                    }
                    left.iter().for_each(|left| eprintln!("h5live: {}: left as it was: {left}", file.display()));
                    failed |= !left.is_empty();
                }
                Ok(Err(why)) => {
                    failed = true;
                    eprintln!("h5live: {why}");
                }
                Err(_) => failed = true,
            }
        }
        failed
    }
}

/// Waits for the program, passes signals on to it, and notes which files it writes.
fn attend(child: &mut Child, signals: &mut Signals, written: &mut WrittenFileCandidates) -> Result<ExitStatus> {
    let pid = i32::try_from(child.id()).map_err(|_| Error::Process(io::ErrorKind::InvalidData.into()))?;
    // What is typed in a terminal goes to every process in the foreground.
    let is_typed = |signal| matches!(signal, SIGINT | SIGQUIT | SIGWINCH) && io::stdin().is_terminal();
    loop {
        // In this order: the number of the child is its own until it has been waited for.
        for signal in signals.pending().filter(|signal| !is_typed(*signal)) {
            if let Ok(signal) = Signal::try_from(signal) {
                // It may have ended a moment ago.
                let _ = kill(Pid::from_raw(pid), signal);
            }
        }
        written.scan_process_tree(child.id());
        if let Some(status) = child.try_wait().map_err(Error::Process)? {
            return Ok(status);
        }
        thread::sleep(PAUSE);
    }
}

/// The exit code by which shells say how a program ended.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| signal.saturating_add(128)));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Brings a file into order if its writer is dead. Returns what had to be left as it was; `None` if the writer is not dead.
///
/// # Errors
/// The reason why a file cannot be brought into order, with its name.
fn recover(file: &Path) -> Result<Option<Vec<String>>, String> {
    // Other files than HDF5 are ignored.
    let Ok(found) = diagnose(file) else { return Ok(None) };
    match found.open_state {
        FileOpenState::Abandoned { .. } => {
            repair(file).map(|done| Some(done.unrepaired)).map_err(|error| error_with_causes(&error))
        }
        FileOpenState::OpenOrAbandoned { .. } => Err(format!(
            "{0}: it is marked as being written, and the system does not tell this user whether it is; if no process \
             writes it, `h5live repair --take-over {0}` brings it into order",
            file.display()
        )),
        // Closed by the program, or written by another one, which has it from this one perhaps.
        _ => Ok(None),
    }
}
