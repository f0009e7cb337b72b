//! Standard output: buffered, and with errors that say so.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use h5live_text::terminal_text::escape_control_chars;

use crate::error::{CommandOutcome, Error, Result, error_with_causes};

/// Says something on standard error. Nobody may be there to hear it: a terminal that was closed.
pub fn eprint_prefixed(text: impl Display) {
    eprint_line(format_args!("h5live: {text}"));
}

/// As [`eprint_prefixed`], a line that does not begin with the name of the program. A terminal gets control characters as `\xHH`.
pub fn eprint_line(text: impl Display) {
    let mut to = io::stderr();
    let text = text.to_string();
    let text = if to.is_terminal() { escape_control_chars(&text) } else { text.into() };
    let _ = writeln!(to, "{text}");
}

/// Standard output. Bytes that are not flushed when it is dropped are lost.
pub struct StdoutWriter {
    to: BufWriter<StdoutLock<'static>>,
    /// Names and values of a file must not control it.
    is_terminal: bool,
}

impl StdoutWriter {
    /// Standard output, locked.
    pub fn stdout() -> Self {
        let to = io::stdout().lock();
        StdoutWriter { is_terminal: to.is_terminal(), to: BufWriter::with_capacity(64 << 10, to) }
    }

    /// Writes a line. A terminal gets control characters of it as `\xHH`.
    ///
    /// # Errors
    /// [`Error::Stdout`].
    pub fn line(&mut self, line: impl Display) -> Result<()> {
        let written = match self.is_terminal {
            true => writeln!(self.to, "{}", escape_control_chars(&line.to_string())),
            false => writeln!(self.to, "{line}"),
        };
        written.map_err(Error::Stdout)
    }

    /// Writes bytes unchanged.
    ///
    /// # Errors
    /// [`Error::Stdout`].
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.to.write_all(bytes).map_err(Error::Stdout)
    }

    /// Flushes the written bytes.
    ///
    /// # Errors
    /// [`Error::Stdout`].
    pub fn flush(&mut self) -> Result<()> {
        self.to.flush().map_err(Error::Stdout)
    }

    /// Tells the error of one of several files, behind what was printed of those before it. The command goes on with
    /// the next one.
    ///
    /// # Errors
    /// [`Error::Stdout`]; nobody reads what comes next then.
    pub fn flush_and_eprint_error(&mut self, error: Error) -> Result<CommandOutcome> {
        self.flush()?;
        if error.is_broken_pipe() {
            return Err(error);
        }
        eprint_prefixed(error_with_causes(&error));
        Ok(CommandOutcome::FAILED)
    }
}
