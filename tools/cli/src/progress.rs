//! Progress bars on standard error, where that is a terminal.

use std::fmt;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::counted::noun_for;

/// A bar for `total` things of a kind. `noun` is the word for one of them.
pub fn bar(total: usize, noun: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}, {eta} left");
    ProgressBar::new(total as u64)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_message(noun_for(total as u64, noun).to_string())
}

/// A bar for `total` bytes.
pub fn bytes(total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left");
    ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// A counter of things whose total number is not known. `noun` is the word for one of them.
pub fn counter(noun: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {human_pos} {things}, {per_sec}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    // A line that cannot be written is one that nobody sees.
    let things = move |state: &ProgressState, line: &mut dyn fmt::Write| {
        let _ = write!(line, "{}", noun_for(state.pos(), noun));
    };
    ProgressBar::no_length().with_style(style.with_key("things", things))
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::{ProgressDrawTarget, TermLike};

    use super::*;

    /// A terminal that keeps all that was shown.
    #[derive(Debug, Clone, Default)]
    struct RecordedTerminal(Arc<Mutex<String>>);

    impl TermLike for RecordedTerminal {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, line: &str) -> io::Result<()> {
            self.write_str(line)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What a bar shows at a position.
    fn shown(bar: &ProgressBar, position: u64) -> String {
        let terminal = RecordedTerminal::default();
        bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(terminal.clone())));
        bar.set_position(position);
        bar.tick();
        let text = terminal.0.lock().unwrap();
        text.clone()
    }

    #[test]
    fn the_noun_agrees_with_the_number() {
        let counted = counter("row");
        assert!(shown(&counted, 1).contains(" 1 row, "), "{}", shown(&counted, 1));
        assert!(shown(&counted, 2).contains(" 2 rows, "), "{}", shown(&counted, 2));
        assert!(shown(&bar(1, "row"), 1).contains(" 1/1 row, "), "{}", shown(&bar(1, "row"), 1));
        assert!(shown(&bar(2, "row"), 1).contains(" 1/2 rows, "), "{}", shown(&bar(2, "row"), 1));
    }
}
