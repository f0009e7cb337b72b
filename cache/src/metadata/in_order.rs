//! A hash of numbers that are given out one after the other.

use std::hash::{BuildHasherDefault, Hasher};

/// Leaves neighbours beside each other in a map: those that are made together are sought together.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct InOrder(u64);

pub(super) type BuildInOrder = BuildHasherDefault<InOrder>;

impl Hasher for InOrder {
    fn finish(&self) -> u64 {
        // A map takes a place from the low bits, and tells those that are close by the high ones.
        self.0 ^ (self.0 << 57)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = self.0.rotate_left(8) ^ number;
    }
}
