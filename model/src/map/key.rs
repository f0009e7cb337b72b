//! The key of a map, as it crosses the seam.

use std::fmt;

/// A key of a map in the map's key type.
///
/// A key of fixed size is an element of the key type as it is stored. A key of variable length is its plain bytes, not an
/// element that leads to a heap: the text of a string without a terminator, or the base elements of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum MapKey<'a> {
    /// The null string of a key type of variable-length strings. It is another key than the empty string.
    Null,
    /// The bytes of the key.
    Bytes(&'a [u8]),
}

impl<'a> MapKey<'a> {
    /// The bytes; none for the null string.
    pub fn bytes_or_empty(self) -> &'a [u8] {
        match self {
            MapKey::Null => &[],
            MapKey::Bytes(bytes) => bytes,
        }
    }

    /// A copy that owns its bytes.
    pub fn to_buf(self) -> MapKeyBuf {
        match self {
            MapKey::Null => MapKeyBuf::Null,
            MapKey::Bytes(bytes) => MapKeyBuf::Bytes(bytes.into()),
        }
    }
}

impl<'a> From<&'a [u8]> for MapKey<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        MapKey::Bytes(bytes)
    }
}

impl fmt::Debug for MapKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapKey::Null => f.write_str("null"),
            MapKey::Bytes(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
        }
    }
}

/// A [`MapKey`] that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MapKeyBuf {
    /// As [`MapKey::Null`].
    Null,
    /// As [`MapKey::Bytes`].
    Bytes(Vec<u8>),
}

impl MapKeyBuf {
    /// The key.
    pub fn as_key(&self) -> MapKey<'_> {
        match self {
            MapKeyBuf::Null => MapKey::Null,
            MapKeyBuf::Bytes(bytes) => MapKey::Bytes(bytes),
        }
    }
}
