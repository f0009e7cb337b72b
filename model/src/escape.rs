//! Bytes of files as text that can be read and typed: names, paths, link values and tags.

use std::fmt::Write;

/// The bytes as text: TAB, LF, CR and backslash as a letter after a backslash, bytes that are not UTF-8 as `\xHH`.
pub fn escape(bytes: &[u8]) -> String {
    escape_with(bytes, None)
}

/// As [`escape`], with a backslash before `also`, too.
pub fn escape_with(bytes: &[u8], also: Option<char>) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\t' => out.push_str("\\t"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\\' => out.push_str("\\\\"),
                c if also == Some(c) => out.extend(['\\', c]),
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_controls_backslashes_and_bytes_that_are_not_utf8() {
        assert_eq!(escape("a\tb\nc\rd\\e\"ü".as_bytes()), "a\\tb\\nc\\rd\\\\e\"ü");
        assert_eq!(escape(b"\xffa\xe2\x82b"), "\\xFFa\\xE2\\x82b");
    }
}
