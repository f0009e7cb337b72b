//! A story as a picture (SVG): time goes down, the writer on the left, the reader on the right.

use std::fmt::Write as _;

use super::counterexample_log::{CounterexampleEvent, CounterexampleLog};

const WIDTH: usize = 1200;
const READER_X: usize = 640;
const ROW_HEIGHT: usize = 18;
/// Characters of a line on either side.
const MAX_WRITER_CHARS: usize = 78;
const MAX_READER_CHARS: usize = 68;

const STYLE: &str = "text{font:12px monospace;fill:#222}.head{font-weight:bold}.change{fill:#666}\
                     .reader{fill:#0a4a8a}.fault{fill:#b00020;font-weight:bold}line{stroke:#999}circle{fill:#999}";

impl CounterexampleLog {
    /// The story as an SVG document.
    pub fn to_svg(&self) -> String {
        let mut picture = SvgWriter { body: String::new(), rows: 1 };
        picture.text(16, "head", &format!("writer, after {} operations", self.prior_op_count), MAX_WRITER_CHARS);
        picture.text(READER_X + 16, "head", "reader", MAX_READER_CHARS);
        for line in &self.events {
            picture.rows += 1;
            match line {
                CounterexampleEvent::Writer { operation, what, changes } => {
                    picture.dot();
                    picture.text(16, "writer", &format!("{operation:>4} {what}"), MAX_WRITER_CHARS);
                    for change in changes {
                        picture.rows += 1;
                        picture.text(56, "change", change, MAX_WRITER_CHARS - 6);
                    }
                }
                CounterexampleEvent::Reader { what } => {
                    picture.dot();
                    picture.text(READER_X + 16, "reader", what, MAX_READER_CHARS);
                }
            }
        }
        for part in wrap(&self.fault, MAX_READER_CHARS) {
            picture.rows += 1;
            picture.text(READER_X + 16, "fault", &part, MAX_READER_CHARS);
        }
        let height = (picture.rows + 2) * ROW_HEIGHT;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\">\n<style>{STYLE}</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <line x1=\"{READER_X}\" y1=\"{ROW_HEIGHT}\" x2=\"{READER_X}\" y2=\"{}\"/>\n{}</svg>\n",
            height - ROW_HEIGHT,
            picture.body
        )
    }
}

struct SvgWriter {
    body: String,
    rows: usize,
}

impl SvgWriter {
    fn text(&mut self, x: usize, class: &str, text: &str, max_chars: usize) {
        let mut shown: String = text.chars().take(max_chars).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        let shown = shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let y = self.rows * ROW_HEIGHT;
        let _ =
            writeln!(self.body, "<text x=\"{x}\" y=\"{y}\" class=\"{class}\" xml:space=\"preserve\">{shown}</text>");
    }

    fn dot(&mut self) {
        let y = self.rows * ROW_HEIGHT - ROW_HEIGHT / 4;
        let _ = writeln!(self.body, "<circle cx=\"{READER_X}\" cy=\"{y}\" r=\"3\"/>");
    }
}

/// A text in lines of at most `max_chars` characters.
fn wrap(text: &str, max_chars: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + word.chars().count() > max_chars {
            lines.push(String::new());
        }
        let Some(line) = lines.last_mut() else { continue };
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_holds_the_whole_story() {
        let writer = CounterexampleEvent::Writer {
            operation: 7,
            what: "bytes <at> 0x10".into(),
            changes: vec!["a: 0 -> 1".into()],
        };
        let reader = CounterexampleEvent::Reader { what: "reads bytes & more".into() };
        let fault = "row 3 is wrong ".repeat(10);
        let svg = CounterexampleLog { prior_op_count: 3, events: vec![writer, reader], fault }.to_svg();
        for part in ["bytes &lt;at&gt; 0x10", "a: 0 -&gt; 1", "reads bytes &amp; more", "after 3 operations"] {
            assert!(svg.contains(part), "{part}\n{svg}");
        }
        assert!(svg.matches("class=\"fault\"").count() > 1);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    }
}
