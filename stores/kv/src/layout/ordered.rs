//! Parts of engine keys whose bytes sort as the values do, and their parser.
//!
//! No part is the beginning of another part of the same kind. So keys that are made of parts sort part by part.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::{LayoutError, Result};

/// The bytes of a key that is made.
pub(super) type KeyBytes = SmallVec<[u8; 40]>;

/// Ends a string, or begins a NUL that is in it.
const NUL: u8 = 0x00;
/// Follows a NUL that is in a string. What follows the end of a string is a byte below this one.
const ESCAPED: u8 = 0xff;

/// Bytes that are in use of an integer.
fn used_bytes(value: u64) -> usize {
    8 - value.leading_zeros() as usize / 8
}

/// Appends an integer: the number of its bytes without leading zeros (0 to 8), then these, the first one highest.
pub(super) fn put_uint(key: &mut KeyBytes, value: u64) {
    let used = used_bytes(value);
    key.push(used as u8);
    key.extend_from_slice(&value.to_be_bytes()[8 - used..]);
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
    key: &'a [u8],
    at: usize,
}

impl<'a> KeyReader<'a> {
    pub(super) fn new(key: &'a [u8]) -> Self {
        KeyReader { key, at: 0 }
    }

    /// An error about the byte that is next.
    pub(super) fn fault(&self, rule: &'static str) -> LayoutError {
        LayoutError::Key { at: self.at, length: self.key.len(), rule }
    }

    /// The bytes that are left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.key.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let found = self.rest().first_chunk().copied().ok_or_else(|| self.fault("the key ends too soon"))?;
        self.at += N;
        Ok(found)
    }

    /// What [`put_uint`] has appended.
    pub(super) fn uint(&mut self) -> Result<u64> {
        let used = usize::from(self.peek().ok_or_else(|| self.fault("the key ends too soon"))?);
        let bytes = self.rest().get(1..1 + used).filter(|bytes| bytes.len() <= 8);
        let bytes = bytes.ok_or_else(|| self.fault("an integer has at most 8 bytes, all of them there"))?;
        if bytes.first() == Some(&0) {
            return Err(self.fault("an integer has no leading zeros"));
        }
        self.at += 1 + used;
        Ok(bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// What [`put_string`] has appended.
    pub(super) fn string(&mut self) -> Result<Cow<'a, [u8]>> {
        let rest = self.rest();
        let mut string = Cow::Borrowed(&rest[..0]);
        let mut from = 0;
        loop {
            let nul = rest[from..].iter().position(|byte| *byte == NUL);
            let nul = from + nul.ok_or_else(|| self.fault("a string has no end"))?;
            let escaped = rest.get(nul + 1) == Some(&ESCAPED);
            match (&mut string, escaped) {
                (Cow::Borrowed(bytes), false) => *bytes = &rest[..nul],
                (Cow::Borrowed(_), true) => string = Cow::Owned([&rest[..nul], &[NUL]].concat()),
                (Cow::Owned(bytes), _) => {
                    bytes.extend_from_slice(&rest[from..nul]);
                    bytes.extend_from_slice(if escaped { &[NUL] } else { &[] });
                }
            }
            if !escaped {
                self.at += nul + 1;
                return Ok(string);
            }
            from = nul + 2;
        }
    }

    /// All bytes that are left.
    pub(super) fn take_rest(&mut self) -> &'a [u8] {
        let rest = self.rest();
        self.at = self.key.len();
        rest
    }

    /// Refuses bytes that are left.
    pub(super) fn end(&self) -> Result<()> {
        if self.rest().is_empty() { Ok(()) } else { Err(self.fault("bytes are left over")) }
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
            assert_eq!(reader.rest(), [7]);
        }
        assert_eq!(string(b"a\0b")[..], [b'a', 0, 0xff, b'b', 0]);
    }
}
