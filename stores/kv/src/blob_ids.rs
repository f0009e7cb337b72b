//! Identities of new blobs.

use crate::layout::BlobId;

/// Makes UUIDs of which no two are the same: a random number for each session, and a count.
#[derive(Debug)]
pub struct BlobIdGenerator {
    random: u64,
    count: u64,
}

impl BlobIdGenerator {
    /// The UUIDs of a session with this random number.
    pub fn new(random: u64) -> Self {
        BlobIdGenerator { random, count: 0 }
    }

    /// A new one, behind all earlier ones of this session in the order of keys.
    pub fn next_id(&mut self) -> BlobId {
        self.count += 1;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.random.to_be_bytes());
        bytes[8..].copy_from_slice(&self.count.to_be_bytes());
        // A UUID of version 4, variant 1 (RFC 9562).
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        BlobId(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_of_a_session_are_in_order_and_none_is_null() {
        let mut ids = BlobIdGenerator::new(0);
        let (first, second) = (ids.next_id(), ids.next_id());
        assert!(first < second && !first.is_null());
        assert_ne!(BlobIdGenerator::new(1).next_id(), first);
        assert_eq!((first.0[6] >> 4, first.0[8] >> 6), (4, 2));
    }
}
