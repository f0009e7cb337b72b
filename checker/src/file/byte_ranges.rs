//! Ranges of a heap that are taken.

use std::collections::BTreeMap;

/// Ranges that do not overlap. Neighbours count as one.
#[derive(Debug, Default)]
pub(super) struct ByteRanges {
    /// Start and end.
    ranges: BTreeMap<u64, u64>,
    /// Bytes in all of them.
    bytes: u64,
}

impl ByteRanges {
    /// Whether any of the bytes are taken.
    pub fn overlaps(&self, start: u64, end: u64) -> bool {
        self.ranges.range(..end).next_back().is_some_and(|(_, taken)| *taken > start)
    }

    /// Takes a range. `false`, and nothing taken, if some of it is.
    pub fn try_claim(&mut self, start: u64, end: u64) -> bool {
        if end <= start || self.overlaps(start, end) {
            return end <= start;
        }
        let (mut from, mut to) = (start, end);
        if let Some((before, _)) = self.ranges.range(..start).next_back().filter(|(_, taken)| **taken == start) {
            from = *before;
            self.ranges.remove(&from);
        }
        if let Some(after) = self.ranges.remove(&end) {
            to = after;
        }
        self.ranges.insert(from, to);
        self.bytes = self.bytes.saturating_add(end - start);
        true
    }

    /// Bytes that are taken.
    pub fn total_bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_not_taken_twice() {
        let mut ranges = ByteRanges::default();
        assert!(
            ranges.try_claim(10, 20) && ranges.try_claim(20, 30) && ranges.try_claim(0, 5) && ranges.try_claim(7, 7)
        );
        assert!(!ranges.try_claim(29, 31) && !ranges.try_claim(4, 11) && !ranges.try_claim(12, 13));
        assert!(ranges.overlaps(0, 1) && !ranges.overlaps(5, 10) && !ranges.overlaps(30, 99));
        assert_eq!((ranges.total_bytes(), ranges.ranges.len()), (25, 2));
    }
}
