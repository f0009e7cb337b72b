//! Sections that nothing in the file leads to any more, and that rest until it is known that no process has the file
//! open. Where there are many, neighbours are merged, and their number is bounded.

use std::cmp::Reverse;

use super::space_kind::{FreedSection, SpaceKind};

/// Most sections that are left when neighbours are merged. The shortest of more are forgotten: nobody gets their bytes
/// in this session.
const MAX_MERGED_SECTIONS: usize = 1 << 16;

/// Sections are merged when there are twice as many as after the last time, and no fewer than twice this many.
const MIN_MERGED_SECTIONS: usize = 1 << 9;

/// Sections that rest.
#[derive(Debug, Default)]
pub(super) struct SectionsAwaitingNoReaders {
    sections: Vec<FreedSection>,
    /// How many were left when they were merged.
    merged_count: usize,
    /// Their bytes. Those that are in two sections may count twice until these are merged.
    total_bytes: u64,
    /// Bytes of a page of the file, if it has pages.
    page_size: Option<u64>,
    /// Bytes of sections that were forgotten.
    forgotten_bytes: u64,
}

impl SectionsAwaitingNoReaders {
    /// From now on the file has pages of `page` bytes.
    pub fn set_page_size(&mut self, page: u64) {
        self.page_size = Some(page);
    }

    /// Adds a section. In a file with pages, a section of a page or more has its last page to itself.
    pub fn add_section(&mut self, (at, mut len, kind): FreedSection) {
        if let Some(page) = self.page_size.filter(|page| len >= *page) {
            len = at.saturating_add(len).checked_next_multiple_of(page).unwrap_or(u64::MAX) - at;
        }
        self.total_bytes = self.total_bytes.saturating_add(len);
        self.sections.push((at, len, kind));
        if self.sections.len() >= 2 * self.merged_count.max(MIN_MERGED_SECTIONS) {
            self.merge_neighbours();
        }
    }

    /// Merges neighbours of one kind, and forgets the shortest sections if there are too many.
    fn merge_neighbours(&mut self) {
        let bytes = |sections: &[FreedSection]| sections.iter().fold(0u64, |sum, (_, len, _)| sum.saturating_add(*len));
        self.sections.sort_unstable_by_key(|(at, _, kind)| (*kind == SpaceKind::Raw, *at));
        self.sections.dedup_by(|(at, len, kind), (start, merged, of)| {
            let touches = kind == of && *at <= start.saturating_add(*merged);
            if touches {
                *merged = (*merged).max(at.saturating_add(*len) - *start);
            }
            touches
        });
        if self.sections.len() > MAX_MERGED_SECTIONS {
            self.sections.sort_unstable_by_key(|(at, len, _)| (Reverse(*len), *at));
            let forgotten = bytes(&self.sections.split_off(MAX_MERGED_SECTIONS));
            self.add_abandoned_bytes(forgotten);
        }
        (self.merged_count, self.total_bytes) = (self.sections.len(), bytes(&self.sections));
    }

    /// Bytes of the remembered sections.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Bytes of sections that were forgotten, or never remembered.
    pub fn abandoned_bytes(&self) -> u64 {
        self.forgotten_bytes
    }

    /// Counts bytes that rest for ever.
    pub fn add_abandoned_bytes(&mut self, len: u64) {
        self.forgotten_bytes = self.forgotten_bytes.saturating_add(len);
    }

    /// Removes all sections, each merged with its neighbours of the same kind.
    pub fn take_all(&mut self) -> Vec<FreedSection> {
        self.merge_neighbours();
        (self.merged_count, self.total_bytes) = (0, 0);
        std::mem::take(&mut self.sections)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_kind_are_merged() {
        let mut resting = SectionsAwaitingNoReaders::default();
        for (at, kind) in
            [(0, SpaceKind::Raw), (100, SpaceKind::Metadata), (200, SpaceKind::Raw), (300, SpaceKind::Raw)]
        {
            resting.add_section((at, 100, kind));
        }
        let merged = [(100, 100, SpaceKind::Metadata), (0, 100, SpaceKind::Raw), (200, 200, SpaceKind::Raw)];
        assert_eq!((resting.total_bytes(), &*resting.take_all(), resting.total_bytes()), (400, &merged[..], 0));
    }

    #[test]
    fn however_many_neighbours_come_few_sections_are_kept() {
        let mut resting = SectionsAwaitingNoReaders::default();
        for n in 0..100_000 {
            resting.add_section(((n ^ 1) * 8, 8, SpaceKind::Metadata));
            assert_eq!(resting.total_bytes(), (n + 1) * 8);
        }
        assert!(resting.sections.capacity() <= 2 * MIN_MERGED_SECTIONS);
        assert_eq!(resting.take_all(), [(0, 800_000, SpaceKind::Metadata)]);
    }

    #[test]
    fn bytes_that_are_freed_twice_count_once_when_they_are_merged() {
        let mut resting = SectionsAwaitingNoReaders::default();
        for (at, len) in [(0, 100), (50, 20), (0, 100), (90, 20)] {
            resting.add_section((at, len, SpaceKind::Raw));
        }
        assert_eq!(resting.take_all(), [(0, 110, SpaceKind::Raw)]);
    }

    #[test]
    fn the_shortest_of_too_many_sections_is_forgotten() {
        let mut resting = SectionsAwaitingNoReaders::default();
        for n in 0..MAX_MERGED_SECTIONS as u64 + 10 {
            resting.add_section((n * 100, if n == 7 { 10 } else { 20 }, SpaceKind::Metadata));
        }
        assert_eq!(resting.take_all().len(), MAX_MERGED_SECTIONS);
        assert_eq!(resting.abandoned_bytes(), 10 + 9 * 20);
    }
}
