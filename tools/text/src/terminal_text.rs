//! Text for a terminal: names and values of a file must not move its cursor, change its colours or its title.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with control characters as `\xHH`, byte by byte; ends of lines and tabs stay.
pub fn escape_control_chars(text: &str) -> Cow<'_, str> {
    let is_harmful = |letter: char| letter.is_control() && letter != '\n' && letter != '\t';
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_harmful(letter) {
            let mut bytes = [0; 4];
            for byte in letter.encode_utf8(&mut bytes).bytes() {
                let _ = write!(shown, "\\x{byte:02X}");
            }
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_control_a_terminal_is_shown_as_bytes() {
        assert_eq!(escape_control_chars("a\tb\nü"), "a\tb\nü");
        assert_eq!(escape_control_chars("\x1b[2Ja\u{9b}31m\x07\r"), "\\x1B[2Ja\\xC2\\x9B31m\\x07\\x0D");
    }
}
