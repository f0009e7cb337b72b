//! Checksums of values: each stored value ends with four bytes that its key and what is before them give.

/// Bytes of a checksum.
pub const CHECKSUM_BYTES: usize = 4;

/// The checksum of a value: the CRC-32C of the bytes of its key and its own, little-endian.
pub fn checksum(key: &[u8], value: &[u8]) -> [u8; CHECKSUM_BYTES] {
    crc32c::crc32c_append(crc32c::crc32c(key), value).to_le_bytes()
}

/// The value of stored bytes; `None` if they do not end with its checksum.
pub fn checked_value<'b>(key: &[u8], stored: &'b [u8]) -> Option<&'b [u8]> {
    let (value, found) = stored.split_last_chunk()?;
    (checksum(key, value) == *found).then_some(value)
}
