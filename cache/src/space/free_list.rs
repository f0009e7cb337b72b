//! Free space, by size and by address; neighbours are merged.

use std::collections::{BTreeMap, BTreeSet};

/// At most this many sections are tried in each order.
const MAX_FIT_TRIES: usize = 32;

/// Free space: sections of bytes. No two sections touch, and none ends beyond the last address.
#[derive(Debug, Default)]
pub struct FreeList {
    by_addr: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
    total_bytes: u64,
}

impl FreeList {
    /// Adds `len` bytes at `at`. Bytes that are free already are not added twice.
    pub fn free_range(&mut self, at: u64, len: u64) {
        let (mut start, mut end) = (at, at.saturating_add(len));
        if start == end {
            return;
        }
        while let Some((&near, &size)) = self.by_addr.range(..=end).next_back() {
            let near_end = near + size;
            if near_end < start {
                break;
            }
            self.remove_section(near, size);
            start = start.min(near);
            end = end.max(near_end);
        }
        self.insert_section(start, end - start);
    }

    /// Takes `len` bytes from the smallest section that fits; of several, from the first. `first_fitting_addr` gives the first
    /// fitting address from the beginning of a section. So large sections stay whole.
    pub fn take_best_fit(&mut self, len: u64, first_fitting_addr: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        if self.by_size.last().is_none_or(|(largest, _)| *largest < len) {
            return None;
        }
        let fit = |start: u64, size: u64| {
            let at = first_fitting_addr(start)?;
            (at.checked_add(len)? <= start + size).then_some((start, size, at))
        };
        let mut tried = 0;
        let mut smallest = self.by_size.range((len, 0)..).take(MAX_FIT_TRIES).inspect(|_| tried += 1);
        let smallest = smallest.find_map(|&(size, start)| fit(start, size));
        // Where `place` refuses many of those, one of the first sections may still suit.
        let first = || self.by_addr.iter().take(MAX_FIT_TRIES).find_map(|(&start, &size)| fit(start, size));
        let (start, size, at) = smallest.or_else(|| (tried == MAX_FIT_TRIES).then(first).flatten())?;
        self.remove_section(start, size);
        self.insert_section(start, at - start);
        self.insert_section(at + len, start + size - (at + len));
        Some(at)
    }

    /// Takes exactly the `len` bytes at `at`, if all of them are free; otherwise nothing.
    pub fn remove_if_free(&mut self, at: u64, len: u64) {
        let Some((&start, &size)) = self.by_addr.range(..=at).next_back() else { return };
        if let Some(end) = at.checked_add(len).filter(|end| *end <= start + size) {
            self.remove_section(start, size);
            self.insert_section(start, at - start);
            self.insert_section(end, start + size - end);
        }
    }

    /// The section that holds `at`: its first byte and its length.
    pub fn section_containing(&self, at: u64) -> Option<(u64, u64)> {
        let (&start, &size) = self.by_addr.range(..=at).next_back()?;
        (at < start + size).then_some((start, size))
    }

    /// Whether any of the `len` bytes at `at` is free.
    pub fn overlaps(&self, at: u64, len: u64) -> bool {
        let before = self.by_addr.range(..at.saturating_add(len)).next_back();
        before.is_some_and(|(start, size)| start + size > at)
    }

    /// The last section.
    pub fn last_section(&self) -> Option<(u64, u64)> {
        self.by_addr.last_key_value().map(|(&start, &size)| (start, size))
    }

    /// All sections, by address.
    pub fn sections(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_addr.iter().map(|(&start, &size)| (start, size))
    }

    /// All free bytes.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = FreeList::default();
    }

    fn insert_section(&mut self, at: u64, len: u64) {
        if len > 0 {
            self.by_addr.insert(at, len);
            self.by_size.insert((len, at));
            self.total_bytes += len;
        }
    }

    fn remove_section(&mut self, at: u64, len: u64) {
        self.by_addr.remove(&at);
        self.by_size.remove(&(len, at));
        self.total_bytes -= len;
    }
}
