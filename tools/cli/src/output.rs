//! Standard output: buffered, and with errors that say so.

use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write};

use crate::error::{Error, Outcome, Result, whole_text};

/// Says something on standard error. Nobody may be there to hear it: a terminal that was closed.
pub fn tell(text: impl Display) {
    let _ = writeln!(io::stderr(), "h5live: {text}");
}

/// Standard output. Bytes that are not flushed when it is dropped are lost.
pub struct Output(BufWriter<StdoutLock<'static>>);

impl Output {
    /// Standard output, locked.
    pub fn stdout() -> Self {
        Output(BufWriter::with_capacity(64 << 10, io::stdout().lock()))
    }

    /// Writes a line.
    ///
    /// # Errors
    /// [`Error::Output`].
    pub fn line(&mut self, line: impl Display) -> Result<()> {
        writeln!(self.0, "{line}").map_err(Error::Output)
    }

    /// Writes bytes unchanged.
    ///
    /// # Errors
    /// [`Error::Output`].
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write_all(bytes).map_err(Error::Output)
    }

    /// Flushes the written bytes.
    ///
    /// # Errors
    /// [`Error::Output`].
    pub fn flush(&mut self) -> Result<()> {
        self.0.flush().map_err(Error::Output)
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
        eprintln!("h5live: {}", whole_text(&error));
        Ok(Outcome::FAILED)
    }
}
