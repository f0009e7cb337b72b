//! Ranges of a heap that are taken.

use std::collections::BTreeMap;

/// Ranges that do not overlap. Neighbours count as one.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// Start and end.
    ranges: BTreeMap<u64, u64>,
    /// Bytes in all of them.
    bytes: u64,
}

impl Ranges {
    /// Whether any of the bytes are taken.
    pub fn has(&self, start: u64, end: u64) -> bool {
        self.ranges.range(..end).next_back().is_some_and(|(_, taken)| *taken > start)
    }

    /// Takes a range. `false`, and nothing taken, if some of it is.
    pub fn take(&mut self, start: u64, end: u64) -> bool {
        if end <= start || self.has(start, end) {
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
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_not_taken_twice() {
        let mut ranges = Ranges::default();
        assert!(ranges.take(10, 20) && ranges.take(20, 30) && ranges.take(0, 5) && ranges.take(7, 7));
        assert!(!ranges.take(29, 31) && !ranges.take(4, 11) && !ranges.take(12, 13));
        assert!(ranges.has(0, 1) && !ranges.has(5, 10) && !ranges.has(30, 99));
        assert_eq!((ranges.bytes(), ranges.ranges.len()), (25, 2));
    }
}
