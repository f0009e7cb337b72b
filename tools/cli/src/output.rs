//! Standard output: buffered, and with errors that say so.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use h5live_text::terminal_text::terminal_text;

use crate::error::{Error, Outcome, Result, whole_text};

/// Says something on standard error. Nobody may be there to hear it: a terminal that was closed.
pub fn tell(text: impl Display) {
    tell_line(format_args!("h5live: {text}"));
}

/// As [`tell`], a line that does not begin with the name of the program. A terminal gets control characters as `\xHH`.
pub fn tell_line(text: impl Display) {
    let mut to = io::stderr();
    let text = text.to_string();
    let text = if to.is_terminal() { terminal_text(&text) } else { text.into() };
    let _ = writeln!(to, "{text}");
}

/// Standard output. Bytes that are not flushed when it is dropped are lost.
pub struct Output {
    to: BufWriter<StdoutLock<'static>>,
    /// Names and values of a file must not control it.
    is_terminal: bool,
}

impl Output {
    /// Standard output, locked.
    pub fn stdout() -> Self {
        let to = io::stdout().lock();
        Output { is_terminal: to.is_terminal(), to: BufWriter::with_capacity(64 << 10, to) }
    }

    /// Writes a line. A terminal gets control characters of it as `\xHH`.
    ///
    /// # Errors
    /// [`Error::Output`].
    pub fn line(&mut self, line: impl Display) -> Result<()> {
        let written = match self.is_terminal {
            true => writeln!(self.to, "{}", terminal_text(&line.to_string())),
            false => writeln!(self.to, "{line}"),
        };
        written.map_err(Error::Output)
    }

    /// Writes bytes unchanged.
    ///
    /// # Errors
    /// [`Error::Output`].
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.to.write_all(bytes).map_err(Error::Output)
    }

    /// Flushes the written bytes.
    ///
    /// # Errors
    /// [`Error::Output`].
    pub fn flush(&mut self) -> Result<()> {
        self.to.flush().map_err(Error::Output)
    }

    /// Tells the error of one of several files, behind what was printed of those before it. The command goes on with
    /// the next one.
    ///
    /// # Errors
    /// [`Error::Output`]; nobody reads what comes next then.
    pub fn tell_error(&mut self, error: Error) -> Result<Outcome> {
        self.flush()?;
        if error.is_broken_pipe() {
            return Err(error);
        }
        tell(whole_text(&error));
        Ok(Outcome::FAILED)
    }
}
