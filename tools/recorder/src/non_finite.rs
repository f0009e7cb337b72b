//! `NaN`, `Infinity` and `-Infinity` in JSON: no part of it, but Python's json and others write them.
//!
//! While it is read, each becomes a text that no text of a file can be, and so is known again.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

/// What is in the place of a number that JSON has not, behind a quote.
const MARK: &str = "\\u0000\\u0001";
/// The same, as it is read.
const READ_MARK: &str = "\0\u{1}";
/// The words.
const WORDS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];
/// The bytes of which words are made.
const LETTERS: &[u8] = b"-NaInfity";
/// The longest word (bytes).
const MAX_WORD_BYTES: usize = "-Infinity".len();

/// The number that a text stands for that was put in its place.
pub fn unmark_non_finite(text: &str) -> Option<String> {
    let word = text.strip_prefix(READ_MARK).filter(|word| WORDS.contains(word))?;
    Some(word.to_owned())
}

/// A row as it came in.
pub fn unmark_non_finite_in_json(text: Vec<u8>) -> Vec<u8> {
    match std::str::from_utf8(&text) {
        Ok(line) if line.contains(MARK) => {
            let replaced = WORDS
                .iter()
                .fold(Cow::from(line), |line, word| line.replace(&format!("\"{MARK}{word}\""), word).into());
            replaced.into_owned().into_bytes()
        }
        _ => text,
    }
}

/// JSON with a text for each number that JSON has not.
#[derive(Debug)]
pub struct NonFiniteMarkingReader<R> {
    input: R,
    /// Bytes that are still to be handed on, and how many were.
    ready: Vec<u8>,
    handed: usize,
    /// What may be a word, and is not at its end.
    word: Vec<u8>,
    is_text: bool,
    is_escaped: bool,
}

impl<R: BufRead> NonFiniteMarkingReader<R> {
    /// Reads `input` as JSON.
    pub fn new(input: R) -> Self {
        let (ready, word) = (Vec::new(), Vec::new());
        NonFiniteMarkingReader { input, ready, handed: 0, word, is_text: false, is_escaped: false }
    }

    /// Takes what is there.
    fn take(&mut self) -> io::Result<()> {
        let bytes = self.input.fill_buf()?.to_vec();
        self.ready.clear();
        self.handed = 0;
        bytes.iter().for_each(|byte| self.take_byte(*byte));
        if bytes.is_empty() {
            self.end_word();
        }
        self.input.consume(bytes.len());
        Ok(())
    }

    fn take_byte(&mut self, byte: u8) {
        if self.is_text {
            // No text goes over the end of a line: a fault is one of its line.
            let ends = byte == b'\n' || (byte == b'"' && !self.is_escaped);
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            self.is_text = !ends;
            return self.ready.push(byte);
        }
        if LETTERS.contains(&byte) && self.word.len() < MAX_WORD_BYTES {
            return self.word.push(byte);
        }
        self.end_word();
        (self.is_text, self.is_escaped) = (byte == b'"', false);
        self.ready.push(byte);
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        if WORDS.iter().any(|known| known.as_bytes() == word) {
            [b"\"", MARK.as_bytes(), &word, b"\""].iter().for_each(|part| self.ready.extend(*part));
        } else {
            self.ready.extend(word);
        }
    }
}

impl<R: BufRead> Read for NonFiniteMarkingReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.handed == self.ready.len() {
            self.take()?;
            if self.ready.is_empty() && self.word.is_empty() {
                return Ok(0);
            }
        }
        let rest = &self.ready[self.handed..];
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.handed += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn finite(text: &str, piece: usize) -> String {
        let mut out = String::new();
        NonFiniteMarkingReader::new(BufReader::with_capacity(piece, text.as_bytes())).read_to_string(&mut out).unwrap();
        out
    }

    #[test]
    fn numbers_that_json_has_not_become_texts_and_are_known_again() {
        let text = "{\"a\": NaN, \"b\": [-Infinity,Infinity], \"NaN\": \"NaN \\\" Infinity\", \"c\": -1e5, \"d\": null}\n-In\nNaNa NaN";
        let expected = "{\"a\": \"\\u0000\\u0001NaN\", \"b\": [\"\\u0000\\u0001-Infinity\",\"\\u0000\\u0001Infinity\"], \"NaN\": \"NaN \\\" Infinity\", \"c\": -1e5, \"d\": null}\n-In\nNaNa \"\\u0000\\u0001NaN\"";
        for piece in 1..text.len() + 1 {
            assert_eq!(finite(text, piece), expected, "{piece}");
        }
        assert_eq!(unmark_non_finite_in_json(expected.into()), text.as_bytes());
        let value: serde_json::Value = serde_json::from_str("\"\\u0000\\u0001-Infinity\"").unwrap();
        assert_eq!(unmark_non_finite(value.as_str().unwrap()), Some("-Infinity".to_owned()));
        assert_eq!(unmark_non_finite("NaN"), None);
    }

    #[test]
    fn a_text_that_does_not_end_ends_with_its_line() {
        assert_eq!(finite("\"a NaN\nNaN\n", 4), "\"a NaN\n\"\\u0000\\u0001NaN\"\n");
    }
}
