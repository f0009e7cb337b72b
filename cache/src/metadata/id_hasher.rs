//! A hash of numbers that are given out one after the other.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use crate::entry_id::EntryId;

/// Numbers that stay beside each other in a map.
const NEIGHBORHOOD_IDS: u64 = 64;

/// An odd number whose bits are spread evenly.
const HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Leaves neighbours close to each other in a map, for those that are made together are sought together; where the
/// neighbourhoods are is spread, whichever of the numbers are left of them.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct SequentialIdHasher(u64);

type BuildIdHasher = BuildHasherDefault<SequentialIdHasher>;

/// A map by the identity of entries.
pub(super) type EntryIdMap<V> = HashMap<EntryId, V, BuildIdHasher>;

impl Hasher for SequentialIdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, number: u64) {
        let number = self.0.rotate_left(8) ^ number;
        let place = (number / NEIGHBORHOOD_IDS).wrapping_mul(HASH_MULTIPLIER).rotate_left(26);
        // A map takes a place from the low bits, and tells those that are close by the high ones.
        self.0 = place ^ (number % NEIGHBORHOOD_IDS) ^ (number << 57);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn hash(number: u64) -> u64 {
        let mut hasher = SequentialIdHasher::default();
        hasher.write_u64(number);
        hasher.finish()
    }

    #[test]
    fn neighbours_stay_together_and_what_is_left_of_many_is_spread() {
        let near: HashSet<_> =
            (0..NEIGHBORHOOD_IDS).map(|number| hash(NEIGHBORHOOD_IDS + number) % 8192 / NEIGHBORHOOD_IDS).collect();
        assert_eq!(near.len(), 1);
        for step in (0..32).map(|bits| 1 << bits).chain([3, 100, 272, 1000]) {
            let places: HashSet<_> = (0..4096).map(|number| hash(number * step) % 8192).collect();
            let tags: HashSet<_> = (0..4096).map(|number| hash(number * step) >> 57).collect();
            // Of places by chance, 3,223 would be different.
            assert!(places.len() > 2000 && tags.len() > 60, "{step}: {} places, {} tags", places.len(), tags.len());
        }
    }
}
