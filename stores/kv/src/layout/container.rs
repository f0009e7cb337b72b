//! The UUID of a container, which the connector makes of the file's name.

use std::fmt;

/// The UUID of a container.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContainerId(pub [u8; 16]);

/// The offset basis of FNV with 128 bits.
const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;

/// The prime of FNV with 128 bits: 2^88 + 2^8 + 0x3b.
const PRIME: u128 = (1 << 88) | 0x13b;

/// The UUID of the container of a file: an FNV-1a hash with 128 bits. It takes 16 bytes of the name at a time, not one
/// as FNV does. The last bytes are padded with zeros. A NUL ends the name.
pub fn container_id(file_name: &[u8]) -> ContainerId {
    let name = file_name.split(|byte| *byte == 0).next().unwrap_or_default();
    let hash = name.chunks(16).fold(BASIS, |hash, bytes| {
        let mut block = [0; 16];
        block.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
        (hash ^ u128::from_le_bytes(block)).wrapping_mul(PRIME)
    });
    ContainerId(hash.to_le_bytes())
}

impl fmt::Display for ContainerId {
    /// `00112233-4455-6677-8899-aabbccddeeff`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_one_byte_has_the_published_hash() {
        // FNV-1a with 128 bits of "a" is d228cb696f1a8caf78912b704e4a8964: one byte is one round in both.
        let published = 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964_u128;
        assert_eq!(container_id(b"a"), ContainerId(published.to_le_bytes()));
        assert_eq!(container_id(b"a").to_string(), "64894a4e-702b-9178-af8c-1a6f69cb28d2");
        assert_eq!(container_id(b""), ContainerId(BASIS.to_le_bytes()));
    }

    #[test]
    fn sixteen_bytes_are_one_round() {
        let block = u128::from_le_bytes(*b"0123456789abcdef");
        let first = (BASIS ^ block).wrapping_mul(PRIME);
        assert_eq!(container_id(b"0123456789abcdef"), ContainerId(first.to_le_bytes()));
        let second = (first ^ u128::from(b'g')).wrapping_mul(PRIME);
        assert_eq!(container_id(b"0123456789abcdefg"), ContainerId(second.to_le_bytes()));
        assert_eq!(container_id(b"0123456789abcdefg\0h"), container_id(b"0123456789abcdefg"));
    }
}
