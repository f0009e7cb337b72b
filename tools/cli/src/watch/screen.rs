//! A few lines in a terminal that are drawn again and again in the same place.

use std::io::{self, IsTerminal, Write};

use crate::error::{Error, Result};

/// The lines.
#[derive(Debug)]
pub struct Screen {
    drawn: usize,
}

impl Screen {
    /// The place below what the terminal shows now; `None` if standard output is no terminal.
    pub fn for_terminal() -> Option<Self> {
        io::stdout().is_terminal().then_some(Screen { drawn: 0 })
    }

    /// The width of the terminal (characters).
    pub fn width() -> usize {
        terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0))
    }

    /// Draws the lines in place of those that are there.
    ///
    /// # Errors
    /// [`Error::Stdout`].
    pub fn draw(&mut self, lines: &[String]) -> Result<()> {
        let text = frame(lines, self.drawn, Self::width());
        self.drawn = lines.len();
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Stdout)
    }
}

/// The text that draws `lines` over the `drawn` lines above the cursor. Lines are cut to the width, unless they have
/// colours.
fn frame(lines: &[String], drawn: usize, width: usize) -> String {
    let mut text = if drawn > 0 { format!("\x1b[{drawn}A") } else { String::new() };
    for line in lines {
        text.push_str("\r\x1b[2K");
        if line.contains('\x1b') {
            text.push_str(line);
        } else {
            text.extend(line.chars().take(width));
        }
        text.push('\n');
    }
    text.push_str("\x1b[J");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_drawn_over_those_before() {
        let lines = ["abc".to_owned(), "\x1b[0mabc".to_owned()];
        assert_eq!(frame(&lines, 0, 2), "\r\x1b[2Kab\n\r\x1b[2K\x1b[0mabc\n\x1b[J");
        assert!(frame(&lines, 2, 2).starts_with("\x1b[2A\r\x1b[2Kab\n"));
    }
}
