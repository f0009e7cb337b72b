//! Names of links, attributes, members: bytes that are nearly always UTF-8.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A name as the file holds it. HDF5 does not enforce an encoding, so a name is a string of bytes;
/// it is compared and sorted bytewise, and shown as UTF-8 with invalid bytes replaced.
#[derive(Clone)]
pub struct Name(NameBytes);

/// Bytes of names that need no memory of their own: what fits beside the tag of three words.
const MAX_INLINE_NAME_BYTES: usize = 22;

#[derive(Clone)]
enum NameBytes {
    /// So many bytes of these.
    Short(u8, [u8; MAX_INLINE_NAME_BYTES]),
    Long(Box<[u8]>),
}

impl NameBytes {
    /// `None` if they do not fit.
    fn short(bytes: &[u8]) -> Option<Self> {
        let mut short = [0; MAX_INLINE_NAME_BYTES];
        short.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(NameBytes::Short(bytes.len() as u8, short))
    }
}

impl Name {
    /// The bytes, without a terminating NUL.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            NameBytes::Short(len, bytes) => &bytes[..usize::from(*len)],
            NameBytes::Long(bytes) => bytes,
        }
    }

    /// The name as text, if it is valid UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(self.as_bytes()).ok()
    }

    /// Whether the name has no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }

    /// Whether every byte is ASCII.
    pub fn is_ascii(&self) -> bool {
        self.as_bytes().is_ascii()
    }
}

impl Default for Name {
    fn default() -> Self {
        Name(NameBytes::Short(0, [0; MAX_INLINE_NAME_BYTES]))
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl From<&[u8]> for Name {
    fn from(bytes: &[u8]) -> Self {
        Name(NameBytes::short(bytes).unwrap_or_else(|| NameBytes::Long(bytes.into())))
    }
}

impl From<Vec<u8>> for Name {
    fn from(bytes: Vec<u8>) -> Self {
        Name(NameBytes::short(&bytes).unwrap_or_else(|| NameBytes::Long(bytes.into())))
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&String::from_utf8_lossy(self.as_bytes()))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.as_bytes()))
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_length_are_their_bytes() {
        let bytes: Vec<u8> = (0..2 * MAX_INLINE_NAME_BYTES as u8).collect();
        for len in 0..bytes.len() {
            let name = Name::from(&bytes[..len]);
            assert_eq!(name.as_bytes(), &bytes[..len]);
            assert_eq!(name, Name::from(bytes[..len].to_vec()));
            assert!(name < Name::from(&bytes[..len + 1]), "{len}");
        }
        assert_eq!(Name::default().as_bytes(), b"");
        assert_eq!(size_of::<Name>(), 24);
    }
}
