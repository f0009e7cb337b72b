//! Maps by the identity of objects.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use h5live_model::ObjectId;

/// A map by identity.
pub(crate) type ById<V> = HashMap<ObjectId, V, BuildHasherDefault<IdHasher>>;

/// Hashes identities, which are addresses, keys or UUIDs: one multiplication moves what differs to where it counts.
#[derive(Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }

    fn write_u128(&mut self, n: u128) {
        self.write_u64((n ^ (n >> 64)) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_spread() {
        let hash = |id: u128| {
            let mut hasher = IdHasher::default();
            std::hash::Hash::hash(&ObjectId(id), &mut hasher);
            hasher.finish()
        };
        for step in [8, 272, 4096] {
            let places: std::collections::HashSet<_> = (0..1024).map(|n| hash(n * step) & 4095).collect();
            let tags: std::collections::HashSet<_> = (0..1024).map(|n| hash(n * step) >> 57).collect();
            assert!(places.len() > 700 && tags.len() > 100, "{step}: {} {}", places.len(), tags.len());
        }
    }
}
