//! Parts of engine keys whose bytes sort as the values do, and their parser.
//!
//! No part is the beginning of another part of the same kind. So keys that are made of parts sort part by part.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::{RecordFormatError, Result};

/// The bytes of a key that is made.
pub(super) type KeyBytes = SmallVec<[u8; 40]>;

/// Ends a string, or begins a NUL that is in it.
const NUL: u8 = 0x00;
/// Follows a NUL that is in a string. What follows the end of a string is a byte below this one.
const ESCAPED: u8 = 0xff;

/// Appends an integer: the number of its bytes without leading zeros (0 to 8), then these, the first one highest.
pub(super) fn put_uint(key: &mut KeyBytes, value: u64) {
    put_flagged_uint(key, value, 0);
}

/// As [`put_uint`], with these bits in the byte that has the number of bytes.
pub(super) fn put_flagged_uint(key: &mut KeyBytes, value: u64, flags: u8) {
    let bytes = value.to_be_bytes();
    let unused = value.leading_zeros() as usize / 8;
    let used = bytes.get(unused..).unwrap_or_default();
    key.push(flags | used.len() as u8);
    key.extend_from_slice(used);
}

/// Appends a string with its end: NULs become `00 ff`, and one `00` ends it. A byte below `ff` must follow.
pub(super) fn put_string(key: &mut KeyBytes, string: &[u8]) {
    let mut parts = string.split(|byte| *byte == NUL);
    key.extend_from_slice(parts.next().unwrap_or_default());
    for part in parts {
        key.extend_from_slice(&[NUL, ESCAPED]);
        key.extend_from_slice(part);
    }
    key.push(NUL);
}

/// Reads the parts of an engine key.
#[derive(Debug, Clone)]
pub(super) struct KeyReader<'a> {
    length: usize,
    rest: &'a [u8],
}

impl<'a> KeyReader<'a> {
    pub(super) fn new(key: &'a [u8]) -> Self {
        KeyReader { length: key.len(), rest: key }
    }

    /// An error about the byte that is next.
    pub(super) fn fault(&self, rule: &'static str) -> RecordFormatError {
        RecordFormatError::InvalidKey { at: self.length.saturating_sub(self.rest.len()), length: self.length, rule }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (found, rest) = self.rest.split_first_chunk().ok_or_else(|| self.fault("the key ends too soon"))?;
        self.rest = rest;
        Ok(*found)
    }

    /// What [`put_uint`] has appended.
    pub(super) fn uint(&mut self) -> Result<u64> {
        let used = self.byte()?;
        self.uint_of(used)
    }

    /// What [`put_uint`] has appended after the number of bytes, which is `used`.
    pub(super) fn uint_of(&mut self, used: u8) -> Result<u64> {
        let parts = self.rest.split_at_checked(used.into()).filter(|_| used <= 8);
        let (bytes, rest) = parts.ok_or_else(|| self.fault("an integer has at most 8 bytes, all of them there"))?;
        if bytes.first() == Some(&0) {
            return Err(self.fault("an integer has no leading zeros"));
        }
        self.rest = rest;
        Ok(bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// What [`put_string`] has appended.
    pub(super) fn string(&mut self) -> Result<Cow<'a, [u8]>> {
        let mut string = Cow::Borrowed(Default::default());
        let mut rest = self.rest;
        loop {
            let end = rest.iter().position(|byte| *byte == NUL);
            let parts =
                end.and_then(|end| rest.split_at_checked(end)).and_then(|(part, nul)| Some((part, nul.get(1..)?)));
            let (part, after) = parts.ok_or_else(|| self.fault("a string has no end"))?;
            match (after.strip_prefix(&[ESCAPED]), &mut string) {
                (None, Cow::Borrowed(_)) => string = Cow::Borrowed(part),
                (None, Cow::Owned(bytes)) => bytes.extend_from_slice(part),
                (Some(_), string) => {
                    string.to_mut().extend_from_slice(part);
                    string.to_mut().push(NUL);
                }
            }
            match after.strip_prefix(&[ESCAPED]) {
                Some(after) => rest = after,
                None => {
                    self.rest = after;
                    return Ok(string);
                }
            }
        }
    }

    /// All bytes that are left.
    pub(super) fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Refuses bytes that are left.
    pub(super) fn end(&self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.fault("bytes are left over")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uint(value: u64) -> KeyBytes {
        let mut key = KeyBytes::new();
        put_uint(&mut key, value);
        key
    }

    fn string(value: &[u8]) -> KeyBytes {
        let mut key = KeyBytes::new();
        put_string(&mut key, value);
        key
    }

    #[test]
    fn integers_sort_as_their_bytes_and_come_back() {
        let edges = [0, 1, 2, 254, 255, 256, 65_535, 65_536, 1 << 40, u64::MAX - 1, u64::MAX];
        for pair in edges.windows(2) {
            assert!(uint(pair[0]) < uint(pair[1]), "{pair:?}");
        }
        for value in edges {
            assert_eq!(KeyReader::new(&uint(value)).uint(), Ok(value));
        }
        assert_eq!(uint(0)[..], [0]);
        assert_eq!(uint(258)[..], [2, 1, 2]);
    }

    #[test]
    fn integers_have_one_form() {
        for bytes in [&[2, 0, 1][..], &[1, 0], &[9, 1, 1, 1, 1, 1, 1, 1, 1, 1], &[2, 1], &[], &[255; 300]] {
            assert!(KeyReader::new(bytes).uint().is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn strings_sort_as_their_bytes_and_come_back() {
        let mut edges =
            [&b""[..], b"\0", b"\0\0", b"\0\x01", b"\0\xff", b"\x01", b"a", b"a\0", b"a\0b", b"a\x01", b"ab", b"\xff"];
        edges.sort();
        for pair in edges.windows(2) {
            assert!([&string(pair[0])[..], &[6]].concat() < [&string(pair[1])[..], &[1]].concat(), "{pair:?}");
        }
        for value in edges {
            let key = [&string(value)[..], &[7]].concat();
            let mut reader = KeyReader::new(&key);
            assert_eq!(reader.string().unwrap(), value);
            assert_eq!(reader.take_rest(), [7]);
        }
        assert_eq!(string(b"a\0b")[..], [b'a', 0, 0xff, b'b', 0]);
    }
}
