//! Escapes of names, paths, link values and tags.

use std::fmt::Write;

/// The bytes as text: TAB, LF, CR and backslash as a letter after a backslash, bytes that are not UTF-8 as `\xHH`.
pub fn escape(bytes: &[u8]) -> String {
    write_escaped(bytes, "")
}

/// The same for a text between quotes: `"` is written `\"` too.
pub fn escape_quoted(bytes: &[u8]) -> String {
    write_escaped(bytes, "\"")
}

fn write_escaped(bytes: &[u8], also: &str) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\t' => out.push_str("\\t"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\\' => out.push_str("\\\\"),
                c if also.contains(c) => out.extend(['\\', c]),
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

    #[test]
    fn escapes_quotes_only_between_quotes() {
        assert_eq!(escape_quoted(b"a\"b"), "a\\\"b");
        assert_eq!(escape(b"a\"b"), "a\"b");
    }
}
