//! Checksums of values: each stored value ends with four bytes that its key and what is before them give.

/// Bytes of a checksum.
pub const CHECKSUM_BYTES: usize = 4;

/// A key and a value of at most so many bytes are put together first: one after the other, the few bytes at their ends,
/// which are no whole words, take longer than all others.
const SHORT_RECORD_BYTES: usize = 64;

/// The bytes of a short record, in words of the machine.
#[repr(align(8))]
struct ShortRecord([u8; SHORT_RECORD_BYTES]);

/// The checksum of a value: the CRC-32C of the bytes of its key and its own, little-endian.
pub fn checksum(key: &[u8], value: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut record = ShortRecord([0; SHORT_RECORD_BYTES]);
    let short = key.len().checked_add(value.len()).and_then(|len| record.0.get_mut(..len));
    let sum = match short {
        Some(bytes) => {
            let (first, rest) = bytes.split_at_mut(key.len());
            first.copy_from_slice(key);
            rest.copy_from_slice(value);
            crc32c::crc32c(bytes)
        }
        None => crc32c::crc32c_append(crc32c::crc32c(key), value),
    };
    sum.to_le_bytes()
}

/// The value of stored bytes; `None` if they do not end with its checksum.
pub fn checked_value<'b>(key: &[u8], stored: &'b [u8]) -> Option<&'b [u8]> {
    let (value, found) = stored.split_last_chunk()?;
    (checksum(key, value) == *found).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_bytes_wherever_they_are_parted() {
        let bytes: Vec<u8> = (0..200).collect();
        for len in [0, 1, 9, 63, 64, 65, 200] {
            let whole = crc32c::crc32c(&bytes[..len]).to_le_bytes();
            for at in 0..=len {
                assert_eq!(checksum(&bytes[..at], &bytes[at..len]), whole, "{at} of {len}");
            }
        }
    }
}
